/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/strategy.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "plan/option_rows.h"
#include "plan/ready.h"
#include "plan/strategy_inside.h"

/* A node of the model to which some strategy applies. */
struct strategy_node {
    const char *name;
    const struct op_entry *entry; /* a pass may give the name to another operator */
    struct ask ask[MESH_MOST_AXES];
};

struct strategy_layout {
    const char *name; /* of a node */
    int output;
    int8_t dim[MESH_MOST_AXES];
    const char *from;
    bool maybe;
    const struct strategy_line *line; /* while strategies are made */
};

struct making {
    struct strategies *s;
    const tri_graph *g;
    const tri_options *o;
    struct strategy_lines lines;
    struct tuples *tuples;
    size_t n_tuples, tuples_capacity;
    bool used[MESH_MOST_AXES];
    bool numbered; /* the mesh is a number of seats */
    bool tries;    /* whether a ready strategy fits */
    bool *backward; /* by node: it depends on gradients, as an update does */
};

/* ---- options and the mesh ---- */

static tri_status two_meshes(const char *one, const struct mesh *a, const char *other,
                             const struct mesh *b) {
    struct text x = {0}, y = {0};
    mesh_print(a, &x);
    mesh_print(b, &y);
    base_fail(TRI_USAGE, "the mesh is %s by %s, but %s by %s: they must agree",
              x.data ? x.data : "none", one, y.data ? y.data : "none", other);
    text_free(&x);
    text_free(&y);
    return TRI_USAGE;
}

/* From the network, --mesh or a file of strategies; what is said twice must agree. */
static tri_status settle_mesh(struct making *k) {
    struct mesh option = {0}, *m = &k->s->mesh;
    const char *by = "tri_mesh";
    *m = k->g->mesh;
    if (k->o->mesh && mesh_parse(k->o->mesh, &option))
        return base_fail(TRI_USAGE, "--mesh (tri_options.mesh): %s", tri_message());
    if (option.n && m->n && !mesh_equal(&option, m))
        return two_meshes("--mesh (tri_options.mesh)", &option, "tri_mesh in the network", m);
    if (option.n) *m = option, by = "--mesh (tri_options.mesh)";
    if (k->lines.mesh.n && m->n && !mesh_equal(&k->lines.mesh, m))
        return two_meshes(by, m, k->lines.mesh_from, &k->lines.mesh);
    if (k->lines.mesh.n) *m = k->lines.mesh, by = k->lines.mesh_from;
    const char *plan = k->lines.plan_mesh_from;
    if (plan && !m->n && k->lines.plan_mesh.n) *m = k->lines.plan_mesh;
    if (plan && !mesh_equal(&k->lines.plan_mesh, m))
        return two_meshes(m->n ? by : "code and options", m, plan, &k->lines.plan_mesh);
    return TRI_OK;
}

/* Lanes of samples of all lengths are split alike. */
static tri_status check_shorter(const struct making *k) {
    for (int i = 0; i < k->g->n_shorter; i++)
        if (!mesh_equal(&k->g->mesh, &k->g->shorter[i].g->mesh))
            return two_meshes("tri_mesh in the network", &k->g->mesh,
                              "tri_mesh in a network for shorter samples (tri_shorter)",
                              &k->g->shorter[i].g->mesh);
    return TRI_OK;
}

static tri_status check_ways(const struct making *k) {
    const char *way = k->o->parallel;
    bool mesh = k->s->mesh.n, semi = option_choice("--parallel", way) == PARALLEL_SEMI;
    if (way && option_choice("--parallel", way) == PARALLEL_AUTO)
        return base_fail(TRI_USAGE, "--parallel auto (tri_options.parallel) is for a run that "
                         "trains");
    if (way && !semi && mesh)
        return base_fail(TRI_USAGE, "--parallel data (tri_options.parallel), but there is a mesh, "
                         "which needs --parallel semi, the default with a mesh");
    if (mesh) return TRI_OK;
    const char *what = semi ? "--parallel semi (tri_options.parallel)"
                       : k->o->strategy ? "--strategy (tri_options.strategy)"
                       : k->o->unset ? "--unset (tri_options.unset)" : NULL;
    return what ? base_fail(TRI_USAGE, "%s needs a mesh: --mesh model=2 (tri_options.mesh, "
                            "tri_mesh)", what)
                : TRI_OK;
}

