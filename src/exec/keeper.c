/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "data/data.h"
#include "exec/access.h"
#include "exec/crew.h"
#include "exec/run.h"

#define ALIGN 64

tri_status keeper_check(const tri_options *o) {
    if (!o->ckpt && (o->resume || o->save_every || o->save_minutes > 0 || o->keep || o->keep_every))
        return base_fail(TRI_USAGE, "--resume, --save-every, --save-minutes, --keep and --keep-every (tri_options) are "
                         "of checkpoints: name their directory with --ckpt");
    if (o->resume && o->load)
        return base_fail(TRI_USAGE, "--resume and --load are both given; a run goes on, or begins with weights");
    return o->ckpt ? checkpoint_prepare(o->ckpt) : TRI_OK;
}

/* One run at a time writes there, or they would take each other's for their own. The lock goes with the process;
 * whoever reports next takes it then. */
static tri_status lock(struct keeper *k, const char *directory) {
    if (k->locked) return TRI_OK;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return base_fail(TRI_FAILED, "%s: %s", directory, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        close(fd);
        return base_fail(TRI_USAGE, "another run writes its checkpoints to %s; name another directory with --ckpt",
                         directory);
    }
    k->lock = fd;
    k->locked = true;
    return TRI_OK;
}

/* ---- the copy ---- */

