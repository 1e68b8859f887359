/* SPDX-License-Identifier: Apache-2.0 */
#include "search/splits.h"

#include <stdlib.h>
#include <string.h>

#include "plan/forward.h"
#include "plan/strategy_inside.h"

#define MOST_CELLS (1 << 24)
#define TURNS_MOST 6

/* An axis whose choices are made. */
struct side {
    struct candidates all;
    const struct candidate **of; /* by node: what it does; of copies null */
    int64_t cost;
    bool exact; /* no table was too large */
    bool full;  /* there might have been more choices */
};

struct search {
    const tri_graph *g;
    const struct cut *cut;
    const struct split_prices *p;
    bool apart;
    struct splits *to;
};

static void side_free(struct side *s) {
    candidates_free(&s->all);
    free(s->of);
    *s = (struct side){0};
}

/* ---- one axis ---- */

static void note(struct splits *s, const struct tables *t, const struct cost_least *l,
                 double seconds) {
    if (s->variables > (int)t->n_vars) return;
    s->variables = (int)t->n_vars;
    s->cells = l->cells;
    s->computed = l->computed;
    s->seconds = seconds;
}

/* held: by node; null: along other axes all are whole. */
static tri_status side_make(struct search *w, const struct mesh *m, int axis,
                            const struct candidate *const *held, struct side *out) {
    *out = (struct side){.of = calloc(w->g->n_nodes + 1, sizeof *out->of)};
    return out->of ? candidates_find(w->g, m, axis, held, &out->all)
                   : base_no_memory("the search for a plan");
}

static tri_status solve(struct search *w, struct shares shares, struct side *out) {
    struct tables t;
    struct cost_least least = {0};
    tri_status status = tables_make(&out->all, w->cut, w->p, shares, &t);
    t.sum.most_cells = MOST_CELLS;
    t.sum.apart = w->apart;
    const double begin = base_seconds();
    if (!status) status = eliminate(&t.sum, &least);
    if (!status) note(w->to, &t, &least, base_seconds() - begin);
    for (size_t i = 0; i < w->g->n_nodes && !status; i++)
        if (out->all.node[i].n)
            out->of[i] = &out->all.node[i].of[t.var[i] >= 0 ? least.value[t.var[i]] : 0];
    out->cost = least.cost;
    out->exact = least.exact;
    out->full = out->all.full || t.full;
    free(least.value);
    tables_free(&t);
    return status;
}

/* ---- the result ---- */

static bool add_move(struct splits *s, const tri_tensor *t, bool result, const struct spread *has,
                     const struct spread *need) {
    const double bytes = tables_moved(&s->mesh, t, has, need);
    if (!(bytes > 0)) return true;
    for (size_t i = 0; i < s->n_moves; i++)
        if (s->move[i].tensor == t->id && s->move[i].result == result &&
            spread_equal(&s->move[i].to, need))
            return true;
    if (!ARRAY_GROW(s->move, s->n_moves, s->capacity)) return false;
    s->move[s->n_moves++] = (struct split_move){t->id, result, *need, (size_t)bytes};
    return true;
}

static const struct spread *made_as(const struct side *s, const tri_tensor *t) {
    const struct candidate *is = s->of[candidates_owner(&s->all, t->node)];
    return is ? &is->has[t->index] : NULL;
}

/* Of the side that was solved last, which knows both axes. */
static bool list_moves(struct search *w, const struct side *s) {
    static const struct spread whole;
    bool ok = true;
    w->to->n_moves = 0;
    for (size_t i = 0; i < w->g->n_nodes; i++) {
        const tri_node *n = w->g->node[i];
        const struct candidate *is = s->of[candidates_owner(&s->all, n)];
        for (int k = 0; k < n->n_in; k++) {
            const struct spread *has = made_as(s, n->in[k]);
            if (has && node_reads(n, k)) ok &= add_move(w->to, n->in[k], false, has, &is->need[k]);
        }
    }
    for (size_t i = 0; i < w->g->n_outputs && w->p->one_store; i++) {
        const tri_tensor *t = w->g->output[i].tensor;
        const struct spread *has = made_as(s, t);
        if (has) ok &= add_move(w->to, t, true, has, &whole);
    }
    return ok;
}

/* Takes what two sides come to, of which `other` may be null. */
static tri_status take(struct search *w, const struct side *last, const struct side *other,
                       int axis) {
    w->to->cost = last->cost;
    for (size_t i = 0; i < w->g->n_nodes; i++) {
        const int owner = candidates_owner(&last->all, w->g->node[i]);
        if (!last->of[owner]) continue;
        w->to->use[i][axis] = last->of[owner]->use;
        w->to->use[i][!axis] = other ? other->of[owner]->use : (struct use){0};
    }
    return list_moves(w, last) ? TRI_OK : base_no_memory("the search for a plan");
}

/* ---- two axes ---- */

static const struct shares in_full = {1, 1};

/* By turns, each axis while the other is held, as long as it helps. */
static tri_status take_turns(struct search *w, int axis) {
    struct side side[SEARCH_AXES] = {{.of = NULL}};
    int64_t before = INT64_MAX;
    tri_status status = TRI_OK;
    for (int turn = 0; turn < TURNS_MOST && !status; turn++, axis = !axis) {
        struct side next;
        const struct side *held = turn ? &side[!axis] : NULL;
        status = side_make(w, &w->to->mesh, axis, held ? held->of : NULL, &next);
        if (!status) status = solve(w, in_full, &next);
        if (!status && next.cost < w->to->cost) status = take(w, &next, held, axis);
        side_free(&side[axis]);
        side[axis] = next;
        if (status || (turn && next.cost >= before)) break;
        before = next.cost;
    }
    for (int a = 0; a < SEARCH_AXES; a++) side_free(&side[a]);
    /* What is held may need a layout that is not among those that readers can share. */
    return status == TRI_USAGE && w->to->cost < INT64_MAX ? TRI_OK : status;
}

