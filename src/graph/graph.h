/* SPDX-License-Identifier: Apache-2.0
 * The graph inside: static, arena-owned, SSA. Nodes stand in the order of their construction, which
 * is a topological one. Everything a node is lies in its row (tri_op), its attributes and its
 * inputs; sources (inputs, parameters, states, constants) are nodes without inputs. */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "base/base.h"

/* ---- rows and their schema ---- */

enum attr_kind { ATTR_INT, ATTR_FLOAT, ATTR_INTS, ATTR_TEXT, ATTR_SHAPE, ATTR_TYPE };

struct attr_schema {
    char name[24];
    enum attr_kind kind;
    bool has_default;
    char text[64];  /* of the default */
    tri_attr value; /* the default */
};

#define MAX_ATTRS 12

struct op_entry {
    const tri_op *op;
    int n_attrs;
    struct attr_schema attr[MAX_ATTRS];
};

const struct op_entry *registry_find(const char *name);
/* The i-th row, built-in ones first; null behind the last. */
const struct op_entry *registry_at(int i);

/* The built-in rows, ended by null (src/ops/table.c). */
extern const tri_op *const ops_table[];

/* ---- the graph ---- */

#define PACK_TEXT 24

struct tri_tensor {
    tri_node *node;
    int index; /* which output of the node */
    int id;    /* dense within the graph */
    tri_spec spec;
    /* How it lies: with a block [n, c / block, ..., block], where dimension 1 is c; with a pack as
     * that says (pack.h); else plain. */
    int block;
    char pack[PACK_TEXT];
};

struct tri_node {
    tri_graph *graph;
    const struct op_entry *entry;
    int id; /* position in the graph */
    int n_in, n_out;
    tri_tensor **in;
    tri_tensor *out;
    tri_attr *attr; /* entry->n_attrs values, in the schema's order */
    const char *name; /* unique in the graph: scope, operator, a number where needed */
    const char *file; /* where the user wrote it; null if not known */
    int line;
    int unit; /* nodes of one number run as one kernel, where the last of them stands; 0: alone */
    bool backward; /* tri_grad made it, or recomputes it for what tri_grad made */
};

struct graph_output {
    const char *name;
    tri_tensor *tensor;
    bool metric;
};

struct graph_update {
    tri_tensor *target, *value, *condition; /* condition may be null */
};

/* A setting of all parameters that match a pattern, or of scopes and operators (recompute, and
 * precision, whose value is a type); a tie has a name for a pattern. */
enum setting_kind {
    SETTING_FREEZE,
    SETTING_LR,
    SETTING_DECAY,
    SETTING_TIE,
    SETTING_RECOMPUTE,
    SETTING_PRECISION
};
struct graph_setting {
    enum setting_kind kind;
    const char *pattern;
    double value;
    tri_tensor *param; /* of a tie */
};

/* A hash table of names. */
struct name_slot {
    const char *name; /* null: free */
    int asked;        /* of a node's name: how often it was wanted */
    tri_node *source; /* of a source's name: who has it */
};
struct names {
    struct name_slot *slot;
    size_t n, capacity;
};

#define GRAPH_MOST_SHORTER 7

/* The same network for samples that are no longer than that. */
struct graph_shorter {
    int64_t length;
    tri_graph *g; /* owned */
};

struct tri_graph {
    struct arena arena;
    int64_t batch;
    int64_t lanes; /* groups of batch statistics are counted per lane; 1 until lanes are chosen */
    tri_node **node;
    size_t n_nodes, node_capacity;
    int n_tensors;
    struct graph_output *output;
    size_t n_outputs, output_capacity;
    struct graph_update *update;
    size_t n_updates, update_capacity;
    struct graph_setting *setting;
    size_t n_settings, setting_capacity;
    tri_tensor *loss;
    double lr;            /* what tri_update was told, for a run that is told nothing; 0: nothing */
    const char *schedule;
    bool in_place;        /* a result may take the place of an input that nobody needs any more */
    struct text scope; /* "layer1.0" */
    const char *file;  /* what new nodes get as their place; null: what tri_here said */
    int line;
    bool backward; /* what new nodes get as their mark */
    struct names names;   /* of nodes */
    struct names sources; /* what they are told by */
    const char *spec;     /* of a model of the zoo: its name and the arguments that differ from
                           * their defaults, in an order of their own; else null */
    tri_status status; /* the first mistake */
    const char *error;
    struct graph_shorter shorter[GRAPH_MOST_SHORTER]; /* the longest first */
    int n_shorter;
    tri_node *poison_node; /* what builders return after a mistake */
    tri_tensor *poison;
};

/* Sticks the first mistake to the graph. */
void graph_fail(tri_graph *g, tri_status code, const char *fmt, ...) TRI_PRINTF(3, 4);
/* The same for what the user wrote wrongly: with the place, as far as it is known, and the scope. */
void graph_mistake(tri_graph *g, const char *fmt, ...) TRI_PRINTF(2, 3);

/* Adds a node with all attributes in the schema's order (their texts are copied). name null: made
 * from the scope. Never null: after a mistake it is the poison node. */
tri_node *graph_add(tri_graph *g, const struct op_entry *entry, tri_tensor *const *in, int n,
                    const tri_attr *attrs, const char *name);

