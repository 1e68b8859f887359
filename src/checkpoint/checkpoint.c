/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/state.h"
#include "io/outfile.h"

#define MODEL CHECKPOINT_MODEL
#define OPTIMIZER CHECKPOINT_OPTIMIZER
#define STATE CHECKPOINT_STATE
#define PREFIX "step-"
/* followed by the writer's pid: a folder that is incomplete or being removed */
#define PART ".part-"

const char *const checkpoint_files[CHECKPOINT_FILES] = {MODEL, OPTIMIZER, CHECKPOINT_NETWORK,
                                                        CHECKPOINT_PLAN};

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
    return !access(path, F_OK) || errno == ELOOP; /* the error appears when it is opened */
}

const struct seal_key *checkpoint_key(const char *folder, const struct seal_key *key) {
    return checkpoint_is(folder, true) ? key : NULL;
}

tri_status checkpoint_prepare(const char *directory) {
    if (mkdir(directory, 0777) && errno != EEXIST)
        return base_fail(TRI_FAILED, "cannot make the directory %s for checkpoints: %s", directory,
                         strerror(errno));
    struct stat st;
    if (!stat(directory, &st) && !S_ISDIR(st.st_mode))
        return base_fail(TRI_FAILED, "cannot write checkpoints to %s: it is not a directory",
                         directory);
    if (access(directory, R_OK | W_OK | X_OK))
        return base_fail(TRI_FAILED, "cannot write checkpoints to %s: %s", directory,
                         strerror(errno));
    return TRI_OK;
}

/* ---- state.json ---- */

typedef tri_status (*opener)(struct outfile *f, const char *path, const struct seal *seal);

/* Opens a file in the folder and stores its path. */
static tri_status open_out(const char *folder, const char *file, const struct checkpoint_content *c,
                           char path[4096], struct outfile *f, opener open) {
    const struct seal seal = {c->key, file, c->state->step};
    checkpoint_file(folder, file, c->key, path);
    return open(f, path, c->key ? &seal : NULL);
}

/* w: nullable. */
static tri_status write_text(const char *folder, const char *file,
                             const struct checkpoint_content *c, const char *text,
                             struct state_file *w, opener open) {
    char path[4096];
    struct outfile f = {.fd = -1};
    tri_status status = open_out(folder, file, c, path, &f, open);
    if (!status) status = outfile_write(&f, text, strlen(text));
    status = outfile_close(&f, status, w ? w->hash : NULL);
    if (w) w->bytes = f.bytes;
    return status;
}

static tri_status write_state(const char *folder, const struct checkpoint_content *c,
                              const struct state_file *w, opener open) {
    struct text text = {0};
    tri_status status = state_write(c->state, w, &text);
    if (!status) status = write_text(folder, STATE, c, text.data, NULL, open);
    text_free(&text);
    return status;
}

static tri_status check_form(const char *folder, const struct seal_key *key) {
    if (!checkpoint_is(folder, !key)) return TRI_OK;
    if (key)
        return base_fail(TRI_USAGE,
                         "%s is not sealed, so anybody may have written it; with a key "
                         "(--ckpt-key) only sealed checkpoints are read",
                         folder);
    return base_fail(TRI_USAGE, "%s is sealed: its key is needed (--ckpt-key FILE)", folder);
}

static tri_status read_state(const char *folder, const struct seal_key *key,
                             struct checkpoint_state *state, struct state_file *w) {
    const struct seal seal = {key, STATE, -1};
    char path[4096], *text;
    size_t bytes;
    checkpoint_file(folder, STATE, key, path);
    tri_status status = check_form(folder, key);
    if (!status)
        status = key ? seal_read(path, &seal, &text, &bytes) : base_read_file(path, &text, &bytes);
    if (status) return status;
    status = state_read(path, text, bytes, state, w);
    if (key) state->checked = true;
    free(text);
    return status;
}

tri_status checkpoint_open(const char *folder, const char *file, const struct seal_key *key,
                           int64_t step, bool header_only, struct safetensors **f) {
    const struct seal seal = {key, file, step};
    char path[4096];
    checkpoint_file(folder, file, key, path);
    return safetensors_open(path, &seal, header_only, f);
}

