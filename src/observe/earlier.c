/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/earlier.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "observe/files.h"
#include "observe/log.h"
#include "observe/observe.h"
#include "observe/run_file.h"

/* All files of a run, but agent.json. K stands for a number. Logs may have a .old. */
static const char *const names[] = {"metrics.jsonl", "run.json", "run.log", "agent.log",
                                    "worker-K.log", "worker-K.out", "outputs.jsonl",
                                    "workers.series", "profile", "hosts"};

#define OLD ".old"
#define MOST 1000000 /* numbers are smaller */

/* The name without its number, 0 if it has none; null: it is none of ours. */
static const char *strip(const char *name, int *number, char base[64]) {
    const char *dot = strchr(name, '.');
    int n = 0;
    *number = 0;
    if (strlen(name) >= 64) return NULL;
    if (dot && sscanf(dot, ".%6d%n", number, &n) == 1 && (!dot[n] || dot[n] == '.') && *number > 0)
        base_format(base, 64, "%.*s%s", (int)(dot - name), name, dot + n);
    else
        base_format(base, 64, "%s", name);
    return base;
}

static bool is_ours(const char *base) {
    char kind[64];
    int k, n = 0;
    size_t length = strlen(base);
    const bool old = length > 4 && !strcmp(base + length - 4, OLD);
    base_format(kind, sizeof kind, "%.*s", (int)(old ? length - 4 : length), base);
    if (sscanf(base, "worker-%d%n", &k, &n) == 1 && k >= 0)
        base_format(kind, sizeof kind, "worker-K%.*s", (int)(length - (size_t)n - (old ? 4 : 0)),
                    base + n);
    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(kind, names[i])) return !old || strchr(names[i], '.');
    return false;
}

/* "worker-0.3.log" of "worker-0.log" and 3. */
static void add_number(const char *base, int number, char name[128]) {
    const int stem = (int)strcspn(base, ".");
    base_format(name, 128, "%.*s.%d%s", stem, base, number, base + stem);
}

static char *join(const char *directory, const char *name, char path[4096]) {
    base_format(path, 4096, "%s/%s", directory, name);
    return path;
}

/* ---- what is there ---- */

struct entry {
    char name[64], base[64]; /* base: without the number */
    int number;
    bool empty; /* a file that has nothing */
};

struct entries {
    struct entry *of;
    size_t n, capacity;
};

static tri_status add(struct entries *e, const char *directory, const char *name) {
    struct entry one = {.number = 0};
    struct stat st;
    char path[4096];
    if (*name == '.' || !strip(name, &one.number, one.base)) return TRI_OK;
    if (!is_ours(one.base) || stat(join(directory, name, path), &st)) return TRI_OK;
    const bool folder = S_ISDIR(st.st_mode), file = S_ISREG(st.st_mode);
    if (!(strchr(one.base, '.') ? file : folder)) return TRI_OK; /* something of the user's */
    base_format(one.name, sizeof one.name, "%s", name);
    one.empty = !folder && !st.st_size;
    if (!ARRAY_GROW(e->of, e->n, e->capacity)) return base_no_memory(directory);
    e->of[e->n++] = one;
    return TRI_OK;
}

/* NAME.old before NAME. */
static int by_name(const void *a, const void *b) {
    return strcmp(((const struct entry *)b)->base, ((const struct entry *)a)->base);
}

static tri_status list(const char *directory, struct entries *e) {
    DIR *d = opendir(directory);
    tri_status status = TRI_OK;
    *e = (struct entries){0};
    if (!d && errno != ENOENT && errno != ENOTDIR)
        return base_fail(TRI_FAILED, "%s: %s", directory, strerror(errno));
    for (struct dirent *one; d && !status && (one = readdir(d));)
        status = add(e, directory, one->d_name);
    if (d) closedir(d);
    if (status) {
        free(e->of);
        *e = (struct entries){0};
    }
    if (e->n) qsort(e->of, e->n, sizeof *e->of, by_name);
    return status;
}

/* The largest number below another one; 0: there is none. */
static int largest(const struct entries *e, int below) {
    int number = 0;
    for (size_t i = 0; i < e->n; i++)
        if (e->of[i].number > number && e->of[i].number < below) number = e->of[i].number;
    return number;
}

