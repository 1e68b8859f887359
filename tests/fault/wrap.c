/* SPDX-License-Identifier: Apache-2.0 */
#include "fault/wrap.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <zlib.h>

#include "base/base.h"

/* Threads of the library call too. */
static struct {
    atomic_bool armed;
    atomic_long calls;
    long fail_at;
    const char *failed;
    atomic_long memory, files, objects; /* as in struct wrap_held */
    atomic_long taken;                  /* blocks of memory */
} now;

void wrap_arm(long k) {
    now.calls = now.memory = now.files = now.objects = now.taken = 0;
    now.fail_at = k;
    now.failed = NULL;
    now.armed = true;
}

long wrap_disarm(void) {
    now.armed = false;
    return now.calls;
}

const char *wrap_failed(void) { return now.failed; }
long wrap_taken(void) { return now.taken; }
struct wrap_held wrap_held(void) {
    return (struct wrap_held){now.memory, now.files, now.objects};
}

/* ---- places ---- */

#define MOST_CALLS 65536
#define MOST_FRAMES 64

static uint64_t place[MOST_CALLS], seen[MOST_CALLS]; /* hashes of stacks: of each call; distinct */

static void note_place(long k) {
    void *frame[MOST_FRAMES];
    if (k > MOST_CALLS) return;
    int n = backtrace(frame, MOST_FRAMES);
    place[k - 1] = base_hash(frame, (size_t)n * sizeof *frame, 0);
}

bool wrap_is_first(long k) {
    static long n;
    long i = 0;
    if (k == 1) n = 0;
    if (k > MOST_CALLS) return true;
    while (i < n && seen[i] != place[k - 1]) i++;
    if (i < n) return false;
    seen[n++] = place[k - 1];
    return true;
}

static bool fails(const char *name, int error) {
    if (!now.armed) return false;
    long k = ++now.calls;
    if (!now.fail_at) note_place(k);
    if (k != now.fail_at) return false;
    now.failed = name;
    errno = error;
    return true;
}

/* A function of the given type: __real_NAME is the original, __wrap_NAME what the library calls. It
 * must be visible to the linker where other libraries call NAME too. */
#define WRAP(type, name, ...)                                               \
    type __real_##name(__VA_ARGS__);                                         \
    __attribute__((visibility("default"))) type __wrap_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

/* ---- memory ---- */

static void *held(void *p) {
    now.memory += now.armed && p;
    now.taken += now.armed && p;
    return p;
}

WRAP(void *, malloc, size_t bytes) {
    return fails("malloc", ENOMEM) ? NULL : held(__real_malloc(bytes));
}

WRAP(void *, calloc, size_t n, size_t bytes) {
    return fails("calloc", ENOMEM) ? NULL : held(__real_calloc(n, bytes));
}

WRAP(void *, realloc, void *p, size_t bytes) {
    if (fails("realloc", ENOMEM)) return NULL;
    return p ? __real_realloc(p, bytes) : held(__real_realloc(p, bytes));
}

WRAP(void *, aligned_alloc, size_t alignment, size_t bytes) {
    return fails("aligned_alloc", ENOMEM) ? NULL : held(__real_aligned_alloc(alignment, bytes));
}

WRAP(char *, strdup, const char *text) {
    return fails("strdup", ENOMEM) ? NULL : held(__real_strdup(text));
}

WRAP(char *, strndup, const char *text, size_t most) {
    return fails("strndup", ENOMEM) ? NULL : held(__real_strndup(text, most));
}

WRAP(char *, realpath, const char *path, char *out) {
    if (fails("realpath", ENOMEM)) return NULL;
    return out ? __real_realpath(path, out) : held(__real_realpath(path, out));
}

/* Not counted as held, because a mapping is unmapped in parts. */
WRAP(void *, mmap64, void *at, size_t bytes, int access, int flags, int fd, off_t from) {
    return fails("mmap", ENOMEM) ? MAP_FAILED : __real_mmap64(at, bytes, access, flags, fd, from);
}

WRAP(int, pthread_create, pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *),
     void *arg) {
    return fails("pthread_create", EAGAIN) ? EAGAIN
                                           : __real_pthread_create(out, attributes, run, arg);
}

WRAP(void, free, void *p) {
    now.memory -= now.armed && p;
    __real_free(p);
}

/* ---- files; a close that fails still closes ---- */

static size_t some(size_t n) { return now.armed && n > 1 && now.calls % 3 == 0 ? n / 2 : n; }

WRAP(FILE *, fopen64, const char *path, const char *mode) {
    FILE *f = fails("fopen", EMFILE) ? NULL : __real_fopen64(path, mode);
    now.files += now.armed && f;
    return f;
}

WRAP(int, fclose, FILE *f) {
    bool bad = fails("fclose", EIO);
    now.files -= now.armed;
    int result = __real_fclose(f);
    if (bad) errno = EIO;
    return bad ? EOF : result;
}

WRAP(size_t, fread, void *data, size_t size, size_t n, FILE *f) {
    return fails("fread", EIO) ? 0 : __real_fread(data, size, n, f);
}

WRAP(size_t, fwrite, const void *data, size_t size, size_t n, FILE *f) {
    return fails("fwrite", ENOSPC) ? 0 : __real_fwrite(data, size, n, f);
}

WRAP(int, fflush, FILE *f) { return fails("fflush", ENOSPC) ? EOF : __real_fflush(f); }
WRAP(int, fputc, int c, FILE *f) { return fails("fputc", ENOSPC) ? EOF : __real_fputc(c, f); }

