/* SPDX-License-Identifier: Apache-2.0 */
#include "run/checkpointer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "data/data.h"
#include "run/access.h"
#include "observe/events.h"
#include "run/executor.h"
#include "run/policy.h"

tri_status checkpointer_check(struct checkpointer *k, const tri_options *o) {
    if (!o->ckpt && (o->resume || o->save_every || o->save_minutes > 0 || o->keep || o->keep_every))
        return base_fail(TRI_USAGE, "--resume, --save-every, --save-minutes, --keep and --keep-every (tri_options) are "
                         "of checkpoints: name their directory with --ckpt");
    if (o->resume && o->load)
        return base_fail(TRI_USAGE, "--resume and --load are both given; a run goes on, or begins with weights");
    if (o->ckpt_key && !o->ckpt && !o->load && !o->forward)
        return base_fail(TRI_USAGE, "--ckpt-key (tri_options.ckpt_key) is the key of checkpoints (--ckpt), or of what "
                         "--load begins with");
    tri_status status = o->ckpt_key ? seal_key_open(o->ckpt_key, &k->key) : TRI_OK;
    return !status && o->ckpt ? checkpoint_prepare(o->ckpt) : status;
}

#define DIES_WITHIN 10 /* seconds; a process that holds much memory takes a while */

/* One run at a time writes there, or they would take each other's for their own. The lock goes with
 * the process; the next reporter takes it then. A death is seen before the process is gone, so the
 * next reporter may have to wait for that. */
static tri_status lock(struct checkpointer *k, const tri_run *run) {
    const char *directory = run->options.ckpt;
    if (k->locked) return TRI_OK;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return base_fail(TRI_FAILED, "%s: %s", directory, strerror(errno));
    bool taken, deaths = run->executor->saw_deaths(run);
    double until = base_seconds() + (deaths ? DIES_WITHIN : 0);
    while ((taken = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) && base_seconds() < until)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (taken) {
        close(fd);
        return base_fail(TRI_USAGE, "another run writes its checkpoints to %s; name another directory with --ckpt",
                         directory);
    }
    k->lock = fd;
    k->locked = true;
    return TRI_OK;
}

/* ---- the copy ---- */

/* The first touch of memory costs more than the copying: it is done when the run begins. */
static tri_status make_copy(struct checkpointer *k, const struct store *s) {
    if (k->copy) return TRI_OK;
    size_t bytes = 0, model = 0;
    for (size_t i = 0; i < s->n; i++) {
        bytes += memory_round(base_spec_bytes(&s->entry[i].spec));
        model += !s->entry[i].of_optimizer;
    }
    k->copy_bytes = bytes;
    k->copy = dev_host_allocate(bytes + MEMORY_ALIGN);
    k->place = calloc(s->n + 1, sizeof *k->place);
    k->entries = calloc(s->n + 1, sizeof *k->entries);
    if (!k->copy || !k->place || !k->entries) {
        if (k->copy) dev_host_release(k->copy, bytes + MEMORY_ALIGN);
        free(k->place);
        free(k->entries);
        k->copy = NULL;
        k->place = NULL;
        k->entries = NULL;
        return base_no_memory("the copy for checkpoints");
    }
    memset(k->copy, 0, bytes);
    size_t at = 0, next[2] = {0, model};
    for (size_t i = 0; i < s->n; i++) {
        const struct stored *e = &s->entry[i];
        k->entries[next[e->of_optimizer]++] =
            (struct safetensors_entry){.name = e->name, .spec = e->spec, .data = k->copy + at};
        k->place[i] = k->copy + at;
        at += memory_round(base_spec_bytes(&e->spec));
    }
    k->content = (struct checkpoint_content){.state = &k->state, .entries = k->entries, .n_model = model,
                                             .n_optimizer = s->n - model, .metadata = k->metadata,
                                             .key = k->key};
    return TRI_OK;
}

