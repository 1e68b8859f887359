/* SPDX-License-Identifier: Apache-2.0
 * trireme bench allreduce: the usual table of all-reduce, for processes that share memory.
 *
 * The program starts itself once per rank and passes the memory as a file descriptor. Rank 0 prints
 * the table. The parent waits for all ranks and kills the others if one fails, because they would
 * wait for it. If the parent dies, the kernel kills the ranks. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/host.h"
#include "cli/cli.h"
#include "comm/allreduce.h"
#include "machine/budget.h"

#define ROLE "TRIREME_BENCH_RANK" /* environment variable of a rank: "RANK:DESCRIPTOR" */
#define MOST_SIZES 256
#define MOST_SAMPLES 101
#define LEAST_SAMPLES 11
#define SAMPLE_BYTES ((size_t)1 << 20)      /* summed in one timed sample, */
#define SAMPLE_CALLS 200                    /* in at most this many calls */
#define ALL_SAMPLES_BYTES ((size_t)1 << 30) /* summed in all samples, if LEAST_SAMPLES allow */
#define MESSAGE 512

struct sizes {
    size_t n, bytes[MOST_SIZES];
};

struct own {
    int ranks;
    struct sizes sizes;
};

/* The head of the shared memory; the memory of allreduce follows it. */
struct shared {
    size_t total; /* bytes; lets a rank check what it has mapped */
    struct own own;
    size_t most; /* elements */
    bool crowded;
    struct rank_seen {
        char message[MESSAGE];       /* why it failed, or empty */
        double second[MOST_SAMPLES]; /* per call */
    } seen[SUM_RANKS];
};

static size_t head_bytes(void) { return (sizeof(struct shared) + 4095) / 4096 * 4096; }

/* ---- the numbers that are summed ---- */

/* A pseudo-random number in (-128, 128) with 24 significant bits: sums are rounded, so a wrong
 * order of additions shows. `salt` selects the sequence. */
static float value(int rank, size_t i, unsigned salt) {
    uint32_t h = (uint32_t)i * 0x9e3779b1u + (uint32_t)rank * 0x85ebca77u + salt * 0xc2b2ae3du;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h = (h ^ h >> 12) * 0x297a2d39u;
    h ^= h >> 15;
    return (float)((int32_t)h >> 8) * 0x1p-23f * (float)(1u << (h & 7));
}

static float expected(int first, int ranks, size_t i, unsigned salt) {
    if (ranks == 1) return value(first, i, salt);
    int left = sum_left(ranks);
    return expected(first, left, i, salt) + expected(first + left, ranks - left, i, salt);
}

static void fill(struct allreduce *a, size_t n, unsigned salt) {
    float *in = allreduce_input(a);
    for (size_t i = 0; i < n; i++) in[i] = value(a->barrier.rank, i, salt);
}

/* Sums other numbers than the timed ones, into a result that was overwritten. */
static tri_status check(struct allreduce *a, size_t n) {
    const float *out = allreduce_result(a);
    fill(a, n, 1);
    memset((float *)out, 0xff, n * sizeof *out);
    allreduce_sum(a, n);
    for (size_t i = 0; i < n; i++) {
        float right = expected(0, a->barrier.ranks, i, 1);
        if (memcmp(&right, &out[i], sizeof right))
            return base_fail(TRI_FAILED, "the sum of %zu bytes is wrong: element %zu is %.9g "
                             "instead of %.9g", n * sizeof right, i, (double)out[i],
                             (double)right);
    }
    return TRI_OK;
}

/* ---- a rank ---- */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median over the samples; the time of a sample is that of its slowest rank. */
static double median(const struct shared *s, int samples) {
    double slowest[MOST_SAMPLES] = {0};
    for (int r = 0; r < s->own.ranks; r++)
        for (int k = 0; k < samples; k++)
            if (s->seen[r].second[k] > slowest[k]) slowest[k] = s->seen[r].second[k];
    qsort(slowest, (size_t)samples, sizeof *slowest, compare);
    return slowest[samples / 2];
}

static tri_status print_row(const struct shared *s, size_t bytes, double seconds) {
    double rate = 1e-9 * (double)bytes / seconds, n = s->own.ranks;
    printf("%11zu %11.2f %11.2f %11.2f\n", bytes, 1e6 * seconds, rate, rate * 2 * (n - 1) / n);
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout)) return TRI_OK;
    return base_fail(TRI_FAILED, "cannot write to stdout: %s", strerror(errno));
}

