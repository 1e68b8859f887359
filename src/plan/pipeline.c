/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "plan/option_rows.h"

const char *pipeline_name(enum pipeline_kind p) { return option_row("--pipeline")->words[p]; }

bool pipeline_splits_weights(enum pipeline_kind p) { return p == PIPELINE_ZERO_BUBBLE; }

int pipeline_before(const struct legs *l, int leg) {
    struct leg at = legs_at(l, leg);
    if (at.kind == LEG_FORWARD) return leg - 1;
    if (at.kind == LEG_WEIGHTS) return leg - 1;
    return at.stage == l->stages - 1 ? l->stages - 1
                                     : legs_number(l, (struct leg){at.stage + 1, LEG_BACKWARD});
}

/* ---- making ---- */

static int chunks_of(const struct pipeline_wish *w) {
    if (w->chunks) return w->chunks;
    return w->kind == PIPELINE_INTERLEAVED ? (int)option_usual_count("--chunks") : 1;
}

tri_status pipeline_tracks(const struct pipeline_wish *w, int stages, int *tracks) {
    int chunks = chunks_of(w), p = stages / chunks;
    bool interleaved = w->kind == PIPELINE_INTERLEAVED;
    if (w->chunks && !interleaved)
        return base_fail(TRI_USAGE, "--chunks %d is for --pipeline interleaved, not %s", w->chunks,
                         pipeline_name(w->kind));
    if (interleaved && chunks < 2)
        return base_fail(TRI_USAGE, "--pipeline interleaved with --chunks %d: it needs at least 2 "
                         "stages per track, as with --chunks 2; --pipeline 1f1b has 1", chunks);
    int up = (stages / chunks + 1) * chunks;
    if (interleaved && (!p || stages % chunks))
        return base_fail(TRI_USAGE, "--pipeline interleaved with --chunks %d needs a multiple of "
                         "%d stages, not %d; --stages %d works", chunks, chunks, stages,
                         up > STAGE_MOST ? up - chunks : up);
    if (interleaved && w->lanes % p)
        return base_fail(TRI_USAGE, "--pipeline interleaved with %d tracks needs a multiple of %d "
                         "lanes, not %d; --lanes %d works, and so does --pipeline 1f1b", p, p,
                         w->lanes, (w->lanes / p + 1) * p);
    if (w->kind == PIPELINE_ZERO_BUBBLE && w->lanes < p)
        return base_fail(TRI_USAGE, "--pipeline zero-bubble with %d tracks needs at least %d "
                         "lanes, not %d; --lanes %d works, and so does --pipeline 1f1b", p, p,
                         w->lanes, p);
    *tracks = p;
    return TRI_OK;
}

/* A track's turns. Lanes that are computed side by side form a group, and each turn of a group is
 * one for each of its lanes. */
struct writer {
    struct pipeline *s;
    const struct legs *l;
    int track, chunks, groups;
    int n;
};

/* The k-th time that the track computes forward (or backward): of which stage and group. With
 * several chunks, as many groups as there are tracks pass one stage, then the next. */
static void write(struct writer *w, int k, enum leg_kind kind) {
    int tracks = w->s->tracks, round = tracks * w->chunks;
    int chunk = w->chunks > 1 ? k % round / tracks : 0;
    int group = w->chunks > 1 ? k / round * tracks + k % tracks : k;
    if (kind != LEG_FORWARD) chunk = w->chunks - 1 - chunk;
    int leg = legs_number(w->l, (struct leg){chunk * tracks + w->track, kind});
    int side = w->s->side_by_side;
    for (int lane = group * side; lane < (group + 1) * side && lane < w->s->lanes; lane++)
        w->s->turn[w->track * w->s->per_track + w->n++] = (struct turn){leg, lane};
}

/* First some forward legs, then a backward and a forward leg in turn. Gradients of weights come as
 * many turns late as fill the track's waiting time at the end. */
static void write_track(struct writer *w, enum pipeline_kind p) {
    int all = w->groups * w->chunks, tracks = w->s->tracks, before = tracks - w->track;
    if (p == PIPELINE_GPIPE) before = all;
    if (p == PIPELINE_INTERLEAVED) before += tracks - w->track - 1 + (w->chunks - 1) * tracks;
    if (before > all) before = all;
    int forward = 0, weights = 0;
    while (forward < before) write(w, forward++, LEG_FORWARD);
    for (int i = 0; i < all; i++) {
        write(w, i, LEG_BACKWARD);
        if (w->l->weights && i >= w->track) write(w, weights++, LEG_WEIGHTS);
        if (forward < all) write(w, forward++, LEG_FORWARD);
    }
    while (w->l->weights && weights < all) write(w, weights++, LEG_WEIGHTS);
}

/* As many as there are workers for each track, if the groups suffice for the schedule. */
static int side_by_side(const struct pipeline_wish *w, int tracks) {
    for (int side = w->workers / tracks; side > 1; side--) {
        struct pipeline_wish less = *w;
        less.lanes = (w->lanes + side - 1) / side;
        int same, stages = tracks * chunks_of(w);
        if (less.lanes >= tracks && !pipeline_tracks(&less, stages, &same)) return side;
    }
    return 1;
}

