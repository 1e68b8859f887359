/* SPDX-License-Identifier: Apache-2.0
 * GPT-2's vocabulary: a JSON object of tokens and their ids, and a list of merges, highest priority
 * first. Both write bytes as characters: visible ones of Latin-1 as themselves, the others, in
 * order, as U+0100 and up. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/token_inside.h"
#include "data/unicode.h"

#define WRITTEN 512 /* code points below this may represent bytes */

struct alphabet {
    int16_t byte[WRITTEN]; /* of a code point; -1: none */
};

static bool is_itself(int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
}

static void make_alphabet(struct alphabet *a) {
    int next = 256;
    for (int c = 0; c < WRITTEN; c++) a->byte[c] = -1;
    for (int16_t b = 0; b < 256; b++) a->byte[is_itself(b) ? b : next++] = b;
}

/* Decodes a token of the files, into the arena. A token with other characters, which a user has
 * added, is taken as it is. */
static bool make_piece(struct tokenizer *t, const struct alphabet *a, const char *token,
                       struct token_piece *out) {
    size_t length = strlen(token), n = 0;
    char *own = arena_alloc(&t->arena, length + 1);
    if (!own) return false;
    *out = (struct token_piece){own, length};
    for (const char *p = token, *end = token + length; p < end;) {
        int32_t c;
        p += char_read(p, end, &c);
        if (c < 0 || c >= WRITTEN || a->byte[c] < 0) {
            memcpy(own, token, length + 1);
            return true;
        }
        own[n++] = (char)a->byte[c];
    }
    own[n] = 0;
    out->bytes = n;
    return true;
}

/* ---- tokens ---- */

static tri_status parse_object(const char *path, json_t **out) {
    char *text;
    size_t bytes;
    tri_status status = base_read_file(path, &text, &bytes);
    if (status) return status;
    json_error_t e;
    *out = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &e);
    free(text);
    if (!*out && json_error_code(&e) == json_error_out_of_memory) return base_no_memory(path);
    if (!*out) return base_fail(TRI_FAILED, "%s: line %d: %.100s", path, e.line, e.text);
    if (json_is_object(*out) && json_object_size(*out)) return TRI_OK;
    json_decref(*out);
    *out = NULL;
    return base_fail(TRI_FAILED, "%s: not an object of tokens and ids", path);
}

static tri_status read_ids(struct tokenizer *t, const struct alphabet *a, const char *path,
                           json_t *object) {
    const char *token;
    json_t *value;
    t->n = json_object_size(object);
    t->piece = calloc(t->n, sizeof *t->piece);
    if (!t->piece) return base_no_memory(path);
    json_object_foreach(object, token, value) {
        json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id >= (json_int_t)t->n || id >= TOKEN_NONE)
            return base_fail(TRI_FAILED,
                             "%s: the id of \"%.40s\" is not one of 0 to %zu, as there are "
                             "%zu tokens",
                             path, token, t->n - 1, t->n);
        struct token_piece *piece = &t->piece[id];
        if (piece->data)
            return base_fail(TRI_FAILED, "%s: \"%.40s\" has the id %lld, as another token has",
                             path, token, (long long)id);
        if (!make_piece(t, a, token, piece)) return base_no_memory(path);
    }
    return TRI_OK;
}

static tri_status find_bytes(struct tokenizer *t, const struct alphabet *a, const char *path,
                             json_t *object) {
    for (int c = 0; c < WRITTEN; c++) {
        if (a->byte[c] < 0) continue;
        char written[5] = {0};
        char_write(c, written);
        json_t *id = json_object_get(object, written);
        if (!id)
            return base_fail(TRI_FAILED, "%s: the byte 0x%02x has no token (\"%s\")", path,
                             a->byte[c], written);
        t->byte_id[a->byte[c]] = (uint32_t)json_integer_value(id);
    }
    return TRI_OK;
}

/* ---- merges ---- */

