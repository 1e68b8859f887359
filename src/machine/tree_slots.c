/* SPDX-License-Identifier: Apache-2.0
 * The slots of trees, which buckets of similar sizes share: how many suffice, where they are. */
#include <stdlib.h>
#include <string.h>

#include "crew/hosts.h"
#include "machine/tree.h"
#include "plan/transfer.h"

/* A bucket of one of the trees that share slots, which is summed. */
struct sized {
    size_t bytes;
    int tree, bucket;
};

static int largest_first(const void *a, const void *b) {
    const struct sized *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->tree != y->tree ? x->tree - y->tree : x->bucket - y->bucket;
}

/* Slots that threads hold of so many buckets of a tree. last: one is the last of a leg, which is
 * open all the time. */
static int held_of(const struct tree *t, int buckets, bool last) {
    int most = t->most_open - !last, open = buckets < most ? buckets : most;
    return board_held(&t->shape, t->all_threads, open, last && t->buckets.legs == 1) +
           (t->audits > 0);
}

static int larger(int a, int b) { return a > b ? a : b; }

static bool same_legs(const struct buckets *b, int bucket, const struct tree_class *c) {
    return b->leg[bucket] == c->leg && !memcmp(&b->readers[bucket], &c->readers, sizeof c->readers);
}

/* The cheapest division of the buckets, the largest first, into classes: begin[i] is where the
 * class of the buckets before i begins, slots[i] how many it has. Threads may still hold slots of a
 * step of another shape. */
static void cheapest(struct tree *const *t, const struct sized *s, int n, const int *waiting,
                     double *cost, int *begin, int *slots) {
    for (int end = 1; end <= n; end++) {
        int count[CREW_MOST_SHAPES] = {0}, wait = 0, held = 0;
        bool last[CREW_MOST_SHAPES] = {false};
        cost[end] = -1;
        for (int i = end; i-- > 0;) {
            int k = s[i].tree;
            wait = larger(wait, ++count[k] * waiting[k]);
            last[k] |= buckets_is_last(&t[k]->buckets, s[i].bucket);
            held = larger(held, held_of(t[k], count[k], last[k]));
            double c = cost[i] + (double)s[i].bytes * (wait + held);
            if (cost[end] >= 0 && c >= cost[end]) continue;
            cost[end] = c;
            begin[end] = i;
            slots[end] = wait + held;
        }
    }
}

static int make_classes(struct tree *const *t, const struct sized *s, int n, const int *begin,
                        const int *slots, struct tree_class *class) {
    int classes = 0, first = 0;
    size_t offset = 0;
    for (int end = n; end > 0; end = begin[end], classes++) {
        for (int i = begin[end]; i < end; i++) t[s[i].tree]->bucket[s[i].bucket].class = classes;
        class[classes] = (struct tree_class){.bytes = memory_round(s[begin[end]].bytes),
                                             .offset = offset, .n_slots = slots[end],
                                             .first = first};
        offset += class[classes].bytes * (size_t)slots[end];
        first += slots[end];
    }
    return classes;
}

static size_t bytes_of(const struct tree_class *c) {
    return c->bytes * (size_t)(c->n_slots + c->audits);
}

/* Buckets that are handed from leg to leg: those of the same legs in all trees are one class.
 * Returns how many classes there are then. */
static int add_handed(struct tree *const *t, int n_trees, struct tree_class *class, int n) {
    for (int first = n, i = 0; i < n_trees; i++)
        for (int b = 0; b < t[i]->buckets.n; b++) {
            const struct tree_bucket *one = &t[i]->bucket[b];
            if (buckets_is_summed(&t[i]->buckets, b)) continue;
            int k = first;
            while (k < n && !same_legs(&t[i]->buckets, b, &class[k])) k++;
            if (k == n)
                class[n++] = (struct tree_class){.leg = t[i]->buckets.leg[b],
                                                 .audits = t[i]->audits,
                                                 .readers = t[i]->buckets.readers[b]};
            size_t bytes = memory_round(one->bytes);
            if (class[k].bytes < bytes) class[k].bytes = bytes;
            if (class[k].n_slots < one->kept) class[k].n_slots = one->kept;
            t[i]->bucket[b].class = k;
        }
    for (int k = 1; k < n; k++) {
        class[k].offset = class[k - 1].offset + bytes_of(&class[k - 1]);
        class[k].first = class[k - 1].first + class[k - 1].n_slots;
    }
    return n;
}

static tri_status share(struct tree *const *t, int n_trees, struct sized *s, int n, int all) {
    int waiting[CREW_MOST_SHAPES];
    double *cost = calloc((size_t)n + 1, sizeof *cost);
    int *begin = calloc((size_t)n + 1, sizeof *begin);
    int *slots = calloc((size_t)n + 1, sizeof *slots);
    struct tree_class *class = calloc((size_t)all, sizeof *class);
    bool ok = cost && begin && slots && class;
    CHECK(n_trees <= CREW_MOST_SHAPES);
    for (int i = 0; i < n_trees; i++)
        if (t[i]->buckets.n)
            waiting[i] = board_waiting(&t[i]->shape, t[i]->all_threads) + t[i]->kept;
    if (ok) qsort(s, (size_t)n, sizeof *s, largest_first);
    if (ok) cheapest(t, s, n, waiting, cost, begin, slots);
    int classes = ok ? make_classes(t, s, n, begin, slots, class) : 0;
    if (ok) classes = add_handed(t, n_trees, class, classes);
    for (int i = 0; i < n_trees && ok; i++) {
        free(t[i]->class);
        t[i]->class = calloc((size_t)classes, sizeof *class);
        ok = t[i]->class;
        if (ok) memcpy(t[i]->class, class, (size_t)classes * sizeof *class);
        t[i]->n_classes = classes;
    }
    free(cost);
    free(begin);
    free(slots);
    free(class);
    return ok ? TRI_OK : base_no_memory("the tree");
}

