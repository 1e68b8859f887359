/* SPDX-License-Identifier: Apache-2.0
 * trireme memory: how much memory a run would take, from its plan. */
#include <math.h>

#include "base/columns.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/visit.h"
#include "machine/budget.h"
#include "crew/head.h"
#include "run/evaluate.h"
#include "run/trial.h"
#include "run/open.h"
#include "run/run.h"

#define PEAK_TENSORS 12
#define MIB (1 << 20)

static void line(struct text *t, const char *what, const char *more, size_t bytes) {
    if (bytes >= MIB / 20) /* else it prints as 0.0 */
        text_add(t, "%10.1f MiB  %s%s\n", (double)bytes / MIB, what, more);
}

/* Rounded up, so that what is printed suffices as a --memory-limit. */
static void total(struct text *t, const char *what, size_t bytes) {
    text_add(t, "%10.1f MiB  %s\n", ceil(10 * (double)bytes / (1 << 20)) / 10, what);
}

/* The processes that share the memory listed below. */
static void tell_workers(struct text *t, const struct crew_size *s) {
    if (s->hosts) text_add(t, "each of %d host(s) with ", s->hosts);
    text_add(t, "%d worker(s)", s->workers);
    if (s->spares) text_add(t, " and %d spare(s)", s->spares);
    text_add(t, " of %d thread(s)", s->threads);
    text_add(t, s->workers + s->spares == 1 ? "\n" : ", which share parameters, states, sums of "
             "lanes and what is computed before them\n");
}

/* The steps of other shapes than the usual one. */
static void tell_shapes(struct text *t, const tri_run *run) {
    for (int i = 1; i < run->n_executables; i++) {
        const struct machine *m = &run->executable[i];
        const int class = run->shape_class[i];
        text_add(t, "also steps of %lld sample(s)", (long long)m->batch);
        if (class)
            text_add(t, " no longer than %lld", (long long)run->model->shorter[class - 1].length);
        text_add(t, ", lanes %lld\n", (long long)m->lanes);
    }
}

/* What would help a run that does not fit. */
static void advise(struct text *t, tri_run *run, const struct verdict *v) {
    struct lighter all[LIGHTER_MOST];
    struct text cells = {0};
    int n = trial_lighter(run, v->limit, all);
    budget_tell_most(evaluation_machine(run), &run->store, t);
    text_add(t, n ? "\n\nIt would need\n" : "\n" LIGHTER_NONE "\n");
    for (int i = 0; i < n; i++) {
        trial_describe(&all[i], '\t', &cells);
        text_add(&cells, "\n");
    }
    columns_add(t, "  rll", &cells);
}

static void report(struct text *t, const tri_run *run, const struct crew_size *size) {
    const struct machine *m = run->machine;
    const struct machine *last = evaluation_machine(run);
    const struct budget b = budget_of(m, &run->store);
    const tri_tensor *peak[PEAK_TENSORS];
    struct budget_part part[BUDGET_PARTS];
    text_add(t, "batch %lld, lanes %lld, threads %d\n", (long long)m->batch, (long long)m->lanes,
             run_threads(run));
    tell_shapes(t, run);
    if (size) tell_workers(t, size);
    text_add(t, "\n");
    const size_t parts = budget_parts(last, &run->store, part);
    for (size_t i = 0; i < parts; i++) line(t, part[i].what, part[i].more, part[i].bytes);
    total(t, "in all", budget_with_others(last, &run->store));
    total(t, size ? "for all processes' programs, at most" : "for the program itself, at most",
          budget_program(last));
    text_add(t, "\n");
    line(t, "of activations: an operator's scratch at the peak", "", b.scratch);
    for (int k = 0; size && size->hosts > 0 && k < 2; k++)
        if (m->tree[k].g)
            line(t, "of sums of lanes: kept until all hosts have them", k ? "" : ", of counts",
                 tree_kept_bytes(&m->tree[k], size->hosts, size->weight));
    line(t, "of all that, for the worst case: a run may never use it", "", b.untouched);
    text_add(t, "\nthe largest tensors at the peak of the fullest arena:\n");
    size_t n = budget_peak(m, peak, PEAK_TENSORS);
    for (size_t i = 0; i < n && i < PEAK_TENSORS; i++) {
        char spec[SPEC_TEXT];
        text_add(t, "%10.1f MiB  %s of %s (%s)\n", (double)memory_bytes(peak[i]) / (1 << 20),
                 base_spec_text(&peak[i]->spec, spec), peak[i]->node->name,
                 peak[i]->node->entry->op->name);
    }
    if (n > PEAK_TENSORS) text_add(t, "%14s  and %zu smaller ones\n", "", n - PEAK_TENSORS);
}