/* ---- which nodes a line is about ---- */

/* Gradients follow their forward nodes; sources only have layouts. */
static bool can_ask(const struct making *k, const tri_node *n) {
    return n->n_in && !k->backward[n->id];
}

static bool matches(const struct making *k, const struct strategy_line *l, const tri_node *n) {
    if (l->exact) return !strcmp(l->pattern, n->name);
    if (l->kind == SETTING_STRATEGY) return can_ask(k, n) && node_in_scope(n, l->pattern);
    return !fnmatch(l->pattern, tri_name_of(n->out), 0) || !fnmatch(l->pattern, n->name, 0);
}

void strategy_offer(struct nearest *near, const char *name, bool pieces, bool scopes) {
    const char *begin = name;
    for (const char *p = name; (pieces || scopes) && (p = strchr(p, '.')); p++) {
        nearest_offer_part(near, begin, (size_t)(p - begin));
        if (pieces) begin = p + 1;
    }
    nearest_offer(near, begin);
}

/* What a tensor's name has after the part that the pattern matches, ".weight"; null: it matches
 * none. */
static const char *rest_of(const char *name, const char *pattern) {
    char begin[512];
    for (const char *p = name; (p = strchr(p, '.')); p++) {
        base_format(begin, sizeof begin, "%.*s", (int)(p - name), name);
        if (!fnmatch(pattern, begin, 0)) return p;
    }
    return NULL;
}

tri_status strategy_unmatched(const struct strategy_line *l, const tri_graph *g,
                              const bool *backward) {
    bool layout = l->kind == SETTING_LAYOUT, wild = strpbrk(l->pattern, "*?[");
    const char *last = strrchr(l->pattern, '.'); /* of a pattern its last piece may be mistyped */
    const char *wanted = !wild  ? l->pattern
                         : last ? last + 1
                                : l->pattern + strspn(l->pattern, "*");
    char before[512];
    base_format(before, sizeof before, "\"%.*s", (int)(wanted - l->pattern), l->pattern);
    struct nearest near = {.wanted = wanted, .before = before, .after = "\""};
    for (size_t i = 0; i < g->n_nodes && !strpbrk(wanted, "*?["); i++) {
        const tri_node *n = g->node[i];
        const char *rest = layout ? rest_of(tri_name_of(n->out), l->pattern) : NULL;
        if (rest)
            return strategy_fail(l, "no tensor matches \"%s\"; do you mean \"%s%s\"?", l->pattern,
                                 l->pattern, rest);
        if (layout || (n->n_in && !(backward && backward[i])))
            strategy_offer(&near, layout ? tri_name_of(n->out) : n->name, wild, !layout);
    }
    return strategy_fail(l, "no %s matches \"%s\"%s", layout ? "tensor" : "scope or operator",
                         l->pattern, strcmp(near.name, wanted) ? nearest_meant(&near) : "");
}

/* ---- strategies by pattern ---- */

/* What one node is asked, while the lines are applied. */
struct asked {
    const tri_node *n;
    struct factors f;
    struct ask ask[MESH_MOST_AXES];
};

static tri_status two_factors(const struct making *k, const struct strategy_line *l,
                              const struct asked *a, int axis, uint8_t factor) {
    char one[64];
    base_format(one, sizeof one, "%s", factor_name(a->n, &a->f, a->ask[axis].factor));
    return strategy_fail_at(l, &k->s->mesh, a->n, "both its factors %s and %s lie on the axis %s; "
                            "an axis splits one of them", one, factor_name(a->n, &a->f, factor),
                            k->s->mesh.axis[axis].name);
}

