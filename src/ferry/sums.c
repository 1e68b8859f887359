/* SPDX-License-Identifier: Apache-2.0 */
#include "ferry/sums.h"

#include <stdlib.h>
#include <string.h>

#include "plan/path_choice.h"
#include "wire/wire.h"

#define ALIGN 64 /* bytes */

/* ---- memory ---- */

tri_status sums_bucket_make(const struct sums_memory *m, struct sums_bucket *b) {
    const size_t bytes = m->numbers * sizeof(float), stride = (bytes + ALIGN - 1) / ALIGN * ALIGN,
                 slots = (size_t)m->slots;
    *b = (struct sums_bucket){.node = calloc((size_t)m->tree->n_nodes, sizeof *b->node),
                              .slot = calloc(slots, sizeof *b->slot),
                              .slots = calloc(slots, stride)};
    if (!b->node || !b->slot || !b->slots) {
        sums_bucket_free(b);
        return base_no_memory("sums");
    }
    const struct board_words words = {b->node, b->slot, m->tree->n_nodes, m->slots};
    board_bind(&b->board, m->tree, &words, 0, m->threads);
    b->board.keeps = m->keeps;
    b->board.mine = m->mine;
    b->view = (struct view_sums){.board = &b->board, .slots = b->slots, .stride = stride,
                                 .bytes = bytes, .adds = true, .rounds = -1};
    return TRI_OK;
}

void sums_bucket_free(struct sums_bucket *b) {
    free(b->node);
    free(b->slot);
    free(b->slots);
    *b = (struct sums_bucket){0};
}

char *sums_bucket_slot(const struct sums_bucket *b, int slot) {
    return b->slots + b->view.stride * (size_t)slot;
}

struct sums {
    struct sums_ask ask;
    struct lane_tree tree;
    struct transfers plan;
    struct sums_bucket bucket;
    uint8_t *keeps;
    _Atomic uint8_t *mine;
    struct put {
        int slot; /* in which the thread's lane is; -1: in none yet */
        uint32_t set;
    } *put;       /* by thread */
    uint32_t step;
};

static tri_status make_plan(struct sums *s) {
    const struct sums_ask *a = &s->ask;
    int *begin = calloc((size_t)a->hosts + 1, sizeof *begin);
    if (!begin) return base_no_memory("sums");
    for (int h = 0; h <= a->hosts; h++) begin[h] = h * a->threads;
    const int multiple = path_multiple((double)(a->numbers * sizeof(float)), a->hosts);
    const struct transfer_share share = {.hosts = a->hosts, .begin = begin, .buckets = 1,
                                         .path = &a->path, .multiple = &multiple};
    tri_status status = transfers_make(&s->tree, &share, &s->plan);
    if (!status) transfers_operands(&s->tree, a->hosts, begin, NULL, s->keeps);
    free(begin);
    return status;
}

tri_status sums_open(const struct sums_ask *ask, struct sums **out) {
    struct sums *s = *out = calloc(1, sizeof *s);
    if (!s) return base_no_memory("sums");
    s->ask = *ask;
    tri_status status = lane_tree_make((int64_t)ask->hosts * ask->threads, 0, &s->tree);
    if (!status) {
        s->keeps = calloc((size_t)s->tree.n_nodes, sizeof *s->keeps);
        s->mine = calloc((size_t)s->tree.lanes, sizeof *s->mine);
        s->put = calloc((size_t)ask->threads, sizeof *s->put);
        if (!s->keeps || !s->mine || !s->put) status = base_no_memory("sums");
    }
    if (!status) status = make_plan(s);
    if (!status)
        status = sums_bucket_make(&(struct sums_memory){
            .tree = &s->tree, .keeps = s->keeps, .mine = s->mine, .numbers = ask->numbers,
            .threads = ask->threads, .slots = s->tree.n_nodes + ask->threads + 2}, &s->bucket);
    for (int t = 0; t < ask->threads && !status; t++) {
        s->put[t].slot = -1;
        atomic_store(&s->mine[ask->self * ask->threads + t], BOARD_MINE);
    }
    if (status) sums_close(s);
    if (status) *out = NULL;
    return status;
}

