/* SPDX-License-Identifier: Apache-2.0
 * Arguments of a model: "key=value,key=value". The model's call determines the type of a value. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "models/args.h"
#include "models/models.h"

struct arg {
    const char *key, *value;
    bool asked, noted; /* the model asked for it; it is in the spec */
};

struct tri_args {
    tri_graph *graph;
    const char *model;
    struct arg *arg;
    size_t n, capacity;
    struct text known; /* "classes, hidden" */
    /* "width=8,classes=10": those that differ from their defaults, in the order of the calls */
    struct text spec;
};

static struct arg *find(const tri_args *a, const char *name) {
    for (size_t i = 0; i < a->n; i++)
        if (!strcmp(a->arg[i].key, name)) return &a->arg[i];
    return NULL;
}

/* Adds a value that is not the default to the model's spec. */
static void note(tri_args *a, const char *name, const char *value) {
    struct arg *found = find(a, name);
    if (!found || found->noted) return;
    found->noted = true;
    text_add(&a->spec, "%s%s=%s", a->spec.size ? "," : "", name, value);
}

static void add(tri_args *a, char *item) {
    char *value = strchr(item, '=');
    if (!value || value == item || !value[1]) {
        graph_fail(a->graph, TRI_USAGE, "%s: \"%s\" is not an argument; key=value is", a->model,
                   item);
        return;
    }
    *value++ = 0;
    if (find(a, item)) {
        graph_fail(a->graph, TRI_USAGE, "%s: %s is given twice", a->model, item);
        return;
    }
    if (!ARRAY_GROW(a->arg, a->n, a->capacity)) {
        graph_fail(a->graph, TRI_FAILED, "out of memory for the arguments of %s", a->model);
        return;
    }
    a->arg[a->n++] = (struct arg){.key = item, .value = value};
}

tri_args *args_open(tri_graph *g, const char *model, const char *text) {
    tri_args *a = calloc(1, sizeof *a);
    char *rest = arena_copy(&g->arena, text);
    const char *name = arena_copy(&g->arena, model);
    if (!a || !rest || !name) {
        free(a);
        return NULL;
    }
    a->graph = g;
    a->model = name;
    for (char *item = *rest ? rest : NULL; item;) {
        char *comma = strchr(item, ',');
        if (comma) *comma++ = 0;
        add(a, item);
        item = comma;
    }
    return a;
}

void args_close(tri_args *a) {
    for (size_t i = 0; i < a->n; i++)
        if (!a->arg[i].asked)
            graph_fail(a->graph, TRI_USAGE, "%s takes no argument \"%s\"; it knows %s", a->model,
                       a->arg[i].key, a->known.data ? a->known.data : "none");
    if (a->known.failed)
        graph_fail(a->graph, TRI_FAILED, "out of memory for the arguments of %s", a->model);
    if (a->spec.failed)
        graph_fail(a->graph, TRI_FAILED, "out of memory for the arguments of %s", a->model);
    else
        a->graph->spec = arena_text(&a->graph->arena, "%s%s%s", a->model, a->spec.size ? ":" : "",
                                    a->spec.size ? a->spec.data : "");
    text_free(&a->known);
    text_free(&a->spec);
    free(a->arg);
    free(a);
}

/* The value as text, or null if it is not given. Records that the model knows the name. */
static const char *ask(tri_args *a, const char *name) {
    size_t n = strlen(name);
    const char *at = a->known.data;
    while (at && (at = strstr(at, name)) != NULL) {
        if ((at == a->known.data || at[-1] == ' ') && (at[n] == ',' || !at[n])) break;
        at += n;
    }
    if (!at) text_add(&a->known, "%s%s", a->known.size ? ", " : "", name);
    struct arg *found = find(a, name);
    if (!found) return NULL;
    found->asked = true;
    return found->value;
}

static void wrong(tri_args *a, const char *name, const char *value, const char *expected) {
    graph_fail(a->graph, TRI_USAGE, "%s: %s=%s: expected %s", a->model, name, value, expected);
}

int64_t tri_args_int(tri_args *a, const char *name, int64_t otherwise) {
    const char *value = ask(a, name);
    if (!value) return otherwise;
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (!errno && !*end) {
        char text[24];
        snprintf(text, sizeof text, "%lld", number);
        if (number != otherwise) note(a, name, text);
        return number;
    }
    wrong(a, name, value, "a whole number");
    return otherwise;
}

double tri_args_float(tri_args *a, const char *name, double otherwise) {
    const char *value = ask(a, name);
    if (!value) return otherwise;
    char *end;
    double number = base_number(value, &end);
    if (!*end && isfinite(number)) {
        if (number != otherwise) note(a, name, base_number_text(number, (char[NUMBER_TEXT]){0}));
        return number;
    }
    wrong(a, name, value, "a number");
    return otherwise;
}

const char *tri_args_text(tri_args *a, const char *name, const char *otherwise) {
    const char *value = ask(a, name);
    if (value && (!otherwise || strcmp(value, otherwise))) note(a, name, value);
    return value ? value : otherwise;
}

/* The number may be a default that another argument makes invalid. */
static void wrong_number(tri_args *a, const char *name, int64_t number, const char *expected) {
    char value[24];
    snprintf(value, sizeof value, "%lld", (long long)number);
    wrong(a, name, value, expected);
}

int64_t model_int(tri_args *a, const char *name, int64_t otherwise, int64_t low, int64_t high) {
    int64_t number = tri_args_int(a, name, otherwise);
    if (number >= low && number <= high) return number;
    char expected[64];
    snprintf(expected, sizeof expected, "%lld to %lld", (long long)low, (long long)high);
    wrong_number(a, name, number, expected);
    return otherwise;
}

int64_t model_divisor(tri_args *a, const char *name, int64_t otherwise, int64_t of) {
    int64_t number = tri_args_int(a, name, otherwise);
    if (number > 0 && of % number == 0) return number;
    char expected[64];
    snprintf(expected, sizeof expected, "a divisor of %lld", (long long)of);
    wrong_number(a, name, number, expected);
    return 1;
}

int model_choice(tri_args *a, const char *name, const char *words) {
    const char *value = ask(a, name);
    if (!value) return 0;
    size_t n = strlen(value);
    int i = 0;
    for (const char *word = words; word; i++) {
        const char *space = strchr(word, ' ');
        size_t length = space ? (size_t)(space - word) : strlen(word);
        if (length == n && !memcmp(word, value, n)) {
            if (i) note(a, name, value);
            return i;
        }
        word = space ? space + 1 : NULL;
    }
    char expected[96];
    snprintf(expected, sizeof expected, "one of %s", words);
    wrong(a, name, value, expected);
    return 0;
}
