/* SPDX-License-Identifier: Apache-2.0
 * Copies between formats, element by element against pack_place: pairs of formats, types, and ways
 * to divide the work, with every instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/convert.h"
#include "dev/cpu/copy.h"

static const char *const formats[] = {
    "abcd", "acdb", "bacd", "dcba", "aBcd16b", "aBcd8b", "aBcd3b", "Acdb16a", "Bcda16b", "Abcd8a",
    "ABcd16b16a", "ABcd4b16a4b", "ABcd8b16a2b", "ABcd8a8b", "ABcd4b2a4b8a",
};

static const tri_shape shapes[] = {
    TRI_SHAPE(32, 32, 3, 3), TRI_SHAPE(16, 32, 1, 1), TRI_SHAPE(48, 16, 5, 2),
    TRI_SHAPE(5, 33, 1, 17), TRI_SHAPE(2, 48, 3, 13), TRI_SHAPE(1, 1, 1, 1),
};
#define MOST (32 * 32 * 3 * 3) /* elements */

static const struct {
    tri_type to, from;
} types[] = {
    {TRI_F32, TRI_F32}, {TRI_BF16, TRI_BF16}, {TRI_BF16, TRI_F32}, {TRI_I64, TRI_I64},
    {TRI_BOOL, TRI_BOOL},
};

/* Formats, types and shape of a copy, and its tensors. */
struct example {
    const char *text[2];
    struct pack pack[2];
    tri_type type[2];
    const tri_shape *shape;
    int64_t place[MOST][2]; /* of each element, in elements */
    char *to, *from;
    size_t bytes; /* of `to` */
};

static void find_places(struct example *e) {
    const tri_shape *s = e->shape;
    for (int64_t i = 0; i < tri_shape_count(s); i++) {
        const int64_t at[] = {i / s->dim[3] / s->dim[2] / s->dim[1],
                              i / s->dim[3] / s->dim[2] % s->dim[1], i / s->dim[3] % s->dim[2],
                              i % s->dim[3]};
        for (int k = 0; k < 2; k++) e->place[i][k] = pack_place(&e->pack[k], s, at);
    }
}

/* The output is that of the definition; it is cleared for the next copy. */
static void assert_copied(const struct example *e, const char *how) {
    const tri_shape *s = e->shape;
    const size_t size[] = {tri_type_size(e->type[0]), tri_type_size(e->type[1])};
    for (int64_t i = 0; i < tri_shape_count(s); i++) {
        char want[8];
        convert(e->type[0], want, e->type[1], e->from + (size_t)e->place[i][1] * size[1], 1);
        if (memcmp(e->to + (size_t)e->place[i][0] * size[0], want, size[0]))
            fail_msg("%s from %s, [%d,%d,%d,%d], types %d and %d, %s: element %d", e->text[0],
                     e->text[1], (int)s->dim[0], (int)s->dim[1], (int)s->dim[2], (int)s->dim[3],
                     (int)e->type[0], (int)e->type[1], how, (int)i);
    }
    memset(e->to, 0x55, e->bytes);
}

static int64_t common_rows(const struct example *e) {
    int64_t rows = 1;
    while (rows % pack_cut(&e->pack[0], 0) || rows % pack_cut(&e->pack[1], 0)) rows++;
    return rows;
}

static void check(struct example *e) {
    const tri_shape *s = e->shape;
    struct copy c;
    const int64_t rows = common_rows(e);
    assert_null(copy_formats(s, s->dim[0], e->type[0], &e->pack[0], e->type[1], &e->pack[1], &c));
    copy_run(&c, e->to, e->from);
    assert_copied(e, "whole");
    for (int64_t part = 5; part-- > 0;) copy_part(&c, e->to, e->from, part, 5);
    assert_copied(e, "in parts");
    assert_null(copy_formats(s, rows, e->type[0], &e->pack[0], e->type[1], &e->pack[1], &c));
    copy_several(&c, e->to, e->from, s->dim[0] / rows);
    assert_copied(e, "in rows");
}

/* Of random bytes. Bool has two values. */
static void check_types(struct example *e) {
    const size_t n = (size_t)tri_shape_count(e->shape);
    for (size_t t = 0; t < COUNT(types); t++) {
        uint32_t seed = 1;
        memcpy(e->type, &types[t], sizeof e->type);
        e->bytes = n * tri_type_size(e->type[0]);
        e->to = malloc(e->bytes);
        e->from = malloc(n * tri_type_size(e->type[1]));
        assert_true(e->to && e->from);
        for (size_t i = 0; i < n * tri_type_size(e->type[1]); i++) {
            seed = seed * 1664525 + 1013904223;
            e->from[i] = (char)(e->type[1] == TRI_BOOL ? seed >> 31 : seed >> 24);
        }
        check(e);
        free(e->to);
        free(e->from);
    }
}

static void all_pairs(void **state) {
    int checked = 0;
    setenv("TRIREME_ISA", *state, 1);
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (size_t i = 0; i < COUNT(formats) * COUNT(formats); i++) {
            static struct example e;
            struct copy c;
            e.shape = &shapes[s];
            e.text[0] = formats[i / COUNT(formats)];
            e.text[1] = formats[i % COUNT(formats)];
            if (pack_parse(e.text[0], e.shape, &e.pack[0]) ||
                pack_parse(e.text[1], e.shape, &e.pack[1]) ||
                copy_formats(e.shape, e.shape->dim[0], TRI_F32, &e.pack[0], TRI_F32, &e.pack[1],
                             &c))
                continue;
            find_places(&e);
            check_types(&e);
            checked++;
        }
    unsetenv("TRIREME_ISA");
    assert_true(checked > 300);
}

/* The one condition for a copy. */
static void blocks_that_do_not_divide(void **state) {
    static const struct {
        const char *to, *from;
        bool can;
    } pairs[] = {
        {"aBcd8b", "aBcd24b", true},       {"aBcd16b", "aBcd24b", false},
        {"ABcd8b16a2b", "aBcd16b", true},  {"ABcd2b16a3b", "aBcd4b", false},
        {"ABcd2b16a3b", "aBcd12b", true},
    };
    const tri_shape s = TRI_SHAPE(16, 48, 2, 2);
    (void)state;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        struct pack to, from;
        struct copy c;
        assert_null(pack_parse(pairs[i].to, &s, &to));
        assert_null(pack_parse(pairs[i].from, &s, &from));
        assert_int_equal(!copy_formats(&s, 16, TRI_F32, &to, TRI_F32, &from, &c), pairs[i].can);
        assert_int_equal(!copy_formats(&s, 16, TRI_F32, &from, TRI_F32, &to, &c), pairs[i].can);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        {"plain", all_pairs, NULL, NULL, "plain"},
        {"avx2", all_pairs, NULL, NULL, "avx2"},
        {"avx512", all_pairs, NULL, NULL, "avx512"},
        cmocka_unit_test(blocks_that_do_not_divide),
    };
    return cmocka_run_group_tests_name("copy", tests, NULL, NULL);
}
