/* SPDX-License-Identifier: Apache-2.0
 * Settings: what the user asks for parameters, scopes, operators and tensors by their names. */
#include <fnmatch.h>
#include <string.h>

#include "graph/graph.h"

bool graph_put_setting(tri_graph *g, struct graph_setting s) {
    if (!s.pattern) {
        graph_mistake(g, "a setting of parameters lacks its pattern or name (null)");
        return false;
    }
    bool text = s.text != NULL;
    s.pattern = arena_copy(&g->arena, s.pattern);
    s.text = text ? arena_copy(&g->arena, s.text) : NULL;
    s.file = s.file ? arena_copy(&g->arena, s.file) : NULL;
    if (!s.pattern || (text && !s.text) ||
        !ARRAY_GROW(g->setting, g->n_settings, g->setting_capacity)) {
        graph_fail(g, TRI_FAILED, "out of memory for the graph");
        return false;
    }
    g->setting[g->n_settings++] = s;
    return true;
}

static void put_pattern(tri_graph *g, enum setting_kind kind, const char *pattern, double value) {
    if (g && !g->status)
        graph_put_setting(g, (struct graph_setting){.kind = kind, .pattern = pattern,
                                                    .value = value});
}

void tri_freeze(tri_graph *g, const char *pattern) { put_pattern(g, SETTING_FREEZE, pattern, 1); }

void tri_group_lr(tri_graph *g, const char *pattern, double factor) {
    put_pattern(g, SETTING_LR, pattern, factor);
}

void tri_group_decay(tri_graph *g, const char *pattern, double weight_decay) {
    put_pattern(g, SETTING_DECAY, pattern, weight_decay);
}

void tri_bucket(tri_graph *g, const char *pattern, int number) {
    if (g && !g->status && !bucket_is(number))
        graph_mistake(g, "tri_bucket: number %d; from 1 to %d", number, BUCKET_MOST);
    put_pattern(g, SETTING_BUCKET, pattern, number);
}

/* The open scope as a pattern that matches it alone: special characters are escaped. */
static bool open_scope(tri_graph *g, const char *call, struct text *out) {
    if (!g->scope.size)
        graph_mistake(g, "%s: no scope is open (tri_push); or name what is meant by a pattern",
                      call);
    for (size_t i = 0; i < g->scope.size; i++)
        if (g->scope.data[i] != '\001')
            text_add(out, strchr("*?[\\", g->scope.data[i]) ? "\\%c" : "%c", g->scope.data[i]);
    if (out->failed) graph_fail(g, TRI_FAILED, "out of memory for the graph");
    return !g->status;
}

static void put_scope(tri_graph *g, const char *call, const char *pattern,
                      struct graph_setting s) {
    struct text scope = {0};
    if (!g || g->status) return;
    if (pattern || open_scope(g, call, &scope)) {
        s.pattern = pattern ? pattern : scope.data;
        graph_put_setting(g, s);
    }
    text_free(&scope);
}

void tri_recompute(tri_graph *g, const char *pattern) {
    put_scope(g, "tri_recompute", pattern,
              (struct graph_setting){.kind = SETTING_RECOMPUTE, .value = 1});
}

void tri_precision(tri_graph *g, const char *pattern, tri_type type) {
    if (g && !g->status && !type_is_float(type))
        graph_mistake(g, "tri_precision: %s is no floating-point type (f32, bf16, f16)",
                      type <= TRI_BOOL ? tri_type_name(type) : "this");
    put_scope(g, "tri_precision", pattern,
              (struct graph_setting){.kind = SETTING_PRECISION, .value = (double)type});
}

/* A setting for meshes or stages, with its text and the line of the user's file. */
static struct graph_setting placed(const tri_graph *g, enum setting_kind kind, const char *text) {
    struct graph_setting s = {.kind = kind, .text = text};
    s.file = graph_place(g, &s.line);
    return s;
}

static bool has_text(tri_graph *g, const char *call, const char *text) {
    if (!g || g->status) return false;
    if (!text) graph_mistake(g, "%s: its text is a null pointer", call);
    return text != NULL;
}

void tri_strategy(tri_graph *g, const char *pattern, const char *factors) {
    if (has_text(g, "tri_strategy", factors))
        put_scope(g, "tri_strategy", pattern, placed(g, SETTING_STRATEGY, factors));
}

void tri_stage(tri_graph *g, const char *pattern, int stage) {
    if (g && !g->status && !stage_is(stage))
        graph_mistake(g, "tri_stage: stage %d; from 0 to %d", stage, STAGE_MOST - 1);
    if (!g || g->status) return;
    struct graph_setting s = placed(g, SETTING_STAGE, NULL);
    s.value = stage;
    put_scope(g, "tri_stage", pattern, s);
}

static tri_tensor *put_tensor(tri_tensor *t, const char *call, enum setting_kind kind,
                              const char *text) {
    tri_graph *g = tri_graph_of(t);
    if (!has_text(g, call, text)) return t;
    struct graph_setting s = placed(g, kind, text);
    s.pattern = t->node->name;
    s.value = kind == SETTING_LAYOUT ? t->index : 0;
    graph_put_setting(g, s);
    return t;
}

tri_tensor *tri_shard(tri_tensor *t, const char *tuples) {
    return put_tensor(t, "tri_shard", SETTING_SHARD, tuples);
}

tri_tensor *tri_layout(tri_tensor *t, const char *layout) {
    return put_tensor(t, "tri_layout", SETTING_LAYOUT, layout);
}

void tri_tie(tri_tensor *param, const char *other_name) {
    tri_graph *g = tri_graph_of(param);
    if (g && !g->status)
        graph_put_setting(g, (struct graph_setting){.kind = SETTING_TIE, .pattern = other_name,
                                                    .param = param});
}

static double setting(const tri_node *n, enum setting_kind kind, double otherwise) {
    for (size_t i = n->graph->n_settings; i-- > 0;) {
        const struct graph_setting *s = &n->graph->setting[i];
        if (s->kind == kind && !fnmatch(s->pattern, source_name(n), 0)) return s->value;
    }
    return otherwise;
}

bool param_frozen(const tri_node *n) { return setting(n, SETTING_FREEZE, 0) > 0; }
int param_bucket(const tri_node *n) { return (int)setting(n, SETTING_BUCKET, 0); }
double param_lr_factor(const tri_node *n) { return setting(n, SETTING_LR, 1); }
double param_decay(const tri_node *n, double otherwise) {
    return setting(n, SETTING_DECAY, otherwise);
}
