/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/explain.h"

#include <string.h>

#include "plan/passes.h"
#include "plan/strategy_inside.h"

void mesh_at(const struct mesh *m, int64_t i, int16_t at[MESH_MOST_AXES]) {
    for (int a = MESH_MOST_AXES; a-- > 0;) {
        int64_t size = a < m->n ? m->axis[a].size : 1;
        at[a] = (int16_t)(i % size);
        i /= size;
    }
}

/* ---- operators ---- */

void explain_split(const struct dist *d, const tri_node *n, struct text *out) {
    struct factors f;
    bool known = op_has_factors(n->entry->op) && factors_of(n, &f), any = false;
    out->failed |= op_has_factors(n->entry->op) && !known;
    for (int a = 0; a < d->mesh.n; a++) {
        const struct use *u = &d->use[n->id][a];
        if (u->kind == USE_WHOLE) continue;
        const char *name = u->kind == USE_PARTIAL ? "partial sums"
                           : known                ? factor_name(n, &f, u->factor)
                                                  : "?";
        text_add(out, "%s%s", any ? ", " : "", name);
        if (u->kind == USE_FACTOR && u->outer > 1) text_add(out, "/%lld", (long long)u->outer);
        text_add(out, "/%s", d->mesh.axis[a].name);
        any = true;
    }
    if (!any) text_add(out, "whole");
    if (known) factors_free(&f);
}

bool explain_per_lane(const tri_node *n) {
    return node_per_lane(n) || (n->entry->op->group_values && tri_attr_int(n, "training"));
}

tri_shape explain_slice(const struct dist *d, const tri_tensor *t, const struct layout *l,
                        const int16_t *at) {
    static const int16_t origin[MESH_MOST_AXES];
    struct refined r;
    struct box b;
    CHECK(layout_refine(&t->spec.shape, &l, 1, &d->mesh, &r) &&
          layout_box(&d->mesh, &r, l, at ? at : origin, &b));
    return box_shape(&r, &b, t->spec.shape.rank);
}

static size_t slice_bytes(const struct dist *d, const tri_tensor *t, const struct layout *l,
                          const int16_t *at) {
    tri_spec part = t->spec;
    part.shape = explain_slice(d, t, l, at);
    return base_spec_bytes(&part);
}

/* The channels of a block in which the target's kernels take the tensor, but not a seat's part of
 * it; 0: none. */
static int lost_block(const struct dist *d, const tri_tensor *t, const struct layout *l,
                      const struct format *wish) {
    if (wish->block < 1 || explain_slice(d, t, l, NULL).dim[1] % wish->block == 0) return 0;
    return wish->block;
}

bool explain_is_split(const struct dist *d, const tri_node *n) {
    for (int a = 0; a < d->mesh.n; a++)
        if (d->use[n->id][a].kind != USE_WHOLE) return true;
    return false;
}

void explain_warning(const struct dist *d, const struct target *target, const tri_node *n,
                     struct text *out) {
    struct format in[TRI_MAX_OUTPUTS] = {0}, made[TRI_MAX_OUTPUTS] = {0};
    bool gathers = false;
    int block = 0;
    if (target && target->formats && n->n_in <= (int)COUNT(in)) target->formats(n, in, made);
    for (int i = 0; i < n->n_in; i++) {
        const struct layout *need = dist_need(d, n, i);
        if (i < (int)COUNT(in) && !block) block = lost_block(d, n->in[i], need, &in[i]);
        gathers |= dist_moves(d, n->in[i], need);
    }
    if (!block) block = lost_block(d, n->out, &d->has[n->out->id], made);
    if (block)
        text_add(out, "a seat's channels are no multiple of %d, so that it leaves the fast kernels",
                 block);
    else if (!op_has_factors(n->entry->op) && !explain_is_split(d, n))
        text_add(out, "its row does not say how it may be split: it is computed whole%s",
                 gathers ? ", and its inputs are gathered" : "");
}

/* ---- moves ---- */

const char *const move_kinds[MOVE_KINDS] = {"all-gather", "all-reduce", "reduce-scatter",
                                            "all-to-all", "halo exchange", "several kinds"};

