/* SPDX-License-Identifier: Apache-2.0
 * PNG pictures, by libpng: all types and depths to 8-bit RGB. 16-bit values lose the lower 8 bits,
 * grey is copied to three channels, transparency is dropped, gamma is ignored. The whole picture is
 * read, including its end. */
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "data/picture_format.h"

struct png {
    png_structp lib;
    png_infop info;
    struct picture_source source;
    size_t at;
    tri_status status;
    unsigned char **row; /* of the current picture */
};

static void on_error(png_structp lib, png_const_charp text) {
    struct png *p = png_get_error_ptr(lib);
    if (!p->status)
        p->status = base_fail(PICTURE_BAD, "%s: not a valid PNG picture: %s", p->source.name, text);
    png_longjmp(lib, 1);
}

static void on_warning(png_structp lib, png_const_charp text) {
    (void)lib; /* in chunks without pixels */
    (void)text;
}

static void take_bytes(png_structp lib, png_bytep to, size_t n) {
    struct png *p = png_get_io_ptr(lib);
    if (n > p->source.n - p->at) {
        p->status = base_fail(PICTURE_BAD, "%s: truncated: the PNG data ends at offset %zu",
                              p->source.name, p->source.n);
        png_longjmp(lib, 1);
    }
    memcpy(to, p->source.bytes + p->at, n);
    p->at += n;
}

static png_voidp take_memory(png_structp lib, png_alloc_size_t n) {
    struct png *p = png_get_mem_ptr(lib);
    void *memory = malloc(n);
    if (!memory) p->status = base_no_memory(p->source.name);
    return memory;
}

static void give_memory(png_structp lib, png_voidp memory) {
    (void)lib;
    free(memory);
}

static void *make(void) { return calloc(1, sizeof(struct png)); }

static void close_png(struct png *p) {
    if (p->lib) png_destroy_read_struct(&p->lib, &p->info, NULL);
    free(p->row);
    p->row = NULL;
}

static void free_state(void *state) {
    close_png(state);
    free(state);
}

static void set_up(struct png *p) {
    const unsigned side = 0x7fffffff; /* we check sizes ourselves */
    png_set_read_fn(p->lib, p, take_bytes);
    png_set_user_limits(p->lib, side, side);
    png_set_chunk_malloc_max(p->lib, 1 << 23);
    png_set_chunk_cache_max(p->lib, 256);
    png_read_info(p->lib, p->info);
}

static tri_status open_png(void *state, const struct picture_source *s, struct picture_size *size) {
    struct png *p = state;
    close_png(p);
    p->source = *s;
    p->at = 0;
    p->status = TRI_OK;
    p->lib = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, p, on_error, on_warning, p,
                                      take_memory, give_memory);
    if (p->lib) p->info = png_create_info_struct(p->lib);
    if (!p->info) {
        close_png(p);
        return base_no_memory(s->name);
    }
    if (setjmp(png_jmpbuf(p->lib))) {
        close_png(p);
        return p->status;
    }
    set_up(p);
    uint32_t width = png_get_image_width(p->lib, p->info);
    uint32_t height = png_get_image_height(p->lib, p->info);
    *size = (struct picture_size){(int)width, (int)height, false};
    return picture_check_size(s, width, height);
}

static void to_rgb(struct png *p) {
    png_set_strip_16(p->lib);
    png_set_expand(p->lib); /* palettes and fewer than 8 bits */
    png_set_strip_alpha(p->lib);
    png_set_gray_to_rgb(p->lib);
    png_set_interlace_handling(p->lib);
    png_read_update_info(p->lib, p->info);
}

static void read_all(struct png *p, unsigned char *to, const struct picture *out) {
    for (int y = 0; y < out->height; y++) p->row[y] = to + (size_t)y * out->stride;
    png_read_image(p->lib, p->row);
    png_read_end(p->lib, NULL);
}

static tri_status read_png(void *state, const struct picture_part *part,
                           struct picture_memory *memory, struct picture *out) {
    struct png *p = state;
    if (setjmp(png_jmpbuf(p->lib))) {
        close_png(p);
        return p->status;
    }
    to_rgb(p);
    int width = (int)png_get_image_width(p->lib, p->info);
    int height = (int)png_get_image_height(p->lib, p->info);
    *out = (struct picture){.stride = png_get_rowbytes(p->lib, p->info), .width = width,
                            .height = height, .whole = {width, height, false}};
    CHECK(part->shrink == 1 && out->stride == 3 * (size_t)width);
    unsigned char *to = picture_take(memory, out->stride * (size_t)height + 1, p->source.name);
    p->row = malloc((size_t)height * sizeof *p->row);
    if (!p->row) base_no_memory(p->source.name);
    bool able = to && p->row;
    if (able) read_all(p, to, out);
    close_png(p);
    out->rgb = to;
    return able ? TRI_OK : TRI_FAILED;
}

const struct picture_format picture_png = {
    .name = "PNG", .magic = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, .magic_bytes = 8,
    .make = make, .free_state = free_state, .open = open_png, .read = read_png,
};
