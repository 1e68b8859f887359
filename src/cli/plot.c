/* SPDX-License-Identifier: Apache-2.0
 * trireme plot: a result of several runs as curves. */
#include "cli/plot.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/cli.h"
#include "io/outfile.h"

struct own {
    const char *key, *by, *svg;
    bool log;
};

static tri_status add_run(struct plot *p, const char *run, int number, struct curves *c) {
    tri_status status = curves_read(c, run, p->key);
    for (int i = 0; i < 2 && !status; i++) {
        struct curve *curve = i ? &c->evaluations : &c->training;
        if (!curve->n) continue;
        if (!ARRAY_GROW(p->curve, p->n, p->capacity)) return base_no_memory("the curves");
        p->curve[p->n++] = (struct plot_curve){run, (size_t)number, i > 0, curve};
    }
    return status;
}

static tri_status no_curves(const struct plot *p, const struct curves c[], int n) {
    struct nearest near = {.wanted = p->key};
    bool is_one = !strcmp(p->key, "lr"), has_step = false;
    for (int i = 0; i < n; i++)
        for (size_t k = LINES_FIXED; k < c[i].lines.n; k++) {
            is_one |= nearest_offer(&near, c[i].lines.name[k]);
            has_step = true;
        }
    if (is_one)
        return base_fail(TRI_FAILED, "the runs have no %s that is a number%s", p->key,
                         p->log ? " above 0, as --log needs it" : "");
    if (!has_step) return base_fail(TRI_FAILED, "the runs have no step yet");
    return base_fail(TRI_USAGE, "the runs have no %s%s", p->key,
                     nearest_or(&near, "; there are %s", near.names));
}

static void tell(const struct plot *p, char **run, int n, const struct curves c[]) {
    int64_t damaged = 0;
    for (int i = 0; i < n; i++) {
        size_t k = 0;
        while (k < p->n && p->curve[k].run != run[i]) k++;
        if (k == p->n) fprintf(stderr, "trireme: %s has no %s\n", run[i], p->key);
        damaged += c[i].lines.damaged;
    }
    if (damaged)
        fprintf(stderr, "trireme: damaged lines of metrics.jsonl are left out: %lld\n",
                (long long)damaged);
}

/* What a logarithm does not have is removed. */
static void take_logarithms(struct curve *c) {
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct curve_point at = c->point[i];
        if (at.least <= 0) continue;
        at.least = log10(at.least);
        at.most = log10(at.most);
        at.mean = log10(at.mean);
        c->point[kept++] = at;
    }
    c->n = kept;
    if (kept) c->last = c->last > 0 ? log10(c->last) : c->point[kept - 1].mean;
}

/* Of all that is shown. */
static void find_limits(struct plot *p) {
    p->left = p->bottom = INFINITY;
    p->right = p->top = -INFINITY;
    for (size_t i = 0; i < p->n; i++) {
        struct curve *c = p->curve[i].curve;
        if (p->log) take_logarithms(c);
        if (c->n) p->left = fmin(p->left, c->begin[p->axis]);
        if (c->n) p->right = fmax(p->right, c->end[p->axis]);
        for (size_t k = 0; k < c->n; k++) {
            p->bottom = fmin(p->bottom, c->point[k].least);
            p->top = fmax(p->top, c->point[k].most);
        }
    }
    /* what differs by rounding alone is a straight line */
    const double size = fmax(fabs(p->top), fabs(p->bottom));
    const double room = p->top - p->bottom > 1e-9 * size ? 0 : fmax(size / 10, 1e-6);
    p->top += room;
    p->bottom -= room;
}

static tri_status read_runs(struct plot *p, char **run, int n, struct curves c[]) {
    tri_status status = TRI_OK;
    for (int i = 0; i < n && !status; i++) status = add_run(p, run[i], i, &c[i]);
    find_limits(p);
    if (!status && !(p->left <= p->right)) status = no_curves(p, c, n);
    if (!status) tell(p, run, n, c);
    return status;
}

static tri_status write_svg(const struct plot *p, const char *path) {
    struct text t = {0};
    struct outfile file;
    plot_svg(p, &t);
    tri_status status = t.failed ? base_no_memory("a picture") : TRI_OK;
    if (!status && !(status = outfile_replace(&file, path, NULL)))
        status = outfile_close(&file, outfile_write(&file, t.data, t.size), NULL);
    text_free(&t);
    return status;
}

static tri_status print(const struct plot *p) {
    struct text t = {0};
    struct top_page page = top_measure(false);
    plot_text(p, &page, &t);
    return cli_print(&t);
}

static int run(const struct command *c, int argc, char **argv) {
    static const char *const axes[] = {"steps", "time", NULL};
    struct own own = {.key = "loss", .by = axes[0]};
    struct cli_arguments a;
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    struct plot p = {.key = own.key, .log = own.log,
                     .axis = !strcmp(own.by, axes[1]) ? CURVE_TIME : CURVE_STEPS};
    struct curves *of_run = calloc((size_t)a.n_words, sizeof *of_run);
    tri_status status = of_run ? TRI_OK : base_no_memory("the curves");
    if (!status && option_word(axes, own.by) < 0)
        status = base_fail(TRI_USAGE, "--by is \"%s\"; it can be steps or time", own.by);
    if (!status) status = read_runs(&p, a.words, a.n_words, of_run);
    if (!status) status = own.svg ? write_svg(&p, own.svg) : print(&p);
    for (int i = 0; of_run && i < a.n_words; i++) curves_free(&of_run[i]);
    free(of_run);
    free(p.curve);
    return status ? cli_fail() : TRI_OK;
}

static const struct option_row rows[] = {
    {"--key", "NAME", "what to show: loss (default), another result, or lr", OWN(option_text, key)},
    {"--by", "AXIS", "over steps (default) or time, in seconds", OWN(option_text, by)},
    {"--log", NULL, "with a logarithmic scale", OWN(option_given, log)},
    {"--svg", "FILE", "write a picture to FILE instead", OWN(option_text, svg)},
    {0},
};

static void more(struct text *out) {
    options_paragraph("DIR is the directory of a run (--out), which may still be under way. A line "
                      "goes through the mean of the steps of each column, and the band around it "
                      "has all of them. Evaluations have a broken line in the same colour. With "
                      "NO_COLOR set there are no colours.", out);
}

const struct command command_plot = {
    .name = "plot",
    .arguments = "DIR... [options]",
    .help = "draw the loss of runs, or another result, in the terminal or as SVG",
    .takes_words = "DIR",
    .rows = rows,
    .more = more,
    .run = run,
};
