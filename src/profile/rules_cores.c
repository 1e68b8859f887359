/* SPDX-License-Identifier: Apache-2.0
 * Rules about workers: who is slow, has no core, or has nothing to do. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "observe/log.h"
#include "profile/rules.h"

/* ---- slow workers, and why ---- */

static double lanes_of(const struct figures *f) {
    double lanes = 0;
    for (size_t i = 0; i < f->n; i++) lanes += f->worker[i].lanes;
    return lanes;
}

static double median_lane(const struct figures *f) {
    double usual = 0;
    for (size_t i = 0; i < f->n; i++) { /* the lane than which half of them are shorter */
        size_t shorter = 0, same = 0, all = 0;
        for (size_t k = 0; k < f->n; k++) {
            all += f->worker[k].lane > 0;
            shorter += f->worker[k].lane > 0 && f->worker[k].lane < f->worker[i].lane;
            same += f->worker[k].lane == f->worker[i].lane;
        }
        if (f->worker[i].lane > 0 && shorter <= (all - 1) / 2 && shorter + same > (all - 1) / 2)
            usual = f->worker[i].lane;
    }
    return usual;
}

/* What a step would gain if no lane took longer than the median: time of computing, and others'
 * waits for lanes. */
static double slow_cost(const struct figures *f, double usual) {
    double cost = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct figures_worker *w = &f->worker[i];
        const bool slow = w->lane > thresholds.slow_worker * usual;
        cost += slow ? w->spent[SPENT_COMPUTE] * (1 - usual / w->lane)
                     : w->spent[SPENT_WAIT_LANES];
    }
    return cost / (double)f->n;
}

bool rule_slow_worker(const struct figures *f, struct finding *found) {
    const double usual = median_lane(f);
    const struct figures_worker *worst = NULL;
    size_t slow = 0;
    double others = 0;
    if (f->divided || lanes_of(f) < thresholds.least_lanes) return false;
    for (size_t i = 0; i < f->n && usual > 0; i++) {
        const struct figures_worker *w = &f->worker[i];
        if (w->lane <= thresholds.slow_worker * usual) {
            others += w->spent[SPENT_WAIT_LANES];
            continue;
        }
        slow++;
        if (!worst || w->lane > worst->lane) worst = w;
    }
    if (!worst) return false;
    text_add(&found->evidence, "%c%s computes %s slower than the median", toupper(*worst->name),
             worst->name + 1, SHARE(worst->lane / usual - 1));
    if (worst->slow_since > 1)
        text_add(&found->evidence, " since step %s", NUMBER((double)worst->slow_since));
    text_add(&found->evidence, ": %s a lane instead of %s.", TIME(worst->lane), TIME(usual));
    if (slow > 1) text_add(&found->evidence, " %zu workers are slow in all.", slow);
    text_add(&found->evidence, " The others wait for lanes %s of their time.",
             SHARE(others / (double)(f->n - slow)));
    found->cost = slow_cost(f, usual);
    const bool no_core = worst->no_core > thresholds.no_core;
    const struct figures_host *h = &f->host[worst->host];
    if (!no_core && h->throttled_periods <= thresholds.throttled_periods)
        found->effect_of = "lost-lanes not-worth-it ";
    text_add(&found->remedy, "Compare its core with the others' (trireme top); if it has had "
             "enough of it, the core itself is slower: leave it out (taskset -c), or use fewer "
             "workers.");
    return true;
}

/* When this step began, or one soon after it. */
static double time_of_step(const struct figures *f, int64_t step) {
    size_t i = 0;
    while (i < f->n_frames && f->frame[i].step < step) i++;
    return i < f->n_frames ? f->frame[i].end - f->frame[i].covers : 0;
}

/* Who ran on the worker's core, as the agent saw it last: in the recent part of the run, or when it
 * began to have none, as the agent says it once. */
static const struct figures_event *rival_of(const struct figures *f,
                                            const struct figures_worker *w) {
    const struct figures_event *last = NULL;
    const int64_t since = w->no_core_since;
    const double time = time_of_step(f, since > 0 && since < f->recent ? since : f->recent);
    for (size_t i = 0; i < f->n_events; i++) {
        const struct figures_event *e = &f->event[i];
        if (!strcmp(e->name, "shared-core") && e->worker == w->place && e->host == w->host &&
            e->time >= time)
            last = e;
    }
    return last;
}

