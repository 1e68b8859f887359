/* SPDX-License-Identifier: Apache-2.0
 * Random networks with random strategies, as in fuzz/fuzz_mesh.c. FIRST=N CASES=M runs the cases
 * from N on; SLOW=1 runs more of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/mesh_found.h"
#include "unit/mesh_train.h"

static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static void draw(int i, uint8_t *data, size_t size) {
    if (getenv("SHOW")) fprintf(stderr, "case %d\n", i);
    for (size_t k = 0; k < size; k++)
        data[k] = (uint8_t)(256 * random_uniform(random_key(1, 2), (uint64_t)i, k));
}

static void run_cases(tri_status (*run)(const uint8_t *, size_t, struct case_result *)) {
    int first = number("FIRST", 0), cases = number("CASES", getenv("SLOW") ? 2000 : 300);
    int split = 0, wrong = 0;
    for (int i = first; i < first + cases; i++) {
        struct case_result r;
        uint8_t data[160];
        draw(i, data, sizeof data);
        tri_status status = run(data, sizeof data, &r);
        split += r.splits > 0;
        if (status || !case_right(&r)) {
            fprintf(stderr, "case %d, %s, differs by %g (noise %g):\n%s", i,
                    status ? tri_message() : "other results", r.wrong, r.noise,
                    r.text ? r.text : "");
            wrong++;
        }
        free(r.text);
    }
    if (wrong) fail_msg("%d cases of %d", wrong, cases);
    if (cases > 100 && split < cases / 2) fail_msg("only %d cases of %d are split", split, cases);
    if (getenv("SHOW")) fprintf(stderr, "%d of %d cases are split\n", split, cases);
}

static void random_networks(void **state) {
    (void)state;
    run_cases(case_run);
}

static void random_splits(void **state) {
    (void)state;
    run_cases(found_run);
}

/* Runs of them, divided in several ways. */
static void random_runs(void **state) {
    (void)state;
    int first = number("FIRST", 0), cases = number("CASES", getenv("SLOW") ? 2000 : 100);
    int runs = 0, wrong = 0;
    for (int i = first; i < first + cases; i++) {
        struct train_result r;
        uint8_t data[160];
        draw(i, data, sizeof data);
        tri_status status = train_run(data, sizeof data, &r);
        runs += r.runs;
        if (!r.runs && getenv("SHOW")) fprintf(stderr, "%s\n", tri_message());
        if (status || strcmp(r.hash[0], r.hash[1])) {
            fprintf(stderr, "case %d, %s: --recompute \"%s\" --stages %d --pipeline %s --zero %s "
                    "gives %.8s, not %.8s:\n%s", i, status ? tri_message() : "other bits",
                    r.way.recompute, (int)r.way.stages, r.way.pipeline ? r.way.pipeline : "1f1b",
                    r.way.zero, r.hash[1], r.hash[0], r.text ? r.text : "");
            wrong++;
        }
        free(r.text);
    }
    if (getenv("SHOW")) fprintf(stderr, "%d of %d run\n", runs, cases);
    if (wrong) fail_msg("%d networks of %d", wrong, cases);
    if (cases >= 100 && runs < cases / 2) fail_msg("only %d of %d run", runs, cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_networks),
                                       cmocka_unit_test(random_splits),
                                       cmocka_unit_test(random_runs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
