/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pack_shard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/data.h"
#include "io/outfile.h"

#define BLOCK 512
#define ENDING ".sha256"

/* ---- tar ---- */

struct header { /* ustar */
    char name[100], mode[8], uid[8], gid[8], size[12], time[12], sum[8], type, link[100], magic[6],
        version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

/* Without time and owner, so that the same pictures give the same bytes. */
static tri_status write_entry(struct outfile *f, const char *name, const void *bytes, size_t n) {
    static const char zeros[BLOCK];
    struct header h = {.mode = "0000644", .uid = "0000000", .gid = "0000000",
                       .time = "00000000000", .type = '0', .magic = "ustar",
                       .version = {'0', '0'}};
    unsigned sum = 0;
    snprintf(h.name, sizeof h.name, "%s", name);
    snprintf(h.size, sizeof h.size, "%011zo", n);
    memset(h.sum, ' ', sizeof h.sum);
    for (size_t i = 0; i < BLOCK; i++) sum += ((unsigned char *)&h)[i];
    snprintf(h.sum, sizeof h.sum, "%06o", sum);
    tri_status status = outfile_write(f, &h, BLOCK);
    if (!status) status = outfile_write(f, bytes, n);
    return status ? status : outfile_write(f, zeros, (BLOCK - n % BLOCK) % BLOCK);
}

/* ---- samples ---- */

/* The ending of its kind of picture; null if it is none. */
static const char *ending_of(const struct data_file *f) {
    if (f->n > 3 && !memcmp(f->bytes, "\xff\xd8\xff", 3)) return "jpg";
    return f->n > 8 && !memcmp(f->bytes, "\x89PNG\r\n\x1a\n", 8) ? "png" : NULL;
}

static tri_status leave_out(struct pack *p) {
    long long bad = atomic_fetch_add(&p->bad, 1) + 1;
    if (bad > p->max_bad)
        return base_fail(TRI_FAILED, "more than --max-bad %lld bad files; the last: %s",
                         (long long)p->max_bad, tri_message());
    fprintf(stderr, "trireme: skipped bad file %lld of at most %lld: %s\n", bad,
            (long long)p->max_bad, tri_message());
    return TRI_OK;
}

/* Adds the sample at `place`, and 1 to *samples, unless its file is bad. */
static tri_status write_sample(struct pack *p, struct outfile *f, int64_t place,
                               struct data_file *file, int64_t *samples) {
    char name[64], label[32];
    const tri_data *d = p->data;
    tri_status status = d->about.file(d->user, (int64_t)p->order[place], file);
    const char *ending = status ? NULL : ending_of(file);
    if (!status && !ending)
        status = base_fail(PICTURE_BAD, "%s: neither a JPEG nor a PNG picture", file->name.data);
    if (status) return status == PICTURE_BAD ? leave_out(p) : status;
    ++*samples;
    snprintf(name, sizeof name, "%09lld.%s", (long long)place, ending);
    status = write_entry(f, name, file->bytes, file->n);
    snprintf(name, sizeof name, "%09lld.cls", (long long)place);
    snprintf(label, sizeof label, "%lld\n", (long long)file->label);
    return status ? status : write_entry(f, name, label, strlen(label));
}

/* A hash of what an archive should contain: places, samples, classes and sizes of files. */
static uint64_t content_key(const struct pack *p, int64_t shard) {
    const tri_data *d = p->data;
    uint64_t key = base_hash_text(d->name);
    for (int64_t i = p->begin[shard]; i < p->begin[shard + 1]; i++) {
        int64_t sample = (int64_t)p->order[i];
        int64_t about[4] = {i, sample, d->about.label(d->user, sample),
                            d->about.file_bytes(d->user, sample)};
        key = base_hash(about, sizeof about, key);
    }
    return key;
}

/* ---- verifying ---- */

static tri_status hash_file(const char *path, char hex[65], int64_t *bytes) {
    static const size_t piece = 1 << 20;
    struct sha256 h;
    int fd = base_open(path, O_RDONLY, NULL);
    char *buffer = fd >= 0 ? malloc(piece) : NULL;
    tri_status status = fd < 0 ? TRI_FAILED : !buffer ? base_no_memory(path) : TRI_OK;
    sha256_begin(&h);
    *bytes = 0;
    for (ssize_t got = 1; !status && got;) {
        got = read(fd, buffer, piece);
        if (got < 0 && errno != EINTR)
            status = base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
        if (got <= 0) continue;
        sha256_add(&h, buffer, (size_t)got);
        *bytes += got;
    }
    sha256_end_hex(&h, hex);
    free(buffer);
    if (fd >= 0) close(fd);
    return status;
}

/* The text of NAME.sha256: the line of the hash, and one that sha256sum takes for a comment. */
static void note_text(struct text *t, const char *path, const char *hex, uint64_t key,
                      int64_t samples) {
    const char *slash = strrchr(path, '/');
    text_add(t, "%s  %s\n# trireme pack %016llx samples=%lld\n", hex, slash ? slash + 1 : path,
             (unsigned long long)key, (long long)samples);
}

static int64_t samples_of(const char *note) {
    const char *at = strrchr(note, '=');
    return at ? strtoll(at + 1, NULL, 10) : -1;
}

/* *exists: the file does. Fails if it is not a regular file, which is never replaced. */
static tri_status check_file(const char *path, bool *exists) {
    int fd = base_open(path, O_RDONLY, NULL);
    *exists = fd >= 0;
    if (fd >= 0) close(fd);
    return fd >= 0 || errno == ENOENT ? TRI_OK : TRI_FAILED;
}

static bool is_same(const char *path, const char *note, uint64_t key, int64_t *bytes,
                    int64_t *samples) {
    char hex[65], *found = NULL;
    size_t n;
    struct text expected = {0};
    bool same = false;
    if (!base_read_file(note, &found, &n) && !hash_file(path, hex, bytes)) {
        *samples = samples_of(found);
        note_text(&expected, path, hex, key, *samples);
        same = !expected.failed && n == expected.size && !memcmp(found, expected.data, n);
    }
    text_free(&expected);
    free(found);
    return same;
}

/* ---- writing ---- */

static tri_status rename_to(const char *from, const char *to) {
    if (!rename(from, to)) return TRI_OK;
    tri_status status = base_fail(TRI_FAILED, "%s: %s", to, strerror(errno));
    unlink(from);
    return status;
}

static tri_status write_archive(struct pack *p, int64_t shard, const char *path,
                                struct data_file *file, char hex[65], int64_t *samples) {
    static const char zeros[2 * BLOCK];
    struct outfile f;
    char again[65];
    int64_t bytes;
    tri_status status = outfile_open(&f, path, NULL);
    if (status) return status;
    for (int64_t i = p->begin[shard]; i < p->begin[shard + 1] && !status; i++)
        status = write_sample(p, &f, i, file, samples);
    if (!status) status = outfile_write(&f, zeros, sizeof zeros);
    int64_t written = (int64_t)f.bytes;
    status = outfile_close(&f, status, hex);
    if (!status) status = hash_file(path, again, &bytes);
    if (!status && (bytes != written || strcmp(hex, again)))
        status = base_fail(TRI_FAILED, "%s: reading it back gives other bytes than were "
                                       "written", path);
    if (status)
        unlink(path);
    else
        atomic_fetch_add(&p->bytes, written);
    return status;
}

static tri_status write_note(const char *path, const char *text, size_t n) {
    struct outfile f;
    tri_status status = outfile_replace(&f, path, NULL);
    if (!status) status = outfile_write(&f, text, n);
    return outfile_close(&f, status, NULL);
}

static tri_status write_both(struct pack *p, int64_t shard, struct data_file *file,
                             uint64_t key, const char *path, const char *note) {
    struct text part = {0}, text = {0};
    char hex[65], target[4096], noted[4096];
    int64_t samples = 0;
    tri_status status = outfile_target(path, target);
    if (!status) status = outfile_target(note, noted);
    if (status) return status;
    text_add(&part, "%s.part", target); /* replaces that of an interrupted run */
    if (part.failed) status = base_no_memory(path);
    if (!status && unlink(noted) && errno != ENOENT)
        status = base_fail(TRI_FAILED, "%s: %s", note, strerror(errno));
    if (!status) status = write_archive(p, shard, part.data, file, hex, &samples);
    if (!status) status = rename_to(part.data, target);
    if (!status) {
        note_text(&text, path, hex, key, samples);
        status = text.failed ? base_no_memory(path) : write_note(note, text.data, text.size);
    }
    if (!status) atomic_fetch_add(&p->samples, samples);
    text_free(&part);
    text_free(&text);
    return status;
}

tri_status pack_shard(struct pack *p, int64_t shard, struct data_file *file, bool *made) {
    struct text note = {0};
    const char *path = p->name[shard].data;
    uint64_t key = content_key(p, shard);
    int64_t bytes = 0, samples = 0;
    text_add(&note, "%s" ENDING, path);
    if (note.failed) return base_no_memory(path);
    bool archive = false, hash = false;
    tri_status status = check_file(path, &archive);
    if (!status) status = check_file(note.data, &hash);
    *made = !status && !(archive && hash && is_same(path, note.data, key, &bytes, &samples));
    if (*made) status = write_both(p, shard, file, key, path, note.data);
    if (!status && !*made) {
        atomic_fetch_add(&p->bytes, bytes);
        atomic_fetch_add(&p->samples, samples);
        atomic_fetch_add(&p->bad, p->begin[shard + 1] - p->begin[shard] - samples);
    }
    text_free(&note);
    return status;
}
