/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_BYTES 4096

static _Thread_local char message[MESSAGE_BYTES];
static _Thread_local tri_status last = TRI_FAILED;

const char *tri_message(void) { return message; }

tri_status base_last(void) { return last; }

tri_status base_fail(tri_status code, const char *fmt, ...) {
    /* Arguments may point into the message itself ("%s: %s", path, tri_message()). */
    char next[MESSAGE_BYTES];
    va_list args;
    va_start(args, fmt);
    base_format_list(next, sizeof next, fmt, args);
    va_end(args);
    for (char *p = next; *p; p++) /* a name read from a file could contain a line break */
        if ((unsigned char)*p < ' ' || *p == 127) *p = ' ';
        else if (*p == '\xc2' && (p[1] & 0xe0) == 0x80) p[0] = p[1] = ' ';
    memcpy(message, next, sizeof message);
    return last = code;
}

tri_status base_no_memory(const char *what) {
    return base_fail(TRI_FAILED, "out of memory for %s", what);
}

void base_bug(const char *file, int line, const char *function, const char *what) {
    fprintf(stderr, "trireme: bug in %s:%d (%s): %s does not hold\n", file, line, function, what);
    abort();
}

/* ---- numbers, whatever the locale ---- */

static locale_t plain;

static void make_plain(void) { plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* Null if it cannot be created; then the program's own locale is used. */
static locale_t plain_locale(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain);
    return plain;
}

/* "1 lane(s)" becomes "1 lane", "2 lane(s)" "2 lanes", "0 class(es)" "0 classes". */
static void set_plurals(char *text) {
    for (char *p = text, *s; (p = strchr(p, '(')); p++) {
        size_t n = !strncmp(p, "(s)", 3) ? 3 : !strncmp(p, "(es)", 4) ? 4 : 0;
        if (!n) continue;
        for (s = p; s > text && (isalpha((unsigned char)s[-1]) || strchr(" -", s[-1]));) s--;
        if (s == text || !isdigit((unsigned char)s[-1])) continue;
        bool one = s[-1] == '1' && (s - 1 == text || !strchr("0123456789.,", s[-2]));
        memmove(p, p + 1, one ? 0 : n - 2);
        memmove(p + (one ? 0 : n - 2), p + n, strlen(p + n) + 1);
    }
}

int base_format_list(char *to, size_t bytes, const char *fmt, va_list args) {
    locale_t c = plain_locale(), before = c ? uselocale(c) : (locale_t)0;
    int n = vsnprintf(to, bytes, fmt, args);
    if (c) uselocale(before);
    if (!bytes || !(strstr(fmt, "(s)") || strstr(fmt, "(es)"))) return n;
    set_plurals(to);
    return n < (int)bytes ? (int)strlen(to) : n;
}

int base_format(char *to, size_t bytes, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int n = base_format_list(to, bytes, fmt, args);
    va_end(args);
    return n;
}

double base_number(const char *text, char **end) {
    locale_t c = plain_locale();
    return c ? strtod_l(text, end, c) : strtod(text, end);
}

const char *base_number_text(double number, char text[NUMBER_TEXT]) {
    for (int digits = 1; digits <= 17; digits++) {
        base_format(text, NUMBER_TEXT, "%.*g", digits, number);
        if (base_number(text, NULL) == number) break;
    }
    return text;
}

/* ---- arenas ---- */

#define ARENA_ALIGN 16
#define ARENA_CHUNK 32768

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size; /* bytes of data, which follow the header rounded up to ARENA_ALIGN */
};

