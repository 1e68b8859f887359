/* SPDX-License-Identifier: Apache-2.0 */
#include "run/price.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "machine/replica_needs.h"
#include "plan/option_rows.h"
#include "plan/rebatch.h"
#include "run/executor.h"
#include "run/items.h"
#include "run/kinds.h"
#include "run/open.h"
#include "run/price_hosts.h"
#include "run/profile.h"
#include "run/unit_price.h"

#define WARM_STEPS 3
#define LEAST_STEPS 5
#define FEW_STEPS 3 /* after one to warm up, if a step takes LONG seconds */
#define LONG 0.3
#define MOST_STEPS 200

/* Seconds that workers take to open a step and to end it: two take so much longer for one of the
 * linear model than one process does. */
#define OF_WORKERS 2.4e-6

/* ---- measured ---- */

/* Medians of single units add up to less than the median of their sums, as something disturbs some
 * unit in most steps. time: [item][MOST_STEPS], which is sorted. */
static double disturbed(double *time, int items, size_t steps) {
    double sum[MOST_STEPS] = {0}, medians = 0;
    for (int i = 0; i < items; i++) {
        double *of = time + (size_t)i * MOST_STEPS;
        for (size_t n = 0; n < steps; n++) sum[n] += of[n];
        medians += pace_quantile(of, steps, 0.5);
    }
    return medians > 0 ? pace_quantile(sum, steps, 0.5) / medians : 1;
}

/* time: [item][MOST_STEPS], the seconds of all its calls in a step. Units of the same text share a
 * price. */
static tri_status add_prices(const tri_run *run, double *time, size_t steps, struct prices *p) {
    const double more = disturbed(time, items_number(run), steps);
    struct prices sum = {0}; /* by text: the seconds and calls of a step */
    struct item_at at;
    const struct program *of = NULL;
    int busy = 0;
    tri_status status = TRI_OK;
    for (int i = 0; !status && items_find(run, i, &at); i++) {
        const int64_t calls = profile_calls(run, i);
        if (at.p != of) busy = unit_busy(run, of = at.p, (int)run->machine->lanes);
        if (!calls) continue;
        const char *text = unit_price_text(&sum.arena, run, at.p->item[at.i].unit);
        if (!text) {
            status = base_no_memory("the prices of units");
            break;
        }
        const struct price *before = prices_find(&sum, text, busy);
        struct price now = before ? *before : (struct price){.unit = text, .busy = busy};
        now.seconds += more * (double)steps * time[(size_t)i * MOST_STEPS + steps / 2];
        now.calls += calls;
        status = prices_add(&sum, &now);
    }
    for (size_t i = 0; i < sum.n && !status; i++) {
        struct price one = sum.price[i];
        one.seconds /= (double)one.calls;
        status = prices_add(p, &one);
    }
    prices_free(&sum);
    return status;
}

static tri_status one_step(tri_run *run) {
    if (tri_step(run)) return TRI_OK;
    return tri_run_status(run) ? base_last()
                               : base_fail(TRI_FAILED, "the run ended before its units were "
                                           "measured");
}

tri_status price_check(const tri_run *run) {
    if (run->n_executables > 1)
        return base_fail(TRI_USAGE, "steps of several shapes have no price yet");
    return TRI_OK;
}

/* *median: seconds of a step, without the clocks that time its units. */
static tri_status time_steps(tri_run *run, size_t enough, double least, double *median) {
    double step[MOST_STEPS], total = 0;
    tri_status status = TRI_OK;
    size_t n = 0;
    for (; !status && n < MOST_STEPS && (n < enough || total < least); n++) {
        const double begin = base_seconds();
        status = one_step(run);
        total += step[n] = base_seconds() - begin;
    }
    *median = status ? 0 : pace_quantile(step, n, 0.5);
    return status;
}

