/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

tri_status files_make_directory(const char *path) {
    char *part = strdup(path);
    if (!part) return base_no_memory(path);
    bool failed = false;
    for (char *p = part + 1; !failed; p++) {
        if (*p && *p != '/') continue;
        const char kept = *p;
        *p = 0;
        failed = mkdir(part, 0777) && errno != EEXIST;
        *p = kept;
        if (!kept) break;
    }
    free(part);
    return failed ? base_fail(TRI_FAILED, "cannot make the directory %s: %s; choose another with "
                              "--out", path, strerror(errno)) : TRI_OK;
}

static int by_name(const void *a, const void *b) {
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

tri_status files_match(const char *directory, const char *pattern, glob_t *found) {
    const size_t before = found->gl_pathc;
    struct text t = {0};
    for (const char *p = directory; *p; p++) text_add(&t, strchr("*?[\\", *p) ? "\\%c" : "%c", *p);
    text_add(&t, "/%s", pattern);
    const bool full = t.failed || glob(t.data, GLOB_NOSORT | (before ? GLOB_APPEND : 0), NULL,
                                       found) == GLOB_NOSPACE;
    text_free(&t);
    if (found->gl_pathc > before)
        qsort(found->gl_pathv + before, found->gl_pathc - before, sizeof(char *), by_name);
    return full ? base_no_memory("the names of files") : TRI_OK;
}

/* ---- folders ---- */

static bool has_files(const char *folder) {
    static const char *const names[] = {"run.json", "workers.series", "metrics.jsonl",
                                        "agent.log", "run.log"};
    char path[4200];
    for (size_t i = 0; i < COUNT(names); i++) {
        base_format(path, sizeof path, "%s%s", folder, names[i]);
        if (!access(path, F_OK)) return true;
    }
    return false;
}

/* path: with a slash at its end. */
static tri_status add_folder(struct run_folders *f, const char *path, bool host) {
    if (!has_files(path)) return TRI_OK;
    char *copy = ARRAY_GROW(f->of, f->n, f->capacity) ? strndup(path, strlen(path) - 1) : NULL;
    if (!copy) return base_no_memory("the hosts of a run");
    f->of[f->n++] = (struct run_folder){copy, host ? strrchr(copy, '/') + 1 : ""};
    return TRI_OK;
}

tri_status run_folders(const char *directory, struct run_folders *f) {
    static const char *const places[] = {"", "hosts/*/", "*/"};
    tri_status status = TRI_OK;
    *f = (struct run_folders){0};
    for (size_t i = 0; i < COUNT(places) && !status && (i < 2 || !f->n); i++) {
        glob_t found = {0};
        status = files_match(directory, places[i], &found);
        for (size_t k = 0; k < found.gl_pathc && !status; k++)
            status = add_folder(f, found.gl_pathv[k], i > 0);
        globfree(&found);
    }
    return status;
}

void run_folders_free(struct run_folders *f) {
    for (size_t i = 0; i < f->n; i++) free(f->of[i].path);
    free(f->of);
    *f = (struct run_folders){0};
}

tri_status run_files(const char *directory, const char *pattern, glob_t *found) {
    struct run_folders f;
    tri_status status = run_folders(directory, &f);
    for (size_t i = 0; i < f.n && !status; i++) status = files_match(f.of[i].path, pattern, found);
    run_folders_free(&f);
    return status;
}

/* ---- names ---- */

const char *const run_logs[] = {"agent.log.old",    "agent.log",    "run.log.old", "run.log",
                                "worker-*.log.old", "worker-*.log", NULL};

bool run_has_number(const char *path) {
    const char *name = strrchr(path, '/') + 1;
    return strncmp(name + strcspn(name, "."), ".log", 4) != 0;
}
