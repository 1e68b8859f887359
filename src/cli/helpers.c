/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/helpers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROLE "TRIREME_HELPER" /* PLACE:FD, set by helpers_start */
#define MESSAGE 512

struct helpers_shared {
    size_t total; /* bytes */
    int64_t threads, batches;
    int values;
    char message[HELPERS_MOST][MESSAGE]; /* why a helper failed; empty if it did not */
    struct tally bad;                    /* samples */
};

static size_t head_bytes(void) { return (sizeof(struct helpers_shared) + 63) / 64 * 64; }

static tri_status map(struct helpers *h) {
    void *memory = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd, 0);
    if (memory == MAP_FAILED)
        return base_fail(TRI_FAILED, "cannot map shared memory: %s", strerror(errno));
    h->shared = memory;
    return TRI_OK;
}

static void bind(struct helpers *h, int place) {
    eval_queue_bind(&h->queue, (char *)h->shared + head_bytes(), h->shared->batches,
                    h->shared->values);
    h->queue.owner = place;
}

/* ---- the first process ---- */

static tri_status make_memory(struct helpers *h, int64_t threads, int64_t batches, int values) {
    h->bytes = head_bytes() + eval_queue_bytes(batches, values);
    h->fd = memfd_create("trireme evaluation", MFD_CLOEXEC);
    if (h->fd < 0 || ftruncate(h->fd, (off_t)h->bytes))
        return base_fail(TRI_FAILED, "cannot get shared memory: %s", strerror(errno));
    tri_status status = map(h);
    if (status) return status;
    *h->shared = (struct helpers_shared){
        .total = h->bytes, .threads = threads, .batches = batches, .values = values};
    bind(h, HELPERS_MOST);
    return TRI_OK;
}

/* In the child: replaces the program by a helper, or exits. */
_Noreturn static void become(const struct helpers *h, int place, pid_t parent, char **words) {
    char role[32];
    base_format(role, sizeof role, "%d:%d", place, h->fd);
    if (!prctl(PR_SET_PDEATHSIG, SIGKILL) && getppid() == parent && !fcntl(h->fd, F_SETFD, 0) &&
        !setenv(ROLE, role, 1))
        execv("/proc/self/exe", words);
    helpers_give_up(h, place, "it cannot be started");
    _exit(TRI_FAILED);
}

tri_status helpers_start(struct helpers *h, int n, int64_t threads, int64_t batches, int values,
                         char **words) {
    *h = (struct helpers){.fd = -1};
    tri_status status = make_memory(h, threads, batches, values);
    pid_t self = getpid();
    fflush(NULL);
    for (; h->n < n && !status; h->n++) {
        pid_t pid = fork();
        if (!pid) become(h, h->n, self, words);
        if (pid < 0) {
            fprintf(stderr, "trireme: cannot start a worker: %s; continuing with fewer\n",
                    strerror(errno));
            break;
        }
        h->pid[h->n] = pid;
    }
    return status;
}

static void report(const struct helpers *h, int place, int how) {
    const char *message = h->shared->message[place];
    if (WIFSIGNALED(how))
        fprintf(stderr, "trireme: worker %d was killed by signal %d (%s); this process computes "
                "its batches\n", place + 1, WTERMSIG(how), strsignal(WTERMSIG(how)));
    else if (WEXITSTATUS(how))
        fprintf(stderr, "trireme: worker %d failed%s%.*s; this process computes its batches\n",
                place + 1, *message ? ": " : "", MESSAGE, message);
}

static void wait_for_all(struct helpers *h, bool reports) {
    for (int i = 0; i < h->n; i++) {
        int how = 0;
        pid_t ended;
        while ((ended = waitpid(h->pid[i], &how, 0)) < 0 && errno == EINTR) continue;
        if (ended > 0 && reports) report(h, i, how);
    }
    h->n = 0;
}

void helpers_wait(struct helpers *h) { wait_for_all(h, true); }

void helpers_end(struct helpers *h) {
    for (int i = 0; i < h->n; i++) kill(h->pid[i], SIGKILL);
    wait_for_all(h, false);
    if (h->shared) munmap(h->shared, h->bytes);
    if (h->fd >= 0) close(h->fd);
    h->shared = NULL;
    h->fd = -1;
}

/* ---- a helper ---- */

tri_status helpers_join(struct helpers *h, int *place) {
    const char *role = getenv(ROLE);
    struct stat st;
    *h = (struct helpers){.fd = -1};
    *place = -1;
    if (!role) return TRI_OK;
    if (sscanf(role, "%d:%d", place, &h->fd) == 2 && *place >= 0 && *place < HELPERS_MOST &&
        !fstat(h->fd, &st) && st.st_size >= (off_t)head_bytes()) {
        h->bytes = (size_t)st.st_size;
        if (map(h)) return base_last();
        bind(h, *place);
        if (h->shared->total == h->bytes) return TRI_OK;
    }
    return base_fail(TRI_USAGE, "the environment variable " ROLE " is '%s'; trireme sets it "
                     "itself: unset it", role);
}

struct tally *helpers_bad(const struct helpers *h) { return &h->shared->bad; }

int64_t helpers_threads(const struct helpers *h) { return h->shared->threads; }

void helpers_give_up(const struct helpers *h, int place, const char *text) {
    base_format(h->shared->message[place], MESSAGE, "%s", text);
}
