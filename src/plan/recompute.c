/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/recompute.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "plan/rewrite.h"

/* ---- patterns ---- */

struct patterns {
    struct arena arena; /* of patterns from the options */
    const char **pattern;
    size_t n, capacity;
};

static bool add(struct patterns *p, const char *pattern) {
    if (!pattern || !ARRAY_GROW(p->pattern, p->n, p->capacity)) return false;
    p->pattern[p->n++] = pattern;
    return true;
}

static void forget(struct patterns *p) {
    free(p->pattern);
    arena_free(&p->arena);
}

static tri_status collect(const tri_graph *g, const char *list, struct patterns *p) {
    bool ok = true;
    *p = (struct patterns){0};
    if (list && !strcmp(list, "none")) return TRI_OK;
    for (size_t i = 0; i < g->n_settings && ok; i++)
        if (g->setting[i].kind == SETTING_RECOMPUTE) ok = add(p, g->setting[i].pattern);
    for (size_t n; list && ok; list = list[n] ? list + n + 1 : NULL) {
        n = strcspn(list, ",");
        ok = add(p, arena_text(&p->arena, "%.*s", (int)n, list));
    }
    if (ok) return TRI_OK;
    forget(p);
    return base_no_memory("patterns for --recompute");
}

/* The length of the next scope of the name, beginning with the shortest; the last is the whole
 * name. False after that. */
static bool next_scope(const char *name, size_t *length) {
    if (*length && !name[*length]) return false;
    *length += *length > 0;
    *length += strcspn(name + *length, ".");
    return true;
}

/* The length of the shortest scope that matches; 0: none does. `scope` is a buffer for the name. */
static size_t part_of(const struct patterns *p, const char *name, char *scope) {
    size_t length = 0;
    while (next_scope(name, &length)) {
        memcpy(scope, name, length);
        scope[length] = 0;
        for (size_t i = 0; i < p->n; i++)
            if (!fnmatch(p->pattern[i], scope, 0)) return length;
    }
    return 0;
}

static size_t longest_name(const tri_graph *g) {
    size_t longest = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        size_t n = strlen(g->node[i]->name);
        if (n > longest) longest = n;
    }
    return longest;
}

/* Whether the node can be computed again: not sources, which are stored, nor the backward pass. */
static bool can_repeat(const bool *backward, const tri_node *n) {
    return n->n_in && !backward[n->id];
}

static tri_status no_match(const tri_graph *g, const bool *backward, const char *pattern) {
    struct nearest near = {.wanted = pattern, .before = "\"", .after = "\""};
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t n = 0; can_repeat(backward, g->node[i]) && next_scope(g->node[i]->name, &n);)
            nearest_offer_part(&near, g->node[i]->name, n);
    return base_fail(TRI_USAGE, "no scope or operator to recompute matches \"%s\"%s", pattern,
                     nearest_meant(&near));
}

static tri_status check_one(const tri_graph *g, const bool *backward, const char *pattern,
                            char *scope) {
    const struct patterns one = {.pattern = &pattern, .n = 1};
    for (size_t i = 0; i < g->n_nodes; i++)
        if (can_repeat(backward, g->node[i]) && part_of(&one, g->node[i]->name, scope))
            return TRI_OK;
    return no_match(g, backward, pattern);
}

bool recompute_is_word(const char *patterns) {
    static const char *const words[] = {"full", "fit"};
    for (size_t i = 0; patterns && i < COUNT(words); i++)
        if (!strcmp(patterns, words[i])) return true;
    return false;
}

bool recompute_is_asked(const tri_graph *g) {
    for (size_t i = 0; i < g->n_settings; i++)
        if (g->setting[i].kind == SETTING_RECOMPUTE) return true;
    return false;
}

void recompute_forget(tri_graph *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_settings; i++)
        if (g->setting[i].kind != SETTING_RECOMPUTE) g->setting[n++] = g->setting[i];
    g->n_settings = n;
    for (int i = 0; i < g->n_shorter; i++) recompute_forget(g->shorter[i].g);
}

tri_status recompute_check(const tri_graph *g, const char *list) {
    struct patterns p;
    tri_status status = collect(g, list, &p);
    if (status) return status;
    char *scope = malloc(longest_name(g) + 1);
    bool *backward = calloc(g->n_nodes + 1, sizeof *backward);
    if (!scope || !backward) status = base_no_memory("patterns for --recompute");
    if (!status) graph_mark_backward(g, backward);
    for (size_t i = 0; i < p.n && !status; i++)
        status = check_one(g, backward, p.pattern[i], scope);
    free(backward);
    free(scope);
    forget(&p);
    return status;
}

/* ---- parts ---- */

struct again {
    struct rewrite r;
    const tri_graph *g;
    bool *backward;     /* by node: it depends on gradients */
    size_t *part;       /* by node: the length of its part's name; 0: none */
    bool *data;         /* by node: it depends on the data, not on weights alone */
    bool *kept;         /* by tensor: it is kept until the backward pass */
    tri_tensor **copy;  /* by tensor: its recomputed value */
    tri_node **stack;   /* nodes to repeat for one node that needs them */
    bool *asked;        /* by node: it is or was in the stack */
    size_t n_stack;
};

static bool same_part(const struct again *a, const tri_node *x, const tri_node *y) {
    size_t n = a->part[x->id];
    return n == a->part[y->id] && !strncmp(x->name, y->name, n);
}

static bool is_scope(const struct again *a, const tri_node *n) {
    return n->name[a->part[n->id]] != 0;
}

/* A random operator can draw the same numbers again only if its row has an attribute "key". */
static bool can_draw(const tri_node *n) {
    return !n->entry->op->random || node_attr(n, "key");
}

