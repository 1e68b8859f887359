/* SPDX-License-Identifier: Apache-2.0
 * The basis of every layer: failures with a message, arenas, growing text, assertions. */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stdarg.h>

#define TRI_NO_LINES /* inside the library, graph builders keep the line in the user's source */
#include <trireme.h>

/* Sets the calling thread's message and returns the code, so that `return base_fail(...)` works.
 * The text is one line without a final newline. */
tri_status base_fail(tri_status code, const char *fmt, ...) TRI_PRINTF(2, 3);
/* The code that belongs to the thread's message: why a call that returned null failed. */
tri_status base_last(void);
/* Fails with "out of memory" and what the memory was for. */
tri_status base_no_memory(const char *what);

/* Aborts if an invariant of ours is broken, and prints where. Never for a user's mistake. */
#define CHECK(condition) \
    ((condition) ? (void)0 : base_bug(__FILE__, __LINE__, __func__, #condition))
_Noreturn void base_bug(const char *file, int line, const char *function, const char *what);

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Memory that is freed all at once. Everything is aligned to 16 bytes and zeroed. A failed
 * allocation returns null and makes arena->failed true for good. */
struct arena {
    struct arena_chunk *chunk;
    bool failed;
};
void *arena_alloc(struct arena *a, size_t bytes);
char *arena_text(struct arena *a, const char *fmt, ...) TRI_PRINTF(2, 3);
char *arena_copy(struct arena *a, const char *text);
void arena_free(struct arena *a);

/* Numbers are read and written with a decimal point in every locale, so that files and textual
 * graphs are the same everywhere. base_number is strtod; base_format is snprintf. Messages, arena
 * texts and growing texts follow the same rule. All of them write "%d lane(s)" as "1 lane" or
 * "2 lanes". */
double base_number(const char *text, char **end);
#define NUMBER_TEXT 32
/* The shortest text that base_number reads back as the same number; returns `text`. */
const char *base_number_text(double number, char text[NUMBER_TEXT]);
int base_format(char *to, size_t bytes, const char *fmt, ...) TRI_PRINTF(3, 4);
/* Without room for the text it returns how long it can be. */
int base_format_list(char *to, size_t bytes, const char *fmt, va_list args) TRI_PRINTF(3, 0);

/* Growing text. After a failed allocation further calls do nothing and `failed` stays true. */
struct text {
    char *data; /* ends with a zero byte once anything was added */
    size_t size, capacity;
    bool failed;
};
void text_add(struct text *t, const char *fmt, ...) TRI_PRINTF(2, 3);
void text_add_bytes(struct text *t, const void *data, size_t bytes);
/* A user's text: control characters and bytes that are no UTF-8 become \x1b. */
void text_add_escaped(struct text *t, const char *text);
void text_add_escaped_bytes(struct text *t, const char *text, size_t bytes);
/* Of the character of UTF-8 at p, which has at most so many bytes: how many; 0: it is none. */
size_t text_character(const char *p, size_t most);
void text_free(struct text *t);
/* The same as a copy. */
char *arena_escaped(struct arena *a, const char *text);

/* A growing array of any element type: `array` is a pointer variable, `n` and `capacity` its
 * counters. False if memory is out; the array is then unchanged. */
#define ARRAY_GROW(array, n, capacity) \
    base_grow((void **)&(array), (size_t)(n), &(capacity), sizeof *(array))
bool base_grow(void **array, size_t used, size_t *capacity, size_t element);

/* For qsort: doubles, the smallest first. */
int base_by_size(const void *a, const void *b);

/* A 64-bit hash that never changes: keys of random numbers depend on it. */
uint64_t base_hash(const void *data, size_t bytes, uint64_t seed);
uint64_t base_hash_text(const char *text);
/* A fast check of a part of a file, whose bytes are a multiple of 8. It tells damage, no malice. */
uint32_t base_check(const void *data, size_t bytes);

/* "a named pipe", from stat's st_mode. */
const char *base_file_kind(unsigned mode);
/* Opens a regular file. Pipes, devices, directories and sockets are refused before they are opened:
 * opening one can block forever or act on the device. O_CREAT creates with mode 0666. `st` is
 * nullable. Returns the descriptor, or -1 with errno and the message "PATH: reason". */
struct stat;
int base_open(const char *path, int flags, struct stat *st);
/* Reads a whole regular file. A zero byte follows *data, which is freed with free(). */
tri_status base_read_file(const char *path, char **data, size_t *bytes);
#define DATE_TEXT 32
/* "2026-01-31 12:00:00 UTC", now; returns `text`. */
const char *base_date_text(char text[DATE_TEXT]);
/* Calls `take` with the lines of a text file; those that are empty or begin with # are left out. If
 * it returns false, or a line has no end, or a zero in it: "PATH: line 3 is damaged; REMEDY". */
tri_status base_read_lines(const char *path, const char *remedy,
                           bool (*take)(void *user, char *line), void *user);
/* False with errno if not all was written. */
bool base_write_all(int fd, const void *data, size_t bytes);
/* A file that replaces another one as a whole. Creates PATH.part, which replaces that of a writer
 * that was killed, and returns its descriptor; -1 with errno and a message. */
#define PART_PATH 4200
int part_open(const char *path, unsigned mode, char part[PART_PATH]);
/* After it is complete: renames it. After a failure, `status` or its own, removes it. */
tri_status part_end(const char *path, const char *part, tri_status status);
/* Replaces FOLDER/NAME by the text, unless `status` is a failure, and frees the text. Returns
 * `status`, or its own failure. */
tri_status text_write(struct text *t, const char *folder, const char *name, tri_status status);
tri_status text_write_file(struct text *t, const char *path, tri_status status);

/* Adds the path of the folder for what can be made again, $XDG_CACHE_HOME/trireme or
 * ~/.cache/trireme, which is made. False: the user has none. */
bool base_cache(struct text *path);

/* Writes "f32[2,3]" to the buffer and returns it. */
#define SPEC_TEXT 160
char *base_spec_text(const tri_spec *spec, char buffer[SPEC_TEXT]);
bool base_shape_equal(const tri_shape *a, const tri_shape *b);
size_t base_spec_bytes(const tri_spec *spec);

int64_t base_now(void);    /* nanoseconds, CLOCK_MONOTONIC */
double base_seconds(void); /* the same in seconds */
int64_t base_realtime(void); /* nanoseconds since 1970 */

#endif
