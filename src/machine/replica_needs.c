/* SPDX-License-Identifier: Apache-2.0
 * Walks over the items in order. For each range of addresses it keeps the last item that writes it,
 * and those that have read it since. */
#include "machine/replica_needs.h"

#include <stdlib.h>
#include <string.h>

void replica_parts(const struct program_item *item, int round, int64_t e, int64_t n,
                   int64_t *begin, int64_t *end) {
    int64_t before = round == 2 ? item->parts[0] : 0;
    program_share(item->parts[round - 1], e, n, begin, end);
    *begin += before;
    *end += before;
}

bool replica_skips(const struct program *p, size_t i) {
    const struct program_item *item = &p->item[i];
    return item->by_thread->kernel.alias &&
           p->memory.root[item->unit->out[0]->id] == p->memory.root[item->unit->in[0]->id];
}

/* ---- ranges ---- */

#define NONE -1

/* Lists share their ends, so that a range can be divided. */
struct reader {
    int item, next;
};

struct range {
    size_t begin, end;
    int writer, readers; /* item; the head of a list */
};

/* The arena, or all memory outside: there the place of a root is its number. */
struct space {
    struct range *range; /* apart, ascending */
    size_t n, capacity;
};

struct finder {
    const struct program *p;
    size_t begin; /* of the range */
    struct replica_needs *out;
    size_t executors;
    struct space arena, outside;
    struct reader *reader;
    size_t n_readers, reader_capacity;
    int *seen;       /* by item: the last item that was found to depend on it */
    uint32_t *want;  /* by executor: what the item needs */
    uint32_t *known; /* by executor, then executor: what it has waited for */
    uint32_t *last;  /* by executor: of its last round so far */
    bool failed;
};

/* Makes room for a range at index i. */
static bool insert(struct finder *f, struct space *s, size_t i, struct range r) {
    if (!ARRAY_GROW(s->range, s->n, s->capacity)) return !(f->failed = true);
    memmove(&s->range[i + 1], &s->range[i], (s->n - i) * sizeof *s->range);
    s->range[i] = r;
    s->n++;
    return true;
}

/* The index of the first range from x on, after dividing the one that x is inside. */
static size_t cut(struct finder *f, struct space *s, size_t x) {
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->range[middle].end <= x) low = middle + 1;
        else high = middle;
    }
    if (low == s->n || s->range[low].begin >= x) return low;
    struct range left = s->range[low];
    left.end = x;
    if (insert(f, s, low, left)) s->range[low + 1].begin = x;
    return low + 1;
}

/* ---- what an item needs ---- */

static void want(struct finder *f, size_t item, int round) {
    const struct program_item *it = &f->p->item[item];
    int threads = f->p->threads;
    for (int64_t e = 0, n = (int64_t)it->members * threads; e < n; e++) {
        int64_t begin, end;
        replica_parts(it, round, e, n, &begin, &end);
        uint32_t *w = &f->want[it->member[e / threads] * threads + e % threads];
        uint32_t value = (uint32_t)replica_round_of(item, round) + 1;
        if (begin < end && *w < value) *w = value;
    }
}

/* Item i needs all of item j. Its second round has waited for its first one. */
static void depend(struct finder *f, int i, int j) {
    if (j == NONE || j == i || f->seen[j] == i) return;
    f->seen[j] = i;
    want(f, (size_t)j, f->p->item[j].parts[1] ? 2 : 1);
}

static void add_reader(struct finder *f, struct range *r, int item) {
    if (!ARRAY_GROW(f->reader, f->n_readers, f->reader_capacity)) {
        f->failed = true;
        return;
    }
    f->reader[f->n_readers] = (struct reader){item, r->readers};
    r->readers = (int)f->n_readers++;
}

static void read_range(struct finder *f, struct space *s, size_t begin, size_t end, int item) {
    size_t i = cut(f, s, begin), k = cut(f, s, end);
    if (i == k && !f->failed) insert(f, s, k++, (struct range){begin, end, NONE, NONE});
    for (; i < k && !f->failed; i++) {
        depend(f, item, s->range[i].writer);
        add_reader(f, &s->range[i], item);
    }
}

static void write_range(struct finder *f, struct space *s, size_t begin, size_t end, int item) {
    size_t i = cut(f, s, begin), k = cut(f, s, end);
    for (size_t j = i; j < k && !f->failed; j++) {
        depend(f, item, s->range[j].writer);
        for (int l = s->range[j].readers; l != NONE; l = f->reader[l].next)
            depend(f, item, f->reader[l].item);
    }
    if (i == k) {
        insert(f, s, i, (struct range){begin, end, item, NONE});
    } else {
        s->range[i] = (struct range){begin, end, item, NONE};
        memmove(&s->range[i + 1], &s->range[k], (s->n - k) * sizeof *s->range);
        s->n -= k - i - 1;
    }
}

