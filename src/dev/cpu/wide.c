/* SPDX-License-Identifier: Apache-2.0
 * Kernels that compute in f32, for nodes with tensors of bf16 or f16: their inputs are widened
 * before and their outputs rounded after, in buffers that belong to the kernel. */
#include "dev/cpu/tile.h"

struct wide {
    struct kernel inner;
    const void **in;
    void **out;
    float **wide_in, **wide_out; /* null where the tensor is taken as it is */
    int n_in, n_out;
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

static void run(const tri_call *c) {
    const struct wide *w = c->state;
    const tri_node *n = c->node;
    tri_call inner = *c;
    for (int i = 0; i < w->n_in; i++) {
        w->in[i] = w->wide_in[i] ? w->wide_in[i] : c->in[i];
        if (w->wide_in[i])
            tile_storage(cpu_in(n, i)->type)
                .widen(w->wide_in[i], c->in[i], (size_t)cpu_in_count(n, i));
    }
    for (int i = 0; i < w->n_out; i++)
        w->out[i] = w->wide_out[i] ? (void *)w->wide_out[i] : c->out[i];
    inner.in = w->in;
    inner.out = w->out;
    inner.state = w->inner.state;
    w->inner.run(&inner);
    for (int i = 0; i < w->n_out; i++)
        if (w->wide_out[i])
            tile_storage(cpu_out(n, i)->type)
                .narrow(c->out[i], w->wide_out[i], (size_t)cpu_out_count(n, i));
}

static void release(void *state) {
    struct wide *w = state;
    for (int i = 0; w->wide_in && i < w->n_in; i++) free(w->wide_in[i]);
    for (int i = 0; w->wide_out && i < w->n_out; i++) free(w->wide_out[i]);
    if (w->inner.release) w->inner.release(w->inner.state);
    free(w->in);
    free(w->out);
    free(w->wide_in);
    free(w->wide_out);
    free(w);
}

static bool allocate(const tri_node *n, struct wide *w) {
    size_t in = (size_t)w->n_in, out = (size_t)w->n_out;
    w->in = calloc(in, sizeof *w->in);
    w->out = calloc(out, sizeof *w->out);
    w->wide_in = calloc(in, sizeof *w->wide_in);
    w->wide_out = calloc(out, sizeof *w->wide_out);
    if (!w->in || !w->out || !w->wide_in || !w->wide_out) return false;
    for (int i = 0; i < w->n_in; i++)
        if (wide_input(n, i) &&
            !(w->wide_in[i] = dev_host_allocate((size_t)cpu_in_count(n, i) * sizeof(float))))
            return false;
    for (int i = 0; i < w->n_out; i++)
        if (cpu_is_half(cpu_out(n, i)->type) &&
            !(w->wide_out[i] = dev_host_allocate((size_t)cpu_out_count(n, i) * sizeof(float))))
            return false;
    return true;
}

tri_status wide_prepare(const tri_node *n, const struct dev_row *r, struct kernel *out) {
    struct wide *w = calloc(1, sizeof *w);
    if (!w) return base_no_memory(n->name);
    w->n_in = n->n_in;
    w->n_out = n->n_out;
    tri_status status = allocate(n, w) ? TRI_OK : base_no_memory(n->name);
    if (!status) status = cpu_prepare_row(n, r, &w->inner);
    if (status)
        release(w);
    else
        *out = (struct kernel){.run = run, .state = w, .release = release};
    return status;
}
