/* SPDX-License-Identifier: Apache-2.0
 * trireme memory: what memory a run would take, from its plan, without running it. */
#include <stdio.h>

#include "cli/cli.h"
#include "exec/budget.h"

#define PEAK_TENSORS 12

static void line(struct text *t, const char *what, size_t bytes) {
    text_add(t, "%10.1f MiB  %s\n", (double)bytes / (1 << 20), what);
}

static void report(struct text *t, const tri_run *run, int64_t asked) {
    const struct machine *m = &run->machine;
    struct budget b = budget_of(m, &run->store);
    const tri_tensor *peak[PEAK_TENSORS];
    const char *whose;
    size_t limit = budget_limit(asked, 0, &whose);
    text_add(t, "batch %lld, lanes %lld, threads %d\n\n", (long long)m->batch, (long long)m->lanes,
             run_threads(run));
    line(t, "parameters", b.parameters);
    line(t, "states of the network", b.states);
    line(t, "optimizer state", b.optimizer);
    line(t, "arena: activations, gradients, scratch", b.arena);
    line(t, "partial sums of lanes", b.partials);
    line(t, "computed before the lanes: casts, packed weights", b.carried);
    line(t, "data: inputs and outputs", b.data);
    line(t, "in all", b.total);
    line(t, "for the program itself, at most", BUDGET_PROGRAM);
    text_add(t, "\n");
    line(t, "of the arena: an operator's scratch at the peak", b.scratch);
    if (*whose) line(t, whose, limit);
    if (b.total + BUDGET_PROGRAM > limit) text_add(t, "\nit does not fit: such a run is refused\n");
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

static int run(const struct command *c, int argc, char **argv) {
    struct cli_arguments a;
    if (cli_read(c, argc, argv, NULL, &a)) return cli_fail();
    tri_graph *g = cli_graph(&a);
    tri_run *run = g ? run_plan(g, &a.options) : NULL;
    if (!run) return cli_fail();
    struct text t = {0};
    if (run->machine.compilation.note) text_add(&t, "%s\n\n", run->machine.compilation.note);
    report(&t, run, a.options.memory_limit);
    run_free(run);
    return cli_print(&t) ? cli_fail() : TRI_OK;
}

const struct command command_memory = {
    .name = "memory",
    .arguments = "MODEL [options]",
    .help = "what memory a run would take, without running it",
    .takes_model = true,
    .use = USE_MEMORY,
    .more = cli_describe_model,
    .run = run,
};
