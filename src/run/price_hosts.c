/* SPDX-License-Identifier: Apache-2.0 */
#include "run/price_hosts.h"

#include "base/host.h"

tri_status price_hosts_find(const struct machine *m, const struct prices *p,
                            struct price_hosts *out) {
    tri_status status = TRI_OK;
    *out = (struct price_hosts){.link = p->link, .path = p->path, .most = (int)m->lanes};
    if (!m->hosts) return TRI_OK;
    if (m->hosts > 1 && !(p->link.bandwidth > 0))
        return base_fail(TRI_USAGE, "what hosts send to each other has no price, as the links of "
                         "these hosts have not been measured, which `trireme bench links` does");
    for (int k = 0; k < 2 && !status; k++)
        if (m->tree[k].g) status = dealt_make(m, k, &out->dealt[k]);
    const int *begin = out->dealt[1].begin;
    out->most = 0;
    for (int h = 0; h < m->hosts && !status; h++)
        if (begin[h + 1] - begin[h] > out->most) out->most = begin[h + 1] - begin[h];
    return status;
}

void price_hosts_step(const struct price_hosts *h, const struct machine *m, int threads,
                      struct step_hosts *to) {
    *to = (struct step_hosts){.n = m->hosts};
    if (!m->hosts) return;
    to->begin = h->dealt[1].begin;
    to->workers = m->weight;
    to->busy = host_cores() <= threads;
    to->opening = m->hosts > 1 ? h->link.latency : 0;
}

/* Of the host that sends and receives most. */
static double served(const struct path_price *p, const struct path_link *link, double bytes) {
    return p->most * bytes / p->chunks * link->cpu / 2e9;
}

bool price_hosts_phase(const struct price_hosts *h, int phase, struct arena *a,
                       struct step_lanes *to) {
    const struct dealt *d = &h->dealt[phase];
    const size_t size = (size_t)to->buckets * sizeof(double) + 1;
    if (!d->hosts) return true;
    to->moves = arena_alloc(a, size);
    to->serves = arena_alloc(a, size);
    to->above = arena_alloc(a, size);
    if (!to->moves || !to->serves || !to->above) return false;
    const int sums = transfers_operands(to->tree, d->hosts, d->begin, NULL, NULL) -
                     to->tree->n_tops;
    for (int b = 0; b < to->buckets; b++) {
        to->moves[b] = to->serves[b] = to->above[b] = 0;
        if (d->hosts < 2 || !buckets_is_summed(&d->tree->buckets, b)) continue;
        const enum path path = dealt_path(d, h->path, &h->link, b);
        to->moves[b] = dealt_seconds(d, &h->link, b, path);
        to->serves[b] = served(&d->price[path], &h->link, dealt_bytes(d, b));
        /* In an exchange each host makes them all, else each has a part. */
        to->above[b] = sums * to->sum[b] / (path == PATH_EXCHANGE ? 1 : d->hosts);
    }
    return true;
}
