/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/order.h"

#include <stdlib.h>
#include <string.h>

#include "plan/memory.h"

/* ---- a heap of units, by the memory that they add, then by their old positions ---- */

struct entry {
    int64_t adds;
    int unit;
};

struct heap {
    struct entry *entry;
    size_t n, capacity;
};

static bool before(struct entry a, struct entry b) {
    return a.adds != b.adds ? a.adds < b.adds : a.unit < b.unit;
}

static bool push(struct heap *h, struct entry e) {
    if (!ARRAY_GROW(h->entry, h->n, h->capacity)) return false;
    size_t i = h->n++;
    for (; i && before(e, h->entry[(i - 1) / 2]); i = (i - 1) / 2)
        h->entry[i] = h->entry[(i - 1) / 2];
    h->entry[i] = e;
    return true;
}

static int pop(struct heap *h) {
    int top = h->entry[0].unit;
    struct entry last = h->entry[--h->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && before(h->entry[child + 1], h->entry[child])) child++;
        if (!before(h->entry[child], last)) break;
        h->entry[i] = h->entry[child];
    }
    h->entry[i] = last;
    return top;
}

/* ---- which units read which tensors ---- */

/* A unit has the tensor as an input. One entry, even if it is an input several times. */
struct use {
    int unit, tensor;
    bool reads; /* its contents, not just its shape */
};

/* The memory of a tensor and of its aliases (the same elements in other shapes). */
struct place {
    size_t bytes;           /* 0: outside of the arena */
    bool forever;           /* a result: needed after the program */
    bool target;            /* an update changes it */
    int left;               /* reads that are still to come */
    size_t first_use, uses; /* in `use` */
};

struct order {
    const tri_graph *g;
    struct units units;
    struct memory_item *item;
    bool *outside;       /* by tensor */
    int *root;           /* by tensor: the tensor that stands for its place */
    int *target;         /* by tensor: the source of which it is the new value; -1: none */
    struct place *place; /* by root */
    struct use *use;
    int *waits;          /* by unit: inputs that are not computed yet */
    bool *done;          /* by unit */
    bool *made;          /* by tensor: a unit computes it */
    int leg;             /* units of later legs must wait */
    size_t left;         /* units of this leg that have not run */
    struct heap natural, freeing; /* units that can run: all, and those that add no memory */
    int *sequence;       /* the result: the units in their new order */
    size_t n_sequence;
};

static bool reads(const struct unit *u, int k) { return !unit_shape_only(u, k); }

static bool first_time(const struct unit *u, int k) {
    for (int i = 0; i < k; i++)
        if (u->in[i] == u->in[k]) return false;
    return true;
}

static bool is_alias(const struct unit *u) {
    return u->n == 1 && u->node[0]->entry->op->values == TRI_VALUES_SAME;
}

/* Whether the unit can write an output over an input. Without asking a device this is known of
 * elementwise operators only. */
static bool shares(const void *state, int out, int in) {
    const struct unit *u = state;
    (void)out, (void)in;
    for (int i = 0; i < u->n; i++) {
        const char *factors = u->node[i]->entry->op->factors;
        if (!factors || strncmp(factors, "...", 3)) return false;
    }
    return true;
}

static void find_places(struct order *o) {
    const tri_graph *g = o->g;
    bool *result = o->made; /* not in use yet */
    graph_mark_results(g, result);
    for (int t = 0; t < g->n_tensors; t++) o->root[t] = t, o->target[t] = -1;
    for (size_t i = 0; i < g->n_updates; i++)
        if (!g->update[i].condition) o->target[g->update[i].value->id] = g->update[i].target->id;
    for (size_t i = 0; i < o->units.n; i++) {
        const struct unit *u = &o->units.unit[i];
        for (int k = 0; k < u->n_out; k++) {
            int t = u->out[k]->id;
            if (is_alias(u) && !o->outside[t]) o->root[t] = o->root[u->in[0]->id];
            struct place *p = &o->place[o->root[t]];
            if (o->root[t] == t) p->bytes = o->outside[t] ? 0 : memory_bytes(u->out[k]);
            p->forever |= result[t];
        }
    }
    for (int t = 0; t < g->n_tensors; t++)
        if (o->target[t] >= 0) o->place[o->root[o->target[t]]].target = true;
    memset(result, 0, (size_t)g->n_tensors * sizeof *result);
}

