/* SPDX-License-Identifier: Apache-2.0
 * Pictures for tests, from the encoders of libjpeg and libpng. */
#ifndef UNIT_PICTURES_MADE_H
#define UNIT_PICTURES_MADE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* jpeglib.h needs stdio.h */
#include <jpeglib.h>
#include <png.h>

struct made {
    unsigned char *bytes;
    size_t n;
};

/* A smooth pattern that differs in every channel, and with `salt`. */
static inline unsigned char made_pixel(int x, int y, int c, int salt) {
    int v = (x * (3 + c) + y * (5 - c) + 40 * c + 17 * salt + (x * y) / (29 + 7 * c)) % 510;
    return (unsigned char)(v < 255 ? v : 509 - v);
}

/* space: of the given pixels and, except for YCCK, of the file; restarts and scans as in
 * libjpeg. */
struct made_jpeg {
    int width, height, channels, quality, sampling, salt;
    J_COLOR_SPACE from, to;
    bool progressive, no_adobe;
};

static inline struct made made_jpeg(const struct made_jpeg *m) {
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr error;
    struct made out = {0};
    unsigned long n = 0;
    c.err = jpeg_std_error(&error);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &out.bytes, &n);
    c.image_width = (JDIMENSION)m->width;
    c.image_height = (JDIMENSION)m->height;
    c.input_components = m->channels;
    c.in_color_space = m->from;
    jpeg_set_defaults(&c);
    jpeg_set_colorspace(&c, m->to);
    jpeg_set_quality(&c, m->quality, TRUE);
    if (m->sampling) c.comp_info[0].h_samp_factor = c.comp_info[0].v_samp_factor = m->sampling;
    if (m->progressive) jpeg_simple_progression(&c);
    if (m->no_adobe) c.write_Adobe_marker = FALSE;
    jpeg_start_compress(&c, TRUE);
    unsigned char *row = malloc((size_t)(m->width * m->channels));
    for (int y = 0; y < m->height; y++) {
        for (int i = 0; i < m->width * m->channels; i++)
            row[i] = made_pixel(i / m->channels, y, i % m->channels, m->salt);
        jpeg_write_scanlines(&c, &row, 1);
    }
    free(row);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    out.n = n;
    return out;
}

static inline struct made made_rgb_jpeg(int width, int height, int salt) {
    return made_jpeg(&(struct made_jpeg){width, height, 3, 90, 2, salt, JCS_RGB, JCS_YCbCr, false,
                                         false});
}

static inline void made_append(png_structp png, png_bytep data, size_t n) {
    struct made *out = png_get_io_ptr(png);
    out->bytes = realloc(out->bytes, out->n + n);
    memcpy(out->bytes + out->n, data, n);
    out->n += n;
}

/* Samples of a row: the bits of made_pixel, its highest bits if there are fewer. */
static inline void made_row(unsigned char *row, int width, int channels, int depth, int y) {
    memset(row, 0, (size_t)(width * channels * 2));
    for (int i = 0; i < width * channels; i++) {
        unsigned v = made_pixel(i / channels, y, i % channels, 0);
        if (depth == 16) {
            row[2 * i] = (unsigned char)v;
            row[2 * i + 1] = 0xa5;
        } else {
            int bit = i * depth;
            row[bit / 8] |= (unsigned char)(v >> (8 - depth) << (8 - depth - bit % 8));
        }
    }
}

static inline struct made made_png(int width, int height, int type, int depth, bool interlaced) {
    struct made out = {0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, &out, made_append, NULL);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, depth, type,
                 interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, 0, 0);
    if (type == PNG_COLOR_TYPE_PALETTE) {
        png_color palette[256];
        for (int i = 0; i < 256; i++)
            palette[i] = (png_color){(png_byte)i, (png_byte)(255 - i), (png_byte)(i / 2)};
        png_set_PLTE(png, info, palette, 1 << depth);
        png_set_tRNS(png, info, (png_byte[]){0, 128}, 2, NULL);
    }
    png_write_info(png, info);
    int channels = png_get_channels(png, info);
    unsigned char *rows = malloc((size_t)(height * width * channels * 2));
    unsigned char **row = malloc((size_t)height * sizeof *row);
    for (int y = 0; y < height; y++) {
        row[y] = rows + (size_t)(y * width * channels * 2);
        made_row(row[y], width, channels, depth, y);
    }
    png_write_image(png, row);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    free(rows);
    free(row);
    return out;
}

#endif
