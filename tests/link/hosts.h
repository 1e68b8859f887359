/* SPDX-License-Identifier: Apache-2.0
 * Hosts of a run without a network to train: each has a store as workers lay it out, and one thread
 * that opens steps, computes lanes and sums on the real boards, and updates a parameter. There may
 * be a further state, of which a step changes some numbers. A host that joins lacks all of these at
 * first. Include it after cmocka.h. */
#ifndef HOSTS_H
#define HOSTS_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "crew/view.h"
#include "ferry/ferry.h"
#include "machine/tree.h"
#include "plan/transfer.h"
#include "wire/topk.h"

#define MOST 4 /* hosts */
#ifndef SUMS
#define SUMS 2 /* buckets of lanes that are summed, at most; before them one that is not */
#endif
#define STEPS 64

struct shape {
    int hosts, lanes, levels;
    size_t numbers[SUMS]; /* 0: there is no such bucket */
    uint64_t steps, base; /* the last; done before the run began */
    size_t more;          /* numbers of the further state */
    int path;             /* as in struct schedule_way; 0: exchange */
    enum wire_format format; /* topk needs two levels, and has estimates in the state */
};

static inline int host_weight(int i) { return 1 + i % 2; }

static inline int sums_of(const struct shape *s) {
    int n = 0;
    while (n < SUMS && s->numbers[n]) n++;
    return n;
}

/* Nodes with so many sums above them are shared by hosts, and rounded; -1: lanes are shared. */
static inline int cut_of(const struct shape *s) {
    return s->format == WIRE_F32 || s->format == WIRE_PACK ? -1 : 2;
}

struct host {
    int self, fd;
    const struct shape *is;
    struct view view;
    struct crew_head *head;
    float *param[SUMS], *more; /* in the store, one after the other; between them estimates */
    enum { AT_LANES, AT_UPDATE, AT_OPENING } at;
    bool half_updated; /* see taken_out */
    struct hosts_opening opened[STEPS];
    int weight[MOST];
    int computed; /* lanes, of the second phase */
};

/* ---- the numbers ---- */

static inline size_t numbers_of(const struct shape *s, int k, int bucket) {
    return k ? s->numbers[bucket] : 1;
}

static inline size_t all_numbers(const struct shape *s) {
    size_t n = 0;
    for (int b = 0; b < sums_of(s); b++) n += s->numbers[b];
    return n;
}

/* In a slot: the numbers, and marks of topk. */
static inline size_t slot_bytes(const struct shape *s, int k, int bucket) {
    const size_t n = numbers_of(s, k, bucket), numbers = (n + n % 2) * sizeof(float);
    return k && s->format == WIRE_TOPK ? numbers + topk_mark_bytes(n) : n * sizeof(float);
}

static inline void compute(const struct host *h, int k, int bucket, int lane, uint64_t step,
                           double rate, float count, float *to) {
    for (size_t i = 0; i < numbers_of(h->is, k, bucket); i++) {
        const uint32_t r = (uint32_t)i * 2654435761u ^ (uint32_t)(lane * 40503 + bucket) * 97u ^
                           (uint32_t)step * 7919u;
        to[i] = k ? ((float)(r % 65537) * (r & 64 ? 1e-5f : 1e-2f) + h->param[bucket][i]) *
                        (float)rate / count
                  : 1.0f + (float)(r % 3);
    }
}

static inline void add(const float *x, const float *y, size_t n, float *to) {
    for (size_t i = 0; i < n; i++) to[i] = x[i] + y[i];
}

/* As a thread does with each node that it computes. */
static inline void round_node(const struct host *h, int k, int bucket, int node, uint64_t step,
                              float *at) {
    const struct view_sums *s = &h->view.sums[0][k][bucket];
    const int top = h->view.tree[0][k].node[node].top;
    const bool estimates = h->is->format == WIRE_TOPK;
    const struct wire_map m = {.part = s->part, .n = s->parts,
                               .estimate = (char *)h->param[0] +
                                           (size_t)(top > 0 ? top : 0) * s->apart};
    const struct wire_key key = {h->head->layout.seed, step, node};
    if (lane_tree_depth(&h->view.tree[0][k], node) <= s->rounds && (top >= 0 || !estimates))
        wire_round(&m, &key, 0, wire_blocks(&m), (char *)at);
}

