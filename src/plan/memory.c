/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/memory.h"

#include <stdlib.h>

size_t memory_bytes(const tri_tensor *t) { return memory_round(base_spec_bytes(&t->spec)); }

void memory_mark_outside(const tri_graph *g, bool outputs, bool *outside) {
    for (size_t i = 0; i < g->n_nodes; i++)
        if (!node_runs(g->node[i]))
            outside[g->node[i]->out->id] = true;
    for (size_t i = 0; outputs && i < g->n_outputs; i++)
        if (!g->output[i].name) outside[g->output[i].tensor->id] = true;
}

/* ---- lifetimes ---- */

struct planner {
    const tri_graph *g;
    const struct memory_item *item;
    size_t n;
    const bool *outside;
    struct memory_plan *p;
    int regions;
    int *region;         /* by tensor, if it has its own place */
    int *last;           /* by tensor: the last item that needs it; n: needed after all items */
    const tri_tensor **target; /* by tensor: what it updates, in place if possible */
};

/* A use of a tensor extends the life of its place. */
static void extend(struct planner *a, const tri_tensor *t, int item) {
    int *end = &a->p->end[a->p->root[t->id]];
    if (item > *end) *end = item;
}

static void last_uses(struct planner *a) {
    const tri_graph *g = a->g;
    int n = (int)a->n;
    for (int t = 0; t < g->n_tensors; t++) {
        a->p->root[t] = t;
        a->last[t] = -1;
        a->p->begin[t] = a->p->end[t] = -1;
    }
    for (int i = 0; i < n; i++) {
        const struct unit *u = a->item[i].unit;
        for (int k = 0; k < u->n_out; k++) a->last[u->out[k]->id] = i;
        for (int k = 0; k < u->n_in; k++)
            if (!unit_shape_only(u, k)) a->last[u->in[k]->id] = i;
    }
    for (size_t i = 0; i < g->n_outputs; i++) a->last[g->output[i].tensor->id] = n;
    for (size_t i = 0; i < g->n_updates; i++) {
        const struct graph_update *u = &g->update[i];
        a->last[u->value->id] = n;
        if (u->condition)
            a->last[u->condition->id] = n;
        else
            a->target[u->value->id] = u->target;
    }
    /* Tensors from outside are there from the start. */
    for (int t = 0; t < g->n_tensors; t++)
        if (a->outside[t]) a->p->end[t] = a->last[t];
}

/* ---- regions ---- */

#define NOBODY -1

static void use(struct planner *a, int tensor, int region) {
    int *r = &a->region[tensor];
    *r = *r == NOBODY || *r == region ? region : 0;
}

/* The region of each tensor, if it has its own place. */
static void find_regions(struct planner *a) {
    const tri_graph *g = a->g;
    for (int t = 0; t < g->n_tensors; t++) a->region[t] = NOBODY;
    for (size_t i = 0; i < a->n; i++) {
        const struct unit *u = a->item[i].unit;
        for (int k = 0; k < u->n_out; k++) use(a, u->out[k]->id, a->item[i].region);
        for (int k = 0; k < u->n_in; k++)
            if (!unit_shape_only(u, k)) use(a, u->in[k]->id, a->item[i].region);
    }
    for (int t = 0; t < g->n_tensors; t++)
        if (a->last[t] == (int)a->n) use(a, t, 0);
}

/* ---- places that several tensors have ---- */

/* Whether the place of `in` is not needed after this item, and has the size and region of `out`. */
static bool ends_here(const struct planner *a, int i, const tri_tensor *in, const tri_tensor *out) {
    int root = a->p->root[in->id];
    return a->p->end[root] == i && memory_bytes(in) == memory_bytes(out) &&
           (a->outside[root] || a->region[root] == a->region[out->id]);
}

/* Whether the kernel can write the output over the input. Not if several nodes run as one and
 * another input has the same place: the kernel cannot know that this one is overwritten as well. */
static bool shares(const struct planner *a, const struct memory_item *m, int out, int in) {
    const struct unit *u = m->unit;
    const int *root = a->p->root;
    for (int j = 0; j < u->n_in && u->n > 1; j++)
        if (j != in && root[u->in[j]->id] == root[u->in[in]->id]) return false;
    return m->shares && m->shares(m->state, out, in);
}

