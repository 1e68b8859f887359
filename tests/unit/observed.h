/* SPDX-License-Identifier: Apache-2.0
 * Observed steps for the tests of progress lines and metrics; include it after cmocka.h. */
#ifndef OBSERVED_H
#define OBSERVED_H

#include <stdio.h>
#include <stdlib.h>

#include "observe/progress.h"

static const char *const names[] = {"loss", "top1"};

static inline struct observed at_step(int64_t step, int64_t total, double now,
                                      const double *value) {
    return (struct observed){.step = step,
                             .total = total,
                             .epoch = 3,
                             .samples = 16,
                             .lr = 0.5,
                             .now = now,
                             .n = 2,
                             .name = names,
                             .value = value};
}

static inline int count_lines(const char *text) {
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

/* Printed lines, as text. */
struct paper {
    FILE *file;
    char *text;
    size_t bytes;
};

static inline void paper_open(struct paper *p) {
    p->file = open_memstream(&p->text, &p->bytes);
    assert_non_null(p->file);
}

static inline void paper_close(struct paper *p) {
    assert_int_equal(fclose(p->file), 0);
    free(p->text);
}

#endif
