/* SPDX-License-Identifier: Apache-2.0
 * A worker's part in a run over several hosts (crew/hosts.h): which lanes are its host's, how a
 * step is opened on all hosts alike, and what they compare before the first one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/data.h"
#include "io/sha256.h"
#include "plan/transfer.h"
#include "run/checkpointer.h"
#include "run/executables.h"
#include "run/executor.h"
#include "run/loader.h"
#include "run/policy.h"
#include "run/state.h"
#include "run/record.h"
#include "run/worker_inside.h"

bool worker_has_hosts(const struct worker *c) { return c->head->hosts.n > 0; }

bool worker_has_lease(const struct worker *c) {
    return !worker_has_hosts(c) || base_now() < atomic_load(&c->head->hosts.lease);
}

bool worker_opens(const struct worker *c) {
    return atomic_load(&c->head->workers.reporter) == c->place;
}

bool worker_reports(const struct worker *c) {
    const struct crew_hosts *s = &c->head->hosts;
    return worker_opens(c) && (!worker_has_hosts(c) || atomic_load(&s->teller) == s->self);
}

/* ---- lanes ---- */

static bool leased(void *arg) {
    const struct worker *c = arg;
    return worker_has_lease(c) || atomic_load(&c->head->course.ending);
}

void worker_wait_for_lease(struct worker *c, struct thread_context *me) {
    if (worker_has_lease(c)) return;
    if (me == &c->context[0] && c->records) { /* another host may be the teller now */
        metrics_yield(&c->run->record->metrics);
        checkpointer_yield(c->run->checkpointer);
    }
    worker_note_wait(me, CREW_FOR_HOSTS, 0);
    crew_wait(c->head, leased, c, &me->shared->heartbeat);
    spend(SPENT_UNKNOWN);
}

enum file_place worker_writes_files(const struct worker *c) {
    const struct crew_hosts *s = &c->head->hosts;
    if (!worker_has_hosts(c) || atomic_load(&c->head->course.ending)) return FILES_OURS;
    if (!worker_has_lease(c)) return FILES_UNKNOWN;
    return atomic_load(&s->teller) == s->self ? FILES_OURS : FILES_OF_OTHERS;
}

bool worker_waits_for_hosts(const struct worker_stage *s) {
    const struct worker *c = s->c;
    struct tree *t = &c->run->machine->tree[s->k];
    for (int b = 0; worker_has_hosts(c) && b < t->buckets.n; b++)
        if (buckets_is_summed(&t->buckets, b) &&
            !board_own_are_done(&t->bucket[b].board, (uint32_t)c->step))
            return false;
    return worker_has_hosts(c);
}

static bool has(const struct hosts_opening *o, int host, int lane) {
    return o->begin[host] <= lane && lane < o->begin[host + 1];
}

bool worker_is_dealt(const struct worker *c, int lane) {
    const struct crew_hosts *s = &c->head->hosts;
    return !worker_has_hosts(c) || has(&s->opening[c->step % 2], s->self, lane);
}

/* Says which lanes of the step are this host's, and which sums it keeps. */
static void deal(struct worker *c, const struct machine *m, const struct hosts_opening *o) {
    const int self = c->head->hosts.self;
    _Atomic uint8_t *mine = worker_region(c, REGION_MINE, 0);
    for (int lane = 0; lane < (int)m->lanes; lane++)
        mine[lane] = has(o, self, lane) ? BOARD_MINE : BOARD_OTHERS;
    for (int k = 0; k < 2; k++) {
        uint8_t *keeps = worker_region(c, REGION_KEEPS, k);
        if (m->tree[k].g)
            transfers_operands(&m->tree[k].shape, o->hosts, o->begin, NULL, keeps);
    }
}

/* ---- openings ---- */

/* Nothing of the steps of a run that was continued is kept anywhere. */
static bool is_over(const struct worker *c, uint64_t step) {
    const struct crew_hosts *s = &c->head->hosts;
    return (!s->joins && step <= atomic_load(&c->head->course.base)) ||
           step <= atomic_load(&s->over);
}

/* Before a new epoch the ferry takes back that a step is over. It looks whether the next one is
 * being opened after that, and this looks after it has said so: one of the two sees the other. */
bool worker_enters(struct worker *c, uint64_t step) {
    struct crew_hosts *s = &c->head->hosts;
    if (!worker_has_hosts(c)) return true;
    atomic_store(&s->enters, step);
    if (is_over(c, step - 1)) return true;
    worker_enters_none(c);
    return false;
}

void worker_enters_none(struct worker *c) {
    struct crew_hosts *s = &c->head->hosts;
    const uint64_t opened = atomic_load(&c->head->course.opened);
    if (!worker_has_hosts(c) || atomic_load(&s->enters) <= opened) return;
    atomic_store(&s->enters, opened);
    crew_notify(c->head);
}

