/* SPDX-License-Identifier: Apache-2.0
 * When workers have written what is in worker-K.out: its lines have no time of their own. A line of
 * outputs.jsonl says that it has grown, so that `trireme log` can put its lines among the others.
 * There are ten a second at most, whatever the number of workers. */
#include <stdio.h>
#include <sys/stat.h>

#include "launch/agent_inside.h"

#define INTERVAL 100000000 /* nanoseconds */

/* Whether it has grown. */
static bool note(struct agent *a, int place) {
    char path[4096], name[32];
    struct stat st;
    int64_t *noted = &a->outputs.noted[place];
    base_format(name, sizeof name, "worker-%d.out", place);
    agent_path(a, path, name);
    if (stat(path, &st) || st.st_size <= *noted) return false;
    log_event(&a->outputs.log, LOG_INFO, "output", "worker=%d from=%lld bytes=%lld", place,
              (long long)*noted, (long long)(st.st_size - *noted));
    *noted = st.st_size;
    return true;
}

void agent_note_outputs(struct agent *a, bool all) {
    const int places = a->head->size.places;
    const int64_t now = base_now();
    bool any = false;
    if (a->outputs.log.fd < 0 || (!all && now - a->outputs.looked < INTERVAL)) return;
    a->outputs.looked = now;
    for (int i = 0; i < places && (all || !any); i++) {
        const int place = (a->outputs.next + i) % places;
        any |= note(a, place);
        if (any && !all) a->outputs.next = place + 1;
    }
}
