/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host.h"

#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define UNLIMITED ((int64_t)1 << 60) /* version 1 says "no limit" with a huge number */
#define LINE 1024

/* The first line of a file; false if it cannot be read. */
static bool first_line(char line[LINE], const char *path) {
    FILE *f = fopen(path, "r");
    if (!f) return false;
    bool got = fgets(line, LINE, f);
    fclose(f);
    return got;
}

/* ---- control groups ---- */

/* Reads a number from a control group's directory; negative: it has none. */
typedef double group_number(const char *directory);

static double one_number(const char *directory, const char *name) {
    char path[LINE + 32], line[LINE];
    double value;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return first_line(line, path) && sscanf(line, "%lf", &value) == 1 ? value : -1;
}

/* The number after `word` at the start of a line. */
static double number_after(const char *path, const char *word) {
    char line[LINE];
    double value = -1;
    size_t n = strlen(word);
    FILE *f = fopen(path, "r");
    while (f && value < 0 && fgets(line, sizeof line, f))
        if (!strncmp(line, word, n)) value = strtod(line + n, NULL);
    if (f) fclose(f);
    return value;
}

static double cpu_v2(const char *directory) {
    char path[LINE + 32], line[LINE];
    double quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", directory);
    if (!first_line(line, path) || sscanf(line, "%lf %lf", &quota, &period) != 2) return -1;
    return period > 0 ? quota / period : -1;
}

static double cpu_v1(const char *directory) {
    double quota = one_number(directory, "cpu.cfs_quota_us");
    double period = one_number(directory, "cpu.cfs_period_us");
    return quota > 0 && period > 0 ? quota / period : -1;
}

static double memory_v2(const char *directory) { return one_number(directory, "memory.max"); }

static double memory_v1(const char *directory) {
    double limit = one_number(directory, "memory.limit_in_bytes");
    return limit < (double)UNLIMITED ? limit : -1;
}

static double kills_in(const char *directory, const char *name) {
    char path[LINE + 32];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return number_after(path, "oom_kill ");
}

static double kills_v2(const char *directory) { return kills_in(directory, "memory.events"); }
static double kills_v1(const char *directory) { return kills_in(directory, "memory.oom_control"); }

static double stat_in(const char *directory, const char *name) {
    char path[LINE + 32];
    snprintf(path, sizeof path, "%s/cpu.stat", directory);
    return number_after(path, name);
}

static double periods(const char *directory) { return stat_in(directory, "nr_periods "); }
static double stops(const char *directory) { return stat_in(directory, "nr_throttled "); }
static double stop_v2(const char *group) { return 1e-6 * stat_in(group, "throttled_usec "); }
static double stop_v1(const char *group) { return 1e-9 * stat_in(group, "throttled_time "); }

enum which { LEAST, NEAREST, MOST };

/* Goes from the group up to the mount and returns one of the numbers there; negative: none.
 * Inside a container the group's path may be that of the host and not exist here: then the mount
 * itself is the container's group. */
static double walk(const char *mount, const char *group, group_number *number, enum which which) {
    char path[LINE];
    double best = -1;
    int root = (int)strlen(mount);
    snprintf(path, sizeof path, "%s%s", mount, strcmp(group, "/") ? group : "");
    for (;;) {
        double here = number(path);
        if (here >= 0 && (best < 0 || (which == MOST ? here > best : here < best))) best = here;
        char *slash = strrchr(path, '/');
        if ((which == NEAREST && best >= 0) || !slash || slash - path < root) return best;
        *slash = 0;
    }
}

static const struct group_kind {
    const char *controller; /* as in /proc/self/cgroup; "" is version 2 */
    const char *mount;
    group_number *cpu, *stop, *memory, *kills; /* nullable */
} group_kinds[] = {
    {"", "/sys/fs/cgroup", cpu_v2, stop_v2, memory_v2, kills_v2},
    {"", "/sys/fs/cgroup/unified", cpu_v2, stop_v2, memory_v2, kills_v2},
    {"cpu", "/sys/fs/cgroup/cpu", cpu_v1, stop_v1, NULL, NULL},
    {"memory", "/sys/fs/cgroup/memory", NULL, NULL, memory_v1, kills_v1},
};

