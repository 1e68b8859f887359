/* SPDX-License-Identifier: Apache-2.0
 * Operators that move elements: transpose, slice, concat, split, pad. All are strided copies of
 * elements of 1, 2, 4 or 8 bytes. */
#include "base/convert.h"
#include "dev/cpu/cpu.h"
#include "dev/cpu/dnnl_glue.h"
#include "dev/cpu/isa.h"
#include "dev/cpu/walk.h"
#include "ops/op.h"

/* Tensor 0 of the walk is written, tensor 1 read; both may start inside their buffers. */
struct copy {
    struct walk walk;
    int64_t to, from;
    /* The two innermost loops, which are not in the walk: `row`, along which the output is (nearly)
     * contiguous, and `across`, along which the input is. */
    int64_t row, row_to, row_from, across, across_to, across_from;
    size_t size;
};

/* ---- running ---- */

/* elements in each direction: both sides of a block stay in the first-level cache */
#define BLOCK 16

/* The input's contiguous direction crosses the output's: copies in blocks. */
#define TURN(T)                                                                             \
    static void turn_##T(const struct copy *c, T *to, const T *from) {               \
        for (int64_t a0 = 0; a0 < c->across; a0 += BLOCK) {                                 \
            int64_t a1 = a0 + BLOCK < c->across ? a0 + BLOCK : c->across;                   \
            for (int64_t r0 = 0; r0 < c->row; r0 += BLOCK) {                                \
                int64_t r1 = r0 + BLOCK < c->row ? r0 + BLOCK : c->row;                     \
                for (int64_t a = a0; a < a1; a++)                                           \
                    for (int64_t r = r0; r < r1; r++)                                       \
                        to[a * c->across_to + r * c->row_to] =                              \
                            from[a * c->across_from + r * c->row_from];                     \
            }                                                                               \
        }                                                                                   \
    }
TURN(uint8_t)
TURN(uint16_t)
TURN(uint32_t)
TURN(uint64_t)

static void turn(const struct copy *c, char *to, const char *from) {
    if (c->size == 1)
        turn_uint8_t(c, (uint8_t *)to, (const uint8_t *)from);
    else if (c->size == 2)
        turn_uint16_t(c, (uint16_t *)to, (const uint16_t *)from);
    else if (c->size == 4)
        turn_uint32_t(c, (uint32_t *)to, (const uint32_t *)from);
    else
        turn_uint64_t(c, (uint64_t *)to, (const uint64_t *)from);
}

static void copy_run(const struct copy *c, void *to, const void *from) {
    struct place at = {0};
    int64_t size = (int64_t)c->size;
    bool rows = c->row_to == 1 && c->row_from == 1;
    for (int64_t left = walk_count(&c->walk); left; left--) {
        char *t = (char *)to + (c->to + at.offset[0]) * size;
        const char *f = (const char *)from + (c->from + at.offset[1]) * size;
        if (!rows)
            turn(c, t, f);
        else
            for (int64_t a = 0; a < c->across; a++)
                memcpy(t + a * c->across_to * size, f + a * c->across_from * size,
                       (size_t)(c->row * size));
        walk_next(&c->walk, c->walk.rank, &at);
    }
}

/* ---- preparation ---- */

static void take(struct walk *w, int d, int64_t *length, int64_t *to, int64_t *from) {
    *length = w->dim[d];
    *to = w->stride[0][d];
    *from = w->stride[1][d];
    walk_remove(w, d);
}

/* The dimension for `across`: where the input is contiguous, else the innermost that is left. */
static int crossing(const struct walk *w) {
    for (int d = 0; d < w->rank; d++)
        if (w->stride[1][d] == 1) return d;
    return w->rank - 1;
}

static void copy_finish(struct copy *c) {
    c->row = c->across = c->row_to = c->row_from = 1;
    walk_simplify(&c->walk);
    if (c->walk.rank) take(&c->walk, c->walk.rank - 1, &c->row, &c->row_to, &c->row_from);
    if (c->walk.rank) take(&c->walk, crossing(&c->walk), &c->across, &c->across_to,
                           &c->across_from);
}

/* A block of `shape` in contiguous tensors that are longer along `axis`. */
static struct copy copy_block(const tri_spec *shape, int axis, int64_t to_length, int64_t to_begin,
                              int64_t from_length, int64_t from_begin) {
    struct copy c = {.walk = walk_over(&shape->shape, 2), .size = tri_type_size(shape->type)};
    int64_t inner = cpu_span(&shape->shape, axis + 1, shape->shape.rank);
    for (int k = 0; k < 2; k++) {
        int64_t length = k ? from_length : to_length;
        walk_dense(&c.walk, k);
        for (int d = 0; d < axis; d++)
            c.walk.stride[k][d] = c.walk.stride[k][d] / shape->shape.dim[axis] * length;
    }
    c.to = to_begin * inner;
    c.from = from_begin * inner;
    copy_finish(&c);
    return c;
}

static tri_status prepare_transpose(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct copy), state);
    if (status) return status;
    struct copy *c = *state;
    tri_shape order = tri_attr_list(n, "order");
    const tri_shape *x = &cpu_in(n, 0)->shape;
    *c = (struct copy){.walk = walk_over(&cpu_out(n, 0)->shape, 2),
                       .size = tri_type_size(cpu_in(n, 0)->type)};
    walk_dense(&c->walk, 0);
    for (int d = 0; d < c->walk.rank; d++)
        c->walk.stride[1][d] = cpu_span(x, (int)order.dim[d] + 1, x->rank);
    copy_finish(c);
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

