/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/explain_path.h"

#include <stdlib.h>

#include "base/columns.h"
#include "plan/rounds.h"

struct row {
    struct transfer is;
    int round;
};

static int compare(const void *a, const void *b) {
    const struct row *x = a, *y = b;
    if (x->round != y->round) return x->round - y->round;
    if (x->is.from != y->is.from) return x->is.from - y->is.from;
    if (x->is.to != y->is.to) return x->is.to - y->is.to;
    if (x->is.chunk != y->is.chunk) return x->is.chunk - y->is.chunk;
    return x->is.node - y->is.node;
}

static bool is_of_one_line(const struct row *a, const struct row *b) {
    return a->round == b->round && a->is.from == b->is.from && a->is.to == b->is.to;
}

static void add_sum(const struct lane_tree *tree, int node, bool more, struct text *out) {
    const int first = lane_tree_first(tree, node), last = lane_tree_last(tree, node);
    text_add(out, more ? ", %d" : "%d", first);
    if (last > first) text_add(out, "-%d", last);
}

/* How many rows from `from` on are of the same chunk. */
static int chunk_rows(const struct row *from, const struct row *end) {
    int n = 1;
    while (from + n < end && is_of_one_line(from, from + n) && from->is.chunk == from[n].is.chunk)
        n++;
    return n;
}

static bool has_same_sums(const struct row *a, const struct row *b, int n) {
    for (int i = 0; i < n; i++)
        if (a[i].is.node != b[i].is.node) return false;
    return true;
}

/* A line for what one host sends to another in a round: the same sums of one chunk or several. */
static void add_rows(const struct lane_tree *tree, const struct row *at, const struct row *end,
                     int chunks, struct text *cells) {
    text_add(cells, "round\tfrom\tto\t%ssums of the lanes\n", chunks > 1 ? "chunks\t" : "");
    while (at < end) {
        const struct row *next = at;
        const int n = chunk_rows(at, end);
        text_add(cells, "%d\t%d\t%d\t", at->round + 1, at->is.from, at->is.to);
        do {
            if (chunks > 1) text_add(cells, next > at ? ", %d" : "%d", next->is.chunk);
            next += n;
        } while (next < end && is_of_one_line(at, next) && chunk_rows(next, end) == n &&
                 has_same_sums(at, next, n));
        if (chunks > 1) text_add(cells, "\t");
        for (int i = 0; i < n; i++) add_sum(tree, at[i].is.node, i, cells);
        text_add(cells, "\n");
        at = next;
    }
}

static void add_bytes(const struct rounds *r, int hosts, struct text *out) {
    bool equal = true;
    for (int h = 1; h < hosts; h++)
        equal &= r->sent[h] == r->sent[0] && r->received[h] == r->received[0];
    const double of = r->chunks;
    for (int h = 0; h < (equal ? 1 : hosts); h++) {
        if (equal) text_add(out, "each host");
        else text_add(out, "host %d", h);
        text_add(out, " sends %.2f buckets and receives %.2f\n", r->sent[h] / of,
                 r->received[h] / of);
    }
    text_add(out, "of a plain ring, which adds in any order, each sends %.2f\n",
             2.0 * (hosts - 1) / hosts);
}

static void add_head(const struct transfers *t, enum path asked, struct text *out) {
    text_add(out, "%s, %d hosts", path_name(t->path[0]), t->hosts);
    if (t->path[0] != asked)
        text_add(out, ": %s needs sums of several hosts below one root", path_name(asked));
    else if (t->chunks[0] > 1) text_add(out, ": a bucket is cut into %d chunks, a large one "
                                         "into more", t->chunks[0]);
    text_add(out, "\n");
}

tri_status explain_path(const struct lane_tree *tree, int hosts, const int *begin, enum path path,
                        struct text *out) {
    if (!path_allows(path, hosts))
        return base_fail(TRI_USAGE, "%d host%s cannot take the path %s%s", hosts,
                         hosts == 1 ? "" : "s", path_name(path),
                         path == PATH_BUTTERFLY ? ": a power of two can, from 2 on"
                                                : ": 2 can, or more");
    const struct transfer_share share = {.hosts = hosts, .begin = begin, .buckets = 1,
                                         .path = &path};
    struct text cells = {0};
    struct transfers t;
    struct rounds r;
    tri_status status = transfers_make(tree, &share, &t);
    if (status) return status;
    if (!(status = rounds_make(tree, begin, &t, 0, &r))) {
        struct row *row = malloc(((size_t)t.n + 1) * sizeof *row);
        if (!row) status = base_no_memory("the table of a path");
        for (int i = 0; i < t.n && row; i++) row[i] = (struct row){t.all[i], r.round[i]};
        if (row) {
            if (t.n) qsort(row, (size_t)t.n, sizeof *row, compare);
            add_head(&t, path, out);
            add_rows(tree, row, row + t.n, r.chunks, &cells);
            columns_add(out, r.chunks > 1 ? "rrrll" : "rrrl", &cells);
            add_bytes(&r, hosts, out);
        }
        free(row);
        rounds_free(&r);
    }
    transfers_free(&t);
    return status;
}
