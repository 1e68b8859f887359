/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/given.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link/sockets.h"

#define TAKEN "TRIREME_LAUNCHED"
#define MOST 1000000 /* processes */

/* Names of variables; null: there is none. */
struct given_row {
    const char *by, *rank, *size;
    const char *local_rank, *local_size; /* 0 and 1 without them */
    const char *tasks;                   /* processes of each host, as "2(x3),1" */
    const char *host, *hosts;
    const char *workers;
    const char *address, *port;
    const char *job, *step, *again; /* again: how often the job was started before */
    const char *without; /* a variable with which it is not meant */
    const char *itself;  /* set if the launcher has started this process, not another one for it */
    bool join;  /* only for `join` */
    bool inner; /* inside processes of others, whose variables are not meant then */
};

static const struct given_row rows[] = {
    {.by = "mpirun", .rank = "OMPI_COMM_WORLD_RANK", .size = "OMPI_COMM_WORLD_SIZE",
     .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK", .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .job = "OMPI_MCA_ess_base_jobid", .step = "PMIX_NAMESPACE", .inner = true},
    {.by = "mpiexec", .rank = "PMI_RANK", .size = "PMI_SIZE", .local_rank = "MPI_LOCALRANKID",
     .local_size = "MPI_LOCALNRANKS", .inner = true},
    {.by = "srun", .rank = "SLURM_PROCID", .size = "SLURM_STEP_NUM_TASKS",
     .local_rank = "SLURM_LOCALID", .tasks = "SLURM_STEP_TASKS_PER_NODE", .host = "SLURM_NODEID",
     .hosts = "SLURM_STEP_NUM_NODES", .job = "SLURM_JOB_ID", .step = "SLURM_STEP_ID",
     .again = "SLURM_RESTART_COUNT", .without = "SLURM_PTY_PORT"}, /* a shell for the user */
    {.by = "torchrun", .rank = "RANK", .size = "WORLD_SIZE", .local_rank = "LOCAL_RANK",
     .local_size = "LOCAL_WORLD_SIZE", .host = "GROUP_RANK", .hosts = "GROUP_WORLD_SIZE",
     .address = "MASTER_ADDR", .port = "MASTER_PORT", .job = "TORCHELASTIC_RUN_ID",
     .step = "MASTER_PORT", .itself = "TORCHELASTIC_RUN_ID", .join = true},
    {.by = "Kubeflow Trainer", .rank = "PET_NODE_RANK", .size = "PET_NNODES",
     .host = "PET_NODE_RANK", .hosts = "PET_NNODES", .workers = "PET_NPROC_PER_NODE",
     .address = "PET_MASTER_ADDR", .port = "PET_MASTER_PORT", .join = true},
};

static const char *value_of(const char *name) {
    const char *value = name ? getenv(name) : NULL;
    return value && *value ? value : NULL;
}

static tri_status read_number(const char *name, int otherwise, int *to) {
    const char *value = value_of(name);
    char *end = NULL;
    const long n = value ? strtol(value, &end, 10) : otherwise;
    *to = (int)n;
    if (!value || (end > value && !*end && n >= 0 && n <= MOST)) return TRI_OK;
    return base_fail(TRI_USAGE, "%s=%s: a number was expected", name, value);
}

/* Of "2(x3),1", that of one host. */
static tri_status read_tasks(const char *name, int host, int *to) {
    const char *value = value_of(name);
    int n, times, bytes;
    for (const char *at = value; at && *at; at += *at == ',') {
        times = 1;
        if (sscanf(at, "%d%n", &n, &bytes) != 1 || n < 1) break;
        at += bytes;
        if (sscanf(at, "(x%d)%n", &times, &bytes) == 1) at += bytes;
        if (*at && *at != ',') break;
        *to = n;
        if ((host -= times) < 0) return TRI_OK;
    }
    return base_fail(TRI_USAGE, "%s=%s: it does not tell the processes of each host", name,
                     value ? value : "");
}

static tri_status less(const char *small, int of, const char *large, int than) {
    if (of < than) return TRI_OK;
    return base_fail(TRI_USAGE, "%s is %d, which is none of %d as %s says", small, of, than, large);
}

/* Hosts of equal size follow one another, if nothing else is said. */
static tri_status find_hosts(const struct given_row *row, struct given *g) {
    if (given_is_local(g)) {
        if (g->hosts > 1)
            return base_fail(TRI_USAGE, "%s is %d, but all %d processes are on this host",
                             row->hosts, g->hosts, g->size);
        g->host = 0, g->hosts = 1;
    }
    if (g->hosts < 0 && row->address) {
        if (g->size % g->local_size)
            return base_fail(TRI_USAGE, "%s is %d, which is no multiple of %s, %d", row->size,
                             g->size, row->local_size, g->local_size);
        g->hosts = g->size / g->local_size;
        g->host = g->rank / g->local_size;
    }
    return g->hosts < 0 ? TRI_OK : less(row->host ? row->host : row->rank, g->host,
                                        row->hosts ? row->hosts : row->size, g->hosts);
}

static tri_status read_address(const struct given_row *row, struct given *g) {
    const char *host = value_of(row->address), *port = value_of(row->port);
    int number = 0;
    if (!row->address) return TRI_OK;
    tri_status status = read_number(row->port, 0, &number);
    number += value_of(row->itself) != NULL; /* torchrun's own server has that port */
    if (!status && (!host || number < 1 || number > 65535))
        status = base_fail(TRI_USAGE, "%s=%s, %s=%s: a name and a port of the host of rank 0 were "
                           "expected", row->address, host ? host : "", row->port, port ? port : "");
    if (!status) socket_put_port(g->address, sizeof g->address, host, number);
    return status;
}

static tri_status read_row(const struct given_row *row, struct given *g) {
    const char *job = value_of(row->job), *step = value_of(row->step);
    const char *again = value_of(row->again);
    *g = (struct given){.by = row->by};
    tri_status status = read_number(row->rank, 0, &g->rank);
    if (!status) status = read_number(row->size, 1, &g->size);
    if (!status) status = read_number(row->local_rank, 0, &g->local_rank);
    if (!status) status = read_number(row->local_size, 1, &g->local_size);
    if (!status) status = read_number(row->host, -1, &g->host);
    if (!status) status = read_number(row->hosts, -1, &g->hosts);
    if (!status && row->tasks) status = read_tasks(row->tasks, g->host, &g->local_size);
    if (!status) status = less(row->rank, g->rank, row->size, g->size);
    if (!status && row->local_size && g->local_rank && !value_of(row->local_size))
        status = base_fail(TRI_USAGE, "%s is %d, but there is no %s", row->local_rank,
                           g->local_rank, row->local_size);
    if (!status)
        status = less(row->local_rank ? row->local_rank : row->rank, g->local_rank,
                      row->local_size ? row->local_size : row->tasks ? row->tasks : row->size,
                      row->local_size || row->tasks ? g->local_size : g->size);
    if (!status && g->local_size > g->size)
        status = base_fail(TRI_USAGE, "%s is %d, more than %s, %d",
                           row->local_size ? row->local_size : row->tasks, g->local_size,
                           row->size, g->size);
    if (!status) status = find_hosts(row, g);
    if (!status) status = read_address(row, g);
    g->workers = g->local_size > 1 ? g->local_size : 0;
    const char *workers = value_of(row->workers);
    if (!status && workers && isdigit((unsigned char)*workers)) /* or "auto", "cpu" */
        status = read_number(row->workers, 0, &g->workers);
    const char *const names[] = {job, step, again};
    uint64_t hash = 0;
    for (size_t i = 0; i < COUNT(names); i++)
        if (names[i]) hash = base_hash(names[i], strlen(names[i]) + 1, hash);
    if (job) base_format(g->job, sizeof g->job, "%016llx", (unsigned long long)hash);
    return status;
}

/* Whether what the row names is there, and is meant. */
static bool applies(const struct given_row *row, bool join) {
    if ((row->join && !join) || value_of(row->without)) return false;
    if (row->inner && !value_of(row->local_rank)) return false; /* srun sets PMI_RANK, too */
    return value_of(row->rank) && value_of(row->size);
}

/* Whether the processes of one launcher are inside those of the other, whose variables they only
 * inherit. */
static bool hides(const struct given_row *one, const struct given_row *other) {
    return value_of(one->itself) || (one->inner && !other->join);
}

tri_status given_read(bool join, struct given *g) {
    const struct given_row *from = NULL;
    *g = (struct given){.by = NULL};
    if (given_is_taken()) return TRI_OK;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct given is;
        const struct given_row *row = &rows[i];
        if (!applies(row, join) || (from && hides(from, row))) continue;
        tri_status status = read_row(row, &is);
        if (status) return status;
        if (from && !hides(row, from) && (is.rank != g->rank || is.size != g->size))
            return base_fail(TRI_USAGE, "%s and %s contradict each other: this is process %d of %d "
                             "by %s, %d of %d by %s", from->by, row->by, g->rank, g->size,
                             from->rank, is.rank, is.size, row->rank);
        from = row;
        *g = is;
    }
    if (!join && g->size == 1) g->by = NULL;
    return TRI_OK;
}

void given_take(void) { setenv(TAKEN, "1", 1); }

bool given_is_taken(void) { return getenv(TAKEN) != NULL; }

bool given_is_local(const struct given *g) { return g->local_size == g->size; }
