/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/sweep.h"

#include <stdlib.h>
#include <string.h>

/* ---- conflicts ---- */

struct range {
    const char *begin, *end;
    bool written;
};

/* One round of an item, an update's copy, the guard, or the commit. */
struct entry {
    int item, update, round, level;
    int first, n; /* its ranges */
    int64_t parts;
};

struct builder {
    const struct program *p;
    struct entry *entry;
    int n;
    struct range *range;
    int n_ranges, most;
    bool failed;
};

static void touch(struct builder *b, const void *at, size_t bytes, bool written) {
    if (!at || !bytes) return;
    if (b->n_ranges == b->most) {
        int most = b->most ? 2 * b->most : 256;
        struct range *more = realloc(b->range, (size_t)most * sizeof *more);
        if (!more) {
            b->failed = true;
            return;
        }
        b->range = more;
        b->most = most;
    }
    b->range[b->n_ranges++] = (struct range){at, (const char *)at + bytes, written};
}

static struct entry *begin(struct builder *b, int item, int64_t parts) {
    b->entry[b->n] = (struct entry){.item = item, .parts = parts, .first = b->n_ranges};
    return &b->entry[b->n++];
}

static bool meet(const struct range *a, const struct range *b) {
    return a->begin < b->end && b->begin < a->end && (a->written || b->written);
}

static bool conflict(const struct builder *b, const struct entry *x, const struct entry *y) {
    for (int i = x->first; i < x->first + x->n; i++)
        for (int k = y->first; k < y->first + y->n; k++)
            if (meet(&b->range[i], &b->range[k])) return true;
    return false;
}

/* Puts the entry on the earliest level that its ranges allow. */
static void end(struct builder *b, struct entry *e) {
    e->n = b->n_ranges - e->first;
    for (struct entry *o = b->entry; o < e; o++)
        if (o->level >= e->level && conflict(b, o, e)) e->level = o->level + 1;
}

static void add_item(struct builder *b, int item) {
    const struct program *p = b->p;
    const struct program_item *it = &p->item[item];
    const struct unit *u = it->unit;
    if (it->by_thread->kernel.alias &&
        program_value(p, u->out[0]->id) == program_value(p, u->in[0]->id))
        return;
    for (int round = 0; round < 2; round++) {
        if (!it->parts[round]) continue;
        struct entry *e = begin(b, item, it->parts[round]);
        e->round = round;
        for (int i = 0; i < u->n_in; i++)
            touch(b, program_value(p, u->in[i]->id), base_spec_bytes(&u->in[i]->spec), false);
        for (int i = 0; i < u->n_out; i++)
            touch(b, program_value(p, u->out[i]->id), base_spec_bytes(&u->out[i]->spec), true);
        touch(b, it->by_thread->call.shared, it->shared, true);
        end(b, e);
    }
}

static void add_copy(struct builder *b, const struct sweep_copy *c, int i) {
    struct entry *e = begin(b, TASK_UPDATE, 1);
    e->update = i;
    touch(b, c->value, c->bytes, false);
    touch(b, c->condition, 1, false);
    touch(b, c->target, c->bytes, true);
    end(b, e);
}

/* Later entries that touch the store come after it. */
static void add_guard(struct builder *b, const struct sweep_guard *g) {
    struct entry *e = begin(b, TASK_GUARD, 1);
    touch(b, program_value(b->p, g->loss->id), base_spec_bytes(&g->loss->spec), false);
    touch(b, g->store, g->bytes, true);
    end(b, e);
}

/* ---- tasks ---- */

#define TASKS_PER_THREAD 16 /* of a sweep: enough to even out */
#define MOST_PARTS 32       /* of a task: a death costs no more */
_Static_assert(MOST_PARTS <= TASKS_MOST_PARTS, "a claim counts the parts");

static size_t save_bytes(const struct program_item *it, int64_t part) {
    const struct program_kernel *k = it->by_thread;
    int64_t first = 0, last = 0;
    size_t bytes = 0;
    if (k->kernel.span) k->kernel.span(k->kernel.state, part, &first, &last);
    for (int o = 0; o < it->unit->n_out; o++)
        for (int i = 0; i < it->unit->n_in; i++)
            if (k->in[i] && k->in[i] == k->out[o]) {
                bytes += (size_t)(last - first) * tri_type_size(it->unit->out[o]->spec.type);
                break;
            }
    return bytes;
}

static void cut(struct sweeps *s, const struct entry *e, int64_t each) {
    const struct program_item *it = e->item >= 0 ? &s->p->item[e->item] : NULL;
    int64_t first = e->round ? it->parts[0] : 0;
    bool in_place = it && !e->round && save_bytes(it, 0);
    for (int64_t part = 0; part < e->parts; part += each) {
        int64_t n = e->parts - part < each ? e->parts - part : each;
        s->task[s->n_tasks++] = (struct task){e->item, e->update, first + part, (int)n, in_place};
    }
    for (int64_t part = 0; in_place && part < e->parts; part++) {
        size_t bytes = save_bytes(it, part);
        if (bytes > s->undo_bytes) s->undo_bytes = bytes;
    }
}