/* Of a text as "...; python3, pid 71, ran for 0.9 s of the last second on its core, 1". */
static void add_rival(const struct figures *f, const struct figures_worker *w, bool all,
                      struct finding *found) {
    const struct figures_event *e = rival_of(f, w);
    const char *who = e ? strstr(e->text, "; ") : NULL,
               *ran = who ? strstr(who, " ran for ") : NULL;
    const double least = fmax(thresholds.rival, thresholds.explains * w->no_core);
    const bool little = ran && base_number(ran + 9, NULL) < least;
    if (who && !little) {
        char time[LOG_TIME];
        log_time((int64_t)(1e9 * fmin(e->time, 8e9)), time);
        text_add(&found->evidence, " At %s the agent saw: %s.", time, who + 2);
    }
    if (e && e->pid > 0 && !little)
        text_add(&found->remedy, "End the process on its core (pid %d), or ", e->pid);
    else text_add(&found->remedy, "End what else runs on %s, or ", all ? "the cores" : "its core");
    text_add(&found->remedy, "%suse fewer %s.", all ? "" : "leave the core out (taskset -c), or ",
             f->n > 1 ? "workers" : "threads");
}

static bool stolen(const struct figures *f, struct finding *found) {
    const struct figures_host *worst = &f->host[0];
    for (size_t i = 1; i < f->n_hosts; i++)
        if (f->host[i].stolen > worst->stolen) worst = &f->host[i];
    if (worst->stolen <= thresholds.stolen) return false;
    text_add(&found->evidence, "%sThe hypervisor of %s gave others %s of the cores' time; programs "
             "on this machine have no part in it.", found->evidence.size ? " " : "",
             *worst->name ? worst->name : "this machine", SHARE(worst->stolen));
    text_add(&found->remedy, "%sUse a machine whose cores are its own.",
             found->remedy.size ? " " : "");
    found->cost = fmax(found->cost, worst->stolen);
    return true;
}

bool rule_shared_core(const struct figures *f, struct finding *found) {
    const struct figures_worker *worst = NULL;
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct figures_worker *w = &f->worker[i];
        n += w->no_core > thresholds.no_core;
        if (w->no_core > thresholds.no_core && (!worst || w->no_core > worst->no_core)) worst = w;
    }
    if (!worst) return stolen(f, found);
    text_add(&found->evidence, "The core of %s is shared: for %s of each step, %s of its time, it "
             "was ready to run and had none.", f->n > 1 ? worst->name : "the process",
             TIME(worst->no_core * f->step), SHARE(worst->no_core));
    if (n > 1) text_add(&found->evidence, " So are those of %zu workers in all.", n);
    found->cost = worst->no_core;
    add_rival(f, worst, n == f->n, found);
    stolen(f, found);
    return true;
}

bool rule_throttled(const struct figures *f, struct finding *found) {
    const struct figures_host *worst = &f->host[0];
    for (size_t i = 1; i < f->n_hosts; i++)
        if (f->host[i].throttled_periods > worst->throttled_periods) worst = &f->host[i];
    if (worst->throttled_periods <= thresholds.throttled_periods) return false;
    const double threads = fmax(worst->workers, 1) * f->threads;
    found->cost = fmin(1, worst->throttled * worst->cores / threads);
    text_add(&found->evidence, "The quota of its control group stopped the run%s%s in %s of the "
             "periods, for %s of its threads' time.", *worst->name ? " on " : "", worst->name,
             SHARE(worst->throttled_periods), SHARE(found->cost));
    text_add(&found->remedy, "Raise the quota (cpu.max, docker --cpus, a pod's limit), or use as "
             "many workers as it allows.");
    return true;
}

