/* SPDX-License-Identifier: Apache-2.0
 * Makes the trees of an executable, and the buckets that the user wants in them. */
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"
#include "plan/estimates.h"
#include "plan/option_rows.h"
#include "wire/topk.h"

/* By result of a lane, the number of the bucket that the user wants for it. */
static tri_status ask_buckets(const struct machine *m, int *own) {
    const tri_graph *w = m->whole;
    bool there[BUCKET_MOST + 1] = {0};
    for (size_t i = 0; i < w->n_updates; i++) {
        const tri_tensor *target = w->update[i].target, *g;
        int number = node_is_param(target->node) ? param_bucket(target->node) : 0;
        if (!number) continue;
        tri_status status = cut_gradient(&m->compilation.cut, i, &g);
        if (status) return status;
        if (g) own[g->id] = number;
        there[number] |= g != NULL;
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

/* Where the estimate of a node is among the values, in bytes. */
static tri_status find_estimate(const struct machine *m, const char *param, int top, size_t *at) {
    struct text name = {0};
    estimate_name(param, top, &name);
    const struct stored *e = name.failed ? NULL : store_find(m->store, name.data);
    CHECK(e || name.failed);
    *at = 0;
    for (const struct stored *before = m->store->entry; before < e; before++)
        *at += stored_bytes(before);
    text_free(&name);
    return e ? TRI_OK : base_no_memory("estimates");
}

static tri_status ask_topk(const struct machine *m, const char *param, const struct wire_want *want,
                           struct tree_wire *wire, struct wire_part *part) {
    size_t first = 0, next;
    const bool several = m->compilation.tree.n_tops > 1;
    tri_status status = find_estimate(m, param, 0, &first);
    if (!status && several) status = find_estimate(m, param, 1, &next);
    if (!status && several) wire->apart = next - first;
    part->kept = topk_kept(want->share, part->n);
    part->estimate = first;
    return status;
}

/* By result of a lane, how it travels. */
static tri_status ask_formats(const struct machine *m, struct wire_part *part,
                              struct tree_wire *wire) {
    const tri_options *o = &m->options;
    const tri_graph *w = m->whole;
    bool used[WIRE_PARTS_MOST] = {false};
    tri_status status = TRI_OK;
    for (size_t i = 0; i < w->n_updates && !status; i++) {
        const char *param = source_name(w->update[i].target->node);
        const tri_tensor *g;
        struct wire_want want;
        status = wire_of_update(o, &m->compilation.cut, i, &g, &want, used);
        if (status || !g) continue;
        part[g->id] = (struct wire_part){.n = (uint64_t)tri_shape_count(&g->spec.shape),
                                         .format = want.format,
                                         .name = (uint32_t)base_hash(param, strlen(param), 0)};
        if (want.format == WIRE_TOPK) status = ask_topk(m, param, &want, wire, &part[g->id]);
    }
    return status ? status : wire_ask_used(o, used);
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
    place.wire.cut = wire_ask_depth(&m->options);
    for (int i = 0; i < 2; i++) place.lane[i] = all[i].g ? &all[i] : NULL;
    /* The words of all shapes' nodes have numbers below CLAIM_MOST_VALUE. */
    place.rule.most = CLAIM_MOST_VALUE / CREW_MOST_SHAPES / (2 * (int)m->lanes);
    int *own = calloc((size_t)m->whole->n_tensors + 1, sizeof *own);
    struct wire_part *part = calloc((size_t)m->whole->n_tensors + 1, sizeof *part);
    if (!status && !(own && part)) status = base_no_memory("buckets");
    if (!status && k == 1 && level >= 2) status = ask_buckets(m, own);
    if (!status && k == 1 && m->options.wire && !m->options.forward) {
        status = ask_formats(m, part, &place.wire);
        place.wire.part = part;
    }
    if (!status && k == 1) status = make_schedule(m);
    place.rule.own = own;
    if (!status) status = tree_make(m->compilation.merge[k], &place, &m->tree[k]);
    free(own);
    free(part);
    return status;
}
