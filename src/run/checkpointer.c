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

#include "crew/spans.h"
#include "data/data.h"
#include "observe/events.h"
#include "run/access.h"
#include "run/executor.h"
#include "run/policy.h"
#include "run/state.h"

tri_status checkpointer_check(struct checkpointer *c, const tri_options *o) {
    if (!o->ckpt && (o->resume || o->save_every || o->save_minutes > 0 || o->keep || o->keep_every))
        return base_fail(TRI_USAGE, "--resume, --save-every, --save-minutes, --keep and "
                         "--keep-every (tri_options) are for checkpoints, which need a directory: "
                         "--ckpt");
    if (o->changed && !o->resume)
        return base_fail(TRI_USAGE, "--changed (tri_options.changed) lets --resume go on with "
                         "another network; it has no effect without it");
    if (o->resume && (o->load || o->partial))
        return base_fail(TRI_USAGE, "--resume and %s are both given; a run either resumes, or "
                         "begins with weights", o->load ? "--load" : "--partial");
    if (o->ckpt_key && !o->ckpt && !o->load && !o->forward)
        return base_fail(TRI_USAGE, "--ckpt-key (tri_options.ckpt_key) is the key for checkpoints "
                         "(--ckpt) or for the file of --load; neither is given");
    return o->ckpt_key ? seal_key_open(o->ckpt_key, &c->key) : TRI_OK;
}

#define DIES_WITHIN 10 /* seconds; a process with much memory takes a while */
#define LOOKS 1000000  /* nanoseconds */

static void wait_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = LOOKS}, NULL); }

/* The one that writes takes the lock; another may give it back: see checkpointer_yield. */
static bool has_lock(struct checkpointer *c) {
    pthread_mutex_lock(&c->locking);
    const bool has = c->locked;
    pthread_mutex_unlock(&c->locking);
    return has;
}