/* With the data that the run would have. */
static tri_run *plan(struct cli_arguments *a, const struct crew_size *size) {
    tri_graph *g = cli_network(a, NULL);
    return g ? run_plan_with_data(g, &a->options, size) : NULL;
}

/* What each ZeRO level keeps of what depends on parameters. */
static tri_status compare_levels(struct text *t, struct cli_arguments *a,
                                 const struct crew_size *size) {
    static const char *const levels[] = {"1", "2", "3"};
    const int64_t bucket = a->options.bucket;
    text_add(t, "\nZeRO levels, MiB; the workers share them, whatever their number\n"
                "  %-6s %14s %18s %16s %8s\n", "level", "sums of lanes", "copies of weights",
             "optimizer state", "in all");
    for (size_t i = 0; i < COUNT(levels); i++) {
        a->options.zero = levels[i];
        a->options.bucket = i ? bucket : 0; /* level 1 has none */
        tri_run *run = plan(a, size);
        if (!run) return base_last();
        const struct budget b = budget_of(run->machine, &run->store);
        const double mib = 1 << 20;
        text_add(t, "  %-6s %14.1f %18.1f %16.1f %8.1f\n", i ? levels[i] : "0, 1",
                 (double)b.lane_sums / mib, (double)b.carried / mib, (double)b.optimizer / mib,
                 (double)budget_with_others(evaluation_machine(run), &run->store) / mib);
        run_free(run);
    }
    text_add(t, "Parameters and optimizer state exist once on a machine at every level. Each "
                "of several machines\nhas all of them (--hosts).\n");
    return TRI_OK;
}

static int run(const struct command *c, int argc, char **argv) {
    struct cli_arguments a;
    struct launch l = {0};
    if (cli_read(c, argc, argv, &l, &a) || cli_check_launch(&l, &a.options)) return cli_fail();
    const bool alone = !l.workers && !l.hosts;
    struct crew_size several;
    if (cli_size(&l, false, &several, NULL)) return cli_fail();
    if (crew_check(&several)) return cli_fail();
    if (a.program) return visit_start(&a);
    const struct crew_size *size = alone ? NULL : &several;
    tri_run *run = plan(&a, size);
    if (!run) return cli_fail();
    const struct verdict v =
        budget_verdict(evaluation_machine(run), &run->store, a.options.memory_limit);
    struct text t = {0};
    budget_tell(&v, &t);
    text_add(&t, "\n");
    if (!v.fits) advise(&t, run, &v);
    text_add(&t, "\n");
    if (run->fit_note) text_add(&t, "%s\n\n", run->fit_note);
    if (run->machine->compilation.note) text_add(&t, "%s\n\n", run->machine->compilation.note);
    report(&t, run, size);
    if (run->fit) a.options.recompute = run->fit; /* the same at all levels */
    tri_status status = a.options.zero ? compare_levels(&t, &a, size) : TRI_OK;
    run_free(run);
    if (status) text_free(&t);
    if (status || cli_print(&t)) return cli_fail();
    return v.fits ? TRI_OK : 1;
}

const struct command command_memory = {
    .name = "memory",
    .arguments = "MODEL [options]",
    .help = "show how much memory a run would take, without running it",
    .takes_model = true,
    .takes_program = true,
    .use = USE_MEMORY,
    .rows = launch_rows,
    .more = cli_describe_model,
    .run = run,
};