static void copy_values(const struct checkpointer *k, const struct store *s) {
    for (size_t i = 0; i < s->n; i++) store_read(s, &s->entry[i], k->place[i]);
}

static bool shuffles(const tri_run *run) { return run->data ? run->sampler.shuffle : !run->options.no_shuffle; }

static const char *data_name(const tri_run *run) {
    return run->data ? run->data->name : run->fed ? "feed" : "";
}

/* What the order of samples depends on, but whether they are shuffled. */
static void describe_order(const tri_run *run, char order[CHECKPOINT_TEXT]) {
    const tri_options *o = &run->options;
    const tri_graph *g = run->model;
    const struct {
        const char *name, *value;
    } given[] = {{"sampler", o->sampler}, {"subset", o->subset}, {"share", o->share}, {"tail", o->tail}};
    size_t at = 0;
    *order = 0;
    for (size_t i = 0; i < COUNT(given) && at < CHECKPOINT_TEXT; i++)
        if (given[i].value)
            at += (size_t)base_format(order + at, CHECKPOINT_TEXT - at, "%s--%s %s", at ? " " : "", given[i].name,
                                      given[i].value);
    for (int i = 0; i < g->n_shorter && at < CHECKPOINT_TEXT; i++)
        at += (size_t)base_format(order + at, CHECKPOINT_TEXT - at, "%s%lld", i ? "/" : at ? " lengths " : "lengths ",
                                  (long long)g->shorter[i].length);
}

static void add_text(struct checkpoint_options *o, const char *name, const char *value) {
    CHECK(o->n < (int)COUNT(o->one));
    base_format(o->one[o->n].name, sizeof o->one->name, "%s", name);
    base_format(o->one[o->n++].value, sizeof o->one->value, "%s", value ? value : "");
}

/* What may be changed where a run goes on, and changes what it comes to; the number of steps, the last of the numbers,
 * where the schedule ends with them. */
static void describe_options(struct checkpoint_options *out, const tri_run *run) {
    const tri_options *o = &run->options;
    const tri_optimizer *of = &o->optimizer;
    const struct {
        const char *name;
        double value;
    } number[] = {{"--lr", of->lr}, {"--momentum", of->momentum}, {"beta1", of->beta1}, {"beta2", of->beta2},
                  {"eps", of->eps}, {"--trust", of->trust}, {"--weight-decay", of->weight_decay},
                  {"decay_all", of->decay_all}, {"--clip-norm", of->clip_norm}, {"--steps", (double)run->total}};
    const struct {
        const char *name, *value, *usual;
    } text[] = {{"--optimizer", of->name, "sgd"}, {"--schedule", of->schedule, "constant"},
                {"--gradients-mean", of->gradients_sum ? "off" : NULL, "on"}, {"--loss-scale", of->loss_scale, "off"},
                {"--amp", o->amp, "O0"}, {"--amp-type", o->amp_type, "bf16"}, {"--conv", o->conv, "auto"},
                {"--passes", o->passes, "all"}};
    *out = (struct checkpoint_options){0};
    for (size_t i = 0; i < COUNT(number) - !schedule_ends(&run->schedule); i++) {
        char value[CHECKPOINT_TEXT];
        base_format(value, sizeof value, "%.9g", optimizer_is_zero(number[i].value) ? 0 : number[i].value);
        add_text(out, number[i].name, value);
    }
    for (size_t i = 0; i < COUNT(text); i++)
        add_text(out, text[i].name, text[i].value ? text[i].value : text[i].usual);
}

