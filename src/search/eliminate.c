/* SPDX-License-Identifier: Apache-2.0 */
#include "search/eliminate.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096 /* of the tables of hashes */
#define GONE (-1)

/* Costs without the names of their variables. */
struct table {
    int n;
    int size[SCOPE_MOST];
    int64_t cells;
    int64_t *cost;
    uint8_t *choice; /* of one that arose: the value of the variable that was eliminated */
    uint64_t hash;
    int number;
    struct table *next; /* in the bucket */
};

/* A table over variables, in ascending order. */
struct factor {
    const struct table *t;
    int var[SCOPE_MOST];
    bool gone;
};

/* What came of eliminating a variable from tables that lie so. */
struct done {
    uint64_t hash;
    size_t words;
    int *word; /* the tables' numbers, and where their variables are in the union */
    const struct table *result;
    int64_t less; /* what all of its costs were more, before */
    struct done *next;
};

struct variable {
    int size, value; /* value -1: not known yet */
    size_t *factor;  /* that have it */
    size_t n, capacity;
    const struct table *choice;
    int scope[SCOPE_MOST]; /* of that */
};

struct work {
    const struct cost_sum *s;
    struct cost_least *out;
    struct variable *var;
    int64_t *cells; /* by variable: of the table that its elimination would make; GONE: it is */
    int *least;     /* a tree over the variables: by node from 1 on, that with the fewest cells */
    int leaves;     /* children of node i are 2i and 2i + 1; the leaves begin at this node */
    struct factor *factor;
    size_t n, capacity;
    struct table *table[BUCKETS];
    struct done *done[BUCKETS];
    struct arena arena;
    int tables;
    int *order; /* of eliminated variables */
    int eliminated;
    int64_t constant; /* of tables without variables */
    bool failed;
};

static void *get(struct work *w, size_t bytes) {
    void *p = arena_alloc(&w->arena, bytes + 1);
    w->failed |= !p;
    return p;
}

/* ---- tables ---- */

static bool equal_tables(const struct table *a, const struct table *b) {
    return a->n == b->n && !memcmp(a->size, b->size, (size_t)a->n * sizeof *a->size) &&
           !memcmp(a->cost, b->cost, (size_t)a->cells * sizeof *a->cost) &&
           !a->choice == !b->choice &&
           (!a->choice || !memcmp(a->choice, b->choice, (size_t)a->cells));
}

/* The one that is equal, or itself. */
static const struct table *intern(struct work *w, struct table *t) {
    t->hash = base_hash(t->cost, (size_t)t->cells * sizeof *t->cost, (uint64_t)t->n);
    struct table **at = &w->table[t->hash % BUCKETS];
    for (struct table *o = *at; o && !w->s->apart; o = o->next)
        if (o->hash == t->hash && equal_tables(o, t)) return o;
    t->number = w->tables++;
    t->next = *at;
    *at = t;
    return t;
}

static void add_constant(struct work *w, int64_t cost) {
    w->constant += cost;
    if (w->constant > COST_NEVER) w->constant = COST_NEVER;
}

static void add_factor(struct work *w, const struct table *t, const int *var) {
    if (!t->n) {
        add_constant(w, t->cost[0]);
        return;
    }
    if (!ARRAY_GROW(w->factor, w->n, w->capacity)) {
        w->failed = true;
        return;
    }
    struct factor *f = &w->factor[w->n];
    f->t = t;
    f->gone = false;
    memcpy(f->var, var, (size_t)t->n * sizeof *var);
    for (int i = 0; i < t->n; i++) {
        struct variable *v = &w->var[var[i]];
        if (!ARRAY_GROW(v->factor, v->n, v->capacity)) w->failed = true;
        else v->factor[v->n++] = w->n;
    }
    w->n++;
}

/* The place of the cell whose variables have these values, given by their places in a larger
 * scope. */
static int64_t cell_of(const struct table *t, const int *place, const int *value) {
    int64_t at = 0;
    for (int i = 0; i < t->n; i++) at = at * t->size[i] + value[place[i]];
    return at;
}

