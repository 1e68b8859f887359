/* SPDX-License-Identifier: Apache-2.0 */
#include "io/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_LINKS 40 /* the limit of Linux */

/* ---- files that replace others ---- */

/* With a final slash; "./" if the path has no directory. */
static void directory_of(const char *path, char directory[4096]) {
    const char *slash = strrchr(path, '/');
    base_format(directory, 4096, "%.*s", slash ? (int)(slash - path) + 1 : 2, slash ? path : "./");
}

/* Replaces a symlink's path by its target, relative to the link's directory. */
static tri_status follow(char path[4096]) {
    char link[4096], directory[4096];
    ssize_t n = readlink(path, link, sizeof link - 1);
    if (n < 0) return base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
    link[n] = 0;
    directory_of(path, directory);
    if (base_format(path, 4096, "%s%s", *link == '/' ? "" : directory, link) < 4096) return TRI_OK;
    return base_fail(TRI_FAILED, "the symlink %.200s...: %s", path, strerror(ENAMETOOLONG));
}

tri_status outfile_target(const char *path, char target[4096]) {
    struct stat st;
    if (!*path) return base_fail(TRI_USAGE, "the name of a file to write is empty");
    if (base_format(target, 4096, "%s", path) >= 4096)
        return base_fail(TRI_FAILED, "cannot write %.200s...: %s", path, strerror(ENAMETOOLONG));
    for (int i = 0; i < MOST_LINKS; i++) {
        if (lstat(target, &st)) {
            if (errno == ENOENT && target[strlen(target) - 1] != '/') return TRI_OK;
            return base_fail(TRI_FAILED, "cannot write %s: %s", path, strerror(errno));
        }
        if (S_ISREG(st.st_mode)) return TRI_OK;
        if (!S_ISLNK(st.st_mode))
            return base_fail(TRI_FAILED, "cannot write %s: it is %s, not a regular file", path,
                             base_file_kind(st.st_mode));
        tri_status status = follow(target);
        if (status) return status;
    }
    return base_fail(TRI_FAILED, "cannot write %s: %s", path, strerror(ELOOP));
}

static tri_status name_part(const char *path, char target[4096], char part[4096]) {
    struct stat st;
    tri_status status = outfile_target(path, target);
    if (status) return status;
    bool fits = base_format(part, 4096, "%s.tmp-%ld", target, (long)getpid()) < 4096;
    if (fits && (!lstat(part, &st) || errno != ENAMETOOLONG)) return TRI_OK;
    return base_fail(TRI_FAILED, "cannot write %.200s: %s", path, strerror(ENAMETOOLONG));
}

tri_status outfile_check(const char *path) {
    char target[4096], part[4096], directory[4096];
    tri_status status = name_part(path, target, part);
    if (status) return status;
    directory_of(target, directory);
    if (!access(directory, W_OK | X_OK)) return TRI_OK;
    return base_fail(TRI_FAILED, "cannot write %s: directory %s: %s", path, directory,
                     strerror(errno));
}

tri_status outfile_replace(struct outfile *f, const char *path, const struct seal *seal) {
    char target[4096], part[4096];
    *f = (struct outfile){.fd = -1};
    tri_status status = name_part(path, target, part);
    if (status) return status;
    status = outfile_open(f, part, seal);
    memcpy(f->part, part, sizeof part);
    memcpy(f->target, target, sizeof target);
    f->path = f->part;
    return status;
}

static tri_status put_in_place(const struct outfile *f) {
    char directory[4096];
    if (rename(f->part, f->target)) {
        tri_status status = base_fail(TRI_FAILED, "%s: can't rename %s to it: %s", f->target,
                                      f->part, strerror(errno));
        unlink(f->part);
        return status;
    }
    directory_of(f->target, directory);
    return outfile_sync_directory(directory);
}

/* ---- writing ---- */

static tri_status put(void *to, const void *data, size_t bytes) {
    struct outfile *f = to;
    const char *p = data;
    sha256_add(&f->hash, data, bytes);
    while (bytes) {
        ssize_t done = write(f->fd, p, bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            return base_fail(TRI_FAILED, "%s: write at offset %zu: %s", f->path, f->bytes,
                             done ? strerror(errno) : "nothing was written");
        p += done;
        bytes -= (size_t)done;
        f->bytes += (size_t)done;
    }
    return TRI_OK;
}

tri_status outfile_open(struct outfile *f, const char *path, const struct seal *seal) {
    const struct seal_sink sink = {put, f};
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
    *f = (struct outfile){.path = path, .fd = open(path, flags, 0666)};
    sha256_begin(&f->hash);
    if (f->fd < 0) return base_fail(TRI_FAILED, "%s: can't create: %s", path, strerror(errno));
    return seal ? sealing_begin(seal, &sink, &f->sealing) : TRI_OK;
}

tri_status outfile_write(struct outfile *f, const void *data, size_t bytes) {
    return f->sealing ? sealing_add(f->sealing, data, bytes) : put(f, data, bytes);
}

tri_status outfile_close(struct outfile *f, tri_status status, char hex[65]) {
    if (f->fd < 0) return status;
    if (!status && f->sealing) status = sealing_finish(f->sealing);
    sealing_free(f->sealing);
    f->sealing = NULL;
    if (!status && fsync(f->fd))
        status = base_fail(TRI_FAILED, "%s: sync: %s", f->path, strerror(errno));
    if (close(f->fd) && !status)
        status = base_fail(TRI_FAILED, "%s: close: %s", f->path, strerror(errno));
    f->fd = -1;
    if (hex) sha256_end_hex(&f->hash, hex);
    if (status) unlink(f->path);
    return status || !*f->target ? status : put_in_place(f);
}

tri_status outfile_sync_directory(const char *directory) {
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some file systems cannot sync a directory and report EINVAL. */
    bool bad = fd < 0 || (fsync(fd) && errno != EINVAL);
    if (bad) base_fail(TRI_FAILED, "directory %s: sync: %s", directory, strerror(errno));
    if (fd >= 0) close(fd);
    return bad ? TRI_FAILED : TRI_OK;
}

tri_status outfile_text(const char *path, const struct text *t) {
    struct outfile f;
    tri_status status = t->failed ? base_no_memory(path) : outfile_replace(&f, path, NULL);
    if (status) return status;
    status = outfile_write(&f, t->data, t->size);
    return outfile_close(&f, status, NULL);
}
