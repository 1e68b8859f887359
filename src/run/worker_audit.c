/* SPDX-License-Identifier: Apache-2.0
 * Audit: another worker computes some of the lanes again, and the results are compared bit for bit
 * before the step's update begins. So a core that computes wrongly is found before it has changed a
 * parameter. Before a thread publishes a lane, it stores a sum of the bytes of each of the lane's
 * results, in memory of its own. The board says whose lane counts. So a thread that is late, or
 * that computes a lane that another has published, never writes what an auditor reads. Which lanes
 * are audited depends on the step and the lane. With stages each leg of such a lane is audited for
 * itself, and what it reads is kept until then (machine/tree.c). */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/random.h"
#include "run/worker_inside.h"

#define CHUNK 32768 /* bytes that are copied to the host at a time; a multiple of a word */

static void add_bytes(uint64_t h[4], const char *at, size_t bytes) {
    uint64_t w[4];
    for (; bytes >= sizeof w; at += sizeof w, bytes -= sizeof w) {
        memcpy(w, at, sizeof w);
        for (int i = 0; i < 4; i++) {
            h[i] = (h[i] ^ w[i]) * 0x9e3779b97f4a7c15u;
            h[i] ^= h[i] >> 29;
        }
    }
    for (; bytes; bytes--) h[0] = (h[0] ^ (unsigned char)*at++) * 0x9e3779b97f4a7c15u;
}

/* Any bit that differs changes the sum. The words are mixed into four chains. */
static uint64_t sum_bytes(struct dev *dev, const char *at, size_t bytes) {
    uint64_t h[4] = {1, 2, 3, 4};
    char host[CHUNK];
    for (size_t n; bytes; at += n, bytes -= n) {
        n = bytes < sizeof host ? bytes : sizeof host;
        dev_copy_out(dev, host, at, n);
        add_bytes(h, host, n);
    }
    return random_key(random_key(h[0], h[1]), random_key(h[2], h[3]));
}

/* Audits are numbered by leg and lane. Without stages a lane is one leg. */
static int lane_of(const struct worker *c, int audit) {
    return audit % (int)c->run->machine->lanes;
}
static int leg_of(const struct worker *c, int audit) {
    return audit / (int)c->run->machine->lanes;
}
static int number_of(const struct worker *c, const struct tree_lane *l) {
    return l->leg * (int)c->run->machine->lanes + l->lane;
}
static int count(const struct worker *c) {
    return c->head->size.audit > 0
               ? c->run->machine->tree[1].buckets.legs * (int)c->run->machine->lanes : 0;
}

static claim_word *word_of(const struct worker *c, int audit) {
    return worker_region(c, REGION_AUDITS,
                         leg_of(c, audit) * c->head->layout.lanes + lane_of(c, audit));
}

static struct claim look(const struct worker *c, int audit) {
    return claim_look(word_of(c, audit), (uint32_t)c->step);
}

static uint64_t *sums_of(const struct worker *c, int thread, int lane) {
    return worker_region(c, REGION_AUDIT_SUMS, (int64_t)thread * c->head->layout.lanes + lane);
}

/* The thread whose results of the bucket count in this step; -1: none has published them yet. */
static int maker_of(const struct worker *c, int lane, int bucket) {
    struct board *b = &c->run->machine->tree[1].bucket[bucket].board;
    struct claim made = claim_look(&b->node[lane], (uint32_t)c->step);
    return made.state == CLAIM_DONE ? made.owner : -1;
}

/* The same of the last bucket: the leg is done. */
static int maker(const struct worker *c, int audit) {
    return maker_of(c, lane_of(c, audit), c->run->machine->tree[1].buckets.last[leg_of(c, audit)]);
}

/* With several hosts each audits what it has been dealt; what it computes after a host has gone
 * may come from elsewhere meanwhile. */
static bool wanted(const struct worker *c, int lane) {
    if (!worker_is_dealt(c, lane)) return false;
    uint64_t key = random_key(random_key(c->run->options.seed, c->step), (uint64_t)lane);
    return (double)(key >> 11) / (double)(UINT64_C(1) << 53) < c->head->size.audit;
}

/* Whether they are one worker, or compute lanes together. */
static bool are_one(const struct worker *c, int place, int other) {
    int group = crew_group_of(c->head, place);
    return place == other || (group >= 0 && crew_group_of(c->head, other) == group);
}

/* Whether the worker, or its replica, has made results of the leg that count. */
static bool has_made(const struct worker *c, int audit, int place) {
    const struct buckets *buckets = &c->run->machine->tree[1].buckets;
    for (int b = 0; b < buckets->n; b++) {
        int thread = buckets->leg[b] == leg_of(c, audit) ? maker_of(c, lane_of(c, audit), b) : -1;
        if (thread >= 0 && are_one(c, place, thread / c->threads)) return true;
    }
    return false;
}

/* Whether a worker could audit the leg: one that has made nothing of it. It may be a spare, unless
 * the workers form replicas. */
static bool can_be_audited(const struct worker *c, int audit) {
    for (int i = 0; i < c->head->size.places; i++)
        if (atomic_load(&c->head->worker[i].state) == CREW_READY && !has_made(c, audit, i) &&
            (!c->head->layout.seats || crew_group_of(c->head, i) >= 0))
            return true;
    return false;
}

static uint64_t sum_result(const struct program *p, int i) {
    const struct program_port *r = &p->result[i];
    return sum_bytes(p->dev, program_value(p, r->tensor), base_spec_bytes(&r->is->spec));
}