/* Adds a table of the caller's with its variables in ascending order. */
static void take_table(struct work *w, const struct cost_table *in) {
    int order[SCOPE_MOST], var[SCOPE_MOST], value[SCOPE_MOST] = {0};
    int64_t stride[SCOPE_MOST];
    struct table *t = get(w, sizeof *t);
    if (w->failed) return;
    *t = (struct table){.n = in->n, .cells = 1};
    for (int i = 0; i < in->n; i++) {
        int k = i;
        for (; k > 0 && in->var[order[k - 1]] > in->var[i]; k--) order[k] = order[k - 1];
        order[k] = i;
    }
    for (int i = 0; i < in->n; i++) {
        var[i] = in->var[order[i]];
        t->size[i] = w->s->values[var[i]];
        t->cells *= t->size[i];
    }
    t->cost = get(w, (size_t)t->cells * sizeof *t->cost);
    for (int i = in->n; i-- > 0;)
        stride[i] = i + 1 < in->n ? stride[i + 1] * w->s->values[in->var[i + 1]] : 1;
    for (int64_t at = 0, from = 0; at < t->cells && !w->failed; at++) {
        t->cost[at] = in->cost[from] < COST_NEVER ? in->cost[from] : COST_NEVER;
        for (int i = in->n; i-- > 0;) { /* the next cell, by its values */
            from += stride[order[i]];
            if (++value[i] < t->size[i]) break;
            from -= stride[order[i]] * t->size[i];
            value[i] = 0;
        }
    }
    if (!w->failed) add_factor(w, intern(w, t), var);
}

/* ---- scopes ---- */

/* The variables of all tables that have v, ascending, with v. More than fit: below 0. */
static int scope_of(const struct work *w, int v, int *scope) {
    const struct variable *is = &w->var[v];
    int n = 0;
    scope[n++] = v;
    for (size_t i = 0; i < is->n; i++) {
        const struct factor *f = &w->factor[is->factor[i]];
        for (int k = 0; k < f->t->n && !f->gone; k++) {
            int at = 0;
            while (at < n && scope[at] < f->var[k]) at++;
            if (at < n && scope[at] == f->var[k]) continue;
            if (n == SCOPE_MOST) return -1;
            memmove(scope + at + 1, scope + at, (size_t)(n - at) * sizeof *scope);
            scope[at] = f->var[k];
            n++;
        }
    }
    return n;
}

/* The first if they are equal; below 0: none. */
static int lesser(const struct work *w, int a, int b) {
    if (a < 0 || w->cells[a] == GONE) return b;
    return b < 0 || w->cells[b] == GONE || w->cells[a] <= w->cells[b] ? a : b;
}

static void set_cells(struct work *w, int v, int64_t cells) {
    w->cells[v] = cells;
    for (int i = (w->leaves + v) / 2; i; i /= 2)
        w->least[i] = lesser(w, w->least[2 * i], w->least[2 * i + 1]);
}

/* Sets how large the table is that the variable's elimination makes. */
static void score(struct work *w, int v) {
    struct variable *is = &w->var[v];
    int scope[SCOPE_MOST];
    size_t kept = 0;
    for (size_t i = 0; i < is->n; i++)
        if (!w->factor[is->factor[i]].gone) is->factor[kept++] = is->factor[i];
    is->n = kept;
    const int n = scope_of(w, v, scope);
    int64_t cells = n < 0 ? INT64_MAX : 1;
    for (int i = 0; i < n && cells < INT64_MAX; i++) {
        if (scope[i] == v) continue;
        const int64_t size = w->var[scope[i]].size;
        cells = cells > INT64_MAX / size ? INT64_MAX : cells * size;
    }
    set_cells(w, v, cells);
}

/* ---- a step ---- */

/* Makes the least cost 0, so that tables that differ by a constant are one. Returns what it was. */
static int64_t lower(struct table *t) {
    int64_t least = COST_NEVER;
    for (int64_t i = 0; i < t->cells; i++)
        if (t->cost[i] < least) least = t->cost[i];
    if (least == COST_NEVER) return 0;
    for (int64_t i = 0; i < t->cells; i++)
        if (t->cost[i] < COST_NEVER) t->cost[i] -= least;
    return least;
}

/* For each cell of the scope without v the least sum over the values of v. place: by table of v, of
 * its variables in the scope, one table after the other. *less: see struct done. */
