/* SPDX-License-Identifier: Apache-2.0
 * The graph: static, in SSA form, owned by an arena. Nodes are kept in the order of their
 * construction, which is a topological order. A node's meaning is given by its row (tri_op), its
 * attributes and its inputs. Sources (inputs, parameters, states, constants) are nodes without
 * inputs. */
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

/* One entry of tri_op.names. letter 0: dimension number `place` of an ellipsis, the first is 0. */
struct factor_label {
    uint8_t letter;
    int place;
    char name[16];
};

/* One entry of tri_op.follows: the attribute with this number is the factor's size in the part, its
 * first place, or its extent in the whole. */
struct factor_follow {
    int attr;
    enum { FOLLOW_SIZE, FOLLOW_BEGIN, FOLLOW_EXTENT } what;
    uint8_t letter;
};

#define MAX_LABELS 12
#define MAX_FOLLOWS 6

struct op_entry {
    const tri_op *op;
    int n_attrs, n_labels, n_follows;
    struct attr_schema attr[MAX_ATTRS];
    struct factor_label label[MAX_LABELS];
    struct factor_follow follow[MAX_FOLLOWS];
};

const struct op_entry *registry_find(const char *name);
/* The i-th row, built-in ones first; null after the last. */
const struct op_entry *registry_at(int i);

/* The built-in rows, ended by null (src/ops/table.c). */
extern const tri_op *const ops_table[];

/* ---- meshes ---- */

#define MESH_MOST_AXES 8
#define MESH_MOST_SEATS 1024

/* The seats of one replica along named axes; the last axis varies fastest. n is 0: no mesh. */
struct mesh {
    int n;
    struct mesh_axis {
        char name[16];
        int64_t size;
    } axis[MESH_MOST_AXES];
};

/* Reads "model=4,rows=2", or "4" for one axis without a name. */
tri_status mesh_parse(const char *text, struct mesh *out);
void mesh_print(const struct mesh *m, struct text *out); /* what mesh_parse reads */
bool mesh_equal(const struct mesh *a, const struct mesh *b);
int64_t mesh_seats(const struct mesh *m); /* 1: no mesh */
int mesh_axis(const struct mesh *m, const char *name); /* -1: there is none */
/* Whether a node of this owner concerns the seat at these coordinates. */
bool mesh_takes_part(const int16_t *owner, const int16_t *at);
/* Of `members` members, member m carries the seats s, counted row by row, with
 * s * members / seats == m. Lists those that carry a seat of the owner, in order, and returns how
 * many. */
int mesh_members(const struct mesh *m, const int16_t *owner, int members, uint16_t *out);

/* ---- the graph ---- */

#define PACK_TEXT 24

struct tri_tensor {
    tri_node *node;
    int index; /* which output of the node */
    int id;    /* dense within the graph */
    tri_spec spec;
    /* Its format: with a block [n, c / block, ..., block], where dimension 1 is c; with a pack, the
     * order that pack.h reads from the text; else plain (row-major). */
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
    int unit; /* nodes with one number run as one kernel, in the place of the last; 0: alone */
    bool backward; /* made by tri_grad, or recomputed for a node that is */
    const char *of; /* the name of the forward node whose derivative or copy it is; null: none */
    int stage; /* of the pipeline, from 0; -1: where its inputs are */
    int leg;   /* once a lane is cut into legs (plan/legs.h): which of them computes it */
    /* Once a mesh has been expanded: the coordinates of the seat that computes it, or -1 along the
     * axes whose seats share it; and the move that it is part of, counted from 1. */
    int16_t owner[MESH_MOST_AXES];
    int move;
};

struct graph_output {
    const char *name; /* null: the tensor is for other phases of a step */
    tri_tensor *tensor;
    bool metric;
    int of; /* without a name: the number by which other phases' "given" nodes ask for it */
};

struct graph_update {
    tri_tensor *target, *value, *condition; /* condition may be null */
};

