/* SPDX-License-Identifier: Apache-2.0
 * The seam between where samples come from and who uses them. A source fills in a tri_data;
 * tri_data_open has a table of those that can be named. */
#ifndef DATA_DATA_H
#define DATA_DATA_H

#include "base/base.h"

#define DATA_IGNORED (-100) /* the label of a place that does not count */
#define DATA_MAX_SIZE (INT64_C(1) << 48) /* what can be shuffled */

struct augment;
struct pictures; /* see pictures.h */

/* The file of a sample. Its buffers can be used again for another sample. */
struct data_file {
    char *bytes;
    size_t n, capacity;
    struct text name;
    int64_t label;
};

/* What a source can tell besides; any of it may be missing. */
struct data_about {
    int64_t classes; /* labels are below it; 0: not known */
    const char *(*class_name)(const void *user, int64_t label);
    int64_t (*label)(const void *user, int64_t index); /* quickly, without the sample */
    int64_t (*length)(const void *user, int64_t index); /* see tri_data_lengths */
    const struct augment *augment; /* of pictures: what becomes of a file */
    struct pictures *pictures; /* what counts bad ones */
    /* Reads all of a sample, and fails if there is anything wrong with it. Any thread may call. */
    tri_status (*check)(void *user, int64_t index);
    void (*describe)(void *user, struct text *out); /* lines */
    /* Where samples are files: the whole file of one, as it lies there, and its size, -1 where that is not known. */
    tri_status (*file)(void *user, int64_t index, struct data_file *out);
    int64_t (*file_bytes)(void *user, int64_t index);
    /* Lines for the user, once for a run, of all processes that open it; each lives as long as the data. The note is
     * not worth it where nothing is to be shown. */
    const char *warning, *note;
    const char *prepared; /* "mean=0.5,std=0.25": the options that an evaluation needs as well */
    size_t held; /* bytes of memory, from its opening on; not what comes with single samples, as files and decoders */
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
    bool concurrent; /* several threads may fill at a time, also beside what the caller does between steps; of
                        a sequential one: one thread */
    bool alone; /* one process can read it, and once: a pipe */
    tri_data *under; /* the one that it is made of; null: none */
    bool (*over)(void *arg); /* see data_give_up */
    void *over_arg;
    int64_t next_index, next_epoch; /* sequential: the sample that may be asked for */
};

/* What a fill function returns that has set the message itself. */
#define DATA_TOLD INT32_MIN

/* tri_data_new for a source that owns its state: free_user(user) is called by tri_data_free, and
 * also on failure. */
tri_data *data_make(const char *name, int64_t size, const tri_field *fields, int n, tri_fill *fill,
                    void *user, bool sequential, void (*free_user)(void *user));

/* Of data that tells labels: whether all are classes. */
tri_status data_check_labels(const tri_data *d);

/* Samples may never come, or not for long: over(arg) is asked meanwhile whether nobody waits for them any more. Then
 * the data fails, if it can. Any thread may ask. */
void data_give_up(tri_data *d, bool (*over)(void *arg), void *arg);
bool data_unwanted(const tri_data *d);

/* The file of a sample; nothing is added where there is none. May set tri_message(). */
void data_name_file(const tri_data *d, int64_t index, struct text *out);
/* "sample 17 of data images:pets (pets/train/cat/3.jpg)": with the file where there is one. */
void data_name_sample(const tri_data *d, int64_t index, struct text *out);

/* Shows what it has to say (see data_about); d is nullable. */
void data_tell(const tri_data *d, bool quiet);

/* Memory for a sample, to be freed with free(): how much, and where each field lies in it. */
size_t data_sample_bytes(const tri_data *d);
size_t data_field_at(const tri_data *d, int field);
/* The memory, with out[i] at field i; null if there is none. */
void *data_room(const tri_data *d, void **out);

/* ---- data by name: sources.c ---- */

/* Whether the program feeds each batch itself (tri_feed), so that there is no source; nullable. Refused where there is
 * no program that could. */
bool data_is_fed(const char *spec);
tri_status data_refuse_fed(const char *spec);

/* tri_data_open with the tokenizer for texts that do not name one, as token_open takes it, or null; and with
 * data_about.prepared of the data that weights were trained with, or null. */
tri_data *data_open(const char *spec, const tri_graph *g, uint64_t seed, const char *tokenizer,
                    const char *prepared);

/* ---- synthetic data: a pure function of seed, field name and index ---- */

/* Uniform in [0, below), which has n elements. Where it is 0, floats are standard normal, and others
 * 0 or 1. */
tri_data *data_synthetic(const tri_field *fields, const int64_t *below, int n, int64_t size,
                         uint64_t seed);
/* The same with the inputs of a graph for fields. */
tri_data *data_synthetic_for_graph(const tri_graph *g, int64_t size, uint64_t seed);

#endif
