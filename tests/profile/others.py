# SPDX-License-Identifier: Apache-2.0
"""How much of the cores other processes take, while children of this one run."""
import os
import resource
import time


def seconds():
    """Of the cores in use, and of our children that have ended."""
    ticks = list(map(int, open("/proc/stat").readline().split()[1:9]))
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
    return used - own.ru_utime - own.ru_stime


class Others:
    MOST = 0.03  # of the cores; more disturbs a run

    def __init__(self):
        self.cores, self.began = len(os.sched_getaffinity(0)), time.monotonic()
        self.before = seconds()

    def part(self):
        """Since it was made; the children have ended."""
        return (seconds() - self.before) / self.cores / (time.monotonic() - self.began)
