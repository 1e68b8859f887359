/* SPDX-License-Identifier: Apache-2.0 */
#include "search/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "machine/budget.h"
#include "plan/option_rows.h"
#include "plan/ready.h"
#include "plan/recompute.h"
#include "run/evaluate.h"
#include "run/executor.h"
#include "run/fit.h"
#include "search/network.h"

#define SIMPLER 1.02 /* of two plans, the simpler one may take so much longer */
#define CLOSE 1.15   /* plans that are rated this close to the best are measured */
#define LANES_MOST 64
#define MEASURE_STEP 1.0 /* seconds, for the units of a plan */
#define MEASURE_MOST 60.0

const char *find_measure_word(void *at, const char *value) {
    const int word = option_word(WORDS("unknown", "always", "never"), value);
    *(enum find_measure *)at = word < 0 ? FIND_UNKNOWN : (enum find_measure)word;
    return word < 0 ? "always, unknown or never" : NULL;
}

/* ---- the list ---- */

static tri_status add(struct find *f, const struct found *p) {
    if (!ARRAY_GROW(f->plan, f->n, f->capacity)) return base_no_memory("plans");
    f->plan[f->n] = *p;
    f->plan[f->n].order = f->n;
    f->n++;
    return TRI_OK;
}

/* A way to divide a lane over the workers; the first is none. mesh: seats. */
struct division {
    int mesh, data, stages; /* data: seats of a second axis; 0: there is none */
    const char *strategy, *unset, *pipeline;
    bool searched;
};

static bool is_given(const tri_options *o) {
    return o->mesh || o->strategy || o->unset || o->plan;
}

static tri_status add_division(struct find *f, struct found p, const struct division *d) {
    tri_options *o = &p.t.options;
    if (d->mesh) {
        o->mesh = f->ask.mesh ? f->ask.mesh
                  : d->data   ? arena_text(&f->arena, "data=%d,model=%d", d->data, d->mesh)
                              : arena_text(&f->arena, "model=%d", d->mesh);
        o->strategy = d->strategy;
        o->unset = d->unset;
        p.searched = d->searched;
        p.same_bits = false;
        if (!o->mesh) return base_no_memory("plans");
    }
    if (d->stages) o->stages = d->stages;
    if (d->pipeline) o->pipeline = d->pipeline;
    return add(f, &p);
}

/* What operators may do along a mesh of n seats, or of 2 x n / 2. */
static tri_status add_meshes(struct find *f, const struct found *p, int n) {
    tri_status status = TRI_OK;
    for (const struct strategy_ready *r = strategies_ready; r->name && !status; r++)
        status = add_division(f, *p, &(struct division){.mesh = n, .strategy = r->name});
    if (!status) status = add_division(f, *p, &(struct division){.mesh = n, .unset = "batch"});
    if (!status) status = add_division(f, *p, &(struct division){.mesh = n, .searched = true});
    if (!status && n > 2 && !f->ask.mesh)
        status = add_division(f, *p, &(struct division){.mesh = n / 2, .data = 2,
                                                        .searched = true});
    return status;
}

/* All ways of dividing over so many workers. */
static tri_status add_divisions(struct find *f, const struct found *p) {
    if (f->ask.mesh) return add_meshes(f, p, 2);
    const tri_options *o = &f->own->options;
    const struct division none = {0};
    const char *bubble = pipeline_name(PIPELINE_ZERO_BUBBLE);
    const bool staged = f->own->machine->compilation.stages > 0 || o->stages;
    tri_status status = add_division(f, *p, &none);
    for (int n = 2; n <= p->workers && !status; n *= 2) {
        const struct division orders[] = {{.stages = n}, {.stages = n, .pipeline = bubble}};
        for (size_t i = 0; i < (o->pipeline ? 1 : COUNT(orders)) && !staged && !status; i++)
            if (p->lanes > 1) status = add_division(f, *p, &orders[i]);
    }
    if (!f->ask.any || is_given(o) || f->own->machine->compilation.strategies.mesh.n)
        return status;
    for (int n = 2; n <= p->workers && !status; n *= 2) status = add_meshes(f, p, n);
    return status;
}

/* 0: there is none. */
static int next_number(int workers, int cores) {
    return 2 * workers <= cores ? 2 * workers : workers < cores ? cores : 0;
}

