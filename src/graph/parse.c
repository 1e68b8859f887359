/* SPDX-License-Identifier: Apache-2.0
 * Reads the textual form of a graph. One statement per line; # begins a comment:
 *
 *     graph {batch=64, mesh="model=2"}
 *     %x = input() {name="x", type=f32, shape=[64,2]}
 *     %w = param() {name="fc.weight", shape=[1,2], init="normal(0,0.1)"}
 *     %y = matmul(%x, %w) {trans_b=1} : f32[64,1] @ "fc.matmul"
 *     loss "loss" %l         metric "top1" %m       output "logits" %y
 *     assign %w %v if %c     freeze "layer1.*"      lr "fc.*" 0.1
 *     decay "*.bias" 0       tie "other.weight" %w  rate 0.1 "cosine"
 *     recompute "layer1.*"   precision "fc" f32        backward
 *     strategy "fc.*" "out=model"                     shard "fc.matmul" "(1,2),(2,1)"
 *     layout "fc.weight" 0 "model,-"                  stage "layer[34]" 1
 *
 * Types after the colon and the name after @ are optional; types that are given are checked. At the
 * end of a node, ~3 is its unit, of "fc.matmul" its forward node, stage 1 its stage. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/pack.h"

struct named {
    char *name;
    tri_tensor *tensor;
};

struct parser {
    const char *p, *end;
    const char *file;
    int line;
    tri_graph *g;
    struct named *named;
    size_t n_named, named_capacity;
    char word[256]; /* the last word or string read */
};

#define FAIL(s, ...) (fail_at(s, __VA_ARGS__), false)

static void fail_at(struct parser *s, const char *fmt, ...) TRI_PRINTF(2, 3);
static void fail_at(struct parser *s, const char *fmt, ...) {
    char what[512];
    va_list args;
    va_start(args, fmt);
    base_format_list(what, sizeof what, fmt, args);
    va_end(args);
    graph_fail(s->g, TRI_USAGE, "%s:%d: %s", s->file, s->line, what);
}

static bool no_memory(struct parser *s) {
    graph_fail(s->g, TRI_FAILED, "%s:%d: out of memory", s->file, s->line);
    return false;
}

/* ---- tokens ---- */

static void blanks(struct parser *s) {
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\r')) s->p++;
    if (s->p < s->end && *s->p == '#')
        while (s->p < s->end && *s->p != '\n') s->p++;
}

static bool at_end_of_line(struct parser *s) {
    blanks(s);
    return s->p == s->end || *s->p == '\n';
}

static bool take(struct parser *s, char c) {
    blanks(s);
    if (s->p == s->end || *s->p != c) return false;
    s->p++;
    return true;
}

static bool need(struct parser *s, char c) {
    if (take(s, c)) return true;
    if (at_end_of_line(s)) return FAIL(s, "expected '%c' before the end of the line", c);
    return FAIL(s, "expected '%c', found '%c'", c, isprint((unsigned char)*s->p) ? *s->p : '?');
}

static bool word_char(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-' || c == '+';
}

/* A word of letters, digits and . _ - + (so numbers too). */
static bool word(struct parser *s, const char *what) {
    size_t n = 0;
    blanks(s);
    while (s->p < s->end && word_char(*s->p) && n + 1 < sizeof s->word) s->word[n++] = *s->p++;
    s->word[n] = 0;
    return n || FAIL(s, "expected %s", what);
}

/* A string in double quotes, copied to the arena. */
static const char *quoted(struct parser *s, const char *what) {
    blanks(s);
    if (!take(s, '"')) {
        fail_at(s, "expected %s between double quotes", what);
        return NULL;
    }
    const char *newline = memchr(s->p, '\n', (size_t)(s->end - s->p));
    char *copy = arena_alloc(&s->g->arena, (size_t)((newline ? newline : s->end) - s->p) + 1);
    char *q = copy;
    if (!copy) return NULL;
    while (s->p < s->end && *s->p != '"' && *s->p != '\n') {
        bool escaped = *s->p == '\\' && s->p + 1 < s->end && s->p[1] != '\n';
        if (escaped) s->p++;
        *q++ = escaped && *s->p == 'n' ? '\n' : *s->p;
        s->p++;
    }
    *q = 0;
    return need(s, '"') ? copy : NULL;
}

