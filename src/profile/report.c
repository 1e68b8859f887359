/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "base/host.h"
#include "observe/json.h"
#include "profile/rules_items.h"

/* ---- findings in their order ---- */

static void free_finding(struct finding *x) {
    text_free(&x->evidence);
    text_free(&x->remedy);
}

/* Of a profile without steps there is nothing to say. */
static bool is_judged(const struct figures *f, const struct rule *r) {
    return !r->needs_profile || (f->profile && f->profile->study->all > 0);
}

static void judge(const struct figures *f, struct report *r) {
    for (size_t i = 0; rules[i].name && i < REPORT_MOST; i++) {
        struct finding x = {.rule = &rules[i], .effect_of = rules[i].effect_of};
        if (!is_judged(f, &rules[i])) continue;
        r->found[i] = rules[i].judge(f, &x);
        if (r->found[i]) r->finding[r->n++] = x;
        else free_finding(&x);
    }
}

/* What a rule has not found out itself, but the table says, depends on the costs. */
static bool explains(const struct finding *cause, const struct finding *effect) {
    return effect->effect_of != effect->rule->effect_of ||
           !(cause->cost < thresholds.explains * effect->cost);
}

/* The finding whose effect this is; -1: none. */
static int cause_of(const struct report *r, size_t i) {
    const char *at = r->finding[i].effect_of;
    for (size_t n; at && *at; at += n + (at[n] == ' ')) {
        n = strcspn(at, " ");
        for (size_t k = 0; k < r->n; k++)
            if (k != i && strlen(r->finding[k].rule->name) == n &&
                !strncmp(r->finding[k].rule->name, at, n) &&
                explains(&r->finding[k], &r->finding[i]))
                return (int)k;
    }
    return -1;
}

/* What is not known comes directly before the notes. */
static double weight(const struct finding *x) { return isnan(x->cost) ? thresholds.note : x->cost; }

/* With all that it explains. */
static double weight_of(const struct report *r, const int *cause, size_t i, int depth) {
    double most = weight(&r->finding[i]);
    for (size_t k = 0; k < r->n && depth < REPORT_MOST; k++)
        if (cause[k] == (int)i) most = fmax(most, weight_of(r, cause, k, depth + 1));
    return most;
}

struct order {
    struct finding finding[REPORT_MOST];
    int depth[REPORT_MOST];
    size_t n;
};

/* Those with this cause, worst first, each with its own effects after it. */
static void place(struct report *r, const int *cause, int of, int depth, struct order *to) {
    bool done[REPORT_MOST] = {false};
    for (;;) {
        int worst = -1;
        for (size_t i = 0; i < r->n; i++)
            if (cause[i] == of && !done[i] &&
                (worst < 0 || weight_of(r, cause, i, 0) > weight_of(r, cause, (size_t)worst, 0)))
                worst = (int)i;
        if (worst < 0) return;
        done[worst] = true;
        to->depth[to->n] = depth;
        to->finding[to->n++] = r->finding[worst];
        place(r, cause, worst, depth + 1, to);
    }
}

/* Two that explain each other would vanish: the chain is cut where it comes back. */
static void cut_rings(int *cause, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int at = cause[i];
        for (size_t k = 0; at >= 0 && k < n; k++) at = at == (int)i ? -2 : cause[at];
        if (at == -2) cause[i] = -1;
    }
}

void report_make(const struct figures *f, struct report *r) {
    int cause[REPORT_MOST];
    struct order to = {.n = 0};
    *r = (struct report){.f = f};
    judge(f, r);
    for (size_t i = 0; i < r->n; i++) cause[i] = cause_of(r, i);
    cut_rings(cause, r->n);
    place(r, cause, -1, 0, &to);
    memcpy(r->finding, to.finding, sizeof r->finding);
    memcpy(r->depth, to.depth, sizeof r->depth);
}

void report_free(struct report *r) {
    for (size_t i = 0; i < r->n; i++) free_finding(&r->finding[i]);
    r->n = 0;
}

static bool is_note(const struct finding *x) { return x->cost < thresholds.note; }