tri_status price_measure(tri_run *run, double least, struct prices *p, double *seconds) {
    tri_status status = TRI_OK;
    double took = 0;
    for (int i = 0; i < (took < LONG ? WARM_STEPS : 1) && !status; i++) {
        const double begin = base_seconds();
        status = one_step(run);
        took = base_seconds() - begin;
    }
    const size_t enough = took < LONG ? LEAST_STEPS : FEW_STEPS;
    if (!status && took < LONG) status = time_steps(run, enough, least / 2, seconds);
    if (!status) status = profile_begin(run);
    if (status) return status;
    const int items = items_number(run);
    double step[MOST_STEPS], total = 0;
    double *time = calloc((size_t)items * MOST_STEPS + 1, sizeof *time);
    double *before = calloc((size_t)items + 1, sizeof *before);
    size_t n = 0;
    if (!time || !before) status = base_no_memory("the times of units");
    for (; !status && n < MOST_STEPS && (n < enough || total < least / 2); n++) {
        const double begin = base_seconds();
        status = one_step(run);
        total += step[n] = base_seconds() - begin;
        profile_add(run);
        for (int i = 0; i < items; i++) {
            time[(size_t)i * MOST_STEPS + n] = profile_seconds(run, i) - before[i];
            before[i] = profile_seconds(run, i);
        }
    }
    if (!status && profile_lost(run))
        status = base_fail(TRI_FAILED, "a step has too many calls of units to record them all: "
                           "fewer --lanes have fewer");
    if (!status) status = add_prices(run, time, n, p);
    if (!status && took >= LONG) *seconds = pace_quantile(step, n, 0.5);
    free(time);
    free(before);
    profile_end(run);
    return status;
}

/* As many lanes as threads have the units of all lanes, if these are alike; but a single lane is
 * part of the step. */
static void lessen(const struct machine *m, tri_options *o) {
    if (o->plan || !m->tree[1].g || m->compilation.n_sizes > 1) return;
    const int tracks = m->pipeline.tracks > 1 ? m->pipeline.tracks : 1;
    o->lanes = o->threads > 1 ? o->threads : 2;
    o->lanes = (o->lanes + tracks - 1) / tracks * tracks; /* schedules want whole rounds */
    o->batch = m->batch / m->lanes * o->lanes;
}

/* Calls of units in a step, one after the other on the thread that makes most of them. lanes: that
 * a host has at most. */
static double calls_of(const tri_run *run, int lanes) {
    const struct machine *m = run->executable;
    double calls = (double)(m->pre.n_items + m->step.n_items);
    for (int k = 0; k < 2; k++) {
        int threads, claimers = unit_claimers(m, run, k, &threads);
        const struct program *p = k ? m->thread[0].lane : m->thread[0].count;
        if (m->tree[k].g)
            calls += (double)((lanes + claimers - 1) / claimers) * (double)p->n_items;
    }
    return calls;
}

const char *price_network(struct arena *a, const tri_run *run, const char *what) {
    const tri_graph *g = run->machine->whole;
    uint64_t hash = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        hash = base_hash(n->name, strlen(n->name), hash);
        if (node_is_param(n))
            hash = base_hash(n->out->spec.shape.dim, sizeof n->out->spec.shape.dim, hash);
    }
    return arena_text(a, "(%s, of %016llx)", what, (unsigned long long)hash);
}

/* What passes between the units of this network's lanes, as if it were a unit: of a call. */
static const char *between(struct arena *a, const tri_run *run) {
    const struct machine *m = run->machine;
    const char *what = arena_text(a, "between units, %lld sample(s) in a lane",
                                  (long long)(m->batch / m->lanes));
    return what ? price_network(a, run, what) : NULL;
}

/* took: seconds of a step of the run, which is open. */
static tri_status learn_between(const tri_run *run, double took, struct prices *p) {
    struct run_price is;
    struct arena a = {0};
    const char *name = between(&a, run);
    const double calls = calls_of(run, (int)run->machine->lanes);
    tri_status status = name ? price_run(run, p, NULL, &is) : base_no_memory("the prices of units");
    const double more = status ? 0 : took - is.step.seconds + is.overhead;
    if (!status && is.step.seconds > 0) /* else it has units without a price */
        status = prices_add(p, &(struct price){name, unit_all_threads(run),
                                               more > 0 ? more / calls : 0, (int64_t)calls});
    arena_free(&a);
    return status;
}

