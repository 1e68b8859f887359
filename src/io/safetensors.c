/* SPDX-License-Identifier: Apache-2.0
 * The safetensors format: header length (8 bytes, little-endian), a JSON object, the data. Tensors
 * cover the data without overlap or gap, as the format's reference requires. */
#include "io/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "data is written as it lies in memory");

#define LENGTH_BYTES 8
#define HEADER_LIMIT ((size_t)100000000) /* the reference implementation's */
#define METADATA "__metadata__"

static const struct {
    const char *name;
    int type; /* tri_type, or NONE for a type of the format that is not supported */
} dtypes[] = {
    {"F32", TRI_F32},
    {"F16", TRI_F16},
    {"BF16", TRI_BF16},
    {"I32", TRI_I32},
    {"I64", TRI_I64},
    {"U8", TRI_U8},
    {"BOOL", TRI_BOOL},
#define NONE (-1)
#define DOUBLES (-2) /* read as f32, never written */
    {"F64", DOUBLES},
    {"I16", NONE},
    {"I8", NONE},
    {"U16", NONE},
    {"U32", NONE},
    {"U64", NONE},
    {"F8_E4M3", NONE},
    {"F8_E5M2", NONE},
    {"C64", NONE},
};

static const char *dtype_name(tri_type type) {
    for (size_t i = 0; i < COUNT(dtypes); i++)
        if (dtypes[i].type == (int)type) return dtypes[i].name;
    return NULL;
}

/* Text from a file, cut for use in a message. */
#define SHOWN 100
static const char *shown(const char *text, char buffer[SHOWN]) {
    size_t n = 0;
    for (; text[n] && n < SHOWN - 4; n++)
        buffer[n] = (unsigned char)text[n] < ' ' || text[n] == 0x7f ? '?' : text[n];
    memcpy(buffer + n, text[n] ? "..." : "", text[n] ? 4 : 1);
    return buffer;
}
#define SHOW(text) shown(text, (char[SHOWN]){0})

/* False if a dimension is negative or the size overflows. */
static bool spec_bytes(const tri_spec *spec, size_t *bytes) {
    *bytes = tri_type_size(spec->type);
    for (int i = 0; i < spec->shape.rank; i++)
        if (spec->shape.dim[i] < 0 || __builtin_mul_overflow(*bytes, spec->shape.dim[i], bytes))
            return false;
    return *bytes <= INT64_MAX;
}

/* ---- writing ---- */

