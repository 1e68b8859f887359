/* SPDX-License-Identifier: Apache-2.0
 * A source of data, as named in --data NAME:REST,key=value,key=value. */
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include "data/data.h"

/* What a source opens. */
struct data_spec {
    const char *spec; /* all of it, for messages */
    const char *rest; /* before the first comma; "" if the source takes none */
    char *options;    /* for data_parse_options, which modifies it; may be "" */
    const tri_graph *graph; /* nullable */
    uint64_t seed;
    const char *tokenizer; /* nullable */
    char *prepared; /* nullable: "key=value,key=value" of an earlier run's data; is modified */
};

/* Each source defines one and adds it to the table in sources.c. */
struct data_source {
    const char *name;
    const char *rest; /* the word for REST, as in "directory"; null: there is none */
    const char *help; /* all options, on one line */
    tri_data *(*open)(const struct data_spec *spec);
    bool takes_tokenizer;
};

struct data_option {
    const char *key;
    /* DATA_PREPARES: a flag. The option changes how samples are prepared for the network, so an
     * evaluation needs the same value; it is stored with the weights. */
    enum { DATA_INT, DATA_FLOAT, DATA_TEXT, DATA_PREPARES = 4 } kind;
    void *value; /* int64_t, double or const char *; holds the default */
};

/* Stores the values of s->options; texts point into it. An option with DATA_PREPARES that is not
 * given takes its value from s->prepared; one given with another value wins, with a warning. */
tri_status data_parse_options(const struct data_spec *s, const struct data_option *known, int n);
/* Sets d->about.prepared from the options with DATA_PREPARES. Returns d; null if d is null or
 * memory is out, with a message. */
tri_data *data_prepared(tri_data *d, const struct data_option *known, int n);

/* *out = (text is `yes`). Keeps *out if text is null; fails if text is neither `yes` nor `no`. */
tri_status data_choose(const char *spec, const char *key, const char *text, const char *no,
                       const char *yes, bool *out);

#endif