static tri_status learn(const tri_run *run, int threads, bool less, double least, struct prices *p,
                        double *seconds) {
    const struct machine *m = run->machine;
    tri_options o = run->options;
    o.batch = m->batch;
    o.lanes = m->lanes;
    o.threads = threads;
    o.data = "synthetic";
    o.source = NULL;
    o.memory_limit = 0;
    o.subset = NULL;
    o.on_nan = option_row("--on-nan")->words[ON_NAN_WARN]; /* of random samples */
    o.steps = INT64_MAX / 2;
    o.epochs = 0;
    if (less) lessen(m, &o);
    const bool same = o.lanes == m->lanes && !run->worker && threads == run_threads(run);
    run_leave_nothing(&o);
    const bool notes = run_print_notes(false);
    tri_graph *g = graph_duplicate(run->written ? run->written : run->model, o.batch);
    run_like(m);
    tri_run *own = g ? tri_open(g, &o) : NULL;
    run_like(NULL);
    double took = 0;
    run_print_notes(notes);
    if (!own) return base_last();
    tri_status status = price_measure(own, least, p, &took);
    if (!status) status = learn_between(own, took, p);
    if (same && !status) *seconds = took;
    run_free(own);
    return status;
}

tri_status price_learn(const tri_run *run, double least, struct prices *p, double *seconds) {
    struct run_price is;
    *seconds = 0;
    tri_status status = learn(run, unit_all_threads(run), true, least, p, seconds);
    /* A network may allow one lane alone. */
    if (status == TRI_USAGE) status = learn(run, unit_all_threads(run), false, least, p, seconds);
    for (int before = -1; !status && !(status = price_run(run, p, NULL, &is)) &&
                          is.known < is.units && is.known != before;) {
        before = is.known;
        status = learn(run, is.lacks, true, least, p, seconds);
        if (!status) status = price_run(run, p, NULL, &is);
        /* What sums are left to the step depends on the number of lanes. */
        if (!status && is.known == before) status = learn(run, is.lacks, false, least, p, seconds);
    }
    return status;
}

/* ---- a step ---- */

struct pricing {
    const struct prices *p;
    const tri_run *run;
    struct arena arena;
    struct prices seen; /* the units of the step */
    int known, lacks;
    bool rated, failed;
    struct price_kinds *kinds;
    struct price_hosts hosts;
    double lanes, moves; /* seconds of units of a lane, and of its moves */
};

static double usual(const struct program *p, size_t i) {
    const struct work is = profile_work(p, i);
    return kinds_usual(is.flops, is.bytes);
}

/* "matmul+add" */
static void kind_of(const struct unit *u, struct text *t) {
    for (int k = 0; k < u->n; k++) text_add(t, "%s%s", k ? "+" : "", u->node[k]->entry->op->name);
}

/* busy: of the program, found once, as host_cores reads files. */
static double price_of(struct pricing *w, const struct program *p, size_t i, int busy) {
    const struct unit *u = p->item[i].unit;
    const char *text = unit_price_text(&w->arena, w->run, u);
    const struct price *is = text ? prices_find(w->p, text, busy) : NULL;
    w->failed |= !text;
    if (text && !prices_find(&w->seen, text, busy)) {
        if (is) w->known++;
        else if (!w->lacks) w->lacks = busy;
        w->failed |= prices_add(&w->seen, &(struct price){text, busy, 0, 1}) != TRI_OK;
    }
    struct text kind = {0};
    double seconds = is ? is->seconds : 0;
    kind_of(u, &kind);
    w->failed |= kind.failed;
    if (is && w->kinds && !w->rated && !kind.failed) {
        w->failed |= kinds_add(w->kinds, kind.data, seconds, usual(p, i)) != TRI_OK;
    }
    if (!is && w->rated && !kind.failed) seconds = kinds_rate(w->kinds, kind.data, usual(p, i));
    text_free(&kind);
    return seconds;
}

