/* SPDX-License-Identifier: Apache-2.0
 * What the processor reaches in registers: with the threads of a measurement, and with two threads
 * beside one. Two processors of a virtual machine are at times one core. */
#include <sched.h>
#include <string.h>
#ifdef __x86_64__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "dev/cpu/isa.h"
#include "kernels.h"
#include "machine/team.h"

#define RUNS 9        /* the median counts */
#define SECONDS 0.001 /* of a run, about */

const char *const instruction_names[INSTRUCTIONS] = {"fma", "pairs", "tiles"};
static double (*const multiply[INSTRUCTIONS])(void) = {ours_multiply, pairs_multiply,
                                                       tiles_multiply};
static struct team *one, *two, *all;
static bool has[INSTRUCTIONS];

/* Linux gives tiles to a process that asks, from 5.16 on. */
static bool tiles_granted(void) {
#ifdef __x86_64__
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 };
    return isa_has_amx() && !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA);
#else
    return false;
#endif
}

const char *rates_open(int threads) {
    cpu_set_t processors;
    int n = 0;
    if (sched_getaffinity(0, sizeof processors, &processors)) return "no processors are known";
    /* The team of two keeps both processors; what is measured on one thread has the first. */
    if (CPU_COUNT(&processors) > 1 && team_make(2, &two)) return tri_message();
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &processors) && n++ >= threads) CPU_CLR(i, &processors);
    if (sched_setaffinity(0, sizeof processors, &processors)) return "processors are not to be had";
    if (threads == 2) all = two;
    else if (team_make(threads, &all)) return tri_message();
    has[FMA] = true;
    has[PAIRS] = !strcmp(ours_instructions(), "avx512bf16") && pairs_multiply() > 0;
    has[TILES] = tiles_granted() && tiles_multiply() > 0;
    return NULL;
}

bool rates_have(enum instruction i) { return has[i]; }

enum instruction rates_chosen(bool half) {
    const char *set = ours_instructions();
    if (half && !strcmp(set, "amx")) return TILES;
    return half && !strcmp(set, "avx512bf16") ? PAIRS : FMA;
}

struct work {
    enum instruction instruction;
    int calls;
};

static void run(void *arg, int thread) {
    const struct work *w = arg;
    (void)thread;
    for (int i = 0; i < w->calls; i++) multiply[w->instruction]();
}

static double timed(struct team *t, struct work *w) {
    const double begin = base_seconds();
    team_run(t, run, w);
    return base_seconds() - begin;
}

static double rate(struct team *t, enum instruction i) {
    double took[RUNS];
    struct work w = {i, 1};
    const double operations = multiply[i]();
    timed(t, &w);
    while (timed(t, &w) < SECONDS) w.calls *= 2;
    for (int k = 0; k < RUNS; k++) took[k] = timed(t, &w);
    return operations * w.calls * team_threads(t) / median(took, RUNS);
}

double rates_registers(enum instruction i) { return rate(all, i); }

double rates_both(enum instruction i) { return two ? rate(two, i) / rate(one, i) : 0; }
