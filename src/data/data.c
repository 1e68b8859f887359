/* SPDX-License-Identifier: Apache-2.0
 * Data sets and their samples. */
#include "data/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- creation and queries ---- */

static tri_status check_field(const char *name, const tri_field *fields, int i) {
    const tri_field *f = &fields[i];
    if (!f->name || !*f->name)
        return base_fail(TRI_USAGE, "data '%s': field %d has no name", name, i);
    for (int j = 0; j < i; j++)
        if (!strcmp(fields[j].name, f->name))
            return base_fail(TRI_USAGE, "data '%s': two fields have the name '%s'", name, f->name);
    if ((unsigned)f->type > TRI_BOOL)
        return base_fail(TRI_USAGE, "data '%s': field '%s' has the unknown type %d", name, f->name,
                         (int)f->type);
    if (f->shape.rank < 0 || f->shape.rank >= TRI_MAX_RANK)
        return base_fail(TRI_USAGE, "data '%s': field '%s' has %d dimensions; a sample has 0 to %d",
                         name, f->name, f->shape.rank, TRI_MAX_RANK - 1);
    int64_t bytes = (int64_t)tri_type_size(f->type);
    for (int k = 0; k < f->shape.rank; k++)
        if (f->shape.dim[k] < 1 || __builtin_mul_overflow(bytes, f->shape.dim[k], &bytes))
            return base_fail(TRI_USAGE, "data '%s': field '%s': its dimension %d is %lld: below 1, "
                             "or too large", name, f->name, k, (long long)f->shape.dim[k]);
    return TRI_OK;
}

static tri_status check(const char *name, int64_t size, const tri_field *fields, int n,
                        tri_fill *fill) {
    if (!fill) return base_fail(TRI_USAGE, "data '%s': there is no fill function", name);
    if (size < 1 || size > DATA_MAX_SIZE)
        return base_fail(TRI_USAGE, "data '%s': size is %lld; 1 to 2^48 samples are possible", name,
                         (long long)size);
    if (n < 1 || !fields)
        return base_fail(TRI_USAGE, "data '%s': at least one field is needed", name);
    if (n > TRI_MAX_FIELDS)
        return base_fail(TRI_USAGE, "data '%s': %d fields; there can be %d", name, n,
                         TRI_MAX_FIELDS);
    tri_status status = TRI_OK;
    for (int i = 0; !status && i < n; i++) status = check_field(name, fields, i);
    return status;
}

static tri_data *copy(const char *name, const tri_field *fields, int n) {
    tri_data *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->name = arena_copy(&d->arena, name);
    tri_field *own = arena_alloc(&d->arena, (size_t)n * sizeof *own);
    for (int i = 0; own && i < n; i++) {
        own[i] = fields[i];
        own[i].name = arena_copy(&d->arena, fields[i].name);
    }
    d->fields = own;
    d->n_fields = n;
    if (!d->arena.failed) return d;
    arena_free(&d->arena);
    free(d);
    return NULL;
}

tri_data *data_make(const char *name, int64_t size, const tri_field *fields, int n, tri_fill *fill,
                    void *user, bool sequential, void (*free_user)(void *user)) {
    if (!name) name = "unnamed";
    tri_data *d = NULL;
    if (!check(name, size, fields, n, fill)) {
        d = copy(name, fields, n);
        if (!d) base_no_memory(name);
    }
    if (!d) {
        if (free_user) free_user(user);
        return NULL;
    }
    d->size = size;
    d->fill = fill;
    d->user = user;
    d->free_user = free_user;
    d->sequential = sequential;
    return d;
}

tri_data *tri_data_new(const char *name, int64_t size, const tri_field *fields, int n,
                       tri_fill *fill, void *user, bool sequential) {
    return data_make(name, size, fields, n, fill, user, sequential, NULL);
}

void tri_data_concurrent(tri_data *d) {
    if (d) d->concurrent = true;
}

int64_t tri_data_size(const tri_data *d) { return d ? d->size : 0; }

int tri_data_fields(const tri_data *d, const tri_field **fields) {
    *fields = d ? d->fields : NULL;
    return d ? d->n_fields : 0;
}

