/* SPDX-License-Identifier: Apache-2.0
 * trireme compare: where two plans of one network, or the checkpoints of two runs, begin to
 * differ. */
#include "cli/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoint/checkpoint.h"
#include "cli/cli.h"
#include "cli/visit.h"
#include "data/data.h"
#include "plan/plan_file.h"
#include "run/open.h"

#define STEPS 3
#define TOLERANCE 1e-4
/* Every operator then leaves its result, in the order in which it was written. */
#define APART "-recompute,-format,-hoist,-in-place,-order,-fuse"

struct own {
    const char *plan[2];
    int plans; /* that were given */
    double tolerance;
};

/* ---- checkpoints ---- */

/* Of two directories. The first difference goes to `out`. */
struct pair {
    const char *const *directory;
    const struct seal_key *key; /* of those that are sealed; or null */
    double tolerance;
    int64_t step;
    bool same; /* all bits, so far */
    struct text *out;
};

/* b null: only file `which` has it. */
static void compare_entry(struct pair *p, const struct safetensors_entry *a,
                          const struct safetensors_entry *b, int which) {
    struct compare_values v = {.tolerance = p->tolerance};
    bool fits = b && compare_same_spec(&a->spec, &b->spec);
    if (fits &&
        compare_equal(&v, a->spec.type, a->data, b->data, tri_shape_count(&a->spec.shape))) {
        p->same &= v.same;
        return;
    }
    text_add(p->out, "step %lld, %s%s", (long long)p->step, a->name, fits ? ", " : ": ");
    if (fits)
        compare_print(&v, p->out);
    else
        text_add(p->out, "%s", compare_unlike(b, which));
    text_add(p->out, "\n");
}

static tri_status compare_file(struct pair *p, const char *const folder[2], const char *file) {
    struct safetensors *f[2] = {NULL, NULL};
    tri_status status = TRI_OK;
    for (int i = 0; i < 2 && !status; i++)
        status = checkpoint_open(folder[i], file, checkpoint_key(folder[i], p->key), p->step,
                                 false, &f[i]);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; !status && i < f[k]->n && !p->out->size; i++) {
            const struct safetensors_entry *a = &f[k]->entry[i];
            const struct safetensors_entry *b = safetensors_find(f[1 - k], a->name);
            if (!k || !b) compare_entry(p, a, b, k);
        }
    safetensors_close(f[0]);
    safetensors_close(f[1]);
    return status;
}

static tri_status compare_one(struct pair *p) {
    char path[2][4096];
    const char *const folder[2] = {path[0], path[1]};
    tri_status status = TRI_OK;
    for (int i = 0; i < 2 && !status; i++) {
        struct checkpoint_state s;
        checkpoint_path(p->directory[i], p->step, path[i]);
        status = checkpoint_verify(path[i], checkpoint_key(path[i], p->key), &s);
    }
    for (int i = 0; i < CHECKPOINT_TENSORS && !status && !p->out->size; i++)
        status = compare_file(p, folder, checkpoint_files[i]);
    return status;
}

static tri_status none_common(const char *const directory[2], const size_t n[2]) {
    if (n[0] || n[1])
        return n[0] && n[1] ? base_fail(TRI_FAILED, "%s and %s have no checkpoint of the same step",
                                        directory[0], directory[1])
                            : base_fail(TRI_FAILED, "%s has no checkpoint", directory[n[0] > 0]);
    return base_fail(TRI_FAILED, "neither %s nor %s has a checkpoint", directory[0], directory[1]);
}

/* From the first step on that both have. */
static tri_status compare_checkpoints(const char *const directory[2], const struct seal_key *key,
                                      double tolerance, bool *differ, struct text *out) {
    struct pair p = {directory, key, tolerance, .same = true, .out = out};
    int64_t *step[2] = {NULL, NULL};
    size_t n[2] = {0, 0}, common = 0;
    tri_status status = TRI_OK;
    for (int i = 0; i < 2 && !status; i++) status = checkpoint_list(directory[i], &step[i], &n[i]);
    for (size_t i = n[0]; i-- > 0 && !status && !out->size;) /* newest first */
        for (size_t k = 0; k < n[1] && !status; k++) {
            if (step[0][i] != step[1][k]) continue;
            common++;
            p.step = step[0][i];
            status = compare_one(&p);
        }
    free(step[0]);
    free(step[1]);
    if (!status && !common) return none_common(directory, n);
    *differ = out->size;
    if (status || *differ) return status;
    text_add(out, "%zu checkpoint(s): ", common);
    if (p.same)
        text_add(out, "same bits\n");
    else
        text_add(out, "within %g\n", tolerance);
    return TRI_OK;
}

