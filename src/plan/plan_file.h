/* SPDX-License-Identifier: Apache-2.0
 * Plan files: how a run is divided, as a text that people read, compare and edit. The part [grain]
 * decides the bits of a run, [placement] does not. Each part ends with the hash of its lines. A
 * hash that does not fit its lines means that the plan was edited, and is no mistake. */
#ifndef PLAN_PLAN_FILE_H
#define PLAN_PLAN_FILE_H

#include "graph/graph.h"

#define PLAN_MOST_WORKERS 128
#define PLAN_MOST_THREADS 1024

enum plan_part { PLAN_GRAIN, PLAN_PLACEMENT, PLAN_PARTS };

/* In the order in which they are written. Many are options, of the same names (option_rows.h). */
enum plan_key {
    PLAN_MODEL = 1, /* of the zoo */
    PLAN_GRAPH, /* the hash of any other network, without mesh and strategies */
    PLAN_BATCH,
    PLAN_LANES,
    PLAN_MESH, /* "none" if there is none */
    PLAN_UNSET,
    PLAN_AMP,
    PLAN_AMP_TYPE,
    PLAN_CONV,
    PLAN_MATH,
    PLAN_WIRE, /* this and the next: only if something is rounded */
    PLAN_WIRE_NODES,
    PLAN_STRATEGY, /* this and the next four: any number of lines, the last that fit win */
    PLAN_LAYOUT,
    PLAN_LAYOUT_OF,
    PLAN_SHARD,
    PLAN_USE,
    PLAN_WORKERS, /* this and the next: where the run is placed */
    PLAN_THREADS,
    PLAN_BUCKET,
    PLAN_STAGES,
    PLAN_CUTS,
    PLAN_PIPELINE,
    PLAN_CHUNKS,
    PLAN_STEAL,
    PLAN_ZERO,
    PLAN_RECOMPUTE,
    PLAN_PREDICTED, /* nanoseconds of a step, as `plan find` has predicted */
    PLAN_HASH,
    PLAN_KEYS
};

struct plan_line {
    enum plan_key key;
    const char *value;
    int number; /* of the line in the file */
    bool maybe; /* a strategy that need not match anything */
};

struct plan_file {
    const char *name;
    struct plan_line *line; /* without hashes */
    size_t n, capacity;
    bool hashed[PLAN_PARTS]; /* the file has a hash */
    uint64_t hash[PLAN_PARTS];
    struct arena arena;
};

/* The plan in a file. A process reads a file once, and again only if `afresh` is set and the file
 * has changed. All values are checked. Is not freed. Null with a message. */
const struct plan_file *plan_read(const char *path, bool afresh);
/* Needs no plan_free after a failure. */
tri_status plan_parse(const char *name, const char *text, size_t bytes, struct plan_file *out);
void plan_free(struct plan_file *p);

/* The plan of a network with these options, without its numbers. g: as the user wrote it, of the
 * run's batch. */
tri_status plan_make(const tri_graph *g, const tri_options *o, struct plan_file *out);
tri_status plan_add_number(struct plan_file *p, enum plan_key key, int64_t n);
/* The whole file. */
void plan_print(const struct plan_file *p, struct text *out);
bool plan_line_equal(const struct plan_line *a, const struct plan_line *b);
/* The lines, of the keys from `first` to before `end`, that only one of two plans has, after - or
 * +; or that their strategies have another order. Returns false if nothing differs. */
bool plan_differ(const struct plan_file *a, const struct plan_file *b, enum plan_key first,
                 enum plan_key end, struct text *out);
/* "batch 8", "maybe strategy *.c_fc out=model" */
void plan_print_line(const struct plan_line *l, struct text *out);

/* The line of a key that comes once; null: there is none. */
const struct plan_line *plan_find(const struct plan_file *p, enum plan_key key);
int64_t plan_number(const struct plan_file *p, enum plan_key key); /* 0: there is none */
#define PLAN_DIGITS 17
/* The hash of a part's lines, however they are spaced; in hexadecimal digits. */
char *plan_hash(const struct plan_file *p, enum plan_part part, char digits[PLAN_DIGITS]);
bool plan_is_edited(const struct plan_file *p, enum plan_part part);

/* Sets the options that the plan states. What decides bits must not be given otherwise; of the rest
 * the options win. Options point to the plan's texts then. Strategies are not options: they are
 * read where strategies are (strategy.h), from tri_options.plan. */
tri_status plan_take(const struct plan_file *p, tri_options *o);
/* Checks the texts of strategies, as far as they can be read without a network. */
tri_status plan_check_strategies(const struct plan_file *p);
/* Whether the plan is for this network. g: as the user wrote it, of the plan's batch. */
tri_status plan_check_network(const struct plan_file *p, const tri_graph *g);
/* Of a network, if its plan says how it is recomputed: the network's own wishes do not count. */
void plan_replace_recompute(const struct plan_file *p, tri_graph *g);

#endif
