/* SPDX-License-Identifier: Apache-2.0
 * Decodes JPEG and PNG files in memory to 8-bit RGB, whatever the file holds. A defective file
 * gives a message, never a guessed pixel. */
#ifndef DATA_PICTURE_H
#define DATA_PICTURE_H

#include "base/base.h"

#define PICTURE_MAX_PIXELS (INT64_C(1) << 26) /* the default limit against decompression bombs */
#define PICTURE_MAX_SIDE 65536

/* The status of a file that is not a readable picture; TRI_FAILED is for faults of the machine. */
#define PICTURE_BAD TRI_USAGE

struct picture_size {
    int width, height;
    bool shrinks; /* struct picture_part may shrink it */
};

/* The part of a picture that is wanted, in its own pixels. shrink is 1, or, if the picture
 * `shrinks`, 2, 4 or 8: the decoder reads it at that fraction of its size. */
struct picture_part {
    int x, y, width, height;
    int shrink;
};

/* A decoded picture: the part and perhaps more around it. (x, y) is its first pixel in the picture
 * at 1/shrink of its size. Valid until the decoder's next picture. */
struct picture {
    const unsigned char *rgb; /* [height][stride], 3 bytes per pixel; one more byte is readable */
    size_t stride;
    int x, y, width, height;
    struct picture_size whole; /* at 1/shrink */
};

/* Decodes pictures one after the other and keeps its buffers. Each thread needs its own. */
struct picture_decoder;
struct picture_decoder *picture_decoder_new(int64_t max_pixels); /* null with a message */
void picture_decoder_free(struct picture_decoder *d);

/* Opens a picture. Its bytes must stay valid until it is read or another one is opened. The format
 * is detected from the bytes; `name` is used in messages. */
tri_status picture_open(struct picture_decoder *d, const unsigned char *bytes, size_t n,
                        const char *name, struct picture_size *size);
/* Decodes the open picture, once. The part must be inside the picture. */
tri_status picture_read(struct picture_decoder *d, const struct picture_part *part,
                        struct picture *out);
/* "JPEG", "PNG" */
const char *picture_format(const struct picture_decoder *d);

#endif
