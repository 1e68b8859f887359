/* SPDX-License-Identifier: Apache-2.0
 * How long steps take over a run, and which of its time is useful. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/figures.h"
#include "profile/rules.h"

/* ---- steps ---- */

/* What a step takes in each frame. A step that takes several frames has the time of all. */
static void find_steps(struct figures *f) {
    double open = 0;
    for (size_t i = 0; i < f->n_frames; i++) {
        struct figures_frame *frame = &f->frame[i];
        open += frame->covers * (1 - frame->before);
        frame->took = frame->steps > 0 ? open / frame->steps : 0;
        if (frame->steps > 0) open = 0;
        if (frame->step > f->last) f->last = frame->step;
    }
}

/* The median step of frames from `first` up to but not `end`; 0: there are less than `least`. */
static double median_step(const struct figures *f, size_t first, size_t end, size_t least) {
    double *took = malloc((end - first + 1) * sizeof *took);
    size_t n = 0;
    for (size_t i = first; took && i < end; i++)
        if (f->frame[i].took > 0) took[n++] = f->frame[i].took;
    if (took) qsort(took, n, sizeof *took, base_by_size);
    const double median = took && n >= least ? took[n / 2] : 0;
    free(took);
    return median;
}

/* The first frame that ends after this part of the run's time. */
static size_t frame_at(const struct figures *f, double part) {
    double all = 0, covers = 0;
    size_t i = 0;
    for (size_t k = 0; k < f->n_frames; k++) all += f->frame[k].covers;
    while (i < f->n_frames && covers + f->frame[i].covers <= part * all * (1 + 1e-9))
        covers += f->frame[i++].covers;
    return i;
}

#define FRAMES_LEAST 4 /* of a tenth */
#define TOGETHER 8     /* frames whose median is compared */

static void find_tenths(struct figures *f) {
    for (int i = 0; i < FIGURES_TENTHS; i++) {
        f->tenth[i] = median_step(f, frame_at(f, i / 10.0), frame_at(f, (i + 1) / 10.0),
                                  FRAMES_LEAST);
        if (f->tenth[i] > 0 && (f->tenth[f->best] <= 0 || f->tenth[i] < f->tenth[f->best]))
            f->best = i;
    }
    const double best = f->tenth[f->best];
    size_t i = f->n_frames;
    while (best > 0 && i >= TOGETHER &&
           median_step(f, i - TOGETHER, i, 1) > (1 + thresholds.drift) * best) {
        const struct figures_frame *frame = &f->frame[i -= TOGETHER];
        f->slower_since = frame->step - (int64_t)frame->steps + 1;
        f->slower_time = frame->end - frame->covers;
    }
}

/* ---- useful time ---- */

static const struct {
    enum spent kind;
    enum figures_loss loss;
} causes[] = {
    {SPENT_SAVE, LOSS_SAVES},         {SPENT_WAIT_SAVE, LOSS_SAVES},
    {SPENT_EVALUATE, LOSS_EVALUATIONS}, {SPENT_CALLBACK, LOSS_CALLBACKS},
    {SPENT_WAIT_PAUSE, LOSS_PAUSES},
};

/* What is too long of a frame is what was done beside steps, and then slow. */
static void lose(struct figures *f, const struct figures_frame *frame, double seconds) {
    for (size_t i = 0; i < COUNT(causes); i++) {
        const double part = fmin(seconds, frame->covers * (double)frame->beside[causes[i].kind]);
        f->lost[causes[i].loss] += part;
        seconds -= part;
    }
    f->lost[LOSS_SLOW] += seconds;
}

/* A frame's time that is useful, if its steps may take as long as `most`. */
static double useful_time(const struct figures_frame *frame, double time, double most) {
    const double slowest = frame->slowest > most ? frame->slowest - most : 0;
    return fmax(0, fmin(time - slowest, most * frame->steps));
}

#define WINDOW 64 /* frames of the running median */

static void sum_frames(struct figures *f) {
    double usual = median_step(f, 0, f->n_frames < WINDOW ? f->n_frames : WINDOW, 1), open = 0;
    int64_t done = 0;
    for (size_t i = 0; i < f->n_frames; i++) {
        const struct figures_frame *frame = &f->frame[i];
        if (i >= WINDOW && i % (WINDOW / 4) == 0)
            usual = fmax(median_step(f, i - WINDOW, i, 1), 1e-12);
        const double apart = frame->covers * frame->before;
        f->lost[LOSS_STARTS] += apart;
        open += frame->covers - apart;
        if (frame->steps <= 0) continue;
        const double useful = useful_time(frame, open, thresholds.useful * usual);
        const double again = fmin(frame->steps, fmax(0, (double)done - (double)frame->step +
                                                            frame->steps)) / frame->steps;
        f->useful += useful * (1 - again);
        f->lost[LOSS_REPEATED] += useful * again;
        lose(f, frame, open - useful);
        if (frame->step > done) done = frame->step;
        open = 0;
    }
    if (f->n_frames && open > 0) lose(f, &f->frame[f->n_frames - 1], open);
}

