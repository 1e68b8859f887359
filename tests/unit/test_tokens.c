/* SPDX-License-Identifier: Apache-2.0
 * Tokenizers: the ids that tests/golden/tokens.py computed, and back; faulty vocabularies.
 * TRI_TOKENS=DIR: cases that it wrote to another directory. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/token.h"
#include "data/unicode.h"
#include "scratch.h"

/* ---- golden cases ---- */

static const char *golden(void) {
    static char path[512];
    if (getenv("TRI_TOKENS")) return getenv("TRI_TOKENS");
    snprintf(path, sizeof path, "%s/tokens", getenv("TRI_GOLDEN"));
    return path;
}

static struct {
    const char *name, *file;
    struct tokenizer *tokenizer;
    struct encoder *encoder;
    size_t cases, ids, differences;
    double seconds, bytes;
} kinds[] = {{.name = "bert", .file = "/vocab.txt"},
             {.name = "bert-cased", .file = "/vocab.txt"},
             {.name = "gpt2", .file = ""}};

static struct tokenizer *open_kind(size_t k) {
    char spec[600];
    struct tokenizer *t;
    snprintf(spec, sizeof spec, "%s:%s%s", kinds[k].name, golden(), kinds[k].file);
    if (token_open(spec, &t)) fail_msg("%s", tri_message());
    return t;
}

static size_t unhex(char *text) {
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    for (char *p = text; strcmp(text, "-") && p[0] && p[1]; p += 2)
        text[n++] = (char)((strchr(digits, p[0]) - digits) << 4 | (strchr(digits, p[1]) - digits));
    return n;
}

static void read_ids(char *text, struct ids *out) {
    out->n = 0;
    for (char *p = text; *p && *p != '-'; p += *p == ',') {
        assert_true(ARRAY_GROW(out->data, out->n, out->capacity));
        out->data[out->n++] = (uint32_t)strtoul(p, &p, 10);
    }
}

static void check_case(size_t k, const char *text, size_t bytes, const struct ids *want,
                       size_t line) {
    struct ids ids = {0};
    double start = base_seconds();
    assert_true(encoder_add(kinds[k].encoder, text, bytes, &ids));
    kinds[k].seconds += base_seconds() - start;
    kinds[k].bytes += (double)bytes;
    kinds[k].cases++;
    kinds[k].ids += ids.n;
    bool same =
        ids.n == want->n && (!ids.n || !memcmp(ids.data, want->data, ids.n * sizeof *ids.data));
    if (!same && kinds[k].differences++ < 3)
        print_message("line %zu: %s differs (%zu ids, not %zu)\n", line, kinds[k].name, ids.n,
                      want->n);
    struct text back = {0};
    if (!strcmp(kinds[k].name, "gpt2")) {
        token_decode(kinds[k].tokenizer, ids.data, ids.n, &back);
        assert_int_equal(back.size, bytes);
        if (bytes) assert_memory_equal(back.data, text, bytes);
    }
    text_free(&back);
    free(ids.data);
}

static void check_file(FILE *f) {
    char *line = NULL;
    size_t capacity = 0;
    struct ids want = {0};
    for (size_t n = 1; getline(&line, &capacity, f) > 0; n++) {
        char *name = strtok(line, " "), *text = strtok(NULL, " "), *ids = strtok(NULL, "\n");
        assert_non_null(ids);
        size_t k = 0;
        while (strcmp(kinds[k].name, name)) assert_true(++k < COUNT(kinds));
        read_ids(ids, &want);
        size_t bytes = unhex(text);
        check_case(k, text, bytes, &want, n);
    }
    free(line);
    free(want.data);
}

static void golden_ids(void **state) {
    (void)state;
    char path[600];
    snprintf(path, sizeof path, "%s/cases.txt", golden());
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (size_t k = 0; k < COUNT(kinds); k++) {
        kinds[k].tokenizer = open_kind(k);
        kinds[k].encoder = encoder_new(kinds[k].tokenizer);
        assert_non_null(kinds[k].encoder);
    }
    check_file(f);
    fclose(f);
    size_t differences = 0;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        if (getenv("TRI_TOKENS"))
            print_message("%s: %zu cases, %zu ids, %zu differ; %.3g ids/s, %.3g MB/s\n",
                          kinds[k].name, kinds[k].cases, kinds[k].ids, kinds[k].differences,
                          (double)kinds[k].ids / kinds[k].seconds,
                          kinds[k].bytes / kinds[k].seconds / 1e6);
        assert_true(kinds[k].cases > 50);
        differences += kinds[k].differences;
        encoder_free(kinds[k].encoder);
        token_close(kinds[k].tokenizer);
    }
    assert_int_equal(differences, 0);
}

