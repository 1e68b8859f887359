/* SPDX-License-Identifier: Apache-2.0 */
#include "run/executor.h"

#include "base/pipes.h"
#include "run/record.h"

bool run_is_asked_to_end(const tri_run *run) {
    const volatile sig_atomic_t *asked = atomic_load(&run->asked);
    return (asked && *asked) || (run->holds_pipes && pipes_closed()) ||
           run->executor->asked_to_end(run);
}

bool run_is_late(const tri_run *run) {
    double most = run->options.max_time;
    return most > 0 && base_seconds() - run->record->begin >= most;
}

bool tri_step(tri_run *run) {
    if (!run || run->status) return false;
    if (run->options.forward)
        return !run_fail(run, base_fail(TRI_USAGE, "tri_step: this run does not train "
                                        "(tri_options.forward); tri_feed, tri_forward, tri_read"));
    return run->executor->step(run);
}

static struct run_ranks ranks_of(const tri_run *run) {
    return run ? run->executor->ranks(run) : (struct run_ranks){0, 1, 0, 1};
}

int tri_rank(const tri_run *run) { return ranks_of(run).rank; }
int tri_size(const tri_run *run) { return ranks_of(run).size; }
int tri_host(const tri_run *run) { return ranks_of(run).host; }
int tri_hosts(const tri_run *run) { return ranks_of(run).hosts; }
