/* SPDX-License-Identifier: Apache-2.0
 * From a run to its plan, and from a plan to the options of a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/option_rows.h"
#include "plan/plan_file.h"
#include "plan/recompute.h"
#include "plan/strategy_inside.h"
#include "plan/wire_ask.h"

/* The field of an option that a plan sets; the one or the other. */
struct field {
    int64_t *count;
    const char **text;
};

static struct field field_of(const tri_options *o, const struct option_row *row) {
    char *at = (char *)o + row->offset;
    return row->set == option_text ? (struct field){.text = (const char **)at}
                                   : (struct field){.count = (int64_t *)at};
}

/* ---- from a run ---- */

static tri_status add(struct plan_file *p, enum plan_key key, const char *value, bool maybe) {
    char *copy = value ? arena_copy(&p->arena, value) : NULL;
    if (!copy || !ARRAY_GROW(p->line, p->n, p->capacity)) return base_no_memory("a plan");
    p->line[p->n++] = (struct plan_line){.key = key, .value = copy, .maybe = maybe};
    return TRI_OK;
}

tri_status plan_add_number(struct plan_file *p, enum plan_key key, int64_t n) {
    return add(p, key, arena_text(&p->arena, "%lld", (long long)n), false);
}

/* A text without blanks. */
static char *tight(struct arena *a, const char *text) {
    char *copy = arena_copy(a, text), *to = copy;
    for (const char *p = copy; p && *p; p++)
        if (*p != ' ' && *p != '\t') *to++ = *p;
    if (to) *to = 0;
    return copy;
}

/* Lines of strategies, in a plan and where they came from. */
static const struct {
    enum plan_key key;
    enum setting_kind kind;
    bool exact; /* the pattern is a node's name */
} kinds[] = {{PLAN_STRATEGY, SETTING_STRATEGY, false},
             {PLAN_LAYOUT, SETTING_LAYOUT, false},
             {PLAN_LAYOUT_OF, SETTING_LAYOUT, true},
             {PLAN_SHARD, SETTING_SHARD, true},
             {PLAN_USE, SETTING_USE, false}};

static tri_status line_of(const struct strategy_line *l, struct arena *a, struct plan_line *out) {
    const char *text = tight(a, l->text);
    *out = (struct plan_line){.maybe = l->maybe};
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i].kind == l->kind && kinds[i].exact == l->exact) out->key = kinds[i].key;
    if (text && out->key == PLAN_LAYOUT_OF)
        out->value = arena_text(a, "%s %d %s", l->pattern, l->output, text);
    else if (text)
        out->value = arena_text(a, "%s %s", l->pattern, text);
    return out->value ? TRI_OK : base_no_memory("a plan");
}

static tri_status add_strategies(const tri_graph *g, const tri_options *o, struct plan_file *out) {
    struct arena kept = {0};
    struct strategy_lines lines = {.arena = &kept};
    struct text mesh = {0};
    struct mesh option = {0};
    tri_status status = strategy_lines_read(g, o, &lines);
    if (!status && o->mesh) status = mesh_parse(o->mesh, &option);
    const struct mesh *m = g->mesh.n ? &g->mesh : option.n ? &option : &lines.mesh;
    mesh_print(m, &mesh);
    if (!status) status = add(out, PLAN_MESH, m->n ? mesh.data : "none", false);
    const char *unset = o->unset ? o->unset : option_row("--unset")->usual;
    if (!status && m->n) status = add(out, PLAN_UNSET, unset, false);
    for (size_t i = 0; i < lines.n && m->n && !status; i++) {
        struct plan_line l;
        status = line_of(&lines.line[i], &kept, &l);
        if (!status) status = add(out, l.key, l.value, l.maybe);
    }
    text_free(&mesh);
    free(lines.line);
    arena_free(&kept);
    return status;
}

/* Other lines of the plan say how the network is divided. */
static tri_status add_graph(const tri_graph *g, struct plan_file *out) {
    char *text = graph_print_undivided(g), digits[PLAN_DIGITS];
    if (!text) return base_no_memory("a plan");
    snprintf(digits, sizeof digits, "%016llx",
             (unsigned long long)base_hash(text, strlen(text), 0));
    free(text);
    return add(out, PLAN_GRAPH, digits, false);
}

/* What is computed again, by the network's wish or the option. */
static tri_status add_recompute(const tri_graph *g, const tri_options *o, struct plan_file *out) {
    struct text t = {0};
    bool none = o->recompute && !strcmp(o->recompute, "none");
    for (size_t i = 0; i < g->n_settings && !none; i++)
        if (g->setting[i].kind == SETTING_RECOMPUTE)
            text_add(&t, "%s%s", t.size ? "," : "", g->setting[i].pattern);
    if (o->recompute && !(t.data && !strcmp(t.data, o->recompute)))
        text_add(&t, "%s%s", t.size ? "," : "", o->recompute);
    tri_status status = t.failed ? base_no_memory("a plan") : TRI_OK;
    if (!status && t.size) status = add(out, PLAN_RECOMPUTE, t.data, false);
    text_free(&t);
    return status;
}