static tri_status cannot_split(const struct making *k, const struct strategy_line *l,
                               const struct asked *a, uint8_t factor) {
    struct text legal = {0};
    strategy_legal(a->n, &a->f, 1, &legal);
    tri_status status =
        strategy_fail_at(l, &k->s->mesh, a->n, "its factor %s cannot be split; these can: %s",
                         factor_name(a->n, &a->f, factor), legal.data ? legal.data : "");
    text_free(&legal);
    return status;
}

/* The factor is withdrawn from its axes, and what nothing else splits is whole. */
static void ask_whole(struct asked *a, const struct mesh *m, uint8_t factor, const char *from) {
    for (int i = 0; i < m->n; i++)
        if (a->ask[i].kind != ASK_FACTOR || a->ask[i].factor == factor)
            a->ask[i] = (struct ask){.kind = ASK_WHOLE, .from = from};
}

static tri_status apply_part(struct making *k, struct strategy_line *l, struct strategy_part *part,
                             struct asked *a) {
    uint8_t factor = factor_named(a->n, &a->f, part->name);
    const struct mesh *m = &k->s->mesh;
    if (!factor) return TRI_OK;
    part->used = true;
    if (part->axis < 0) return ask_whole(a, m, factor, l->from), TRI_OK;
    struct ask *ask = &a->ask[part->axis];
    if (!strategy_can_split(a->n, &a->f, factor))
        return l->maybe ? TRI_OK : cannot_split(k, l, a, factor);
    if (ask->kind == ASK_FACTOR && ask->from == l->from && ask->factor != factor)
        return two_factors(k, l, a, part->axis, factor);
    for (int i = 0; i < m->n; i++) /* this line says where the factor lies */
        if (a->ask[i].kind == ASK_FACTOR && a->ask[i].factor == factor &&
            a->ask[i].from != l->from)
            a->ask[i] = (struct ask){.kind = ASK_NOTHING};
    *ask = (struct ask){ASK_FACTOR, factor, -1, part->outer, l->from, l->maybe};
    return TRI_OK;
}

static tri_status apply_line(struct making *k, struct strategy_line *l, struct asked *a) {
    tri_status status = TRI_OK;
    if (l->kind != SETTING_STRATEGY || !matches(k, l, a->n)) return TRI_OK;
    l->used = true;
    for (int i = 0; i < l->n_parts && !status; i++) status = apply_part(k, l, &l->part[i], a);
    return status;
}

/* ---- tuples ---- */

static tri_status read_tuples(struct making *k, struct strategy_line *l) {
    const tri_node *n = NULL;
    struct factors f;
    for (size_t i = 0; i < k->g->n_nodes; i++)
        if (matches(k, l, k->g->node[i])) n = k->g->node[i];
    if (!n) return strategy_fail(l, "there is no operator \"%s\"", l->pattern);
    if (!n->n_in)
        return strategy_fail(l, "%s is made by no operator; tri_layout places it",
                             tri_name_of(n->out));
    l->used = true;
    for (size_t i = 0; i < k->n_tuples; i++)
        if (k->tuples[i].node == n)
            return strcmp(k->tuples[i].line->text, l->text)
                       ? strategy_fail_at(l, &k->s->mesh, n, "it has other tuples too: %s",
                                          k->tuples[i].line->from)
                       : TRI_OK;
    if (!factors_of(n, &f)) return strategy_fail(l, "%s", tri_message());
    tri_status status = ARRAY_GROW(k->tuples, k->n_tuples, k->tuples_capacity)
                            ? tuples_read(l, &k->s->mesh, n, &f, &k->tuples[k->n_tuples])
                            : base_no_memory("tuples");
    int64_t parts = 1;
    for (int i = 0; i < k->tuples[k->n_tuples].n && !status; i++)
        parts *= k->tuples[k->n_tuples].part[i].count;
    if (!status && parts > k->s->tuple_parts) k->s->tuple_parts = parts;
    k->n_tuples += !status;
    factors_free(&f);
    return status;
}

