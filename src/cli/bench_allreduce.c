/* SPDX-License-Identifier: Apache-2.0
 * trireme bench allreduce: measures sums over hosts, by all paths; or between the slots of threads,
 * on one host. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/columns.h"
#include "base/host.h"
#include "cli/cli.h"
#include "ferry/sums.h"
#include "launch/probe.h"
#include "launch/probes.h"
#include "machine/team.h"
#include "plan/path_choice.h"

#define MOST_SIZES 32
#define MOST_BYTES (INT64_C(1) << 32)
#define LINK_SECONDS 0.3 /* of each link that is measured */
#define ALL_PAIRS 6      /* hosts, up to which all links are measured */
#define SECONDS 0.5      /* of the sums of a row, about; but at least */
#define LEAST_SUMS 5
#define SLOW 10          /* so many times the expected time is too long */

#define ALL_PATHS (-1)   /* of launch.path: it is not given */

struct own {
    struct launch launch;
    const char *save;
    int64_t size[MOST_SIZES]; /* bytes */
    int sizes;
};

static const char *sizes(void *at, const char *value) { /* struct own */
    struct own *own = at;
    char text[32];
    for (own->sizes = 0; own->sizes < MOST_SIZES; own->sizes++) {
        int64_t *bytes = &own->size[own->sizes];
        const size_t n = strcspn(value, ",");
        base_format(text, sizeof text, "%.*s", (int)n, value);
        if (n >= sizeof text || option_size(bytes, text) || *bytes < 4 || *bytes > MOST_BYTES)
            return "sizes from 4 to 4G: 1K,64K,1M";
        *bytes -= *bytes % 4;
        if (!value[n]) return own->sizes++, NULL;
        value += n + 1;
    }
    return "at most 32 sizes";
}

static const struct option_row rows[] = {
    {"--sizes", "SIZES", "what is summed, in bytes (default: 1K,64K,1M,4M,64M)", sizes, 0,
     USE_SUMS, .group = GROUP_HOSTS},
    {"--save", "FILE", "also write the result to a file, a line for each row", option_text,
     offsetof(struct own, save), USE_SUMS, .group = GROUP_HOSTS},
    {0},
};

/* ---- what is printed ---- */

struct report {
    struct text cells, lines;
    int hosts;
};

static void begin_report(struct report *r, int hosts, const char *titles) {
    char day[DATE_TEXT];
    *r = (struct report){.hosts = hosts};
    text_add(&r->cells, "%s\n", titles);
    text_add(&r->lines, "# trireme bench allreduce, %s: hosts, path (or \"slots\"), bytes; "
             "seconds; bytes on the\n# link, their share of the line rate, seconds of processor "
             "time per GB; 1 if `auto` takes the path\n", base_date_text(day));
}

static void add_size(struct text *cells, int64_t bytes) {
    static const char units[] = " KMG";
    int u = 0;
    for (; bytes >= 1024 && !(bytes % 1024) && units[u + 1]; u++) bytes /= 1024;
    text_add(cells, "%lld%s%c\t", (long long)bytes, u ? " " : "", units[u]);
}

static tri_status end_report(struct report *r, const char *sides, const char *save) {
    struct text t = {0};
    columns_add(&t, sides, &r->cells);
    tri_status status = cli_print(&t);
    if (!status && save) status = text_write_file(&r->lines, save, TRI_OK);
    else text_free(&r->lines);
    if (!status && save) printf("written to %s\n", save);
    return status;
}

/* ---- over hosts ---- */

/* A lane on each host, as probes sum it. */
struct lanes {
    struct lane_tree tree;
    int begin[HOSTS_MOST + 1];
    struct transfer_share share;
    struct path_price price[PATHS];
};

static tri_status make_lanes(int hosts, struct lanes *l) {
    for (int h = 0; h <= hosts; h++) l->begin[h] = h;
    l->share = (struct transfer_share){.hosts = hosts, .begin = l->begin, .buckets = 1};
    tri_status status = lane_tree_make(hosts, 0, &l->tree);
    return status ? status : path_prices(&l->tree, &l->share, l->price);
}

