/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ctl_hosts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/columns.h"

static void rest(void) { nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); }

static bool is_dead(int pid) { return kill(pid, 0) && errno == ESRCH; }

/* One process at a time asks. */
static bool begin(struct crew_asked *q, int64_t until) {
    for (;;) {
        int by = 0;
        if (atomic_compare_exchange_strong(&q->by, &by, getpid())) return true;
        if (is_dead(by) && atomic_compare_exchange_strong(&q->by, &by, getpid())) return true;
        if (base_now() > until) return false;
        rest();
    }
}

tri_status ctl_request(struct look *l, const char *request, int64_t until, char *answer) {
    struct crew_asked *q = &l->head->asked;
    const struct crew_told *t = &l->head->told;
    if (strlen(request) >= CREW_REQUEST)
        return base_fail(TRI_USAGE, "%.20s...: too long for a request", request);
    if (!begin(q, until)) return base_fail(TRI_FAILED, "another ctl waits for the coordinator");
    base_format(q->request, CREW_REQUEST, "%s", request);
    const uint32_t number = atomic_fetch_add(&q->requests, 1) + 1;
    while (atomic_load(&t->answered) != number && base_now() < until && look_alive(l)) rest();
    const bool answered = atomic_load(&t->answered) == number;
    tri_status status = TRI_OK;
    memcpy(answer, t->answer, CREW_ANSWER);
    answer[CREW_ANSWER - 1] = 0;
    if (!answered)
        status = base_fail(TRI_FAILED, look_alive(l) ? "the run's coordinator does not answer"
                                                     : "this host's part of the run has ended");
    else if (t->answer_code)
        status = base_fail(t->answer_code == TRI_USAGE ? TRI_USAGE : TRI_FAILED, "%s", answer);
    atomic_store(&q->by, 0);
    return status;
}

int ctl_hosts(struct look *l, int64_t until, struct ctl_host *to) {
    const struct crew_head *h = l->head;
    char answer[CREW_ANSWER], *next = answer, *row;
    int n = 0;
    if (ctl_request(l, "hosts", until, answer)) return -1;
    const uint64_t opened = atomic_load(&h->course.opened);
    const struct hosts_opening *o = &h->hosts.opening[opened % 2];
    const bool open = opened && o->step == opened;
    for (; n < HOSTS_MOST && (row = strsep(&next, "\n")); n++) {
        unsigned long long step;
        if (sscanf(row, "%63[^\t]\t%15[^\t]\t%d\t%llu\t%u", to[n].name, to[n].state,
                   &to[n].workers, &step, &to[n].epoch) != 5) {
            base_fail(TRI_FAILED, "the coordinator's answer is damaged: %s", row);
            return -1;
        }
        to[n].step = step;
        to[n].lanes = open ? o->begin[n + 1] - o->begin[n] : -1;
    }
    return n;
}

void ctl_hosts_print(const struct ctl_host *host, int n, struct text *out) {
    struct text cells = {0};
    text_add(&cells, "HOST\tSTATE\tLANES\tWORKERS\tSTEP\tEPOCH\n");
    for (int i = 0; i < n; i++) {
        text_add(&cells, "%s\t%s\t", host[i].name, host[i].state);
        text_add(&cells, host[i].lanes < 0 ? "-" : "%d", host[i].lanes);
        text_add(&cells, "\t%d\t%llu\t%u\n", host[i].workers, (unsigned long long)host[i].step,
                 host[i].epoch);
    }
    columns_add(out, "llrrrr", &cells);
    text_free(&cells);
}
