/* SPDX-License-Identifier: Apache-2.0
 * The cpu backend: our own vector loops (isa.h). One thread runs a part of a kernel. Bits depend
 * only on shapes and inputs, never on addresses or the instruction set: sums have a fixed number of
 * partial sums (vec.h), and there is no contraction and no libm. With --math native oneDNN computes
 * products and convolutions of bf16 (*dnnl*.c). */
#ifndef DEV_CPU_CPU_H
#define DEV_CPU_CPU_H

#include <stdlib.h>
#include <string.h>

#include "base/clones.h"
#include "dev/dev.h"

extern const struct dev_row cpu_elementwise[], cpu_shape[], cpu_matmul[], cpu_matmul_dnnl[],
    cpu_conv_dnnl[];
/* For every operator that has tile functions and no row of its own. */
extern const struct dev_row cpu_tile_row;

/* A loop over independent elements: input and output may be one buffer. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#ifdef CLONED
#define VMATH_CLONES /* the capabilities are not known to the preprocessor */
#endif
#define INLINE static inline __attribute__((always_inline))

static inline const tri_spec *cpu_in(const tri_node *n, int i) { return &n->in[i]->spec; }
static inline const tri_spec *cpu_out(const tri_node *n, int i) { return &n->out[i].spec; }
static inline int64_t cpu_in_count(const tri_node *n, int i) {
    return tri_shape_count(&n->in[i]->spec.shape);
}
static inline int64_t cpu_out_count(const tri_node *n, int i) {
    return tri_shape_count(&n->out[i].spec.shape);
}
/* The lesser. */
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline bool cpu_is_half(tri_type t) { return t == TRI_BF16 || t == TRI_F16; }
/* Product of the dimensions [from, to). */
int64_t cpu_span(const tri_shape *s, int from, int to);
/* The node's attribute "axis", as a non-negative number. */
int cpu_axis(const tri_node *n);
/* A shape split at one axis: [outer, length, inner]. */
struct cpu_axis_view {
    int64_t outer, length, inner;
};
struct cpu_axis_view cpu_axis_view(const tri_shape *s, int axis);

/* The last dimension of input 0, which has at least one. */
static inline struct cpu_axis_view cpu_last_view(const tri_node *n) {
    const tri_shape *s = &cpu_in(n, 0)->shape;
    return cpu_axis_view(s, s->rank - 1);
}

/* Element i of an i32 or i64 input. */
static inline int64_t cpu_index(const tri_call *c, int input, int64_t i) {
    return cpu_in(c->node, input)->type == TRI_I64 ? ((const int64_t *)c->in[input])[i]
                                                   : ((const int32_t *)c->in[input])[i];
}
/* The number of parts of a node with `units` independent units (such as rows) of `elements` each:
 * from the shapes alone, large enough to be worth a thread, and enough for many threads. */
int64_t cpu_parts(int64_t units, int64_t elements);
/* The units of one part. */
struct cpu_range {
    int64_t begin, end;
};
static inline struct cpu_range cpu_part(const tri_call *c, int64_t parts, int64_t units) {
    return (struct cpu_range){units * c->part / parts, units * (c->part + 1) / parts};
}
/* Fills a tensor with one value. */
void cpu_fill(const tri_spec *spec, void *to, double value);
/* The order of operations of every kernel (docs/arithmetic.md). After the first release any
 * change of bits raises it. */
#define CPU_ARITHMETIC 2
/* Allocates zeroed state for a kernel; fails with a message if memory is out. */
tri_status cpu_state(const tri_node *n, size_t bytes, void **state);

/* struct target.formats for operators whose tensors with the rank and channels of output 0 share
 * its format. */
void cpu_same_format(const tri_node *n, struct format *in, struct format *out);

/* struct target.convolution */
int cpu_convolution(const tri_node *n, bool winograd);

/* For matmul and convolution: refuses types that oneDNN does not support. */
const char *cpu_dnnl_supports(const tri_node *n);
/* device.c: whether a node can head a unit; prepares its kernel as a head. */
bool cpu_leads(const tri_node *n);
tri_status cpu_prepare_head(const tri_node *n, const struct tail *tail, struct kernel *out);

/* elementwise.c: units of several operators for which chain_fits holds. */
tri_status elementwise_unit(const struct unit *u, struct kernel *out);

#endif
