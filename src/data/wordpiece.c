/* SPDX-License-Identifier: Apache-2.0
 * BERT's tokenizer. A text is cut into words at white space, around punctuation and around Chinese
 * characters; control characters are dropped. A word is then cut into the longest known tokens,
 * from its start; tokens inside a word are written with "##" in the vocabulary. */
#include <stdlib.h>
#include <string.h>

#include "data/token_inside.h"
#include "data/unicode.h"

#define LONGEST_WORD 100 /* characters; longer words are [UNK] */

/* ---- the vocabulary ---- */

static bool add_node(struct tokenizer *t, size_t *capacity) {
    if (!ARRAY_GROW(t->node_id, t->n_nodes, *capacity)) return false;
    t->node_id[t->n_nodes++] = TOKEN_NONE;
    return true;
}

static uint64_t edge(uint32_t node, char byte) { return (uint64_t)node << 8 | (unsigned char)byte; }

/* Adds a token; returns its node. TOKEN_NONE: out of memory. */
static uint32_t plant(struct tokenizer *t, const char *token, size_t bytes, size_t *capacity) {
    uint32_t node = 0;
    for (size_t i = 0; i < bytes; i++) {
        uint32_t next = token_map_get(&t->edge, edge(node, token[i]));
        if (next == TOKEN_NONE) {
            next = t->n_nodes;
            if (!add_node(t, capacity) || !token_map_put(&t->edge, edge(node, token[i]), next))
                return TOKEN_NONE;
        }
        node = next;
    }
    return node;
}

/* Lines end with "\n" or "\r\n"; the last may lack it. */
static tri_status read_tokens(struct tokenizer *t, const char *path, char *text, size_t bytes) {
    size_t pieces = 0, nodes = 0;
    if (!add_node(t, &nodes)) return base_no_memory(path);
    for (char *p = text, *end = text + bytes, *next; p < end; p = next) {
        char *stop = memchr(p, '\n', (size_t)(end - p));
        next = stop ? stop + 1 : end;
        if (!stop) stop = end;
        if (stop > p && stop[-1] == '\r') stop--;
        *stop = 0;
        size_t line = t->n + 1, length = (size_t)(stop - p);
        if (!length) return base_fail(TRI_FAILED, "%s: line %zu is empty", path, line);
        char *own = arena_alloc(&t->arena, length + 1);
        uint32_t node = plant(t, p, length, &nodes);
        if (!own || node == TOKEN_NONE || !ARRAY_GROW(t->piece, t->n, pieces))
            return base_no_memory(path);
        if (t->node_id[node] != TOKEN_NONE)
            return base_fail(TRI_FAILED, "%s: line %zu repeats line %u, \"%.40s\"", path, line,
                             t->node_id[node] + 1, p);
        memcpy(own, p, length);
        t->node_id[node] = (uint32_t)t->n;
        t->piece[t->n++] = (struct token_piece){own, length};
    }
    return TRI_OK;
}

