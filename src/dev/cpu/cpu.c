/* SPDX-License-Identifier: Apache-2.0
 * Helpers of kernels. */
#include "dev/cpu/cpu.h"

#include <stdlib.h>

#include "ops/op.h"

/* A tensor without places has no blocks. */
static bool alike(const tri_shape *s, const tri_shape *main) {
    return s->rank >= 3 && s->rank == main->rank && s->dim[1] == main->dim[1] &&
           cpu_span(s, 2, s->rank) > 1;
}

void cpu_same_format(const tri_node *n, struct format *in, struct format *out) {
    const tri_shape *main = &cpu_out(n, 0)->shape;
    for (int i = 0; i < n->n_in; i++)
        if (alike(&cpu_in(n, i)->shape, main)) in[i].block = FORMAT_ANY;
    for (int i = 0; i < n->n_out; i++)
        if (alike(&cpu_out(n, i)->shape, main)) out[i].block = FORMAT_ANY;
}

int64_t cpu_span(const tri_shape *s, int from, int to) {
    int64_t count = 1;
    for (int d = from; d < to; d++) count *= s->dim[d];
    return count;
}

int cpu_axis(const tri_node *n) {
    int axis;
    CHECK(op_axis(n, "axis", 0, &axis));
    return axis;
}

struct cpu_axis_view cpu_axis_view(const tri_shape *s, int axis) {
    return (struct cpu_axis_view){cpu_span(s, 0, axis), s->dim[axis],
                                  cpu_span(s, axis + 1, s->rank)};
}

#define LEAST_PART 8192 /* elements: some microseconds */
#define MOST_PARTS 48   /* divides evenly among 1, 2, 3, 4, 6, 8, 12, 16 threads */

int64_t cpu_parts(int64_t units, int64_t elements) {
    int64_t most = units < MOST_PARTS ? units : MOST_PARTS;
    int64_t parts = units * elements / LEAST_PART;
    return parts < 1 ? 1 : parts < most ? parts : most;
}

tri_status cpu_state(const tri_node *n, size_t bytes, void **state) {
    *state = calloc(1, bytes ? bytes : 1);
    return *state ? TRI_OK : base_no_memory(n->name);
}
