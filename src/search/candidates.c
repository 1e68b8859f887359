/* SPDX-License-Identifier: Apache-2.0 */
#include "search/candidates.h"

#include <stdlib.h>
#include <string.h>

#include "plan/dist.h"
#include "plan/forward.h"
#include "plan/strategy_inside.h"

#define MOST_ROUNDS 12

/* One node while candidates are added. */
struct adding {
    struct candidates *c;
    const tri_node *n;
    struct factors f;
    bool has_factors;
    bool *waits; /* by node: a neighbour has something new to suggest */
    bool failed;
};

int candidates_owner(const struct candidates *c, const tri_node *n) {
    const tri_node *f = forward_repeated(c->forward, n);
    return f ? f->id : n->id;
}

struct layout spread_layout(const struct spread *s) {
    struct layout l = {0};
    memcpy(l.axis, s->axis, sizeof s->axis);
    return l;
}

bool spread_equal(const struct spread *a, const struct spread *b) {
    return split_equal(&a->axis[0], &b->axis[0]) && split_equal(&a->axis[1], &b->axis[1]);
}

int64_t search_seats(const struct mesh *m, int axis) {
    return axis < m->n ? m->axis[axis].size : 1;
}

static const struct candidate *held_of(const struct candidates *c, const tri_node *n) {
    return c->held ? c->held[n->id] : NULL;
}

/* In normal form, with the other axis. i: input, or after these output. */
static struct spread settled(const struct candidates *c, const tri_node *n, int i,
                             const struct split *split) {
    const struct candidate *held = held_of(c, n);
    const bool need = i < n->n_in;
    const tri_tensor *t = need ? n->in[i] : &n->out[i - n->n_in];
    struct layout l = {0};
    struct spread s;
    l.axis[c->axis] = *split;
    if (held) l.axis[!c->axis] = held->split[i];
    if (need) layout_settle(&c->mesh, &t->spec.shape, &l);
    else layout_normal(&c->mesh, &l);
    memcpy(s.axis, l.axis, sizeof s.axis);
    return s;
}

static bool same_spreads(const struct candidate *a, const struct candidate *b, const tri_node *n) {
    bool same = a->use.kind == b->use.kind;
    for (int i = 0; i < n->n_in && same; i++) same = spread_equal(&a->need[i], &b->need[i]);
    for (int i = 0; i < n->n_out && same; i++) same = spread_equal(&a->has[i], &b->has[i]);
    return same;
}

/* is: without need and has. */
static void add(struct adding *a, struct candidate is) {
    struct candidates *c = a->c;
    const tri_node *n = a->n;
    const int all = c->node[n->id].n;
    is.need = arena_alloc(&c->arena, (size_t)n->n_in * sizeof *is.need + 1);
    is.has = arena_alloc(&c->arena, (size_t)n->n_out * sizeof *is.has + 1);
    a->failed |= !is.has || !is.need || !is.split;
    if (a->failed) return;
    const struct candidate *held = held_of(c, n);
    is.whole[c->axis] = is.use.kind == USE_WHOLE;
    is.whole[!c->axis] = c->mesh.n > 1 && (!held || held->use.kind == USE_WHOLE);
    for (int i = 0; i < n->n_out; i++) {
        is.split[n->n_in + i] = use_result(n, &a->f, &is.use, i);
        is.has[i] = settled(c, n, n->n_in + i, &is.split[n->n_in + i]);
    }
    for (int i = 0; i < n->n_in; i++) is.need[i] = settled(c, n, i, &is.split[i]);
    for (int k = 0; k < all; k++)
        if (same_spreads(&is, &c->node[n->id].of[k], n)) return;
    if (all == CANDIDATES_MOST) {
        c->full = true;
        return;
    }
    c->node[n->id].of[c->node[n->id].n++] = is;
    for (int i = 0; i < n->n_in; i++) a->waits[candidates_owner(c, n->in[i]->node)] = true;
    for (int i = 0; i < n->n_out; i++)
        for (size_t r = c->first[n->out[i].id]; r < c->first[n->out[i].id + 1]; r++)
            a->waits[candidates_owner(c, c->g->node[c->reader[r].node])] = true;
}

