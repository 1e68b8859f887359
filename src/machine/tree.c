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

static tri_status place_results(struct tree *t) {
    const struct program *p = &t->merge[0];
    t->offset = malloc(((size_t)t->buckets.n_of + 1) * sizeof *t->offset);
    if (!t->offset) return base_no_memory("the tree");
    for (int i = 0; i < t->buckets.n_of; i++) t->offset[i] = TREE_NONE;
    for (int i = 0; i < t->buckets.n; i++) t->bucket[i].bytes = MEMORY_ALIGN; /* slots differ */
    for (int i = 0; i < p->n_result; i++) {
        struct tree_bucket *b = &t->bucket[bucket_of(t, p->result[i].of)];
        t->offset[p->result[i].of] = b->bytes;
        b->bytes += memory_bytes(t->g->output[i].tensor);
    }
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

static tri_status divide(struct tree *t, const struct tree_place *place) {
    tri_status status = buckets_make(place->lane[0], &place->rule, &t->buckets);
    for (int i = 0; i < 2 && !status; i++)
        if (place->lane[i]) status = buckets_events(&t->buckets, place->lane[i], &t->events[i]);
    if (status) return status;
    for (int i = 0; i < 2; i++)
        if (buckets_open(&t->events[i]) > t->most_open) t->most_open = buckets_open(&t->events[i]);
    size_t n = (size_t)t->buckets.n;
    t->bucket = calloc(n, sizeof *t->bucket);
    t->held = calloc(n * (size_t)place->threads, sizeof *t->held);
    if (!t->bucket || !t->held) return base_no_memory("the tree");
    status = place_results(t);
    return status ? status : find_items(t);
}

tri_status tree_make(const tri_graph *merge, const struct tree_place *place, struct tree *t) {
    *t = (struct tree){.g = merge, .all_threads = place->all_threads, .audits = place->audits};
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

/* A bucket of one of the trees that share slots. */
struct sized {
    size_t bytes;
    int tree, bucket;
};

static int largest_first(const void *a, const void *b) {
    const struct sized *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->tree != y->tree ? x->tree - y->tree : x->bucket - y->bucket;
}

/* Slots that threads hold of so many buckets of a tree. last: one is the last, which is open all
 * the time. */
static int held_of(const struct tree *t, int buckets, bool last) {
    int most = t->most_open - !last, open = buckets < most ? buckets : most;
    return board_held(&t->shape, t->all_threads, open, last) + t->audits;
}

static int larger(int a, int b) { return a > b ? a : b; }

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
            last[k] |= s[i].bucket == t[k]->buckets.n - 1;
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
        class[classes] = (struct tree_class){memory_round(s[begin[end]].bytes), offset, slots[end],
                                             first};
        offset += class[classes].bytes * (size_t)slots[end];
        first += slots[end];
    }
    return classes;
}

static tri_status share(struct tree *const *t, int n_trees, struct sized *s, int n) {
    int waiting[CREW_MOST_SHAPES];
    double *cost = calloc((size_t)n + 1, sizeof *cost);
    int *begin = calloc((size_t)n + 1, sizeof *begin);
    int *slots = calloc((size_t)n + 1, sizeof *slots);
    struct tree_class *class = calloc((size_t)n, sizeof *class);
    bool ok = cost && begin && slots && class;
    CHECK(n_trees <= CREW_MOST_SHAPES);
    for (int i = 0; i < n_trees; i++)
        if (t[i]->buckets.n) waiting[i] = board_waiting(&t[i]->shape, t[i]->all_threads);
    if (ok) qsort(s, (size_t)n, sizeof *s, largest_first);
    if (ok) cheapest(t, s, n, waiting, cost, begin, slots);
    int classes = ok ? make_classes(t, s, n, begin, slots, class) : 0;
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
            *to++ = (struct sized){t[i]->bucket[b].bytes, i, b};
    tri_status status = share(t, n, s, all);
    free(s);
    for (int i = 0; i < n && !status; i++) {
        t[i]->nodes = nodes;
        tree_bind(t[i], NULL, NULL);
    }
    if (!status && (nodes > CLAIM_MOST_VALUE || slots_of(*t) > CLAIM_MOST_VALUE))
        return base_fail(TRI_USAGE, "%d lanes in %d buckets are too many for steps of %d shape%s; "
                         "use fewer --lanes, or fewer buckets", t[0]->shape.lanes,
                         t[0]->buckets.n, n, n == 1 ? "" : "s");
    return status;
}

