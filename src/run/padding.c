/* SPDX-License-Identifier: Apache-2.0 */
#include "run/padding.h"

#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "data/data.h"

/* What a tensor of the user's graph has to do with the samples. */
enum tie {
    TIE_NONE,   /* nothing */
    TIE_LABELS, /* it is an input, or labels moved about: all of them are to be left out where all of the input's are */
    TIE_LEFT,   /* something of theirs, in which samples that are to be left out are 0 or false */
    TIE_ALL,    /* something of theirs in which they are not */
};

struct search {
    const tri_graph *g;
    unsigned char *tie; /* by node */
    int *from;          /* by node: the input that its labels are of */
};

static enum tie tie_to(const struct search *s, const tri_tensor *t) { return (enum tie)s->tie[t->node->id]; }

static bool moves(const tri_node *n) {
    const tri_attr *value = node_attr(n, "value");
    return n->entry->op->values != TRI_VALUES_COMPUTED && (!value || value->f == DATA_IGNORED);
}

/* The node's input that consists of labels, where it leaves out ignored ones; else null. */
static const tri_tensor *labels_of(const struct search *s, const tri_node *n) {
    const tri_op *op = n->entry->op;
    int i = op->leaves_out ? op->leaves_out(n, DATA_IGNORED) : -1;
    return i >= 0 && tie_to(s, n->in[i]) == TIE_LABELS ? n->in[i] : NULL;
}

static enum tie tie_of(struct search *s, const tri_node *n) {
    enum tie most = TIE_NONE;
    s->from[n->id] = n->id;
    if (node_is(n, "input")) return TIE_LABELS;
    for (int i = 0; i < n->n_in; i++)
        if (tie_to(s, n->in[i]) > most) most = tie_to(s, n->in[i]);
    const tri_tensor *labels = labels_of(s, n);
    if (labels) {
        s->from[n->id] = s->from[labels->node->id];
        return TIE_LEFT;
    }
    if (most == TIE_LABELS && moves(n)) {
        s->from[n->id] = s->from[n->in[0]->node->id];
        return TIE_LABELS;
    }
    return most == TIE_LABELS || (most == TIE_LEFT && n->entry->op->count) ? TIE_ALL : most;
}

/* Where samples come in that cannot be left out, on the way back from the loss. */
static const tri_node *culprit(const struct search *s, const tri_node *n) {
    const tri_node *further = NULL;
    for (int i = n->n_in - 1; i >= 0; i--) {
        if (tie_to(s, n->in[i]) == TIE_LABELS) return n;
        if (tie_to(s, n->in[i]) == TIE_ALL) further = n->in[i]->node;
    }
    return further ? culprit(s, further) : n;
}

/* The inputs of the labels that what is left of samples depends on. */
static void mark_inputs(const struct search *s, struct machine *m) {
    for (size_t i = 0; i < s->g->n_nodes; i++)
        if (labels_of(s, s->g->node[i]))
            machine_input(m, source_name(s->g->node[s->from[i]]))->labels = true;
}

tri_status padding_plan(const tri_graph *g, struct machine *m) {
    struct search s = {g, calloc(g->n_nodes + 1, 1), calloc(g->n_nodes + 1, sizeof *s.from)};
    const tri_node *loss = g->loss ? g->loss->node : NULL;
    tri_status status = s.tie && s.from ? TRI_OK : base_no_memory("the network");
    for (size_t i = 0; i < g->n_nodes && !status; i++) s.tie[i] = (unsigned char)tie_of(&s, g->node[i]);
    if (!status && (!loss || s.tie[loss->id] != TIE_LEFT))
        status = base_fail(TRI_USAGE, "--tail pad: %s counts every sample, and none can be left out; tri_cross_entropy "
                           "with .ignore and .ignore_index = -100 leaves out what is labelled so (of the zoo's classifiers: "
                           "ignore=1), or --tail drop", loss ? culprit(&s, loss)->name : "a step of your own");
    if (!status) mark_inputs(&s, m);
    free(s.tie);
    free(s.from);
    return status;
}

void padding_mark(const struct machine *m, const struct feed_place *row) {
    for (int i = 0; i < m->n_inputs; i++) {
        const struct run_input *in = &m->input[i];
        char *at = row->buffer + in->offset + (size_t)row->row * in->sample_bytes;
        for (size_t k = 0; in->labels && k < in->sample_bytes / tri_type_size(in->spec.type); k++)
            convert_store(in->spec.type, at, k, DATA_IGNORED);
    }
}
