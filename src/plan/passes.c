/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/passes.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "plan/estimates.h"
#include "plan/expand.h"
#include "plan/fold_norm.h"
#include "plan/format.h"
#include "plan/fuse.h"
#include "plan/hoist.h"
#include "plan/option_rows.h"
#include "plan/order.h"
#include "plan/precision.h"
#include "plan/rebatch.h"
#include "plan/recompute.h"
#include "plan/simplify.h"
#include "plan/sink.h"
#include "plan/stages.h"
#include "plan/wire_ask.h"

/* A pattern that matches no parameter is an error: it would have no effect. */
static tri_status check_pattern(const tri_graph *g, const struct graph_setting *s) {
    struct nearest near = {.wanted = s->pattern, .before = "\"", .after = "\""};
    for (int i = 0; tri_param_at(g, i); i++) {
        const char *name = source_name(tri_param_at(g, i)->node);
        if (!fnmatch(s->pattern, name, 0)) return TRI_OK;
        nearest_offer(&near, name);
    }
    return base_fail(TRI_USAGE, "no parameter's name matches \"%s\", which is to be %s%s",
                     s->pattern,
                     s->kind == SETTING_FREEZE   ? "frozen"
                     : s->kind == SETTING_BUCKET ? "in a bucket of its own"
                                                 : "given a rate of its own",
                     nearest_meant(&near));
}

static tri_status check_patterns(const tri_graph *g) {
    tri_status status = TRI_OK;
    for (size_t i = 0; i < g->n_settings && !status; i++)
        if (!(g->setting[i].value >= 0))
            status = base_fail(TRI_USAGE, "a rate factor or weight decay of %g for \"%s\"; it must "
                               "be at least 0", g->setting[i].value, g->setting[i].pattern);
        else if (g->setting[i].kind == SETTING_FREEZE || g->setting[i].kind == SETTING_LR ||
                 g->setting[i].kind == SETTING_BUCKET)
            status = check_pattern(g, &g->setting[i]);
    return status;
}

/* The network as it was written: checks that it can run. */
static tri_status pass_model(struct compilation *c) {
    for (size_t i = 0; i < c->model->n_nodes; i++)
        if (node_is(c->model->node[i], "given"))
            return base_fail(TRI_USAGE, "%s: the network is one phase of a step; it needs results "
                             "of other phases and cannot run alone", c->model->node[i]->name);
    for (size_t i = 0; i < c->model->n_outputs; i++)
        if (!c->model->output[i].name)
            return base_fail(TRI_USAGE, "output \"=%d\": the network is one phase of a step and "
                             "cannot run alone", c->model->output[i].of);
    if (c->model->scope.size)
        return base_fail(TRI_USAGE, "tri_push without tri_pop: the scope %.*s is still open",
                         (int)strcspn(c->model->scope.data, "\001"), c->model->scope.data);
    if (c->model->n_outputs || c->model->n_updates) {
        tri_status status = check_patterns(c->model);
        if (!status && recompute_is_word(c->options->recompute))
            status = base_fail(TRI_USAGE, "--recompute %s stands for patterns, which --save-plan "
                               "writes to a plan; give these here", c->options->recompute);
        if (!status) status = recompute_check(c->model, c->options->recompute);
        return status ? status : strategies_make(c->model, c->options, &c->strategies);
    }
    return base_fail(TRI_USAGE, "the network has no result: declare tri_loss, tri_metric or "
                                "tri_output");
}

/* Mixed precision, before gradients exist: they follow from those of the casts. */
static tri_status pass_precision(struct compilation *c) {
    return precision_lower(c->model, c->options, c->target, &c->half, &c->note);
}

static tri_status add_training(struct compilation *c) {
    tri_graph *g = c->model;
    if (c->options->forward || graph_trains(g)) return TRI_OK;
    if (!g->loss)
        return base_fail(TRI_USAGE, "the network declares no loss (tri_loss), so it cannot be "
                                    "trained; tri_options.forward runs it without training");
    tri_optimizer o = c->options->optimizer;
    if (!o.loss_scale && c->half == TRI_F16) o.loss_scale = "dynamic";
    tri_minimize(g->loss, o);
    g->n_gradients = 0;
    return tri_graph_status(g);
}

