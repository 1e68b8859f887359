/* SPDX-License-Identifier: Apache-2.0 */
#include "run/state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/data.h"
#include "run/access.h"
#include "run/checkpointer.h"
#include "run/policy.h"

/* ---- describing a run ---- */

static bool shuffles(const tri_run *run) {
    return run->data ? run->sampler.shuffle : !run->options.no_shuffle;
}

static const char *data_name(const tri_run *run) {
    return run->data ? run->data->name : run->fed ? "feed" : "";
}

/* All that the order of samples depends on, except whether they are shuffled. Defaults are not
 * part of it; older checkpoints have them (without_defaults). */
static void describe_order(const tri_run *run, char order[CHECKPOINT_TEXT]) {
    const tri_options *o = &run->options;
    const tri_graph *g = run->model;
    const struct {
        const char *name, *value;
    } given[] = {
        {"sampler", o->sampler}, {"subset", o->subset}, {"share", o->share}, {"tail", o->tail}};
    size_t at = 0;
    *order = 0;
    for (size_t i = 0; i < COUNT(given) && at < CHECKPOINT_TEXT; i++)
        if (given[i].value)
            at += (size_t)base_format(order + at, CHECKPOINT_TEXT - at, "%s--%s %s", at ? " " : "",
                                      given[i].name, given[i].value);
    for (int i = 0; i < g->n_shorter && at < CHECKPOINT_TEXT; i++)
        at += (size_t)base_format(order + at, CHECKPOINT_TEXT - at, "%s%lld",
                                  i ? "/" : at ? " lengths " : "lengths ",
                                  (long long)g->shorter[i].length);
}

static void without_defaults(char *order) {
    static const char *const defaults[] = {"--sampler shuffled", "--tail drop"};
    for (size_t i = 0; i < COUNT(defaults); i++) {
        char *at = strstr(order, defaults[i]);
        size_t n = strlen(defaults[i]);
        if (!at || (at[n] && at[n] != ' ')) continue;
        if (at[n]) n++;
        else if (at > order) at--, n++;
        memmove(at, at + n, strlen(at + n) + 1);
    }
}

static void add_text(struct checkpoint_options *o, const char *name, const char *value) {
    CHECK(o->n < (int)COUNT(o->one));
    base_format(o->one[o->n].name, sizeof o->one->name, "%s", name);
    base_format(o->one[o->n++].value, sizeof o->one->value, "%s", value ? value : "");
}

void state_options(struct checkpoint_options *out, const tri_run *run) {
    const tri_options *o = &run->options;
    const tri_optimizer *of = &o->optimizer;
    const struct {
        const char *name;
        double value;
    } number[] = {{"--lr", of->lr},
                  {"--momentum", of->momentum},
                  {"beta1", of->beta1},
                  {"beta2", of->beta2},
                  {"eps", of->eps},
                  {"--trust", of->trust},
                  {"--weight-decay", of->weight_decay},
                  {"decay_all", of->decay_all},
                  {"--clip-norm", of->clip_norm},
                  {"--steps", (double)run->total}};
    const struct {
        const char *name, *value, *usual;
    } text[] = {{"--optimizer", of->name, "sgd"},
                {"--schedule", of->schedule, "constant"},
                {"--gradients-mean", of->gradients_sum ? "off" : NULL, "on"},
                {"--loss-scale", of->loss_scale, "off"},
                {"--amp", o->amp, "O0"},
                {"--amp-type", o->amp_type, "bf16"},
                {"--conv", o->conv, "auto"},
                {"--math", o->math, "portable"},
                {"--passes", o->passes, "all"}};
    *out = (struct checkpoint_options){0};
    for (size_t i = 0; i < COUNT(number) - !schedule_ends(&run->schedule); i++) {
        char value[CHECKPOINT_TEXT];
        base_format(value, sizeof value, "%.9g",
                    optimizer_is_zero(number[i].value) ? 0 : number[i].value);
        add_text(out, number[i].name, value);
    }
    for (size_t i = 0; i < COUNT(text); i++)
        add_text(out, text[i].name, text[i].value ? text[i].value : text[i].usual);
}

tri_status state_check_scalars(const struct machine *m) {
    if (m->n_scalars > CHECKPOINT_MOST_SCALARS)
        return base_fail(TRI_USAGE, "the network has %d scalars; a checkpoint (--ckpt) can have %d",
                         m->n_scalars, CHECKPOINT_MOST_SCALARS);
    for (int i = 0; i < m->n_scalars; i++)
        if (strlen(m->scalar[i].name) >= CHECKPOINT_TEXT)
            return base_fail(TRI_USAGE, "the name of scalar \"%s\" has %zu bytes; in a checkpoint "
                             "(--ckpt) it can have %d", m->scalar[i].name,
                             strlen(m->scalar[i].name), CHECKPOINT_TEXT - 1);
    return TRI_OK;
}