/* ---- runs ---- */

static tri_status open_one(const struct cli_arguments *a, const char *path, bool apart,
                           tri_run **out) {
    struct cli_arguments one = *a;
    one.options.plan = path;
    if (apart) one.options.stages = 1; /* lanes in order, without a change of bits */
    tri_status status = options_take_plan(&one.options);
    one.options.quiet = true;
    if (apart) one.options.passes = APART;
    if (apart) one.options.threads = 1;
    tri_graph *g = status ? NULL : cli_network(&one, "compare");
    *out = g ? tri_open(g, &one.options) : NULL;
    return *out ? TRI_OK : base_last();
}

static tri_status open_both(const struct cli_arguments *a, const struct own *own, bool apart,
                            tri_run *run[2]) {
    tri_status status = TRI_OK;
    run[0] = run[1] = NULL;
    for (int i = 0; i < 2 && !status; i++) status = open_one(a, own->plan[i], apart, &run[i]);
    return status;
}

static void close_both(tri_run *run[2]) {
    for (int i = 0; i < 2; i++)
        if (run[i]) run_free(run[i]);
    run[0] = run[1] = NULL;
}

static tri_status steps(tri_run *const run[2], int64_t n) {
    for (int64_t s = 0; s < n; s++)
        for (int i = 0; i < 2; i++)
            if (!tri_step(run[i]))
                return tri_run_status(run[i]) ? tri_run_status(run[i])
                                              : base_fail(TRI_FAILED, "there is no further step");
    return TRI_OK;
}

/* As the plans say. *differ: the step after which the runs differ; 0: none. */
static tri_status compare_as_planned(const struct cli_arguments *a, const struct own *own,
                                     int64_t *differs, struct text *out) {
    tri_run *run[2];
    tri_status status = open_both(a, own, false, run);
    *differs = 0;
    for (int64_t s = 1; s <= a->options.steps && !status && !*differs; s++) {
        status = steps(run, 1);
        if (!status) status = compare_stores(run, own->tolerance, out);
        if (out->size) *differs = s;
    }
    close_both(run);
    return status;
}

struct apart {
    size_t compared;     /* results of operators */
    struct text skipped; /* a line for each tensor that only one run has */
};

/* Operator by operator, from a step on to the last. */
static tri_status compare_apart(const struct cli_arguments *a, const struct own *own,
                                int64_t first, int64_t last, struct apart *found,
                                struct text *out) {
    tri_run *run[2];
    tri_status status = open_both(a, own, true, run);
    if (!status) status = steps(run, first - 1);
    for (int64_t s = first; s <= last && !status && !out->size; s++)
        status = compare_step(run, own->tolerance, &found->compared, out);
    if (!status) compare_skipped(run, &found->skipped);
    close_both(run);
    return status;
}

/* Steps of different samples cannot be compared. */
static tri_status same_grain(const struct own *own, bool *same) {
    char hash[2][PLAN_DIGITS];
    int64_t batch[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        const struct plan_file *p = plan_read(own->plan[i], true);
        if (!p) return base_last();
        plan_hash(p, PLAN_GRAIN, hash[i]);
        batch[i] = plan_number(p, PLAN_BATCH);
    }
    if (batch[0] && batch[1] && batch[0] != batch[1])
        return base_fail(TRI_USAGE, "%s has batch %lld, %s batch %lld: their steps have other "
                         "samples, and cannot be compared", own->plan[0], (long long)batch[0],
                         own->plan[1], (long long)batch[1]);
    *same = !strcmp(hash[0], hash[1]);
    return TRI_OK;
}