/* Workers and their threads: powers of two, and as many as there are cores. */
static tri_status add_places(struct find *f, struct found p) {
    const int cores = host_cores();
    tri_status status = TRI_OK;
    for (int workers = f->ask.workers ? f->ask.workers : 1; workers && !status;
         workers = next_number(workers, cores)) {
        for (int threads = cores / workers > 1 ? cores / workers : 1; threads && !status;
             threads /= 2) {
            if (f->ask.threads) threads = f->ask.threads;
            p.workers = workers;
            p.threads = threads;
            p.t.options.threads = threads;
            p.t.size = f->ask.size;
            p.t.size.workers = workers > 1 || f->ask.size.spares || f->ask.size.hosts ? workers : 0;
            p.t.size.threads = threads;
            for (int h = 0; h < p.t.size.hosts; h++)
                if (!p.t.size.weight[h]) p.t.size.weight[h] = workers;
            if (p.t.size.most < workers) p.t.size.most = workers;
            const int all = workers * threads;
            const bool given = (workers == 1 || f->ask.workers) &&
                               (f->ask.threads || (f->ask.workers && threads == 1));
            if ((all <= cores || given) &&
                (!f->ask.all || all >= cores))
                status = add_divisions(f, &p);
            if (f->ask.threads) break;
        }
        if (f->ask.workers) break;
    }
    return status;
}

static tri_status list(struct find *f) {
    const struct machine *m = f->own->machine;
    struct found p = {.t = trial_of(f->own), .same_bits = true, .lanes = m->lanes};
    const bool fits = f->ask.recompute && recompute_is_word(f->ask.recompute);
    p.t.options.memory_limit = fits ? f->own->options.memory_limit : 0;
    p.t.options.recompute = f->ask.recompute; /* not what it has come to in the run as it is */
    p.t.options.cuts = f->ask.cuts;
    tri_status status = add_places(f, p);
    if (!f->ask.any || f->own->options.lanes) return status;
    for (int64_t lanes = 1; lanes <= m->batch && lanes <= LANES_MOST && !status; lanes *= 2) {
        if (lanes == m->lanes || m->batch % lanes) continue;
        p.lanes = p.t.options.lanes = lanes;
        p.same_bits = false;
        status = add_places(f, p);
    }
    return status;
}

/* ---- each ---- */

static bool is_rated(const struct found *p) { return p->price.known < p->price.units; }

static tri_status price(struct find *f, struct found *p) {
    return price_run(p->run, f->prices, &f->kinds, &p->price);
}

/* Again, as the rates of units without a price have become known from other plans. */
static tri_status price_all(struct find *f) {
    tri_status status = TRI_OK;
    for (size_t i = 0; i < f->n && !status; i++)
        if (f->plan[i].run) status = price(f, &f->plan[i]);
    return status;
}

/* What would make a plan fit, in the order in which it is tried; each beside those before. */
static tri_status add_lighter(struct find *f, const struct found *p) {
    const tri_options *own = &f->own->options;
    struct found lighter = *p;
    tri_options *o = &lighter.t.options;
    lighter.gap = -1; /* of another lane */
    lighter.bytes = 0;
    lighter.run = NULL;
    lighter.how = FOUND_FITS;
    if (!f->ask.recompute && !o->recompute) {
        o->recompute = "full";
        return add(f, &lighter);
    }
    if (!own->zero && !o->zero) {
        o->zero = "3";
        return add(f, &lighter);
    }
    return TRI_OK;
}

/* One that is recomputed as a whole fits: less may suffice. */
static tri_status add_fit(struct find *f, const struct found *p) {
    struct found fitted = *p;
    fitted.gap = -1;
    if (!p->t.options.recompute || strcmp(p->t.options.recompute, "full") ||
        f->ask.recompute)
        return TRI_OK;
    fitted.run = NULL;
    fitted.bytes = 0;
    fitted.t.options.recompute = "fit";
    fitted.t.options.memory_limit = (int64_t)f->limit;
    return add(f, &fitted);
}

/* The seconds that a plan takes at least, if the work of its lanes is that of a plan that was
 * compiled, divided evenly. 0: not known. */
static double bound_of(const struct find *f, const struct found *p) {
    for (size_t i = 0; i < f->n; i++) {
        const struct found *q = &f->plan[i];
        if (q->how != FOUND_FITS || !q->run || q->lanes != p->lanes || q->t.options.mesh ||
            q->t.options.stages || q->workers * q->threads != p->workers * p->threads)
            continue;
        return q->price.step.units;
    }
    return 0;
}

static bool better(const struct found *p, const struct found *q) {
    return p->price.step.seconds != q->price.step.seconds
               ? p->price.step.seconds < q->price.step.seconds
               : p->order < q->order;
}

