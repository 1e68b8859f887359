/* SPDX-License-Identifier: Apache-2.0
 * trireme plan: shows a plan file, and says whether two plans give the same bits. */
#include "plan/plan_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/visit.h"
#include "dev/dev.h"
#include "plan/passes.h"
#include "plan/strategy.h"
#include "price/prices.h"
#include "run/open.h"
#include "run/run.h"

struct own {
    const char *model; /* null: the plan's own */
};

/* The network of a plan, with the options that the plan states in `one`. */
static tri_graph *open_network(const struct plan_file *p, const struct cli_arguments *a,
                               struct cli_arguments *one) {
    *one = *a;
    if (!a->model) one->model = plan_find(p, PLAN_MODEL)->value;
    if (plan_take(p, &one->options)) return NULL;
    one->options.plan = p->name;
    return cli_graph(one);
}

/* ---- show ---- */

static void show_counts(const struct plan_file *p, struct text *out) {
    const struct plan_line *mesh = plan_find(p, PLAN_MESH);
    struct mesh m = {0};
    int64_t batch = plan_number(p, PLAN_BATCH), lanes = plan_number(p, PLAN_LANES);
    if (mesh && strcmp(mesh->value, "none") && !mesh_parse(mesh->value, &m))
        text_add(out, "seats: %lld, the places of the mesh %s\n", (long long)mesh_seats(&m),
                 mesh->value);
    else
        text_add(out, "seats: 1, as there is no mesh\n");
    if (batch && lanes) {
        int64_t most = (batch + lanes - 1) / lanes;
        text_add(out, "lanes: %lld, each of ", (long long)lanes);
        if (batch % lanes) text_add(out, "%lld to ", (long long)(batch / lanes));
        text_add(out, "%lld sample(s)\n", (long long)most);
    }
    const long long threads = plan_number(p, PLAN_THREADS);
    if (plan_number(p, PLAN_WORKERS))
        text_add(out, "workers: %lld, each with %lld thread(s)\n",
                 (long long)plan_number(p, PLAN_WORKERS), threads);
}

/* Without its network only the texts of strategies can be checked. */
static tri_status check_strategies(const struct plan_file *p, const struct cli_arguments *a) {
    struct cli_arguments one;
    tri_status status = plan_check_strategies(p);
    if (status || !(a->model || plan_find(p, PLAN_MODEL))) return status;
    tri_graph *g = open_network(p, a, &one);
    status = g ? strategies_check(g, &one.options) : base_last();
    tri_graph_free(g);
    return status;
}

static void show_plan(const struct plan_file *p, struct text *out) {
    plan_print(p, out);
    text_add(out, "\n");
    show_counts(p, out);
}

static void show_edited(const struct plan_file *p, struct text *out) {
    static const char *const names[] = {"grain", "placement"};
    for (int i = 0; i < PLAN_PARTS; i++)
        if (plan_is_edited(p, (enum plan_part)i))
            text_add(out, "%s: edited, the file does not have the hash of its lines\n", names[i]);
}

/* The plan of the program's own run. */
static tri_status show_own(struct cli_arguments *a, struct text *out) {
    tri_graph *g = cli_graph(a);
    tri_run *run = g ? run_plan(g, &a->options, NULL) : NULL;
    if (!run) return base_last();
    show_plan(&run->own_plan, out);
    run_free(run);
    return TRI_OK;
}

static tri_status show(char **word, void *arguments, struct text *out) {
    struct cli_arguments *a = arguments;
    if (!word[0]) return show_own(a, out);
    const struct plan_file *p = plan_read(word[0], true);
    if (!p) return base_last();
    show_plan(p, out);
    show_edited(p, out);
    return check_strategies(p, a);
}

/* ---- diff ---- */

static bool same_part(const struct plan_file *const p[2], enum plan_part part) {
    char a[PLAN_DIGITS], b[PLAN_DIGITS];
    return !strcmp(plan_hash(p[0], part, a), plan_hash(p[1], part, b));
}

/* The programs of a plan as text. */
static tri_status program_of(const struct plan_file *p, const struct cli_arguments *a,
                             char **program) {
    struct cli_arguments one;
    *program = NULL;
    if (!a->model && !plan_find(p, PLAN_MODEL))
        return base_fail(TRI_USAGE, "%s does not name a model of the zoo; compiling it needs the "
                         "network: --model FILE.tri or FILE.so, or -- ./program", p->name);
    tri_graph *g = open_network(p, a, &one);
    if (g) *program = passes_program(g, &one.options, dev_at(0)->kind->target);
    tri_graph_free(g);
    return *program ? TRI_OK : base_last();
}

