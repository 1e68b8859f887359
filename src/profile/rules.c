/* SPDX-License-Identifier: Apache-2.0
 * The table of rules, their thresholds, and those rules that are about options of a run, its
 * results and its files. */
#include "profile/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "observe/progress.h"

const struct thresholds thresholds = {
    .note = 0.005, .unexplained = 0.02, .explains = 0.5, .communicates = 0.1, .said = 0.01,
    .change = 0.001, .listed = 0.001, .useful = 1.5, .slow_worker = 1.15, .no_core = 0.1,
    .throttled_periods = 0.05, .stolen = 0.05, .rival = 0.1, .crowded = 1, .short_run = 2,
    .drift = 0.1, .grew = 0.1, .near = 0.1, .samples = 0.05, .uneven_lanes = 0.1,
    .not_worth_it = 1.1,
    .saving = 0.01, .evaluating = 0.1, .callback = 0.05, .auditing = 0.05,
    .lost_lanes = 0.05, .least_lanes = 100, .goodput = 0.98,
    .memory_limit = 0.95, .memory_plan = 0.05, .skipped = 0.05, .link = 0.6, .link_waits = 0.1,
    .bubble = 0.03, .bubble_most = 0.15, .waiting_aim = 0.1, .uneven_part = 2,
    .uneven_stages = 1.2, .seats = 0.03,
    .slow_split = 0.6, .whole_vectors = 16, .low_rate = 0.2, .low_roofline = 0.5,
    .few_samples = 8, .amp_gain = 1.2, .unfused = 0.1,
    .small_sums = 0.05, .small_sums_bytes = 65536, .small_lanes = 0.25, .small_operator = 5e-6,
    .useful_operator = 4, .operator_itself = 1e-6};

/* ---- sentences ---- */

char *rules_time(double seconds, char text[RULES_TEXT]) {
    static const char *const units[] = {"s", "ms", "us", "ns"};
    size_t i = 0;
    if (seconds >= 100) return progress_duration(seconds, text);
    while (i + 1 < COUNT(units) && fabs(seconds) < 0.9995) seconds *= 1000, i++;
    base_format(text, RULES_TEXT, fabs(seconds) < 9.95 ? "%.1f %s" : "%.0f %s", seconds, units[i]);
    return text;
}

char *rules_share(double share, char text[RULES_TEXT]) {
    base_format(text, RULES_TEXT, share < 0.0995 ? "%.2g %%" : "%.0f %%", 100 * share);
    return text;
}

