/* SPDX-License-Identifier: Apache-2.0
 * Attention, one query at a time; sums in double. */
#include <math.h>

#include "base/math.h"
#include "base/random.h"
#include "dev/ref/sums.h"
#include "ops/attention.h"

/* One query of one head of one sample. */
struct query {
    const tri_call *c;
    struct attention a;
    int64_t b, h, i;
    double *score; /* of every key: scale q k' + mask; -infinity if masked out */
    double *kept;  /* the dropout's factors: 0 or 1 / (1 - p) */
};

static int64_t element(const struct query *q, const struct attention_view *v, int64_t row,
                       int64_t column) {
    return v->offset + q->b * v->batch + q->h * v->head + row * v->row + column;
}

static double load(const struct query *q, const struct attention_view *v, int64_t row,
                   int64_t column) {
    return ref_load(q->c, v->tensor, element(q, v, row, column));
}

static int64_t mask_element(const struct query *q, int64_t k) {
    const int64_t *s = q->a.mask_stride;
    return q->b * s[0] + q->h * s[1] + q->i * s[2] + k * s[3];
}

static double masked(const struct query *q, int64_t k, double score) {
    if (k >= attention_reach(&q->a, q->i)) return -INFINITY;
    if (q->a.mask < 0) return score;
    double m = ref_load(q->c, q->a.mask, mask_element(q, k));
    if (ref_in(q->c, q->a.mask)->type != TRI_BOOL) return score + m;
    return m != 0 ? score : -INFINITY;
}

static void find_scores(struct query *q) {
    const struct attention *a = &q->a;
    uint64_t key = random_key(q->c->seed, base_hash_text(a->key));
    uint64_t draw = attention_draw(q->c, a, q->b, q->h, q->i);
    uint32_t limit = (uint32_t)(a->dropout * 4294967296.0);
    for (int64_t k = 0; k < a->keys; k++) {
        double dot = 0;
        for (int64_t d = 0; d < a->size; d++) dot += load(q, &a->q, q->i, d) * load(q, &a->k, k, d);
        q->score[k] = masked(q, k, dot * a->scale);
        q->kept[k] = random_u32(key, (uint64_t)q->c->step, draw + (uint64_t)k) >= limit
                         ? 1 / (1 - a->dropout) : 0;
    }
}

/* Calls f for every query, with its scores. extra: doubles that f needs in addition. */
static void each_query(const tri_call *c, int64_t extra,
                       void (*f)(struct query *q, double *extra)) {
    struct query q = {.c = c};
    attention_of(c->node, &q.a);
    double *room = sums_new(c, 2 * q.a.keys + extra);
    if (!room) return;
    q.score = room;
    q.kept = room + q.a.keys;
    for (q.b = 0; q.b < q.a.batch; q.b++)
        for (q.h = 0; q.h < q.a.heads; q.h++)
            for (q.i = 0; q.i < q.a.queries; q.i++) {
                find_scores(&q);
                f(&q, q.kept + q.a.keys);
            }
    free(room);
}

/* ---- forward ---- */

static void attend(struct query *q, double *unused) {
    const struct attention *a = &q->a;
    double max = -INFINITY, sum = 0;
    (void)unused;
    for (int64_t k = 0; k < a->keys; k++)
        if (ref_above(q->score[k], max)) max = q->score[k];
    double base = max == -INFINITY ? 0 : max;
    for (int64_t k = 0; k < a->keys; k++) sum += math_exp(q->score[k] - base);
    ref_store(q->c, 1, (q->b * a->heads + q->h) * a->queries + q->i, base + math_log(sum));
    for (int64_t e = 0; e < a->value_size; e++) {
        double y = 0;
        for (int64_t k = 0; k < attention_reach(a, q->i); k++)
            y += math_exp(q->score[k] - base) * q->kept[k] * load(q, &a->v, k, e);
        ref_store(q->c, 0, element(q, &a->y, q->i, e), sum == 0 ? 0 : y / sum);
    }
}

static void forward(const tri_call *c) { each_query(c, 0, attend); }

/* ---- backward ---- */

/* The derivative of y by a row of dy: sum(dy y). */
static double row_sum(const struct query *q) {
    double sum = 0;
    for (int64_t e = 0; e < q->a.value_size; e++) {
        int64_t at = element(q, &q->a.y, q->i, e);
        sum += ref_load(q->c, 0, at) * ref_load(q->c, 1, at);
    }
    return sum;
}

/* p and ds of one key; both 0 for a query that attends to nothing. */
static void derive(const struct query *q, int64_t k, double sum, double *p, double *ds) {
    double lse = ref_load(q->c, 2, (q->b * q->a.heads + q->h) * q->a.queries + q->i), dp = 0;
    for (int64_t e = 0; e < q->a.value_size; e++)
        dp += ref_load(q->c, 0, element(q, &q->a.y, q->i, e)) * load(q, &q->a.v, k, e);
    *p = lse == -INFINITY ? 0 : math_exp(q->score[k] - lse);
    *ds = *p * (q->kept[k] * dp - sum);
}

/* dq, dk, dv as consecutive output tensors. */
static void derive_all(struct query *q, double *sums) {
    const struct attention *a = &q->a;
    double *out[3], sum = row_sum(q);
    const struct attention_view *view[] = {&a->q, &a->k, &a->v};
    for (int i = 0; i < 3; i++) {
        out[i] = sums;
        if (i + 1 < q->c->node->n_out) sums += tri_shape_count(&ref_out(q->c, i)->shape);
    }
    for (int64_t k = 0; k < attention_reach(a, q->i); k++) {
        double p, ds;
        derive(q, k, sum, &p, &ds);
        for (int64_t d = 0; d < a->size; d++) {
            out[0][element(q, view[0], q->i, d)] += a->scale * ds * load(q, view[1], k, d);
            out[1][element(q, view[1], k, d)] += a->scale * ds * load(q, view[0], q->i, d);
        }
        for (int64_t e = 0; e < a->value_size; e++)
            out[2][element(q, view[2], k, e)] +=
                p * q->kept[k] * ref_load(q->c, 0, element(q, &a->y, q->i, e));
    }
    if (q->b + 1 < a->batch || q->h + 1 < a->heads || q->i + 1 < a->queries) return;
    for (int i = 0; i < q->c->node->n_out; i++) sums_store(q->c, i, out[i]);
}

static void backward(const tri_call *c) {
    int64_t count = 0;
    for (int i = 0; i < c->node->n_out; i++) count += tri_shape_count(&ref_out(c, i)->shape);
    each_query(c, count, derive_all);
}

static void derive_mask(struct query *q, double *sums) {
    const struct attention *a = &q->a;
    const int64_t *dim = ref_out(q->c, 0)->shape.dim;
    double sum = row_sum(q);
    int64_t row = ((q->b * dim[1] + (dim[1] > 1 ? q->h : 0)) * dim[2] + (dim[2] > 1 ? q->i : 0)) *
                  dim[3];
    for (int64_t k = 0; k < attention_reach(a, q->i); k++) {
        double p, ds;
        derive(q, k, sum, &p, &ds);
        sums[row + (dim[3] > 1 ? k : 0)] += ds;
    }
    if (q->b + 1 < a->batch || q->h + 1 < a->heads || q->i + 1 < a->queries) return;
    sums_store(q->c, 0, sums);
}

static void mask(const tri_call *c) {
    each_query(c, tri_shape_count(&ref_out(c, 0)->shape), derive_mask);
}

const struct dev_row ref_attention[] = {
    {.op = "attention", .run = forward},
    {.op = "attention_dx", .run = backward},
    {.op = "attention_dmask", .run = mask},
    {0},
};
