/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/buckets.h"

#include <stdlib.h>
#include <string.h>

/* ---- when results are touched ---- */

static void touch(struct touched *s, size_t item) {
    if (item < s->first) s->first = item;
    if (item > s->last) s->last = item;
}

struct touched *buckets_spans(const struct program *lane) {
    struct touched *by_root = calloc((size_t)lane->g->n_tensors + 1, sizeof *by_root);
    struct touched *s = calloc((size_t)lane->n_result + 1, sizeof *s);
    const int *root = lane->memory.root;
    for (int i = 0; by_root && i < lane->g->n_tensors; i++) by_root[i].first = lane->n_items;
    for (size_t k = 0; by_root && k < lane->n_items; k++) {
        const struct unit *u = lane->item[k].unit;
        for (int j = 0; j < u->n_in; j++) touch(&by_root[root[u->in[j]->id]], k);
        for (int j = 0; j < u->n_out; j++) touch(&by_root[root[u->out[j]->id]], k);
    }
    for (int i = 0; by_root && s && i < lane->n_result; i++)
        s[i] = by_root[root[lane->result[i].tensor]];
    free(by_root);
    return s;
}

/* A result of a leg and what decides on its bucket. */
struct result {
    int of, own;
    size_t bytes;
    struct touched span;
};

static int by_end(const void *a, const void *b) {
    const struct result *x = a, *y = b;
    if (x->own != y->own) return x->own - y->own;
    if (x->span.last != y->span.last) return x->span.last < y->span.last ? -1 : 1;
    return x->of - y->of;
}

/* The results of a leg that are summed, in the order in which they are complete; those of own
 * buckets last. Returns how many. */
static int list(const struct program *lane, const struct touched *span,
                const struct bucket_rule *rule, int leg, struct result *r) {
    int n = 0;
    for (int i = 0; i < lane->n_result; i++) {
        const tri_tensor *t = lane->result[i].is;
        int of = lane->result[i].of;
        if (program_hands_over(lane, i) || (lane->g->legs && t->node->leg != leg)) continue;
        r[n++] = (struct result){of, rule->own ? rule->own[of] : 0, memory_bytes(t), span[i]};
    }
    qsort(r, (size_t)n, sizeof *r, by_end);
    return n;
}

#define LAST (-2) /* in `of`, while the number of buckets is not known */

/* Gives each result of a leg a bucket; returns how many there are before the last. base: the number
 * of the leg's first bucket. */
static int divide(const struct result *r, int n, const struct bucket_rule *rule, size_t bytes,
                  int base, int *of) {
    int buckets = 0, first = 0, before = 0, i = 0; /* first: of the bucket that is being filled */
    size_t filled = 0, begin = rule->from;
    for (; i < n && !r[i].own; i++) {
        bool late = r[i].span.first < begin; /* the bucket would be open beside the one before */
        of[r[i].of] = late ? LAST : base + buckets;
        if (!late) filled += r[i].bytes;
        bool unit_ends = i + 1 == n || r[i + 1].own || r[i + 1].span.last != r[i].span.last;
        if (filled < bytes || !unit_ends) continue;
        buckets++;
        filled = 0;
        before = first;
        first = i + 1;
        begin = r[i].span.last + 1;
    }
    if (buckets && first == n) buckets--, first = before; /* ready when the lane ends, nearly */
    if (buckets == 1) buckets = first = 0; /* one beside the last gains nothing */
    for (int k = first; k < i; k++) of[r[k].of] = LAST;
    for (; i < n; i++) {
        of[r[i].of] = base + buckets;
        buckets += i + 1 == n || r[i + 1].own != r[i].own;
    }
    return buckets;
}

/* ---- events ---- */

static int by_item(const void *a, const void *b) {
    const struct bucket_event *x = a, *y = b;
    if (x->item != y->item) return x->item < y->item ? -1 : 1;
    return x->opens != y->opens ? x->opens - y->opens : x->bucket - y->bucket;
}

bool buckets_is_last(const struct buckets *b, int bucket) {
    return b->last[b->leg[bucket]] == bucket;
}

bool buckets_is_summed(const struct buckets *b, int bucket) {
    return leg_set_is_empty(&b->readers[bucket]);
}

static bool has_events(const struct buckets *b, int bucket) {
    return bucket != b->last[b->leg[bucket]] && buckets_is_summed(b, bucket);
}

tri_status buckets_events(const struct buckets *b, const struct program *lane,
                          struct bucket_events *out) {
    size_t n = (size_t)b->n;
    struct touched *bucket = calloc(n + 1, sizeof *bucket), *result = buckets_spans(lane);
    *out = (struct bucket_events){.event = calloc(2 * n + 1, sizeof *out->event),
                                  .stop = calloc(2 * n + 1, sizeof *out->stop)};
    bool ok = bucket && result && out->event && out->stop;
    for (size_t i = 0; ok && i < n; i++) bucket[i].first = lane->n_items;
    for (int i = 0; ok && i < lane->n_result; i++) {
        int of = lane->result[i].of < b->n_of ? b->of[lane->result[i].of] : -1;
        if (of < 0 || !has_events(b, of)) continue;
        touch(&bucket[of], result[i].first);
        touch(&bucket[of], result[i].last);
    }
    for (size_t i = 0; ok && i < n; i++) {
        if (!has_events(b, (int)i)) continue;
        CHECK(bucket[i].first <= bucket[i].last); /* all programs have the same results */
        out->event[out->n++] = (struct bucket_event){bucket[i].first, (int)i, true};
        out->event[out->n++] = (struct bucket_event){bucket[i].last + 1, (int)i, false};
    }
    if (ok) qsort(out->event, (size_t)out->n, sizeof *out->event, by_item);
    for (int i = 0; ok && i < out->n; i++) out->stop[i] = out->event[i].item;
    for (int leg = 0, i = 0; ok && leg <= b->legs; out->leg[leg++] = i)
        while (i < out->n && b->leg[out->event[i].bucket] < leg) i++;
    free(bucket);
    free(result);
    if (ok) return TRI_OK;
    buckets_events_free(out);
    return base_no_memory("buckets");
}

