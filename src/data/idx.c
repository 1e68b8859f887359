/* SPDX-License-Identifier: Apache-2.0
 * Reads IDX files: two zero bytes, a type, the rank, big-endian 32-bit dimensions, the elements. */
#include "data/idx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "data/source.h"

#define TYPE_U8 0x08
#define FASHION "/usr/share/datasets/fashion-mnist"

static const char *type_text(unsigned char type) {
    static const char *const names[] = {
        [0x09] = "signed bytes", [0x0b] = "16-bit integers", [0x0c] = "32-bit integers",
        [0x0d] = "floats", [0x0e] = "doubles"};
    return type < COUNT(names) && names[type] ? names[type] : "an unknown type";
}

/* ---- one file in memory ---- */

static tri_status parse_dims(const unsigned char *bytes, const char *name, struct idx_array *out) {
    int64_t total = 1;
    for (int i = 0; i < out->rank; i++) {
        const unsigned char *p = bytes + 4 + 4 * i;
        out->dim[i] = (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
        if (!out->dim[i])
            return base_fail(TRI_FAILED, "%s: offset %d: dimension %d is 0", name, 4 + 4 * i, i);
        if (out->dim[i] > IDX_MAX_BYTES / total)
            return base_fail(TRI_FAILED, "%s: offset %d: dimension %d is %lld: more than the limit "
                             "of %lld elements", name, 4 + 4 * i, i, (long long)out->dim[i],
                             (long long)IDX_MAX_BYTES);
        total *= out->dim[i];
    }
    out->bytes = (size_t)total;
    return TRI_OK;
}

tri_status idx_header(const unsigned char *bytes, size_t n, const char *name,
                      struct idx_array *out) {
    *out = (struct idx_array){0};
    if (n < 4)
        return base_fail(TRI_FAILED, "%s: truncated at offset %zu: an IDX file begins with 4 bytes",
                         name, n);
    if (bytes[0] || bytes[1])
        return base_fail(TRI_FAILED, "%s: offset 0: not an IDX file: it begins with %02x %02x, not "
                         "00 00", name, bytes[0], bytes[1]);
    if (bytes[2] != TYPE_U8)
        return base_fail(TRI_FAILED, "%s: offset 2: elements of type %02x (%s) are not supported; "
                         "unsigned bytes (08) are", name, bytes[2], type_text(bytes[2]));
    if (bytes[3] < 1 || bytes[3] > IDX_MAX_RANK)
        return base_fail(TRI_FAILED, "%s: offset 3: %d dimension(s); 1 to %d are supported", name,
                         bytes[3], IDX_MAX_RANK);
    out->rank = bytes[3];
    size_t header = 4 + 4 * (size_t)out->rank;
    if (n < header)
        return base_fail(TRI_FAILED, "%s: truncated at offset %zu: %d dimensions take %zu bytes",
                         name, n, out->rank, header);
    out->data = bytes + header;
    return parse_dims(bytes, name, out);
}

tri_status idx_parse(const unsigned char *bytes, size_t n, const char *name,
                     struct idx_array *out) {
    tri_status status = idx_header(bytes, n, name, out);
    if (status) return status;
    size_t header = (size_t)(out->data - bytes);
    if (n - header < out->bytes)
        return base_fail(TRI_FAILED, "%s: truncated at offset %zu: %zu bytes of data expected from "
                         "offset %zu on, %zu are missing", name, n, out->bytes, header,
                         out->bytes - (n - header));
    if (n - header > out->bytes)
        return base_fail(TRI_FAILED, "%s: offset %zu: %zu bytes follow the last element", name,
                         header + out->bytes, n - header - out->bytes);
    return TRI_OK;
}

/* ---- gzip ---- */

struct unpacked {
    unsigned char *data;
    size_t size, capacity, most;
};

static bool grow(struct unpacked *u) {
    size_t capacity = u->capacity ? 2 * u->capacity : 65536;
    if (capacity > u->most) capacity = u->most;
    unsigned char *p = realloc(u->data, capacity);
    if (!p) return false;
    u->data = p;
    u->capacity = capacity;
    return true;
}

/* One call of inflate; both sizes are limited to its 32-bit counters. */
static int inflate_some(z_stream *z, struct unpacked *u, const unsigned char *bytes, size_t n,
                        size_t *at) {
    const size_t most = 1u << 30;
    size_t in = n - *at < most ? n - *at : most;
    size_t space = u->capacity - u->size < most ? u->capacity - u->size : most;
    z->next_in = (Bytef *)(uintptr_t)(bytes + *at);
    z->avail_in = (uInt)in;
    z->next_out = u->data + u->size;
    z->avail_out = (uInt)space;
    int code = inflate(z, Z_NO_FLUSH);
    *at += in - z->avail_in;
    u->size += space - z->avail_out;
    return code;
}

/* A file may consist of several members, as from gzip -c a b. Stops after u->most bytes. */
static tri_status unpack(z_stream *z, struct unpacked *u, const unsigned char *bytes, size_t n,
                         const char *name) {
    for (size_t at = 0;;) {
        if (u->size == u->most) return TRI_OK;
        if (u->size == u->capacity && !grow(u)) return base_no_memory(name);
        int code = inflate_some(z, u, bytes, n, &at);
        if (code == Z_MEM_ERROR) return base_no_memory(name);
        if (code == Z_STREAM_END) {
            if (at == n) return TRI_OK;
            code = inflateReset(z);
        } else if (code == Z_OK && at == n && u->size < u->capacity) {
            code = Z_BUF_ERROR; /* all input read, output space left, but no end */
        }
        if (code == Z_BUF_ERROR && at == n)
            return base_fail(TRI_FAILED, "%s: truncated at offset %zu: the gzip data has no end",
                             name, n);
        if (code != Z_OK)
            return base_fail(TRI_FAILED, "%s: offset %zu: not valid gzip data: %s", name, at,
                             z->msg ? z->msg : zError(code));
    }
}

tri_status idx_unpack(const unsigned char *bytes, size_t n, const char *name, size_t most,
                      unsigned char **out, size_t *n_out) {
    z_stream z = {0};
    struct unpacked u = {.most = most};
    *out = NULL;
    *n_out = 0;
    if (inflateInit2(&z, 15 + 16) != Z_OK) return base_no_memory(name);
    tri_status status = unpack(&z, &u, bytes, n, name);
    inflateEnd(&z);
    if (status) {
        free(u.data);
        return status;
    }
    *out = u.data;
    *n_out = u.size;
    return TRI_OK;
}

/* ---- the files of a data set ---- */

struct idx {
    char *file[2]; /* images, labels: whole files */
    struct idx_array images, labels;
    int64_t classes;
    float value[256]; /* for each value of a pixel */
};

static void idx_free(void *user) {
    struct idx *x = user;
    free(x->file[0]);
    free(x->file[1]);
    free(x);
}

/* Stores DIR/NAME or DIR/NAME.gz, whichever exists, in path. */
static tri_status locate(const char *directory, const char *name, struct text *path, bool *gz) {
    for (int i = 0; i < 2; i++) {
        path->size = 0;
        text_add(path, "%s/%s%s", directory, name, i ? ".gz" : "");
        if (path->failed) return base_no_memory(directory);
        *gz = i;
        if (!access(path->data, F_OK)) return TRI_OK;
        if (errno != ENOENT)
            return base_fail(TRI_FAILED, "%s: %s", path->data, strerror(errno));
    }
    return base_fail(TRI_FAILED, "%s: found neither %s nor %s.gz in it%s (apt-get install "
                     "dataset-fashion-mnist puts Fashion-MNIST in " FASHION ")", directory, name,
                     name, access(directory, F_OK) ? ": there is no such directory" : "");
}

static tri_status check_rank(const struct idx_array *array, const char *path, const char *kind,
                             int rank) {
    if (array->rank == rank) return TRI_OK;
    return base_fail(TRI_FAILED, "%s: offset 3: %d dimension(s); %s have %d", path, array->rank,
                     kind, rank);
}

/* Replaces *file. The header is unpacked first and gives the size; one byte more is an error. */
static tri_status unpack_file(char **file, size_t *bytes, const char *path, const char *kind,
                              int rank) {
    const unsigned char *packed = (unsigned char *)*file;
    unsigned char *data = NULL;
    size_t n = 0;
    struct idx_array head;
    tri_status status = idx_unpack(packed, *bytes, path, IDX_HEADER_BYTES, &data, &n);
    if (!status) status = idx_header(data, n, path, &head);
    if (!status) status = check_rank(&head, path, kind, rank);
    size_t whole = status ? 0 : (size_t)(head.data - data) + head.bytes;
    free(data);
    data = NULL;
    if (!status) status = idx_unpack(packed, *bytes, path, whole + 1, &data, &n);
    free(*file);
    *file = (char *)data;
    *bytes = n;
    return status;
}

static tri_status load(const char *directory, const char *split, const char *kind, int rank,
                       char **file, struct idx_array *array) {
    struct text name = {0}, path = {0};
    bool gz = false;
    char *raw = NULL;
    size_t bytes = 0;
    text_add(&name, "%s-%s-idx%d-ubyte", split, kind, rank);
    tri_status status =
        name.failed ? base_no_memory(directory) : locate(directory, name.data, &path, &gz);
    if (!status) status = base_read_file(path.data, &raw, &bytes);
    if (!status && gz) status = unpack_file(&raw, &bytes, path.data, kind, rank);
    if (!status) status = idx_parse((unsigned char *)raw, bytes, path.data, array);
    if (!status) status = check_rank(array, path.data, kind, rank);
    text_free(&name);
    text_free(&path);
    *file = raw;
    return status;
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    const struct idx *x = user;
    (void)epoch;
    (void)seed;
    size_t pixels = (size_t)(x->images.dim[1] * x->images.dim[2]);
    const unsigned char *from = x->images.data + (size_t)index * pixels;
    float *image = out[0];
    for (size_t i = 0; i < pixels; i++) image[i] = x->value[from[i]];
    *(int64_t *)out[1] = x->labels.data[index];
    return 0;
}

static int64_t label_of(const void *user, int64_t index) {
    const struct idx *x = user;
    return x->labels.data[index];
}

static tri_status load_both(struct idx *x, const char *directory, const char *split) {
    tri_status status = load(directory, split, "images", 3, &x->file[0], &x->images);
    if (!status) status = load(directory, split, "labels", 1, &x->file[1], &x->labels);
    if (!status && x->images.dim[0] != x->labels.dim[0])
        status = base_fail(TRI_FAILED, "%s: %lld images of %s, but %lld labels", directory,
                           (long long)x->images.dim[0], split, (long long)x->labels.dim[0]);
    for (int64_t i = 0; !status && i < x->labels.dim[0]; i++)
        if (x->labels.data[i] >= x->classes) x->classes = x->labels.data[i] + 1;
    return status;
}

static tri_data *open_split(const struct data_spec *s, const char *split, float mean, float std) {
    struct idx *x = calloc(1, sizeof *x);
    if (!x) {
        base_no_memory(s->spec);
        return NULL;
    }
    /* In fp32, one operation after the other, as torchvision's ToTensor and Normalize. */
    for (int i = 0; i < 256; i++) x->value[i] = ((float)i / 255.0f - mean) / std;
    if (load_both(x, s->rest, split)) {
        idx_free(x);
        return NULL;
    }
    const tri_field fields[] = {
        {"image", TRI_F32, TRI_SHAPE(1, x->images.dim[1], x->images.dim[2])},
        {"label", TRI_I64, TRI_SCALAR},
    };
    tri_data *d = data_make(s->spec, x->images.dim[0], fields, (int)COUNT(fields), fill, x, false,
                            idx_free);
    if (d)
        d->about = (struct data_about){
            .classes = x->classes,
            .label = label_of,
            .held = (size_t)(x->images.dim[0] * (x->images.dim[1] * x->images.dim[2] + 1))};
    return d;
}

/* Fields: "image" f32[1,rows,columns], (pixel / 255 - mean) / std, and "label" i64[]. */
static tri_data *idx_open(const struct data_spec *s) {
    const char *split = "train";
    double mean = 0, std = 1;
    const struct data_option known[] = {
        {"split", DATA_TEXT, &split}, {"mean", DATA_FLOAT | DATA_PREPARES, &mean},
        {"std", DATA_FLOAT | DATA_PREPARES, &std}};
    if (data_parse_options(s, known, (int)COUNT(known))) return NULL;
    bool test = !strcmp(split, "test");
    if (!test && strcmp(split, "train")) {
        base_fail(TRI_USAGE, "data '%s': split=%s is neither train nor test", s->spec, split);
        return NULL;
    }
    if (!((float)std > 0)) {
        base_fail(TRI_USAGE, "data '%s': std=%g is not above 0", s->spec, std);
        return NULL;
    }
    return data_prepared(open_split(s, test ? "t10k" : "train", (float)mean, (float)std), known,
                         (int)COUNT(known));
}

const struct data_source source_idx = {"idx", "directory",
                                       "idx:DIR[,split=train|test][,mean=X][,std=X]",
                                       idx_open, false};
