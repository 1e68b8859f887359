/* SPDX-License-Identifier: Apache-2.0
 * Plans chains. */
#include "dev/cpu/chain_plan.h"

#include "ops/op.h"

#define MAX_MEMBERS 32

/* A member's inputs: operands by their numbers, other members as ~ of theirs. */
struct member {
    const tri_node *node;
    int n_in, in[3];
    int value; /* the value it produces */
};

struct plan {
    struct chain *c;
    struct member member[MAX_MEMBERS];
    int n;
    int last[CHAIN_VALUES]; /* per value: the last step that uses it; -1: none */
    bool used[CHAIN_SLOTS];
};

/* ---- possible members ---- */

static bool is_copy(const tri_node *n) {
    return node_is(n, "expand") || node_is(n, "stop_gradient") ||
           (node_is(n, "spread") && tri_attr_int(n, "count") == 1);
}

bool chain_takes(const tri_node *n) {
    if (n->n_out != 1 || n->n_in < 1 || n->n_in > 3) return false;
    if (is_copy(n) || tile_find(n, TILE_RUNS)) return true;
    return node_is(n, "spread") && type_is_float(cpu_out(n, 0)->type);
}

static tile_fn *function_of(const tri_node *n, enum tile_form form) {
    if (is_copy(n)) return form ? NULL : tile_copy(cpu_out(n, 0)->type);
    if (node_is(n, "spread")) return form ? NULL : tile_divide();
    return tile_find(n, form);
}

/* ---- operands ---- */

/* Strides of an input over the output; false if its format does not fit. */
static bool lay_operand(struct walk *w, int k, const tri_node *n, const tri_tensor *in) {
    const tri_tensor *out = n->out;
    if (node_is(n, "spread")) {
        if (in->block || out->block) return false;
        walk_reduced(w, k, op_axes_mask(n, out->spec.shape.rank));
        return true;
    }
    if (in->block && (in->block != out->block || in->spec.shape.rank != out->spec.shape.rank))
        return false;
    walk_operand(w, k, in, out);
    return true;
}

/* The number of an operand; -1: there are too many. */
static int operand_of(struct chain *c, const tri_node *n, const tri_tensor *t) {
    int k = c->n_operands;
    if (k == CHAIN_OPERANDS || !lay_operand(&c->walk, k, n, t)) return -1;
    for (int o = 0; o < k; o++)
        if (c->operand[o].tensor == t && !memcmp(c->walk.stride[o], c->walk.stride[k],
                                                 (size_t)c->walk.rank * sizeof(int64_t)))
            return o;
    c->operand[k] = (struct operand){.tensor = t, .type = t->spec.type, .slot = -1};
    if (cpu_is_half(t->spec.type)) c->operand[k].widen = tile_storage(t->spec.type).widen;
    return c->n_operands++;
}

static bool add_member(struct plan *p, const tri_node *n) {
    struct member *m = &p->member[p->n];
    const tri_tensor *shape = p->n ? p->member[0].node->out : n->out;
    if (!chain_takes(n) || n->out->block != shape->block ||
        !base_shape_equal(&n->out->spec.shape, &shape->spec.shape))
        return false;
    *m = (struct member){.node = n};
    for (int i = 0; i < n->n_in; i++) {
        if (!node_reads(n, i)) continue;
        int k = 0;
        while (k < p->n && p->member[k].node->out != n->in[i]) k++;
        int in = k < p->n ? ~k : operand_of(p->c, n, n->in[i]);
        if (k == p->n && in < 0) return false;
        m->in[m->n_in++] = in;
    }
    p->n++;
    return m->n_in > 0;
}

static bool add_members(struct plan *p, const tri_node *const *node, int n) {
    if (n > MAX_MEMBERS) return false;
    p->c->walk = walk_of(node[0]->out, CHAIN_OPERANDS);
    for (int i = 0; i < n; i++)
        if (!add_member(p, node[i])) return false;
    p->c->walk.n = p->c->n_operands;
    return true;
}

/* ---- rows ---- */

