/* SPDX-License-Identifier: Apache-2.0
 * A data set made of another one, which it owns: some of its samples, several epochs of it as one,
 * samples changed by a function, or a sequential one shuffled. Facts about the inner data set that
 * still hold are passed on. */
#include "data/over.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "data/numbers.h"

struct over {
    tri_data *inner;
    int64_t first;  /* sample i is the inner sample first + i or index[i], modulo the inner size; */
    int64_t *index; /* each further round is another epoch of the inner data */
    int64_t times;  /* rounds */
    tri_map *map;   /* null: samples are not changed */
    void *map_user;
    bool in_place;
    /* tri_data_concurrent on this data set does not allow concurrent calls of the inner one. */
    pthread_mutex_t one;
    /* For a window: the samples read ahead, `count` of them. */
    int64_t window, count, next;
    void **slot; /* [window]: the memory of each sample, with fields at data_field_at */
};

static void free_over(void *user) {
    struct over *x = user;
    for (int64_t i = 0; x->slot && i < x->window; i++) free(x->slot[i]);
    free(x->slot);
    free(x->index);
    tri_data_free(x->inner);
    pthread_mutex_destroy(&x->one);
    free(x);
}

/* ---- facts that are passed on ---- */

static int64_t inner_index(const struct over *x, int64_t i) {
    return x->index ? x->index[i] : (x->first + i) % x->inner->size;
}

static const char *class_name(const void *user, int64_t label) {
    const struct over *x = user;
    return x->inner->about.class_name(x->inner->user, label);
}

static int64_t label_of(const void *user, int64_t index) {
    const struct over *x = user;
    return x->inner->about.label(x->inner->user, inner_index(x, index));
}

static int64_t length_of(const void *user, int64_t index) {
    const struct over *x = user;
    return x->inner->about.length(x->inner->user, inner_index(x, index));
}

static tri_status check(void *user, int64_t index) {
    const struct over *x = user;
    return x->inner->about.check(x->inner->user, inner_index(x, index));
}

static void describe(void *user, struct text *out) {
    const struct over *x = user;
    x->inner->about.describe(x->inner->user, out);
}

static struct data_about about(const struct data_about *inner) {
    return (struct data_about){.classes = inner->classes,
                               .class_name = inner->class_name ? class_name : NULL,
                               .label = inner->label ? label_of : NULL,
                               .length = inner->length ? length_of : NULL,
                               .augment = inner->augment,
                               .prepared = inner->prepared,
                               .pictures = inner->pictures,
                               .check = inner->check ? check : NULL,
                               .describe = inner->describe ? describe : NULL};
}

/* ---- samples ---- */

static tri_status get_inner(struct over *x, int64_t index, int64_t epoch, uint64_t seed,
                            void *const *out) {
    if (x->inner->concurrent) return tri_data_get(x->inner, index, epoch, seed, out);
    pthread_mutex_lock(&x->one);
    tri_status status = tri_data_get(x->inner, index, epoch, seed, out);
    pthread_mutex_unlock(&x->one);
    return status;
}

/* If the inner data is sequential, reads and drops the samples before. */
static tri_status read_up_to(tri_data *d, int64_t index, int64_t epoch, uint64_t seed,
                             void *const *out) {
    tri_status status = TRI_OK;
    while (!status && d->sequential &&
           (d->next_epoch < epoch || (d->next_epoch == epoch && d->next_index < index)))
        status = tri_data_get(d, d->next_index, d->next_epoch, seed, out);
    return status;
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    struct over *x = user;
    int64_t i = inner_index(x, index),
            e = epoch * x->times + (x->first + index) / x->inner->size * !x->index;
    if (x->times > 1 && read_up_to(x->inner, i, e, seed, out)) return DATA_TOLD;
    return get_inner(x, i, e, seed, out) ? DATA_TOLD : 0;
}

static int mapped(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    struct over *x = user;
    void *in[TRI_MAX_FIELDS], *memory = NULL, *const *from = out;
    if (!x->in_place && !(memory = data_sample_new(x->inner, in))) {
        base_no_memory(x->inner->name);
        return DATA_TOLD;
    }
    if (memory) from = in;
    int code = get_inner(x, index, epoch, seed, from) ? DATA_TOLD : 0;
    if (!code && (code = x->map(x->map_user, index, epoch, seed, from, out)))
        code = base_fail(
                   TRI_FAILED,
                   "data '%s': the function that maps it returned %d for sample %lld of epoch %lld",
                   x->inner->name, code, (long long)index, (long long)epoch)
                   ? DATA_TOLD
                   : 0;
    free(memory);
    return code;
}

static void copy_out(const tri_data *d, const char *from, void *const *out) {
    for (int i = 0; i < d->n_fields; i++) {
        size_t bytes = base_spec_bytes(&(tri_spec){d->fields[i].type, d->fields[i].shape});
        memcpy(out[i], from + data_field_at(d, i), bytes);
    }
}