static void *zeros(struct pricing *w, size_t n, size_t size) {
    void *to = arena_alloc(&w->arena, n * size + 1);
    w->failed |= !to;
    return to;
}

static struct step_units units_of_program(struct pricing *w, const struct program *p) {
    struct step_units u = {0};
    if (!p->g) return u;
    u.seconds = zeros(w, p->n_items, sizeof *u.seconds);
    u.parts = zeros(w, p->n_items, sizeof *u.parts);
    const int busy = unit_busy(w->run, p, w->hosts.most);
    for (; u.n < p->n_items && !w->failed; u.n++) {
        const struct program_item *i = &p->item[u.n];
        const int64_t parts = i->parts[0] > i->parts[1] ? i->parts[0] : i->parts[1];
        u.seconds[u.n] = price_of(w, p, u.n, busy);
        u.parts[u.n] = parts < 1 ? 1 : parts > PLAN_MOST_THREADS ? PLAN_MOST_THREADS : (int)parts;
    }
    return u;
}

/* ---- members of a replica ---- */

/* A lane, or leg, that all members of a replica compute together: by executor, when it is done with
 * each round (machine/replica.h). */
struct play {
    const struct program *p;
    struct replica_range range;
    struct replica_needs needs;
    const double *seconds; /* by item */
    size_t executors, rounds;
    double *done; /* by executor, then round from the first of the range */
};

static double *done_at(struct play *y, size_t executor, size_t round) {
    return &y->done[executor * y->rounds + round - replica_round_of(y->range.begin, 0)];
}

/* When all that the round needs is there. */
static double ready_at(struct play *y, size_t round) {
    const size_t at = round - replica_round_of(y->range.begin, 0);
    double ready = 0;
    for (size_t i = y->needs.first[at]; i < y->needs.first[at + 1]; i++) {
        const struct replica_need *n = &y->needs.need[i];
        const double there = *done_at(y, n->executor, n->value - 1);
        if (there > ready) ready = there;
    }
    return ready;
}

static void play_round(struct play *y, size_t item, int round) {
    const struct program_item *it = &y->p->item[item];
    const size_t number = replica_round_of(item, round), threads = (size_t)y->p->threads;
    const int64_t executors = it->members * (int64_t)threads, parts = it->parts[0] + it->parts[1];
    const double ready = ready_at(y, number);
    for (size_t e = 0; e < y->executors; e++) *done_at(y, e, number) = *done_at(y, e, number - 1);
    for (int64_t e = 0; e < executors && !replica_skips(y->p, item); e++) {
        const size_t me = it->member[(size_t)e / threads] * threads + (size_t)e % threads;
        double *now = done_at(y, me, number);
        int64_t begin, end;
        replica_parts(it, round, e, executors, &begin, &end);
        if (begin == end) continue;
        if (*now < ready) *now = ready + KINDS_WAIT;
        *now += y->seconds[item] * (double)(end - begin) / (double)parts;
    }
}

/* At a stop all wait for the captain, who waits for all. */
static void play_stop(struct play *y, size_t item, bool stops) {
    const size_t number = replica_round_of(item, 0);
    const bool first = item == y->range.begin;
    double ready = ready_at(y, number);
    for (size_t e = 0; e < y->executors; e++) {
        const double now = *done_at(y, e, number) = first ? 0 : *done_at(y, e, number - 1);
        if (item == y->range.end && now > ready) ready = now; /* the last stop, without needs */
    }
    for (size_t e = 0; e < y->executors && stops; e++)
        if (*done_at(y, e, number) < ready) *done_at(y, e, number) = ready;
    const double captain = *done_at(y, 0, number);
    for (size_t e = 0; e < y->executors && stops; e++) *done_at(y, e, number) = captain;
}