static bool try_lock(struct checkpointer *c, int directory) {
    pthread_mutex_lock(&c->locking);
    c->locked = !flock(directory, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK;
    if (c->locked) c->lock = directory;
    const bool has = c->locked;
    pthread_mutex_unlock(&c->locking);
    return has;
}

/* Only one run at a time may write checkpoints to a directory. The kernel releases the lock when
 * the process is gone. A death is noticed before that, so the next reporter may have to wait, but
 * not for each checkpoint again. */
static tri_status lock(struct checkpointer *c, const tri_run *run) {
    const char *directory = run->options.ckpt;
    if (has_lock(c)) return TRI_OK;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return base_fail(TRI_FAILED, "%s: %s", directory, strerror(errno));
    const bool deaths = run->executor->saw_deaths(run) && !c->waited;
    const double until = base_seconds() + (deaths ? DIES_WITHIN : 0);
    bool has = try_lock(c, fd);
    for (; !has && base_seconds() < until; has = try_lock(c, fd)) wait_a_little();
    c->waited = !has;
    if (has) return TRI_OK;
    close(fd);
    return base_fail(TRI_USAGE, "another run writes its checkpoints to %s; name another directory "
                     "with --ckpt", directory);
}

void checkpointer_yield(struct checkpointer *c) {
    pthread_mutex_lock(&c->locking);
    if (c->locked) close(c->lock);
    c->locked = false;
    pthread_mutex_unlock(&c->locking);
}

/* Of the thread that writes, before it changes what others see. */
static tri_status may_change(void *user) {
    tri_run *run = user;
    enum file_place place;
    while ((place = run->executor->writes_files(run)) == FILES_UNKNOWN) {
        checkpointer_yield(run->checkpointer); /* another host may go on */
        wait_a_little();
    }
    return place == FILES_OURS ? lock(run->checkpointer, run)
                               : base_fail(TRI_FAILED, "another host writes checkpoints by now");
}

/* ---- the copy ---- */

/* Called when the run begins, as the first touch of memory costs more than copying. */
static tri_status make_copy(struct checkpointer *c, tri_run *run) {
    const struct store *s = &run->store;
    if (c->copy) return TRI_OK;
    if (!c->plan.size) plan_print(&run->own_plan, &c->plan);
    if (c->plan.failed) return base_no_memory("a plan");
    size_t bytes = 0, model = 0;
    for (size_t i = 0; i < s->n; i++) {
        bytes += memory_round(base_spec_bytes(&s->entry[i].spec));
        model += !s->entry[i].of_optimizer;
    }
    c->copy_bytes = bytes;
    c->copy = dev_host_allocate(bytes + MEMORY_ALIGN);
    c->place = calloc(s->n + 1, sizeof *c->place);
    c->entries = calloc(s->n + 1, sizeof *c->entries);
    if (!c->copy || !c->place || !c->entries) {
        if (c->copy) dev_host_release(c->copy, bytes + MEMORY_ALIGN);
        free(c->place);
        free(c->entries);
        c->copy = NULL;
        c->place = NULL;
        c->entries = NULL;
        return base_no_memory("the copy for checkpoints");
    }
    memset(c->copy, 0, bytes);
    size_t at = 0, next[2] = {0, model};
    for (size_t i = 0; i < s->n; i++) {
        const struct stored *e = &s->entry[i];
        c->entries[next[e->of_optimizer]++] =
            (struct safetensors_entry){.name = e->name, .spec = e->spec, .data = c->copy + at};
        c->place[i] = c->copy + at;
        at += memory_round(base_spec_bytes(&e->spec));
    }
    c->content = (struct checkpoint_content){.state = &c->state,
                                             .entries = c->entries,
                                             .n_model = model,
                                             .n_optimizer = s->n - model,
                                             .metadata = c->metadata,
                                             .network = run->network,
                                             .plan = c->plan.data,
                                             .key = c->key,
                                             .may_change = may_change,
                                             .user = run};
    return TRI_OK;
}

static void copy_values(const struct checkpointer *c, const struct store *s) {
    for (size_t i = 0; i < s->n; i++) store_read(s, &s->entry[i], c->place[i]);
}

/* ---- writing ---- */

/* The step of the best evaluation so far, whose checkpoint is kept. */
static int64_t best_of(const tri_run *run) {
    return run->policy->keeps ? run->checkpointer->state.policy_state.best_step : 0;
}

#define MIB 1048576.0

/* The size of a checkpoint, about. */
static double bytes_of(const tri_run *run) {
    double bytes = 0;
    for (size_t i = 0; i < run->store.n; i++)
        bytes += (double)base_spec_bytes(&run->store.entry[i].spec);
    return bytes;
}

/* Bytes that are free for the directory; infinity: not known. */
static double free_in(const char *directory) {
    struct statvfs disk;
    return statvfs(directory, &disk) ? INFINITY : (double)disk.f_bavail * (double)disk.f_frsize;
}

/* Old checkpoints are removed after the new one is complete, but before it if the disk is full. */
static tri_status write_or_make_room(struct checkpointer *c, const tri_run *run) {
    const tri_options *o = &run->options;
    double needs = bytes_of(run), left;
    tri_status status;
    for (bool any = true; (status = checkpoint_write(o->ckpt, &c->content, &c->written));) {
        base_format(c->error, sizeof c->error, "%s", tri_message());
        left = free_in(o->ckpt);
        if (left >= needs || run->executor->writes_files(run) != FILES_OURS)
            return base_fail(status, "%s", c->error);
        if (!any ||
            checkpoint_make_room(o->ckpt, c->key, c->state.step, o->keep, o->keep_every,
                                 best_of(run), &any) ||
            !any)
            return base_fail(status, "%s; %.1f MiB are free, and it needs %.1f MiB: free another "
                             "%.1f MiB%s", c->error, left / MIB, needs / MIB, (needs - left) / MIB,
                             c->kept > 0 || c->resumed
                                 ? " (the previous one stays until the new one is complete)"
                                 : "");
        any = false;
    }
    return TRI_OK;
}

/* Nobody could resume from a checkpoint with a parameter that is not finite. */
static tri_status check_finite(struct checkpointer *c, const tri_run *run) {
    for (size_t i = 0; i < run->store.n; i++) {
        const struct stored *e = &run->store.entry[i];
        bool nan;
        int64_t at = -1;
        if (e->param)
            at = finite_first(e->spec.type, c->place[i], tri_shape_count(&e->spec.shape), &nan);
        if (at < 0) continue;
        base_format(c->error, sizeof c->error, "parameter %s is %s at element %lld", e->name,
                    nan ? "nan" : "infinite", (long long)at);
        atomic_store(&c->not_finite, true);
        return TRI_FAILED;
    }
    return TRI_OK;
}

/* ---- scalars that are set after the step ---- */

/* With the lock, while the writer runs. */
static tri_status amend(struct checkpointer *c, const tri_run *run) {
    c->state.rate = c->late_rate;
    for (int i = 0; i < c->state.n_scalars; i++) c->state.scalar[i].value = c->late_scalar[i];
    c->late_set = false;
    return checkpoint_amend(run->options.ckpt, &c->content);
}

static void finish_writing(struct checkpointer *c, const tri_run *run) {
    pthread_mutex_lock(&c->late);
    if (c->late_set && !c->status && (c->status = amend(c, run)))
        base_format(c->error, sizeof c->error, "%s", tri_message());
    c->finished = true;
    pthread_mutex_unlock(&c->late);
}

/* Whether the program has set one since. The run itself sets rate and number of each step. */
static bool has_late(struct checkpointer *c, const tri_run *run) {
    bool differs = memcmp(&c->late_rate, &run->set_rate, sizeof run->set_rate);
    c->late_rate = run->set_rate;
    for (int i = 0; i < c->state.n_scalars; i++) {
        const struct run_scalar *s = &run->executable->scalar[i];
        bool own = s == run->lr || s == run->number;
        float value = own ? c->state.scalar[i].value : s->value;
        differs |= memcmp(&c->late_scalar[i], &value, sizeof value);
        c->late_scalar[i] = value;
    }
    return differs;
}

static void *write_it(void *arg) {
    tri_run *run = arg;
    struct checkpointer *c = run->checkpointer;
    const tri_options *o = &run->options;
    double began = base_seconds();
    struct spending spending = {0};
    struct spender spender;
    struct hashing h;
    sigset_t too_large; /* a file beyond `ulimit -f` shall fail, not kill the process */
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &too_large, NULL);
    spend_beside(&spender, &spending, run->beside[SPEND_BESIDE - 1], (uint32_t)c->state.step,
                 -1);
    c->status = check_finite(c, run);
    if (c->status) return NULL;
    hashing_begin(&h);
    for (size_t i = 0; i < run->store.n; i++)
        hashing_add(&h, &run->store.entry[i], c->place[i],
                    base_spec_bytes(&run->store.entry[i].spec));
    hashing_end(&h, c->state.step, c->state.weights, c->state.state);
    c->status = may_change(run);
    if (!c->status) c->status = write_or_make_room(c, run);
    if (c->status)
        base_format(c->error, sizeof c->error, "%s", tri_message());
    else if (may_change(run) ||
             checkpoint_prune(o->ckpt, c->state.step, o->keep, o->keep_every, best_of(run)))
        base_format(c->left, sizeof c->left, "%s", tri_message());
    else
        *c->left = 0;
    finish_writing(c, run);
    c->write_seconds = base_seconds() - began;
    if (spend_is_recorded()) spend_around(SPAN_WRITE, (int64_t)(1e9 * began), base_now());
    return NULL;
}

