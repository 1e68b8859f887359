# SPDX-License-Identifier: Apache-2.0
"""Runs a command under an agent and kills its reporter: kill_reporter.py DIR TIMES COMMAND...
TIMES 0: once, as soon as metrics.jsonl has the last step, which is the command's last word."""
import json
import os
import signal
import subprocess
import sys
import time

directory, times, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
deadline = time.monotonic() + 12


def lines(name):
    """The complete lines of a file that is being written."""
    try:
        with open(os.path.join(directory, name)) as f:
            return [json.loads(line) for line in f if line.endswith('\n')]
    except FileNotFoundError:
        return []


def reporter():
    place, pids = 0, {}
    for row in lines('agent.log'):
        if row['event'] == 'start':
            pids[row['worker']] = row['pid']
        elif row['event'] == 'reporter':
            place = row['worker']
        elif row['event'] in ('death', 'left'):
            pids.pop(row['worker'], None)
    return pids.get(place)


def last_step():
    rows = lines('metrics.jsonl')
    return rows[-1]['step'] if rows else 0


def until(what, holds):
    while not holds():
        if time.monotonic() > deadline:
            run.kill()
            sys.exit('no ' + what)
        if run.poll() is not None:
            return False
        time.sleep(0.002)
    return True


run = subprocess.Popen(command)
for i in range(times or 1):
    step = int(command[-1]) if not times else last_step() + 20
    if not until('step %d' % step, lambda: last_step() >= step):
        sys.exit('it ended before step %d' % step)
    if not until('reporter', reporter):
        break
    try:
        os.kill(reporter() or sys.maxsize, signal.SIGKILL)
    except (ProcessLookupError, OverflowError):
        pass # it has ended meanwhile
until('end', lambda: False)
sys.exit(run.returncode)
