/* SPDX-License-Identifier: Apache-2.0
 * The implementation of picture.h: a row per format. */
#ifndef DATA_PICTURE_FORMAT_H
#define DATA_PICTURE_FORMAT_H

#include "data/picture.h"

/* Memory that is reused for the next picture and grows if needed. */
struct picture_memory {
    unsigned char *data;
    size_t capacity;
};
unsigned char *picture_take(struct picture_memory *m, size_t bytes, const char *name);

struct picture_source {
    const unsigned char *bytes;
    size_t n;
    const char *name;
    int64_t max_pixels;
};

/* Fails if a dimension is 0 or there are more pixels than allowed. */
tri_status picture_check_size(const struct picture_source *s, uint64_t width, uint64_t height);

struct picture_format {
    const char *name;
    unsigned char magic[8];
    size_t magic_bytes;
    void *(*make)(void); /* null: out of memory */
    void (*free_state)(void *state);
    tri_status (*open)(void *state, const struct picture_source *s, struct picture_size *size);
    tri_status (*read)(void *state, const struct picture_part *part, struct picture_memory *memory,
                       struct picture *out);
};
extern const struct picture_format picture_jpeg, picture_png;

#endif
