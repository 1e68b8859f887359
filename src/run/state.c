/* SPDX-License-Identifier: Apache-2.0 */
#include "run/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/data.h"
#include "plan/estimates.h"
#include "plan/option_rows.h"
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
    const tri_graph *g = run->model;
    size_t at = 0;
    *order = 0;
    for (const struct option_row *row = options_rows; row->flag && at < CHECKPOINT_TEXT; row++) {
        const char *given = row->use & KEPT_ORDER ? option_given_text(row, &run->options) : NULL;
        if (given)
            at += (size_t)base_format(order + at, CHECKPOINT_TEXT - at, "%s%s %s", at ? " " : "",
                                      row->flag, given);
    }
    for (int i = 0; i < g->n_shorter && at < CHECKPOINT_TEXT; i++)
        at += (size_t)base_format(order + at, CHECKPOINT_TEXT - at, "%s%lld",
                                  i ? "/" : at ? " lengths " : "lengths ",
                                  (long long)g->shorter[i].length);
}

static void without_defaults(char *order) {
    for (const struct option_row *row = options_rows; row->flag; row++) {
        char usual[32];
        if (!(row->use & KEPT_ORDER) || !row->usual) continue;
        size_t n = (size_t)base_format(usual, sizeof usual, "%s %s", row->flag, row->usual);
        char *at = strstr(order, usual);
        if (!at || (at[n] && at[n] != ' ')) continue;
        if (at[n]) n++;
        else if (at > order) at--, n++;
        memmove(at, at + n, strlen(at + n) + 1);
    }
}

void state_options(struct checkpoint_options *out, const tri_run *run) {
    const struct option_row *row, *length = option_row("--steps");
    tri_options o = run->options;
    o.steps = run->total;
    *out = (struct checkpoint_options){0};
    for (int place = 1; (row = option_of_state(place)); place++) {
        if (row == length && !schedule_ends(&run->schedule)) continue;
        CHECK(out->n < (int)COUNT(out->one));
        struct checkpoint_option *to = &out->one[out->n++];
        base_format(to->name, sizeof to->name, "%s", row->flag + 2 * row->bare);
        option_keep(row, &o, to->value, sizeof to->value);
    }
}

/* A resume compares texts, so none may be cut off. */
static tri_status check_texts(const tri_run *run) {
    char order[CHECKPOINT_TEXT];
    describe_order(run, order);
    if (strlen(order) + 1 == sizeof order)
        return base_fail(TRI_USAGE, "--sampler, --subset, --share and --tail are too long for a "
                         "checkpoint (--ckpt): %s...; use shorter paths", order);
    for (const struct option_row *row = options_rows; row->flag; row++) {
        const char *given = row->state ? option_given_text(row, &run->options) : NULL;
        if (given && strlen(given) >= CHECKPOINT_TEXT)
            return base_fail(TRI_USAGE, "%s has %zu bytes; in a checkpoint (--ckpt) it can have "
                             "%d: use a shorter path", row->flag, strlen(given),
                             CHECKPOINT_TEXT - 1);
    }
    return TRI_OK;
}

tri_status state_check(const tri_run *run) {
    const struct machine *m = run->executable;
    if (m->n_scalars > CHECKPOINT_MOST_SCALARS)
        return base_fail(TRI_USAGE, "the network has %d scalars; a checkpoint (--ckpt) can have %d",
                         m->n_scalars, CHECKPOINT_MOST_SCALARS);
    for (int i = 0; i < m->n_scalars; i++)
        if (strlen(m->scalar[i].name) >= CHECKPOINT_TEXT)
            return base_fail(TRI_USAGE, "the name of scalar \"%s\" has %zu bytes; in a checkpoint "
                             "(--ckpt) it can have %d", m->scalar[i].name,
                             strlen(m->scalar[i].name), CHECKPOINT_TEXT - 1);
    return check_texts(run);
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
    for (int i = 0; i < run->executable->n_scalars; i++) { /* see state_check */
        const struct run_scalar *from = &run->executable->scalar[i];
        struct checkpoint_scalar *to = &s->scalar[s->n_scalars++];
        base_format(to->name, sizeof to->name, "%s", from->name);
        to->value = from->value;
    }
}