/* --pipeline, --chunks and --steal without stages would have no effect. */
static tri_status settle_stages(struct compilation *c) {
    const tri_options *o = c->options;
    tri_status status = stages_assign(c->model, o, c->target, &c->stages);
    if (!status && (o->chunks < 0 || o->chunks > STAGE_MOST))
        status = base_fail(TRI_USAGE, "--chunks %lld: there can be 1 to %d", (long long)o->chunks,
                           STAGE_MOST);
    c->pipeline = (enum pipeline_kind)option_choice("--pipeline", o->pipeline);
    c->steals = option_choice("--steal", o->steal) == STEAL_LATE;
    const int64_t chunks = o->chunks ? o->chunks : option_usual_count("--chunks");
    if (c->pipeline == PIPELINE_INTERLEAVED && c->stages == chunks && !c->note)
        c->note = "--pipeline interleaved with as many --chunks as stages makes one track, which "
                  "computes all stages of a lane: more --stages make more tracks, and so does "
                  "--pipeline 1f1b";
    if (status || o->forward || c->stages || !(o->pipeline || o->chunks || o->steal)) return status;
    return base_fail(TRI_USAGE, "%s has no effect without stages: add --stages 2, or tri_stage in "
                     "the network",
                     o->pipeline ? "--pipeline" : o->chunks ? "--chunks" : "--steal");
}

/* Adds gradients, clipping and the optimizer, unless the network has its own updates or only runs
 * forward. Then the stages of forward and backward nodes are known. */
static tri_status pass_train(struct compilation *c) {
    tri_status status = add_training(c);
    return status ? status : settle_stages(c);
}

/* The graph for so many lanes; null with a message. */
static tri_graph *for_lanes(const tri_graph *g, int64_t batch, int64_t lanes, bool forward) {
    tri_graph *whole = graph_rebatch(g, batch, lanes, forward);
    char why[512];
    if (whole || lanes == 1 || !graph_per_lane(g)) return whole;
    base_format(why, sizeof why, "%s", tri_message());
    base_fail(base_last(), "%s: results per lane (.per_lane) have a row for each of %lld lanes, "
              "and one if --lanes is 1", why, (long long)lanes);
    return NULL;
}

static tri_status settle_lanes(struct compilation *c) {
    const tri_options *o = c->options;
    int64_t batch = o->batch ? o->batch : c->model->batch;
    if (o->lanes < 0 || o->lanes > batch)
        return base_fail(TRI_USAGE, "%lld lane(s) for a batch of %lld: there can be 1 to %lld",
                         (long long)o->lanes, (long long)batch, (long long)batch);
    c->lanes = o->forward ? 1 : o->lanes;
    /* A graph that was read from a dump may state its number of groups of statistics. */
    int64_t groups = o->forward ? 1 : c->lanes > 1 ? c->lanes : c->model->lanes;
    if (groups > batch)
        return base_fail(TRI_USAGE, "the graph's text says that it has %lld lane(s); a batch of "
                         "%lld has too few samples", (long long)groups, (long long)batch);
    c->whole = for_lanes(c->model, batch, groups, o->forward);
    if (!c->whole || c->lanes) return c->whole ? TRI_OK : base_last();
    c->lanes = lanes_default(c->whole);
    if (!c->lanes) return base_last();
    if (c->lanes == 1) return TRI_OK;
    tri_graph *one_lane = c->whole;
    c->whole = for_lanes(one_lane, batch, c->lanes, false);
    tri_graph_free(one_lane);
    return c->whole ? TRI_OK : base_last();
}

static tri_status check_forward(const struct compilation *c) {
    if (!c->options->forward || c->whole->n_outputs) return TRI_OK;
    return base_fail(TRI_USAGE, "every result of the network depends on gradients (tri_grad), "
                     "which an evaluation or forward run lacks: declare a loss, metric or output "
                     "that does not");
}

