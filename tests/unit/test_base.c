/* SPDX-License-Identifier: Apache-2.0
 * Arenas, growing text, messages, hashes; numbers that do not depend on the program's locale. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/columns.h"

static void arenas(void **state) {
    (void)state;
    struct arena a = {0};
    char *before = NULL;
    for (size_t n = 0; n < 200; n++) {
        size_t bytes = n * n * 7 % 90000;
        char *p = arena_alloc(&a, bytes);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < bytes; i++) assert_int_equal(p[i], 0);
        memset(p, 0x5a, bytes); /* the bytes after it must still be zero */
        assert_ptr_not_equal(p, before);
        before = p;
    }
    assert_string_equal(arena_text(&a, "%d-%s", 7, "x"), "7-x");
    assert_string_equal(arena_copy(&a, "100%"), "100%");
    assert_false(a.failed);
    arena_free(&a);
}

static void texts(void **state) {
    (void)state;
    struct text t = {0};
    for (int i = 0; i < 1000; i++) text_add(&t, "%d,", i);
    text_add_bytes(&t, "a\0b", 3);
    assert_int_equal(t.size, 3890 + 3);
    assert_int_equal(strncmp(t.data, "0,1,2,", 6), 0);
    assert_memory_equal(t.data + t.size - 3, "a\0b", 4);
    text_free(&t);
    assert_null(t.data);
}

static void messages(void **state) {
    (void)state;
    assert_int_equal(base_fail(TRI_USAGE, "one %s", "two"), TRI_USAGE);
    assert_int_equal(base_fail(TRI_FAILED, "zero: %s", tri_message()), TRI_FAILED);
    assert_string_equal(tri_message(), "zero: one two");
    assert_int_equal(base_last(), TRI_FAILED);
    /* control characters do not reach a terminal */
    base_fail(TRI_USAGE, "a\nb\033[31mc\177\xc2\x9b\xc2\xa0");
    assert_string_equal(tri_message(), "a b [31mc   \xc2\xa0");
}

/* Names of parameters key their initial values: these hashes never change. */
static void hashes(void **state) {
    (void)state;
    assert_int_equal(base_hash_text(""), base_hash("", 0, 0));
    assert_true(base_hash_text("fc1.weight") != base_hash_text("fc2.weight"));
    assert_true(base_hash("a", 1, 0) != base_hash("a", 1, 1));
    assert_int_equal(base_hash_text("fc.weight"), 0xecbcf2782a42137eu);
}

static void files(void **state) {
    (void)state;
    char *data;
    size_t bytes;
    assert_int_equal(base_read_file("/nowhere/at/all", &data, &bytes), TRI_FAILED);
    assert_non_null(strstr(tri_message(), "/nowhere/at/all"));
    assert_int_equal(base_read_file("/tmp", &data, &bytes), TRI_FAILED);
    assert_null(data);
}

static void specs(void **state) {
    (void)state;
    char text[SPEC_TEXT];
    tri_spec s = {TRI_BF16, TRI_SHAPE(2, 3, 4)}, scalar = {TRI_BOOL, TRI_SCALAR};
    assert_string_equal(base_spec_text(&s, text), "bf16[2,3,4]");
    assert_string_equal(base_spec_text(&scalar, text), "bool[]");
    assert_int_equal(base_spec_bytes(&s), 48);
    assert_int_equal(base_spec_bytes(&scalar), 1);
    tri_spec long_one = {TRI_F32, {TRI_MAX_RANK, {0}}};
    for (int i = 0; i < TRI_MAX_RANK; i++) long_one.shape.dim[i] = INT64_MIN;
    assert_true(strlen(base_spec_text(&long_one, text)) < SPEC_TEXT);
}

/* A program may use a locale that writes 0,5. */
static void locales(void **state) {
    (void)state;
    const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "es_ES.UTF-8", "ru_RU.UTF-8"};
    const char *set = NULL;
    for (size_t i = 0; !set && i < COUNT(names); i++) set = setlocale(LC_ALL, names[i]);
    if (!set) skip(); /* no such locale is installed */
    char text[32], *end;
    struct text t = {0};
    base_format(text, sizeof text, "%g", 0.5);
    text_add(&t, "%.2f", 1.25);
    double half = base_number("0.5,", &end), theirs = strtod("0,5", NULL);
    setlocale(LC_ALL, "C");
    assert_string_equal(text, "0.5");
    assert_string_equal(t.data, "1.25");
    assert_true(half == 0.5 && *end == ',' && theirs == 0.5);
    text_free(&t);
}

