/* SPDX-License-Identifier: Apache-2.0 */
#include "io/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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
    *f = (struct outfile){.path = path, .fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
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
    if (!status && fsync(f->fd)) status = base_fail(TRI_FAILED, "%s: sync: %s", f->path, strerror(errno));
    if (close(f->fd) && !status) status = base_fail(TRI_FAILED, "%s: close: %s", f->path, strerror(errno));
    f->fd = -1;
    if (hex) sha256_end_hex(&f->hash, hex);
    if (status) unlink(f->path);
    return status;
}

tri_status outfile_sync_directory(const char *directory) {
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some file systems can't sync a directory; they say EINVAL. */
    bool bad = fd < 0 || (fsync(fd) && errno != EINVAL);
    if (bad) base_fail(TRI_FAILED, "directory %s: sync: %s", directory, strerror(errno));
    if (fd >= 0) close(fd);
    return bad ? TRI_FAILED : TRI_OK;
}