/* After a failure the run continues. */
static void report_failure(const struct checkpointer *c, tri_run *run, int64_t step) {
    char text[sizeof c->error + 64];
    const struct event failure = {
        .name = "save-failure", .message = text, .worker = -1, .step = step, .code = -1};
    base_format(text, sizeof text, "the checkpoint of step %lld failed: %s", (long long)step,
                c->error);
    fprintf(stderr, "trireme: %s\n", text);
    events_start(run->events, &failure);
    run->executor->save_failed(run, text);
}

/* An old checkpoint that cannot be removed is no failure. Prints the same warning only once. */
static void warn_left(struct checkpointer *c) {
    memcpy(c->warned, c->left, sizeof c->warned);
    if (*c->left) fprintf(stderr, "trireme: warning: %s\n", c->left);
}

/* Waits until the previous checkpoint is written. */
static void wait_for_writer(struct checkpointer *c, tri_run *run) {
    if (!c->writing) return;
    const enum spent was = spend(SPENT_WAIT_SAVE);
    pthread_join(c->writer, NULL);
    spend(was);
    c->writing = false;
    if (!c->status) c->kept = c->state.step;
    if (!c->status && strcmp(c->left, c->warned)) warn_left(c);
    if (c->status) report_failure(c, run, c->state.step);
    run->executor->saved(run);
}

static void put_late(struct checkpointer *c, tri_run *run) {
    if (c->tried != run->done || !c->times) return;
    pthread_mutex_lock(&c->late);
    c->late_set |= has_late(c, run);
    bool now = c->late_set && c->finished && !c->status;
    tri_status status = now ? amend(c, run) : TRI_OK;
    pthread_mutex_unlock(&c->late);
    if (!status) return;
    base_format(c->error, sizeof c->error, "%s", tri_message());
    report_failure(c, run, run->done);
}

static void count_held(struct checkpointer *c, double seconds) {
    if (!c->times++ || seconds < c->least_seconds) c->least_seconds = seconds;
    c->held_seconds += seconds;
}