char *rules_count(double count, char text[RULES_TEXT]) {
    char digits[RULES_TEXT / 2 + 8];
    const int n = base_format(digits, sizeof digits, count < 10 ? "%.3g" : "%.0f",
                              fmin(count, 1e15));
    const bool whole = strspn(digits, "0123456789") == (size_t)n;
    char *to = text;
    for (int i = 0; i < n && to < text + RULES_TEXT - 2; i++) {
        if (whole && i && (n - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = 0;
    return text;
}

/* ---- samples ---- */

/* Seconds of one thread that reads a step's samples, of the profile; 0: not known. */
static double time_to_read(const struct profile *p) {
    double ns = 0, steps = 0;
    for (int i = 0; p && i < p->n_threads; i++)
        for (size_t k = 0; k < p->thread[i].n; k++) {
            const struct span *s = &p->thread[i].span[k];
            if (s->kind == SPENT_READ || s->kind == SPAN_PIECE) ns += (double)(s->end - s->begin);
        }
    if (p && p->n_hosts) steps = p->host[0].n_steps;
    return steps > 0 ? 1e-9 * ns / steps : 0;
}

static bool samples(const struct figures *f, struct finding *found) {
    const double waits = f->spent[SPENT_WAIT_SAMPLES], reads = f->spent[SPENT_READ];
    const char *given = figures_option(f, "data-threads");
    const double workers = fmax((double)f->n, 1);
    const double now = given && strcmp(given, "auto") ? atof(given) : 1;
    double read = time_to_read(f->profile);
    const bool waiting = waits > thresholds.samples;
    if (f->old || (!waiting && reads <= thresholds.samples)) return false;
    /* threads that read ahead are busy all the time if others wait for them */
    if (!(read > 0)) read = f->step * workers * (waiting * now + reads * f->threads);
    const double rest = f->step * workers * fmax(1 - waits - reads, 0.01);
    if (waiting)
        text_add(&found->evidence, "Workers wait for samples %s of a step, and read them "
                 "themselves %s", SHARE(waits), SHARE(reads));
    else
        text_add(&found->evidence, "Threads that compute read samples themselves for %s of a step",
                 SHARE(reads));
    text_add(&found->evidence, ": the samples of a step take one thread %s%s.",
             f->profile ? "" : "about ", TIME(read));
    text_add(&found->remedy, "Use --data-threads %.0f, if there are cores for them; or make "
             "samples cheaper to read: trireme pack, a faster disk, less augmentation.",
             fmax(fmin(ceil(read / rest), 64), now + 1));
    found->cost = waits + reads;
    return true;
}

/* ---- what is done beside steps ---- */

/* The most that a worker spent on it, as others wait for that one. */
static double most_of(const struct figures *f, enum spent kind) {
    double most = 0;
    for (size_t i = 0; i < f->n; i++) most = fmax(most, f->worker[i].whole[kind]);
    return most;
}

/* "Use --save-every 40.", so that the cost is half of what is allowed. */
static void advise_every(const struct figures *f, const char *option, double cost, double allowed,
                         struct finding *found) {
    const char *given = figures_option(f, option);
    char *end = NULL;
    const double now = given ? strtod(given, &end) : 0;
    const double part = fmin(cost, 0.99), wanted = allowed / 2;
    if (now >= 1 && !*end)
        text_add(&found->remedy, "Use --%s %.0f.", option,
                 ceil(now * part / (1 - part) * (1 - wanted) / wanted));
    else text_add(&found->remedy, "Do it less often (--%s).", option);
}

/* The state is copied at the end of every run, for its hash. */
static bool saves(const struct figures *f) {
    for (size_t i = 0; i < f->n_events; i++)
        if (!strcmp(f->event[i].name, "checkpoint")) return true;
    return figures_option(f, "ckpt") != NULL;
}

static bool saving(const struct figures *f, struct finding *found) {
    const double copies = most_of(f, SPENT_SAVE), waits = most_of(f, SPENT_WAIT_SAVE);
    found->cost = copies + waits;
    if (found->cost <= thresholds.saving || !saves(f)) return false;
    text_add(&found->evidence, "Checkpoints take %s of the run: %s to copy the state, %s to wait "
             "until the checkpoint before is written.", SHARE(found->cost), SHARE(copies),
             SHARE(waits));
    advise_every(f, figures_option(f, "save-minutes") ? "save-minutes" : "save-every",
                 found->cost, thresholds.saving, found);
    return true;
}

static bool evaluating(const struct figures *f, struct finding *found) {
    found->cost = most_of(f, SPENT_EVALUATE);
    if (found->cost <= thresholds.evaluating) return false;
    text_add(&found->evidence, "Evaluations take %s of the run.", SHARE(found->cost));
    advise_every(f, "eval-every", found->cost, thresholds.evaluating, found);
    return true;
}

static bool callback(const struct figures *f, struct finding *found) {
    found->cost = most_of(f, SPENT_CALLBACK);
    if (found->cost <= thresholds.callback) return false;
    text_add(&found->evidence, "The program's own code between steps (its callback) takes %s of "
             "the run, %s per step, and all workers wait for it.", SHARE(found->cost),
             TIME(found->cost * f->step));
    text_add(&found->remedy, "Do less there, or do it after every %.0f steps.",
             ceil(2 * found->cost / thresholds.callback));
    return true;
}

static bool auditing(const struct figures *f, struct finding *found) {
    const char *given = figures_option(f, "audit");
    found->cost = f->whole[SPENT_AUDIT];
    if (found->cost <= thresholds.auditing) return false;
    const double now = given ? atof(given) : 0;
    text_add(&found->evidence, "Workers compute lanes again to compare them (--audit) for %s of "
             "their time.", SHARE(found->cost));
    if (now > 0)
        text_add(&found->remedy, "Use --audit %.2g.", now * thresholds.auditing / 2 / found->cost);
    else text_add(&found->remedy, "Audit a smaller share of the lanes (--audit).");
    return true;
}

/* ---- goodput ---- */

static const struct {
    const char *name, *rule, *remedy;
} losses[LOSSES] = {
    [LOSS_STARTS] = {"starts", "", "Start less often; runs that are killed start again."},
    [LOSS_DEATHS] = {"deaths of workers", "",
                     "Find out why workers die (trireme log DIR --event death); --spares 1 has "
                     "another one ready."},
    [LOSS_STALLS] = {"stalls", "", "Find out what stalled (trireme log DIR --event stall)."},
    [LOSS_REPEATED] = {"steps done again after a start", "",
                       "Save more often (--save-every), so that less is lost."},
    [LOSS_SAVES] = {"saves", "saving ", "Save less often."},
    [LOSS_EVALUATIONS] = {"evaluations", "evaluating ", "Evaluate less often."},
    [LOSS_CALLBACKS] = {"callbacks", "callback ", "Do less in the callback."},
    [LOSS_PAUSES] = {"pauses", "", "It was paused (trireme ctl)."},
    [LOSS_SLOW] = {"slow steps", "slow-worker shared-core throttled samples drift lost-lanes ",
                   "See what was slow: trireme log DIR --event slow-step."},
};

const char *rules_loss_name(enum figures_loss loss) { return losses[loss].name; }

/* A run's first start is no loss that it could have avoided, so it alone is no finding. */
static bool goodput(const struct figures *f, struct finding *found) {
    const struct run_read *r = f->run;
    double all = f->useful;
    int worst = 0;
    for (int i = 0; i < LOSSES; i++) {
        const double less = i == LOSS_STARTS ? f->first_start : 0;
        all += f->lost[i];
        const double most = f->lost[worst] - (worst == LOSS_STARTS ? f->first_start : 0);
        if (f->lost[i] - less > most) worst = i;
    }
    const double lost = all - f->useful - f->first_start;
    if (!(all > 0) || lost <= (1 - thresholds.goodput) * all) return false;
    text_add(&found->evidence, "%s of the run's %s were useful. Lost:", SHARE(f->useful / all),
             TIME(all));
    const char *before = " ";
    for (int i = 0; i < LOSSES; i++) {
        if (f->lost[i] < thresholds.listed * all) continue;
        text_add(&found->evidence, "%s%s %s", before, TIME(f->lost[i]), losses[i].name);
        before = ", ";
    }
    if (r->n_entries > 1 || r->deaths > 0 || r->stalls > 0)
        text_add(&found->evidence, ". It has %zu start(s), %.0f death(s), %.0f stall(s)",
                 r->n_entries, fmax(0, (double)r->deaths), fmax(0, (double)r->stalls));
    text_add(&found->evidence, ".");
    text_add(&found->remedy, "%s", losses[worst].remedy);
    found->cost = lost / all;
    found->effect_of = losses[worst].rule;
    return true;
}

/* ---- memory ---- */

/* "900M" in bytes; 0: none. */
static double size_of(const char *text) {
    static const char units[] = "KMGT";
    char *end;
    if (!text) return 0;
    double size = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    for (const char *u = units; unit && u <= unit; u++) size *= 1024;
    return size;
}

/* Of all workers of a host. Pages of the store are in the memory of each. */
static double memory_of(const struct figures *f, size_t host) {
    double all = 0, n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->worker[i].host == (int)host) all += f->worker[i].memory, n++;
    return n > 1 ? all - (n - 1) * f->host[host].store : all;
}

static bool memory(const struct figures *f, struct finding *found) {
    const double given = size_of(figures_option(f, "memory-limit"));
    found->cost = NAN;
    for (size_t h = 0; h < f->n_hosts && !found->evidence.size; h++) {
        const struct figures_host *host = &f->host[h];
        const double limit = given > 0 ? given : host->limit, all = memory_of(f, h);
        const double plan = (double)host->run.memory;
        const bool full = limit > 0 && all > thresholds.memory_limit * limit;
        if (!full && !(plan > 0 && all > (1 + thresholds.memory_plan) * plan)) continue;
        text_add(&found->evidence, "The workers%s%s took up to %.0f MiB, %s of the %s of %.0f MiB.",
                 *host->name ? " of " : "", host->name, all / 1048576,
                 SHARE(all / (full ? limit : plan)), full ? "limit" : "plan",
                 (full ? limit : plan) / 1048576);
        text_add(&found->remedy, full ? "Use a smaller batch or more lanes, or recompute "
                                        "activations (trireme memory says what would help); or "
                                        "raise the limit."
                                      : "See what else the program takes: its source, its own "
                                        "operators and callbacks.");
    }
    return found->evidence.size > 0;
}

/* ---- results ---- */

static bool skipped(const struct figures *f, struct finding *found) {
    if (!(f->skipped > thresholds.skipped)) return false;
    text_add(&found->evidence, "%s of the updates were skipped, as they were not finite "
             "(--loss-scale).", SHARE(f->skipped));
    text_add(&found->remedy, "Use a smaller learning rate or --clip-norm; with f16, a smaller "
             "start of the scale (--loss-scale dynamic:start=X).");
    found->cost = f->skipped;
    return true;
}

/* Why the run has failed, as its log says; null: it has not. */
static const char *failure_of(const struct figures *f) {
    const char *text = NULL;
    for (size_t i = 0; i < f->n_events; i++)
        if (!strcmp(f->event[i].name, "failure")) text = f->event[i].text;
    return text;
}

/* With --on-nan stop, no line has such a loss. */
static bool not_finite(const struct figures *f, struct finding *found) {
    const char *failure = failure_of(f);
    if (!f->bad && failure && strstr(failure, "the loss is ")) {
        text_add(&found->evidence, "The run failed at %s.", failure);
        text_add(&found->remedy, "Use a smaller learning rate or --clip-norm, or go on from an "
                 "earlier checkpoint.");
        found->cost = 1;
        return true;
    }
    if (!f->bad) return false;
    text_add(&found->evidence, "The loss is no number in %lld of %lld line(s), first at step %s.",
             (long long)f->bad, (long long)f->lines, NUMBER((double)f->first_bad));
    text_add(&found->remedy, "Use a smaller learning rate or --clip-norm, and look at the step "
             "before (trireme log DIR --since %lld); what follows it has learned nothing.",
             (long long)f->first_bad);
    found->cost = f->last > 0 ? fmin(1, fmax(0, (double)(f->last - f->first_bad + 1)) /
                                            (double)f->last) : 1;
    return true;
}

/* ---- hosts ---- */

static bool hosts_link(const struct figures *f, struct finding *found) {
    double sends = 0, bytes = 0, sent;
    for (int h = 0; f->profile && h < f->profile->n_hosts; h++) {
        const double takes = figures_sends(f->profile, h, &sent);
        if (takes > sends) sends = takes, bytes = sent;
    }
    const double waits = f->spent[SPENT_WAIT_HOSTS];
    const bool busy = f->step > 0 && sends > thresholds.link * f->step;
    if (f->run->n_hosts < 2 || (!busy && waits <= thresholds.link_waits)) return false;
    if (busy)
        text_add(&found->evidence, "The network of a host is busy for %s of a step: it sends %.1f "
                 "MB in %s. ", SHARE(sends / f->step), 1e-6 * bytes, TIME(sends));
    text_add(&found->evidence, "Workers wait for other hosts %s of a step.", SHARE(waits));
    text_add(&found->remedy, "Use a faster path between the hosts (--link, --interface), or a "
             "larger batch; a smaller --bucket begins to send earlier.");
    found->cost = waits;
    return true;
}

/* ---- files ---- */

static void missing(struct finding *found, int64_t n, const char *what) {
    if (n > 0)
        text_add(&found->evidence, "%s%s: %lld.", found->evidence.size ? " " : "", what,
                 (long long)n);
}

static uint32_t last_step(const struct profile_host *h) {
    return h->n_steps ? h->step[h->n_steps - 1].step : 0;
}

/* A host that has died has no later ones. While a profile is recorded, hosts are a step apart. */
static void missing_steps(struct finding *found, const struct profile *p) {
    uint32_t last = 0;
    for (int i = 0; i < p->n_hosts; i++)
        if (last_step(&p->host[i]) > last) last = last_step(&p->host[i]);
    for (int i = 0; i < p->n_hosts; i++)
        if (last_step(&p->host[i]) + 1 < last)
            text_add(&found->evidence, "%sThe profile of host %s ends after step %u, that of "
                     "others after step %u.", found->evidence.size ? " " : "", p->host[i].name,
                     last_step(&p->host[i]), last);
}

static bool incomplete(const struct figures *f, struct finding *found) {
    const struct profile *p = f->profile;
    missing(found, f->bad_runs, "Files run.json that cannot be read");
    missing(found, f->bad_series, "Files workers.series that cannot be read");
    missing(found, f->damaged_frames, "Damaged frames of workers.series");
    missing(found, f->damaged_lines, "Damaged lines of metrics.jsonl");
    if (p) {
        missing(found, p->lost, "Spans that were lost while the profile was recorded");
        missing(found, p->cut, "Files of the profile that end early");
        missing(found, p->damaged, "Damaged spans and lines of the profile");
        missing(found, p->last - p->first >= PROFILE_STEPS ? p->last - p->first + 1 : 0,
                "Steps of the profile, of which none is read as there are too many");
        missing_steps(found, p);
    }
    const char *space = found->evidence.size ? " " : "";
    found->cost = *space ? NAN : 0;
    if (!f->has_run && !f->bad_runs)
        text_add(&found->evidence, "%sThe run has no run.json: it is of an earlier version, which "
                 "recorded less.", space);
    else if (!f->has_series && !f->bad_series)
        text_add(&found->evidence, "%sThe run has no workers.series: what workers spent their "
                 "time on is not known.", space);
    else if (*f->run->version && strcmp(f->run->version, TRI_VERSION))
        text_add(&found->evidence, "%sThe run is of version %s; this is %s.", space,
                 f->run->version, TRI_VERSION);
    if (!found->evidence.size) return false;
    text_add(&found->remedy, "What is missing is in no figure here.");
    return true;
}

/* ---- the table ---- */

const struct rule rules[] = {
    {.name = "slow-worker", .judge = rule_slow_worker, .effect_of = RULES_CAUSES "lost-lanes "},
    {.name = "shared-core", .judge = rule_shared_core, .effect_of = "crowded "},
    {.name = "throttled", .judge = rule_throttled},
    {.name = "crowded", .judge = rule_crowded},
    {.name = "drift", .judge = rule_drift,
     .effect_of = RULES_CAUSES "slow-worker samples lost-lanes "},
    {.name = "samples", .judge = samples},
    {.name = "uneven-lanes", .communicates = true, .judge = rule_uneven_lanes},
    {.name = "not-worth-it", .communicates = true, .judge = rule_not_worth_it,
     .effect_of = RULES_CAUSES "link "},
    {.name = "saving", .of_run = true, .judge = saving},
    {.name = "evaluating", .of_run = true, .judge = evaluating},
    {.name = "callback", .of_run = true, .judge = callback},
    {.name = "auditing", .of_run = true, .judge = auditing},
    {.name = "lost-lanes", .of_run = true, .judge = rule_lost_lanes, .effect_of = RULES_CAUSES},
    {.name = "goodput", .of_run = true, .judge = goodput},
    {.name = "memory", .of_run = true, .judge = memory},
    {.name = "skipped", .of_run = true, .judge = skipped, .effect_of = "not-finite "},
    {.name = "not-finite", .of_run = true, .judge = not_finite},
    {.name = "link", .communicates = true, .judge = hosts_link},
    {.name = "incomplete", .of_run = true, .judge = incomplete},
    {.name = "bubble", .needs_profile = true, .communicates = true, .judge = rule_bubble},
    {.name = "uneven-stages", .needs_profile = true, .communicates = true,
     .judge = rule_uneven_stages},
    {.name = "seats", .needs_profile = true, .communicates = true, .judge = rule_seats},
    {.name = "slow-split", .needs_profile = true, .judge = rule_slow_split},
    {.name = "low-rate", .needs_profile = true, .judge = rule_low_rate, .effect_of = RULES_CAUSES},
    {.name = "unfused", .needs_profile = true, .judge = rule_unfused},
    {.name = "small-sums", .needs_profile = true, .communicates = true, .judge = rule_small_sums},
    {.name = "small-lanes", .needs_profile = true, .communicates = true,
     .judge = rule_small_lanes},
    {0},
};
