/* SPDX-License-Identifier: Apache-2.0
 * The order of samples: by default each epoch is a permutation, keyed by seed and epoch. */
#include "data/sampler.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "data/data.h"
#include "data/lengths.h"
#include "data/strata.h"
#include "data/weights.h"

/* ---- options ---- */

static tri_status read_share(struct sampler *s, const char *text) {
    char *end = NULL, *slash = NULL;
    if (!text) return TRI_OK;
    s->share = strtoll(text, &slash, 10);
    if (slash != text && *slash == '/') s->shares = strtoll(slash + 1, &end, 10);
    s->even = end && !strcmp(end, ",drop");
    if (!end || end == slash + 1 || (*end && !s->even) || s->shares < 1 || s->share < 0 ||
        s->share >= s->shares)
        return base_fail(
            TRI_USAGE,
            "--share (tri_options.share) is \"%s\"; K/N or K/N,drop is needed, with K from 0 "
            "to N - 1",
            text);
    if (s->shares <= s->size) return TRI_OK;
    return base_fail(TRI_USAGE, "--share: the data has %lld sample(s), which do not make %lld "
                     "shares", (long long)s->size, (long long)s->shares);
}

static tri_status stratify(struct sampler *s, const tri_data *d, const struct sampler_settings *o,
                           const char *rest) {
    (void)rest;
    return strata_make(d, s, o->lanes, &s->strata);
}

static tri_status weigh(struct sampler *s, const tri_data *d, const struct sampler_settings *o,
                        const char *rest) {
    (void)o;
    s->weights = calloc(1, sizeof *s->weights);
    return s->weights ? weights_make(d, rest, s->weights) : base_no_memory(d->name);
}

static const struct kind {
    const char *name;
    bool rest; /* takes a text after a colon */
    bool shuffle;
    tri_status (*make)(struct sampler *s, const tri_data *d, const struct sampler_settings *o,
                       const char *rest);
} kinds[] = {
    {"shuffled", false, true, NULL},
    {"sequential", false, false, NULL},
    {"stratified", false, false, stratify},
    {"weighted", true, false, weigh},
};

static tri_status find_kind(const char *text, const struct kind **kind) {
    size_t n = strcspn(text, ":");
    for (size_t i = 0; i < COUNT(kinds); i++) {
        *kind = &kinds[i];
        bool right = kinds[i].rest ? text[n] && text[n + 1] : !text[n];
        if (right && strlen(kinds[i].name) == n && !strncmp(kinds[i].name, text, n)) return TRI_OK;
    }
    return base_fail(TRI_USAGE,
                     "--sampler (tri_options.sampler) is \"%s\"; known: shuffled, sequential, "
                     "stratified, weighted:balanced, weighted:classes=X/X..., weighted:FILE",
                     text);
}

static tri_status choose_kind(struct sampler *s, const tri_data *d,
                              const struct sampler_settings *o) {
    const char *text = o->kind ? o->kind : o->no_shuffle ? "sequential" : "shuffled";
    const struct kind *kind;
    tri_status status = find_kind(text, &kind);
    if (status) return status;
    if (o->kind && o->no_shuffle && strcmp(kind->name, "sequential"))
        return base_fail(TRI_USAGE,
                         "--shuffle off and --sampler %s are both given; give one of them",
                         text);
    s->shuffle = kind->shuffle;
    if (o->limits > 1 && (kind->make || s->shares > 1 || d->sequential))
        return base_fail(TRI_USAGE,
                         "a network with shorter forms (tri_shorter) needs samples in shuffled or "
                         "sequential order, from data that is not sequential, without --share");
    if (d->sequential && (s->shuffle || kind->make || s->shares > 1))
        return base_fail(TRI_USAGE,
                         "data %s is sequential and cannot be shuffled, reordered or divided into "
                         "shares; use --shuffle off (tri_options.no_shuffle)",
                         d->name);
    return kind->make ? kind->make(s, d, o, text + strlen(kind->name) + kind->rest) : TRI_OK;
}

tri_status sampler_open(struct sampler *s, const tri_data *d, const struct sampler_settings *o) {
    int64_t steps;
    *s = (struct sampler){.size = d->size, .batch = o->batch, .seed = o->seed};
    tri_status status = read_share(s, o->share);
    s->keep = o->tail == TAIL_KEEP;
    s->pad = o->tail == TAIL_PAD;
    if (!status && s->pad && d->sequential)
        status = base_fail(
            TRI_USAGE,
            "--tail pad: data %s is sequential, so its first samples cannot be read again",
            d->name);
    if (!status) status = sampler_steps(s, &steps);
    if (!status) status = choose_kind(s, d, o);
    if (!status && o->limits > 1) status = lengths_make(d, o->limit, o->limits, &s->lengths);
    return status ? status : sampler_steps(s, &steps);
}

void sampler_close(struct sampler *s) {
    strata_free(s->strata);
    if (s->weights) weights_free(s->weights);
    free(s->weights);
    lengths_free(s->lengths);
    *s = (struct sampler){0};
}

/* ---- places ---- */

size_t sampler_bytes(const struct sampler *s) {
    return (s->strata ? strata_bytes(s->strata) : 0) +
           (s->weights ? (size_t)s->weights->size * sizeof *s->weights->until : 0) +
           (s->lengths ? (size_t)s->lengths->first[s->lengths->n] * sizeof *s->lengths->sample : 0);
}

int64_t sampler_places(const struct sampler *s) {
    int64_t shares = s->shares ? s->shares : 1;
    return s->even ? s->size / shares : (s->size + shares - 1) / shares;
}

static int classes(const struct sampler *s) { return s->lengths ? s->lengths->n : 1; }

