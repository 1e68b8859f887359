/* SPDX-License-Identifier: Apache-2.0
 * Access to values by name (outputs, parameters, states, inputs), hashes of them, and files. */
#include "run/access.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/convert.h"
#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "run/checkpointer.h"
#include "run/executor.h"
#include "run/import.h"
#include "run/policy.h"
#include "run/record.h"
#include "run/weights.h"

#define PIECE 16384 /* bytes of an entry that are copied at a time, on the stack */

double tri_value(const tri_run *run, const char *name) {
    return run ? machine_value(run->machine, machine_output(run->machine, name)) : NAN;
}

char *tri_layout_of(const tri_run *run, const char *tensor) {
    const struct dist *d = run ? &run->machine->compilation.dist[0] : NULL;
    const tri_tensor *t = NULL;
    struct text text = {0};
    if (!d || !d->mesh.n) {
        base_fail(TRI_USAGE, "there is no mesh");
        return NULL;
    }
    for (size_t i = 0; i < d->g->n_nodes && tensor && !t; i++) {
        const tri_node *n = d->g->node[i];
        const char *source = node_is_stored(n) || node_is(n, "input") ? source_name(n) : NULL;
        if (!strcmp(n->name, tensor) || (source && !strcmp(source, tensor))) t = n->out;
    }
    if (!t) {
        base_fail(TRI_USAGE, "a lane has no tensor \"%s\"; `trireme explain` lists them",
                  tensor ? tensor : "");
        return NULL;
    }
    layout_text(&d->mesh, dist_layout(d, t), t->spec.shape.rank, &text);
    if (text.failed) base_no_memory("a layout");
    return text.data;
}

/* A tied parameter has several names. */
static const struct stored *stored(const tri_run *run, const char *name) {
    const struct stored *e = name ? store_find(&run->store, name) : NULL;
    for (size_t i = 0; name && !e && i < run->model->n_settings; i++) {
        const struct graph_setting *s = &run->model->setting[i];
        if (s->kind == SETTING_TIE && !strcmp(s->pattern, name))
            e = store_find(&run->store, source_name(s->param->node));
    }
    return e;
}

static tri_status check_bytes(const char *name, const tri_spec *spec, const void *data,
                              size_t bytes) {
    char text[SPEC_TEXT];
    if (!data && bytes) return base_fail(TRI_USAGE, "\"%s\": the buffer is a null pointer", name);
    if (bytes == base_spec_bytes(spec)) return TRI_OK;
    return base_fail(TRI_USAGE, "\"%s\" is %s, %zu bytes; the buffer has %zu", name,
                     base_spec_text(spec, text), base_spec_bytes(spec), bytes);
}

tri_status tri_read(const tri_run *run, const char *name, void *data, size_t bytes) {
    if (!run) return TRI_FAILED;
    const struct run_output *o = machine_output(run->machine, name);
    const struct stored *e = o ? NULL : stored(run, name);
    if (!o && !e)
        return base_fail(TRI_USAGE, "there is no output, parameter or state \"%s\"",
                         name ? name : "");
    tri_status status = check_bytes(name, o ? &o->spec : &e->spec, data, bytes);
    if (status) return status;
    if (o && !o->tensor && run->machine->hosts > 0)
        return base_fail(TRI_USAGE, "output \"%s\" has a row for each sample, and with --hosts the "
                         "rows stay where they are computed; a number for the batch works", name);
    if (o && !o->memory)
        return base_fail(TRI_USAGE, "output \"%s\" has no value before the first step", name);
    dev_copy_out(run->dev, data, o ? o->memory : e->memory, bytes);
    return TRI_OK;
}

tri_status tri_write(tri_run *run, const char *name, const void *data, size_t bytes) {
    if (!run) return TRI_FAILED;
    const struct stored *e = stored(run, name);
    if (!e)
        return base_fail(TRI_USAGE, "there is no parameter or state \"%s\"", name ? name : "");
    tri_status status = check_bytes(name, &e->spec, data, bytes);
    if (!status && run->executable->hosts > 0 && run->done > run->executor->base(run))
        return base_fail(TRI_USAGE, "tri_write: with --hosts every host has a copy of \"%s\", "
                         "which can be written before the first step only", name);
    if (!status && run->executor->writes(run)) store_write(&run->store, e, data);
    return status;
}

/* In evaluation mode a network has no inputs that it does not use. */
static tri_status no_input(const tri_run *run, const char *name) {
    const tri_tensor *t = name ? tri_find(run->model, name) : NULL;
    if (!t || !node_is(t->node, "input"))
        return base_fail(TRI_USAGE, "the network has no input \"%s\"", name ? name : "");
    return base_fail(TRI_USAGE, "input \"%s\" is unused: nothing that this run computes depends on "
                     "it", name);
}