/* ---- the sentence on the whole ---- */

static const enum spent communication[] = {SPENT_SUM,       SPENT_WAIT_LANES, SPENT_WAIT_SUMS,
                                           SPENT_WAIT_LEGS, SPENT_WAIT_SEATS, SPENT_WAIT_HOSTS};

/* The share of a step in which threads move tensors between seats, by the profile. */
static double moves_of(const struct figures *f) {
    double ns = 0;
    if (!f->profile || !(f->profile->study->all > 0)) return 0;
    for (struct each e = EACH_ITEM(f->profile); each_item(&e);)
        if (e.comm == COMM_MOVE) ns += e.ns;
    return ns / f->profile->study->all;
}

static void add_part(struct text *out, bool *first, const char *what, double share) {
    if (share < thresholds.said) return;
    text_add(out, "%s%s %s", *first ? "" : ", ", what, SHARE(share));
    *first = false;
}

static double communication_of(const struct figures *f) {
    double all = moves_of(f);
    for (size_t i = 0; i < COUNT(communication); i++) all += f->spent[communication[i]];
    return all;
}

/* "Communication is 28 % of a step: waits for lanes 18 %, sums 7 %, moves 3 %." */
static bool add_communication(const struct report *r, struct text *out) {
    const struct figures *f = r->f;
    const double moves = moves_of(f), all = communication_of(f);
    bool first = true;
    const struct finding *worst = r->n && !is_note(&r->finding[0]) ? &r->finding[0] : NULL;
    if (f->n < 2 || all <= thresholds.communicates || (worst && !worst->rule->communicates))
        return false;
    text_add(out, "Communication is %s of a step: ", SHARE(all));
    for (size_t i = 1; i < COUNT(communication); i++) {
        char name[64];
        base_format(name, sizeof name, "waits for %s", spent_rows[communication[i]].name);
        add_part(out, &first, name, f->spent[communication[i]]);
    }
    add_part(out, &first, "sums", f->spent[SPENT_SUM]);
    add_part(out, &first, "moves", moves);
    text_add(out, ". ");
    return true;
}

/* For whom threads wait most, by a profile of the recent part of the run: "worker 1". */
static bool add_waited_for(const struct figures *f, struct text *out) {
    const struct profile *p = f->profile && f->profile->first >= f->recent ? f->profile : NULL;
    double most = 0, all = 0;
    int host = 0, place = 0;
    double by[REPORT_MOST * 4] = {0};
    for (int i = 0; p && i < p->n_threads; i++) {
        const struct profile_thread *t = &p->thread[i];
        const int threads = p->host[t->host].threads;
        for (size_t k = 0; k < t->n && t->what == SPAN_COMPUTES; k++) {
            const struct span *s = &t->span[k];
            if (!profile_is_wait(s)) continue;
            all += (double)(s->end - s->begin);
            if (s->whom == SPAN_NOBODY || threads < 1) continue;
            const size_t to = (size_t)(s->whom / threads);
            if (p->n_hosts > 1 || to >= COUNT(by)) continue;
            by[to] += (double)(s->end - s->begin);
            if (by[to] > most) most = by[to], place = (int)to, host = t->host;
        }
    }
    if (most <= all / 2) return false;
    text_add(out, ", most of that for %s%sworker %d", p->host[host].name,
             *p->host[host].name ? "'s " : "", place);
    return true;
}

/* What a single worker does meanwhile, if others wait until it opens the next step. */
static int busy_with(const struct figures *f) {
    static const enum spent others[] = {SPENT_OPEN, SPENT_RECORD, SPENT_CALLBACK, SPENT_EVALUATE,
                                        SPENT_SAVE, SPENT_WAIT_SAVE, SPENT_WAIT_SAMPLES};
    double most = f->spent[SPENT_WAIT_OPENING] / 2;
    int busy = -1;
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < COUNT(others); k++)
            if (f->worker[i].spent[others[k]] > most)
                most = f->worker[i].spent[others[k]], busy = (int)others[k];
    return busy;
}

