#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run that Open MPI's mpirun starts on several hosts, one process each.
#
# Run with Open MPI 4.1.4 on two and three hosts, in namespaces of one machine
# (tests/hosts/hosts_launch.py): whole runs, the death of a host with mpirun's daemon there, the
# death of the host of rank 0. MPICH's mpiexec 4.0.2 was run on one machine alone.
#
# Usage: mpi.sh h0,h1,h2 PROGRAM [ARGUMENTS]
# The hosts share the working directory, and have trireme at the same path.
set -u
hosts=$1
shift
out=run
rm -f $out/exit # of an earlier run

# If a host dies, the run goes on. mpirun 4.1.4 may then wait for ever, so the exit code is that of
# the run.
# If it is interrupted, the run has ten seconds to end its step and to save.
mpirun --enable-recovery --mca odls_base_sigkill_timeout 10 --host "$hosts" \
    --map-by ppr:1:node --bind-to none \
    "$(command -v trireme)" run --out $out -- "$@" &
launcher=$!
trap 'kill $launcher' INT TERM
while kill -0 $launcher 2>/dev/null && [ ! -e $out/exit ]; do sleep 1; done
if [ -e $out/exit ]; then
    kill $launcher 2>/dev/null
    exit "$(cat $out/exit)"
fi
wait $launcher
