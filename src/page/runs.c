/* SPDX-License-Identifier: Apache-2.0 */
#include "page/runs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host.h"
#include "observe/files.h"
#include "observe/json.h"
#include "observe/run_file.h"
#include "profile/lines.h"

#define EACH 1500000000 /* nanoseconds: a version is not followed by another one sooner */
#define CLIENT INT64_C(20000000) /* the same, longer by this for each that asks anew then */
#define SHARE 20 /* of a run's time, a longest answer about each version may take one part */
#define RECENT 10000000000 /* nanoseconds: what has not changed for so long is looked at */
#define TURNS 6            /* at each so many calls, unless it is shown alone */
#define TAIL 65536 /* bytes of metrics.jsonl in which the last lines are looked for */

struct run {
    char *path, *name; /* name: below the directory, escaped */
    uint64_t hash;     /* of the path */
    uint64_t stamp;    /* of its files */
    int64_t version, shown; /* shown: the version of the row */
    int64_t told;           /* when the version has changed last */
    int64_t cost;           /* nanoseconds: the longest answer about the version */
    int64_t pid, process_start; /* of one that goes on; pid 0: of none */
    int asked, follow;          /* how often since the last look, and in the time before it */
    bool alone;                 /* not as one of all */
    json_t *row;
};

/* The thread that looks for runs is the only one that adds some, and holds the lock then. Paths and
 * names stay. */
static struct {
    pthread_mutex_t lock;
    struct run *run;
    size_t n, capacity;
    int64_t version; /* of the list, and of any run */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- finding ---- */

static bool is_run(int folder) {
    static const char *const marks[] = {"run.json", "metrics.jsonl", "agent.json"};
    struct stat is;
    for (size_t i = 0; i < COUNT(marks); i++)
        if (!fstatat(folder, marks[i], &is, AT_SYMLINK_NOFOLLOW) && S_ISREG(is.st_mode))
            return true;
    return false;
}

/* Of what is in a folder: a run's files, or profiles, folders that change when something is made in
 * them. */
static uint64_t stamp_folder(const char *folder, const char *below) {
    static const char *const ours[] = {"run.", "metrics.", "agent.", "worker", "outputs."};
    char path[4200];
    uint64_t sum = 0;
    base_format(path, sizeof path, "%s%s", folder, below);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat is;
        bool counts = *below && *e->d_name != '.';
        for (size_t i = 0; i < COUNT(ours); i++)
            counts |= !strncmp(e->d_name, ours[i], strlen(ours[i]));
        if (!counts || fstatat(dirfd(d), e->d_name, &is, 0)) continue;
        const int64_t what[] = {(int64_t)is.st_ino, S_ISDIR(is.st_mode) ? 0 : is.st_size,
                                is.st_mtim.tv_sec, is.st_mtim.tv_nsec};
        sum += base_hash(what, sizeof what, base_hash_text(e->d_name));
    }
    if (d) closedir(d);
    return sum;
}

static uint64_t stamp_of(const char *path) {
    char hosts[4200];
    struct run_folders f = {0};
    uint64_t sum = stamp_folder(path, "") + stamp_folder(path, "/profile");
    base_format(hosts, sizeof hosts, "%s/hosts", path);
    if (!access(hosts, F_OK) && run_folders(path, &f)) sum = 0;
    for (size_t i = 0; i < f.n; i++)
        sum = 31 * sum + stamp_folder(f.of[i].path, "") + stamp_folder(f.of[i].path, "/profile");
    run_folders_free(&f);
    return sum;
}

static tri_status add_run(const char *path, const char *name) {
    struct text shown = {0};
    struct run r = {.hash = base_hash_text(path), .shown = -1};
    for (size_t i = 0; i < all.n; i++)
        if (all.run[i].hash == r.hash && !strcmp(all.run[i].path, path)) return TRI_OK;
    text_add_escaped(&shown, *name ? name : path);
    r.path = strdup(path);
    r.name = shown.data;
    r.stamp = stamp_of(path);
    pthread_mutex_lock(&all.lock);
    const bool added = r.path && !shown.failed && ARRAY_GROW(all.run, all.n, all.capacity);
    if (added) all.run[all.n++] = r, all.version++;
    pthread_mutex_unlock(&all.lock);
    if (added) return TRI_OK;
    free(r.path);
    text_free(&shown);
    return base_no_memory("the runs");
}