/* Whether the lane's result i is in the bucket, and compared. */
static bool compares(const struct worker *c, const struct tree_lane *l, int i, int bucket) {
    return i < (int)(c->region[REGION_AUDIT_SUMS].bytes / sizeof(uint64_t)) &&
           tree_has(l->tree, l->p, i, bucket);
}

#ifdef TRIREME_POINTS
/* TRIREME_LIE="K:S": the worker in place K flips a bit of its results in step S. */
static void lie(const struct worker *c, const struct tree_lane *l, int bucket) {
    const struct program *p = l->p;
    const char *text = getenv("TRIREME_LIE");
    int place;
    unsigned long long step;
    if (!text || sscanf(text, "%d:%llu", &place, &step) != 2 || place != c->place ||
        step != c->step || !tree_has(l->tree, p, 0, bucket))
        return;
    unsigned char byte, *at = program_value(p, p->result[0].tensor);
    dev_copy_out(p->dev, &byte, at, 1);
    byte ^= 1;
    dev_copy_in(p->dev, at, &byte, 1);
}
#endif

static bool is_done(const struct worker *c, int audit) {
    enum claim_state s = look(c, audit).state;
    return s == CLAIM_DONE || s == CLAIM_PASSED;
}

/* Ends an audit that is not wanted, or that no worker can make, so that the update can begin, and
 * what the leg has read can be released. A worker that arrives later must not compute the leg from
 * parameters that are partly new. False: another has begun. */
static bool close_audit(const struct worker *c, int audit) {
    struct claim a = look(c, audit);
    int self = c->context->number;
    bool closed = a.state == CLAIM_FREE && claim_try(word_of(c, audit), &a, self) &&
                  claim_publish(word_of(c, audit), &a, CLAIM_DONE, self, 0);
    if (closed) crew_notify(c->head);
    return closed;
}

/* Sums of results that count already must not change. */
void worker_audit_note(struct worker *c, const struct tree_lane *l, int bucket) {
    if (c->head->size.audit > 0 && !wanted(c, l->lane)) close_audit(c, number_of(c, l));
    if (c->head->size.audit <= 0 || !wanted(c, l->lane) || maker_of(c, l->lane, bucket) >= 0)
        return;
#ifdef TRIREME_POINTS
    lie(c, l, bucket);
#endif
    for (int i = 0; i < l->p->n_result; i++)
        if (compares(c, l, i, bucket))
            sums_of(c, l->who.thread, l->lane)[i] = sum_result(l->p, i);
}

bool worker_audit_pending(const struct worker *c) {
    for (int i = 0; i < count(c); i++)
        if (wanted(c, lane_of(c, i)) && !is_done(c, i) &&
            (can_be_audited(c, i) || !close_audit(c, i)))
            return true;
    return false;
}

/* Whether there is an audit that this worker can make, or end. */
static bool can_audit(const struct worker *c, int audit, struct claim *seen) {
    if (!wanted(c, lane_of(c, audit))) return false;
    *seen = look(c, audit);
    return seen->state == CLAIM_FREE && maker(c, audit) >= 0 &&
           (!has_made(c, audit, c->place) || !can_be_audited(c, audit));
}

bool worker_audit_waits(const struct worker *c) {
    struct claim seen;
    for (int i = 0; i < count(c); i++)
        if (can_audit(c, i, &seen)) return true;
    return false;
}

int worker_audit_claim(struct worker *c, int thread, int *leg) {
    struct claim seen;
    for (int i = 0; i < count(c); i++) {
        if (!can_audit(c, i, &seen)) continue;
        *leg = leg_of(c, i);
        if (has_made(c, i, c->place)) close_audit(c, i);
        else if (claim_try(word_of(c, i), &seen, thread)) return lane_of(c, i);
    }
    return -1;
}

static void differ(const struct worker *c, const struct tree_lane *l, int bucket,
                   const char *tensor) {
    const struct crew_head *h = c->head;
    int maker = maker_of(c, l->lane, bucket);
    char text[sizeof h->course.failure], leg[LEG_TEXT + 1];
    const int tid = atomic_load(&h->thread[maker].tid), ours = sched_getcpu();
    struct host_thread theirs;
    host_thread("", tid, tid, &theirs);
    snprintf(text, sizeof text,
             "step %llu: audit: worker %d (core %d) and worker %d (core %d) have computed lane "
             "%d%s, and %s differs: one of the two computes wrongly. No parameter has been changed "
             "by it",
             (unsigned long long)c->step, maker / c->threads, theirs.processor, c->place, ours,
             l->lane, crew_name_leg(h, c->context[l->who.local].shared, leg), tensor);
    worker_fail(c, text);
}

static void end_audit(const struct worker *c, int audit, int thread, enum claim_state how) {
    const struct claim held = {.step = (uint32_t)c->step, .owner = thread};
    claim_publish(word_of(c, audit), &held, how, how == CLAIM_FREE ? 0 : thread, 0);
}

void worker_audit_compare(struct worker *c, const struct tree_lane *l, int bucket) {
    const uint64_t *made = sums_of(c, maker_of(c, l->lane, bucket), l->lane);
    for (int i = 0; i < l->p->n_result; i++)
        if (compares(c, l, i, bucket) && sum_result(l->p, i) != made[i]) {
            differ(c, l, bucket, l->p->result[i].is->node->name);
            return;
        }
    if (bucket != l->tree->buckets.last[l->leg]) return;
    atomic_fetch_add(&c->head->course.audited, 1);
    end_audit(c, number_of(c, l), l->who.thread, CLAIM_DONE);
    crew_notify(c->head);
}

void worker_audit_drop(struct worker *c, const struct tree_lane *l) {
    end_audit(c, number_of(c, l), l->who.thread, CLAIM_FREE);
    crew_notify(c->head);
}