/* Fixes the number of lanes, which decides the shapes of batch statistics, or puts the network into
 * evaluation mode. */
static tri_status pass_batch(struct compilation *c) {
    tri_status status = settle_lanes(c);
    if (!status) status = check_forward(c);
    return status ? status : rebatch_check_groups(c->whole);
}

static tri_status pass_fold_norm(struct compilation *c) {
    return c->options->forward ? fold_norm(c->whole) : TRI_OK;
}
static tri_status pass_fold(struct compilation *c) { return simplify_fold(c->whole); }
static tri_status pass_cse(struct compilation *c) { return simplify_cse(c->whole); }
static tri_status pass_dead(struct compilation *c) { return simplify_dead(c->whole); }
static tri_status pass_recompute(struct compilation *c) {
    return recompute(c->whole, c->options->recompute);
}

bool math_is_native(const tri_options *o) {
    return option_choice("--math", o->math) == MATH_NATIVE;
}

/* Who computes 16-bit products: our own kernels, or the device's library. */
static tri_status settle_math(struct compilation *c) {
    c->whole->native = math_is_native(c->options);
    if (!c->whole->native) {
        if (c->half == TRI_BF16 && !c->note && c->target && c->target->advises)
            c->note = c->target->advises();
        return TRI_OK;
    }
    const char *lacks = c->target && c->target->native ? c->target->native()
                                                       : "this device has no library for products";
    return lacks ? base_fail(TRI_USAGE, "--math native: %s", lacks) : TRI_OK;
}

void passes_choose_conv(tri_graph *g, const struct target *t, bool winograd, bool parts) {
    for (size_t i = 0; t && t->convolution && i < g->n_nodes; i++) {
        tri_attr *way = (tri_attr *)node_attr(g->node[i], "way");
        if (!way || way->i != WAY_BY_SIZES) continue;
        const int best = t->convolution(g->node[i], winograd);
        if (parts || best == WAY_WINOGRAD) way->i = best;
    }
}

/* Records the choice of algorithms in the graph. */
static tri_status pass_conv(struct compilation *c) {
    const bool winograd = option_choice("--conv", c->options->conv) == CONV_AUTO;
    tri_status status = settle_math(c);
    if (status) return status;
    passes_choose_conv(c->whole, c->target, winograd, c->strategies.mesh.n > 0);
    return TRI_OK;
}

static tri_status pass_estimates(struct compilation *c) {
    return estimates_add(c->whole, c->lanes, c->half, c->options);
}

/* Each tensor's split over the lanes, from the factor strings. */
static tri_status pass_lanes(struct compilation *c) {
    /* Alike on all hosts, whatever their workers. */
    const int sides = c->hosts > 1 ? c->hosts : c->all_threads;
    c->levels = 1;
    while (1 << c->levels < sides) c->levels++;
    if (c->sums_whole || wire_ask_rounds(c->options)) c->levels = 0;
    if (wire_ask_estimates(c->options)) {
        c->levels = wire_ask_depth(c->options);
        if (c->sums_whole && !c->note)
            c->note = "with --wire topk:R every host sends its sums to every other, as --path "
                      "exchange does, since each keeps the estimates of all";
    }
    if (c->given_levels) c->levels = c->given_levels - 1;
    tri_status status = lane_tree_make(c->lanes, c->levels, &c->tree);
    bool apart = c->apart || c->all_threads > 0 || c->strategies.mesh.n || c->stages ||
                 wire_ask_rounds(c->options);
    if (!status) status = cut_make(c->whole, c->lanes, apart, &c->cut);
    c->cut.tree = &c->tree;
    return status;
}

static tri_status phase(struct compilation *c, enum phase p, int64_t samples, tri_graph **out) {
    if (!cut_has(&c->cut, p)) return TRI_OK;
    *out = cut_graph(&c->cut, p, samples);
    return *out ? TRI_OK : TRI_FAILED;
}