tri_status pipeline_make(const struct pipeline_wish *w, const struct legs *l, struct pipeline *s) {
    *s = (struct pipeline){.wish = *w, .lanes = w->lanes};
    tri_status status = pipeline_tracks(w, l->stages, &s->tracks);
    if (status) return status;
    s->side_by_side = side_by_side(w, s->tracks);
    s->per_track = l->n / s->tracks * s->lanes;
    s->turn = calloc((size_t)s->tracks * (size_t)s->per_track, sizeof *s->turn);
    if (!s->turn) return base_no_memory("a schedule");
    for (int track = 0; track < s->tracks; track++) {
        struct writer one = {s, l, track, chunks_of(w),
                             (w->lanes + s->side_by_side - 1) / s->side_by_side, 0};
        write_track(&one, w->kind);
        CHECK(one.n == s->per_track);
    }
    return TRI_OK;
}

void pipeline_free(struct pipeline *s) {
    free(s->turn);
    *s = (struct pipeline){0};
}

bool pipeline_serves(const struct pipeline *s, int number, int all, int track) {
    return all < s->tracks ? track % all == number : number % s->tracks == track;
}

/* ---- in virtual time ---- */

struct simulation {
    const struct pipeline *s;
    const struct legs *l;
    const double *cost;
    struct pipeline_times *t;
    int *next;      /* by track: its next turn */
    double *server; /* by track and server: when it is free */
    double *begun;  /* by track: when its last turn began */
};

static double earliest(double *server, int n, int *which) {
    *which = 0;
    for (int i = 1; i < n; i++)
        if (server[i] < server[*which]) *which = i;
    return server[*which];
}

/* The track's turns up to the first whose inputs are not computed yet. False: none. */
static bool advance(struct simulation *m, int track, bool *wrong) {
    const struct pipeline *s = m->s;
    bool any = false;
    for (; m->next[track] < s->per_track; m->next[track]++, any = true) {
        const struct turn *t = pipeline_turn(s, track, m->next[track]);
        int before = pipeline_before(m->l, t->leg), server;
        size_t at = (size_t)t->leg * (size_t)s->lanes + (size_t)t->lane;
        double ready = before < 0 ? 0
                                  : m->t->end[(size_t)before * (size_t)s->lanes + (size_t)t->lane];
        if (ready < 0) break;
        if (m->t->end[at] >= 0) {
            *wrong = true;
            return false;
        }
        double *servers = &m->server[track * s->side_by_side];
        double free = earliest(servers, s->side_by_side, &server);
        double begin = ready > free ? ready : free;
        if (m->begun[track] > begin) begin = m->begun[track];
        m->begun[track] = m->t->begin[at] = begin;
        servers[server] = m->t->end[at] = begin + m->cost[t->leg];
        m->t->busy += m->cost[t->leg];
        if (m->t->end[at] > m->t->makespan) m->t->makespan = m->t->end[at];
    }
    return any;
}

tri_status pipeline_simulate(const struct pipeline *s, const struct legs *l, const double *cost,
                             struct pipeline_times *t) {
    size_t all = (size_t)l->n * (size_t)s->lanes, tracks = (size_t)s->tracks;
    *t = (struct pipeline_times){.begin = malloc(all * sizeof *t->begin),
                                 .end = malloc(all * sizeof *t->end)};
    struct simulation m = {s, l, cost, t, calloc(tracks, sizeof *m.next),
                           calloc(tracks * (size_t)s->side_by_side, sizeof *m.server),
                           calloc(tracks, sizeof *m.begun)};
    bool ok = t->begin && t->end && m.next && m.server && m.begun, wrong = false;
    for (size_t i = 0; ok && i < all; i++) t->end[i] = -1;
    for (bool any = ok; any;) {
        any = false;
        for (int track = 0; track < s->tracks; track++) any |= advance(&m, track, &wrong);
    }
    for (size_t i = 0; ok && i < all; i++) wrong |= t->end[i] < 0;
    free(m.next);
    free(m.server);
    free(m.begun);
    if (ok && !wrong) return TRI_OK;
    pipeline_times_free(t);
    return ok ? base_fail(TRI_USAGE, "the turns of the schedule wait for each other")
              : base_no_memory("a schedule");
}

void pipeline_times_free(struct pipeline_times *t) {
    free(t->begin);
    free(t->end);
    *t = (struct pipeline_times){0};
}

double pipeline_idle(const struct pipeline *s, const struct pipeline_times *t) {
    return 1 - t->busy / (t->makespan * s->tracks * s->side_by_side);
}

/* Begins and ends ascend with the lanes. */
int pipeline_kept(const struct pipeline *s, const struct pipeline_times *t, int leg,
                  const struct leg_set *readers) {
    int most = 0, ended = 0;
    for (int lane = 0; lane < s->lanes; lane++) {
        double begin = t->begin[(size_t)leg * (size_t)s->lanes + (size_t)lane];
        for (bool over = true; ended < lane && over; ended += over)
            for (int r = 0; r < LEGS_MOST; r++)
                if (leg_set_has(readers, r) &&
                    t->end[(size_t)r * (size_t)s->lanes + (size_t)ended] > begin)
                    over = false;
        if (lane + 1 - ended > most) most = lane + 1 - ended;
    }
    return most;
}