tri_status plan_make(const tri_graph *g, const tri_options *o, struct plan_file *out) {
    *out = (struct plan_file){.name = "plan"};
    tri_status status = g->spec ? add(out, PLAN_MODEL, g->spec, false) : add_graph(g, out);
    if (!status) status = add_strategies(g, o, out);
    for (enum plan_key k = PLAN_MODEL; k < PLAN_KEYS && !status; k++) {
        const struct option_row *row = option_of_plan(k);
        const char **text = row ? field_of(o, row).text : NULL, *value = text ? *text : NULL;
        if (k == PLAN_UNSET || k == PLAN_RECOMPUTE || !text) continue;
        if (k == PLAN_WIRE && !wire_ask_rounds(o)) continue; /* it decides no bit */
        if (!value && k < PLAN_WORKERS && k != PLAN_WIRE) value = row->usual;
        if (value) status = add(out, k, value, false);
    }
    if (!status) status = add_recompute(g, o, out);
    if (status) plan_free(out);
    return status;
}

/* ---- to the options ---- */

static tri_status contradicts(const struct plan_file *p, const struct plan_line *l,
                              const char *other) {
    struct text t = {0};
    plan_print_line(l, &t);
    base_fail(TRI_USAGE, "%s:%d: %s, but %s: a plan decides the bits of a run; change the one or "
              "the other", p->name, l->number, t.data ? t.data : "", other);
    text_free(&t);
    return TRI_USAGE;
}

static tri_status contradicts_option(const struct plan_file *p, const struct plan_line *l,
                                     const struct option_row *row, struct field f) {
    char other[160];
    if (f.count) base_format(other, sizeof other, "%s %lld", row->flag, (long long)*f.count);
    else base_format(other, sizeof other, "%s %s", row->flag, *f.text);
    return contradicts(p, l, other);
}

/* What has no effect without stages. */
static bool is_of_stages(enum plan_key key) {
    return key == PLAN_CUTS || key == PLAN_PIPELINE || key == PLAN_CHUNKS || key == PLAN_STEAL;
}

tri_status plan_take(const struct plan_file *p, tri_options *o) {
    const struct plan_line *mesh = plan_find(p, PLAN_MESH);
    /* The option overrides the plan. */
    const bool unstaged = o->stages == 1;
    const bool recut = o->stages && o->stages != plan_number(p, PLAN_STAGES);
    for (enum plan_key k = PLAN_MODEL; k < PLAN_KEYS; k++) {
        const struct plan_line *l = plan_find(p, k);
        const struct option_row *row = l ? option_of_plan(k) : NULL;
        if (!row || (unstaged && is_of_stages(k)) || (recut && k == PLAN_CUTS)) continue;
        struct field f = field_of(o, row);
        int64_t n = plan_number(p, k);
        bool given = f.count ? *f.count != 0 : *f.text != NULL;
        bool same = f.count ? *f.count == n : given && !strcmp(*f.text, l->value);
        if (given && !same && k < PLAN_WORKERS) return contradicts_option(p, l, row, f);
        if (given) continue;
        if (f.count) *f.count = n;
        else *f.text = l->value;
    }
    if (mesh && strcmp(mesh->value, "none") && !o->mesh) o->mesh = mesh->value;
    if (wire_ask_rounds(o) && !plan_find(p, PLAN_WIRE))
        return base_fail(TRI_USAGE, "%s has no line \"wire\", but --wire %s: a plan decides the "
                         "bits of a run; change the one or the other", p->name, o->wire);
    return TRI_OK;
}

tri_status plan_check_network(const struct plan_file *p, const tri_graph *g) {
    const struct plan_line *model = plan_find(p, PLAN_MODEL), *graph = plan_find(p, PLAN_GRAPH);
    char other[256];
    if (model && (!g->spec || strcmp(g->spec, model->value))) {
        base_format(other, sizeof other, "the network is %s",
                    g->spec ? g->spec : "none of the zoo's");
        return contradicts(p, model, other);
    }
    if (!graph) return TRI_OK;
    struct plan_file now = {0};
    tri_status status = add_graph(g, &now);
    if (!status && strcmp(now.line[0].value, graph->value)) {
        base_format(other, sizeof other, "the network is graph %s (without mesh, strategies "
                    "and recomputation, which older plans count too)", now.line[0].value);
        status = contradicts(p, graph, other);
    }
    plan_free(&now);
    return status;
}