/* Updates in place, if nothing needs the old value later. Different tensors from outside do
 * not share memory, except a parameter and its views (hoist.c), in lanes, which update nothing. */
static bool update_in_place(struct planner *a, int i, int k) {
    const struct memory_item *m = &a->item[i];
    const tri_tensor *out = m->unit->out[k], *target = a->target[out->id];
    int in = target ? unit_in(m->unit, target) : -1;
    if (in < 0 || m->early || !a->g->in_place || a->p->root[target->id] != target->id) return false;
    if (!shares(a, m, k, in) || !ends_here(a, i, target, out)) return false;
    a->p->root[out->id] = target->id;
    return true;
}

static bool take_over(struct planner *a, int i, int k) {
    const struct memory_item *m = &a->item[i];
    const tri_tensor *out = m->unit->out[k];
    for (int j = 0; j < m->unit->n_in && a->g->in_place; j++) {
        const tri_tensor *in = m->unit->in[j];
        int root = a->p->root[in->id];
        if (a->outside[root] || !shares(a, m, k, j) || !ends_here(a, i, in, out)) continue;
        a->p->root[out->id] = root;
        return true;
    }
    return false;
}

/* Gives an alias the place of its input. Not if the place is outside and the alias is read after
 * the step: the step's updates could change it. Within the step, readers of the alias count as
 * readers of the place, which is not updated before they have run. */
static bool alias(struct planner *a, const struct memory_item *m) {
    const struct unit *u = m->unit;
    int out = u->out[0]->id, root = m->alias ? a->p->root[u->in[0]->id] : out;
    if (root == out || a->outside[out] || (a->outside[root] && a->last[out] == (int)a->n))
        return false;
    a->p->root[out] = root;
    if (a->region[root] != a->region[out]) a->region[root] = 0;
    return true;
}

static void lifetimes(struct planner *a) {
    last_uses(a);
    find_regions(a);
    for (int i = 0; i < (int)a->n; i++) {
        const struct memory_item *m = &a->item[i];
        for (int k = 0; k < m->unit->n_out; k++) {
            const tri_tensor *t = m->unit->out[k];
            if (!a->outside[t->id] && !(k == 0 && alias(a, m)) && !update_in_place(a, i, k) &&
                !take_over(a, i, k))
                a->p->begin[t->id] = i;
            extend(a, t, a->last[t->id]);
        }
    }
}

/* ---- places ---- */

/* Something that needs a place: the root of several tensors, or an item's scratch. */
struct block {
    size_t bytes, offset;
    int begin, end;
    size_t number; /* makes the order of sorting unique */
    size_t *where; /* the offset's place in the plan */
};

static size_t collect(const struct planner *a, int region, struct block *b) {
    size_t n = 0;
    struct memory_plan *p = a->p;
    for (size_t i = 0; i < a->n; i++) {
        const struct unit *u = a->item[i].unit;
        for (int k = 0; k < u->n_out; k++) {
            int t = u->out[k]->id;
            if (p->root[t] != t || a->outside[t] || a->region[t] != region) continue;
            b[n] = (struct block){memory_bytes(u->out[k]), 0, p->begin[t], p->end[t], n,
                                  &p->offset[t]};
            n++;
        }
        if (!a->item[i].scratch || a->item[i].region != region) continue;
        b[n] = (struct block){memory_round(a->item[i].scratch), 0, (int)i, (int)i, n,
                              &p->scratch[i]};
        n++;
    }
    return n;
}

static int by_begin(const void *a, const void *b) {
    const struct block *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int by_size(const void *a, const void *b) {
    const struct block *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : by_begin(a, b);
}

/* Drops blocks that end before item `begin`. */
static size_t forget(const struct block **placed, size_t n, int begin) {
    size_t kept = 0;
    for (size_t k = 0; k < n; k++)
        if (placed[k]->end >= begin) placed[kept++] = placed[k];
    return kept;
}

/* Places the blocks one after the other, each in the lowest gap between blocks that live at the
 * same time. Returns the total. placed: space for n pointers, kept in the order of offsets.
 * in_time: the blocks are sorted by their begin. */
static size_t place(struct block *b, size_t n, const struct block **placed, bool in_time) {
    enum { OFTEN = 64 };
    size_t total = 0, there = 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = 0, k;
        if (in_time && i % OFTEN == 0) there = forget(placed, there, b[i].begin);
        for (k = 0; k < there; k++) {
            const struct block *o = placed[k];
            if (o->end < b[i].begin || o->begin > b[i].end || o->offset + o->bytes <= at) continue;
            if (o->offset >= at && o->offset - at >= b[i].bytes) break;
            at = o->offset + o->bytes;
        }
        b[i].offset = at;
        for (k = there++; k > 0 && placed[k - 1]->offset > at; k--) placed[k] = placed[k - 1];
        placed[k] = &b[i];
        if (at + b[i].bytes > total) total = at + b[i].bytes;
    }
    return total;
}