/* Takes one of the samples read ahead; the last of them moves to its slot. */
static int draw(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    struct over *x = user;
    if (!index) x->count = x->next = 0; /* also if an epoch was not read to its end */
    for (; x->count < x->window && x->next < x->inner->size; x->next++, x->count++) {
        void *at[TRI_MAX_FIELDS];
        for (int i = 0; i < x->inner->n_fields; i++)
            at[i] = (char *)x->slot[x->count] + data_field_at(x->inner, i);
        if (tri_data_get(x->inner, x->next, epoch, seed, at)) return DATA_TOLD;
    }
    uint64_t key = random_key(random_key(seed, base_hash_text("window")), (uint64_t)epoch);
    int64_t k = (int64_t)(random_uniform(key, 0, (uint64_t)index) * (double)x->count);
    void *taken = x->slot[k];
    copy_out(x->inner, taken, out);
    x->slot[k] = x->slot[--x->count];
    x->slot[x->count] = taken;
    return 0;
}

/* ---- creation ---- */

struct plan {
    const char *name;
    int64_t size;
    const tri_field *fields;
    int n;
    tri_fill *fill;
    bool tells; /* facts about the inner data still hold */
};

static size_t held_by(const struct over *x, int64_t size) {
    return (x->index ? (size_t)size * sizeof *x->index : 0) +
           (size_t)x->window * data_sample_bytes(x->inner);
}

/* Takes ownership of x and its inner data. */
static tri_data *make(struct over *x, const struct plan *p) {
    tri_data *inner = x->inner;
    tri_data *d = data_make(p->name, p->size, p->fields ? p->fields : inner->fields,
                            p->fields ? p->n : inner->n_fields, p->fill, x, inner->sequential,
                            free_over);
    if (d && p->tells) d->about = about(&inner->about);
    if (d) d->under = inner;
    if (d) d->about.held = inner->about.held + held_by(x, p->size);
    if (d) d->about.warning = inner->about.warning;
    if (d) d->about.note = inner->about.note;
    if (d) d->alone = inner->alone;
    if (d) d->concurrent = inner->concurrent && p->fill != mapped;
    return d;
}

static struct over *begin(tri_data *d) {
    struct over *x = d ? calloc(1, sizeof *x) : NULL;
    if (d && !x) {
        base_no_memory(d->name);
        tri_data_free(d);
    }
    if (x) *x = (struct over){.inner = d, .times = 1, .one = PTHREAD_MUTEX_INITIALIZER};
    return x;
}

static tri_data *refuse(struct over *x, tri_status status) {
    (void)status;
    free_over(x);
    return NULL;
}

#define NAME_BYTES 512

tri_data *tri_data_take(tri_data *d, int64_t first, int64_t n) {
    char name[NAME_BYTES];
    struct over *x = begin(d);
    if (!x) return NULL;
    if (first < 0 || n < 1 || first > d->size - n)
        return refuse(x,
                      base_fail(TRI_USAGE, "data '%s': %lld sample(s) from %lld on; there are %lld",
                                d->name, (long long)n, (long long)first, (long long)d->size));
    if (d->sequential && first)
        return refuse(x, base_fail(TRI_USAGE,
                                   "data '%s' is sequential: only its first samples can be taken, "
                                   "not those from %lld on",
                                   d->name, (long long)first));
    x->first = first;
    base_format(name, sizeof name, "%s, samples %lld to %lld", d->name, (long long)first,
                (long long)(first + n - 1));
    return make(x, &(struct plan){.name = name, .size = n, .fill = fill, .tells = true});
}

tri_data *tri_data_subset(tri_data *d, const int64_t *index, int64_t n) {
    char name[NAME_BYTES];
    struct over *x = begin(d);
    if (!x) return NULL;
    if (d->sequential)
        return refuse(
            x,
            base_fail(
                TRI_USAGE,
                "data '%s' is sequential: only its first samples can be taken, with tri_data_take",
                d->name));
    if (n < 1 || n > DATA_MAX_SIZE || !(x->index = malloc((size_t)n * sizeof *index)))
        return refuse(x, n < 1 ? base_fail(TRI_USAGE, "data '%s': a subset of %lld samples",
                                           d->name, (long long)n)
                               : base_no_memory(d->name));
    for (int64_t i = 0; i < n; i++) {
        x->index[i] = index[i];
        if (index[i] < 0 || index[i] >= d->size)
            return refuse(x, base_fail(TRI_USAGE,
                                       "data '%s': a subset with sample %lld; there are %lld",
                                       d->name, (long long)index[i], (long long)d->size));
    }
    base_format(name, sizeof name, "%s, %lld of its samples", d->name, (long long)n);
    return make(x, &(struct plan){.name = name, .size = n, .fill = fill, .tells = true});
}