static tri_status measure(struct allreduce *a, struct shared *s, size_t bytes) {
    size_t n = bytes / sizeof(float), calls = SAMPLE_BYTES / bytes;
    calls = calls < 1 ? 1 : calls > SAMPLE_CALLS ? SAMPLE_CALLS : calls;
    int rank = a->barrier.rank;
    size_t fit = ALL_SAMPLES_BYTES / (bytes * calls);
    int samples = (int)(fit < LEAST_SAMPLES ? LEAST_SAMPLES
                                            : fit > MOST_SAMPLES ? MOST_SAMPLES : fit);
    fill(a, n, 0);
    for (int k = -samples / 8 - 1; k < samples; k++) { /* negative ones warm up */
        barrier_wait(&a->barrier);
        double begin = base_seconds();
        for (size_t i = 0; i < calls; i++) allreduce_sum(a, n);
        if (k >= 0) s->seen[rank].second[k] = (base_seconds() - begin) / (double)calls;
    }
    barrier_wait(&a->barrier);
    double seconds = median(s, samples);
    if (check(a, n)) return base_last();
    barrier_wait(&a->barrier); /* all ranks have checked */
    return rank ? TRI_OK : print_row(s, bytes, seconds);
}

static tri_status map(int fd, size_t bytes, void **out) {
    *out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (*out != MAP_FAILED) return TRI_OK;
    return base_fail(TRI_FAILED, "cannot map %.0f MiB of shared memory: %s",
                     (double)bytes / (1 << 20), strerror(errno));
}

/* One core per rank; left to itself, the scheduler of a busy machine may put two on one. */
static void bind_to_core(int rank) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all)) return;
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && !rank--) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Reads ROLE and maps the memory. */
static tri_status take_role(const char *role, int *rank, struct shared **out) {
    int fd;
    struct stat found;
    void *memory;
    if (sscanf(role, "%d:%d", rank, &fd) == 2 && !fstat(fd, &found) &&
        found.st_size >= (off_t)head_bytes()) {
        if (map(fd, (size_t)found.st_size, &memory)) return base_last();
        *out = memory;
        if ((*out)->total == (size_t)found.st_size && *rank >= 0 && *rank < (*out)->own.ranks)
            return TRI_OK;
    }
    return base_fail(TRI_USAGE, "the environment variable " ROLE " is '%s'; trireme sets it "
                     "itself: unset it", role);
}

static int rank_main(const char *role) {
    int rank;
    struct shared *s = NULL;
    struct allreduce a;
    if (take_role(role, &rank, &s)) return cli_fail();
    prctl(PR_SET_NAME, "trireme"); /* instead of "exe" */
    if (!s->crowded) bind_to_core(rank);
    allreduce_join(&a, (char *)s + head_bytes(), s->own.ranks, rank, s->most, s->crowded);
    if (!rank) printf("%11s %11s %11s %11s\n", "bytes", "time_us", "alg_GB/s", "bus_GB/s");
    for (size_t i = 0; i < s->own.sizes.n; i++)
        if (measure(&a, s, s->own.sizes.bytes[i])) {
            snprintf(s->seen[rank].message, MESSAGE, "%s", tri_message());
            return (int)base_last();
        }
    return TRI_OK;
}

/* ---- the parent ---- */

static tri_status make_memory(const struct own *own, int *fd, struct shared **out) {
    size_t most = 0;
    for (size_t i = 0; i < own->sizes.n; i++)
        if (own->sizes.bytes[i] > most) most = own->sizes.bytes[i];
    most /= sizeof(float);
    size_t total = head_bytes() + allreduce_bytes(own->ranks, most);
    const char *whose;
    size_t limit = budget_limit(0, 0, &whose), need = total + BUDGET_PROGRAM;
    if (need > limit)
        return base_fail(TRI_USAGE, "%d ranks with buffers of %.1f MiB need %.0f MiB; %s is %.0f "
                         "MiB: use smaller --bytes or fewer ranks", own->ranks,
                         (double)most * sizeof(float) / (1 << 20), (double)need / (1 << 20), whose,
                         (double)limit / (1 << 20));
    *fd = memfd_create("trireme-allreduce", MFD_CLOEXEC);
    if (*fd < 0 || ftruncate(*fd, (off_t)total))
        return base_fail(TRI_FAILED, "cannot get %.0f MiB of shared memory: %s",
                         (double)total / (1 << 20), strerror(errno));
    void *memory;
    if (map(*fd, head_bytes(), &memory)) return base_last();
    *out = memory;
    **out = (struct shared){.total = total, .own = *own, .most = most,
                            .crowded = own->ranks > host_cores()};
    return TRI_OK;
}

/* In the child: replaces the program by a rank, or exits. */
_Noreturn static void become(int rank, int fd, pid_t parent, struct shared *s) {
    char role[32];
    snprintf(role, sizeof role, "%d:%d", rank, fd);
    if (!prctl(PR_SET_PDEATHSIG, SIGKILL) && getppid() == parent && !fcntl(fd, F_SETFD, 0) &&
        !setenv(ROLE, role, 1))
        execl("/proc/self/exe", "trireme", "bench", "allreduce", (char *)NULL);
    snprintf(s->seen[rank].message, MESSAGE, "cannot be started: %s", strerror(errno));
    _exit(TRI_FAILED);
}