static void touch(struct finder *f, int item, const tri_tensor *t,
                  void (*how)(struct finder *, struct space *, size_t, size_t, int)) {
    const struct memory_plan *m = &f->p->memory;
    size_t at = m->offset[t->id];
    if (at == MEMORY_OUTSIDE)
        how(f, &f->outside, (size_t)m->root[t->id], (size_t)m->root[t->id] + 1, item);
    else
        how(f, &f->arena, at, at + memory_bytes(t), item);
}

static void find_wanted(struct finder *f, int i) {
    const struct unit *u = f->p->item[i].unit;
    size_t scratch = program_scratch(f->p, (size_t)i), at = f->p->memory.scratch[i];
    memset(f->want, 0, f->executors * sizeof *f->want);
    for (int k = 0; k < u->n_in; k++)
        if (!unit_shape_only(u, k)) touch(f, i, u->in[k], read_range);
    for (int k = 0; k < u->n_out; k++) touch(f, i, u->out[k], write_range);
    if (scratch)
        write_range(f, &f->arena, at, at + scratch, i);
}

/* ---- the list ---- */

static void add(struct finder *f, uint32_t executor, uint32_t value) {
    struct replica_needs *o = f->out;
    if (!ARRAY_GROW(o->need, o->n, o->capacity)) f->failed = true;
    else o->need[o->n++] = (struct replica_need){executor, value};
}

/* Lists what is wanted for a round of the item, unless all that take part have waited for it. */
static void list(struct finder *f, size_t item, int round) {
    const struct program_item *it = &f->p->item[item];
    size_t threads = (size_t)f->p->threads, n = (size_t)it->members * threads;
    bool *needed = calloc(f->executors, sizeof *needed);
    if (!needed) f->failed = true;
    for (size_t e = 0; e < n && needed; e++) {
        int64_t begin, end;
        size_t me = it->member[e / threads] * threads + e % threads;
        uint32_t *known = &f->known[me * f->executors];
        replica_parts(it, round, (int64_t)e, (int64_t)n, &begin, &end);
        if (begin == end) continue;
        f->last[me] = (uint32_t)replica_round_of(item, round) + 1;
        for (size_t o = 0; o < f->executors; o++) {
            if (o == me || known[o] >= f->want[o]) continue;
            known[o] = f->want[o];
            needed[o] = true;
        }
    }
    for (size_t o = 0; o < f->executors && needed; o++)
        if (needed[o]) add(f, (uint32_t)o, f->want[o]);
    free(needed);
}

static void begin_round(struct finder *f, size_t item, int round) {
    f->out->first[replica_round_of(item - f->begin, round)] = f->out->n;
}

static void list_item(struct finder *f, size_t i) {
    begin_round(f, i, 1);
    if (!replica_skips(f->p, i)) {
        find_wanted(f, (int)i);
        list(f, i, 1);
    }
    begin_round(f, i, 2);
    if (replica_skips(f->p, i) || !f->p->item[i].parts[1]) return;
    memset(f->want, 0, f->executors * sizeof *f->want);
    want(f, i, 1);
    list(f, i, 2);
}

/* After a stop all have waited for all that was done before it, through the captain. */
static void list_stop(struct finder *f) {
    for (size_t e = 1; e < f->executors; e++)
        if (f->last[e] > f->known[e]) add(f, (uint32_t)e, f->last[e]);
    for (size_t e = 0; e < f->executors; e++)
        memcpy(&f->known[e * f->executors], f->last, f->executors * sizeof *f->last);
}

static void find(struct finder *f, const struct replica_range *r) {
    int stop = 0;
    for (size_t i = r->begin; i <= r->end && !f->failed; i++) {
        begin_round(f, i, 0);
        for (; stop < r->n_stops && r->stop[stop] == i; stop++) list_stop(f);
        if (i < r->end) list_item(f, i);
    }
    begin_round(f, r->end, 1);
}

bool replica_find_needs(const struct program *p, const struct replica_range *range,
                        struct replica_needs *out) {
    struct finder f = {.p = p, .begin = range->begin, .out = out,
                       .executors = (size_t)(p->threads * p->members)};
    size_t rounds = replica_round_of(range->end - range->begin, 2);
    f.seen = malloc((p->n_items + 1) * sizeof *f.seen);
    f.want = calloc(f.executors, sizeof *f.want);
    f.last = calloc(f.executors, sizeof *f.last);
    f.known = calloc(f.executors * f.executors, sizeof *f.known);
    *out = (struct replica_needs){.first = calloc(rounds, sizeof *out->first)};
    f.failed = !f.seen || !f.want || !f.last || !f.known || !out->first;
    for (size_t i = 0; i < p->n_items && f.seen; i++) f.seen[i] = NONE;
    if (!f.failed) find(&f, range);
    free(f.arena.range);
    free(f.outside.range);
    free(f.reader);
    free(f.seen);
    free(f.want);
    free(f.last);
    free(f.known);
    return !f.failed;
}
