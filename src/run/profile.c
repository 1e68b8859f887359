/* SPDX-License-Identifier: Apache-2.0 */
#include "run/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "base/host.h"
#include "crew/ring.h"
#include "data/data.h"
#include "machine/rate.h"
#include "run/items.h"
#include "run/loader.h"

#define WARM_SECONDS 0.5
#define LEAST_STEPS 10
#define UNITS_SHOWN 30

/* ---- steps ---- */

static bool one_step(tri_run *run, struct pace *p) {
    double begin = base_seconds();
    if (!tri_step(run)) return false;
    double took = base_seconds() - begin;
    int64_t done = tri_step_number(run);
    if (done == 1) p->start = host_age();
    if (done <= 2) p->step[done - 1] = took;
    if (!ARRAY_GROW(p->second, p->n, p->capacity)) {
        run_fail(run, base_no_memory("the times of steps"));
        return false;
    }
    p->second[p->n++] = took;
    p->total += took;
    profile_add(run);
    return true;
}

void pace_measure(tri_run *run, size_t steps, double seconds, bool profile, struct pace *p) {
    *p = (struct pace){0};
    while ((p->n < PACE_WARM_STEPS || (!steps && p->total < WARM_SECONDS)) && one_step(run, p))
        continue;
    p->n = 0;
    p->total = 0;
    if (profile && run_fail(run, profile_begin(run))) return;
    while (steps ? p->n < steps : p->n < LEAST_STEPS || p->total < seconds)
        if (!one_step(run, p)) break;
}

double pace_quantile(double *value, size_t n, double q) {
    qsort(value, n, sizeof *value, base_by_size);
    double at = q * (double)(n - 1);
    size_t low = (size_t)at, high = low + 1 < n ? low + 1 : low;
    double part = at - (double)low;
    return value[low] * (1 - part) + value[high] * part;
}

/* ---- arithmetic and bytes ---- */

static bool is_narrow(const tri_node *n) {
    return n->n_in && (n->in[0]->spec.type == TRI_BF16 || n->in[0]->spec.type == TRI_F16);
}

struct work profile_work(const struct program *p, size_t i) {
    const struct unit *u = p->item[i].unit;
    struct work w = {0};
    for (int k = 0; k < u->n; k++) {
        const tri_node *n = u->node[k];
        double flops = n->entry->op->flops ? n->entry->op->flops(n) : 0;
        w.flops += flops;
        if (is_narrow(n)) w.narrow += flops;
    }
    if (p->item[i].by_thread->kernel.alias) return w;
    for (int k = 0; k < u->n_in; k++)
        if (!unit_shape_only(u, k)) w.bytes += (double)base_spec_bytes(&u->in[k]->spec);
    for (int k = 0; k < u->n_out; k++) w.bytes += (double)base_spec_bytes(&u->out[k]->spec);
    return w;
}

static void add(struct work *to, const struct work *w, double times) {
    to->flops += w->flops * times;
    to->narrow += w->narrow * times;
    to->bytes += w->bytes * times;
}

static void add_program(struct machine *m, const tri_graph *g, int64_t times, struct work *to) {
    for (int i = 0; g && machine_program(m, i); i++) {
        const struct program *p = machine_program(m, i);
        if (p->g != g) continue;
        for (size_t k = 0; k < p->n_items; k++) {
            struct work w = profile_work(p, k);
            add(to, &w, (double)times);
        }
        return;
    }
}

struct work profile_step(struct machine *m) {
    const struct compilation *c = &m->compilation;
    struct work w = {0};
    add_program(m, c->pre, 1, &w);
    add_program(m, c->step, 1, &w);
    int64_t lanes[2] = {0};
    for (int64_t i = 0; i < m->lanes; i++)
        lanes[lane_samples(m->batch, m->lanes, i) == c->samples[0] ? 0 : 1]++;
    for (int k = 0; k < c->n_sizes; k++) {
        add_program(m, c->count[k], lanes[k], &w);
        add_program(m, c->lane[k], lanes[k], &w);
    }
    return w;
}

/* ---- time ---- */

struct profile_row {
    const char *what; /* operators, "conv2d" or "conv2d+relu"; for a unit also name and shapes */
    int64_t calls;
    double seconds;   /* of all calls, summed over the threads */
    struct work work; /* of all calls */
};