/* A setting of all parameters whose names match a pattern; of scopes and operators for recompute,
 * precision, whose value is a type, stage, and strategy, whose text is "out=model". A tie has a
 * name instead of a pattern; a shard has a node's name and tuples as its text; a layout has a
 * node's name, an output of it as its value, and as its text an axis or - for each dimension. */
enum setting_kind {
    SETTING_FREEZE,
    SETTING_LR,
    SETTING_DECAY,
    SETTING_TIE,
    SETTING_PRECISION,
    SETTING_RECOMPUTE, /* this and what follows changes no bit: graph_print_undivided */
    SETTING_BUCKET,
    SETTING_STAGE,
    SETTING_STRATEGY,
    SETTING_SHARD,
    SETTING_LAYOUT,
    SETTING_USE /* of files of strategies and plans alone */
};
#define BUCKET_MOST 1000 /* the numbers of buckets, from 1 */
static inline bool bucket_is(double number) {
    return number >= 1 && number <= BUCKET_MOST && number == (double)(int)number;
}
#define STAGE_MOST 64
#define LEGS_MOST (3 * STAGE_MOST) /* forward, backward, and weights of each stage */
static inline bool stage_is(double number) {
    return number >= 0 && number < STAGE_MOST && number == (double)(int)number;
}
struct graph_setting {
    enum setting_kind kind;
    const char *pattern;
    double value;
    tri_tensor *param; /* of a tie */
    const char *text;  /* of a strategy, shard or layout */
    const char *file;  /* the same: where the user wrote it; null if not known */
    int line;
};

/* A hash table of names. */
struct name_slot {
    const char *name; /* null: free */
    int asked;        /* nodes: how many have asked for this name */
    tri_node *source; /* sources: the node that has this name */
};
struct names {
    struct name_slot *slot;
    size_t n, capacity;
};

/* A call of tri_grad, which a change of the network's types repeats (plan/replay.h). */
struct graph_gradient {
    tri_tensor *y, *first; /* first: of the nodes that the call made */
    int n;
    tri_tensor **pair; /* wrt[0], out[0], wrt[1], ...; every out is a tensor of its own */
};

#define GRAPH_MOST_SHORTER 7

/* The same network for samples of at most this length. */
struct graph_shorter {
    int64_t length;
    tri_graph *g; /* owned */
};

struct tri_graph {
    struct arena arena;
    int64_t batch;
    int64_t lanes; /* groups of batch statistics are counted per lane; 1 until lanes are chosen */
    bool native;   /* 16-bit products are computed by the device's library (--math native) */
    struct mesh mesh;
    tri_node **node;
    size_t n_nodes, node_capacity;
    int n_tensors;
    struct graph_output *output;
    size_t n_outputs, output_capacity;
    struct graph_update *update;
    size_t n_updates, update_capacity;
    struct graph_setting *setting;
    size_t n_settings, setting_capacity;
    struct graph_gradient *gradient; /* until types are settled */
    size_t n_gradients, gradient_capacity;
    tri_tensor *loss;
    double lr;            /* from tri_update, for a run whose options set none; 0: none */
    const char *schedule;
    tri_optimizer used;   /* other settings that the graph's own step has; NAN, "": several */
    tri_tensor *scaled;   /* by tri_scale_loss; null: no loss was scaled */
    int legs;             /* that a lane is cut into; 0: it is not cut */
    int handed;           /* with legs: outputs from this number on go from leg to leg */
    int first_item;       /* 1 + the number of its first unit among those of a run, or 0; see
                           * run/items.h */
    bool in_place;        /* a result may take over memory of an input that is not needed later */
    struct text scope; /* "layer1.0" */
    const char *file;  /* recorded in new nodes; null: the file that tri_here recorded */
    int line;
    bool backward; /* recorded in new nodes */
    const char *of; /* the same */
    struct names names;   /* of nodes */
    struct names sources; /* names in files and messages */
    const char *spec;     /* a model of the zoo: its name and the arguments that differ from their
                           * defaults, in a fixed order; else null */
    tri_status status; /* the first mistake */
    const char *error;
    struct graph_shorter shorter[GRAPH_MOST_SHORTER]; /* longest samples first */
    int n_shorter;
    tri_node *poison_node; /* what builders return after a mistake */
    tri_tensor *poison;
};