static json_t *tensor_json(const tri_spec *spec, size_t begin, size_t end) {
    json_t *shape = json_array();
    for (int i = 0; shape && i < spec->shape.rank; i++) {
        if (json_array_append_new(shape, json_integer(spec->shape.dim[i]))) {
            json_decref(shape);
            return NULL;
        }
    }
    if (!shape) return NULL;
    return json_pack("{s:s,s:o,s:[I,I]}", "dtype", dtype_name(spec->type), "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)end);
}

static tri_status put(json_t *object, const char *key, json_t *value, const char *path) {
    if (json_object_get(object, key)) {
        json_decref(value);
        return base_fail(TRI_USAGE, "%s: two entries have the name '%s'", path, SHOW(key));
    }
    if (!json_object_set_new(object, key, value)) return TRI_OK;
    return base_fail(TRI_FAILED, "%s: can't write the name '%s': it is not UTF-8 text, or memory "
                     "is out", path, SHOW(key));
}

static tri_status put_metadata(json_t *header, const struct safetensors_pair *pair, size_t n,
                               const char *path) {
    if (!n) return TRI_OK;
    json_t *object = json_object();
    tri_status status = put(header, METADATA, object, path);
    for (size_t i = 0; !status && i < n; i++) {
        json_t *value = json_string(pair[i].value);
        if (!value)
            return base_fail(TRI_FAILED, "%s: can't write metadata '%s': its value is not UTF-8 "
                             "text, or memory is out", path, SHOW(pair[i].key));
        status = put(object, pair[i].key, value, path);
    }
    return status;
}

static tri_status put_tensors(json_t *header, const struct safetensors_entry *entry, size_t n,
                              const char *path) {
    size_t at = 0;
    tri_status status = TRI_OK;
    for (size_t i = 0; !status && i < n; i++) {
        size_t bytes;
        const tri_spec *spec = &entry[i].spec;
        if (!strcmp(entry[i].name, METADATA))
            return base_fail(TRI_USAGE, "%s: a tensor can't have the name " METADATA, path);
        if (!dtype_name(spec->type) || spec->shape.rank < 0 || spec->shape.rank > TRI_MAX_RANK ||
            !spec_bytes(spec, &bytes))
            return base_fail(TRI_USAGE, "%s: tensor '%s' has an impossible type or shape", path,
                             SHOW(entry[i].name));
        status = put(header, entry[i].name, tensor_json(spec, at, at + bytes), path);
        at += bytes;
    }
    return status;
}

/* The start of the file, up to the data. */
static tri_status make_header(const char *path, const struct safetensors_entry *entry, size_t n,
                              const struct safetensors_pair *metadata, size_t n_metadata,
                              struct text *out) {
    json_t *header = json_object();
    if (!header) return base_no_memory(path);
    tri_status status = put_metadata(header, metadata, n_metadata, path);
    if (!status) status = put_tensors(header, entry, n, path);
    char *json = status ? NULL : json_dumps(header, JSON_COMPACT);
    json_decref(header);
    if (status) return status;
    if (!json) return base_no_memory(path);
    size_t size = (strlen(json) + 7) / 8 * 8;
    unsigned char length[LENGTH_BYTES];
    for (size_t i = 0; i < LENGTH_BYTES; i++) length[i] = (unsigned char)((uint64_t)size >> 8 * i);
    text_add_bytes(out, length, sizeof length);
    text_add_bytes(out, json, strlen(json));
    while (!out->failed && out->size < LENGTH_BYTES + size) text_add_bytes(out, " ", 1);
    free(json);
    if (out->failed) return base_no_memory(path);
    if (size > HEADER_LIMIT)
        return base_fail(TRI_USAGE, "%s: the header would take %zu bytes; readers accept %zu", path,
                         size, HEADER_LIMIT);
    return TRI_OK;
}

tri_status safetensors_put(struct outfile *f, const struct safetensors_entry *entry, size_t n,
                           const struct safetensors_pair *metadata, size_t n_metadata) {
    struct text header = {0};
    tri_status status = make_header(f->path, entry, n, metadata, n_metadata, &header);
    if (!status) status = outfile_write(f, header.data, header.size);
    for (size_t i = 0; !status && i < n; i++)
        status = outfile_write(f, entry[i].data, base_spec_bytes(&entry[i].spec));
    text_free(&header);
    return status;
}

tri_status safetensors_write(const char *path, const struct safetensors_entry *entries, size_t n,
                             const struct safetensors_pair *metadata, size_t n_metadata) {
    struct outfile f;
    tri_status status = outfile_replace(&f, path, NULL);
    if (!status) status = safetensors_put(&f, entries, n, metadata, n_metadata);
    return outfile_close(&f, status, NULL);
}

/* ---- reading ---- */

struct reader {
    const char *name;
    int fd;                     /* below 0: reads from bytes */
    const unsigned char *bytes; /* the whole file */
    size_t at, size;
    size_t data; /* offset of the data, once the header has been read */
    bool header_only;
};

/* A tensor while it is read; offsets are those of the header. */
struct place {
    struct safetensors_entry entry;
    size_t begin, end, order;
    bool doubles;
};

static tri_status take(struct reader *r, void *to, size_t n) {
    CHECK(n <= r->size - r->at);
    if (r->fd < 0) {
        if (n) memcpy(to, r->bytes + r->at, n);
        r->at += n;
        return TRI_OK;
    }
    for (char *p = to; n;) {
        ssize_t got = pread(r->fd, p, n, (off_t)r->at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return base_fail(TRI_FAILED, "%s: read at offset %zu: %s", r->name, r->at,
                             strerror(errno));
        if (!got)
            return base_fail(TRI_FAILED, "%s: ends at offset %zu; it had %zu bytes when opened",
                             r->name, r->at, r->size);
        p += got;
        n -= (size_t)got;
        r->at += (size_t)got;
    }
    return TRI_OK;
}

static tri_status header_length(struct reader *r, size_t *length) {
    if (r->size < LENGTH_BYTES)
        return base_fail(TRI_FAILED,
                         "%s: %zu bytes are too few for a safetensors file, which starts with 8 "
                         "bytes of header length",
                         r->name, r->size);
    unsigned char raw[LENGTH_BYTES];
    tri_status status = take(r, raw, sizeof raw);
    if (status) return status;
    if (seal_is(raw, sizeof raw))
        return base_fail(TRI_USAGE,
                         "%s is sealed: its key is needed (--ckpt-key FILE, tri_options.ckpt_key)",
                         r->name);
    uint64_t n = 0;
    for (size_t i = 0; i < LENGTH_BYTES; i++) n |= (uint64_t)raw[i] << 8 * i;
    if (n > r->size - LENGTH_BYTES)
        return base_fail(TRI_FAILED, "%s: offset 0: header length %llu, but only %zu bytes follow; "
                         "truncated, or not a safetensors file", r->name, (unsigned long long)n,
                         r->size - LENGTH_BYTES);
    if (n > HEADER_LIMIT)
        return base_fail(TRI_FAILED, "%s: offset 0: header length %llu is above the limit of %zu",
                         r->name, (unsigned long long)n, HEADER_LIMIT);
    *length = (size_t)n;
    r->data = LENGTH_BYTES + *length;
    return TRI_OK;
}

static tri_status read_header(struct reader *r, json_t **out) {
    size_t length = 0;
    tri_status status = header_length(r, &length);
    if (status) return status;
    char *text = malloc(length + 1);
    if (!text) return base_no_memory(r->name);
    if ((status = take(r, text, length))) {
        free(text);
        return status;
    }
    json_error_t e;
    json_t *header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &e);
    free(text);
    if (!header && json_error_code(&e) == json_error_out_of_memory) return base_no_memory(r->name);
    if (!header)
        return base_fail(TRI_FAILED, "%s: offset %zu: the header is not valid JSON: %s", r->name,
                         LENGTH_BYTES + (size_t)(e.position > 0 ? e.position : 0), SHOW(e.text));
    if (!json_is_object(header)) {
        json_decref(header);
        return base_fail(TRI_FAILED, "%s: offset 8: the header is not a JSON object", r->name);
    }
    *out = header;
    return TRI_OK;
}

static tri_status bad(const char *path, const char *tensor, const char *fmt, ...)
    TRI_PRINTF(3, 4);
static tri_status bad(const char *path, const char *tensor, const char *fmt, ...) {
    char what[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return base_fail(TRI_FAILED, "%s: tensor '%s': %s", path, SHOW(tensor), what);
}

static tri_status parse_type(const struct reader *r, struct place *p, const json_t *json) {
    const char *name = p->entry.name, *text = json_string_value(json);
    if (!text) return bad(r->name, name, "\"dtype\" is missing or not a text");
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        if (strcmp(dtypes[i].name, text)) continue;
        if (dtypes[i].type == NONE)
            return bad(r->name, name, "type %s is not supported; convert it to one of F64, F32, "
                       "F16, BF16, I32, I64, U8, BOOL", text);
        p->doubles = dtypes[i].type == DOUBLES;
        p->entry.spec.type = p->doubles ? TRI_F32 : (tri_type)dtypes[i].type;
        return TRI_OK;
    }
    return bad(r->name, name, "unknown dtype '%s'", SHOW(text));
}

static tri_status parse_shape(const struct reader *r, const char *name, const json_t *json,
                              tri_shape *shape) {
    if (!json_is_array(json)) return bad(r->name, name, "\"shape\" is missing or not an array");
    size_t rank = json_array_size(json);
    if (rank > TRI_MAX_RANK)
        return bad(r->name, name, "it has %zu dimensions; at most %d are supported", rank,
                   TRI_MAX_RANK);
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(json, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return bad(r->name, name, "dimension %zu is not a whole number from 0 up", i);
        shape->dim[i] = json_integer_value(dim);
    }
    shape->rank = (int)rank;
    return TRI_OK;
}

static tri_status parse_offsets(const struct reader *r, struct place *p, const json_t *json) {
    const char *name = p->entry.name;
    const json_t *first = json_array_get(json, 0), *last = json_array_get(json, 1);
    if (json_array_size(json) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return bad(r->name, name, "\"data_offsets\" is missing or not two whole numbers");
    int64_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin)
        return bad(r->name, name, "data_offsets [%lld,%lld] are not in order from 0 up",
                   (long long)begin, (long long)end);
    if ((uint64_t)end > r->size - r->data)
        return bad(r->name, name, "data_offsets [%lld,%lld] reach beyond the %zu bytes of data, "
                   "which end at file offset %zu", (long long)begin, (long long)end,
                   r->size - r->data, r->size);
    p->begin = (size_t)begin;
    p->end = (size_t)end;
    size_t bytes;
    char spec[SPEC_TEXT];
    if (!spec_bytes(&p->entry.spec, &bytes))
        return bad(r->name, name, "its shape %s has more bytes than can be counted",
                   base_spec_text(&p->entry.spec, spec));
    if (p->doubles) bytes *= 2;
    if (bytes != p->end - p->begin)
        return bad(r->name, name,
                   "%s%s takes %zu bytes, but its data_offsets [%zu,%zu] (file offset %zu) "
                   "hold %zu",
                   p->doubles ? "f64" : "", base_spec_text(&p->entry.spec, spec) + 3 * p->doubles,
                   bytes, p->begin, p->end, r->data + p->begin, p->end - p->begin);
    return TRI_OK;
}

static tri_status parse_tensor(const struct reader *r, struct place *p, const json_t *json) {
    const char *name = p->entry.name;
    if (!json_is_object(json)) return bad(r->name, name, "its header entry is not a JSON object");
    tri_status status = parse_type(r, p, json_object_get(json, "dtype"));
    if (!status)
        status = parse_shape(r, name, json_object_get(json, "shape"), &p->entry.spec.shape);
    if (!status) status = parse_offsets(r, p, json_object_get(json, "data_offsets"));
    return status;
}

static tri_status parse_metadata(const struct reader *r, struct safetensors *f, json_t *json) {
    if (!json_is_object(json))
        return base_fail(TRI_FAILED, "%s: " METADATA " is not a JSON object", r->name);
    size_t n = 0;
    struct safetensors_pair *pair =
        arena_alloc(&f->arena, json_object_size(json) * sizeof *pair);
    if (!pair) return base_no_memory(r->name);
    const char *key;
    json_t *value;
    json_object_foreach(json, key, value) {
        if (!json_is_string(value))
            return base_fail(TRI_FAILED, "%s: " METADATA ": the value of '%s' is not a text",
                             r->name, SHOW(key));
        pair[n++] = (struct safetensors_pair){arena_copy(&f->arena, key),
                                              arena_copy(&f->arena, json_string_value(value))};
    }
    f->metadata = pair;
    f->n_metadata = n;
    return f->arena.failed ? base_no_memory(r->name) : TRI_OK;
}

static tri_status parse_header(const struct reader *r, struct safetensors *f, json_t *header,
                               struct place *place) {
    const char *key;
    json_t *value;
    tri_status status = TRI_OK;
    json_object_foreach(header, key, value) {
        if (!strcmp(key, METADATA)) {
            status = parse_metadata(r, f, value);
        } else {
            struct place *p = &place[f->n];
            p->order = f->n++;
            p->entry.name = arena_copy(&f->arena, key);
            status = p->entry.name ? parse_tensor(r, p, value) : base_no_memory(r->name);
        }
        if (status) return status;
    }
    return TRI_OK;
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_places(const void *a, const void *b) {
    const struct place *p = a, *q = b;
    int c = ORDER(p->begin, q->begin);
    if (!c) c = ORDER(p->end, q->end);
    return c ? c : ORDER(p->order, q->order);
}

/* place[] is sorted by data offset. */
static tri_status check_cover(const struct reader *r, const struct place *place, size_t n) {
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const struct place *p = &place[i];
        if (p->begin < at)
            return bad(r->name, p->entry.name, "its data at file offset %zu overlaps that of '%s', "
                       "which ends at %zu", r->data + p->begin, SHOW(place[i - 1].entry.name),
                       r->data + at);
        if (p->begin > at)
            return bad(r->name, p->entry.name, "its data begins at file offset %zu, after %zu "
                       "bytes that no tensor uses", r->data + p->begin, p->begin - at);
        at = p->end;
    }
    if (at != r->size - r->data)
        return base_fail(TRI_FAILED, "%s: offset %zu: %zu bytes follow the last tensor", r->name,
                         r->data + at, r->size - r->data - at);
    return TRI_OK;
}

/* Converts n doubles to floats in place. at: offset of the first in the file. */
static tri_status round_doubles(const struct safetensors *f, const struct safetensors_entry *e,
                                size_t at, unsigned char *data, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double wide;
        memcpy(&wide, data + i * sizeof wide, sizeof wide);
        const float value = (float)wide;
        if (isinf(value) && !isinf(wide))
            return bad(f->path, e->name, "file offset %zu: %g is too large for f32, as which F64 "
                       "is read", at + i * sizeof wide, wide);
        memcpy(data + i * sizeof value, &value, sizeof value);
    }
    return TRI_OK;
}

