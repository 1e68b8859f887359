/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/tree.h"

#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

static int bucket_of(const struct tree *t, int of) {
    return of < t->buckets.n_of ? t->buckets.of[of] : -1;
}

bool tree_has(const struct tree *t, const struct program *p, int i, int bucket) {
    return bucket_of(t, p->result[i].of) == bucket;
}

static void place_result(struct tree *t, int of, const tri_tensor *result) {
    struct tree_bucket *b = &t->bucket[bucket_of(t, of)];
    t->offset[of] = b->bytes;
    b->bytes += memory_bytes(result);
}

/* What a lane of one size hands from leg to leg. Lanes of the two sizes share slots. */
static void place_handed(struct tree *t, const struct program *lane) {
    size_t before = 0;
    for (int b = 0; lane && b < t->buckets.n; b++) {
        if (buckets_is_summed(&t->buckets, b)) continue;
        before = t->bucket[b].bytes;
        t->bucket[b].bytes = MEMORY_ALIGN;
        for (int i = 0; i < lane->n_result; i++)
            if (tree_has(t, lane, i, b)) place_result(t, lane->result[i].of, lane->result[i].is);
        if (t->bucket[b].bytes < before) t->bucket[b].bytes = before;
    }
}

static tri_status place_results(struct tree *t, const struct tree_place *place) {
    const struct program *p = &t->merge[0];
    t->offset = malloc(((size_t)t->buckets.n_of + 1) * sizeof *t->offset);
    if (!t->offset) return base_no_memory("the tree");
    for (int i = 0; i < t->buckets.n_of; i++) t->offset[i] = TREE_NONE;
    for (int i = 0; i < t->buckets.n; i++) t->bucket[i].bytes = MEMORY_ALIGN; /* slots differ */
    for (int i = 0; i < p->n_result; i++)
        place_result(t, p->result[i].of, p->result[i].is);
    for (int k = 0; k < 2; k++) place_handed(t, place->lane[k]);
    return TRI_OK;
}

/* Each item of the merge program sums one result. */
static tri_status find_items(struct tree *t) {
    const struct program *p = &t->merge[0];
    t->bucket_of = calloc(p->n_items + 1, sizeof *t->bucket_of);
    for (size_t k = 0; t->bucket_of && k < p->n_items; k++) {
        int i = 0;
        while (unit_out(p->item[k].unit, t->g->output[i].tensor) < 0) CHECK(++i < p->n_result);
        CHECK(p->item[k].unit->n_out == 1);
        t->bucket_of[k] = bucket_of(t, p->result[i].of);
    }
    return t->bucket_of ? TRI_OK : base_no_memory("the tree");
}

/* By leg, its first item. */
static tri_status find_legs(const struct tree *t, const struct program *lane, size_t **out) {
    size_t *items = *out = calloc((size_t)t->buckets.legs + 1, sizeof *items);
    if (!items) return base_no_memory("legs");
    for (int leg = 1; leg <= t->buckets.legs; leg++) {
        items[leg] = items[leg - 1];
        while (items[leg] < lane->n_items &&
               (!lane->g->legs || lane->item[items[leg]].unit->node[0]->leg < leg))
            items[leg]++;
    }
    CHECK(items[t->buckets.legs] == lane->n_items);
    return TRI_OK;
}

/* Of how many lanes a leg's results are kept for other legs: one more if several threads compute,
 * or a leg may be computed twice. */
static void count_kept(struct tree *t, const struct tree_place *place) {
    for (int b = 0; b < t->buckets.n; b++) {
        if (buckets_is_summed(&t->buckets, b)) continue;
        int kept = pipeline_kept(place->pipeline, place->times, t->buckets.leg[b],
                                 &t->buckets.readers[b]);
        int more = t->all_threads > 1 || t->repeats, all = kept + more;
        t->bucket[b].kept = all < t->shape.lanes ? all : t->shape.lanes + more;
    }
}

static tri_status divide(struct tree *t, const struct tree_place *place) {
    tri_status status = buckets_make(place->lane, &place->rule, &t->buckets);
    for (int i = 0; i < 2 && !status; i++)
        if (place->lane[i]) status = buckets_events(&t->buckets, place->lane[i], &t->events[i]);
    for (int i = 0; i < 2 && !status; i++)
        if (place->lane[i]) status = find_legs(t, place->lane[i], &t->items[i]);
    if (status) return status;
    for (int i = 0; i < 2; i++)
        if (buckets_open(&t->events[i]) > t->most_open) t->most_open = buckets_open(&t->events[i]);
    size_t n = (size_t)t->buckets.n;
    t->bucket = calloc(n, sizeof *t->bucket);
    t->held = calloc(n * (size_t)place->threads, sizeof *t->held);
    if (!t->bucket || !t->held) return base_no_memory("the tree");
    status = place_results(t, place);
    if (!status) count_kept(t, place);
    return status ? status : find_items(t);
}

