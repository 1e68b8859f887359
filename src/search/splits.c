/* SPDX-License-Identifier: Apache-2.0 */
#include "search/splits.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "plan/dist.h"
#include "plan/strategy_inside.h"
#include "search/eliminate.h"

#define MOST_CELLS (1 << 24)
#define COPIES_MOST 7 /* ways in which a tensor may be needed otherwise than it is */

/* Where a parameter is kept: a variable, if the seats are in no store. */
#define HOMES_MOST 16
struct home {
    struct split split[HOMES_MOST];
    int n, var;
};

struct maker {
    const tri_graph *g;
    const struct mesh *mesh;
    const struct split_prices *p;
    struct splits *to;
    double seats;
    int *var;          /* by node; below 0: it has one candidate */
    struct home *home; /* by tensor; n 0: it is whole */
    int *values;       /* by variable */
    size_t n_vars, vars_capacity;
    struct cost_table *table;
    size_t n_tables, tables_capacity;
    struct arena arena;
    bool failed;
};

/* ---- costs ---- */

static int64_t picoseconds(double seconds) { return (int64_t)(1e12 * seconds + 0.5); }

/* The part of a tensor that the seat with most has. */
static double part_of(const struct maker *m, const struct split *s) {
    const int64_t seats = m->mesh->axis[0].size;
    if (s->kind == SPLIT) return (double)((s->extent + seats - 1) / seats) / (double)s->extent;
    return s->kind == WHOLE && m->p->one_store ? 1 / m->seats : 1;
}

static int64_t node_cost(const struct maker *m, const tri_node *n, const struct candidate *is) {
    const double flops = n->entry->op->flops ? n->entry->op->flops(n) : 0;
    const bool shared = is->use.kind == USE_WHOLE && m->p->one_store;
    double bytes = 0, kept = 0;
    for (int i = 0; i < n->n_in; i++)
        if (node_reads(n, i))
            bytes += (double)base_spec_bytes(&n->in[i]->spec) * part_of(m, &is->need[i]);
    for (int i = 0; i < n->n_out; i++)
        kept += (double)base_spec_bytes(&n->out[i].spec) * part_of(m, &is->has[i]);
    const double work = flops * (shared ? 1 / m->seats : is->part);
    return picoseconds(m->p->node(m->p->of, n, work, bytes + kept) + m->p->keep * kept +
                       (shared ? m->p->move(m->p->of, 1, 0) : 0));
}

/* Of what the tensor is, for one who needs it so. *bytes: as dist_find_moves has them; 0: nothing
 * moves. Partial sums cannot be made. */
static int64_t move_cost(const struct maker *m, const tri_tensor *t, const struct split *has,
                         const struct split *need, double *bytes) {
    const struct layout from = {{*has}}, to = {{*need}};
    double all, seat = (double)base_spec_bytes(&t->spec);
    *bytes = 0;
    if (need->kind == PARTIAL) return split_equal(has, need) ? 0 : COST_NEVER;
    if (!layout_moves(m->mesh, &t->spec, &from, &to, &all)) return 0;
    *bytes = all;
    seat = split_sees_neighbours(has, need) ? all / m->seats
                                            : split_move_bytes(has, need, seat, m->seats);
    const int rounds = has->kind == PARTIAL && need->kind == WHOLE ? 2 : 1;
    return picoseconds(m->p->move(m->p->of, rounds, seat));
}

/* ---- the sum ---- */

static int add_variable(struct maker *m, int values) {
    if (values < 2) return -1;
    if (!ARRAY_GROW(m->values, m->n_vars, m->vars_capacity)) {
        m->failed = true;
        return -1;
    }
    m->values[m->n_vars] = values;
    return (int)m->n_vars++;
}

/* A table over the variables that are not below 0, in which the last of the sizes is that of
 * neighbours. Returns its costs, all 0. */
static int64_t *add_table(struct maker *m, int n, const int *var, const int *size) {
    int *is = arena_alloc(&m->arena, (size_t)n * sizeof *is + 1), of = 0;
    size_t cells = 1;
    for (int i = 0; i < n; i++) cells *= (size_t)size[i];
    int64_t *cost = arena_alloc(&m->arena, cells * sizeof *cost);
    m->failed |= !is || !cost || !ARRAY_GROW(m->table, m->n_tables, m->tables_capacity);
    if (m->failed) return NULL;
    for (int i = 0; i < n; i++)
        if (var[i] >= 0) is[of++] = var[i];
    m->table[m->n_tables++] = (struct cost_table){of, is, cost};
    return cost;
}

