/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/tree.h"

#include <stdlib.h>
#include <string.h>

#include "crew/spend.h"

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
    if (!status) status = tree_make_parts(t, &place->wire);
    if (!status) count_kept(t, place);
    return status ? status : find_items(t);
}

tri_status tree_make(const tri_graph *merge, const struct tree_place *place, struct tree *t) {
    *t = (struct tree){.g = merge, .all_threads = place->all_threads, .audits = place->audits,
                       .repeats = place->repeats, .cut = place->wire.cut};
    t->merge = calloc((size_t)place->threads, sizeof *t->merge);
    tri_status status = t->merge ? lane_tree_make(place->lanes, place->levels, &t->shape)
                                 : base_no_memory("the tree");
    for (; !status && t->threads < place->threads; t->threads++)
        status = program_make(merge, place->dev, PROGRAM_OUTPUTS, 1, &t->merge[t->threads]);
    if (!status && place->hosts > 0) t->kept = tree_kept(t, place->hosts, place->weight);
    if (!status) status = divide(t, place);
    if (!status) status = tree_join(&t, 1);
    if (status) tree_free(t);
    return status;
}

int tree_nodes(const struct tree *t) { return t->buckets.n * t->shape.n_nodes; }

/* ---- binding to memory ---- */

/* The words of a class's slots. */
static struct board_words words_of(const struct tree *t, int class, claim_word *words) {
    const struct tree_class *c = &t->class[class];
    return (struct board_words){words, words ? words + t->nodes + c->first : NULL, t->nodes,
                                c->n_slots};
}

struct crew_board tree_words(const struct tree *t, int bucket, int part) {
    const struct tree_class *c = &t->class[t->bucket[bucket].class];
    return (struct crew_board){
        .first = t->first + bucket * t->shape.n_nodes, .slot = c->first, .slots = c->n_slots,
        .leg = buckets_is_last(&t->buckets, bucket) ? t->buckets.leg[bucket] : -1,
        .summed = buckets_is_summed(&t->buckets, bucket), .at = c->offset, .stride = c->bytes,
        .bytes = t->bucket[bucket].bytes, .part = part, .parts = (int)t->bucket[bucket].n_parts,
        .adds = t->bucket[bucket].adds};
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
    for (int i = 0; t->bucket && i < t->buckets.n; i++) free(t->bucket[i].part);
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

/* Sums for other hosts can be sent now. */
static void tell(const struct tree *t, const struct board *b, int node) {
    if (t->tells && b->keeps && b->keeps[node]) wait_wake(t->tells);
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
        tree_round(t, bucket, node, step, slot_at(t, bucket, slot));
        if (!board_publish(b, h->step, h->thread, node, slot)) return;
        tell(t, b, node);
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
        if (!buckets_is_last(&t->buckets, b)) continue; /* the last knows what failed */
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
    if (summed) tree_round(t, bucket, l->lane, l->step, *held(l, bucket));
    *held(l, bucket) = NULL;
    if (!board_publish(b, l->who.step, l->who.thread, l->lane, slot)) return false;
    tell(t, b, l->lane);
    if (sum && summed)
        make_sums(t, &l->who, bucket, board_meet(b, l->who.step, l->who.thread, l->lane), l->step);
    return true;
}

static bool at_stop(void *lane, int k) {
    struct tree_lane *l = lane;
    const struct bucket_events *events = &l->tree->events[l->size];
    const struct bucket_event *e = &events->event[events->leg[l->leg] + k];
    const int64_t began = base_now();
    enum spent was = spent_now();
    if (!e->opens) spend_at(l->audits ? SPENT_AUDIT : SPENT_SUM, began);
    if (e->opens) CHECK(open_bucket(l, e->bucket)); /* it is summed */
    else close_bucket(l, e->bucket, true);
    const int64_t now = base_now();
    l->closing += now - began;
    spend_at(was, now);
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
    const enum spent was = spend(l->audits ? SPENT_AUDIT : SPENT_SUM);
    l->p->n_stops = 0;
    for (int b = first; b < last; b++) close_bucket(l, b, false);
    const bool first_done = close_bucket(l, last, sum);
    spend(was);
    return first_done;
}

void tree_drop(struct tree_lane *l, bool failed) {
    l->p->n_stops = 0;
    for (int b = 0; b < l->tree->buckets.n; b++) drop_bucket(l, b);
    if (failed) board_fail(tree_board(l->tree, l->leg), l->who.step, l->who.thread, l->lane);
}