tri_status tri_feed(tri_run *run, const char *input, const void *data, size_t bytes) {
    if (!run) return TRI_FAILED;
    if (run->data && !run->options.forward)
        return base_fail(TRI_USAGE, "tri_feed: this run takes its samples from data %s; to feed "
                         "them, set tri_options.data to \"feed\"", run->data->name);
    struct run_input *in = machine_input(run->machine, input);
    if (!in || !in->used) return no_input(run, input);
    tri_status status = check_bytes(input, &in->spec, data, bytes);
    if (status || !run->executor->feeds(run)) return status;
    memcpy(in->host, data, bytes);
    in->fed = true;
    return TRI_OK;
}

/* ---- hashes ---- */

void hashing_begin(struct hashing *h) {
    sha256_begin(&h->weights);
    sha256_begin(&h->state);
}

/* Entries are added in order, which is by name. Parameters are f32 and row-major in the store, and
 * hashed like that. */
void hashing_add(struct hashing *h, const struct stored *e, const void *host, size_t bytes) {
    if (e->param) sha256_add(&h->weights, host, bytes);
    sha256_add(&h->state, host, bytes);
}

void hashing_end(struct hashing *h, int64_t done, char weights[65], char state[65]) {
    unsigned char cursor[8];
    for (int i = 0; i < 8; i++) cursor[i] = (unsigned char)((uint64_t)done >> (8 * i));
    sha256_add(&h->state, cursor, sizeof cursor);
    sha256_end_hex(&h->weights, weights);
    sha256_end_hex(&h->state, state);
}

void tri_hash(const tri_run *run, char weights[65], char state[65]) {
    char piece[PIECE];
    weights[0] = state[0] = 0;
    if (!run) return;
    struct hashing h;
    hashing_begin(&h);
    for (size_t i = 0; i < run->store.n; i++) {
        const struct stored *e = &run->store.entry[i];
        size_t bytes = base_spec_bytes(&e->spec), n;
        for (size_t at = 0; at < bytes; at += n) {
            n = bytes - at < PIECE ? bytes - at : PIECE;
            dev_copy_out(run->dev, piece, (char *)e->memory + at, n);
            hashing_add(&h, e, piece, n);
        }
    }
    hashing_end(&h, run->done, weights, state);
}

/* The loss of the last step, which a run before --resume may have done; NaN if there was none. */
static double last_loss(const tri_run *run) {
    if (run->done > run->checkpointer->resumed) return tri_value(run, "loss");
    return run->done ? run->checkpointer->state.loss : NAN;
}

/* After the last step, failing to write metrics or a checkpoint only changes the exit code. */
tri_status tri_result_line(const tri_run *run, char *text, size_t bytes) {
    char weights[65], state[65], best[160] = "";
    if (bytes) *text = 0;
    if (!run) return TRI_FAILED;
    if (run->done < run->total && tri_run_status(run)) return run->status;
    tri_hash(run, weights, state);
    if (!*weights || !*state) return base_no_memory("the hash of the weights");
    double value;
    const int64_t best_step = policy_best(run->policy, run, &value);
    if (best_step)
        base_format(best, sizeof best, " best_%s=%.9g best_step=%lld", run->policy->of, value,
                    (long long)best_step);
    int n = base_format(text, bytes, "done steps=%lld loss=%.9g weights=sha256:%s state=sha256:%s"
                        "%s seconds=%.3f", (long long)run->done, last_loss(run), weights, state,
                        best, base_seconds() - run->record->begin);
    if ((size_t)n < bytes) return TRI_OK;
    if (bytes) *text = 0;
    return base_fail(TRI_USAGE, "tri_result_line: the line takes %d bytes; the buffer has %zu",
                     n + 1, bytes);
}

/* ---- files ---- */

/* Values are written from where they are, and so take no further memory. */
tri_status tri_save(const tri_run *run, const char *path) {
    if (!run) return TRI_FAILED;
    if (run->passed) return TRI_OK;
    struct safetensors_entry *entries = calloc(run->store.n + 1, sizeof *entries);
    if (!entries) return base_no_memory(path);
    size_t n = 0;
    for (size_t i = 0; i < run->store.n; i++) {
        const struct stored *e = &run->store.entry[i];
        if (!e->of_optimizer)
            entries[n++] = (struct safetensors_entry){.name = e->name, .spec = e->spec,
                                                      .data = e->memory};
    }
    struct safetensors_pair metadata[WEIGHTS_PAIRS];
    tri_status status =
        safetensors_write(path, entries, n, metadata, weights_metadata(run, metadata));
    free(entries);
    return status;
}

