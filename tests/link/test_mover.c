/* SPDX-License-Identifier: Apache-2.0
 * Several stores in one process: threads of each host compute its lanes and sums on real boards,
 * movers execute the schedule, in hostile orders, by each path, in each format, over each row of
 * the link. Every host has the sums of one host, bit for bit; just the schedule's bytes move. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "base/random.h"
#include "crew/hosts.h"
#include "ferry/mover.h"
#define HOSTS 8
#include "link/bed.h"
#include "machine/tree.h"
#include "unit/transfers.h"
#include "wire/topk.h"

#define BUCKETS 3
#define MIXED PATHS /* a path for each bucket */
#define SEED 5
#define LANES 24
#define NODES (2 * LANES)
#define THREADS 2
#define FERRY 3 /* the mover's number on the boards */
#define SLOTS (NODES + THREADS + 2)
#define PARTS 100
#define LEVELS 3 /* of the tree that is rounded */
#define TOPS (1 << LEVELS)
static size_t numbers[BUCKETS] = {3, 40000, 700};
static size_t room[BUCKETS]; /* of a slot, in numbers */
static float estimate[TOPS][1000]; /* for topk, of all buckets; in all steps the same */
static int buckets = BUCKETS;

/* How sums move. */
static struct kind {
    int path; /* enum path, or MIXED */
    enum wire_format format;
    bool uneven, late;
    int cut; /* nodes that hosts share; -1: lanes */
} kind = {.cut = -1};

struct worker {
    int node, bucket; /* the lane that it computes, and at which bucket it is; node -1: none */
};

struct host {
    struct mover *mover;
    struct board board[BUCKETS];
    claim_word words[BUCKETS][NODES], slot_words[BUCKETS][SLOTS];
    float *slots[BUCKETS];
    struct view_sums sums[BUCKETS];
    _Atomic uint8_t mine[LANES];
    struct worker worker[THREADS];
    uint32_t step;
};

static struct bed b;
static struct host host[HOSTS];
static struct lane_tree tree;
static struct wire_part part[BUCKETS][PARTS];
static int n_parts[BUCKETS];
static bool sends_on;
static struct transfers plan, rest; /* rest: of a step that has begun anew */
static int32_t begin[HOSTS + 1];
static uint8_t keeps[NODES]; /* operands */
static uint64_t drawn;
static int draw(int n) { return (int)(random_u32(9, 0, drawn++) % (uint32_t)n); }

static float *slot(struct host *h, int bucket, int i) {
    return h->slots[bucket] + (size_t)i * room[bucket];
}

/* ---- the numbers of one host ---- */

static void of_lane(int lane, uint32_t step, int bucket, float *to) {
    for (size_t i = 0; i < numbers[bucket]; i++) {
        uint32_t r = (uint32_t)i * 2654435761u ^ (uint32_t)(lane * 40503 + bucket) * 97u ^
                     step * 7919u;
        to[i] = (float)(r % 65537) * (r & 64 ? 1e-5f : 1.0f);
    }
}

static void add(const float *x, const float *y, size_t n, float *to) {
    for (size_t i = 0; i < n; i++) to[i] = x[i] + y[i];
}

/* Tensors of odd sizes, of which every third travels as it is. */
static void make_parts(int bucket) {
    static const size_t sizes[] = {255, 3, 1, 513, 300, 257};
    size_t at = 0;
    room[bucket] = numbers[bucket] + numbers[bucket] % 2;
    for (n_parts[bucket] = 0; at < numbers[bucket]; n_parts[bucket]++) {
        const int i = n_parts[bucket];
        const size_t left = numbers[bucket] - at;
        const size_t size = kind.format ? sizes[(i + bucket) % 6] : left;
        struct wire_part *p = &part[bucket][i];
        *p = (struct wire_part){.at = at * sizeof(float), .n = size < left ? size : left,
                                .format = i % 3 == 2 ? WIRE_F32 : kind.format,
                                .name = (uint32_t)i, .estimate = at * sizeof(float)};
        if (i == PARTS - 1) p->n = left;
        at += p->n;
        if (p->format != WIRE_TOPK) continue;
        assert_true(at <= COUNT(estimate[0]));
        p->kept = topk_kept(0.1, p->n);
        p->marks = room[bucket] * sizeof(float);
        room[bucket] += topk_mark_bytes(p->n) / sizeof(float);
    }
}

