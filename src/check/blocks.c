/* SPDX-License-Identifier: Apache-2.0
 * Checks that operators compute the same bits on tensors in a blocked format as on plain ones. */
#include "check/opcheck.h"
#include "plan/rewrite.h"

/* The formats that the device asks for. FORMAT_ANY: it takes every block size. */
struct wishes {
    struct format in[MAX_INPUTS], out[TRI_MAX_OUTPUTS];
};

/* The number of channels of the tensors that may be in a blocked format; 0: none may. */
static int64_t channels(const tri_node *n, struct dev *dev, struct wishes *w) {
    int64_t c = 0;
    *w = (struct wishes){0};
    if (!dev->kind->target || !dev->kind->target->formats) return 0;
    dev->kind->target->formats(n, w->in, w->out);
    for (int i = 0; i < n->n_in; i++)
        if (w->in[i].block == FORMAT_ANY) c = n->in[i]->spec.shape.dim[1];
    for (int i = 0; i < n->n_out; i++)
        if (w->out[i].block == FORMAT_ANY) c = n->out[i].spec.shape.dim[1];
    return c;
}

/* block 0: the plain format. */
static tri_tensor *reordered(tri_tensor *t, int block) {
    tri_tensor *r = graph_apply(t->node->graph, "reorder", 1, &t, 0, NULL);
    if (!t->node->graph->status) r->block = block;
    return r;
}

/* Reorders the inputs of the example's node into blocks, and its outputs back. */
static tri_status put_blocks(struct trial *t, const struct wishes *w, int block) {
    tri_tensor *outs[TRI_MAX_OUTPUTS];
    struct rewrite r;
    tri_node *n;
    rewrite_begin(&r, t->g);
    for (size_t i = 0; (n = rewrite_next(&r, i)); i++) {
        for (int k = 0; n == t->node && k < n->n_in; k++)
            if (w->in[k].block == FORMAT_ANY) n->in[k] = reordered(n->in[k], block);
        rewrite_keep(&r, n);
    }
    tri_status status = rewrite_end(&r);
    for (int k = 0; k < t->node->n_out && !status; k++) {
        outs[k] = &t->node->out[k];
        if (w->out[k].block != FORMAT_ANY) continue;
        outs[k]->block = block;
        outs[k] = reordered(outs[k], 0);
        status = tri_graph_status(t->g);
    }
    if (!status) trial_outputs(outs, t->node->n_out);
    return status;
}

static tri_status check_block(const struct example *e, struct dev *dev, int block,
                              const struct values *in, const struct values *plain) {
    struct trial t;
    struct wishes w;
    struct values out = {0};
    tri_status status = trial_begin(e, 1, &t);
    if (!status) {
        channels(t.node, dev, &w);
        status = put_blocks(&t, &w, block);
    }
    if (!status) status = trial_compile(&t, dev, NULL);
    if (!status) status = trial_run(&t, in, &out);
    if (!status) status = values_same(e, "in blocks", plain, &out);
    values_free(&out);
    trial_free(&t);
    return status;
}

tri_status opcheck_blocks(const struct example *e, struct dev *dev, const struct values *in,
                          const struct values *plain, int *tried) {
    struct trial t;
    struct wishes w;
    tri_status status = trial_begin(e, 1, &t);
    int64_t c = status ? 0 : channels(t.node, dev, &w);
    trial_free(&t);
    const int64_t blocks[] = {2, 3, 4, 8, 16, 24, c};
    for (size_t i = 0; c > 1 && i < COUNT(blocks) && !status; i++)
        if (c % blocks[i] == 0 && (blocks[i] < c || i + 1 == COUNT(blocks))) {
            status = check_block(e, dev, (int)blocks[i], in, plain);
            *tried += !status;
        }
    return status;
}
