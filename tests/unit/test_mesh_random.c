/* SPDX-License-Identifier: Apache-2.0
 * Random networks with random strategies, as in fuzz/fuzz_mesh.c. FIRST=N CASES=M runs the cases
 * from N on. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "unit/mesh_case.h"

static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static void random_networks(void **state) {
    (void)state;
    int first = number("FIRST", 0), cases = number("CASES", 600), split = 0, wrong = 0;
    for (int i = first; i < first + cases; i++) {
        struct case_result r;
        uint8_t data[160];
        if (getenv("SHOW")) fprintf(stderr, "case %d\n", i);
        for (size_t k = 0; k < sizeof data; k++)
            data[k] = (uint8_t)(256 * random_uniform(random_key(1, 2), (uint64_t)i, k));
        tri_status status = case_run(data, sizeof data, &r);
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_networks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