static void save_now(struct checkpointer *c, tri_run *run) {
    double asked = base_seconds();
    wait_for_writer(c, run);
    double began = c->last = base_seconds();
    c->wait_seconds += began - asked;
    c->tried = run->done;
    c->late_set = c->finished = false;
    c->status = checkpoint_prepare(run->options.ckpt); /* it may have been removed */
    if (!c->status) c->status = lock(c, run);
    if (!c->status) c->status = make_copy(c, run);
    if (!c->status) {
        copy_values(c, &run->store);
        state_describe(&c->state, run);
        has_late(c, run); /* remembers them */
        c->content.n_metadata = weights_metadata(run, c->metadata);
        /* Checked after the copy, as other workers may have begun the update meanwhile. */
        if (!run->executor->is_whole(run))
            c->status = base_fail(TRI_FAILED,
                                  "the step that failed had begun to change parameters");
        else if (pthread_create(&c->writer, NULL, write_it, run))
            c->status = base_fail(TRI_FAILED, "cannot start a thread");
        else
            c->writing = true;
        count_held(c, base_seconds() - began);
        if (c->writing) return;
    }
    base_format(c->error, sizeof c->error, "%s", tri_message());
    report_failure(c, run, run->done);
}

static void save(struct checkpointer *c, tri_run *run) {
    run->executor->at(run, CREW_AT_SAVE, -1);
    save_now(c, run);
    run->executor->at(run, CREW_AT_CALLBACK, -1);
}

void checkpointer_step(struct checkpointer *c, tri_run *run) {
    const tri_options *o = &run->options;
    if (!o->ckpt) return;
    bool steps = o->save_every && run->done % o->save_every == 0;
    bool time = o->save_minutes > 0 && base_seconds() - c->last >= 60 * o->save_minutes;
    bool best = run->policy->better && run->policy->keeps;
    if (steps || time || best) save(c, run);
    if (best) wait_for_writer(c, run); /* the evaluation is published only after this */
    checkpointer_answer(c, run);
}

void checkpointer_answer(struct checkpointer *c, tri_run *run) {
    if (!run->options.ckpt) return;
    put_late(c, run);
    uint32_t asked = run->executor->save_asked(run);
    if (!asked) return;
    if (c->tried != run->done) save(c, run);
    wait_for_writer(c, run);
    run->executor->save_answer(run, asked, c->status ? c->error : NULL);
}

/* Times a plain copy of as many bytes. It overwrites the copy, which is not needed any more. */
static double time_of_a_copy(const struct checkpointer *c, const struct store *s) {
    size_t bytes = c->copy_bytes < s->bytes ? c->copy_bytes : s->bytes;
    double best = INFINITY;
    for (int i = 0; i < 3; i++) {
        double began = base_seconds();
        dev_copy_out(s->dev, c->copy, s->block, bytes);
        if (base_seconds() - began < best) best = base_seconds() - began;
    }
    return best;
}

static void print_summary(const struct checkpointer *c, const tri_run *run) {
    struct text t = {0};
    text_add(&t, "%d checkpoint(s) of %.1f MiB in %s, the last of step %lld; each delayed a step "
             "by %.1f ms, at least %.1f ms (a copy of as many bytes: %.1f ms)", c->times,
             (double)c->written / (1 << 20), run->options.ckpt,
             (long long)c->kept, 1e3 * c->held_seconds / c->times, 1e3 * c->least_seconds,
             1e3 * time_of_a_copy(c, &run->store));
    if (c->wait_seconds > 1e-3 * c->times)
        text_add(&t, ", and by %.1f ms more as the previous one was still being written",
                 1e3 * c->wait_seconds / c->times);
    if (!t.failed) fprintf(stderr, "trireme: %s\n", t.data);
    text_free(&t);
}

/* Of a host that ends because it was cut off: the others may have gone on. */
static bool has_later(const tri_run *run) {
    int64_t *steps;
    size_t n;
    if (checkpoint_list(run->options.ckpt, &steps, &n)) return false;
    const bool later = n && steps[0] > run->done;
    if (later)
        fprintf(stderr, "trireme: %s has a checkpoint of step %lld: the run has gone on, and "
                "nothing is saved here\n", run->options.ckpt, (long long)steps[0]);
    free(steps);
    return later;
}

