/* SPDX-License-Identifier: Apache-2.0 */
#include "data/tar_scan.h"

#include <string.h>

#define BLOCK 512

/* Offsets of fields in a header. */
enum { NAME = 0, SIZE = 124, SUM = 148, TYPE = 156, MAGIC = 257, PREFIX = 345 };

/* Attributes from extra headers, for the file after them. */
struct extra {
    char name[TAR_NAME]; /* "": none */
    bool has_size;
    uint64_t size;
};

static tri_status bad(const struct tar_scan *s, const char *what) {
    return base_fail(TRI_FAILED, "%s: offset %llu: %s", s->name, (unsigned long long)s->at, what);
}

/* ---- headers ---- */

/* Octal digits between blanks; or base 256 if the first bit is set. */
static bool number(const unsigned char *p, size_t n, uint64_t *out) {
    uint64_t v = 0;
    size_t i = 0;
    if (p[0] & 0x80) {
        v = p[0] & 0x3f;
        for (i = 1; i < n; i++) {
            if (v >> 55 || p[0] & 0x40) return false;
            v = v << 8 | p[i];
        }
        *out = v;
        return true;
    }
    while (i < n && p[i] == ' ') i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++) v = v * 8 + (uint64_t)(p[i] - '0');
    *out = v;
    return i == n || !p[i] || p[i] == ' ';
}

static bool sum_fits(const unsigned char *h) {
    uint64_t right, sum = 0;
    for (int i = 0; i < BLOCK; i++) sum += i >= SUM && i < SUM + 8 ? ' ' : h[i];
    return number(h + SUM, 8, &right) && right == sum;
}

static bool is_zero(const unsigned char *h) {
    for (int i = 0; i < BLOCK; i++)
        if (h[i]) return false;
    return true;
}

static void take_name(const unsigned char *h, char *out) {
    size_t prefix = 0, n = strnlen((const char *)h + NAME, 100);
    if (!memcmp(h + MAGIC, "ustar\0", 6)) prefix = strnlen((const char *)h + PREFIX, 155);
    memcpy(out, h + PREFIX, prefix);
    if (prefix) out[prefix++] = '/';
    memcpy(out + prefix, h + NAME, n);
    out[prefix + n] = 0;
}

/* ---- extra headers ---- */

/* GNU: the content is the name. */
static tri_status long_name(struct tar_scan *s, uint64_t offset, uint64_t size, struct extra *e) {
    if (size >= TAR_NAME) return bad(s, "a name that is too long");
    int64_t n = s->read(s->user, offset, e->name, (size_t)size);
    if (n < 0) return TRI_FAILED;
    e->name[n] = 0;
    return TRI_OK;
}

/* key and value, each with a final zero byte */
static tri_status pax_record(struct tar_scan *s, const char *key, const char *value,
                             struct extra *e) {
    if (!strcmp(key, "path")) {
        if (strlen(value) >= TAR_NAME) return bad(s, "a name that is too long");
        strcpy(e->name, value);
    }
    if (!strcmp(key, "size")) {
        e->size = 0;
        e->has_size = true;
        for (; *value >= '0' && *value <= '9' && e->size < UINT64_C(1) << 55; value++)
            e->size = e->size * 10 + (uint64_t)(*value - '0');
        if (*value) return bad(s, "a size that is no number");
    }
    return TRI_OK;
}

#define PAX_BYTES 16384

/* Records "LENGTH key=value\n"; LENGTH counts the whole record. */
static tri_status pax(struct tar_scan *s, uint64_t offset, uint64_t size, struct extra *e) {
    char text[PAX_BYTES + 1];
    if (size > PAX_BYTES) return bad(s, "an extended header that is too long");
    int64_t n = s->read(s->user, offset, text, (size_t)size);
    tri_status status = n < 0 ? TRI_FAILED : TRI_OK;
    for (char *p = text, *end = text + (n > 0 ? n : 0); p < end && !status;) {
        size_t length = 0;
        char *q = p;
        for (; q < end && *q >= '0' && *q <= '9' && length <= PAX_BYTES; q++)
            length = length * 10 + (size_t)(*q - '0');
        char *equal = q < end ? memchr(q, '=', (size_t)(end - q)) : NULL;
        if (length > (size_t)(end - p) || !equal || equal >= p + length || *q != ' ' ||
            p[length - 1] != '\n')
            return bad(s, "an extended header that is malformed");
        *equal = p[length - 1] = 0;
        status = pax_record(s, q + 1, equal + 1, e);
        p += length;
    }
    return status;
}

/* ---- entries ---- */

/* Reads one header. *done: `out` is an entry, or the archive has ended (its name is then empty). */
static tri_status step(struct tar_scan *s, struct extra *e, struct tar_entry *out, bool *done) {
    unsigned char h[BLOCK];
    uint64_t size;
    int64_t got = s->read(s->user, s->at, h, BLOCK);
    out->name[0] = 0;
    *done = !got || (got == BLOCK && is_zero(h));
    if (got < 0) return TRI_FAILED;
    if (*done) return TRI_OK;
    if (got < BLOCK) return bad(s, "truncated within a header");
    if (!sum_fits(h)) return bad(s, "not the header of a tar entry: its sum is wrong");
    if (!number(h + SIZE, 12, &size)) return bad(s, "a size that is no number");
    bool file = h[TYPE] == '0' || !h[TYPE] || h[TYPE] == '7',
         extra = h[TYPE] == 'L' || h[TYPE] == 'x';
    if (file && e->has_size) size = e->size;
    uint64_t offset = s->at + BLOCK;
    if (offset > s->size || size > s->size - offset)
        return bad(s, "truncated: the archive ends within this entry");
    tri_status status = h[TYPE] == 'L' ? long_name(s, offset, size, e)
                        : h[TYPE] == 'x' ? pax(s, offset, size, e) : TRI_OK;
    take_name(h, out->name);
    if (e->name[0] && !extra) strcpy(out->name, e->name);
    out->offset = offset;
    out->size = size;
    if (!extra) *e = (struct extra){0};
    s->at = offset + (size + BLOCK - 1) / BLOCK * BLOCK;
    *done = file;
    return status;
}

bool tar_next(struct tar_scan *s, struct tar_entry *out, tri_status *status) {
    struct extra e = {0};
    bool done = false;
    *status = TRI_OK;
    while (!done && !*status) *status = step(s, &e, out, &done);
    return !*status && out->name[0];
}
