/* SPDX-License-Identifier: Apache-2.0
 * JPEG pictures, by libjpeg-turbo. A part of a picture has the same pixels as in the whole picture.
 * Where the library would fill in missing or broken data, this fails. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* jpeglib.h needs stdio.h first */
#include <jpeglib.h>
#include <jerror.h>

#include "data/picture_format.h"

#define MAX_SCANS 500 /* of a progressive file; a small file can contain very many */

struct jpeg {
    struct jpeg_decompress_struct lib;
    struct jpeg_error_mgr error;
    struct jpeg_source_mgr from;
    struct jpeg_progress_mgr progress;
    struct picture_source source;
    jmp_buf back; /* where errors jump to */
    tri_status status;
};

/* ---- errors ---- */

static tri_status report(struct jpeg *j) {
    char text[JMSG_LENGTH_MAX];
    j->error.format_message((j_common_ptr)&j->lib, text);
    if (j->error.msg_code == JERR_OUT_OF_MEMORY) return base_no_memory(j->source.name);
    return base_fail(PICTURE_BAD, "%s: not a valid JPEG picture: %s", j->source.name, text);
}

static void on_error(j_common_ptr lib) {
    struct jpeg *j = lib->client_data;
    j->status = report(j);
    longjmp(j->back, 1);
}

/* Level -1 is a warning; after most warnings the library invents pixels. */
static void on_message(j_common_ptr lib, int level) {
    static const int harmless[] = {JWRN_EXTRANEOUS_DATA, JWRN_ADOBE_XFORM, JWRN_JFIF_MAJOR,
                                   JWRN_BOGUS_ICC, JWRN_TOO_MUCH_DATA};
    if (level >= 0) return;
    for (size_t i = 0; i < COUNT(harmless); i++)
        if (lib->err->msg_code == harmless[i]) return;
    on_error(lib);
}

static void on_progress(j_common_ptr lib) {
    struct jpeg *j = lib->client_data;
    if (j->lib.input_scan_number <= MAX_SCANS) return;
    j->status = base_fail(PICTURE_BAD, "%s: a JPEG picture of more than %d scans", j->source.name,
                          MAX_SCANS);
    longjmp(j->back, 1);
}

/* ---- bytes ---- */

static void nothing(j_decompress_ptr lib) { (void)lib; }

static boolean no_more(j_decompress_ptr lib) {
    struct jpeg *j = lib->client_data;
    j->status = base_fail(PICTURE_BAD, "%s: truncated: the JPEG data ends at offset %zu",
                          j->source.name, j->source.n);
    longjmp(j->back, 1);
}

static void skip(j_decompress_ptr lib, long n) {
    if (n <= 0) return;
    if ((size_t)n > lib->src->bytes_in_buffer) no_more(lib);
    lib->src->next_input_byte += n;
    lib->src->bytes_in_buffer -= (size_t)n;
}

/* Inside the scans, ff d9 can only be the end of the picture. So a truncated file is detected
 * before decoding, whichever part is wanted. */
static tri_status check_end(const struct jpeg *j) {
    size_t left = j->from.bytes_in_buffer;
    const unsigned char *p = j->from.next_input_byte;
    while (left >= 2) {
        const unsigned char *end = memrchr(p + 1, 0xd9, left - 1);
        if (!end) break;
        if (end[-1] == 0xff) return TRI_OK;
        left = (size_t)(end - p);
    }
    return base_fail(PICTURE_BAD, "%s: truncated: the JPEG data of %zu bytes has no end",
                     j->source.name, j->source.n);
}

/* ---- a decoder ---- */

static bool create(struct jpeg *j) {
    j->lib.err = jpeg_std_error(&j->error);
    j->lib.client_data = j;
    j->error.error_exit = on_error;
    j->error.emit_message = on_message;
    if (setjmp(j->back)) return false;
    jpeg_create_decompress(&j->lib);
    j->from = (struct jpeg_source_mgr){.init_source = nothing, .fill_input_buffer = no_more,
                                       .skip_input_data = skip, .term_source = nothing,
                                       .resync_to_restart = jpeg_resync_to_restart};
    j->progress.progress_monitor = on_progress;
    j->lib.src = &j->from;
    j->lib.progress = &j->progress;
    return true;
}

static void free_state(void *state) {
    struct jpeg *j = state;
    jpeg_destroy_decompress(&j->lib);
    free(j);
}

static void *make(void) {
    struct jpeg *j = calloc(1, sizeof *j);
    if (!j || create(j)) return j;
    free_state(j);
    return NULL;
}

