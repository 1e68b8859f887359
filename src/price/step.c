/* SPDX-License-Identifier: Apache-2.0 */
#include "price/step.h"

#include <math.h>
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

/* A host's lanes. */
struct lanes {
    const struct step_lanes *of;
    int claimers, begin, end;
    double slow;   /* by which factor a lane takes longer */
    int *order[2]; /* by size: the buckets as they are published */
    bool *there;   /* by bucket and node */
    int claimed;
    double all;    /* seconds of all threads */
    double *ready; /* by bucket: when all of it is there that these lanes can have */
};

static int size_of(const struct lanes *l, int lane) { return l->of->small[lane]; }

/* The thread has computed until bucket k, in their order, is complete. */
static void compute(struct lanes *l, struct thread *t, int k) {
    const int size = size_of(l, t->lane);
    const double *at = l->of->at[size];
    const double took = at[l->order[size][k]] - (k ? at[l->order[size][k - 1]] : 0);
    t->bucket = k;
    t->node = t->lane;
    t->now += took * l->slow;
    if (!k) l->all += l->of->work[size];
}

/* False: there is no lane left. */
static bool claim(struct lanes *l, struct thread *t) {
    if (l->claimed == l->end) return false;
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
    if (t->now > l->ready[bucket]) l->ready[bucket] = t->now;
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
static double run(struct lanes *l, struct thread *thread) {
    double end = 0;
    int left = 0;
    for (int i = 0; i < l->claimers; i++) {
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

static tri_status time_lanes(struct lanes *l, double *seconds) {
    const struct step_lanes *of = l->of;
    const size_t buckets = (size_t)of->buckets, nodes = (size_t)of->tree->n_nodes;
    struct thread *thread = calloc((size_t)l->claimers, sizeof *thread);
    l->order[0] = calloc(2 * buckets, sizeof **l->order);
    l->there = calloc(buckets * nodes, sizeof *l->there);
    const bool made = thread && l->order[0] && l->there;
    if (made) {
        l->order[1] = l->order[0] + buckets;
        for (int size = 0; size < 2; size++)
            if (of->at[size]) find_order(of, size, l->order[size]);
        *seconds = run(l, thread);
    }
    free(l->order[0]);
    free(l->there);
    free(thread);
    return made ? TRI_OK : base_no_memory("the price of a step");
}

/* ---- stages ---- */

/* The turns of these lanes, in their order. */
static tri_status of_lanes(const struct pipeline *all, int begin, int end, struct pipeline *out) {
    int n = 0;
    *out = *all;
    out->lanes = end - begin;
    out->per_track = all->per_track / all->lanes * out->lanes;
    out->turn = calloc((size_t)(out->tracks * out->per_track) + 1, sizeof *out->turn);
    for (int i = 0; i < all->tracks * all->per_track && out->turn; i++) {
        const struct turn t = all->turn[i];
        if (t.lane >= begin && t.lane < end) out->turn[n++] = (struct turn){t.leg, t.lane - begin};
    }
    return out->turn ? TRI_OK : base_no_memory("the price of a step");
}

static void add_ready(const struct lanes *l, const struct pipeline_times *t, double scale) {
    const int lanes = l->end - l->begin;
    for (int b = 0; b < l->of->buckets; b++)
        for (int i = 0; i < lanes; i++) {
            const double end = scale * t->end[l->of->leg_of[b] * lanes + i];
            if (end > l->ready[b]) l->ready[b] = end;
        }
}

/* As the schedule says; or if there are fewer claimers than tracks, each of which serves several,
 * at least the time of all legs. */
static tri_status time_legs(struct lanes *l, double *seconds) {
    struct pipeline own = {0};
    struct pipeline_times times;
    tri_status status = of_lanes(l->of->pipeline, l->begin, l->end, &own);
    if (!status) status = pipeline_simulate(&own, l->of->legs, l->of->leg, &times);
    free(own.turn);
    if (status) return status;
    const double all = times.busy / l->claimers;
    *seconds = l->slow * (l->claimers == 1 || times.makespan < all ? all : times.makespan);
    l->all = times.busy;
    if (times.makespan > 0) add_ready(l, &times, *seconds / times.makespan);
    pipeline_times_free(&times);
    return TRI_OK;
}

/* ---- hosts ---- */

/* Buckets move one after the other, as the last host has made them. Overwrites `ready`. Returns
 * when all hosts have all sums. */
static double move(const struct step_lanes *of, double *ready) {
    double idle = 0, end = 0, late = 0; /* idle: when the links are */
    for (int k = 0; k < of->buckets; k++) {
        int next = 0;
        for (int b = 1; b < of->buckets; b++)
            if (ready[b] < ready[next]) next = b;
        const double there = ready[next] + late;
        ready[next] = HUGE_VAL;
        idle = (there > idle ? there : idle) + of->transfers[next];
        if (idle + of->above[next] > end) end = idle + of->above[next];
        late += of->delays[next];
    }
    return end;
}

/* A host that has fewer workers than `most` has fewer claimers, or one that takes longer. */
static void share(const struct step_hosts *hosts, int host, int most, struct lanes *l) {
    const double claimers = (double)l->claimers * hosts->workers[host] / most;
    l->claimers = claimers > 1 ? (int)claimers : 1;
    l->slow = claimers > 0 && claimers < 1 ? 1 / claimers : 1;
    l->begin = l->claimed = hosts->begin[host];
    l->end = hosts->begin[host + 1];
}

static tri_status price_phase(const struct step_shape *s, const struct step_lanes *of,
                              struct step_price *out, double *work) {
    const struct step_hosts *hosts = &s->hosts;
    double *ready = calloc((size_t)of->buckets + 1, sizeof *ready), last = 0;
    tri_status status = ready ? TRI_OK : base_no_memory("the price of a step");
    int most = 1, workers = 0;
    for (int h = 0; h < hosts->n; h++) {
        if (hosts->workers[h] > most) most = hosts->workers[h];
        workers += hosts->workers[h];
    }
    /* As many hosts like that with most workers would have the threads of all. */
    const double full = hosts->n ? (double)workers / most : 1;
    for (int h = 0; h < (hosts->n ? hosts->n : 1) && !status; h++) {
        struct lanes l = {.of = of, .claimers = of->claimers, .slow = 1, .end = of->tree->lanes,
                          .ready = ready};
        if (hosts->n) share(hosts, h, most, &l);
        double seconds = 0;
        if (l.begin < l.end) status = (of->pipeline ? time_legs : time_lanes)(&l, &seconds);
        if (seconds > last) last = seconds;
        *work += l.all / full;
    }
    const double end = of->transfers && !status ? move(of, ready) : last;
    out->lanes += end > last ? end : last;
    out->exposed += end > last ? end - last : 0;
    free(ready);
    return status;
}

tri_status step_price(const struct step_shape *s, struct step_price *out) {
    double work = 0;
    tri_status status = TRI_OK;
    *out = (struct step_price){0};
    out->pre = step_together(&s->pre, s->threads, &work);
    out->step = step_together(&s->step, s->threads, &work);
    for (int k = 0; k < 2 && !status; k++)
        if (s->lanes[k].tree) status = price_phase(s, &s->lanes[k], out, &work);
    out->units = work / s->threads;
    out->seconds = out->pre + out->lanes + out->step + s->overhead + s->hosts.opening;
    return status;
}
