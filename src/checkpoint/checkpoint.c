/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/outfile.h"

#define MODEL CHECKPOINT_MODEL
#define OPTIMIZER CHECKPOINT_OPTIMIZER
#define STATE CHECKPOINT_STATE
#define PREFIX "step-"
#define PART ".part-" /* and the writer's pid: a folder that is not whole yet, or is being removed */

static const char *const files[] = {MODEL, OPTIMIZER};

void checkpoint_path(const char *directory, int64_t step, char path[4096]) {
    base_format(path, 4096, "%s/" PREFIX "%09lld", directory, (long long)step);
}

static void within(char path[4096], const char *folder, const char *file) {
    base_format(path, 4096, "%s/%s", folder, file);
}

void checkpoint_file(const char *folder, const char *file, bool sealed, char path[4096]) {
    base_format(path, 4096, "%s/%s%s", folder, file, sealed ? CHECKPOINT_SEALED : "");
}

bool checkpoint_is(const char *folder, bool sealed) {
    char path[4096];
    checkpoint_file(folder, STATE, sealed, path);
    return !access(path, F_OK);
}

tri_status checkpoint_prepare(const char *directory) {
    if (mkdir(directory, 0777) && errno != EEXIST)
        return base_fail(TRI_FAILED, "cannot make the directory %s for checkpoints: %s", directory,
                         strerror(errno));
    if (access(directory, R_OK | W_OK | X_OK))
        return base_fail(TRI_FAILED, "cannot write checkpoints to %s: %s", directory, strerror(errno));
    return TRI_OK;
}

/* ---- state.json ---- */

struct written {
    char hash[65];
    size_t bytes;
};

/* Null if any of them cannot be. */
static json_t *scalars_json(const struct checkpoint_state *s) {
    json_t *all = json_object();
    for (int i = 0; i < s->n_scalars && all; i++) {
        if (!json_object_set_new(all, s->scalar[i].name, json_real((double)s->scalar[i].value))) continue;
        json_decref(all);
        all = NULL;
    }
    return all;
}

static json_t *file_json(const struct written *w) {
    return json_pack("{s:I,s:s}", "bytes", (json_int_t)w->bytes, "sha256", w->hash);
}

static json_t *judged_json(const struct checkpoint_state *s) {
    const struct judged *j = &s->judged;
    if (!*s->metric) return json_null();
    return json_pack("{s:s,s:I,s:I,s:I,s:f}", "metric", s->metric, "step", (json_int_t)j->step, "best_step",
                     (json_int_t)j->best_step, "no_better", (json_int_t)j->no_better, "best", j->best);
}

static json_t *options_json(const struct checkpoint_options *o) {
    json_t *all = json_object();
    for (int i = 0; i < o->n && all; i++) {
        if (!json_object_set_new(all, o->one[i].name, json_string(o->one[i].value))) continue;
        json_decref(all);
        all = NULL;
    }
    return all;
}

/* Null if memory is out, or a text is not UTF-8. */
static json_t *state_json(const struct checkpoint_state *s, const struct written w[2]) {
    char seed[24];
    base_format(seed, sizeof seed, "%llu", (unsigned long long)s->seed); /* JSON's numbers end at 2^53 */
    json_t *loss = isfinite(s->loss) ? json_real(s->loss) : json_null();
    return json_pack("{s:i,s:I,s:I,s:o,s:I,s:I,s:s,s:b,s:s,s:{s:s,s:I},s:o,s:o,s:o,s:s,s:s,s:s,s:s,s:{s:o,s:o}}",
                     "format", CHECKPOINT_FORMAT, "step", (json_int_t)s->step, "epoch", (json_int_t)s->epoch, "loss",
                     loss, "batch", (json_int_t)s->batch, "lanes", (json_int_t)s->lanes, "seed", seed, "shuffle",
                     s->shuffle, "order", s->order, "data", "name", s->data, "size", (json_int_t)s->data_size,
                     "options", options_json(&s->options), "scalars", scalars_json(s), "judged", judged_json(s),
                     "library", s->library, "device", s->device, "weights", s->weights, "state", s->state, "files",
                     MODEL, file_json(&w[0]), OPTIMIZER, file_json(&w[1]));
}

/* A file of the folder, which takes `path` for its name. */
static tri_status open_out(const char *folder, const char *file, const struct checkpoint_content *c, char path[4096],
                           struct outfile *f) {
    const struct seal seal = {c->key, file, c->state->step};
    checkpoint_file(folder, file, c->key, path);
    return outfile_open(f, path, c->key ? &seal : NULL);
}