static struct split *whole_splits(struct adding *a) {
    struct split *s = arena_alloc(&a->c->arena,
                                  (size_t)(a->n->n_in + a->n->n_out) * sizeof *s);
    a->failed |= !s;
    return s;
}

static double part_of(int64_t extent, int64_t seats) {
    return (double)((extent + seats - 1) / seats) / (double)extent;
}

/* Two axes that share a factor must cut it in the same way. Sets the parts of the node's work. */
static bool fits(const struct adding *a, const struct use *u, struct candidate *is) {
    const struct candidate *held = held_of(a->c, a->n);
    const int64_t seats = a->c->mesh.axis[a->c->axis].size;
    is->own = part_of(u->extent, seats);
    is->part = is->own * (held ? held->own : 1);
    if (!held || !use_shares(&held->use, u)) return use_fits(a->n, &a->f, u, seats);
    const int64_t both = seats * a->c->mesh.axis[!a->c->axis].size;
    is->part = part_of(u->extent, both);
    return use_agrees(&held->use, u) && use_fits(a->n, &a->f, u, both);
}

/* In as many parts as there are places, if that is the same for the seats. */
static struct use plain(const struct adding *a, struct use u) {
    const int64_t each = a->f.extent[u.factor] / u.outer, seats = mesh_seats(&a->c->mesh);
    if (each % seats == 0 && u.extent % a->c->mesh.axis[a->c->axis].size == 0) u.extent = each;
    return u;
}

static void add_factor(struct adding *a, struct use suggested) {
    const struct use u = plain(a, suggested);
    struct candidate is = {.use = u};
    if (!u.extent || !fits(a, &u, &is)) return;
    is.split = whole_splits(a);
    for (int i = 0; i < a->n->n_in && is.split; i++)
        is.split[i] = operand_split(&a->f, &a->f.in[i], &a->n->in[i]->spec.shape, &u);
    add(a, is);
}

/* Whether the input can be partial sums. */
static bool can_be_sums(const struct adding *a, int input) {
    const tri_tensor *t = a->n->in[input];
    const int owner = candidates_owner(a->c, t->node);
    for (int k = 0; k < a->c->node[owner].n; k++) {
        const struct split *s = &a->c->node[owner].of[k].has[t->index].axis[a->c->axis];
        if (s->kind == PARTIAL && s->partial == TRI_PARTIAL_SUM) return true;
    }
    return false;
}

/* input: the only one of partial sums; below 0: all that it reads. */
static void add_sums(struct adding *a, int input) {
    const tri_node *n = a->n;
    const struct candidate *held = held_of(a->c, n);
    struct candidate is = {.use.kind = USE_PARTIAL, .own = 1, .part = held ? held->own : 1};
    int partial = 0, reads = 0, at = -1;
    is.split = whole_splits(a);
    for (int i = 0; i < n->n_in && is.split; i++) {
        if (!node_reads(n, i)) continue;
        reads++;
        if (input >= 0 && i != input) continue;
        if (!can_be_sums(a, i)) return;
        partial++;
        is.split[at = i] = (struct split){.kind = PARTIAL, .partial = TRI_PARTIAL_SUM};
    }
    if (use_adds_up(n, partial, reads, at)) add(a, is);
}

static void add_suggested(struct adding *a) {
    const struct candidates *c = a->c;
    const tri_node *n = a->n;
    struct use u;
    for (int i = 0; i < n->n_in; i++) {
        const tri_tensor *t = n->in[i];
        const int owner = candidates_owner(c, t->node);
        for (int k = 0; k < c->node[owner].n && a->has_factors; k++)
            if (use_of_split(&a->f, &a->f.in[i], &c->node[owner].of[k].has[t->index].axis[c->axis],
                             &u))
                add_factor(a, u);
        if (node_reads(n, i)) add_sums(a, i);
    }
    add_sums(a, -1);
    for (int o = 0; o < n->n_out && a->has_factors; o++)
        for (size_t r = c->first[n->out[o].id]; r < c->first[n->out[o].id + 1]; r++) {
            const struct reader *by = &c->reader[r];
            const int owner = candidates_owner(c, c->g->node[by->node]);
            for (int k = 0; k < c->node[owner].n; k++) {
                struct split s = c->node[owner].of[k].need[by->input].axis[c->axis];
                s = split_plain(&s, &n->out[o].spec.shape);
                if (use_of_split(&a->f, &a->f.out[o], &s, &u)) add_factor(a, u);
            }
        }
}