/* folder: is closed. top: the bytes of the directory's own path. */
static tri_status find_below(int folder, const char *path, size_t top, int depth) {
    tri_status status = TRI_OK;
    if (is_run(folder)) {
        close(folder);
        return add_run(path, path[top] ? path + top + 1 : "");
    }
    DIR *d = fdopendir(folder);
    if (!d) {
        close(folder);
        return depth ? TRI_OK : base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
    }
    for (struct dirent *e; depth < RUNS_DEPTH && !status && (e = readdir(d));) {
        struct text below = {0};
        if (*e->d_name == '.' || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN)) continue;
        const int inside = openat(dirfd(d), e->d_name,
                                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inside < 0) continue; /* it may be gone, or another user's */
        text_add(&below, "%s/%s", path, e->d_name);
        status = below.failed ? base_no_memory("the runs")
                              : find_below(inside, below.data, top, depth + 1);
        if (below.failed) close(inside);
        text_free(&below);
    }
    closedir(d);
    return status;
}

tri_status runs_find(const char *directory) {
    const int folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return base_fail(TRI_USAGE, "%s: %s", directory, strerror(errno));
    return find_below(folder, directory, strlen(directory), 0);
}

void runs_free(void) {
    for (size_t i = 0; i < all.n; i++) {
        free(all.run[i].path);
        free(all.run[i].name);
        json_decref(all.run[i].row);
    }
    free(all.run);
}

static struct run *get(int run) {
    return run >= 0 && (size_t)run < all.n ? &all.run[run] : NULL;
}

const char *runs_path(int run) {
    pthread_mutex_lock(&all.lock);
    const struct run *r = get(run);
    const char *path = r ? r->path : NULL;
    pthread_mutex_unlock(&all.lock);
    return path;
}

static bool is_due(const struct run *r) {
    const int64_t since = base_now() - r->told;
    return since >= EACH + r->follow * CLIENT && since / SHARE >= r->cost;
}

/* With the lock. stamp: of its files, now. */
static void look_at(struct run *r, uint64_t stamp) {
    const bool killed = r->pid && host_process((int)r->pid) != r->process_start;
    if (stamp == r->stamp && !killed) return;
    if (killed) r->pid = 0;
    r->stamp = stamp;
    r->told = base_now();
    r->cost = 0;
    r->version++;
    all.version++;
}

int64_t runs_version(int run) {
    pthread_mutex_lock(&all.lock);
    struct run *r = get(run);
    if (r && !r->asked && is_due(r)) look_at(r, stamp_of(r->path)); /* nobody has for a while */
    if (r) r->asked++, r->alone = true;
    for (size_t i = 0; run < 0 && i < all.n; i++) all.run[i].asked++;
    const int64_t version = r ? r->version : all.version;
    pthread_mutex_unlock(&all.lock);
    return version;
}

void runs_look(void) {
    static size_t turn;
    turn++;
    for (size_t i = 0; i < all.n; i++) { /* files are looked at without the lock */
        pthread_mutex_lock(&all.lock);
        struct run *r = &all.run[i];
        const bool now = r->alone || base_now() - r->told < RECENT || (i + turn) % TURNS == 0;
        if (now) r->follow = r->asked;
        const bool looks = r->asked && now && is_due(r);
        if (now) r->asked = r->alone = false;
        pthread_mutex_unlock(&all.lock);
        if (!looks) continue;
        const uint64_t stamp = stamp_of(r->path);
        pthread_mutex_lock(&all.lock);
        look_at(r, stamp);
        pthread_mutex_unlock(&all.lock);
    }
}

void runs_cost(int run, int64_t took) {
    pthread_mutex_lock(&all.lock);
    struct run *r = get(run);
    if (r && took > r->cost) r->cost = took;
    pthread_mutex_unlock(&all.lock);
}

/* ---- a row ---- */

static char *first_file(const char *path, const char *name) {
    glob_t found = {0};
    char *first = NULL, own[4200];
    base_format(own, sizeof own, "%s/%s", path, name);
    if (!access(own, F_OK)) return strdup(own);
    if (!run_files(path, name, &found) && found.gl_pathc) first = strdup(found.gl_pathv[0]);
    globfree(&found);
    return first;
}

/* Adds the faults of another host's file to the first one's. */
static void add_host(json_t *root, json_t *of, const char *host) {
    static const char *const counts[] = {"deaths", "stalls", "takeovers"};
    size_t k;
    json_t *fault, *faults = json_object_get(root, "faults");
    json_array_foreach(json_object_get(of, "faults"), k, fault)
        json_object_set_new(fault, "host", json_string(host));
    if (root == of) return;
    json_array_extend(faults, json_object_get(of, "faults"));
    for (size_t i = 0; i < COUNT(counts); i++)
        json_object_set_new(root, counts[i], json_integer(json_whole_of(root, counts[i], 0) +
                                                          json_whole_of(of, counts[i], 0)));
}

