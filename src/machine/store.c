/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/store.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "plan/estimates.h"
#include "plan/memory.h"
#include "train/train.h"

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct stored *)a)->name, ((const struct stored *)b)->name);
}

size_t stored_bytes(const struct stored *e) {
    return memory_round(base_spec_bytes(&e->spec));
}

static void add(const tri_node *n, const char *name, const char *init, struct store *s) {
    s->entry[s->n++] = (struct stored){
        .name = name,
        .spec = n->out->spec,
        .param = node_is_param(n),
        .of_optimizer = !strncmp(name, OPTIMIZER_PREFIX, strlen(OPTIMIZER_PREFIX)),
        .init = init,
    };
    s->bytes += stored_bytes(&s->entry[s->n - 1]);
}

static void list(const tri_graph *g, struct store *s) {
    for (size_t i = 0; i < g->n_nodes; i++)
        if (node_is_stored(g->node[i]))
            add(g->node[i], source_name(g->node[i]), tri_attr_text(g->node[i], "init"), s);
}

/* Estimates are no part of g, which lends them its memory for texts. */
static bool list_estimates(tri_graph *g, const tri_graph *whole, struct store *s) {
    for (size_t i = 0; i < whole->n_nodes; i++) {
        const tri_node *n = whole->node[i];
        if (estimate_top(n) < 0) continue;
        const char *name = arena_copy(&g->arena, source_name(n));
        const char *init = arena_copy(&g->arena, tri_attr_text(n, "init"));
        if (!name || !init) return false;
        add(n, name, init, s);
    }
    return true;
}

#define PIECE 65536 /* elements that a thread fills at a time */

/* Threads take pieces of all entries. A value depends only on the seed, the name and the element's
 * index, not on the thread. */
struct filling {
    struct store *s;
    uint64_t seed;
    claim_word *word; /* by piece; null: only this process fills */
    int owner;
    atomic_size_t next; /* piece, counted over all entries */
    atomic_bool failed;
};

static size_t pieces(const struct stored *e) {
    return ((size_t)tri_shape_count(&e->spec.shape) + PIECE - 1) / PIECE;
}

static void fill_piece(const struct filling *d, const struct stored *e, size_t piece,
                       void *buffer) {
    tri_init init;
    CHECK(init_parse(e->init, &init)); /* checked by inference */
    int64_t count = tri_shape_count(&e->spec.shape), begin = (int64_t)piece * PIECE;
    int64_t end = begin + PIECE < count ? begin + PIECE : count;
    size_t size = tri_type_size(e->spec.type);
    init_draw(&init, d->seed, e->name, &e->spec, begin, end, buffer);
    dev_copy_in(d->s->dev, (char *)e->memory + (size_t)begin * size, buffer,
                (size_t)(end - begin) * size);
}

/* Fills a piece unless another process does. */
static void fill_claimed(const struct filling *d, const struct stored *e, size_t piece,
                         claim_word *word, void *buffer) {
    struct claim held = claim_look(word, 1);
    if (held.state != CLAIM_FREE || !claim_try(word, &held, d->owner)) return;
    fill_piece(d, e, piece, buffer);
    claim_publish(word, &held, CLAIM_DONE, d->owner, 0);
}

static void fill_pieces(void *arg, int thread) {
    struct filling *d = arg;
    (void)thread;
    void *buffer = malloc(PIECE * sizeof(double));
    if (!buffer) {
        atomic_store(&d->failed, true);
        return;
    }
    size_t wanted = atomic_fetch_add(&d->next, 1), before = 0;
    for (size_t i = 0; i < d->s->n; i++) {
        const struct stored *e = &d->s->entry[i];
        for (; wanted < before + pieces(e); wanted = atomic_fetch_add(&d->next, 1))
            if (d->word)
                fill_claimed(d, e, wanted - before, &d->word[wanted], buffer);
            else
                fill_piece(d, e, wanted - before, buffer);
        before += pieces(e);
    }
    free(buffer);
}

tri_status store_list(tri_graph *g, const tri_graph *whole, struct dev *dev, struct store *s) {
    *s = (struct store){.dev = dev};
    s->entry = calloc(g->n_nodes + whole->n_nodes + 1, sizeof *s->entry);
    if (!s->entry) return base_no_memory("parameters");
    list(g, s);
    if (!list_estimates(g, whole, s)) return base_no_memory("parameters");
    qsort(s->entry, s->n, sizeof *s->entry, by_name);
    return TRI_OK;
}

tri_status store_place(struct store *s, void *block) {
    s->borrowed = block;
    s->block = block ? block : dev_allocate(s->dev, s->bytes);
    if (!s->block)
        return base_fail(TRI_FAILED, "out of memory: cannot allocate %zu bytes for parameters and "
                         "optimizer state", s->bytes);
    char *at = s->block;
    for (size_t i = 0; i < s->n; at += stored_bytes(&s->entry[i++])) s->entry[i].memory = at;
    return TRI_OK;
}

size_t store_pieces(const struct store *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) n += pieces(&s->entry[i]);
    return n;
}

tri_status store_fill(struct store *s, uint64_t seed, struct team *team, claim_word *word,
                      int owner) {
    struct filling d = {.s = s, .seed = seed, .word = word, .owner = owner};
    team_run(team, fill_pieces, &d);
    return atomic_load(&d.failed) ? base_no_memory("initial values") : TRI_OK;
}

struct stored *store_find(const struct store *s, const char *name) {
    struct stored key = {.name = name};
    return s->n ? bsearch(&key, s->entry, s->n, sizeof *s->entry, by_name) : NULL;
}

void store_free(struct store *s) {
    if (s->block && !s->borrowed) dev_release(s->dev, s->block, s->bytes);
    free(s->entry);
    *s = (struct store){0};
}

void store_read(const struct store *s, const struct stored *e, void *host) {
    dev_copy_out(s->dev, host, e->memory, base_spec_bytes(&e->spec));
}

void store_write(const struct store *s, const struct stored *e, const void *host) {
    dev_copy_in(s->dev, e->memory, host, base_spec_bytes(&e->spec));
}
