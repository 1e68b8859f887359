/* SPDX-License-Identifier: Apache-2.0
 * Operators that move elements, all by strided copies: transpose, reorder, slice, concat, split,
 * pad. */
#include "dev/cpu/copy.h"
#include "dev/cpu/cpu.h"
#include "ops/op.h"

/* A block of `shape` in contiguous tensors that are longer along `axis`. */
static struct copy copy_block(const tri_spec *shape, int axis, int64_t to_length, int64_t to_begin,
                              int64_t from_length, int64_t from_begin) {
    struct copy c = {.walk = walk_over(&shape->shape, 2)};
    int64_t inner = cpu_span(&shape->shape, axis + 1, shape->shape.rank);
    for (int k = 0; k < 2; k++) {
        int64_t length = k ? from_length : to_length;
        walk_dense(&c.walk, k);
        for (int d = 0; d < axis; d++)
            c.walk.stride[k][d] = c.walk.stride[k][d] / shape->shape.dim[axis] * length;
    }
    c.to = to_begin * inner;
    c.from = from_begin * inner;
    copy_finish(&c, shape->type, shape->type);
    return c;
}

static tri_status prepare_transpose(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct copy), state);
    if (status) return status;
    struct copy *c = *state;
    tri_shape order = tri_attr_list(n, "order");
    const tri_shape *x = &cpu_in(n, 0)->shape;
    *c = (struct copy){.walk = walk_over(&cpu_out(n, 0)->shape, 2)};
    walk_dense(&c->walk, 0);
    for (int d = 0; d < c->walk.rank; d++)
        c->walk.stride[1][d] = cpu_span(x, (int)order.dim[d] + 1, x->rank);
    copy_finish(c, cpu_in(n, 0)->type, cpu_in(n, 0)->type);
    return TRI_OK;
}

static tri_status prepare_slice(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct copy), state);
    if (status) return status;
    int axis = cpu_axis(n);
    *(struct copy *)*state =
        copy_block(cpu_out(n, 0), axis, cpu_out(n, 0)->shape.dim[axis], 0,
                   cpu_in(n, 0)->shape.dim[axis], tri_attr_int(n, "begin"));
    return TRI_OK;
}

/* One copy per input. */
static tri_status prepare_concat(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, (size_t)n->n_in * sizeof(struct copy), state);
    if (status) return status;
    struct copy *c = *state;
    int axis = cpu_axis(n);
    int64_t total = cpu_out(n, 0)->shape.dim[axis], begin = 0;
    for (int i = 0; i < n->n_in; i++) {
        int64_t length = cpu_in(n, i)->shape.dim[axis];
        c[i] = copy_block(cpu_in(n, i), axis, total, begin, length, 0);
        begin += length;
    }
    return TRI_OK;
}

/* One copy per output. */
static tri_status prepare_split(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, (size_t)n->n_out * sizeof(struct copy), state);
    if (status) return status;
    struct copy *c = *state;
    int axis = cpu_axis(n);
    int64_t total = cpu_in(n, 0)->shape.dim[axis], begin = 0;
    for (int i = 0; i < n->n_out; i++) {
        int64_t length = cpu_out(n, i)->shape.dim[axis];
        c[i] = copy_block(cpu_out(n, i), axis, length, 0, total, begin);
        begin += length;
    }
    return TRI_OK;
}

/* Null, or why it cannot be done. */
static const char *reorder_copy(const tri_node *n, struct copy *c) {
    const tri_spec *x = cpu_in(n, 0);
    struct pack to, from;
    pack_of(n->out, &to);
    pack_of(n->in[0], &from);
    return copy_formats(&x->shape, x->shape.dim[0], x->type, &to, x->type, &from, c);
}

static const char *supports_reorder(const tri_node *n) {
    struct copy c;
    return reorder_copy(n, &c);
}

static tri_status prepare_reorder(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct copy), state);
    if (!status) CHECK(!reorder_copy(n, *state));
    return status;
}

static void plan_one(const tri_node *n, struct kernel *k) {
    (void)n;
    k->parts = copy_parts(k->state);
}

/* Whether a concat is large enough for parts: those of the copies, one after another. */
static bool in_parts(const tri_node *n) { return cpu_parts(2, cpu_out_count(n, 0) / 2) > 1; }

static void plan_concat(const tri_node *n, struct kernel *k) {
    if (!in_parts(n)) return;
    for (int i = 0; i < n->n_in; i++) k->parts += copy_parts((struct copy *)k->state + i);
}

static void plan_reorder(const tri_node *n, struct kernel *k) {
    struct pack from, to;
    pack_of(n->in[0], &from);
    pack_of(n->out, &to);
    k->alias = pack_equal(&from, &to, &cpu_in(n, 0)->shape);
    plan_one(n, k);
}

/* Inside the bounds pad copies the input; elsewhere it writes the value. */
static tri_status prepare_pad(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct copy), state);
    if (status) return status;
    struct copy *c = *state;
    tri_shape before = tri_attr_list(n, "before");
    const tri_shape *y = &cpu_out(n, 0)->shape;
    *c = (struct copy){.walk = walk_over(&cpu_in(n, 0)->shape, 2)};
    walk_dense(&c->walk, 1);
    for (int d = 0; d < c->walk.rank; d++) {
        c->walk.stride[0][d] = cpu_span(y, d + 1, y->rank);
        c->to += before.dim[d] * c->walk.stride[0][d];
    }
    copy_finish(c, cpu_in(n, 0)->type, cpu_in(n, 0)->type);
    return TRI_OK;
}

/* ---- kernels ---- */

static void run_one(const tri_call *c) {
    const int64_t parts = copy_parts(c->state);
    if (c->out[0] != c->in[0]) copy_part(c->state, c->out[0], c->in[0], c->part, parts);
}

static void run_concat(const tri_call *c) {
    const struct copy *copy = c->state;
    int64_t part = c->part;
    for (int i = 0; i < c->node->n_in && !in_parts(c->node); i++)
        copy_run(&copy[i], c->out[0], c->in[i]);
    if (!in_parts(c->node)) return;
    while (part >= copy_parts(copy)) part -= copy_parts(copy++);
    copy_part(copy, c->out[0], c->in[copy - (const struct copy *)c->state], part,
              copy_parts(copy));
}

static void run_split(const tri_call *c) {
    const struct copy *copy = c->state;
    for (int i = 0; i < c->node->n_out; i++) copy_run(&copy[i], c->out[i], c->in[0]);
}

static void run_pad(const tri_call *c) {
    cpu_fill(cpu_out(c->node, 0), c->out[0], tri_attr_float(c->node, "value"));
    copy_run(c->state, c->out[0], c->in[0]);
}

const struct dev_row cpu_shape[] = {
    {.op = "transpose", .run = run_one, .prepare = prepare_transpose, .release = free,
     .plan = plan_one},
    {.op = "reorder", .run = run_one, .supports = supports_reorder, .prepare = prepare_reorder,
     .release = free, .plan = plan_reorder, .any_order = true},
    {.op = "slice", .run = run_one, .prepare = prepare_slice, .release = free, .plan = plan_one},
    {.op = "concat", .run = run_concat, .prepare = prepare_concat, .release = free,
     .plan = plan_concat},
    {.op = "split", .run = run_split, .prepare = prepare_split, .release = free},
    {.op = "pad", .run = run_pad, .prepare = prepare_pad, .release = free},
    {0},
};