#define TEN "\xc3\xa9" "bcdefghij"

static void columns(void **state) {
    (void)state;
    static const struct {
        const char *sides, *cells, *text;
    } rows[] = {
        {"lr", "a\tb\nlong\t100\n", "a       b\nlong  100\n"},
        {"  rl", "1\tx\n20\t\n", "   1  x\n  20\n"},
        {"rlr", "\t\t5\n10\tab\t\n", "        5\n10  ab\n"},
        {"ll", "\xc3\xa9\tb\nab\tc\n", "\xc3\xa9   b\nab  c\n"},
        {"lll", "title\na\tb\tc\n", "title\na      b  c\n"},
        {"l", "", NULL},
        {"rc", "1\t" TEN TEN TEN TEN TEN TEN TEN TEN TEN "1234567\n",
         "1  " TEN TEN TEN TEN TEN TEN TEN TEN TEN "1234567\n"},
        {"rc", "1\t" TEN TEN TEN TEN TEN TEN TEN TEN TEN "12345678\n2\tb\n",
         "1  " TEN TEN TEN TEN TEN TEN TEN TEN TEN "1234...\n2  b\n"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct text cells = {0}, out = {0};
        text_add(&cells, "%s", rows[i].cells);
        columns_add(&out, rows[i].sides, &cells);
        assert_null(cells.data);
        if (rows[i].text) assert_string_equal(out.data, rows[i].text);
        else assert_int_equal(out.size, 0);
        text_free(&out);
    }
    struct text cell = {0}, one = {0};
    columns_cell(&cell, "a\tb\nc");
    columns_add(&one, "l", &cell);
    assert_string_equal(one.data, "a b c\n");
    text_free(&one);
    fflush(NULL);
    pid_t child = fork();
    if (!child) { /* more cells than columns: a mistake of the caller's */
        close(STDERR_FILENO);
        text_add(&cell, "a\tb\n");
        columns_add(&one, "l", &cell);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    struct text words = {0}, out = {0};
    text_add(&words, TEN TEN TEN TEN TEN TEN TEN TEN TEN " 123456789 a b\nc\n");
    columns_fill(&out, &words);
    assert_string_equal(out.data, TEN TEN TEN TEN TEN TEN TEN TEN TEN " 123456789\n  a b\nc\n");
    text_free(&out);
}

static void plurals(void **state) {
    (void)state;
    char text[64], *s;
    struct arena a = {0};
    struct text t = {0};
    base_format(text, sizeof text, "%d lane(s), %d class(es), %d", 1, 1, 1);
    assert_string_equal(text, "1 lane, 1 class, 1");
    base_format(text, sizeof text, "%d spare worker(s) in %d class(es), f(s)", 21, 0);
    assert_string_equal(text, "21 spare workers in 0 classes, f(s)");
    base_format(text, sizeof text, "%s: %.1f step(s)", "run(s)", 0.1);
    assert_string_equal(text, "run(s): 0.1 steps");
    assert_int_equal(base_format(text, 8, "%d lane(s)", 1000), 12);
    assert_string_equal(text, "1000 la");
    s = arena_text(&a, "%d lane(s)", 1);
    assert_string_equal(s, "1 lane");
    text_add(&t, "%d lane(s)", 1);
    text_add(&t, "%s", "run(s)");
    assert_string_equal(t.data, "1 lanerun(s)");
    assert_int_equal(t.size, 12);
    base_fail(TRI_USAGE, "%d lane(s)", 2);
    assert_string_equal(tri_message(), "2 lanes");
    arena_free(&a);
    text_free(&t);
}

/* Control characters of one byte and of two, bytes that begin no character or cut one. */
static void escapes(void **state) {
    (void)state;
    struct text t = {0};
    text_add_escaped(&t, "a\tb\x7f \xc3\xa9\xe2\x82\xac\xf0\x9f\x9a\xa3 \xc2\x9b \xe2\x82 \xff");
    assert_string_equal(t.data, "a\\x09b\\x7f \xc3\xa9\xe2\x82\xac\xf0\x9f\x9a\xa3 \\xc2\\x9b "
                                "\\xe2\\x82 \\xff");
    text_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plurals),
        cmocka_unit_test(arenas), cmocka_unit_test(texts), cmocka_unit_test(messages),
        cmocka_unit_test(escapes),
        cmocka_unit_test(hashes), cmocka_unit_test(files), cmocka_unit_test(specs),
        cmocka_unit_test(locales), cmocka_unit_test(columns),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