bool rule_crowded(const struct figures *f, struct finding *found) {
    for (size_t i = 0; i < f->n_hosts; i++) {
        const struct figures_host *h = &f->host[i];
        const double threads = h->workers * f->threads;
        if (!f->last || !(h->cores > 0) || threads <= thresholds.crowded * h->cores) continue;
        double none = 0, n = 0;
        for (size_t k = 0; k < f->n; k++)
            if (f->worker[k].host == (int)i) none += f->worker[k].no_core, n++;
        const bool unasked = f->wall < thresholds.short_run;
        found->cost = none > 0 ? none / n : unasked ? 1 - h->cores / threads : 0;
        text_add(&found->evidence, "%g worker(s) of %g thread(s) share %g core(s)%s%s: their "
                 "threads %s no core for %s of their time.", h->workers, f->threads, h->cores,
                 *h->name ? " of " : "", h->name, none > 0 ? "have" : "would have",
                 SHARE(found->cost));
        text_add(&found->remedy, "Use -n %d", (int)fmax(1, h->cores / f->threads));
        if (f->threads > 1)
            text_add(&found->remedy, ", or --threads %d", (int)fmax(1, h->cores / h->workers));
        text_add(&found->remedy, ".");
        return true;
    }
    return false;
}

/* ---- drift ---- */

/* The event nearest to this time. */
static const struct figures_event *event_at(const struct figures *f, double time) {
    const struct figures_event *near = NULL;
    for (size_t i = 0; i < f->n_events; i++) {
        const struct figures_event *e = &f->event[i];
        const double away = fabs(e->time - time);
        if (strcmp(e->name, "slow-step") && away < thresholds.near * f->wall &&
            (!near || away < fabs(near->time - time)))
            near = e;
    }
    return near;
}

/* The kind of time of which a step has most more than before, and how much; seconds. */
static double what_grew(const struct figures *f, int *kind) {
    double before[SPENTS] = {0}, after[SPENTS] = {0}, steps[2] = {0}, most = 0;
    for (size_t i = 0; i < f->n_frames; i++) {
        const struct figures_frame *x = &f->frame[i];
        const bool late = x->step >= f->slower_since;
        steps[late] += x->steps;
        for (int k = 0; k < SPENTS; k++)
            (late ? after : before)[k] += x->covers * (double)x->beside[k];
    }
    for (int k = 0; k < SPENTS && steps[0] > 0 && steps[1] > 0; k++) {
        const double grew = after[k] / steps[1] - before[k] / steps[0];
        if (k != SPENT_START && grew > most) most = grew, *kind = k;
    }
    return most;
}

bool rule_drift(const struct figures *f, struct finding *found) {
    const double best = f->tenth[f->best], last = f->tenth[FIGURES_TENTHS - 1];
    int kind = 0;
    if (!(best > 0) || !f->slower_since || last <= (1 + thresholds.drift) * best) return false;
    text_add(&found->evidence, "A step takes %s, %s longer than in the run's best tenth, since "
             "step %s.", TIME(last), SHARE(last / best - 1), NUMBER((double)f->slower_since));
    if (what_grew(f, &kind) > thresholds.grew * (last - best))
        text_add(&found->evidence, " What grew most: a worker %.*s.",
                 (int)strcspn(spent_rows[kind].what, ";"), spent_rows[kind].what);
    const struct figures_event *e = event_at(f, f->slower_time);
    if (e) {
        text_add(&found->evidence, " Near it, the log has: %s", e->name);
        if (e->worker >= 0) text_add(&found->evidence, " of worker %d", e->worker);
        text_add(&found->evidence, "%s%s.", *e->text ? ", " : "", e->text);
    }
    found->cost = 1 - best / last;
    text_add(&found->remedy, e ? "See what this event changed (trireme log DIR --since %lld)."
                               : "See what changed on the machine then: other processes, "
                                 "temperature, the data's place (trireme log DIR --since %lld).",
             (long long)f->slower_since);
    return true;
}

/* ---- lanes ---- */

/* The nearest count of lanes that workers and batch can be divided by; 0: there is none. */
static int64_t next_lanes(int64_t lanes, int64_t workers, int64_t batch) {
    for (int64_t away = 1; away < batch && lanes <= RULES_LANES && away <= RULES_LANES; away++)
        for (int64_t v = lanes + away; v >= lanes - away; v -= 2 * away)
            if (v > 0 && v <= batch && v % workers == 0 && batch % v == 0) return v;
    return 0;
}

