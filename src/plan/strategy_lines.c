/* SPDX-License-Identifier: Apache-2.0
 * Collects what a network's settings and strategy files ask for, and reads the text of strategies.
 * Ready strategies (the folder strategies/) are part of the library. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "plan/ready.h"
#include "plan/strategy_inside.h"

/* ---- messages ---- */

tri_status strategy_fail(const struct strategy_line *l, const char *fmt, ...) {
    char what[1024];
    va_list args;
    va_start(args, fmt);
    base_format_list(what, sizeof what, fmt, args);
    va_end(args);
    return base_fail(TRI_USAGE, "%s: %s", l->from, what);
}

tri_status strategy_fail_at(const struct strategy_line *l, const struct mesh *m, const tri_node *n,
                            const char *fmt, ...) {
    char what[1024];
    struct text node = {0}, mesh = {0};
    va_list args;
    va_start(args, fmt);
    base_format_list(what, sizeof what, fmt, args);
    va_end(args);
    node_describe(n, &node);
    mesh_print(m, &mesh);
    base_fail(TRI_USAGE, "%s: %s (%s%s%s)", node.failed ? n->name : node.data, what, l->from,
              m->n ? "; the mesh is " : "", m->n && mesh.data ? mesh.data : "");
    text_free(&node);
    text_free(&mesh);
    return TRI_USAGE;
}

/* ---- collecting ---- */

static const char *const words[] = {[SETTING_STRATEGY] = "strategy", [SETTING_SHARD] = "shard",
                                    [SETTING_LAYOUT] = "layout", [SETTING_USE] = "use"};

tri_status strategy_lines_add(struct strategy_lines *all, struct strategy_line l) {
    bool ok = l.place && l.pattern && l.text;
    l.from = ok ? arena_text(all->arena, "%s%s \"%s\" \"%s\"", l.place, words[l.kind],
                             l.pattern, l.text)
                : NULL;
    if (!l.from || !ARRAY_GROW(all->line, all->n, all->capacity))
        return base_no_memory("strategies");
    all->line[all->n++] = l;
    return TRI_OK;
}

static tri_status add_settings(struct strategy_lines *all, const tri_graph *g) {
    tri_status status = TRI_OK;
    for (size_t i = 0; i < g->n_settings && !status; i++) {
        const struct graph_setting *s = &g->setting[i];
        if (s->kind < SETTING_STRATEGY) continue;
        const char *place = s->file ? arena_text(all->arena, "%s:%d: ", s->file, s->line) : "";
        status = strategy_lines_add(
            all, (struct strategy_line){.kind = s->kind,
                                        .pattern = s->pattern,
                                        .exact = s->kind != SETTING_STRATEGY,
                                        .output = (int)s->value,
                                        .text = s->text,
                                        .place = place});
    }
    return status;
}

/* ---- files ---- */

static tri_status file_mesh(struct strategy_lines *all, const char *place, const char *axes) {
    struct mesh m;
    struct text before = {0};
    tri_status status = mesh_parse(axes, &m);
    if (status) return base_fail(status, "%s%s", place, tri_message());
    if (all->mesh.n && !mesh_equal(&all->mesh, &m)) {
        mesh_print(&all->mesh, &before);
        status = base_fail(TRI_USAGE, "%smesh %s, but %s: mesh %s; give one", place, axes,
                           all->mesh_from, before.data ? before.data : "");
        text_free(&before);
        return status;
    }
    all->mesh = m;
    all->mesh_from = arena_text(all->arena, "%.*s", (int)strlen(place) - 2, place);
    return all->mesh_from ? TRI_OK : base_no_memory("strategies");
}

#define MOST_WORDS 4

/* Reads a line, which it changes. */
static tri_status file_line(struct strategy_lines *all, const char *place, char *text) {
    char *word[MOST_WORDS + 1], *rest = NULL;
    int n = 0;
    text[strcspn(text, "#\r")] = 0;
    for (char *p = strtok_r(text, " \t", &rest); p && n <= MOST_WORDS;
         p = strtok_r(NULL, " \t", &rest))
        word[n++] = p;
    if (!n) return TRI_OK;
    if (n == 2 && !strcmp(word[0], "mesh")) return file_mesh(all, place, word[1]);
    bool maybe = !strcmp(word[0], "maybe");
    char **w = word + maybe;
    const enum setting_kind kind = n > maybe && !strcmp(w[0], "layout") ? SETTING_LAYOUT
                                   : n == 3 && !strcmp(word[0], "use")  ? SETTING_USE
                                                                        : SETTING_STRATEGY;
    const bool named = kind != SETTING_STRATEGY;
    if (n - maybe - named != 2)
        return base_fail(TRI_USAGE, "%sa line must be PATTERN FACTORS, layout NAME LAYOUT, maybe "
                         "and one of these, use NODE USE, or mesh AXES", place);
    return strategy_lines_add(
        all, (struct strategy_line){.kind = kind,
                                    .pattern = arena_copy(all->arena, w[named]),
                                    .text = arena_copy(all->arena, w[named + 1]),
                                    .maybe = maybe,
                                    .output = -1,
                                    .place = place});
}