/* The types of the outputs anew, after those of the inputs have changed; false after a mistake. */
bool graph_retype(tri_node *n);

/* Carries over what passes have noted at a node's tensors: how they lie. */
void graph_annotate(tri_node *copy, const tri_node *n);
/* Adds n, of this or another graph, with other inputs, attributes and name; its place and what passes
 * have noted are n's. */
tri_node *graph_copy(tri_graph *g, const tri_node *n, tri_tensor *const *in, const tri_attr *attrs,
                     const char *name);
void graph_format_like(tri_tensor *t, const tri_tensor *like);

/* What builders end with: an operator by name, with the attributes given by name. */
tri_tensor *graph_apply(tri_graph *g, const char *op, int n, tri_tensor *const *in, int n_attrs,
                        const tri_attr *attrs);
#define APPLY(op, inputs, ...)                                                              \
    graph_apply(tri_graph_of((inputs)[0]), op, (int)COUNT(inputs), inputs,                  \
                (int)COUNT(((const tri_attr[]){{.name = NULL}, __VA_ARGS__})),              \
                (const tri_attr[]){{.name = NULL}, __VA_ARGS__})
#define INPUTS(...) ((tri_tensor *const[]){__VA_ARGS__})

/* Scope, dot, name; in the arena. Null when memory is out. */
char *graph_scoped(tri_graph *g, const char *name);
/* The name, or with a number behind it if it is taken. Null when memory is out. */
const char *graph_unique(tri_graph *g, const char *name);

/* Input, parameter, state or scalar by what it is told by; null: there is none. */
tri_node *graph_source(const tri_graph *g, const char *name);
bool graph_know_source(tri_graph *g, tri_node *n); /* for graph_add; false: memory is out */

/* An empty graph with the same batch, and lanes. Null: out of memory. */
tri_graph *graph_like(const tri_graph *g);

static inline bool setting_has_value(enum setting_kind kind) {
    return kind == SETTING_LR || kind == SETTING_DECAY;
}

/* Registers an output, update or setting without checks; for passes that copy graphs. */
bool graph_put_output(tri_graph *g, const char *name, tri_tensor *t, bool metric);
bool graph_put_update(tri_graph *g, struct graph_update u);
bool graph_put_setting(tri_graph *g, struct graph_setting s);

/* The graph's nodes become these, numbered anew: some of its own, in an order in which they can run,
 * and all that these, an output or an update need. */
void graph_arrange(tri_graph *g, tri_node *const *order, size_t n);

/* Marks, by tensor number, what is wanted when all is done: named outputs, values and conditions of
 * updates. */
void graph_mark_results(const tri_graph *g, bool *result);

/* Checks all invariants of the representation; a violation is a bug of ours. */
void graph_verify(const tri_graph *g);

const struct graph_output *graph_output_find(const tri_graph *g, const char *name);

/* By what an operator's random numbers are keyed: its name, unless its row has an attribute "key" that
 * is not empty: it then repeats another one of this name. */
const char *node_key(const tri_node *n);

/* Sources are told by the row's name. */
bool node_is(const tri_node *n, const char *op);
int graph_count(const tri_graph *g, const char *op);
bool node_is_param(const tri_node *n);  /* trainable or not */
bool node_is_stored(const tri_node *n); /* param or state */
const char *source_name(const tri_node *n); /* the attribute "name" */
bool node_is_literal(const tri_node *n);      /* its contents stand in the graph */
bool node_runs(const tri_node *n);            /* it computes: no source */
bool node_reads(const tri_node *n, int i);  /* the contents of input i, not only its shape */
bool param_frozen(const tri_node *n);
double param_lr_factor(const tri_node *n);
/* The group's decay, or `otherwise`. */
double param_decay(const tri_node *n, double otherwise);

/* One sample of an input: the batch's shape without its first dimension. */
tri_spec graph_sample_spec(const tri_spec *batch);
const tri_attr *node_attr(const tri_node *n, const char *name); /* null if the row has none */
bool attr_equal(enum attr_kind kind, const tri_attr *a, const tri_attr *b); /* bit for bit */
bool graph_trains(const tri_graph *g);        /* it updates parameters itself */
bool graph_has_gradients(const tri_graph *g); /* or is built for that, at least */
/* Nodes before the first that tri_grad made; all of them if it made none. */
size_t graph_forward(const tri_graph *g);
/* Marks, by node, what tri_grad made and what depends on that. */
void graph_mark_backward(const tri_graph *g, bool *backward);
bool node_any(const tri_node *n, const bool *mark); /* whether any output has the mark, by number */
bool type_is_float(tri_type t);
/* Whether the pattern matches the node's name, or that of a scope it lies in. */
bool node_in_scope(const tri_node *n, const char *pattern);
/* The values of an "array" node, as bytes of its type; false if its text does not hold as many. */
bool array_values(const tri_node *n, void *out);

/* "fc1.matmul (matmul f32[2,3], f32[4,5])", with place before it; for messages. */
void node_describe(const tri_node *n, struct text *out);

/* ---- initial values as text: "normal(0,0.02)" ---- */
char *init_print(struct arena *a, const tri_init *init);
bool init_parse(const char *text, tri_init *init);

#endif