static void describe(struct checkpoint_state *s, const tri_run *run) {
    *s = (struct checkpoint_state){.step = run->done, .epoch = run->epoch, .batch = run_batch(run),
                                   .lanes = run_lanes(run), .seed = run->options.seed,
                                   .shuffle = shuffles(run), .loss = tri_value(run, "loss"),
                                   .rate = run->set_rate, .options = run->checkpointer->options};
    describe_order(run, s->order);
    base_format(s->library, sizeof s->library, "trireme " TRI_VERSION);
    run_device_text(run, s->device, sizeof s->device);
    base_format(s->data, sizeof s->data, "%s", data_name(run));
    s->data_size = tri_data_size(run->data);
    if (run->policy->data) {
        base_format(s->metric, sizeof s->metric, "%s", run->policy->metric);
        s->policy_state = run->policy->is;
    }
    for (int i = 0; i < run->executable->n_scalars && s->n_scalars < (int)COUNT(s->scalar); i++) {
        const struct run_scalar *from = &run->executable->scalar[i];
        struct checkpoint_scalar *to = &s->scalar[s->n_scalars++];
        base_format(to->name, sizeof to->name, "%s", from->name);
        to->value = from->value;
    }
}

/* ---- writing ---- */

/* The step whose checkpoint stays, as that of the best evaluation so far. */
static int64_t best_of(const tri_run *run) {
    return run->policy->keeps ? run->checkpointer->state.policy_state.best_step : 0;
}

#define MIB 1048576.0

/* Bytes of a checkpoint, and those that its directory has room for: infinitely many, if it does not say. */
static double bytes_of(const tri_run *run) {
    double bytes = 0;
    for (size_t i = 0; i < run->store.n; i++) bytes += (double)base_spec_bytes(&run->store.entry[i].spec);
    return bytes;
}

static double room_in(const char *directory) {
    struct statvfs disk;
    return statvfs(directory, &disk) ? INFINITY : (double)disk.f_bavail * (double)disk.f_frsize;
}

/* What is removed behind each that is whole goes before, where there is no room else. */
static tri_status write_in_room(struct checkpointer *k, const tri_run *run) {
    const tri_options *o = &run->options;
    double needs = bytes_of(run), room;
    tri_status status;
    for (bool any = true; (status = checkpoint_write(o->ckpt, &k->content, &k->written));) {
        base_format(k->error, sizeof k->error, "%s", tri_message());
        room = room_in(o->ckpt);
        if (room >= needs) return base_fail(status, "%s", k->error);
        if (!any || checkpoint_make_room(o->ckpt, k->key, k->state.step, o->keep, o->keep_every, best_of(run), &any) ||
            !any)
            return base_fail(status, "%s; there is room for %.1f MiB, and it takes %.1f MiB: %.1f MiB are to be "
                             "freed%s", k->error, room / MIB, needs / MIB, (needs - room) / MIB,
                             k->kept > 0 || k->resumed ? " (the one before stays until the new one is whole)" : "");
        any = false;
    }
    return TRI_OK;
}

/* Nobody could go on from it. */
static tri_status check_finite(struct checkpointer *k, const tri_run *run) {
    for (size_t i = 0; i < run->store.n; i++) {
        const struct stored *e = &run->store.entry[i];
        bool nan;
        int64_t at = -1;
        if (e->param) at = finite_first(e->spec.type, k->place[i], tri_shape_count(&e->spec.shape), &nan);
        if (at < 0) continue;
        base_format(k->error, sizeof k->error, "parameter %s is %s at element %lld", e->name, nan ? "nan" : "infinite",
                    (long long)at);
        atomic_store(&k->not_finite, true);
        return TRI_FAILED;
    }
    return TRI_OK;
}

static void *write_it(void *arg) {
    tri_run *run = arg;
    struct checkpointer *k = run->checkpointer;
    const tri_options *o = &run->options;
    double began = base_seconds();
    struct hashing h;
    sigset_t too_large; /* a file beyond the limit of its size (ulimit -f) fails, instead of killing */
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &too_large, NULL);
    k->status = check_finite(k, run);
    if (k->status) return NULL;
    hashing_begin(&h);
    for (size_t i = 0; i < run->store.n; i++) hashing_add(&h, &run->store.entry[i], k->place[i]);
    hashing_end(&h, k->state.step, k->state.weights, k->state.state);
    k->status = write_in_room(k, run);
    if (k->status)
        base_format(k->error, sizeof k->error, "%s", tri_message());
    else if (checkpoint_prune(o->ckpt, k->state.step, o->keep, o->keep_every, best_of(run)))
        base_format(k->left, sizeof k->left, "%s", tri_message());
    else
        *k->left = 0;
    k->write_seconds = base_seconds() - began;
    return NULL;
}

