/* SPDX-License-Identifier: Apache-2.0
 * dropout. Every element uses the random number of its place in the whole batch. */
#include "dev/cpu/draw.h"
#include "dev/cpu/rows.h"

#define CHUNK 1024

struct dropout {
    uint64_t key, step;
    uint32_t limit; /* smaller random numbers drop an element */
    float scale;
    /* The tensor may be a part of another: runs of `run` elements that are adjacent in both, each
     * at a place of the dimensions before. rank 0: one run. */
    tri_shape local, origin, stride;
    int64_t run;
};

static void find_part(const tri_node *n, struct dropout *d) {
    tri_shape whole = tri_attr_list(n, "whole");
    int64_t stride = 1;
    d->local = tri_attr_list(n, "local");
    d->origin = tri_attr_list(n, "origin");
    d->run = cpu_out_count(n, 0);
    if (!d->local.rank) return;
    for (int i = whole.rank; i-- > 0; stride *= whole.dim[i]) d->stride.dim[i] = stride;
    int in_run = whole.rank - 1; /* the outermost dimension of a run */
    while (in_run && d->local.dim[in_run] == whole.dim[in_run]) in_run--;
    d->run = d->local.dim[in_run] * d->stride.dim[in_run];
}

/* The place in the whole tensor of element i of this one. */
static int64_t place_of(const struct dropout *d, int64_t i) {
    int64_t place = d->local.rank ? 0 : i;
    for (int k = d->local.rank; k-- > 0; i /= d->local.dim[k])
        place += (d->origin.dim[k] + i % d->local.dim[k]) * d->stride.dim[k];
    return place;
}

/* The random numbers of n elements from `first` on. */
static void draw_part(const tri_call *c, const struct dropout *d, int64_t first, int64_t n,
                      uint32_t *drawn) {
    for (int64_t i = 0, length; i < n; i += length) {
        length = least(d->run - (first + i) % d->run, n - i);
        draw_fill(d->key, d->step, (uint64_t)(c->first + place_of(d, first + i)), (size_t)length,
                  drawn + i);
    }
}

/* For elements `first` to `first` + n of this lane's tensor, n <= CHUNK. */
INLINE void drop(tri_type t, const tri_call *c, const struct dropout *d, int64_t first, int64_t n) {
    uint32_t drawn[CHUNK];
    const void *x = rows_in(t, c->in[0], first);
    void *y = rows_out(t, c->out[0], first);
    uint8_t *mask = (uint8_t *)c->out[1] + first;
    draw_part(c, d, first, n, drawn);
    for (int64_t i = n; i < CHUNK; i++) drawn[i] = 0;
    INDEPENDENT for (int64_t i = 0; i < n; i++) mask[i] = drawn[i] >= d->limit;
    EACH(n, {
        vec_u32 keep = (vec_u32)(*(const vec_u32_at *)(drawn + at) >= d->limit);
        STORE(t, y, (vec)((vec_u32)(LOAD(t, x, 0) * d->scale) & keep));
    });
}

static int64_t chunks_of(const tri_node *n) { return (cpu_out_count(n, 0) + CHUNK - 1) / CHUNK; }

static void dropout(const tri_call *c) {
    const tri_node *n = c->node;
    double p = tri_attr_float(n, "p");
    bool training = tri_attr_int(n, "training");
    struct dropout d = {.key = random_key(c->seed, base_hash_text(node_key(n))),
                        .step = (uint64_t)c->step,
                        .limit = training ? (uint32_t)(p * 4294967296.0) : 0,
                        .scale = training ? (float)(1 / (1 - p)) : 1};
    find_part(n, &d);
    struct cpu_range r = cpu_part(c, cpu_parts(chunks_of(n), CHUNK), chunks_of(n));
    for (int64_t i = r.begin * CHUNK, count = cpu_out_count(n, 0); i < r.end * CHUNK; i += CHUNK)
        BY_TYPE(cpu_in(n, 0)->type, drop, c, &d, i, count - i < CHUNK ? count - i : CHUNK);
}

static bool shares(const void *state, int out, int in) {
    (void)state;
    return out == 0 && in == 0;
}

static void plan(const tri_node *n, struct kernel *k) {
    k->parts = cpu_parts(chunks_of(n), CHUNK);
    k->shares = shares;
}

const struct dev_row FOR_ISA(cpu_random)[] = {
    {.op = "dropout", .run = dropout, .plan = plan},
    {0},
};