static const struct found *best_of(const struct find *f) {
    const struct found *best = NULL, *simplest = NULL;
    for (size_t i = 0; i < f->n; i++)
        if (f->plan[i].run && (!best || better(&f->plan[i], best))) best = &f->plan[i];
    for (size_t i = 0; i < f->n; i++) {
        const struct found *p = &f->plan[i];
        if (p->run && p->price.step.seconds <= SIMPLER * best->price.step.seconds &&
            (!simplest || p->order < simplest->order))
            simplest = p;
    }
    return simplest;
}

/* A plan is cut if its bound says that it cannot be better; those of no mesh and stages are not, so
 * that a user sees each of them. */
static bool is_cut(const struct find *f, struct found *p) {
    const struct found *best = best_of(f);
    if (f->ask.solve || !best || !(p->t.options.mesh || p->t.options.stages) ||
        f->own->options.mesh || f->own->options.stages)
        return false;
    p->bound = bound_of(f, p);
    return p->bound * SIMPLER >= best->price.step.seconds;
}

/* ---- splits that are searched ---- */

static double node_seconds(const void *of, const tri_node *n, double flops, double bytes) {
    return kinds_operator(of, n->entry->op->name, flops, bytes);
}

static double move_seconds(const void *of, int rounds, double bytes) {
    return kinds_move(of, rounds, bytes);
}

/* Fails with TRI_USAGE if it is no plan. */
static tri_status search_splits(struct find *f, struct found *p) {
    const struct split_prices prices = {.of = &f->kinds, .node = node_seconds,
                                        .move = move_seconds, .one_store = true};
    const tri_run *own = f->own;
    struct network_splits s;
    tri_options o = p->t.options;
    o.batch = p->t.batch;
    o.lanes = p->lanes;
    o.strategy = NULL; /* what an earlier search has found */
    if (recompute_is_word(o.recompute)) o.recompute = NULL; /* which splits no operator otherwise */
    tri_status status = network_search(own->written ? own->written : own->model, &o,
                                       own->dev->kind->target, p->workers * p->threads, &prices,
                                       &s);
    const char *axis = !s.splits[0] ? "the first" : "the second";
    if (!status && (!s.splits[0] || (strchr(o.mesh, ',') && !s.splits[1])))
        status = base_fail(TRI_USAGE, "along %s axis of the mesh no split of an operator costs "
                           "less than its parts as a whole", axis);
    if (!status && !(p->t.options.strategy = arena_copy(&f->arena, s.lines.data)))
        status = base_no_memory("plans");
    p->gap = !status && s.bound > 0 ? (double)s.cost / (double)s.bound - 1 : -1;
    network_splits_free(&s);
    return status;
}

static tri_status look(struct find *f, size_t i) {
    struct found *p = &f->plan[i];
    if (is_cut(f, p)) {
        p->how = FOUND_CUT;
        return TRI_OK;
    }
    const bool split = p->searched && !p->t.options.strategy;
    tri_status status = split ? search_splits(f, p) : TRI_OK;
    tri_run *run = status ? NULL : trial_plan(f->own, &p->t);
    if (!run && base_last() == TRI_FAILED) return TRI_FAILED;
    if (!run) {
        p->how = FOUND_REFUSED;
        p->note = arena_copy(&f->arena, tri_message());
        return TRI_OK;
    }
    p->bytes = trial_needs(run);
    p->lanes = run_lanes(run);
    if (p->bytes > f->limit) {
        p->how = FOUND_TOO_LARGE;
        trial_end(f->own, run);
        return add_lighter(f, p);
    }
    p->run = run;
    status = price_check(run);
    if (!status) status = price(f, p);
    const struct found now = *p; /* the list may move */
    return status ? status : add_fit(f, &now);
}

/* ---- measuring ---- */

/* The next plan whose units are to be measured; null: all that matter are known. */
static struct found *next_unknown(struct find *f) {
    const struct found *best = best_of(f);
    struct found *next = NULL;
    for (size_t i = 0; best && i < f->n; i++) {
        struct found *p = &f->plan[i];
        if (p->run && (is_rated(p) || f->ask.measure == FIND_ALWAYS) && !p->tried &&
            p->price.step.seconds <= CLOSE * best->price.step.seconds && (!next || better(p, next)))
            next = p;
    }
    return next;
}

/* How many seconds it takes, about, to measure the units of a plan: some ten steps of as many lanes
 * as there are threads, twice. */
static double takes(const struct found *p) {
    const double threads = p->workers * p->threads > 1 ? p->workers * p->threads : 2;
    const double own = (double)p->lanes / (p->t.size.hosts ? p->t.size.hosts : 1);
    const double lanes = own < threads ? threads : own;
    const double steps = 5 * p->price.step.seconds * threads / lanes;
    return steps > 2 * MEASURE_STEP ? steps : 2 * MEASURE_STEP;
}