/* A failure is told, and the run goes on. */
static void tell_failure(const struct checkpointer *k, tri_run *run, int64_t step) {
    char text[sizeof k->error + 64];
    const struct event failure = {.name = "save-failure", .message = text, .worker = -1, .step = step, .code = -1};
    base_format(text, sizeof text, "the checkpoint of step %lld failed: %s", (long long)step, k->error);
    fprintf(stderr, "trireme: %s\n", text);
    events_tell(run->events, &failure);
    run->executor->save_failed(run, text);
}

/* An old checkpoint that stays is no failure of the new one. The same warning appears once. */
static void tell_left(struct checkpointer *k) {
    memcpy(k->warned, k->left, sizeof k->warned);
    if (*k->left) fprintf(stderr, "trireme: warning: %s\n", k->left);
}

/* The one before. */
static void wait_for_writer(struct checkpointer *k, tri_run *run) {
    if (!k->writing) return;
    pthread_join(k->writer, NULL);
    k->writing = false;
    if (!k->status) k->kept = k->state.step;
    if (!k->status && strcmp(k->left, k->warned)) tell_left(k);
    if (k->status) tell_failure(k, run, k->state.step);
    run->executor->saved(run);
}

static void count_held(struct checkpointer *k, double seconds) {
    if (!k->times++ || seconds < k->least_seconds) k->least_seconds = seconds;
    k->held_seconds += seconds;
}

void checkpointer_save(struct checkpointer *k, tri_run *run) {
    double asked = base_seconds();
    wait_for_writer(k, run);
    double began = k->last = base_seconds();
    k->wait_seconds += began - asked;
    k->tried = run->done;
    k->status = checkpoint_prepare(run->options.ckpt); /* it may have been taken away */
    if (!k->status) k->status = lock(k, run);
    if (!k->status) k->status = make_copy(k, &run->store);
    if (!k->status) {
        copy_values(k, &run->store);
        describe(&k->state, run);
        k->content.n_metadata = weights_metadata(run, k->metadata);
        if (!run->executor->is_whole(run)) /* of a run that has failed; looked at behind the copy, for others may be at work */
            k->status = base_fail(TRI_FAILED, "the step that failed had begun to change parameters");
        else if (pthread_create(&k->writer, NULL, write_it, run))
            k->status = base_fail(TRI_FAILED, "cannot start a thread");
        else
            k->writing = true;
        count_held(k, base_seconds() - began);
        if (k->writing) return;
    }
    base_format(k->error, sizeof k->error, "%s", tri_message());
    tell_failure(k, run, run->done);
}

void checkpointer_step(struct checkpointer *k, tri_run *run) {
    const tri_options *o = &run->options;
    if (!o->ckpt) return;
    bool steps = o->save_every && run->done % o->save_every == 0;
    bool time = o->save_minutes > 0 && base_seconds() - k->last >= 60 * o->save_minutes;
    bool best = run->policy->better && run->policy->keeps;
    if (steps || time || best) checkpointer_save(k, run);
    if (best) wait_for_writer(k, run); /* nobody evaluates that step once more */
    checkpointer_answer(k, run);
}

void checkpointer_answer(struct checkpointer *k, tri_run *run) {
    uint32_t asked = run->executor->save_asked(run);
    if (!asked) return;
    if (k->tried != run->done) checkpointer_save(k, run);
    wait_for_writer(k, run);
    run->executor->save_answer(run, asked, k->status ? k->error : NULL);
}

