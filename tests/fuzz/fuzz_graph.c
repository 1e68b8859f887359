/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a textual graph. An accepted graph must print and read back to the same text, also
 * after the passes; a refusal must be one line of text. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "plan/passes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most); /* libFuzzer's own */

static void one_line_message(void) {
    const char *m = tri_message();
    CHECK(m[0] && !strchr(m, '\n'));
}

static void round_trip(const tri_graph *g) {
    if (!g) return;
    char *once = tri_graph_print(g);
    CHECK(once);
    tri_graph *again = tri_graph_parse(once, strlen(once), "again");
    if (tri_graph_status(again)) base_bug(__FILE__, __LINE__, tri_message(), once);
    char *twice = tri_graph_print(again);
    CHECK(twice);
    if (strcmp(once, twice)) base_bug(__FILE__, __LINE__, once, twice);
    free(once);
    free(twice);
    tri_graph_free(again);
}

/* The input determines the options of the compilation too, so that files stay plain graphs. */
static tri_options options_of(const uint8_t *data, size_t size) {
    static const char *const optimizers[] = {"sgd", "momentum", "nesterov", "adam", "adamw",
                                             "lars", "lamb"};
    static const char *const levels[] = {NULL, "O1", "O2", "O3"};
    uint64_t h = base_hash(data, size, 1);
    return (tri_options){
        .batch = h >> 8 & 1 ? 0 : (int64_t)(h >> 9 & 7),
        .lanes = (int64_t)(h >> 16 & 3),
        .forward = h >> 24 & 1,
        .amp = levels[h >> 42 & 3],
        .amp_type = h >> 44 & 1 ? "f16" : NULL,
        .optimizer = {.name = optimizers[(h >> 32) % COUNT(optimizers)],
                      .clip_norm = h >> 40 & 1 ? 1 : 0,
                      .weight_decay = h >> 41 & 1 ? 0.1 : 0,
                      .loss_scale = h >> 45 & 1 ? "dynamic:every=3" : NULL},
    };
}

static void compile(tri_graph *g, const tri_options *o) {
    struct compilation c = {.options = o, .model = g};
    if (passes_run(&c, NULL)) {
        one_line_message();
    } else {
        tri_graph *phases[] = {c.pre,     c.step,    c.count[0], c.count[1],
                               c.lane[0], c.lane[1], c.merge[0], c.merge[1]};
        round_trip(c.model);
        round_trip(c.whole);
        for (size_t i = 0; i < COUNT(phases); i++) {
            char *text = tri_graph_print(phases[i]);
            CHECK(!phases[i] || text);
            free(text);
        }
    }
    passes_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tri_graph *g = tri_graph_parse((const char *)data, size, "fuzz");
    CHECK(g);
    if (tri_graph_status(g)) {
        one_line_message();
    } else {
        tri_options o = options_of(data, size);
        graph_verify(g);
        round_trip(g);
        compile(g, &o);
    }
    tri_graph_free(g);
    return 0;
}

/* ---- mutations that keep the form: random bytes seldom get past the parser ---- */

struct token {
    size_t at, length;
};

enum kind { NUMBER, OPERATOR, TENSOR, TYPE, KINDS };

static bool is_word(uint8_t c) { return isalnum(c) || c == '_' || c == '.' || c == '-'; }

static enum kind kind_of(const uint8_t *data, struct token t) {
    char word[32];
    if (t.length >= sizeof word) return KINDS;
    memcpy(word, data + t.at, t.length);
    word[t.length] = 0;
    if (t.at && data[t.at - 1] == '%') return TENSOR;
    if (isdigit((uint8_t)word[0]) || (word[0] == '-' && t.length > 1)) return NUMBER;
    for (int i = TRI_F32; i <= TRI_BOOL; i++)
        if (!strcmp(word, tri_type_name((tri_type)i))) return TYPE;
    return registry_find(word) ? OPERATOR : KINDS;
}

/* The r-th token of a kind, modulo their number; false: there is none. */
static bool find_token(const uint8_t *data, size_t size, enum kind kind, uint64_t r,
                       struct token *found) {
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        size_t left = pass ? r % n : 0;
        for (size_t i = 0; i < size;) {
            struct token t = {i, 0};
            while (i < size && is_word(data[i])) i++;
            t.length = i - t.at;
            if (!t.length) {
                i++;
            } else if (kind_of(data, t) == kind) {
                if (pass && left-- == 0) {
                    *found = t;
                    return true;
                }
                n += !pass;
            }
        }
        if (!n) return false;
    }
    return false;
}

/* A replacement for a token: an awkward number, another operator or type, or another tensor of the
 * file. */
static size_t replacement(const uint8_t *data, size_t size, enum kind kind, uint64_t r,
                          char text[32]) {
    static const char *const numbers[] = {
        "0", "1", "-1", "2", "3", "4", "6", "8", "-2", "7", "64", "255", "256", "1024", "65536",
        "1048576", "2147483647", "2147483648", "-2147483648", "4294967296", "1099511627776",
        "1000000000000", "4611686018427387904", "9223372036854775807", "-9223372036854775808",
        "0.5", "1e-300", "1e300", "inf", "-inf", "nan"};
    struct token other;
    const char *source = "";
    if (kind == NUMBER) {
        source = numbers[r % COUNT(numbers)];
    } else if (kind == TYPE) {
        source = tri_type_name((tri_type)(r % (TRI_BOOL + 1)));
    } else if (kind == OPERATOR) {
        int n = 0;
        while (registry_at(n)) n++;
        source = registry_at((int)(r % (uint64_t)n))->op->name;
    } else if (find_token(data, size, TENSOR, r, &other) && other.length < 32) {
        memcpy(text, data + other.at, other.length);
        return other.length;
    }
    memcpy(text, source, strlen(source));
    return strlen(source);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    uint64_t r = base_hash(&seed, sizeof seed, 2), s = base_hash(&seed, sizeof seed, 3);
    enum kind kind = (enum kind)(r % (KINDS + 2));
    struct token t;
    char text[32];
    if (kind >= KINDS || !find_token(data, size, kind, r >> 8, &t))
        return LLVMFuzzerMutate(data, size, most);
    size_t length = replacement(data, size, kind, s, text);
    if (size - t.length + length > most) return size;
    memmove(data + t.at + length, data + t.at + t.length, size - t.at - t.length);
    memcpy(data + t.at, text, length);
    return size - t.length + length;
}