/* The run.json of the first host, with the faults of all, and what each host's entries are. */
json_t *runs_file(int run) {
    static const char *const lists[] = {"entries", "faults", "totals"};
    struct run_folders f = {0};
    json_t *root = NULL, *hosts = json_array();
    const tri_status status = runs_path(run) ? run_folders(runs_path(run), &f) : TRI_USAGE;
    for (size_t i = 0; i < f.n && !status; i++) {
        char path[4200];
        struct run_read r;
        base_format(path, sizeof path, "%s/run.json", f.of[i].path);
        if (access(path, F_OK) || run_file_read(path, &r)) continue;
        for (size_t k = 0; k < COUNT(lists); k++)
            if (!json_is_array(json_object_get(r.root, lists[k])))
                json_object_set_new(r.root, lists[k], json_array());
        if (!root) root = json_incref(r.root);
        add_host(root, r.root, f.of[i].host);
        json_array_append_new(hosts, json_pack(
            "{s:s,s:O,s:O}", "host", f.of[i].host, "entries", json_object_get(r.root, "entries"),
            "workers", json_object_get(r.root, "workers")));
        run_file_free(&r);
    }
    run_folders_free(&f);
    if (root) json_object_set(root, "hosts", hosts);
    json_decref(hosts);
    return root;
}

/* Where the last line with an evaluation begins, or the last whole line, whichever is before. */
static char *last_lines(char *data, size_t n, bool whole) {
    char *end = memrchr(data, '\n', n), *begin = end, *evaluation = NULL;
    if (!end) return data + n;
    static const char mark[] = "\"eval\":{";
    for (char *at = data; (at = memmem(at, (size_t)(end - at), mark, sizeof mark - 1)); at++)
        evaluation = at;
    if (evaluation) begin = evaluation; /* its step's own line is the one before or after */
    for (int lines = 0; begin > data && (begin[-1] != '\n' || !lines++);) begin--;
    if (begin == data && !whole) begin = (char *)memchr(data, '\n', n) + 1;
    return begin;
}

/* The last lines of the results: what they have, and when they were written. */
static void add_results(json_t *row, const char *path) {
    struct lines l = {0};
    struct stat is;
    const int fd = base_open(path, O_RDONLY, &is);
    char *data = fd >= 0 ? malloc(TAIL + 1) : NULL, *line;
    const off_t from = fd >= 0 && is.st_size > TAIL ? is.st_size - TAIL : 0;
    const ssize_t n = data ? pread(fd, data, TAIL, from) : -1;
    json_t *results = json_object(), *evaluation = json_object();
    if (fd >= 0) close(fd);
    if (n > 0) {
        data[n] = 0;
        line = last_lines(data, (size_t)n, !from);
        for (char *end; (end = memchr(line, '\n', (size_t)(data + n - line))); line = end + 1) {
            *end = 0;
            if (!lines_scan(&l, line)) continue;
            json_t *to = l.evaluation ? evaluation : results;
            for (size_t i = LINES_FIXED; i < l.n; i++)
                if (!isnan(l.value[i]))
                    json_object_set_new(to, l.name[i], json_finite(l.value[i]));
            json_object_set_new(row, "step", json_finite(l.value[LINES_STEP]));
            json_object_set_new(row, "seconds", json_finite(l.value[LINES_SECONDS]));
            if (!l.evaluation) json_object_set_new(row, "lr", json_finite(l.value[LINES_LR]));
        }
        const double written = (double)is.st_mtim.tv_sec + 1e-9 * (double)is.st_mtim.tv_nsec;
        json_object_set_new(row, "written", json_finite(written));
    }
    json_object_set_new(row, "results", results);
    json_object_set_new(row, "evaluation", evaluation);
    lines_free(&l);
    free(data);
}

/* Entries that end before they begin, or begin before the one before or after this moment. */
static void add_clock(json_t *row, const struct run_read *r) {
    double back = 0, latest = 1e-9 * (double)base_realtime();
    for (size_t i = r->n_entries; i-- > 0;) {
        const struct run_entry *e = &r->entry[i];
        back = fmax(back, fmax(e->begin - e->end, e->begin - latest)); /* fmax: not NaN */
        latest = fmin(latest, e->begin);
    }
    if (!(back > 1)) return;
    char text[100];
    base_format(text, sizeof text, "A clock was set back by %.0f s: times are not exact.", back);
    json_object_set_new(row, "clock", json_string(text));
}

