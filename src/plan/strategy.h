/* SPDX-License-Identifier: Apache-2.0
 * What the user asked of a mesh: strategies by pattern (tri_strategy, --strategy), tuples at an
 * operator (tri_shard), layouts of tensors (tri_layout). */
#ifndef PLAN_STRATEGY_H
#define PLAN_STRATEGY_H

#include "base/nearest.h"
#include "plan/factors.h"

/* How nodes that no strategy mentions are split (--unset). */
enum unset { UNSET_FOLLOW, UNSET_BATCH, UNSET_WHOLE };

/* What one node does along one axis of the mesh. ASK_TOO_MUCH: nothing, as the factor that `maybe`
 * names has fewer places than seats. */
struct ask {
    enum { ASK_NOTHING, ASK_WHOLE, ASK_FACTOR, ASK_LAYOUT, ASK_TOO_MUCH } kind;
    uint8_t factor;
    int dim;          /* of a layout: the dimension of the result */
    int64_t outer; /* the factor's places are so many blocks, each of which is split; usually 1 */
    const char *from; /* for messages: net.c:12: strategy "*.c_fc" "out=model" */
    bool maybe;       /* nothing is asked if the node cannot be split so */
};

struct strategies {
    struct mesh mesh; /* n is 0: no mesh */
    enum unset unset;
    bool forward; /* of an evaluation: what lines `use` say of a backward pass is left out, and what
                   * does not fit */
    int64_t tuple_parts; /* the most that tuples ask for; 0: there are none */
    struct strategy_node *node; /* by name */
    size_t n_nodes, node_capacity;
    struct strategy_layout *layout; /* later ones win */
    size_t n_layouts, layout_capacity;
    struct strategy_line *use; /* later ones win */
    size_t n_uses, use_capacity;
    struct arena arena;
};

/* Reads --parallel, the mesh and all strategies of the network and the options, and checks them
 * against the network as it was written, before any pass. Patterns and axes that nothing uses are
 * errors. Needs no strategies_free after a failure. */
tri_status strategies_make(const tri_graph *model, const tri_options *o, struct strategies *out);
void strategies_free(struct strategies *s);
/* A ready strategy that splits something of the network over --mesh model=SEATS; null: none. */
const char *strategies_fitting(const tri_graph *model, const tri_options *o, int64_t seats);
/* The same checks alone. */
tri_status strategies_check(const tri_graph *model, const tri_options *o);

/* What was asked of the node along each axis. The node may be of any graph that passes made of the
 * model: it is found by its name. TRI_USAGE: it has become too small, as a lane has fewer samples
 * than the batch. */
tri_status strategies_ask(const struct strategies *s, const tri_node *n, const struct factors *f,
                          struct ask ask[MESH_MOST_AXES]);

/* The same without the check; false: nothing was asked. */
bool strategies_find(const struct strategies *s, const tri_node *n,
                     struct ask ask[MESH_MOST_AXES]);

/* The line `use` about this node of a lane's graph, which says all about it; null: none. Marks all
 * lines that name it. */
const struct strategy_line *strategies_use(const struct strategies *s, const tri_node *n,
                                           bool *seen);

/* Adds the layout of t, a result of a node, along axes of which nothing else is said. */
void strategies_ask_layout(const struct strategies *s, const tri_tensor *t,
                           struct ask ask[MESH_MOST_AXES]);

/* A mesh splits what lanes compute. Refuses strategies and layouts that name only operators outside
 * of the lanes; what passes have removed does not count. lane: null: there are none. */
tri_status strategies_check_lane(const struct strategies *s, const tri_graph *whole,
                                 const tri_graph *lane);

/* The layout asked for tensor t: for each axis a dimension, or -1 where it is whole. False: no
 * layout was asked for. */
bool strategies_layout(const struct strategies *s, const tri_tensor *t, int dim[MESH_MOST_AXES]);

/* The public name of a factor of the node (tri_op.names), for strategies and messages; the factor
 * of a name, 0: the node has none. */
const char *factor_name(const tri_node *n, const struct factors *f, uint8_t factor);
uint8_t factor_named(const tri_node *n, const struct factors *f, const char *name);
/* Whether a factor of any operator can have this name. */
bool factor_is_name(const char *name);

/* Offers a name and its scopes, or each piece of it, as what a mistyped pattern may have meant. */
void strategy_offer(struct nearest *near, const char *name, bool pieces, bool scopes);

/* What every row calls its factors, a line per row, for its first example; the caller frees it.
 * Null with a message. */
char *factors_list(void);

#endif