static tri_status compare_programs(const struct plan_file *const p[2],
                                   const struct cli_arguments *a, bool *same) {
    char *program[2] = {NULL, NULL};
    tri_status status = TRI_OK;
    for (int i = 0; i < 2 && !status; i++) status = program_of(p[i], a, &program[i]);
    if (!status) *same = !strcmp(program[0], program[1]);
    free(program[0]);
    free(program[1]);
    return status;
}

static tri_status diff(char **word, void *arguments, struct text *out) {
    const struct plan_file *p[2];
    bool same = true;
    tri_status status = TRI_OK;
    for (int i = 0; i < 2; i++)
        if (!(p[i] = plan_read(word[i], true))) return base_last();
    plan_differ(p[0], p[1], PLAN_MODEL, PLAN_KEYS, out);
    if (!same_part(p, PLAN_GRAIN)) status = compare_programs(p, arguments, &same);
    if (!status) text_add(out, same ? "same bits\n" : "bits differ\n");
    return status;
}

/* ---- machine ---- */

static tri_status machine(char **word, void *arguments, struct text *out) {
    struct text path = {0};
    struct prices p;
    (void)word;
    (void)arguments;
    tri_status status = prices_make(&p, 0);
    if (!status && !prices_file(&p, &path))
        status = base_fail(TRI_FAILED, "there is no $HOME, and no $XDG_CACHE_HOME, where prices "
                           "are kept");
    if (!status) status = prices_read(&p, path.data);
    if (!status)
        text_add(out, "%s\n%zu unit(s) measured, in %s\n", p.machine, p.n, path.data);
    prices_free(&p);
    text_free(&path);
    return status;
}

/* ---- the command ---- */

/* These two have options of their own, and so are commands. */
static tri_status command(char **word, void *arguments, struct text *out) {
    (void)arguments;
    (void)out;
    return base_fail(TRI_USAGE, "the options of plan %s follow it: trireme plan %s %s [options]",
                     word[-1], word[-1], word[0]);
}

static const struct cli_action actions[] = {
    {"show", "FILE", "print a plan, and what it comes to, and check its strategies", 1, show},
    {"diff", "A B", "list the lines that differ; then `same bits` or `bits differ`", 2, diff},
    {"find", "MODEL", "the plans that a run may have, the best first", 1, command},
    {"price", "MODEL", "what a step takes, by the prices of its units", 1, command},
    {"machine", "", "which prices of this machine are known, and where they are kept", 0, machine},
    {0},
};

static const struct option_row rows[] = {
    {"--model", "MODEL", "the network of plans that name none: FILE.tri, FILE.so",
     OWN(option_text, model)},
    {0},
};

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {0};
    struct text out = {0};
    struct cli_arguments a;
    if (argc > 1 && !strcmp(argv[1], "price")) return cli_plan_price(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "find")) return cli_plan_find(argc - 1, argv + 1);
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    const struct cli_action *w = cli_action(c, &a);
    if (!w) return cli_fail();
    if (own.model && (a.program || visit_opened)) {
        base_fail(TRI_USAGE, "plan %s: --model and a program are both given: give one", w->name);
        return cli_fail();
    }
    if (a.program) return visit_start(&a);
    if (own.model) a.model = own.model;
    int code = w->run(a.words + 1, &a, &out) ? cli_fail() : TRI_OK;
    return cli_print(&out) ? cli_fail() : code;
}

static void describe(struct text *out) {
    options_paragraph("With a program, show needs no FILE: it prints the plan of the program's "
                      "run. A FILE must be a plan of the program's network.", out);
    options_paragraph("`plan find MODEL` and `plan price MODEL` take the options of `memory`, with "
                      "those of workers, and keep what they say. find also takes --grain (`trireme "
                      "train --help mesh`) and", out);
    options_describe((const struct option_row *const[]){plan_find_rows, NULL}, USE_ALL, "all", out);
    options_paragraph("price also takes", out);
    options_describe((const struct option_row *const[]){plan_price_rows, NULL}, USE_ALL, "all",
                     out);
}

const struct command command_plan = {
    .name = "plan",
    .arguments = "show FILE | diff A B | find MODEL | price MODEL | machine [options] "
                 "[-- ./program]",
    .help = "find plans, and predict what a step takes; show and compare plan files",
    .takes_words = "action",
    .takes_program = true,
    .actions = actions,
    .rows = rows,
    .more = describe,
    .run = run,
};