static size_t round_up(size_t n) { return (n + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN; }

void *arena_alloc(struct arena *a, size_t bytes) {
    const size_t header = round_up(sizeof(struct arena_chunk));
    bytes = round_up(bytes ? bytes : 1);
    if (!a->chunk || a->chunk->size - a->chunk->used < bytes) {
        size_t size = bytes > ARENA_CHUNK ? bytes : ARENA_CHUNK;
        struct arena_chunk *chunk = calloc(1, header + size);
        if (!chunk) {
            a->failed = true;
            return NULL;
        }
        chunk->size = size;
        chunk->next = a->chunk;
        a->chunk = chunk;
    }
    void *p = (char *)a->chunk + header + a->chunk->used;
    a->chunk->used += bytes;
    return p;
}

char *arena_text(struct arena *a, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = base_format_list(NULL, 0, fmt, args);
    va_end(args);
    char *p = arena_alloc(a, (size_t)n + 1);
    if (p) base_format_list(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

char *arena_copy(struct arena *a, const char *text) { return arena_text(a, "%s", text); }

void arena_free(struct arena *a) {
    while (a->chunk) {
        struct arena_chunk *next = a->chunk->next;
        free(a->chunk);
        a->chunk = next;
    }
}

/* ---- growing text and arrays ---- */

bool base_grow(void **array, size_t used, size_t *capacity, size_t element) {
    if (used < *capacity) return true;
    size_t bigger = *capacity ? *capacity * 2 : 16;
    void *p = realloc(*array, bigger * element);
    if (!p) return false;
    *array = p;
    *capacity = bigger;
    return true;
}

int base_by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool text_room(struct text *t, size_t more) {
    if (t->failed) return false;
    if (t->size + more + 1 <= t->capacity) return true;
    size_t capacity = t->capacity ? t->capacity : 256;
    while (capacity < t->size + more + 1) capacity *= 2;
    char *p = realloc(t->data, capacity);
    if (!p) {
        t->failed = true;
        return false;
    }
    t->data = p;
    t->capacity = capacity;
    return true;
}

void text_add(struct text *t, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = base_format_list(NULL, 0, fmt, args);
    va_end(args);
    if (text_room(t, (size_t)n)) {
        t->size += (size_t)base_format_list(t->data + t->size, (size_t)n + 1, fmt, again);
    }
    va_end(again);
}

void text_add_bytes(struct text *t, const void *data, size_t bytes) {
    if (!text_room(t, bytes)) return;
    if (bytes) memcpy(t->data + t->size, data, bytes); /* of nothing, data may be null */
    t->size += bytes;
    t->data[t->size] = 0;
}

size_t text_character(const char *p, size_t most) {
    const unsigned char *s = (const unsigned char *)p;
    if (*s < 0x80) return 1;
    const size_t n = *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;
    if (!n || n > most) return 0;
    const unsigned code = (*s & (0x7fu >> n)) << 6 | (s[1] & 0x3f);
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if (n == 3 && (code < 0x20 || (code >= 0x360 && code < 0x380))) return 0; /* and surrogates */
    return n == 4 && (code < 0x10 || code >= 0x110) ? 0 : n;
}

static bool is_control(const unsigned char *p) {
    return *p < ' ' || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0);
}

void text_add_escaped_bytes(struct text *t, const char *text, size_t bytes) {
    for (const char *p = text, *end = text + bytes; p < end;) {
        const unsigned char *c = (const unsigned char *)p;
        const size_t n = text_character(p, (size_t)(end - p));
        if (n && !is_control(c)) text_add_bytes(t, p, n);
        else text_add(t, "\\x%02x", *c);
        p += n && !is_control(c) ? n : 1;
    }
}

void text_add_escaped(struct text *t, const char *text) {
    text_add_escaped_bytes(t, text, strlen(text));
}

void text_free(struct text *t) {
    free(t->data);
    *t = (struct text){0};
}

char *arena_escaped(struct arena *a, const char *text) {
    struct text t = {0};
    text_add_escaped(&t, text);
    char *copy = t.failed ? NULL : arena_copy(a, t.data ? t.data : "");
    a->failed |= t.failed;
    text_free(&t);
    return copy;
}

/* ---- hashing: FNV-1a, finished by the mixer of SplitMix64 ---- */

uint64_t base_hash(const void *data, size_t bytes, uint64_t seed) {
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < bytes; i++) h = (h ^ p[i]) * 0x100000001b3u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

uint64_t base_hash_text(const char *text) { return base_hash(text, strlen(text), 0); }

uint32_t base_check(const void *data, size_t bytes) {
    const char *p = data;
    uint64_t h = bytes, word;
    for (; bytes >= sizeof word; bytes -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    return (uint32_t)h;
}

/* ---- files ---- */

const char *base_file_kind(unsigned mode) {
    static const struct {
        mode_t type;
        const char *name;
    } kinds[] = {{S_IFDIR, "a directory"}, {S_IFIFO, "a named pipe"}, {S_IFSOCK, "a socket"},
                 {S_IFCHR, "a character device"}, {S_IFBLK, "a block device"}};
    for (size_t i = 0; i < COUNT(kinds); i++)
        if ((mode & S_IFMT) == kinds[i].type) return kinds[i].name;
    return "of an unknown kind";
}

/* A file that is exchanged between stat and open does no harm: open does not block, and fstat
 * checks what was opened. */
int base_open(const char *path, int flags, struct stat *st) {
    struct stat own;
    int fd = -1, error = 0;
    if (!st) st = &own;
    if (stat(path, st) || S_ISREG(st->st_mode)) {
        fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
        if (fd < 0 || fstat(fd, st) || fcntl(fd, F_SETFL, flags)) error = errno;
    }
    if (!error && S_ISREG(st->st_mode)) return fd;
    if (error) {
        base_fail(TRI_FAILED, "%s: %s", path, strerror(error));
    } else {
        base_fail(TRI_FAILED, "%s: %s, not a regular file", path, base_file_kind(st->st_mode));
        error = EINVAL;
    }
    if (fd >= 0) close(fd);
    errno = error;
    return -1;
}

static tri_status read_all(int fd, const char *path, char *to, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t got = read(fd, to + at, n - at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return base_fail(TRI_FAILED, "%s: read at offset %zu: %s", path, at, strerror(errno));
        if (!got)
            return base_fail(TRI_FAILED, "%s: read stopped at offset %zu of %zu", path, at, n);
        at += (size_t)got;
    }
    return TRI_OK;
}

tri_status base_read_file(const char *path, char **data, size_t *bytes) {
    struct stat st;
    int fd = base_open(path, O_RDONLY, &st);
    *data = NULL;
    *bytes = 0;
    if (fd < 0) return TRI_FAILED;
    size_t n = (size_t)st.st_size;
    char *all = malloc(n + 1);
    tri_status status = all ? read_all(fd, path, all, n) : base_no_memory(path);
    close(fd);
    if (status) {
        free(all);
        return status;
    }
    all[n] = 0;
    *data = all;
    *bytes = n;
    return TRI_OK;
}

const char *base_date_text(char text[DATE_TEXT]) {
    const time_t now = time(NULL);
    struct tm date;
    strftime(text, DATE_TEXT, "%F %T UTC", gmtime_r(&now, &date));
    return text;
}

tri_status base_read_lines(const char *path, const char *remedy,
                           bool (*take)(void *user, char *line), void *user) {
    char *text;
    size_t bytes;
    tri_status status = base_read_file(path, &text, &bytes);
    if (status) return status;
    char *line = text, *end;
    for (int number = 1; !status && line < text + bytes; line = end ? end + 1 : line, number++) {
        end = memchr(line, '\n', (size_t)(text + bytes - line));
        if (end) *end = 0;
        const bool whole = end && strlen(line) == (size_t)(end - line);
        if (whole && (!*line || *line == '#')) continue;
        if (!whole || !take(user, line))
            status = base_fail(TRI_FAILED, "%s: line %d is damaged; %s", path, number, remedy);
    }
    free(text);
    return status;
}

bool base_write_all(int fd, const void *data, size_t bytes) {
    for (const char *p = data; bytes;) {
        const ssize_t n = write(fd, p, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (!n) errno = ENOSPC;
        if (n <= 0) return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

int part_open(const char *path, unsigned mode, char part[PART_PATH]) {
    int fd = -1;
    if (base_format(part, PART_PATH, "%s.part", path) >= PART_PATH) {
        errno = ENAMETOOLONG;
    } else {
        unlink(part); /* its owner and mode are decided anew */
        fd = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, (mode_t)mode);
    }
    if (fd < 0) base_fail(TRI_FAILED, "%s: %s", part, strerror(errno));
    return fd;
}

tri_status part_end(const char *path, const char *part, tri_status status) {
    if (!status && rename(part, path))
        status = base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
    const int error = errno;
    if (status) unlink(part);
    errno = error;
    return status;
}

tri_status text_write(struct text *t, const char *folder, const char *name, tri_status status) {
    char path[PART_PATH];
    base_format(path, sizeof path, "%s/%s", folder, name);
    return text_write_file(t, path, status);
}

tri_status text_write_file(struct text *t, const char *path, tri_status status) {
    char part[PART_PATH];
    if (!status && t->failed) status = base_no_memory(path);
    const int fd = status ? -1 : part_open(path, 0666, part);
    if (!status && fd < 0) status = TRI_FAILED;
    if (!status && !base_write_all(fd, t->data, t->size))
        status = base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
    if (fd >= 0 && close(fd) && !status)
        status = base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
    text_free(t);
    return fd < 0 ? status : part_end(path, part, status);
}

bool base_cache(struct text *path) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/') text_add(path, "%s", cache);
    else if (home && *home == '/') text_add(path, "%s/.cache", home);
    if (!path->size || path->failed) return false;
    mkdir(path->data, 0700); /* if this fails, writing a file there reports it */
    text_add(path, "/trireme");
    if (!path->failed) mkdir(path->data, 0700);
    return !path->failed;
}

/* ---- types and shapes ---- */

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [TRI_F32] = {"f32", 4}, [TRI_BF16] = {"bf16", 2}, [TRI_F16] = {"f16", 2},
    [TRI_I32] = {"i32", 4}, [TRI_I64] = {"i64", 8},   [TRI_U8] = {"u8", 1},
    [TRI_BOOL] = {"bool", 1},
};

size_t tri_type_size(tri_type type) { return types[type].size; }

const char *tri_type_name(tri_type type) {
    return (size_t)type < COUNT(types) ? types[type].name : "unknown";
}

int64_t tri_shape_count(const tri_shape *shape) {
    int64_t n = 1;
    for (int i = 0; i < shape->rank; i++)
        if (__builtin_mul_overflow(n, shape->dim[i], &n)) return INT64_MAX;
    return n;
}

char *base_spec_text(const tri_spec *spec, char buffer[SPEC_TEXT]) {
    int at = snprintf(buffer, SPEC_TEXT, "%s[", tri_type_name(spec->type));
    for (int i = 0; i < spec->shape.rank && at < SPEC_TEXT; i++)
        at += snprintf(buffer + at, (size_t)(SPEC_TEXT - at), "%s%lld", i ? "," : "",
                       (long long)spec->shape.dim[i]);
    if (at < SPEC_TEXT) snprintf(buffer + at, (size_t)(SPEC_TEXT - at), "]");
    return buffer;
}

bool base_shape_equal(const tri_shape *a, const tri_shape *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

size_t base_spec_bytes(const tri_spec *spec) {
    return (size_t)tri_shape_count(&spec->shape) * tri_type_size(spec->type);
}

static int64_t read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t base_now(void) { return read_clock(CLOCK_MONOTONIC); }
int64_t base_realtime(void) { return read_clock(CLOCK_REALTIME); }
double base_seconds(void) { return 1e-9 * (double)base_now(); }
