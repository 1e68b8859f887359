/* SPDX-License-Identifier: Apache-2.0
 * trireme eval: the means of a network's scalar outputs over a whole data set, in evaluation mode.
 * One process computes them, or several that share the batches. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/host.h"
#include "cli/cli.h"
#include "cli/helpers.h"
#include "data/over.h"
#include "data/pictures.h"
#include "run/evaluate.h"
#include "run/run.h"

/* The loss, if there is one, comes first. */
static void print_results(const tri_run *run, int64_t samples) {
    printf("eval samples=%lld", (long long)samples);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < run_output_count(run); i++) {
            const char *name = run_output_name(run, i);
            if (run_output_is_scalar(run, i) && !strcmp(name, "loss") == !pass)
                printf(" %s=%.9g", name, tri_result(run, name));
        }
    printf("\n");
}

/* Opens the data that a->options name and removes it from them, so that the run does not. */
static tri_data *take_data(struct cli_arguments *a, const tri_graph *g, const char *prepared) {
    if (cli_own_data(a)) return NULL;
    tri_data *data = a->options.source;
    const char *spec = a->options.data;
    a->options.source = NULL;
    a->options.data = NULL;
    if (!data && spec)
        data = data_open(spec, g, a->options.seed, a->options.tokenizer, prepared);
    if (data) return a->options.subset ? data_subset(data, a->options.subset) : data;
    if (spec) return NULL;
    base_fail(TRI_USAGE, "eval lacks --data SPEC: for example --data idx:DIR,split=test");
    return NULL;
}

struct own {
    int workers; /* 0: this process alone */
    bool automatic;
};

static const char *workers(void *at, const char *value) { /* struct own */
    struct own *own = at;
    int64_t n = 0;
    own->automatic = !strcmp(value, "auto");
    if (!own->automatic && (option_count(&n, value) || n > HELPERS_MOST))
        return "a whole number from 1 to 128, or auto";
    own->workers = own->automatic ? host_cores() : (int)n;
    return NULL;
}

static const struct option_row rows[] = {
    {"-n", "N|auto",
     "workers: processes that share the batches; the result does not depend on their number; auto "
     "takes one per core (default: this process alone)",
     workers, 0, USE_EVAL, .group = GROUP_WORKERS},
    {0},
};

/* Limits the workers to one per batch, and sets the threads of each. */
static void settle(struct own *own, tri_options *o, const tri_data *data) {
    int64_t batches = (tri_data_size(data) + o->batch - 1) / o->batch;
    if (own->workers > batches) {
        if (!own->automatic)
            fprintf(stderr, "trireme: %lld worker%s, one per batch of %lld (a smaller --batch "
                    "makes more batches)\n", (long long)batches, batches == 1 ? "" : "s",
                    (long long)o->batch);
        own->workers = (int)batches;
    }
    if (own->workers > 1 && !o->threads) o->threads = host_cores() / own->workers;
    if (own->workers > 1 && !o->threads) o->threads = 1;
}

static tri_status take_all(tri_run *run, tri_data *data, struct eval_queue *queue) {
    tri_status status = TRI_OK;
    for (bool taken = true; taken && !status;)
        status = evaluation_compute_next(run, data, queue, &taken);
    return status;
}

/* Shares the batches with helpers, started after this process has opened everything itself. */
static tri_status evaluate_together(tri_run *run, tri_data *data, const struct own *own,
                                    const tri_options *o, char **words) {
    struct helpers h;
    tri_status status = helpers_start(&h, own->workers - 1, o->threads,
                                      evaluation_batches(run, data), run_output_count(run), words);
    if (!status) pictures_count_together(data, helpers_bad(&h));
    if (!status) status = take_all(run, data, &h.queue);
    if (!status) helpers_wait(&h);
    if (!status) status = evaluation_run(run, data, &h.queue);
    pictures_count_together(data, NULL);
    helpers_end(&h);
    return status;
}

static tri_status evaluate(tri_graph *g, const tri_options *o, tri_data *data,
                           const struct own *own, char **words) {
    tri_run *run = tri_open(g, o);
    if (!run) return (tri_status)cli_fail();
    tri_status status = own->workers > 1 ? evaluate_together(run, data, own, o, words)
                                         : tri_evaluate(run, data);
    if (run_fail(run, status) == TRI_OK) print_results(run, tri_data_size(data));
    return tri_close(run);
}

/* Messages of a helper while it opens model and data would repeat those of the first process. */
static int silence_stderr(void) {
    int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 16);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (kept >= 0 && nowhere >= 0) dup2(nowhere, STDERR_FILENO);
    if (nowhere >= 0) close(nowhere);
    return kept;
}

static void restore_stderr(int kept) {
    if (kept < 0) return;
    dup2(kept, STDERR_FILENO);
    close(kept);
}

/* Null with a message; the graph is then freed. */
static tri_data *open_data(struct cli_arguments *a, tri_graph *g, const char *prepared) {
    tri_data *data = g ? take_data(a, g, prepared) : NULL;
    a->options.forward = true;
    if (!data) tri_graph_free(g);
    return data;
}

static int help(struct helpers *h, int place, struct cli_arguments *a, const char *prepared) {
    prctl(PR_SET_NAME, "trireme"); /* instead of "exe" */
    int kept = silence_stderr();
    tri_graph *g = cli_graph(a);
    tri_data *data = open_data(a, g, prepared);
    a->options.threads = helpers_threads(h);
    tri_run *run = data ? tri_open(g, &a->options) : NULL;
    restore_stderr(kept);
    if (data) pictures_count_together(data, helpers_bad(h));
    tri_status status = run ? take_all(run, data, &h->queue) : base_last();
    if (status) helpers_give_up(h, place, tri_message());
    if (run) tri_close(run);
    tri_data_free(data);
    helpers_end(h);
    return (int)status;
}

static int evaluate_all(struct cli_arguments *a, struct own *own, const char *prepared,
                        char **words) {
    struct helpers h;
    int place;
    if (helpers_join(&h, &place)) return cli_fail();
    if (place >= 0) return help(&h, place, a, prepared);
    tri_graph *g = cli_graph(a);
    tri_data *data = open_data(a, g, prepared);
    if (!data) return cli_fail();
    data_print_notes(data, a->options.quiet);
    settle(own, &a->options, data);
    int code = (int)evaluate(g, &a->options, data, own, words);
    tri_data_free(data);
    return code;
}

static int run(const struct command *c, int argc, char **argv) {
    struct cli_arguments a;
    struct own own = {0};
    int code = cli_read(c, argc, argv, &own, &a) ? cli_fail() : 0;
    struct weights_about about = {0};
    if (!code && cli_read_about(c, &a, &about)) code = cli_fail();
    if (!code) code = evaluate_all(&a, &own, about.prepared, cli_words);
    weights_about_free(&about);
    return code;
}

const struct command command_eval = {
    .name = "eval",
    .arguments = "[MODEL] --load FILE --data SPEC [options]",
    .help = "print loss and metrics of trained weights over a data set",
    .takes_model = true,
    .model_optional = true,
    .use = USE_EVAL,
    .rows = rows,
    .more = cli_describe_model,
    .run = run,
};
