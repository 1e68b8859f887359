/* SPDX-License-Identifier: Apache-2.0
 * trireme report: where a run's time goes, what is wrong with it, and what to do. */
#include "cli/cli.h"
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

static tri_status compare(const struct own *own, const char *directory, struct text *out) {
    struct profile p = {0}, before = {0};
    tri_status status = own->json ? base_fail(TRI_USAGE, "report: --against prints a table; leave "
                                              "out --json") : TRI_OK;
    if (!status) status = profile_read(directory, own->profile, &p);
    if (!status) status = profile_read(own->against, NULL, &before);
    if (!status) status = study_make(&p);
    if (!status) status = study_make(&before);
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