static bool has_several(const struct figures *f) { return f->n > 1 || f->run->workers > 1; }

static void add_waits(const struct figures *f, struct text *out) {
    const double all = figures_group(f->spent, SPENT_WAITS);
    int most = SPENT_WAIT_SAMPLES;
    text_add(out, " and wait%s for %s", has_several(f) ? "" : "s", SHARE(all));
    if (all < thresholds.said || f->old || add_waited_for(f, out)) return;
    for (int k = SPENT_WAIT_SAMPLES; k < SPENTS; k++)
        if (f->spent[k] > f->spent[most]) most = k;
    const struct figures_worker *slow = NULL;
    for (size_t i = 0; i < f->n && !f->divided; i++)
        if (f->worker[i].slow_since && (!slow || f->worker[i].lane > slow->lane))
            slow = &f->worker[i];
    if (f->spent[most] <= all / 2) return;
    if (slow && most == SPENT_WAIT_LANES) text_add(out, ", most of that for %s", slow->name);
    else text_add(out, ", most of that %s", strchr(spent_rows[most].what, ' ') + 1);
    const int busy = most == SPENT_WAIT_OPENING ? busy_with(f) : -1;
    if (busy >= 0) text_add(out, ", as one worker %s", spent_rows[busy].what);
}

/* "; between steps it evaluates, for 12 %" */
static void add_beside(const struct figures *f, struct text *out) {
    int most = SPENT_OPEN;
    const double all = figures_group(f->spent, SPENT_BESIDE);
    for (int k = 0; k < SPENTS; k++)
        if (spent_rows[k].group == SPENT_BESIDE && f->spent[k] > f->spent[most]) most = k;
    if (all < thresholds.said) return;
    text_add(out, "; what is done between steps takes %s", SHARE(all));
    if (f->spent[most] > all / 2)
        text_add(out, ", most of it where one %s", spent_rows[most].what);
}

void report_sentence(const struct report *r, struct text *out) {
    const struct figures *f = r->f;
    if (!(f->step > 0)) {
        text_add(out, "The run has done no step whose time is known.");
        return;
    }
    const bool communicates = add_communication(r, out), several = has_several(f);
    const double computes = figures_group(f->spent, SPENT_COMPUTES) + f->spent[SPENT_UPDATE];
    text_add(out, "A step takes %s", TIME(f->step));
    if (f->n)
        text_add(out, "; %s for %s of it", several ? "workers compute" : "the process computes",
                 SHARE(computes));
    if (several || figures_group(f->spent, SPENT_WAITS) >= thresholds.said) add_waits(f, out);
    if (f->spent[SPENT_SUM] >= thresholds.said && !communicates && f->n)
        text_add(out, "; sums of gradients take %s", SHARE(f->spent[SPENT_SUM]));
    if (f->spent[SPENT_READ] >= thresholds.said)
        text_add(out, "; reading samples takes %s", SHARE(f->spent[SPENT_READ]));
    add_beside(f, out);
    text_add(out, ".");
}

/* ---- text ---- */

static void wrap(struct text *out, int margin, const struct text *words) {
    if (!words->data) return;
    text_add(out, "%*s", margin, "");
    columns_wrap(out, words->data, words->data + words->size, COLUMNS_WIDTH, margin, margin);
    out->failed |= words->failed;
}

static void add_state(const struct figures *f, struct text *out) {
    const struct run_read *r = f->run;
    const struct run_entry *last = r->n_entries ? &r->entry[r->n_entries - 1] : NULL;
    text_add(out, " The run ");
    if (*r->title) text_add(out, "of %s ", r->title);
    text_add(out, "has done %s", NUMBER((double)f->last));
    if (r->steps > 0) text_add(out, " of %s", NUMBER((double)r->steps));
    text_add(out, " step%s", f->last == 1 && r->steps <= 1 ? "" : "s");
    if (f->wall > 0) text_add(out, " in %s", TIME(f->wall));
    if (last && isnan(last->end)) text_add(out, "; it %s", run_state_name(run_file_state(last)));
    else if (last && last->exit > 0) text_add(out, "; it ended with exit code %d", last->exit);
    text_add(out, ".");
    if (f->spent[SPENT_UNKNOWN] > thresholds.unexplained)
        text_add(out, " Unexplained is %s of a step: nothing has recorded it.",
                 SHARE(f->spent[SPENT_UNKNOWN]));
}

