/* SPDX-License-Identifier: Apache-2.0
 * Writes the textual form of a graph, one statement per line, and compares such texts. parse.c
 * reads them. */
#include <string.h>

#include "graph/graph.h"

static void print_text(struct text *t, const char *s) {
    text_add(t, "\"");
    for (; *s; s++)
        text_add(t, *s == '"' || *s == '\\' ? "\\%c" : *s == '\n' ? "\\n" : "%c", *s);
    text_add(t, "\"");
}

static void print_list(struct text *t, const tri_shape *list) {
    text_add(t, "[");
    for (int i = 0; i < list->rank; i++)
        text_add(t, "%s%lld", i ? "," : "", (long long)list->dim[i]);
    text_add(t, "]");
}

static void print_value(struct text *t, enum attr_kind kind, const tri_attr *a) {
    switch (kind) {
    case ATTR_INT: text_add(t, "%lld", (long long)a->i); break;
    case ATTR_FLOAT: text_add(t, "%.17g", a->f); break;
    case ATTR_INTS:
    case ATTR_SHAPE: print_list(t, &a->list); break;
    case ATTR_TEXT: print_text(t, a->text); break;
    case ATTR_TYPE: text_add(t, "%s", tri_type_name((tri_type)a->i)); break;
    }
}

static bool is_default(const struct attr_schema *s, const tri_attr *a) {
    return s->has_default && attr_equal(s->kind, a, &s->value);
}

/* Plan files have a hash of the undivided text, where the way of a convolution keeps the name that
 * it had in earlier versions. */
static const char *attr_name(const tri_node *n, int i, bool divided) {
    const char *name = n->entry->attr[i].name;
    bool old = !divided && !strncmp(n->entry->op->name, "conv2d", 6) && !strcmp(name, "way");
    return old ? "winograd" : name;
}

static void print_attrs(struct text *t, const tri_node *n, bool divided) {
    int shown = 0;
    for (int i = 0; i < n->entry->n_attrs; i++) {
        if (is_default(&n->entry->attr[i], &n->attr[i])) continue;
        text_add(t, "%s%s=", shown++ ? ", " : " {", attr_name(n, i, divided));
        print_value(t, n->entry->attr[i].kind, &n->attr[i]);
    }
    if (shown) text_add(t, "}");
}

void graph_print_attrs(const tri_node *n, struct text *out) { print_attrs(out, n, true); }

static void print_node(struct text *t, const tri_node *n, bool divided) {
    char spec[SPEC_TEXT];
    for (int i = 0; i < n->n_out; i++) text_add(t, "%s%%%d", i ? ", " : "", n->out[i].id);
    text_add(t, " = %s(", n->entry->op->name);
    for (int i = 0; i < n->n_in; i++) text_add(t, "%s%%%d", i ? ", " : "", n->in[i]->id);
    text_add(t, ")");
    print_attrs(t, n, divided);
    text_add(t, " :");
    for (int i = 0; i < n->n_out; i++) {
        text_add(t, "%s %s", i ? "," : "", base_spec_text(&n->out[i].spec, spec));
        if (n->out[i].block) text_add(t, "/%d", n->out[i].block);
        if (*n->out[i].pack) text_add(t, "/\"%s\"", n->out[i].pack);
    }
    text_add(t, " @ ");
    print_text(t, n->name);
    if (n->unit) text_add(t, " ~%d", n->unit);
    if (n->of) {
        text_add(t, " of ");
        print_text(t, n->of);
    }
    if (n->graph->legs && node_runs(n)) text_add(t, " leg %d", n->leg);
    else if (n->stage >= 0) text_add(t, " stage %d", n->stage);
    text_add(t, "\n");
}

static const char *const words[] = {
    [SETTING_FREEZE] = "freeze", [SETTING_LR] = "lr", [SETTING_DECAY] = "decay",
    [SETTING_TIE] = "tie", [SETTING_RECOMPUTE] = "recompute",
    [SETTING_PRECISION] = "precision", [SETTING_BUCKET] = "bucket",
    [SETTING_STAGE] = "stage", [SETTING_STRATEGY] = "strategy",
    [SETTING_SHARD] = "shard", [SETTING_LAYOUT] = "layout"};

static void print_setting(struct text *t, const struct graph_setting *s) {
    text_add(t, "%s ", words[s->kind]);
    print_text(t, s->pattern);
    if (s->kind == SETTING_TIE)
        text_add(t, " %%%d", s->param->id);
    else if (s->kind == SETTING_PRECISION)
        text_add(t, " %s", tri_type_name((tri_type)s->value));
    else if (setting_has_value(s->kind))
        text_add(t, " %.17g", s->value);
    if (s->kind == SETTING_LAYOUT) text_add(t, " %d", (int)s->value);
    if (s->text) {
        text_add(t, " ");
        print_text(t, s->text);
    }
    text_add(t, "\n");
}

