/* SPDX-License-Identifier: Apache-2.0
 * Rules that need a profile: meshes and pipelines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/rules_items.h"

/* ---- pipelines ---- */

#define STAGES 64

/* 0: there is no pipeline. */
static int tracks_of(const struct profile *p) {
    int64_t tracks = p->host[0].tracks, stages = 0;
    for (int i = 0; i < p->host[0].n_items && !tracks; i++)
        if (p->host[0].item[i].stage >= stages) stages = p->host[0].item[i].stage + 1;
    if (!tracks) tracks = stages;
    return tracks > 1 && tracks <= STAGES ? (int)tracks : 0;
}

/* Nanoseconds of stages, and of the tracks that they are in. */
struct stages {
    double of[STAGES], track[STAGES];
    double mean; /* of tracks */
    int n, tracks, longest; /* longest: track */
};

static int stage_of(const struct each *e) {
    return e->comm || e->is->stage >= STAGES || strcmp(e->is->phase, "lane") ? -1
                                                                             : (int)e->is->stage;
}

static struct stages find_stages(const struct profile *p) {
    struct stages s = {.tracks = tracks_of(p)};
    for (struct each e = EACH_ITEM(p); s.tracks && each_item(&e);) {
        const int stage = stage_of(&e);
        if (stage < 0) continue;
        s.of[stage] += e.ns;
        s.track[stage % s.tracks] += e.ns;
        s.mean += e.ns / s.tracks;
        if (stage >= s.n) s.n = stage + 1;
    }
    for (int i = 1; i < s.tracks; i++)
        if (s.track[i] > s.track[s.longest]) s.longest = i;
    return s;
}

/* A lane fills as much time of the tracks as k of them do in 1f1b: waiting is (P-1)/(kV+P-1). Some
 * orders want a multiple of P lanes. */
bool rule_bubble(const struct figures *f, struct finding *found) {
    const struct profile *p = f->profile;
    const struct profile_host *h = &p->host[0];
    const double waits = p->study->spent[SPENT_WAIT_LEGS], before = tracks_of(p) - 1,
                 lanes = (double)h->lanes;
    const double formula = h->waiting > 0 ? h->waiting : lanes > 0 ? before / (lanes + before) : 0;
    if (before < 1 || (waits <= formula + thresholds.bubble && waits <= thresholds.bubble_most))
        return false;
    /* Uneven stages explain it if they make most of its distance from the formula. */
    const struct stages s = find_stages(p);
    const double uneven = s.mean > 0 ? (1 - formula) * (1 - s.mean / s.track[s.longest]) : 0;
    found->cost = waits;
    found->effect_of = waits - formula <= thresholds.uneven_part * uneven ? "uneven-stages " : "";
    text_add(&found->evidence, "Workers wait for legs of the pipeline for %s of a step",
             SHARE(waits));
    if (formula > 0)
        text_add(&found->evidence, "; with stages of equal length it would be %s, as %s lanes go "
                 "through %s tracks", SHARE(formula), NUMBER(lanes), NUMBER(before + 1));
    text_add(&found->evidence, ".");
    const double k = formula > 0 && lanes > 0 ? before * (1 - formula) / (formula * lanes) : 1;
    const int64_t more = rules_lanes(f, before * (1 / thresholds.waiting_aim - 1) / k,
                                     tracks_of(p));
    if ((double)more > lanes)
        text_add(&found->remedy, "With --lanes %s it would be at most %s (this changes the bits).",
                 NUMBER((double)more), SHARE(thresholds.waiting_aim));
    if (k < 2 && lanes > before)
        text_add(&found->remedy, "%s--pipeline zero-bubble would make it %s without a change of "
                 "bits.", found->remedy.size ? " " : "", SHARE(before / (3 * lanes + before)));
    if (!found->remedy.size)
        text_add(&found->remedy, "Use less stages, or a larger batch with more lanes.");
    return true;
}

/* The time of a scope in a stage, forward and backward. */
static double time_of_scope(const struct profile *p, int stage, const char *scope) {
    double ns = 0;
    for (struct each e = EACH_ITEM(p); each_item(&e);)
        if (stage_of(&e) == stage && !strcmp(e.is->scope, scope)) ns += e.ns;
    return ns;
}

/* Scopes to move from a stage to its neighbour, the one at the border first: as many as make both
 * most equal. Forward operators have the order of the network. */
