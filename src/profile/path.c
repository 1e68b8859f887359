/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/path.h"

#include <stdlib.h>
#include <string.h>

#include "profile/tables.h"

#define SHOWN 0.01 /* of the path */

/* A thread's spans of what it spends its time on; no two are at the same time. */
struct trail {
    const struct profile_thread *thread;
    uint32_t *span;
    size_t n;
};

struct walk {
    const struct profile *p;
    struct trail *trail; /* by thread */
    struct path *path;
    struct path_piece *piece;
    size_t pieces, room;
    bool failed;
};

static bool make_trail(const struct profile_thread *t, struct trail *out) {
    *out = (struct trail){t, malloc((t->n + 1) * sizeof *out->span), 0};
    for (size_t i = 0; out->span && i < t->n; i++)
        if (t->span[i].kind < SPENTS && t->span[i].end > t->span[i].begin)
            out->span[out->n++] = (uint32_t)i;
    return out->span;
}

/* The last one that has begun before that time; null: none. */
static const struct span *before(const struct trail *t, int64_t time) {
    size_t low = 0, high = t->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (t->thread->span[t->span[middle]].begin < time) low = middle + 1;
        else high = middle;
    }
    return low ? &t->thread->span[t->span[low - 1]] : NULL;
}

static void add_operators(const struct walk *w, const struct profile_thread *t, int64_t begin,
                          int64_t end) {
    const size_t first = tables_number(w->p, t->host, 0);
    for (size_t k = profile_until(t, begin); k < t->n; k++) {
        const struct span *s = &t->span[k];
        if (s->kind != SPAN_OPERATOR || s->item < 0) continue;
        if (s->begin >= end) break;
        w->path->item[first + (size_t)s->item] += (s->end < end ? s->end : end) -
                                                  (s->begin > begin ? s->begin : begin);
        if (s->end >= end) break;
    }
}

/* Whether a thread of this kind may have ended the wait, if it does not say who did. */
static bool may_end(enum span_thread what, int wait) {
    if (wait == SPENT_WAIT_HOSTS || wait == SPENT_WAIT_PAUSE) return false;
    return what == (wait == SPENT_WAIT_SAMPLES ? SPAN_READS
                    : wait == SPENT_WAIT_SAVE  ? SPAN_WRITES : SPAN_COMPUTES);
}

/* The thread that ended a wait, as far as it has lasted until `end`, and since when; -1: none. */
static int ended_by(const struct walk *w, int waiting, const struct span *wait, int64_t end,
                    int64_t *since) {
    const struct profile_thread *t = w->p->thread;
    const int host = t[waiting].host, threads = w->p->host[host].threads;
    int found = -1;
    *since = wait->begin;
    for (int i = 0; i < w->p->n_threads; i++) {
        const bool is_whom = threads && wait->whom == t[i].place * threads + t[i].thread;
        if (i == waiting || t[i].host != host) continue;
        if (wait->whom == SPAN_NOBODY ? !may_end(t[i].what, wait->kind) : !is_whom) continue;
        const struct span *last = profile_last(&t[i], wait->begin + 1, end),
                          *on = before(&w->trail[i], end);
        if (last && on && last->end > *since) {
            *since = last->end;
            found = i;
        } else if (is_whom && on && on->end >= end) { /* it was at that all the time */
            *since = end;
            found = i;
        }
    }
    return found;
}

static void add_piece(struct walk *w, int thread, int64_t begin, int64_t end) {
    struct path_piece *last = w->pieces ? &w->piece[w->pieces - 1] : NULL;
    if (last && last->thread == thread && last->begin == end) {
        last->begin = begin;
        return;
    }
    if (ARRAY_GROW(w->piece, w->pieces, w->room))
        w->piece[w->pieces++] = (struct path_piece){thread, begin, end};
    else w->failed = true;
}

/* From `end` back to `begin`, starting on this thread. */
static void walk_back(struct walk *w, int thread, int64_t begin, int64_t end) {
    int64_t since, *time = w->path->time;
    int turns = 0; /* without a step back */
    w->path->all += end - begin;
    while (end > begin) {
        const struct span *s = before(&w->trail[thread], end);
        const int on = thread;
        int64_t from = s && s->begin > begin ? s->begin : begin;
        if (!s || s->end < end) {
            from = s && s->end > begin ? s->end : begin;
            time[SPENT_UNKNOWN] += end - from;
        } else if (profile_is_wait(s)) {
            const int next = turns < w->p->n_threads ? ended_by(w, thread, s, end, &since) : -1;
            if (next >= 0 && since > begin) {
                from = since;
                thread = next;
                w->path->turns++;
            }
            time[s->kind] += end - from;
        } else {
            time[s->kind] += end - from;
            add_operators(w, &w->p->thread[thread], from, end);
        }
        if (from < end) add_piece(w, on, from, end);
        turns = from < end ? 0 : turns + 1;
        end = from;
    }
}

/* The thread that opens and ends the steps of the first host. */
static int find_reporter(const struct profile *p) {
    for (int all = 0; all < 2; all++)
        for (int i = 0; i < p->n_threads && !p->thread[i].host; i++) {
            const struct profile_thread *t = &p->thread[i];
            for (size_t k = 0; k < t->n && t->what == SPAN_COMPUTES; k++)
                if (all || t->span[k].kind == SPAN_STEP) return i;
        }
    return -1;
}

tri_status path_find(const struct profile *p, struct arena *arena, struct path *out) {
    const int reporter = find_reporter(p);
    struct walk w = {.p = p, .trail = calloc((size_t)p->n_threads + 1, sizeof *w.trail),
                     .path = out};
    const size_t items = tables_number(p, p->n_hosts, 0) + 1;
    *out = (struct path){.item = arena_alloc(arena, items * sizeof *out->item)};
    bool good = w.trail && out->item;
    for (int i = 0; i < p->n_threads && good; i++) good = make_trail(&p->thread[i], &w.trail[i]);
    for (int i = good && reporter >= 0 ? p->host[0].n_steps : 0; i-- > 0;) /* the latest first */
        walk_back(&w, reporter, p->host[0].step[i].begin, p->host[0].step[i].next);
    out->piece = arena_alloc(arena, (w.pieces + 1) * sizeof *out->piece);
    if (out->piece && w.pieces) memcpy(out->piece, w.piece, w.pieces * sizeof *out->piece);
    out->n = out->piece ? w.pieces : 0;
    good &= out->piece && !w.failed;
    free(w.piece);
    for (int i = 0; i < p->n_threads && w.trail; i++) free(w.trail[i].span);
    free(w.trail);
    return good ? TRI_OK : base_no_memory("the critical path");
}

void path_tell(const struct path *path, struct text *out) {
    bool told[SPENTS] = {false};
    for (int n = 0; n < SPENTS; n++) {
        int most = -1;
        for (int i = 0; i < SPENTS; i++)
            if (!told[i] && (most < 0 || path->time[i] > path->time[most])) most = i;
        const double share = path->all ? (double)path->time[most] / (double)path->all : 0;
        if (share < SHOWN) return;
        told[most] = true;
        text_add(out, "%s%s%s %.0f %%", n ? ", " : "",
                 spent_rows[most].group == SPENT_WAITS ? "waits for " : "", spent_rows[most].name,
                 100 * share);
    }
}
