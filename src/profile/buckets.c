/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "profile/rules_items.h"
#include "profile/tables.h"

/* A sum or a transfer of a bucket of gradients. */
struct piece {
    int64_t bucket, begin, end, zero; /* zero: when the step began */
    int step;
    enum span_kind kind;
    bool sent;
};

static int by_bucket(const void *a, const void *b) {
    const struct piece *x = a, *y = b;
    if (x->bucket != y->bucket) return x->bucket < y->bucket ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

/* The bucket of gradients whose sum or transfer an item is; -1: none. */
static int64_t bucket_of(const struct profile_item *item) {
    const enum tables_comm comm = item ? tables_comm_of(item) : COMM_NONE;
    const bool is = comm == COMM_SUM || (comm == COMM_TRANSFER && !strcmp(item->phase, "lane"));
    return is ? item->bucket : -1;
}

static size_t gather(const struct profile *p, int host, struct piece *to) {
    const struct profile_host *h = &p->host[host];
    size_t n = 0;
    for (int i = 0; i < p->n_threads; i++) {
        const struct profile_thread *t = &p->thread[i];
        int at = 0;
        for (size_t k = 0; t->host == host && k < t->n; k++) {
            const struct span *s = &t->span[k];
            const int64_t bucket = profile_is_wait(s) ? -1 : bucket_of(profile_item_of(p, t, s));
            while (at + 1 < h->n_steps && h->step[at].next < s->end) at++;
            if (bucket < 0 || at == h->n_steps || s->begin < h->step[at].begin ||
                s->end > h->step[at].next)
                continue;
            to[n++] = (struct piece){bucket, s->begin, s->end, h->step[at].begin, at,
                                     (enum span_kind)s->kind, span_is_sent(s)};
        }
    }
    if (n) qsort(to, n, sizeof *to, by_bucket);
    return n;
}

/* Of a bucket, summed over steps. */
struct times {
    double first, ready, crossed, sums, sends;
    int64_t steps;
};

/* Of the pieces of one step. */
static void add_step(struct times *t, const struct piece *piece, size_t n) {
    int64_t first = INT64_MAX, summed = 0, sent = 0, crossed = 0;
    for (size_t i = 0; i < n; i++) {
        const bool sends = piece[i].kind == SPAN_TRANSFER && piece[i].sent;
        const double seconds = 1e-9 * (double)(piece[i].end - piece[i].begin);
        if (piece[i].begin < first) first = piece[i].begin;
        if (piece[i].end > crossed) crossed = piece[i].end;
        if (sends && piece[i].begin > sent) sent = piece[i].begin;
        if (piece[i].kind == SPAN_OPERATOR && piece[i].begin > summed) summed = piece[i].begin;
        if (piece[i].kind == SPAN_OPERATOR) t->sums += seconds;
        if (sends) t->sends += seconds;
    }
    const int64_t ready = sent ? sent : summed ? summed : first;
    t->first += 1e-9 * (double)(first - piece->zero);
    t->ready += 1e-9 * (double)(ready - piece->zero);
    t->crossed += 1e-9 * (double)(crossed - piece->zero);
    t->steps++;
}

static double bytes_of(const struct profile_host *h, int64_t bucket) {
    double bytes = 0, summed = 0, out;
    int64_t dim[RULES_DIMS];
    for (int i = 0; i < h->n_items; i++) {
        const struct profile_item *item = &h->item[i];
        if (bucket_of(item) != bucket) continue;
        rules_spec(item->out, dim, &out);
        if (tables_comm_of(item) == COMM_TRANSFER) bytes = item->wire;
        else summed += *item->out ? out : 0;
    }
    return bytes > 0 ? bytes : summed;
}

static void write_host(struct out *o, const struct profile_host *h, const struct piece *piece,
                       size_t n) {
    for (size_t i = 0, k, end; i < n; i = end) {
        struct times t = {0};
        for (end = i; end < n && piece[end].bucket == piece[i].bucket; end = k) {
            for (k = end; k < n && !by_bucket(&piece[k], &piece[end]);) k++;
            add_step(&t, &piece[end], k - end);
        }
        const double steps = (double)t.steps, mean[] = {t.first, t.ready, t.crossed, t.sums,
                                                        t.sends};
        out_format(o, "%lld", (long long)piece[i].bucket);
        out_cell(o, h->name);
        out_format(o, ",%.0f,%lld", bytes_of(h, piece[i].bucket), (long long)t.steps);
        for (size_t v = 0; v < COUNT(mean); v++) out_format(o, ",%.9f", mean[v] / steps);
        out_text(o, "\n");
    }
}

tri_status buckets_write(const struct profile *p, const struct tables_item *items, struct out *o) {
    struct piece *piece = malloc((p->spans + 1) * sizeof *piece);
    (void)items;
    if (!piece) return base_no_memory("buckets.csv");
    out_text(o, "bucket,host,bytes,steps,first,ready,crossed,sums,sends\n");
    for (int h = 0; h < p->n_hosts; h++) write_host(o, &p->host[h], piece, gather(p, h, piece));
    free(piece);
    return TRI_OK;
}
