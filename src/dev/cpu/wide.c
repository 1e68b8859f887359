/* SPDX-License-Identifier: Apache-2.0
 * Kernels that compute in f32, for nodes with tensors of bf16 or f16: their inputs are widened
 * before and their outputs rounded after, in the call's scratch. */
#include "dev/cpu/tile.h"

struct wide {
    struct kernel inner;
    const void **in;
    void **out;
    int n_in, n_out;
    size_t bytes; /* of the scratch, before the inner kernel's own */
};

/* Contents that are never used need no widening. */
static bool wide_input(const tri_node *n, int i) {
    return cpu_is_half(cpu_in(n, i)->type) && !(i < 32 && n->entry->op->shape_only >> i & 1);
}

bool wide_needed(const tri_node *n) {
    for (int i = 0; i < n->n_in; i++)
        if (wide_input(n, i)) return true;
    for (int i = 0; i < n->n_out; i++)
        if (cpu_is_half(cpu_out(n, i)->type)) return true;
    return false;
}

static size_t wide_bytes(int64_t count) { return ((size_t)count * sizeof(float) + 63) / 64 * 64; }

/* All rounds and parts, one after the other. */
static void run_inner(const struct wide *w, const tri_call *c, char *scratch) {
    const struct kernel *k = &w->inner;
    tri_call inner = *c;
    inner.in = w->in;
    inner.out = w->out;
    inner.state = k->state;
    inner.shared = scratch;
    inner.scratch = scratch + (k->shared + 63) / 64 * 64;
    int64_t parts = (k->parts ? k->parts : 1) + k->then;
    for (inner.part = 0; inner.part < parts && !c->fault->failed; inner.part++) k->run(&inner);
}

static void run(const tri_call *c) {
    const struct wide *w = c->state;
    const tri_node *n = c->node;
    char *at = c->scratch;
    for (int i = 0; i < w->n_in; i++) {
        w->in[i] = c->in[i];
        if (!wide_input(n, i)) continue;
        size_t count = (size_t)cpu_in_count(n, i);
        tile_storage(cpu_in(n, i)->type).widen((float *)at, c->in[i], count);
        w->in[i] = at;
        at += wide_bytes(cpu_in_count(n, i));
    }
    for (int i = 0; i < w->n_out; i++) {
        bool half = cpu_is_half(cpu_out(n, i)->type);
        w->out[i] = half ? at : c->out[i];
        if (half) at += wide_bytes(cpu_out_count(n, i));
    }
    run_inner(w, c, at);
    for (int i = 0; i < w->n_out; i++)
        if (cpu_is_half(cpu_out(n, i)->type))
            tile_storage(cpu_out(n, i)->type)
                .narrow(c->out[i], w->out[i], (size_t)cpu_out_count(n, i));
}

static void release(void *state) {
    struct wide *w = state;
    if (w->inner.release) w->inner.release(w->inner.state);
    free(w->in);
    free(w->out);
    free(w);
}

static bool allocate(const tri_node *n, struct wide *w) {
    w->in = calloc((size_t)w->n_in + 1, sizeof *w->in);
    w->out = calloc((size_t)w->n_out, sizeof *w->out);
    for (int i = 0; i < w->n_in; i++)
        if (wide_input(n, i)) w->bytes += wide_bytes(cpu_in_count(n, i));
    for (int i = 0; i < w->n_out; i++)
        if (cpu_is_half(cpu_out(n, i)->type)) w->bytes += wide_bytes(cpu_out_count(n, i));
    return w->in && w->out;
}

tri_status wide_prepare(const tri_node *n, const struct dev_row *r, struct kernel *out) {
    struct wide *w = calloc(1, sizeof *w);
    if (!w) return base_no_memory(n->name);
    w->n_in = n->n_in;
    w->n_out = n->n_out;
    tri_status status = allocate(n, w) ? TRI_OK : base_no_memory(n->name);
    if (!status) status = cpu_prepare_row(n, r, &w->inner);
    if (status) {
        release(w);
        return status;
    }
    *out = (struct kernel){.run = run, .state = w, .release = release,
                           .scratch = w->bytes + (w->inner.shared + 63) / 64 * 64 +
                                      w->inner.scratch};
    return TRI_OK;
}
