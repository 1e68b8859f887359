/* SPDX-License-Identifier: Apache-2.0 */
#include "price/step.h"

#include <stdlib.h>
#include <string.h>

double step_together(const struct step_units *u, int threads, double *work) {
    double seconds = 0;
    for (size_t i = 0; i < u->n; i++) {
        const int parts = u->parts[i], most = (parts + threads - 1) / threads;
        seconds += u->seconds[i] * most / parts; /* one thread has the most parts */
        *work += u->seconds[i];
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
    const int *order[2]; /* by size: the buckets as they are published */
    bool *there;         /* by bucket and node */
    int claimed;
    double all; /* seconds of all threads */
};

static int size_of(const struct lanes *l, int lane) { return l->of->small[lane]; }

/* The thread has computed until bucket k, in their order, is complete. */
static void compute(struct lanes *l, struct thread *t, int k) {
    const int size = size_of(l, t->lane);
    const double *at = l->of->at[size];
    const double took = at[l->order[size][k]] - (k ? at[l->order[size][k - 1]] : 0);
    t->bucket = k;
    t->node = t->lane;
    t->now += took;
    if (!k) l->all += l->of->work[size];
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

static void find_order(const struct step_lanes *of, int size, int *order) {
    const double *at = of->at[size];
    for (int b = 0; b < of->buckets; b++) {
        int k = b;
        for (; k > 0 && at[order[k - 1]] > at[b]; k--) order[k] = order[k - 1];
        order[k] = b;
    }
}

static tri_status price_lanes(const struct step_lanes *of, double *seconds, double *work) {
    const size_t buckets = (size_t)of->buckets, nodes = (size_t)of->tree->n_nodes;
    int *order = calloc(2 * buckets, sizeof *order);
    bool *there = calloc(buckets * nodes, sizeof *there);
    struct thread *thread = calloc((size_t)of->claimers, sizeof *thread);
    const bool made = order && there && thread;
    if (made) {
        struct lanes l = {.of = of, .order = {order, order + buckets}, .there = there};
        for (int size = 0; size < 2; size++)
            if (of->at[size]) find_order(of, size, order + (size_t)size * buckets);
        *seconds += run(&l, thread, of->claimers);
        *work += l.all;
    }
    free(order);
    free(there);
    free(thread);
    return made ? TRI_OK : base_no_memory("the price of a step");
}

/* As the schedule says; or if there are fewer claimers than tracks, each of which serves several,
 * at least the time of all legs. */
static tri_status price_legs(const struct step_lanes *of, double *seconds, double *work) {
    struct pipeline_times times;
    tri_status status = pipeline_simulate(of->pipeline, of->legs, of->leg, &times);
    if (status) return status;
    const double all = times.busy / of->claimers;
    *seconds += of->claimers == 1 || times.makespan < all ? all : times.makespan;
    *work += times.busy;
    pipeline_times_free(&times);
    return TRI_OK;
}

tri_status step_price(const struct step_shape *s, struct step_price *out) {
    double work = 0;
    tri_status status = TRI_OK;
    *out = (struct step_price){0};
    out->pre = step_together(&s->pre, s->threads, &work);
    out->step = step_together(&s->step, s->threads, &work);
    for (int k = 0; k < 2 && !status; k++) {
        const struct step_lanes *of = &s->lanes[k];
        if (!of->tree) continue;
        status = (of->pipeline ? price_legs : price_lanes)(of, &out->lanes, &work);
    }
    out->units = work / s->threads;
    out->seconds = out->pre + out->lanes + out->step + s->overhead;
    return status;
}