/* Unsigned arithmetic wraps around, so `change` may hold negative numbers. */
static void note_changes(const struct block *b, size_t n, size_t *change) {
    for (size_t i = 0; i < n; i++) {
        change[b[i].begin] += b[i].bytes;
        change[b[i].end + 1] -= b[i].bytes;
    }
}

static void find_peak(const struct planner *a, const size_t *change) {
    size_t live = 0;
    for (size_t i = 0; i < a->n; i++) {
        live += change[i];
        if (live > a->p->peak) {
            a->p->peak = live;
            a->p->peak_item = (int)i;
        }
    }
}

#define MANY 32768 /* blocks: by size, each would be compared with most others */

/* Tries two orders of placing and takes the better one; of many blocks only the faster one. */
static size_t place_best(struct block *b, size_t n, const struct block **placed) {
    qsort(b, n, sizeof *b, by_begin);
    size_t first = place(b, n, placed, true);
    qsort(b, n, sizeof *b, by_size);
    size_t total = n > MANY ? SIZE_MAX : place(b, n, placed, false);
    if (first >= total) return total;
    qsort(b, n, sizeof *b, by_begin);
    return place(b, n, placed, true);
}

static void place_all(struct planner *a, struct block *b, const struct block **placed,
                      size_t *change) {
    for (int r = 0; r < a->regions; r++) {
        size_t n = collect(a, r, b);
        note_changes(b, n, change);
        size_t bytes = place_best(b, n, placed);
        for (size_t i = 0; i < n; i++) *b[i].where = a->p->total + b[i].offset;
        a->p->total += bytes;
    }
    find_peak(a, change);
    for (int t = 0; t < a->g->n_tensors; t++)
        a->p->offset[t] = a->outside[a->p->root[t]] ? MEMORY_OUTSIDE : a->p->offset[a->p->root[t]];
}

static bool allocate(struct memory_plan *p, size_t tensors, size_t items) {
    p->offset = calloc(tensors + 1, sizeof *p->offset);
    p->root = calloc(tensors + 1, sizeof *p->root);
    p->scratch = calloc(items + 1, sizeof *p->scratch);
    p->begin = calloc(tensors + 1, sizeof *p->begin);
    p->end = calloc(tensors + 1, sizeof *p->end);
    return p->offset && p->root && p->scratch && p->begin && p->end;
}

bool memory_plan(const tri_graph *g, const struct memory_item *item, size_t n, const bool *outside,
                 int regions, struct memory_plan *out) {
    *out = (struct memory_plan){0};
    size_t tensors = (size_t)g->n_tensors, blocks = tensors + n + 1;
    struct planner a = {.g = g, .item = item, .n = n, .outside = outside, .p = out,
                        .regions = regions, .region = calloc(tensors + 1, sizeof *a.region),
                        .last = calloc(tensors + 1, sizeof *a.last),
                        .target = calloc(tensors + 1, sizeof *a.target)};
    struct block *b = calloc(blocks, sizeof *b);
    const struct block **placed = calloc(blocks, sizeof *placed);
    size_t *change = calloc(n + 2, sizeof *change);
    bool ok = allocate(out, tensors, n) && a.region && a.last && a.target && b && placed && change;
    if (ok) {
        lifetimes(&a);
        place_all(&a, b, placed, change);
    } else {
        memory_plan_free(out);
    }
    free(a.region);
    free(a.last);
    free(a.target);
    free(b);
    free(placed);
    free(change);
    return ok;
}

void memory_plan_free(struct memory_plan *p) {
    free(p->offset);
    free(p->root);
    free(p->scratch);
    free(p->begin);
    free(p->end);
    *p = (struct memory_plan){0};
}