static tri_status visit(struct candidates *c, const tri_node *n, bool *waits) {
    struct adding a = {.c = c, .n = n, .waits = waits};
    uint8_t factor[MAX_FACTORS];
    waits[n->id] = false;
    if (!n->n_in || forward_repeated(c->forward, n)) return TRI_OK;
    if (op_has_factors(n->entry->op)) {
        if (!factors_of(n, &a.f)) return base_last();
        a.has_factors = true;
    }
    if (!c->node[n->id].n) {
        const struct candidate *held = held_of(c, n);
        add(&a, (struct candidate){.use.kind = USE_WHOLE, .split = whole_splits(&a), .own = 1,
                                   .part = held ? held->own : 1});
        for (int i = 0, all = a.has_factors ? strategy_factors(&a.f, factor) : 0; i < all; i++)
            add_factor(&a, (struct use){USE_FACTOR, factor[i], 1, a.f.extent[factor[i]]});
    }
    add_suggested(&a);
    if (a.has_factors) factors_free(&a.f);
    return a.failed ? base_no_memory("the uses of operators") : TRI_OK;
}

static bool find_readers(struct candidates *c) {
    const tri_graph *g = c->g;
    size_t all = 0;
    c->first = calloc((size_t)g->n_tensors + 2, sizeof *c->first);
    for (size_t i = 0; i < g->n_nodes; i++) all += (size_t)g->node[i]->n_in;
    c->reader = calloc(all + 1, sizeof *c->reader);
    if (!c->first || !c->reader) return false;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < g->n_nodes; i++)
            for (int k = 0; k < g->node[i]->n_in; k++) {
                size_t *at = &c->first[g->node[i]->in[k]->id + 1];
                if (!node_reads(g->node[i], k)) continue;
                if (pass) c->reader[at[-1]++] = (struct reader){(int)i, k};
                else at[0]++;
            }
        for (int t = 0; !pass && t <= g->n_tensors; t++) c->first[t + 1] += c->first[t];
        for (int t = g->n_tensors; pass && t >= 0; t--) c->first[t + 1] = c->first[t];
        if (pass) c->first[0] = 0;
    }
    return true;
}

tri_status candidates_find(const tri_graph *g, const struct mesh *m, int axis,
                           const struct candidate *const *held, struct candidates *out) {
    *out = (struct candidates){.g = g, .mesh = *m, .axis = axis, .held = held,
                               .forward = forward_nodes(g)};
    bool *waits = malloc(g->n_nodes + 1);
    out->node = calloc(g->n_nodes + 1, sizeof *out->node);
    bool any = true, ok = out->forward && waits && out->node && find_readers(out);
    tri_status status = ok ? TRI_OK : base_no_memory("the uses of operators");
    if (ok) memset(waits, 1, g->n_nodes);
    for (int round = 0; round < MOST_ROUNDS && any && !status; round++) {
        any = false;
        for (size_t i = 0; i < 2 * g->n_nodes && !status; i++) {
            const size_t at = i < g->n_nodes ? i : 2 * g->n_nodes - 1 - i;
            if (!waits[at]) continue;
            status = visit(out, g->node[at], waits);
            any = true;
        }
    }
    out->full |= any;
    free(waits);
    return status;
}

void candidates_free(struct candidates *c) {
    free(c->forward);
    free(c->node);
    free(c->first);
    free(c->reader);
    arena_free(&c->arena);
    *c = (struct candidates){0};
}