static tri_status check_special(struct tokenizer *t, const char *path) {
    static const char *const needed[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    for (size_t i = 0; i < COUNT(needed); i++)
        if (token_find(t, needed[i]) < 0)
            return base_fail(TRI_FAILED, "%s: none of its %zu line(s) is %s", path, t->n,
                             needed[i]);
    t->unknown = (uint32_t)token_find(t, "[UNK]");
    uint32_t half = token_map_get(&t->edge, edge(0, '#'));
    t->continues = half == TOKEN_NONE ? half : token_map_get(&t->edge, edge(half, '#'));
    return TRI_OK;
}

tri_status bert_cased_open(struct tokenizer *t, const char *path) {
    char *text;
    size_t bytes;
    tri_status status = base_read_file(path, &text, &bytes);
    if (status) return status;
    status = read_tokens(t, path, text, bytes);
    free(text);
    return status ? status : check_special(t, path);
}

tri_status bert_open(struct tokenizer *t, const char *path) {
    t->lower = true;
    return bert_cased_open(t, path);
}

/* ---- words into tokens ---- */

/* The longest token at p from a node of the trie; returns its bytes, or 0. */
static size_t longest(const struct tokenizer *t, uint32_t node, const char *p, size_t bytes,
                      uint32_t *id) {
    size_t best = 0;
    for (size_t i = 0; i < bytes; i++) {
        node = token_map_get(&t->edge, edge(node, p[i]));
        if (node == TOKEN_NONE) break;
        if (t->node_id[node] == TOKEN_NONE) continue;
        best = i + 1;
        *id = t->node_id[node];
    }
    return best;
}

/* Tokens are valid UTF-8, so in a valid text none ends inside a character. */
static bool cut(const struct tokenizer *t, const char *word, size_t bytes, struct ids *out) {
    size_t first = out->n;
    for (size_t at = 0, n; at < bytes; at += n) {
        uint32_t id = 0, node = at ? t->continues : 0;
        n = node == TOKEN_NONE ? 0 : longest(t, node, word + at, bytes - at, &id);
        if (!n) {
            out->n = first;
            return ids_add(out, t->unknown);
        }
        if (!ids_add(out, id)) return false;
    }
    return true;
}

static bool add_word(struct encoder *e, const int32_t *point, size_t n, struct ids *out) {
    if (n > LONGEST_WORD) return ids_add(out, e->tokenizer->unknown);
    char word[4 * LONGEST_WORD];
    size_t bytes = 0, first = out->n;
    *word = 0; /* gcc -O1 assumes that a word may be empty, and warns */
    for (size_t i = 0; i < n; i++) {
        if (point[i] < 128) word[bytes++] = (char)point[i];
        else bytes += (size_t)char_write(point[i], word + bytes);
    }
    struct token_slot *slot;
    enum recall known = encoder_recall(e, word, bytes, out, &slot);
    if (known != UNKNOWN) return known == RECALLED;
    if (!cut(e->tokenizer, word, bytes, out)) return false;
    encoder_keep(slot, word, bytes, out, first);
    return true;
}

/* Includes ASCII's symbols. */
static bool is_punctuation(int32_t c) {
    if (c < 128) return (c > ' ' && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') ||
                        (c > 'z' && c < 127);
    return char_class(c) & CHAR_PUNCTUATION;
}

static bool split_at_punctuation(struct encoder *e, const int32_t *point, size_t n,
                                 struct ids *out) {
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_punctuation(point[i])) continue;
        if (from < i && !add_word(e, point + from, i - from, out)) return false;
        if (!add_word(e, point + i, 1, out)) return false;
        from = i + 1;
    }
    return from == n || add_word(e, point + from, n - from, out);
}

/* ---- lower case without accents ---- */

#define SIGMA 0x3a3
#define FINAL_SIGMA 0x3c2
#define DOTTED_I 0x130

/* After a cased letter and not before one, ignoring case-ignorable characters between. */
static bool ends_word(const struct encoder *e, size_t at) {
    size_t i = at;
    while (i && char_case_ignorable(e->point[i - 1])) i--;
    if (!i || !char_cased(e->point[i - 1])) return false;
    for (i = at + 1; i < e->n_points && char_case_ignorable(e->point[i]);) i++;
    return i == e->n_points || !char_cased(e->point[i]);
}

/* Canonical order: sorts the marks between two starters by class, keeping the order of equal ones.
 * False: out of memory. */
static bool order_marks(struct encoder *e, size_t from, size_t to) {
    size_t n = to - from;
    bool ordered = true;
    for (size_t i = from + 1; i < to && ordered; i++)
        ordered = char_combining(e->formed[i - 1]) <= char_combining(e->formed[i]);
    if (ordered) return true;
    int32_t *sorted = malloc(n * sizeof *sorted);
    if (!sorted) return false;
    size_t place[256] = {0};
    for (size_t i = from; i < to; i++) place[char_combining(e->formed[i]) + 1]++;
    for (int k = 1; k < 256; k++) place[k] += place[k - 1];
    for (size_t i = from; i < to; i++) sorted[place[char_combining(e->formed[i])]++] = e->formed[i];
    memcpy(e->formed + from, sorted, n * sizeof *sorted);
    free(sorted);
    return true;
}