void sums_close(struct sums *s) {
    if (!s) return;
    sums_bucket_free(&s->bucket);
    transfers_free(&s->plan);
    lane_tree_free(&s->tree);
    free(s->keeps);
    free(s->mine);
    free(s->put);
    free(s);
}

/* ---- numbers ---- */

/* Their sums are rounded, so that another order would give other bits. */
static float number(int lane, uint32_t set, size_t i) {
    const uint32_t r = ((uint32_t)i ^ (uint32_t)lane * 40503u ^ set * 7919u) * 2654435761u;
    return (float)(r >> (r & 15));
}

static float number_of(const struct sums *s, int node, uint32_t set, size_t i) {
    const struct lane_node *n = &s->tree.node[node];
    return n->left < 0 ? number(node, set, i)
                       : number_of(s, n->left, set, i) + number_of(s, n->right, set, i);
}

tri_status sums_check(struct sums *s, uint32_t set) {
    const int root = s->tree.n_nodes - 1;
    const float *is = (const float *)(void *)sums_bucket_slot(
        &s->bucket, board_slot_of(&s->bucket.board, root));
    for (size_t i = 0; i < s->ask.numbers; i++) {
        const float right = number_of(s, root, set, i);
        if (memcmp(&is[i], &right, sizeof right))
            return base_fail(TRI_FAILED, "a sum is wrong by path %s: number %zu of %zu is %a, not "
                             "%a", path_name(s->ask.path), i, s->ask.numbers, (double)is[i],
                             (double)right);
    }
    return TRI_OK;
}

/* ---- a step ---- */

void sums_begin(struct sums *s, uint32_t step) {
    board_clear(&s->bucket.board);
    s->step = step;
}

struct mover_step sums_step(const struct sums *s, uint32_t epoch) {
    return (struct mover_step){.epoch = epoch, .step = s->step,
                               .phase = {{0}, {&s->tree, &s->plan, &s->bucket.view}}};
}

static int lane_of(const struct sums *s, int thread) {
    return s->ask.self * s->ask.threads + thread;
}

/* A lane's slot is not released, and so has the same numbers in the next step, if it is kept for
 * other hosts. */
void sums_put(struct sums *s, int thread, uint32_t set) {
    struct put *last = &s->put[thread];
    const int lane = lane_of(s, thread),
              slot = board_take(&s->bucket.board, s->step, thread, lane);
    float *to = (float *)(void *)sums_bucket_slot(&s->bucket, slot);
    const bool there = s->keeps[lane] && slot == last->slot && set == last->set;
    *last = (struct put){slot, set};
    for (size_t i = 0; i < s->ask.numbers && !there; i++) to[i] = number(lane, set, i);
}

/* Makes the sum of a node that the thread has claimed, if it is not -1, and those above it. */
static void add(struct sums *s, int thread, int node) {
    struct board *b = &s->bucket.board;
    const struct wire_part all = {.n = s->ask.numbers, .format = WIRE_F32};
    const struct wire_map map = {.part = &all, .n = 1};
    for (; node >= 0; node = board_meet(b, s->step, thread, node)) {
        const struct lane_node *n = &s->tree.node[node];
        const int to = board_take(b, s->step, thread, node);
        wire_add(&map, sums_bucket_slot(&s->bucket, board_slot_of(b, n->left)),
                 sums_bucket_slot(&s->bucket, board_slot_of(b, n->right)), 0, wire_blocks(&map),
                 sums_bucket_slot(&s->bucket, to));
        if (!board_publish(b, s->step, thread, node, to)) return;
    }
}

void sums_publish(struct sums *s, int thread) {
    struct board *b = &s->bucket.board;
    const int lane = lane_of(s, thread);
    CHECK(board_publish(b, s->step, thread, lane, s->put[thread].slot));
    add(s, thread, board_meet(b, s->step, thread, lane));
}

void sums_follow(struct sums *s, int thread) {
    struct board *b = &s->bucket.board;
    for (int node; (node = board_orphan(b, s->step, thread)) >= 0;) add(s, thread, node);
}

bool sums_are_there(struct sums *s) {
    int failed;
    return board_complete(&s->bucket.board, s->step, &failed);
}