/* What is recorded of a run. */
struct profile_times {
    struct ring **ring; /* by thread */
    int threads, items;
    struct {
        int64_t ns, calls;
    } *item;
    int64_t lost;
};

struct profile {
    struct profile_row *row; /* the longest time first */
    size_t n, capacity;
    struct arena arena;
};

#define RECORDED 65536 /* spans of a thread in a step */

static tri_status make_times(tri_run *run, struct profile_times *t) {
    t->threads = run->own_time.threads;
    t->items = items_number(run);
    t->ring = calloc((size_t)t->threads, sizeof *t->ring);
    t->item = calloc((size_t)t->items + 1, sizeof *t->item);
    if (!t->ring || !t->item) return base_no_memory("the times of kernels");
    for (int i = 0; i < t->threads; i++) {
        t->ring[i] = aligned_alloc(_Alignof(struct ring), ring_bytes(RECORDED));
        if (!t->ring[i]) return base_no_memory("the times of kernels");
        ring_make(t->ring[i], RECORDED);
    }
    return TRI_OK;
}

tri_status profile_begin(tri_run *run) {
    struct own_time *o = &run->own_time;
    if (!o->spender)
        return base_fail(TRI_FAILED, "kernels cannot be timed beside another run of this process");
    run->times = calloc(1, sizeof *run->times);
    tri_status status = run->times ? make_times(run, run->times) : base_no_memory("times");
    for (int i = 0; i < o->threads && !status; i++) o->spender[i].ring = run->times->ring[i];
    own_time_apart(o); /* from now on each step is counted */
    if (!status) atomic_store(&spend_records, true);
    return status;
}

void profile_add(tri_run *run) {
    struct profile_times *t = run->times;
    for (int i = 0; t && i < t->threads; i++) {
        struct span s;
        while (ring_take(t->ring[i], &s)) {
            if (s.kind != SPAN_OPERATOR || s.item < 0 || s.item >= t->items) continue;
            t->item[s.item].ns += s.end - s.begin;
            t->item[s.item].calls += s.whom != SPAN_NOBODY;
        }
        t->lost = (int64_t)atomic_load(&t->ring[i]->dropped);
    }
}

double profile_seconds(const tri_run *run, int item) {
    return 1e-9 * (double)run->times->item[item].ns;
}

int64_t profile_calls(const tri_run *run, int item) { return run->times->item[item].calls; }

int64_t profile_lost(const tri_run *run) { return run->times->lost; }

void profile_end(tri_run *run) {
    struct profile_times *t = run->times;
    if (!t) return;
    atomic_store(&spend_records, false);
    for (int i = 0; i < t->threads; i++) {
        if (t->ring) free(t->ring[i]);
        if (run->own_time.spender) run->own_time.spender[i].ring = NULL;
    }
    free(t->ring);
    free(t->item);
    free(t);
    run->times = NULL;
}

static void add_spec(struct text *t, const tri_tensor *x) {
    char spec[SPEC_TEXT];
    text_add(t, " %s", base_spec_text(&x->spec, spec));
    if (x->block) text_add(t, "/%d", x->block);
}

/* Null if there is no memory. */
static const char *name_of(struct profile *to, const struct unit *u, bool by_unit, bool sums) {
    struct text t = {0};
    if (sums) text_add(&t, "sums of lanes: ");
    for (int k = 0; k < u->n; k++)
        text_add(&t, "%s%s", k ? "+" : "", u->node[k]->entry->op->name);
    if (by_unit) {
        text_add(&t, " %s:", u->node[u->n - 1]->name);
        for (int k = 0; k < u->n_in; k++) add_spec(&t, u->in[k]);
        text_add(&t, " ->");
        for (int k = 0; k < u->n_out; k++) add_spec(&t, u->out[k]);
    }
    const char *name = t.failed ? NULL : arena_copy(&to->arena, t.data);
    text_free(&t);
    return name;
}

static struct profile_row *row_of(struct profile *to, const char *what) {
    for (size_t i = 0; what && i < to->n; i++)
        if (!strcmp(to->row[i].what, what)) return &to->row[i];
    if (!what || !ARRAY_GROW(to->row, to->n, to->capacity)) return NULL;
    to->row[to->n] = (struct profile_row){.what = what};
    return &to->row[to->n++];
}