static inline void add_up(const struct host *h, int k, int bucket, int node, uint64_t step,
                          const float *left, const float *right, float *to) {
    add(left, right, numbers_of(h->is, k, bucket), to);
    round_node(h, k, bucket, node, step, to);
}

static inline void set_param(const struct host *h, int bucket) {
    for (size_t i = 0; i < h->is->numbers[bucket]; i++) h->param[bucket][i] = 1 + (float)(i % 7);
}

/* In two halves: between them the parameter is of no step. */
static inline void begin_update(const struct host *h, int bucket) {
    for (size_t i = 0; i < h->is->numbers[bucket]; i++) h->param[bucket][i] *= 0.5f;
}

static inline void end_update(const struct host *h, int bucket, const float *sum) {
    for (size_t i = 0; i < h->is->numbers[bucket]; i++) h->param[bucket][i] += sum[i] * 0.125f;
}

#define STRIDE 10007

static inline void update_more(const struct host *h, uint64_t step) {
    for (size_t i = 0; i < h->is->more; i += STRIDE)
        h->more[i] = h->more[i] * 0.5f + (float)(step + i);
}

/* ---- a store ---- */

static inline size_t values_of(const struct shape *s) {
    const size_t estimates = s->format == WIRE_TOPK ? (size_t)1 << s->levels : 0;
    return s->more + all_numbers(s) * (1 + estimates);
}

/* No more than those that suffice. */
static inline int slots_of(const struct shape *s, const struct lane_tree *tree) {
    const struct tree t = {.shape = *tree, .cut = cut_of(s)};
    int weight[MOST];
    for (int i = 0; i < s->hosts; i++) weight[i] = host_weight(i);
    return board_waiting(tree, 1) + tree_kept(&t, s->hosts, weight) +
           board_held(tree, 1, 1, false);
}

/* A tensor that travels as it is, and one that does not. Returns how many parts there are. */
static inline int make_parts(const struct shape *s, int bucket, struct wire_part *part) {
    const size_t n = s->numbers[bucket], first = n / 3;
    size_t before = all_numbers(s); /* in the state */
    if (!s->format) return 0;
    for (int b = 0; b < bucket; b++) before += s->numbers[b];
    part[0] = (struct wire_part){.n = first, .format = WIRE_F32};
    part[first > 0] = (struct wire_part){.at = first * sizeof(float), .n = n - first,
                                         .format = s->format, .name = 1,
                                         .kept = topk_kept(0.2, n - first),
                                         .marks = (n + n % 2) * sizeof(float),
                                         .estimate = (before + first) * sizeof(float)};
    return 1 + (first > 0);
}

/* Where a bucket is whose slots begin at `at`. */
static inline struct crew_board board_at(const struct shape *s, int k, int b, int nodes, int slots,
                                         uint64_t at, struct wire_part *part) {
    const bool summed = !k || b, last = b == (k ? sums_of(s) : 0);
    const uint64_t bytes = summed ? slot_bytes(s, k, b - k) : 0;
    struct crew_board board = {.first = b * nodes, .slot = b * slots, .slots = slots,
                               .leg = last ? 0 : -1, .summed = summed, .at = at, .stride = bytes,
                               .bytes = bytes, .adds = !k || !s->levels};
    if (k && summed) board.parts = make_parts(s, b - k, part + (board.part = 2 * b));
    return board;
}