static int64_t places_of(const struct sampler *s, int class) {
    return s->lengths ? s->lengths->first[class + 1] - s->lengths->first[class] : sampler_places(s);
}

static int64_t steps_of_class(const struct sampler *s, int class) {
    return (places_of(s, class) + (s->pad || s->keep ? s->batch - 1 : 0)) / s->batch;
}

static int64_t steps_of(const struct sampler *s) {
    int64_t steps = 0;
    for (int k = 0; k < classes(s); k++) steps += steps_of_class(s, k);
    return steps;
}

tri_status sampler_steps(const struct sampler *s, int64_t *steps) {
    int64_t places = 0;
    *steps = 0;
    if (s->batch < 1)
        return base_fail(TRI_USAGE, "a batch of %lld samples; at least 1 is needed",
                         (long long)s->batch);
    *steps = steps_of(s);
    if (*steps) return TRI_OK;
    for (int k = 0; k < classes(s); k++)
        if (places_of(s, k) > places) places = places_of(s, k);
    return base_fail(TRI_USAGE,
                     "the %s has %lld sample(s)%s, fewer than the batch of %lld; take "
                     "a batch of at most %lld",
                     s->shares > 1 ? "data's share" : "data", (long long)places,
                     s->lengths ? " at most for any of the networks" : "", (long long)s->batch,
                     (long long)places);
}

int64_t sampler_epoch(const struct sampler *s, int64_t step) { return step / steps_of(s); }

static uint64_t epoch_key(const struct sampler *s, int64_t epoch) {
    return random_key(random_key(s->seed, base_hash_text("sampler")), (uint64_t)epoch);
}

struct where {
    int64_t epoch, first, rows;
    int class;
};

/* With lengths, the steps of all classes are shuffled together, keyed by the epoch. */
static struct where find(const struct sampler *s, int64_t step) {
    int64_t steps = steps_of(s), left;
    CHECK(steps > 0 && step >= 0);
    struct where w = {.epoch = step / steps};
    uint64_t number = (uint64_t)(step % steps);
    if (s->lengths && s->shuffle) {
        struct permutation order;
        permute_make(random_key(epoch_key(s, w.epoch), base_hash_text("lengths")), (uint64_t)steps,
                     &order);
        permute_fill(&order, number, 1, &number);
    }
    for (; (int64_t)number >= steps_of_class(s, w.class); w.class++)
        number -= (uint64_t)steps_of_class(s, w.class);
    w.first = (int64_t)number * s->batch;
    left = places_of(s, w.class) - w.first;
    w.rows = s->keep && left < s->batch ? left : s->batch;
    return w;
}

struct sampler_step sampler_step(const struct sampler *s, int64_t step) {
    struct where w = find(s, step);
    return (struct sampler_step){w.class, w.rows};
}

int sampler_kinds(const struct sampler *s, struct sampler_step *out, int most) {
    int n = 0;
    for (int k = 0; k < classes(s); k++) {
        int64_t rest = s->keep ? places_of(s, k) % s->batch : 0;
        struct sampler_step kind[] = {{k, s->batch}, {k, rest}};
        bool there[] = {steps_of_class(s, k) > (rest > 0), rest > 0};
        for (int i = 0; i < 2; i++) {
            if (there[i] && n < most) out[n] = kind[i];
            n += there[i];
        }
    }
    return n;
}

void sampler_seek(struct sampler *s, int64_t step) {
    CHECK(s->batch > 0 && s->size <= DATA_MAX_SIZE);
    struct where w = find(s, step);
    uint64_t n = (uint64_t)(s->lengths ? places_of(s, w.class) : s->size),
             key = epoch_key(s, w.epoch);
    bool same = w.epoch == s->epoch && w.class == s->class && s->order.n == n;
    s->epoch = w.epoch;
    s->class = w.class;
    s->first = w.first;
    if (s->strata) s->strata_order = strata_order(s->strata, w.epoch);
    if (s->shuffle && !same)
        permute_make(w.class ? random_key(key, (uint64_t)w.class) : key, n, &s->order);
}

/* The sample at a place of the whole epoch. */
static uint64_t sample_at(const struct sampler *s, int64_t place) {
    uint64_t index = (uint64_t)place;
    if (s->weights) index = (uint64_t)weights_draw(s->weights, epoch_key(s, s->epoch), place);
    if (s->shuffle) permute_fill(&s->order, (uint64_t)place, 1, &index);
    return index;
}

/* The sample at a place of this share, or of the length class. */
static uint64_t own_sample(const struct sampler *s, int64_t own) {
    if (s->lengths)
        return s->lengths->sample[s->lengths->first[s->class] + (int64_t)sample_at(s, own)];
    if (s->strata) return s->strata_order[own];
    return sample_at(s, s->shares > 1 ? (s->share + own * s->shares) % s->size : own);
}

void sampler_take(const struct sampler *s, int64_t place, int64_t n, uint64_t *index) {
    CHECK(place >= 0 && n >= 0 && n <= s->batch - place);
    int64_t first = s->first + place, places = places_of(s, s->class);
    if (s->shuffle && !s->lengths && s->shares <= 1 && first + n <= places) {
        permute_fill(&s->order, (uint64_t)first, (size_t)n, index);
        return;
    }
    for (int64_t i = 0; i < n; i++) index[i] = own_sample(s, (first + i) % places);
}

int64_t sampler_counted(const struct sampler *s, int64_t step) {
    struct where w = find(s, step);
    int64_t left = places_of(s, w.class) - w.first;
    return left < w.rows ? left : w.rows;
}

int64_t sampler_padding(const struct sampler *s) {
    int64_t left = s->keep ? s->batch : places_of(s, s->class) - s->first;
    return left < s->batch ? left : s->batch;
}
