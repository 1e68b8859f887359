/* SPDX-License-Identifier: Apache-2.0
 * Strided copies of elements of 1, 2, 4 or 8 bytes, or from f32 to bf16: changes of a tensor's
 * format, and operators that move elements. */
#ifndef DEV_CPU_COPY_H
#define DEV_CPU_COPY_H

#include "dev/cpu/isa.h"
#include "dev/cpu/walk.h"
#include "graph/pack.h"

/* Its strides are in bytes, as all strides below. */
struct copy_loop {
    int64_t length, to, from;
};

/* The inner loops: in `row` the output is (nearly) contiguous, in `line` the input; `plane` is
 * outside both. */
struct copy_loops {
    struct copy_loop plane, line, row;
};
typedef void copy_fn(struct copy_loops x, char *to, const char *from);

/* The outer loops are a walk, in which tensor 0 is written and tensor 1 read; both may start inside
 * their buffers. */
struct copy {
    struct walk walk;
    int64_t to, from;
    struct copy_loops inner;
    copy_fn *run;
    int64_t next_to, next_from; /* of copy_formats: to the rows after these */
};

/* Of a copy whose walk covers all elements, in the output's order, and whose strides and beginnings
 * are still in elements. */
void copy_finish(struct copy *c, tri_type to, tri_type from);
/* From one format to another; the types are equal, or f32 becomes bf16. Only `rows` of dimension 0
 * are copied, which begin anywhere at a block of both formats. Null, or the reason why it cannot
 * be: a static text. */
const char *copy_formats(const tri_shape *shape, int64_t rows, tri_type to_type,
                         const struct pack *to, tri_type from_type, const struct pack *from,
                         struct copy *c);

int64_t copy_parts(const struct copy *c);
void copy_part(const struct copy *c, void *to, const void *from, int64_t part, int64_t parts);
static inline void copy_run(const struct copy *c, void *to, const void *from) {
    copy_part(c, to, from, 0, 1);
}
/* These rows and the next: n copies. */
void copy_several(const struct copy *c, void *to, const void *from, int64_t n);

/* copy_loops.c: elements of 1, 2, 4, 8 bytes; rows that are contiguous on both sides; elements of
 * f32 to bf16. */
struct copy_set {
    copy_fn *elements[4], *rows, *rounded;
};
#define COPY_DECLARE(isa) extern const struct copy_set copy_set_##isa;
EVERY_ISA(COPY_DECLARE)

#endif
