/* SPDX-License-Identifier: Apache-2.0
 * Shared by the files that read strategies, or patterns like theirs. */
#ifndef PLAN_STRATEGY_INSIDE_H
#define PLAN_STRATEGY_INSIDE_H

#include "plan/plan_file.h"
#include "plan/strategy.h"
#include "plan/use.h"

/* One of "batch=data,out/3=model". */
struct strategy_part {
    const char *name;
    int64_t outer;
    int64_t extent; /* of a use: the parts of a block; 0: its places */
    int axis; /* -1: whole */
    bool used;
};

/* A setting of the network, or a line of a file. */
struct strategy_line {
    enum setting_kind kind; /* of strategy, shard, layout, use */
    const char *pattern;
    bool exact;             /* the pattern is a node's name */
    bool maybe;             /* it need not match anything */
    bool used;
    int output;             /* of a layout */
    const char *text;
    const char *from;       /* for messages */
    const char *place;      /* "net.c:12: ", or "" */
    struct strategy_part *part;
    int n_parts;
};

struct strategy_lines {
    struct strategy_line *line;
    size_t n, capacity;
    struct arena *arena;
    struct mesh mesh;      /* of files; n is 0: none says */
    const char *mesh_from; /* "megatron:3" */
    struct mesh plan_mesh;      /* of a plan; n is 0: it says that there is none */
    const char *plan_mesh_from; /* "plan.txt:4"; null: there is no plan, or it does not say */
};

/* Everything that network and options say, in the order in which later lines win. */
tri_status strategy_lines_read(const tri_graph *g, const tri_options *o,
                               struct strategy_lines *out);
tri_status strategy_lines_add(struct strategy_lines *all, struct strategy_line l);
/* Replaces the lines by those of the plan, which must contain them, in the same order. */
tri_status strategy_lines_of_plan(const struct plan_file *p, struct strategy_lines *all);
/* Reads "batch=data,out/3=model". Without a mesh any axis is right. */
tri_status strategy_line_parse(struct strategy_lines *all, struct strategy_line *l,
                               const struct mesh *m);
#define USE_IS_WHOLE "-"
#define USE_IS_FORM "form" /* the node is rebuilt; lines for the nodes of its form follow */
/* Fails: "net.c:12: strategy "*.c_fc" "out=modle": " and what is wrong. */
tri_status strategy_fail(const struct strategy_line *l, const char *fmt, ...) TRI_PRINTF(2, 3);
/* Fails: "net.c:9: fc.matmul (matmul f32[2,3], ...): ", what is wrong, the line and the mesh. */
tri_status strategy_fail_at(const struct strategy_line *l, const struct mesh *m, const tri_node *n,
                            const char *fmt, ...) TRI_PRINTF(4, 5);
/* Fails: no scope or operator, or tensor, matches the line's pattern; names the nearest. backward:
 * the nodes that it cannot mean; null: none. */
tri_status strategy_unmatched(const struct strategy_line *l, const tri_graph *g,
                              const bool *backward);
/* Takes the lines `use`, and marks their axes. The nodes that they name are those of the lanes, of
 * which the second checks that there are all: seen is by line. */
tri_status uses_keep(const struct strategy_lines *all, struct strategies *s, bool *used);
tri_status uses_check(const struct strategies *s, const bool *seen, const tri_graph *lane);
/* The uses of a node, along all axes, by a line `use`; of a form they are whole. f: null: the node
 * has no factors. */
tri_status use_line_read(const struct strategy_line *l, const struct mesh *m, const tri_node *n,
                         const struct factors *f, struct use use[MESH_MOST_AXES]);
bool use_line_is_form(const struct strategy_line *l);
/* What follows the name in such a line. */
void use_line_print(const tri_node *n, const struct factors *f, const struct mesh *m,
                    const struct use use[MESH_MOST_AXES], struct text *out);
/* Whether the pattern, in which * is any number, is the node's name. */
bool use_line_names(const char *pattern, const char *name);
/* The names of the node's factors that have at least so many places and can be split:
 * "rows (64), out (512)"; "none". */
void strategy_legal(const tri_node *n, const struct factors *f, int64_t places, struct text *out);
bool strategy_can_split(const tri_node *n, const struct factors *f, uint8_t factor);
/* All factors of the node, each once, in the order of its operands; returns their number. */
int strategy_factors(const struct factors *f, uint8_t factor[MAX_FACTORS]);

/* A node's tuples. */
struct tuples {
    const struct strategy_line *line;
    const tri_node *node;
    int n;
    struct {
        uint8_t factor;
        int64_t count;
    } part[TRI_MAX_RANK * 4]; /* the device matrix */
    int n_outputs;
    int64_t output[TRI_MAX_OUTPUTS][TRI_MAX_RANK];
};

/* Checks the text alone, without a node. */
tri_status tuples_parse(const struct strategy_line *l);
tri_status tuples_read(const struct strategy_line *l, const struct mesh *m, const tri_node *n,
                       const struct factors *f, struct tuples *out);
/* Makes the axes of a mesh that is a number, or checks that those of the mesh suit all tuples. */
tri_status tuples_refine(const struct tuples *all, size_t n, struct mesh *m);
/* Marks the axes of part i. */
void tuples_axes(const struct tuples *t, int i, const struct mesh *m, bool axes[MESH_MOST_AXES]);
/* The layout of output k: a dimension or -1 for each axis. */
tri_status tuples_output(const struct tuples *t, int k, const struct factors *f,
                         const struct mesh *m, int dim[MESH_MOST_AXES]);

#endif