static const struct table *least(struct work *w, int v, const int *scope, int n, const int *place,
                                 int64_t *less) {
    const struct variable *is = &w->var[v];
    struct table *t = get(w, sizeof *t);
    int value[SCOPE_MOST] = {0}, own = 0;
    if (w->failed) return NULL;
    *t = (struct table){.n = n - 1, .cells = 1};
    for (int i = 0, k = 0; i < n; i++) {
        if (scope[i] == v) own = i;
        else t->cells *= t->size[k++] = w->var[scope[i]].size;
    }
    t->cost = get(w, (size_t)t->cells * sizeof *t->cost);
    t->choice = get(w, (size_t)t->cells);
    for (int64_t at = 0; at < t->cells && !w->failed; at++) {
        int64_t rest = at;
        for (int i = n, k = n - 1; i-- > 0;) {
            if (i == own) continue;
            k--;
            value[i] = (int)(rest % t->size[k]);
            rest /= t->size[k];
        }
        t->cost[at] = INT64_MAX;
        for (value[own] = 0; value[own] < is->size; value[own]++) {
            const int *p = place;
            int64_t sum = 0;
            for (size_t i = 0; i < is->n; i++) {
                const struct table *of = w->factor[is->factor[i]].t;
                sum += of->cost[cell_of(of, p, value)];
                if (sum > COST_NEVER) sum = COST_NEVER;
                p += of->n;
            }
            if (sum >= t->cost[at]) continue;
            t->cost[at] = sum;
            t->choice[at] = (uint8_t)value[own];
        }
    }
    w->out->computed += t->cells * is->size;
    if (w->failed) return NULL;
    *less = lower(t);
    return intern(w, t);
}

/* As `least`, unless it was computed before. */
static const struct done *least_once(struct work *w, int v, const int *scope, int n) {
    const struct variable *is = &w->var[v];
    size_t words = 2, at = 2;
    for (size_t i = 0; i < is->n; i++) words += 1 + (size_t)w->factor[is->factor[i]].t->n;
    int *word = get(w, words * sizeof *word), *place = get(w, words * sizeof *place);
    int places = 0;
    if (w->failed) return NULL;
    word[0] = n;
    for (int k = 0; k < n; k++)
        if (scope[k] == v) word[1] = k;
    for (size_t i = 0; i < is->n; i++) {
        const struct factor *f = &w->factor[is->factor[i]];
        word[at++] = f->t->number;
        for (int k = 0, s = 0; k < f->t->n; k++) {
            while (scope[s] != f->var[k]) s++;
            word[at++] = place[places++] = s;
        }
    }
    const uint64_t hash = base_hash(word, words * sizeof *word, 0);
    struct done **bucket = &w->done[hash % BUCKETS];
    for (struct done *d = *bucket; d && !w->s->apart; d = d->next)
        if (d->hash == hash && d->words == words && !memcmp(d->word, word, words * sizeof *word))
            return d;
    struct done *d = get(w, sizeof *d);
    int64_t less = 0;
    const struct table *t = least(w, v, scope, n, place, &less);
    if (w->failed) return NULL;
    *d = (struct done){hash, words, word, t, less, *bucket};
    *bucket = d;
    return d;
}

static void score_all(struct work *w, const int *scope, int n, int v) {
    for (int i = 0; i < n; i++)
        if (scope[i] != v && w->cells[scope[i]] != GONE) score(w, scope[i]);
}

static void remove_variable(struct work *w, int v) {
    struct variable *is = &w->var[v];
    int scope[SCOPE_MOST], rest = 0;
    const int n = scope_of(w, v, scope);
    const struct done *d = least_once(w, v, scope, n);
    if (w->failed) return;
    const struct table *t = d->result;
    add_constant(w, d->less);
    w->out->cells += t->cells * is->size;
    for (size_t i = 0; i < is->n; i++) w->factor[is->factor[i]].gone = true;
    set_cells(w, v, GONE);
    is->choice = t;
    for (int i = 0; i < n; i++)
        if (scope[i] != v) is->scope[rest++] = scope[i];
    w->order[w->eliminated++] = v;
    add_factor(w, t, is->scope);
    score_all(w, scope, n, v);
}