/* The copy is there to be written over, now that all is saved. */
static double time_of_a_copy(const struct checkpointer *k, const struct store *s) {
    size_t bytes = k->copy_bytes < s->bytes ? k->copy_bytes : s->bytes;
    double best = INFINITY;
    for (int i = 0; i < 3; i++) {
        double began = base_seconds();
        s->dev->copy_out(k->copy, s->block, bytes);
        if (base_seconds() - began < best) best = base_seconds() - began;
    }
    return best;
}

static void tell_all(const struct checkpointer *k, const tri_run *run) {
    struct text t = {0};
    text_add(&t, "%d checkpoint%s of %.1f MiB in %s, the last of step %lld; each held a step up for %.1f ms, at least %.1f "
             "ms (a copy of as many bytes: %.1f ms)", k->times, k->times == 1 ? "" : "s",
             (double)k->written / (1 << 20), run->options.ckpt, (long long)k->kept,
             1e3 * k->held_seconds / k->times, 1e3 * k->least_seconds, 1e3 * time_of_a_copy(k, &run->store));
    if (k->wait_seconds > 1e-3 * k->times)
        text_add(&t, ", and %.1f ms more as the one before was still being written", 1e3 * k->wait_seconds / k->times);
    if (!t.failed) fprintf(stderr, "trireme: %s\n", t.data);
    text_free(&t);
}

tri_status checkpointer_end(struct checkpointer *k, tri_run *run) {
    if (!run->options.ckpt) return TRI_OK;
    if (run->done > k->resumed && k->tried != run->done) checkpointer_save(k, run);
    wait_for_writer(k, run);
    if (k->tried < 0) return TRI_OK;
    if (k->status)
        return base_fail(TRI_FAILED, "the last checkpoint, of step %lld, could not be written: %s",
                         (long long)k->tried, k->error);
    if (!run->options.quiet && k->times) tell_all(k, run);
    return TRI_OK;
}

void checkpointer_free(struct checkpointer *k) {
    if (k->writing) pthread_join(k->writer, NULL);
    if (k->copy) dev_host_release(k->copy, k->copy_bytes + MEMORY_ALIGN);
    free(k->place);
    free(k->entries);
    seal_key_free(k->key);
    if (k->locked) close(k->lock);
    *k = (struct checkpointer){0};
}

/* ---- going on ---- */

static void differs(struct text *t, const char *option, long long there, long long here) {
    if (there != here) text_add(t, "%s%s %lld (this run has %lld)", t->size ? ", " : "", option, there, here);
}

/* What must be the same for the steps to come to be those that would have come. */
static tri_status check_same(const char *folder, const struct checkpoint_state *s, const tri_run *run) {
    struct text t = {0};
    char order[CHECKPOINT_TEXT];
    describe_order(run, order);
    differs(&t, "--batch", (long long)s->batch, (long long)run_batch(run));
    differs(&t, "--lanes", (long long)s->lanes, (long long)run_lanes(run));
    differs(&t, "--seed", (long long)s->seed, (long long)run->options.seed);
    differs(&t, "--shuffle", s->shuffle, shuffles(run));
    differs(&t, "samples:", (long long)s->data_size, (long long)tri_data_size(run->data));
    if (strcmp(s->order, order))
        text_add(&t, "%s%s (this run has %s)", t.size ? ", " : "", *s->order ? s->order : "no --sampler or the like",
                 *order ? order : "none");
    tri_status status = TRI_OK;
    if (t.size || t.failed)
        status = base_fail(TRI_USAGE, "%s was made with %s: the run would not go on as it began; give the same, or "
                           "--load %s/" CHECKPOINT_MODEL "%s to begin anew with its weights", folder,
                           t.data ? t.data : "other options", folder, run->checkpointer->key ? CHECKPOINT_SEALED : "");
    text_free(&t);
    return status;
}