static bool integer(struct parser *s, int64_t *value) {
    char *end;
    if (!word(s, "a whole number")) return false;
    errno = 0;
    *value = strtoll(s->word, &end, 10);
    return (!*end && !errno) || FAIL(s, "\"%s\" is not a whole number", s->word);
}

static bool number(struct parser *s, double *value) {
    char *end;
    if (!word(s, "a number")) return false;
    *value = base_number(s->word, &end);
    return !*end || FAIL(s, "\"%s\" is not a number", s->word);
}

static bool list(struct parser *s, tri_shape *out) {
    *out = (tri_shape){0};
    if (!need(s, '[')) return false;
    if (take(s, ']')) return true;
    do {
        if (out->rank == TRI_MAX_RANK)
            return FAIL(s, "a list has at most %d numbers", TRI_MAX_RANK);
        if (!integer(s, &out->dim[out->rank++])) return false;
    } while (take(s, ','));
    return need(s, ']');
}

static bool type(struct parser *s, int64_t *out) {
    if (!word(s, "a type")) return false;
    for (int t = TRI_F32; t <= TRI_BOOL; t++)
        if (!strcmp(s->word, tri_type_name((tri_type)t))) {
            *out = t;
            return true;
        }
    return FAIL(s, "\"%s\" is not a type (f32, bf16, f16, i32, i64, u8, bool)", s->word);
}

/* ---- tensors by name ---- */

static struct named *find(struct parser *s, const char *name) {
    for (size_t i = s->n_named; i-- > 0;)
        if (!strcmp(s->named[i].name, name)) return &s->named[i];
    return NULL;
}

static tri_tensor *tensor(struct parser *s) {
    if (!need(s, '%') || !word(s, "a tensor's name")) return NULL;
    struct named *found = find(s, s->word);
    if (!found) fail_at(s, "%%%s is not defined above", s->word);
    return found ? found->tensor : NULL;
}

/* ---- statements ---- */

struct node_text {
    char *result[TRI_MAX_OUTPUTS];
    int n_results;
    const struct op_entry *entry;
    tri_tensor **in;
    size_t n_in, in_capacity;
    tri_attr attr[MAX_ATTRS];
    bool given[MAX_ATTRS];
    tri_spec spec[TRI_MAX_OUTPUTS];
    int n_specs;
    const char *name, *of;
    int64_t block[TRI_MAX_OUTPUTS], unit, stage, leg;
    const char *pack[TRI_MAX_OUTPUTS];
};

/* n_attrs: it has none of this name. Earlier versions called the "way" of a convolution
 * "winograd". */
static int attribute_at(const struct op_entry *e, const char *name) {
    int i = 0;
    while (i < e->n_attrs && strcmp(e->attr[i].name, name)) i++;
    return i < e->n_attrs || strcmp(name, "winograd") ? i : attribute_at(e, "way");
}

static bool attribute(struct parser *s, struct node_text *t) {
    if (!word(s, "an attribute's name")) return false;
    int i = attribute_at(t->entry, s->word);
    if (i == t->entry->n_attrs)
        return FAIL(s, "operator %s has no attribute %s; it has: %s", t->entry->op->name, s->word,
                    t->entry->op->attributes ? t->entry->op->attributes : "none");
    if (t->given[i]) return FAIL(s, "attribute %s is given twice", s->word);
    t->given[i] = true;
    if (!need(s, '=')) return false;
    tri_attr *a = &t->attr[i];
    switch (t->entry->attr[i].kind) {
    case ATTR_INT: return integer(s, &a->i);
    case ATTR_FLOAT: return number(s, &a->f);
    case ATTR_INTS:
    case ATTR_SHAPE: return list(s, &a->list);
    case ATTR_TEXT: return (a->text = quoted(s, "a text")) != NULL;
    case ATTR_TYPE: return type(s, &a->i);
    }
    return false;
}