static size_t size_in_file(const struct safetensors_place *p, const struct safetensors_entry *e) {
    return p->doubles ? sizeof(double) : tri_type_size(e->spec.type);
}

tri_status safetensors_read(const struct safetensors *f, const struct safetensors_entry *e,
                            size_t first, size_t n, void *to) {
    const struct safetensors_place *place = &f->place[e - f->entry];
    const size_t size = size_in_file(place, e), at = place->at + first * size;
    struct reader r = {.name = f->path, .fd = f->fd, .bytes = f->bytes, .size = f->size, .at = at};
    unsigned char *data = to;
    tri_status status = take(&r, data, n * size);
    if (!status && place->doubles) return round_doubles(f, e, at, data, n);
    for (size_t i = 0; !status && e->spec.type == TRI_BOOL && i < n; i++)
        if (data[i] > 1)
            return bad(f->path, e->name, "file offset %zu: %d is not a BOOL, which is 0 or 1",
                       at + i, data[i]);
    return status;
}

static tri_status load(struct safetensors *f, struct safetensors_entry *e) {
    size_t n = (size_t)tri_shape_count(&e->spec.shape);
    if (!n) return TRI_OK;
    void *data = arena_alloc(&f->arena, n * size_in_file(&f->place[e - f->entry], e));
    if (!data) return base_no_memory(e->name);
    e->data = data;
    return safetensors_read(f, e, 0, n, data);
}

