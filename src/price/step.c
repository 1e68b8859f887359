/* SPDX-License-Identifier: Apache-2.0 */
#include "price/step.h"

#include <stdlib.h>
#include <string.h>

/* All threads run the program together; of each unit one has the most parts. */
static double together(const struct step_units *u, int threads, double *all) {
    double seconds = 0;
    for (size_t i = 0; i < u->n; i++) {
        const int parts = u->parts[i], most = (parts + threads - 1) / threads;
        seconds += u->seconds[i] * most / parts;
        *all += u->seconds[i];
    }
    return seconds;
}

/* ---- lanes ---- */

/* A thread, which publishes `node` of the bucket at `now`; lane -1: it claims its first one. */
struct thread {
    double now;
    int lane, node, bucket;
};

struct lanes {
    const struct step_lanes *of;
    const double *at[2]; /* by size and bucket: seconds from the lane's begin until then */
    const int *order[2]; /* by size: the buckets as they are published */
    bool *there;         /* by bucket and node */
    int claimed;
    double all; /* seconds of all threads */
};

static int size_of(const struct lanes *l, int lane) { return l->of->small[lane]; }

/* The thread has computed until bucket k, in their order, is complete. */
static void compute(struct lanes *l, struct thread *t, int k) {
    const int size = size_of(l, t->lane);
    const double *at = l->at[size];
    const double took = at[l->order[size][k]] - (k ? at[l->order[size][k - 1]] : 0);
    t->bucket = k;
    t->node = t->lane;
    t->now += took;
    l->all += took;
}

/* False: there is no lane left. */
static bool claim(struct lanes *l, struct thread *t) {
    if (l->claimed == l->of->tree->lanes) return false;
    t->lane = l->claimed++;
    compute(l, t, 0);
    return true;
}

/* What the thread has made is there now. It goes on with the sum of this and its sibling if it is
 * the second of the two, and the step does not make it; or else with its lane, or with another. */
static bool publish(struct lanes *l, struct thread *t) {
    const struct lane_tree *tree = l->of->tree;
    const int bucket = l->order[size_of(l, t->lane)][t->bucket];
    const struct lane_node *n = &tree->node[t->node];
    bool *there = l->there + (size_t)bucket * (size_t)tree->n_nodes;
    there[t->node] = true;
    if (n->top < 0 && there[n->sibling]) {
        t->node = n->parent;
        t->now += l->of->sum[bucket];
        l->all += l->of->sum[bucket];
        return true;
    }
    if (t->bucket + 1 == l->of->buckets) return claim(l, t);
    compute(l, t, t->bucket + 1);
    return true;
}

/* Returns when the last thread is done. */
static double run(struct lanes *l, struct thread *thread, int threads) {
    double end = 0;
    int left = 0;
    for (int i = 0; i < threads; i++) {
        thread[left] = (struct thread){0};
        left += claim(l, &thread[left]);
    }
    while (left) {
        int first = 0;
        for (int i = 1; i < left; i++)
            if (thread[i].now < thread[first].now) first = i;
        if (publish(l, &thread[first])) continue;
        end = thread[first].now > end ? thread[first].now : end;
        memmove(thread + first, thread + first + 1, (size_t)(--left - first) * sizeof *thread);
    }
    return end;
}

/* When each bucket of a lane is complete, and their order. */
static void find_times(const struct step_lanes *of, int size, double *at, int *order) {
    const struct step_units *u = &of->size[size];
    for (int b = 0; b < of->buckets; b++) {
        at[b] = 0;
        for (size_t i = 0; i < of->published[size][b]; i++) at[b] += u->seconds[i];
        int k = b;
        for (; k > 0 && at[order[k - 1]] > at[b]; k--) order[k] = order[k - 1];
        order[k] = b;
    }
}

static tri_status price_lanes(const struct step_shape *s, const struct step_lanes *of,
                              struct step_price *out) {
    if (!of->tree) return TRI_OK;
    const size_t buckets = (size_t)of->buckets, nodes = (size_t)of->tree->n_nodes;
    double *at = calloc(2 * buckets, sizeof *at);
    int *order = calloc(2 * buckets, sizeof *order);
    bool *there = calloc(buckets * nodes, sizeof *there);
    struct thread *thread = calloc((size_t)s->threads, sizeof *thread);
    const bool made = at && order && there && thread;
    if (made) {
        struct lanes l = {.of = of, .at = {at, at + buckets}, .order = {order, order + buckets},
                          .there = there};
        for (int size = 0; size < 2; size++)
            if (of->size[size].n)
                find_times(of, size, at + (size_t)size * buckets, order + (size_t)size * buckets);
        out->lanes += run(&l, thread, s->threads);
        out->units += l.all / s->threads;
    }
    free(at);
    free(order);
    free(there);
    free(thread);
    return made ? TRI_OK : base_no_memory("the price of a step");
}

tri_status step_price(const struct step_shape *s, struct step_price *out) {
    double all = 0;
    *out = (struct step_price){0};
    out->pre = together(&s->pre, s->threads, &all);
    out->step = together(&s->step, s->threads, &all);
    out->units = all / s->threads;
    tri_status status = TRI_OK;
    for (int k = 0; k < 2 && !status; k++) status = price_lanes(s, &s->lanes[k], out);
    out->seconds = out->pre + out->lanes + out->step;
    return status;
}
