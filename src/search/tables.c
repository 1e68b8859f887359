/* SPDX-License-Identifier: Apache-2.0 */
#include "search/tables.h"

#include <stdlib.h>
#include <string.h>

#include "plan/dist.h"

#define COPIES_MOST 7 /* ways in which a tensor may be needed otherwise than it is */

/* Where a parameter is kept: a variable, if the seats are in no store. */
#define HOMES_MOST 40
struct home {
    struct spread spread[HOMES_MOST];
    int n, var;
};

struct maker {
    const struct candidates *c;
    const tri_graph *g;
    const struct split_prices *p;
    struct tables *to;
    struct shares shares;
    struct home *home; /* without a store, by tensor; n 0: it is whole */
    size_t vars_capacity, tables_capacity;
    bool failed;
};

/* ---- costs ---- */

static int64_t picoseconds(double seconds, double share) {
    return (int64_t)(share < 1 ? 1e12 * seconds * share : 1e12 * seconds + 0.5);
}

/* The part of a tensor that the seat with most has. Of what is whole, seats that share it, along
 * the axes of `shared`, have a part each. */
static double part_of(const struct maker *m, const struct spread *s, const bool *shared) {
    const struct mesh *mesh = &m->c->mesh;
    double part = 1;
    for (int a = 0; a < mesh->n; a++) {
        const struct split *is = &s->axis[a];
        int64_t seats = mesh->axis[a].size;
        if (is->kind == WHOLE && shared && shared[a] && m->p->one_store) part /= (double)seats;
        if (is->kind != SPLIT || (a && split_equal(is, &s->axis[0]))) continue;
        for (int b = a + 1; b < mesh->n; b++)
            if (split_equal(is, &s->axis[b])) seats *= mesh->axis[b].size;
        part *= (double)((is->extent + seats - 1) / seats) / (double)is->extent;
    }
    return part;
}

static int64_t node_cost(const struct maker *m, const tri_node *n, const struct candidate *is) {
    double flops = n->entry->op->flops ? n->entry->op->flops(n) * is->part : 0;
    double bytes = 0, kept = 0;
    bool waits = false;
    for (int a = 0; a < SEARCH_AXES && m->p->one_store; a++) {
        waits |= is->whole[a];
        if (is->whole[a]) flops /= (double)search_seats(&m->c->mesh, a);
    }
    for (int i = 0; i < n->n_in; i++)
        if (node_reads(n, i))
            bytes += (double)base_spec_bytes(&n->in[i]->spec) *
                     part_of(m, &is->need[i], is->whole);
    for (int i = 0; i < n->n_out; i++)
        kept += (double)base_spec_bytes(&n->out[i].spec) * part_of(m, &is->has[i], is->whole);
    return picoseconds(m->p->node(m->p->of, n, flops, bytes + kept) + m->p->keep * kept +
                       (waits ? m->p->move(m->p->of, 1, 0) : 0), m->shares.nodes);
}

double tables_moved(const struct mesh *m, const tri_tensor *t, const struct spread *has,
                    const struct spread *need) {
    const struct layout from = spread_layout(has), to = spread_layout(need);
    double bytes;
    return layout_moves(m, &t->spec, &from, &to, &bytes) ? bytes : 0;
}

/* Of what the tensor is, for one who needs it so. Partial sums cannot be made. */
static int64_t move_cost(const struct maker *m, const tri_tensor *t, const struct spread *has,
                         const struct spread *need, bool *moves) {
    const struct mesh *mesh = &m->c->mesh;
    double part = (double)base_spec_bytes(&t->spec), seat = 0;
    int rounds = 0;
    *moves = false;
    for (int a = 0; a < mesh->n; a++) {
        const bool same = split_equal(&has->axis[a], &need->axis[a]);
        if (need->axis[a].kind == PARTIAL && !same) return COST_NEVER;
        if (has->axis[a].kind == SPLIT && same) part /= (double)mesh->axis[a].size;
    }
    const double bytes = tables_moved(mesh, t, has, need);
    bool borders = true; /* of the parts along all axes that move */
    double all = 1;
    for (int a = 0; a < mesh->n && bytes > 0; a++) {
        const struct split *from = &has->axis[a], *to = &need->axis[a];
        const double seats = (double)mesh->axis[a].size;
        if (from->kind == WHOLE || split_equal(from, to)) continue;
        rounds += from->kind == PARTIAL && to->kind == WHOLE ? 2 : 1;
        borders &= split_sees_neighbours(from, to);
        all *= seats;
        seat += split_move_bytes(from, to, part, seats);
    }
    if (borders) seat = bytes / all;
    *moves = bytes > 0;
    return *moves ? picoseconds(m->p->move(m->p->of, rounds, seat), m->shares.moves) : 0;
}

