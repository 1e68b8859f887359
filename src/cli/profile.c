/* SPDX-License-Identifier: Apache-2.0
 * trireme profile: records some steps of a run of workers that is under way; makes the trace and
 * the tables of a profile. */
#include "cli/profile.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "launch/look.h"
#include "machine/rate.h"
#include "profile/derive.h"
#include "profile/report.h"
#include "profile/study.h"

struct own {
    int64_t steps, most;
    const char *name;
};

#define LOOK_AGAIN 10 /* milliseconds */

/* ---- asking a run ---- */

/* Two cannot ask at the same time. One that has died asks no more. */
static bool take_turn(struct crew_profile *p) {
    int by = 0;
    while (!atomic_compare_exchange_strong(&p->by, &by, (int)getpid()))
        if (by && (!kill(by, 0) || errno != ESRCH)) return false;
    return true;
}

static tri_status ask(struct look *l, const struct own *own) {
    struct crew_profile *p = &l->head->profile;
    if (!take_turn(p) || atomic_load(&p->state) != PROFILE_NONE)
        return base_fail(TRI_FAILED, "a profile of this run is being recorded, or waits for its "
                         "first step; try again when it is over");
    atomic_store(&p->first, 0);
    atomic_store(&p->last, (uint64_t)own->steps);
    atomic_store(&p->most, own->most ? own->most : (int64_t)1 << 30);
    atomic_store(&p->state, PROFILE_WANTED);
    crew_notify(l->head);
    return TRI_OK;
}

/* Waits until the agent has written all of it. */
static tri_status await(struct look *l, uint32_t before) {
    const struct crew_profile *p = &l->head->profile;
    while (atomic_load(&p->over) == before) {
        if (!look_alive(l)) {
            if (*p->directory) return TRI_OK; /* what has been recorded is there */
            return base_fail(TRI_FAILED, "the run has ended, and nothing was recorded");
        }
        nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN * 1000000}, NULL);
    }
    if (!*p->directory) return base_fail(TRI_FAILED, "nothing was recorded: %s", p->error);
    return TRI_OK;
}

static tri_status record(const char *directory, const struct own *own) {
    struct look l;
    tri_status status = look_open(directory, true, &l);
    if (status) return status;
    struct crew_profile *p = &l.head->profile;
    const uint32_t before = atomic_load(&p->over);
    status = ask(&l, own);
    if (!status) {
        status = await(&l, before);
        atomic_store(&p->by, 0);
    }
    look_close(&l);
    return status;
}

/* ---- what follows from it ---- */

/* What this machine could do, once. It is that of the run, if it is one of its hosts. */
static tri_status add_rates(const char *directory, const char *name, struct profile *p) {
    char path[4200];
    const char *folder = p->folder;
    base_format(path, sizeof path, "%s/rates.json", folder);
    if (p->n_hosts != 1 || !access(path, F_OK)) return TRI_OK;
    struct dev *dev = dev_find("cpu");
    tri_status status = dev ? dev_open(dev) : base_last();
    if (!status) status = rate_write(dev, folder);
    if (status) return status;
    profile_free(p);
    return profile_read(directory, name, p);
}

static tri_status write_report(const char *directory, const struct profile *p) {
    struct figures f = {0};
    struct report r;
    struct text text = {0};
    char path[4200];
    base_format(path, sizeof path, "%s/report.txt", p->folder);
    tri_status status = figures_read(directory, &f);
    if (!status) {
        f.profile = p;
        report_make(&f, &r);
        report_text(&r, &text);
        report_free(&r);
    }
    figures_free(&f);
    FILE *file = status || text.failed ? NULL : fopen(path, "we");
    if (!status && (!file || fputs(text.data, file) < 0))
        status = base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
    if (file) fclose(file);
    text_free(&text);
    return status;
}

tri_status profile_make_tables(const char *directory, const char *name, struct text *out) {
    struct profile p;
    tri_status status = profile_read(directory, name, &p);
    if (!status) status = add_rates(directory, name, &p);
    if (!status) status = profile_derive(&p);
    if (!status) status = study_make(&p);
    if (!status) status = write_report(directory, &p);
    if (!status) {
        text_add(out, "%s: steps %lld to %lld, %zu spans of %d threads; trace.json, ops.csv, "
                 "steps.csv, comm.csv, memory.csv, report.txt\n", p.folder, (long long)p.first,
                 (long long)p.last, p.spans, p.n_threads);
        if (p.lost) text_add(out, "%lld spans were lost\n", (long long)p.lost);
        if (p.cut || p.damaged)
            text_add(out, "%lld files end early, %lld parts are damaged\n", (long long)p.cut,
                     (long long)p.damaged);
    }
    profile_free(&p);
    return status;
}

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {0};
    struct cli_arguments a;
    struct text out = {0};
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    tri_status status = TRI_OK;
    if (own.name && own.steps)
        status = base_fail(TRI_USAGE, "--steps records a new profile, --name is one that there is: "
                           "give one");
    if (!status && own.steps) status = record(a.words[0], &own);
    if (!status) status = profile_make_tables(a.words[0], own.name, &out);
    if (status) text_free(&out);
    return status || cli_print(&out) ? cli_fail() : TRI_OK;
}

static const struct option_row rows[] = {
    {"--steps", "N", "record the next N steps of the run, which goes on; without it, the latest "
     "profile of DIR is read",
     option_count, offsetof(struct own, steps), USE_ALL, .group = GROUP_NONE},
    {"--profile-most", "BYTES", "the most that the profile may take (default: 1G)", option_size,
     offsetof(struct own, most), USE_ALL, .group = GROUP_NONE},
    {"--name", "N", "the profile DIR/profile/N instead of the latest", option_text,
     offsetof(struct own, name), USE_ALL, .group = GROUP_NONE},
    {0},
};

const struct command command_profile = {
    .name = "profile",
    .arguments = "DIR [--steps N]",
    .help = "record steps of a run of workers; make trace.json and tables of a profile",
    .takes_words = "DIR",
    .rows = rows,
    .run = run,
};
