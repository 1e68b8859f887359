/* SPDX-License-Identifier: Apache-2.0
 * The file that keeps what `trireme bench links` has measured. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>

#include "launch/links.h"
#include "unit/scratch.h"

static void what_is_written_is_read(void **state) {
    const struct link_speed link[] = {{"h0", "h1", 2.5e-5, 1.25e9, 0.5},
                                      {"h1", "h0", 0.000031, 3e6, 12.25}};
    struct link_speed *read;
    size_t n;
    (void)state;
    assert_int_equal(links_write(at("links"), link, 2), TRI_OK);
    assert_int_equal(links_read(at("links"), &read, &n), TRI_OK);
    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(read[i].from, link[i].from);
        assert_string_equal(read[i].to, link[i].to);
        assert_true(read[i].latency == link[i].latency);
        assert_true(read[i].bandwidth == link[i].bandwidth);
        assert_true(read[i].cpu == link[i].cpu);
    }
    free(read);
}

static void write_file(const char *text, size_t n) {
    FILE *f = fopen(at("links"), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

#define GOOD "# a comment\n\nlink h0 h1 1e-5 1e9 0.5\n"

static void damaged_lines_are_named(void **state) {
    static const char *const lines[] = {
        "link", "link h0 h1", "link h0 h1 1e-5 1e9", "link h0 h1 1e-5 1e9 0.5 7",
        "link h0 h1 1e-5 1e9 0.5 ", "link h0 h1 1e-5,1e9,0.5",
        "link h0 h1 1e-5 1e9 nan", "link h0 h1 1e-5 inf 0.5", "link h0 h1 -1e-5 1e9 0.5",
        "link h0 h1 0 1e9 0.5", "link h0 h1 1e-5 1e9x 0.5", "link h0 h0 1e-5 1e9 0.5",
        "linkh0 h1 1e-5 1e9 0.5", "node h0 h1 1e-5 1e9 0.5", " link h0 h1 1e-5 1e9 0.5",
        "link h0123456789012345678901234567890123456789012345678901234567890123 h1 1e-5 1e9 0.5",
        "link h0 h1 1e-5 1e9 \xff",
    };
    struct link_speed *read;
    char text[300];
    size_t n;
    (void)state;
    write_file(GOOD, strlen(GOOD));
    assert_int_equal(links_read(at("links"), &read, &n), TRI_OK);
    assert_int_equal(n, 1);
    free(read);
    for (size_t i = 0; i < COUNT(lines); i++) {
        write_file(text, (size_t)snprintf(text, sizeof text, GOOD "%s\n" GOOD, lines[i]));
        if (!links_read(at("links"), &read, &n)) fail_msg("\"%s\" is read", lines[i]);
        assert_message("links: line 4 is damaged; `trireme bench links` makes the file again");
        assert_null(read);
    }
}

static void a_cut_file_is_damaged(void **state) {
    struct link_speed *read;
    size_t n;
    (void)state;
    for (size_t bytes = strlen("# a comment\n\n") + 1; bytes < strlen(GOOD); bytes++) {
        write_file(GOOD, bytes);
        assert_int_equal(links_read(at("links"), &read, &n), TRI_FAILED);
        assert_message("line 3 is damaged");
    }
    write_file("link h0 h1 1e-5\0 1e9 0.5\n", 26); /* a zero byte */
    assert_int_equal(links_read(at("links"), &read, &n), TRI_FAILED);
    assert_int_equal(links_read(at("nothing"), &read, &n), TRI_FAILED);
    assert_message("nothing: No such file");
}

static void the_usual_file(void **state) {
    struct text path = {0};
    (void)state;
    setenv("XDG_CACHE_HOME", at("cache"), 1);
    assert_true(links_file(&path));
    assert_string_equal(path.data, at("cache/trireme/links"));
    assert_int_equal(links_write(path.data, NULL, 0), TRI_OK); /* its folders are there */
    assert_int_equal(remove(path.data), 0);
    assert_int_equal(remove(at("cache/trireme")), 0);
    text_free(&path);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    path = (struct text){0};
    assert_false(links_file(&path));
    text_free(&path);
}

/* Of each the worst, in whichever direction; a pair that is missing makes all unknown. */
static void the_slowest(void **state) {
    static const struct link_speed link[] = {
        {"h0", "h1", 1e-5, 1e9, 0.5}, {"h1", "h0", 3e-5, 2e9, 0.4}, {"h2", "h0", 2e-5, 3e9, 0.9},
        {"h9", "h0", 7e-5, 1e6, 8}};
    struct host_list two = {.n = 2, .host = {{"h1", 0}, {"h0", 2}}},
                     three = {.n = 3, .host = {{"h0", 0}, {"h1", 0}, {"h2", 0}}};
    struct path_link worst;
    (void)state;
    setenv("XDG_CACHE_HOME", at("cache"), 1);
    assert_int_equal(links_slowest(&two, &worst), TRI_OK); /* there is no file */
    assert_true(!(worst.bandwidth > 0));
    assert_int_equal(links_write(at("cache/trireme/links"), link, COUNT(link)), TRI_OK);
    assert_int_equal(links_slowest(&two, &worst), TRI_OK);
    assert_true(worst.latency == 3e-5 && worst.bandwidth == 1e9 && worst.cpu == 0.5);
    assert_int_equal(links_slowest(&three, &worst), TRI_OK); /* h1 and h2 */
    assert_true(!(worst.bandwidth > 0) && !(worst.latency > 0));
    assert_int_equal(links_slowest(NULL, &worst), TRI_OK);
    assert_true(worst.latency == 7e-5 && worst.bandwidth == 1e6 && worst.cpu == 8);
    assert_int_equal(links_write(at("cache/trireme/links"), NULL, 0), TRI_OK);
    assert_int_equal(links_slowest(NULL, &worst), TRI_OK);
    assert_true(!(worst.bandwidth > 0));
    assert_int_equal(remove(at("cache/trireme/links")), 0);
    assert_int_equal(remove(at("cache/trireme")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_is_written_is_read, empty_directory),
        cmocka_unit_test_teardown(damaged_lines_are_named, empty_directory),
        cmocka_unit_test_teardown(a_cut_file_is_damaged, empty_directory),
        cmocka_unit_test_teardown(the_slowest, empty_directory),
        cmocka_unit_test_teardown(the_usual_file, empty_directory),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