static double move_scopes(const struct profile *p, int stage, bool down, double difference,
                          struct text *names) {
    const struct profile_host *h = &p->host[0];
    const char *last = NULL;
    double moved = 0;
    for (int k = 0; k < h->n_items; k++) {
        const struct profile_item *item = &h->item[down ? k : h->n_items - 1 - k];
        if (item->stage != stage || item->backward || item->move || strcmp(item->phase, "lane") ||
            (last && !strcmp(item->scope, last)))
            continue;
        const double ns = time_of_scope(p, stage, item->scope);
        if (!*item->scope || moved + ns / 2 > difference / 2) break;
        text_add(names, "%s%s", moved > 0 ? ", " : "", item->scope);
        moved += ns;
        last = item->scope;
    }
    return moved;
}

static void advise_stages(const struct figures *f, const struct stages *s, int longest,
                          const struct each *largest, struct finding *found) {
    const struct profile *p = f->profile;
    const bool down = longest && (longest + 1 == s->n || s->of[longest - 1] < s->of[longest + 1]);
    const int to = down ? longest - 1 : longest + 1;
    const double steps = fmax(p->host[0].n_steps, 1) * 1e9;
    struct text names = {0};
    const double moved = move_scopes(p, longest, down, s->of[longest] - s->of[to], &names);
    if (moved > 0) {
        text_add(&found->remedy, "Move %s from stage %d to stage %d (tri_stage): they then take "
                 "%s and %s of a step.", names.data, longest, to,
                 TIME((s->of[longest] - moved) / steps), TIME((s->of[to] + moved) / steps));
    } else if (largest->is) {
        text_add(&found->remedy, "%s alone takes %s of a step, and an operator is never in two "
                 "stages: divide it with a mesh, or use less stages.", largest->is->name,
                 TIME(largest->ns / steps));
    }
    text_free(&names);
}

bool rule_uneven_stages(const struct figures *f, struct finding *found) {
    const struct profile *p = f->profile;
    const struct stages s = find_stages(p);
    const double most = s.track[s.longest];
    int longest = s.longest;
    if (most <= thresholds.uneven_stages * s.mean) return false;
    for (int i = longest; i < s.n; i += s.tracks)
        if (s.of[i] > s.of[longest]) longest = i;
    struct each largest = {0};
    for (struct each e = EACH_ITEM(p); each_item(&e);)
        if (stage_of(&e) == longest && e.ns > largest.ns) largest = e;
    found->cost = (most - s.mean) * s.tracks / p->study->all;
    text_add(&found->evidence, "%s %d takes %.2f times as long as the mean of all %d:",
             s.n > s.tracks ? "Track" : "Stage", s.longest, most / s.mean, s.tracks);
    for (int i = 0; i < s.tracks; i++)
        text_add(&found->evidence, "%s %s", i ? "," : "",
                 TIME(1e-9 * s.track[i] / fmax(p->host[0].n_steps, 1)));
    text_add(&found->evidence, " of a step.");
    advise_stages(f, &s, longest, &largest, found);
    return true;
}

/* ---- meshes ---- */

#define MOVES_SHOWN 3

/* A move, which has several items. */
struct moved {
    const char *why;
    double bytes, ns, waited; /* waited: of the waits for it */
};

static int longest_first(const void *a, const void *b) {
    const struct moved *x = a, *y = b;
    const double difference = x->waited + x->ns - y->waited - y->ns;
    return (difference < 0) - (difference > 0);
}

static int by_why(const void *a, const void *b) {
    const struct moved *x = a, *y = b;
    return strcmp(x->why, y->why);
}

/* All moves, longest first; to be freed. */
static struct moved *find_moves(const struct profile *p, int *n) {
    struct moved *m = calloc(tables_number(p, p->n_hosts, 0) + 1, sizeof *m);
    int all = 0;
    for (struct each e = EACH_ITEM(p); m && each_item(&e);)
        if (e.comm == COMM_MOVE)
            m[all++] = (struct moved){e.is->move, e.is->moved * (double)e.of->calls, e.ns,
                                      (double)e.of->waited};
    if (all) qsort(m, (size_t)all, sizeof *m, by_why);
    *n = 0;
    for (int i = 0; i < all; i++) {
        struct moved *to = &m[*n - 1];
        if (!*n || strcmp(to->why, m[i].why)) {
            m[(*n)++] = m[i];
            continue;
        }
        to->bytes += m[i].bytes;
        to->ns += m[i].ns;
        to->waited += m[i].waited;
    }
    if (*n) qsort(m, (size_t)*n, sizeof *m, longest_first);
    return m;
}

/* A move ends with " for grad.conv2.conv2d.conv2d_dx"; a strategy is of conv2.conv2d. */
static void advise_move(const char *why, struct text *out) {
    const char *reader = strstr(why, " for ");
    char name[256];
    if (!reader) return;
    reader += strlen(" for ");
    const bool backward = !strncmp(reader, "grad.", strlen("grad."));
    base_format(name, sizeof name, "%s", reader + (backward ? strlen("grad.") : 0));
    char *end = strstr(name, ".split.");
    if (!end && backward) end = strrchr(name, '.');
    if (end) *end = 0;
    text_add(out, "Choose another strategy for %s, which then needs no such move, or leave it "
             "whole; trireme explain shows what each strategy moves. ", name);
}

