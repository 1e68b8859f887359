/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/buckets.h"

#include <stdlib.h>

/* ---- when results are touched ---- */

/* The first and last item that touch a result. */
struct span {
    size_t first, last;
};

static void touch(struct span *s, size_t item) {
    if (item < s->first) s->first = item;
    if (item > s->last) s->last = item;
}

/* By result of the program; null: out of memory. */
static struct span *spans(const struct program *lane) {
    struct span *by_root = calloc((size_t)lane->g->n_tensors + 1, sizeof *by_root);
    struct span *s = calloc((size_t)lane->n_result + 1, sizeof *s);
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

/* A result and what decides on its bucket. */
struct result {
    int of, own;
    size_t bytes;
    struct span span;
};

static int by_end(const void *a, const void *b) {
    const struct result *x = a, *y = b;
    if (x->own != y->own) return x->own - y->own;
    if (x->span.last != y->span.last) return x->span.last < y->span.last ? -1 : 1;
    return x->of - y->of;
}

/* The results of a lane in the order in which they are complete; those of own buckets last. */
static struct result *list(const struct program *lane, const struct bucket_rule *rule,
                           struct buckets *b) {
    struct result *r = calloc((size_t)lane->n_result + 1, sizeof *r);
    struct span *span = spans(lane);
    for (int i = 0, k = 0; r && span && i < lane->n_result; i++, k++) {
        while (lane->g->output[k].tensor->id != lane->result[i].tensor) k++; /* in this order */
        int of = lane->result[i].of;
        r[i] = (struct result){of, rule->own ? rule->own[of] : 0,
                               memory_bytes(lane->g->output[k].tensor), span[i]};
        if (of >= b->n_of) b->n_of = of + 1;
    }
    if (r && span) qsort(r, (size_t)lane->n_result, sizeof *r, by_end);
    if (!span) {
        free(r);
        r = NULL;
    }
    free(span);
    return r;
}

#define LAST (-2) /* in `of`, while the number of buckets is not known */

/* Gives each result a bucket; returns how many there are before the last. */
static int divide(const struct result *r, int n, const struct bucket_rule *rule, size_t bytes,
                  int *of) {
    int buckets = 0, first = 0, before = 0, i = 0; /* first: of the bucket that is being filled */
    size_t filled = 0, begin = rule->from;
    for (; i < n && !r[i].own; i++) {
        bool late = r[i].span.first < begin; /* the bucket would be open beside the one before */
        of[r[i].of] = late ? LAST : buckets;
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
        of[r[i].of] = buckets;
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

tri_status buckets_events(const struct buckets *b, const struct program *lane,
                          struct bucket_events *out) {
    size_t n = (size_t)b->n - 1;
    struct span *bucket = calloc(n + 1, sizeof *bucket), *result = spans(lane);
    *out = (struct bucket_events){.event = calloc(2 * n + 1, sizeof *out->event),
                                  .stop = calloc(2 * n + 1, sizeof *out->stop)};
    bool ok = bucket && result && out->event && out->stop;
    for (size_t i = 0; ok && i < n; i++) bucket[i].first = lane->n_items;
    for (int i = 0; ok && i < lane->n_result; i++) {
        int of = lane->result[i].of < b->n_of ? b->of[lane->result[i].of] : -1;
        if (of < 0 || of == b->n - 1) continue;
        touch(&bucket[of], result[i].first);
        touch(&bucket[of], result[i].last);
    }
    for (size_t i = 0; ok && i < n; i++) {
        CHECK(bucket[i].first <= bucket[i].last); /* all programs have the same results */
        out->event[out->n++] = (struct bucket_event){bucket[i].first, (int)i, true};
        out->event[out->n++] = (struct bucket_event){bucket[i].last + 1, (int)i, false};
    }
    if (ok) qsort(out->event, (size_t)out->n, sizeof *out->event, by_item);
    for (int i = 0; ok && i < out->n; i++) out->stop[i] = out->event[i].item;
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

tri_status buckets_make(const struct program *lane, const struct bucket_rule *rule,
                        struct buckets *b) {
    *b = (struct buckets){0};
    struct result *r = list(lane, rule, b);
    b->of = malloc(((size_t)b->n_of + 1) * sizeof *b->of);
    if (!r || !b->of) {
        free(r);
        buckets_free(b);
        return base_no_memory("buckets");
    }
    for (int i = 0; i < b->n_of; i++) b->of[i] = -1;
    size_t bytes = rule->bytes ? rule->bytes : 1;
    do b->n = 1 + divide(r, lane->n_result, rule, bytes, b->of);
    while (b->n > rule->most && bytes < SIZE_MAX / 2 && (bytes *= 2));
    for (int i = 0; i < b->n_of; i++)
        if (b->of[i] == LAST) b->of[i] = b->n - 1;
    free(r);
    return TRI_OK;
}

void buckets_free(struct buckets *b) {
    free(b->of);
    *b = (struct buckets){0};
}
