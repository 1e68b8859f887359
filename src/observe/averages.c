/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "observe/observe.h"

tri_status averages_open(struct averages *a, int n) {
    *a = (struct averages){.n = n, .sum = calloc((size_t)n + 1, sizeof *a->sum)};
    return a->sum ? TRI_OK : base_no_memory("the means of metrics");
}

void averages_close(struct averages *a) {
    free(a->sum);
    *a = (struct averages){0};
}

void averages_add(struct averages *a, const struct observed *o) {
    for (int i = 0; i < a->n; i++) a->sum[i] += o->value[i] * (double)o->samples;
    a->steps++;
    a->samples += o->samples;
}

double averages_mean(const struct averages *a, int i) { return a->sum[i] / (double)a->samples; }

void averages_clear(struct averages *a) {
    for (int i = 0; i < a->n; i++) a->sum[i] = 0;
    a->steps = a->samples = 0;
}