/* ---- faults ---- */

static int by_begin(const void *a, const void *b) {
    const double x = ((const struct figures_interval *)a)->begin,
                 y = ((const struct figures_interval *)b)->begin;
    return (x > y) - (x < y);
}

double figures_union(struct figures_interval *all, size_t n) {
    double sum = 0, end = -INFINITY;
    if (n) qsort(all, n, sizeof *all, by_begin);
    for (size_t i = 0; i < n; i++) {
        sum += fmax(0, all[i].end - fmax(end, all[i].begin));
        end = fmax(end, all[i].end);
    }
    return sum;
}

double figures_sends(const struct profile *p, int host, double *bytes) {
    const double steps = p->host[host].n_steps;
    struct figures_interval *all = malloc((p->spans + 1) * sizeof *all);
    size_t n = 0;
    *bytes = 0;
    for (int i = 0; i < p->n_threads && all; i++)
        for (size_t k = 0; p->thread[i].host == host && k < p->thread[i].n; k++) {
            const struct span *s = &p->thread[i].span[k];
            const struct profile_item *item = profile_item_of(p, &p->thread[i], s);
            if (s->kind != SPAN_TRANSFER || !span_is_sent(s)) continue;
            all[n++] = (struct figures_interval){1e-9 * (double)s->begin, 1e-9 * (double)s->end};
            if (item && steps > 0)
                *bytes += span_wire_part(s) / span_chunks(s) * item->wire / steps;
        }
    const double takes = n && steps > 0 ? figures_union(all, n) / steps : 0;
    free(all);
    return takes;
}

static size_t add_faults(const struct figures *f, bool stalls, struct figures_interval *to) {
    size_t n = 0;
    for (size_t h = 0; h < f->n_hosts; h++) {
        const struct run_read *r = &f->host[h].run;
        for (size_t i = 0; i < r->n_faults; i++) {
            const struct run_fault *x = &r->fault[i];
            const bool stall = !strcmp(x->kind, "stall");
            if (!(x->cost > 0) || !(x->time > 0) || stall > stalls) continue;
            to[n++] = stall ? (struct figures_interval){x->time - x->cost, x->time}
                            : (struct figures_interval){x->time, x->time + x->cost};
        }
    }
    for (size_t i = 0; i < f->n_events && !f->has_run; i++) {
        const struct figures_event *e = &f->event[i];
        if (!strcmp(e->name, "death") && e->cost > 0)
            to[n++] = (struct figures_interval){e->time, e->time + e->cost};
    }
    return n;
}

/* Slow steps are those of faults, as far as these took so long. */
static void find_faults(struct figures *f) {
    size_t most = f->n_events + 1;
    for (size_t h = 0; h < f->n_hosts; h++) most += f->host[h].run.n_faults;
    struct figures_interval *all = malloc(most * sizeof *all);
    if (!all) return;
    const double deaths = figures_union(all, add_faults(f, false, all));
    const double both = figures_union(all, add_faults(f, true, all));
    free(all);
    f->lost[LOSS_DEATHS] = fmin(deaths, f->lost[LOSS_SLOW]);
    f->lost[LOSS_SLOW] -= f->lost[LOSS_DEATHS];
    f->lost[LOSS_STALLS] = fmin(both - deaths, f->lost[LOSS_SLOW]);
    f->lost[LOSS_SLOW] -= f->lost[LOSS_STALLS];
}

/* ---- starts ---- */

/* The last that is known of the entry: a killed one has no end. */
static double end_of(const struct figures *f, size_t i) {
    const struct run_entry *e = &f->run->entry[i];
    const double next = i + 1 < f->run->n_entries ? f->run->entry[i + 1].begin : INFINITY;
    double end = e->begin;
    if (e->end >= e->begin) return e->end;
    for (size_t k = 0; k < f->n_frames; k++)
        if (f->frame[k].end <= next) end = fmax(end, f->frame[k].end);
    return end;
}

/* Entries last longer than their frames by what a start takes before the counters begin. */
static void find_starts(struct figures *f) {
    double covers = 0;
    for (size_t i = 0; i < f->n_frames; i++) covers += f->frame[i].covers;
    for (size_t i = 0; i < f->run->n_entries; i++)
        f->wall += fmax(0, end_of(f, i) - f->run->entry[i].begin);
    if (!(f->wall >= covers)) f->wall = covers;
    f->lost[LOSS_STARTS] += f->wall - covers;
    f->first_start = f->lost[LOSS_STARTS];
    if (f->run->n_entries > 1 && f->n_frames)
        f->first_start = fmax(0, fmin(f->frame[0].end - f->frame[0].covers *
                                                            (1 - f->frame[0].before),
                                      f->run->entry[1].begin) - f->run->entry[0].begin);
}

void figures_time(struct figures *f) {
    find_steps(f);
    find_tenths(f);
    f->step = median_step(f, frame_at(f, 2.0 / 3), f->n_frames, 1);
    if (f->step <= 0) f->step = median_step(f, 0, f->n_frames, 1);
    sum_frames(f);
    find_starts(f);
    find_faults(f);
}
