/* SPDX-License-Identifier: Apache-2.0
 * Reference kernels that move elements: every type, byte for byte; and sums of moved rows. */
#include <stdlib.h>
#include <string.h>

#include "dev/ref/index.h"
#include "dev/ref/ref.h"
#include "graph/pack.h"
#include "ops/gather.h"

/* Operands of the walks below: the element written and the element read. */
enum { TO, FROM };

static void move(void *to, const void *from, size_t size, struct walk w) {
    do
        memcpy((char *)to + (size_t)w.offset[TO] * size,
               (const char *)from + (size_t)w.offset[FROM] * size, size);
    while (walk_next(&w));
}

static size_t size_of(const tri_call *c) { return tri_type_size(ref_out(c, 0)->type); }

static void reshape(const tri_call *c) {
    memcpy(c->out[0], c->in[0], base_spec_bytes(ref_out(c, 0)));
}

static void transpose(const tri_call *c) {
    tri_shape order = tri_attr_list(c->node, "order");
    const tri_shape *y = &ref_out(c, 0)->shape;
    struct walk w = walk_over(y), x = {.rank = order.rank};
    walk_operand(&w, TO, y);
    walk_operand(&x, FROM, &ref_in(c, 0)->shape);
    for (int i = 0; i < order.rank; i++) w.stride[FROM][i] = x.stride[FROM][order.dim[i]];
    move(c->out[0], c->in[0], size_of(c), w);
}

static void reorder(const tri_call *c) {
    const tri_shape *s = &ref_out(c, 0)->shape;
    size_t size = size_of(c);
    struct pack to, from;
    pack_of(c->node->out, &to);
    pack_of(c->node->in[0], &from);
    struct walk w = walk_over(s);
    do
        memcpy((char *)c->out[0] + (size_t)pack_place(&to, s, w.at) * size,
               (const char *)c->in[0] + (size_t)pack_place(&from, s, w.at) * size, size);
    while (walk_next(&w));
}

static void expand(const tri_call *c) {
    const tri_shape *y = &ref_out(c, 0)->shape;
    struct walk w = walk_over(y);
    walk_operand(&w, TO, y);
    walk_operand(&w, FROM, &ref_in(c, 0)->shape);
    move(c->out[0], c->in[0], size_of(c), w);
}

/* The number of elements per step along the axis. */
static int64_t stride_of(const tri_shape *s, int axis) {
    int64_t stride = 1;
    for (int i = axis + 1; i < s->rank; i++) stride *= s->dim[i];
    return stride;
}

static int axis_of(const tri_call *c) {
    int axis;
    CHECK(op_axis(c->node, "axis", 0, &axis));
    return axis;
}

/* The walk over `part` of `whole`, which starts at place `begin` of the axis; the whole is read or
 * written. */
static struct walk walk_part(const tri_shape *part, const tri_shape *whole, int axis,
                             int64_t begin, int whole_operand) {
    struct walk w = walk_over(part);
    walk_operand(&w, 1 - whole_operand, part);
    walk_operand(&w, whole_operand, whole);
    w.offset[whole_operand] = begin * stride_of(whole, axis);
    return w;
}

static void slice(const tri_call *c) {
    move(c->out[0], c->in[0], size_of(c),
         walk_part(&ref_out(c, 0)->shape, &ref_in(c, 0)->shape, axis_of(c),
                   tri_attr_int(c->node, "begin"), FROM));
}

static void concat(const tri_call *c) {
    int axis = axis_of(c);
    int64_t begin = 0;
    for (int i = 0; i < c->node->n_in; i++) {
        const tri_shape *x = &ref_in(c, i)->shape;
        move(c->out[0], c->in[i], size_of(c),
             walk_part(x, &ref_out(c, 0)->shape, axis, begin, TO));
        begin += x->dim[axis];
    }
}