static int compare_names(const void *a, const void *b) {
    const struct safetensors_entry *const *p = a, *const *q = b;
    return strcmp((*p)->name, (*q)->name);
}

static tri_status load_all(struct reader *r, struct safetensors *f, struct place *place) {
    if (f->n) qsort(place, f->n, sizeof *place, compare_places);
    tri_status status = check_cover(r, place, f->n);
    struct safetensors_entry *entry = arena_alloc(&f->arena, f->n * sizeof *entry);
    struct safetensors_place *at = arena_alloc(&f->arena, f->n * sizeof *at);
    f->by_name = arena_alloc(&f->arena, f->n * sizeof(void *));
    if (f->arena.failed) return base_no_memory(r->name);
    f->entry = entry;
    f->place = at;
    for (size_t i = 0; !status && i < f->n; i++) {
        entry[i] = place[i].entry;
        at[i] = (struct safetensors_place){r->data + place[i].begin, place[i].doubles};
        if (!r->header_only) status = load(f, &entry[i]);
        f->by_name[i] = &entry[i];
    }
    if (!status && f->n) qsort(f->by_name, f->n, sizeof(void *), compare_names);
    return status;
}

/* With header_only the file takes over what it reads from, unless this fails. */
static tri_status parse(struct reader *r, struct safetensors **file) {
    *file = NULL;
    json_t *header = NULL;
    struct place *place = NULL;
    struct safetensors *f = calloc(1, sizeof *f);
    if (!f) return base_no_memory(r->name);
    *f = (struct safetensors){.fd = r->fd, .bytes = r->bytes, .size = r->size};
    f->path = arena_copy(&f->arena, r->name);
    tri_status status = read_header(r, &header);
    if (!status && !(place = calloc(json_object_size(header) + 1, sizeof *place)))
        status = base_no_memory(r->name);
    if (!status) status = parse_header(r, f, header, place);
    json_decref(header);
    if (!status) status = load_all(r, f, place);
    free(place);
    if (status || !r->header_only) f->fd = -1, f->bytes = NULL;
    if (!status) *file = f;
    else safetensors_close(f);
    return status;
}