static char *print(const tri_graph *g, bool divided) {
    struct text t = {0};
    bool backward = false;
    if (!g || tri_graph_status(g)) return NULL;
    text_add(&t, "graph {batch=%lld", (long long)g->batch);
    if (g->lanes != 1) text_add(&t, ", lanes=%lld", (long long)g->lanes);
    if (g->mesh.n && divided) {
        text_add(&t, ", mesh=\"");
        mesh_print(&g->mesh, &t);
        text_add(&t, "\"");
    }
    text_add(&t, "}\n");
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (g->node[i]->backward != backward) text_add(&t, backward ? "forward\n" : "backward\n");
        backward = g->node[i]->backward;
        print_node(&t, g->node[i], divided);
    }
    if (g->lr > 0 || g->schedule) {
        text_add(&t, "rate %.17g ", g->lr);
        print_text(&t, g->schedule ? g->schedule : "");
        text_add(&t, "\n");
    }
    for (size_t i = 0; i < g->n_settings; i++)
        if (divided || g->setting[i].kind < SETTING_RECOMPUTE) print_setting(&t, &g->setting[i]);
    for (size_t i = 0; i < g->n_gradients && divided; i++) {
        const struct graph_gradient *d = &g->gradient[i];
        text_add(&t, "gradient %%%d %%%d", d->y->id, d->first->id);
        for (int k = 0; k < 2 * d->n; k += 2)
            text_add(&t, ", %%%d %%%d", d->pair[k]->id, d->pair[k + 1]->id);
        text_add(&t, "\n");
    }
    for (size_t i = 0; i < g->n_outputs; i++) {
        const struct graph_output *o = &g->output[i];
        /* The loss may have further names. */
        bool loss = o->tensor == g->loss && o->name && !strcmp(o->name, "loss");
        text_add(&t, "%s ", loss ? "loss" : o->metric ? "metric" : "output");
        if (o->name) print_text(&t, o->name);
        else text_add(&t, "\"=%d\"", o->of);
        text_add(&t, " %%%d\n", o->tensor->id);
    }
    for (size_t i = 0; i < g->n_updates; i++) {
        const struct graph_update *u = &g->update[i];
        text_add(&t, "assign %%%d %%%d", u->target->id, u->value->id);
        if (u->condition) text_add(&t, " if %%%d", u->condition->id);
        text_add(&t, "\n");
    }
    if (!t.failed) return t.data;
    text_free(&t);
    base_no_memory("the text of a graph");
    return NULL;
}

char *tri_graph_print(const tri_graph *g) { return print(g, true); }

char *graph_print_undivided(const tri_graph *g) { return print(g, false); }

/* ---- comparing ---- */

static bool begins(const char *line, const char *word) {
    size_t n = strlen(word);
    return !strncmp(line, word, n) && line[n] == ' ';
}

/* Whether a line does not count: the batch, lanes and mesh, the rate, and what
 * graph_print_undivided leaves out. */
static bool is_left_out(const char *line) {
    bool out = begins(line, "graph") || begins(line, "rate");
    for (size_t i = SETTING_RECOMPUTE; i < COUNT(words) && !out; i++) out = begins(line, words[i]);
    return out;
}

/* The next line that counts; at the end, the final zero. */
static const char *counted(const char *line) {
    while (*line && is_left_out(line)) {
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return line;
}

#define SHOWN 400 /* bytes of a line */

static void add_line(struct text *t, const char *line) {
    size_t n = strcspn(line, "\n");
    text_add(t, n ? "%.*s%s" : "nothing", (int)(n < SHOWN ? n : SHOWN), line,
             n > SHOWN ? " ..." : "");
}

/* "operator fc.matmul (matmul) in scope fc: ", if the line is that of a node. */
static void add_node(struct text *t, const char *line) {
    const char *end = line + strcspn(line, "\n"), *name = NULL, *op = strstr(line, " = ");
    for (const char *p = line; p < end; p++)
        if (!strncmp(p, " @ \"", 4)) name = p + 4;
    if (*line != '%' || !op || op > end || !name) return;
    int n = (int)strcspn(name, "\""), scope = n;
    while (scope && name[scope - 1] != '.') scope--;
    op += 3;
    text_add(t, "operator %.*s (%.*s) ", n, name, (int)strcspn(op, "("), op);
    if (scope)
        text_add(t, "in scope %.*s: ", scope - 1, name);
    else
        text_add(t, "in no scope: ");
}

bool graph_texts_differ(const char *was, const char *is, struct text *how) {
    for (;;) {
        was = counted(was);
        is = counted(is);
        size_t n = strcspn(was, "\n");
        if (n != strcspn(is, "\n") || memcmp(was, is, n)) break;
        if (!*was) return false;
        was += n + (was[n] == '\n');
        is += n + (is[n] == '\n');
    }
    add_node(how, *is == '%' ? is : was);
    text_add(how, "it was: ");
    add_line(how, was);
    text_add(how, "; it is: ");
    add_line(how, is);
    return true;
}