static struct wire_map map_of(int bucket) {
    return (struct wire_map){.part = part[bucket], .n = n_parts[bucket]};
}

/* As a thread does with each node that it computes. */
static void round_node(int node, uint32_t step, int bucket, float *at) {
    struct wire_map m = map_of(bucket);
    const int top = tree.node[node].top;
    const struct wire_key key = {SEED, step, node};
    m.estimate = top < 0 ? NULL : (const char *)estimate[top];
    if (lane_tree_depth(&tree, node) <= kind.cut)
        wire_round(&m, &key, 0, wire_blocks(&m), (char *)at);
}

static void whole(int node, uint32_t step, int bucket, float *to) {
    const struct lane_node *n = &tree.node[node];
    if (n->left < 0) {
        of_lane(node, step, bucket, to);
    } else {
        float *right = malloc(room[bucket] * sizeof *right);
        whole(n->left, step, bucket, to);
        whole(n->right, step, bucket, right);
        add(to, right, numbers[bucket], to);
        free(right);
    }
    round_node(node, step, bucket, to);
}

/* The bucket's tops, one after the other, kept for all hosts, which are at two steps at most. */
static const float *wanted(uint32_t step, int bucket) {
    static struct {
        float *at;
        uint32_t step;
    } kept[2][BUCKETS], *k;
    k = &kept[step % 2][bucket];
    if (!step) { /* of another case */
        for (int i = 0; i < 2; i++) free(kept[i][bucket].at), kept[i][bucket].at = NULL;
        return NULL;
    }
    if (k->at && k->step == step) return k->at;
    if (!k->at) k->at = malloc((size_t)tree.n_tops * room[bucket] * sizeof *k->at);
    for (int i = 0; i < tree.n_tops; i++)
        whole(tree.top[i], step, bucket, k->at + (size_t)i * room[bucket]);
    k->step = step;
    return k->at;
}

/* ---- threads, a move at a time ---- */

static void sum(struct host *h, int thread, int bucket, int node) {
    struct board *d = &h->board[bucket];
    const struct lane_node *n = &tree.node[node];
    int to = board_take(d, h->step, thread, node);
    add(slot(h, bucket, board_slot_of(d, n->left)), slot(h, bucket, board_slot_of(d, n->right)),
        numbers[bucket], slot(h, bucket, to));
    round_node(node, h->step, bucket, slot(h, bucket, to));
    assert_true(board_publish(d, h->step, thread, node, to));
}

static void publish(struct host *h, int thread, int bucket, int node, int at) {
    assert_true(board_publish(&h->board[bucket], h->step, thread, node, at));
    for (; (node = board_meet(&h->board[bucket], h->step, thread, node)) >= 0;)
        sum(h, thread, bucket, node);
}

/* Lanes are claimed on the last board, as in machine/tree.h. */
static void work(struct host *h, int thread) {
    struct worker *w = &h->worker[thread];
    if (w->node < 0) {
        for (int k = 0; k < buckets; k++) {
            int orphan = board_orphan(&h->board[k], h->step, thread);
            if (orphan < 0) continue;
            sum(h, thread, k, orphan);
            return;
        }
        w->node = board_claim_lane(&h->board[buckets - 1], h->step, thread);
        w->bucket = 0;
        if (w->node < 0) return;
        const int self = (int)(h - host);
        assert_in_range(w->node, begin[self], begin[self + 1] - 1);
    }
    int at = board_take(&h->board[w->bucket], h->step, thread, w->node);
    of_lane(w->node, h->step, w->bucket, slot(h, w->bucket, at));
    round_node(w->node, h->step, w->bucket, slot(h, w->bucket, at));
    publish(h, thread, w->bucket, w->node, at);
    if (++w->bucket == buckets) w->node = -1;
}

/* ---- the world ---- */

static void *where(void *user, int from, const struct link_header *h) {
    return mover_where(((struct host *)user)->mover, from, h);
}

static void make_mover(const struct link_row *row, int i) {
    struct host *h = &host[i];
    assert_int_equal(mover_open(i, b.hosts, FERRY, &h->mover), TRI_OK);
    struct link_options o = bed_options(&b, i);
    o.where = where;
    o.user = h;
    link_close(b.l[i]);
    assert_int_equal(link_open(row, &o, &b.l[i]), TRI_OK);
    mover_bind(h->mover, b.l[i]);
    if (kind.late) mover_send_late(h->mover);
}

