/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/stages.h"

#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "plan/forward.h"
#include "plan/strategy.h"

/* ---- as tri_stage asks ---- */

/* -1: nothing was asked for the node. */
static int asked(const tri_graph *g, const tri_node *n) {
    for (size_t i = g->n_settings; i-- > 0;)
        if (g->setting[i].kind == SETTING_STAGE && node_in_scope(n, g->setting[i].pattern))
            return (int)g->setting[i].value;
    return -1;
}

/* The stage of the latest input, and that input. */
static int latest(const tri_node *n, const tri_node **from) {
    int stage = 0;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->node->stage > stage) {
            *from = n->in[i]->node;
            stage = (*from)->stage;
        }
    return stage;
}

static tri_status assign_asked(tri_graph *g, size_t forward) {
    for (size_t i = 0; i < forward; i++) {
        tri_node *n = g->node[i];
        const tri_node *from = NULL;
        if (!node_runs(n)) continue;
        int least = latest(n, &from), wanted = asked(g, n);
        n->stage = wanted < 0 ? least : wanted;
        if (n->stage >= least) continue;
        struct text at = {0};
        node_describe(n, &at);
        base_fail(TRI_USAGE, "stages go backwards: %s is to be in stage %d, but it needs %s of "
                  "stage %d; the least that is possible for it is %d",
                  at.data ? at.data : n->name, wanted, from->name, least, least);
        text_free(&at);
        return TRI_USAGE;
    }
    return TRI_OK;
}

static tri_status check_pattern(const tri_graph *g, size_t forward, const struct graph_setting *s) {
    struct nearest near = {.wanted = s->pattern, .before = "\"", .after = "\""};
    struct text at = {0};
    tri_status status = TRI_USAGE;
    for (size_t i = 0; i < forward && status; i++) {
        if (!node_runs(g->node[i])) continue;
        if (node_in_scope(g->node[i], s->pattern)) status = TRI_OK;
        strategy_offer(&near, g->node[i]->name, false, true);
    }
    if (s->file) text_add(&at, "%s:%d: ", s->file, s->line);
    if (status)
        base_fail(status, "%sstage %d: no scope or operator matches \"%s\"%s",
                  at.data ? at.data : "", (int)s->value, s->pattern, nearest_meant(&near));
    text_free(&at);
    return status;
}

static tri_status check_patterns(const tri_graph *g, size_t forward) {
    tri_status status = TRI_OK;
    for (size_t i = 0; i < g->n_settings && !status; i++)
        if (g->setting[i].kind == SETTING_STAGE)
            status = check_pattern(g, forward, &g->setting[i]);
    return status;
}

/* ---- balanced ---- */

/* In operations of a product, as measured on networks of the zoo (docs/decisions.md). The same on
 * every machine, so that stages are. */
enum {
    ELEMENT = 20,      /* reading or writing one */
    WEIGHT = 100,      /* an element of a parameter: a product packs it */
    SUM = 3 * ELEMENT, /* adding an element of a parameter's gradient to that of another lane */
};

/* Its arithmetic with the algorithm that the pass conv would choose for it. */
static double product_of(const tri_node *n, const struct target *t) {
    tri_attr *way = (tri_attr *)node_attr(n, "way");
    int64_t kept = way ? way->i : 0;
    if (!n->entry->op->flops) return 0;
    if (way && t && t->convolution && kept == WAY_BY_SIZES) way->i = t->convolution(n, true);
    double product = n->entry->op->flops(n);
    if (way) way->i = kept;
    return product;
}

double stages_work(const tri_node *n, const struct target *t) {
    double product = product_of(n, t), written = 0, weights = 0;
    for (int i = 0; i < n->n_out; i++) written += (double)tri_shape_count(&n->out[i].spec.shape);
    double elements = written;
    for (int i = 0; i < n->n_in; i++) {
        double count = (double)tri_shape_count(&n->in[i]->spec.shape);
        bool param = node_is(n->in[i]->node, "param");
        bool table = param && product <= 0 && count > written; /* few of its rows are read */
        if (node_reads(n, i)) elements += table ? written : count;
        if (product > 0 && param) weights += count;
    }
    return product + ELEMENT * elements + WEIGHT * weights;
}

/* Where a parameter is used first, its gradient is complete, and summed over the lanes. */
static void add_sums(const tri_graph *g, size_t forward, bool *used, double *work) {
    for (size_t i = 0; i < forward; i++)
        for (int k = 0; k < g->node[i]->n_in; k++) {
            const tri_tensor *t = g->node[i]->in[k];
            bool param = node_is(t->node, "param") && !param_frozen(t->node);
            if (!node_runs(g->node[i]) || !param || used[t->node->id]) continue;
            used[t->node->id] = true;
            work[i] += SUM * (double)tri_shape_count(&t->spec.shape);
        }
}

