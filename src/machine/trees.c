/* SPDX-License-Identifier: Apache-2.0
 * Makes the trees of an executable, and the buckets that the user wants in them. */
#include <stdlib.h>

#include "machine/machine.h"
#include "plan/option_rows.h"

/* The lanes' result that a parameter's update is computed from, through tensors of the parameter's
 * size; null: there is none. */
static const tri_tensor *gradient_of(const struct cut *c, const tri_tensor *t, int64_t size,
                                     bool *seen) {
    if (seen[t->id] || tri_shape_count(&t->spec.shape) != size) return NULL;
    seen[t->id] = true;
    if (c->root[1][t->id]) return t;
    const tri_tensor *found = NULL;
    for (int i = 0; i < t->node->n_in && !found; i++)
        found = gradient_of(c, t->node->in[i], size, seen);
    return found;
}

/* By result of a lane, the number of the bucket that the user wants for it. */
static tri_status ask_buckets(const struct machine *m, int *own) {
    const tri_graph *w = m->whole;
    bool there[BUCKET_MOST + 1] = {0};
    for (size_t i = 0; i < w->n_updates; i++) {
        const tri_tensor *target = w->update[i].target;
        int number = node_is_param(target->node) ? param_bucket(target->node) : 0;
        if (!number) continue;
        bool *seen = calloc((size_t)w->n_tensors + 1, sizeof *seen);
        if (!seen) return base_no_memory("buckets");
        const tri_tensor *g = gradient_of(&m->compilation.cut, w->update[i].value,
                                          tri_shape_count(&target->spec.shape), seen);
        if (g) own[g->id] = number;
        there[number] |= g != NULL;
        free(seen);
    }
    for (size_t i = 0; i < w->n_settings && !m->options.forward; i++) {
        const struct graph_setting *s = &w->setting[i];
        if (s->kind == SETTING_BUCKET && !there[(int)s->value])
            return base_fail(TRI_USAGE, "bucket %d, of \"%s\": no parameter in it has a gradient "
                             "that is summed over the lanes; is it frozen?", (int)s->value,
                             s->pattern);
    }
    return TRI_OK;
}

/* Threads of all processes that take slots: if several compute a lane together, one of them. */
static int claimers_of(const struct machine *m, int k) {
    int all = m->all_threads > m->auditors ? m->all_threads : m->auditors;
    if (!all) return m->n_threads;
    if (k && m->members > 1) return m->replicas;
    return machine_is_joint(m) ? all / team_threads(m->team) : all;
}

/* The schedule of the legs, and when each runs if all take the same time: this decides how many
 * slots there are, and so must not depend on measured times. */
static tri_status make_schedule(struct machine *m) {
    const struct compilation *c = &m->compilation;
    const struct pipeline_wish wish = {c->pipeline, (int)m->options.chunks, (int)m->lanes,
                                       claimers_of(m, 1)};
    double cost[LEGS_MOST];
    for (int i = 0; i < c->legs.n; i++) cost[i] = 1;
    if (!c->stages) return TRI_OK;
    tri_status status = pipeline_make(&wish, &c->legs, &m->pipeline);
    if (!status) status = pipeline_simulate(&m->pipeline, &c->legs, cost, &m->times);
    return status;
}

tri_status machine_make_tree(struct machine *m, int k) {
    struct program *all = k ? m->thread[0].lane : m->thread[0].count;
    int claimers = claimers_of(m, k), level = m->compilation.zero;
    tri_status status = TRI_OK;
    struct tree_place place = {
        .dev = m->dev, .lanes = m->lanes, .levels = k ? m->compilation.levels : 0,
        .threads = m->n_threads, .all_threads = claimers, .audits = m->auditors,
        /* Threads of one process take slots from each other as late workers do. */
        .hosts = m->hosts, .weight = m->weight,
        .repeats = m->all_threads > 0 || (k && m->compilation.stages && claimers > 1),
        .pipeline = &m->pipeline, .times = &m->times,
        /* With several hosts sums leave while a lane is still computed. */
        .rule = {.bytes = level < 2 && m->hosts < 1 ? SIZE_MAX / 2
                          : m->options.bucket ? (size_t)m->options.bucket
                                              : (size_t)option_usual_count("--bucket"),
                 .from = k ? finite_items(m, all) : 0}};
    for (int i = 0; i < 2; i++) place.lane[i] = all[i].g ? &all[i] : NULL;
    /* The words of all shapes' nodes have numbers below CLAIM_MOST_VALUE. */
    place.rule.most = CLAIM_MOST_VALUE / CREW_MOST_SHAPES / (2 * (int)m->lanes);
    int *own = calloc((size_t)m->whole->n_tensors + 1, sizeof *own);
    if (!status && !own) status = base_no_memory("buckets");
    if (!status && k == 1 && level >= 2) status = ask_buckets(m, own);
    if (!status && k == 1) status = make_schedule(m);
    place.rule.own = own;
    if (!status) status = tree_make(m->compilation.merge[k], &place, &m->tree[k]);
    free(own);
    return status;
}