/* ---- texts that the script does not write ---- */

static struct ids encoded(const struct tokenizer *t, const char *text, size_t bytes) {
    struct encoder *e = encoder_new(t);
    struct ids ids = {0};
    assert_non_null(e);
    assert_true(encoder_add(e, text, bytes, &ids));
    encoder_free(e);
    return ids;
}

static void check_decoded(const struct tokenizer *t, const char *text, const char *want) {
    struct ids ids = encoded(t, text, strlen(text));
    struct text out = {0};
    token_decode(t, ids.data, ids.n, &out);
    assert_string_equal(out.data, want);
    text_free(&out);
    free(ids.data);
}

static void decoding(void **state) {
    (void)state;
    struct tokenizer *bert = open_kind(0), *gpt2 = open_kind(2), *bytes;
    assert_int_equal(token_open("bytes", &bytes), TRI_OK);
    check_decoded(bert, "Unable,  the HELLO world!", "unable , the hello world !");
    check_decoded(bert, "unaffing \xe2\x88\x9e", "unaffing [UNK]");
    check_decoded(gpt2, "the weather's \xf0\x9f\x98\x80 \xff",
                  "the weather's \xf0\x9f\x98\x80 \xff");
    check_decoded(bytes, "\xc3\xa9\xff", "\xc3\xa9\xff");
    assert_int_equal(token_count(bytes), 256);
    assert_int_equal(token_find(bytes, "a"), -1);
    assert_int_equal(token_find(bert, "[CLS]"), 2);
    assert_int_equal(token_find(bert, "[cls]"), -1);
    assert_int_equal(token_find(gpt2, "<|endoftext|>"), token_count(gpt2) - 1);
    struct text out = {0};
    token_decode(gpt2, &(uint32_t){(uint32_t)token_count(gpt2) - 1}, 1, &out);
    assert_string_equal(out.data, "<|endoftext|>");
    text_free(&out);
    token_close(bert);
    token_close(gpt2);
    token_close(bytes);
}

/* A megabyte that is one word takes no more time than one of many words. */
static void long_words(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    static const char *const units[] = {"a",         "the", "e\xcc\x81", "\xcc\xb1\xcc\x81",
                                        "\xce\xa3'", " ",   "\xff"};
    char *text = malloc(N);
    assert_non_null(text);
    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct tokenizer *t = open_kind(k);
        for (size_t i = 0; i < COUNT(units); i++) {
            size_t n = strlen(units[i]);
            for (size_t j = 0; j < N; j++) text[j] = units[i][j % n];
            double start = base_seconds();
            struct ids ids = encoded(t, text, N / n * n);
            assert_true(base_seconds() - start < 20); /* with a sanitizer; otherwise below 1 */
            free(ids.data);
        }
        token_close(t);
    }
    free(text);
}

/* A text that is cut in two at a blank gives the same ids as the whole. */
static void pieces(void **state) {
    (void)state;
    static const char text[] = "the quick\n brown fox 's  the end ";
    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct tokenizer *t = open_kind(k);
        struct encoder *e = encoder_new(t);
        assert_non_null(e);
        struct ids whole = encoded(t, text, sizeof text - 1);
        for (size_t i = 1; i < sizeof text - 1; i++) {
            if (text[i] > ' ' || text[i - 1] <= ' ') continue;
            struct ids two = {0};
            assert_true(encoder_add(e, text, i, &two));
            assert_true(encoder_add(e, text + i, sizeof text - 1 - i, &two));
            assert_int_equal(two.n, whole.n);
            assert_memory_equal(two.data, whole.data, two.n * sizeof *two.data);
            free(two.data);
        }
        free(whole.data);
        encoder_free(e);
        token_close(t);
    }
}

/* ---- characters ---- */