static const int *weights(void) {
    static const int even[HOSTS] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const int uneven[HOSTS] = {4, 1, 2, 9, 1, 2, 1, 5};
    return kind.uneven ? uneven : even;
}

/* No more than those that suffice. */
static int count_slots(void) {
    const struct tree t = {.shape = tree, .cut = kind.cut};
    return board_waiting(&tree, THREADS) + tree_kept(&t, b.hosts, weights()) +
           board_held(&tree, THREADS, 1, false);
}

static void make_host(const struct link_row *row, int i) {
    struct host *h = &host[i];
    const int slots = count_slots();
    assert_true(slots <= SLOTS);
    *h = (struct host){.step = 0};
    for (int k = 0; k < buckets; k++) {
        const struct board_words words = {h->words[k], h->slot_words[k], NODES, slots};
        board_bind(&h->board[k], &tree, &words, 0, THREADS);
        h->board[k].keeps = keeps;
        h->board[k].mine = h->mine;
        h->slots[k] = malloc(SLOTS * room[k] * sizeof(float));
        h->sums[k] = (struct view_sums){.board = &h->board[k], .slots = (char *)h->slots[k],
                                        .stride = room[k] * sizeof(float),
                                        .bytes = numbers[k] * sizeof(float), .adds = true,
                                        .values = (const char *)estimate,
                                        .apart = sizeof estimate[0],
                                        .part = kind.format ? part[k] : NULL,
                                        .leg = k == buckets - 1 ? 0 : -1,
                                        .parts = n_parts[k], .rounds = kind.cut};
    }
    for (int lane = begin[i]; lane < begin[i + 1]; lane++) atomic_store(&h->mine[lane], 1);
    for (int t = 0; t < THREADS; t++) h->worker[t].node = -1;
    make_mover(row, i);
}

static struct mover_step step_of(struct host *h, const struct transfers *t) {
    return (struct mover_step){b.epoch, h->step, SEED, {{0}, {&tree, t, h->sums}}};
}

static void begin_step(struct host *h, const struct transfers *t) {
    const struct mover_step s = step_of(h, t);
    assert_int_equal(mover_begin(h->mover, &s), TRI_OK);
}

/* The movers learn of it by events. */
static void join(int x, int y) {
    assert_int_equal(link_peer(b.l[x], y, b.epoch, link_address(b.l[y])), TRI_OK);
    assert_int_equal(link_peer(b.l[y], x, b.epoch, link_address(b.l[x])), TRI_OK);
}

static int by_sender(const void *x, const void *y) {
    return ((const struct transfer *)x)->from - ((const struct transfer *)y)->from;
}

/* What host 0 would send to host 2 comes from host 1, when that has it. */
static void send_on(void) {
    for (int i = 0; i < plan.n; i++)
        if (plan.all[i].from == 0 && plan.all[i].to == 2) plan.all[i].from = 1;
    qsort(plan.all, (size_t)plan.n, sizeof *plan.all, by_sender);
    for (int h = 0, i = 0; h <= plan.hosts; h++) {
        while (i < plan.n && plan.all[i].from < h) i++;
        plan.first[h] = i;
    }
}

static void make(const struct link_row *row, int hosts, int lanes, int levels) {
    enum path path[BUCKETS];
    const int multiple[BUCKETS] = {1 + hosts % 3, 1 + (hosts + 1) % 3, 1};
    for (int k = 0; k < buckets; k++) {
        make_parts(k);
        wanted(0, k);
        path[k] = kind.path < MIXED ? (enum path)kind.path : (enum path)((k + hosts) % PATHS);
        if (!path_allows(path[k], hosts)) path[k] = PATH_RING;
    }
    const struct transfer_share share = {.hosts = hosts, .begin = begin, .buckets = buckets,
                                         .path = path, .multiple = multiple};
    assert_int_equal(lane_tree_make(lanes, levels, &tree), TRI_OK);
    hosts_deal(&tree, kind.cut, hosts, weights(), begin);
    assert_int_equal(transfers_make(&tree, &share, &plan), TRI_OK);
    transfers_operands(&tree, hosts, begin, NULL, keeps);
    if (sends_on) send_on();
    assert_int_equal(transfers_check(&tree, &share, &plan), TRI_OK);
    bed_open(&b, row, hosts);
    for (int i = 0; i < hosts; i++) make_host(row, i);
    for (int x = 0; x < hosts; x++)
        for (int y = 0; y < x; y++) join(x, y);
}