/* Lists the uses of each place: the first pass counts them, the second fills the list. */
static void find_uses(struct order *o) {
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < o->units.n; i++) {
            const struct unit *u = &o->units.unit[i];
            for (int k = 0; k < u->n_in; k++) {
                int t = u->in[k]->id;
                struct place *p = &o->place[o->root[t]];
                if (!first_time(u, k)) continue;
                if (pass) {
                    o->use[p->first_use + p->uses] = (struct use){(int)i, t, reads(u, k)};
                    p->left += reads(u, k);
                }
                p->uses++;
            }
        }
        for (int t = 0; t < o->g->n_tensors && !pass; t++) {
            o->place[t].first_use = n;
            n += o->place[t].uses;
            o->place[t].uses = 0;
        }
    }
}

/* ---- how much memory a unit adds ---- */

/* Whether all reads of the place that are still to come are this unit's. */
static bool last_reader(const struct order *o, const struct unit *u, int root) {
    int own = 0;
    for (int k = 0; k < u->n_in; k++)
        own += o->root[u->in[k]->id] == root && reads(u, k) && first_time(u, k);
    return own == o->place[root].left;
}

/* Whether the unit writes a new value in place, as no other unit has to read the old one. */
static bool in_place(const struct order *o, const struct unit *u, const tri_tensor *out) {
    int target = o->target[out->id];
    for (int k = 0; target >= 0 && k < u->n_in; k++)
        if (u->in[k]->id == target) return shares(u, 0, k) && last_reader(o, u, o->root[target]);
    return false;
}

static int64_t adds(const struct order *o, const struct unit *u) {
    int64_t bytes = 0;
    for (int k = 0; k < u->n_out; k++)
        if (o->root[u->out[k]->id] == u->out[k]->id && !in_place(o, u, u->out[k]))
            bytes += (int64_t)o->place[u->out[k]->id].bytes;
    for (int k = 0; k < u->n_in; k++) {
        int root = o->root[u->in[k]->id];
        const struct place *p = &o->place[root];
        bool again = false; /* an earlier input has this place, too */
        for (int i = 0; i < k; i++) again |= o->root[u->in[i]->id] == root;
        bool goes_on = u->n_out && o->root[u->out[0]->id] == root;
        if (!again && !goes_on && p->bytes && !p->forever && last_reader(o, u, root))
            bytes -= (int64_t)p->bytes;
    }
    return bytes;
}

/* ---- the order ---- */

static int leg_of(const struct order *o, int i) { return o->units.unit[i].node[0]->leg; }

static bool can_run(const struct order *o, int i) {
    return !o->done[i] && !o->waits[i] && leg_of(o, i) == o->leg;
}

static bool offer(struct order *o, int i) {
    int64_t more = adds(o, &o->units.unit[i]);
    return more > 0 || push(&o->freeing, (struct entry){more, i});
}

/* When only a few units still read a place, one of them may now be able to free it. */
static bool reconsider(struct order *o, const struct place *p) {
    enum { FEW = 4 };
    if (p->left > FEW || !(p->bytes || p->target)) return true;
    for (size_t k = 0; k < p->uses; k++) {
        int i = o->use[p->first_use + k].unit;
        if (can_run(o, i) && !offer(o, i)) return false;
    }
    return true;
}

/* Begins a leg of the lane: offers its units that can run. */
static bool begin_leg(struct order *o) {
    for (int i = 0; i < (int)o->units.n; i++) {
        o->left += leg_of(o, i) == o->leg;
        if (can_run(o, i) && !(push(&o->natural, (struct entry){0, i}) && offer(o, i)))
            return false;
    }
    return true;
}

static bool start(struct order *o) {
    for (size_t i = 0; i < o->units.n; i++) {
        const struct unit *u = &o->units.unit[i];
        for (int k = 0; k < u->n_out; k++) o->made[u->out[k]->id] = true;
        for (int k = 0; k < u->n_in; k++)
            o->waits[i] += o->made[u->in[k]->id] && first_time(u, k);
    }
    return begin_leg(o);
}

static bool run(struct order *o, int i) {
    const struct unit *u = &o->units.unit[i];
    o->done[i] = true;
    o->left--;
    o->sequence[o->n_sequence++] = i;
    for (int k = 0; k < u->n_in; k++)
        if (first_time(u, k)) o->place[o->root[u->in[k]->id]].left -= reads(u, k);
    for (int k = 0; k < u->n_out; k++) {
        const struct place *p = &o->place[o->root[u->out[k]->id]];
        for (size_t j = 0; j < p->uses; j++) {
            const struct use *use = &o->use[p->first_use + j];
            if (use->tensor != u->out[k]->id || --o->waits[use->unit]) continue;
            if (!can_run(o, use->unit)) continue;
            if (!push(&o->natural, (struct entry){0, use->unit}) || !offer(o, use->unit))
                return false;
        }
    }
    for (int k = 0; k < u->n_in; k++)
        if (first_time(u, k) && !reconsider(o, &o->place[o->root[u->in[k]->id]])) return false;
    return true;
}