static tri_status put_layout(struct making *k, const tri_node *n, int output, const int *dim,
                             const struct strategy_line *l) {
    struct strategies *s = k->s;
    if (!ARRAY_GROW(s->layout, s->n_layouts, s->layout_capacity)) return base_no_memory("layouts");
    struct strategy_layout *new = &s->layout[s->n_layouts];
    *new = (struct strategy_layout){arena_copy(&s->arena, n->name), output, {0}, l->from, l->maybe,
                                    l};
    if (!new->name) return base_no_memory("layouts");
    for (int i = 0; i < s->mesh.n; i++) {
        new->dim[i] = (int8_t)dim[i];
        k->used[i] |= dim[i] >= 0;
    }
    s->n_layouts++;
    return TRI_OK;
}

/* Tuples say everything about their node: along other axes it is whole. */
static tri_status apply_tuples(struct making *k, struct asked *a) {
    const struct mesh *m = &k->s->mesh;
    tri_status status = TRI_OK;
    for (size_t i = 0; i < k->n_tuples && !status; i++) {
        const struct tuples *t = &k->tuples[i];
        if (t->node != a->n) continue;
        for (int axis = 0; axis < m->n; axis++)
            a->ask[axis] = (struct ask){.kind = ASK_WHOLE, .from = t->line->from};
        for (int p = 0; p < t->n; p++) {
            bool axes[MESH_MOST_AXES];
            tuples_axes(t, p, m, axes);
            for (int axis = 0; axis < m->n; axis++)
                if (axes[axis])
                    a->ask[axis] =
                        (struct ask){ASK_FACTOR, t->part[p].factor, -1, 1, t->line->from, false};
        }
        for (int o = 0; o < t->n_outputs && !status; o++) {
            int dim[MESH_MOST_AXES];
            status = tuples_output(t, o, &a->f, m, dim);
            if (!status) status = put_layout(k, a->n, o, dim, t->line);
        }
    }
    return status;
}

/* ---- places for all seats ---- */

static tri_status too_small(const struct mesh *m, const tri_node *n, const struct factors *f,
                            const struct ask *ask, int64_t seats, bool lane) {
    struct text why = {0};
    const struct strategy_line l = {.from = ask->from};
    int64_t extent = f->extent[ask->factor];
    if (ask->outer > 1 && extent % ask->outer) {
        text_add(&why, "%lld blocks do not divide", (long long)ask->outer);
    } else {
        if (ask->outer > 1) text_add(&why, "in %lld blocks ", (long long)ask->outer);
        text_add(&why, "cannot be split over %lld seats; factors with enough places: ",
                 (long long)seats);
        strategy_legal(n, f, seats, &why);
    }
    tri_status status = strategy_fail_at(
        &l, m, n, "its factor %s has %lld place(s)%s, which %s", factor_name(n, f, ask->factor),
        (long long)extent, lane ? " in a lane" : "",
        why.data ? why.data : "");
    text_free(&why);
    return status;
}

/* Each factor needs a place for every seat of its axes, in every block. `lane`: the node is of the
 * graph of a lane, which has fewer samples. */
static tri_status check_extents(const struct mesh *m, const tri_node *n, const struct factors *f,
                                struct ask *ask, bool lane) {
    for (int i = 0; i < m->n; i++) {
        int64_t extent = f->extent[ask[i].factor], seats = 1;
        if (ask[i].kind != ASK_FACTOR || !extent) continue;
        for (int k = 0; k < m->n; k++)
            if (ask[k].kind == ASK_FACTOR && ask[k].factor == ask[i].factor)
                seats *= m->axis[k].size;
        if (extent % ask[i].outer == 0 && extent / ask[i].outer >= seats) continue;
        if (!ask[i].maybe) return too_small(m, n, f, &ask[i], seats, lane);
        ask[i].kind = ASK_TOO_MUCH;
    }
    return TRI_OK;
}

/* ---- making ---- */

static tri_status keep(struct making *k, const struct asked *a) {
    struct strategies *s = k->s;
    bool any = false;
    for (int i = 0; i < s->mesh.n; i++) {
        any |= a->ask[i].kind != ASK_NOTHING;
        k->used[i] |= a->ask[i].kind == ASK_FACTOR;
    }
    if (!any) return TRI_OK;
    if (!ARRAY_GROW(s->node, s->n_nodes, s->node_capacity)) return base_no_memory("strategies");
    struct strategy_node *n = &s->node[s->n_nodes];
    n->name = arena_copy(&s->arena, a->n->name);
    n->entry = a->n->entry;
    memcpy(n->ask, a->ask, sizeof n->ask);
    if (!n->name) return base_no_memory("strategies");
    s->n_nodes++;
    return TRI_OK;
}

