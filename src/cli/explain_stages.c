/* SPDX-License-Identifier: Apache-2.0
 * What `trireme explain` says of the stages of a pipeline. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain.h"

#define WIDTH 100 /* of the picture */

/* ---- stages ---- */

struct explained_stage explain_stage(const struct explanation *e, int stage) {
    const struct program *lane = &e->m->thread[0].lane[0];
    const struct legs *l = &e->c->legs;
    struct explained_stage s = {.track = stage % e->m->pipeline.tracks};
    for (size_t i = 0; i < lane->n_items; i++) {
        const struct unit *u = lane->item[i].unit;
        for (int k = 0; k < u->n; k++) {
            struct leg leg = legs_at(l, u->node[k]->leg);
            if (leg.stage != stage) continue;
            s.operators[leg.kind]++;
            if (leg.kind != LEG_FORWARD) continue;
            s.last = u->node[k]->name;
            if (!s.first) s.first = s.last;
        }
    }
    return s;
}

/* ---- what legs hand over ---- */

bool explain_hands_over(const struct explanation *e, int bucket) {
    return !buckets_is_summed(&e->m->tree[1].buckets, bucket);
}

struct explained_handed explain_handed(const struct explanation *e, int bucket) {
    const struct tree *t = &e->m->tree[1];
    const struct program *lane = &e->m->thread[0].lane[0];
    struct explained_handed h = {.leg = t->buckets.leg[bucket], .kept = t->bucket[bucket].kept};
    size_t most = 0;
    for (int i = 0; i < lane->n_result; i++) {
        const tri_tensor *tensor = lane->result[i].is;
        if (!tree_has(t, lane, i, bucket)) continue;
        size_t bytes = base_spec_bytes(&tensor->spec);
        h.tensors++;
        h.bytes += bytes;
        if (bytes > most) h.largest = tensor;
        if (bytes > most) most = bytes;
    }
    return h;
}

void explain_readers(const struct explanation *e, int bucket, struct text *out) {
    const struct buckets *b = &e->m->tree[1].buckets;
    bool any = false;
    for (int leg = 0; leg < b->legs; leg++) {
        char name[LEG_TEXT];
        if (!leg_set_has(&b->readers[bucket], leg)) continue;
        legs_name(&e->c->legs, leg, name);
        text_add(out, "%s%s", any ? "," : "", name);
        any = true;
    }
}

static void add_handed(struct text *t, const struct explanation *e) {
    double stash[STAGE_MOST] = {0};
    text_add(t, "\nwhat legs hand over: bytes of a lane, and of how many lanes they are kept\n"
                "  %-6s %-16s %12s %5s  %s\n", "leg", "read by", "bytes", "kept", "the largest");
    for (int i = 0; i < e->m->tree[1].buckets.n; i++) {
        char name[LEG_TEXT], spec[SPEC_TEXT];
        struct text readers = {0};
        if (!explain_hands_over(e, i)) continue;
        struct explained_handed h = explain_handed(e, i);
        legs_name(&e->c->legs, h.leg, name);
        explain_readers(e, i, &readers);
        text_add(t, "  %-6s %-16s %12zu %5d  %s of %s", name, readers.data ? readers.data : "",
                 h.bytes, h.kept, base_spec_text(&h.largest->spec, spec), h.largest->node->name);
        text_add(t, h.tensors > 1 ? ", and %d more\n" : "\n", h.tensors - 1);
        stash[legs_at(&e->c->legs, h.leg).stage % e->m->pipeline.tracks] +=
            (double)h.kept * (double)h.bytes;
        t->failed |= readers.failed;
        text_free(&readers);
    }
    for (int track = 0; track < e->m->pipeline.tracks; track++)
        text_add(t, "%s track %d %.1f MiB", track ? "," : "kept in all:", track,
                 stash[track] / (1 << 20));
    text_add(t, "\n");
}

/* ---- the schedule ---- */

