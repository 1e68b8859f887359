/* SPDX-License-Identifier: Apache-2.0
 * Names: scopes as prefixes, numbers that keep them unique, finding sources by name. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

/* ---- scopes ---- */

void tri_push(tri_graph *g, const char *fmt, ...) {
    if (!g) return;
    char buffer[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(buffer, sizeof buffer, fmt, args);
    va_end(args);
    text_add(&g->scope, "%s%s", g->scope.size ? "." : "", buffer);
    /* One tri_push may add several segments ("a.b"): a mark shows where each push ends. */
    text_add_bytes(&g->scope, "\001", 1);
    if (g->scope.failed) graph_fail(g, TRI_FAILED, "out of memory for the graph");
}

void tri_pop(tri_graph *g) {
    if (!g || g->scope.failed) return;
    if (!g->scope.size) {
        graph_mistake(g, "tri_pop without tri_push");
        return;
    }
    size_t at = g->scope.size - 1;
    while (at > 0 && g->scope.data[at - 1] != '\001') at--;
    g->scope.size = at;
    g->scope.data[at] = 0;
}

/* Scope and name joined, without the marks. */
char *graph_scoped(tri_graph *g, const char *name) {
    if (!name || !*name) {
        graph_mistake(g, "a name is missing (null or empty)");
        name = "nameless";
    }
    size_t n = g->scope.size, length = strlen(name);
    char *p = arena_alloc(&g->arena, n + length + 2), *q = p;
    if (!p) return NULL;
    for (size_t i = 0; i < n; i++)
        if (g->scope.data[i] != '\001') *q++ = g->scope.data[i];
    if (n) *q++ = '.';
    memcpy(q, name, length + 1);
    return p;
}

/* ---- tables ---- */

static struct name_slot *find(const struct names *t, const char *name) {
    size_t i = base_hash_text(name) & (t->capacity - 1);
    while (t->slot[i].name && strcmp(t->slot[i].name, name)) i = (i + 1) & (t->capacity - 1);
    return &t->slot[i];
}

static bool grow(struct names *t) {
    struct names more = {.capacity = t->capacity ? t->capacity * 2 : 64, .n = t->n};
    if (!(more.slot = calloc(more.capacity, sizeof *more.slot))) return false;
    for (size_t i = 0; i < t->capacity; i++)
        if (t->slot[i].name) *find(&more, t->slot[i].name) = t->slot[i];
    free(t->slot);
    *t = more;
    return true;
}

/* The name's slot; a new one has a null name. Null: out of memory. */
static struct name_slot *slot_of(struct names *t, const char *name) {
    return t->n * 2 >= t->capacity && !grow(t) ? NULL : find(t, name);
}

/* "relu", then "relu_1", "relu_2": the number counts within the scope, so that adding an operator
 * elsewhere changes no name (names are keys of random numbers). */
const char *graph_unique(tri_graph *g, const char *name) {
    struct name_slot *s = slot_of(&g->names, name);
    if (!s) return NULL;
    if (!s->name) {
        *s = (struct name_slot){.name = name, .asked = 1};
        g->names.n++;
        return name;
    }
    /* The recursive call may grow the table and move the slot: take the number first. */
    char *numbered = arena_text(&g->arena, "%s_%d", name, s->asked++);
    return numbered ? graph_unique(g, numbered) : NULL;
}

void graph_number_like(tri_graph *g, const tri_graph *like) {
    for (size_t i = 0; i < like->names.capacity && g->names.n; i++) {
        const struct name_slot *theirs = &like->names.slot[i];
        struct name_slot *s = theirs->name ? find(&g->names, theirs->name) : NULL;
        if (s && s->name) s->asked = theirs->asked;
    }
}

/* Of several sources with one name the first is kept. */
bool graph_know_source(tri_graph *g, tri_node *n) {
    if (n->n_in || !node_attr(n, "name")) return true;
    struct name_slot *s = slot_of(&g->sources, source_name(n));
    if (s && !s->name) {
        *s = (struct name_slot){.name = source_name(n), .source = n};
        g->sources.n++;
    }
    return s;
}

tri_node *graph_source(const tri_graph *g, const char *name) {
    return g->sources.n ? find(&g->sources, name)->source : NULL;
}