static void add_cost(const struct finding *x, struct text *out) {
    if (!(x->cost > 0)) return;
    text_add(out, ", %s of %s", SHARE(x->cost), x->rule->of_run ? "the run" : "a step");
}

static void add_finding(const struct report *r, size_t i, int number, struct text *out) {
    const struct finding *x = &r->finding[i];
    const int margin = 3 + 2 * r->depth[i];
    if (r->depth[i]) text_add(out, "%*sEffect: %s", margin, "", x->rule->name);
    else text_add(out, "\n%d. %s", number, x->rule->name);
    add_cost(x, out);
    text_add(out, "\n");
    wrap(out, margin + (r->depth[i] ? 2 : 0), &x->evidence);
    if (!r->depth[i]) wrap(out, margin, &x->remedy);
}

static void add_names(const struct report *r, const char *before, bool profile, bool found,
                      struct text *out) {
    struct text line = {0};
    const char *between = "";
    text_add(&line, "%s", before);
    for (size_t i = 0; rules[i].name; i++) {
        if (r->found[i] != found || is_judged(r->f, &rules[i]) == profile) continue;
        text_add(&line, "%s%s", between, rules[i].name);
        between = ", ";
    }
    if (*between && !profile) text_add(&line, ".");
    if (*between && profile) {
        text_add(&line, ". A run of workers that is under way gives one with: trireme profile ");
        text_add_escaped(&line, r->f->directory);
        text_add(&line, " --steps 5; any run with --profile steps=A..B.");
    }
    if (*between) {
        text_add(out, "\n");
        wrap(out, 0, &line);
    }
    text_free(&line);
}

void report_text(const struct report *r, struct text *out) {
    struct text head = {0};
    const struct profile *p = r->f->profile;
    int number = 0;
    bool notes = false;
    report_sentence(r, &head);
    add_state(r->f, &head);
    wrap(out, 0, &head);
    text_free(&head);
    if (p && p->first > 0) {
        text_add(&head, "The profile is of step%s %lld", p->last > p->first ? "s" : "",
                 (long long)p->first);
        if (p->last > p->first) text_add(&head, " to %lld", (long long)p->last);
        text_add(&head, ".");
    }
    if (p && p->study->path.all) {
        text_add(&head, "%sThe critical path of a step: ", head.size ? " " : "");
        path_tell(&p->study->path, &head);
        text_add(&head, ".");
    }
    wrap(out, 0, &head);
    text_free(&head);
    for (size_t i = 0; i < r->n; i++) {
        const bool note = !r->depth[i] && is_note(&r->finding[i]);
        if (note && !notes) text_add(out, "\nNotes, as they cost less than %s:\n",
                                     SHARE(thresholds.note));
        notes |= note;
        number += !r->depth[i];
        add_finding(r, i, number, out);
    }
    add_names(r, "Nothing found by: ", false, false, out);
    add_names(r, "Only with a profile: ", true, false, out);
}

/* ---- JSON ---- */

static json_t *json_finding(const struct report *r, size_t i) {
    const struct finding *x = &r->finding[i];
    size_t cause = i;
    while (r->depth[i] && r->depth[cause] != r->depth[i] - 1) cause--;
    return json_pack("{s:s,s:o,s:s,s:o,s:o,s:o,s:b}", "rule", x->rule->name, "cost",
                     json_finite(x->cost), "of", x->rule->of_run ? "run" : "step", "evidence",
                     json_text(x->evidence.data), "remedy", json_text(x->remedy.data), "effect_of",
                     cause == i ? json_null() : json_string(r->finding[cause].rule->name), "note",
                     is_note(x));
}