/* ---- resuming a run ---- */

/* What a run that resumes has otherwise than its checkpoint. */
struct others {
    struct text required, warned;
};

static void differs(struct others *d, const char *option, const char *there, const char *here) {
    bool required = *option == '-' && option_row(option)->use & RESUME_REQUIRES;
    if (!strcmp(there, here)) return;
    if (required)
        text_add(&d->required, "%s%s %s (this run has %s)", d->required.size ? ", " : "", option,
                 there, here);
    else
        text_add(&d->warned, "%s%s %s now, %s", d->warned.size ? "; " : "", option, here, there);
}

static void numbers_differ(struct others *d, const char *option, long long there, long long here) {
    char is[24], was[24];
    base_format(was, sizeof was, "%lld", there);
    base_format(is, sizeof is, "%lld", here);
    differs(d, option, was, is);
}

static const char *option_of(const struct checkpoint_options *o, const char *name) {
    for (int i = 0; i < o->n; i++)
        if (!strcmp(o->one[i].name, name)) return o->one[i].value;
    return NULL;
}

static void compare_options(const struct checkpoint_state *s, const tri_run *run,
                            struct others *d) {
    const struct checkpoint_options *now = &run->checkpointer->options;
    char order[CHECKPOINT_TEXT], there[CHECKPOINT_TEXT];
    describe_order(run, order);
    base_format(there, sizeof there, "%s", s->order);
    without_defaults(there);
    numbers_differ(d, "--batch", (long long)s->batch, (long long)run_batch(run));
    if (s->files < CHECKPOINT_FILES) /* else the plan has it */
        numbers_differ(d, "--lanes", (long long)s->lanes, (long long)run_lanes(run));
    numbers_differ(d, "--seed", (long long)s->seed, (long long)run->options.seed);
    differs(d, "--shuffle", s->shuffle ? "on" : "off", shuffles(run) ? "on" : "off");
    for (int i = 0; i < now->n; i++) {
        const char *was = option_of(&s->options, now->one[i].name);
        if (was) differs(d, now->one[i].name, was, now->one[i].value);
    }
    struct text *r = &d->required;
    if (s->data_size != tri_data_size(run->data))
        text_add(r, "%s%lld sample(s) (this run has %lld)", r->size ? ", " : "",
                 (long long)s->data_size, (long long)tri_data_size(run->data));
    if (s->lanes != run_lanes(run) && graph_per_lane(run->model))
        text_add(r, "%s--lanes %lld (this run has %lld), which are part of the loss, as the "
                 "network reduces samples per lane", r->size ? ", " : "", (long long)s->lanes,
                 (long long)run_lanes(run));
    if (strcmp(there, order))
        text_add(r, "%s%s (this run has %s)", r->size ? ", " : "",
                 *there ? there : "no --sampler, --subset, --share or --tail",
                 *order ? order : "none");
}

/* Checks what must be the same for the run to continue with the same results. */
static tri_status check_same(const char *folder, const struct others *d, const tri_run *run) {
    const char *what = d->required.data ? d->required.data : "other options";
    char model[4096];
    if (!d->required.size && !d->required.failed) return TRI_OK;
    if (run->options.changed) {
        fprintf(stderr, "trireme: %s was made with %s: the new values apply\n", folder, what);
        return TRI_OK;
    }
    checkpoint_file(folder, CHECKPOINT_MODEL, run->checkpointer->key, model);
    return base_fail(TRI_USAGE, "%s was made with %s: the run would not continue as it began; give "
                     "the same options, or go on with these: --changed, or start a new run with "
                     "its weights: --load %s, and another directory with --ckpt", folder, what,
                     model);
}

/* The text as this version prints it, which may spell it otherwise than the one that wrote it. */
static bool network_differs(const char *was, const char *is, struct text *how) {
    tri_graph *g = tri_graph_parse(was, strlen(was), CHECKPOINT_NETWORK);
    char *now = tri_graph_print(g); /* null: it cannot be read */
    bool other = graph_texts_differ(now ? now : was, is, how);
    free(now);
    tri_graph_free(g);
    return other;
}

