/* SPDX-License-Identifier: Apache-2.0
 * The interface between sources of samples and their users. A source fills in a tri_data; sources.c
 * opens sources by name. */
#ifndef DATA_DATA_H
#define DATA_DATA_H

#include "base/base.h"

#define DATA_IGNORED (-100) /* the label of a position that does not count */
#define DATA_MAX_SIZE (INT64_C(1) << 48) /* the limit of shuffling */

struct augment;
struct pictures; /* see pictures.h */

/* The file of a sample. Its buffers can be reused for another sample. */
struct data_file {
    char *bytes;
    size_t n, capacity;
    struct text name;
    int64_t label;
};

/* Optional facts about the samples, and functions. */
struct data_about {
    int64_t classes; /* labels are below this; 0: unknown */
    const char *(*class_name)(const void *user, int64_t label);
    int64_t (*label)(const void *user, int64_t index); /* fast, without reading the sample */
    int64_t (*length)(const void *user, int64_t index); /* see tri_data_lengths */
    const struct augment *augment; /* pictures: how files are converted */
    struct pictures *pictures; /* counts bad pictures */
    /* Reads a whole sample and fails if anything is wrong with it. Any thread may call. */
    tri_status (*check)(void *user, int64_t index);
    void (*describe)(void *user, struct text *out); /* adds lines of text */
    /* If samples are files: reads the unconverted file of a sample; its size, -1 if unknown. */
    tri_status (*file)(void *user, int64_t index, struct data_file *out);
    int64_t (*file_bytes)(void *user, int64_t index);
    /* Lines for the user, printed once per run, however many processes open the data; they live as
     * long as the data. The note is for runs that print progress. */
    const char *warning, *note;
    const char *prepared; /* "mean=0.5,std=0.25": the options that an evaluation needs too */
    size_t held; /* bytes of memory while open, without those of single samples (files, decoders) */
};

struct tri_data {
    struct arena arena; /* name, fields and their names */
    const char *name;   /* for messages */
    int64_t size;       /* samples per epoch, 1 to DATA_MAX_SIZE */
    const tri_field *fields;
    int n_fields;
    tri_fill *fill;
    void *user;
    void (*free_user)(void *user); /* nullable */
    struct data_about about;
    bool sequential;
    /* Several threads may fill at a time, also while the caller works between steps. If sequential:
     * one other thread may. */
    bool concurrent;
    bool kept;  /* until the process ends: for several runs, so none of them frees it */
    bool alone; /* only one process can read it, and only once: a pipe */
    tri_data *under; /* the data set that this one is made of; null: none */
    bool (*over)(void *arg); /* see data_give_up */
    void *over_arg;
    int64_t next_index, next_epoch; /* if sequential: the sample that may be requested next */
};

/* Returned by a fill function that has set the message itself. */
#define DATA_TOLD INT32_MIN

/* tri_data_new for a source that owns its state: tri_data_free calls free_user(user), and so does a
 * failure. */
tri_data *data_make(const char *name, int64_t size, const tri_field *fields, int n, tri_fill *fill,
                    void *user, bool sequential, void (*free_user)(void *user));

/* Checks that all labels are below about.classes; for data with about.label. */
tri_status data_check_labels(const tri_data *d);

/* Samples may take long or never arrive. Until they do, the data asks over(arg) whether nobody
 * waits any more, and if so fails, if it can. Any thread may ask. */
void data_give_up(tri_data *d, bool (*over)(void *arg), void *arg);
bool data_unwanted(const tri_data *d);

/* Adds the file of a sample, if it has one. May set tri_message(). */
void data_name_file(const tri_data *d, int64_t index, struct text *out);
/* Adds "sample 17 of data images:pets (pets/train/cat/3.jpg)"; the file only if there is one. */
void data_name_sample(const tri_data *d, int64_t index, struct text *out);

/* Prints the warning and the note (see data_about); d is nullable. */
void data_print_notes(const tri_data *d, bool quiet);

/* The size of a sample in memory, and the offset of a field. */
size_t data_sample_bytes(const tri_data *d);
size_t data_field_at(const tri_data *d, int field);
/* Allocates a sample, for free(); sets out[i] to field i. Null if memory is out. */
void *data_sample_new(const tri_data *d, void **out);

/* ---- data by name: sources.c ---- */

/* Whether the program feeds each batch itself (tri_feed), so that there is no source; spec is
 * nullable. data_refuse_fed fails then, for callers without such a program. */
bool data_is_fed(const char *spec);
/* Null or the default, which has no effect where the data is no text. */
bool data_is_usual(const char *tokenizer);
tri_status data_refuse_fed(const char *spec);

/* tri_data_open with a tokenizer for texts that do not name one, as token_open takes it (nullable),
 * and with the data_about.prepared of the data that weights were trained with (nullable). */
tri_data *data_open(const char *spec, const tri_graph *g, uint64_t seed, const char *tokenizer,
                    const char *prepared);

/* ---- synthetic data: a pure function of seed, field name and index ---- */

/* below has n elements. Values are uniform in [0, below). For 0, floats are standard normal and
 * others 0 or 1. */
tri_data *data_synthetic(const tri_field *fields, const int64_t *below, int n, int64_t size,
                         uint64_t seed);

#endif
