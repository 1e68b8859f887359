#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run that Slurm starts on several nodes, one process each, with all cores of each node.
#
# Run with Slurm 22.05.8 (Debian 12) on four nodes, in namespaces of one machine, as root
# (tests/hosts/hosts_slurm.py): whole runs, scancel, the time limit, and the death of a node with
# its slurmd, also of the first one, where this script runs. Not run: on a real cluster, as another
# user than root, with cgroups.
#
# Usage: sbatch [-N NODES] slurm.sh PROGRAM [ARGUMENTS], for instance
#     sbatch -N 4 slurm.sh trireme train resnet50 --data images:imagenet --ckpt ck --resume
# The nodes share the working directory, and have trireme at the same path. With --ckpt and
# --resume the job goes on from the last checkpoint when Slurm starts it again.
#
# When a node dies, the run goes on without it, or saves and ends if it is the first one. When Slurm
# has noticed (SlurmdTimeout, 300 s), it ends a job that is not over, which saves, and after two
# minutes starts it again on other nodes. With `sbatch --no-kill` a run goes on to its end without
# the node; but if the first one dies, the job stays, without its script, until its time limit.
#SBATCH --nodes=4 --ntasks-per-node=1 --exclusive
#SBATCH --requeue --open-mode=append
# The run saves this many seconds before the time limit.
#SBATCH --signal=TERM@120
set -u
out=run
rm -f $out/exit # of an earlier run

# --cpu-bind=none: a process may use all cores of the job, not only that of one task.
srun --kill-on-bad-exit=0 --no-kill --cpu-bind=none \
    "$(command -v trireme)" run --out $out -- "$@" &
launcher=$!
# After the death of a node srun waits until Slurm notices it, and may give another exit code. So
# the exit code is that of the run.
while kill -0 $launcher 2>/dev/null && [ ! -e $out/exit ]; do sleep 1; done
if [ -e $out/exit ]; then
    code=$(cat $out/exit)
    kill $launcher 2>/dev/null
    exit "$code"
fi
wait $launcher