/* Of what has been measured: the longest latency, the lowest bandwidth, the most work. */
static tri_status slowest_link(struct probes *p, struct path_link *slowest) {
    struct link_speed one;
    *slowest = (struct path_link){0};
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->n; k++) {
            if (p->n <= ALL_PAIRS ? i == k : k != (i + 1) % p->n) continue;
            tri_status status = probes_measure(p, i, k, LINK_SECONDS, &one);
            if (status && p->interrupted) return status;
            if (status) return base_fail(TRI_FAILED, "%s to %s: %s", p->host[i].name,
                                         p->host[k].name, tri_message());
            const double slow = slowest->bandwidth;
            slowest->bandwidth = slow > 0 ? fmin(slow, one.bandwidth) : one.bandwidth;
            slowest->latency = fmax(slowest->latency, one.latency);
            slowest->cpu = fmax(slowest->cpu, one.cpu);
        }
    printf("the slowest link: %.3f ms, %.1f MB/s, %.2f s of processors per GB\n",
           1e3 * slowest->latency, 1e-6 * slowest->bandwidth, slowest->cpu);
    fflush(stdout);
    return TRI_OK;
}

static tri_status add_row(struct probes *p, int64_t bytes, enum path path, double expected,
                          const struct path_link *link, bool automatic, struct report *r) {
    const double n = fmin(PROBE_MOST_SUMS, fmax(LEAST_SUMS, SECONDS / expected));
    const struct probes_sums of = {path, bytes, (int)n, SLOW * (n + 3) * expected};
    struct sum_speed is;
    tri_status status = probes_sum(p, &of, &is);
    if (status) return status;
    const double share = is.bytes / is.seconds / link->bandwidth;
    add_size(&r->cells, bytes);
    text_add(&r->cells, "%s\t%.3f\t%.3f\t%.0f %%\t%.2f\t%s\t\n", path_name(path),
             1e3 * is.seconds, 1e-6 * is.bytes, 100 * share, is.cpu, automatic ? "auto" : "");
    text_add(&r->lines, "sum %d %s %lld %.6g %.0f %.4g %.4g %d\n", r->hosts, path_name(path),
             (long long)bytes, is.seconds, is.bytes, share, is.cpu, automatic);
    return TRI_OK;
}

static tri_status add_size_rows(struct probes *p, const struct own *own, const struct lanes *l,
                                const struct path_link *link, int64_t bytes, struct report *r) {
    const int asked = own->launch.path;
    const enum path chosen = path_fastest(l->price, link, (double)bytes);
    tri_status status = TRI_OK;
    for (int k = 0; k < PATHS && !status; k++) {
        const double seconds = path_seconds(&l->price[k], link, (double)bytes);
        const bool automatic = k == (int)chosen,
                   wanted = asked == ALL_PATHS ? seconds >= 0
                            : !asked           ? automatic : k + 1 == asked;
        if (wanted) status = add_row(p, bytes, (enum path)k, seconds, link, automatic, r);
    }
    return status;
}

static tri_status over_hosts(const struct own *own) {
    static struct probes p;
    static struct lanes l;
    struct path_link link;
    struct report r;
    tri_status status = probes_open(&own->launch, &p);
    for (int i = 0; i < own->sizes; i++)
        if (own->size[i] > p.most) p.most = own->size[i];
    if (!status && p.n < 2)
        status = base_fail(TRI_USAGE, "bench allreduce sums over several hosts: --hosts h0,h1; or "
                           "without --hosts over threads");
    if (!status) status = launch_check_path(&own->launch, p.n);
    if (!status) status = probes_connect(&p);
    if (!status) status = slowest_link(&p, &link);
    if (!status) status = make_lanes(p.n, &l);
    begin_report(&r, p.n, "size\tpath\tms\tMB\tof line\ts/GB\t\t");
    for (int i = 0; i < own->sizes && !status; i++)
        status = add_size_rows(&p, own, &l, &link, own->size[i], &r);
    probes_close(&p);
    lane_tree_free(&l.tree);
    if (!status) return end_report(&r, "rlrrrrll", own->save);
    text_free(&r.cells);
    text_free(&r.lines);
    return status;
}