static inline void lay_out(struct host *h, struct crew_head *head) {
    const struct shape *s = h->is;
    struct crew_layout *l = &head->layout;
    struct region *r = l->region;
    struct lane_tree tree[2];
    int slots = 0;
    for (int k = 0; k < 2; k++) {
        assert_int_equal(lane_tree_make(s->lanes, k ? s->levels : 0, &tree[k]), TRI_OK);
        const int suffice = slots_of(s, &tree[k]);
        slots = suffice > slots ? suffice : slots;
    }
    const int nodes = tree[0].n_nodes, buckets[] = {1, 1 + sums_of(s)};
    for (int k = 0; k < 2; k++) lane_tree_free(&tree[k]);
    regions_begin(r, &head->size);
    l->n_shapes = 1;
    l->lanes = l->shape[0].lanes = s->lanes;
    l->shape[0].levels = s->levels;
    r[REGION_BOARDS].n = buckets[0] + buckets[1];
    r[REGION_PARTS].n = 2 * buckets[1];
    r[REGION_VALUES].bytes = sizeof(float) * values_of(s);
    r[REGION_RESULTS].bytes = sizeof(double);
    r[REGION_MINE].bytes = (uint64_t)s->lanes;
    r[REGION_KEEPS].bytes = (uint64_t)nodes;
    for (int k = 0; k < 2; k++) {
        const enum region_number phase = (enum region_number)k;
        l->nodes[k] = buckets[k] * nodes;
        l->shape[0].tree[k].buckets = buckets[k];
        l->shape[0].tree[k].boards = k;
        l->shape[0].tree[k].rounds = k ? cut_of(s) : -1;
        l->shape[0].tree[k].apart = all_numbers(s) * sizeof(float);
        r[REGION_BOARD + phase].bytes = sizeof(claim_word) * (size_t)(buckets[k] * (nodes + slots));
        uint64_t *bytes = &r[REGION_SLOTS + phase].bytes;
        *bytes = 64;
        for (int b = k; b < buckets[k]; b++)
            *bytes += slot_bytes(s, k, b - k) * (size_t)slots;
    }
    l->store_bytes = regions_place(r);
    assert_int_equal(ftruncate(h->fd, (off_t)(crew_head_bytes() + l->store_bytes)), 0);
    struct view v = {.head = head, .fd = h->fd};
    char *base = mmap(NULL, l->store_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd,
                      (off_t)crew_head_bytes());
    assert_true(base != MAP_FAILED);
    v.base = base;
    for (int k = 0; k < 2; k++) {
        uint64_t at = 64;
        for (int b = 0; b < buckets[k]; b++) {
            struct crew_board *board = view_region(&v, REGION_BOARDS, k + b);
            *board = board_at(s, k, b, nodes, slots, at, view_region(&v, REGION_PARTS, 0));
            at += board->bytes * (uint64_t)slots;
        }
    }
    munmap(base, l->store_bytes);
    atomic_store(&l->published, 1);
}

/* A host that joins has values that no step has left. */
static inline void set_values(struct host *h, bool joins) {
    const size_t n = values_of(h->is);
    float *values = h->param[0] = view_region(&h->view, REGION_VALUES, 0);
    for (int b = 1; b < sums_of(h->is); b++) h->param[b] = h->param[b - 1] + h->is->numbers[b - 1];
    h->more = values + n - h->is->more;
    for (size_t i = 0; i < n; i++) values[i] = joins ? -7 : 0;
    for (int b = 0; b < sums_of(h->is) && !joins; b++) set_param(h, b);
    for (int k = 0; k < 2; k++) *(double *)view_region(&h->view, REGION_RESULTS, k) = 0;
}

/* Before its first step. */
static inline void host_reset(struct host *h, bool joins) {
    struct crew_head *head = h->head;
    const uint64_t base = joins ? 0 : h->is->base;
    struct crew_course course = {.base = base, .opened = base, .committed = base};
    course.values[base % 2].step = base;
    memcpy(&head->course, &course, sizeof course);
    const struct crew_hosts hosts = {.n = h->is->hosts, .self = h->self, .lease = INT64_MAX,
                                     .teller = joins ? -1 : 0, .joins = joins};
    memcpy(&head->hosts, &hosts, sizeof hosts);
    hosts_begin(&head->hosts);
    for (int k = 0; k < 2; k++) {
        const enum region_number board = k ? REGION_BOARD_OF_LANES : REGION_BOARD;
        memset(view_region(&h->view, board, 0), 0, head->layout.region[board].bytes);
        memset(view_region(&h->view, REGION_KEEPS, k), 0, head->layout.region[REGION_KEEPS].bytes);
        for (int b = 0; b < head->layout.shape[0].tree[k].buckets; b++)
            memset((void *)h->view.board[0][k][b].over, 0, sizeof h->view.board[0][k][b].over);
    }
    memset(view_region(&h->view, REGION_MINE, 0), 0, (size_t)h->is->lanes);
    set_values(h, joins);
    memset(h->opened, 0, sizeof h->opened);
    h->half_updated = false;
    h->at = AT_LANES;
    h->computed = 0;
}

static inline void host_make(struct host *h, const struct shape *s, int self, bool joins) {
    *h = (struct host){.self = self, .is = s, .fd = memfd_create("store", MFD_CLOEXEC)};
    struct crew_head *head = calloc(1, sizeof *head);
    assert_true(h->fd >= 0 && head);
    crew_head_begin(head, &(struct crew_size){.workers = 1, .threads = 1});
    lay_out(h, head);
    assert_int_equal(pwrite(h->fd, head, sizeof *head, 0), sizeof *head);
    free(head);
    assert_int_equal(crew_attach(h->fd, &h->head), TRI_OK);
    h->view = (struct view){.head = h->head, .fd = h->fd};
    assert_int_equal(view_map(&h->view), TRI_OK);
    host_reset(h, joins);
}

