/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/launched.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/host.h"
#include "cli/options.h"
#include "crew/head.h"
#include "launch/coordinate.h"
#include "launch/meeting.h"
#include "launch/membership.h"
#include "launch/siblings.h"
#include "profile/report.h"
#include "run/open.h"

static tri_status check(const struct launch *l, const struct given *g) {
    if (l->hosts)
        return base_fail(TRI_USAGE, "--hosts %s: %s has started %d processes already, one run "
                         "each; leave out --hosts, or %s", l->hosts, g->by, g->size, g->by);
    if (g->hosts > HOSTS_MOST)
        return base_fail(TRI_USAGE, "%s: %d hosts are more than %d", g->by, g->hosts, HOSTS_MOST);
    if (g->local_size > 1 && l->automatic)
        return base_fail(TRI_USAGE, "-n auto: %s has started %d processes on this host, which are "
                         "as many workers; leave out -n", g->by, g->local_size);
    if (g->local_size > 1 && l->workers && l->workers != g->local_size)
        return base_fail(TRI_USAGE, "-n %d: %s has started %d processes on this host, which are "
                         "as many workers; leave out -n, or start one process per host", l->workers,
                         g->by, g->local_size);
    if (*g->address && !given_is_local(g) && !l->key)
        return base_fail(TRI_USAGE, "hosts know each other by a key, which is lacking: --key FILE, "
                         "the same file on all, mounted for instance (`trireme ckpt key FILE` "
                         "makes one); `trireme run --hosts` gives it by ssh, and under mpirun and "
                         "srun it is in a file of --out");
    return TRI_OK;
}

/* What several workers cost, or gain, on this host. */
static void tell_cost(const char *directory, const struct given *g) {
    struct figures f = {0};
    struct report r;
    struct text said = {0};
    if (figures_read(directory, &f) || !(f.step > 0)) {
        figures_free(&f);
        return;
    }
    report_make(&f, &r);
    for (size_t i = 0; i < r.n; i++)
        if (!strcmp(r.finding[i].rule->name, "not-worth-it"))
            text_add(&said, "%s %s", r.finding[i].evidence.data, r.finding[i].remedy.data);
    if (!said.size) report_sentence(&r, &said);
    if (!said.failed)
        fprintf(stderr, "trireme: %s -n %d: %s\n", g->by, g->size, said.data);
    text_free(&said);
    report_free(&r);
    figures_free(&f);
}

static int join(const struct launch *l, const struct given *g) {
    char address[LINK_ADDRESS], name[HOSTS_NAME];
    uint8_t key[LINK_KEY];
    const double patience = l->start_timeout > 0 ? l->start_timeout : MEETING_SECONDS;
    struct join_options o = {.address = g->address, .key = l->key, .name = name, .ports = l->ports,
                             .patience = patience};
    bool has_key = false;
    base_format(name, sizeof name, "host%d", g->host);
    if (!*g->address) {
        meeting_name(name);
        if (meeting_find(g, l->out, patience, address, key, &has_key)) return cli_fail();
        o.address = address;
        if (!l->key && !has_key) {
            base_fail(TRI_USAGE, "the run's hosts have --key FILE, and this one lacks it");
            return cli_fail();
        }
        if (!l->key) o.secret = key;
    }
    const int code = membership_join(&o);
    if (code == AGENT_RESUMABLE && !*g->address) meeting_end(g, l->out); /* for all, perhaps */
    return code;
}

/* In the first process of a host. */
static int lead(const struct launch *l, const struct given *g) {
    int code;
    if (!given_is_local(g) && g->rank) return join(l, g);
    if (!given_is_local(g)) return coordinate(l);
    code = agent_run(l);
    if (!code && l->workers > 1 && l->out) tell_cost(l->out, g);
    return code;
}

/* What follows in whoever calls launched_run, or in a user's program, is done once per run. */
static _Noreturn void leave(int code) {
    fflush(NULL);
    _exit(code);
}

int launched_run(const struct launch *l, const struct given *g) {
    struct launch own = *l;
    struct siblings siblings;
    if (!g->by) return own.hosts ? coordinate(&own) : agent_run(&own);
    if (check(l, g)) /* those of mpirun and srun write to one terminal */
        return g->rank && !*g->address ? (int)base_last() : cli_fail();
    given_take();
    if (g->local_rank) leave(siblings_wait(g));
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* the launcher has gone: the run ends */
    own.given = g;
    if (g->workers && !own.workers) own.workers = g->workers;
    if (siblings_gather(g, &siblings)) return cli_fail();
    const int code = lead(&own, g);
    siblings_end(&siblings, code);
    if (g->rank) leave(code);
    return code;
}

/* ---- a program of the user's own ---- */

static bool is_command;

void launched_is_command(void) { is_command = true; }

void launched_opens(const tri_options *o) {
    struct given g;
    if (is_command || getenv(CREW_ENV_STORE) || visit_is_on()) return;
    if (given_read(false, &g)) leave(cli_fail());
    if (!g.by) return;
    static char text[HOST_COMMAND], *argv[HOST_WORDS + 1];
    if (!host_command(text, argv)) {
        base_fail(TRI_FAILED, "this program's command line cannot be read, or is too long");
        leave(cli_fail());
    }
    if (!given_is_local(&g)) {
        base_fail(TRI_USAGE, "%s has started %d processes of this program on several hosts: let it "
                  "start `trireme run -- %s` there", g.by, g.size, argv[0]);
        leave(cli_fail());
    }
    const struct launch l = {.out = o && o->out ? o->out : "run", .argv = argv,
                             .on_event = o ? o->on_event : NULL,
                             .threads = o && o->threads > 0 ? (int)o->threads : 0,
                             .program = LAUNCH_SELF, .title = program_invocation_short_name};
    fflush(NULL);
    leave(launched_run(&l, &g));
}
