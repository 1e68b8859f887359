/* SPDX-License-Identifier: Apache-2.0
 * What lives from step to step: parameters, states (such as running statistics) and the optimizer's
 * state, sorted by name in one block of memory. */
#ifndef MACHINE_STORE_H
#define MACHINE_STORE_H

#include "crew/claim.h"
#include "dev/dev.h"
#include "machine/team.h"

struct stored {
    const char *name; /* owned by the graph */
    tri_spec spec;
    bool param;
    bool of_optimizer; /* not written to a file of weights */
    const char *init;
    void *memory; /* in the block */
};

struct store {
    struct dev *dev;
    struct stored *entry;
    size_t n;
    void *block; /* in the device's space */
    size_t bytes;
    bool borrowed; /* the block is not owned */
};

/* Lists the parameters and states of g, and the states that compiling it to `whole` has added,
 * without memory. g must live as long as the store. */
tri_status store_list(tri_graph *g, const tri_graph *whole, struct dev *dev, struct store *out);
/* Uses `block` as memory; null: allocates a block. */
tri_status store_place(struct store *s, void *block);
/* Writes initial values, which follow from the seed. word: if several processes do that together, a
 * claim for each of store_pieces, else null. owner: this process. Returns when no piece is free. */
tri_status store_fill(struct store *s, uint64_t seed, struct team *team, claim_word *word,
                      int owner);
size_t store_pieces(const struct store *s);
size_t stored_bytes(const struct stored *e); /* rounded up to the alignment */
struct stored *store_find(const struct store *s, const char *name);
void store_free(struct store *s);

/* Copies from an entry to host memory, and back. */
void store_read(const struct store *s, const struct stored *e, void *host);
void store_write(const struct store *s, const struct stored *e, const void *host);

#endif