static tri_status describe(const struct shared *s, int rank, int how) {
    const char *message = s->seen[rank].message;
    if (WIFSIGNALED(how))
        return base_fail(TRI_FAILED, "rank %d was killed by signal %d (%s); the others were "
                         "stopped", rank, WTERMSIG(how), strsignal(WTERMSIG(how)));
    if (*message) return base_fail(TRI_FAILED, "rank %d: %.*s", rank, MESSAGE, message);
    return base_fail(TRI_FAILED, "rank %d ended with exit code %d; the others were stopped", rank,
                     WEXITSTATUS(how));
}

static void end_all(pid_t *pid, int ranks) {
    for (int r = 0; r < ranks; r++)
        if (pid[r] > 0) kill(pid[r], SIGKILL);
}

/* Returns when all have ended. The message is that of the first failure. */
static tri_status wait_for_all(const struct shared *s, pid_t *pid, tri_status status) {
    int ranks = s->own.ranks, how;
    for (pid_t ended; (ended = waitpid(-1, &how, 0)) > 0 || errno == EINTR;) {
        for (int r = 0; r < ranks && ended > 0; r++) {
            if (pid[r] != ended) continue;
            pid[r] = 0;
            if (status || (WIFEXITED(how) && !WEXITSTATUS(how))) continue;
            status = describe(s, r, how);
            end_all(pid, ranks);
        }
    }
    return status;
}

static tri_status bench(const struct own *own) {
    int fd = -1;
    struct shared *s = NULL;
    pid_t pid[SUM_RANKS] = {0}, self = getpid();
    tri_status status = make_memory(own, &fd, &s);
    for (int r = 0; r < own->ranks && !status; r++) {
        pid[r] = fork();
        if (!pid[r]) become(r, fd, self, s);
        if (pid[r] > 0) continue;
        status = base_fail(TRI_FAILED, "rank %d cannot be started: %s", r, strerror(errno));
        end_all(pid, r);
    }
    if (s) {
        status = wait_for_all(s, pid, status);
        munmap(s, head_bytes());
    }
    if (fd >= 0) close(fd);
    return status;
}

/* ---- the command ---- */

static const char *set_ranks(void *at, const char *text) { /* int */
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < 2 || n > SUM_RANKS) return "a whole number from 2 to 64";
    *(int *)at = (int)n;
    return NULL;
}

static const char *set_sizes(void *at, const char *text) { /* struct sizes */
    static const char expected_sizes[] = "a list of sizes, multiples of 4: 1K,64K,100M";
    struct sizes *s = at;
    s->n = 0;
    for (const char *end = text; *end; text = end + 1) {
        char one[32];
        int64_t bytes;
        end = text + strcspn(text, ",");
        if (end - text >= (ptrdiff_t)sizeof one || s->n == MOST_SIZES)
            return expected_sizes;
        memcpy(one, text, (size_t)(end - text));
        one[end - text] = 0;
        if (option_size(&bytes, one) || bytes % 4 || !bytes || bytes > INT64_C(1) << 40)
            return expected_sizes;
        s->bytes[s->n++] = (size_t)bytes;
    }
    return s->n ? NULL : expected_sizes;
}

static int run(const struct command *c, int argc, char **argv) {
    const char *role = getenv(ROLE);
    if (role) return rank_main(role);
    struct own own = {.ranks = 2};
    set_sizes(&own.sizes, "1K,4K,16K,64K,256K,1M,4M,16M,64M,100M");
    struct cli_arguments a;
    if (cli_read(c, argc, argv, &own, &a) || bench(&own)) return cli_fail();
    return TRI_OK;
}

static void more(struct text *out) {
    options_paragraph("Every process has an input and a result in shared memory and gets the sum "
                      "of all inputs, in 32-bit floats, added in an order that depends on the "
                      "number of processes alone. The line of each size has the median time of a "
                      "call in microseconds; 10^9 bytes of input per second; and 2(n-1)/n times as "
                      "many, which cross the bus where processes send and receive. Each process is "
                      "bound to a core if there are enough. The sum of each size is checked, bit "
                      "for bit.",
                      out);
}

static const struct option_row rows[] = {
    {"-n", "N", "number of processes, 2 to 64 (default: 2)", set_ranks, offsetof(struct own, ranks),
     USE_ALL, .group = GROUP_NONE},
    {"--bytes", "LIST",
     "sizes of an input, multiples of 4 (default: 1K,4K,16K,64K,256K,1M,4M,16M,64M,100M)",
     set_sizes, offsetof(struct own, sizes), USE_ALL, .group = GROUP_NONE},
    {0},
};

const struct command command_bench_allreduce = {
    .name = "bench allreduce",
    .arguments = "[options]",
    .help = "measure sums over processes that share memory",
    .rows = rows,
    .more = more,
    .run = run,
};