/* Fails the graph. It keeps the first failure; later ones are ignored. */
void graph_fail(tri_graph *g, tri_status code, const char *fmt, ...) TRI_PRINTF(3, 4);
/* The same for a mistake in the user's code: adds the file and line, if known, and the scope. */
void graph_mistake(tri_graph *g, const char *fmt, ...) TRI_PRINTF(2, 3);

/* The file and line that new nodes and settings record; null: not known. */
const char *graph_place(const tri_graph *g, int *line);

/* Adds a node with all attributes in the schema's order (their texts are copied). Without a name it
 * gets one from scope and operator. Never null: after a mistake it is the poison node. */
tri_node *graph_add(tri_graph *g, const struct op_entry *entry, tri_tensor *const *in, int n,
                    const tri_attr *attrs, const char *name);

/* Infers the outputs' types again, after those of the inputs have changed; false after a
 * mistake. */
bool graph_retype(tri_node *n);

/* Adds a copy of n, from this or another graph, with other inputs, attributes and name. File, line
 * and what passes have recorded are those of n. */
tri_node *graph_copy(tri_graph *g, const tri_node *n, tri_tensor *const *in, const tri_attr *attrs,
                     const char *name);
void graph_format_like(tri_tensor *t, const tri_tensor *like);

/* Adds an operator by name, with attributes by name. Builders end with this call. */
tri_tensor *graph_apply(tri_graph *g, const char *op, int n, tri_tensor *const *in, int n_attrs,
                        const tri_attr *attrs);
#define APPLY(op, inputs, ...)                                                              \
    graph_apply(tri_graph_of((inputs)[0]), op, (int)COUNT(inputs), inputs,                  \
                (int)COUNT(((const tri_attr[]){{.name = NULL}, __VA_ARGS__})),              \
                (const tri_attr[]){{.name = NULL}, __VA_ARGS__})
#define INPUTS(...) ((tri_tensor *const[]){__VA_ARGS__})

/* "scope.name", in the arena. Null when memory is out. */
char *graph_scoped(tri_graph *g, const char *name);
/* The name, with a number appended if it is taken. Null when memory is out. */
const char *graph_unique(tri_graph *g, const char *name);

/* For a copy of a graph: new nodes get the names that they would get in the original. */
void graph_number_like(tri_graph *g, const tri_graph *like);

/* Finds an input, parameter, state or scalar by its name; null: there is none. */
tri_node *graph_source(const tri_graph *g, const char *name);
bool graph_know_source(tri_graph *g, tri_node *n); /* for graph_add; false: memory is out */

/* An empty graph with the same batch, lanes and math. Null: out of memory. */
tri_graph *graph_like(const tri_graph *g);

/* Adds a node's attributes that are not the default, as tri_graph_print has them. */
void graph_print_attrs(const tri_node *n, struct text *out);
/* tri_graph_print without the mesh and the settings from SETTING_RECOMPUTE on. */
char *graph_print_undivided(const tri_graph *g);
/* Whether two such texts, of tri_graph_print, are of networks that differ in more than the batch,
 * the rate and what graph_print_undivided leaves out. Adds the first difference to `how`. */
bool graph_texts_differ(const char *was, const char *is, struct text *how);

static inline bool setting_has_value(enum setting_kind kind) {
    return kind == SETTING_LR || kind == SETTING_DECAY || kind == SETTING_BUCKET ||
           kind == SETTING_STAGE;
}

/* Registers an output, update or setting without checks; for passes that copy graphs. */
bool graph_put_output(tri_graph *g, struct graph_output o);
bool graph_put_update(tri_graph *g, struct graph_update u);
bool graph_put_setting(tri_graph *g, struct graph_setting s);
/* The pairs are copied. */
bool graph_put_gradient(tri_graph *g, struct graph_gradient d);