bool worker_may_open(const struct worker *c) {
    const struct crew_head *h = c->head;
    const struct crew_hosts *s = &h->hosts;
    if (!worker_has_hosts(c)) return true;
    if (!atomic_load(&s->epoch) || !worker_has_lease(c) || atomic_load(&s->lacks)) return false;
    const uint64_t committed = atomic_load(&h->course.committed); /* after `lacks` */
    return is_over(c, committed) &&
           (worker_reports(c) || atomic_load(&s->offered) > committed);
}

bool worker_is_offered(const struct worker *c, uint64_t step) {
    return worker_has_hosts(c) && atomic_load(&c->head->hosts.offered) == step;
}

static void keep_shown(const struct crew_shown *from, struct hosts_opening *to) {
    to->shown.step = atomic_load(&from->step);
    to->shown.evaluation = atomic_load(&from->evaluation);
    to->shown.notes = atomic_load(&from->notes);
    to->shown.head = atomic_load(&from->head);
    to->shown.not_finite = atomic_load(&from->not_finite);
}

static void take_shown(const struct hosts_opening *from, struct crew_shown *to) {
    atomic_store(&to->step, from->shown.step);
    atomic_store(&to->evaluation, from->shown.evaluation);
    atomic_store(&to->notes, from->shown.notes);
    atomic_store(&to->head, from->shown.head);
    atomic_store(&to->not_finite, from->shown.not_finite);
}

void worker_offer(struct worker *c, const struct machine *m, uint64_t step) {
    struct crew_head *h = c->head;
    struct crew_hosts *s = &h->hosts;
    struct hosts_opening *o = &s->opening[step % 2];
    int weight[HOSTS_MOST];
    if (!worker_has_hosts(c)) return;
    /* While an epoch begins they change one after the other. Any that are not all 0 will do. */
    int sum = 0;
    for (int i = 0; i < s->n; i++) sum += weight[i] = atomic_load(&s->weight[i]);
    for (int i = 0; i < s->n && !sum; i++) weight[i] = 1;
    *o = (struct hosts_opening){
        .step = step, .shape = h->course.shape_of[step % 2], .hosts = s->n, .rate = h->course.rate,
        .set_rate = h->course.set_rate,
        .policy = h->course.policy_state[atomic_load(&h->course.n_policy_states) % 2]};
    if (atomic_load(&h->profile.state) == PROFILE_RECORDS &&
        atomic_load(&h->profile.first) == step) {
        o->profile[0] = step;
        o->profile[1] = atomic_load(&h->profile.last);
        o->profile_most = atomic_load(&h->profile.most);
    }
    memcpy(o->scalar, h->course.scalar, sizeof o->scalar);
    hosts_deal(&m->tree[1].shape, m->tree[1].cut, s->n, weight, o->begin);
    keep_shown(&h->told.shown, o);
    deal(c, m, o);
    atomic_store(&s->offered, step);
}

void worker_take_offer(struct worker *c, const tri_run *run, uint64_t step) {
    struct crew_head *h = c->head;
    const struct hosts_opening *o = &h->hosts.opening[step % 2];
    h->course.rate = o->rate;
    h->course.set_rate = o->set_rate;
    memcpy(h->course.scalar, o->scalar, sizeof h->course.scalar);
    h->course.shape_of[step % 2] = o->shape;
    if (!worker_reports(c)) {
        take_shown(o, &h->told.shown);
        worker_set_policy(c, &o->policy);
    }
    deal(c, &run->executable[o->shape], o);
}

/* ---- for logs, and files ---- */

/* Before the first epoch, all hosts take part. */
struct run_ranks worker_ranks(const struct worker *c) {
    const struct crew_hosts *s = &c->head->hosts;
    struct run_ranks r = {worker_rank(c), worker_size(c), 0, 1};
    if (!worker_has_hosts(c)) return r;
    const bool begun = atomic_load(&s->epoch);
    r.host = s->self;
    for (int i = 0; i < s->n; i++) {
        const int workers = begun ? atomic_load(&s->weight[i]) : c->head->size.weight[i];
        r.hosts += i != s->self && workers > 0;
        if (i != s->self) r.size += workers;
        if (i < s->self && r.rank >= 0) r.rank += workers;
    }
    return r;
}

void worker_count_hosts(const struct worker *c, struct record *r) {
    const struct crew_head *h = c->head;
    const int threads = h->size.workers * h->size.threads;
    int64_t time[SPENTS] = {0};
    if (!worker_has_hosts(c)) return;
    for (int i = 0; i < h->size.places * h->size.threads; i++)
        spending_add(&h->thread[i].spending, base_now(), time);
    r->hosts = (struct observed_hosts){
        .sent = (double)atomic_load(&h->hosts.sent),
        .received = (double)atomic_load(&h->hosts.received),
        .sent_whole = (double)atomic_load(&h->hosts.sent_whole),
        .exposed = 1e-9 * (double)time[SPENT_WAIT_HOSTS] / threads};
    r->seen.hosts = &r->hosts;
}