WRAP(int, fputs, const char *text, FILE *f) {
    return fails("fputs", ENOSPC) ? EOF : __real_fputs(text, f);
}

WRAP(int, json_dumpf, const json_t *json, FILE *f, size_t flags) {
    return fails("json_dumpf", ENOSPC) ? -1 : __real_json_dumpf(json, f, flags);
}

WRAP(int, open64, const char *path, int flags, mode_t mode) {
    int fd = fails("open", EMFILE) ? -1 : __real_open64(path, flags, mode);
    now.files += now.armed && fd >= 0;
    return fd;
}

WRAP(int, close, int fd) {
    bool bad = fails("close", EIO);
    now.files -= now.armed;
    int result = __real_close(fd);
    if (bad) errno = EIO;
    return bad ? -1 : result;
}

WRAP(ssize_t, read, int fd, void *data, size_t bytes) {
    return fails("read", EIO) ? -1 : __real_read(fd, data, some(bytes));
}

WRAP(ssize_t, write, int fd, const void *data, size_t bytes) {
    return fails("write", ENOSPC) ? -1 : __real_write(fd, data, some(bytes));
}

WRAP(int, fsync, int fd) { return fails("fsync", EIO) ? -1 : __real_fsync(fd); }

WRAP(int, rename, const char *from, const char *to) {
    return fails("rename", EACCES) ? -1 : __real_rename(from, to);
}

WRAP(int, renameat2, int at, const char *from, int to_at, const char *to, unsigned flags) {
    return fails("renameat2", EACCES) ? -1 : __real_renameat2(at, from, to_at, to, flags);
}

WRAP(int, rmdir, const char *path) { return fails("rmdir", EBUSY) ? -1 : __real_rmdir(path); }

WRAP(DIR *, opendir, const char *path) {
    return fails("opendir", EMFILE) ? NULL : __real_opendir(path);
}

WRAP(int, mkdir, const char *path, mode_t mode) {
    return fails("mkdir", EACCES) ? -1 : __real_mkdir(path, mode);
}

WRAP(int, access, const char *path, int mode) {
    return fails("access", EACCES) ? -1 : __real_access(path, mode);
}

struct stat64;

WRAP(int, stat64, const char *path, struct stat64 *out) {
    return fails("stat", EACCES) ? -1 : __real_stat64(path, out);
}

WRAP(int, fstat64, int fd, struct stat64 *out) {
    return fails("fstat", EIO) ? -1 : __real_fstat64(fd, out);
}

/* ---- other libraries ---- */

WRAP(void *, dlopen, const char *path, int mode) {
    return fails("dlopen", ENOMEM) ? NULL : __real_dlopen(path, mode);
}

WRAP(int, inflateInit2_, z_stream *z, int bits, const char *version, int size) {
    return fails("inflateInit2", ENOMEM) ? Z_MEM_ERROR
                                         : __real_inflateInit2_(z, bits, version, size);
}

WRAP(int, inflate, z_stream *z, int flush) {
    return fails("inflate", ENOMEM) ? Z_MEM_ERROR : __real_inflate(z, flush);
}

#ifdef HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>

#define MAKES(name, parameters, arguments)                        \
    dnnl_status_t __real_##name parameters;                       \
    dnnl_status_t __wrap_##name parameters;                       \
    dnnl_status_t __wrap_##name parameters {                      \
        if (fails(#name, ENOMEM)) return dnnl_out_of_memory;      \
        dnnl_status_t status = __real_##name arguments;           \
        now.objects += now.armed && !status;               \
        return status;                                            \
    }

#define ENDS(name, type)                     \
    WRAP(dnnl_status_t, name, type object) { \
        now.objects -= now.armed && object; \
        return __real_##name(object);        \
    }

MAKES(dnnl_memory_create,
      (dnnl_memory_t * out, const dnnl_memory_desc_t *md, dnnl_engine_t engine, void *data),
      (out, md, engine, data))
MAKES(dnnl_primitive_create, (dnnl_primitive_t * out, const_dnnl_primitive_desc_t pd), (out, pd))
MAKES(dnnl_primitive_desc_create,
      (dnnl_primitive_desc_t * out, const_dnnl_op_desc_t op, const_dnnl_primitive_attr_t attributes,
       dnnl_engine_t engine, const_dnnl_primitive_desc_t hint),
      (out, op, attributes, engine, hint))
MAKES(dnnl_reorder_primitive_desc_create,
      (dnnl_primitive_desc_t * out, const dnnl_memory_desc_t *from, dnnl_engine_t from_engine,
       const dnnl_memory_desc_t *to, dnnl_engine_t to_engine,
       const_dnnl_primitive_attr_t attributes),
      (out, from, from_engine, to, to_engine, attributes))
MAKES(dnnl_stream_create, (dnnl_stream_t * out, dnnl_engine_t engine, unsigned flags),
      (out, engine, flags))
ENDS(dnnl_memory_destroy, dnnl_memory_t)
ENDS(dnnl_primitive_destroy, dnnl_primitive_t)
ENDS(dnnl_primitive_desc_destroy, dnnl_primitive_desc_t)
ENDS(dnnl_stream_destroy, dnnl_stream_t)

WRAP(dnnl_status_t, dnnl_primitive_execute, const_dnnl_primitive_t primitive, dnnl_stream_t stream,
     int n, const dnnl_exec_arg_t *arguments) {
    return fails("dnnl_primitive_execute", ENOMEM)
               ? dnnl_runtime_error
               : __real_dnnl_primitive_execute(primitive, stream, n, arguments);
}
#endif