void state_describe(struct checkpoint_state *s, const tri_run *run) {
    *s = (struct checkpoint_state){.step = run->done,
                                   .epoch = run->epoch,
                                   .batch = run_batch(run),
                                   .lanes = run_lanes(run),
                                   .seed = run->options.seed,
                                   .shuffle = shuffles(run),
                                   .loss = tri_value(run, "loss"),
                                   .rate = run->set_rate,
                                   .options = run->checkpointer->options};
    describe_order(run, s->order);
    base_format(s->library, sizeof s->library, "trireme " TRI_VERSION);
    run_device_text(run, s->device, sizeof s->device);
    plan_hash(&run->own_plan, PLAN_GRAIN, s->grain);
    base_format(s->data, sizeof s->data, "%s", data_name(run));
    s->data_size = tri_data_size(run->data);
    if (run->policy->data) {
        base_format(s->metric, sizeof s->metric, "%s", run->policy->metric);
        s->policy_state = run->policy->is;
    }
    for (int i = 0; i < run->executable->n_scalars; i++) { /* see state_check_scalars */
        const struct run_scalar *from = &run->executable->scalar[i];
        struct checkpoint_scalar *to = &s->scalar[s->n_scalars++];
        base_format(to->name, sizeof to->name, "%s", from->name);
        to->value = from->value;
    }
}

/* ---- resuming a run ---- */

static void differs(struct text *t, const char *option, long long there, long long here) {
    if (there != here)
        text_add(t, "%s%s %lld (this run has %lld)", t->size ? ", " : "", option, there, here);
}

/* Checks what must be the same for the run to continue with the same results. */
static tri_status check_same(const char *folder, const struct checkpoint_state *s,
                             const tri_run *run) {
    struct text t = {0};
    char order[CHECKPOINT_TEXT], there[CHECKPOINT_TEXT];
    describe_order(run, order);
    base_format(there, sizeof there, "%s", s->order);
    without_defaults(there);
    differs(&t, "--batch", (long long)s->batch, (long long)run_batch(run));
    differs(&t, "--lanes", (long long)s->lanes, (long long)run_lanes(run));
    differs(&t, "--seed", (long long)s->seed, (long long)run->options.seed);
    differs(&t, "--shuffle", s->shuffle, shuffles(run));
    differs(&t, "samples:", (long long)s->data_size, (long long)tri_data_size(run->data));
    if (strcmp(there, order))
        text_add(&t, "%s%s (this run has %s)", t.size ? ", " : "",
                 *there ? there : "no --sampler or the like", *order ? order : "none");
    tri_status status = TRI_OK;
    if (t.size || t.failed)
        status = base_fail(TRI_USAGE, "%s was made with %s: the run would not continue as it "
                           "began; give the same options, or start a new run with its weights: "
                           "--load %s/" CHECKPOINT_MODEL "%s", folder,
                           t.data ? t.data : "other options", folder,
                           run->checkpointer->key ? CHECKPOINT_SEALED : "");
    text_free(&t);
    return status;
}

/* Only a warning, as the same data may have another name. */
static void warn_other_data(const char *folder, const struct checkpoint_state *s,
                            const tri_run *run) {
    char name[CHECKPOINT_TEXT];
    base_format(name, sizeof name, "%s", data_name(run));
    if (strcmp(s->data, name))
        fprintf(stderr, "trireme: %s was made with data %s, and this run has %s: unless the "
                "samples are the same, the run does not continue as it began\n", folder,
                *s->data ? s->data : "of none", *name ? name : "none");
}

/* Older checkpoints do not have it. */
static void warn_other_grain(const char *folder, const struct checkpoint_state *s,
                             const tri_run *run) {
    char grain[PLAN_DIGITS];
    plan_hash(&run->own_plan, PLAN_GRAIN, grain);
    if (*s->grain && strcmp(s->grain, grain))
        fprintf(stderr, "trireme: %s was made with another grain, %s; this run has %s (mesh, "
                "strategies, precision or kernels, see --save-plan): the run does not continue "
                "with the same bits\n", folder, s->grain, grain);
}

static const char *option_of(const struct checkpoint_options *o, const char *name) {
    for (int i = 0; i < o->n; i++)
        if (!strcmp(o->one[i].name, name)) return o->one[i].value;
    return NULL;
}

