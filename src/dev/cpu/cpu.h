/* SPDX-License-Identifier: Apache-2.0
 * The cpu backend: oneDNN for matmul and convolution, vector loops of our own for the rest (isa.h).
 * One thread runs a part of a kernel; bits depend on shapes and inputs alone, never on addresses or
 * on which instructions the machine has (but for oneDNN's kernels, and those of conv_dw.c and
 * conv_wino.c, which stand in for some): sums are taken over lanes whose number is fixed (vec.h),
 * there is no contraction and no libm transcendental. */
#ifndef DEV_CPU_CPU_H
#define DEV_CPU_CPU_H

#include <stdlib.h>
#include <string.h>

#include "base/clones.h"
#include "dev/dev.h"

extern const struct dev_row cpu_elementwise[], cpu_matmul[], cpu_conv[];

/* A loop over elements that don't touch one another: input and output may be one buffer. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#ifdef CLONED
#define VMATH_CLONES /* what they can do is not known to macros */
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
static inline bool cpu_is_half(tri_type t) { return t == TRI_BF16 || t == TRI_F16; }
/* Product of the dimensions [from, to). */
int64_t cpu_span(const tri_shape *s, int from, int to);
/* The attribute "axis" of the node, counted from the start. */
int cpu_axis(const tri_node *n);
/* A shape seen around one axis: [outer, length, inner]. */
struct cpu_axis_view {
    int64_t outer, length, inner;
};
struct cpu_axis_view cpu_axis_view(const tri_shape *s, int axis);

/* Element i of an input of i32 or i64. */
static inline int64_t cpu_index(const tri_call *c, int input, int64_t i) {
    return cpu_in(c->node, input)->type == TRI_I64 ? ((const int64_t *)c->in[input])[i]
                                                   : ((const int32_t *)c->in[input])[i];
}
/* Into how many parts a node is cut that has `units` independent units (rows, say) of so many
 * elements each: each worth a thread's while, enough for many threads, from the shapes alone. */
int64_t cpu_parts(int64_t units, int64_t elements);
/* The units of one part. */
struct cpu_range {
    int64_t begin, end;
};
static inline struct cpu_range cpu_part(const tri_call *c, int64_t parts, int64_t units) {
    return (struct cpu_range){units * c->part / parts, units * (c->part + 1) / parts};
}
/* A whole tensor of one value. */
void cpu_fill(const tri_spec *spec, void *to, double value);
/* Zeroed state for a kernel; tells that memory is out. */
tri_status cpu_state(const tri_node *n, size_t bytes, void **state);

/* struct target.lays for operators whose tensors of one rank and as many channels as output 0 lie
 * alike. */
void cpu_lays_alike(const tri_node *n, struct lying *in, struct lying *out);

/* struct target.winograd */
bool cpu_winograd(const tri_node *n);

/* For matmul and convolution: the types that oneDNN does not compute with. */
const char *cpu_dnnl_supports(const tri_node *n);
/* tail.c: whether it can head a unit; its kernel as one. */
bool cpu_leads(const tri_node *n);
tri_status cpu_prepare_head(const tri_node *n, const struct tail *tail, struct kernel *out);

/* elementwise.c: units of several operators that chain_fits. */
tri_status elementwise_unit(const struct unit *u, struct kernel *out);

#endif