static tri_status compare_plans(const struct cli_arguments *a, struct own *own,
                                struct text *out) {
    bool same = false;
    int64_t differs = 0, last = a->options.steps;
    struct apart found = {0};
    struct text planned = {0};
    tri_status status = same_grain(own, &same);
    if (status) return status;
    if (same && own->tolerance > 0)
        return base_fail(TRI_USAGE, "--tolerance: both plans have the same grain, so bits are "
                         "compared");
    own->tolerance = same ? -1 : own->tolerance > 0 ? own->tolerance : TOLERANCE;
    if (!same) {
        status = compare_apart(a, own, 1, last, &found, out);
        bool differ = out->size;
        if (!status && found.skipped.size) text_add(out, "%s", found.skipped.data);
        if (!status && !differ)
            text_add(out, "%zu results of operators, parameters after each step\n"
                     "%lld step(s): within %g\n", found.compared, (long long)last, own->tolerance);
        text_free(&found.skipped);
        return status || !differ ? status : base_fail(TRI_FAILED, "the runs differ");
    }
    status = compare_as_planned(a, own, &differs, &planned);
    if (!status && differs) status = compare_apart(a, own, differs, differs, &found, out);
    if (!status && differs && !out->size)
        text_add(out, "%sone thread, operator by operator, gives the same bits: threads, or passes "
                 "that fuse and order operators, cause the difference\n", planned.data);
    text_free(&planned);
    text_free(&found.skipped);
    if (!status && differs) return base_fail(TRI_FAILED, "the runs differ");
    if (!status) text_add(out, "%lld step(s): same bits\n", (long long)last);
    return status;
}

/* ---- the command ---- */

static const char *take_plan(void *at, const char *value) {
    struct own *own = at;
    if (own->plans == 2 || !*value) return "a file, and no more than two plans";
    own->plan[own->plans++] = value;
    return NULL;
}

static const struct option_row rows[] = {
    {"--plan", "FILE", "a plan of the network (--save-plan); given twice", take_plan, 0, USE_ALL,
     .group = GROUP_NONE},
    {"--tolerance", "X",
     "of plans that give other bits: the largest difference, relative to a tensor's largest value "
     "(default: 1e-4); of directories: likewise (default: bits are compared)",
     OWN(option_positive, tolerance)},
    {0},
};

static bool is_directory(const char *path) {
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static tri_status directories(const struct cli_arguments *a, const struct own *own, bool others,
                              struct text *out) {
    if (others)
        return base_fail(TRI_USAGE, "compare: of the options only --tolerance and --ckpt-key are "
                         "for two directories of checkpoints");
    const char *const directory[2] = {a->words[0], a->words[1]};
    const char *key_file = a->options.ckpt_key;
    struct seal_key *key = NULL;
    bool differ = false;
    tri_status status = key_file ? seal_key_open(key_file, &key) : TRI_OK;
    if (!status)
        status = compare_checkpoints(directory, key, own->tolerance > 0 ? own->tolerance : -1,
                                     &differ, out);
    seal_key_free(key);
    return status || !differ ? status : base_fail(TRI_FAILED, "the runs differ");
}

static tri_status no_directory(const char *a, const char *b) {
    bool one = !is_directory(a), both = one && !is_directory(b);
    return base_fail(TRI_USAGE, "compare: %s%s%s %s; it takes one MODEL, or two directories of "
                     "checkpoints", one ? a : b, both ? " and " : "", both ? b : "",
                     both ? "are no directories" : "is no directory");
}

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {0};
    struct cli_arguments a;
    struct text out = {0};
    bool others = false;
    for (int i = 1; i < argc; i++)
        others |= !strncmp(argv[i], "--", 2) && strncmp(argv[i], "--tolerance", 11) &&
                  strncmp(argv[i], "--ckpt-key", 10);
    tri_status status = cli_read(c, argc, argv, &own, &a);
    if (status) return cli_fail();
    bool two = a.n_words == 2 && !a.model;
    if (two && !(is_directory(a.words[0]) && is_directory(a.words[1]))) {
        status = no_directory(a.words[0], a.words[1]);
    } else if (two) {
        status = directories(&a, &own, others, &out);
    } else if (a.n_words != !a.model || own.plans != 2) {
        status = base_fail(TRI_USAGE, "compare takes a MODEL and --plan twice, or two directories "
                           "of checkpoints: trireme compare %s", c->arguments);
    } else if (a.program) {
        return visit_start(&a);
    } else {
        if (!a.model) a.model = a.words[0];
        if (!a.options.steps) a.options.steps = STEPS;
        status = compare_plans(&a, &own, &out);
    }
    int code = status ? cli_fail() : TRI_OK;
    return cli_print(&out) ? cli_fail() : code;
}

const struct command command_compare = {
    .name = "compare",
    .arguments = "MODEL --plan A --plan B [options] | DIR DIR",
    .help = "find the first step and operator at which two plans, or two runs, differ",
    .takes_words = "MODEL or two directories",
    .takes_program = true,
    .use = USE_COMPARE,
    .rows = rows,
    .more = cli_describe_model,
    .run = run,
};