static void split(const tri_call *c) {
    int axis = axis_of(c);
    for (int i = 0; i < c->node->n_out; i++) {
        const tri_shape *y = &ref_out(c, i)->shape;
        move(c->out[i], c->in[0], size_of(c),
             walk_part(y, &ref_in(c, 0)->shape, axis, i * y->dim[axis], FROM));
    }
}

static void pad(const tri_call *c) {
    const tri_shape *x = &ref_in(c, 0)->shape, *y = &ref_out(c, 0)->shape;
    tri_shape before = tri_attr_list(c->node, "before");
    double value = tri_attr_float(c->node, "value");
    for (int64_t i = 0, n = tri_shape_count(y); i < n; i++) ref_store(c, 0, i, value);
    struct walk w = walk_over(x);
    walk_operand(&w, TO, y);
    walk_operand(&w, FROM, x);
    for (int i = 0; i < x->rank; i++) w.offset[TO] += before.dim[i] * stride_of(y, i);
    move(c->out[0], c->in[0], size_of(c), w);
}

/* ---- rows of a table ---- */

/* Whether the id at element i of input 1 is a row of the whole table, after reporting that it is
 * not. *row: its row in this part of the table, or -1. */
static bool row_of(const tri_call *c, int64_t i, int64_t rows, int64_t *row) {
    int64_t id = ref_load_i64(c, 1, i), all = gather_all(c->node, rows);
    int64_t first = tri_attr_int(c->node, "first");
    *row = id >= first && id < first + rows ? id - first : -1;
    if (id >= 0 && id < all) return true;
    call_fail_at(c, 1, i, "id %lld is not in [0, %lld)", (long long)id, (long long)all);
    return false;
}

static void gather(const tri_call *c) {
    const tri_shape *table = &ref_in(c, 0)->shape;
    size_t row = (size_t)stride_of(table, 0) * size_of(c);
    char *out = c->out[0];
    for (int64_t i = 0, n = tri_shape_count(&ref_in(c, 1)->shape); i < n; i++, out += row) {
        int64_t id;
        if (!row_of(c, i, table->dim[0], &id)) return;
        memset(out, 0, row);
        if (id >= 0) memcpy(out, (const char *)c->in[0] + (size_t)id * row, row);
    }
}

static void gather_grad(const tri_call *c) {
    const tri_shape *table = &ref_out(c, 0)->shape;
    int64_t width = stride_of(table, 0), all = tri_shape_count(table);
    double *sum = calloc((size_t)all, sizeof *sum);
    if (!sum) {
        tri_call_fail(c, "out of memory for %lld sums", (long long)all);
        return;
    }
    for (int64_t i = 0, n = tri_shape_count(&ref_in(c, 1)->shape); i < n; i++) {
        int64_t id;
        if (!row_of(c, i, table->dim[0], &id)) break;
        for (int64_t k = 0; id >= 0 && k < width; k++)
            sum[id * width + k] += ref_load(c, 0, i * width + k);
    }
    for (int64_t i = 0; i < all; i++) ref_store(c, 0, i, sum[i]);
    free(sum);
}

static void one_hot(const tri_call *c) {
    int64_t depth = tri_attr_int(c->node, "depth"), n = tri_shape_count(&ref_in(c, 0)->shape);
    int64_t first = tri_attr_int(c->node, "first");
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < depth; k++)
            ref_store(c, 0, i * depth + k, ref_load_i64(c, 0, i) == first + k);
}

const struct dev_row ref_shape[] = {
    {.op = "reshape", .run = reshape},
    {.op = "transpose", .run = transpose},
    {.op = "expand", .run = expand},
    {.op = "reorder", .run = reorder, .any_order = true},
    {.op = "slice", .run = slice},
    {.op = "concat", .run = concat},
    {.op = "split", .run = split},
    {.op = "pad", .run = pad},
    {.op = "gather", .run = gather},
    {.op = "gather_grad", .run = gather_grad},
    {.op = "one_hot", .run = one_hot},
    {0},
};
