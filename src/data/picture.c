/* SPDX-License-Identifier: Apache-2.0
 * Detects a picture's format; code common to all formats. */
#include <stdlib.h>
#include <string.h>

#include "data/picture_format.h"

static const struct picture_format *const formats[] = {&picture_jpeg, &picture_png};

struct picture_decoder {
    int64_t max_pixels;
    void *state[COUNT(formats)]; /* created for the first picture of the format */
    int open;                    /* format of the open picture; -1: none */
    int last;
    struct picture_source source;
    struct picture_memory memory;
};

struct picture_decoder *picture_decoder_new(int64_t max_pixels) {
    struct picture_decoder *d = calloc(1, sizeof *d);
    if (!d) {
        base_no_memory("a decoder of pictures");
        return NULL;
    }
    d->max_pixels = max_pixels;
    d->open = -1;
    return d;
}

void picture_decoder_free(struct picture_decoder *d) {
    if (!d) return;
    for (size_t i = 0; i < COUNT(formats); i++)
        if (d->state[i]) formats[i]->free_state(d->state[i]);
    free(d->memory.data);
    free(d);
}

unsigned char *picture_take(struct picture_memory *m, size_t bytes, const char *name) {
    if (m->capacity >= bytes) return m->data;
    free(m->data);
    m->data = malloc(bytes);
    m->capacity = m->data ? bytes : 0;
    if (!m->data) base_no_memory(name);
    return m->data;
}

tri_status picture_check_size(const struct picture_source *s, uint64_t width, uint64_t height) {
    const uint64_t most = PICTURE_MAX_SIDE;
    if (!width || !height)
        return base_fail(PICTURE_BAD, "%s: %llu x %llu pixels: the picture is empty", s->name,
                         (unsigned long long)width, (unsigned long long)height);
    if (width > most || height > most)
        return base_fail(PICTURE_BAD, "%s: %llu x %llu pixels: at most %llu per side", s->name,
                         (unsigned long long)width, (unsigned long long)height,
                         (unsigned long long)most);
    if (width * height > (uint64_t)s->max_pixels)
        return base_fail(PICTURE_BAD, "%s: %llu x %llu pixels: more than the limit of %lld",
                         s->name, (unsigned long long)width, (unsigned long long)height,
                         (long long)s->max_pixels);
    return TRI_OK;
}

static tri_status unknown(const unsigned char *bytes, size_t n, const char *name) {
    struct text first = {0};
    for (size_t i = 0; i < n && i < 4; i++) text_add(&first, "%s%02x", i ? " " : "", bytes[i]);
    tri_status status = first.failed ? base_no_memory(name)
                        : !n         ? base_fail(PICTURE_BAD, "%s: empty: zero bytes", name)
                                     : base_fail(PICTURE_BAD,
                                                 "%s: neither a JPEG nor a PNG picture: it begins "
                                                         "with %s",
                                                 name, first.data);
    text_free(&first);
    return status;
}

tri_status picture_open(struct picture_decoder *d, const unsigned char *bytes, size_t n,
                        const char *name, struct picture_size *size) {
    int i = 0;
    d->open = -1;
    while (i < (int)COUNT(formats) && (n < formats[i]->magic_bytes ||
                                       memcmp(bytes, formats[i]->magic, formats[i]->magic_bytes)))
        i++;
    if (i == (int)COUNT(formats)) return unknown(bytes, n, name);
    if (!d->state[i] && !(d->state[i] = formats[i]->make())) return base_no_memory(name);
    d->source = (struct picture_source){bytes, n, name, d->max_pixels};
    d->last = i;
    tri_status status = formats[i]->open(d->state[i], &d->source, size);
    if (!status) d->open = i;
    return status;
}

tri_status picture_read(struct picture_decoder *d, const struct picture_part *part,
                        struct picture *out) {
    CHECK(d->open >= 0);
    int i = d->open;
    d->open = -1;
    return formats[i]->read(d->state[i], part, &d->memory, out);
}

const char *picture_format(const struct picture_decoder *d) { return formats[d->last]->name; }