static void over(void) {
    bed_close(&b);
    for (int i = 0; i < HOSTS; i++) {
        mover_close(host[i].mover);
        for (int k = 0; k < BUCKETS; k++) free(host[i].slots[k]);
        host[i] = (struct host){0};
    }
    transfers_free(&plan);
    transfers_free(&rest);
    lane_tree_free(&tree);
}

static bool is_complete(struct host *h) {
    int failed;
    for (int k = 0; k < buckets; k++)
        if (!board_complete(&h->board[k], h->step, &failed)) return false;
    return true;
}

/* Whether the tops have the bits of one host; then all slots can be free. */
static void check(struct host *h) {
    for (int k = 0; k < buckets; k++) {
        const float *want = wanted(h->step, k);
        for (int i = 0; i < tree.n_tops; i++)
            assert_memory_equal(slot(h, k, board_slot_of(&h->board[k], tree.top[i])),
                                want + (size_t)i * room[k], numbers[k] * sizeof *want);
        board_clear(&h->board[k]);
        for (int i = 0; i < SLOTS; i++)
            assert_int_equal(claim_read(&h->slot_words[k][i]).state, CLAIM_FREE);
    }
}

/* Returns whether there was an event. */
static bool pump(int i) {
    struct link_event e;
    assert_int_equal(link_next(b.l[i], &e), TRI_OK);
    bool published = false;
    if (e.what == LINK_ENDED) fail_msg("host %d: %s", i, e.why);
    assert_int_equal(mover_take(host[i].mover, &e, &published), TRI_OK);
    assert_int_equal(mover_wrong(host[i].mover), -1);
    assert_int_equal(mover_send(host[i].mover, &published), TRI_OK);
    return e.what != LINK_NOTHING;
}

/* All end their sessions, tell what they have, and go on with what is left. */
static void begin_anew(int hosts) {
    static const int weight[HOSTS] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const bool alive[HOSTS] = {true, true, true, true, true, true, true, true};
    const int n = buckets * (plan.n_operands + 1);
    uint8_t *has = calloc((size_t)(hosts * n) + 1, 1), *bits = calloc((size_t)n + 1, 1);
    b.epoch++;
    for (int x = 0; x < hosts; x++) {
        for (int y = 0; y < hosts; y++)
            if (y != x) link_end(b.l[x], y);
        mover_stop(host[x].mover);
        memset(bits, 0, (size_t)n);
        const struct mover_step s = step_of(&host[x], &plan);
        assert_int_equal(mover_report(&s, bits), n);
        for (int i = 0; i < n; i++) has[x * n + i] = bits[i / 8] >> i % 8 & 1;
    }
    const struct transfer_share share = {.hosts = hosts, .begin = begin, .buckets = buckets,
                                         .alive = alive, .weight = weight, .has = has};
    transfers_free(&rest);
    assert_int_equal(transfers_make(&tree, &share, &rest), TRI_OK);
    assert_int_equal(transfers_check(&tree, &share, &rest), TRI_OK);
    free(has);
    free(bits);
    for (int x = 0; x < hosts; x++) {
        begin_step(&host[x], &rest);
        for (int y = 0; y < x; y++) join(x, y);
    }
}

/* Roots come in the order of the buckets. */
static bool may_have_root(struct host *h, int bucket) {
    bool may = true;
    for (int i = 0; i < b.hosts; i++) may &= board_own_are_done(&host[i].board[bucket], h->step);
    for (int k = 0; k < bucket; k++) may &= board_is_done(&h->board[k], h->step, tree.n_nodes - 1);
    return may;
}

/* The one that moves sums dies, perhaps when it has published one and not ended those below. */
static void die(const struct link_row *row, int x, bool half_done) {
    struct host *h = &host[x];
    const struct transfer *some = &plan.all[half_done ? draw(plan.n) : 0];
    struct board *d = &h->board[some->bucket], *from = &host[some->from].board[some->bucket];
    const bool exchanged = plan.path[some->bucket] == PATH_EXCHANGE;
    const int node = exchanged ? some->node : tree.n_nodes - 1;
    half_done = half_done && some->to == x && !board_is_done(d, h->step, node) &&
                (exchanged ? board_is_done(from, h->step, node) : may_have_root(h, some->bucket));
    if (half_done) {
        const int at = board_take(d, h->step, FERRY, node);
        whole(node, h->step, some->bucket, slot(h, some->bucket, at));
        assert_true(board_publish(d, h->step, FERRY, node, at));
    }
    link_close(b.l[x]);
    b.l[x] = NULL;
    mover_close(h->mover);
    for (int k = 0; k < buckets; k++) board_recover(&h->board[k], h->step, FERRY);
    make_mover(row, x);
}