/* The graphs of the step's phases. */
static tri_status pass_phases(struct compilation *c) {
    int64_t batch = c->whole->batch;
    c->samples[0] = lane_samples(batch, c->lanes, 0);
    c->samples[1] = lane_samples(batch, c->lanes, c->lanes - 1);
    c->n_sizes = c->samples[0] == c->samples[1] ? 1 : 2;
    tri_status status = phase(c, PHASE_PRE, batch, &c->pre);
    if (!status) status = phase(c, PHASE_STEP, batch, &c->step);
    for (int i = 0; i < c->n_sizes && !status; i++) {
        status = phase(c, PHASE_COUNT, c->samples[i], &c->count[i]);
        if (!status) status = phase(c, PHASE_LANE, c->samples[i], &c->lane[i]);
    }
    for (int k = 0; k < 2 && !status; k++) {
        if (!cut_has(&c->cut, k ? PHASE_LANE : PHASE_COUNT)) continue;
        c->merge[k] = cut_merge_graph(&c->cut, k ? PHASE_LANE : PHASE_COUNT);
        if (!c->merge[k]) status = TRI_FAILED;
    }
    return status;
}

/* All graphs that run: the phases, and last the merges. Any may be null. */
#define GRAPHS(all, c)                                                                      \
    tri_graph *all[] = {(c)->pre, (c)->step, (c)->count[0], (c)->count[1],                  \
                        (c)->lane[0], (c)->lane[1], (c)->merge[0], (c)->merge[1]}

/* Neither --unset batch nor `maybe` must leave an axis without any use in silence. */
static tri_status check_axes(const struct compilation *c, const struct dist *d) {
    const struct strategies *s = &c->strategies;
    const bool batch = s->unset == UNSET_BATCH;
    for (int a = 0; a < s->mesh.n && (batch || (d->left_out && !c->options->forward)); a++) {
        bool used = s->mesh.axis[a].size == 1;
        for (size_t i = 0; i < d->g->n_nodes && !used; i++) used = d->use[i][a].kind != USE_WHOLE;
        if (!used)
            return base_fail(TRI_USAGE, "nothing uses the axis %s: %s %lld", s->mesh.axis[a].name,
                             batch ? "--unset batch splits samples or rows in equal parts, and no "
                                     "operator has a multiple of"
                                   : "no operator that a line with `maybe` names can be split as "
                                     "it says; the number of its seats is",
                             (long long)s->mesh.axis[a].size);
    }
    return TRI_OK;
}

/* How each node of a lane is split over the mesh. */
static tri_status pass_dist(struct compilation *c) {
    if (!c->strategies.mesh.n) return TRI_OK;
    tri_status status = strategies_check_lane(&c->strategies, c->whole, c->lane[0]);
    for (int i = 0; i < c->n_sizes && !status; i++)
        if (c->lane[i]) status = dist_make(c->lane[i], c->whole, &c->strategies, &c->dist[i]);
    if (!status && c->dist[0].g) status = check_axes(c, &c->dist[0]);
    return status;
}

static tri_status pass_expand(struct compilation *c) {
    for (int i = 0; c->strategies.mesh.n && i < c->n_sizes; i++) {
        if (!c->lane[i]) continue;
        c->logical[i] = c->lane[i];
        if (!(c->lane[i] = expand(&c->dist[i]))) return base_last();
        c->lane[i]->mesh = c->strategies.mesh;
    }
    return TRI_OK;
}

/* Each phase on its own; merges sum plain tensors. */
static tri_status pass_format(struct compilation *c) {
    GRAPHS(all, c);
    tri_status status = TRI_OK;
    for (size_t i = 0; i < COUNT(all) - COUNT(c->merge) && !status; i++)
        if (all[i]) status = format_choose(all[i], c->target);
    return status;
}

/* What passes have added to the lanes, but is the same for each. */
static tri_status pass_hoist(struct compilation *c) {
    tri_graph *lanes[] = {c->count[0], c->lane[0], c->count[1], c->lane[1]};
    struct hoist h = {.whole = c->whole, .pre = c->pre};
    tri_status status = TRI_OK;
    for (size_t i = 0; i < COUNT(lanes) && !status; i++)
        if (lanes[i]) status = hoist(&h, lanes[i]);
    c->pre = h.pre;
    return status;
}