tri_data *tri_data_repeat(tri_data *d, int64_t times) {
    char name[NAME_BYTES];
    int64_t size;
    struct over *x = begin(d);
    if (!x) return NULL;
    if (times < 1 || __builtin_mul_overflow(d->size, times, &size) || size > DATA_MAX_SIZE)
        return refuse(x,
                      base_fail(TRI_USAGE, "data '%s', %lld times: 1 to 2^48 samples are possible",
                                d->name, (long long)times));
    x->times = times;
    base_format(name, sizeof name, "%s, %lld time(s)", d->name, (long long)times);
    return make(x, &(struct plan){.name = name, .size = size, .fill = fill, .tells = true});
}

tri_data *tri_data_map(tri_data *d, const tri_field *fields, int n, tri_map *map, void *user) {
    char name[NAME_BYTES];
    struct over *x = begin(d);
    if (!x) return NULL;
    if (!map)
        return refuse(x,
                      base_fail(TRI_USAGE, "data '%s': there is no function to map it", d->name));
    x->map = map;
    x->map_user = user;
    x->in_place = !fields;
    base_format(name, sizeof name, "%s, mapped", d->name);
    return make(x, &(struct plan){name, d->size, fields, n, mapped, false});
}

tri_data *tri_data_shuffle(tri_data *d, int64_t window) {
    char name[NAME_BYTES];
    struct over *x = begin(d);
    if (!x) return NULL;
    if (!d->sequential)
        return refuse(x, base_fail(TRI_USAGE,
                                   "data '%s' is not sequential: --shuffle on shuffles all of it; "
                                   "a window is only for sequential data",
                                   d->name));
    if (window < 1 || window > DATA_MAX_SIZE)
        return refuse(x, base_fail(TRI_USAGE, "data '%s': a window of %lld samples", d->name,
                                   (long long)window));
    if (window > d->size) window = d->size;
    x->slot = calloc((size_t)window, sizeof *x->slot);
    for (x->window = window; x->slot && x->count < window; x->count++)
        if (!(x->slot[x->count] = malloc(data_sample_bytes(d)))) break;
    if (x->count < window) return refuse(x, base_no_memory(d->name));
    x->count = 0;
    base_format(name, sizeof name, "%s, window %lld", d->name, (long long)window);
    return make(x, &(struct plan){.name = name, .size = d->size, .fill = draw});
}

void tri_data_labels(tri_data *d, int64_t classes,
                     int64_t (*label)(const void *user, int64_t index)) {
    if (!d) return;
    d->about.classes = classes;
    d->about.label = label;
}

void tri_data_lengths(tri_data *d, int64_t (*length)(const void *user, int64_t index)) {
    if (d) d->about.length = length;
}

/* ---- from a text ---- */

/* Reads "FIRST:END"; false if it has another form. */
static bool read_range(const char *text, int64_t size, int64_t *first, int64_t *end) {
    char *rest = (char *)(uintptr_t)text;
    *first = 0;
    *end = size;
    if (*text != ':') *first = strtoll(text, &rest, 10);
    if (*rest != ':' || text[strspn(text, "0123456789:")]) return false;
    if (rest[1]) *end = strtoll(rest + 1, &rest, 10);
    else rest++;
    return !*rest;
}

static tri_data *listed(tri_data *d, const char *path) {
    struct numbers file;
    int64_t *index = NULL, n = 0;
    size_t capacity = 0;
    tri_status status = numbers_open(&file, path);
    for (double x; !status && numbers_next(&file, &x, &status); n++) {
        if (x != (double)(int64_t)x || x < 0 || x >= (double)d->size)
            status = base_fail(TRI_FAILED, "%s: line %ld: %g; the samples of data %s are 0 to %lld",
                               path, file.line, x, d->name, (long long)d->size - 1);
        else if (!ARRAY_GROW(index, n, capacity)) status = base_no_memory(path);
        else index[n] = (int64_t)x;
    }
    numbers_close(&file);
    if (!status && !n) status = base_fail(TRI_FAILED, "%s: no samples are listed", path);
    if (status) tri_data_free(d);
    tri_data *out = status ? NULL : tri_data_subset(d, index, n);
    free(index);
    return out;
}

tri_data *data_subset(tri_data *d, const char *text) {
    int64_t first, end;
    if (!d) return NULL;
    if (!read_range(text, d->size, &first, &end)) return listed(d, text);
    if (first < end && end <= d->size) return tri_data_take(d, first, end - first);
    base_fail(
        TRI_USAGE,
        "--subset %s: data %s has the samples 0 to %lld; FIRST:END selects FIRST to END - 1",
        text, d->name, (long long)d->size - 1);
    tri_data_free(d);
    return NULL;
}
