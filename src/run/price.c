/* SPDX-License-Identifier: Apache-2.0 */
#include "run/price.h"

#include <stdlib.h>
#include <string.h>

#include "run/items.h"
#include "run/profile.h"

#define WARM_STEPS 3
#define LEAST_STEPS 5
#define MOST_STEPS 200

/* ---- units ---- */

/* What their time depends on: not their names. Others than the usual kernels are named. */
static const char *unit_text(struct arena *a, const tri_run *run, const struct unit *u) {
    struct text t = {0};
    if (run->dev != dev_at(0) || math_is_native(&run->options)) {
        char device[256];
        run_device_text(run, device, sizeof device);
        text_add(&t, "%s: ", device);
    }
    for (int k = 0; k < u->n; k++) {
        text_add(&t, "%s%s", k ? "+" : "", u->node[k]->entry->op->name);
        graph_print_attrs(u->node[k], &t);
    }
    for (int k = 0; k < u->n_in + u->n_out; k++) {
        const tri_tensor *x = k < u->n_in ? u->in[k] : u->out[k - u->n_in];
        char spec[SPEC_TEXT];
        text_add(&t, "%s %s", k == u->n_in ? " ->" : "", base_spec_text(&x->spec, spec));
        if (x->block) text_add(&t, "/%d", x->block);
        if (*x->pack) text_add(&t, "/%s", x->pack);
    }
    const char *text = t.failed ? NULL : arena_copy(a, t.data);
    text_free(&t);
    return text;
}

/* The threads that compute while the program does. */
static int busy_of(const tri_run *run, const struct program *p) {
    const struct compilation *c = &run->machine->compilation;
    const int64_t lanes = p->g == c->pre || p->g == c->step ? INT64_MAX : run_lanes(run);
    return lanes < run_threads(run) ? (int)lanes : run_threads(run);
}

/* ---- measured ---- */

/* time: [item][MOST_STEPS], the seconds of all its calls in a step. Units of the same text share a
 * price. */
static tri_status add_prices(const tri_run *run, double *time, size_t steps, struct prices *p) {
    struct prices sum = {0}; /* by text: the seconds and calls of a step */
    struct item_at at;
    tri_status status = TRI_OK;
    for (int i = 0; !status && items_find(run, i, &at); i++) {
        const int64_t calls = profile_calls(run, i);
        if (!calls) continue;
        const char *text = unit_text(&sum.arena, run, at.p->item[at.i].unit);
        if (!text) {
            status = base_no_memory("the prices of units");
            break;
        }
        const int busy = busy_of(run, at.p);
        const struct price *before = prices_find(&sum, text, busy);
        struct price now = before ? *before : (struct price){.unit = text, .busy = busy};
        now.seconds += (double)steps * pace_quantile(time + (size_t)i * MOST_STEPS, steps, 0.5);
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
    if (run->machine->compilation.stages)
        return base_fail(TRI_USAGE, "plan price knows no stages yet: `trireme explain MODEL "
                         "--stages P --measure` says how long their legs take");
    return TRI_OK;
}

tri_status price_measure(tri_run *run, double least, struct prices *p, double *seconds) {
    tri_status status = TRI_OK;
    for (int i = 0; i < WARM_STEPS && !status; i++) status = one_step(run);
    if (!status) status = profile_begin(run);
    if (status) return status;
    const int items = items_number(run);
    double step[MOST_STEPS], total = 0;
    double *time = calloc((size_t)items * MOST_STEPS + 1, sizeof *time);
    double *before = calloc((size_t)items + 1, sizeof *before);
    size_t n = 0;
    if (!time || !before) status = base_no_memory("the times of units");
    for (; !status && n < MOST_STEPS && (n < LEAST_STEPS || total < least); n++) {
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
    *seconds = status ? 0 : pace_quantile(step, n, 0.5);
    free(time);
    free(before);
    profile_end(run);
    return status;
}

/* ---- a step ---- */

struct pricing {
    const struct prices *p;
    const tri_run *run;
    struct arena arena;
    struct prices seen; /* the units of the step */
    int known;
    bool failed;
};

static double price_of(struct pricing *w, const struct program *p, const struct unit *u) {
    const char *text = unit_text(&w->arena, w->run, u);
    const int busy = busy_of(w->run, p);
    const struct price *is = text ? prices_find(w->p, text, busy) : NULL;
    w->failed |= !text;
    if (text && !prices_find(&w->seen, text, busy)) {
        w->known += is != NULL;
        w->failed |= prices_add(&w->seen, &(struct price){text, busy, 0, 1}) != TRI_OK;
    }
    return is ? is->seconds : 0;
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
    for (; u.n < p->n_items && !w->failed; u.n++) {
        const struct program_item *i = &p->item[u.n];
        const int64_t parts = i->parts[0] > i->parts[1] ? i->parts[0] : i->parts[1];
        u.seconds[u.n] = price_of(w, p, i->unit);
        u.parts[u.n] = parts < 1 ? 1 : parts > PLAN_MOST_THREADS ? PLAN_MOST_THREADS : (int)parts;
    }
    return u;
}

static void add_lanes(struct pricing *w, const struct machine *m, int k, struct step_lanes *to) {
    const struct tree *t = &m->tree[k];
    const struct machine_thread *first = &m->thread[0];
    *to = (struct step_lanes){.tree = &t->shape, .buckets = t->buckets.n};
    uint8_t *small = zeros(w, (size_t)m->lanes, 1);
    to->sum = zeros(w, (size_t)t->buckets.n, sizeof *to->sum);
    for (int64_t i = 0; i < m->lanes && !w->failed; i++)
        small[i] = (uint8_t)machine_lane_size(m, i);
    to->small = small;
    for (int s = 0; s < 2; s++) {
        const struct program *p = &(k ? first->lane : first->count)[s];
        to->size[s] = units_of_program(w, p);
        to->published[s] = zeros(w, (size_t)t->buckets.n, sizeof *to->published[s]);
        for (int b = 0; b < t->buckets.n && !w->failed; b++) to->published[s][b] = p->n_items;
        for (int e = 0; p->g && e < t->events[s].n && !w->failed; e++)
            if (!t->events[s].event[e].opens)
                to->published[s][t->events[s].event[e].bucket] = t->events[s].event[e].item;
    }
    bool sums = false; /* else the step makes all of them */
    for (int i = 0; i < t->shape.n_tops; i++) sums |= t->shape.top[i] >= t->shape.lanes;
    for (size_t i = 0; sums && i < t->merge->n_items && !w->failed; i++)
        to->sum[t->bucket_of[i]] += price_of(w, t->merge, t->merge->item[i].unit);
}

tri_status price_run(const tri_run *run, const struct prices *p, struct run_price *out) {
    const struct machine *m = run->executable;
    const struct compilation *c = &m->compilation;
    struct pricing w = {.p = p, .run = run};
    struct step_shape shape = {.threads = run_threads(run)};
    tri_status status = TRI_OK;
    *out = (struct run_price){0};
    shape.pre = units_of_program(&w, &m->pre);
    shape.step = units_of_program(&w, &m->step);
    for (int k = 0; k < 2; k++)
        if ((k ? c->lane : c->count)[0]) add_lanes(&w, m, k, &shape.lanes[k]);
    if (w.failed) status = base_no_memory("the price of a step");
    out->units = (int)w.seen.n;
    out->known = w.known;
    if (!status && out->known == out->units) status = step_price(&shape, &out->step);
    prices_free(&w.seen);
    arena_free(&w.arena);
    return status;
}
