/* SPDX-License-Identifier: Apache-2.0
 * trireme report: where a run's time goes, what is wrong with it, and what to do. */
#include <string.h>

#include "cli/cli.h"
#include "observe/files.h"
#include "observe/run_file.h"
#include "profile/against.h"
#include "profile/report.h"

struct own {
    bool json;
    const char *profile, *against;
};

/* Of a run without one there is nothing to read. */
static tri_status read_profile(const struct own *own, const char *directory, struct profile *p,
                               struct figures *f) {
    tri_status status = profile_read(directory, own->profile, p);
    if (own->profile || status != TRI_USAGE) {
        if (!status) status = study_make(p);
        if (!status) f->profile = p;
        return status;
    }
    return TRI_OK;
}

static bool read_run(const char *directory, struct run_read *r) {
    glob_t found = {0};
    *r = (struct run_read){.root = NULL};
    const bool good = !run_files(directory, "run.json", &found) && found.gl_pathc &&
                      !run_file_read(found.gl_pathv[0], r);
    globfree(&found);
    return good;
}

/* Of runs that are hardly comparable. */
static void tell_runs(const char *directory, const char *against, struct text *out) {
    struct run_read now, before;
    const bool has_now = read_run(directory, &now), has_before = read_run(against, &before);
    if (has_now && has_before &&
        (strcmp(now.title, before.title) || now.batch != before.batch)) {
        text_add(out, "The runs differ: ");
        text_add_escaped(out, now.title);
        text_add(out, " with a batch of %lld, the profile before of ", (long long)now.batch);
        text_add_escaped(out, before.title);
        text_add(out, " with %lld. What both have is compared.\n", (long long)before.batch);
    }
    run_file_free(&now);
    run_file_free(&before);
}

static tri_status compare(const struct own *own, const char *directory, struct text *out) {
    struct profile p = {0}, before = {0};
    tri_status status = own->json ? base_fail(TRI_USAGE, "report: --against prints a table; leave "
                                              "out --json") : TRI_OK;
    if (!status) status = profile_read(directory, own->profile, &p);
    if (!status) status = profile_read(own->against, NULL, &before);
    if (!status) status = study_make(&p);
    if (!status) status = study_make(&before);
    if (!status) tell_runs(directory, own->against, out);
    if (!status) status = against_print(&p, &before, out);
    profile_free(&p);
    profile_free(&before);
    return status;
}

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {0};
    struct cli_arguments a;
    struct figures f = {0};
    struct profile p = {0};
    struct report r;
    struct text out = {0};
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    tri_status status = TRI_OK;
    if (own.against) status = compare(&own, a.words[0], &out);
    else status = figures_read(a.words[0], &f);
    if (!status && !own.against) status = read_profile(&own, a.words[0], &p, &f);
    if (!status && !own.against) {
        report_make(&f, &r);
        (own.json ? report_json : report_text)(&r, &out);
        report_free(&r);
    }
    figures_free(&f);
    profile_free(&p);
    return status || cli_print(&out) ? cli_fail() : TRI_OK;
}

static const struct option_row rows[] = {
    {"--profile", "N", "use DIR/profile/N (default: the one that begins last)",
     OWN(option_text, profile)},
    {"--against", "DIR", "instead, rank what makes the profile slower than the last one of this "
     "directory", OWN(option_text, against)},
    {"--json", NULL, "print figures and findings as JSON", OWN(option_given, json)},
    {0},
};

static void more(struct text *out) {
    options_paragraph("DIR is the directory of a run (--out), which may still be under way. "
                      "Shares of a step are those of the last third of its time. A finding that "
                      "another one explains is printed below that as its effect.", out);
}

const struct command command_report = {
    .name = "report",
    .arguments = "DIR [options]",
    .help = "say where a run's time goes, what is wrong with it, and what to do",
    .takes_words = "DIR",
    .takes_one = true,
    .rows = rows,
    .more = more,
    .run = run,
};
