/* SPDX-License-Identifier: Apache-2.0 */
#include "data/tar_pipe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/random.h"
#include "data/pictures.h"
#include "data/stream.h"
#include "data/tar_sample.h"

#define WINDOW 1000 /* the default */

struct tar_pipe {
    struct pictures pictures;
    char *from;       /* the text after "tar:" */
    const char *name; /* for messages */
    struct stream stream;
    uint64_t at; /* bytes read from the stream */
    bool ended;
    struct tar_scan scan;
    /* the last entry read, which belongs to the next sample; name "": none */
    struct tar_entry entry;
    struct data_file *window; /* [size]; the first `ready` hold samples */
    int64_t size, ready, taken;   /* taken: since the start of the stream, or of the epoch */
    uint64_t key;                 /* for choices from the window */
    char failure[512]; /* why nothing more can be read until the stream is opened again; "" */
};

static bool is_command(const char *rest) {
    return !strncmp(rest, STREAM_COMMAND, strlen(STREAM_COMMAND));
}

bool tar_is_pipe(const char *rest) {
    struct stat st;
    return !strcmp(rest, "-") || is_command(rest) || (!stat(rest, &st) && S_ISFIFO(st.st_mode));
}

/* ---- bytes ---- */

/* A command is started when the first sample of each epoch is read. */
static tri_status open_stream(struct tar_pipe *x) {
    x->at = 0;
    x->ended = false;
    *x->failure = 0;
    x->scan.at = 0;
    x->entry.name[0] = 0;
    return stream_open(&x->stream, x->from);
}

/* Up to n bytes; fewer only at the end of the stream. */
static int64_t take_bytes(struct tar_pipe *x, void *to, size_t n) {
    int64_t got = x->ended ? 0 : stream_take(&x->stream, to, n);
    if (got < 0) return -1;
    x->at += (uint64_t)got;
    if (got == (int64_t)n || x->ended) return got;
    x->ended = true;
    return stream_end(&x->stream) ? -1 : got;
}

/* For tar_scan: reads and drops the bytes before `offset`. */
static int64_t read_stream(void *user, uint64_t offset, void *to, size_t n) {
    struct tar_pipe *x = user;
    char left[16384];
    CHECK(offset >= x->at);
    while (x->at < offset) {
        size_t some = offset - x->at < sizeof left ? (size_t)(offset - x->at) : sizeof left;
        int64_t got = take_bytes(x, left, some);
        if (got < (int64_t)some) return got < 0 ? -1 : 0;
    }
    return take_bytes(x, to, n);
}

/* ---- samples ---- */

#define BLOCK 512

/* The next entry, also of the next archive, as archives may follow each other; false at the end of
 * the stream. */
static bool next_entry(struct tar_pipe *x, tri_status *status) {
    while (!tar_next(&x->scan, &x->entry, status)) {
        x->entry.name[0] = 0;
        if (*status || x->ended) return false;
        x->scan.at += BLOCK; /* a block of zeros */
    }
    return true;
}

static tri_status read_picture(struct tar_pipe *x, struct data_file *to) {
    const struct tar_entry *e = &x->entry;
    to->name.size = 0;
    text_add(&to->name, "%s, %s", x->name, e->name);
    if (to->name.failed) return base_no_memory(x->name);
    if (e->size > UINT32_MAX)
        return base_fail(TRI_FAILED, "%s: %llu bytes are too many", to->name.data,
                         (unsigned long long)e->size);
    tri_status status = pictures_reserve(to, (size_t)e->size);
    int64_t got = status ? 0 : read_stream(x, e->offset, to->bytes, to->n);
    if (status || got == (int64_t)e->size) return status;
    return got < 0 ? TRI_FAILED
                   : base_fail(TRI_FAILED, "%s: truncated: the stream ended in the middle of it",
                               to->name.data);
}

/* Whether the entries so far are a whole sample; reports it if not. */
static tri_status policy(struct tar_pipe *x, const char *key, bool picture, bool label,
                         bool *whole) {
    *whole = picture && label;
    if (*whole || (!picture && !label)) return TRI_OK;
    base_fail(PICTURE_BAD, "%s: %s has no %s", x->name, key, picture ? "class" : "picture");
    return pictures_other_bad(&x->pictures);
}

/* The next whole sample; *there false: the stream has ended. The header of the entry after it has
 * been read, but not its content. */
static tri_status read_sample(struct tar_pipe *x, struct data_file *to, bool *there) {
    tri_status status = TRI_OK;
    bool more = *x->entry.name || next_entry(x, &status);
    for (*there = false; more && !*there && !status;) {
        char key[TAR_NAME] = "";
        bool picture = false, label = false;
        for (size_t n; more && !status; more = !status && next_entry(x, &status)) {
            enum tar_kind kind = tar_kind_of(x->entry.name, &n);
            if (kind == TAR_OTHER) continue;
            if (*key && (strlen(key) != n || memcmp(key, x->entry.name, n))) break;
            memcpy(key, x->entry.name, n);
            key[n] = 0;
            if (kind == TAR_PICTURE) {
                status = read_picture(x, to);
                picture = !status;
            } else if (!label && tar_read_class(&x->scan, &x->entry, kind, &to->label, &label)) {
                status = pictures_other_bad(&x->pictures);
            }
        }
        if (!status) status = policy(x, key, picture, label, there);
    }
    return status;
}