static inline void host_free(struct host *h) {
    if (!h->head) return;
    view_unmap(&h->view);
    munmap(h->head, crew_head_bytes());
    close(h->fd);
    h->head = NULL;
}

/* ---- what its thread does, a move at a time ---- */

/* A rule that hosts do not keep: an update begins only when the host has everything; what it has of
 * a step is kept until others have all of it; what belongs to an old epoch ends. */
static enum { NO_RULE, WHEN_WHOLE, UNTIL_ACKNOWLEDGED, OLD_EPOCHS } taken_out;

static inline float *slot_at(const struct host *h, int k, int bucket, int node) {
    const struct view_sums *s = &h->view.sums[0][k][bucket];
    return (float *)(void *)(s->slots + s->stride * (size_t)board_slot_of(s->board, node));
}

/* The sum of all lanes; its tops are there. */
static inline void total(const struct host *h, int k, int bucket, int node, float *to) {
    const struct lane_node *n = &h->view.tree[0][k].node[node];
    const size_t count = numbers_of(h->is, k, bucket);
    if (n->top >= 0) {
        memcpy(to, slot_at(h, k, bucket, node), count * sizeof *to);
        return;
    }
    float *right = malloc(count * sizeof *right);
    total(h, k, bucket, n->left, to);
    total(h, k, bucket, n->right, right);
    add(to, right, count, to);
    free(right);
}

static inline void publish(struct host *h, int k, int bucket, int node, int slot, uint32_t step) {
    struct board *b = h->view.sums[0][k][bucket].board;
    const struct lane_node *n = h->view.tree[0][k].node;
    while (node >= 0 && board_publish(b, step, 0, node, slot)) {
        node = board_meet(b, step, 0, node);
        if (node < 0) return;
        slot = board_take(b, step, 0, node);
        const struct view_sums *s = &h->view.sums[0][k][bucket];
        add_up(h, k, bucket, node, step, slot_at(h, k, bucket, n[node].left),
               slot_at(h, k, bucket, n[node].right),
               (float *)(void *)(s->slots + s->stride * (size_t)slot));
    }
}

static inline bool is_summed(const struct host *h, int k, uint32_t step) {
    int failed;
    for (int b = 0; b < h->view.n_sums[0][k]; b++)
        if (!board_complete(h->view.sums[0][k][b].board, step, &failed)) return false;
    return true;
}

/* Claims and computes a lane, or makes a sum. */
static inline bool compute_some(struct host *h, int k, uint32_t step) {
    const int buckets = h->view.n_sums[0][k];
    const struct view_sums *s = h->view.sums[0][k];
    const struct hosts_opening *o = &h->head->hosts.opening[step % 2];
    const struct lane_node *n = h->view.tree[0][k].node;
    float count = 1;
    for (int b = 0; b < buckets; b++) {
        const int node = board_orphan(s[b].board, step, 0);
        if (node < 0) continue;
        const int slot = board_take(s[b].board, step, 0, node);
        add_up(h, k, b, node, step, slot_at(h, k, b, n[node].left),
               slot_at(h, k, b, n[node].right),
               (float *)(void *)(s[b].slots + s[b].stride * (size_t)slot));
        publish(h, k, b, node, slot, step);
        return true;
    }
    const int lane = board_claim_lane(s[buckets - 1].board, step, 0);
    if (lane < 0) return false;
    if (k) total(h, 0, 0, h->view.tree[0][0].n_nodes - 1, &count);
    for (int b = 0; b < buckets; b++) {
        const int slot = board_take(s[b].board, step, 0, lane);
        float *at = (float *)(void *)(s[b].slots + s[b].stride * (size_t)slot);
        compute(h, k, b, lane, step, o->rate, count, at);
        round_node(h, k, b, lane, step, at);
        publish(h, k, b, lane, slot, step);
    }
    h->computed += k;
    return true;
}

static inline bool lacks(const struct host *h) { return atomic_load(&h->head->hosts.lacks); }

