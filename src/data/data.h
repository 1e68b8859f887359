/* SPDX-License-Identifier: Apache-2.0
 * The seam between where samples come from and who uses them. A source fills in a tri_data;
 * tri_data_open has a table of those that can be named. */
#ifndef DATA_DATA_H
#define DATA_DATA_H

#include "base/base.h"

#define DATA_MAX_SIZE (INT64_C(1) << 48) /* what can be shuffled */

/* What a source can tell besides; any of it may be missing. */
struct data_about {
    int64_t classes; /* labels are below it; 0: not known */
    const char *(*class_name)(const void *user, int64_t label);
    int64_t (*label)(const void *user, int64_t index); /* quickly, without the sample */
    /* Reads all of a sample, and fails if there is anything wrong with it. Any thread may call. */
    tri_status (*check)(void *user, int64_t index);
    void (*describe)(void *user, struct text *out); /* lines */
};

struct tri_data {
    struct arena arena; /* name, fields and their names */
    const char *name;   /* for messages */
    int64_t size;       /* samples of an epoch, from 1 to DATA_MAX_SIZE */
    const tri_field *fields;
    int n_fields;
    tri_fill *fill;
    void *user;
    void (*free_user)(void *user); /* or null */
    struct data_about about;
    bool sequential;
    int64_t next_index, next_epoch; /* sequential: the sample that may be asked for */
};

/* What a fill function returns that has set the message itself. */
#define DATA_TOLD INT32_MIN

/* tri_data_new for a source that owns its state: free_user(user) is called by tri_data_free, and
 * also on failure. */
tri_data *data_make(const char *name, int64_t size, const tri_field *fields, int n, tri_fill *fill,
                    void *user, bool sequential, void (*free_user)(void *user));

/* ---- what stands behind a source's colon: "REST,key=value,key=value" ---- */

struct data_option {
    const char *key;
    enum { DATA_INT, DATA_FLOAT, DATA_TEXT } kind;
    void *value; /* int64_t, double or const char *; keeps what it holds if not given */
};

/* Cuts `options` (which is written to) into values for the known keys; texts point into it.
 * `spec` stands in messages. */
tri_status data_parse_options(const char *spec, char *options, const struct data_option *known,
                              int n);

/* *out: whether text is `yes`; it stays if text is null, and fails if text is not `no` either. */
tri_status data_choose(const char *spec, const char *key, const char *text, const char *no,
                       const char *yes, bool *out);

/* What an opener is given. */
struct data_source {
    const char *spec; /* the whole, for messages */
    const char *rest; /* before the first comma; "" if the kind takes none */
    char *options;    /* what data_parse_options takes; may be "" */
    const tri_graph *graph; /* or null */
    uint64_t seed;
    const char *tokenizer; /* or null */
};

/* tri_data_open with the tokenizer for texts that do not name one, as token_open takes it, or null. */
tri_data *data_open(const char *spec, const tri_graph *g, uint64_t seed, const char *tokenizer);

/* ---- synthetic data: a pure function of seed, field name and index ---- */

/* Uniform in [0, below), which has n elements. Where it is 0, floats are standard normal, and others
 * 0 or 1. */
tri_data *data_synthetic(const tri_field *fields, const int64_t *below, int n, int64_t size,
                         uint64_t seed);
/* The same with the inputs of a graph for fields. */
tri_data *data_synthetic_for_graph(const tri_graph *g, int64_t size, uint64_t seed);
#define DATA_SYNTHETIC_SIZE 65536

#endif