static tri_status no_rule(struct making *k, const tri_node *n) {
    if (base_last() == TRI_FAILED) return TRI_FAILED;
    for (size_t i = 0; i < k->lines.n; i++) /* an operator without factors has none of theirs */
        if (k->lines.line[i].kind == SETTING_STRATEGY && matches(k, &k->lines.line[i], n))
            k->lines.line[i].used = true;
    return TRI_OK;
}

static tri_status ask_node(struct making *k, const tri_node *n) {
    struct asked a = {.n = n};
    tri_status status = TRI_OK;
    if (!can_ask(k, n)) return TRI_OK;
    if (!factors_of(n, &a.f)) return no_rule(k, n);
    for (size_t i = 0; i < k->lines.n && !status; i++)
        status = apply_line(k, &k->lines.line[i], &a);
    if (!status) status = apply_tuples(k, &a);
    if (!status) status = check_extents(&k->s->mesh, n, &a.f, a.ask, false);
    if (!status) status = keep(k, &a);
    factors_free(&a.f);
    return status;
}

/* Whether a tensor of this shape has the dimensions, and places for all seats. */
static bool layout_suits(const struct mesh *m, const struct strategy_line *l, const tri_shape *s) {
    bool suits = l->n_parts == s->rank;
    for (int d = 0; d < l->n_parts && suits; d++)
        suits = l->part[d].axis < 0 || s->dim[d] >= m->axis[l->part[d].axis].size;
    return suits;
}

static tri_status place_tensor(struct making *k, struct strategy_line *l, const tri_node *n) {
    const struct mesh *m = &k->s->mesh;
    int output = l->output < 0 ? 0 : l->output, dim[MESH_MOST_AXES];
    if (output >= n->n_out) return strategy_fail(l, "its operator has no result %d", output);
    const tri_spec *spec = &n->out[output].spec;
    char text[SPEC_TEXT];
    if (l->maybe && !layout_suits(m, l, &spec->shape)) return TRI_OK;
    if (l->n_parts != spec->shape.rank)
        return strategy_fail_at(l, m, n, "its result %s needs an axis or - for each of its %d "
                                "dimensions, not %d of them", base_spec_text(spec, text),
                                spec->shape.rank, l->n_parts);
    for (int i = 0; i < MESH_MOST_AXES; i++) dim[i] = -1;
    for (int d = 0; d < l->n_parts; d++) {
        int axis = l->part[d].axis;
        if (axis < 0) continue;
        dim[axis] = d;
        if (spec->shape.dim[d] < m->axis[axis].size)
            return strategy_fail_at(l, m, n, "dimension %d of its result %s is shorter than the "
                                    "axis %s, which has %lld seats", d, base_spec_text(spec, text),
                                    m->axis[axis].name, (long long)m->axis[axis].size);
    }
    for (size_t i = 0; i < k->s->n_layouts; i++) {
        const struct strategy_layout *before = &k->s->layout[i];
        bool same = !strcmp(before->name, n->name) && before->output == output;
        for (int a = 0; same && l->exact && before->line->exact && a < m->n; a++)
            if (before->dim[a] != dim[a])
                return strategy_fail_at(l, m, n, "it has another layout too: %s",
                                        before->line->from);
    }
    l->used = true;
    return put_layout(k, n, output, dim, l);
}

static tri_status place_tensors(struct making *k) {
    tri_status status = TRI_OK;
    for (size_t i = 0; i < k->lines.n && !status; i++) {
        struct strategy_line *l = &k->lines.line[i];
        for (size_t j = 0; j < k->g->n_nodes && l->kind == SETTING_LAYOUT && !status; j++)
            if (matches(k, l, k->g->node[j])) status = place_tensor(k, l, k->g->node[j]);
    }
    return status;
}