static inline bool is_over(const struct host *h, uint64_t step) {
    return (!h->head->hosts.joins && step <= h->head->course.base) ||
           step <= h->head->hosts.over || taken_out == UNTIL_ACKNOWLEDGED;
}

static inline bool may_open(const struct host *h) {
    const struct crew_hosts *s = &h->head->hosts;
    const uint64_t done = h->head->course.committed;
    if (h->head->course.opened > done || lacks(h)) return false;
    if (s->enters > done) return true; /* it has begun to */
    return s->epoch && done < h->is->steps && is_over(h, done) &&
           (s->teller == h->self || s->offered > done);
}

/* As the teller: writes the opening of the next step. */
static inline void offer(struct host *h, uint64_t step) {
    struct crew_hosts *s = &h->head->hosts;
    struct hosts_opening *o = &s->opening[step % 2];
    *o = (struct hosts_opening){.step = step, .hosts = h->is->hosts,
                                .rate = 1 + 0.25 * h->self + 0.125 * (double)(step % 3)};
    int weight[MOST];
    for (int i = 0; i < o->hosts; i++) weight[i] = s->weight[i];
    hosts_deal(&h->view.tree[0][1], cut_of(h->is), o->hosts, weight, o->begin);
    s->offered = step;
}

static inline void take_opening(struct host *h, uint64_t step) {
    const struct hosts_opening *o = &h->head->hosts.opening[step % 2];
    uint8_t *mine = view_region(&h->view, REGION_MINE, 0);
    h->opened[step] = *o;
    for (int i = 0; i < h->is->lanes; i++)
        mine[i] = i >= o->begin[h->self] && i < o->begin[h->self + 1];
    for (int k = 0; k < 2; k++) {
        transfers_operands(&h->view.tree[0][k], o->hosts, o->begin, NULL,
                           view_region(&h->view, REGION_KEEPS, k));
        for (int b = 0; b < h->view.n_sums[0][k]; b++) board_clear(h->view.sums[0][k][b].board);
    }
    h->at = AT_LANES;
    h->head->course.opened = step;
}

/* As a worker does, between whose moves the ferry may look: says that it will, sees whether it may,
 * writes the opening as the teller, opens. */
static inline void open_some(struct host *h) {
    struct crew_hosts *s = &h->head->hosts;
    const uint64_t step = h->head->course.committed + 1;
    if (s->enters < step) s->enters = step;
    else if (h->at != AT_OPENING && !is_over(h, step - 1)) s->enters = step - 1;
    else if (h->at != AT_OPENING) h->at = AT_OPENING;
    else if (s->offered < step) offer(h, step);
    else take_opening(h, step);
}

static inline bool has_own(const struct host *h, uint32_t step) {
    const uint8_t *mine = view_region(&h->view, REGION_MINE, 0);
    for (int i = 0; i < h->is->lanes; i++)
        for (int b = 0; mine[i] && b < h->view.n_sums[0][1]; b++)
            if (!board_is_done(h->view.sums[0][1][b].board, step, i)) return false;
    return true;
}

static inline bool may_compute(const struct host *h, int k, uint32_t step) {
    const int buckets = h->view.n_sums[0][k];
    for (int b = 0; b < buckets; b++)
        if (board_has_orphan(h->view.sums[0][k][b].board, step)) return true;
    return board_left(h->view.sums[0][k][buckets - 1].board, step, 1);
}

static inline bool host_may_work(const struct host *h) {
    const struct crew_course *c = &h->head->course;
    const uint32_t step = (uint32_t)c->opened;
    if (may_open(h)) return true;
    if (c->opened == c->committed) return false;
    if (h->at == AT_UPDATE) return true;
    const int k = is_summed(h, 0, step);
    return (k && is_summed(h, 1, step)) || may_compute(h, k, step) ||
           (taken_out == WHEN_WHOLE && k && !h->half_updated && has_own(h, step));
}

/* Where the estimate of a node is; null: there is none. */
static inline float *estimate_of(const struct host *h, int bucket, int node) {
    const size_t top = (size_t)h->view.tree[0][1].node[node].top;
    return h->is->format == WIRE_TOPK ? h->param[bucket] + (1 + top) * all_numbers(h->is) : NULL;
}