/* With ZeRO level 3, the lanes compute again what depends on weights alone. At any level, results
 * of `pre` that no phase reads any more are dropped. */
static tri_status pass_sink(struct compilation *c) {
    const tri_options *o = c->options;
    tri_status status = TRI_OK;
    c->zero = o->zero ? option_choice("--zero", o->zero) : 2;
    if (c->zero < 2 && o->bucket)
        return base_fail(TRI_USAGE, "--bucket has no effect with --zero %d, which sums the "
                         "gradients of a lane when it ends; leave out the one or the other",
                         c->zero);
    for (int i = 0; c->pre && i < c->n_sizes && c->zero == 3 && !o->forward && !status; i++)
        if (c->lane[i]) status = sink(c->pre, c->lane[i]);
    tri_graph *others[] = {c->step, c->count[0], c->count[1], c->lane[0], c->lane[1]};
    return status || !c->pre ? status : sink_forget(&c->pre, others, COUNT(others));
}

/* With stages, cuts the lanes into legs. What they hand over has numbers above those of `pre`. */
static tri_status pass_legs(struct compilation *c) {
    int handed = c->whole->n_tensors;
    tri_status status = TRI_OK;
    for (size_t i = 0; c->pre && i < c->pre->n_outputs; i++)
        if (c->pre->output[i].of >= handed) handed = c->pre->output[i].of + 1;
    c->legs = legs_of(c->stages, pipeline_splits_weights(c->pipeline));
    for (int i = 0; i < c->n_sizes && c->stages && !status; i++) {
        size_t before = c->lane[i]->n_outputs;
        status = legs_cut(c->lane[i], &c->legs, handed);
        handed += (int)(c->lane[i]->n_outputs - before);
    }
    return status;
}

/* Only sets a mark: the memory plan does the work. */
static tri_status pass_in_place(struct compilation *c) {
    GRAPHS(all, c);
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i]) all[i]->in_place = true;
    return TRI_OK;
}

/* Each phase on its own; merges need no order. */
static tri_status pass_order(struct compilation *c) {
    GRAPHS(all, c);
    tri_status status = TRI_OK;
    for (size_t i = 0; i < COUNT(all) - COUNT(c->merge) && !status; i++)
        if (all[i]) status = order_for_memory(all[i]);
    return status;
}

/* Phases and merges. */
static tri_status pass_fuse(struct compilation *c) {
    GRAPHS(all, c);
    tri_status status = TRI_OK;
    for (size_t i = 0; i < COUNT(all) && !status; i++) status = fuse(all[i], c->target);
    return status;
}

/* may: it can be left out; training keeps its bits. */
static const struct {
    const char *name;
    bool may;
    tri_status (*run)(struct compilation *c);
    const char *help;
} passes[] = {
    {"model", false, pass_model, "the network as it was written"},
    {"precision", false, pass_precision, "16-bit types where --amp and scopes ask for them"},
    {"train", false, pass_train, "add gradients, clipping and the optimizer's update"},
    {"batch", false, pass_batch, "choose the number of lanes, or evaluation mode"},
    {"fold-norm", true, pass_fold_norm,
     "in an evaluation, fold batch norm into the convolution before it"},
    {"fold", true, pass_fold, "replace nodes by an input that they equal, or by a known number"},
    {"cse", true, pass_cse, "merge nodes that compute the same"},
    {"dead", true, pass_dead, "remove nodes that no result needs"},
    {"recompute", true, pass_recompute,
     "repeat nodes in the backward pass, as --recompute and scopes ask for"},
    {"conv", false, pass_conv, "choose convolutions that use Winograd's algorithm"},
    {"estimates", false, pass_estimates, "add the estimates that --wire topk:R needs"},
    {"lanes", false, pass_lanes,
     "find each tensor's split over the lanes: whole, split, or a partial sum"},
    {"phases", false, pass_phases, "divide the graph into the phases count, pre, lane, step"},
    {"dist", false, pass_dist, "with a mesh, choose how each node of a lane is split over it"},
    {"expand", false, pass_expand, "with a mesh, make the nodes of all seats"},
    {"format", true, pass_format, "choose the formats (memory orders) that the device prefers"},
    {"hoist", true, pass_hoist, "move what is the same for all lanes from `lane` to `pre`"},
    {"sink", false, pass_sink, "drop what nobody reads; with --zero 3, copy weights in the lanes"},
    {"legs", false, pass_legs, "with stages, cut the lane into the legs of a pipeline"},
    {"in-place", true, pass_in_place, "let results overwrite inputs that are not needed later"},
    {"order", true, pass_order, "run units early that free memory"},
    {"fuse", true, pass_fuse, "combine nodes that the device can run as one kernel"},
};