static json_t *json_names(const struct report *r, bool judged) {
    json_t *list = json_array();
    for (size_t i = 0; rules[i].name; i++)
        if (!r->found[i] && is_judged(r->f, &rules[i]) == judged)
            json_array_append_new(list, json_string(rules[i].name));
    return list;
}

static json_t *json_shares(const double spent[SPENTS]) {
    json_t *j = json_object();
    for (int k = 0; k < SPENTS; k++)
        if (spent[k] > 0) json_object_set_new(j, spent_rows[k].name, json_real(spent[k]));
    return j;
}

static json_t *json_workers(const struct figures *f) {
    json_t *list = json_array();
    for (size_t i = 0; i < f->n; i++) {
        const struct figures_worker *w = &f->worker[i];
        json_array_append_new(
            list, json_pack("{s:s,s:i,s:o,s:f,s:f,s:f,s:f}", "host", f->host[w->host].name,
                            "worker", w->place, "shares", json_shares(w->spent), "no_core",
                            w->no_core, "lane", w->lane, "lanes", w->lanes, "lost", w->lost));
    }
    return list;
}

static json_t *json_places(const struct figures *f) {
    json_t *list = json_array();
    for (size_t i = 0; i < f->n_members; i++) {
        const struct figures_member *m = &f->member[i];
        char seats[32];
        base_format(seats, sizeof seats, m->seats.first < m->seats.last ? "%d-%d" : "%d",
                    m->seats.first, m->seats.last);
        json_array_append_new(
            list, json_pack("{s:s,s:i,s:o,s:s,s:i,s:o,s:o,s:o}", "host", f->host[m->host].name,
                            "worker", m->place, "rank",
                            m->rank < 0 ? json_null() : json_integer(m->rank), "state", m->state,
                            "restarts", m->restarts, "replica",
                            m->seated ? json_integer(m->seats.replica) : json_null(), "seats",
                            m->seated ? json_string(seats) : json_null(), "stages",
                            *m->stages ? json_string(m->stages) : json_null()));
    }
    return list;
}

/* Seconds that were not useful, by cause. */
/* Of each host of a profile, what it sends in a step, and for how long. */
static json_t *json_links(const struct figures *f) {
    const struct profile *p = f->profile;
    json_t *list = json_array();
    for (int h = 0; p && p->n_hosts > 1 && h < p->n_hosts; h++) {
        double bytes;
        const double seconds = figures_sends(p, h, &bytes);
        json_array_append_new(list, json_pack("{s:s,s:f,s:f,s:o}", "host", p->host[h].name, "bytes",
                                              bytes, "seconds", seconds, "share",
                                              json_finite(seconds / p->study->step)));
    }
    return list;
}

static json_t *json_losses(const struct figures *f) {
    json_t *j = json_object();
    for (int i = 0; i < LOSSES; i++)
        if (f->lost[i] > 0)
            json_object_set_new(j, rules_loss_name((enum figures_loss)i), json_real(f->lost[i]));
    return j;
}

void report_json(const struct report *r, struct text *out) {
    const struct figures *f = r->f;
    struct text sentence = {0};
    json_t *findings = json_array();
    report_sentence(r, &sentence);
    for (size_t i = 0; i < r->n; i++) json_array_append_new(findings, json_finding(r, i));
    json_t *all = json_pack(
        "{s:o,s:f,s:s,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "sentence",
        json_text(sentence.data), "communication", f->n > 1 ? communication_of(f) : 0,
        "title", f->run->title, "last", (json_int_t)f->last, "step", json_finite(f->step),
        "seconds", json_finite(f->wall), "goodput",
        json_finite(f->wall > 0 ? f->useful / f->wall : NAN), "shares", json_shares(f->spent),
        "lost", json_losses(f), "workers", json_workers(f), "places", json_places(f), "links",
        json_links(f), "findings",
        findings, "silent", json_names(r, true), "without_profile", json_names(r, false));
    char *said = all ? json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : NULL;
    if (said) text_add(out, "%s\n", said);
    out->failed |= !said;
    free(said);
    json_decref(all);
    text_free(&sentence);
}