/* Finds parts and what is kept: tensors in no part, outputs of a scope that other nodes of the
 * forward pass use, results of the step. Tensors that depend on weights alone are computed once for
 * all lanes, and kept. */
static void find_parts(struct again *a, const struct patterns *p, char *scope) {
    const tri_graph *g = a->g;
    graph_mark_results(g, a->kept);
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        for (int k = 0; k < n->n_out && a->backward[i]; k++) a->kept[n->out[k].id] = true;
        if (a->backward[i]) continue;
        a->data[i] = node_is(n, "input");
        for (int k = 0; k < n->n_in; k++) a->data[i] |= a->data[n->in[k]->node->id];
        bool repeats = n->n_in && can_draw(n) && a->data[i];
        a->part[i] = repeats ? part_of(p, n->name, scope) : 0;
        for (int k = 0; k < n->n_out && !a->part[i]; k++) a->kept[n->out[k].id] = true;
        for (int k = 0; k < n->n_in; k++) {
            const tri_node *from = n->in[k]->node;
            if (node_reads(n, k) && is_scope(a, from) && !same_part(a, from, n))
                a->kept[n->in[k]->id] = true;
        }
    }
}

/* ---- repeating ---- */

static void ask(struct again *a, const tri_node *n) {
    for (int k = 0; k < n->n_in; k++) {
        tri_node *from = n->in[k]->node;
        if (a->kept[n->in[k]->id] || !node_reads(n, k) || a->asked[from->id]) continue;
        a->asked[from->id] = true;
        a->stack[a->n_stack++] = from;
    }
}

static int by_id(const void *x, const void *y) {
    return (*(tri_node *const *)x)->id - (*(tri_node *const *)y)->id;
}

/* Input k of n: recomputed, or kept. */
static tri_tensor *input(const struct again *a, const tri_node *n, int k) {
    tri_tensor *copy = node_reads(n, k) ? a->copy[n->in[k]->id] : NULL;
    return copy ? copy : n->in[k];
}

/* A copy draws the random numbers of the original. */
static void repeat(struct again *a, const tri_node *n) {
    tri_graph *g = a->r.g;
    tri_attr attrs[MAX_ATTRS];
    tri_tensor **in = calloc((size_t)n->n_in + 1, sizeof *in);
    char *name = arena_text(&g->arena, "again.%s", n->name);
    a->r.failed |= !in || !name;
    if (!a->r.failed) {
        for (int k = 0; k < n->n_in; k++) in[k] = input(a, n, k);
        for (int i = 0; i < n->entry->n_attrs; i++) {
            attrs[i] = n->attr[i];
            if (n->entry->op->random && !strcmp(n->entry->attr[i].name, "key"))
                attrs[i].text = node_key(n);
        }
        tri_node *copy = graph_copy(g, n, in, attrs, name);
        copy->backward = true;
        copy->of = n->name;
        for (int k = 0; copy != g->poison_node && k < n->n_out; k++)
            if (!a->kept[n->out[k].id]) a->copy[n->out[k].id] = &copy->out[k];
    }
    free(in);
}

/* Repeats the nodes that a node of the backward pass needs and that have not been repeated yet, in
 * the order of the forward pass. */
static void repeat_for(struct again *a, tri_node *n) {
    a->n_stack = 0;
    ask(a, n);
    for (size_t i = 0; i < a->n_stack; i++) ask(a, a->stack[i]);
    qsort(a->stack, a->n_stack, sizeof *a->stack, by_id);
    for (size_t i = 0; i < a->n_stack && !a->r.failed; i++) repeat(a, a->stack[i]);
    for (int k = 0; k < n->n_in; k++) n->in[k] = input(a, n, k);
}

static bool allocate(struct again *a, const tri_graph *g) {
    a->backward = calloc(g->n_nodes + 1, sizeof *a->backward);
    a->part = calloc(g->n_nodes + 1, sizeof *a->part);
    a->data = calloc(g->n_nodes + 1, sizeof *a->data);
    a->kept = calloc((size_t)g->n_tensors + 1, sizeof *a->kept);
    a->copy = calloc((size_t)g->n_tensors + 1, sizeof(tri_tensor *));
    a->stack = calloc(g->n_nodes + 1, sizeof(tri_node *));
    a->asked = calloc(g->n_nodes + 1, sizeof *a->asked);
    return a->backward && a->part && a->data && a->kept && a->copy && a->stack && a->asked;
}

static tri_status run(tri_graph *g, const struct patterns *p) {
    struct again a = {.g = g};
    char *scope = malloc(longest_name(g) + 1);
    tri_status status = allocate(&a, g) && scope ? TRI_OK : base_no_memory("computing again");
    if (!status) {
        tri_node *n;
        graph_mark_backward(g, a.backward);
        find_parts(&a, p, scope);
        rewrite_begin(&a.r, g);
        for (size_t i = 0; (n = rewrite_next(&a.r, i)); i++) {
            if (a.backward[i]) repeat_for(&a, n);
            rewrite_keep(&a.r, n);
        }
        status = rewrite_end(&a.r);
    }
    free(scope);
    free(a.backward);
    free(a.part);
    free(a.data);
    free(a.kept);
    free(a.copy);
    free(a.stack);
    free(a.asked);
    return status;
}

tri_status recompute(tri_graph *g, const char *list) {
    struct patterns p;
    tri_status status = collect(g, list, &p);
    if (status) return status;
    if (p.n && graph_forward(g) < g->n_nodes) status = run(g, &p);
    forget(&p);
    return status;
}