static bool form(struct encoder *e) {
    size_t marks = 0; /* the start of the marks after the last starter */
    e->n_formed = 0;
    for (size_t i = 0; i < e->n_points; i++) {
        int32_t c = e->point[i], part[CHAR_MOST_PARTS];
        if (c == DOTTED_I) c = 'i'; /* its accent would be dropped anyway */
        else if (c == SIGMA && ends_word(e, i)) c = FINAL_SIGMA;
        else c = char_lower(c);
        int n = char_decompose(c, part);
        for (int k = 0; k < n; k++) {
            bool starter = !char_combining(part[k]);
            if (starter && !order_marks(e, marks, e->n_formed)) return false;
            if (!(char_class(part[k]) & CHAR_ACCENT)) {
                if (!ARRAY_GROW(e->formed, e->n_formed, e->formed_capacity)) return false;
                e->formed[e->n_formed++] = part[k];
            }
            if (starter) marks = e->n_formed;
        }
    }
    return order_marks(e, marks, e->n_formed);
}

static bool form_ascii(struct encoder *e) {
    if (e->formed_capacity < e->point_capacity) {
        int32_t *more = realloc(e->formed, e->point_capacity * sizeof *more);
        if (!more) return false;
        e->formed = more;
        e->formed_capacity = e->point_capacity;
    }
    for (size_t i = 0; i < e->n_points; i++) e->formed[i] = char_lower(e->point[i]);
    e->n_formed = e->n_points;
    return true;
}

/* ---- the text ---- */

/* Ends the word in e->point; ascii: it has only ASCII characters. */
static bool end_word(struct encoder *e, bool ascii, struct ids *out) {
    size_t n = e->n_points;
    if (!n) return true;
    bool ok = true;
    if (!e->tokenizer->lower) {
        ok = split_at_punctuation(e, e->point, n, out);
    } else {
        ok = (ascii ? form_ascii(e) : form(e)) &&
             split_at_punctuation(e, e->formed, e->n_formed, out);
    }
    e->n_points = 0;
    return ok;
}

/* The blocks of Chinese characters that BERT separates; kana and hangul are ordinary words. */
static bool is_chinese(int32_t c) {
    static const int32_t block[][2] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df},
                                       {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b820, 0x2ceaf},
                                       {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
    for (size_t i = 0; c >= block[1][0] && i < COUNT(block); i++)
        if (c >= block[i][0] && c <= block[i][1]) return true;
    return false;
}

bool bert_encode(struct encoder *e, const char *text, size_t bytes, struct ids *out) {
    bool ascii = true;
    e->n_points = 0;
    for (const char *p = text, *end = text + bytes; p < end;) {
        int32_t c;
        p += char_read(p, end, &c);
        unsigned class = c < 0 ? CHAR_CONTROL : char_class(c);
        bool space = c == '\t' || c == '\n' || c == '\r' ||
                     (class & (CHAR_SPACE | CHAR_CONTROL)) == CHAR_SPACE;
        if (!space && (class & CHAR_CONTROL || c == 0xfffd)) continue;
        bool alone = is_chinese(c);
        if (space || alone) {
            if (!end_word(e, ascii, out)) return false;
            ascii = true;
        }
        if (space) continue;
        if (!ARRAY_GROW(e->point, e->n_points, e->point_capacity)) return false;
        e->point[e->n_points++] = c;
        ascii = ascii && c < 128;
        if (alone) {
            if (!end_word(e, false, out)) return false;
            ascii = true;
        }
    }
    return end_word(e, ascii, out);
}

void bert_decode(const struct tokenizer *t, const uint32_t *id, size_t n, struct text *out) {
    for (size_t i = 0; i < n; i++) {
        CHECK(id[i] < t->n);
        struct token_piece p = t->piece[id[i]];
        if (i && p.bytes >= 2 && !memcmp(p.data, "##", 2))
            text_add_bytes(out, p.data + 2, p.bytes - 2);
        else
            text_add(out, "%s%s", i ? " " : "", p.data);
    }
}
