/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/rate.h"

#include <stdlib.h>
#include <string.h>

#include "machine/program.h"

#define SMALLEST 128
#define LARGEST 2048
#define ENOUGH 0.02 /* seconds: no larger product is tried, and no more rounds in registers */
#define TRIES 3     /* the fastest counts */
#define COPIED ((size_t)64 << 20)

/* y [n, n] = a [n, n] b [n, n]', once per thread. */
struct product {
    tri_graph *g;
    struct dev *dev;
    struct team *team;
    int threads;
    struct program *program; /* by thread */
    size_t arena_bytes, bytes; /* bytes: of a and of b */
    char **memory;           /* by thread: arena, a, b */
    struct tri_fault *fault;
};

static tri_status build(struct product *p, tri_type type, int64_t n) {
    p->g = tri_graph_new(n);
    if (!p->g) return base_no_memory("a product");
    tri_tensor *in[2];
    for (int i = 0; i < 2; i++) in[i] = tri_input(p->g, i ? "b" : "a", type, TRI_SHAPE(n, n));
    tri_output(tri_matmul(in[0], in[1], .trans_b = true), "y");
    p->bytes = memory_bytes(in[0]);
    return tri_graph_status(p->g);
}

/* Fills a and b with one byte, which is a small number in every type. */
static tri_status make(struct product *p, int thread) {
    struct program *program = &p->program[thread];
    tri_status status = program_make(p->g, p->dev, 0, 1, program);
    if (status) return status;
    p->arena_bytes = memory_round(program->memory.total);
    char *memory = p->memory[thread] = dev_allocate(p->dev, p->arena_bytes + 2 * p->bytes);
    char *host = malloc(p->bytes);
    if (memory && host) {
        memset(host, 0x3c, p->bytes);
        for (size_t i = 0; i < 2; i++)
            dev_copy_in(p->dev, memory + p->arena_bytes + i * p->bytes, host, p->bytes);
    }
    free(host);
    if (!memory || !host) return base_no_memory("a product");
    program_place(program, memory, memory);
    for (size_t i = 0, k = 0; i < p->g->n_nodes; i++)
        if (node_is(p->g->node[i], "input"))
            program_bind(program, p->g->node[i]->out->id,
                         memory + p->arena_bytes + k++ * p->bytes);
    return TRI_OK;
}

static void run_product(void *arg, int thread) {
    struct product *p = arg;
    const struct program_step step = {.fault = &p->fault[thread]};
    program_run(&p->program[thread], NULL, &step);
}

static void free_product(struct product *p) {
    for (int i = 0; i < p->threads; i++) {
        if (p->memory && p->memory[i])
            dev_release(p->dev, p->memory[i], p->arena_bytes + 2 * p->bytes);
        if (p->program && p->program[i].g) program_free(&p->program[i]);
    }
    free(p->program);
    free(p->memory);
    free(p->fault);
    tri_graph_free(p->g);
}

/* Seconds. */
static double fastest(struct team *team, void (*work)(void *arg, int thread), void *arg) {
    double least = 0;
    for (int i = 0; i < TRIES; i++) {
        double begin = base_seconds();
        team_run(team, work, arg);
        double took = base_seconds() - begin;
        if (!i || took < least) least = took;
    }
    return least;
}

static tri_status measure_product(struct product *p, tri_type type, int64_t n, double *seconds) {
    size_t threads = (size_t)p->threads;
    p->program = calloc(threads, sizeof *p->program);
    p->memory = calloc(threads, sizeof *p->memory);
    p->fault = calloc(threads, sizeof *p->fault);
    tri_status status = p->program && p->memory && p->fault ? build(p, type, n)
                                                            : base_no_memory("a product");
    for (int i = 0; i < p->threads && !status; i++) status = make(p, i);
    if (!status) *seconds = fastest(p->team, run_product, p);
    for (int i = 0; i < p->threads && !status; i++)
        if (p->fault[i].failed) status = base_fail(TRI_FAILED, "%s", p->fault[i].text);
    return status;
}

static tri_status rate_products(struct dev *dev, tri_type type, struct team *team, double *flops) {
    int threads = team_threads(team);
    double seconds = 0;
    tri_status status = TRI_OK;
    for (int64_t n = SMALLEST; n <= LARGEST && seconds < ENOUGH && !status; n *= 2) {
        struct product p = {.dev = dev, .team = team, .threads = threads};
        status = measure_product(&p, type, n, &seconds);
        free_product(&p);
        *flops = 2.0 * (double)threads * (double)n * (double)n * (double)n / seconds;
    }
    return status;
}

/* ---- registers ---- */

struct registers {
    struct dev *dev;
    int64_t rounds;
};

static void run_registers(void *arg, int thread) {
    const struct registers *r = arg;
    (void)thread;
    for (int64_t i = 0; i < r->rounds; i++) r->dev->kind->multiply(r->dev);
}

static double rate_registers(struct dev *dev, struct team *team) {
    const double operations = dev->kind->multiply(dev) * team_threads(team);
    struct registers r = {.dev = dev, .rounds = 1};
    double seconds = fastest(team, run_registers, &r);
    while (seconds < ENOUGH) {
        r.rounds *= 2;
        seconds = fastest(team, run_registers, &r);
    }
    return operations * (double)r.rounds / seconds;
}

tri_status rate_highest(struct dev *dev, tri_type type, int threads, double *flops) {
    struct team *team;
    *flops = 0;
    tri_status status = team_make(threads, &team);
    if (status) return status;
    if (dev->kind->multiply && type == TRI_F32)
        *flops = rate_registers(dev, team);
    else
        status = rate_products(dev, type, team, flops);
    team_free(team);
    return status;
}

/* ---- memory ---- */

static void copy(void *arg, int thread) {
    char *own = (char *)arg + 2 * COPIED * (size_t)thread;
    memcpy(own, own + COPIED, COPIED);
}

tri_status rate_memory(int threads, double *bandwidth) {
    const size_t bytes = 2 * COPIED * (size_t)threads;
    struct team *team;
    tri_status status = team_make(threads, &team);
    if (status) return status;
    char *memory = malloc(bytes);
    if (memory) {
        memset(memory, 1, bytes);
        *bandwidth = (double)bytes / fastest(team, copy, memory);
    }
    free(memory);
    team_free(team);
    return memory ? TRI_OK : base_no_memory("the rate of memory");
}

tri_status rate_write(struct dev *dev, const char *folder) {
    static const struct {
        const char *name;
        tri_type type;
    } types[] = {{"f32", TRI_F32}, {"bf16", TRI_BF16}};
    struct text t = {0};
    double bandwidth = 0, flops = 0;
    tri_status status = rate_memory(1, &bandwidth);
    text_add(&t, "{\"bandwidth\":%.4g,\"rate\":{", bandwidth);
    for (size_t i = 0; i < COUNT(types) && !status; i++) {
        status = rate_highest(dev, types[i].type, 1, &flops);
        text_add(&t, "%s\"%s\":%.4g", i ? "," : "", types[i].name, flops);
    }
    text_add(&t, "}}\n");
    return text_write(&t, folder, "rates.json", status);
}