static bool gather(struct profile *to, const tri_run *run, bool by_unit) {
    struct item_at at;
    for (int k = 0; k < run->times->items && items_find(run, k, &at); k++) {
        const int64_t calls = run->times->item[k].calls;
        if (!calls && !run->times->item[k].ns) continue;
        const char *name = name_of(to, at.p->item[at.i].unit, by_unit, at.sums);
        struct profile_row *row = row_of(to, name);
        if (!row) return false;
        struct work w = profile_work(at.p, at.i);
        add(&row->work, &w, (double)calls);
        row->seconds += profile_seconds(run, k);
        row->calls += calls;
    }
    return true;
}

static int longest_first(const void *a, const void *b) {
    const struct profile_row *x = a, *y = b;
    if (x->seconds != y->seconds) return x->seconds < y->seconds ? 1 : -1;
    return strcmp(x->what, y->what);
}

static tri_status make(const tri_run *run, bool by_unit, struct profile *out) {
    if (!gather(out, run, by_unit)) return base_no_memory("the times of kernels");
    qsort(out->row, out->n, sizeof *out->row, longest_first);
    return TRI_OK;
}

#define DATA_SECONDS 0.1

/* Measures how many seconds reading the samples of a step takes; 0 if there is no data, or it
 * cannot be read again. */
static tri_status measure_data(tri_run *run, double *seconds) {
    int64_t n = 0;
    double begin = base_seconds(), now = begin;
    tri_status status = TRI_OK;
    if (run->data && !run->data->sequential)
        for (; now < begin + DATA_SECONDS && !status; n++, now = base_seconds())
            status = loader_read(run->loader, run->done + 1);
    *seconds = n ? (now - begin) / (double)n : 0;
    return status;
}

tri_status profile_ideal(const tri_run *run, const struct work *w, double *seconds) {
    double part[] = {w->flops - w->narrow, w->narrow}, flops;
    tri_status status = TRI_OK;
    *seconds = 0;
    for (int i = 0; i < 2 && !status; i++) {
        if (!(part[i] > 0)) continue;
        status = rate_highest(run->dev, i ? TRI_BF16 : TRI_F32, run_threads(run), &flops);
        if (!status) *seconds += part[i] / flops;
    }
    return status;
}

/* steps: for means per step; total: the time of all threads. */
static void add_row(struct text *cells, double steps, double total, const struct profile_row *r) {
    text_add(cells, "%.6g\t%.3f\t%.1f\t", (double)r->calls / steps, 1e3 * r->seconds / steps,
             100 * r->seconds / total);
    text_add(cells, r->work.flops > 0 ? "%.1f\t" : "\t", r->work.flops / r->seconds * 1e-9);
    text_add(cells, r->work.bytes > 0 ? "%.1f\t" : "\t", r->work.bytes / r->seconds * 1e-9);
    text_add(cells, "%s\n", r->what);
}

tri_status profile_describe(tri_run *run, bool by_unit, const struct pace *pace, struct text *out) {
    const double steps = (double)pace->n, total = pace->total * run_threads(run);
    struct profile_row data = {.what = "(data)"}, others = {.what = "all others"};
    struct profile_row rest = {
        .what = run_threads(run) > 1 ? "(between kernels, waiting)" : "(between kernels)",
        .seconds = total};
    struct profile p = {0};
    struct text cells = {0};
    tri_status status = measure_data(run, &data.seconds);
    if (!status) status = make(run, by_unit, &p);
    text_add(&cells, "calls\tms\t%%\tGFLOP/s\tGB/s\t%s\n", by_unit ? "node" : "operator");
    for (size_t i = 0; i < p.n && !status; i++) {
        rest.seconds -= p.row[i].seconds;
        if (!by_unit || i < UNITS_SHOWN) {
            add_row(&cells, steps, total, &p.row[i]);
            continue;
        }
        others.calls += p.row[i].calls;
        others.seconds += p.row[i].seconds;
    }
    data.seconds *= steps;
    rest.seconds -= data.seconds;
    if (others.calls) add_row(&cells, steps, total, &others);
    add_row(&cells, steps, total, &data);
    add_row(&cells, steps, total, &rest);
    if (!status) text_add(out, "\n"), columns_add(out, "  rrrrrl", &cells);
    text_free(&cells);
    arena_free(&p.arena);
    free(p.row);
    return status;
}
