/* SPDX-License-Identifier: Apache-2.0
 * For make bench: what a copy by all threads reads and writes, beside which kernels that only move
 * numbers are judged. */
#include <stdio.h>

#include "base/host.h"
#include "machine/rate.h"

int main(void) {
    double bandwidth;
    const int threads = host_cores();
    if (rate_memory(threads, &bandwidth)) {
        fprintf(stderr, "copy: %s\n", tri_message());
        return 1;
    }
    printf("copy threads=%d gbytes_per_s=%.4g\n", threads, 1e-9 * bandwidth);
    return 0;
}