bool worker_shares_directory(const struct worker *c) {
    const struct crew_hosts *s = &c->head->hosts;
    char path[PATH_MAX + HOSTS_NAME + 32], text[128];
    for (int i = 0; i < s->n && *c->head->told.out; i++) {
        unsigned long long run = 0;
        if (i == s->self) continue;
        base_format(path, sizeof path, "%s/../%s/agent.json", c->head->told.out, s->name[i]);
        FILE *f = fopen(path, "re");
        if (!f) continue;
        const bool is = fgets(text, sizeof text, f) &&
                        sscanf(text, "{\"pid\":%*d,\"fd\":%*d,\"run\":\"%llx\"}", &run) == 1 &&
                        run == s->run;
        fclose(f);
        if (is) return true;
    }
    return false;
}

/* ---- what all hosts must have alike ---- */

tri_status worker_check_hosts(const struct worker *c, const tri_run *run) {
    if (!worker_has_hosts(c)) return TRI_OK;
    if (run->fed)
        return base_fail(TRI_USAGE, "--hosts: batches that the program feeds (tri_feed) exist on "
                         "one host only; a data source that every host reads (tri_data_new) works");
    if (run->data && run->data->sequential)
        return base_fail(TRI_USAGE, "--hosts: %s is read in sequence, by one reader; hosts need "
                         "data whose samples are found by number, as `trireme pack` writes it",
                         run->data->name);
    return TRI_OK;
}

static void add_text(struct sha256 *h, const char *text) {
    sha256_add(h, text, strlen(text) + 1);
}

static void add_number(struct sha256 *h, int64_t n) { sha256_add(h, &n, sizeof n); }

/* Samples of a lane of the first step. A run that is continued reads them for this alone. */
static tri_status fetch_first(const struct worker *c, tri_run *run, int lane, char **rows) {
    const struct loader_request r = {.step = 1, .lane = lane,
                                     .heartbeat = &c->context[0].shared->heartbeat};
    const bool needed = !run->done && !c->head->hosts.joins;
    return (needed ? loader_fetch : loader_fetch_apart)(run->loader, &r, rows);
}

static tri_status add_samples(struct sha256 *h, const struct worker *c, tri_run *run) {
    const struct machine *m = executables_at(run, 1);
    for (int lane = 0; run->data && lane < (int)m->lanes; lane++) {
        const int64_t first = lane_first(m->batch, m->lanes, lane);
        const int64_t n = lane_samples(m->batch, m->lanes, lane);
        char *rows;
        tri_status status = fetch_first(c, run, lane, &rows);
        if (status) return status;
        for (int i = 0; i < m->n_inputs; i++)
            if (m->input[i].used)
                sha256_add(h, rows + m->input[i].offset + (size_t)first * m->input[i].sample_bytes,
                           (size_t)n * m->input[i].sample_bytes);
    }
    return TRI_OK;
}

/* What a resumed run must have as before; and the processor, if its arithmetic is its own. */
static void add_options(struct sha256 *h, const tri_run *run) {
    struct checkpoint_options all;
    char device[CHECKPOINT_TEXT];
    add_number(h, run->total);
    state_options(&all, run);
    for (int i = 0; i < all.n; i++) {
        add_text(h, all.one[i].name);
        add_text(h, all.one[i].value);
    }
    run_device_text(run, device, sizeof device);
    add_text(h, device);
}

static tri_status add_part(struct sha256 *h, int part, const struct worker *c, tri_run *run) {
    if (part == 0) {
        add_number(h, (int64_t)c->region[REGION_VALUES].bytes);
        return worker_add_plan(h, run);
    }
    if (part == 1) add_options(h, run);
    if (part == 2) {
        add_number(h, run->data ? tri_data_size(run->data) : 0);
        add_number(h, run->policy->data ? tri_data_size(run->policy->data) : 0);
    }
    return part == 3 ? add_samples(h, c, run) : TRI_OK;
}

static void end_digest(struct sha256 *h, uint8_t *to, size_t bytes) {
    char hex[65];
    sha256_end_hex(h, hex);
    memcpy(to, hex, bytes); /* a part of it is enough to tell runs apart */
}

void worker_agree(struct worker *c, tri_run *run) {
    struct crew_hosts *s = &c->head->hosts;
    struct sha256 h;
    char weights[65] = "", state[65] = "";
    if (!worker_has_hosts(c) || !worker_opens(c) || atomic_load(&s->agrees)) return;
    for (int part = 0; part < HOSTS_PARTS; part++) {
        sha256_begin(&h);
        if (add_part(&h, part, c, run)) {
            worker_fail(c, tri_message());
            return;
        }
        end_digest(&h, s->digest + HOSTS_PART * part, HOSTS_PART);
    }
    sha256_begin(&h);
    if (!s->joins) tri_hash(run, weights, state);
    add_text(&h, weights);
    add_text(&h, state);
    add_number(&h, run->done);
    end_digest(&h, s->state, sizeof s->state);
    atomic_store(&s->agrees, 1);
    crew_notify(c->head);
}