static tri_status measure_plan(struct find *f, struct found *p) {
    const bool quiet = f->own->options.quiet;
    const double began = base_seconds();
    double seconds;
    struct text t = {0};
    int cores;
    const double others = host_others("", &cores);
    const int unknown = p->price.units - p->price.known;
    p->tried = true;
    text_add(&t, "trireme: %d unit(s) of ", unknown ? unknown : p->price.units);
    find_describe(p, &t);
    text_add(&t, " are measured, about %.0f s\n", takes(p));
    if (!quiet && !t.failed) fputs(t.data, stderr);
    text_free(&t);
    if (price_learn(p->run, MEASURE_STEP, f->prices, &seconds))
        fprintf(stderr, "trireme: these units could not be measured: %s\n", tri_message());
    f->measured += base_seconds() - began;
    f->others += host_others("", &cores) - others;
    return price_all(f);
}

static tri_status measure(struct find *f) {
    struct found *p;
    tri_status status = TRI_OK;
    if (f->ask.measure == FIND_NEVER) return TRI_OK;
    while (!status && (p = next_unknown(f)) &&
           (!(f->measured > 0) || f->measured + takes(p) < MEASURE_MOST))
        status = measure_plan(f, p);
    return status;
}

/* ---- all ---- */

/* Stages are cut by the prices that were measured, if that fits: the plans that are found depend on
 * prices alone, not on when they were measured. */
static tri_status cut_again(struct find *f, struct found *p) {
    struct found now = *p;
    tri_options *o = &now.t.options;
    tri_status status = fit_cuts(f->own, &p->t, f->prices, &f->arena, &o->cuts);
    const char *before = p->run->options.cuts;
    if (status || !o->cuts || (before && !strcmp(o->cuts, before))) return status;
    now.run = trial_plan(f->own, &now.t);
    if (!now.run) return base_last() == TRI_FAILED ? TRI_FAILED : TRI_OK;
    now.bytes = trial_needs(now.run);
    status = price(f, &now);
    now.tried = p->tried && !is_rated(&now);
    const bool fits = !status && now.bytes <= f->limit;
    trial_end(f->own, fits ? p->run : now.run);
    if (fits) *p = now;
    return status;
}

/* Splits that were searched by rates of before are searched by those that were measured. */
static tri_status search_again(struct find *f) {
    tri_status status = TRI_OK;
    const size_t n = f->n; /* those that are added are new */
    for (size_t i = 0; i < n && !status; i++) {
        struct found *p = &f->plan[i];
        if (p->run && p->t.options.stages > 1 && !f->ask.cuts && !p->t.size.hosts) {
            status = cut_again(f, p);
            continue;
        }
        const char *before = p->searched && p->run ? p->t.options.strategy : NULL;
        if (!before || p->t.options.recompute != f->ask.recompute) continue;
        status = search_splits(f, p);
        if (status == TRI_USAGE) status = TRI_OK, p->t.options.strategy = before;
        if (status || !strcmp(before, p->t.options.strategy)) continue;
        const bool tried = p->tried;
        trial_end(f->own, p->run);
        p->run = NULL;
        status = look(f, i);
        f->plan[i].tried = tried && f->plan[i].run && !is_rated(&f->plan[i]);
    }
    return status;
}

static bool look_again(struct find *f, tri_status *status) {
    const size_t before = f->n; /* those that are added are new */
    bool any = false;
    for (size_t i = 0; i < f->n && !*status; i++) { /* n grows */
        if (i < before && (f->plan[i].how != FOUND_CUT || is_cut(f, &f->plan[i]))) continue;
        f->plan[i].how = FOUND_FITS;
        *status = look(f, i);
        any |= f->plan[i].run != NULL;
    }
    return any && !*status;
}

static int sorted(const void *a, const void *b) {
    const struct found *p = a, *q = b;
    if (p->how != q->how) return (int)p->how - (int)q->how;
    if (p->how == FOUND_FITS) return better(p, q) ? -1 : 1;
    return p->order < q->order ? -1 : 1;
}

/* Best first; what is simpler and about as fast counts as better than that. */
static void sort(struct find *f) {
    const struct found *best = best_of(f);
    const size_t first = best ? best->order : 0;
    if (f->n) qsort(f->plan, f->n, sizeof *f->plan, sorted);
    for (size_t i = 0; i < f->n; i++) {
        f->fit += f->plan[i].how == FOUND_FITS;
        if (!best || f->plan[i].order != first) continue;
        const struct found is = f->plan[i];
        memmove(f->plan + 1, f->plan, i * sizeof is);
        f->plan[0] = is;
    }
}