/* How a tensor is, by value of the variable of what makes it. */
struct made {
    int n, var;
    const struct split *split[HOMES_MOST];
};

static struct made made_of(const struct maker *m, const tri_tensor *t) {
    static const struct split whole;
    const struct home *home = &m->home[t->id];
    const int owner = candidates_owner(&m->to->all, t->node);
    const int n = m->to->all.node[owner].n;
    struct made is = {.n = 1, .var = -1, .split = {&whole}};
    if (n) is = (struct made){.n = n, .var = m->var[owner]};
    else if (home->n) is = (struct made){.n = home->n, .var = home->var};
    for (int i = 0; i < n; i++)
        is.split[i] = &m->to->all.node[owner].of[i].has[t->index];
    for (int i = 0; i < home->n && !n; i++) is.split[i] = &home->split[i];
    return is;
}

static void add_node(struct maker *m, const tri_node *n) {
    const int owner = candidates_owner(&m->to->all, n), all = m->to->all.node[owner].n;
    int64_t *cost = all ? add_table(m, 1, &m->var[owner], &all) : NULL;
    for (int k = 0; k < all && cost; k++)
        cost[k] = node_cost(m, n, &m->to->all.node[owner].of[k]);
}

/* The candidates that add up one input's partial sums allow none in the others. */
static int64_t read_cost(const struct maker *m, const struct reader *r, const struct candidate *is,
                         const struct split *has, double *bytes) {
    const tri_node *n = m->g->node[r->node];
    const struct split *need = &is->need[r->input];
    if (is->use.kind == USE_PARTIAL && need->kind != PARTIAL && has->kind == PARTIAL)
        return COST_NEVER;
    return move_cost(m, n->in[r->input], has, need, bytes);
}

/* The layouts of a tensor that a reader may need otherwise than it is made, at most COPIES_MOST. */
static int copies_of(const struct maker *m, const tri_tensor *t, const struct made *made,
                     struct split copy[COPIES_MOST]) {
    const struct candidates *c = &m->to->all;
    int n = 0;
    for (size_t r = c->first[t->id]; r < c->first[t->id + 1]; r++) {
        const int owner = candidates_owner(c, m->g->node[c->reader[r].node]);
        for (int k = 0; k < c->node[owner].n; k++) {
            const struct split *need = &c->node[owner].of[k].need[c->reader[r].input];
            double bytes = 0;
            int same = 0;
            for (int v = 0; v < made->n && need->kind != PARTIAL && !(bytes > 0); v++)
                move_cost(m, t, made->split[v], need, &bytes);
            while (same < n && !split_equal(&copy[same], need)) same++;
            if (bytes > 0 && same == n && n < COPIES_MOST) copy[n++] = *need;
        }
    }
    return n;
}

/* Several readers: each reads the tensor as it is, or the copy, a variable, which is made once. */
static void add_shared(struct maker *m, const tri_tensor *t, const struct made *made) {
    const struct candidates *c = &m->to->all;
    struct split copy[COPIES_MOST];
    const int copies = copies_of(m, t, made, copy);
    const int var = add_variable(m, copies + 1);
    int64_t *cost = add_table(m, 2, (int[]){made->var, var}, (int[]){made->n, copies + 1});
    double bytes;
    for (int v = 0; v < made->n && cost; v++)
        for (int k = 0; k < copies; k++)
            cost[v * (copies + 1) + k + 1] = move_cost(m, t, made->split[v], &copy[k], &bytes);
    for (size_t r = c->first[t->id]; r < c->first[t->id + 1] && !m->failed; r++) {
        const int owner = candidates_owner(c, m->g->node[c->reader[r].node]);
        const int uses = c->node[owner].n;
        cost = add_table(m, 3, (int[]){made->var, var, m->var[owner]},
                         (int[]){made->n, copies + 1, uses});
        for (int v = 0; v < made->n && cost; v++)
            for (int u = 0; u < uses; u++) {
                const struct candidate *is = &c->node[owner].of[u];
                const int64_t read = read_cost(m, &c->reader[r], is, made->split[v], &bytes);
                const struct split *need = &is->need[c->reader[r].input];
                for (int k = 0; k <= copies; k++) {
                    const bool there = k && split_equal(&copy[k - 1], need);
                    cost[(v * (copies + 1) + k) * uses + u] =
                        read < COST_NEVER && (!(bytes > 0) || there) ? 0 : COST_NEVER;
                }
            }
    }
}