/* Of what may be another's; the data may have been moved alone. */
static void tell_other_data(const char *folder, const struct checkpoint_state *s, const tri_run *run) {
    char name[CHECKPOINT_TEXT];
    base_format(name, sizeof name, "%s", data_name(run));
    if (strcmp(s->data, name))
        fprintf(stderr, "trireme: %s was made with data %s, and this run has %s: unless the samples are the same, it does "
                "not go on as it began\n", folder, *s->data ? s->data : "of none", *name ? name : "none");
}

static const char *option_of(const struct checkpoint_options *o, const char *name) {
    for (int i = 0; i < o->n; i++)
        if (!strcmp(o->one[i].name, name)) return o->one[i].value;
    return NULL;
}

/* What counts otherwise from here on. */
static void tell_other_options(const char *folder, const struct checkpoint_state *s, const tri_run *run) {
    struct text t = {0};
    const struct checkpoint_options *now = &run->checkpointer->options;
    for (int i = 0; i < now->n; i++) {
        const char *there = option_of(&s->options, now->one[i].name);
        if (there && strcmp(there, now->one[i].value))
            text_add(&t, "%s%s %s now, %s", t.size ? "; " : "", now->one[i].name, now->one[i].value, there);
    }
    if (t.size && !t.failed)
        fprintf(stderr, "trireme: %s when %s was written: what is given now counts from step %lld on\n", t.data, folder,
                (long long)s->step + 1);
    text_free(&t);
}

static tri_status check_fits(const char *folder, const struct safetensors *file, bool optimizer, const tri_run *run) {
    bool fits;
    tri_status status = access_fits(run, file, optimizer, &fits);
    if (status || fits) return status;
    return base_fail(TRI_USAGE, "%s was made with another %s, and a run goes on with the same (--resume); to begin anew with "
                     "its weights: --load %s/" CHECKPOINT_MODEL "%s%s, and another directory with --ckpt", folder,
                     optimizer ? "--optimizer" : "model", folder, run->checkpointer->key ? CHECKPOINT_SEALED : "",
                     optimizer ? "" : " --partial");
}

static tri_status load_all(const char *folder, const struct checkpoint_state *s, tri_run *run) {
    static const char *const names[] = {CHECKPOINT_MODEL, CHECKPOINT_OPTIMIZER};
    const struct seal_key *key = run->checkpointer->key;
    tri_status status = TRI_OK;
    for (int i = 0; i < 2 && !status; i++) {
        char path[4096];
        struct safetensors *file;
        checkpoint_file(folder, names[i], key, path);
        status = checkpoint_open(folder, names[i], key, s->step, &file);
        if (status) break;
        status = check_fits(folder, file, i == 1, run);
        if (status)
            safetensors_close(file);
        else
            status = access_take(run, file, path, i == 1);
    }
    return status;
}

/* A rate that the program has set counts, whatever the options say of it. */
static void take_scalars(const char *folder, const struct checkpoint_state *s, tri_run *run) {
    run->set_rate = s->rate;
    if (!isnan(s->rate))
        fprintf(stderr, "trireme: %s has the learning rate %g in place of the schedule's, set by the "
                "program: it stays until tri_set_scalar changes it\n", folder, s->rate);
    for (int i = 0; i < s->n_scalars; i++) {
        struct run_scalar *to = machine_scalar(run->executable, s->scalar[i].name);
        if (to) to->value = s->scalar[i].value;
    }
}