/* ---- between slots ---- */

struct slots {
    struct sums *sums;
    struct team *team;
    uint32_t step, set;
};

static void put(void *at, int thread) {
    struct slots *s = at;
    sums_put(s->sums, thread, s->set);
}

static void publish(void *at, int thread) {
    struct slots *s = at;
    sums_publish(s->sums, thread);
}

static double cpu_now(void) { return (double)clock() / CLOCKS_PER_SEC; }

static tri_status add_slots(struct slots *s, int threads, int64_t bytes, struct report *r) {
    const struct sums_ask ask = {.hosts = 1, .threads = threads,
                                 .numbers = (size_t)bytes / sizeof(float)};
    double time[PROBE_MOST_SUMS], cpu = 0;
    const double begin = base_seconds();
    int n = 0;
    tri_status status = sums_open(&ask, &s->sums);
    for (; !status && n < PROBE_MOST_SUMS && (n < LEAST_SUMS || base_seconds() < begin + SECONDS);
         n++) {
        s->set = (uint32_t)n;
        sums_begin(s->sums, ++s->step);
        team_run(s->team, put, s);
        const double before = base_seconds(), used = cpu_now();
        team_run(s->team, publish, s);
        time[n] = base_seconds() - before;
        cpu += cpu_now() - used;
        if (!n || n + 1 == LEAST_SUMS) status = sums_check(s->sums, s->set);
    }
    sums_close(s->sums);
    if (status) return status;
    qsort(time, (size_t)n, sizeof *time, base_by_size);
    const double sum = time[n / 2], all = (double)bytes * (threads - 1), per = cpu / n / all * 1e9;
    add_size(&r->cells, bytes);
    text_add(&r->cells, "%d\t%.3f\t%.2f\t%.2f\t\n", threads, 1e3 * sum, 1e-9 * all / sum, per);
    text_add(&r->lines, "sum 1 slots %lld %.6g 0 0 %.4g 0\n", (long long)bytes, sum, per);
    return TRI_OK;
}

static tri_status between_slots(const struct own *own) {
    const int threads = host_cores() < 2 ? 2 : host_cores();
    struct slots s = {0};
    struct report r;
    tri_status status = team_make(threads, &s.team);
    begin_report(&r, 1, "size\tslots\tms\tGB/s\ts/GB\t");
    for (int i = 0; i < own->sizes && !status; i++)
        status = add_slots(&s, threads, own->size[i], &r);
    team_free(s.team);
    if (!status) return end_report(&r, "rrrrrl", own->save);
    text_free(&r.cells);
    text_free(&r.lines);
    return status;
}

int cli_bench_allreduce(int argc, char **argv) {
    struct own own = {.launch.path = ALL_PATHS};
    const struct option_set sets[] = {{rows, &own}, {launch_rows, &own.launch}, {0}};
    const struct launch *l = &own.launch;
    tri_status status = TRI_OK;
    CHECK(!sizes(&own, "1K,64K,1M,4M,64M"));
    if (options_take(sets, USE_SUMS, false, &argc, argv)) return cli_fail();
    if (argc > 2)
        status = base_fail(TRI_USAGE, "bench allreduce: one word too many: '%s'", argv[2]);
    else if (!l->hosts && (l->path != ALL_PATHS || l->wire_open || l->launcher || l->interface ||
                           l->ports))
        status = base_fail(TRI_USAGE, "without --hosts NAMES, bench allreduce takes --sizes and "
                           "--save alone");
    if (!status) status = l->hosts ? over_hosts(&own) : between_slots(&own);
    return status ? cli_fail() : 0;
}