enum move_kind move_kind(const struct mesh *m, const struct move *move) {
    enum move_kind kind = MOVE_KINDS;
    for (int a = 0; a < m->n; a++) {
        const struct split *f = &move->from.axis[a], *t = &move->to.axis[a];
        if (f->kind == WHOLE || split_equal(f, t)) continue;
        enum move_kind its = f->kind == PARTIAL
                                 ? (t->kind == WHOLE ? MOVE_ALL_REDUCE : MOVE_REDUCE_SCATTER)
                             : t->kind == WHOLE            ? MOVE_ALL_GATHER
                             : split_sees_neighbours(f, t) ? MOVE_HALO
                                                           : MOVE_ALL_TO_ALL;
        kind = kind == MOVE_KINDS || kind == its ? its : MOVE_MIXED;
    }
    CHECK(kind != MOVE_KINDS);
    return kind;
}

const tri_tensor *explain_tensor(const struct dist *d, const struct move *m) {
    if (m->node >= 0) return d->g->node[m->node]->in[m->input];
    size_t i = 0;
    while (d->g->output[i].tensor->id != m->tensor) i++;
    return d->g->output[i].tensor;
}

enum move_when move_when(const struct dist *d, const struct move *m) {
    if (m->node < 0) return MOVE_TO_STORE;
    return d->g->node[m->node]->backward ? MOVE_BACKWARD : MOVE_FORWARD;
}

void explain_sum(const struct dist *d, const struct move *m, struct move_sums *s) {
    enum move_when when = move_when(d, m);
    enum move_kind kind = move_kind(&d->mesh, m);
    s->of[when][kind].n++;
    s->of[when][kind].bytes += (double)m->bytes;
    s->all[when].n++;
    s->all[when].bytes += (double)m->bytes;
}

struct move_sums explain_sums(const struct dist *d) {
    struct move_sums s = {0};
    for (size_t i = 0; i < d->n_moves; i++) explain_sum(d, &d->move[i], &s);
    return s;
}

/* ---- a line for an operator, and for a move ---- */

bool explain_names(const char *match, const tri_node *n) {
    const char *own = n->backward ? strchr(n->name, '.') : NULL;
    const tri_node forward = {.name = own ? own + 1 : n->name};
    return !match || node_in_scope(n, match) || node_in_scope(&forward, match);
}

bool explain_matches(const tri_graph *lane, const char *match) {
    const struct strategy_line l = {.pattern = match, .from = "--match"};
    for (size_t i = 0; i < lane->n_nodes; i++)
        if (lane->node[i]->n_in && explain_names(match, lane->node[i])) return true;
    return !strategy_unmatched(&l, lane, NULL);
}

static void add_slice(struct text *t, const struct dist *d, const tri_tensor *tensor,
                      const struct layout *l) {
    tri_shape s = explain_slice(d, tensor, l, NULL);
    text_add(t, "[");
    for (int i = 0; i < s.rank; i++) text_add(t, "%s%lld", i ? "," : "", (long long)s.dim[i]);
    text_add(t, "]");
}

void explain_operator(const struct dist *d, const struct target *target, const tri_node *n,
                      struct text *t) {
    struct text split = {0}, note = {0};
    explain_split(d, n, &split);
    text_add(t, "  %-40s %-16s %-24s ", n->name, n->entry->op->name,
             split.data ? split.data : "");
    t->failed |= split.failed;
    text_free(&split);
    for (int i = 0; i < n->n_in; i++) {
        text_add(t, "%s", i ? ", " : "");
        add_slice(t, d, n->in[i], dist_need(d, n, i));
    }
    text_add(t, " -> ");
    for (int i = 0; i < n->n_out; i++) {
        text_add(t, "%s", i ? ", " : "");
        add_slice(t, d, &n->out[i], &d->has[n->out[i].id]);
    }
    text_add(t, "%s\n", explain_per_lane(n) ? "  per lane" : "");
    explain_warning(d, target, n, &note);
    if (note.size) text_add(t, "    note: %s\n", note.data);
    t->failed |= note.failed;
    text_free(&note);
}

/* Two layouts may have the same text and still cut at other places: then the shape of the first
 * seat's part follows each. */