/* ---- the sum ---- */

static int add_variable(struct maker *m, int values) {
    if (values < 2) return -1;
    if (!ARRAY_GROW(m->to->values, m->to->n_vars, m->vars_capacity)) {
        m->failed = true;
        return -1;
    }
    m->to->values[m->to->n_vars] = values;
    return (int)m->to->n_vars++;
}

/* A table over the variables that are not below 0, in which the last of the sizes is that of
 * neighbours. Returns its costs, all 0. */
static int64_t *add_table(struct maker *m, int n, const int *var, const int *size) {
    int *is = arena_alloc(&m->to->arena, (size_t)n * sizeof *is + 1), of = 0;
    size_t cells = 1;
    for (int i = 0; i < n; i++) cells *= (size_t)size[i];
    int64_t *cost = arena_alloc(&m->to->arena, cells * sizeof *cost);
    m->failed |= !is || !cost || !ARRAY_GROW(m->to->table, m->to->sum.n_tables, m->tables_capacity);
    if (m->failed) return NULL;
    for (int i = 0; i < n; i++)
        if (var[i] >= 0) is[of++] = var[i];
    m->to->table[m->to->sum.n_tables++] = (struct cost_table){of, is, cost};
    return cost;
}

/* How a tensor is, by value of the variable of what makes it. free: each seat has all of it, for
 * nothing. */
struct made {
    int n, var;
    bool free;
    const struct spread *spread[HOMES_MOST];
};

static struct made made_of(const struct maker *m, const tri_tensor *t) {
    static const struct spread whole;
    const struct home *home = m->home && m->home[t->id].n ? &m->home[t->id] : NULL;
    const int owner = candidates_owner(m->c, t->node);
    const int n = m->c->node[owner].n;
    struct made is = {.n = 1, .var = -1, .free = !n && !home, .spread = {&whole}};
    if (n) is = (struct made){.n = n, .var = m->to->var[owner]};
    else if (home) is = (struct made){.n = home->n, .var = home->var};
    for (int i = 0; i < n; i++) is.spread[i] = &m->c->node[owner].of[i].has[t->index];
    for (int i = 0; home && i < home->n && !n; i++) is.spread[i] = &home->spread[i];
    return is;
}

static void add_node(struct maker *m, const tri_node *n) {
    const int owner = candidates_owner(m->c, n), all = m->c->node[owner].n;
    int64_t *cost = all ? add_table(m, 1, &m->to->var[owner], &all) : NULL;
    for (int k = 0; k < all && cost; k++)
        cost[k] = node_cost(m, n, &m->c->node[owner].of[k]);
}

/* The candidates that add up one input's partial sums allow none in the others. */
static int64_t read_cost(const struct maker *m, const struct reader *r, const struct candidate *is,
                         const struct spread *has, bool *moves) {
    const tri_node *n = m->g->node[r->node];
    const struct spread *need = &is->need[r->input];
    const int a = m->c->axis;
    if (is->use.kind == USE_PARTIAL && need->axis[a].kind != PARTIAL &&
        has->axis[a].kind == PARTIAL)
        return COST_NEVER;
    return move_cost(m, n->in[r->input], has, need, moves);
}

/* The layouts of a tensor that a reader may need otherwise than it is made, at most COPIES_MOST: of
 * the first candidates of all readers, which are whole, then of the next ones. */
static int copies_of(const struct maker *m, const tri_tensor *t, const struct made *made,
                     struct spread copy[COPIES_MOST]) {
    const struct candidates *c = m->c;
    int n = 0;
    for (int k = 0; k < CANDIDATES_MOST; k++) {
        for (size_t r = c->first[t->id]; r < c->first[t->id + 1]; r++) {
            const int owner = candidates_owner(c, m->g->node[c->reader[r].node]);
            if (k >= c->node[owner].n) continue;
            const struct spread *need = &c->node[owner].of[k].need[c->reader[r].input];
            bool moves = false;
            int same = 0;
            for (int v = 0; v < made->n && !moves; v++)
                move_cost(m, t, made->spread[v], need, &moves);
            while (same < n && !spread_equal(&copy[same], need)) same++;
            if (moves && same == n && n == COPIES_MOST) m->to->full = true;
            else if (moves && same == n) copy[n++] = *need;
        }
    }
    return n;
}

