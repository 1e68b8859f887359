/* SPDX-License-Identifier: Apache-2.0
 * Sums over all ranks by Open MPI. Without arguments, for bench/hosts.py: a loop, to see what it
 * does when a host dies. With sizes in bytes, for bench/wire.py: a line for each, with the median
 * seconds of a sum. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 1000 /* sums of a size */
#define LEAST 5
#define SECONDS 0.5

static int by_size(const void *x, const void *y) {
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double once(const float *from, float *to, int n) {
    const double begin = MPI_Wtime();
    MPI_Allreduce(from, to, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return MPI_Wtime() - begin;
}

/* Sums follow one another, as many as go into a time that all ranks agree on. */
static void measure(long bytes, int rank) {
    const int n = (int)(bytes / (long)sizeof(float));
    float *from = malloc((size_t)bytes), *to = malloc((size_t)bytes);
    static double time[MOST];
    for (int i = 0; i < n; i++) from[i] = (float)(i % 1000);
    double first = once(from, to, n);
    first = once(from, to, n);
    MPI_Bcast(&first, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    double sums = SECONDS / first;
    const int all = sums < LEAST ? LEAST : sums > MOST ? MOST : (int)sums;
    for (int i = 0; i < all; i++) time[i] = once(from, to, n);
    qsort(time, (size_t)all, sizeof *time, by_size);
    if (!rank) printf("sum %ld %.6g\n", bytes, time[all / 2]);
    fflush(stdout);
    free(from);
    free(to);
}

static void loop(int rank) {
    static float from[1 << 16], to[1 << 16];
    for (;;) {
        once(from, to, 1 << 16);
        if (!rank) {
            puts("step");
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 2) loop(rank);
    for (int i = 1; i < argc; i++) measure(atol(argv[i]), rank);
    MPI_Finalize();
    return 0;
}
