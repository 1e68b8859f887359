/* SPDX-License-Identifier: Apache-2.0
 * What lives from step to step: parameters, running statistics, optimizer state; sorted by name. */
#ifndef MACHINE_STORE_H
#define MACHINE_STORE_H

#include "dev/dev.h"
#include "machine/team.h"

struct stored {
    const char *name; /* in the graph's arena */
    tri_spec spec;
    bool param;
    bool of_optimizer; /* no part of a model's file */
    const char *init;
    void *memory; /* in the device's space, within the store's block */
};

struct store {
    const struct dev *dev;
    struct stored *entry;
    size_t n;
    void *block;
    size_t bytes;
    bool borrowed; /* the block is another's */
};

/* The params and states of g, which must live as long as the store; no memory yet. */
tri_status store_list(const tri_graph *g, const struct dev *dev, struct store *out);
/* Gives it memory: `block`, or if that is null, some of its own. */
tri_status store_place(struct store *s, void *block);
/* Values drawn from the seed. */
tri_status store_fill(struct store *s, uint64_t seed, struct team *team);
size_t stored_bytes(const struct stored *e); /* with its alignment */
struct stored *store_find(const struct store *s, const char *name);
void store_free(struct store *s);

/* Copies between the caller's memory and an entry. */
void store_read(const struct store *s, const struct stored *e, void *host);
void store_write(const struct store *s, const struct stored *e, const void *host);

#endif