/* Reports options that may be changed, and were. */
static void print_other_options(const char *folder, const struct checkpoint_state *s,
                                const tri_run *run) {
    struct text t = {0};
    const struct checkpoint_options *now = &run->checkpointer->options;
    for (int i = 0; i < now->n; i++) {
        const char *there = option_of(&s->options, now->one[i].name);
        if (there && strcmp(there, now->one[i].value))
            text_add(&t, "%s%s %s now, %s", t.size ? "; " : "", now->one[i].name,
                     now->one[i].value, there);
    }
    if (t.size && !t.failed)
        fprintf(stderr, "trireme: %s when %s was written: the new values apply from step %lld on\n",
                t.data, folder, (long long)s->step + 1);
    text_free(&t);
}

static tri_status check_fits(const char *folder, const struct safetensors *file, bool optimizer,
                             const tri_run *run) {
    bool fits;
    tri_status status = access_fits(run, file, optimizer, &fits);
    if (status || fits) return status;
    return base_fail(TRI_USAGE, "%s was made with another %s, and --resume needs the same; to "
                     "start a new run with its weights: --load %s/" CHECKPOINT_MODEL "%s%s, and "
                     "another directory with --ckpt", folder, optimizer ? "--optimizer" : "model",
                     folder, run->checkpointer->key ? CHECKPOINT_SEALED : "",
                     optimizer ? "" : " --partial");
}

static tri_status load_files(const char *folder, const struct checkpoint_state *s, tri_run *run) {
    static const char *const names[] = {CHECKPOINT_MODEL, CHECKPOINT_OPTIMIZER};
    const struct seal_key *key = run->checkpointer->key;
    tri_status status = TRI_OK;
    for (int i = 0; i < 2 && !status; i++) {
        char path[4096];
        struct safetensors *file;
        checkpoint_file(folder, names[i], key, path);
        status = checkpoint_open_header(folder, names[i], key, s->step, &file);
        if (status) break;
        status = check_fits(folder, file, i == 1, run);
        if (status)
            safetensors_close(file);
        else
            status = access_take(run, file, path, i == 1);
    }
    return status;
}

/* A rate that the program has set takes precedence over the options. */
static void take_scalars(const char *folder, const struct checkpoint_state *s, tri_run *run) {
    run->set_rate = s->rate;
    if (!isnan(s->rate))
        fprintf(stderr, "trireme: %s has the learning rate %g in place of the schedule's, set by "
                "the program: it stays until tri_set_scalar changes it\n", folder, s->rate);
    for (int i = 0; i < s->n_scalars; i++) {
        struct run_scalar *to = machine_scalar(run->executable, s->scalar[i].name);
        if (to) to->value = s->scalar[i].value;
    }
}

/* *rejects: the tensors have not the hash of the state; an older checkpoint may be intact. */
static tri_status resume_from(const char *folder, const struct checkpoint_state *s, tri_run *run,
                              bool *rejects) {
    char device[CHECKPOINT_TEXT], weights[65], state[65];
    tri_status status = check_same(folder, s, run);
    if (!status) status = load_files(folder, s, run);
    if (status) return status;
    run->done = s->step;
    tri_hash(run, weights, state);
    if (!*weights || !*state) return base_no_memory("the hash of the weights");
    *rejects = strcmp(weights, s->weights) || strcmp(state, s->state);
    if (*rejects)
        return base_fail(TRI_FAILED, "%s: what was loaded does not have the hash in state.json",
                         folder);
    warn_other_data(folder, s, run);
    print_other_options(folder, s, run);
    take_scalars(folder, s, run);
    policy_resume(run->policy, s);
    run->checkpointer->state = *s;
    run->epoch = s->epoch;
    run_device_text(run, device, sizeof device);
    if (strcmp(device, s->device))
        fprintf(stderr, "trireme: %s was made on %s; this is %s, and the last bits may differ\n",
                folder, s->device, device);
    warn_other_grain(folder, s, run);
    if (!s->checked) fprintf(stderr, "trireme: %s: " CHECKPOINT_UNCHECKED "\n", folder);
    return TRI_OK;
}

tri_status state_resume(tri_run *run, struct checkpoint_state *state) {
    const char *directory = run->options.ckpt;
    struct text wrong = {0};
    char folder[4096];
    tri_status status;
    bool rejects = false;
    int64_t before = INT64_MAX;
    do {
        if (rejects) text_add(&wrong, "%s%s", wrong.size ? "; " : "", tri_message());
        rejects = false;
        status = checkpoint_newest(directory, run->checkpointer->key, before, state, &wrong);
        if (status || state->step < 0) break;
        before = state->step;
        checkpoint_path(directory, before, folder);
        status = resume_from(folder, state, run, &rejects);
    } while (rejects);
    if (!status && wrong.size) fprintf(stderr, "trireme: %s\n", wrong.data);
    text_free(&wrong);
    return status;
}