/* Runs units that add no memory first, beginning with the one that frees most; else the first unit
 * of the old order that can run. */
static bool sequence(struct order *o) {
    bool ok = start(o);
    while (ok && o->n_sequence < o->units.n) {
        while (ok && (o->freeing.n || o->natural.n)) {
            int i = pop(o->freeing.n ? &o->freeing : &o->natural);
            if (!o->done[i]) ok = run(o, i);
        }
        CHECK(!ok || !o->left);
        o->leg++;
        ok = ok && begin_leg(o);
    }
    CHECK(!ok || o->n_sequence == o->units.n);
    return ok;
}

/* ---- the graph in the new order ---- */

/* One more than the bytes of the arena, in the old order or the new one; 0: out of memory. */
static size_t needed(const struct order *o, bool anew) {
    struct memory_plan plan;
    for (size_t i = 0; i < o->units.n; i++) {
        const struct unit *u = &o->units.unit[anew ? (size_t)o->sequence[i] : i];
        o->item[i] = (struct memory_item){.unit = u, .alias = is_alias(u), .shares = shares,
                                          .state = u};
    }
    if (!memory_plan(o->g, o->item, o->units.n, o->outside, 1, &plan)) return 0;
    size_t total = plan.total;
    memory_plan_free(&plan);
    return total + 1;
}

struct list {
    tri_node **node;
    size_t n;
    bool *there; /* by node */
};

static void put(struct list *l, tri_node *n) {
    if (!l->there[n->id]) l->node[l->n++] = n;
    l->there[n->id] = true;
}

/* Sources are put before their first use; unused sources are last. */
static bool arrange(tri_graph *g, const struct order *o) {
    struct list l = {.node = malloc((g->n_nodes + 1) * sizeof(tri_node *)),
                     .there = calloc(g->n_nodes + 1, sizeof *l.there)};
    bool ok = l.node && l.there;
    for (size_t i = 0; ok && i < o->units.n; i++) {
        const struct unit *u = &o->units.unit[o->sequence[i]];
        for (int k = 0; k < u->n; k++)
            for (int j = 0; j < u->node[k]->n_in; j++)
                if (!u->node[k]->in[j]->node->n_in) put(&l, u->node[k]->in[j]->node);
        for (int k = 0; k < u->n; k++) put(&l, u->node[k]);
    }
    for (size_t i = 0; ok && i < g->n_nodes; i++) put(&l, g->node[i]);
    if (ok) graph_arrange(g, l.node, l.n);
    free(l.node);
    free(l.there);
    return ok;
}

static bool allocate(struct order *o) {
    size_t tensors = (size_t)o->g->n_tensors + 1, units = o->units.n + 1, uses = 1;
    for (size_t i = 0; i < o->units.n; i++) uses += (size_t)o->units.unit[i].n_in;
    o->outside = calloc(tensors, sizeof *o->outside);
    o->root = calloc(tensors, sizeof *o->root);
    o->target = calloc(tensors, sizeof *o->target);
    o->place = calloc(tensors, sizeof *o->place);
    o->made = calloc(tensors, sizeof *o->made);
    o->use = calloc(uses, sizeof *o->use);
    o->item = calloc(units, sizeof *o->item);
    o->waits = calloc(units, sizeof *o->waits);
    o->done = calloc(units, sizeof *o->done);
    o->sequence = calloc(units, sizeof *o->sequence);
    return o->outside && o->root && o->target && o->place && o->made && o->use && o->item &&
           o->waits && o->done && o->sequence;
}

static void release(struct order *o) {
    void *all[] = {o->outside, o->root,  o->target, o->place,    o->made,         o->use,
                   o->item,    o->waits, o->done,   o->sequence, o->natural.entry,
                   o->freeing.entry};
    for (size_t i = 0; i < COUNT(all); i++) free(all[i]);
    units_free(&o->units);
}

tri_status order_for_memory(tri_graph *g) {
    struct order o = {.g = g};
    tri_status status = units_of(g, &o.units);
    if (status) return status;
    bool ok = allocate(&o);
    if (ok) {
        memory_mark_outside(g, true, o.outside);
        find_places(&o);
        find_uses(&o);
        ok = sequence(&o);
    }
    size_t now = ok ? needed(&o, false) : 0, then = now ? needed(&o, true) : 0;
    ok = then && (then >= now || arrange(g, &o));
    release(&o);
    return ok ? TRI_OK : base_no_memory("ordering operators");
}