/* What the best plan takes without the other hosts. */
static tri_status price_alone(struct find *f) {
    if (f->ask.size.hosts < 2 || !f->fit) return TRI_OK;
    struct found one = f->plan[0];
    one.t.size.hosts = 0;
    one.t.size.paths = false;
    if (one.workers == 1 && !one.t.size.spares) one.t.size.workers = 0;
    one.run = trial_plan(f->own, &one.t);
    if (!one.run) return base_last() == TRI_FAILED ? TRI_FAILED : TRI_OK;
    tri_status status = price(f, &one);
    if (!status && is_rated(&one) && f->ask.measure != FIND_NEVER) {
        status = measure_plan(f, &one);
        if (!status) status = price(f, &one);
    }
    f->alone = one.price;
    trial_end(f->own, one.run);
    return status;
}

tri_status find_plans(tri_run *own, const struct find_ask *ask, struct prices *prices,
                      struct find *out) {
    *out = (struct find){.own = own, .ask = *ask, .prices = prices};
    out->limit = budget_verdict(evaluation_machine(own), &own->store,
                                own->options.memory_limit).limit;
    const char *name = price_network(&out->arena, own, PRICE_ERROR);
    const struct price *error = name ? prices_find(prices, name, 1) : NULL;
    out->error = error ? error->seconds : 0;
    tri_status status = name ? list(out) : base_no_memory("plans");
    for (size_t i = 0; i < out->n && !status; i++) status = look(out, i); /* n grows */
    /* Prices that were measured may show that some were cut too early. */
    bool anew;
    do {
        const double before = out->measured;
        if (!status) status = price_all(out);
        if (!status) status = measure(out);
        anew = out->measured > before;
        if (!status && anew) status = search_again(out);
    } while (!status && (anew || look_again(out, &status)));
    sort(out);
    if (!status) status = price_alone(out);
    if (!status && out->measured > 0) prices_keep(out->prices, ask->keep);
    return status;
}

void find_free(struct find *f) {
    for (size_t i = 0; i < f->n; i++) trial_end(f->own, f->plan[i].run);
    free(f->plan);
    kinds_free(&f->kinds);
    arena_free(&f->arena);
    *f = (struct find){0};
}

/* ---- texts ---- */

tri_status find_print(struct found *p, struct text *out) {
    tri_status status = TRI_OK;
    /* A plan does not say over how many hosts it was to run. */
    if (p->t.size.hosts < 2)
        status = plan_add_number(&p->run->own_plan, PLAN_PREDICTED,
                                 1 + (int64_t)(1e9 * p->price.step.seconds));
    if (!status) plan_print(&p->run->own_plan, out);
    return status;
}

const char *find_way(const struct found *p) {
    const tri_options *o = &p->t.options;
    return p->searched ? "searched" : o->strategy ? o->strategy : o->unset ? o->unset : "";
}

void find_describe(const struct found *p, struct text *out) {
    const tri_options *o = &p->t.options;
    text_add(out, "%lld lane(s), %d worker(s) x %d thread(s)", (long long)p->lanes, p->workers,
             p->threads);
    if (o->mesh) text_add(out, ", mesh %s %s", o->mesh, find_way(p));
    if (o->stages) text_add(out, ", %lld stages", (long long)o->stages);
    if (o->pipeline) text_add(out, " %s", o->pipeline);
    if (o->recompute) text_add(out, ", recompute %s", o->recompute);
    if (o->zero) text_add(out, ", ZeRO %s", o->zero);
}

tri_status find_none(const struct find *f) {
    const struct found *least = NULL;
    struct text t = {0};
    for (size_t i = 0; i < f->n; i++)
        if (f->plan[i].bytes && (!least || f->plan[i].bytes < least->bytes)) least = &f->plan[i];
    if (!least) return base_fail(TRI_USAGE, "there is no plan: %s", f->n ? f->plan[0].note : "");
    text_add(&t, "none of %zu plan(s) fits: with ", f->n);
    find_describe(least, &t);
    text_add(&t, " the run needs ");
    budget_mib(least->bytes, &t);
    text_add(&t, " MiB, ");
    budget_mib(least->bytes - f->limit, &t);
    text_add(&t, " more than the limit");
    tri_status status = base_fail(TRI_USAGE, "%s", t.failed ? "no plan fits" : t.data);
    text_free(&t);
    return status;
}