static size_t aligned(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

/* The first touch of memory costs more than the copying: it is done when the run begins. */
static tri_status make_copy(struct keeper *k, const struct store *s) {
    if (k->copy) return TRI_OK;
    size_t bytes = 0, model = 0;
    for (size_t i = 0; i < s->n; i++) {
        bytes += aligned(base_spec_bytes(&s->entry[i].spec));
        model += !s->entry[i].of_optimizer;
    }
    k->copy = aligned_alloc(ALIGN, bytes + ALIGN);
    k->place = calloc(s->n + 1, sizeof *k->place);
    k->entries = calloc(s->n + 1, sizeof *k->entries);
    if (!k->copy || !k->place || !k->entries) {
        free(k->copy);
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
        at += aligned(base_spec_bytes(&e->spec));
    }
    k->content = (struct checkpoint_content){.state = &k->state, .entries = k->entries, .n_model = model,
                                             .n_optimizer = s->n - model};
    return TRI_OK;
}

static void copy_values(const struct keeper *k, const struct store *s) {
    for (size_t i = 0; i < s->n; i++) store_read(s, &s->entry[i], k->place[i]);
}

static void describe(struct checkpoint_state *s, const tri_run *run) {
    *s = (struct checkpoint_state){.step = run->done, .epoch = run->epoch, .batch = run_batch(run),
                                   .lanes = run_lanes(run), .seed = run->options.seed,
                                   .shuffle = !run->options.no_shuffle, .loss = tri_value(run, "loss")};
    base_format(s->library, sizeof s->library, "trireme " TRI_VERSION);
    run_device_text(run, s->device, sizeof s->device);
    if (run->data) {
        base_format(s->data, sizeof s->data, "%s", run->data->name);
        s->data_size = tri_data_size(run->data);
    }
    for (int i = 0; i < run->machine.n_scalars && s->n_scalars < (int)COUNT(s->scalar); i++) {
        const struct run_scalar *from = &run->machine.scalar[i];
        struct checkpoint_scalar *to = &s->scalar[s->n_scalars++];
        base_format(to->name, sizeof to->name, "%s", from->name);
        to->value = from->value;
    }
}

/* ---- writing ---- */

static void *write_it(void *arg) {
    tri_run *run = arg;
    struct keeper *k = &run->keeper;
    const tri_options *o = &run->options;
    double began = base_seconds();
    struct hashing h;
    hashing_begin(&h);
    for (size_t i = 0; i < run->store.n; i++) hashing_add(&h, &run->store.entry[i], k->place[i]);
    hashing_end(&h, k->state.step, k->state.weights, k->state.state);
    k->status = checkpoint_write(o->ckpt, &k->content, &k->written);
    if (!k->status) k->status = checkpoint_prune(o->ckpt, o->keep, o->keep_every);
    if (k->status) base_format(k->error, sizeof k->error, "%s", tri_message());
    k->write_seconds = base_seconds() - began;
    return NULL;
}

/* The one before; its failure is told, and the run goes on. */
static void wait_for_writer(struct keeper *k, tri_run *run) {
    if (!k->writing) return;
    pthread_join(k->writer, NULL);
    k->writing = false;
    if (!k->status) k->kept = k->state.step;
    if (k->status)
        fprintf(stderr, "trireme: the checkpoint of step %lld failed: %s\n", (long long)k->state.step, k->error);
    if (run->crew)
        crew_log_checkpoint(run->crew, k->state.step, k->written, k->write_seconds, k->status ? k->error : NULL);
}

void keeper_save(struct keeper *k, tri_run *run) {
    wait_for_writer(k, run);
    k->tried = run->done;
    k->status = checkpoint_prepare(run->options.ckpt); /* it may have been taken away */
    if (!k->status) k->status = lock(k, run->options.ckpt);
    if (!k->status) k->status = make_copy(k, &run->store);
    double began = k->last = base_seconds();
    if (!k->status) {
        copy_values(k, &run->store);
        describe(&k->state, run);
        k->copy_seconds += base_seconds() - began;
        k->times++;
        k->writing = !pthread_create(&k->writer, NULL, write_it, run);
        if (k->writing) return;
        k->status = base_fail(TRI_FAILED, "cannot start a thread");
    }
    base_format(k->error, sizeof k->error, "%s", tri_message());
    fprintf(stderr, "trireme: the checkpoint of step %lld failed: %s\n", (long long)run->done, k->error);
}

void keeper_step(struct keeper *k, tri_run *run) {
    const tri_options *o = &run->options;
    if (!o->ckpt) return;
    bool steps = o->save_every && run->done % o->save_every == 0;
    bool time = o->save_minutes > 0 && base_seconds() - k->last >= 60 * o->save_minutes;
    if (steps || time) keeper_save(k, run);
    keeper_answer(k, run);
}

void keeper_answer(struct keeper *k, tri_run *run) {
    uint32_t asked = run->crew ? crew_save_asked(run->crew) : 0;
    if (!asked) return;
    if (k->tried != run->done) keeper_save(k, run);
    wait_for_writer(k, run);
    crew_save_answer(run->crew, asked, k->status ? k->error : NULL, run->done);
}

tri_status keeper_end(struct keeper *k, tri_run *run, bool save) {
    if (!run->options.ckpt) return TRI_OK;
    if (save && run->done > k->resumed && k->tried != run->done) keeper_save(k, run);
    wait_for_writer(k, run);
    if (k->tried < 0) return TRI_OK;
    if (k->status)
        return base_fail(TRI_FAILED, "the last checkpoint, of step %lld, could not be written: %s",
                         (long long)k->tried, k->error);
    if (!run->options.quiet && k->times)
        fprintf(stderr, "trireme: %d checkpoint%s of %.1f MiB in %s, the last of step %lld; each held a step up for "
                "%.1f ms\n", k->times, k->times == 1 ? "" : "s", (double)k->written / (1 << 20), run->options.ckpt,
                (long long)k->kept, 1e3 * k->copy_seconds / k->times);
    return TRI_OK;
}

void keeper_free(struct keeper *k) {
    if (k->writing) pthread_join(k->writer, NULL);
    free(k->copy);
    free(k->place);
    free(k->entries);
    if (k->locked) close(k->lock);
    *k = (struct keeper){0};
}

/* ---- going on ---- */

static void differs(struct text *t, const char *option, long long there, long long here) {
    if (there != here) text_add(t, "%s%s %lld (this run has %lld)", t->size ? ", " : "", option, there, here);
}

/* What must be the same for the steps to come to be those that would have come. */
static tri_status check_same(const char *folder, const struct checkpoint_state *s, const tri_run *run) {
    struct text t = {0};
    differs(&t, "--batch", (long long)s->batch, (long long)run_batch(run));
    differs(&t, "--lanes", (long long)s->lanes, (long long)run_lanes(run));
    differs(&t, "--seed", (long long)s->seed, (long long)run->options.seed);
    differs(&t, "--shuffle", s->shuffle, !run->options.no_shuffle);
    differs(&t, "samples:", (long long)s->data_size, run->data ? (long long)tri_data_size(run->data) : 0);
    tri_status status = TRI_OK;
    if (t.size || t.failed)
        status = base_fail(TRI_USAGE, "%s was made with %s: the run would not go on as it began; give the same, or "
                           "--load %s/model.safetensors to begin anew with its weights", folder,
                           t.data ? t.data : "other options", folder);
    text_free(&t);
    return status;
}

static tri_status load_all(const char *folder, tri_run *run) {
    static const char *const names[] = {CHECKPOINT_MODEL, CHECKPOINT_OPTIMIZER};
    tri_status status = TRI_OK;
    for (int i = 0; i < 2 && !status; i++) {
        char path[4200];
        base_format(path, sizeof path, "%s/%s", folder, names[i]);
        status = access_load(run, path, i == 1);
    }
    return status;
}

static void take_scalars(const struct checkpoint_state *s, tri_run *run) {
    for (int i = 0; i < s->n_scalars; i++) {
        struct run_scalar *to = machine_scalar(&run->machine, s->scalar[i].name);
        if (to) to->value = s->scalar[i].value;
    }
}

/* Samples that come in an order of their own are read and left. */
static tri_status skip_samples(tri_run *run) {
    tri_status status = TRI_OK;
    for (int64_t step = 0; !run->crew && run->data && run->data->sequential && step < run->done && !status; step++)
        status = run_fetch_rows(run, step, 0, run_batch(run));
    return status;
}

static tri_status resume_from(const char *folder, tri_run *run) {
    char device[CHECKPOINT_TEXT];
    struct checkpoint_state s;
    tri_status status = checkpoint_read_state(folder, &s);
    if (!status) status = check_same(folder, &s, run);
    if (!status) status = load_all(folder, run);
    if (status) return status;
    take_scalars(&s, run);
    run->keeper.state = s;
    run->done = s.step;
    run->epoch = s.epoch;
    run_device_text(run, device, sizeof device);
    if (strcmp(device, s.device))
        fprintf(stderr, "trireme: %s was made on %s; here it is %s, and the last bits may differ\n", folder, s.device,
                device);
    char weights[65], state[65];
    tri_hash(run, weights, state);
    if (strcmp(weights, s.weights) || strcmp(state, s.state))
        return base_fail(TRI_FAILED, "%s: what was loaded has not the hash that state.json says", folder);
    return skip_samples(run);
}

tri_status keeper_resume(struct keeper *k, tri_run *run) {
    const tri_options *o = &run->options;
    struct text wrong = {0};
    int64_t step;
    char folder[4096];
    k->kept = k->tried = -1;
    k->last = base_seconds();
    if (!o->ckpt || !run_writes(run)) return TRI_OK;
    tri_status status = lock(k, o->ckpt);
    if (!status) status = make_copy(k, &run->store);
    if (status || !o->resume) return status;
    status = checkpoint_newest(o->ckpt, &step, &wrong);
    if (!status && wrong.size) fprintf(stderr, "trireme: %s\n", wrong.data);
    text_free(&wrong);
    if (status) return status;
    if (step < 0) {
        fprintf(stderr, "trireme: there is no checkpoint in %s yet: the run begins anew\n", o->ckpt);
        return TRI_OK;
    }
    checkpoint_path(o->ckpt, step, folder);
    status = resume_from(folder, run);
    if (status) return status;
    k->resumed = step;
    if (run->crew) crew_begin_at(run->crew, step);
    fprintf(stderr, "trireme: goes on from %s, step %lld of %lld\n", folder, (long long)step, (long long)run->total);
    return TRI_OK;
}