tri_status safetensors_parse(const void *bytes, size_t n, const char *name,
                             struct safetensors **file) {
    struct reader r = {.name = name, .fd = -1, .bytes = bytes, .size = n};
    return parse(&r, file);
}

static tri_status open_plain(struct reader *r, struct safetensors **file) {
    struct stat st;
    r->fd = base_open(r->name, O_RDONLY, &st);
    if (r->fd < 0) return TRI_FAILED;
    r->size = (size_t)st.st_size;
    tri_status status = parse(r, file);
    if (status || !r->header_only) close(r->fd);
    return status;
}

static tri_status open_sealed(struct reader *r, const struct seal *seal,
                              struct safetensors **file) {
    char *data;
    tri_status status = base_read_file(r->name, &data, &r->size);
    if (!status && (seal->name || seal_is(data, r->size)))
        status = seal_open(r->name, seal, data, &r->size);
    r->bytes = (const unsigned char *)data;
    if (!status) status = parse(r, file);
    if (status || !r->header_only) free(data);
    return status;
}

tri_status safetensors_open(const char *path, const struct seal *seal, bool header_only,
                            struct safetensors **file) {
    struct reader r = {.name = path, .fd = -1, .header_only = header_only};
    *file = NULL;
    return seal && seal->key ? open_sealed(&r, seal, file) : open_plain(&r, file);
}

const struct safetensors_entry *safetensors_find(const struct safetensors *file,
                                                 const char *name) {
    struct safetensors_entry wanted = {.name = name};
    const struct safetensors_entry *key = &wanted, **at = NULL;
    if (file->n) at = bsearch(&key, file->by_name, file->n, sizeof(void *), compare_names);
    return at ? *at : NULL;
}

const char *safetensors_metadata(const struct safetensors *file, const char *key) {
    for (size_t i = 0; i < file->n_metadata; i++)
        if (!strcmp(file->metadata[i].key, key)) return file->metadata[i].value;
    return NULL;
}

void safetensors_close(struct safetensors *file) {
    if (!file) return;
    arena_free(&file->arena);
    if (file->fd >= 0) close(file->fd);
    free((void *)file->bytes);
    free(file);
}