static tri_status write_state(const char *folder, const struct checkpoint_content *c, const struct written w[2]) {
    char path[4096];
    struct outfile f = {.fd = -1};
    json_t *object = state_json(c->state, w);
    char *text = object ? json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(object);
    if (!text) return base_no_memory(STATE);
    tri_status status = open_out(folder, STATE, c, path, &f);
    if (!status) status = outfile_write(&f, text, strlen(text));
    if (!status) status = outfile_write(&f, "\n", 1);
    free(text);
    return outfile_close(&f, status, NULL);
}

static void copy_text(char *to, size_t bytes, const char *from) { base_format(to, bytes, "%s", from ? from : ""); }

static tri_status take_scalars(const char *path, json_t *scalars, struct checkpoint_state *s) {
    const char *name;
    json_t *value;
    json_object_foreach(scalars, name, value) {
        if (s->n_scalars == (int)COUNT(s->scalar) || !json_is_number(value))
            return base_fail(TRI_FAILED, "%s: scalar %.60s is no number, or one too many", path, name);
        struct checkpoint_scalar *to = &s->scalar[s->n_scalars++];
        copy_text(to->name, sizeof to->name, name);
        to->value = (float)json_number_value(value);
    }
    return TRI_OK;
}

/* Runs without evaluations have none. */
static tri_status take_judged(const char *path, json_t *object, struct checkpoint_state *s) {
    json_int_t step, best_step, no_better;
    const char *metric;
    double best;
    if (!object || json_is_null(object)) return TRI_OK;
    if (json_unpack(object, "{s:s,s:I,s:I,s:I,s:F}", "metric", &metric, "step", &step, "best_step", &best_step,
                    "no_better", &no_better, "best", &best))
        return base_fail(TRI_FAILED, "%s: \"judged\" is not what it should be", path);
    copy_text(s->metric, sizeof s->metric, metric);
    s->judged = (struct judged){.step = step, .best_step = best_step, .no_better = no_better, .best = best};
    return TRI_OK;
}

/* Programs before this one have written none, and later ones maybe others. */
static void take_options(json_t *object, struct checkpoint_options *o) {
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        if (o->n == (int)COUNT(o->one) || !json_is_string(value)) continue;
        struct checkpoint_option *to = &o->one[o->n++];
        copy_text(to->name, sizeof to->name, name);
        copy_text(to->value, sizeof to->value, json_string_value(value));
    }
}

/* The object, checked; *w: what it says of the files. */
static tri_status take_state(const char *path, json_t *object, struct checkpoint_state *s, struct written w[2]) {
    json_error_t error;
    json_int_t format = 0, step, epoch, batch, lanes, size, bytes[2];
    const char *seed, *order = "", *data, *library, *device, *weights, *state, *hash[2];
    json_t *scalars, *loss;
    int shuffle;
    if (json_unpack(object, "{s:I}", "format", &format) || format != CHECKPOINT_FORMAT)
        return base_fail(TRI_FAILED, "%s: format %lld; this version reads %d", path, (long long)format,
                         CHECKPOINT_FORMAT);
    if (json_unpack_ex(object, &error, 0,
                       "{s:I,s:I,s:o,s:I,s:I,s:s,s:b,s?s,s:{s:s,s:I},s:o,s:s,s:s,s:s,s:s,s:{s:{s:I,s:s},s:{s:I,s:s}}}",
                       "step", &step, "epoch", &epoch, "loss", &loss, "batch", &batch, "lanes", &lanes, "seed",
                       &seed, "shuffle", &shuffle, "order", &order, "data", "name", &data, "size", &size, "scalars",
                       &scalars,
                       "library", &library, "device", &device, "weights", &weights, "state", &state, "files", MODEL,
                       "bytes", &bytes[0], "sha256", &hash[0], OPTIMIZER, "bytes", &bytes[1], "sha256", &hash[1]))
        return base_fail(TRI_FAILED, "%s: %s", path, error.text);
    *s = (struct checkpoint_state){.step = step, .epoch = epoch, .batch = batch, .lanes = lanes,
                                   .data_size = size, .shuffle = shuffle,
                                   .loss = json_is_number(loss) ? json_number_value(loss) : NAN};
    s->seed = strtoull(seed, NULL, 10);
    copy_text(s->order, sizeof s->order, order);
    copy_text(s->data, sizeof s->data, data);
    copy_text(s->library, sizeof s->library, library);
    copy_text(s->device, sizeof s->device, device);
    copy_text(s->weights, sizeof s->weights, weights);
    copy_text(s->state, sizeof s->state, state);
    for (int i = 0; i < 2; i++) {
        w[i].bytes = (size_t)bytes[i];
        copy_text(w[i].hash, sizeof w[i].hash, hash[i]);
    }
    if (s->step < 0 || s->batch < 1 || s->lanes < 1) return base_fail(TRI_FAILED, "%s: impossible numbers", path);
    take_options(json_object_get(object, "options"), &s->options);
    tri_status status = take_judged(path, json_object_get(object, "judged"), s);
    return status ? status : take_scalars(path, scalars, s);
}