/* What both axes cost is no less than a share of the nodes along the one, the rest of them along
 * the other, and what moves along each, if every cost is divided by the seats of the axis that is
 * left out: those can divide no more. The largest of several shares counts. There is no bound if
 * more choices might have been listed: together, others are left out. */
static tri_status find_bound(struct search *w) {
    static const double share[] = {0.1, 0.3, 0.5, 0.7, 0.9};
    struct side side[SEARCH_AXES] = {{.of = NULL}};
    tri_status status = TRI_OK;
    bool holds = true;
    for (int a = 0; a < SEARCH_AXES && !status; a++) {
        const struct mesh alone = {.n = 1, .axis = {w->to->mesh.axis[a]}};
        status = side_make(w, &alone, 0, NULL, &side[a]);
    }
    for (size_t i = 0; i < COUNT(share) && !status && holds; i++) {
        int64_t sum = 0;
        for (int a = 0; a < SEARCH_AXES && !status && holds; a++) {
            const double others = (double)w->to->mesh.axis[!a].size;
            const struct shares s = {(a ? 1 - share[i] : share[i]) / others, 1 / others};
            status = solve(w, s, &side[a]);
            sum += side[a].cost;
            holds = side[a].exact && !side[a].full;
        }
        if (!status && holds && sum > w->to->bound) w->to->bound = sum;
    }
    for (int a = 0; a < SEARCH_AXES; a++) side_free(&side[a]);
    return status;
}

/* ---- all ---- */

tri_status splits_find(const tri_graph *lane, const struct cut *cut, const struct mesh *mesh,
                       const struct split_prices *p, bool apart, struct splits *out) {
    *out = (struct splits){.g = lane, .mesh = *mesh, .cost = INT64_MAX, .bound = -1};
    struct search w = {lane, cut, p, apart, out};
    out->use = calloc(lane->n_nodes + 1, sizeof *out->use);
    if (!out->use) return base_no_memory("the search for a plan");
    if (mesh->n == 1) {
        struct side side;
        tri_status status = side_make(&w, mesh, 0, NULL, &side);
        if (!status) status = solve(&w, in_full, &side);
        if (!status) status = take(&w, &side, NULL, 0);
        if (!status && side.exact) out->bound = out->cost;
        side_free(&side);
        return status;
    }
    tri_status status = take_turns(&w, 0);
    if (!status) status = take_turns(&w, 1);
    return status ? status : find_bound(&w);
}

void splits_free(struct splits *s) {
    free(s->use);
    free(s->move);
    *s = (struct splits){0};
}

/* ---- text ---- */

/* The name with * for pieces that are numbers. */
static char *pattern_of(struct arena *a, const char *name) {
    char *to = arena_copy(a, name), *at = to;
    for (const char *p = name; to && *p;) {
        const size_t n = strcspn(p, "."), digits = strspn(p, "0123456789");
        if (n == digits && n) *at++ = '*';
        else memmove(at, p, n), at += n;
        p += n;
        if (*p) *at++ = *p++;
    }
    if (at) *at = 0;
    return to;
}

struct use_text {
    const char *name, *pattern, *use;
};

static tri_status list_uses(const struct splits *s, tri_node *const *forward, struct arena *a,
                            struct use_text *to, size_t *n_to) {
    const tri_graph *g = s->g;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        struct factors f;
        struct text t = {0};
        if (!n->n_in || forward_repeated(forward, n)) continue;
        if (strpbrk(n->name, " \t#*"))
            return base_fail(TRI_USAGE, "the name \"%s\" has a blank, # or *, and no line of a "
                             "plan can say how it is split", n->name);
        const bool known = op_has_factors(n->entry->op);
        if (known && !factors_of(n, &f)) return base_last();
        const struct use use[MESH_MOST_AXES] = {s->use[i][0], s->use[i][1]};
        use_line_print(n, &f, &s->mesh, use, &t);
        if (known) factors_free(&f);
        to[*n_to] = (struct use_text){n->name, pattern_of(a, n->name),
                                      t.failed ? NULL : arena_copy(a, t.data)};
        text_free(&t);
        if (!to[*n_to].pattern || !to[*n_to].use) return base_no_memory("lines of uses");
        ++*n_to;
    }
    return TRI_OK;
}

/* The first of a pattern stands for all, and those that differ follow. */
static void print_uses(const struct use_text *u, size_t n, struct text *out) {
    for (size_t i = 0; i < n; i++) {
        size_t first = 0, others = 0;
        while (strcmp(u[first].pattern, u[i].pattern)) first++;
        for (size_t k = i + 1; k < n && first == i && !others; k++)
            others += !strcmp(u[k].pattern, u[i].pattern);
        if (first == i)
            text_add(out, "use %s %s\n", others ? u[i].pattern : u[i].name, u[i].use);
        else if (strcmp(u[first].use, u[i].use))
            text_add(out, "use %s %s\n", u[i].name, u[i].use);
    }
}

tri_status splits_print(const struct splits *s, struct text *out) {
    struct arena a = {0};
    struct use_text *u = calloc(s->g->n_nodes + 1, sizeof *u);
    tri_node **forward = forward_nodes(s->g);
    size_t n = 0;
    tri_status status = u && forward ? list_uses(s, forward, &a, u, &n)
                                     : base_no_memory("lines of uses");
    if (!status) print_uses(u, n, out);
    if (!status && out->failed) status = base_no_memory("lines of uses");
    free(u);
    free(forward);
    arena_free(&a);
    return status;
}