/* "F3": forward of lane 3. With several stages per track, a letter says which: a, b, ... */
static void name_turn(const struct explanation *e, const struct turn *turn, bool chunks,
                      char name[2 * LEG_TEXT]) {
    struct leg leg = legs_at(&e->c->legs, turn->leg);
    int n = snprintf(name, 2 * LEG_TEXT, "%c%d", legs_letter(leg.kind), turn->lane);
    if (chunks)
        snprintf(name + n, (size_t)(2 * LEG_TEXT - n), "%c",
                 'a' + leg.stage / e->m->pipeline.tracks % 26);
}

static void add_track(struct text *t, const struct explanation *e, int track, int cell, int cells) {
    const struct pipeline *p = &e->m->pipeline;
    bool chunks = e->c->legs.stages > p->tracks;
    int at = 0;
    text_add(t, "  track %-3d", track);
    for (int i = 0; i < p->per_track && at < cells; i++) {
        const struct turn *turn = pipeline_turn(p, track, i);
        char name[2 * LEG_TEXT];
        int begin = (int)e->m->times.begin[turn->leg * p->lanes + turn->lane];
        if (begin >= cells) break;
        if (at && begin < at) continue; /* another lane at the same time */
        for (; at < begin; at++) text_add(t, " %-*s", cell, ".");
        name_turn(e, turn, chunks, name);
        text_add(t, " %-*s", cell, name);
        at++;
    }
    text_add(t, at < (int)e->m->times.makespan && at >= cells ? " ...\n" : "\n");
}

/* Columns are of the time that a leg takes if all take the same. */
static void add_schedule(struct text *t, const struct explanation *e) {
    const struct pipeline *p = &e->m->pipeline;
    char last[LEG_TEXT];
    const bool chunks = e->c->legs.stages > p->tracks;
    int cell = 1 + snprintf(last, sizeof last, "%d", p->lanes - 1) + chunks;
    int cells = (WIDTH - 15) / (cell + 1);
    text_add(t, "\nschedule %s: F forward, B backward, W gradients of weights; numbers are "
                "lanes%s\n",
             pipeline_name(e->c->pipeline), chunks ? ", letters the stages of a track" : "");
    for (int track = 0; track < p->tracks; track++) add_track(t, e, track, cell, cells);
    if (p->side_by_side > 1)
        text_add(t, "each track has %d threads, which compute as many lanes side by side; the "
                    "first is shown\n", p->side_by_side);
    text_add(t, "waiting: %.1f %% of the tracks' time, if all legs take the same time\n",
             100 * pipeline_idle(p, &e->m->times));
}

double explain_waiting(const struct explanation *e) {
    struct pipeline_times times;
    if (pipeline_simulate(&e->m->pipeline, &e->c->legs, e->cost, &times)) return -1;
    double waiting = pipeline_idle(&e->m->pipeline, &times);
    pipeline_times_free(&times);
    return waiting;
}

static void add_times(struct text *t, const struct explanation *e) {
    const struct legs *l = &e->c->legs;
    if (!e->measured) return;
    text_add(t, "waiting: %.1f %%, with the times measured here; milliseconds of each leg:",
             100 * explain_waiting(e));
    for (int i = 0; i < l->n; i++) {
        char name[LEG_TEXT];
        legs_name(l, i, name);
        text_add(t, "%s %s %.2f", i ? "," : "", name, 1e3 * e->cost[i]);
    }
    text_add(t, "\n");
}

void explain_add_stages(const struct explanation *e, struct text *t) {
    const struct legs *l = &e->c->legs;
    if (!e->m || !e->c->stages) return;
    text_add(t, "\nstages\n  %-6s %5s %8s %9s %8s  %s\n", "stage", "track", "forward", "backward",
             "weights", "operators from, to");
    for (int i = 0; i < l->stages; i++) {
        struct explained_stage s = explain_stage(e, i);
        text_add(t, "  %-6d %5d %8d %9d %8d  %s, %s\n", i, s.track, s.operators[LEG_FORWARD],
                 s.operators[LEG_BACKWARD], s.operators[LEG_WEIGHTS], s.first ? s.first : "",
                 s.last ? s.last : "");
    }
    add_handed(t, e);
    add_schedule(t, e);
    add_times(t, e);
}