static tri_status check_form(const char *folder, const struct seal_key *key) {
    if (!checkpoint_is(folder, !key)) return TRI_OK;
    if (key)
        return base_fail(TRI_USAGE, "%s is not sealed, and so may be anybody's: what is given a key (--ckpt-key) takes "
                         "none like it", folder);
    return base_fail(TRI_USAGE, "%s is sealed: its key is needed (--ckpt-key FILE)", folder);
}

static tri_status read_state(const char *folder, const struct seal_key *key, struct checkpoint_state *state,
                             struct written w[2]) {
    const struct seal seal = {key, STATE, -1};
    char path[4096], *text;
    json_error_t error;
    size_t bytes;
    checkpoint_file(folder, STATE, key, path);
    tri_status status = check_form(folder, key);
    if (!status) status = key ? seal_read(path, &seal, &text, &bytes) : base_read_file(path, &text, &bytes);
    if (status) return status;
    json_t *object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (!object) return base_fail(TRI_FAILED, "%s: line %d: %s", path, error.line, error.text);
    status = take_state(path, object, state, w);
    json_decref(object);
    return status;
}

tri_status checkpoint_read_state(const char *folder, const struct seal_key *key, struct checkpoint_state *state) {
    struct written w[2];
    return read_state(folder, key, state, w);
}

tri_status checkpoint_open(const char *folder, const char *file, const struct seal_key *key, int64_t step,
                           struct safetensors **f) {
    const struct seal seal = {key, file, step};
    char path[4096];
    checkpoint_file(folder, file, key, path);
    return key ? safetensors_open_sealed(path, &seal, f) : safetensors_open(path, f);
}

/* ---- writing ---- */

/* With all that is in it; as much as can be. */
static tri_status remove_folder(const char *folder) {
    char path[4096];
    DIR *d = opendir(folder);
    int failed = 0;
    if (!d) return errno == ENOENT ? TRI_OK : base_fail(TRI_FAILED, "%s: %s", folder, strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        within(path, folder, e->d_name);
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && unlink(path)) failed = errno;
    }
    closedir(d);
    if (!rmdir(folder)) return TRI_OK;
    return base_fail(TRI_FAILED, "%s: can't remove: %s", folder, strerror(failed ? failed : errno));
}

static tri_status write_tensors(const char *folder, const char *file, const struct checkpoint_content *c,
                                const struct safetensors_entry *entries, size_t n, struct written *w) {
    char path[4096];
    struct outfile f = {.fd = -1};
    const struct safetensors_pair metadata = {"format", "pt"}; /* readers of this format look for it */
    tri_status status = open_out(folder, file, c, path, &f);
    if (!status) status = safetensors_put(&f, entries, n, &metadata, 1);
    status = outfile_close(&f, status, w->hash);
    w->bytes = f.bytes;
    return status;
}

static tri_status write_files(const char *folder, const struct checkpoint_content *c, size_t *bytes) {
    struct written w[2] = {0};
    if (mkdir(folder, 0777)) return base_fail(TRI_FAILED, "cannot make %s: %s", folder, strerror(errno));
    tri_status status = write_tensors(folder, MODEL, c, c->entries, c->n_model, &w[0]);
    if (!status) status = write_tensors(folder, OPTIMIZER, c, c->entries + c->n_model, c->n_optimizer, &w[1]);
    if (!status) status = write_state(folder, c, w);
    if (!status) status = outfile_sync_directory(folder);
    *bytes = w[0].bytes + w[1].bytes;
    return status;
}

/* A folder that has files in it cannot be renamed over: with one of the same step it changes its name. */
static tri_status put_in_place(const char *part, const char *directory, int64_t step) {
    char path[4096];
    checkpoint_path(directory, step, path);
    bool other = !access(path, F_OK);
    if (renameat2(AT_FDCWD, part, AT_FDCWD, path, other ? RENAME_EXCHANGE : 0))
        return base_fail(TRI_FAILED, "can't rename %s to %s: %s", part, path, strerror(errno));
    tri_status status = outfile_sync_directory(directory);
    if (other) remove_folder(part);
    return status;
}

