/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/path_choice.h"

#include "plan/rounds.h"

static double seconds_of(const struct rounds *r, int hosts, const struct path_link *link,
                         double bytes) {
    int most = 0;
    for (int h = 0; h < hosts; h++)
        if (r->sent[h] + r->received[h] > most) most = r->sent[h] + r->received[h];
    const double chunk = bytes / r->chunks, wire = r->busiest * chunk / link->bandwidth,
                 cpu = most * chunk * link->cpu / 2e9;
    return r->n * link->latency / 2 + (wire > cpu ? wire : cpu);
}

tri_status path_seconds(const struct lane_tree *tree, const struct transfer_share *share,
                        enum path path, const struct path_link *link, double bytes,
                        double *seconds) {
    struct transfer_share one = *share;
    struct transfers t;
    struct rounds r;
    int hosts = 0;
    for (int h = 0; h < share->hosts; h++) hosts += !share->alive || share->alive[h];
    *seconds = -1;
    if (!path_allows(path, hosts)) return TRI_OK;
    one.buckets = 1;
    one.path = &path;
    one.has = NULL;
    tri_status status = transfers_make(tree, &one, &t);
    if (status || t.path[0] != path) {
        transfers_free(&t);
        return status;
    }
    status = rounds_make(tree, share->begin, &t, 0, &r);
    if (!status) {
        *seconds = seconds_of(&r, t.hosts, link, bytes);
        rounds_free(&r);
    }
    transfers_free(&t);
    return status;
}

tri_status path_choose(const struct lane_tree *tree, const struct transfer_share *share,
                       const struct path_link *link, double bytes, double seconds[PATHS],
                       enum path *out) {
    tri_status status = TRI_OK;
    *out = PATH_EXCHANGE;
    for (int p = 0; p < PATHS && !status; p++) {
        status = path_seconds(tree, share, (enum path)p, link, bytes, &seconds[p]);
        if (!status && seconds[p] >= 0 && seconds[p] < seconds[*out]) *out = (enum path)p;
    }
    return status;
}