/* Several readers: each reads the tensor as it is, or the copy, a variable, which is made once. */
static void add_shared(struct maker *m, const tri_tensor *t, const struct made *made) {
    const struct candidates *c = m->c;
    struct spread copy[COPIES_MOST];
    const int copies = copies_of(m, t, made, copy);
    const int var = add_variable(m, copies + 1);
    int64_t *cost = add_table(m, 2, (int[]){made->var, var}, (int[]){made->n, copies + 1});
    bool moves;
    for (int v = 0; v < made->n && cost; v++)
        for (int k = 0; k < copies; k++)
            cost[v * (copies + 1) + k + 1] = move_cost(m, t, made->spread[v], &copy[k], &moves);
    for (size_t r = c->first[t->id]; r < c->first[t->id + 1] && !m->failed; r++) {
        const int owner = candidates_owner(c, m->g->node[c->reader[r].node]);
        const int uses = c->node[owner].n;
        cost = add_table(m, 3, (int[]){made->var, var, m->to->var[owner]},
                         (int[]){made->n, copies + 1, uses});
        for (int v = 0; v < made->n && cost; v++)
            for (int u = 0; u < uses; u++) {
                const struct candidate *is = &c->node[owner].of[u];
                const int64_t read = read_cost(m, &c->reader[r], is, made->spread[v], &moves);
                const struct spread *need = &is->need[c->reader[r].input];
                for (int k = 0; k <= copies; k++) {
                    const bool there = k && spread_equal(&copy[k - 1], need);
                    cost[(v * (copies + 1) + k) * uses + u] =
                        read < COST_NEVER && (!moves || there) ? 0 : COST_NEVER;
                }
            }
    }
}

static void add_tensor(struct maker *m, const tri_tensor *t) {
    const struct candidates *c = m->c;
    const struct made made = made_of(m, t);
    const size_t first = c->first[t->id], readers = c->first[t->id + 1] - first;
    if (!readers || made.free) return;
    if (readers > 1) {
        add_shared(m, t, &made);
        return;
    }
    const int owner = candidates_owner(c, m->g->node[c->reader[first].node]);
    const int uses = c->node[owner].n;
    int64_t *cost = add_table(m, 2, (int[]){made.var, m->to->var[owner]}, (int[]){made.n, uses});
    bool moves;
    for (int v = 0; v < made.n && cost; v++)
        for (int u = 0; u < uses; u++)
            cost[v * uses + u] = read_cost(m, &c->reader[first], &c->node[owner].of[u],
                                           made.spread[v], &moves);
}

/* ---- parameters ---- */

static void add_home(const struct maker *m, struct home *h, const struct spread *s) {
    int same = 0;
    while (same < h->n && !spread_equal(&h->spread[same], s)) same++;
    if (same == h->n && h->n == HOMES_MOST) m->to->full = true;
    else if (same == h->n) h->spread[h->n++] = *s;
}

/* As any operator may need it, whole, and along each dimension. */
static void list_homes(const struct maker *m, const tri_tensor *t, struct home *h) {
    const struct candidates *c = m->c;
    const tri_shape *s = &t->spec.shape;
    for (size_t r = c->first[t->id]; r < c->first[t->id + 1]; r++) {
        const int owner = candidates_owner(c, m->g->node[c->reader[r].node]);
        for (int k = 0; k < c->node[owner].n; k++) {
            const struct spread *need = &c->node[owner].of[k].need[c->reader[r].input];
            if (!need->axis[0].reach.over && !need->axis[1].reach.over) add_home(m, h, need);
        }
    }
    for (int i = -1; i < s->rank; i++)
        for (int j = -1; j < (m->c->mesh.n > 1 ? s->rank : 0); j++) {
            struct layout l = {{split_dim(s, i), split_dim(s, j)}};
            const int64_t a = i < 0 ? 1 : search_seats(&c->mesh, 0);
            const int64_t b = j < 0 ? 1 : search_seats(&c->mesh, 1);
            if ((i >= 0 && s->dim[i] < (i == j ? a * b : a)) || (j >= 0 && s->dim[j] < b)) continue;
            layout_normal(&c->mesh, &l);
            add_home(m, h, &(struct spread){{l.axis[0], l.axis[1]}});
        }
}