tri_status checkpoint_read_text(const char *folder, const char *file, const struct seal_key *key,
                                int64_t step, char **text) {
    const struct seal seal = {key, file, step};
    char path[4096];
    size_t bytes;
    checkpoint_file(folder, file, key, path);
    tri_status status =
        key ? seal_read(path, &seal, text, &bytes) : base_read_file(path, text, &bytes);
    if (!status) (*text)[bytes] = 0; /* sealed, the file is longer */
    return status;
}

/* ---- writing ---- */

/* The first free name of NAME, NAME-2, NAME-3 ... */
static void free_name(const char *name, char path[4096]) {
    struct stat st;
    base_format(path, 4096, "%s", name);
    for (int i = 2; !lstat(path, &st); i++) base_format(path, 4096, "%s-%d", name, i);
}

/* A temporary name of this process. A dead process with the same id may have left a folder of that
 * name that cannot be removed. */
static void part_name(const char *directory, char path[4096]) {
    char name[4096];
    base_format(name, sizeof name, "%s/" PART "%ld", directory, (long)getpid());
    free_name(name, path);
}

/* Removes the folder and as much of its content as possible. */
static tri_status remove_folder(const char *folder) {
    char path[4096], stays[4096] = "";
    DIR *d = opendir(folder);
    int failed = 0;
    if (!d)
        return errno == ENOENT ? TRI_OK : base_fail(TRI_FAILED, "%s: %s", folder, strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        within(path, folder, e->d_name);
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !unlink(path)) continue;
        failed = errno;
        memcpy(stays, path, sizeof stays);
    }
    closedir(d);
    if (!rmdir(folder)) return TRI_OK;
    return base_fail(TRI_FAILED, "%s: can't remove: %s", failed ? stays : folder,
                     strerror(failed ? failed : errno));
}

static tri_status write_tensors(const char *folder, const char *file,
                                const struct checkpoint_content *c,
                                const struct safetensors_entry *entries, size_t n,
                                struct state_file *w) {
    char path[4096];
    struct outfile f = {.fd = -1};
    tri_status status = open_out(folder, file, c, path, &f, outfile_open);
    if (!status) status = safetensors_put(&f, entries, n, c->metadata, c->n_metadata);
    status = outfile_close(&f, status, w->hash);
    w->bytes = f.bytes;
    return status;
}

static tri_status write_files(const char *folder, const struct checkpoint_content *c,
                              size_t *bytes) {
    struct state_file w[CHECKPOINT_FILES] = {0};
    if (mkdir(folder, 0777))
        return base_fail(TRI_FAILED, "cannot make %s: %s", folder, strerror(errno));
    tri_status status = write_tensors(folder, MODEL, c, c->entries, c->n_model, &w[0]);
    if (!status)
        status = write_tensors(folder, OPTIMIZER, c, c->entries + c->n_model, c->n_optimizer,
                               &w[1]);
    if (!status) status = write_text(folder, CHECKPOINT_NETWORK, c, c->network, &w[2],
                                      outfile_open);
    if (!status) status = write_text(folder, CHECKPOINT_PLAN, c, c->plan, &w[3], outfile_open);
    if (!status) status = write_state(folder, c, w, outfile_open);
    if (!status) status = outfile_sync_directory(folder);
    for (size_t i = 0; i < COUNT(w); i++) *bytes += w[i].bytes;
    return status;
}

/* A folder with files in it cannot be replaced by rename: an existing one of the same step is
 * renamed. */
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

/* Removes as many as possible, also those of crashed writers; only one process writes at a time. */
static void prune_parts(const char *directory) {
    char path[4096];
    DIR *d = opendir(directory);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strncmp(e->d_name, PART, strlen(PART))) continue;
        within(path, directory, e->d_name);
        remove_folder(path);
    }
    if (d) closedir(d);
}

static tri_status may_change(const struct checkpoint_content *c) {
    return c->may_change ? c->may_change(c->user) : TRI_OK;
}