static int slots_of(const struct tree *t) {
    const struct tree_class *last = &t->class[t->n_classes - 1];
    return last->first + last->n_slots;
}

tri_status tree_join(struct tree *const *t, int n) {
    int nodes = 0, all = 0;
    for (int i = 0; i < n; i++) {
        t[i]->first = nodes;
        nodes += tree_nodes(t[i]);
        all += t[i]->buckets.n;
    }
    struct sized *s = calloc((size_t)all, sizeof *s), *to = s;
    if (!s) return base_no_memory("the tree");
    for (int i = 0; i < n; i++)
        for (int b = 0; b < t[i]->buckets.n; b++)
            if (buckets_is_summed(&t[i]->buckets, b))
                *to++ = (struct sized){t[i]->bucket[b].bytes, i, b};
    tri_status status = share(t, n, s, (int)(to - s), all);
    free(s);
    for (int i = 0; i < n && !status; i++) {
        t[i]->nodes = nodes;
        tree_bind(t[i], NULL, NULL);
    }
    if (!status && (nodes > CLAIM_MOST_VALUE || slots_of(*t) > CLAIM_MOST_VALUE))
        return base_fail(TRI_USAGE, "%d lanes in %d buckets are too many for steps of %d shape(s); "
                         "use fewer --lanes, or fewer buckets", t[0]->shape.lanes,
                         t[0]->buckets.n, n);
    return status;
}

size_t tree_bytes(const struct tree *t) {
    if (!t->n_classes) return 0;
    const struct tree_class *last = &t->class[t->n_classes - 1];
    return last->offset + bytes_of(last);
}

/* In the end each bucket has its tops, all at the same time. */
size_t tree_top_bytes(const struct tree *t) {
    size_t bytes = 0;
    for (int b = 0; b < t->buckets.n; b++)
        if (buckets_is_summed(&t->buckets, b))
            bytes += memory_round(t->bucket[b].bytes) * (size_t)t->shape.n_tops;
    return bytes;
}

size_t tree_handed_bytes(const struct tree *t) {
    size_t bytes = 0;
    for (int i = 0; i < t->n_classes; i++)
        if (!leg_set_is_empty(&t->class[i].readers))
            bytes += bytes_of(&t->class[i]);
    return bytes;
}

size_t tree_board_bytes(const struct tree *t) {
    return t->n_classes ? sizeof(claim_word) * ((size_t)t->nodes + (size_t)slots_of(t)) : 0;
}

/* ---- several hosts ---- */

#define FEW_HOSTS 10 /* of which all subsets are tried */

/* A border between two hosts cuts at most one top, into two nodes of each level below it. */
static int kept_at_most(const struct lane_tree *t, int hosts) {
    int depth = 0;
    for (int lane = 0; lane < t->lanes; lane++) {
        int up = 0;
        for (int n = lane; t->node[n].top < 0; n = t->node[n].parent) up++;
        if (up > depth) depth = up;
    }
    return 2 * depth * (hosts - 1);
}

/* The most nodes that wait for the end of a step, or for sums of other hosts, and are not counted
 * as waiting on one host. */
int tree_kept(const struct tree *tree, int hosts, const int *weight) {
    const struct lane_tree *t = &tree->shape;
    int most = 0;
    if (hosts > FEW_HOSTS) return kept_at_most(t, hosts);
    for (int set = 1; set < 1 << hosts; set++) {
        int32_t begin[FEW_HOSTS + 1];
        int now[FEW_HOSTS];
        for (int h = 0; h < hosts; h++) now[h] = set >> h & 1 ? weight[h] : 0;
        hosts_deal(t, tree->cut, hosts, now, begin);
        /* Of a top with n operands, these and n - 2 sums between them and the top. */
        const int kept = 2 * (transfers_operands(t, hosts, begin, NULL, NULL) - t->n_tops);
        if (kept > most) most = kept;
    }
    return most;
}

size_t tree_kept_bytes(const struct tree *t, int hosts, const int *weight) {
    int32_t begin[HOSTS_MOST + 1];
    size_t bytes = 0;
    hosts_deal(&t->shape, t->cut, hosts, weight, begin);
    for (int b = 0; b < t->buckets.n; b++)
        if (buckets_is_summed(&t->buckets, b)) bytes += memory_round(t->bucket[b].bytes);
    return (size_t)transfers_operands(&t->shape, hosts, begin, NULL, NULL) * bytes;
}

void tree_bind_hosts(struct tree *t, const _Atomic uint8_t *mine, const uint8_t *keeps) {
    for (int b = 0; b < t->buckets.n; b++) {
        t->bucket[b].board.mine = mine;
        t->bucket[b].board.keeps = keeps;
    }
}
