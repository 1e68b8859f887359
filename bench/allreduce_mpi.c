/* SPDX-License-Identifier: Apache-2.0
 * The table of `trireme bench allreduce` for MPI_Allreduce, measured in the same way: the median of
 * samples of several calls, where a sample takes as long as its slowest rank.
 * mpicc -O2 allreduce_mpi.c -o allreduce_mpi
 * mpirun -n 2 --bind-to core ./allreduce_mpi 1024 4096 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_SAMPLES 101
#define LEAST_SAMPLES 11
#define SAMPLE_BYTES (1u << 20)
#define SAMPLE_CALLS 200
#define ALL_SAMPLES_BYTES (1u << 30)

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double measure(const float *in, float *out, size_t bytes) {
    size_t calls = SAMPLE_BYTES / bytes;
    calls = calls < 1 ? 1 : calls > SAMPLE_CALLS ? SAMPLE_CALLS : calls;
    size_t fit = ALL_SAMPLES_BYTES / (bytes * calls);
    int samples = (int)(fit < LEAST_SAMPLES ? LEAST_SAMPLES
                                            : fit > MOST_SAMPLES ? MOST_SAMPLES : fit);
    double second[MOST_SAMPLES], slowest[MOST_SAMPLES];
    for (int k = -samples / 8 - 1; k < samples; k++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (size_t i = 0; i < calls; i++)
            MPI_Allreduce(in, out, (int)(bytes / sizeof *in), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (k >= 0) second[k] = (MPI_Wtime() - begin) / (double)calls;
    }
    MPI_Reduce(second, slowest, samples, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    qsort(slowest, (size_t)samples, sizeof *slowest, compare);
    return slowest[samples / 2];
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!rank) printf("%11s %11s %11s %11s\n", "bytes", "time_us", "alg_GB/s", "bus_GB/s");
    for (int i = 1; i < argc; i++) {
        size_t bytes = strtoul(argv[i], NULL, 10), n = bytes / sizeof(float);
        float *in = malloc(bytes), *out = malloc(bytes);
        if (!n || !in || !out) {
            fprintf(stderr, "allreduce_mpi: invalid size or out of memory: %s\n", argv[i]);
            MPI_Abort(MPI_COMM_WORLD, 1);
            return 1;
        }
        for (size_t k = 0; k < n; k++) in[k] = (float)((k + (size_t)rank) % 1000), out[k] = 0;
        double seconds = measure(in, out, bytes), rate = 1e-9 * (double)bytes / seconds;
        if (!rank)
            printf("%11zu %11.2f %11.2f %11.2f\n", bytes, 1e6 * seconds, rate,
                   rate * 2 * (ranks - 1) / ranks);
        free(in);
        free(out);
    }
    return MPI_Finalize();
}