static void characters(void **state) {
    (void)state;
    int32_t c;
    for (int32_t want = 0; want < 0x110000; want++) {
        if (want >= 0xd800 && want < 0xe000) continue;
        char text[4];
        int n = char_write(want, text);
        assert_int_equal(char_read(text, text + n, &c), n);
        assert_int_equal(c, want);
        if (n > 1) { /* cut short, it is not a character */
            assert_int_equal(char_read(text, text + n - 1, &c), 1);
            assert_int_equal(c, -1);
        }
        int32_t part[CHAR_MOST_PARTS];
        assert_in_range(char_decompose(want, part), 1, CHAR_MOST_PARTS);
        assert_in_range(char_combining(want), 0, 254);
    }
    static const char *const wrong[] = {"\x80",
                                        "\xc0\x80",
                                        "\xc1\xbf",
                                        "\xe0\x9f\xbf",
                                        "\xed\xa0\x80",
                                        "\xed\xbf\xbf",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf4\x90\x80\x80",
                                        "\xf8\x88\x80\x80\x80",
                                        "\xfe",
                                        "\xff",
                                        "\xe4\xb8z"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(char_read(wrong[i], wrong[i] + strlen(wrong[i]), &c), 1);
        assert_int_equal(c, -1);
    }
    /* ASCII's own table agrees with the general one. */
    assert_int_equal(char_class('A'), CHAR_LETTER);
    assert_int_equal(char_class('$'), 0);
    assert_int_equal(char_class('_'), CHAR_PUNCTUATION);
    assert_int_equal(char_class('\v'), CHAR_CONTROL | CHAR_SPACE);
    assert_int_equal(char_class(0x85), CHAR_CONTROL | CHAR_SPACE);
    assert_int_equal(char_class(0x2028), CHAR_SPACE);
    assert_int_equal(char_class(0x378), CHAR_CONTROL); /* unassigned */
}

/* ---- faulty vocabularies ---- */

static void put(const char *name, const char *text) {
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void refused(const char *kind, const char *name, const char *message) {
    char spec[600];
    struct tokenizer *t;
    snprintf(spec, sizeof spec, "%s:%s", kind, name ? at(name) : directory);
    assert_int_not_equal(token_open(spec, &t), TRI_OK);
    assert_null(t);
    assert_message(message);
}

/* As in Python 3: len(bytes.decode("utf-8", "replace")) of each, all characters U+FFFD. */
static void broken_characters(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        int n;
    } rows[] = {{"\xff", 1},         {"\x80\x80", 2},         {"\xc3", 1},
                {"\xc0\xaf", 2},     {"\xe2\x82", 1},         {"\xe2\xff", 2},
                {"\xe0\x80\x80", 3}, {"\xed\xa0\x80", 3},     {"\xf0\x9f\x98", 1},
                {"\xf0\x9f\xff", 2}, {"\xf0\x80\x80\x80", 4}, {"\xf4\x90\x80\x80", 4},
                {"\xf5\x80", 2},     {"\xe2\x82\xe2\x82", 2}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *p = rows[i].bytes, *end = p + strlen(p);
        int n = 0;
        int32_t c;
        for (; p < end; n++) {
            assert_int_equal(char_read(p, end, &c), 1);
            assert_int_equal(c, -1);
            p += char_broken(p, end);
        }
        assert_ptr_equal(p, end);
        assert_int_equal(n, rows[i].n);
    }
}

static void bad_specs(void **state) {
    (void)state;
    struct tokenizer *t;
    static const char *const wrong[][2] = {
        {"", "tokenizer '': unknown kind; known: bytes, bert:FILE"},
        {"wordpiece:x", "unknown kind"},
        {"bert", "its files are missing"},
        {"gpt2:", "its files are missing"},
        {"bytes:x", "it takes no files"},
        {"bert:/nonexistent/vocab.txt", "/nonexistent/vocab.txt: No such file"},
        {"gpt2:/nonexistent", "/nonexistent: found neither vocab.json"}};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_not_equal(token_open(wrong[i][0], &t), TRI_OK);
        assert_message(wrong[i][1]);
    }
}

#define SPECIAL "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"

static void bad_bert(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"", "v.txt: none of its 0 lines is [PAD]"},
        {"[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n", "v.txt: none of its 5 lines is [MASK]"},
        {SPECIAL "the\nof\nthe\n", "v.txt: line 8 repeats line 6, \"the\""},
        {SPECIAL "\nthe\n", "v.txt: line 6 is empty"},
        {SPECIAL "the\n\n", "v.txt: line 7 is empty"}};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        put("v.txt", wrong[i][0]);
        refused("bert", "v.txt", wrong[i][1]);
        refused("bert-cased", "v.txt", wrong[i][1]);
    }
    char spec[600];
    struct tokenizer *t;
    /* line ends of some editors */
    put("v.txt", "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\nthe");
    snprintf(spec, sizeof spec, "bert:%s", at("v.txt"));
    assert_int_equal(token_open(spec, &t), TRI_OK);
    check_decoded(t, "the thes", "the [UNK]"); /* no "##" at all */
    token_close(t);
}