static tri_status open_jpeg(void *state, const struct picture_source *s,
                            struct picture_size *size) {
    struct jpeg *j = state;
    j->source = *s;
    j->status = TRI_OK;
    if (setjmp(j->back)) {
        jpeg_abort_decompress(&j->lib);
        return j->status;
    }
    jpeg_abort_decompress(&j->lib); /* in any state */
    j->from.next_input_byte = s->bytes;
    j->from.bytes_in_buffer = s->n;
    jpeg_read_header(&j->lib, TRUE);
    tri_status status = picture_check_size(s, j->lib.image_width, j->lib.image_height);
    if (!status) status = check_end(j);
    *size = (struct picture_size){(int)j->lib.image_width, (int)j->lib.image_height, true};
    return status;
}

/* ---- reading ---- */

static int shrunk(int n, int shrink) { return (n + shrink - 1) / shrink; }

/* Computes the part at 1/shrink of its size. */
static void place(struct jpeg *j, const struct picture_part *part, struct picture *out) {
    int shrink = part->shrink;
    out->whole.width = (int)j->lib.output_width;
    out->whole.height = (int)j->lib.output_height;
    out->x = part->x / shrink;
    out->y = part->y / shrink;
    out->width = shrunk(part->x + part->width, shrink) - out->x;
    out->height = shrunk(part->y + part->height, shrink) - out->y;
}

/* Columns that are not needed are skipped in whole blocks, except one more block on each side,
 * since the library's upsampling treats the edge as that of the picture. */
static void crop_columns(struct jpeg *j, int shrink, struct picture *out) {
    int block = j->lib.max_h_samp_factor * (8 / shrink);
    int from = out->x > block ? out->x - block : 0, to = out->x + out->width + block;
    if (to > out->whole.width) to = out->whole.width;
    JDIMENSION x = (JDIMENSION)from, width = (JDIMENSION)(to - from);
    if (to - from < out->whole.width) jpeg_crop_scanline(&j->lib, &x, &width);
    else x = 0;
    out->x = (int)x;
    out->width = (int)j->lib.output_width;
}

/* Converts inks to light. Adobe's programs store the remaining light instead of the ink. */
static void from_cmyk(unsigned char *row, int width, bool light) {
    for (int i = 0; i < width; i++) {
        unsigned black = light ? row[4 * i + 3] : 255u - row[4 * i + 3];
        for (int c = 0; c < 3; c++) {
            unsigned v = black * (light ? row[4 * i + c] : 255u - row[4 * i + c]) + 128;
            row[3 * i + c] = (unsigned char)((v + (v >> 8)) >> 8); /* v / 255, rounded */
        }
    }
}

static bool start(struct jpeg *j, const struct picture_part *part, struct picture *out) {
    bool inks = j->lib.jpeg_color_space == JCS_CMYK || j->lib.jpeg_color_space == JCS_YCCK;
    j->lib.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    j->lib.scale_num = (unsigned)(8 / part->shrink);
    j->lib.scale_denom = 8;
    jpeg_start_decompress(&j->lib);
    place(j, part, out);
    crop_columns(j, part->shrink, out);
    out->stride = (size_t)out->width * (inks ? 4 : 3);
    return inks;
}

static void read_rows(struct jpeg *j, bool inks, unsigned char *to, const struct picture *out) {
    if (out->y) jpeg_skip_scanlines(&j->lib, (JDIMENSION)out->y);
    for (int y = 0; y < out->height;) {
        JSAMPROW rows[8];
        int n = out->height - y < 8 ? out->height - y : 8;
        for (int i = 0; i < n; i++) rows[i] = to + (size_t)(y + i) * out->stride;
        int got = (int)jpeg_read_scanlines(&j->lib, rows, (JDIMENSION)n);
        for (int i = 0; inks && i < got; i++)
            from_cmyk(rows[i], out->width, j->lib.saw_Adobe_marker);
        y += got;
    }
}

static tri_status read_jpeg(void *state, const struct picture_part *part,
                            struct picture_memory *memory, struct picture *out) {
    struct jpeg *j = state;
    if (setjmp(j->back)) {
        jpeg_abort_decompress(&j->lib);
        return j->status;
    }
    bool inks = start(j, part, out);
    unsigned char *to = picture_take(memory, out->stride * (size_t)out->height + 1, j->source.name);
    if (!to) {
        jpeg_abort_decompress(&j->lib);
        return TRI_FAILED;
    }
    read_rows(j, inks, to, out);
    jpeg_abort_decompress(&j->lib);
    out->rgb = to;
    return TRI_OK;
}

const struct picture_format picture_jpeg = {
    .name = "JPEG", .magic = {0xff, 0xd8, 0xff}, .magic_bytes = 3, .make = make,
    .free_state = free_state, .open = open_jpeg, .read = read_jpeg,
};