static void add_layouts(struct text *t, const struct dist *d, const struct move *m,
                        const tri_tensor *of, const char *reader) {
    const struct layout *const layout[] = {&m->from, &m->to};
    struct text text[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) layout_text(&d->mesh, layout[i], of->spec.shape.rank, &text[i]);
    t->failed |= text[0].failed || text[1].failed;
    for (int i = 0; i < 1 + (reader != NULL) && !t->failed; i++) {
        if (i) text_add(t, "; %s needs ", reader);
        text_add(t, "%s", text[i].data);
        if (!reader || strcmp(text[0].data, text[1].data)) continue;
        text_add(t, " of ");
        add_slice(t, d, of, layout[i]);
    }
    for (int i = 0; i < 2; i++) text_free(&text[i]);
}

void explain_move(const struct dist *d, const struct move *m, struct text *t) {
    const tri_tensor *tensor = explain_tensor(d, m);
    char spec[SPEC_TEXT];
    const tri_node *reader = m->node < 0 ? NULL : d->g->node[m->node];
    text_add(t, "  ");
    move_text(&d->mesh, &m->from, &m->to, t);
    text_add(t, ", %zu bytes: %s of %s is ", m->bytes, base_spec_text(&tensor->spec, spec),
             tensor->node->name);
    add_layouts(t, d, m, tensor, reader ? reader->name : NULL);
    if (reader && reader->file) text_add(t, " (%s:%d)", reader->file, reader->line);
    text_add(t, "\n");
}

/* ---- what the user may not expect ---- */

static bool is_asked(const struct strategies *s, const tri_node *n) {
    struct ask ask[MESH_MOST_AXES];
    bool asked = n->backward; /* it follows its forward operator */
    strategies_find(s, n, ask);
    strategies_ask_layout(s, n->out, ask);
    for (int a = 0; a < s->mesh.n; a++) asked |= ask[a].kind && ask[a].kind != ASK_TOO_MUCH;
    return asked;
}

/* The likely cause: factors that the seats do not divide. */
static void add_unequal(const struct dist *d, const tri_node *n, struct text *out) {
    struct factors f;
    if (!op_has_factors(n->entry->op) || !factors_of(n, &f)) return;
    for (int a = 0; a < d->mesh.n; a++) {
        const struct use *u = &d->use[n->id][a];
        const long long seats = d->mesh.axis[a].size, places = f.extent[u->factor];
        if (u->kind == USE_FACTOR && places % seats)
            text_add(out, "; %lld seats do not divide the %lld places of its factor %s", seats,
                     places, factor_name(n, &f, u->factor));
    }
    factors_free(&f);
}

static void note_resplit(const struct dist *d, const struct strategies *s, const char *prefix,
                         struct text *out) {
    const struct move *most = NULL;
    size_t bytes = 0;
    int n = 0;
    for (size_t i = 0; i < d->n_moves; i++) {
        const struct move *m = &d->move[i];
        if (m->node < 0 || move_kind(&d->mesh, m) != MOVE_ALL_TO_ALL) continue;
        n++;
        bytes += m->bytes;
        if (!most || m->bytes > most->bytes) most = m;
    }
    if (!most) return;
    const tri_tensor *t = explain_tensor(d, most);
    const tri_node *reader = d->g->node[most->node];
    text_add(out, "%ssplit again: %d all-to-all, %zu bytes of a lane: %s is split by ", prefix, n,
             bytes, t->node->name);
    explain_split(d, t->node, out);
    text_add(out, " as ");
    layout_text(&d->mesh, &most->from, t->spec.shape.rank, out);
    text_add(out, "%s; %s needs other parts, by ",
             is_asked(s, t->node) ? "" : ", for which no strategy asks", reader->name);
    explain_split(d, reader, out);
    text_add(out, is_asked(s, reader) ? "" : ", for which no strategy asks");
    add_unequal(d, reader, out);
    text_add(out, "\n");
}