/* Of writers that have died, too; only one at a time writes. */
static tri_status prune_parts(const char *directory) {
    char path[4096];
    DIR *d = opendir(directory);
    if (!d) return base_fail(TRI_FAILED, "cannot read the directory %s: %s", directory, strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        if (strncmp(e->d_name, PART, strlen(PART))) continue;
        within(path, directory, e->d_name);
        remove_folder(path);
    }
    closedir(d);
    return TRI_OK;
}

tri_status checkpoint_write(const char *directory, const struct checkpoint_content *c, size_t *bytes) {
    char part[4096];
    base_format(part, sizeof part, "%s/" PART "%ld", directory, (long)getpid());
    *bytes = 0;
    tri_status status = prune_parts(directory);
    if (!status) status = write_files(part, c, bytes);
    if (!status) status = put_in_place(part, directory, c->state->step);
    if (!status) return TRI_OK;
    char *why = strdup(tri_message());
    remove_folder(part);
    if (why) base_fail(status, "%s", why);
    free(why);
    return status;
}

/* ---- which there are ---- */

static bool step_of(const char *name, int64_t *step) {
    char *end;
    if (strncmp(name, PREFIX, strlen(PREFIX))) return false;
    errno = 0;
    *step = strtoll(name + strlen(PREFIX), &end, 10);
    return end - name >= (long)strlen(PREFIX) + 9 && !*end && !errno && *step >= 0;
}