int passes_count(void) { return (int)COUNT(passes); }
const char *passes_name(int i) { return passes[i].name; }
const char *passes_help(int i) { return passes[i].help; }
bool passes_may(int i) { return passes[i].may; }

/* ---- tri_options.passes ---- */

/* For messages: what a pass of an earlier version is called now. */
static const char *renamed(const char *name) {
    return strcmp(name, "layout") ? "" : "; it is now called format";
}

int passes_find(const char *name) {
    struct nearest near = {.wanted = name};
    for (int i = 0; i < passes_count(); i++)
        if (nearest_offer(&near, passes[i].name)) return i;
    base_fail(TRI_USAGE, "--after %s: there is no such pass%s%s", name, renamed(name),
              *renamed(name) ? "" : nearest_or(&near, "; `trireme dump --help` lists the passes"));
    return -1;
}

static tri_status unknown_pass(const char *word) {
    struct nearest near = {.wanted = word};
    for (size_t i = 0; i < COUNT(passes); i++)
        if (passes[i].may) nearest_offer(&near, passes[i].name);
    return base_fail(TRI_USAGE, "--passes (tri_options.passes): there is no pass \"%s\" that can "
                     "be left out%s%s; these can: %s, all", word, renamed(word),
                     nearest_meant(&near), near.names);
}

/* Reads one word: "-cse" leaves the pass out, "+cse" puts it back; "all" stands for all optional
 * passes. */
static tri_status read_word(const char *word, bool *off) {
    bool found = false;
    if (*word != '-' && *word != '+')
        return base_fail(TRI_USAGE, "--passes (tri_options.passes): \"%s\" must begin with - to "
                         "leave a pass out, or with + to put it back", word);
    for (size_t i = 0; i < COUNT(passes); i++) {
        if (!passes[i].may || (strcmp(word + 1, "all") && strcmp(word + 1, passes[i].name)))
            continue;
        off[i] = *word == '-';
        found = true;
    }
    return found ? TRI_OK : unknown_pass(word + 1);
}

static tri_status read_switches(const char *text, bool *off) {
    tri_status status = TRI_OK;
    for (size_t n; text && !status; text = text[n] ? text + n + 1 : NULL) {
        char word[64];
        n = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, text);
        status = read_word(word, off);
    }
    return status;
}

/* ---- running ---- */

static void verify(const struct compilation *c) {
    const tri_graph *all[] = {c->model, c->whole, c->pre, c->step, c->count[0], c->count[1],
                              c->lane[0], c->lane[1], c->merge[0], c->merge[1]};
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i]) graph_verify(all[i]);
}

tri_status passes_run(struct compilation *c, const char *last) {
    bool off[COUNT(passes)] = {false};
    tri_status status = tri_graph_status(c->model);
    if (!status) status = read_switches(c->options->passes, off);
    for (size_t i = 0; i < COUNT(passes) && !status; i++) {
        if (!off[i]) status = passes[i].run(c);
        if (!status) verify(c);
        if (last && !strcmp(passes[i].name, last)) break;
    }
    return status;
}