tri_status tree_make(const tri_graph *merge, const struct tree_place *place, struct tree *t) {
    *t = (struct tree){.g = merge, .all_threads = place->all_threads, .audits = place->audits,
                       .repeats = place->repeats};
    t->merge = calloc((size_t)place->threads, sizeof *t->merge);
    tri_status status = t->merge ? lane_tree_make(place->lanes, place->levels, &t->shape)
                                 : base_no_memory("the tree");
    for (; !status && t->threads < place->threads; t->threads++)
        status = program_make(merge, place->dev, PROGRAM_OUTPUTS, 1, &t->merge[t->threads]);
    if (!status) status = divide(t, place);
    if (!status) status = tree_join(&t, 1);
    if (status) tree_free(t);
    return status;
}

int tree_nodes(const struct tree *t) { return t->buckets.n * t->shape.n_nodes; }

/* ---- slots, which buckets of similar sizes share ---- */

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

static bool is_last(const struct buckets *b, int bucket) {
    return b->last[b->leg[bucket]] == bucket;
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
            last[k] |= is_last(&t[k]->buckets, s[i].bucket);
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
        if (t[i]->buckets.n) waiting[i] = board_waiting(&t[i]->shape, t[i]->all_threads);
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

/* The words of a class's slots. */
static struct board_words words_of(const struct tree *t, int class, claim_word *words) {
    const struct tree_class *c = &t->class[class];
    return (struct board_words){words, words ? words + t->nodes + c->first : NULL, t->nodes,
                                c->n_slots};
}

struct crew_board tree_words(const struct tree *t, int bucket) {
    const struct tree_class *c = &t->class[t->bucket[bucket].class];
    return (struct crew_board){t->first + bucket * t->shape.n_nodes, c->first, c->n_slots,
                               is_last(&t->buckets, bucket) ? t->buckets.leg[bucket] : -1};
}

void tree_bind(struct tree *t, void *slots, void *words) {
    t->slots = slots;
    for (int b = 0; b < t->buckets.n; b++) {
        const struct board_words w = words_of(t, t->bucket[b].class, words);
        board_bind(&t->bucket[b].board, &t->shape, &w, t->first + b * t->shape.n_nodes,
                   t->all_threads);
    }
}

void tree_free(struct tree *t) {
    for (int i = 0; i < t->threads; i++) program_free(&t->merge[i]);
    for (int i = 0; i < 2; i++) buckets_events_free(&t->events[i]);
    for (int i = 0; i < 2; i++) free(t->items[i]);
    free(t->bucket_of);
    lane_tree_free(&t->shape);
    buckets_free(&t->buckets);
    free(t->merge);
    free(t->bucket);
    free(t->class);
    free(t->offset);
    free(t->held);
    *t = (struct tree){0};
}

/* ---- binding ---- */

static char *slot_at(const struct tree *t, int bucket, int i) {
    const struct tree_class *c = &t->class[t->bucket[bucket].class];
    return t->slots + c->offset + c->bytes * (size_t)i;
}

static char *slot_of(struct tree *t, int bucket, int node) {
    return slot_at(t, bucket, board_slot_of(&t->bucket[bucket].board, node));
}

static int number_of(const struct tree *t, int bucket, const char *slot) {
    const struct tree_class *c = &t->class[t->bucket[bucket].class];
    return (int)(((size_t)(slot - t->slots) - c->offset) / c->bytes);
}

static void bind_results(const struct tree *t, int bucket, struct program *p, char *slot) {
    for (int i = 0; i < p->n_result; i++)
        if (tree_has(t, p, i, bucket))
            program_bind(p, p->result[i].tensor, slot + t->offset[p->result[i].of]);
}

void tree_bind_tops(struct tree *t, struct program *p) {
    for (int i = 0; i < p->n_given; i++) {
        const struct program_port *port = &p->given[i];
        int bucket = bucket_of(t, port->of);
        if (port->top >= t->shape.n_tops || bucket < 0) continue;
        program_bind(p, port->tensor,
                     slot_of(t, bucket, t->shape.top[port->top]) + t->offset[port->of]);
    }
}

/* ---- summing ---- */

static void merge(struct tree *t, const struct tree_thread *h, int bucket, char *const side[2],
                  char *sum, const struct program_step *step) {
    struct program *p = &t->merge[h->local];
    for (int i = 0; i < p->n_given; i++) {
        int of = p->given[i].of;
        if (bucket_of(t, of / 2) == bucket)
            program_bind(p, p->given[i].tensor, side[of % 2] + t->offset[of / 2]);
    }
    bind_results(t, bucket, p, sum);
    for (size_t i = 0; i < p->n_items; i++) {
        int64_t parts = p->item[i].parts[0] + p->item[i].parts[1];
        if (t->bucket_of[i] == bucket) CHECK(program_run_parts(p, i, 0, 0, parts, step));
    }
}

/* Makes the sum of a node that the thread has claimed, if it is not -1, and the sums above it that
 * are possible then. */
static void make_sums(struct tree *t, const struct tree_thread *h, int bucket, int node,
                      const struct program_step *step) {
    struct board *b = &t->bucket[bucket].board;
    for (; node >= 0; node = board_meet(b, h->step, h->thread, node)) {
        const struct lane_node *n = &t->shape.node[node];
        char *const side[] = {slot_of(t, bucket, n->left), slot_of(t, bucket, n->right)};
        int slot = board_take(b, h->step, h->thread, node);
        merge(t, h, bucket, side, slot_at(t, bucket, slot), step);
        if (!board_publish(b, h->step, h->thread, node, slot)) return;
    }
}

bool tree_orphan(struct tree *t, const struct tree_thread *h, const struct program_step *step) {
    for (int b = 0; b < t->buckets.n; b++) {
        if (!buckets_is_summed(&t->buckets, b)) continue;
        int node = board_orphan(&t->bucket[b].board, h->step, h->thread);
        if (node < 0) continue;
        make_sums(t, h, b, node, step);
        return true;
    }
    return false;
}

bool tree_has_orphan(struct tree *t, uint32_t step) {
    for (int b = 0; b < t->buckets.n; b++)
        if (buckets_is_summed(&t->buckets, b) && board_has_orphan(&t->bucket[b].board, step))
            return true;
    return false;
}

/* Of the first lane that failed, the leg that failed first: later ones fail because of it. */
static int failed_leg(struct tree *t, uint32_t step, int lane) {
    int leg = 0;
    while (!board_has_failed(tree_board(t, leg), step, lane)) leg++;
    return leg;
}

bool tree_complete(struct tree *t, uint32_t step, int *failed, int *leg) {
    bool all = true, over = true; /* over: all lanes are computed, or have failed */
    int lane, first = -1;
    for (int b = 0; b < t->buckets.n; b++) {
        if (!buckets_is_summed(&t->buckets, b)) continue;
        bool done = board_complete(&t->bucket[b].board, step, &lane);
        all &= done;
        if (!is_last(&t->buckets, b)) continue; /* the last knows what failed */
        over &= done || lane >= 0;
        if (lane >= 0 && (first < 0 || lane < first)) first = lane;
    }
    *failed = over ? first : -1;
    if (*failed >= 0) *leg = failed_leg(t, step, first);
    return all;
}

void tree_clear(struct tree *t) {
    for (int i = 0; i < t->n_classes; i++) {
        const struct board *any = tree_board(t, 0);
        const struct board_words w = words_of(t, i, any->all);
        struct board of_class;
        board_bind(&of_class, &t->shape, &w, any->first, t->all_threads);
        board_clear(&of_class);
    }
}

struct board *tree_board(struct tree *t, int leg) { return &t->bucket[t->buckets.last[leg]].board; }

/* ---- lanes ---- */

/* Releases what legs have handed over if all that read it are done, and audited. */
static void let_go(struct tree *t, int bucket, uint32_t step) {
    struct board *reader[2 * LEGS_MOST], audit[LEGS_MOST];
    int n = 0;
    for (int leg = 0; leg < t->buckets.legs; leg++) {
        if (!leg_set_has(&t->buckets.readers[bucket], leg)) continue;
        reader[n++] = tree_board(t, leg);
        if (!t->audit) continue;
        audit[leg] = (struct board){.node = t->audit + leg * t->audit_lanes};
        reader[n++] = &audit[leg];
    }
    board_let_go(&t->bucket[bucket].board, step, reader, n);
}

static char **held(const struct tree_lane *l, int bucket) {
    return &l->tree->held[l->who.local * l->tree->buckets.n + bucket];
}

static bool open_bucket(struct tree_lane *l, int bucket) {
    struct tree *t = l->tree;
    const struct tree_thread *who = &l->who;
    struct board *b = &t->bucket[bucket].board;
    bool summed = buckets_is_summed(&t->buckets, bucket);
    if (!summed && !l->audits) let_go(t, bucket, who->step);
    int slot = summed      ? board_take(b, who->step, who->thread, l->lane)
               : l->audits ? t->class[t->bucket[bucket].class].n_slots + who->thread
                           : board_take_handed(b, tree_board(t, l->leg), who->step, who->thread,
                                               l->lane, t->repeats);
    if (slot < 0) return false;
    *held(l, bucket) = slot_at(t, bucket, slot);
    bind_results(t, bucket, l->p, *held(l, bucket));
    return true;
}

static void drop_bucket(struct tree_lane *l, int bucket) {
    struct tree *t = l->tree;
    char **slot = held(l, bucket);
    struct board *b = &t->bucket[bucket].board;
    int number = *slot ? number_of(t, bucket, *slot) : b->n_slots;
    if (number < b->n_slots) board_drop(b, l->who.step, l->who.thread, l->lane, number);
    *slot = NULL;
}

static bool close_bucket(struct tree_lane *l, int bucket, bool sum) {
    struct tree *t = l->tree;
    struct board *b = &t->bucket[bucket].board;
    bool summed = buckets_is_summed(&t->buckets, bucket);
    if (l->complete && !l->complete(l->user, l, bucket)) {
        drop_bucket(l, bucket);
        return false;
    }
    int slot = number_of(t, bucket, *held(l, bucket));
    *held(l, bucket) = NULL;
    if (!board_publish(b, l->who.step, l->who.thread, l->lane, slot)) return false;
    if (sum && summed)
        make_sums(t, &l->who, bucket, board_meet(b, l->who.step, l->who.thread, l->lane), l->step);
    return true;
}

static bool at_stop(void *lane, int k) {
    struct tree_lane *l = lane;
    const struct bucket_events *events = &l->tree->events[l->size];
    const struct bucket_event *e = &events->event[events->leg[l->leg] + k];
    int64_t began = base_now();
    if (e->opens) CHECK(open_bucket(l, e->bucket)); /* it is summed */
    else close_bucket(l, e->bucket, true);
    l->closing += base_now() - began;
    return true;
}

bool tree_hands(const struct tree *t, int leg, int bucket) {
    return leg_set_has(&t->buckets.readers[bucket], leg) ||
           (t->buckets.leg[bucket] == leg && !buckets_is_summed(&t->buckets, bucket));
}

int tree_slot(const struct tree_lane *l, int bucket) {
    struct tree *t = l->tree;
    if (*held(l, bucket)) return number_of(t, bucket, *held(l, bucket));
    return leg_set_has(&t->buckets.readers[bucket], l->leg)
               ? board_slot_of(&t->bucket[bucket].board, l->lane) : -1;
}

int tree_opens(const struct tree *t, int size, int leg, int k) {
    const struct bucket_events *e = &t->events[size];
    const struct bucket_event *event = &e->event[e->leg[leg] + k];
    return k < e->leg[leg + 1] - e->leg[leg] && event->opens ? event->bucket : -1;
}

void tree_bind_slot(struct tree *t, struct program *p, int bucket, int slot) {
    bind_results(t, bucket, p, slot_at(t, bucket, slot));
}

/* The buckets of a leg that have no events; *last: the last of them. */
static int first_open(const struct tree *t, int leg, int *last) {
    int first = *last = t->buckets.last[leg];
    while (first && t->buckets.leg[first - 1] == leg && !buckets_is_summed(&t->buckets, first - 1))
        first--;
    return first;
}

/* Binds what earlier legs have handed to this one. */
static void bind_handed(struct tree_lane *l) {
    struct tree *t = l->tree;
    for (int b = 0; b < t->buckets.n; b++)
        if (leg_set_has(&t->buckets.readers[b], l->leg))
            bind_results(t, b, l->p, slot_of(t, b, l->lane));
}

bool tree_begin(struct tree_lane *l) {
    struct tree *t = l->tree;
    const struct bucket_events *e = &t->events[l->size];
    int last, first = first_open(t, l->leg, &last);
    for (int b = first; b <= last; b++)
        if (!open_bucket(l, b)) {
            while (b-- > first) drop_bucket(l, b);
            return false;
        }
    bind_handed(l);
    l->p->begin = t->items[l->size][l->leg];
    l->p->end = t->items[l->size][l->leg + 1];
    l->p->stop = e->stop + e->leg[l->leg];
    l->p->n_stops = e->leg[l->leg + 1] - e->leg[l->leg];
    l->p->at_stop = at_stop;
    l->p->stop_arg = l;
    return true;
}

bool tree_end(struct tree_lane *l, bool sum) {
    int last, first = first_open(l->tree, l->leg, &last);
    l->p->n_stops = 0;
    for (int b = first; b < last; b++) close_bucket(l, b, false);
    return close_bucket(l, last, sum);
}

void tree_drop(struct tree_lane *l, bool failed) {
    l->p->n_stops = 0;
    for (int b = 0; b < l->tree->buckets.n; b++) drop_bucket(l, b);
    if (failed) board_fail(tree_board(l->tree, l->leg), l->who.step, l->who.thread, l->lane);
}