/* Whether the last two dimensions are one row for this operand: contiguous, a single element, or
 * repeated. */
static bool joins(const struct walk *w, int k) {
    int last = w->rank - 1;
    int64_t inner = w->stride[k][last], outer = w->stride[k][last - 1];
    return inner == 1 ? outer == w->dim[last] || !outer : !inner && !outer;
}

static bool all_join(const struct walk *w) {
    int last = w->rank - 1;
    bool join = last >= 1 && w->dim[last] < CHAIN_LONG_ROW &&
                (last == 1 || w->dim[last] * w->dim[last - 1] >= CHAIN_LONG_ROW);
    for (int k = 0; k < w->n && join; k++) join = joins(w, k);
    return join;
}

static void set_mode(struct chain *c, int k, bool dense, int64_t period) {
    struct operand *o = &c->operand[k];
    bool uniform = o->step == 0;
    for (int d = 0; d < c->walk.rank; d++) uniform &= c->walk.stride[k][d] == 0;
    o->period = period;
    if (dense)
        o->mode = OPERAND_DENSE;
    else if (uniform || (!c->rows_per_tile && !o->step))
        o->mode = OPERAND_SINGLE;
    else if (period)
        o->mode = OPERAND_PATTERN;
    else
        o->mode = c->rows_per_tile || o->step != 1 ? OPERAND_GATHER : OPERAND_ROW;
}

static void cut_rows(struct chain *c) {
    struct walk *w = &c->walk;
    bool dense[CHAIN_OPERANDS];
    int64_t period[CHAIN_OPERANDS] = {0};
    c->count = walk_count(w);
    walk_simplify(w);
    for (int k = 0; k < w->n; k++) dense[k] = walk_is_dense(w, k);
    if (!w->rank) { /* one element */
        w->dim[0] = 1;
        w->rank = 1;
        for (int k = 0; k < w->n; k++) w->stride[k][0] = 0;
    }
    int last = w->rank - 1;
    if (all_join(w)) {
        for (int k = 0; k < w->n; k++)
            if (w->stride[k][last] && !w->stride[k][last - 1]) period[k] = w->dim[last];
        w->dim[last - 1] *= w->dim[last];
        for (int k = 0; k < w->n; k++) w->stride[k][last - 1] = w->stride[k][last];
        w->rank = last--;
    }
    c->row = w->dim[last];
    for (int k = 0; k < w->n; k++) c->operand[k].step = w->stride[k][last];
    walk_remove(w, last);
    c->rows_per_tile = w->rank && c->row < CHAIN_LONG_ROW ? TILE / c->row : 0;
    int64_t pieces = (c->row + TILE - 1) / TILE;
    c->piece = ((c->row + pieces - 1) / pieces + 63) / 64 * 64;
    for (int k = 0; k < w->n; k++) set_mode(c, k, dense[k], period[k]);
}

/* ---- steps ---- */

static bool is_single(const struct chain *c, int value) {
    return value < CHAIN_OPERANDS ? c->operand[value].mode == OPERAND_SINGLE
                                  : c->step[value - CHAIN_OPERANDS].single;
}

static size_t width_of(const struct chain *c, int value) {
    return value < CHAIN_OPERANDS ? tile_size(tile_type(c->operand[value].type))
                                  : c->step[value - CHAIN_OPERANDS].width;
}

/* Fills a run with the single element of `value`; returns the new value's number. */
static int add_fill(struct chain *c, int value) {
    c->step[c->n_steps] =
        (struct step){.n_in = 1, .in = {value}, .out = -1, .width = width_of(c, value)};
    return CHAIN_OPERANDS + c->n_steps++;
}

/* Uses the function's form for one single element; other single elements are filled. */
static void choose_form(struct chain *c, const tri_node *n, struct step *s) {
    int last = s->n_in - 1, kept = -1;
    s->single = true;
    s->fn = function_of(n, TILE_RUNS);
    for (int i = 0; i <= last; i++) s->single &= is_single(c, s->in[i]);
    if (s->single) return;
    for (int i = last; i >= 0 && i >= last - 1 && kept < 0; i--) {
        tile_fn *fn = function_of(n, i == last ? TILE_LAST : TILE_BEFORE);
        if (!fn || !is_single(c, s->in[i])) continue;
        s->fn = fn;
        kept = i;
    }
    for (int i = 0; i <= last; i++)
        if (i != kept && is_single(c, s->in[i])) s->in[i] = add_fill(c, s->in[i]);
}