/* Whether a list such as "cpu,cpuacct" contains the word. */
static bool lists(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (!strncmp(p, word, n) && (!p[n] || p[n] == ',')) return true;
    return false;
}

static void apply(struct host *h, const char *root, const char *controllers, const char *group) {
    for (size_t i = 0; i < COUNT(group_kinds); i++) {
        const struct group_kind *k = &group_kinds[i];
        char mount[LINE / 2];
        snprintf(mount, sizeof mount, "%s%s", root, k->mount);
        if (!*k->controller != !*controllers || !lists(controllers, k->controller)) continue;
        double quota = k->cpu ? walk(mount, group, k->cpu, LEAST) : -1;
        double limit = k->memory ? walk(mount, group, k->memory, LEAST) : -1;
        double kills = k->kills ? walk(mount, group, k->kills, NEAREST) : -1;
        if (quota > 0 && (h->quota <= 0 || quota < h->quota)) h->quota = quota;
        if (limit > 0 && (!h->limit || limit < (double)h->limit)) h->limit = (int64_t)limit;
        if (kills >= 0) h->oom_kills = (int64_t)kills;
        const double stopped = k->stop ? walk(mount, group, k->stop, MOST) : -1;
        if (!(stopped >= h->throttled)) continue;
        h->throttled = stopped;
        h->periods = (int64_t)fmax(walk(mount, group, periods, MOST), 0);
        h->throttled_periods = (int64_t)fmax(walk(mount, group, stops, MOST), 0);
    }
}

/* Lines "4:cpu,cpuacct:/group"; in version 2 "0::/group". */
static void read_groups(struct host *h, const char *root) {
    char path[LINE], line[LINE];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        apply(h, root, controllers + 1, group);
    }
    if (f) fclose(f);
}

/* ---- the rest ---- */

static int64_t proc_number(const char *root, const char *file, const char *word) {
    char path[LINE];
    snprintf(path, sizeof path, "%s/proc/%s", root, file);
    return (int64_t)number_after(path, word);
}

static void read_memory(struct host *h, const char *root) {
    int64_t all = proc_number(root, "meminfo", "MemTotal:");
    int64_t available = proc_number(root, "meminfo", "MemAvailable:");
    if (all > 0) h->memory = all * 1024;
    if (available > 0) h->available = available * 1024;
    if (h->oom_kills < 0) h->oom_kills = proc_number(root, "vmstat", "oom_kill ");
}

void host_read(const char *root, struct host *h) {
    *h = (struct host){.shared = -1, .oom_kills = -1};
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    h->cores = online > 0 ? (int)online : 1;
    cpu_set_t set;
    h->usable = sched_getaffinity(0, sizeof set, &set) ? h->cores : CPU_COUNT(&set);
    read_groups(h, root);
    read_memory(h, root);
    char path[LINE];
    struct statvfs shm;
    snprintf(path, sizeof path, "%s/dev/shm", root);
    if (!statvfs(path, &shm)) h->shared = (int64_t)shm.f_frsize * (int64_t)shm.f_blocks;
}

void host_instructions(struct text *out) {
    struct utsname kind;
    text_add(out, "%s", uname(&kind) ? "unknown" : kind.machine);
#if defined __x86_64__ && defined __GNUC__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) text_add(out, " avx2");
    if (__builtin_cpu_supports("fma")) text_add(out, " fma");
    if (__builtin_cpu_supports("avx512f")) text_add(out, " avx512f");
    if (__builtin_cpu_supports("avx512bw")) text_add(out, " avx512bw");
    if (__builtin_cpu_supports("avx512vnni")) text_add(out, " avx512vnni");
#elif defined __aarch64__
    text_add(out, " neon"); /* all have it */
#endif
}

