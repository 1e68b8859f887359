/* SPDX-License-Identifier: Apache-2.0 */
#include "search/network.h"

#include <string.h>

#include "plan/option_rows.h"
#include "plan/rebatch.h"
#include "plan/strategy_inside.h"

/* Whether it adds up over a factor that is fixed, until it is rebuilt: a loss or a score over
 * classes, a convolution with a bias. */
static bool can_be_rebuilt(const tri_node *n) {
    const tri_op *op = n->entry->op;
    uint8_t factor[MAX_FACTORS];
    bool over = false;
    struct factors f;
    if (n->backward || !n->n_in || !op->split_form || op->costly_form || !factors_of(n, &f))
        return false;
    for (int i = 0, all = strategy_factors(&f, factor); i < all; i++) {
        bool kept = false;
        for (int k = 0; k < n->n_out; k++) kept |= operand_has(&f.out[k], factor[i]);
        over |= f.fixed[factor[i]] && !kept && f.extent[factor[i]] > 1;
    }
    factors_free(&f);
    return over;
}

static void add_forms(const tri_graph *lane, struct text *lines) {
    for (size_t i = 0; i < lane->n_nodes; i++)
        if (can_be_rebuilt(lane->node[i]))
            text_add(lines, "use %s " USE_IS_FORM "\n", lane->node[i]->name);
}

/* One of the two graphs. Takes its lines if they cost less than what was found before. */
static tri_status search(const struct compilation *c, const struct split_prices *p,
                         const struct text *forms, struct network_splits *out) {
    struct splits s;
    struct text lines = {0};
    tri_status status = splits_find(c->lane[0], &c->cut, &c->strategies.mesh, p, false, &s);
    if (!status && forms) text_add(&lines, "%s", forms->data);
    if (!status) status = splits_print(&s, &lines);
    const bool first = !out->lines.data, better = !status && (first || s.cost < out->cost);
    if (!status && (first || s.bound < out->bound)) out->bound = s.bound;
    if (better) {
        text_free(&out->lines);
        out->lines = lines;
        out->cost = s.cost;
        memset(out->splits, 0, sizeof out->splits);
        for (size_t i = 0; i < c->lane[0]->n_nodes; i++)
            for (int a = 0; a < SEARCH_AXES; a++)
                out->splits[a] |= s.use[i][a].kind != USE_WHOLE;
    } else {
        text_free(&lines);
    }
    splits_free(&s);
    return status;
}

static tri_status compile(const tri_graph *model, const tri_options *o, const char *last,
                          struct compilation *c) {
    c->options = o;
    c->model = graph_duplicate(model, o->batch);
    tri_status status = c->model ? passes_run(c, last) : base_last();
    if (!status && (c->strategies.mesh.n > SEARCH_AXES || !c->lane[0]))
        return base_fail(TRI_USAGE, "splits are searched along one axis of a mesh, or two");
    if (!status && c->n_sizes > 1)
        return base_fail(TRI_USAGE, "splits are searched for lanes of one size: --lanes must "
                         "divide the batch");
    return status;
}

static void release(struct compilation *c) {
    tri_graph *model = c->model;
    passes_free(c);
    tri_graph_free(model);
}

tri_status network_search(const tri_graph *model, const tri_options *o,
                          const struct target *target, int all_threads,
                          const struct split_prices *p, struct network_splits *out) {
    struct compilation plain = {.target = target, .all_threads = all_threads}, rebuilt = plain;
    struct text forms = {0};
    tri_options with = *o;
    *out = (struct network_splits){0};
    for (size_t i = 0; i < model->n_settings; i++)
        if (model->setting[i].kind >= SETTING_STRATEGY)
            return base_fail(TRI_USAGE, "the network says itself how operators are split "
                             "(tri_strategy, tri_shard, tri_layout)");
    with.unset = option_row("--unset")->words[UNSET_BATCH]; /* which needs no strategy */
    tri_status status = compile(model, &with, "phases", &plain);
    if (!status) status = search(&plain, p, NULL, out);
    if (!status) add_forms(plain.lane[0], &forms);
    release(&plain);
    if (!status && forms.failed) status = base_no_memory("the search for a plan");
    if (!status && forms.data) {
        with.strategy = forms.data;
        with.unset = NULL;
        status = compile(model, &with, "dist", &rebuilt);
        if (!status) status = search(&rebuilt, p, &forms, out);
        if (status == TRI_USAGE) status = TRI_OK; /* what was found before is a plan */
        release(&rebuilt);
    }
    text_free(&forms);
    return status;
}

void network_splits_free(struct network_splits *s) { text_free(&s->lines); }