static void find_home(struct maker *m, const tri_tensor *t) {
    struct home *h = &m->home[t->id];
    list_homes(m, t, h);
    h->var = add_variable(m, h->n);
    int64_t *cost = add_table(m, 1, &h->var, &h->n);
    for (int k = 0; k < h->n && cost; k++)
        cost[k] = picoseconds(m->p->keep * (2 + m->p->states) * (double)base_spec_bytes(&t->spec) *
                              part_of(m, &h->spread[k], NULL), m->shares.nodes);
}

/* The parameter of this lane whose gradient the result is; null: it is none. */
static const tri_tensor *parameter_of(struct maker *m, const struct cut *cut,
                                      const struct graph_output *o) {
    const tri_tensor *gradient;
    for (size_t i = 0; cut && i < cut->whole->n_updates; i++) {
        m->failed |= cut_gradient(cut, i, &gradient) != TRI_OK;
        if (!gradient || gradient->id != o->of) continue;
        const char *name = source_name(cut->whole->update[i].target->node);
        for (size_t k = 0; k < m->g->n_nodes; k++)
            if (node_is_param(m->g->node[k]) && !strcmp(source_name(m->g->node[k]), name))
                return m->g->node[k]->out;
    }
    return NULL;
}

/* A result leaves for the store as a whole, or for where its parameter is kept. */
static void add_result(struct maker *m, const struct cut *cut, const struct graph_output *o) {
    static const struct home in_store = {.n = 1, .var = -1};
    const tri_tensor *param = m->p->one_store ? NULL : parameter_of(m, cut, o);
    const bool alike = param && m->home[param->id].n &&
                       base_shape_equal(&param->spec.shape, &o->tensor->spec.shape);
    const struct home *home = alike ? &m->home[param->id] : &in_store;
    const struct made made = made_of(m, o->tensor);
    int64_t *cost = add_table(m, 2, (int[]){made.var, home->var}, (int[]){made.n, home->n});
    bool moves;
    for (int v = 0; v < made.n && cost; v++)
        for (int k = 0; k < home->n; k++)
            cost[v * home->n + k] = move_cost(m, o->tensor, made.spread[v], &home->spread[k],
                                              &moves);
}

static bool left_before(const tri_graph *g, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (g->output[k].tensor == g->output[i].tensor) return true;
    return false;
}

static void build(struct maker *m, const struct cut *cut) {
    const tri_graph *g = m->g;
    for (size_t i = 0; i < g->n_nodes; i++) m->to->var[i] = add_variable(m, m->c->node[i].n);
    for (size_t i = 0; i < g->n_nodes && !m->p->one_store; i++)
        if (node_is_param(g->node[i])) find_home(m, g->node[i]->out);
    for (size_t i = 0; i < g->n_nodes && !m->failed; i++) {
        add_node(m, g->node[i]);
        for (int k = 0; k < g->node[i]->n_out; k++) add_tensor(m, &g->node[i]->out[k]);
    }
    for (size_t i = 0; i < g->n_outputs && !m->failed; i++)
        if (!left_before(g, i)) add_result(m, cut, &g->output[i]);
}


tri_status tables_make(const struct candidates *c, const struct cut *cut,
                       const struct split_prices *p, struct shares shares, struct tables *out) {
    *out = (struct tables){0};
    struct maker m = {.c = c, .g = c->g, .p = p, .to = out, .shares = shares};
    out->var = calloc(c->g->n_nodes + 1, sizeof *out->var);
    if (!p->one_store) m.home = calloc((size_t)c->g->n_tensors + 1, sizeof *m.home);
    m.failed = !out->var || (!p->one_store && !m.home);
    if (!m.failed) build(&m, cut);
    out->sum.n_vars = (int)out->n_vars;
    out->sum.values = out->values;
    out->sum.table = out->table;
    free(m.home);
    return m.failed ? base_no_memory("the search for a plan") : TRI_OK;
}

void tables_free(struct tables *t) {
    free(t->values);
    free(t->table);
    free(t->var);
    arena_free(&t->arena);
    *t = (struct tables){0};
}
