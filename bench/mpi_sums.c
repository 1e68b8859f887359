/* SPDX-License-Identifier: Apache-2.0
 * A loop of sums over all ranks, for bench/hosts.py: what Open MPI does when a host dies. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    static float from[1 << 16], to[1 << 16];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (;;) {
        MPI_Allreduce(from, to, 1 << 16, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (!rank) {
            puts("step");
            fflush(stdout);
        }
    }
}