/* If all hosts are at one step, they begin it anew; one of them may have another mover. */
static void change_epoch(const struct link_row *row, int hosts, uint32_t steps) {
    for (int k = 0; k < hosts; k++)
        if (host[k].step != host[0].step || host[k].step > steps) return;
    if (!draw(2)) die(row, draw(hosts), draw(2));
    begin_anew(hosts);
}

static bool is_over(struct host *h) {
    return is_complete(h) && mover_has_all(h->mover) && mover_has_sent(h->mover);
}

/* Just what the schedule says has been sent and received. */
static void check_bytes(int self, uint32_t steps) {
    struct mover_bytes want = {0}, is = mover_bytes(host[self].mover);
    for (int i = 0; i < plan.n; i++) {
        const struct transfer *x = &plan.all[i];
        const struct wire_map m = map_of(x->bucket);
        uint64_t first, n;
        wire_chunk(&m, x->chunk, plan.chunks[x->bucket], &first, &n);
        if (x->from == self) want.sent += wire_bytes(&m, first, n) * steps;
        if (x->from == self) want.whole[0] += wire_slot_bytes(&m, first, n) * steps;
        if (x->to == self) want.received += wire_bytes(&m, first, n) * steps;
        if (x->to == self) want.whole[1] += wire_slot_bytes(&m, first, n) * steps;
    }
    assert_memory_equal(&is, &want, sizeof is);
}

/* Hosts go at different speeds, up to a step apart. epochs: steps may begin anew. */
static void run(const struct link_row *row, int hosts, int lanes, int levels, uint32_t steps,
                bool epochs) {
    int done = 0;
    b.hosts = hosts;
    make(row, hosts, lanes, levels);
    for (int i = 0; i < hosts; i++) host[i].step++, begin_step(&host[i], &plan);
    for (double late = base_seconds() + 20; done < hosts; assert_true(base_seconds() < late)) {
        int i = draw(hosts), most = 1 + draw(4);
        struct host *h = &host[i];
        if (epochs && !draw(40)) change_epoch(row, hosts, steps);
        for (int k = 0; k < most; k++)
            if (h->step <= steps) work(h, draw(THREADS));
        bool published = false;
        if (draw(2)) assert_int_equal(mover_send(h->mover, &published), TRI_OK);
        for (int k = 0; k < most; k++) pump(i);
        if (h->step > steps || !is_over(h)) continue;
        check(h);
        if (h->step == steps) h->step++, done++;
        else h->step++, begin_step(h, &plan);
    }
    for (int i = 0; i < hosts && !epochs; i++) check_bytes(i, steps);
    over();
}

static void two_hosts(void **state) { run(*state, 2, 8, 0, 12, false); }
static void tops_below_the_root(void **state) { run(*state, 2, 8, 2, 12, false); }
static void seven_lanes_on_three_hosts(void **state) { run(*state, 3, 7, 0, 12, false); }
static void four_hosts(void **state) { run(*state, 4, LANES, 1, 6, false); }
static void fewer_lanes_than_hosts(void **state) { run(*state, 4, 2, 0, 6, false); }

static void new_epochs(void **state) { run(*state, 3, 7, 0, 25, true); }

static void another_schedule(void **state) {
    sends_on = true;
    run(*state, 3, 7, 0, 12, false);
    run(*state, 4, LANES, 1, 6, true);
    sends_on = false;
}

