/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/store.h"

#include <stdlib.h>
#include <string.h>

#include "plan/memory.h"
#include "train/train.h"

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct stored *)a)->name, ((const struct stored *)b)->name);
}

size_t stored_bytes(const struct stored *e) {
    return (base_spec_bytes(&e->spec) + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
}

static void list(const tri_graph *g, struct store *s) {
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        if (!node_is_stored(n)) continue;
        const char *name = source_name(n);
        s->entry[s->n++] = (struct stored){
            .name = name,
            .spec = n->out->spec,
            .param = node_is_param(n),
            .of_optimizer = !strncmp(name, OPTIMIZER_PREFIX, strlen(OPTIMIZER_PREFIX)),
            .init = tri_attr_text(n, "init"),
        };
        s->bytes += stored_bytes(&s->entry[s->n - 1]);
    }
    qsort(s->entry, s->n, sizeof *s->entry, by_name);
}

static tri_status draw(struct store *s, uint64_t seed) {
    size_t largest = 1;
    for (size_t i = 0; i < s->n; i++)
        if (stored_bytes(&s->entry[i]) > largest) largest = stored_bytes(&s->entry[i]);
    void *host = malloc(largest);
    if (!host) return base_no_memory("initial values");
    char *at = s->block;
    for (size_t i = 0; i < s->n; i++) {
        struct stored *e = &s->entry[i];
        tri_init init;
        CHECK(init_parse(e->init, &init)); /* inference has parsed it */
        init_draw(&init, seed, e->name, &e->spec, host);
        e->memory = at;
        at += stored_bytes(e);
        store_write(s, e, host);
    }
    free(host);
    return TRI_OK;
}

tri_status store_list(const tri_graph *g, const struct dev *dev, struct store *s) {
    *s = (struct store){.dev = dev};
    s->entry = calloc(g->n_nodes + 1, sizeof *s->entry);
    if (!s->entry) return base_no_memory("parameters");
    list(g, s);
    return TRI_OK;
}

tri_status store_fill(struct store *s, uint64_t seed) {
    s->block = s->dev->allocate(s->bytes);
    return s->block ? draw(s, seed)
                    : base_fail(TRI_FAILED, "out of memory for %zu bytes of parameters and "
                                "optimizer state", s->bytes);
}

struct stored *store_find(const struct store *s, const char *name) {
    struct stored key = {.name = name};
    return s->n ? bsearch(&key, s->entry, s->n, sizeof *s->entry, by_name) : NULL;
}

void store_free(struct store *s) {
    if (s->block) s->dev->release(s->block, s->bytes);
    free(s->entry);
    *s = (struct store){0};
}

void store_read(const struct store *s, const struct stored *e, void *host) {
    s->dev->copy_out(host, e->memory, base_spec_bytes(&e->spec));
}

void store_write(const struct store *s, const struct stored *e, const void *host) {
    s->dev->copy_in(e->memory, host, base_spec_bytes(&e->spec));
}