/* ---- other runs ---- */

/* Whether a run has locked the file. On a file system without locks, the answer is always no. */
static bool being_written(const char *path) {
    int fd = base_open(path, O_RDONLY, NULL);
    if (fd < 0) return false;
    bool taken = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    close(fd);
    return taken;
}

/* The workers of an agent that was killed may still be ending. */
static tri_status check_free(const char *path) {
    const double until = base_seconds() + OBSERVE_DIES;
    bool taken;
    while ((taken = being_written(path)) && base_seconds() < until)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (!taken) return TRI_OK;
    return base_fail(TRI_FAILED, "%s is being written by another run; choose another directory "
                     "with --out", path);
}

static tri_status check_hosts(const char *directory) {
    glob_t found = {0};
    tri_status status = files_match(directory, "hosts/*/agent.json", &found);
    for (size_t i = 0; i < found.gl_pathc && !status; i++) status = check_free(found.gl_pathv[i]);
    globfree(&found);
    return status;
}

static tri_status check_all(const char *directory, bool agent) {
    static const char *const locked[] = {"metrics.jsonl", "agent.json"};
    char path[4096];
    tri_status status = check_hosts(directory);
    for (size_t i = 0; i < COUNT(locked) - agent && !status; i++)
        status = check_free(join(directory, locked[i], path));
    return status;
}

int earlier_lock(const char *directory) {
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) base_fail(TRI_FAILED, "%s: %s", directory, strerror(errno));
    else if (flock(fd, LOCK_EX)) errno = 0; /* a file system without locks */
    return fd;
}

/* ---- giving numbers ---- */

static tri_status cannot(const char *from, const char *to) {
    return base_fail(TRI_FAILED, "%s is of an earlier run and cannot be renamed to %s: %s", from,
                     to, strerror(errno));
}

static tri_status move(const char *directory, const struct entry *e, int number) {
    char from[4096], to[4096], name[128];
    add_number(e->base, number, name);
    join(directory, e->name, from);
    return rename(from, join(directory, name, to)) ? cannot(from, to) : TRI_OK;
}

tri_status earlier_move(const char *directory, bool agent, int *number) {
    struct entries e;
    bool any = false;
    *number = 0;
    tri_status status = check_all(directory, agent);
    if (!status) status = list(directory, &e);
    if (status) return status;
    const int n = largest(&e, MOST) + 1;
    for (size_t i = 0; i < e.n; i++) /* a folder alone may be the user's */
        any |= !e.of[i].number && !e.of[i].empty && strchr(e.of[i].base, '.');
    for (size_t i = 0; any && i < e.n && !status; i++)
        if (!e.of[i].number && (!e.of[i].empty || !strcmp(e.of[i].base, "metrics.jsonl")))
            status = move(directory, &e.of[i], n);
    if (any) *number = n;
    free(e.of);
    return status;
}

void earlier_tell(const char *directory, int number, FILE *to) {
    struct stat st;
    char path[4096], name[128];
    add_number("metrics.jsonl", number, name);
    if (number && to && !stat(join(directory, name, path), &st) && st.st_size)
        fprintf(to, "trireme: %s: the files of an earlier run have the number %d now, as "
                "metrics.%d.jsonl\n", directory, number, number);
}

/* ---- taking them back ---- */

/* The file's text goes to the end of the other one. */
static tri_status append(const char *from, const char *to) {
    char *data;
    size_t bytes;
    struct stat st;
    tri_status status = base_read_file(from, &data, &bytes);
    if (status) return status;
    const bool fits = !stat(to, &st) && st.st_size + (off_t)bytes <= LOG_BUDGET;
    FILE *f = fopen(to, fits ? "ae" : "we");
    bool bad = !f || fwrite(data, 1, bytes, f) != bytes;
    if (f) bad |= fclose(f) != 0;
    free(data);
    if (bad) return base_fail(TRI_FAILED, "cannot write %s: %s", to, strerror(errno));
    return unlink(from) ? base_fail(TRI_FAILED, "%s: %s", from, strerror(errno)) : TRI_OK;
}