static bool add_steps(struct plan *p, const struct unit *u) {
    struct chain *c = p->c;
    for (int j = 0; j < p->n; j++) {
        struct member *m = &p->member[j];
        const tri_tensor *y = m->node->out;
        struct step s = {.n_in = m->n_in, .out = u ? unit_out(u, y) : -1, .slot = -1,
                         .width = tile_size(tile_type(y->spec.type)),
                         .stored_size = tri_type_size(y->spec.type)};
        if (c->n_steps + 4 > CHAIN_STEPS) return false;
        for (int i = 0; i < m->n_in; i++)
            s.in[i] = m->in[i] < 0 ? p->member[~m->in[i]].value : m->in[i];
        choose_form(c, m->node, &s);
        tile_params(m->node, s.p);
        if (node_is(m->node, "spread")) s.p[0] = (float)tri_attr_int(m->node, "count");
        if (cpu_is_half(y->spec.type)) {
            s.narrow = tile_storage(y->spec.type).narrow;
            s.round = tile_storage(y->spec.type).round;
        }
        m->value = CHAIN_OPERANDS + c->n_steps;
        c->step[c->n_steps++] = s;
    }
    return true;
}

/* ---- slots ---- */

static void find_lifetimes(struct plan *p) {
    struct chain *c = p->c;
    for (int v = 0; v < CHAIN_VALUES; v++) p->last[v] = -1;
    for (int i = c->n_steps - 1; i >= 0; i--)
        for (int k = 0; k < c->step[i].n_in; k++) {
            int v = c->step[i].in[k];
            if (p->last[v] < 0) p->last[v] = i;
            if (v < CHAIN_OPERANDS) c->operand[v].first = i;
        }
    for (int k = 0; k < c->n_operands; k++) c->operand[k].last = p->last[k];
    for (int i = 0, n = 0; i < c->n_steps; i++)
        for (int k = 0; k < c->n_operands; k++)
            if (c->operand[k].first == i) c->load[n++] = k;
    for (int i = 0; i < c->n_steps; i++)
        if (p->last[CHAIN_OPERANDS + i] < 0) c->step[i].round = NULL;
}

static int take_slot(struct plan *p) {
    for (int i = 0; i < CHAIN_SLOTS; i++)
        if (!p->used[i]) {
            p->used[i] = true;
            return i;
        }
    return -1;
}

static int slot_of(const struct chain *c, int value) {
    return value < CHAIN_OPERANDS ? c->operand[value].slot : c->step[value - CHAIN_OPERANDS].slot;
}

/* Patterns are reused from tile to tile. */
static bool stays(const struct chain *c, int value) {
    return value < CHAIN_OPERANDS && c->operand[value].mode == OPERAND_PATTERN;
}

/* Frees the slots of values that step i was the last to use. */
static void drop_ended(struct plan *p, int i) {
    const struct chain *c = p->c;
    for (int v = 0; v < CHAIN_OPERANDS + c->n_steps; v++)
        if (i >= 0 && p->last[v] == i && slot_of(c, v) >= 0 && !stays(c, v))
            p->used[slot_of(c, v)] = false;
}

/* Reuses the slot of an input that ends at step i for its value. */
static bool take_over(struct plan *p, int i) {
    const struct chain *c = p->c;
    struct step *s = &p->c->step[i];
    for (int k = 0; k < s->n_in && !s->single; k++) {
        int v = s->in[k];
        if (p->last[v] != i || slot_of(c, v) < 0 || stays(c, v) || is_single(c, v) ||
            width_of(c, v) != s->width)
            continue;
        s->slot = slot_of(c, v);
        p->last[v] = -1; /* no longer its own */
        return true;
    }
    return false;
}

