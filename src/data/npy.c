/* SPDX-License-Identifier: Apache-2.0
 * Versions 1 to 3 of the format: a magic word, the length of the header, the header (a Python
 * dictionary), the elements. Little-endian, row-major. */
#include "data/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/source.h"

/* ---- the header ---- */

static const struct {
    const char *name;
    tri_type type;
    size_t bytes;
    bool wide;
} types[] = {
    {"<f4", TRI_F32, 4, false}, {"<f8", TRI_F32, 8, true},  {"<f2", TRI_F16, 2, false},
    {"<i8", TRI_I64, 8, false}, {"<i4", TRI_I32, 4, false}, {"|u1", TRI_U8, 1, false},
    {"|b1", TRI_BOOL, 1, false},
};

/* The header's text while it is parsed. */
struct header {
    const char *at, *end;
    const char *name;
};

static tri_status malformed(const struct header *h, const char *what) {
    return base_fail(TRI_FAILED, "%s: not a header as NumPy writes it: %s", h->name, what);
}

static void blanks(struct header *h) {
    while (h->at < h->end && strchr(" \t\n", *h->at) && *h->at) h->at++;
}

static bool skip(struct header *h, const char *text) {
    size_t n = strlen(text);
    blanks(h);
    if ((size_t)(h->end - h->at) < n || memcmp(h->at, text, n)) return false;
    h->at += n;
    return true;
}

/* 'text' */
static bool quoted(struct header *h, char *out, size_t capacity) {
    blanks(h);
    if (h->at == h->end || (*h->at != '\'' && *h->at != '"')) return false;
    char quote = *h->at++;
    size_t n = 0;
    while (h->at + n < h->end && h->at[n] != quote) n++;
    if (h->at + n == h->end || n >= capacity) return false;
    memcpy(out, h->at, n);
    out[n] = 0;
    h->at += n + 1;
    return true;
}

static tri_status read_shape(struct header *h, struct npy_header *out) {
    out->rank = 0;
    if (!skip(h, "(")) return malformed(h, "the shape is no tuple");
    while (!skip(h, ")")) {
        int64_t n = 0;
        const char *from = h->at;
        for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
            if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *h->at - '0', &n))
                return malformed(h, "a dimension is too large");
        if (h->at == from) return malformed(h, "a dimension is no number");
        if (out->rank == TRI_MAX_RANK)
            return base_fail(TRI_FAILED, "%s: more than %d dimensions", h->name, TRI_MAX_RANK);
        out->dim[out->rank++] = n;
        if (!skip(h, ",") && (blanks(h), h->at == h->end || *h->at != ')'))
            return malformed(h, "the shape has no end");
    }
    return TRI_OK;
}

static tri_status read_type(struct header *h, struct npy_header *out, size_t *bytes) {
    char text[16];
    if (!quoted(h, text, sizeof text)) return malformed(h, "the type is no text");
    for (size_t i = 0; i < COUNT(types); i++)
        if (!strcmp(types[i].name, text)) {
            out->type = types[i].type;
            out->wide = types[i].wide;
            *bytes = types[i].bytes;
            return TRI_OK;
        }
    return base_fail(TRI_FAILED,
                     "%s: elements of type '%s' are not supported; <f4, <f8, <f2, <i8, <i4, "
                     "|u1, |b1 are",
                     h->name, text);
}

static tri_status read_entry(struct header *h, struct npy_header *out, size_t *bytes,
                             unsigned *seen) {
    char key[32];
    if (!quoted(h, key, sizeof key) || !skip(h, ":")) return malformed(h, "a key is missing");
    if (!strcmp(key, "descr")) {
        *seen |= 1;
        return read_type(h, out, bytes);
    }
    if (!strcmp(key, "shape")) {
        *seen |= 2;
        return read_shape(h, out);
    }
    if (strcmp(key, "fortran_order")) return malformed(h, "an unknown key");
    *seen |= 4;
    if (skip(h, "False")) return TRI_OK;
    return base_fail(TRI_FAILED,
                     "%s: the array is in Fortran order; save numpy.ascontiguousarray of it",
                     h->name);
}

static tri_status read_header(struct header *h, struct npy_header *out, size_t *bytes) {
    unsigned seen = 0;
    tri_status status = skip(h, "{") ? TRI_OK : malformed(h, "it does not begin with {");
    while (!status && !skip(h, "}")) {
        status = read_entry(h, out, bytes, &seen);
        if (!status && !skip(h, ",") && (blanks(h), h->at == h->end || *h->at != '}'))
            status = malformed(h, "it has no end");
    }
    if (!status && seen != 7) status = malformed(h, "descr, shape or fortran_order is missing");
    return status;
}

/* Checks that the elements fill the rest of the file. */
static tri_status check_size(struct npy_header *out, size_t each, size_t n, const char *name) {
    if (out->rank < 1)
        return base_fail(TRI_FAILED, "%s: a single number has no rows", name);
    out->row_bytes = each;
    for (int i = 1; i < out->rank; i++)
        if (__builtin_mul_overflow(out->row_bytes, (size_t)out->dim[i], &out->row_bytes))
            return base_fail(TRI_FAILED, "%s: its dimensions are too large", name);
    size_t all;
    if (__builtin_mul_overflow(out->row_bytes, (size_t)out->dim[0], &all))
        return base_fail(TRI_FAILED, "%s: its dimensions are too large", name);
    if (!all) return base_fail(TRI_FAILED, "%s: it has no elements", name);
    if (n - out->offset == all) return TRI_OK;
    return base_fail(TRI_FAILED,
                     "%s: %zu bytes of elements expected from offset %zu on, there are %zu", name,
                     all, out->offset, n - out->offset);
}