static bool attributes(struct parser *s, struct node_text *t) {
    for (int i = 0; i < t->entry->n_attrs; i++) t->attr[i] = t->entry->attr[i].value;
    if (take(s, '{') && !take(s, '}')) {
        do {
            if (!attribute(s, t)) return false;
        } while (take(s, ','));
        if (!need(s, '}')) return false;
    }
    for (int i = 0; i < t->entry->n_attrs; i++)
        if (!t->given[i] && !t->entry->attr[i].has_default)
            return FAIL(s, "operator %s: attribute %s must be given", t->entry->op->name,
                        t->entry->attr[i].name);
    return true;
}

static bool inputs(struct parser *s, struct node_text *t) {
    if (!need(s, '(')) return false;
    if (take(s, ')')) return true;
    do {
        if (!ARRAY_GROW(t->in, t->n_in, t->in_capacity)) return no_memory(s);
        if (!(t->in[t->n_in++] = tensor(s))) return false;
    } while (take(s, ','));
    return need(s, ')');
}

/* A format: "/16", channels in blocks of 16, or a pack as text. */
static bool format(struct parser *s, const tri_spec *spec, struct node_text *t) {
    int i = t->n_specs - 1;
    struct pack p;
    blanks(s);
    if (s->p < s->end && *s->p == '"') {
        t->pack[i] = quoted(s, "a pack");
        if (!t->pack[i]) return false;
        const char *why = strlen(t->pack[i]) < PACK_TEXT ? pack_parse(t->pack[i], &spec->shape, &p)
                                                         : "it is too long";
        return !why || FAIL(s, "/\"%s\": %s", t->pack[i], why);
    }
    if (!integer(s, &t->block[i])) return false;
    if (spec->shape.rank > 2 && t->block[i] > 0 && spec->shape.dim[1] % t->block[i] == 0)
        return true;
    return FAIL(s, "/%lld: a block must divide dimension 1, and there must be 3 dimensions or more",
                (long long)t->block[i]);
}

static bool specs(struct parser *s, struct node_text *t) {
    if (!take(s, ':')) return true;
    do {
        int64_t number_of_type;
        if (t->n_specs == TRI_MAX_OUTPUTS) return FAIL(s, "too many types");
        tri_spec *spec = &t->spec[t->n_specs++];
        if (!type(s, &number_of_type) || !list(s, &spec->shape)) return false;
        spec->type = (tri_type)number_of_type;
        if (take(s, '/') && !format(s, spec, t)) return false;
    } while (take(s, ','));
    return true;
}

static bool results(struct parser *s, struct node_text *t) {
    do {
        if (!need(s, '%') || !word(s, "a tensor's name")) return false;
        if (t->n_results == TRI_MAX_OUTPUTS) return FAIL(s, "too many results");
        if (find(s, s->word)) return FAIL(s, "%%%s is defined twice", s->word);
        if (!(t->result[t->n_results++] = arena_copy(&s->g->arena, s->word))) return false;
    } while (take(s, ','));
    return need(s, '=');
}

static bool check_specs(struct parser *s, const struct node_text *t, const tri_node *n) {
    char a[SPEC_TEXT], b[SPEC_TEXT];
    if (t->n_results > n->n_out) /* the last results may be left out */
        return FAIL(s, "operator %s gives %d results, not %d", t->entry->op->name, n->n_out,
                    t->n_results);
    if (t->n_specs && t->n_specs != n->n_out)
        return FAIL(s, "there are %d types for %d results", t->n_specs, n->n_out);
    for (int i = 0; i < t->n_specs && i < t->n_results; i++)
        if (t->spec[i].type != n->out[i].spec.type ||
            !base_shape_equal(&t->spec[i].shape, &n->out[i].spec.shape))
            return FAIL(s, "%%%s is declared as %s, but is %s", t->result[i],
                        base_spec_text(&t->spec[i], a), base_spec_text(&n->out[i].spec, b));
    return true;
}

/* Inputs, parameters, states and scalars need names, each its own; a view has that of another. */
static bool check_source(struct parser *s, const struct node_text *t) {
    const bool view = !strcmp(t->entry->op->name, "view");
    for (int i = 0; i < t->entry->n_attrs && !t->n_in; i++) {
        if (strcmp(t->entry->attr[i].name, "name")) continue;
        if (!*t->attr[i].text) return FAIL(s, "the name is empty");
        if (!view && tri_find(s->g, t->attr[i].text))
            return FAIL(s, "the name \"%s\" is given twice", t->attr[i].text);
    }
    return true;
}