static tri_status fill_window(struct tar_pipe *x) {
    tri_status status = *x->failure ? base_fail(TRI_FAILED, "%s", x->failure) : TRI_OK;
    for (bool there = true; x->ready < x->size && there && !status; x->ready += there) {
        there = false;
        if (!x->ended) status = read_sample(x, &x->window[x->ready], &there);
    }
    if (status) base_format(x->failure, sizeof x->failure, "%s", tri_message());
    if (status || x->ready) return status;
    return base_fail(TRI_FAILED, "data '%s': the stream ended after %lld sample(s)",
                     x->pictures.spec, (long long)x->taken);
}

/* Takes a sample from the window, whatever the index. A bad sample is dropped and the next one
 * takes its place. */
static tri_status load(void *source, int64_t index, struct data_file *out) {
    struct tar_pipe *x = source;
    (void)index;
    tri_status status = fill_window(x);
    if (status) return TRI_FAILED;
    int64_t k = (int64_t)(random_uniform(x->key, 0, (uint64_t)x->taken++) * (double)x->ready);
    struct data_file before = *out;
    *out = x->window[k];
    x->window[k] = x->window[--x->ready];
    x->window[x->ready] = before;
    return TRI_OK;
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    struct tar_pipe *x = user;
    bool anew = !index && is_command(x->from);
    if (anew) x->ready = x->taken = 0;
    if ((anew || (x->stream.fd < 0 && !x->ended)) && open_stream(x)) return DATA_TOLD;
    x->key = random_key(random_key(seed, base_hash_text("window")),
                        is_command(x->from) ? (uint64_t)epoch : 0);
    return pictures_fill(&x->pictures, index, epoch, seed, out);
}

/* ---- opening ---- */

static void free_pipe(void *user) {
    struct tar_pipe *x = user;
    stream_close(&x->stream);
    free(x->stream.buffer);
    for (int64_t i = 0; x->window && i < x->size; i++) {
        free(x->window[i].bytes);
        text_free(&x->window[i].name);
    }
    free(x->window);
    pictures_close(&x->pictures);
    free(x->from);
    free(x);
}

struct pipe_settings {
    struct augment_settings augment;
    int64_t max_bad, window, samples;
};

static tri_status make(struct tar_pipe *x, const struct data_spec *s,
                       const struct pipe_settings *o) {
    struct augment augment;
    if (o->samples < 1 || o->samples > DATA_MAX_SIZE)
        return base_fail(TRI_USAGE,
                         "data '%s': a pipe does not show its number of samples: samples=N gives "
                         "the size of an epoch",
                         s->spec);
    if (o->window < 1 || o->window > 1 << 24)
        return base_fail(TRI_USAGE, "data '%s': window=%lld; 1 to 2^24 are possible", s->spec,
                         (long long)o->window);
    x->stream = (struct stream){.fd = -1};
    x->size = o->window;
    x->from = strdup(s->rest);
    x->window = calloc((size_t)x->size, sizeof *x->window);
    if (!x->from || !x->window) return base_no_memory(s->spec);
    x->name = strcmp(x->from, "-") ? x->from : "standard input";
    x->stream.name = x->name;
    x->scan = (struct tar_scan){read_stream, x, INT64_MAX, x->name, 0};
    tri_status status = augment_make(s->spec, &o->augment, true, &augment);
    if (!status) status = pictures_init(&x->pictures, s->spec, &augment, o->samples, o->max_bad);
    x->pictures.source = x;
    x->pictures.load = load;
    return status;
}

tri_data *tar_open_pipe(const struct data_spec *s) {
    struct pipe_settings o = {
        .augment = AUGMENT_DEFAULTS, .max_bad = PICTURES_MAX_BAD, .window = WINDOW};
    const struct data_option known[] = {AUGMENT_OPTIONS(&o.augment),
                                        {"max-bad", DATA_INT, &o.max_bad},
                                        {"window", DATA_INT, &o.window},
                                        {"samples", DATA_INT, &o.samples}};
    if (data_parse_options(s, known, (int)COUNT(known))) return NULL;
    struct tar_pipe *x = calloc(1, sizeof *x);
    if (!x || make(x, s, &o)) {
        if (x) free_pipe(x);
        else base_no_memory(s->spec);
        return NULL;
    }
    const tri_field fields[] = {{"image", TRI_F32, TRI_SHAPE(3, o.augment.size, o.augment.size)},
                                {"label", TRI_I64, TRI_SCALAR}};
    tri_data *d = data_make(s->spec, o.samples, fields, (int)COUNT(fields), fill, x, true,
                            free_pipe);
    if (d) d->about.augment = &x->pictures.augment;
    if (d) x->stream.data = d;
    if (d) d->alone = !is_command(s->rest);
    return data_prepared(d, known, (int)COUNT(known));
}