/* Reads a file's text, which it changes. */
static tri_status file_text(struct strategy_lines *all, const char *name, char *text) {
    tri_status status = TRI_OK;
    char *rest = text;
    for (int number = 1; rest && !status; number++) {
        char *line = strsep(&rest, "\n");
        const char *place = arena_text(all->arena, "%s:%d: ", name, number);
        status = place ? file_line(all, place, line) : base_no_memory("strategies");
    }
    return status;
}

static const char *ready(const char *name) {
    for (const struct strategy_ready *r = strategies_ready; r->name; r++)
        if (!strcmp(r->name, name)) return r->text;
    return NULL;
}

static tri_status no_file(const char *name) {
    struct nearest near = {.wanted = name};
    for (const struct strategy_ready *r = strategies_ready; r->name; r++)
        nearest_offer(&near, r->name);
    return base_fail(TRI_USAGE, "--strategy (tri_options.strategy): %.255s; ready strategies are "
                     "%s%s", tri_message(), near.names, nearest_meant(&near));
}

/* A ready strategy of this name, or else a file. What a search has found is text itself. */
static tri_status add_file(struct strategy_lines *all, const char *name) {
    const bool found = strchr(name, '\n');
    const char *text = found ? name : ready(name);
    char *data = text ? strdup(text) : NULL;
    size_t bytes;
    if (text && !data) return base_no_memory("a strategy");
    if (!data && base_read_file(name, &data, &bytes)) return no_file(name);
    tri_status status = file_text(all, found ? "found" : name, data);
    free(data);
    return status;
}

tri_status strategy_lines_read(const tri_graph *g, const tri_options *o,
                               struct strategy_lines *out) {
    tri_status status = add_settings(out, g);
    const char *p = o->strategy;
    while (p && !status) {
        size_t n = strchr(p, '\n') ? strlen(p) : strcspn(p, ",");
        if (!n)
            return base_fail(TRI_USAGE, "--strategy (tri_options.strategy) \"%s\" has an empty "
                             "name; commas separate names", o->strategy);
        const char *name = arena_text(out->arena, "%.*s", (int)n, p);
        status = name ? add_file(out, name) : base_no_memory("strategies");
        p = p[n] ? p + n + 1 : NULL;
    }
    if (status || !o->plan) return status;
    const struct plan_file *plan = plan_read(o->plan, false);
    return plan ? strategy_lines_of_plan(plan, out) : base_last();
}

/* ---- the text of a strategy ---- */

static tri_status no_axis(const struct strategy_line *l, const struct mesh *m, const char *name) {
    struct nearest near = {.wanted = name};
    struct text mesh = {0};
    for (int i = 0; i < m->n; i++) nearest_offer(&near, m->axis[i].name);
    mesh_print(m, &mesh);
    const char *meant = nearest_meant(&near);
    char use[128] = "";
    if (m->n == 1)
        base_format(use, sizeof use, "%s use --mesh %s=%lld (tri_mesh)", *meant ? " Or" : ":",
                    name, (long long)mesh_seats(m));
    tri_status status = strategy_fail(l, "the mesh %s has no axis \"%s\"%s%s",
                                      mesh.data ? mesh.data : "", name, meant, use);
    text_free(&mesh);
    return status;
}

/* The number of an axis; -1: it is "-". */
static tri_status read_axis(const struct strategy_line *l, const struct mesh *m, const char *name,
                            int *axis) {
    *axis = -1;
    if (!strcmp(name, "-")) return TRI_OK;
    *axis = m->n ? mesh_axis(m, name) : 0;
    return *axis < 0 ? no_axis(l, m, name) : TRI_OK;
}