tri_status checkpoint_write(const char *directory, const struct checkpoint_content *c,
                            size_t *bytes) {
    char part[4096];
    *bytes = 0;
    tri_status status = may_change(c);
    if (status) return status;
    prune_parts(directory);
    part_name(directory, part);
    status = write_files(part, c, bytes);
    if (!status) status = may_change(c);
    if (!status) status = put_in_place(part, directory, c->state->step);
    if (!status) return TRI_OK;
    char *why = strdup(tri_message());
    remove_folder(part);
    if (why) base_fail(status, "%s", why);
    free(why);
    return status;
}

tri_status checkpoint_amend(const char *directory, const struct checkpoint_content *c) {
    struct checkpoint_state was;
    struct state_file w[CHECKPOINT_FILES];
    char folder[4096];
    checkpoint_path(directory, c->state->step, folder);
    tri_status status = read_state(folder, c->key, &was, w);
    return status ? status : write_state(folder, c, w, outfile_replace);
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
    size_t capacity = 0;
    DIR *d = opendir(directory);
    *steps = NULL;
    *n = 0;
    if (!d)
        return base_fail(TRI_FAILED, "cannot read the directory %s: %s", directory,
                         strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        int64_t step;
        if (!step_of(e->d_name, &step)) continue;
        if (*n == capacity) {
            capacity = 2 * capacity + 16;
            int64_t *more = realloc(*steps, capacity * sizeof **steps);
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

/* Renames it first, so that a half-removed folder is never taken for a checkpoint. */
static tri_status remove_checkpoint(const char *directory, int64_t step) {
    char path[4096], aside[4096];
    checkpoint_path(directory, step, path);
    part_name(directory, aside);
    if (rename(path, aside))
        return base_fail(TRI_FAILED, "can't remove %s: %s", path, strerror(errno));
    return remove_folder(aside);
}

tri_status checkpoint_prune(const char *directory, int64_t last, int64_t keep, int64_t keep_every,
                            int64_t best) {
    int64_t *steps, counted = 0;
    size_t n;
    struct text why = {0};
    prune_parts(directory);
    if (!keep) return TRI_OK;
    tri_status status = checkpoint_list(directory, &steps, &n);
    if (status) return status;
    for (size_t i = 0; i < n; i++) {
        counted += steps[i] <= last;
        if (counted <= keep || steps[i] == best || (keep_every && steps[i] % keep_every == 0))
            continue;
        if (!remove_checkpoint(directory, steps[i]) || status) continue;
        status = TRI_FAILED;
        text_add(&why, "the checkpoint of step %lld is not removed: %s", (long long)steps[i],
                 tri_message());
    }
    free(steps);
    if (status) base_fail(status, "%s", why.data ? why.data : "out of memory");
    text_free(&why);
    return status;
}

/* One of the same step may have been set aside before. */
static tri_status set_aside(const char *path) {
    char name[4096], aside[4096];
    base_format(name, sizeof name, "%s.damaged", path);
    free_name(name, aside);
    if (rename(path, aside))
        return base_fail(TRI_FAILED, "can't rename %s to %s: %s", path, aside, strerror(errno));
    fprintf(stderr, "trireme: renamed %s to %s; it is no longer used\n", path, aside);
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

static tri_status verify_file(const char *path, const struct state_file *w) {
    char hex[65], buffer[65536]; /* no allocation, so that lack of memory is not taken for damage */
    struct sha256 h;
    size_t bytes = 0;
    ssize_t n = 0;
    int fd = base_open(path, O_RDONLY, NULL);
    if (fd < 0) return TRI_FAILED;
    sha256_begin(&h);
    while ((n = read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR)) {
        if (n < 0) continue;
        sha256_add(&h, buffer, (size_t)n);
        bytes += (size_t)n;
    }
    tri_status status = n < 0 ? base_fail(TRI_FAILED, "%s: %s", path, strerror(errno)) : TRI_OK;
    sha256_end_hex(&h, hex);
    close(fd);
    if (!status && bytes != w->bytes)
        return base_fail(TRI_FAILED, "%s has %zu bytes; " STATE " says %zu", path, bytes, w->bytes);
    if (!status && strcmp(hex, w->hash))
        return base_fail(TRI_FAILED,
                         "%s is not what was written: its hash differs from that in " STATE, path);
    return status;
}

/* The step in the path's last component: as given, or, for "." and the like, resolved. */
static bool step_of_path(const char *folder, int64_t *step) {
    char name[4096], whole[PATH_MAX];
    base_format(name, sizeof name, "%s", folder);
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/') name[--n] = 0;
    const char *slash = strrchr(name, '/');
    if (step_of(slash ? slash + 1 : name, step)) return true;
    return realpath(folder, whole) && step_of(strrchr(whole, '/') + 1, step);
}

tri_status checkpoint_verify(const char *folder, const struct seal_key *key,
                             struct checkpoint_state *state) {
    struct state_file w[CHECKPOINT_FILES];
    char path[4096];
    int64_t named;
    tri_status status = read_state(folder, key, state, w);
    for (int i = 0; !status && i < state->files; i++) {
        checkpoint_file(folder, checkpoint_files[i], key, path);
        status = verify_file(path, &w[i]);
    }
    if (status || !step_of_path(folder, &named) || named == state->step) return status;
    return base_fail(TRI_FAILED, "%s is the checkpoint of step %lld", folder,
                     (long long)state->step);
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

tri_status checkpoint_make_room(const char *directory, const struct seal_key *key, int64_t last,
                                int64_t keep, int64_t keep_every, int64_t best, bool *any) {
    struct checkpoint_state state;
    int64_t *steps;
    size_t n, i = 0, before;
    char path[4096];
    *any = false;
    /* the only one left must not be removed before the next is complete */
    if (keep < 2) return TRI_OK;
    tri_status status = checkpoint_list(directory, &steps, &before);
    if (status) return status;
    while (i < before && steps[i] > last) i++;
    bool there = i < before;
    if (there) checkpoint_path(directory, steps[i], path);
    if (there) status = checkpoint_verify(path, key, &state);
    free(steps);
    /* The write that follows reports what cannot be removed. */
    if (!status && there) checkpoint_prune(directory, last, keep - 1, keep_every, best);
    if (status || !there || (status = checkpoint_list(directory, &steps, &n))) return status;
    *any = n < before;
    free(steps);
    return TRI_OK;
}

tri_status checkpoint_newest(const char *directory, const struct seal_key *key, int64_t before,
                             struct checkpoint_state *state, struct text *wrong) {
    int64_t *steps;
    size_t n;
    char path[4096];
    state->step = -1;
    tri_status status = checkpoint_list(directory, &steps, &n);
    if (status) return status;
    for (size_t i = 0; i < n; i++) {
        if (steps[i] >= before) continue;
        checkpoint_path(directory, steps[i], path);
        status = checkpoint_verify(path, key, state);
        if (status != TRI_FAILED) break;
        text_add(wrong, "%s%s", wrong->size ? "; " : "", tri_message());
        state->step = -1;
    }
    free(steps);
    if (status == TRI_USAGE || state->step >= 0 || !n) return status;
    return base_fail(TRI_FAILED, "%s: it has no intact checkpoint: %s", directory,
                     wrong->data ? wrong->data : "out of memory");
}

tri_status checkpoint_model(const char *directory, const struct seal_key *key, char path[4096],
                            struct text *wrong) {
    char folder[4096];
    struct checkpoint_state state;
    checkpoint_file(directory, MODEL, key, path);
    if (checkpoint_is(directory, false) || checkpoint_is(directory, true))
        return checkpoint_verify(directory, key, &state);
    if (!access(path, F_OK)) return TRI_OK;
    tri_status status = checkpoint_newest(directory, key, INT64_MAX, &state, wrong);
    if (!status && state.step < 0)
        status = base_fail(TRI_FAILED,
                           "%s is a directory with neither checkpoints nor a " MODEL " in it",
                           directory);
    if (status) return status;
    checkpoint_path(directory, state.step, folder);
    checkpoint_file(folder, MODEL, key, path);
    return TRI_OK;
}