void passes_free(struct compilation *c) {
    tri_graph *all[] = {c->whole, c->pre, c->step, c->count[0], c->count[1],
                        c->lane[0], c->lane[1], c->merge[0], c->merge[1],
                        c->logical[0], c->logical[1]};
    for (size_t i = 0; i < COUNT(all); i++) tri_graph_free(all[i]);
    for (size_t i = 0; i < COUNT(c->dist); i++) dist_free(&c->dist[i]);
    strategies_free(&c->strategies);
    cut_free(&c->cut);
    lane_tree_free(&c->tree);
}

/* ---- printing ---- */

static void add_graph(struct text *t, const char *title, const tri_graph *g) {
    char *text = g ? tri_graph_print(g) : NULL;
    t->failed |= g && !text;
    if (text && title) text_add(t, "# %s\n", title);
    if (text) text_add(t, "%s", text);
    free(text);
}

static void add_splits(struct text *t, const struct compilation *c) {
    static const char *const kinds[] = {[WHOLE] = "whole", [SPLIT] = "split",
                                        [PARTIAL] = "partial"};
    for (size_t i = 0; i < c->whole->n_nodes; i++) {
        const tri_node *n = c->whole->node[i];
        for (int k = 0; k < n->n_out; k++) {
            int id = n->out[k].id;
            char spec[SPEC_TEXT];
            struct split s = c->cut.split[id];
            text_add(t, "%%%d %s %s", id, base_spec_text(&n->out[k].spec, spec), kinds[s.kind]);
            if (s.kind == SPLIT) text_add(t, " %d", s.dim);
            text_add(t, "%s%s%s%s  # %s\n", c->cut.live[id] ? "" : " unused",
                     c->cut.late[id] ? " late" : "", c->cut.early[id] ? " early" : "",
                     c->cut.root[0][id]   ? " root of count"
                     : c->cut.root[1][id] ? " root" : "", n->name);
        }
    }
}

char *passes_dump(tri_graph *g, const tri_options *o, const struct target *target,
                  const char *after) {
    struct compilation c = {.options = o, .target = target, .model = g};
    struct text t = {0};
    if ((after && passes_find(after) < 0) || passes_run(&c, after)) {
        passes_free(&c);
        return NULL;
    }
    if (c.step) {
        add_graph(&t, "count: once per lane, in advance", c.count[0]);
        add_graph(&t, "pre: once per step, before the lanes", c.pre);
        add_graph(&t, "lane: forward and backward", c.lane[0]);
        add_graph(&t, "step: once per step, after the sums over the lanes", c.step);
    } else if (c.cut.split) {
        add_splits(&t, &c);
    } else {
        add_graph(&t, NULL, c.whole ? c.whole : c.model);
    }
    passes_free(&c);
    if (t.failed) {
        text_free(&t);
        base_no_memory("the text of a graph");
    }
    return t.data;
}

/* Adds the program of g, or of a network for shorter samples. */
static tri_status add_program(struct text *t, tri_graph *g, const tri_options *o,
                              const struct target *target) {
    tri_options less = *o;
    less.passes = "-recompute,-format,-hoist,-in-place,-order,-fuse";
    less.stages = 1; /* stages change no bit */
    less.pipeline = less.steal = NULL;
    less.chunks = 0;
    if (recompute_is_word(o->recompute)) less.recompute = NULL;
    struct compilation c = {.options = &less, .target = target, .model = g, .all_threads = 1};
    tri_status status = passes_run(&c, "expand");
    if (!status) {
        GRAPHS(all, &c);
        bool native = c.whole->native && c.half != TRI_F32;
        text_add(t, "lanes %lld%s\n", (long long)c.lanes, native ? " native" : "");
        for (size_t i = 0; i < COUNT(all); i++) add_graph(t, "phase", all[i]);
    }
    passes_free(&c);
    return status;
}

char *passes_program(tri_graph *g, const tri_options *o, const struct target *target) {
    struct text t = {0};
    tri_status status = add_program(&t, g, o, target);
    for (int i = 0; i < g->n_shorter && !status; i++)
        status = add_program(&t, g->shorter[i].g, o, target);
    if (!status && t.failed) status = base_no_memory("the text of a program");
    if (status) text_free(&t);
    return t.data;
}