/* *rejects: what it holds is not what its state says; an older one may do. */
static tri_status resume_from(const char *folder, const struct checkpoint_state *s, tri_run *run, bool *rejects) {
    char device[CHECKPOINT_TEXT], weights[65], state[65];
    tri_status status = check_same(folder, s, run);
    if (!status) status = load_all(folder, s, run);
    if (status) return status;
    run->done = s->step;
    tri_hash(run, weights, state);
    if (!*weights || !*state) return base_no_memory("the hash of the weights");
    *rejects = strcmp(weights, s->weights) || strcmp(state, s->state);
    if (*rejects)
        return base_fail(TRI_FAILED, "%s: what was loaded has not the hash that state.json says", folder);
    tell_other_data(folder, s, run);
    tell_other_options(folder, s, run);
    take_scalars(folder, s, run);
    policy_resume(run->policy, s);
    run->checkpointer->state = *s;
    run->epoch = s->epoch;
    run_device_text(run, device, sizeof device);
    if (strcmp(device, s->device))
        fprintf(stderr, "trireme: %s was made on %s; here it is %s, and the last bits may differ\n", folder, s->device,
                device);
    if (!s->checked) fprintf(stderr, "trireme: %s: " CHECKPOINT_UNCHECKED "\n", folder);
    return TRI_OK;
}

/* From the newest that is not rejected; what is wrong with newer ones is told. state->step -1: there is none yet. */
static tri_status resume_newest(tri_run *run, struct checkpoint_state *state) {
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

/* Before the first step, what each will take; a disk that is too small for one is told of in any case. */
static void tell_size(const struct checkpointer *k, const tri_run *run) {
    const char *directory = run->options.ckpt;
    double bytes = bytes_of(run), left = room_in(directory);
    if (!run->options.quiet)
        fprintf(stderr, "trireme: a checkpoint takes %.1f MiB in %s, and the copy that it is written from %.1f MiB of "
                "memory\n", bytes / MIB, directory, (double)k->copy_bytes / MIB);
    if (left < bytes)
        fprintf(stderr, "trireme: %s has room for %.1f MiB, and a checkpoint takes %.1f MiB: none can be written there\n",
                directory, left / MIB, bytes / MIB);
}

/* A run that begins anew would mix its checkpoints with those of another. One of step 0 may be its own, of a worker
 * that has died since; it holds nothing that was learned. */
static tri_status check_none(const char *directory) {
    int64_t *steps;
    size_t n;
    tri_status status = checkpoint_list(directory, &steps, &n);
    if (!status && n && steps[0] > 0)
        status = base_fail(TRI_USAGE, "%s has checkpoints of a run already, up to step %lld: --resume goes on with it; to "
                           "begin anew, name another directory with --ckpt", directory, (long long)steps[0]);
    free(steps);
    return status;
}

tri_status checkpointer_resume(struct checkpointer *k, tri_run *run) {
    const tri_options *o = &run->options;
    struct checkpoint_state state;
    char folder[4096];
    k->kept = k->tried = -1;
    k->last = base_seconds();
    k->resumed = run->executor->base(run); /* by another process */
    describe_options(&k->options, run);
    if (!o->ckpt || !run->executor->writes(run)) return TRI_OK;
    tri_status status = lock(k, run);
    if (!status) status = checkpoint_check_form(o->ckpt, k->key);
    if (!status) status = checkpoint_prune(o->ckpt, 0, 0, 0, 0); /* of what writers that died have left */
    if (!status && !o->resume && !o->forward) status = check_none(o->ckpt);
    if (!status) status = make_copy(k, &run->store);
    if (!status) tell_size(k, run);
    if (status || !o->resume) return status;
    status = resume_newest(run, &state);
    if (status) return status;
    if (state.step < 0) {
        fprintf(stderr, "trireme: there is no checkpoint in %s yet: the run begins anew\n", o->ckpt);
        return TRI_OK;
    }
    const int64_t step = state.step;
    checkpoint_path(o->ckpt, step, folder);
    status = checkpoint_set_aside(o->ckpt, step); /* those behind it are damaged */
    if (status) return status;
    k->resumed = step;
    run->executor->begin_at(run);
    if (step < run->total)
        fprintf(stderr, "trireme: goes on from %s, step %lld of %lld\n", folder, (long long)step, (long long)run->total);
    else
        fprintf(stderr, "trireme: nothing is left to be done: %s is of step %lld, and the run ends behind step %lld "
                "(--steps, --epochs)\n", folder, (long long)step, (long long)run->total);
    return TRI_OK;
}