size_t tree_bytes(const struct tree *t) {
    if (!t->n_classes) return 0;
    const struct tree_class *last = &t->class[t->n_classes - 1];
    return last->offset + last->bytes * (size_t)last->n_slots;
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
    return (struct crew_board){t->first + bucket * t->shape.n_nodes, c->first, c->n_slots};
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
        int node = board_orphan(&t->bucket[b].board, h->step, h->thread);
        if (node < 0) continue;
        make_sums(t, h, b, node, step);
        return true;
    }
    return false;
}

bool tree_has_orphan(struct tree *t, uint32_t step) {
    for (int b = 0; b < t->buckets.n; b++)
        if (board_has_orphan(&t->bucket[b].board, step)) return true;
    return false;
}

bool tree_complete(struct tree *t, uint32_t step, int *failed) {
    bool all = true;
    for (int b = 0; b < t->buckets.n; b++)
        all &= board_complete(&t->bucket[b].board, step, failed); /* the last knows what failed */
    return all;
}

void tree_clear(struct tree *t) {
    for (int i = 0; i < t->n_classes; i++) {
        struct board of_class = *tree_board(t);
        const struct board_words w = words_of(t, i, of_class.all);
        board_bind(&of_class, &t->shape, &w, of_class.first, t->all_threads);
        board_clear(&of_class);
    }
}

struct board *tree_board(struct tree *t) { return &t->bucket[t->buckets.n - 1].board; }

/* ---- lanes ---- */

static char **held(const struct tree_lane *l, int bucket) {
    return &l->tree->held[l->who.local * l->tree->buckets.n + bucket];
}

static void open_bucket(struct tree_lane *l, int bucket) {
    struct tree *t = l->tree;
    int slot = board_take(&t->bucket[bucket].board, l->who.step, l->who.thread, l->lane);
    *held(l, bucket) = slot_at(t, bucket, slot);
    bind_results(t, bucket, l->p, *held(l, bucket));
}

static void drop_bucket(struct tree_lane *l, int bucket) {
    struct tree *t = l->tree;
    char **slot = held(l, bucket);
    if (*slot)
        board_drop(&t->bucket[bucket].board, l->who.step, l->who.thread, l->lane,
                   number_of(t, bucket, *slot));
    *slot = NULL;
}

static bool close_bucket(struct tree_lane *l, int bucket, bool sum) {
    struct tree *t = l->tree;
    struct board *b = &t->bucket[bucket].board;
    if (l->complete && !l->complete(l->user, l, bucket)) {
        drop_bucket(l, bucket);
        return false;
    }
    int slot = number_of(t, bucket, *held(l, bucket));
    *held(l, bucket) = NULL;
    if (!board_publish(b, l->who.step, l->who.thread, l->lane, slot)) return false;
    if (sum)
        make_sums(t, &l->who, bucket, board_meet(b, l->who.step, l->who.thread, l->lane), l->step);
    return true;
}

static bool at_stop(void *lane, int k) {
    struct tree_lane *l = lane;
    const struct bucket_event *e = &l->tree->events[l->size].event[k];
    int64_t began = base_now();
    if (e->opens) open_bucket(l, e->bucket);
    else close_bucket(l, e->bucket, true);
    l->closing += base_now() - began;
    return true;
}

int tree_slot(const struct tree_lane *l, int bucket) {
    return *held(l, bucket) ? number_of(l->tree, bucket, *held(l, bucket)) : -1;
}

int tree_opens(const struct tree *t, int size, int k) {
    const struct bucket_events *e = &t->events[size];
    return k < e->n && e->event[k].opens ? e->event[k].bucket : -1;
}

void tree_bind_slot(struct tree *t, struct program *p, int bucket, int slot) {
    bind_results(t, bucket, p, slot_at(t, bucket, slot));
}

void tree_begin(struct tree_lane *l) {
    const struct bucket_events *e = &l->tree->events[l->size];
    open_bucket(l, l->tree->buckets.n - 1);
    l->p->stop = e->stop;
    l->p->n_stops = e->n;
    l->p->at_stop = at_stop;
    l->p->stop_arg = l;
}

bool tree_end(struct tree_lane *l, bool sum) {
    l->p->n_stops = 0;
    return close_bucket(l, l->tree->buckets.n - 1, sum);
}

void tree_drop(struct tree_lane *l, bool failed) {
    l->p->n_stops = 0;
    for (int b = 0; b < l->tree->buckets.n; b++) drop_bucket(l, b);
    if (failed) board_fail(tree_board(l->tree), l->who.step, l->who.thread, l->lane);
}
