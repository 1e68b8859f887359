/* SPDX-License-Identifier: Apache-2.0
 * Every operator of the table, from its row alone, on every device. Arguments name operators to
 * check only those. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dev/dev.h"

static void check(void **state) {
    const tri_op *op = ((const tri_op **)*state)[0];
    for (int i = 0; dev_at(i); i++)
        if (tri_op_check(op, dev_at(i)->name)) fail_msg("%s: %s", dev_at(i)->name, tri_message());
}

int main(int argc, char **argv) {
    static struct CMUnitTest tests[512];
    static const tri_op *ops[512];
    int n = 0;
    for (int i = 0; registry_at(i); i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++) wanted |= !strcmp(argv[k], registry_at(i)->op->name);
        if (!wanted) continue;
        ops[n] = registry_at(i)->op;
        tests[n] = (struct CMUnitTest){.name = ops[n]->name, .test_func = check,
                                       .initial_state = &ops[n]};
        n++;
    }
    return _cmocka_run_group_tests("ops", tests, (size_t)n, NULL, NULL);
}