static bool needs_slot(const struct operand *o) {
    if (o->mode == OPERAND_SINGLE) return false;
    return o->mode == OPERAND_PATTERN || o->mode == OPERAND_GATHER || o->widen;
}

static bool place_slots(struct plan *p) {
    struct chain *c = p->c;
    bool ok = true;
    c->raw_slot = -1;
    for (int k = 0; k < c->n_operands && ok; k++) {
        struct operand *o = &c->operand[k];
        if (o->mode == OPERAND_PATTERN) ok = (o->slot = take_slot(p)) >= 0;
        if (o->mode == OPERAND_GATHER && o->widen && c->raw_slot < 0)
            ok = (c->raw_slot = take_slot(p)) >= 0;
    }
    for (int i = 0; i < c->n_steps && ok; i++) {
        struct step *s = &c->step[i];
        drop_ended(p, i - 1);
        for (int k = 0; k < c->n_operands && ok; k++) {
            struct operand *o = &c->operand[k];
            if (o->first == i && o->slot < 0 && needs_slot(o)) ok = (o->slot = take_slot(p)) >= 0;
        }
        if (ok && (s->out < 0 || s->narrow || s->single))
            ok = take_over(p, i) || (s->slot = take_slot(p)) >= 0;
        if (s->slot >= 0 && p->last[CHAIN_OPERANDS + i] < 0) p->used[s->slot] = false;
    }
    return ok;
}

/* ---- public functions ---- */

/* Plans the whole chain; without a unit no value counts as used outside. */
static bool make(struct chain *c, const tri_node *const *node, int n, const struct unit *u) {
    struct plan p = {.c = c};
    if (!add_members(&p, node, n)) return false;
    cut_rows(c);
    if (!add_steps(&p, u)) return false;
    find_lifetimes(&p);
    return place_slots(&p);
}

static bool made_fits(const struct chain *c, const tri_tensor *made) {
    bool found = !made;
    for (int k = 0; made && k < c->n_operands; k++) {
        if (c->operand[k].tensor != made) continue;
        if (c->operand[k].mode != OPERAND_DENSE) return false;
        found = true;
    }
    return found;
}

bool chain_fits(const tri_node *const *node, int n, const tri_tensor *made) {
    struct chain c = {0};
    return n && make(&c, node, n, NULL) && made_fits(&c, made);
}

tri_status chain_make(const struct unit *u, const tri_node *head, const tri_tensor *made,
                      struct chain **out) {
    const tri_node *node[MAX_MEMBERS + 1];
    int n = 0;
    struct chain *c = *out = calloc(1, sizeof *c);
    if (!c) return base_no_memory(u->node[0]->name);
    for (int i = 0; i < u->n && n <= MAX_MEMBERS; i++)
        if (u->node[i] != head) node[n++] = u->node[i];
    CHECK(make(c, node, n, u));
    /* There may be thousands of chains; most have few steps. */
    struct chain *less = realloc(c, offsetof(struct chain, step) +
                                        (size_t)c->n_steps * sizeof *c->step);
    if (less) *out = c = less;
    c->input = u->in;
    for (int k = 0; k < c->n_operands; k++)
        c->operand[k].index =
            c->operand[k].tensor == made ? CHAIN_MADE : unit_in(u, c->operand[k].tensor);
    return TRI_OK;
}

int64_t chain_count(const struct chain *c) { return c->count; }

/* Every member that reads the input's tile has done so when the output's tile is written. */
bool chain_shares(const struct chain *c, int out, int in) {
    int written = 0, found = 0;
    while (c->step[written].out != out) written++;
    for (int k = 0; k < c->n_operands; k++) {
        const struct operand *o = &c->operand[k];
        if (o->tensor != c->input[in] || o->index == CHAIN_MADE) continue;
        found++;
        if (o->mode != OPERAND_DENSE || (o->widen ? o->first : o->last) > written ||
            tri_type_size(o->type) != c->step[written].stored_size)
            return false;
    }
    return found;
}