/* By forward node: the work of it and of its backward nodes. */
static double *find_work(const tri_graph *g, size_t forward, tri_node *const *of,
                         const struct target *t) {
    double *work = calloc(forward + 1, sizeof *work);
    bool *used = calloc(forward + 1, sizeof *used);
    if (!work || !used) {
        free(work);
        free(used);
        return NULL;
    }
    add_sums(g, forward, used, work);
    free(used);
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = i < forward ? g->node[i] : of[i];
        if (node_runs(g->node[i]) && n && n->id < (int)forward)
            work[n->id] += stages_work(g->node[i], t);
    }
    return work;
}

/* By place i: the bytes that go from the forward nodes before i to those from i on. */
static void find_crossing(const tri_graph *g, size_t forward, double *crossing) {
    for (size_t i = 0; i < forward; i++)
        for (int k = 0; k < g->node[i]->n_in; k++) {
            const tri_tensor *t = g->node[i]->in[k];
            if (!node_runs(t->node) || !node_reads(g->node[i], k)) continue;
            crossing[t->node->id + 1] += (double)base_spec_bytes(&t->spec);
            crossing[i + 1] -= (double)base_spec_bytes(&t->spec);
        }
    for (size_t i = 1; i <= forward; i++) crossing[i] += crossing[i - 1];
}

/* Not so a reshape, which would be a stage without a backward leg. */
static bool computes(const tri_node *n) {
    return node_runs(n) && n->entry->op->values == TRI_VALUES_COMPUTED;
}

/* Where the stage that begins at node `from` ends: near the end of its share of the work, where the
 * fewest bytes cross. before: the work before `from`. later: stages that follow; it and each of
 * them keeps at least one operator that computes. */
static size_t choose_cut(const tri_graph *g, size_t forward, const double *work,
                         const double *crossing, size_t from, double before, double end,
                         double slack, int later) {
    size_t best = forward;
    bool near = false; /* best is within the slack */
    int own = 0, left = 0;
    for (size_t i = from; i < forward; i++) left += computes(g->node[i]);
    for (size_t i = from; i < forward && left >= later; i++) {
        if (!node_runs(g->node[i])) continue;
        bool good = before >= end - slack && before <= end + slack;
        if (before > end + slack && best < forward) break;
        if (own && left >= later && (!near || (good && crossing[i] < crossing[best]))) {
            best = i;
            near = good;
        }
        before += work[i];
        own += computes(g->node[i]);
        left -= computes(g->node[i]);
    }
    return best;
}

/* begin: by stage, its first node; begin[stages] is `forward`. */
static tri_status balance(const tri_graph *g, size_t forward, int stages, const double *work,
                          size_t *begin) {
    const double slack = 0.05; /* of a share */
    double *crossing = calloc(forward + 1, sizeof *crossing);
    double all = 0, before = 0;
    if (!crossing) return base_no_memory("stages");
    find_crossing(g, forward, crossing);
    for (size_t i = 0; i < forward; i++) all += work[i];
    const double share = all / stages;
    begin[0] = 0;
    for (int k = 0; k < stages; k++) {
        while (!k && begin[0] < forward && !node_runs(g->node[begin[0]])) begin[0]++;
        begin[k + 1] = k + 1 < stages ? choose_cut(g, forward, work, crossing, begin[k], before,
                                                   share * (k + 1), slack * share, stages - k - 1)
                                      : forward;
        for (size_t i = begin[k]; i < begin[k + 1]; i++)
            if (node_runs(g->node[i])) before += work[i];
    }
    free(crossing);
    return TRI_OK;
}

static void put(tri_graph *g, int stages, const size_t *begin) {
    for (int k = 0; k < stages; k++)
        for (size_t i = begin[k]; i < begin[k + 1]; i++)
            if (node_runs(g->node[i])) g->node[i]->stage = k;
}

static tri_status check_number(const tri_graph *g, size_t forward, int stages) {
    int nodes = 0;
    for (size_t i = 0; i < forward; i++) nodes += computes(g->node[i]);
    if (stages <= nodes && stages <= STAGE_MOST) return TRI_OK;
    if (stages <= nodes)
        return base_fail(TRI_USAGE, "--stages %d: there can be 1 to %d", stages, STAGE_MOST);
    return base_fail(TRI_USAGE, "--stages %d: the network has only %d operator(s) that compute, "
                     "and each stage needs one", stages, nodes);
}

static tri_status assign_balanced(tri_graph *g, size_t forward, tri_node *const *of,
                                  const struct target *t, int stages) {
    size_t begin[STAGE_MOST + 1];
    tri_status status = check_number(g, forward, stages);
    double *work = status ? NULL : find_work(g, forward, of, t);
    if (!status && !work) status = base_no_memory("stages");
    if (!status) status = balance(g, forward, stages, work, begin);
    if (!status) put(g, stages, begin);
    free(work);
    return status;
}