static tri_status put_back(const char *from, const char *to);

static tri_status put_back_all(const char *from, const char *to) {
    DIR *d = opendir(from);
    char path[4096], other[4096];
    tri_status status = d ? TRI_OK : base_fail(TRI_FAILED, "%s: %s", from, strerror(errno));
    for (int old = 1; old >= 0; old--) {
        for (struct dirent *one; !status && (one = readdir(d));) {
            const size_t n = strlen(one->d_name);
            const bool is_old = n > 4 && !strcmp(one->d_name + n - 4, OLD);
            if (*one->d_name != '.' && is_old == old)
                status = put_back(join(from, one->d_name, path), join(to, one->d_name, other));
        }
        if (d) rewinddir(d);
    }
    if (d) closedir(d);
    return status || !rmdir(from) ? status : base_fail(TRI_FAILED, "%s: %s", from, strerror(errno));
}

static tri_status put_back(const char *from, const char *to) {
    struct stat st;
    char old[4096];
    if (lstat(to, &st)) return rename(from, to) ? cannot(from, to) : TRI_OK;
    if (S_ISDIR(st.st_mode)) return put_back_all(from, to);
    const char *name = strrchr(from, '/') + 1;
    if (!strcmp(name, "agent.json")) return unlink(from) ? cannot(from, to) : TRI_OK;
    base_format(old, sizeof old, "%s" OLD, to);
    if (!lstat(old, &st)) return append(from, old);
    return rename(from, old) ? cannot(from, old) : TRI_OK;
}

/* Whether the run of this run.json writes these checkpoints: its path, or what it leads to, is the
 * same. *known: it can be read. */
static bool is_of(const char *run, const char *checkpoints, bool *known) {
    struct run_read r;
    char *real = realpath(checkpoints, NULL);
    bool is = false;
    *known = !run_file_read(run, &r);
    for (size_t i = 0; *known && i < r.n_options; i++)
        is |= !strcmp(r.option[2 * i], "--ckpt") && !strcmp(r.option[2 * i + 1], checkpoints);
    if (*known) is |= real && !strcmp(r.checkpoints, real);
    if (*known) run_file_free(&r);
    free(real);
    return is;
}

/* The same of the folders of hosts. */
static bool hosts_are_of(const char *hosts, const char *checkpoints, bool *known) {
    glob_t found = {0};
    bool is = false, one_known;
    files_match(hosts, "*/run.json", &found);
    for (size_t i = 0; i < found.gl_pathc && !is; i++) {
        is = is_of(found.gl_pathv[i], checkpoints, &one_known);
        *known |= one_known;
    }
    globfree(&found);
    return is;
}

/* just: the files had no number until now. Versions before wrote no run.json. */
static bool is_continued(const char *directory, int number, const char *checkpoints, bool just) {
    char path[4096], name[128];
    bool known, hosts_known = false;
    add_number("run.json", number, name);
    if (is_of(join(directory, name, path), checkpoints, &known)) return true;
    add_number("hosts", number, name);
    if (hosts_are_of(join(directory, name, path), checkpoints, &hosts_known)) return true;
    add_number("metrics.jsonl", number, name);
    return just && !known && !hosts_known && !access(join(directory, name, path), F_OK);
}

tri_status earlier_restore(const char *directory, int number, const char *checkpoints,
                           bool *found) {
    struct entries e = {0};
    char from[4096], to[4096];
    int n = 0;
    *found = false;
    if (!checkpoints || access(directory, F_OK)) return TRI_OK;
    const int lock = earlier_lock(directory);
    tri_status status = lock < 0 ? base_last() : list(directory, &e);
    *found = !access(join(directory, "metrics.jsonl", to), F_OK);
    if (!*found) n = largest(&e, MOST);
    while (!status && n && !is_continued(directory, n, checkpoints, n == number))
        n = largest(&e, n);
    for (size_t i = 0; i < e.n && !status && n; i++)
        if (e.of[i].number == n)
            status = put_back(join(directory, e.of[i].name, from),
                              join(directory, e.of[i].base, to));
    *found |= n > 0;
    free(e.of);
    if (lock >= 0) close(lock);
    return status;
}