/* ---- what nothing uses ---- */

static tri_status unused_part(const struct making *k, const struct strategy_line *l,
                              const struct strategy_part *part) {
    struct nearest near = {.wanted = part->name};
    for (size_t i = 0; i < k->g->n_nodes; i++) {
        const tri_node *n = k->g->node[i];
        struct factors f;
        uint8_t factor[MAX_FACTORS];
        if (!matches(k, l, n) || !factors_of(n, &f)) continue;
        for (int j = strategy_factors(&f, factor); j-- > 0;)
            nearest_offer(&near, factor_name(n, &f, factor[j]));
        factors_free(&f);
    }
    return strategy_fail(l, "no operator that \"%s\" matches has a factor %s; they have: %s%s",
                         l->pattern, part->name, *near.names ? near.names : "none",
                         nearest_meant(&near));
}

static tri_status check_used(const struct making *k) {
    const struct mesh *m = &k->s->mesh;
    bool maybe = false;
    for (size_t i = 0; i < k->lines.n; i++) {
        const struct strategy_line *l = &k->lines.line[i];
        maybe |= l->maybe;
        if (!l->used && !l->maybe && l->kind != SETTING_USE)
            return strategy_unmatched(l, k->g, k->backward);
        for (int p = 0; l->kind == SETTING_STRATEGY && p < l->n_parts; p++)
            if (!l->part[p].used && !(l->maybe && factor_is_name(l->part[p].name)))
                return unused_part(k, l, &l->part[p]);
    }
    for (int i = 0; i < m->n; i++) {
        if (k->used[i] || k->n_tuples || k->s->unset == UNSET_BATCH) continue;
        struct text mesh = {0};
        const int64_t seats = m->axis[i].size;
        const char *fits = m->n > 1 || k->tries ? NULL : strategies_fitting(k->g, k->o, seats);
        char use[128] = "";
        if (fits)
            base_format(use, sizeof use, "; --mesh model=%lld --strategy %s fits it",
                        (long long)seats, fits);
        mesh_print(m, &mesh);
        base_fail(TRI_USAGE, "nothing uses the axis %s of the mesh %s: no strategy or layout %s it "
                  "for an operator of this network (tri_strategy, tri_layout, --strategy; or "
                  "--unset batch)%s%s", m->axis[i].name, mesh.data ? mesh.data : "",
                  maybe ? "that fits, also after `maybe`, splits" : "names", use,
                  k->numbered ? "; a mesh that is a number is for the tuples of tri_shard" : "");
        text_free(&mesh);
        return TRI_USAGE;
    }
    return TRI_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct strategy_node *)a)->name, ((const struct strategy_node *)b)->name);
}

static tri_status make(struct making *k) {
    struct strategy_lines *all = &k->lines;
    tri_status status = options_check(k->o);
    if (!status) status = strategy_lines_read(k->g, k->o, all);
    k->s->unset = (enum unset)option_choice("--unset", k->o->unset);
    if (!status) status = settle_mesh(k);
    if (!status) status = check_ways(k);
    if (!status) status = check_shorter(k);
    for (size_t i = 0; i < all->n && !status; i++)
        if (all->line[i].kind == SETTING_SHARD) status = read_tuples(k, &all->line[i]);
    k->numbered = k->s->mesh.n && !*k->s->mesh.axis[0].name;
    if (!status && k->s->mesh.n) status = tuples_refine(k->tuples, k->n_tuples, &k->s->mesh);
    for (size_t i = 0; i < all->n && !status; i++)
        if (all->line[i].kind != SETTING_SHARD)
            status = strategy_line_parse(all, &all->line[i], &k->s->mesh);
    if (status || !k->s->mesh.n) return status;
    for (size_t i = 0; i < k->g->n_nodes && !status; i++) status = ask_node(k, k->g->node[i]);
    if (!status) status = place_tensors(k);
    if (!status) status = uses_keep(all, k->s, k->used);
    if (!status) status = check_used(k);
    if (k->s->n_nodes) qsort(k->s->node, k->s->n_nodes, sizeof *k->s->node, by_name);
    return status;
}