tri_status checkpointer_end(struct checkpointer *c, tri_run *run) {
    if (!run->options.ckpt) return TRI_OK;
    put_late(c, run);
    if (run->done > c->resumed && c->tried != run->done && !has_later(run)) save(c, run);
    wait_for_writer(c, run);
    if (c->tried < 0) return TRI_OK;
    if (c->status)
        return base_fail(TRI_FAILED, "the last checkpoint, of step %lld, could not be written: %s",
                         (long long)c->tried, c->error);
    if (!run->options.quiet && c->times) print_summary(c, run);
    return TRI_OK;
}

void checkpointer_free(struct checkpointer *c) {
    if (c->writing) pthread_join(c->writer, NULL);
    if (c->copy) dev_host_release(c->copy, c->copy_bytes + MEMORY_ALIGN);
    free(c->place);
    free(c->entries);
    text_free(&c->plan);
    seal_key_free(c->key);
    if (c->locked) close(c->lock);
    *c = (struct checkpointer){0};
}

/* ---- resuming ---- */

/* Prints the size of a checkpoint before the first step. Warns, even with --quiet, if the disk is
 * too small for one. */
static void print_size(const struct checkpointer *c, const tri_run *run) {
    const char *directory = run->options.ckpt;
    double bytes = bytes_of(run), left = free_in(directory);
    if (!run->options.quiet)
        fprintf(stderr, "trireme: a checkpoint takes %.1f MiB in %s, and the copy it is written "
                "from %.1f MiB of memory\n", bytes / MIB, directory, (double)c->copy_bytes / MIB);
    if (left < bytes)
        fprintf(stderr, "trireme: %s has %.1f MiB free, and a checkpoint takes %.1f MiB: none can "
                "be written\n", directory, left / MIB, bytes / MIB);
}

/* A new run must not mix its checkpoints with those of another. A checkpoint of step 0 may be its
 * own, of a worker that has died since. */
static tri_status check_none(const char *directory) {
    int64_t *steps;
    size_t n;
    tri_status status = checkpoint_list(directory, &steps, &n);
    if (!status && n && steps[0] > 0)
        status = base_fail(TRI_USAGE, "%s already has checkpoints of a run, up to step %lld: "
                           "continue it with --resume, or name another directory with --ckpt",
                           directory, (long long)steps[0]);
    free(steps);
    return status;
}

static tri_status resume(struct checkpointer *c, tri_run *run) {
    const char *directory = run->options.ckpt;
    struct checkpoint_state state;
    char folder[4096];
    tri_status status = state_resume(run, &state);
    if (status) return status;
    if (state.step < 0) {
        fprintf(stderr, "trireme: there is no checkpoint in %s yet: the run starts from the "
                "beginning\n", directory);
        return TRI_OK;
    }
    const int64_t step = state.step;
    checkpoint_path(directory, step, folder);
    if (run->executor->reports(run)) status = checkpoint_set_aside(directory, step); /* damaged */
    if (status) return status;
    c->resumed = step;
    run->executor->begin_at(run);
    if (step < run->total)
        fprintf(stderr, "trireme: resumes from %s, step %lld of %lld\n", folder, (long long)step,
                (long long)run->total);
    else
        fprintf(stderr, "trireme: nothing is left to do: %s is of step %lld, and the run ends "
                "after step %lld; the results are those of the checkpoint. More --steps (or "
                "--epochs) than %lld would continue it\n", folder, (long long)step,
                (long long)run->total, (long long)step);
    return TRI_OK;
}

/* The copy comes last, as a sealed file takes as much memory while it is read. */
tri_status checkpointer_resume(struct checkpointer *c, tri_run *run) {
    const tri_options *o = &run->options;
    c->kept = c->tried = -1;
    pthread_mutex_init(&c->late, NULL);
    pthread_mutex_init(&c->locking, NULL);
    c->last = base_seconds();
    c->resumed = run->executor->base(run); /* by another process */
    state_options(&c->options, run);
    if (!o->ckpt || !run->executor->writes(run)) return TRI_OK;
    const bool saves = run->executor->reports(run); /* else it is of a host that only reads */
    tri_status status = state_check(run);
    if (!status && saves) status = lock(c, run);
    if (!status) status = checkpoint_check_form(o->ckpt, c->key);
    if (!status && saves) status = checkpoint_prune(o->ckpt, 0, 0, 0, 0); /* of writers that died */
    if (!status && saves && !o->resume && !o->forward) status = check_none(o->ckpt);
    if (!status && o->resume) status = resume(c, run);
    if (!status && saves) status = make_copy(c, run);
    if (!status && saves) print_size(c, run);
    return status;
}
