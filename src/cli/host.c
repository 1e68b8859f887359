/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#define UNLIMITED ((int64_t)1 << 60) /* version 1 says "no limit" with a huge number */
#define LINE 1024

/* The first line of a file; false if there is none. */
static bool first_line(char line[LINE], const char *path) {
    FILE *f = fopen(path, "r");
    if (!f) return false;
    bool got = fgets(line, LINE, f);
    fclose(f);
    return got;
}

/* ---- control groups ---- */

/* The limit that one group's directory sets; 0: none. */
typedef double group_limit(const char *directory);

static double cpu_v2(const char *directory) {
    char path[LINE + 32], line[LINE];
    double quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", directory);
    if (!first_line(line, path) || sscanf(line, "%lf %lf", &quota, &period) != 2) return 0;
    return period > 0 ? quota / period : 0;
}

static double one_number(const char *directory, const char *name) {
    char path[LINE + 32], line[LINE];
    double value;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return first_line(line, path) && sscanf(line, "%lf", &value) == 1 ? value : 0;
}

static double cpu_v1(const char *directory) {
    double quota = one_number(directory, "cpu.cfs_quota_us");
    double period = one_number(directory, "cpu.cfs_period_us");
    return quota > 0 && period > 0 ? quota / period : 0;
}

static double memory_v2(const char *directory) { return one_number(directory, "memory.max"); }

static double memory_v1(const char *directory) {
    double limit = one_number(directory, "memory.limit_in_bytes");
    return limit < (double)UNLIMITED ? limit : 0;
}

/* The least limit on the way from the group up to the mount. Within a container the group's path
 * may be the host's, and be missing here: then the mount itself is the container's group. */
static double least(const char *mount, const char *group, group_limit *limit) {
    char path[LINE];
    double best = 0;
    int root = (int)strlen(mount);
    snprintf(path, sizeof path, "%s%s", mount, strcmp(group, "/") ? group : "");
    for (;;) {
        double here = limit(path);
        if (here > 0 && (best <= 0 || here < best)) best = here;
        char *slash = strrchr(path, '/');
        if (!slash || slash - path < root) return best;
        *slash = 0;
    }
}

static const struct group_kind {
    const char *controller; /* as /proc/self/cgroup names it; "" is version 2 */
    const char *mount;
    group_limit *limit;
    bool cpu;
} group_kinds[] = {
    {"", "/sys/fs/cgroup", cpu_v2, true},
    {"", "/sys/fs/cgroup", memory_v2, false},
    {"", "/sys/fs/cgroup/unified", cpu_v2, true},
    {"", "/sys/fs/cgroup/unified", memory_v2, false},
    {"cpu", "/sys/fs/cgroup/cpu", cpu_v1, true},
    {"memory", "/sys/fs/cgroup/memory", memory_v1, false},
};

/* Whether a list "cpu,cpuacct" holds the word. */
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
        double limit = least(mount, group, k->limit);
        if (limit <= 0) continue;
        if (k->cpu && (h->quota <= 0 || limit < h->quota)) h->quota = limit;
        if (!k->cpu && (!h->limit || limit < (double)h->limit)) h->limit = (int64_t)limit;
    }
}

/* Lines "4:cpu,cpuacct:/group"; of version 2 "0::/group". */
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

static void read_memory(struct host *h, const char *root) {
    char path[LINE], line[LINE];
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    FILE *f = fopen(path, "r");
    long long kib;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemTotal: %lld", &kib) == 1) h->memory = kib * 1024;
        if (sscanf(line, "MemAvailable: %lld", &kib) == 1) h->available = kib * 1024;
    }
    if (f) fclose(f);
}

void host_read(const char *root, struct host *h) {
    *h = (struct host){.shared = -1};
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
#endif
}