/* What passes have recorded: a forward node, a stage, a leg. */
static bool annotation(struct parser *s, struct node_text *t) {
    if (!word(s, "of, stage, leg, or the end of the line")) return false;
    if (!strcmp(s->word, "of")) return (t->of = quoted(s, "a forward node's name")) != NULL;
    int64_t *to = !strcmp(s->word, "stage") ? &t->stage : !strcmp(s->word, "leg") ? &t->leg : NULL;
    if (!to) return FAIL(s, "expected of, stage or leg, found \"%s\"", s->word);
    if (!integer(s, to)) return false;
    return (*to >= 0 && *to < LEGS_MOST) ||
           FAIL(s, "there is no stage or leg %lld", (long long)*to);
}

static bool node_body(struct parser *s, struct node_text *t) {
    if (!results(s, t) || !word(s, "an operator's name")) return false;
    if (!(t->entry = registry_find(s->word))) return FAIL(s, "there is no operator %s", s->word);
    if (!inputs(s, t) || !attributes(s, t) || !specs(s, t)) return false;
    if (take(s, '@') && !(t->name = quoted(s, "a node's name"))) return false;
    if (!check_source(s, t)) return false;
    if (take(s, '~') && !integer(s, &t->unit)) return false;
    if (t->unit < 0 || t->unit > INT32_MAX) return FAIL(s, "~%lld is no unit", (long long)t->unit);
    while (!at_end_of_line(s) && strchr("osl", *s->p))
        if (!annotation(s, t)) return false;
    tri_node *n = graph_add(s->g, t->entry, t->in, (int)t->n_in, t->attr, t->name);
    if (s->g->status || !check_specs(s, t, n)) return false;
    n->unit = (int)t->unit;
    n->of = t->of;
    n->stage = (int)t->stage;
    if (t->leg >= 0) n->leg = (int)t->leg;
    if (t->leg >= s->g->legs) s->g->legs = (int)t->leg + 1;
    for (int i = 0; i < t->n_specs; i++) {
        n->out[i].block = (int)t->block[i];
        if (t->pack[i]) snprintf(n->out[i].pack, PACK_TEXT, "%s", t->pack[i]);
    }
    for (int i = 0; i < t->n_results; i++) {
        if (!ARRAY_GROW(s->named, s->n_named, s->named_capacity)) return no_memory(s);
        s->named[s->n_named++] = (struct named){t->result[i], &n->out[i]};
    }
    return true;
}

static bool node(struct parser *s) {
    struct node_text t = {.stage = -1, .leg = -1};
    bool ok = node_body(s, &t);
    free(t.in);
    return ok;
}

static bool header_mesh(struct parser *s) {
    const char *axes = quoted(s, "a mesh");
    if (!axes) return false;
    return !mesh_parse(axes, &s->g->mesh) || FAIL(s, "%s", tri_message());
}

static bool header_count(struct parser *s, const char *name, int64_t *out) {
    int64_t value;
    if (!integer(s, &value)) return false;
    if (value < 1 || value > INT32_MAX)
        return FAIL(s, "%s must be from 1 to %d, not %lld", name, INT32_MAX, (long long)value);
    *out = value;
    return true;
}

static bool header(struct parser *s) {
    if (!need(s, '{')) return false;
    do {
        bool ok;
        if (!word(s, "batch, lanes or mesh")) return false;
        bool batch = !strcmp(s->word, "batch"), mesh = !strcmp(s->word, "mesh");
        if (!batch && !mesh && strcmp(s->word, "lanes"))
            return FAIL(s, "\"%s\" is none of batch, lanes and mesh", s->word);
        if (!need(s, '=')) return false;
        if (mesh)
            ok = header_mesh(s);
        else
            ok = header_count(s, batch ? "batch" : "lanes", batch ? &s->g->batch : &s->g->lanes);
        if (!ok) return false;
    } while (take(s, ','));
    if (s->g->lanes > s->g->batch)
        return FAIL(s, "%lld lane(s) for a batch of %lld", (long long)s->g->lanes,
                    (long long)s->g->batch);
    return need(s, '}');
}