void plan_replace_recompute(const struct plan_file *p, tri_graph *g) {
    if (plan_find(p, PLAN_RECOMPUTE)) recompute_forget(g);
}

/* ---- strategies of a plan ---- */

static tri_status not_in_plan(const struct plan_file *p, const struct strategy_line *l,
                              const struct plan_line *here) {
    struct text t = {0};
    const struct plan_line *near = NULL;
    size_t n = strcspn(here->value, " ") + 1;
    for (size_t i = 0; i < p->n && !near; i++)
        if (p->line[i].key == here->key && !strncmp(p->line[i].value, here->value, n) &&
            !plan_line_equal(&p->line[i], here))
            near = &p->line[i];
    if (near) return contradicts(p, near, l->from);
    plan_print_line(here, &t);
    base_fail(TRI_USAGE, "%s, but the plan %s lacks its line \"%s\", or has it in another order",
              l->from, p->name, t.data ? t.data : "");
    text_free(&t);
    return TRI_USAGE;
}

/* A line of a plan as a strategy. The last word is what is asked; a name may have blanks. */
static tri_status strategy_of(struct strategy_lines *all, const struct plan_file *p,
                              const struct plan_line *from, struct strategy_line *out) {
    char *value = arena_copy(all->arena, from->value);
    char *text = value ? strrchr(value, ' ') : NULL;
    if (!text) return base_no_memory("strategies");
    *text++ = 0;
    size_t k = 0;
    while (kinds[k].key != from->key) k++;
    *out = (struct strategy_line){.kind = kinds[k].kind,
                                  .pattern = value,
                                  .text = text,
                                  .maybe = from->maybe,
                                  .exact = kinds[k].exact,
                                  .output = from->key == PLAN_SHARD ? 0 : -1,
                                  .place = arena_text(all->arena, "%s:%d: ", p->name,
                                                      from->number)};
    if (from->key == PLAN_LAYOUT_OF) {
        char *output = strrchr(value, ' '), *end;
        *output++ = 0;
        long number = strtol(output, &end, 10);
        if (*end || end == output || number < 0 || number >= TRI_MAX_OUTPUTS)
            return base_fail(TRI_USAGE, "%s:%d: layout-of: \"%.20s\" is no number of an output",
                             p->name, from->number, output);
        out->output = (int)number;
    }
    return TRI_OK;
}

tri_status strategy_lines_of_plan(const struct plan_file *p, struct strategy_lines *all) {
    struct strategy_line *own = all->line; /* of network and options: the plan must have them */
    size_t n = all->n, next = 0;
    const struct plan_line *mesh = plan_find(p, PLAN_MESH);
    tri_status status = TRI_OK;
    struct plan_line here = {0};
    if (mesh) {
        all->plan_mesh_from = arena_text(all->arena, "%s:%d", p->name, mesh->number);
        if (!strcmp(mesh->value, "none")) return TRI_OK;
        status = mesh_parse(mesh->value, &all->plan_mesh);
    }
    all->line = NULL;
    all->n = all->capacity = 0;
    if (n && !status) status = line_of(&own[0], all->arena, &here);
    for (size_t i = 0; i < p->n && !status; i++) {
        const struct plan_line *from = &p->line[i];
        struct strategy_line l;
        if (from->key < PLAN_STRATEGY || from->key > PLAN_USE) continue;
        if (next < n && plan_line_equal(from, &here)) {
            l = own[next++];
            if (next < n) status = line_of(&own[next], all->arena, &here);
        } else {
            status = strategy_of(all, p, from, &l);
        }
        if (!status) status = strategy_lines_add(all, l);
    }
    if (!status && next < n) status = not_in_plan(p, &own[next], &here);
    free(own);
    return status;
}

tri_status plan_check_strategies(const struct plan_file *p) {
    const struct plan_line *mesh = plan_find(p, PLAN_MESH);
    struct arena kept = {0};
    struct strategy_lines all = {.arena = &kept};
    struct mesh m = {0};
    tri_status status = TRI_OK;
    if (mesh && strcmp(mesh->value, "none")) status = mesh_parse(mesh->value, &m);
    if (m.n && !*m.axis[0].name) m.n = 0; /* a number: tuples make its axes */
    for (size_t i = 0; i < p->n && !status; i++) {
        struct strategy_line l;
        if (p->line[i].key < PLAN_STRATEGY || p->line[i].key > PLAN_USE) continue;
        status = strategy_of(&all, p, &p->line[i], &l);
        if (!status) status = strategy_lines_add(&all, l);
        if (!status && l.kind == SETTING_SHARD) status = tuples_parse(&all.line[all.n - 1]);
        else if (!status) status = strategy_line_parse(&all, &all.line[all.n - 1], &m);
    }
    free(all.line);
    arena_free(&kept);
    return status;
}
