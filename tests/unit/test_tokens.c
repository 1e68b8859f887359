/* SPDX-License-Identifier: Apache-2.0
 * Tokenizers: the ids that tests/golden/tokens.py has worked out, and back; vocabularies that are
 * wrong. With TRI_TOKENS=DIR the cases of another directory that it has made. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the above and setjmp first */
#include <setjmp.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/token.h"
#include "data/unicode.h"

static __attribute__((unused)) void assert_message(const char *part) {
    if (!strstr(tri_message(), part) || strchr(tri_message(), '\n'))
        fail_msg("the message is \"%s\", which lacks \"%s\"", tri_message(), part);
}

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
    bool same = ids.n == want->n && (!ids.n || !memcmp(ids.data, want->data, ids.n * sizeof *ids.data));
    if (!same && kinds[k].differences++ < 3)
        print_message("line %zu: %s differs (%zu ids, not %zu)\n", line, kinds[k].name, ids.n, want->n);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_ids),
    };
    return cmocka_run_group_tests_name("tokens", tests, NULL, NULL);
}
