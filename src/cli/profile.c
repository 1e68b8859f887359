/* SPDX-License-Identifier: Apache-2.0
 * trireme profile: records some steps of a run of workers that is under way; makes the trace and
 * the tables of a profile. */
#include "cli/profile.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "launch/look.h"
#include "machine/rate.h"
#include "observe/run_file.h"
#include "profile/derive.h"
#include "profile/report.h"
#include "run/profiler.h"

struct own {
    int64_t steps, most;
    const char *name;
};

#define LOOK_AGAIN 10 /* milliseconds */

/* ---- asking a run ---- */

static tri_status ask(struct look *l, const struct own *own) {
    const int64_t most = own->most ? own->most : PROFILER_MOST;
    if (!crew_ask_profile(l->head, 0, (uint64_t)own->steps, most))
        return base_fail(TRI_FAILED, "a profile of this run is being recorded, or waits for its "
                         "first step; try again when it is over");
    crew_notify(l->head);
    return TRI_OK;
}

/* Once: which steps it waits for. */
static void tell(const struct crew_profile *p, bool *told) {
    if (*told || atomic_load(&p->state) != PROFILE_RECORDS) return;
    fprintf(stderr, "trireme: records steps %llu to %llu\n",
            (unsigned long long)atomic_load(&p->first), (unsigned long long)atomic_load(&p->last));
    *told = true;
}

/* Waits until the agent has written all of it. */
static tri_status await(struct look *l, uint32_t before) {
    const struct crew_profile *p = &l->head->profile;
    bool told = false;
    while (atomic_load(&p->over) == before) {
        tell(p, &told);
        if (!look_alive(l)) {
            if (*p->directory) return TRI_OK; /* what has been recorded is there */
            return base_fail(TRI_FAILED, "the run has ended, and nothing was recorded");
        }
        nanosleep(&(struct timespec){.tv_nsec = LOOK_AGAIN * 1000000}, NULL);
    }
    if (!*p->directory) return base_fail(TRI_FAILED, "nothing was recorded: %s", p->error);
    return TRI_OK;
}

static tri_status record(const char *directory, const struct own *own, char name[64]) {
    struct look l;
    tri_status status = look_open(directory, true, &l);
    if (status) return status;
    struct crew_profile *p = &l.head->profile;
    const uint32_t before = atomic_load(&p->over);
    status = ask(&l, own);
    if (!status) {
        status = await(&l, before);
        if (!status) base_format(name, 64, "%s", strrchr(p->directory, '/') + 1);
    }
    look_close(&l);
    return status;
}

/* ---- what follows from it ---- */

/* Whether the run has ended, and was on this machine. */
static bool is_over_here(const char *directory) {
    char path[4200], own[256] = "";
    struct run_read r;
    base_format(path, sizeof path, "%s/run.json", directory);
    if (access(path, F_OK) || run_file_read(path, &r)) return false;
    const struct run_entry *last = r.n_entries ? &r.entry[r.n_entries - 1] : NULL;
    gethostname(own, sizeof own - 1);
    const bool here = last && !strcmp(last->host, own) && run_file_state(last) != RUN_GOES_ON &&
                      run_file_state(last) != RUN_GOES_ON_OR_KILLED;
    run_file_free(&r);
    return here;
}

/* What this machine could do, once, and never beside the run. */
static tri_status add_rates(const char *directory, struct profile *p, bool *known) {
    char path[4200];
    const char *folder = p->folder;
    base_format(path, sizeof path, "%s/rates.json", folder);
    *known = !access(path, F_OK);
    if (*known || !is_over_here(directory)) return TRI_OK;
    struct dev *dev = dev_find("cpu");
    tri_status status = dev ? dev_open(dev) : base_last();
    if (!status) status = rate_write(dev, folder);
    if (status) return status;
    *known = true;
    const char *name = strrchr(folder, '/') + 1;
    char kept[64];
    base_format(kept, sizeof kept, "%s", name);
    profile_free(p);
    return profile_read(directory, kept, p);
}

static tri_status write_report(const char *directory, const struct profile *p) {
    struct figures f = {0};
    struct report r;
    struct text text = {0};
    tri_status status = figures_read(directory, &f);
    if (!status) {
        f.profile = p;
        report_make(&f, &r);
        report_text(&r, &text);
        report_free(&r);
    }
    figures_free(&f);
    return text_write(&text, p->folder, "report.txt", status);
}

static void add_missing(struct text *out, int64_t n, const char *what) {
    if (n) text_add(out, "%s: %lld\n", what, (long long)n);
}

tri_status profile_make_tables(const char *directory, const char *name, struct text *out) {
    struct profile p;
    bool known = false;
    tri_status status = profile_read(directory, name, &p);
    if (!status) status = add_rates(directory, &p, &known);
    if (!status) status = profile_derive(&p);
    if (!status) status = write_report(directory, &p);
    if (!status) {
        text_add(out, "%s: step%s %lld", p.folder, p.last > p.first ? "s" : "",
                 (long long)p.first);
        if (p.last > p.first) text_add(out, " to %lld", (long long)p.last);
        text_add(out, ", %zu span(s) of %d thread(s); trace.json, ops.csv, steps.csv, comm.csv, "
                 "buckets.csv, memory.csv, report.txt\n", p.spans, p.n_threads);
        add_missing(out, p.lost, "spans that were lost");
        add_missing(out, p.cut, "files that end early");
        add_missing(out, p.damaged, "damaged parts");
        if (!known)
            text_add(out, "the roofline is not known: after the run's end, `trireme profile %s` on "
                     "its machine adds it\n", directory);
    }
    profile_free(&p);
    return status;
}

/* DIR/profile/10, or 10.1, ...: the last of those that begin there. */
void profile_last_of(const char *directory, int64_t first, char name[64]) {
    char path[4200];
    base_format(name, 64, "%lld", (long long)first);
    for (int i = 1;; i++) {
        base_format(path, sizeof path, "%s/profile/%lld.%d", directory, (long long)first, i);
        if (access(path, F_OK)) return;
        base_format(name, 64, "%lld.%d", (long long)first, i);
    }
}

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {0};
    struct cli_arguments a;
    struct text out = {0};
    char recorded[64];
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    tri_status status = TRI_OK;
    if (own.name && own.steps)
        status = base_fail(TRI_USAGE, "--steps records a new profile, --name is one that there is: "
                           "give one");
    else if (own.most && !own.steps)
        status = base_fail(TRI_USAGE, "--profile-most is for a new profile: --steps N");
    if (!status && own.steps) status = record(a.words[0], &own, recorded);
    if (!status)
        status = profile_make_tables(a.words[0], own.steps ? recorded : own.name, &out);
    if (status) text_free(&out);
    return status || cli_print(&out) ? cli_fail() : TRI_OK;
}

static const struct option_row rows[] = {
    {"--steps", "N", "record the next N steps of the run, which goes on; without it, the latest "
     "profile of DIR is read", OWN(option_count, steps)},
    {"--profile-most", "BYTES", "the most that the profile may take (default: 1G)",
     OWN(option_size, most)},
    {"--name", "N", "the profile DIR/profile/N instead of the latest", OWN(option_text, name)},
    {0},
};

const struct command command_profile = {
    .name = "profile",
    .arguments = "DIR [--steps N]",
    .help = "record steps of a run of workers; make trace.json and tables of a profile",
    .takes_words = "DIR",
    .takes_one = true,
    .rows = rows,
    .run = run,
};
