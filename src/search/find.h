/* SPDX-License-Identifier: Apache-2.0
 * Finds plans for a run: lists those that it may have, plans the memory of each, and predicts what
 * a step takes. What the options say is kept. */
#ifndef SEARCH_FIND_H
#define SEARCH_FIND_H

#include "run/price.h"
#include "run/trial.h"

enum find_measure { FIND_UNKNOWN, FIND_ALWAYS, FIND_NEVER };
/* The setter of an option, of an enum find_measure. */
const char *find_measure_word(void *at, const char *value);

struct find_ask {
    int workers, threads; /* given; 0: searched. One worker of one host is one process */
    struct crew_size size;   /* given: spares, audits, the most workers; hosts, and their weights,
                              * 0: as many as there are workers */
    const char *recompute;   /* as it was asked for; nullable */
    const char *cuts;        /* likewise */
    const char *mesh;        /* given, without what operators do along it; nullable */
    bool any;                /* the grain is searched, too: lanes and mesh */
    bool all;                /* no core may idle */
    bool solve;              /* also what could not be better by its bound */
    enum find_measure measure;
    const struct text *keep; /* the machine file, of prices_open */
};

#define FIND_FEW 0.05 /* of the cores: what others may use without a word */

enum found_how {
    FOUND_FITS,
    FOUND_TOO_LARGE,
    FOUND_CUT,    /* by its bound: without waits and moves it would take as long as the best */
    FOUND_REFUSED /* the run does not allow it */
};

struct found {
    struct trial t;
    int workers, threads;
    enum found_how how;
    bool same_bits; /* as with the options as they are */
    tri_run *run;   /* planned; null if it is none that fits */
    bool searched;  /* the split of each operator is found, and is the strategy in the options */
    double gap;     /* of that, at the prices of its operators: others cost less by this part at
                     * most; 0: none does; below 0: not known */
    bool tried;     /* its units have been measured; a few may still be unknown */
    size_t bytes;
    int64_t lanes;
    struct run_price price;
    double bound;     /* seconds; if it is cut */
    const char *note; /* why it is refused */
    size_t order;     /* as it was listed: simple ones are first */
};

struct find {
    tri_run *own; /* as the options say. Not owned */
    struct find_ask ask;
    struct prices *prices;
    struct found *plan; /* those that fit first, the best first of all */
    size_t n, capacity, fit;
    size_t limit;       /* of memory */
    struct price_kinds kinds;
    struct run_price alone; /* of the best plan on one of several hosts; units 0: not known */
    double error;       /* measured over predicted, of the latest such run; 0: there is none */
    double others;      /* seconds of cores that other processes used meanwhile */
    double measured;    /* seconds that it took to measure what was unknown; 0: nothing was */
    struct arena arena;
};

/* own: planned with its data (run_plan_with_data), as one process. Needs find_free in any case. */
tri_status find_plans(tri_run *own, const struct find_ask *ask, struct prices *prices,
                      struct find *out);
void find_free(struct find *f);
/* The file that says how it is divided, with the time that is predicted. */
tri_status find_print(struct found *p, struct text *out);
/* How a mesh splits operators: "megatron", "batch", "searched"; without a mesh "". */
const char *find_way(const struct found *p);
/* "8 lanes, 2 workers x 1 thread, recompute full" */
void find_describe(const struct found *p, struct text *out);
/* Fails with what none of them fits: the least that the run needs, and with which plan. */
tri_status find_none(const struct find *f);
#endif
