/* SPDX-License-Identifier: Apache-2.0 */
#include "base/runqueue.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"

#define TEXT 512 /* bytes */

int runqueue_open(const char *root, int pid, int tid) {
    char path[TEXT];
    base_format(path, sizeof path, "%s/proc/%d/task/%d/schedstat", root, pid, tid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Time on a core, time without one, number of times on a core. */
int64_t runqueue_waited(int fd) {
    char text[64];
    unsigned long long waited;
    const ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    if (n <= 0) return -1;
    text[n] = 0;
    return sscanf(text, "%*u %llu", &waited) == 1 ? (int64_t)waited : -1;
}

/* The next number among the names of a directory; 0: no more. */
static int next_number(DIR *d) {
    const struct dirent *e;
    while (d && (e = readdir(d)))
        if (*e->d_name >= '1' && *e->d_name <= '9') return atoi(e->d_name);
    return 0;
}

static DIR *open_tasks(const char *root, const char *process) {
    char path[TEXT];
    base_format(path, sizeof path, "%s/proc/%s/task", root, process);
    return opendir(path);
}

/* ---- rivals ---- */

static int compare(const void *a, const void *b) {
    const struct rival_task *x = a, *y = b;
    return (x->tid > y->tid) - (x->tid < y->tid);
}

static const struct rival_task *find(const struct rivals *all, int tid) {
    const struct rival_task key = {.tid = tid};
    return all->n ? bsearch(&key, all->task, all->n, sizeof key, compare) : NULL;
}

/* A thread that was not there before has used all of its time since. */
static void look_at(const struct rivals *before, struct rivals *now, const char *root, int pid) {
    char process[16];
    struct host_thread t;
    base_format(process, sizeof process, "%d", pid);
    DIR *d = open_tasks(root, process);
    for (int tid; (tid = next_number(d));) {
        if (!host_thread(root, pid, tid, &t) || !ARRAY_GROW(now->task, now->n, now->capacity))
            continue;
        const struct rival_task *was = find(before, tid);
        const uint64_t since = was && was->ticks <= t.ticks ? was->ticks : 0;
        const uint64_t used = before->looks ? t.ticks - since : 0;
        now->task[now->n++] = (struct rival_task){pid, tid, t.processor, t.ticks, used};
    }
    if (d) closedir(d);
}

void rivals_look(struct rivals *all, const char *root) {
    char path[TEXT];
    struct host_thread first;
    struct rivals now = {.looks = all->looks + 1, .hidden = !host_thread(root, 1, 1, &first)};
    base_format(path, sizeof path, "%s/proc", root);
    DIR *d = opendir(path);
    for (int pid; (pid = next_number(d));) look_at(all, &now, root, pid);
    if (d) closedir(d);
    if (now.n) qsort(now.task, now.n, sizeof *now.task, compare);
    rivals_free(all);
    *all = now;
}

static uint64_t used_by(const struct rivals *all, int pid, int core) {
    uint64_t sum = 0;
    for (size_t i = 0; i < all->n; i++)
        if (all->task[i].pid == pid && all->task[i].core == core) sum += all->task[i].used;
    return sum;
}

void rivals_on(const struct rivals *all, const char *root, int core, int but, struct rival *r) {
    uint64_t most = 0;
    struct host_thread first;
    *r = (struct rival){0};
    for (size_t i = 0; i < all->n; i++) {
        const struct rival_task *t = &all->task[i];
        if (t->core != core || t->pid == but || !t->used) continue;
        const uint64_t sum = used_by(all, t->pid, core);
        if (sum <= most) continue;
        most = sum;
        r->pid = t->pid;
    }
    r->seconds = (double)most / (double)sysconf(_SC_CLK_TCK);
    if (r->pid && host_thread(root, r->pid, r->pid, &first))
        memcpy(r->name, first.name, sizeof r->name);
}

int rivals_core(const struct rivals *all, int tid) {
    const struct rival_task *t = find(all, tid);
    return t ? t->core : -1;
}

void rivals_free(struct rivals *all) {
    free(all->task);
    *all = (struct rivals){0};
}