/* Replaces the graph's list of nodes and renumbers them. `order` holds nodes of this graph in an
 * order in which they can run, and every node that these, an output or an update need. */
void graph_arrange(tri_graph *g, tri_node *const *order, size_t n);
/* Puts the sources before the nodes that run. Fails the graph if memory is out. */
void graph_sources_first(tri_graph *g);

/* Marks, by tensor number, the results of the graph: named outputs, values and conditions of
 * updates. */
void graph_mark_results(const tri_graph *g, bool *result);

/* Removes the mesh and all that says how it splits, also from networks for shorter samples. */
void graph_forget_mesh(tri_graph *g);

/* Checks all invariants of the representation; a violation is a bug and aborts. */
void graph_verify(const tri_graph *g);

const struct graph_output *graph_output_find(const tri_graph *g, const char *name);
/* The one for other phases with this number. */
const struct graph_output *graph_output_of(const tri_graph *g, int of);

/* The name that keys an operator's random numbers: the attribute "key", if the row has one and it
 * is not empty (the node then repeats the operator of that name), else the node's own name. */
const char *node_key(const tri_node *n);

/* Whether the node is of this kind. Passes ask this of sources ("input", "constant") only: facts
 * about operators are in their rows. */
bool node_is(const tri_node *n, const char *kind);
int graph_count(const tri_graph *g, const char *kind); /* nodes of this kind */
bool node_is_param(const tri_node *n);  /* trainable or not */
bool node_is_stored(const tri_node *n); /* param or state */
const char *source_name(const tri_node *n); /* the attribute "name" */
bool node_is_literal(const tri_node *n);   /* the graph holds its contents */
bool node_runs(const tri_node *n);         /* it computes something: not a source */
bool node_reads(const tri_node *n, int i); /* the contents of input i, not only its shape */
bool param_frozen(const tri_node *n);
int param_bucket(const tri_node *n); /* 0: none was asked for */
double param_lr_factor(const tri_node *n);
/* The weight decay set for the parameter, or `otherwise`. */
double param_decay(const tri_node *n, double otherwise);

/* One sample of an input: the batch's shape without its first dimension. */
tri_spec graph_sample_spec(const tri_spec *batch);
const tri_attr *node_attr(const tri_node *n, const char *name); /* null if the row has none */
/* Whether the node reduces the samples of each lane to a row of its own, or spreads such rows: they
 * are as many as the graph has lanes. The samples are dimension 0 of its last input. */
static inline bool node_per_lane(const tri_node *n) {
    const tri_attr *a = node_attr(n, "per_lane");
    return a && a->i;
}
bool graph_per_lane(const tri_graph *g); /* whether any node is such */
bool attr_equal(enum attr_kind kind, const tri_attr *a, const tri_attr *b); /* bit for bit */
bool graph_trains(const tri_graph *g);        /* it updates parameters itself */
bool graph_has_gradients(const tri_graph *g); /* it does so, or contains gradients */
/* How many nodes come before the first that tri_grad made; all if it made none. */
size_t graph_forward(const tri_graph *g);
/* Marks, by node, those that tri_grad made and those that depend on them. */
void graph_mark_backward(const tri_graph *g, bool *backward);
bool node_any(const tri_node *n, const bool *mark); /* whether any output is marked, by number */
bool type_is_float(tri_type t);
/* Whether the pattern matches the node's name or that of a scope it is in. */
bool node_in_scope(const tri_node *n, const char *pattern);
/* The values of an "array" node, as bytes of its type; false if its text does not hold as many. */
bool array_values(const tri_node *n, void *out);

/* For messages: "net.c:12: fc1.matmul (matmul f32[2,3], f32[4,5])". */
void node_describe(const tri_node *n, struct text *out);

/* ---- initial values as text: "normal(0,0.02)" ---- */
char *init_print(struct arena *a, const tri_init *init);
bool init_parse(const char *text, tri_init *init);

#endif