bool rule_uneven_lanes(const struct figures *f, struct finding *found) {
    /* Those that never have a lane are not among the figures. */
    const int64_t lanes = f->run->lanes, workers = f->run->workers,
                  n = (int64_t)f->n > workers ? (int64_t)f->n : workers;
    const double idle = lanes < n ? 1 - (double)lanes / (double)n : 0,
                 waits = fmax(f->spent[SPENT_WAIT_LANES], idle);
    if (f->divided || lanes <= 0 || n < 2 || lanes % n == 0 || waits <= thresholds.uneven_lanes)
        return false;
    text_add(&found->evidence, "%lld lane(s) for %lld workers: ", (long long)lanes, (long long)n);
    found->effect_of = "not-worth-it ";
    if (idle > 0)
        text_add(&found->evidence, "%lld worker(s) %s nothing to do.",
                 (long long)(n - lanes), n - lanes == 1 ? "has" : "have");
    else
        text_add(&found->evidence, "in each step, some have a lane less and wait for those of the "
                 "others, %s of the mean worker's time.", SHARE(waits));
    const int64_t next = next_lanes(lanes, n, f->run->batch);
    found->cost = waits;
    if (next)
        text_add(&found->remedy, "Use --lanes %lld (which changes the result's bits), or -n %lld.",
                 (long long)next, (long long)(lanes < n ? lanes : n - 1));
    else
        text_add(&found->remedy, "Use a batch that %lld workers divide evenly.", (long long)n);
    return true;
}

/* The share of a step that is beside lanes, and holds all workers up. */
static double beside(const struct figures *f) {
    double most = 0;
    for (size_t i = 0; i < f->n; i++) {
        const double *s = f->worker[i].spent;
        most = fmax(most, figures_group(s, SPENT_BESIDE) + s[SPENT_WAIT_SAVE] +
                              s[SPENT_WAIT_PAUSE] + s[SPENT_WAIT_SAMPLES]);
    }
    return fmin(most, 1);
}

bool rule_not_worth_it(const struct figures *f, struct finding *found) {
    double compute = 0, all = 0;
    const double apart = beside(f), step = 1 - apart;
    const bool process = f->n == 1; /* what is true of workers is true of its threads */
    const double each = process ? f->threads : 1, n = (double)f->n * each;
    if (n < 2 || f->divided || !(f->step > 0) || !(step > 0)) return false;
    for (size_t i = 0; i < f->n; i++) {
        const double *s = f->worker[i].spent, own = each * figures_group(s, SPENT_COMPUTES);
        compute += own;
        all += own + each * (s[SPENT_SUM] + s[SPENT_UPDATE] + s[SPENT_READ]);
    }
    if (!(compute > 0) || compute >= thresholds.not_worth_it * step || all >= step) return false;
    text_add(&found->evidence, "All %.0f %s together compute for %s of a step: they mostly wait "
             "for each other, %s of their time.", n, process ? "threads" : "workers",
             SHARE(compute / step), SHARE(figures_group(f->spent, SPENT_WAITS)));
    const double alone = (all + apart) * f->step;
    found->cost = step - all;
    text_add(&found->remedy, "Use %s 1: a step would take about %s instead of %s",
             process ? "--threads" : "-n", TIME(alone), TIME(f->step));
    if (f->run->batch > 0)
        text_add(&found->remedy, ", %s samples/s", NUMBER((double)f->run->batch / alone));
    text_add(&found->remedy, ". A larger batch would be worth more %s.",
             process ? "threads" : "workers");
    return true;
}

bool rule_lost_lanes(const struct figures *f, struct finding *found) {
    const double lanes = lanes_of(f);
    double lost = 0;
    const struct figures_worker *worst = f->worker;
    for (size_t i = 0; i < f->n; i++) {
        lost += f->worker[i].lost;
        if (f->worker[i].lost > worst->lost) worst = &f->worker[i];
    }
    if (lanes < thresholds.least_lanes || lost <= thresholds.lost_lanes * lanes) return false;
    text_add(&found->evidence, "%s of %s lanes were computed twice, as a worker that had begun "
             "them was late: most of them, %s, of %s.", NUMBER(lost), NUMBER(lanes),
             NUMBER(worst->lost), worst->name);
    found->cost = f->whole[SPENT_COMPUTE] * lost / lanes;
    text_add(&found->remedy, "See why %s stops: processes on its core, swapping, a suspended "
             "machine.", worst->name);
    return true;
}
