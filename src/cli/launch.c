/* SPDX-License-Identifier: Apache-2.0
 * What `train` and `run` need to start workers. */
#include "cli/launch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crew/head.h"
#include "launch/host_list.h"
#include "launch/links.h"
#include "plan/plan_file.h"

#define MOST_LEASE 86400 /* seconds */

_Static_assert(PLAN_MOST_WORKERS == CREW_MOST_WORKERS, "a plan may ask for all that there can be");

/* A plan's workers, unless the command line has them. One is this process. *threads: the plan's. */
static tri_status take_plan(struct launch *l, const tri_options *o, int64_t *threads) {
    *threads = 0;
    const struct plan_file *p = o->plan ? plan_read(o->plan, false) : NULL;
    if (!p) return o->plan ? base_last() : TRI_OK;
    int64_t workers = plan_number(p, PLAN_WORKERS);
    *threads = plan_number(p, PLAN_THREADS);
    if (!l->workers && (workers > 1 || (workers && l->hosts))) l->workers = (int)workers;
    return TRI_OK;
}

tri_status cli_check_launch(struct launch *l, const tri_options *o) {
    int64_t planned;
    tri_status status = take_plan(l, o, &planned);
    if (status) return status;
    const bool several = l->workers || l->hosts;
    if (several && o->threads && l->threads && o->threads != planned && o->threads != l->threads)
        return base_fail(TRI_USAGE, "--threads %lld and --threads-per-worker %d: with -n or "
                         "--hosts both set the threads of each worker; give one",
                         (long long)o->threads, l->threads);
    if (several && o->threads && !(l->threads && o->threads == planned))
        l->threads = o->threads < INT_MAX ? (int)o->threads : INT_MAX;
    if (l->hosts && l->automatic)
        return base_fail(TRI_USAGE, "-n auto chooses among the workers of one machine; with "
                         "--hosts give -n N, or NAME:N for each host; `plan find` without -n "
                         "searches their number");
    if (l->lease > MOST_LEASE)
        return base_fail(TRI_USAGE, "--lease %g: the most is %d s, a day", l->lease, MOST_LEASE);
    if (l->hosts || l->given || cli_is_worker()) return TRI_OK;
    if (l->launcher || l->key || l->lease > 0 || l->interface || l->ports || l->chdir || l->n_env ||
        l->link || l->no_overlap || l->wire_open || l->path)
        return base_fail(TRI_USAGE, "--launch, --key, --lease, --interface, --port, --link, "
                         "--overlap, --wire-open, --path, --chdir and --env are for several hosts: "
                         "add --hosts NAMES");
    if (l->workers) return TRI_OK;
    if (l->most || l->spares || l->threads || l->audit > 0 || l->stall_timeout > 0 ||
        l->start_timeout > 0 || l->grace > 0 || l->no_kill)
        return base_fail(TRI_USAGE, "--most, --spares, --threads-per-worker, --audit, "
                         "--stall-timeout, --start-timeout, --grace and --no-kill are for several "
                         "workers: add -n N");
    return TRI_OK;
}

tri_status cli_size(const struct launch *l, bool searched, struct crew_size *size,
                    struct path_link *link) {
    struct launch own = *l;
    struct host_list list = {0};
    struct path_link measured = {0};
    const int others = l->workers || searched ? l->workers : 1; /* of hosts without a number */
    tri_status status = l->hosts ? host_list_read(l->hosts, &list) : TRI_OK;
    if (list.n) own.workers = 0;
    for (int i = 0; i < list.n; i++) {
        const int workers = list.host[i].workers ? list.host[i].workers : others;
        if (workers > own.workers) own.workers = workers;
    }
    if (!searched) launch_settle(&own);
    *size = launch_size(&own);
    size->hosts = list.n;
    for (int i = 0; i < list.n; i++)
        size->weight[i] = list.host[i].workers ? list.host[i].workers : others;
    if (!status && list.n) status = launch_check_path(l, list.n);
    if (!status && (link ? list.n > 1 : list.n > 2 && !l->path))
        status = links_slowest(&list, &measured);
    /* With links that have been measured, sums may take other paths. */
    size->paths = l->path ? launch_has_paths(l) : list.n > 2 && measured.bandwidth > 0;
    if (link) *link = measured;
    return status;
}

bool cli_is_worker(void) { return getenv(CREW_ENV_STORE) != NULL; }

/* ---- of run ---- */

static const char *only_auto(void *at, const char *value) { /* bool */
    *(bool *)at = !strcmp(value, "auto");
    return *(bool *)at ? NULL : "auto; other ways are options of the program";
}

const struct option_row launch_words_rows[] = {
    {"--parallel", "auto", "find the plan of the first network that the program opens, write it to "
     "DIR/plan, and run it so", only_auto, offsetof(struct launch_words, automatic), USE_ALL,
     .group = GROUP_MESH},
    {"--out", "DIR", "directory for agent.log and the output of the workers (default: run)",
     option_text, offsetof(struct launch_words, out), USE_ALL, .group = GROUP_OUTPUT},
    {"--on-event", "CMD", ON_EVENT_HELP, option_text,
     offsetof(struct launch_words, launch.on_event), USE_ALL, .group = GROUP_OUTPUT},
    {0},
};

tri_status launch_take(int *argc, char **argv, struct launch_words *own) {
    const struct option_set sets[] = {{launch_rows, &own->launch}, {launch_words_rows, own}, {0}};
    *own = (struct launch_words){.out = "run"};
    tri_status status = options_take(sets, USE_ALL, false, argc, argv);
    own->launch.out = own->out;
    return status;
}
