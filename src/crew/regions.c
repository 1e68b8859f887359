/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/regions.h"

#include <string.h>

#include "crew/head.h"

const struct region_row region_rows[] = {
#define ROW(name, bytes, n, how, what) [REGION_##name] = {how, what},
    EVERY_REGION(ROW)
};

void regions_begin(struct region all[REGIONS], const struct crew_size *size) {
#define SIZE(name, bytes, n, how, what) [REGION_##name] = {0, bytes, n},
    const struct region begin[] = {EVERY_REGION(SIZE)};
    memcpy(all, begin, sizeof begin);
}

uint64_t regions_place(struct region all[REGIONS]) {
    uint64_t end = 0;
    for (int r = 0; r < REGIONS; r++) {
        all[r].at = end;
        end += (all[r].bytes * (uint64_t)all[r].n + CREW_PAGE - 1) / CREW_PAGE * CREW_PAGE;
    }
    return end;
}
