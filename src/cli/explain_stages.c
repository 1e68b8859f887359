/* SPDX-License-Identifier: Apache-2.0
 * What `trireme explain` says of the stages of a pipeline. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "cli/explain.h"

#define STAGES_SHOWN 8

static void add_handed(struct text *t, const struct explanation *e) {
    double stash[STAGE_MOST] = {0};
    struct text cells = {0}, kept = {0};
    text_add(&cells, "leg\tread by\tbytes\tkept\tthe largest\n");
    for (int i = 0; i < parts_buckets(e->m); i++) {
        char name[LEG_TEXT], spec[SPEC_TEXT];
        if (!parts_hands_over(e->m, i)) continue;
        struct part_bucket h = parts_bucket(e->m, i);
        legs_name(&e->c->legs, h.leg, name);
        text_add(&cells, "%s\t", name);
        parts_readers(e->m, i, &cells);
        text_add(&cells, "\t%zu\t%d\t%s of %s", h.bytes, h.kept,
                 base_spec_text(&h.largest->spec, spec), h.largest->node->name);
        text_add(&cells, h.results > 1 ? ", and %d more\n" : "\n", h.results - 1);
        stash[legs_at(&e->c->legs, h.leg).stage % e->m->pipeline.tracks] +=
            (double)h.kept * (double)h.bytes;
    }
    if (e->own->full) {
        text_add(t, "\nwhat legs hand over: bytes of a lane, and how many lanes' are kept\n");
        columns_add(t, "  llrrl", &cells);
    }
    text_free(&cells);
    for (int track = 0; track < e->m->pipeline.tracks; track++)
        text_add(&kept, "%s track %d %.1f MiB", track ? "," : "kept in all:", track,
                 stash[track] / (1 << 20));
    text_add(&kept, "\n");
    columns_fill(t, &kept);
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
    int cells = (COLUMNS_WIDTH - 15) / (cell + 1);
    text_add(t, "\nschedule %s: F forward, B backward, W gradients of weights; numbers are "
                "lanes%s\n",
             pipeline_name(e->c->pipeline), chunks ? ", letters the stages of a track" : "");
    for (int track = 0; track < p->tracks; track++) add_track(t, e, track, cell, cells);
    if (p->side_by_side > 1)
        text_add(t, "each track has %d threads, which compute as many lanes side by side; the "
                    "first is shown\n", p->side_by_side);
}

static void add_waiting(struct text *t, const struct explanation *e) {
    const struct legs *l = &e->c->legs;
    struct text times = {0};
    text_add(t, "waiting: %.1f %% of the tracks' time, if all legs take the same time\n",
             100 * pipeline_idle(&e->m->pipeline, &e->m->times));
    if (!e->cost) return;
    text_add(&times, "waiting: %.1f %%, with the times measured here; milliseconds of each leg:",
             100 * parts_waiting(e->m, e->cost));
    for (int i = 0; i < l->n; i++) {
        char name[LEG_TEXT];
        legs_name(l, i, name);
        text_add(&times, "%s %s %.2f", i ? "," : "", name, 1e3 * e->cost[i]);
    }
    text_add(&times, "\n");
    columns_fill(t, &times);
}

void explain_add_stages(const struct explanation *e, struct text *t) {
    const int stages = e->c->legs.stages;
    const int most = e->own->full || stages < STAGES_SHOWN ? stages : STAGES_SHOWN;
    struct text cells = {0};
    if (!e->m || !e->c->stages) return;
    text_add(&cells, "stage\ttrack\tforward\tbackward\tweights\toperators from, to\n");
    for (int i = 0; i < most; i++) {
        struct part_stage s = parts_stage(e->m, i);
        text_add(&cells, "%d\t%d\t%d\t%d\t%d\t%s, %s\n", i, s.track, s.operators[LEG_FORWARD],
                 s.operators[LEG_BACKWARD], s.operators[LEG_WEIGHTS], s.first ? s.first : "",
                 s.last ? s.last : "");
    }
    text_add(t, "\nstages\n");
    columns_add(t, e->own->full ? "  lrrrrl" : "  lrrrrc", &cells);
    if (most < stages) text_add(t, "  and %d more\n", stages - most);
    add_handed(t, e);
    if (e->own->full) add_schedule(t, e);
    add_waiting(t, e);
}