static int newest_first(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

tri_status checkpoint_list(const char *directory, int64_t **steps, size_t *n) {
    size_t room = 0;
    DIR *d = opendir(directory);
    *steps = NULL;
    *n = 0;
    if (!d) return base_fail(TRI_FAILED, "cannot read the directory %s: %s", directory, strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        int64_t step;
        if (!step_of(e->d_name, &step)) continue;
        if (*n == room) {
            room = 2 * room + 16;
            int64_t *more = realloc(*steps, room * sizeof **steps);
            if (!more) {
                closedir(d);
                free(*steps);
                *steps = NULL;
                return base_no_memory(directory);
            }
            *steps = more;
        }
        (*steps)[(*n)++] = step;
    }
    closedir(d);
    if (*n) qsort(*steps, *n, sizeof **steps, newest_first);
    return TRI_OK;
}

tri_status checkpoint_prune(const char *directory, int64_t last, int64_t keep, int64_t keep_every, int64_t best) {
    int64_t *steps, counted = 0;
    size_t n;
    char path[4096], aside[4096];
    tri_status status = prune_parts(directory);
    if (status || !keep) return status;
    status = checkpoint_list(directory, &steps, &n);
    for (size_t i = 0; i < n && !status; i++) {
        counted += steps[i] <= last;
        if (counted <= keep || steps[i] == best || (keep_every && steps[i] % keep_every == 0)) continue;
        checkpoint_path(directory, steps[i], path);
        base_format(aside, sizeof aside, "%s/" PART "%ld-old", directory, (long)getpid());
        if (rename(path, aside)) /* so that no half of it is ever taken for whole */
            status = base_fail(TRI_FAILED, "can't remove %s: %s", path, strerror(errno));
        else
            status = remove_folder(aside);
    }
    free(steps);
    return status;
}

/* One of the same step may have been set aside before: the name is the first that is free. */
static tri_status set_aside(const char *path) {
    char aside[4096];
    base_format(aside, sizeof aside, "%s.damaged", path);
    for (int i = 2; !access(aside, F_OK); i++) base_format(aside, sizeof aside, "%s.damaged-%d", path, i);
    if (rename(path, aside)) return base_fail(TRI_FAILED, "can't rename %s to %s: %s", path, aside, strerror(errno));
    fprintf(stderr, "trireme: %s is %s now, and counts no more\n", path, aside);
    return TRI_OK;
}

tri_status checkpoint_set_aside(const char *directory, int64_t last) {
    int64_t *steps;
    size_t n;
    char path[4096];
    tri_status status = checkpoint_list(directory, &steps, &n);
    for (size_t i = 0; i < n && steps[i] > last && !status; i++) {
        checkpoint_path(directory, steps[i], path);
        status = set_aside(path);
    }
    free(steps);
    return status;
}

/* ---- whether it is whole ---- */

static tri_status verify_file(const char *path, const struct written *w) {
    static const size_t room = (size_t)1 << 20;
    char hex[65], *buffer = malloc(room);
    struct sha256 h;
    size_t bytes = 0;
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    tri_status status = !buffer ? base_no_memory(path)
                        : fd < 0 ? base_fail(TRI_FAILED, "%s: %s", path, strerror(errno)) : TRI_OK;
    sha256_begin(&h);
    while (!status && ((n = read(fd, buffer, room)) > 0 || (n < 0 && errno == EINTR))) {
        if (n < 0) continue;
        sha256_add(&h, buffer, (size_t)n);
        bytes += (size_t)n;
    }
    if (!status && n < 0) status = base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
    sha256_end_hex(&h, hex);
    if (fd >= 0) close(fd);
    free(buffer);
    if (!status && bytes != w->bytes)
        return base_fail(TRI_FAILED, "%s has %zu bytes; " STATE " says %zu", path, bytes, w->bytes);
    if (!status && strcmp(hex, w->hash))
        return base_fail(TRI_FAILED, "%s is not what was written: its hash differs from that in " STATE, path);
    return status;
}

/* *step: of its state. */
static tri_status verify(const char *folder, const struct seal_key *key, int64_t *step) {
    struct checkpoint_state state;
    struct written w[2];
    char path[4096];
    tri_status status = read_state(folder, key, &state, w);
    for (int i = 0; i < 2 && !status; i++) {
        checkpoint_file(folder, files[i], key, path);
        status = verify_file(path, &w[i]);
    }
    *step = status ? -1 : state.step;
    return status;
}

tri_status checkpoint_verify(const char *folder, const struct seal_key *key) {
    int64_t step;
    return verify(folder, key, &step);
}

tri_status checkpoint_check_form(const char *directory, const struct seal_key *key) {
    int64_t *steps;
    size_t n;
    char path[4096];
    tri_status status = checkpoint_list(directory, &steps, &n);
    if (status || !n) return status;
    checkpoint_path(directory, steps[0], path);
    free(steps);
    return check_form(path, key);
}

/* One that has been renamed is not what it is taken for. */
static tri_status verify_step(const char *folder, const struct seal_key *key, int64_t step) {
    int64_t is;
    tri_status status = verify(folder, key, &is);
    if (status || is == step) return status;
    return base_fail(TRI_FAILED, "%s is the checkpoint of step %lld", folder, (long long)is);
}

tri_status checkpoint_make_room(const char *directory, const struct seal_key *key, int64_t last, int64_t keep,
                                int64_t keep_every, int64_t best, bool *any) {
    int64_t *steps;
    size_t n, i = 0, before;
    char path[4096];
    *any = false;
    if (keep < 2) return TRI_OK; /* the newest alone, which must not go before the next is whole */
    tri_status status = checkpoint_list(directory, &steps, &before);
    if (status) return status;
    while (i < before && steps[i] > last) i++;
    bool there = i < before;
    if (there) checkpoint_path(directory, steps[i], path);
    if (there) status = verify_step(path, key, steps[i]);
    free(steps);
    if (!status && there) status = checkpoint_prune(directory, last, keep - 1, keep_every, best);
    if (status || !there || (status = checkpoint_list(directory, &steps, &n))) return status;
    *any = n < before;
    free(steps);
    return TRI_OK;
}

tri_status checkpoint_newest(const char *directory, const struct seal_key *key, int64_t *step, struct text *wrong) {
    int64_t *steps;
    size_t n;
    char path[4096];
    *step = -1;
    tri_status status = checkpoint_list(directory, &steps, &n);
    if (status) return status;
    for (size_t i = 0; i < n && *step < 0; i++) {
        checkpoint_path(directory, steps[i], path);
        status = verify_step(path, key, steps[i]);
        if (status == TRI_USAGE) break;
        if (status)
            text_add(wrong, "%s%s", wrong->size ? "; " : "", tri_message());
        else
            *step = steps[i];
    }
    free(steps);
    if (status == TRI_USAGE) return status;
    if (*step >= 0 || !n) return TRI_OK;
    return base_fail(TRI_FAILED, "%s: no checkpoint in it is whole: %s", directory,
                     wrong->data ? wrong->data : "out of memory");
}

tri_status checkpoint_model(const char *directory, const struct seal_key *key, char path[4096], struct text *wrong) {
    char folder[4096];
    int64_t step;
    checkpoint_file(directory, MODEL, key, path);
    if (checkpoint_is(directory, false) || checkpoint_is(directory, true)) return checkpoint_verify(directory, key);
    if (!access(path, F_OK)) return TRI_OK;
    tri_status status = checkpoint_newest(directory, key, &step, wrong);
    if (!status && step < 0)
        status = base_fail(TRI_FAILED, "%s is a directory with neither checkpoints nor a " MODEL " in it", directory);
    if (status) return status;
    checkpoint_path(directory, step, folder);
    checkpoint_file(folder, MODEL, key, path);
    return TRI_OK;
}