/* Reads t in pieces, and with `writes` sets the entry to it. */
static tri_status load_entry(tri_run *run, const struct stored *e, const struct safetensors *file,
                             const struct safetensors_entry *t, bool writes) {
    _Alignas(64) char read[PIECE], converted[PIECE];
    const size_t size = tri_type_size(e->spec.type), most = PIECE / sizeof(double);
    const size_t count = (size_t)tri_shape_count(&e->spec.shape);
    tri_status status = TRI_OK;
    for (size_t at = 0, n; at < count && !status; at += n) {
        n = count - at < most ? count - at : most;
        status = safetensors_read(file, t, at, n, read);
        if (status || !writes) continue;
        convert(e->spec.type, converted, t->spec.type, read, n);
        dev_copy_in(run->dev, (char *)e->memory + at * size, converted, n * size);
    }
    return status;
}

/* Takes what was matched. A file that cannot be read to its end changes nothing. */
static tri_status take(tri_run *run, const struct import *in, const struct safetensors *file) {
    tri_status status = TRI_OK;
    for (int writes = 0; writes < 2 && run->executor->writes(run); writes++)
        for (size_t i = 0; i < run->store.n && !status; i++)
            if (in->of[i])
                status = load_entry(run, &run->store.entry[i], file, in->of[i], writes);
    return status;
}

/* Differences are an error; with --partial only a message. */
static tri_status check_differences(const char *path, const struct import *in, bool partial) {
    const char *reason = in->reason.data ? in->reason.data : "";
    if (!in->n_wrong) return TRI_OK;
    if (!partial)
        return base_fail(TRI_FAILED, "%s does not fit the network: %s%zu difference(s)%s "
                         "(--partial takes what fits)", path, reason, in->n_wrong, in->wrong.data);
    if (!in->taken)
        return base_fail(TRI_FAILED, "%s has nothing that fits the network: %s%zu difference(s)%s",
                         path, reason, in->n_wrong, in->wrong.data);
    fprintf(stderr, "trireme: %s: %zu tensor%s taken%s\n", path, in->taken,
            in->taken == 1 ? " fits and is" : "s fit and are", in->wrong.data);
    return TRI_OK;
}

/* The file fits, but was made with another model: with other dropout, for example. */
static void warn_other_model(const struct safetensors *file, const char *path,
                             const tri_graph *model) {
    struct text how = {0};
    weights_differ(file, model, &how);
    if (how.size) fprintf(stderr, "trireme: %s fits the network, but %s\n", path, how.data);
    text_free(&how);
}

tri_status access_resume(tri_run *run, struct safetensors *file, const char *path, bool optimizer,
                         bool fresh, struct text *wrong) {
    struct import in;
    tri_status status = import_match(file, run, optimizer, true, fresh, &in);
    if (!status && in.n_wrong && run->options.changed)
        fprintf(stderr, "trireme: %s: %zu of %zu tensors keep their values%s\n", path, in.taken,
                file->n, in.wrong.data);
    if (!status && in.n_wrong)
        text_add(wrong, "%.*s%s", (int)strcspn(in.wrong.data + 2, ";"), in.wrong.data + 2,
                 in.n_wrong > 1 ? ", ..." : "");
    if (!status && (!in.n_wrong || run->options.changed)) status = take(run, &in, file);
    import_free(&in);
    safetensors_close(file);
    return status;
}

static tri_status load(tri_run *run, struct safetensors *file, const char *path) {
    struct import in;
    tri_status status = import_match(file, run, false, false, false, &in);
    if (!status) status = check_differences(path, &in, run->options.partial);
    if (!status && !in.n_wrong && run->options.forward) warn_other_model(file, path, run->model);
    if (!status) status = take(run, &in, file);
    import_free(&in);
    safetensors_close(file);
    return status;
}

/* Finds the newest weights in a directory, and prints their path. */
static tri_status find_weights(const tri_run *run, const char *directory, char path[4096]) {
    struct text wrong = {0};
    tri_status status = checkpoint_model(directory, run->checkpointer->key, path, &wrong);
    bool prints = !status && run->executor->writes(run);
    if (prints && wrong.size) fprintf(stderr, "trireme: %s\n", wrong.data);
    if (prints && !run->options.quiet) fprintf(stderr, "trireme: takes the weights of %s\n", path);
    text_free(&wrong);
    return status;
}

tri_status tri_load(tri_run *run, const char *path) {
    struct safetensors *file;
    struct stat st;
    char within[4096];
    tri_status status = TRI_OK;
    if (!run) return TRI_FAILED;
    if (run->passed) return TRI_OK;
    const struct seal any = {.key = run->checkpointer->key, .step = -1};
    if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
        status = find_weights(run, path, within);
        path = within;
    }
    if (!status) status = safetensors_open(path, &any, true, &file);
    return status ? status : load(run, file, path);
}