static void add_tensor(struct maker *m, const tri_tensor *t) {
    const struct candidates *c = &m->to->all;
    const struct made made = made_of(m, t);
    const size_t first = c->first[t->id], readers = c->first[t->id + 1] - first;
    if (readers > 1 && (made.n > 1 || !m->p->one_store)) add_shared(m, t, &made);
    if (readers != 1) return;
    const int owner = candidates_owner(c, m->g->node[c->reader[first].node]);
    const int uses = c->node[owner].n;
    int64_t *cost = add_table(m, 2, (int[]){made.var, m->var[owner]}, (int[]){made.n, uses});
    double bytes;
    for (int v = 0; v < made.n && cost; v++)
        for (int u = 0; u < uses; u++)
            cost[v * uses + u] = read_cost(m, &c->reader[first], &c->node[owner].of[u],
                                           made.split[v], &bytes);
}

/* ---- parameters ---- */

static void add_home(struct home *h, const struct split *s) {
    int same = 0;
    while (same < h->n && !split_equal(&h->split[same], s)) same++;
    if (s->kind == SPLIT && !s->reach.over && same == h->n && h->n < HOMES_MOST)
        h->split[h->n++] = *s;
}

/* Whole, along each dimension, and as any operator may need it. */
static void find_home(struct maker *m, const tri_tensor *t) {
    const struct candidates *c = &m->to->all;
    struct home *h = &m->home[t->id];
    h->n = 1;
    for (int i = 0; i < t->spec.shape.rank; i++) {
        struct layout l = {{split_dim(&t->spec.shape, i)}};
        layout_normal(m->mesh, &l);
        if (t->spec.shape.dim[i] >= m->mesh->axis[0].size) add_home(h, &l.axis[0]);
    }
    for (size_t r = c->first[t->id]; r < c->first[t->id + 1]; r++) {
        const int owner = candidates_owner(c, m->g->node[c->reader[r].node]);
        for (int k = 0; k < c->node[owner].n; k++)
            add_home(h, &c->node[owner].of[k].need[c->reader[r].input]);
    }
    h->var = add_variable(m, h->n);
    int64_t *cost = add_table(m, 1, &h->var, &h->n);
    for (int k = 0; k < h->n && cost; k++)
        cost[k] = picoseconds(m->p->keep * (2 + m->p->states) *
                              (double)base_spec_bytes(&t->spec) * part_of(m, &h->split[k]));
}