tri_status npy_parse(const unsigned char *bytes, size_t n, const char *name,
                     struct npy_header *out) {
    *out = (struct npy_header){0};
    if (n < 12 || memcmp(bytes, "\x93NUMPY", 6))
        return base_fail(TRI_FAILED, "%s: not a file of numpy.save", name);
    if (bytes[6] < 1 || bytes[6] > 3)
        return base_fail(TRI_FAILED, "%s: version %d of the format; 1 to 3 are supported", name,
                         bytes[6]);
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8, begin = 10, each = 0;
    if (bytes[6] > 1) {
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
        begin = 12;
    }
    if (length > n - begin) return base_fail(TRI_FAILED, "%s: truncated in its header", name);
    out->offset = begin + length;
    struct header h = {(const char *)bytes + begin, (const char *)bytes + out->offset, name};
    tri_status status = read_header(&h, out, &each);
    return status ? status : check_size(out, each, n, name);
}

/* ---- the source ---- */

struct npy_file {
    unsigned char *map;
    size_t bytes;
    struct npy_header header;
};

struct npy {
    int n;
    struct npy_file file[TRI_MAX_FIELDS];
};

static void free_npy(void *user) {
    struct npy *x = user;
    for (int i = 0; i < x->n; i++)
        if (x->file[i].map) munmap(x->file[i].map, x->file[i].bytes);
    free(x);
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    const struct npy *x = user;
    (void)epoch;
    (void)seed;
    for (int i = 0; i < x->n; i++) {
        const struct npy_header *h = &x->file[i].header;
        const unsigned char *row = x->file[i].map + h->offset + (size_t)index * h->row_bytes;
        if (!h->wide) {
            memcpy(out[i], row, h->row_bytes);
            continue;
        }
        for (size_t k = 0; k < h->row_bytes / sizeof(double); k++) {
            double v;
            memcpy(&v, row + k * sizeof v, sizeof v);
            ((float *)out[i])[k] = (float)v;
        }
    }
    return 0;
}

static tri_status map_file(const char *path, struct npy_file *f) {
    struct stat st;
    int fd = base_open(path, O_RDONLY, &st);
    if (fd < 0) return TRI_FAILED;
    f->bytes = (size_t)st.st_size;
    void *map = f->bytes ? mmap(NULL, f->bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    tri_status status = TRI_OK;
    if (map == MAP_FAILED)
        status = base_fail(TRI_FAILED, "%s: %s", path,
                           f->bytes ? strerror(errno) : "empty: zero bytes");
    close(fd);
    f->map = map == MAP_FAILED ? NULL : map;
    return status ? status : npy_parse(f->map, f->bytes, path, &f->header);
}

/* path: is cut to the file's name without extension. */
static const char *stem(char *path) {
    char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *end = strrchr(name, '.');
    if (end && end != name) *end = 0;
    return name;
}

static tri_status open_file(struct npy *x, const struct data_spec *s, char *path,
                            tri_field *field) {
    if (x->n == TRI_MAX_FIELDS)
        return base_fail(TRI_USAGE, "data '%s': more than %d files", s->spec, TRI_MAX_FIELDS);
    struct npy_file *f = &x->file[x->n++];
    tri_status status = map_file(path, f);
    if (status) return status;
    if (f->header.dim[0] != x->file[0].header.dim[0])
        return base_fail(TRI_FAILED, "%s: %lld row(s); the first file has %lld", path,
                         (long long)f->header.dim[0], (long long)x->file[0].header.dim[0]);
    *field = (tri_field){.type = f->header.type, .shape.rank = f->header.rank - 1};
    for (int k = 1; k < f->header.rank; k++) field->shape.dim[k - 1] = f->header.dim[k];
    field->name = stem(path);
    return TRI_OK;
}

/* Fields are named after the files, without directory and extension. */
static tri_data *npy_open(const struct data_spec *s) {
    tri_field fields[TRI_MAX_FIELDS];
    char *rest = strdup(s->rest);
    struct npy *x = calloc(1, sizeof *x);
    tri_data *d = NULL;
    tri_status status = rest && x ? data_parse_options(s, NULL, 0)
                                  : base_no_memory(s->spec);
    for (char *path = rest, *next; path && !status; path = next) {
        if ((next = strchr(path, ';'))) *next++ = 0;
        status = open_file(x, s, path, &fields[x->n < TRI_MAX_FIELDS ? x->n : 0]);
    }
    if (!status)
        d = data_make(s->spec, x->file[0].header.dim[0], fields, x->n, fill, x, false, free_npy);
    else if (x)
        free_npy(x);
    free(rest);
    return d;
}

const struct data_source source_npy = {"npy", "file",
                                       "npy:FILE[;FILE]...",
                                       npy_open, false};
