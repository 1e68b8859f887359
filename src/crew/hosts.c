/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/hosts.h"

void hosts_begin(struct crew_hosts *s) {
    if (!s->joins) return;
    atomic_store(&s->lacks, 1);
    atomic_store(&s->offered, 0);
    atomic_store(&s->over, 0);
    atomic_store(&s->enters, 0);
}

void hosts_deal(const struct lane_tree *tree, int cut, int n, const int *weight, int32_t *begin) {
    int first[WIRE_NODES_MOST + 1];
    const int parts = cut < 0 ? tree->lanes : lane_tree_cut(tree, cut, first);
    int64_t all = 0, before = 0;
    for (int i = 0; i < n; i++) all += weight[i];
    if (cut >= 0) first[parts] = tree->lanes;
    for (int i = 0; i <= n; i++) {
        /* Rounded to the nearest: 7 lanes on three hosts are 2, 3, 2. */
        const int part = (int)((2 * parts * before + all) / (2 * all));
        begin[i] = cut < 0 ? part : first[part];
        if (i < n) before += weight[i];
    }
}

#define DRIFT 20000 /* a clock gains or loses at most a nanosecond in so many */

int64_t hosts_unsure(const struct crew_hosts *s, int64_t now) {
    const int64_t unsure = atomic_load(&s->unsure);
    return unsure ? unsure + (now - atomic_load(&s->clock_at)) / DRIFT : 0;
}