/* A name may contain any byte, but the last ')' ends it. */
bool host_thread(const char *root, int pid, int tid, struct host_thread *t) {
    static const char fields[] =
        ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu %*u "
        "%*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %d";
    char path[LINE], line[LINE];
    unsigned long long user, system, start;
    *t = (struct host_thread){.processor = -1};
    snprintf(path, sizeof path, "%s/proc/%d/task/%d/stat", root, pid, tid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return false;
    line[n] = 0;
    char *begin = strchr(line, '('), *end = strrchr(line, ')');
    if (!begin || !end ||
        sscanf(end, fields, &t->state, &t->parent, &user, &system, &start, &t->processor) != 6) {
        *t = (struct host_thread){.processor = -1};
        return false;
    }
    t->ticks = user + system;
    t->start = start;
    *end = 0;
    snprintf(t->name, sizeof t->name, "%.63s", begin + 1);
    for (char *c = t->name; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    return true;
}

int64_t host_process(int pid) {
    struct host_thread t;
    return host_thread("", pid, pid, &t) ? (int64_t)t.start : -1;
}

double host_age(void) {
    const int64_t start = host_process(getpid());
    struct timespec now;
    if (start < 0 || clock_gettime(CLOCK_BOOTTIME, &now)) return 0;
    const double begin = (double)start / (double)sysconf(_SC_CLK_TCK);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - begin;
}

/* getrusage would include the maximum of the process that started this one. */
double host_peak(void) {
    double kib = number_after("/proc/self/status", "VmHWM:");
    return kib > 0 ? 1024 * kib : 0;
}

/* In a line "cpu0" of /proc/stat. */
enum { USER, NICE, SYSTEM, IDLE, IO, INTERRUPTS, SOFT_INTERRUPTS, STOLEN, FIELDS };

/* Seconds that the cores of the affinity have spent on what these fields count. */
static double core_time(const char *root, unsigned fields, int *cores) {
    unsigned long long t[FIELDS], all = 0;
    char path[LINE], line[LINE];
    int cpu;
    cpu_set_t set;
    snprintf(path, sizeof path, "%s/proc/stat", root);
    FILE *f = sched_getaffinity(0, sizeof set, &set) ? NULL : fopen(path, "r");
    *cores = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "cpu%d %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &t[0], &t[1], &t[2],
                   &t[3], &t[4], &t[5], &t[6], &t[7]) != 9 || line[3] == ' ' || /* "cpu  ": all */
            cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, &set))
            continue;
        for (unsigned i = 0; i < FIELDS; i++) all += fields >> i & 1 ? t[i] : 0;
        ++*cores;
    }
    if (f) fclose(f);
    return (double)all / (double)sysconf(_SC_CLK_TCK);
}

double host_others(const char *root, int *cores) {
    static const unsigned runs = 1 << USER | 1 << NICE | 1 << SYSTEM | 1 << INTERRUPTS |
                                 1 << SOFT_INTERRUPTS;
    const double all = core_time(root, runs, cores);
    struct tms own;
    if (!(all > 0) || times(&own) == (clock_t)-1) return 0;
    double ticks = (double)(own.tms_utime + own.tms_stime + own.tms_cutime + own.tms_cstime);
    return all - ticks / (double)sysconf(_SC_CLK_TCK);
}

double host_stolen(const char *root, int *cores) { return core_time(root, 1 << STOLEN, cores); }

size_t host_heap(void) {
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
#else
    return 0;
#endif
}

int host_cores(void) {
    struct host h;
    host_read("", &h);
    int quota = (int)ceil(h.quota); /* in whole cores; 0: no limit */
    return quota > 0 && quota < h.usable ? quota : h.usable;
}

bool host_command(char text[HOST_COMMAND], char *word[HOST_WORDS + 1]) {
    FILE *f = fopen("/proc/self/cmdline", "re");
    const size_t n = f ? fread(text, 1, HOST_COMMAND - 1, f) : 0;
    char *at = text;
    int words = 0;
    if (f) fclose(f);
    text[n] = 0;
    for (; at < text + n && words < HOST_WORDS; at += strlen(at) + 1) word[words++] = at;
    word[words] = NULL;
    return words && n < HOST_COMMAND - 1 && at == text + n;
}
