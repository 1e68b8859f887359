/* SPDX-License-Identifier: Apache-2.0
 * What sources have in common whose samples are files of pictures: drawing, and what becomes of a
 * file that cannot be read. It is told by name, and another sample stands for it, which follows from
 * its index alone, so that whoever draws it gets the same. More than max_bad of them are too many. */
#ifndef DATA_PICTURES_H
#define DATA_PICTURES_H

#include <pthread.h>

#include "data/augment.h"
#include "data/tally.h"

#define PICTURES_MAX_BAD 10 /* unless told otherwise */

struct pictures {
    char *spec; /* for messages */
    struct augment augment;
    int64_t size, max_bad;
    void *source;
    tri_status (*load)(void *source, int64_t index, struct data_file *out);
    /* What follows is under the lock. */
    pthread_mutex_t lock;
    struct pictures_worker *idle; /* a list */
    int64_t *bad;                 /* indices of what could not be read */
    size_t n_bad, bad_capacity;
    int64_t n_other; /* bad besides those */
    struct tally *together; /* of all processes that draw of these samples; null: this one alone */
};

tri_status pictures_init(struct pictures *p, const char *spec, const struct augment *a, int64_t size,
                         int64_t max_bad);
void pictures_close(struct pictures *p);

/* Counts something bad that is no sample; tri_message() says what. Fails if there is too much. */
tri_status pictures_other_bad(struct pictures *p);

/* What is bad of the samples counts together with what others find, from here on; before the first is drawn. What is no
 * sample every process has found for itself; and of samples that come in an order of their own each reads all. */
void pictures_count_together(const tri_data *d, struct tally *t);

/* Fills fields "image" and "label"; for tri_fill. */
int pictures_fill(struct pictures *p, int64_t index, int64_t epoch, uint64_t seed, void *const *out);
/* Whether all of a sample's file can be read. */
tri_status pictures_check(struct pictures *p, int64_t index);

/* Formats and sizes of some of them; for data_about. */
void pictures_describe(struct pictures *p, struct text *out);

/* Room for n bytes in a file, and a null behind them. */
tri_status pictures_room(struct data_file *f, size_t n);
/* All of the file of its name. */
tri_status pictures_read_file(struct data_file *f);
/* After a failure with that errno, whose message stays: PICTURE_BAD, or TRI_FAILED if memory or
 * descriptors ran out. */
tri_status pictures_unreadable(int error);

#endif
