/* SPDX-License-Identifier: Apache-2.0 */
#include "run/padding.h"

#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "data/data.h"

/* How a tensor of the user's graph depends on the samples. */
enum dependence {
    DEPENDS_NOT,    /* not at all */
    DEPENDS_NUMBER, /* on how many samples count (tri_scalar "samples"), on no value of theirs */
    DEPENDS_ROWS,   /* rows of lanes, each of the samples in it that count */
    DEPENDS_LABELS, /* an input, or its labels in another order or shape: all may be ignored */
    DEPENDS_MASKED, /* a value in which samples with ignored labels are 0 or false */
    DEPENDS_ALL,    /* a value in which all samples count */
};

struct search {
    const tri_graph *g;
    unsigned char *dependence; /* by node */
    int *from;                 /* by node: the input that its labels are from */
};

static enum dependence dependence_of(const struct search *s, const tri_tensor *t) {
    return (enum dependence)s->dependence[t->node->id];
}

/* Whether the operator only moves values, or fills up with the ignored one. */
static bool moves(const tri_node *n) {
    const tri_attr *value = node_attr(n, "value");
    return n->entry->op->values != TRI_VALUES_COMPUTED && (!value || value->f == DATA_IGNORED);
}

/* Whether the node takes a constant in place of the samples that do not count. */
static bool chooses(const struct search *s, const tri_node *n) {
    const tri_op *op = n->entry->op;
    int i = op->leaves_out ? op->leaves_out(n, 0) : -1;
    return i >= 0 && dependence_of(s, n->in[i]) == DEPENDS_NUMBER;
}

/* The node's input of labels, if the node leaves out samples with ignored ones; else null. */
static const tri_tensor *labels_of(const struct search *s, const tri_node *n) {
    const tri_op *op = n->entry->op;
    int i = op->leaves_out ? op->leaves_out(n, DATA_IGNORED) : -1;
    return i >= 0 && dependence_of(s, n->in[i]) == DEPENDS_LABELS ? n->in[i] : NULL;
}

static enum dependence find_dependence(struct search *s, const tri_node *n) {
    enum dependence most = DEPENDS_NOT;
    s->from[n->id] = n->id;
    if (node_is(n, "input")) return DEPENDS_LABELS;
    if (node_is(n, "scalar") && !strcmp(source_name(n), "samples")) return DEPENDS_NUMBER;
    for (int i = 0; i < n->n_in; i++)
        if (node_reads(n, i) && dependence_of(s, n->in[i]) > most)
            most = dependence_of(s, n->in[i]);
    if (most > DEPENDS_NUMBER && chooses(s, n)) return DEPENDS_MASKED;
    const tri_tensor *labels = labels_of(s, n);
    if (labels) {
        s->from[n->id] = s->from[labels->node->id];
        return DEPENDS_MASKED;
    }
    if (most == DEPENDS_MASKED && node_per_lane(n)) return DEPENDS_ROWS;
    if (most == DEPENDS_LABELS && moves(n)) {
        s->from[n->id] = s->from[n->in[0]->node->id];
        return DEPENDS_LABELS;
    }
    bool counts = most == DEPENDS_LABELS || (most == DEPENDS_MASKED && n->entry->op->count);
    return counts ? DEPENDS_ALL : most;
}

/* The first node, on the way to `n`, in which samples count that cannot be left out. */
static const tri_node *culprit(const struct search *s, const tri_node *n) {
    const tri_node *further = NULL;
    for (int i = n->n_in - 1; i >= 0; i--) {
        if (dependence_of(s, n->in[i]) == DEPENDS_LABELS) return n;
        if (dependence_of(s, n->in[i]) == DEPENDS_ALL) further = n->in[i]->node;
    }
    return further ? culprit(s, further) : n;
}

/* Marks the inputs whose labels decide which samples count. */
static void mark_inputs(const struct search *s, struct machine *m) {
    for (size_t i = 0; i < s->g->n_nodes; i++)
        if (labels_of(s, s->g->node[i]))
            machine_input(m, source_name(s->g->node[s->from[i]]))->labels = true;
}

tri_status padding_plan(const tri_graph *g, struct machine *m) {
    struct search s = {g, calloc(g->n_nodes + 1, 1), calloc(g->n_nodes + 1, sizeof *s.from)};
    const tri_node *loss = g->loss ? g->loss->node : NULL;
    tri_status status = s.dependence && s.from ? TRI_OK : base_no_memory("the network");
    for (size_t i = 0; i < g->n_nodes && !status; i++)
        s.dependence[i] = (unsigned char)find_dependence(&s, g->node[i]);
    if (!status && (!loss || (s.dependence[loss->id] != DEPENDS_MASKED &&
                              s.dependence[loss->id] != DEPENDS_ROWS)))
        status = base_fail(TRI_USAGE, "--tail pad: %s counts every sample, and none can be left "
                           "out; use tri_cross_entropy with .ignore and .ignore_index = -100, "
                           "which leaves out samples with that label (classifiers of the zoo: "
                           "ignore=1), or --tail drop",
                           loss ? culprit(&s, loss)->name : "the network's own update");
    if (!status) mark_inputs(&s, m);
    free(s.dependence);
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
