/* SPDX-License-Identifier: Apache-2.0
 * Operators that look up by index: gather, its gradient, one_hot. */
#include "dev/cpu/cpu.h"
#include "dev/cpu/isa.h"

/* Row `ids[i]` of a table of so many rows; below 0 after telling the mistake. */
static int64_t row_at(const tri_call *c, int64_t i, int64_t rows) {
    int64_t id = cpu_index(c, 1, i);
    if (id >= 0 && id < rows) return id;
    tri_call_fail(c, "id %lld at element %lld is not in [0, %lld)", (long long)id, (long long)i,
                  (long long)rows);
    return -1;
}

static void gather(const tri_call *c) {
    const tri_spec *table = cpu_in(c->node, 0);
    int64_t rows = table->shape.dim[0];
    size_t row = base_spec_bytes(table) / (size_t)rows;
    for (int64_t i = 0, n = cpu_in_count(c->node, 1); i < n; i++) {
        int64_t id = row_at(c, i, rows);
        if (id < 0) return;
        memcpy((char *)c->out[0] + (size_t)i * row, (const char *)c->in[0] + (size_t)id * row, row);
    }
}

static void add_to(float *to, const float *from, int64_t n) {
    INDEPENDENT for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

/* Rows are added in the order of their ids. */
static void gather_grad(const tri_call *c) {
    const tri_shape *table = &cpu_out(c->node, 0)->shape;
    int64_t rows = table->dim[0], width = tri_shape_count(table) / rows;
    memset(c->out[0], 0, (size_t)(rows * width) * sizeof(float));
    for (int64_t i = 0, n = cpu_in_count(c->node, 1); i < n; i++) {
        int64_t id = row_at(c, i, rows);
        if (id < 0) return;
        add_to((float *)c->out[0] + id * width, (const float *)c->in[0] + i * width, width);
    }
}

/* Indices outside give a row of zeros. */
static void one_hot(const tri_call *c) {
    int64_t depth = tri_attr_int(c->node, "depth");
    float *y = c->out[0];
    memset(y, 0, base_spec_bytes(cpu_out(c->node, 0)));
    for (int64_t i = 0, n = cpu_in_count(c->node, 0); i < n; i++) {
        int64_t id = cpu_index(c, 0, i);
        if (id >= 0 && id < depth) y[i * depth + id] = 1;
    }
}

const struct dev_row FOR_ISA(cpu_gather)[] = {
    {.op = "gather", .run = gather},
    {.op = "one_hot", .run = one_hot},
    {0},
};

/* Sums, in f32. */
const struct dev_row FOR_ISA(cpu_gather_grad)[] = {
    {.op = "gather_grad", .run = gather_grad},
    {0},
};