/* The variable takes its first value, as its table would be too large. */
static void fix_variable(struct work *w, int v) {
    struct variable *is = &w->var[v];
    const size_t n = is->n;
    set_cells(w, v, GONE);
    is->value = w->s->first ? w->s->first[v] : 0;
    w->out->exact = false;
    for (size_t i = 0; i < n && !w->failed; i++) {
        const struct factor f = w->factor[is->factor[i]];
        int var[SCOPE_MOST], value[SCOPE_MOST], place[SCOPE_MOST], k = 0;
        struct table *t = get(w, sizeof *t);
        if (w->failed) return;
        *t = (struct table){.cells = 1};
        for (int j = 0; j < f.t->n; j++) {
            place[j] = j;
            value[j] = is->value;
            if (f.var[j] == v) continue;
            var[k] = f.var[j];
            t->cells *= t->size[k++] = f.t->size[j];
        }
        t->n = k;
        t->cost = get(w, (size_t)t->cells * sizeof *t->cost);
        for (int64_t at = 0; at < t->cells && !w->failed; at++) {
            int64_t rest = at;
            for (int j = f.t->n; j-- > 0;) {
                if (f.var[j] == v) continue;
                value[j] = (int)(rest % f.t->size[j]);
                rest /= f.t->size[j];
            }
            t->cost[at] = f.t->cost[cell_of(f.t, place, value)];
        }
        w->factor[is->factor[i]].gone = true;
        if (!w->failed) add_factor(w, intern(w, t), var);
        if (!w->failed) score_all(w, var, k, v);
    }
}

/* ---- all ---- */

/* The variable whose table is smallest; of equal ones the first. -1: none is left. */
static int next_variable(const struct work *w) {
    const int v = w->least[1];
    return v >= 0 && w->cells[v] != GONE ? v : -1;
}

/* The variable that is in most tables: without it the others' are smaller. */
static int widest_variable(const struct work *w) {
    int best = -1;
    for (int v = 0; v < w->s->n_vars; v++)
        if (w->cells[v] != GONE && (best < 0 || w->var[v].n > w->var[best].n)) best = v;
    return best;
}

static void find_values(struct work *w) {
    for (int i = w->eliminated; i-- > 0;) {
        struct variable *v = &w->var[w->order[i]];
        int64_t at = 0;
        for (int k = 0; k < v->choice->n; k++)
            at = at * v->choice->size[k] + w->var[v->scope[k]].value;
        v->value = v->choice->choice[at];
    }
}

static void run(struct work *w) {
    const struct cost_sum *s = w->s;
    for (size_t i = 0; i < s->n_tables && !w->failed; i++) take_table(w, &s->table[i]);
    for (int v = 0; v < s->n_vars && !w->failed; v++) score(w, v);
    for (int v; !w->failed && (v = next_variable(w)) >= 0;) {
        if (w->cells[v] > s->most_cells / w->var[v].size) fix_variable(w, widest_variable(w));
        else remove_variable(w, v);
    }
    if (!w->failed) find_values(w);
}

tri_status eliminate(const struct cost_sum *s, struct cost_least *out) {
    struct work w = {.s = s, .out = out};
    const size_t n = (size_t)s->n_vars;
    *out = (struct cost_least){.exact = true, .value = calloc(n + 1, sizeof *out->value)};
    w.var = calloc(n + 1, sizeof *w.var);
    w.order = calloc(n + 1, sizeof *w.order);
    w.cells = calloc(n + 1, sizeof *w.cells);
    for (w.leaves = 1; w.leaves < s->n_vars || w.leaves < 2;) w.leaves *= 2;
    w.least = malloc(2 * (size_t)w.leaves * sizeof *w.least);
    w.failed = !w.var || !w.order || !w.cells || !out->value || !w.least;
    for (int i = 0; i < 2 * w.leaves && !w.failed; i++)
        w.least[i] = i >= w.leaves && i - w.leaves < s->n_vars ? i - w.leaves : -1;
    for (size_t v = 0; v < n && !w.failed; v++)
        w.var[v] = (struct variable){.size = s->values[v], .value = -1};
    if (!w.failed) run(&w);
    for (size_t v = 0; v < n && !w.failed; v++) out->value[v] = w.var[v].value;
    out->cost = w.constant;
    tri_status status = w.failed ? base_no_memory("the search for a plan")
                        : w.constant >= COST_NEVER
                            ? base_fail(TRI_USAGE, "no choice of splits is allowed")
                            : TRI_OK;
    for (size_t v = 0; v < n && w.var; v++) free(w.var[v].factor);
    free(w.var);
    free(w.order);
    free(w.cells);
    free(w.least);
    free(w.factor);
    arena_free(&w.arena);
    if (status) {
        free(out->value);
        out->value = NULL;
    }
    return status;
}