void buckets_events_free(struct bucket_events *e) {
    free(e->event);
    free(e->stop);
    *e = (struct bucket_events){0};
}

int buckets_open(const struct bucket_events *e) {
    int open = 1, most = 1;
    for (int i = 0; i < e->n; i++) {
        open += e->event[i].opens ? 1 : -1;
        if (open > most) most = open;
    }
    return most;
}

/* ---- making ---- */

static bool add_bucket(struct buckets *b, int leg, const struct leg_set *readers) {
    int *grown = realloc(b->leg, ((size_t)b->n + 1) * sizeof *grown);
    if (grown) b->leg = grown;
    struct leg_set *more = realloc(b->readers, ((size_t)b->n + 1) * sizeof *more);
    if (more) b->readers = more;
    if (!grown || !more) return false;
    b->leg[b->n] = leg;
    b->readers[b->n++] = *readers;
    return true;
}

/* The bucket of what the leg hands to these legs, after bucket `first`. -1: out of memory. */
static int bucket_for(struct buckets *b, int first, int leg, const struct leg_set *readers) {
    for (int i = first; i < b->n; i++)
        if (!memcmp(&b->readers[i], readers, sizeof *readers)) return i;
    return add_bucket(b, leg, readers) ? b->n - 1 : -1;
}

/* Gives buckets to what a leg hands to others. */
static bool hand_over(const struct program *lane, int leg, int first, struct buckets *b) {
    struct leg_set *readers = legs_readers(lane->g);
    bool ok = readers;
    for (int i = 0; i < lane->n_result && ok; i++) {
        const tri_tensor *t = lane->result[i].is;
        if (!program_hands_over(lane, i) || t->node->leg != leg) continue;
        int bucket = bucket_for(b, first, leg, &readers[t->id]);
        b->of[lane->result[i].of] = bucket;
        ok = bucket >= 0;
    }
    free(readers);
    return ok;
}

/* All buckets, if those that are summed have at least so many bytes; how many those are. */
static int try(const struct program *const *lane, const struct touched *span,
               const struct bucket_rule *rule, size_t bytes, struct result *r, struct buckets *b) {
    static const struct leg_set nobody;
    int summed = 0;
    bool ok = true;
    b->n = 0;
    for (int i = 0; i < b->n_of; i++) b->of[i] = -1;
    for (int leg = 0; leg < b->legs && ok; leg++) {
        int n = list(lane[0], span, rule, leg, r), base = b->n;
        int buckets = divide(r, n, rule, bytes, base, b->of);
        summed += buckets + 1;
        while (b->n < base + buckets && ok) ok = add_bucket(b, leg, &nobody);
        for (int k = 0; k < 2 && ok && b->legs > 1; k++)
            if (lane[k]) ok = hand_over(lane[k], leg, base + buckets, b);
        b->last[leg] = b->n;
        ok = ok && add_bucket(b, leg, &nobody);
        for (int i = 0; i < n; i++)
            if (b->of[r[i].of] == LAST) b->of[r[i].of] = b->last[leg];
    }
    return ok ? summed : -1;
}

tri_status buckets_make(const struct program *const *lane, const struct bucket_rule *rule,
                        struct buckets *b) {
    *b = (struct buckets){.legs = lane[0]->g->legs ? lane[0]->g->legs : 1};
    for (int k = 0; k < 2 && lane[k]; k++)
        for (int i = 0; i < lane[k]->n_result; i++)
            if (lane[k]->result[i].of >= b->n_of) b->n_of = lane[k]->result[i].of + 1;
    struct result *r = calloc((size_t)lane[0]->n_result + 1, sizeof *r);
    struct touched *span = buckets_spans(lane[0]);
    b->of = malloc(((size_t)b->n_of + 1) * sizeof *b->of);
    size_t bytes = rule->bytes ? rule->bytes : 1;
    int summed = r && span && b->of ? 0 : -1;
    do summed = summed < 0 ? -1 : try(lane, span, rule, bytes, r, b);
    while (summed > rule->most && bytes < SIZE_MAX / 2 && (bytes *= 2));
    free(r);
    free(span);
    if (summed >= 0) return TRI_OK;
    buckets_free(b);
    return base_no_memory("buckets");
}

void buckets_free(struct buckets *b) {
    free(b->of);
    free(b->leg);
    free(b->readers);
    *b = (struct buckets){0};
}