/* The parameter of this lane whose gradient the result is; null: it is none. */
static const tri_tensor *parameter_of(const struct maker *m, const struct cut *cut,
                                      const struct graph_output *o) {
    const tri_tensor *gradient;
    for (size_t i = 0; cut && i < cut->whole->n_updates; i++) {
        if (cut_gradient(cut, i, &gradient)) return NULL;
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
    double bytes;
    for (int v = 0; v < made.n && cost; v++)
        for (int k = 0; k < home->n; k++)
            cost[v * home->n + k] = move_cost(m, o->tensor, made.split[v], &home->split[k],
                                              &bytes);
}

/* ---- all ---- */

static bool left_before(const tri_graph *g, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (g->output[k].tensor == g->output[i].tensor) return true;
    return false;
}

static void build(struct maker *m, const struct cut *cut) {
    const tri_graph *g = m->g;
    for (size_t i = 0; i < g->n_nodes; i++) m->var[i] = add_variable(m, m->to->all.node[i].n);
    for (size_t i = 0; i < g->n_nodes && !m->p->one_store; i++)
        if (node_is_param(g->node[i])) find_home(m, g->node[i]->out);
    for (size_t i = 0; i < g->n_nodes && !m->failed; i++) {
        add_node(m, g->node[i]);
        for (int k = 0; k < g->node[i]->n_out; k++) add_tensor(m, &g->node[i]->out[k]);
    }
    for (size_t i = 0; i < g->n_outputs && !m->failed; i++)
        if (!left_before(g, i)) add_result(m, cut, &g->output[i]);
}

static void add_move(struct maker *m, const tri_tensor *t, bool result, const struct split *to,
                     double bytes) {
    struct splits *s = m->to;
    for (size_t i = 0; i < s->n_moves; i++)
        if (s->move[i].tensor == t->id && s->move[i].result == result &&
            split_equal(&s->move[i].to, to))
            return;
    m->failed |= !ARRAY_GROW(s->move, s->n_moves, s->capacity);
    if (!m->failed) s->move[s->n_moves++] = (struct split_move){t->id, result, *to, (size_t)bytes};
}

/* What moves between operators; and to the store, if there is one. */
static void list_moves(struct maker *m) {
    static const struct split whole;
    const struct candidates *c = &m->to->all;
    double bytes;
    for (size_t i = 0; i < m->g->n_nodes; i++)
        for (int k = 0; k < m->g->node[i]->n_in && m->g->node[i]->n_in; k++) {
            const tri_node *n = m->g->node[i];
            const int owner = candidates_owner(c, n), made = candidates_owner(c, n->in[k]->node);
            if (!c->node[made].n || !node_reads(n, k)) continue;
            const struct split *need = &c->node[owner].of[m->to->value[owner]].need[k];
            move_cost(m, n->in[k],
                      &c->node[made].of[m->to->value[made]].has[n->in[k]->index], need, &bytes);
            if (bytes > 0) add_move(m, n->in[k], false, need, bytes);
        }
    for (size_t i = 0; i < m->g->n_outputs && m->p->one_store; i++) {
        const tri_tensor *t = m->g->output[i].tensor;
        const int made = candidates_owner(c, t->node);
        if (!c->node[made].n) continue;
        move_cost(m, t, &c->node[made].of[m->to->value[made]].has[t->index], &whole, &bytes);
        if (bytes > 0) add_move(m, t, true, &whole, bytes);
    }
}

static tri_status solve(struct maker *m, bool apart) {
    struct cost_least least;
    const struct cost_sum sum = {.n_vars = (int)m->n_vars, .values = m->values, .table = m->table,
                                 .n_tables = m->n_tables, .most_cells = MOST_CELLS,
                                 .apart = apart};
    const double begin = base_seconds();
    tri_status status = eliminate(&sum, &least);
    m->to->seconds = base_seconds() - begin;
    if (status) return status;
    for (size_t i = 0; i < m->g->n_nodes; i++) {
        const int owner = candidates_owner(&m->to->all, m->g->node[i]);
        m->to->value[i] = m->var[owner] >= 0 ? least.value[m->var[owner]] : 0;
    }
    m->to->cost = least.cost;
    m->to->exact = least.exact;
    m->to->variables = (int)m->n_vars;
    m->to->cells = least.cells;
    m->to->computed = least.computed;
    free(least.value);
    return TRI_OK;
}

tri_status splits_find(const tri_graph *lane, const struct cut *cut, const struct mesh *mesh,
                       const struct split_prices *p, bool apart, struct splits *out) {
    *out = (struct splits){0};
    struct maker m = {.g = lane, .mesh = mesh, .p = p, .to = out,
                      .seats = (double)mesh->axis[0].size};
    tri_status status = candidates_find(lane, mesh, &out->all);
    m.var = calloc(lane->n_nodes + 1, sizeof *m.var);
    m.home = calloc((size_t)lane->n_tensors + 1, sizeof *m.home);
    out->value = calloc(lane->n_nodes + 1, sizeof *out->value);
    m.failed = !m.var || !m.home || !out->value;
    if (!status && !m.failed) build(&m, cut);
    if (!status && m.failed) status = base_no_memory("the search for a plan");
    if (!status) status = solve(&m, apart);
    if (!status) list_moves(&m);
    if (!status && m.failed) status = base_no_memory("the search for a plan");
    free(m.var);
    free(m.home);
    free(m.values);
    free(m.table);
    arena_free(&m.arena);
    return status;
}

void splits_free(struct splits *s) {
    candidates_free(&s->all);
    free(s->value);
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

static tri_status list_uses(const struct splits *s, struct arena *a, struct use_text *to,
                            size_t *n_to) {
    const tri_graph *g = s->all.g;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        struct factors f;
        struct text t = {0};
        if (!s->all.node[i].n) continue;
        const bool known = op_has_factors(n->entry->op);
        if (known && !factors_of(n, &f)) return base_last();
        const struct use use[MESH_MOST_AXES] = {s->all.node[i].of[s->value[i]].use};
        use_line_print(n, &f, &s->all.mesh, use, &t);
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
    struct use_text *u = calloc(s->all.g->n_nodes + 1, sizeof *u);
    size_t n = 0;
    tri_status status = u ? list_uses(s, &a, u, &n) : base_no_memory("lines of uses");
    if (!status) print_uses(u, n, out);
    if (!status && out->failed) status = base_no_memory("lines of uses");
    free(u);
    arena_free(&a);
    return status;
}