/* Plays a leg, and writes when the replica is at each item to at, from the first. */
static bool play(struct pricing *w, const struct program *p, const struct replica_range *range,
                 const double *seconds, double *at) {
    struct play y = {.p = p, .range = *range, .seconds = seconds,
                     .executors = (size_t)(p->threads * p->members),
                     .rounds = replica_round_of(range->end - range->begin, 1)};
    int stop = 0;
    y.done = zeros(w, y.executors * y.rounds, sizeof *y.done);
    const bool made = !w->failed && replica_find_needs(p, range, &y.needs);
    for (size_t i = range->begin; made && i <= range->end; i++) {
        bool stops = i == range->end;
        for (; stop < range->n_stops && range->stop[stop] == i; stop++) stops = true;
        play_stop(&y, i, stops);
        at[i - range->begin] = *done_at(&y, 0, replica_round_of(i, 0));
        for (int round = 1; round < 3 && i < range->end; round++) play_round(&y, i, round);
    }
    free(y.needs.need);
    free(y.needs.first);
    return made;
}

/* ---- lanes ---- */

/* When the claimer's threads have computed the items up to each, from the first of a leg. */
static void time_leg(struct pricing *w, const struct machine *m, const struct program *p, int size,
                     int leg, int threads, const struct step_units *u, double *at) {
    const struct tree *t = &m->tree[1];
    const bool lane = p->g == m->compilation.lane[size];
    const size_t begin = lane ? t->items[size][leg] : 0;
    const size_t end = lane ? t->items[size][leg + 1] : u->n;
    if (lane && m->members > 1) {
        const struct bucket_events *e = &t->events[size];
        const struct replica_range range = {begin, end, e->stop + e->leg[leg],
                                            e->leg[leg + 1] - e->leg[leg]};
        w->failed |= !play(w, p, &range, u->seconds, at);
        return;
    }
    double now = 0, work = 0;
    for (size_t i = begin; i <= end; i++) {
        at[i - begin] = now;
        if (i < end)
            now += step_together(&(struct step_units){1, &u->seconds[i], &u->parts[i]}, threads,
                                 &work);
    }
}

/* What the lanes of one size take. */
static void add_size(struct pricing *w, const struct machine *m, int k, int size,
                     struct step_lanes *to) {
    const struct tree *t = &m->tree[k];
    const struct machine_thread *first = &m->thread[0];
    const struct program *p = &(k ? first->lane : first->count)[size];
    if (!p->g) return;
    const struct step_units u = units_of_program(w, p);
    double *at = zeros(w, u.n + 2, sizeof *at);
    to->at[size] = zeros(w, (size_t)to->buckets, sizeof *to->at[size]);
    for (size_t i = 0; i < u.n && !w->failed; i++) {
        to->work[size] += u.seconds[i];
        if (p->item[i].unit->node[0]->move) w->moves += u.seconds[i];
    }
    w->lanes += to->work[size];
    if (w->failed) return;
    for (int leg = 0; leg < (to->pipeline ? t->buckets.legs : 1) && !w->failed; leg++) {
        const size_t begin = k ? t->items[size][leg] : 0, end = k ? t->items[size][leg + 1] : u.n;
        time_leg(w, m, p, size, leg, to->threads, &u, at);
        if (to->pipeline) to->leg[leg] = at[end - begin];
        for (int b = 0; b < to->buckets && !to->pipeline; b++) to->at[size][b] = at[end - begin];
        for (int e = 0; e < t->events[size].n && !to->pipeline; e++)
            if (!t->events[size].event[e].opens)
                to->at[size][t->events[size].event[e].bucket] = at[t->events[size].event[e].item];
    }
}

/* Legs make the sums of their buckets. All lanes are priced as if they had the first size. */
static void add_leg_sums(const struct machine *m, int operands, struct step_lanes *to) {
    const struct buckets *b = &m->tree[1].buckets;
    for (int i = 0; i < b->n; i++)
        to->leg[b->leg[i]] += to->sum[i] * (double)(m->lanes - operands) / (double)m->lanes;
}

