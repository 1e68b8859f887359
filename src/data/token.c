/* SPDX-License-Identifier: Apache-2.0
 * Opens tokenizers by name; encoders; code common to all kinds. */
#include "data/token_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- tables ---- */

static uint64_t mix(uint64_t x) {
    x *= 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static size_t place(const struct token_map *m, uint64_t key) {
    size_t at = mix(key) & (m->capacity - 1);
    while (m->key[at] != key && m->key[at] != UINT64_MAX) at = (at + 1) & (m->capacity - 1);
    return at;
}

uint32_t token_map_get(const struct token_map *m, uint64_t key) {
    if (!m->capacity) return TOKEN_NONE;
    size_t at = place(m, key);
    return m->key[at] == key ? m->value[at] : TOKEN_NONE;
}

static void map_free(struct token_map *m) {
    free(m->key);
    free(m->value);
    *m = (struct token_map){0};
}

static bool enlarge(struct token_map *m) {
    struct token_map more = {.capacity = m->capacity ? 2 * m->capacity : 1024};
    more.key = malloc(more.capacity * sizeof *more.key);
    more.value = malloc(more.capacity * sizeof *more.value);
    if (!more.key || !more.value) {
        map_free(&more);
        return false;
    }
    memset(more.key, 0xff, more.capacity * sizeof *more.key);
    for (size_t i = 0; i < m->capacity; i++) {
        if (m->key[i] == UINT64_MAX) continue;
        size_t at = place(&more, m->key[i]);
        more.key[at] = m->key[i];
        more.value[at] = m->value[i];
    }
    more.n = m->n;
    map_free(m);
    *m = more;
    return true;
}

bool token_map_put(struct token_map *m, uint64_t key, uint32_t value) {
    if (2 * (m->n + 1) > m->capacity && !enlarge(m)) return false;
    size_t at = place(m, key);
    m->key[at] = key;
    m->value[at] = value;
    m->n++;
    return true;
}

/* ---- ids ---- */

bool ids_add(struct ids *out, uint32_t id) {
    if (out->n == out->capacity && !ARRAY_GROW(out->data, out->n, out->capacity)) return false;
    out->data[out->n++] = id;
    return true;
}

/* ---- bytes ---- */

static tri_status bytes_open(struct tokenizer *t, const char *argument) {
    (void)argument;
    t->n = 256;
    return TRI_OK;
}

static bool bytes_encode(struct encoder *e, const char *text, size_t bytes, struct ids *out) {
    (void)e;
    for (size_t i = 0; i < bytes; i++)
        if (!ids_add(out, (unsigned char)text[i])) return false;
    return true;
}

static void bytes_decode(const struct tokenizer *t, const uint32_t *id, size_t n,
                         struct text *out) {
    for (size_t i = 0; i < n; i++) {
        CHECK(id[i] < t->n);
        text_add_bytes(out, &(unsigned char){(unsigned char)id[i]}, 1);
    }
}

/* ---- tokenizers ---- */

static const struct token_kind kinds[] = {
    {"bytes", false, bytes_open, bytes_encode, bytes_decode},
    {"bert", true, bert_open, bert_encode, bert_decode},
    {"bert-cased", true, bert_cased_open, bert_encode, bert_decode},
    {"gpt2", true, gpt2_open, gpt2_encode, gpt2_decode},
};

tri_status token_open(const char *spec, struct tokenizer **out) {
    size_t length = strcspn(spec, ":");
    *out = NULL;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const struct token_kind *k = &kinds[i];
        if (strlen(k->prefix) != length || memcmp(k->prefix, spec, length)) continue;
        const char *argument = spec + length + (spec[length] == ':');
        if (k->has_argument != (*argument != 0))
            return base_fail(TRI_USAGE, "tokenizer '%s': %s; known: " TOKEN_KINDS, spec,
                             k->has_argument ? "its files are missing" : "it takes no files");
        struct tokenizer *t = calloc(1, sizeof *t);
        if (!t) return base_no_memory(spec);
        t->kind = k;
        tri_status status = k->open(t, argument);
        if (status) token_close(t);
        else *out = t;
        return status;
    }
    return base_fail(TRI_USAGE, "tokenizer '%s': unknown kind; known: " TOKEN_KINDS, spec);
}

void token_close(struct tokenizer *t) {
    if (!t) return;
    map_free(&t->edge);
    map_free(&t->pair);
    free(t->node_id);
    free(t->piece);
    free(t->merge);
    arena_free(&t->arena);
    free(t);
}

int64_t token_count(const struct tokenizer *t) { return (int64_t)t->n; }

bool token_reads_characters(const struct tokenizer *t) { return t->piece; }

int64_t token_find(const struct tokenizer *t, const char *token) {
    size_t bytes = strlen(token);
    for (size_t i = 0; t->piece && i < t->n; i++)
        if (t->piece[i].bytes == bytes && !memcmp(t->piece[i].data, token, bytes))
            return (int64_t)i;
    return -1;
}

void token_decode(const struct tokenizer *t, const uint32_t *id, size_t n, struct text *out) {
    t->kind->decode(t, id, n, out);
}

/* ---- encoders ---- */

struct encoder *encoder_new(const struct tokenizer *t) {
    struct encoder *e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->tokenizer = t;
    if (t->piece) e->cache = calloc(CACHE_SLOTS, sizeof *e->cache);
    if (!t->piece || e->cache) return e;
    free(e);
    return NULL;
}

void encoder_free(struct encoder *e) {
    if (!e) return;
    free(e->cache);
    free(e->point);
    free(e->formed);
    free(e->symbol);
    free(e->heap);
    free(e->merged.data);
    free(e);
}

bool encoder_add(struct encoder *e, const char *text, size_t bytes, struct ids *out) {
    return e->tokenizer->kind->encode(e, text, bytes, out);
}

enum recall encoder_recall(struct encoder *e, const char *word, size_t bytes, struct ids *out,
                           struct token_slot **slot) {
    *slot = NULL;
    if (!bytes || bytes > sizeof e->cache->word) return UNKNOWN;
    struct token_slot *s = &e->cache[base_hash(word, bytes, 0) % CACHE_SLOTS];
    *slot = s;
    if (s->bytes != bytes || memcmp(s->word, word, bytes)) return UNKNOWN;
    for (size_t i = 0; i < s->n; i++)
        if (!ids_add(out, s->id[i])) return NO_MEMORY;
    return RECALLED;
}

void encoder_keep(struct token_slot *slot, const char *word, size_t bytes, const struct ids *out,
                  size_t first) {
    size_t n = out->n - first;
    if (!slot || n > COUNT(slot->id)) return;
    slot->bytes = (uint8_t)bytes;
    slot->n = (uint8_t)n;
    memcpy(slot->word, word, bytes);
    memcpy(slot->id, out->data + first, n * sizeof *slot->id);
}