/* The last step that was done when the last entry began, as it was resumed; -1: not known. */
static int64_t steps_before(const struct run_read *r) {
    const struct run_entry *last = &r->entry[r->n_entries - 1];
    if (last->first > 0) return last->first - 1;
    if (r->n_entries > 1) return last[-1].exit ? -1 : last[-1].last;
    for (size_t i = 0; i < r->n_options; i++)
        if (!strcmp(r->option[2 * i], "--resume")) return -1;
    return 0;
}

/* Of the last entry, as the seconds of results are. */
static void add_rate(json_t *row, int64_t before) {
    const double steps = json_number_of(row, "step", NAN) - (double)before,
                 samples = steps * json_number_of(row, "batch", NAN),
                 seconds = json_number_of(row, "seconds", NAN);
    if (before >= 0 && samples > 0 && seconds > 0)
        json_object_set_new(row, "rate", json_finite(samples / seconds));
}

static void add_file(json_t *row, const struct run_read *r, struct run *run) {
    static const char *const copied[] = {"title", "workers", "threads", "lanes", "batch",
                                         "steps", "parameters", "deaths", "stalls", "grain",
                                         "placement"};
    const struct run_entry *first = r->n_entries ? &r->entry[0] : NULL,
                           *last = r->n_entries ? &r->entry[r->n_entries - 1] : NULL;
    for (size_t i = 0; i < COUNT(copied); i++) {
        json_t *value = json_object_get(r->root, copied[i]);
        if (json_is_string(value) || json_is_number(value))
            json_object_set(row, copied[i], value);
    }
    json_t *options = json_object();
    for (size_t i = 0; i < r->n_options; i++)
        json_object_set_new(options, r->option[2 * i], json_string(r->option[2 * i + 1]));
    json_object_set_new(row, "options", options);
    if (!last) return;
    add_clock(row, r);
    double took = 0;
    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entry[i].end > r->entry[i].begin) took += r->entry[i].end - r->entry[i].begin;
    json_object_set_new(row, "began", json_finite(first->begin));
    json_object_set_new(row, "entered", json_finite(last->begin));
    json_object_set_new(row, "took", json_finite(took)); /* of what has ended */
    const enum run_state state = run_file_state(last);
    run->pid = state == RUN_GOES_ON ? last->pid : 0;
    run->process_start = last->process_start;
    json_object_set_new(row, "state", json_string(run_state_name(state)));
    if (last->exit > 0) json_object_set_new(row, "exit", json_integer(last->exit));
}

/* Of runs that were in this directory before, whose files have numbers. */
static int64_t count_earlier(const char *path) {
    glob_t found = {0};
    files_match(path, "metrics.*.jsonl", &found);
    const int64_t n = (int64_t)found.gl_pathc;
    globfree(&found);
    return n;
}

static json_t *make_row(struct run *run, int number) {
    json_t *row = json_object();
    char *file = first_file(run->path, "run.json"), *lines = first_file(run->path, "metrics.jsonl");
    struct run_read r;
    int64_t before = -1;
    json_object_set_new(row, "run", json_integer(number));
    json_object_set_new(row, "version", json_integer(run->version));
    json_object_set_new(row, "name", json_string(run->name));
    struct text directory = {0};
    text_add_escaped(&directory, run->path);
    json_object_set_new(row, "directory", json_string(directory.data ? directory.data : ""));
    text_free(&directory);
    if (file && !run_file_read(file, &r)) {
        add_file(row, &r, run);
        if (r.n_entries) before = steps_before(&r);
        run_file_free(&r);
    } else if (file) {
        json_object_set_new(row, "trouble", json_string(tri_message()));
    }
    if (!file && access(run->path, F_OK))
        json_object_set_new(row, "trouble", json_string("its directory is gone"));
    if (lines) add_results(row, lines);
    add_rate(row, before);
    json_object_set_new(row, "earlier", json_integer(count_earlier(run->path)));
    free(file);
    free(lines);
    return row;
}

json_t *runs_row(int run) {
    pthread_mutex_lock(&all.lock);
    struct run *r = get(run);
    if (r && r->shown != r->version) {
        json_decref(r->row);
        r->row = make_row(r, run);
        r->shown = r->version;
    }
    json_t *row = r ? json_incref(r->row) : NULL;
    pthread_mutex_unlock(&all.lock);
    return row;
}
