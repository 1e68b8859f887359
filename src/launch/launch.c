/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/launch.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/host.h"
#include "launch/given.h"
#include "plan/transfer.h"

void launch_settle(struct launch *l) {
    int cores = host_cores();
    if (l->automatic && !l->threads) l->threads = 1;
    if (l->automatic) l->workers = cores / l->threads;
    if (l->automatic && l->most && l->workers > l->most) l->workers = l->most;
    if (l->workers < 1) l->workers = 1;
    if (!l->threads) l->threads = cores / l->workers;
    if (l->threads < 1) l->threads = 1;
    if (l->stall_timeout <= 0) l->stall_timeout = 10;
    if (l->start_timeout <= 0) l->start_timeout = 300;
    if (l->grace <= 0) l->grace = 30;
}

struct crew_size launch_size(const struct launch *l) {
    return (struct crew_size){.workers = l->workers, .spares = l->spares, .threads = l->threads,
                              .most = l->most, .audit = l->audit};
}

bool launch_has_paths(const struct launch *l) {
    return l->path ? l->path != 1 + PATH_EXCHANGE : l->path_bandwidth > 0;
}

tri_status launch_check_path(const struct launch *l, int hosts) {
    if (l->path <= 0 || path_allows((enum path)(l->path - 1), hosts)) return TRI_OK;
    return base_fail(TRI_USAGE, "--path %s: there is none of %d host(s); %s", path_words[l->path],
                     hosts, hosts > 1 ? "--path ring is" : "one host sums alone");
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

int launch_block_signals(sigset_t *old) {
    struct sigaction now;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    /* A signalfd would receive a signal that is ignored. */
    for (size_t i = 0; i < COUNT(ends); i++)
        if (!sigaction(ends[i], NULL, &now) && now.sa_handler != SIG_IGN) sigaddset(&set, ends[i]);
    sigprocmask(SIG_BLOCK, &set, old);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void launch_leave_signals(const sigset_t *old) {
    for (size_t i = 0; i < COUNT(ends) && given_is_taken(); i++) signal(ends[i], SIG_IGN);
    sigprocmask(SIG_SETMASK, old, NULL);
    setpgid(0, 0);
}

enum form { WHOLE, REAL, FLAG };

static const struct number_row {
    const char *name;
    size_t at;
    enum form form;
    double most;
} rows[] = {
#define ROW(name, form, most) {#name, offsetof(struct launch, name), form, most}
    /* The first is each host's own. */
    ROW(workers, WHOLE, CREW_MOST_WORKERS), ROW(most, WHOLE, CREW_MOST_WORKERS),
    ROW(spares, WHOLE, CREW_MOST_WORKERS), ROW(threads, WHOLE, CREW_MOST_THREADS),
    ROW(stall_timeout, REAL, 1e9), ROW(start_timeout, REAL, 1e9), ROW(grace, REAL, 1e9),
    ROW(audit, REAL, 1), ROW(no_kill, FLAG, 1), ROW(ends_with_run, FLAG, 1),
    ROW(link, WHOLE, 1), ROW(no_overlap, FLAG, 1), ROW(wire_open, FLAG, 1),
    ROW(path, WHOLE, PATHS), ROW(path_latency, REAL, 1e9), ROW(path_bandwidth, REAL, 1e18),
    ROW(path_cpu, REAL, 1e9),
#undef ROW
};
_Static_assert(COUNT(rows) <= LAUNCH_NUMBERS, "there is room for all");

int launch_numbers_put(const struct launch *l, struct host_number *to) {
    for (size_t i = 1; i < COUNT(rows); i++) {
        const void *at = (const char *)l + rows[i].at;
        const double value = rows[i].form == WHOLE  ? *(const int *)at
                             : rows[i].form == REAL ? *(const double *)at
                                                    : *(const bool *)at;
        to[i - 1] = (struct host_number){rows[i].name, value};
    }
    return (int)COUNT(rows) - 1;
}

tri_status launch_numbers_take(const struct host_number *from, int n, struct launch *l) {
    for (int k = 0; k < n; k++) {
        size_t i = 0;
        while (i < COUNT(rows) && strcmp(rows[i].name, from[k].name)) i++;
        const double value = from[k].value;
        if (i == COUNT(rows) || !(value >= 0 && value <= rows[i].most) ||
            (rows[i].form != REAL && value != floor(value)))
            return base_fail(TRI_FAILED, "the coordinator wants %s to be %g", from[k].name, value);
        void *at = (char *)l + rows[i].at;
        if (rows[i].form == WHOLE) *(int *)at = (int)value;
        else if (rows[i].form == REAL) *(double *)at = value;
        else *(bool *)at = value > 0;
    }
    return TRI_OK;
}

tri_status launch_ports(const char *text, int port[2]) {
    int n = 0;
    port[0] = port[1] = 0;
    if (!text) return TRI_OK;
    const int found = sscanf(text, "%d%n-%d%n", &port[0], &n, &port[1], &n);
    if (found == 1) port[1] = port[0];
    if (found < 1 || text[n] || port[0] < 1 || port[1] < port[0] || port[1] > 65535)
        return base_fail(TRI_USAGE, "--port %s: two ports, as 7000-7063, were expected", text);
    return TRI_OK;
}