static inline void update_some(struct host *h, uint32_t step) {
    const bool whole = is_summed(h, 1, step);
    for (int b = 0; b < sums_of(h->is); b++) {
        float *sum = malloc(h->is->numbers[b] * sizeof *sum);
        if (!h->half_updated) begin_update(h, b);
        if (whole) total(h, 1, b, h->view.tree[0][1].n_nodes - 1, sum);
        if (whole) end_update(h, b, sum);
        free(sum);
        const struct lane_tree *t = &h->view.tree[0][1];
        for (int i = 0; whole && i < t->n_tops && estimate_of(h, b, t->top[i]); i++)
            memcpy(estimate_of(h, b, t->top[i]), slot_at(h, 1, b, t->top[i]),
                   h->is->numbers[b] * sizeof *sum);
    }
    h->half_updated = !whole;
    if (!whole) return;
    update_more(h, step);
    h->at = AT_UPDATE;
}

/* The end of the update; until then the values are of no step. */
static inline void commit(struct host *h, uint64_t step) {
    struct crew_course *c = &h->head->course;
    h->at = AT_LANES;
    *(double *)view_region(&h->view, REGION_RESULTS, (int64_t)step % 2) = -(double)step;
    c->values[step % 2].loss = (double)step;
    c->values[step % 2].step = step;
    c->committed = step;
}

/* False: there is nothing to do. */
static inline bool host_work(struct host *h) {
    const uint32_t step = (uint32_t)h->head->course.opened;
    if (!host_may_work(h)) return false;
    if (may_open(h)) {
        open_some(h);
    } else if (h->at == AT_UPDATE) {
        commit(h, step);
    } else {
        const int k = is_summed(h, 0, step);
        if (!may_compute(h, k, step) || !compute_some(h, k, step)) update_some(h, step);
    }
    crew_notify(h->head);
    return true;
}

static inline bool host_is_done(const struct host *h) {
    return h->head->course.committed >= h->is->steps && h->head->hosts.over >= h->is->steps;
}

/* How the steps were opened before it joined; `report` is of the other in the same epoch. */
static inline void host_learns(struct host *h, const struct host *from,
                               const struct hosts_report *report) {
    for (uint64_t step = h->is->base + 1; step <= h->is->steps; step++)
        if (from->opened[step].step) h->opened[step] = from->opened[step];
    if (report->step) h->opened[report->step] = report->opening;
}

/* ---- one host ---- */

static inline void whole(const struct host *h, int k, int bucket, int node, uint64_t step,
                         double rate, float count, float *to) {
    const struct lane_node *n = &h->view.tree[0][k].node[node];
    if (n->left < 0) {
        compute(h, k, bucket, node, step, rate, count, to);
        round_node(h, k, bucket, node, step, to);
        return;
    }
    float *right = malloc(slot_bytes(h->is, k, bucket));
    whole(h, k, bucket, n->left, step, rate, count, to);
    whole(h, k, bucket, n->right, step, rate, count, right);
    add_up(h, k, bucket, node, step, to, right, to);
    free(right);
}

/* Computes all steps as one host does that opens them so, and compares the values. */
static inline void host_check(const struct host *h) {
    struct host one = *h;
    const int root = h->view.tree[0][0].n_nodes - 1;
    const size_t bytes = values_of(h->is) * sizeof(float);
    float *values = calloc(1, bytes);
    assert_non_null(values);
    for (int b = 0; b < sums_of(h->is); b++) {
        one.param[b] = values + (h->param[b] - h->param[0]);
        set_param(&one, b);
    }
    one.more = values + (h->more - h->param[0]);
    for (uint64_t step = h->is->base + 1; step <= h->is->steps; step++) {
        float count;
        const double rate = h->opened[step].rate;
        whole(&one, 0, 0, root, step, rate, 1, &count);
        for (int b = 0; b < sums_of(h->is); b++) {
            const struct lane_tree *t = &h->view.tree[0][1];
            float *sum = malloc(slot_bytes(h->is, 1, b)), *top = malloc(slot_bytes(h->is, 1, b));
            whole(&one, 1, b, root, step, rate, count, sum);
            for (int i = 0; i < t->n_tops && estimate_of(&one, b, t->top[i]); i++) {
                whole(&one, 1, b, t->top[i], step, rate, count, top);
                memcpy(estimate_of(&one, b, t->top[i]), top, h->is->numbers[b] * sizeof *top);
            }
            begin_update(&one, b);
            end_update(&one, b, sum);
            free(sum);
            free(top);
        }
        update_more(&one, step);
    }
    assert_memory_equal(values, h->param[0], bytes);
    free(values);
}

#endif
