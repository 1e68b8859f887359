/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/path_choice.h"

#include "plan/rounds.h"

#define LEAST_CHUNK (256 << 10) /* bytes: smaller ones are no faster, and cost more */
#define MOST_MULTIPLE 8
#define MOST_CHUNKS 127 /* a span has their number (crew/spans.h) */

static tri_status count(const struct lane_tree *tree, const struct transfer_share *share,
                        enum path path, struct path_price *price) {
    struct transfer_share one = *share;
    struct transfers t;
    struct rounds r;
    one.buckets = 1;
    one.path = &path;
    one.has = NULL;
    tri_status status = transfers_make(tree, &one, &t);
    const bool allowed = !status && t.path[0] == path;
    if (allowed) status = rounds_make(tree, share->begin, &t, 0, &r);
    if (allowed && !status) {
        *price = (struct path_price){.chunks = r.chunks, .rounds = r.n, .busiest = r.busiest};
        for (int h = 0; h < t.hosts; h++)
            if (r.sent[h] + r.received[h] > price->most) price->most = r.sent[h] + r.received[h];
        rounds_free(&r);
    }
    transfers_free(&t);
    return status;
}

tri_status path_prices(const struct lane_tree *tree, const struct transfer_share *share,
                       struct path_price price[PATHS]) {
    tri_status status = TRI_OK;
    int hosts = 0;
    for (int h = 0; h < share->hosts; h++) hosts += !share->alive || share->alive[h];
    for (int p = 0; p < PATHS && !status; p++) {
        price[p] = (struct path_price){0};
        if (path_allows((enum path)p, hosts)) status = count(tree, share, (enum path)p, &price[p]);
    }
    return status;
}

double path_seconds(const struct path_price *p, const struct path_link *link, double bytes) {
    if (!p->chunks) return -1;
    const double chunk = bytes / p->chunks, wire = p->busiest * chunk / link->bandwidth,
                 cpu = p->most * chunk * link->cpu / 2e9;
    return p->rounds * link->latency / 2 + (wire > cpu ? wire : cpu);
}

enum path path_fastest(const struct path_price price[PATHS], const struct path_link *link,
                       double bytes) {
    enum path best = PATH_EXCHANGE;
    for (int p = 0; p < PATHS; p++)
        if (price[p].chunks &&
            path_seconds(&price[p], link, bytes) < path_seconds(&price[best], link, bytes))
            best = (enum path)p;
    return best;
}

enum path path_taken(const struct path_price price[PATHS], int asked, const struct path_link *link,
                     double bytes) {
    if (asked) return price[asked - 1].chunks ? (enum path)(asked - 1) : PATH_EXCHANGE;
    return link->bandwidth > 0 ? path_fastest(price, link, bytes) : PATH_EXCHANGE;
}

int path_multiple(double bytes, int hosts) {
    const int most = MOST_CHUNKS / hosts < MOST_MULTIPLE ? MOST_CHUNKS / hosts : MOST_MULTIPLE;
    const double n = bytes / hosts / LEAST_CHUNK;
    return n < 1 || most < 1 ? 1 : n > most ? most : (int)n;
}