/* Every path and format on 2 to 8 hosts. */
static void paths(void **state) {
    const int times = getenv("SLOW") ? 20 : getenv("FEW") ? 1 : 2;
    const struct kind was = kind;
    const size_t bytes = sizeof numbers;
    size_t kept[BUCKETS];
    long orders = 0;
    memcpy(kept, numbers, bytes);
    memcpy(numbers, (size_t[]){3, 900, 300}, bytes);
    for (size_t i = 0; i < COUNT(estimate) * COUNT(estimate[0]); i++)
        (&estimate[0][0])[i] = (float)(random_u32(8, 0, i) % 65537);
    for (int format = WIRE_F32; format <= WIRE_TOPK; format++)
        for (int path = PATH_EXCHANGE; path <= MIXED; path++)
            for (int hosts = 2; hosts <= HOSTS; hosts++)
                for (int i = 0; i < 4; i++) {
                    if (path < MIXED && !path_allows((enum path)path, hosts)) continue;
                    if (format == WIRE_TOPK && path != PATH_EXCHANGE) continue;
                    const int lanes = i & 2 ? 13 : 16, steps = (hosts < 5 ? 18 : 4) * times;
                    kind = (struct kind){path, (enum wire_format)format, i & 1, draw(2),
                                         format ? LEVELS : -1};
                    const int levels = format == WIRE_TOPK ? LEVELS : 0;
                    run(*state, hosts, lanes, levels, (uint32_t)steps, false);
                    orders += steps;
                    if (hosts < 5) run(*state, hosts, lanes, levels, (uint32_t)(3 * times), true);
                }
    print_message("# %ld orders\n", orders);
    memcpy(numbers, kept, bytes);
    kind = was;
}

/* ---- all orders ---- */

#define MOST_CHOICES 64
static int taken[MOST_CHOICES], open_at[MOST_CHOICES], depth, used;

static int choose(int n) {
    assert_true(depth < MOST_CHOICES);
    if (depth == used) taken[used++] = 0;
    open_at[depth] = n;
    return taken[depth++];
}

static bool next_path(void) {
    while (used && taken[used - 1] + 1 == open_at[used - 1]) used--;
    if (used) taken[used - 1]++;
    depth = 0;
    return used;
}

static void settle(int hosts) {
    for (int i = 0; i < hosts; i++) {
        bool published = false;
        assert_int_equal(mover_send(host[i].mover, &published), TRI_OK);
        while (pump(i)) {}
    }
}

/* One step of two hosts of a lane each. What may come next: a thread of a host computes something,
 * the world moves, and once, if `dies`, the mover of host 1 dies. */
static void one_order(bool dies) {
    const bool all = !dies || getenv("SLOW"); /* else one order, drawn, after the death */
    bool died = false;
    make(&link_local, 2, 2, 0);
    world_by_itself(b.world, false);
    for (int i = 0; i < 2; i++) host[i].step++, begin_step(&host[i], &plan);
    settle(2);
    for (;;) {
        int can_work[2], n = 0, moves = world_moves(b.world);
        for (int i = 0; i < 2; i++)
            if (board_left(&host[i].board[0], 1, 1) || board_has_orphan(&host[i].board[0], 1))
                can_work[n++] = i;
        if (!n && !moves) break;
        int choice = died && !all ? draw(n + moves) : choose(n + moves + dies);
        if (choice < n) {
            work(&host[can_work[choice]], 0);
        } else if (choice < n + moves) {
            world_move(b.world, choice - n);
        } else {
            dies = false;
            died = true;
            die(&link_local, 1, false);
            begin_anew(2);
        }
        settle(2);
    }
    for (int i = 0; i < 2; i++) { /* nobody waits for anything */
        assert_true(is_over(&host[i]));
        check(&host[i]);
    }
    over();
}

static void all_orders(void **state) {
    long orders[2] = {0};
    (void)state;
    buckets = 1;
    for (int dies = 0; dies < 2; dies++) {
        do one_order(dies), orders[dies]++;
        while (next_path());
        print_message("%s: %ld orders\n", dies ? "a death" : "none", orders[dies]);
    }
    assert_true(orders[0] > 50 && orders[1] > 2 * orders[0]);
    buckets = BUCKETS;
}

#define TEST(f, row) {#row ": " #f, f, NULL, NULL, (void *)(uintptr_t)&link_##row}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(two_hosts, local), TEST(two_hosts, tcp),
        TEST(tops_below_the_root, local), TEST(tops_below_the_root, tcp),
        TEST(seven_lanes_on_three_hosts, local), TEST(seven_lanes_on_three_hosts, tcp),
        TEST(four_hosts, local), TEST(four_hosts, tcp),
        TEST(another_schedule, local), TEST(another_schedule, tcp),
        TEST(new_epochs, local), TEST(new_epochs, tcp),
        TEST(paths, local),
        cmocka_unit_test(all_orders),
        TEST(fewer_lanes_than_hosts, local), TEST(fewer_lanes_than_hosts, tcp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