static tri_status read_part(const struct strategy_line *l, const struct mesh *m, char *text,
                            struct strategy_part *part) {
    char *axis = strchr(text, '='), *outer = strchr(text, '/'), *extent, *end;
    if (!axis || axis == text || !axis[1])
        return strategy_fail(l, "\"%s\" must be a factor and an axis: out=model, out/3=model; or "
                             "out=-", text);
    *axis++ = 0;
    part->name = text;
    part->outer = 1;
    part->extent = 0;
    if (outer && outer < axis) {
        *outer++ = 0;
        extent = l->kind == SETTING_USE ? strchr(outer, ':') : NULL;
        if (extent) *extent++ = 0;
        errno = 0;
        part->outer = strtoll(outer, &end, 10);
        if (*end || end == outer || errno || part->outer < 1)
            return strategy_fail(l, "%s/%s: expected a number of blocks of at least 1", text,
                                 outer);
        if (extent) part->extent = strtoll(extent, &end, 10);
        if (extent && (*end || end == extent || errno || part->extent < 1))
            return strategy_fail(l, "%s/%s:%s: expected a number of parts of at least 1", text,
                                 outer, extent);
    }
    return read_axis(l, m, axis, &part->axis);
}

/* "(model,-)", as trireme explain prints it, or without parentheses. */
static tri_status parse_layout(struct strategy_line *l, const struct mesh *m, char *text) {
    bool taken[MESH_MOST_AXES] = {false};
    size_t n = strlen(text);
    bool inside = n > 1 && *text == '(' && text[n - 1] == ')';
    if (inside) text[n - 1] = 0;
    char *rest = text + inside;
    tri_status status = TRI_OK;
    for (int i = 0; rest && !status; i++) {
        struct strategy_part *part = &l->part[l->n_parts++];
        char *name = strsep(&rest, ",");
        status = read_axis(l, m, name, &part->axis);
        if (status || part->axis < 0) continue;
        if (m->n && taken[part->axis])
            status = strategy_fail(l, "the axis %s splits two dimensions; it can split one", name);
        taken[part->axis] = true;
    }
    return status;
}

tri_status strategy_line_parse(struct strategy_lines *all, struct strategy_line *l,
                               const struct mesh *m) {
    char *text = arena_copy(all->arena, l->text), *rest = text;
    size_t most = 1;
    tri_status status = TRI_OK;
    for (const char *p = l->text; *p; p++) most += *p == ',';
    l->part = arena_alloc(all->arena, most * sizeof *l->part);
    l->n_parts = 0;
    if (!text || !l->part) return base_no_memory("strategies");
    for (char *p = text, *q = text; (*q = *p); p++) q += *p != ' ' && *p != '\t';
    if (l->kind == SETTING_LAYOUT) return parse_layout(l, m, text);
    if (l->kind == SETTING_USE && (!strcmp(text, USE_IS_WHOLE) || !strcmp(text, USE_IS_FORM)))
        return TRI_OK;
    while (rest && !status)
        status = read_part(l, m, strsep(&rest, ","), &l->part[l->n_parts++]);
    return status;
}

/* ---- factors ---- */

int strategy_factors(const struct factors *f, uint8_t factor[MAX_FACTORS]) {
    bool seen[MAX_FACTORS] = {false};
    int n = 0;
    for (int i = 0; i < f->n_in + f->n_out; i++) {
        const struct factor_operand *o = i < f->n_in ? &f->in[i] : &f->out[i - f->n_in];
        for (int d = 0; d < o->rank; d++)
            for (int k = 0; k < o->dim[d].n; k++) {
                uint8_t letter = o->dim[d].f[k];
                if (!seen[letter]) factor[n++] = letter;
                seen[letter] = true;
            }
    }
    return n;
}

/* A fixed factor whose name is a letter, not a public name, is fixed in the split form, too. */
bool strategy_can_split(const tri_node *n, const struct factors *f, uint8_t factor) {
    return !f->fixed[factor] || (n->entry->op->split_form && factor_name(n, f, factor)[1]);
}

void strategy_legal(const tri_node *n, const struct factors *f, int64_t places, struct text *out) {
    uint8_t factor[MAX_FACTORS];
    int all = strategy_factors(f, factor);
    size_t before = out->size;
    for (int i = 0; i < all; i++) {
        int64_t extent = f->extent[factor[i]];
        const char *name = factor_name(n, f, factor[i]);
        if (!strategy_can_split(n, f, factor[i]) || (extent && extent < places)) continue;
        text_add(out, "%s%s", out->size > before ? ", " : "", name);
        if (extent) text_add(out, " (%lld)", (long long)extent);
    }
    if (out->size == before) text_add(out, "none");
}