static int64_t parts_each(const struct builder *b, int level, int all_threads) {
    int64_t parts = 0;
    for (int i = 0; i < b->n; i++)
        if (b->entry[i].level == level) parts += b->entry[i].parts;
    int64_t each = parts / ((int64_t)TASKS_PER_THREAD * all_threads);
    return each < 1 ? 1 : each > MOST_PARTS ? MOST_PARTS : each;
}

static tri_status make_tasks(struct builder *b, int all_threads, struct sweeps *s) {
    int64_t most = 0;
    for (int i = 0; i < b->n; i++) {
        most += b->entry[i].parts;
        if (b->entry[i].level >= s->n) s->n = b->entry[i].level + 1;
    }
    if (most > INT32_MAX) return base_fail(TRI_USAGE, "a step of too many parts");
    s->task = calloc((size_t)most + 1, sizeof *s->task);
    s->end = calloc((size_t)s->n + 1, sizeof *s->end);
    if (!s->task || !s->end) return base_no_memory("the tasks of a step");
    for (int level = 0; level < s->n; level++) {
        int64_t each = parts_each(b, level, all_threads);
        bool guard = false;
        for (int i = 0; i < b->n; i++) {
            if (b->entry[i].level != level) continue;
            cut(s, &b->entry[i], each);
            guard |= b->entry[i].item == TASK_GUARD;
        }
        s->end[level] = s->n_tasks;
        if (guard) s->guarded = s->n_tasks;
    }
    return TRI_OK;
}

tri_status sweeps_make(const struct program *p, const struct sweep_copy *copy, int copies,
                       int all_threads, int first, const struct sweep_guard *guard,
                       struct sweeps *s) {
    *s = (struct sweeps){.p = p, .first = first};
    struct builder b = {.p = p};
    b.entry = calloc(2 * p->n_items + (size_t)copies + 2, sizeof *b.entry);
    if (!b.entry) return base_no_memory("the tasks of a step");
    for (size_t i = 0; i < p->n_items; i++) {
        add_item(&b, (int)i);
        if (guard && unit_out(p->item[i].unit, guard->loss) >= 0) add_guard(&b, guard);
    }
    for (int i = 0; i < copies; i++) add_copy(&b, &copy[i], i);
    struct entry *commit = copy ? begin(&b, TASK_COMMIT, 1) : NULL;
    for (int i = 0; commit && i < b.n - 1; i++)
        if (b.entry[i].level >= commit->level) commit->level = b.entry[i].level + 1;
    tri_status status =
        b.failed ? base_no_memory("the tasks of a step") : make_tasks(&b, all_threads, s);
    s->undo_bytes += sizeof(struct undo);
    free(b.entry);
    free(b.range);
    if (status) sweeps_free(s);
    return status;
}

void sweeps_free(struct sweeps *s) {
    free(s->task);
    free(s->end);
    *s = (struct sweeps){0};
}

/* ---- running ---- */

static void save(const struct sweeps *s, int task, const struct claim *held, const struct tasks *t,
                 int thread) {
    const struct program_item *it = &s->p->item[s->task[task].item];
    const struct program_kernel *k = &it->by_thread[thread];
    int64_t first, last;
    k->kernel.span(k->kernel.state, s->task[task].part + held->value, &first, &last);
    tasks_save_begin(t);
    for (int o = 0; o < it->unit->n_out; o++)
        for (int i = 0; i < it->unit->n_in; i++) {
            if (k->in[i] != k->out[o]) continue;
            size_t size = tri_type_size(it->unit->out[o]->spec.type);
            size_t bytes = (size_t)(last - first) * size;
            const char *from = (char *)k->out[o] + (size_t)first * size;
            dev_copy_out(s->p->dev, tasks_save(t, from, bytes), from, bytes);
            break;
        }
    tasks_save_end(t, task, held);
}

bool sweep_run(const struct sweeps *s, int task, struct claim *held, const struct tasks *t,
               int thread, const struct program_step *step) {
    const struct task *is = &s->task[task];
    size_t item = (size_t)is->item;
    if (!is->in_place)
        return program_run_parts(s->p, item, thread, is->part, is->part + is->parts, step);
    while (held->value < is->parts) {
        int64_t part = is->part + held->value;
        save(s, task, held, t, thread);
        if (!program_run_parts(s->p, item, thread, part, part + 1, step) ||
            !tasks_advance(t, task, held))
            return false;
    }
    return true;
}