static void add_lanes(struct pricing *w, const struct machine *m, int k, struct step_lanes *to) {
    const struct tree *t = &m->tree[k];
    *to = (struct step_lanes){.tree = &t->shape, .buckets = t->buckets.n};
    to->claimers = unit_claimers(m, w->run, k, &to->threads);
    if (k && m->compilation.stages) {
        to->pipeline = &m->pipeline;
        to->legs = &m->compilation.legs;
        to->leg_of = t->buckets.leg;
        to->leg = zeros(w, LEGS_MOST, sizeof *to->leg);
    }
    uint8_t *small = zeros(w, (size_t)m->lanes, 1);
    to->sum = zeros(w, (size_t)t->buckets.n, sizeof *to->sum);
    for (int64_t i = 0; i < m->lanes && !w->failed; i++)
        small[i] = (uint8_t)machine_lane_size(m, i);
    to->small = small;
    for (int s = to->pipeline ? 0 : 1; s >= 0 && !w->failed; s--) add_size(w, m, k, s, to);
    bool sums = false; /* else the step makes all of them */
    for (int i = 0; i < t->shape.n_tops; i++) sums |= t->shape.top[i] >= t->shape.lanes;
    const int busy = sums ? unit_busy(w->run, t->merge, w->hosts.most) : 0;
    for (size_t i = 0; sums && i < t->merge->n_items && !w->failed; i++)
        to->sum[t->bucket_of[i]] += price_of(w, t->merge, i, busy);
    w->failed |= !w->failed && !price_hosts_phase(&w->hosts, w->p, k, &w->arena, to);
    if (to->pipeline && !w->failed) add_leg_sums(m, m->hosts ? w->hosts.operands[k] : 1, to);
}

static tri_status price_all(struct pricing *w, struct run_price *out) {
    const struct machine *m = w->run->executable;
    const struct compilation *c = &m->compilation;
    struct step_shape shape = {.threads = unit_all_threads(w->run)};
    tri_status status = price_hosts_find(m, w->p, &w->hosts);
    if (status) return status;
    price_hosts_step(&w->hosts, m, w->p, &shape.hosts);
    *out = (struct run_price){0};
    w->lanes = w->moves = 0;
    w->known = w->lacks = 0;
    shape.pre = units_of_program(w, &m->pre);
    shape.step = units_of_program(w, &m->step);
    for (int k = 0; k < 2; k++)
        if ((k ? c->lane : c->count)[0]) add_lanes(w, m, k, &shape.lanes[k]);
    if (w->failed) return base_no_memory("the price of a step");
    const char *name = between(&w->arena, w->run);
    const struct price *more = name ? prices_find(w->p, name, shape.threads) : NULL;
    out->units = (int)w->seen.n + 1; /* what passes between them is one more */
    out->known = w->known + (more != NULL);
    out->lacks = w->lacks || more ? w->lacks : shape.threads;
    out->overhead = more ? more->seconds * calls_of(w->run, w->hosts.most) : 0;
    shape.overhead = out->overhead += w->run->worker ? OF_WORKERS : 0;
    out->moves = w->lanes > 0 ? w->moves / w->lanes : 0;
    const bool all = w->known == (int)w->seen.n; /* between them may pass nothing that is known */
    return all || w->rated ? step_price(&shape, &out->step) : TRI_OK;
}

tri_status price_run(const tri_run *run, const struct prices *p, struct price_kinds *kinds,
                     struct run_price *out) {
    struct pricing w = {.p = p, .run = run, .kinds = kinds};
    tri_status status = price_all(&w, out);
    prices_free(&w.seen);
    if (!status && kinds && out->known < out->units) {
        w.rated = true;
        status = price_all(&w, out);
        prices_free(&w.seen);
    }
    arena_free(&w.arena);
    return status;
}