static bool output(struct parser *s, bool loss, bool metric) {
    int of, length = 0;
    const char *name = quoted(s, "a name");
    tri_tensor *t = name ? tensor(s) : NULL;
    if (!t) return false;
    if (loss)
        tri_loss(t);
    else if (metric)
        tri_metric(t, name);
    else if (sscanf(name, "=%9d%n", &of, &length) != 1 || name[length] || of < 0)
        tri_output(t, name);
    else if (graph_output_of(s->g, of)) /* "=13": for other phases of a step */
        return FAIL(s, "there are two outputs named \"=%d\"", of);
    else
        graph_put_output(s->g, (struct graph_output){.tensor = t, .of = of});
    return !s->g->status;
}

static bool read_loss(struct parser *s) { return output(s, true, false); }
static bool read_metric(struct parser *s) { return output(s, false, true); }
static bool read_output(struct parser *s) { return output(s, false, false); }

static bool read_assign(struct parser *s) {
    tri_tensor *target = tensor(s), *value = target ? tensor(s) : NULL, *condition = NULL;
    if (!value) return false;
    if (!at_end_of_line(s)) {
        if (!word(s, "\"if\" or the end of the line")) return false;
        if (strcmp(s->word, "if")) return FAIL(s, "expected \"if\", found \"%s\"", s->word);
        if (!(condition = tensor(s))) return false;
    }
    tri_assign_if(target, value, condition);
    return !s->g->status;
}

static bool setting(struct parser *s, enum setting_kind kind) {
    struct graph_setting set = {.kind = kind, .value = 1};
    if (!(set.pattern = quoted(s, "a pattern"))) return false;
    if (kind == SETTING_TIE) {
        if (!(set.param = tensor(s))) return false;
        if (!node_is_param(set.param->node)) return FAIL(s, "only parameters can be tied");
    } else if (setting_has_value(kind) && !number(s, &set.value)) {
        return false;
    } else if (kind == SETTING_BUCKET && !bucket_is(set.value)) {
        return FAIL(s, "a bucket's number is from 1 to %d", BUCKET_MOST);
    } else if (kind == SETTING_STAGE && !stage_is(set.value)) {
        return FAIL(s, "a stage's number is from 0 to %d", STAGE_MOST - 1);
    } else if (kind == SETTING_PRECISION) {
        int64_t t;
        if (!type(s, &t)) return false;
        if (!type_is_float((tri_type)t))
            return FAIL(s, "\"%s\" is no floating-point type", s->word);
        set.value = (double)t;
    }
    if (kind == SETTING_LAYOUT) {
        int64_t index;
        if (!integer(s, &index)) return false;
        if (index < 0 || index >= TRI_MAX_OUTPUTS)
            return FAIL(s, "an operator has no result %lld", (long long)index);
        set.value = (double)index;
    }
    if (kind >= SETTING_STRATEGY && !(set.text = quoted(s, "what is asked for"))) return false;
    if (kind >= SETTING_STAGE) {
        set.file = s->file;
        set.line = s->line;
    }
    return graph_put_setting(s->g, set);
}

/* The learning rate and schedule given to tri_update; 0 and "": none. */
static bool read_rate(struct parser *s) {
    const char *schedule;
    if (!number(s, &s->g->lr)) return false;
    if (!(s->g->lr >= 0)) return FAIL(s, "a learning rate is at least 0");
    if (!(schedule = quoted(s, "a schedule, or \"\""))) return false;
    s->g->schedule = *schedule ? schedule : NULL;
    return true;
}

/* tri_grad made the nodes between "backward" and "forward", or the end. */
static bool read_backward(struct parser *s) {
    if (s->g->backward) return FAIL(s, "\"backward\" within \"backward\"");
    return s->g->backward = true;
}

static bool read_forward(struct parser *s) {
    if (!s->g->backward) return FAIL(s, "\"forward\" without \"backward\" before it");
    s->g->backward = false;
    return true;
}

