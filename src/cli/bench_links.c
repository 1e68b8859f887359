/* SPDX-License-Identifier: Apache-2.0
 * trireme bench links: measures the ways between hosts, and keeps the result in a file. */
#include <stdio.h>
#include <stdlib.h>

#include "base/columns.h"
#include "cli/cli.h"
#include "launch/probes.h"

#define SECONDS 1.0 /* of each pair and direction */

struct own {
    struct launch launch;
    const char *save;
};

static const struct option_row rows[] = {
    {"--save", "FILE", "where to keep the result (default: the user's cache folder)", option_text,
     offsetof(struct own, save), USE_LINKS, .group = GROUP_HOSTS},
    {0},
};

/* Returns how many links have been measured; what cannot be is reported. */
static size_t measure_all(struct probes *p, struct link_speed *link) {
    size_t n = 0;
    for (int i = 0; i < p->n && !p->interrupted; i++)
        for (int k = 0; k < p->n && !p->interrupted; k++) {
            if (i == k) continue;
            if (!probes_measure(p, i, k, SECONDS, &link[n])) n++;
            else fprintf(stderr, "trireme: %s to %s: %s\n", p->host[i].name, p->host[k].name,
                         tri_message());
        }
    return n;
}

static tri_status print(const struct link_speed *link, size_t n) {
    struct text t = {0}, cells = {0};
    text_add(&cells, "from\tto\tms\tMB/s\ts/GB\t\n");
    for (const struct link_speed *l = link; l < link + n; l++)
        text_add(&cells, "%s\t%s\t%.3f\t%.1f\t%.2f\t\n", l->from, l->to, 1e3 * l->latency,
                 1e-6 * l->bandwidth, l->cpu);
    columns_add(&t, "llrrrl", &cells);
    return cli_print(&t);
}

static tri_status keep(const struct link_speed *link, size_t n, const char *save) {
    struct text path = {0};
    tri_status status = TRI_OK;
    if (save) text_add(&path, "%s", save);
    else if (!links_file(&path))
        status = base_fail(TRI_FAILED, "there is no folder for the result, neither $HOME nor "
                           "$XDG_CACHE_HOME: give --save FILE");
    if (!status) status = links_write(path.data, link, n);
    if (!status) printf("written to %s\n", path.data);
    text_free(&path);
    return status;
}

int cli_bench_links(int argc, char **argv) {
    struct own own = {0};
    static struct probes p;
    const struct option_set sets[] = {{launch_rows, &own.launch}, {rows, &own}, {0}};
    tri_status status = options_take(sets, USE_LINKS, false, &argc, argv);
    if (!status && argc > 2)
        status = base_fail(TRI_USAGE, "bench links: one word too many: '%s'", argv[2]);
    if (!status && !own.launch.hosts)
        status = base_fail(TRI_USAGE, "bench links lacks the hosts: trireme bench links --hosts "
                           "h0,h1");
    if (status) return cli_fail();
    size_t n = 0, all = 0;
    status = probes_open(&own.launch, &p);
    if (!status) status = probes_connect(&p);
    if (!status) all = (size_t)p.n * (size_t)(p.n - 1);
    struct link_speed *link = calloc(all + 1, sizeof *link);
    if (!status && link) n = measure_all(&p, link);
    if (!status && p.interrupted) status = base_fail(TRI_FAILED, "interrupted");
    if (!status && !n) status = base_fail(TRI_FAILED, "nothing could be measured: `trireme doctor "
                                          "--hosts NAMES` says why");
    probes_close(&p);
    if (!status) status = print(link, n);
    if (!status) status = keep(link, n, own.save);
    free(link);
    return status ? cli_fail() : n < all;
}
