/* SPDX-License-Identifier: Apache-2.0
 * Reductions over all elements of several tensors: sum_squares, all_finite. The blocks of all
 * inputs are divided into parts, as one sequence; a second round combines their results. */
#include "dev/cpu/rows.h"

static int64_t blocks_of(const tri_node *n, int i) {
    return (cpu_in_count(n, i) + BLOCK - 1) / BLOCK;
}

static int64_t parts_of(const tri_node *n, int64_t *blocks) {
    *blocks = 0;
    for (int i = 0; i < n->n_in; i++) *blocks += blocks_of(n, i);
    return cpu_parts(*blocks, BLOCK);
}

INLINE void squares(tri_type t, const void *x, int64_t n, double *sum) {
    vec partial[SUM_VECS] = {{0}};
    ROW(n, {
        vec v = LOAD(t, x, 0);
        partial[k] = vec_fma(v, v, partial[k]);
    });
    *sum += (double)vec_total(partial);
}

/* Makes the sum NaN if an element is infinite or NaN. */
INLINE void excess(tri_type t, const void *x, int64_t n, double *sum) {
    vec partial[SUM_VECS] = {{0}};
    ROW(n, partial[k] = vec_fma(LOAD(t, x, 0), vec_set(0), partial[k]));
    *sum += (double)vec_total(partial);
}

/* The blocks of this part. */
static double blocks_sum(const tri_call *c, bool squared) {
    const tri_node *n = c->node;
    int64_t blocks, parts = parts_of(n, &blocks), before = 0;
    struct cpu_range r = cpu_part(c, parts, blocks);
    double sum = 0;
    for (int i = 0; i < n->n_in && before < r.end; before += blocks_of(n, i++)) {
        tri_type t = cpu_in(n, i)->type;
        int64_t count = cpu_in_count(n, i), first = r.begin > before ? r.begin - before : 0;
        for (int64_t b = first; b < blocks_of(n, i) && before + b < r.end; b++) {
            const void *x = rows_in(t, c->in[i], b * BLOCK);
            int64_t length = count - b * BLOCK < BLOCK ? count - b * BLOCK : BLOCK;
            if (squared)
                BY_TYPE(t, squares, x, length, &sum);
            else
                BY_TYPE(t, excess, x, length, &sum);
        }
    }
    return sum;
}

static double round_of(const tri_call *c, bool squared, bool *done) {
    int64_t blocks, parts = parts_of(c->node, &blocks);
    double *sums = c->shared, sum = 0;
    *done = c->part == parts;
    if (!*done) sums[c->part] = blocks_sum(c, squared);
    for (int64_t p = 0; *done && p < parts; p++) sum += sums[p];
    return sum;
}

static void sum_squares(const tri_call *c) {
    bool done;
    double sum = round_of(c, true, &done);
    if (done) *(float *)c->out[0] = (float)sum;
}

static void all_finite(const tri_call *c) {
    bool done;
    double sum = round_of(c, false, &done);
    if (done) *(uint8_t *)c->out[0] = sum == sum;
}

static void plan(const tri_node *n, struct kernel *k) {
    int64_t blocks;
    k->parts = parts_of(n, &blocks);
    k->then = 1;
    k->shared = (size_t)k->parts * sizeof(double);
}

const struct dev_row FOR_ISA(cpu_whole)[] = {
    {.op = "sum_squares", .run = sum_squares, .plan = plan},
    {.op = "all_finite", .run = all_finite, .plan = plan},
    {0},
};
