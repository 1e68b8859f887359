/* SPDX-License-Identifier: Apache-2.0
 * Pictures out of JPEG and PNG files that lie in memory: 8-bit RGB, whatever the file holds. What is
 * wrong with a file is a message, never a guessed pixel. */
#ifndef DATA_PICTURE_H
#define DATA_PICTURE_H

#include "base/base.h"

#define PICTURE_MAX_PIXELS (INT64_C(1) << 26) /* a bomb if it has more, unless told otherwise */
#define PICTURE_MAX_SIDE 65536

/* The status of a file that is no picture that can be read; TRI_FAILED is for the machine's faults. */
#define PICTURE_BAD TRI_USAGE

struct picture_size {
    int width, height;
    bool shrinks; /* struct picture_part */
};

/* Which part of a picture is wanted, in its own pixels. shrink is 1, or where the picture
 * shrinks also 2, 4 or 8: it is read at so small a fraction of its size, by its own transform. */
struct picture_part {
    int x, y, width, height;
    int shrink;
};

/* What was read: the part, and perhaps more around it. Pixels of the picture at 1/shrink of its size:
 * the first is (x, y) there. Valid until the decoder reads another. */
struct picture {
    const unsigned char *rgb; /* [height][stride], 3 bytes a pixel; one byte more can be read */
    size_t stride;
    int x, y, width, height;
    struct picture_size whole; /* at that size */
};

/* Reads pictures one after the other, and keeps its memory. Each thread needs one of its own. */
struct picture_decoder;
struct picture_decoder *picture_decoder_new(int64_t max_pixels); /* null with a message */
void picture_decoder_free(struct picture_decoder *d);

/* Opens a picture, which must stay where it is until it is read or another is opened. What it is
 * follows from its bytes; `name` stands in messages. */
tri_status picture_open(struct picture_decoder *d, const unsigned char *bytes, size_t n,
                        const char *name, struct picture_size *size);
/* Reads the picture that is open, once; the part lies within it. */
tri_status picture_read(struct picture_decoder *d, const struct picture_part *part,
                        struct picture *out);
/* "JPEG", "PNG" */
const char *picture_format(const struct picture_decoder *d);

#endif
