/* SPDX-License-Identifier: Apache-2.0
 * The workers of a host: their states, and what they compute of a mesh and a pipeline. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "observe/json.h"
#include "profile/figures.h"

#define PLACES_MOST 4096
#define STAGES_MOST 64

static struct figures_member *find(struct figures *f, int host, int64_t place) {
    if (place < 0 || place >= PLACES_MOST) return NULL;
    for (size_t i = f->n_members; i-- > 0 && f->member[i].host == host;)
        if (f->member[i].place == place) return &f->member[i];
    if (!ARRAY_GROW(f->member, f->n_members, f->room_members)) return NULL;
    struct figures_member *m = &f->member[f->n_members++];
    *m = (struct figures_member){.host = host, .place = (int)place, .state = "",
                                 .rank = place < f->host[host].run.workers ? (int)place : -1};
    return m;
}

/* Logs are read one after the other, so that a later event may have been seen before. */
static void set_rank(struct figures_member *m, double time, int64_t rank) {
    if (!m || time < m->ranked) return;
    m->rank = rank >= 0 && rank < PLACES_MOST ? (int)rank : -1;
    m->ranked = time;
}

tri_status figures_member_event(struct figures *f, int host, double time,
                                const struct json_t *event) {
    static const struct {
        const char *event, *state; /* null: as before */
        bool ranks;                /* it says which rank the worker has */
    } rows[] = {{"start", "starts", true}, {"join", "starts", true}, {"compiled", "starts", false},
                {"first-step", "works", false}, {"rowing", "works", false},
                {"death", "died", false}, {"left", "left", false}, {"leave", "left", false},
                {"takeover", NULL, true}, {"rests", NULL, true}};
    const char *name = json_text_of(event, "event");
    size_t i = 0;
    while (i < COUNT(rows) && strcmp(rows[i].event, name)) i++;
    const int64_t place = json_whole_of(event, "worker", -1), of = json_whole_of(event, "of", -1);
    if (i == COUNT(rows) || place < 0 || place >= PLACES_MOST) return TRI_OK;
    struct figures_member *m = find(f, host, place);
    if (!m) return base_no_memory("the workers");
    if (rows[i].ranks) set_rank(m, time, json_whole_of(event, "rank", -1));
    if (rows[i].state && time >= m->since) m->state = rows[i].state, m->since = time;
    if (of >= 0) set_rank(find(f, host, of), time, -1); /* of a take-over: whose rank it was */
    return TRI_OK;
}

/* The number that the text begins with; 0: it is not 1 to `most`. */
static int number_of(const char *text, int most) {
    const long n = text ? strtol(text, NULL, 10) : 0;
    return n >= 1 && n <= most ? (int)n : 0;
}

/* What follows the key of a line of the plan; null: it has none. */
static const char *line_of(const char *plan, const char *key) {
    const char *line = strstr(plan, key);
    return line ? line + strlen(key) : NULL;
}

/* The product of the sizes of "model=2,rows=2"; 0: there is no mesh. */
static int seats_of(const char *mesh) {
    int64_t seats = 1;
    while (mesh && *mesh && *mesh != '\n') {
        const size_t n = strcspn(mesh, ",\n"), name = strcspn(mesh, "=,\n");
        seats *= number_of(mesh + (name < n ? name + 1 : 0), PLACES_MOST);
        if (seats < 1 || seats > PLACES_MOST) return 0;
        mesh += n + (mesh[n] == ',');
    }
    return seats > 1 ? (int)seats : 0;
}

/* As the run's processes divide it. */
static struct group_plan plan_of(const struct figures *f, int host) {
    const struct run_read *r = &f->host[host].run;
    const int64_t threads = r->threads > 1 && r->threads <= 1024 ? r->threads : 1;
    const int chunks = number_of(line_of(r->plan, "\nchunks "), STAGES_MOST);
    struct group_plan p = {.most = number_of(figures_option(f, "most"), PLACES_MOST),
                           .seats = seats_of(line_of(r->plan, "\nmesh ")),
                           .stages = number_of(line_of(r->plan, "\nstages "), STAGES_MOST)};
    for (size_t i = 0; i < f->n_members; i++)
        if (f->member[i].host == host && f->member[i].rank >= p.ranks)
            p.ranks = f->member[i].rank + 1;
    if (p.most < p.ranks) p.most = p.ranks;
    if (p.most < 2) p.seats = 0;
    p.tracks = p.stages / (chunks ? chunks : line_of(r->plan, "\npipeline interleaved") ? 2 : 1);
    if (!p.tracks) p.stages = 0;
    p.claimers = p.most * threads <= r->lanes ? (int)threads : 1;
    return p;
}

static int by_place(const void *a, const void *b) {
    const struct figures_member *x = a, *y = b;
    return x->host == y->host ? x->place - y->place : x->host - y->host;
}

tri_status figures_members(struct figures *f, int host) {
    const struct run_read *r = &f->host[host].run;
    const enum run_state state = r->n_entries ? run_file_state(&r->entry[r->n_entries - 1])
                                              : RUN_GOES_ON_OR_KILLED;
    const bool over = state != RUN_GOES_ON && state != RUN_GOES_ON_OR_KILLED;
    for (int64_t i = 0; i < r->workers && i < PLACES_MOST; i++)
        if (!find(f, host, i)) return base_no_memory("the workers");
    const struct group_plan p = plan_of(f, host);
    for (size_t i = 0; i < f->n_members; i++) {
        struct figures_member *m = &f->member[i];
        if (m->host != host) continue;
        for (size_t k = 0; k < r->n_faults; k++)
            m->restarts += r->fault[k].worker == m->place && !strcmp(r->fault[k].kind, "death");
        if (m->restarts && !strcmp(m->state, "died")) m->restarts--;
        m->seated = group_seats(&p, m->rank, &m->seats);
        group_stages(&p, m->rank, m->stages);
        const bool there = strcmp(m->state, "died") && strcmp(m->state, "left");
        if (over && strcmp(m->state, "died"))
            m->state = state == RUN_KILLED && there ? "was killed" : "ended";
        else if (!over && there && (m->rank < 0 || !*m->state))
            m->state = m->rank < 0 ? "spare" : "works";
    }
    if (f->n_members) qsort(f->member, f->n_members, sizeof *f->member, by_place);
    return TRI_OK;
}
