/* SPDX-License-Identifier: Apache-2.0
 * GPT-2's tokenizer. A text is cut into words and a word into bytes. Then neighbours are merged
 * while there is a merge for any two of them: the one of lowest rank first, everywhere in the word
 * from left to right. */
#include <string.h>

#include "data/token_inside.h"
#include "data/unicode.h"

/* ---- words ---- */

enum kind { LETTERS, NUMBERS, SPACES, OTHERS };

/* A byte that starts no character is one of OTHERS. */
static enum kind read_kind(const char *p, const char *end, int *bytes) {
    int32_t c;
    *bytes = char_read(p, end, &c);
    unsigned class = c < 0 ? 0 : char_class(c);
    if (class & CHAR_LETTER) return LETTERS;
    if (class & CHAR_NUMBER) return NUMBERS;
    return class & CHAR_SPACE ? SPACES : OTHERS;
}

/* 's 't 'm 'd 're 've 'll, or 0 */
static size_t contraction(const char *p, const char *end) {
    static const char *const known[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; i < COUNT(known); i++) {
        size_t n = strlen(known[i]);
        if ((size_t)(end - p) >= n && !memcmp(p, known[i], n)) return n;
    }
    return 0;
}

static size_t run(const char *p, const char *end, enum kind kind) {
    const char *at = p;
    for (int n; at < end && read_kind(at, end, &n) == kind;) at += n;
    return (size_t)(at - p);
}

/* White space: at the text's end all of it; else all but its last character, which may belong to
 * what follows, unless it is the only one. */
static size_t spaces(const char *p, const char *end) {
    const char *at = p, *last = p;
    for (int n; at < end && read_kind(at, end, &n) == SPACES; at += n) last = at;
    return (size_t)((at == end || last == p ? at : last) - p);
}

/* The length that GPT-2's pattern matches at p < end: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|
 * ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static size_t word_length(const char *p, const char *end) {
    size_t n = *p == '\'' ? contraction(p, end) : 0;
    if (n) return n;
    int bytes;
    enum kind kind = read_kind(p, end, &bytes);
    if (kind != SPACES) return run(p, end, kind);
    if (*p == ' ' && p + 1 < end) {
        kind = read_kind(p + 1, end, &bytes);
        if (kind != SPACES) return 1 + run(p + 1, end, kind);
    }
    return spaces(p, end);
}

/* ---- a heap of (rank, place), least on top ---- */

static bool push(struct encoder *e, uint64_t key) {
    if (!ARRAY_GROW(e->heap, e->heap_n, e->heap_capacity)) return false;
    size_t at = e->heap_n++;
    for (; at && e->heap[(at - 1) / 2] > key; at = (at - 1) / 2)
        e->heap[at] = e->heap[(at - 1) / 2];
    e->heap[at] = key;
    return true;
}

static uint64_t pop(struct encoder *e) {
    uint64_t top = e->heap[0], key = e->heap[--e->heap_n];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < e->heap_n; at = child) {
        if (child + 1 < e->heap_n && e->heap[child + 1] < e->heap[child]) child++;
        if (e->heap[child] >= key) break;
        e->heap[at] = e->heap[child];
    }
    e->heap[at] = key;
    return top;
}

/* ---- merging ---- */

static bool offer(struct encoder *e, uint32_t left) {
    const struct token_symbol *s = &e->symbol[left];
    if (s->after == TOKEN_NONE) return true;
    uint32_t rank =
        token_map_get(&e->tokenizer->pair, (uint64_t)s->id << 32 | e->symbol[s->after].id);
    return rank == TOKEN_NONE || push(e, (uint64_t)rank << 32 | left);
}

/* Merges the pair at this place if it still has that rank; returns whether it did. The place of the
 * removed neighbour has no id any more. */
static bool merge_at(struct encoder *e, uint32_t rank, uint32_t left) {
    const struct token_merge *m = &e->tokenizer->merge[rank];
    struct token_symbol *s = &e->symbol[left];
    if (s->id != m->left || s->after == TOKEN_NONE || e->symbol[s->after].id != m->right)
        return false;
    struct token_symbol *gone = &e->symbol[s->after];
    s->id = m->made;
    s->after = gone->after;
    if (s->after != TOKEN_NONE) e->symbol[s->after].before = left;
    gone->id = TOKEN_NONE;
    return true;
}

/* Merges all places of a rank, from the left, before looking at pairs that arise: these may have a
 * lower rank, if the merges are not in an order that training produces. */
static bool merge_rank(struct encoder *e, uint32_t rank) {
    e->merged.n = 0;
    while (e->heap_n && e->heap[0] >> 32 == rank) {
        uint32_t left = (uint32_t)pop(e);
        if (merge_at(e, rank, left) && !ids_add(&e->merged, left)) return false;
    }
    for (size_t i = 0; i < e->merged.n; i++) {
        uint32_t left = e->merged.data[i], before = e->symbol[left].before;
        if (!offer(e, left) || (before != TOKEN_NONE && !offer(e, before))) return false;
    }
    return true;
}

static bool begin_word(struct encoder *e, const char *word, size_t bytes) {
    if (bytes >= TOKEN_NONE) return false;
    while (e->symbol_capacity < bytes)
        if (!ARRAY_GROW(e->symbol, e->symbol_capacity, e->symbol_capacity)) return false;
    for (uint32_t i = 0; i < bytes; i++)
        e->symbol[i] = (struct token_symbol){e->tokenizer->byte_id[(unsigned char)word[i]],
                                             i ? i - 1 : TOKEN_NONE,
                                             i + 1 < bytes ? i + 1 : TOKEN_NONE};
    e->heap_n = 0;
    for (uint32_t i = 0; i + 1 < bytes; i++)
        if (!offer(e, i)) return false;
    return true;
}

static bool add_word(struct encoder *e, const char *word, size_t bytes, struct ids *out) {
    if (bytes == 1) return ids_add(out, e->tokenizer->byte_id[(unsigned char)*word]);
    struct token_slot *slot;
    enum recall known = encoder_recall(e, word, bytes, out, &slot);
    if (known != UNKNOWN) return known == RECALLED;
    size_t first = out->n;
    if (!begin_word(e, word, bytes)) return false;
    while (e->heap_n)
        if (!merge_rank(e, (uint32_t)(e->heap[0] >> 32))) return false;
    for (uint32_t i = 0; i != TOKEN_NONE; i = e->symbol[i].after)
        if (!ids_add(out, e->symbol[i].id)) return false;
    encoder_keep(slot, word, bytes, out, first);
    return true;
}

bool gpt2_encode(struct encoder *e, const char *text, size_t bytes, struct ids *out) {
    for (const char *p = text, *end = text + bytes; p < end;) {
        size_t n = word_length(p, end);
        if (!add_word(e, p, n, out)) return false;
        p += n;
    }
    return true;
}

void gpt2_decode(const struct tokenizer *t, const uint32_t *id, size_t n, struct text *out) {
    for (size_t i = 0; i < n; i++) {
        CHECK(id[i] < t->n);
        text_add_bytes(out, t->piece[id[i]].data, t->piece[id[i]].bytes);
    }
}