/* Adds why a forward node is whole along an axis although it was to be split. */
static void add_too_few(const struct dist *d, const struct strategies *s, const tri_node *n,
                        int axis, struct text *out) {
    const long long seats = s->mesh.axis[axis].size;
    struct ask ask[MESH_MOST_AXES];
    struct factors f;
    uint8_t factor = 0;
    if (n->backward || d->use[n->id][axis].kind != USE_WHOLE) return;
    if (!op_has_factors(n->entry->op) || !factors_of(n, &f)) return;
    const bool found = strategies_find(s, n, ask);
    if (found && (ask[axis].kind == ASK_TOO_MUCH || ask[axis].kind == ASK_FACTOR))
        factor = ask[axis].factor;
    else if (!found && s->unset == UNSET_BATCH && !(factor = factor_named(n, &f, "batch")))
        factor = factor_named(n, &f, "rows");
    if (factor && (found || f.extent[factor] % seats))
        text_add(out, "factor %s has %lld place%s for %lld seats (%s)", factor_name(n, &f, factor),
                 (long long)f.extent[factor], f.extent[factor] == 1 ? "" : "s", seats,
                 found ? ask[axis].from : "--unset batch");
    factors_free(&f);
}

/* "NAME and 2 more: WHY" about what add_too_few says; axis below 0: about warnings. False: there
 * is nothing to say. */
static bool note_nodes(const struct compilation *c, const struct dist *d, int axis,
                       const char *prefix, struct text *out) {
    struct text why = {0};
    int found = 0;
    for (size_t i = 0; i < d->g->n_nodes; i++) {
        const tri_node *n = d->g->node[i];
        const size_t before = why.size;
        if (n->n_in && axis < 0) explain_warning(d, c->target, n, &why);
        else if (n->n_in) add_too_few(d, &c->strategies, n, axis, &why);
        if (why.size == before || found++) why.size = before;
        else if (axis < 0) text_add(out, "%s%s", prefix, n->name);
        else text_add(out, "%swhole along %s: %s", prefix, d->mesh.axis[axis].name, n->name);
    }
    if (found > 1) text_add(out, " and %d more", found - 1);
    if (found) text_add(out, ": %.*s\n", (int)why.size, why.data);
    out->failed |= why.failed;
    text_free(&why);
    return found;
}

void explain_notes(const struct compilation *c, bool warnings, const char *prefix,
                   struct text *out) {
    const struct dist *d = &c->dist[0];
    bool whole = false;
    if (d->g) note_resplit(d, &c->strategies, prefix, out);
    if (d->g && warnings) note_nodes(c, d, -1, prefix, out);
    for (int i = 0; i < c->n_sizes && !whole; i++) /* smaller lanes may have too few samples */
        for (int a = 0; a < d->mesh.n; a++) whole |= note_nodes(c, &c->dist[i], a, prefix, out);
}

/* ---- seats ---- */

/* What the seat reads of the tensor. `from`: the first node that could read it. */
static size_t bytes_read(const struct dist *d, const tri_tensor *t, size_t from,
                         const int16_t *at) {
    const struct layout *seen[4];
    size_t n = 0, bytes = 0, all = base_spec_bytes(&t->spec);
    for (size_t i = from; i < d->g->n_nodes && bytes < all; i++) {
        const tri_node *reader = d->g->node[i];
        for (int k = 0; k < reader->n_in; k++) {
            const struct layout *need = dist_need(d, reader, k);
            bool known = reader->in[k] != t || !node_reads(reader, k);
            for (size_t s = 0; s < n && !known; s++) known = layout_equal(seen[s], need);
            if (known) continue;
            bytes += slice_bytes(d, t, need, at);
            if (n < COUNT(seen)) seen[n++] = need;
        }
    }
    return bytes < all ? bytes : all;
}

struct seat_bytes explain_seat(const struct dist *d, const int16_t *at) {
    struct seat_bytes b = {0};
    for (size_t i = 0; i < d->g->n_nodes; i++) {
        const tri_node *n = d->g->node[i];
        if (!n->n_in) {
            *(node_is_param(n)        ? &b.params
              : node_is_stored(n)     ? &b.states
              : node_is(n, "given")   ? &b.given
                                      : &b.data) += bytes_read(d, n->out, i + 1, at);
            continue;
        }
        for (int k = 0; k < n->n_out; k++)
            b.computed += slice_bytes(d, &n->out[k], &d->has[n->out[k].id], at);
    }
    for (size_t i = 0; i < d->g->n_outputs; i++) {
        const tri_tensor *t = d->g->output[i].tensor;
        b.results += slice_bytes(d, t, &d->has[t->id], at);
    }
    return b;
}