/* A run of another network would go on with weights that mean something else. */
static tri_status check_network(const char *folder, const struct checkpoint_state *s,
                                const tri_run *run, bool *other) {
    struct text how = {0};
    char *was, model[4096];
    *other = false;
    if (s->files < CHECKPOINT_FILES) {
        fprintf(stderr, "trireme: %s has format %d, without network and plan: whether they are "
                "those of this run could not be compared\n", folder, s->format);
        return TRI_OK;
    }
    tri_status status = checkpoint_read_text(folder, CHECKPOINT_NETWORK, run->checkpointer->key,
                                             s->step, &was);
    if (status) return status;
    *other = network_differs(was, run->network, &how);
    const char *what = how.data ? how.data : "";
    checkpoint_file(folder, CHECKPOINT_MODEL, run->checkpointer->key, model);
    if (*other && run->options.changed)
        fprintf(stderr, "trireme: %s was made with another network; the first difference: %s\n",
                folder, what);
    else if (*other)
        status = base_fail(TRI_USAGE, "%s was made with another network; the first difference: %s: "
                           "--changed continues with this one, and --load %s starts a new run, "
                           "with another directory for --ckpt", folder, what, model);
    text_free(&how);
    free(was);
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

/* To be freed with plan_free. */
static tri_status read_plan(const char *folder, const struct checkpoint_state *s,
                            const tri_run *run, struct plan_file *was) {
    char *text;
    tri_status status = checkpoint_read_text(folder, CHECKPOINT_PLAN, run->checkpointer->key,
                                             s->step, &text);
    if (status) return status;
    status = plan_parse(CHECKPOINT_PLAN, text, strlen(text), was);
    free(text);
    return status ? base_fail(TRI_FAILED, "%s: %s", folder, tri_message()) : TRI_OK;
}

/* Estimates mean something else if the nodes or the shares are others. *fresh: the checkpoint or
 * the run has some, and they are not taken. */
static tri_status compare_estimates(const char *folder, const struct checkpoint_state *s,
                                    const tri_run *run, bool *fresh) {
    struct text lines = {0};
    struct plan_file was;
    bool keeps = false;
    *fresh = false;
    if (s->files < CHECKPOINT_FILES) return TRI_OK;
    tri_status status = read_plan(folder, s, run, &was);
    if (status) return status;
    const struct plan_line *wire = plan_find(&was, PLAN_WIRE);
    for (size_t i = 0; i < run->store.n; i++) keeps |= estimate_is(run->store.entry[i].name);
    plan_differ(&was, &run->own_plan, PLAN_LANES, PLAN_MESH, &lines);
    plan_differ(&was, &run->own_plan, PLAN_WIRE, PLAN_STRATEGY, &lines);
    *fresh = lines.size && (keeps || (wire && strstr(wire->value, wire_names[WIRE_TOPK])));
    if (*fresh && keeps)
        fprintf(stderr, "trireme: %s was made with another --wire, --wire-nodes or --lanes: the "
                "estimates of --wire %s begin with zeros\n", folder, run->options.wire);
    text_free(&lines);
    plan_free(&was);
    return TRI_OK;
}

/* Lanes, mesh, strategies, precision, kernels; network and batch are compared by themselves. Of
 * older checkpoints only the hash of the grain is known. */
static tri_status warn_other_plan(const char *folder, const struct checkpoint_state *s,
                                  const tri_run *run) {
    struct text lines = {0};
    struct plan_file was;
    char grain[PLAN_DIGITS];
    if (s->files < CHECKPOINT_FILES) {
        if (*s->grain && strcmp(s->grain, plan_hash(&run->own_plan, PLAN_GRAIN, grain)))
            text_add(&lines, "- grain %s\n+ grain %s\n", s->grain, grain);
    } else {
        tri_status status = read_plan(folder, s, run, &was);
        if (status) return status;
        plan_differ(&was, &run->own_plan, PLAN_LANES, PLAN_WORKERS, &lines);
        plan_free(&was);
    }
    if (lines.size)
        fprintf(stderr, "trireme: %s was made with another grain (lanes, mesh, strategies, "
                "precision, kernels or --wire): the run does not continue with the same bits\n%s",
                folder, lines.data);
    text_free(&lines);
    return TRI_OK;
}

/* Reports options that may be changed, and were. */
static void print_other_options(const char *folder, const struct checkpoint_state *s,
                                const struct others *d) {
    if (d->warned.size && !d->warned.failed)
        fprintf(stderr, "trireme: %s when %s was written: the new values apply from step %lld on\n",
                d->warned.data, folder, (long long)s->step + 1);
}

static tri_status no_fit(const char *folder, bool optimizer, const char *wrong,
                         const tri_run *run) {
    char model[4096];
    checkpoint_file(folder, CHECKPOINT_MODEL, run->checkpointer->key, model);
    return base_fail(TRI_USAGE, "%s does not fit this run's %s (%s), and --resume needs the same; "
                     "to go on with what fits: --changed; to start a new run with its weights: "
                     "--load %s%s, and another directory with --ckpt", folder,
                     optimizer ? "optimizer (--optimizer, --loss-scale, --amp-type)" : "model",
                     wrong, model, optimizer ? "" : " --partial");
}

/* *whole: all tensors were taken, of which *fresh: estimates that begin anew are none. */
static tri_status load_files(const char *folder, const struct checkpoint_state *s, tri_run *run,
                             bool *whole, bool *fresh) {
    tri_status status = compare_estimates(folder, s, run, fresh);
    *whole = true;
    for (int i = 0; i < CHECKPOINT_TENSORS && !status; i++) {
        const char *name = checkpoint_files[i];
        char path[4096];
        struct text wrong = {0};
        struct safetensors *file;
        checkpoint_file(folder, name, run->checkpointer->key, path);
        status = checkpoint_open(folder, name, run->checkpointer->key, s->step, true, &file);
        if (!status) status = access_resume(run, file, path, i == 1, *fresh, &wrong);
        if (!status && wrong.failed) status = base_no_memory("a difference");
        if (!status && wrong.size && !run->options.changed)
            status = no_fit(folder, i == 1, wrong.data, run);
        *whole &= !wrong.size;
        text_free(&wrong);
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

/* Takes the tensors. *rejects: they have not the hash of the state; an older checkpoint may be
 * intact. *whole: there are no others. */
static tri_status take_tensors(const char *folder, const struct checkpoint_state *s, tri_run *run,
                               bool *whole, bool *rejects) {
    char weights[65], state[65];
    bool fresh;
    tri_status status = load_files(folder, s, run, whole, &fresh);
    run->done = s->step;
    if (status || !*whole) return status;
    tri_hash(run, weights, state);
    if (!*weights || !*state) return base_no_memory("the hash of the weights");
    *rejects = strcmp(weights, s->weights) || (!fresh && strcmp(state, s->state));
    *whole = !fresh;
    if (!*rejects) return TRI_OK;
    return base_fail(TRI_FAILED, "%s: what was loaded does not have the hash in state.json",
                     folder);
}

static void take_state(const char *folder, const struct checkpoint_state *s, tri_run *run) {
    char device[CHECKPOINT_TEXT];
    take_scalars(folder, s, run);
    policy_resume(run->policy, s);
    run->checkpointer->state = *s;
    run->epoch = s->epoch;
    run_device_text(run, device, sizeof device);
    if (strcmp(device, s->device))
        fprintf(stderr, "trireme: %s was made on %s; this is %s, and the last bits may differ\n",
                folder, s->device, device);
    if (!s->checked) fprintf(stderr, "trireme: %s: " CHECKPOINT_UNCHECKED "\n", folder);
}

static tri_status resume_from(const char *folder, const struct checkpoint_state *s, tri_run *run,
                              bool *rejects) {
    struct others d = {0};
    bool whole = true, other = false;
    compare_options(s, run, &d);
    tri_status status = check_same(folder, &d, run);
    if (!status) status = check_network(folder, s, run, &other);
    if (!status) status = take_tensors(folder, s, run, &whole, rejects);
    if (!status) {
        warn_other_data(folder, s, run);
        print_other_options(folder, s, &d);
        take_state(folder, s, run);
        status = warn_other_plan(folder, s, run);
    }
    other |= s->lanes != run_lanes(run);
    if (!status && run->options.changed && whole && !other && !d.required.size)
        fprintf(stderr, "trireme: --changed: %s has the same network, data and optimizer\n",
                folder);
    text_free(&d.required);
    text_free(&d.warned);
    return status;
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