tri_status data_check_labels(const tri_data *d) {
    for (int64_t i = 0; i < d->size; i++) {
        int64_t label = d->about.label(d->user, i);
        if (label < 0 || label >= d->about.classes)
            return base_fail(TRI_FAILED,
                             "data %s, sample %lld: its label is %lld; there are %lld class(es)",
                             d->name, (long long)i, (long long)label, (long long)d->about.classes);
    }
    return TRI_OK;
}

void data_give_up(tri_data *d, bool (*over)(void *arg), void *arg) {
    for (; d; d = d->under) {
        d->over = over;
        d->over_arg = arg;
    }
}

bool data_unwanted(const tri_data *d) { return d->over && d->over(d->over_arg); }

void data_print_notes(const tri_data *d, bool quiet) {
    if (d && d->about.warning) fprintf(stderr, "trireme: %s\n", d->about.warning);
    if (d && d->about.note && !quiet) fprintf(stderr, "trireme: %s\n", d->about.note);
}

/* ---- memory for a sample ---- */

#define FIELD_ALIGN 64

size_t data_field_at(const tri_data *d, int field) {
    size_t at = 0;
    for (int i = 0; i < field; i++) {
        size_t bytes = base_spec_bytes(&(tri_spec){d->fields[i].type, d->fields[i].shape});
        at += (bytes + FIELD_ALIGN - 1) / FIELD_ALIGN * FIELD_ALIGN;
    }
    return at;
}

size_t data_sample_bytes(const tri_data *d) { return data_field_at(d, d->n_fields); }

void *data_sample_new(const tri_data *d, void **out) {
    char *memory = malloc(data_sample_bytes(d) + 1);
    for (int i = 0; i < d->n_fields && memory; i++) out[i] = memory + data_field_at(d, i);
    return memory;
}

/* ---- samples ---- */

/* Samples are read in order; the rest of an epoch may be skipped. A sample counts as read even if
 * filling fails, since the source has advanced. */
static tri_status advance(tri_data *d, int64_t index, int64_t epoch) {
    bool next = epoch == d->next_epoch && index == d->next_index;
    bool new_epoch = epoch == d->next_epoch + 1 && index == 0 && d->next_index > 0;
    if (!next && !new_epoch)
        return base_fail(TRI_USAGE, "data '%s' is sequential: its next sample is %lld of epoch "
                         "%lld, not %lld of epoch %lld; it can be neither shuffled nor read twice",
                         d->name, (long long)d->next_index, (long long)d->next_epoch,
                         (long long)index, (long long)epoch);
    d->next_index = index + 1;
    d->next_epoch = epoch;
    if (d->next_index == d->size) {
        d->next_index = 0;
        d->next_epoch++;
    }
    return TRI_OK;
}

tri_status tri_data_get(tri_data *d, int64_t index, int64_t epoch, uint64_t seed,
                        void *const *out) {
    if (!d) return base_fail(TRI_USAGE, "tri_data_get: there is no data (null)");
    if (index < 0 || index >= d->size || epoch < 0)
        return base_fail(TRI_USAGE, "data '%s': there is no sample %lld of epoch %lld; samples are "
                         "0 to %lld, epochs count from 0", d->name, (long long)index,
                         (long long)epoch, (long long)d->size - 1);
    if (d->sequential && advance(d, index, epoch)) return TRI_USAGE;
    int code = d->fill(d->user, index, epoch, seed, out);
    if (!code) return TRI_OK;
    if (code == DATA_TOLD) return TRI_FAILED;
    return base_fail(TRI_FAILED, "data '%s': the fill function returned %d for sample %lld of "
                     "epoch %lld", d->name, code, (long long)index, (long long)epoch);
}

void tri_data_free(tri_data *d) {
    if (!d || d->kept) return;
    if (d->free_user) d->free_user(d->user);
    arena_free(&d->arena);
    free(d);
}

void data_name_file(const tri_data *d, int64_t index, struct text *out) {
    struct data_file file = {0};
    if (d->about.file && !d->about.file(d->user, index, &file) && file.name.size)
        text_add(out, "%s", file.name.data);
    free(file.bytes);
    text_free(&file.name);
}

void data_name_sample(const tri_data *d, int64_t index, struct text *out) {
    struct text file = {0};
    data_name_file(d, index, &file);
    text_add(out, "sample %lld of data %s", (long long)index, d->name);
    if (file.size) text_add(out, " (%s)", file.data);
    text_free(&file);
}
