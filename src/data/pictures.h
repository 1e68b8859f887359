/* SPDX-License-Identifier: Apache-2.0
 * Code common to sources whose samples are picture files: workers, and what happens to a file that
 * cannot be read. It is reported by name, and another sample replaces it, which depends only on its
 * index, so that every process chooses the same. More than max_bad bad files are an error. */
#ifndef DATA_PICTURES_H
#define DATA_PICTURES_H

#include <pthread.h>

#include "base/tally.h"
#include "data/augment.h"

#define PICTURES_MAX_BAD 10 /* the default */

struct pictures {
    char *spec; /* for messages */
    struct augment augment;
    int64_t size, max_bad;
    void *source;
    tri_status (*load)(void *source, int64_t index, struct data_file *out);
    /* The lock protects the fields below. */
    pthread_mutex_t lock;
    struct pictures_worker *idle; /* a list */
    int64_t *bad;                 /* indices of samples that could not be read */
    size_t n_bad, bad_capacity;
    int64_t n_other; /* other bad things */
    /* counts for all processes that read these samples; null: only for this one */
    struct tally *together;
};

tri_status pictures_init(struct pictures *p, const char *spec, const struct augment *a,
                         int64_t size, int64_t max_bad);
void pictures_close(struct pictures *p);

/* Counts something bad that is not a sample; tri_message() says what. Fails if there are too
 * many. */
tri_status pictures_other_bad(struct pictures *p);

/* From now on, bad samples are counted together with those of other processes; call it before the
 * first sample is read. Bad things that are not samples are not counted together, as every process
 * finds them; nor are samples of a sequential source, as every process reads all. */
void pictures_count_together(const tri_data *d, struct tally *t);

/* Fills fields "image" and "label"; for tri_fill. */
int pictures_fill(struct pictures *p, int64_t index, int64_t epoch, uint64_t seed,
                  void *const *out);
/* Checks that a sample's whole file can be read. */
tri_status pictures_check(struct pictures *p, int64_t index);

/* Formats and sizes of some files; for data_about. */
void pictures_describe(struct pictures *p, struct text *out);

/* Makes room for n bytes and a final zero byte. */
tri_status pictures_reserve(struct data_file *f, size_t n);
/* Reads the whole file named f->name. */
tri_status pictures_read_file(struct data_file *f);
/* The status after a failure with that errno; keeps the message. TRI_FAILED if memory or
 * descriptors ran out, else PICTURE_BAD. */
tri_status pictures_unreadable(int error);

#endif
