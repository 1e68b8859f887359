/* SPDX-License-Identifier: Apache-2.0 */
#include "run/price_hosts.h"

#include "base/host.h"

tri_status price_hosts_find(const struct machine *m, const struct prices *p,
                            struct price_hosts *out) {
    tri_status status = TRI_OK;
    *out = (struct price_hosts){.most = (int)m->lanes};
    if (!m->hosts) return TRI_OK;
    if (m->hosts > 1 && !(p->link.bandwidth > 0))
        return base_fail(TRI_USAGE, "what hosts send to each other has no price, as their links "
                         "have not been measured: run `trireme bench links --hosts ...`");
    for (int k = 0; k < 2 && !status; k++) {
        struct dealt *d = &out->dealt[k];
        if (!m->tree[k].g) continue;
        status = dealt_make(m, k, d);
        out->operands[k] = transfers_operands(&d->tree->shape, d->hosts, d->begin, NULL, NULL);
    }
    const int *begin = out->dealt[1].begin;
    out->most = 0;
    for (int h = 0; h < m->hosts && !status; h++)
        if (begin[h + 1] - begin[h] > out->most) out->most = begin[h + 1] - begin[h];
    return status;
}

void price_hosts_step(const struct price_hosts *h, const struct machine *m, const struct prices *p,
                      struct step_hosts *to) {
    *to = (struct step_hosts){.n = m->hosts};
    if (!m->hosts) return;
    to->begin = h->dealt[1].begin;
    to->workers = m->weight;
    to->opening = m->hosts > 1 ? p->link.latency : 0;
}

/* Seconds of a processor of the host that sends and receives most. */
static double served(const struct path_price *p, const struct path_link *link, double bytes) {
    return p->most * bytes / p->chunks * link->cpu / 2e9;
}

bool price_hosts_phase(const struct price_hosts *h, const struct prices *p, int phase,
                       struct arena *a, struct step_lanes *to) {
    const struct dealt *d = &h->dealt[phase];
    const size_t size = (size_t)to->buckets * sizeof(double) + 1;
    if (!d->hosts) return true;
    to->transfers = arena_alloc(a, size);
    to->delays = arena_alloc(a, size);
    to->above = arena_alloc(a, size);
    if (!to->transfers || !to->delays || !to->above) return false;
    const int sums = h->operands[phase] - to->tree->n_tops;
    const int threads = (to->claimers < h->most ? to->claimers : h->most) * to->threads;
    const bool idle = host_cores() > threads; /* a core that has nothing else to do */
    for (int b = 0; b < to->buckets; b++) {
        to->transfers[b] = to->delays[b] = to->above[b] = 0;
        if (d->hosts < 2 || !dealt_moves(d, b)) continue;
        const enum path path = dealt_path(d, p->path, &p->link, b);
        to->transfers[b] = dealt_seconds(d, &p->link, b, path);
        if (!idle) to->delays[b] = served(&d->price[path], &p->link, dealt_bytes(d, b)) / threads;
        /* In an exchange each host makes them all, else each has a part. */
        to->above[b] = sums * to->sum[b] / (path == PATH_EXCHANGE ? 1 : d->hosts);
    }
    return true;
}
