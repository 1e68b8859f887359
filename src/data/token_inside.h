/* SPDX-License-Identifier: Apache-2.0
 * Internals common to the kinds of tokenizers. */
#ifndef DATA_TOKEN_INSIDE_H
#define DATA_TOKEN_INSIDE_H

#include "data/token.h"

/* A map from 64-bit keys to 32-bit values; the key UINT64_MAX is reserved. */
struct token_map {
    uint64_t *key; /* UINT64_MAX: free */
    uint32_t *value;
    size_t n, capacity; /* a power of two, at least twice n */
};
#define TOKEN_NONE UINT32_MAX
/* TOKEN_NONE if the key is missing. */
uint32_t token_map_get(const struct token_map *m, uint64_t key);
/* Adds a new key; false: out of memory. */
bool token_map_put(struct token_map *m, uint64_t key, uint32_t value);

struct token_piece {
    const char *data; /* followed by a zero byte */
    size_t bytes;
};

struct tokenizer {
    const struct token_kind *kind;
    struct arena arena;
    struct token_piece *piece; /* the text of each id; null for bytes */
    size_t n;
    /* WordPiece: a trie of the tokens, (node, byte) to node; node 0 is its root. */
    bool lower;
    struct token_map edge;
    uint32_t *node_id;   /* the token that ends at a node, or TOKEN_NONE */
    uint32_t n_nodes, continues; /* the node of "##", or TOKEN_NONE */
    uint32_t unknown;
    /* Byte pairs: (left id, right id) to the rank of their merge. */
    struct token_map pair;
    struct token_merge {
        uint32_t left, right, made;
    } *merge; /* by rank */
    uint32_t byte_id[256];
};

/* A piece of a word during merging. */
struct token_symbol {
    uint32_t id, before, after; /* neighbours; TOKEN_NONE at the ends */
};

/* A cache of encoded words; words that do not fit are not cached. */
#define CACHE_SLOTS 32768 /* 2 MiB */
struct token_slot {
    uint8_t bytes, n; /* bytes 0: free */
    char word[30];
    uint32_t id[8];
};

struct encoder {
    const struct tokenizer *tokenizer;
    struct token_slot *cache; /* null for bytes */
    /* WordPiece: the characters of a word, and of its normal form. */
    int32_t *point, *formed;
    size_t n_points, point_capacity, n_formed, formed_capacity;
    /* Byte pairs. */
    struct token_symbol *symbol;
    size_t symbol_capacity;
    uint64_t *heap; /* rank << 32 | place: least on top */
    size_t heap_n, heap_capacity;
    struct ids merged; /* places */
};

struct token_kind {
    const char *prefix;
    bool has_argument;
    tri_status (*open)(struct tokenizer *t, const char *argument);
    bool (*encode)(struct encoder *e, const char *text, size_t bytes, struct ids *out);
    void (*decode)(const struct tokenizer *t, const uint32_t *id, size_t n, struct text *out);
};

/* Appends; false: out of memory. */
bool ids_add(struct ids *out, uint32_t id);
/* Appends the cached ids of a word. Otherwise *slot is where encoder_keep can cache it, or null. */
enum recall { RECALLED, UNKNOWN, NO_MEMORY };
enum recall encoder_recall(struct encoder *e, const char *word, size_t bytes, struct ids *out,
                           struct token_slot **slot);
/* Caches the ids of a word, those appended from `first` on; slot is nullable. */
void encoder_keep(struct token_slot *slot, const char *word, size_t bytes, const struct ids *out,
                  size_t first);

tri_status bert_open(struct tokenizer *t, const char *path);
tri_status bert_cased_open(struct tokenizer *t, const char *path);
bool bert_encode(struct encoder *e, const char *text, size_t bytes, struct ids *out);
void bert_decode(const struct tokenizer *t, const uint32_t *id, size_t n, struct text *out);

tri_status gpt2_open(struct tokenizer *t, const char *directory);
bool gpt2_encode(struct encoder *e, const char *text, size_t bytes, struct ids *out);
void gpt2_decode(const struct tokenizer *t, const uint32_t *id, size_t n, struct text *out);

#endif