/* oneDNN handles packed formats; blocks are ordinary copies. */
struct reorder {
    struct copy copy;
    struct dnnl_job *job;
};

static bool packed(const tri_node *n) { return *n->in[0]->pack || *n->out->pack; }

static const char *supports_reorder(const tri_node *n) {
    int a = n->in[0]->block, b = n->out->block;
    tri_type type = cpu_in(n, 0)->type;
    if (packed(n) && type != TRI_F32 && (type != TRI_BF16 || !dnnl_glue_takes_bf16()))
        return "oneDNN has no packs of this type on this machine";
    return !a || !b || a % b == 0 || b % a == 0 ? NULL : "one block must divide the other";
}

static tri_status prepare_packs(const tri_node *n, struct reorder *r) {
    struct pack from, to;
    pack_of(n->in[0], &from);
    pack_of(n->out, &to);
    return dnnl_glue_reorder(n, &cpu_in(n, 0)->shape, cpu_in(n, 0)->type, &from,
                             cpu_out(n, 0)->type, &to, &r->job);
}

/* If one block divides the other, the channels are [c / larger, larger / smaller, smaller]; plain
 * is a block of 1. The walk is in the output's order. */
static void prepare_blocks(const tri_node *n, struct copy *c) {
    const tri_shape *s = &cpu_out(n, 0)->shape;
    int64_t block[2] = {n->out->block ? n->out->block : 1, n->in[0]->block ? n->in[0]->block : 1};
    bool to_larger = block[0] > block[1];
    int64_t large = block[!to_larger], small = block[to_larger];
    int64_t space = cpu_span(s, 2, s->rank);
    const int part = to_larger ? 3 : 2, place = to_larger ? 2 : 3;
    *c = (struct copy){.walk = {.rank = 5, .n = 2}, .size = tri_type_size(cpu_in(n, 0)->type)};
    int64_t *dim = c->walk.dim;
    dim[0] = s->dim[0];
    dim[1] = s->dim[1] / large;
    dim[part] = large / small;
    dim[place] = space;
    dim[4] = small;
    for (int k = 0; k < 2; k++) {
        int64_t *stride = c->walk.stride[k];
        stride[0] = s->dim[1] * space;
        stride[1] = large * space;
        stride[part] = block[k] == large ? small : small * space;
        stride[place] = block[k];
        stride[4] = 1;
    }
    copy_finish(c);
}

static tri_status prepare_reorder(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct reorder), state);
    if (status) return status;
    if (!packed(n))
        prepare_blocks(n, &((struct reorder *)*state)->copy);
    else
        status = prepare_packs(n, *state);
    if (status) free(*state);
    return status;
}

static void release_reorder(void *state) {
    dnnl_glue_release(((struct reorder *)state)->job);
    free(state);
}

static void plan_reorder(const tri_node *n, struct kernel *k) {
    const struct reorder *r = k->state;
    struct pack from, to;
    pack_of(n->in[0], &from);
    pack_of(n->out, &to);
    k->alias = pack_equal(&from, &to, &cpu_in(n, 0)->shape);
    if (r->job) k->scratch = dnnl_glue_scratch(r->job);
}

static void run_reorder(const tri_call *c) {
    const struct reorder *r = c->state;
    if (c->out[0] == c->in[0]) return;
    if (r->job)
        dnnl_glue_run(r->job, c);
    else
        copy_run(&r->copy, c->out[0], c->in[0]);
}

/* Inside the bounds pad copies the input; elsewhere it writes the value. */
static tri_status prepare_pad(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct copy), state);
    if (status) return status;
    struct copy *c = *state;
    tri_shape before = tri_attr_list(n, "before");
    const tri_shape *y = &cpu_out(n, 0)->shape;
    *c = (struct copy){.walk = walk_over(&cpu_in(n, 0)->shape, 2),
                       .size = tri_type_size(cpu_in(n, 0)->type)};
    walk_dense(&c->walk, 1);
    for (int d = 0; d < c->walk.rank; d++) {
        c->walk.stride[0][d] = cpu_span(y, d + 1, y->rank);
        c->to += before.dim[d] * c->walk.stride[0][d];
    }
    copy_finish(c);
    return TRI_OK;
}

/* ---- kernels ---- */

static void run_one(const tri_call *c) { copy_run(c->state, c->out[0], c->in[0]); }

static void run_concat(const tri_call *c) {
    const struct copy *copy = c->state;
    for (int i = 0; i < c->node->n_in; i++) copy_run(&copy[i], c->out[0], c->in[i]);
}

static void run_split(const tri_call *c) {
    const struct copy *copy = c->state;
    for (int i = 0; i < c->node->n_out; i++) copy_run(&copy[i], c->out[i], c->in[0]);
}

static void run_pad(const tri_call *c) {
    cpu_fill(cpu_out(c->node, 0), c->out[0], tri_attr_float(c->node, "value"));
    copy_run(c->state, c->out[0], c->in[0]);
}

const struct dev_row FOR_ISA(cpu_shape)[] = {
    {.op = "transpose", .run = run_one, .prepare = prepare_transpose, .release = free},
    {.op = "reorder", .run = run_reorder, .supports = supports_reorder,
     .prepare = prepare_reorder, .release = release_reorder, .plan = plan_reorder,
     .any_order = true},
    {.op = "slice", .run = run_one, .prepare = prepare_slice, .release = free},
    {.op = "concat", .run = run_concat, .prepare = prepare_concat, .release = free},
    {.op = "split", .run = run_split, .prepare = prepare_split, .release = free},
    {.op = "pad", .run = run_pad, .prepare = prepare_pad, .release = free},
    {0},
};