/* gradient %y %first, %wrt %out, ...: a call of tri_grad, and the first node that it made. */
static bool read_gradient(struct parser *s) {
    struct graph_gradient d = {.y = tensor(s)};
    tri_tensor **pair = NULL;
    size_t n = 0, capacity = 0;
    bool ok = d.y && (d.first = tensor(s));
    while (ok && take(s, ','))
        for (int k = 0; k < 2 && ok; k++) {
            ok = ARRAY_GROW(pair, n, capacity) || no_memory(s);
            ok = ok && (pair[n++] = tensor(s));
        }
    for (size_t i = 0; i <= n && ok; i += 2) {
        const tri_node *made = i ? pair[i - 1]->node : d.first->node;
        if (!made->backward) ok = FAIL(s, "tri_grad did not make %s", made->name);
    }
    d.n = (int)(n / 2);
    d.pair = pair;
    ok = ok && graph_put_gradient(s->g, d);
    free(pair);
    return ok;
}

static bool read_freeze(struct parser *s) { return setting(s, SETTING_FREEZE); }
static bool read_lr(struct parser *s) { return setting(s, SETTING_LR); }
static bool read_decay(struct parser *s) { return setting(s, SETTING_DECAY); }
static bool read_tie(struct parser *s) { return setting(s, SETTING_TIE); }
static bool read_recompute(struct parser *s) { return setting(s, SETTING_RECOMPUTE); }
static bool read_precision(struct parser *s) { return setting(s, SETTING_PRECISION); }
static bool read_bucket(struct parser *s) { return setting(s, SETTING_BUCKET); }
static bool read_stage(struct parser *s) { return setting(s, SETTING_STAGE); }
static bool read_strategy(struct parser *s) { return setting(s, SETTING_STRATEGY); }
static bool read_shard(struct parser *s) { return setting(s, SETTING_SHARD); }
static bool read_layout(struct parser *s) { return setting(s, SETTING_LAYOUT); }

static const struct {
    const char *word;
    bool (*read)(struct parser *s);
} statements[] = {
    {"loss", read_loss},         {"metric", read_metric},     {"output", read_output},
    {"assign", read_assign},     {"freeze", read_freeze},     {"lr", read_lr},
    {"decay", read_decay},       {"tie", read_tie},           {"rate", read_rate},
    {"backward", read_backward}, {"forward", read_forward},   {"gradient", read_gradient},
    {"recompute", read_recompute}, {"precision", read_precision},
    {"bucket", read_bucket},       {"stage", read_stage},
    {"strategy", read_strategy}, {"shard", read_shard},       {"layout", read_layout},
};

static bool statement(struct parser *s) {
    if (*s->p == '%') return node(s);
    if (!word(s, "a statement: %name = operator(...), loss, metric, output, assign, freeze, lr, "
                 "decay, tie, recompute, precision, bucket, stage, strategy, shard, layout, rate, "
                 "backward, forward or gradient"))
        return false;
    for (size_t i = 0; i < COUNT(statements); i++)
        if (!strcmp(statements[i].word, s->word)) return statements[i].read(s);
    return FAIL(s, "there is no statement \"%s\"", s->word);
}

static bool lines(struct parser *s) {
    bool begun = false;
    for (; s->p < s->end; s->line++) {
        s->g->line = s->line;
        if (!at_end_of_line(s)) {
            if (!begun) {
                if (!word(s, "\"graph {batch=N}\"")) return false;
                if (strcmp(s->word, "graph"))
                    return FAIL(s, "the first line must be \"graph {batch=N}\"");
                begun = true;
                if (!header(s)) return false;
            } else if (!statement(s)) {
                return false;
            }
            if (!at_end_of_line(s)) return FAIL(s, "unexpected text at the end of the line");
        }
        if (s->p < s->end) s->p++;
    }
    return begun || FAIL(s, "there is no \"graph {batch=N}\"");
}

tri_graph *tri_graph_parse(const char *text, size_t bytes, const char *name) {
    struct parser s = {.p = text, .end = text + bytes, .line = 1};
    s.g = tri_graph_new(1);
    if (!s.g) return NULL;
    s.file = s.g->file = arena_copy(&s.g->arena, name);
    lines(&s);
    free(s.named);
    if (s.g->arena.failed) graph_fail(s.g, TRI_FAILED, "out of memory for the graph %s", name);
    s.g->file = NULL;
    s.g->backward = false;
    return s.g;
}
