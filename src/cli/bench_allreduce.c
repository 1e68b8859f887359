/* SPDX-License-Identifier: Apache-2.0
 * trireme bench allreduce: the usual table of all-reduce, by processes that share memory.
 *
 * The program starts itself once for each rank, and hands the memory down as a descriptor. Rank 0
 * prints the table. Who started them waits for their ends: where one fails, the others would wait
 * for it, and are killed. If the starter dies, the kernel kills them all. */
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

#define ROLE "TRIREME_BENCH_RANK" /* tells a process that it is a rank: "RANK:DESCRIPTOR" */
#define MOST_SIZES 256
#define MOST_SAMPLES 101
#define LEAST_SAMPLES 11
#define SAMPLE_BYTES ((size_t)1 << 20)      /* of calls that are timed together, */
#define SAMPLE_CALLS 200                    /* or so many calls */
#define ALL_SAMPLES_BYTES ((size_t)1 << 30) /* beyond which samples become fewer */
#define MESSAGE 512

struct sizes {
    size_t n, bytes[MOST_SIZES];
};

struct own {
    int ranks;
    struct sizes sizes;
};

/* What the ranks share, at the beginning of the memory; that of allreduce is behind it. */
struct shared {
    size_t total; /* bytes of all: by which a rank knows that this is what it was given */
    struct own own;
    size_t most; /* elements */
    bool crowded;
    struct rank_seen {
        char message[MESSAGE]; /* what failed; or empty */
        double second[MOST_SAMPLES]; /* of one call */
    } seen[SUM_RANKS];
};

static size_t head_bytes(void) { return (sizeof(struct shared) + 4095) / 4096 * 4096; }

/* ---- what is summed ---- */

/* Any number of either sign in (-128, 128), of 24 bits, so that sums are rounded and their order is
 * seen; another `salt`, other numbers. */
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

/* Sums other numbers than those that were timed, into a result that was wiped. */
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

/* The median over the samples, each of which took as long as its slowest rank. */
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
    for (int k = -samples / 8 - 1; k < samples; k++) { /* those below 0 warm up */
        barrier_wait(&a->barrier);
        double begin = base_seconds();
        for (size_t i = 0; i < calls; i++) allreduce_sum(a, n);
        if (k >= 0) s->seen[rank].second[k] = (base_seconds() - begin) / (double)calls;
    }
    barrier_wait(&a->barrier);
    double seconds = median(s, samples);
    if (check(a, n)) return base_last();
    barrier_wait(&a->barrier); /* all are right */
    return rank ? TRI_OK : print_row(s, bytes, seconds);
}

static tri_status map(int fd, size_t bytes, void **out) {
    *out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (*out != MAP_FAILED) return TRI_OK;
    return base_fail(TRI_FAILED, "%.0f MiB of shared memory cannot be mapped: %s",
                     (double)bytes / (1 << 20), strerror(errno));
}

/* A core for each rank, where there are enough: else a scheduler with other work puts two on one. */
static void bind_to_core(int rank) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all)) return;
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && !rank--) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* What a rank is handed: "RANK:DESCRIPTOR". */
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
    return base_fail(TRI_USAGE, ROLE " is set to '%s'; it is for the program's own use", role);
}

static int rank_main(const char *role) {
    int rank;
    struct shared *s = NULL;
    struct allreduce a;
    if (take_role(role, &rank, &s)) return cli_fail();
    prctl(PR_SET_NAME, "trireme"); /* not "exe" */
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

/* ---- who starts them ---- */

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
                         "MiB. Less --bytes, or fewer ranks, need less", own->ranks,
                         (double)most * sizeof(float) / (1 << 20), (double)need / (1 << 20), whose,
                         (double)limit / (1 << 20));
    *fd = memfd_create("trireme-allreduce", MFD_CLOEXEC);
    if (*fd < 0 || ftruncate(*fd, (off_t)total))
        return base_fail(TRI_FAILED, "%.0f MiB of shared memory cannot be had: %s",
                         (double)total / (1 << 20), strerror(errno));
    void *memory;
    if (map(*fd, head_bytes(), &memory)) return base_last();
    *out = memory;
    **out = (struct shared){.total = total, .own = *own, .most = most,
                            .crowded = own->ranks > host_cores()};
    return TRI_OK;
}

/* Becomes a rank, or ends. */
_Noreturn static void become(int rank, int fd, pid_t starter, struct shared *s) {
    char role[32];
    snprintf(role, sizeof role, "%d:%d", rank, fd);
    if (!prctl(PR_SET_PDEATHSIG, SIGKILL) && getppid() == starter && !fcntl(fd, F_SETFD, 0) &&
        !setenv(ROLE, role, 1))
        execl("/proc/self/exe", "trireme", "bench", "allreduce", (char *)NULL);
    snprintf(s->seen[rank].message, MESSAGE, "cannot be started: %s", strerror(errno));
    _exit(TRI_FAILED);
}

static tri_status describe(const struct shared *s, int rank, int how) {
    const char *message = s->seen[rank].message;
    if (WIFSIGNALED(how))
        return base_fail(TRI_FAILED, "rank %d died of signal %d (%s); the others were ended", rank,
                         WTERMSIG(how), strsignal(WTERMSIG(how)));
    if (*message) return base_fail(TRI_FAILED, "rank %d: %.*s", rank, MESSAGE, message);
    return base_fail(TRI_FAILED, "rank %d ended with exit code %d; the others were ended", rank,
                     WEXITSTATUS(how));
}

static void end_all(pid_t *pid, int ranks) {
    for (int r = 0; r < ranks; r++)
        if (pid[r] > 0) kill(pid[r], SIGKILL);
}

/* All have ended when it returns. The first that fails is told. */
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
    static const char right[] = "a list of sizes, multiples of 4: 1K,64K,100M";
    struct sizes *s = at;
    s->n = 0;
    for (const char *end = text; *end; text = end + 1) {
        char one[32];
        int64_t bytes;
        end = text + strcspn(text, ",");
        if (end - text >= (ptrdiff_t)sizeof one || s->n == MOST_SIZES) return right;
        memcpy(one, text, (size_t)(end - text));
        one[end - text] = 0;
        if (option_size(&bytes, one) || bytes % 4 || !bytes || bytes > INT64_C(1) << 40)
            return right;
        s->bytes[s->n++] = (size_t)bytes;
    }
    return s->n ? NULL : right;
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
    text_add(out, "\nEvery process has an input and a result in memory that all of them have "
                  "mapped, and ends\nwith the sum of all inputs in 32-bit floats, added up in an "
                  "order that the number of\nprocesses gives. For each size: the time of a call in "
                  "microseconds, the median; 10^9 bytes\na second; and 2(n-1)/n times as many, "
                  "what crosses the bus where each has to send it.\nEach has a core of its own if "
                  "there are enough. Sums are checked, bit for bit, after they\nwere timed.\n");
}

static const struct option_row rows[] = {
    {"-n", "N", "how many processes, 2 to 64 (2)", set_ranks, offsetof(struct own, ranks), USE_ALL},
    {"--bytes", "LIST", "sizes of an input (1K,4K,16K,64K,256K,1M,4M,16M,64M,100M)", set_sizes,
     offsetof(struct own, sizes), USE_ALL},
    {0},
};

const struct command command_bench_allreduce = {
    .name = "bench allreduce",
    .arguments = "[options]",
    .help = "measures sums over processes that share memory",
    .rows = rows,
    .more = more,
    .run = run,
};