static tri_status make_all(const tri_graph *model, const tri_options *o, bool tries,
                           struct strategies *out) {
    *out = (struct strategies){.unset = UNSET_FOLLOW, .forward = o->forward};
    struct making k = {.s = out, .g = model, .o = o, .lines.arena = &out->arena, .tries = tries};
    k.backward = calloc(model->n_nodes + 1, sizeof *k.backward);
    if (k.backward) graph_mark_backward(model, k.backward);
    tri_status status = k.backward ? make(&k) : base_no_memory("strategies");
    for (size_t i = 0; i < out->n_layouts; i++) out->layout[i].line = NULL;
    free(k.lines.line);
    free(k.tuples);
    free(k.backward);
    if (status) strategies_free(out);
    return status;
}

tri_status strategies_make(const tri_graph *model, const tri_options *o, struct strategies *out) {
    return make_all(model, o, false, out);
}

const char *strategies_fitting(const tri_graph *model, const tri_options *o, int64_t seats) {
    char mesh[32];
    tri_options with = *o;
    struct strategies s;
    base_format(mesh, sizeof mesh, "model=%lld", (long long)seats);
    with.mesh = model->mesh.n ? NULL : mesh;
    with.plan = with.parallel = NULL;
    for (const struct strategy_ready *r = strategies_ready; r->name; r++) {
        with.strategy = r->name;
        if (make_all(model, &with, true, &s)) continue;
        strategies_free(&s);
        return r->name;
    }
    return NULL;
}

void strategies_free(struct strategies *s) {
    free(s->node);
    free(s->layout);
    free(s->use);
    arena_free(&s->arena);
    *s = (struct strategies){.unset = UNSET_FOLLOW};
}

tri_status strategies_check(const tri_graph *model, const tri_options *o) {
    struct strategies s;
    if (o->plan && !plan_read(o->plan, true)) return base_last();
    tri_status status = strategies_make(model, o, &s);
    if (!status) strategies_free(&s);
    return status;
}

/* ---- queries ---- */

bool strategies_find(const struct strategies *s, const tri_node *n,
                     struct ask ask[MESH_MOST_AXES]) {
    const struct strategy_node wanted = {.name = n->name};
    const struct strategy_node *found = NULL;
    if (s->n_nodes) found = bsearch(&wanted, s->node, s->n_nodes, sizeof *s->node, by_name);
    memset(ask, 0, sizeof *ask * MESH_MOST_AXES);
    if (found && found->entry == n->entry) memcpy(ask, found->ask, sizeof found->ask);
    return found && found->entry == n->entry;
}

tri_status strategies_ask(const struct strategies *s, const tri_node *n, const struct factors *f,
                          struct ask ask[MESH_MOST_AXES]) {
    return strategies_find(s, n, ask) ? check_extents(&s->mesh, n, f, ask, true) : TRI_OK;
}

static const struct strategy_layout *layout_of(const struct strategies *s, const tri_tensor *t) {
    for (size_t i = s->n_layouts; i-- > 0;)
        if (s->layout[i].output == t->index && !strcmp(s->layout[i].name, t->node->name))
            return &s->layout[i];
    return NULL;
}

bool strategies_layout(const struct strategies *s, const tri_tensor *t, int dim[MESH_MOST_AXES]) {
    const struct strategy_layout *l = layout_of(s, t);
    for (int a = 0; l && a < MESH_MOST_AXES; a++) dim[a] = a < s->mesh.n ? l->dim[a] : -1;
    return l;
}

void strategies_ask_layout(const struct strategies *s, const tri_tensor *t,
                           struct ask ask[MESH_MOST_AXES]) {
    const struct strategy_layout *l = layout_of(s, t);
    for (int a = 0; l && a < s->mesh.n; a++)
        if ((ask[a].kind == ASK_NOTHING || ask[a].kind == ASK_TOO_MUCH) && l->dim[a] >= 0)
            ask[a] = (struct ask){
                .kind = ASK_LAYOUT, .dim = l->dim[a], .from = l->from, .maybe = l->maybe};
}