/* vocab.json of the 256 bytes and these tokens, with ids from 256 on. */
static void put_json(const char *more) {
    char path[600], line[64];
    snprintf(path, sizeof path, "%s/vocab.json", golden());
    FILE *from = fopen(path, "r"), *to = fopen(at("vocab.json"), "w");
    assert_true(from && to);
    for (int i = 0; i <= 256 && fgets(line, sizeof line, from); i++) {
        size_t n = strlen(line) - 1;
        if (line[n - 1] == ',') n--;
        fprintf(to, "%.*s%s", (int)n, line, !i ? "" : i < 256 ? "," : more);
    }
    fclose(from);
    assert_int_equal(fclose(to), 0);
}

static void bad_gpt2(void **state) {
    (void)state;
    static const char *const jsons[][2] = {
        {"{\"a\": 0,\n \"b\": }", "vocab.json: line 2: "},
        {"{\"a\": 0,\n \"a\": 1}", "vocab.json: line 2: duplicate object key"},
        {"[1, 2]", "vocab.json: not an object"},
        {"{}", "vocab.json: not an object"},
        {"{\"a\": 0, \"b\": 2}", "the id of \"b\" is not one of 0 to 1"},
        {"{\"a\": 0, \"b\": -1}", "the id of \"b\" is not one of 0 to 1"},
        {"{\"a\": 0, \"b\": \"1\"}", "the id of \"b\" is not one of 0 to 1"},
        {"{\"a\": 0, \"b\": 0}", "\"b\" has the id 0, as another token has"},
        {"{\"a\": 0, \"b\": 1}", "the byte 0x21 has no token (\"!\")"}};
    static const char *const merges[][2] = {
        {"#version: 0.2\na b\nab c\nab d\n",
         "merges.txt: line 4: \"abd\" is not in the vocabulary"},
        {"a b\nx bc\nbc d\n", "merges.txt: line 2: \"bc\" is not in the vocabulary"},
        {"a b\n\n", "merges.txt: line 2 is not two tokens"},
        {"a b\na\n", "merges.txt: line 2 is not two tokens"},
        {"a b\na b c\n", "merges.txt: line 2 is not two tokens"},
        {"a b\n a\n", "merges.txt: line 2 is not two tokens"},
        {"a b\nab c\na b\n", "merges.txt: line 3 repeats an earlier line"}};
    put("merges.txt", "");
    for (size_t i = 0; i < COUNT(jsons); i++) {
        put("vocab.json", jsons[i][0]);
        refused("gpt2", NULL, jsons[i][1]);
    }
    put_json(",\"ab\": 256, \"abc\": 257}");
    for (size_t i = 0; i < COUNT(merges); i++) {
        put("merges.txt", merges[i][0]);
        refused("gpt2", NULL, merges[i][1]);
    }
    assert_int_equal(remove(at("merges.txt")), 0);
    refused("gpt2", NULL, "merges.txt: No such file");
}

/* The other names of the files, no last newline, lines that end with "\r\n". */
static void names_of_gpt2(void **state) {
    (void)state;
    char spec[600];
    struct tokenizer *t;
    put_json(",\"ab\": 256, \"abc\": 257, \"<a new one>\": 258}");
    assert_int_equal(rename(at("vocab.json"), at("encoder.json")), 0);
    put("vocab.bpe", "#version: 0.2\r\na b\r\nab c");
    snprintf(spec, sizeof spec, "gpt2:%s", directory);
    assert_int_equal(token_open(spec, &t), TRI_OK);
    struct ids ids = encoded(t, "abcab", 5);
    assert_int_equal(ids.n, 2);
    assert_int_equal(ids.data[0], 257);
    assert_int_equal(ids.data[1], 256);
    assert_int_equal(token_find(t, "<a new one>"), 258);
    free(ids.data);
    token_close(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_ids),
        cmocka_unit_test(decoding),
        cmocka_unit_test(long_words),
        cmocka_unit_test(pieces),
        cmocka_unit_test(characters),
        cmocka_unit_test(broken_characters),
        cmocka_unit_test(bad_specs),
        cmocka_unit_test_teardown(bad_bert, empty_directory),
        cmocka_unit_test_teardown(bad_gpt2, empty_directory),
        cmocka_unit_test_teardown(names_of_gpt2, empty_directory),
    };
    return cmocka_run_group_tests_name("tokens", tests, make_directory, remove_directory);
}