bool rule_seats(const struct figures *f, struct finding *found) {
    const struct profile *p = f->profile;
    const double waits = p->study->spent[SPENT_WAIT_SEATS], steps = fmax(p->host[0].n_steps, 1);
    double moves = 0;
    int n;
    if (waits <= thresholds.seats) return false;
    struct moved *m = find_moves(p, &n);
    for (int i = 0; i < n; i++) moves += m[i].ns / p->study->all;
    found->cost = waits + moves;
    text_add(&found->evidence, "Workers wait for other seats of the mesh for %s of a step, and "
             "move tensors for %s.", SHARE(waits), SHARE(moves));
    for (int i = 0; i < n && i < MOVES_SHOWN; i++) {
        text_add(&found->evidence, "%s%s (%s KiB and %s a step)",
                 i ? "; " : " The moves that take longest: ", m[i].why,
                 NUMBER(ceil(m[i].bytes / steps / 1024)),
                 TIME(1e-9 * (m[i].ns + m[i].waited) / steps));
    }
    if (n) text_add(&found->evidence, ".");
    if (n) advise_move(m[0].why, &found->remedy);
    text_add(&found->remedy, "Lanes alone (no mesh) move nothing within a lane: that would save "
             "up to %s of a step.", SHARE(found->cost));
    free(m);
    return true;
}

/* ---- splits that make operators slow ---- */

#define MOST_SEATS 1024

/* What a seat has of the dimension that kernels divide into vectors: channels or columns. */
static int64_t extent_of(const struct profile_item *item) {
    int64_t dim[RULES_DIMS];
    double bytes;
    const int rank = rules_spec(item->out, dim, &bytes);
    return !rank ? 0 : rank == 4 ? dim[1] : dim[rank - 1];
}

static bool is_odd(const struct each *e) {
    return e->is->seat >= 0 && extent_of(e->is) % thresholds.whole_vectors;
}

/* Operations per nanosecond of the operators of this kind whose extents are whole vectors; if there
 * are none, what the machine allows for this one. */
static double usual_rate(const struct each *of) {
    const double ideal = 1e9 * tables_ideal(of->h, of->is);
    double flops = 0, ns = 0;
    for (struct each e = EACH_ITEM(of->p); each_item(&e);) {
        if (e.is->flops <= 0 || is_odd(&e) || strcmp(e.is->operator, of->is->operator)) continue;
        flops += e.is->flops * (double)e.of->calls;
        ns += e.ns;
    }
    return ns > 0 ? flops / ns : ideal > 0 ? of->is->flops / ideal : 0;
}

bool rule_slow_split(const struct figures *f, struct finding *found) {
    const struct profile *p = f->profile;
    struct each worst = {0};
    double most = 0, rate = 0, seats = 1;
    int n = 0;
    for (struct each e = EACH_ITEM(p); each_item(&e);) {
        if (e.is->seat >= (int64_t)seats) seats = (double)e.is->seat + 1;
        if (e.comm || e.is->flops <= 0 || !is_odd(&e)) continue;
        const double part = e.is->flops * (double)e.of->calls / e.ns / usual_rate(&e);
        if (!(part < thresholds.slow_split)) continue;
        found->cost += e.share * (1 - part);
        if (n++ && e.share * (1 - part) <= most) continue;
        most = e.share * (1 - part);
        worst = e;
        rate = part;
    }
    if (!n) return false;
    const int64_t extent = extent_of(worst.is);
    text_add(&found->evidence, "%d operator(s) of a seat are slow, as kernels compute %d channels "
             "or columns at once. The worst is %s (%s): a seat has %s of them, and it computes at "
             "%s of the rate of others.", n, thresholds.whole_vectors, worst.is->name,
             worst.is->operator, NUMBER((double)extent), SHARE(rate));
    const double whole = (double)extent * seats;
    double other = fmin(2 * seats, MOST_SEATS);
    while (other > 1 && (other == seats || fmod(whole, other * thresholds.whole_vectors) > 0))
        other--;
    if (other > 1)
        text_add(&found->remedy, "Split it by %s, which gives each seat %s, or by another factor, "
                 "such as the samples.", NUMBER(other), NUMBER(whole / other));
    else
        text_add(&found->remedy, "Split it by another factor, such as the samples, or make %s a "
                 "multiple of %s.", NUMBER(whole), NUMBER(thresholds.whole_vectors * seats));
    return true;
}