tri_status stages_cut(const tri_graph *g, double *work, int stages, struct text *cuts) {
    const size_t forward = graph_forward(g);
    size_t begin[STAGE_MOST + 1];
    bool *used = calloc(forward + 1, sizeof *used);
    double *sums = calloc(forward + 1, sizeof *sums), all = 0, forth = 0;
    tri_status status = used && sums ? check_number(g, forward, stages) : base_no_memory("stages");
    for (size_t i = 0; i < forward && !status; i++) {
        all += work[i];
        if (node_runs(g->node[i])) forth += stages_work(g->node[i], NULL);
    }
    if (!status) add_sums(g, forward, used, sums);
    /* The backward pass takes about twice as long as the forward one. */
    for (size_t i = 0; i < forward && !status; i++) work[i] += sums[i] * all / (3 * forth);
    if (!status) status = balance(g, forward, stages, work, begin);
    for (int k = 1; k < stages && !status; k++)
        text_add(cuts, "%s%s", k > 1 ? "," : "", g->node[begin[k]]->name);
    free(used);
    free(sums);
    return status || !cuts->failed ? status : base_no_memory("stages");
}

/* ---- as --cuts says ---- */

/* The forward node of the name; `forward`: there is none that computes. */
static size_t find_named(const tri_graph *g, size_t forward, const char *name, size_t length,
                         struct nearest *near) {
    for (size_t i = 0; i < forward; i++) {
        const tri_node *n = g->node[i];
        if (!node_runs(n)) continue;
        if (strlen(n->name) == length && !memcmp(n->name, name, length)) return i;
        nearest_offer(near, n->name);
    }
    return forward;
}

static tri_status assign_cuts(tri_graph *g, size_t forward, const char *cuts, int stages) {
    size_t begin[STAGE_MOST + 1] = {0};
    int k = 1;
    for (const char *name = cuts; *name; k++) {
        const size_t length = strcspn(name, ",");
        char word[256];
        base_format(word, sizeof word, "%.*s", (int)length, name);
        struct nearest near = {.wanted = word};
        const size_t at = find_named(g, forward, name, length, &near);
        if (at == forward)
            return base_fail(TRI_USAGE, "--cuts %s: the network has no such operator%s", word,
                             nearest_meant(&near));
        if (k >= stages || at <= begin[k - 1])
            return base_fail(TRI_USAGE, "--cuts %s: the operators with which the stages from 1 "
                             "on begin are expected, in their order: %d for --stages %d", cuts,
                             stages - 1, stages);
        begin[k] = at;
        name += length + (name[length] == ',');
    }
    if (k != stages)
        return base_fail(TRI_USAGE, "--cuts %s: --stages %d needs %d name(s)", cuts, stages,
                         stages - 1);
    begin[stages] = forward;
    for (int s = 0; s < stages; s++) {
        bool any = false;
        for (size_t i = begin[s]; i < begin[s + 1]; i++) any |= computes(g->node[i]);
        if (!any) return base_fail(TRI_USAGE, "--cuts %s: stage %d has no operator that computes",
                                   cuts, s);
    }
    put(g, stages, begin);
    return TRI_OK;
}

/* ---- all nodes ---- */

static tri_status count_stages(const tri_graph *g, size_t forward, int *stages) {
    bool there[STAGE_MOST] = {false};
    for (size_t i = 0; i < forward; i++)
        if (node_runs(g->node[i])) {
            there[g->node[i]->stage] = true;
            if (g->node[i]->stage >= *stages) *stages = g->node[i]->stage + 1;
        }
    for (int i = 0; i < *stages; i++)
        if (!there[i])
            return base_fail(TRI_USAGE, "stage %d has no operator, but there is a stage %d: stages "
                             "are numbered without gaps", i, *stages - 1);
    return TRI_OK;
}

/* Nodes of the backward pass belong to the stage of their forward node. */
static void assign_backward(tri_graph *g, size_t forward, tri_node *const *of) {
    for (size_t i = forward; i < g->n_nodes; i++)
        if (node_runs(g->node[i]) && of[i]) g->node[i]->stage = of[i]->stage;
}

static bool has_stages(const tri_graph *g) {
    for (size_t i = 0; i < g->n_settings; i++)
        if (g->setting[i].kind == SETTING_STAGE) return true;
    return false;
}

tri_status stages_assign(tri_graph *g, const tri_options *o, const struct target *t, int *stages) {
    size_t forward = graph_forward(g);
    *stages = 0;
    if (o->stages < 0 || o->stages > STAGE_MOST)
        return base_fail(TRI_USAGE, "--stages %lld: there can be 1 to %d", (long long)o->stages,
                         STAGE_MOST);
    tri_status status = check_patterns(g, forward);
    if (!status && o->cuts && o->stages < 2 && !o->forward)
        return base_fail(TRI_USAGE, "--cuts %s is for --stages, which is not given", o->cuts);
    if (status || o->forward || o->stages == 1 || (!o->stages && !has_stages(g))) return status;
    tri_node **of = forward_nodes(g);
    if (!of) return base_no_memory("stages");
    status = o->cuts     ? assign_cuts(g, forward, o->cuts, (int)o->stages)
             : o->stages ? assign_balanced(g, forward, of, t, (int)o->stages)
                         : assign_asked(g, forward);
    if (!status) status = count_stages(g, forward, stages);
    if (!status) assign_backward(g, forward, of);
    free(of);
    return status;
}