static const char *unknown_token(json_t *object, const char *token, uint32_t *id) {
    json_t *value = json_object_get(object, token);
    if (!value) return token;
    *id = (uint32_t)json_integer_value(value);
    return NULL;
}

static tri_status add_merge(struct tokenizer *t, size_t *capacity, const char *path, size_t line,
                            json_t *object, char *text) {
    char *space = strchr(text, ' ');
    if (!space || space == text || !space[1] || strchr(space + 1, ' '))
        return base_fail(TRI_FAILED, "%s: line %zu is not two tokens with a space between them",
                         path, line);
    *space = 0;
    struct token_merge m;
    const char *unknown = unknown_token(object, text, &m.left);
    if (!unknown) unknown = unknown_token(object, space + 1, &m.right);
    char *joined = NULL;
    if (!unknown) {
        size_t bytes = strlen(text), more = strlen(space + 1) + 1;
        if (!(joined = malloc(bytes + more))) return base_no_memory(path);
        memcpy(joined, text, bytes);
        memcpy(joined + bytes, space + 1, more);
        unknown = unknown_token(object, joined, &m.made);
    }
    tri_status status = TRI_OK;
    uint64_t key = (uint64_t)m.left << 32 | m.right;
    size_t rank = t->pair.n;
    if (unknown)
        status = base_fail(TRI_FAILED, "%s: line %zu: \"%.40s\" is not in the vocabulary", path,
                           line, unknown);
    else if (token_map_get(&t->pair, key) != TOKEN_NONE)
        status = base_fail(TRI_FAILED, "%s: line %zu repeats an earlier line", path, line);
    else if (!ARRAY_GROW(t->merge, rank, *capacity) ||
             !token_map_put(&t->pair, key, (uint32_t)rank))
        status = base_no_memory(path);
    else
        t->merge[rank] = m;
    free(joined);
    return status;
}

static tri_status read_merges(struct tokenizer *t, const char *path, json_t *object) {
    char *text;
    size_t bytes, capacity = 0, line = 0;
    tri_status status = base_read_file(path, &text, &bytes);
    if (status) return status;
    for (char *p = text, *next; p < text + bytes && !status; p = next) {
        char *stop = memchr(p, '\n', (size_t)(text + bytes - p));
        if (!stop) stop = text + bytes;
        next = stop + 1;
        if (stop > p && stop[-1] == '\r') stop--;
        *stop = 0;
        if (line++ || strncmp(p, "#version", 8))
            status = add_merge(t, &capacity, path, line, object, p);
    }
    free(text);
    return status;
}

/* ---- both ---- */

static tri_status read_both(struct tokenizer *t, const char *tokens, const char *merges) {
    struct alphabet alphabet;
    make_alphabet(&alphabet);
    json_t *object = NULL;
    tri_status status = parse_object(tokens, &object);
    if (!status) status = read_ids(t, &alphabet, tokens, object);
    if (!status) status = find_bytes(t, &alphabet, tokens, object);
    if (!status) status = read_merges(t, merges, object);
    json_decref(object);
    return status;
}

tri_status gpt2_open(struct tokenizer *t, const char *directory) {
    static const char *const names[][2] = {{"vocab.json", "merges.txt"},
                                           {"encoder.json", "vocab.bpe"}};
    struct text path[2] = {{0}};
    tri_status status = TRI_OK;
    bool found = false;
    for (size_t i = 0; !status && !found && i < COUNT(names); i++) {
        for (int k = 0; k < 2; k++) {
            path[k].size = 0;
            text_add(&path[k], "%s/%s", directory, names[i][k]);
        }
        if (path[0].failed || path[1].failed) status = base_no_memory(directory);
        else found = !access(path[0].data, F_OK) || errno != ENOENT;
    }
    if (!status && !found)
        status = base_fail(TRI_FAILED,
                           "%s: found neither vocab.json (with merges.txt) nor encoder.json "
                           "(with vocab.bpe) in it",
                           directory);
    if (!status) status = read_both(t, path[0].data, path[1].data);
    text_free(&path[0]);
    text_free(&path[1]);
    return status;
}
