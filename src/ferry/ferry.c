/* SPDX-License-Identifier: Apache-2.0 */
#include "ferry/ferry.h"

#include <stdlib.h>
#include <string.h>

#include "ferry/spans.h"
#include "ferry/state.h"

enum value { OPENING, WHOLE }; /* the item of messages of values */

struct ferry {
    struct ferry_place place;
    struct crew_head *head;
    struct link *link;
    struct mover *mover;
    int self, teller;
    uint32_t epoch; /* 0: none has begun */
    bool held;      /* it has ended, or not begun */
    bool silent;    /* there was no lease at the last look */
    bool reports;   /* HOLD has come, and it has not reported yet */
    struct schedule_hosts hosts;
    /* Of this epoch. */
    uint64_t first;  /* the step in which it began; 0: before any */
    uint64_t step;   /* that the mover is at; 0: none */
    struct schedule rest, dealt[CREW_MOST_SHAPES]; /* rest: of step `first` */
    bool joins[HOSTS_MOST]; /* they get the state after step `first` */
    int donors;             /* hosts that send it */
    uint32_t lacks;         /* pieces that this host lacks */
    struct peer {
        bool joined;
        bool lost;        /* the session has ended */
        bool whole, told; /* it has said that it has all of the step; has been told that */
        uint64_t offered; /* the latest step whose opening it has been sent */
        int lent;         /* values that the link has */
        bool given;       /* it has been sent its pieces */
        uint32_t next;    /* the piece that it sends next */
    } peer[HOSTS_MOST];
    struct mover_bytes before; /* what ferries before this one have moved */
    struct hosts_opening arriving;
    struct ferry_spans spans;
};

static void *where(void *user, int host, const struct link_header *h);
static tri_status begin_to_join(struct ferry *f, const struct hosts_opening *o);

/* ---- making ---- */

static uint64_t most_bytes(const struct view *v) {
    uint64_t most = STATE_PIECE;
    for (int i = 0; i < v->head->layout.n_shapes; i++)
        for (int k = 0; k < 2; k++)
            for (int b = 0; b < v->n_sums[i][k]; b++)
                for (int coded = 0; coded < 2; coded++) {
                    const struct view_sums *s = &v->sums[i][k][b];
                    const uint64_t bytes = coded ? view_wire_bytes(s) : s->bytes;
                    if (bytes > most) most = bytes;
                }
    return most;
}

static tri_status check_regions(const struct view *v) {
    const struct crew_layout *l = &v->head->layout;
    bool right = v->base;
    for (int i = 0; i < l->n_shapes && right; i++)
        for (int k = 0; k < 2; k++)
            right &= l->region[REGION_MINE].bytes >= (uint64_t)l->shape[i].lanes &&
                     l->region[REGION_KEEPS].bytes >= (uint64_t)v->tree[i][k].n_nodes;
    return right ? TRI_OK : base_fail(TRI_FAILED, "the store was made for a run of one host");
}

tri_status ferry_open(const struct ferry_place *place, struct ferry **out) {
    struct ferry *f = *out = NULL;
    if (place->link.hosts > HOSTS_MOST || place->link.hosts < 1 || place->link.self < 0 ||
        place->link.self >= place->link.hosts)
        return base_fail(TRI_FAILED, "host %d of %d", place->link.self, place->link.hosts);
    tri_status status = check_regions(place->view);
    if (status) return status;
    *out = f = calloc(1, sizeof *f);
    if (!f) return base_no_memory("a ferry");
    *f = (struct ferry){.place = *place, .head = place->view->head, .self = place->link.self,
                        .teller = -1, .held = true};
    f->before.sent = atomic_load(&f->head->hosts.sent);
    f->before.received = atomic_load(&f->head->hosts.received);
    f->before.whole[0] = atomic_load(&f->head->hosts.sent_whole);
    f->hosts.n = place->link.hosts;
    f->spans.head = f->head;
    struct link_options *o = &f->place.link;
    o->where = where;
    o->user = f;
    o->most = most_bytes(place->view);
    status = mover_open(f->self, f->hosts.n, CREW_FERRY, &f->mover);
    if (!status) status = link_open(place->row, o, &f->link);
    if (!status) {
        mover_bind(f->mover, f->link);
        if (place->late) mover_send_late(f->mover);
        return TRI_OK;
    }
    ferry_close(f);
    *out = NULL;
    return status;
}

void ferry_close(struct ferry *f) {
    if (!f) return;
    link_close(f->link);
    mover_close(f->mover);
    schedule_free(&f->rest);
    for (int i = 0; i < CREW_MOST_SHAPES; i++) schedule_free(&f->dealt[i]);
    free(f);
}

const char *ferry_address(const struct ferry *f) { return link_address(f->link); }
int ferry_fd(const struct ferry *f) { return f->silent ? -1 : link_fd(f->link); }

/* ---- the agent ---- */

static tri_status tell(struct ferry *f, enum host_kind kind, int host, const char *text) {
    const struct host_message m = {.kind = kind, .epoch = f->epoch, .host = host, .text = text};
    return f->place.tell(f->place.user, &m);
}

/* The session is over, for the reason of the text: a new epoch must follow. */
static tri_status lose(struct ferry *f, int host, const char *text) {
    struct peer *p = &f->peer[host];
    if (p->lost) return TRI_OK;
    *p = (struct peer){.lost = true};
    return tell(f, HOST_LOST, host, text);
}

/* A run that is resumed begins after this step, which nobody asks for any more. */
static uint64_t base(const struct ferry *f) {
    return f->head->hosts.joins ? 0 : atomic_load(&f->head->course.base);
}

static uint64_t over(const struct ferry *f) {
    const uint64_t step = atomic_load(&f->head->hosts.over);
    return step > base(f) ? step : base(f);
}

/* The host has joined in this step: it has what the step left, and none of its sums. All others
 * had all of these before it could. */
static bool joined_in(const struct ferry *f, uint64_t step) {
    return f->head->hosts.joins && !atomic_load(&f->head->hosts.lacks) &&
           step == atomic_load(&f->head->course.base);
}

static void set_over(struct ferry *f, uint64_t step) {
    atomic_store(&f->head->hosts.over, step);
    crew_notify(f->head);
}

/* The latest step that this host may open, or has opened. All have all of the step before. */
static uint64_t latest(const struct ferry *f) {
    const uint64_t step = atomic_load(&f->head->hosts.offered);
    const bool tells = atomic_load(&f->head->hosts.teller) == f->self;
    return tells && step > over(f) + 1 ? step - 1 : step;
}

static tri_status report(struct ferry *f) {
    struct host_message m = {.kind = HOST_REPORT, .epoch = f->epoch};
    struct hosts_report *r = &m.report;
    const uint64_t step = latest(f);
    struct schedule s = {0};
    tri_status status = TRI_OK;
    uint8_t none = 0;
    r->has = &none;
    r->joins = atomic_load(&f->head->hosts.lacks);
    if (!r->joins && step > base(f)) {
        r->step = step;
        r->opening = f->head->hosts.opening[step % 2];
        if (r->opening.step != step) return base_fail(TRI_FAILED, "step %llu has no opening",
                                                      (unsigned long long)step);
        status = schedule_check(f->place.view, f->hosts.n, &r->opening);
        if (!status) status = schedule_make(f->place.view, NULL, NULL, &r->opening, NULL, &s);
    }
    if (!status && r->step) {
        const struct mover_step is = schedule_step(f->place.view, &s);
        r->n = mover_report(&is, NULL);
        r->has = calloc(r->n / 8 + 1, 1);
        if (r->has) mover_report(&is, r->has);
        else status = base_no_memory("a report");
        for (uint32_t i = 0; i < r->n && !status && joined_in(f, step); i++)
            r->has[i / 8] |= (uint8_t)(1u << i % 8);
    }
    if (!status) status = f->place.tell(f->place.user, &m);
    if (r->has != &none) free(r->has);
    schedule_free(&s);
    return status;
}

/* From now on no step is opened before the next epoch is sure that the one before is over. But one
 * that the host is opening already goes on; what it is must be known before the host reports. */
static bool freeze(struct ferry *f) {
    struct crew_hosts *h = &f->head->hosts;
    const uint64_t offered = atomic_load(&h->offered), was = atomic_load(&h->over);
    if (offered > base(f) && was >= offered)
        atomic_store(&h->over, offered - 1);
    if (atomic_load(&h->enters) <= offered) return true;
    if (atomic_load(&h->over) != was) set_over(f, was);
    return false;
}

static tri_status try_report(struct ferry *f) {
    if (!f->reports || !freeze(f)) return TRI_OK;
    f->reports = false;
    return report(f);
}

static tri_status hold(struct ferry *f, uint32_t epoch) {
    if (epoch <= f->epoch) return TRI_OK;
    for (int h = 0; h < f->hosts.n; h++)
        if (h != f->self) link_end(f->link, h);
    mover_stop(f->mover);
    memset(f->peer, 0, sizeof f->peer);
    f->epoch = epoch;
    f->held = f->reports = true;
    f->first = f->step = 0;
    return try_report(f);
}

/* The step of the epoch becomes this host's, too. */
static tri_status take_reports(struct ferry *f, const struct host_member *member) {
    struct crew_hosts *h = &f->head->hosts;
    struct schedule_hosts hosts;
    const struct hosts_opening *o = NULL;
    f->donors = 0;
    for (int i = 0; i < f->hosts.n; i++) {
        f->joins[i] = member[i].alive && member[i].report.joins;
        f->donors += member[i].alive && !f->joins[i];
        if (member[i].alive && (!o || member[i].report.step > o->step))
            o = &member[i].report.opening;
    }
    f->first = o->step;
    if (!f->first && !f->joins[f->self]) return TRI_OK;
    tri_status status = schedule_check(f->place.view, f->hosts.n, o);
    if (status) return status;
    if (f->joins[f->self]) return begin_to_join(f, o);
    const bool is_there = atomic_load(&h->offered) >= f->first;
    bool same = !is_there || schedule_is_same(&h->opening[f->first % 2], o);
    for (int i = 0; i < f->hosts.n; i++)
        same &= !member[i].alive || member[i].report.step != f->first ||
                schedule_is_same(&member[i].report.opening, o);
    if (!same || atomic_load(&f->head->course.opened) + 1 < f->first)
        return base_fail(TRI_FAILED, "host %d does not know step %llu as others do", f->self,
                         (unsigned long long)f->first);
    if (!is_there) {
        h->opening[f->first % 2] = *o;
        atomic_store(&h->offered, f->first);
    }
    if (over(f) < f->first - 1) set_over(f, f->first - 1);
    schedule_take_hosts(f->hosts.n, member, false, &hosts);
    return schedule_make(f->place.view, &hosts, NULL, o, member, &f->rest);
}

/* Of those that take part, one says whether they can take the path that was asked for. */
static tri_status tell_path(struct ferry *f) {
    const enum path path = (enum path)(f->place.way.path - 1);
    int hosts = 0;
    char text[128];
    for (int h = 0; h < f->hosts.n; h++) hosts += f->hosts.alive[h];
    const bool lacks = hosts > 1 && f->place.way.path && !path_allows(path, hosts),
               was = atomic_exchange(&f->head->hosts.lacks_path, lacks);
    if (lacks == was || f->teller != f->self) return TRI_OK;
    base_format(text, sizeof text, lacks ? "%d hosts have no path %s: sums go by exchange"
                                         : "%d hosts: sums go by path %s again",
                hosts, path_name(path));
    return tell(f, HOST_TOLD, 0, text);
}

static tri_status begin_epoch(struct ferry *f, const struct host_message *m) {
    struct crew_hosts *head = &f->head->hosts;
    if (!f->held || m->epoch != f->epoch) return TRI_OK; /* another HOLD has come since */
    if (m->n_members != f->hosts.n || !m->member[f->self].alive)
        return base_fail(TRI_FAILED, "an epoch of %d hosts, not of %d and this one", m->n_members,
                         f->hosts.n);
    f->teller = m->teller;
    schedule_free(&f->rest);
    for (int i = 0; i < CREW_MOST_SHAPES; i++) schedule_free(&f->dealt[i]);
    schedule_take_hosts(f->hosts.n, m->member, true, &f->hosts);
    for (int h = 0; h < f->hosts.n; h++) atomic_store(&head->weight[h], f->hosts.weight[h]);
    tri_status status = take_reports(f, m->member);
    if (status) return status;
    atomic_store(&head->epoch, f->epoch);
    atomic_store(&head->teller, f->teller);
    crew_notify(f->head);
    status = tell_path(f);
    if (status) return status;
    f->held = false; /* a link may ask at once where a message belongs */
    for (int h = 0; h < f->hosts.n && !status; h++)
        if (f->hosts.alive[h] && h != f->self)
            status = link_peer(f->link, h, f->epoch, m->member[h].address);
    return status;
}

tri_status ferry_take(struct ferry *f, const struct host_message *m) {
    if (m->kind == HOST_HOLD) return hold(f, m->epoch);
    if (m->kind == HOST_EPOCH) return begin_epoch(f, m);
    return base_fail(TRI_FAILED, "message %s is not for a ferry", host_kind_name(m->kind));
}

/* ---- a host joins ---- */

/* A piece of the state after step `first`; false: there are not so many. The donor of number n
 * sends every piece whose number is n modulo the number of donors. */
static bool piece_at(const struct ferry *f, uint32_t piece, char **at, uint64_t *bytes) {
    return state_piece(f->place.view, f->first, piece, at, bytes);
}

static int donor(const struct ferry *f, int host) {
    int n = 0;
    for (int h = 0; h < host; h++) n += f->hosts.alive[h] && !f->joins[h];
    return n;
}

static tri_status begin_to_join(struct ferry *f, const struct hosts_opening *o) {
    char *at;
    uint64_t bytes;
    f->step = f->first;
    f->head->hosts.opening[f->first % 2] = *o;
    for (f->lacks = 0; piece_at(f, f->lacks, &at, &bytes);) f->lacks++;
    for (int h = 0; h < f->hosts.n; h++) f->peer[h].next = (uint32_t)donor(f, h);
    return TRI_OK;
}

/* The link asks once for each, and for several before it tells that the first has arrived. */
static void *where_piece(struct ferry *f, int host, const struct link_header *h) {
    struct peer *p = &f->peer[host];
    char *at;
    uint64_t bytes;
    const bool right = f->lacks && !f->joins[host] && h->item == p->next &&
                       piece_at(f, h->item, &at, &bytes) && bytes == h->length;
    if (right) p->next += (uint32_t)f->donors;
    return right ? at : NULL;
}

/* The others wait for this host's word, so the step is the latest. */
static tri_status end_of_join(struct ferry *f) {
    struct crew_course *c = &f->head->course;
    if (atomic_load(&c->values[f->first % 2].step) != f->first)
        return base_fail(TRI_FAILED, "a state came that is not of step %llu",
                         (unsigned long long)f->first);
    atomic_store(&c->base, f->first); /* first: see crew_begun */
    atomic_store(&c->committed, f->first);
    atomic_store(&c->opened, f->first);
    atomic_store(&f->head->hosts.offered, f->first);
    set_over(f, f->first);
    atomic_store(&f->head->hosts.lacks, 0);
    crew_notify_end(f->head);
    for (int h = 0; h < f->hosts.n; h++) link_resume(f->link, h);
    return TRI_OK;
}

static bool has_all(struct ferry *f) {
    return f->joins[f->self] && f->step == f->first ? !f->lacks : mover_has_all(f->mover);
}

/* ---- what arrives ---- */

static void *where(void *user, int host, const struct link_header *h) {
    struct ferry *f = user;
    const int32_t ahead = (int32_t)(h->step - (uint32_t)f->step);
    const bool joins = atomic_load(&f->head->hosts.lacks);
    if (f->held || h->epoch != f->epoch) return NULL;
    if (h->kind == LINK_EDGE) return joins && !ahead ? where_piece(f, host, h) : NULL;
    if (joins && (h->kind == LINK_SUM || h->item == OPENING)) return ahead > 0 ? LINK_LATER : NULL;
    if (h->kind == LINK_VALUE && h->item == OPENING)
        return host == f->teller && h->length == sizeof f->arriving ? &f->arriving : NULL;
    if (!f->step || ahead > 0) return LINK_LATER;
    if (h->kind == LINK_SUM) return mover_where(f->mover, host, h);
    return h->kind == LINK_VALUE && h->item == WHOLE && !h->length && !ahead ? f : NULL;
}

/* As if the link had ended it. */
static tri_status end_session(struct ferry *f, int host, const char *why) {
    struct link_event e = {.what = LINK_ENDED, .host = host};
    base_format(e.why, sizeof e.why, "%s", why);
    link_end(f->link, host);
    bool published = false;
    mover_take(f->mover, &e, &published);
    return lose(f, host, e.why);
}

/* The opening of the next step; after a new epoch also that of one that is known. */
static tri_status take_opening(struct ferry *f, int host) {
    struct crew_hosts *h = &f->head->hosts;
    const struct hosts_opening *o = &f->arriving;
    const uint64_t offered = atomic_load(&h->offered);
    tri_status status = schedule_check(f->place.view, f->hosts.n, o);
    if (!status && offered && o->step > offered + 1)
        status = base_fail(TRI_FAILED, "it opens step %llu after step %llu",
                           (unsigned long long)o->step, (unsigned long long)offered);
    if (status) return end_session(f, host, tri_message());
    if (o->step <= offered) return TRI_OK;
    h->opening[o->step % 2] = *o;
    atomic_store(&h->offered, o->step);
    crew_notify(f->head);
    return TRI_OK;
}

static void count(struct ferry *f) {
    const struct mover_bytes now = mover_bytes(f->mover);
    atomic_store(&f->head->hosts.sent, f->before.sent + now.sent);
    atomic_store(&f->head->hosts.received, f->before.received + now.received);
    atomic_store(&f->head->hosts.sent_whole, f->before.whole[0] + now.whole[0]);
}

static tri_status take_event(struct ferry *f, const struct link_event *e) {
    struct peer *p = e->host >= 0 ? &f->peer[e->host] : NULL;
    if (e->what == LINK_REFUSED) return tell(f, HOST_TOLD, 0, e->why);
    if (e->what == LINK_JOINED) p->joined = true;
    if (e->what == LINK_SENT && e->token == f) {
        p->lent--;
    } else if (e->what == LINK_ARRIVED && e->header.kind == LINK_EDGE) {
        f->lacks--;
    } else if (e->what == LINK_ARRIVED && e->header.kind == LINK_VALUE) {
        if (e->header.item == OPENING) return take_opening(f, e->host);
        p->whole = true;
    } else {
        bool published = false;
        if (mover_take(f->mover, e, &published)) return end_session(f, e->host, tri_message());
        count(f);
        if (published) crew_notify(f->head);
    }
    return e->what == LINK_ENDED ? lose(f, e->host, e->why) : TRI_OK;
}

/* ---- what the head says ---- */

static bool is_peer(const struct ferry *f, int host) {
    return host != f->self && f->hosts.alive[host];
}

/* Of every peer, whether it has joined, and `what` says. */
static bool all_peers(const struct ferry *f, bool (*what)(const struct peer *p)) {
    for (int h = 0; h < f->hosts.n; h++)
        if (is_peer(f, h) && (!f->peer[h].joined || !what(&f->peer[h]))) return false;
    return true;
}

static bool agrees(const struct peer *p) { return p->whole && p->told && !p->lent; }

/* All have all of the step, and know it in this epoch. */
static bool agreed(struct ferry *f) {
    return f->step && has_all(f) && mover_has_sent(f->mover) && all_peers(f, agrees);
}

static uint64_t next_step(const struct ferry *f) {
    return f->step ? f->step + 1 : f->first ? f->first : over(f) + 1;
}

/* The host may have opened more than the epoch's step already, whose end others wait for. */
static bool may_begin(struct ferry *f) {
    return atomic_load(&f->head->course.opened) >= next_step(f) && (!f->step || agreed(f));
}

/* Whether a peer lacks the opening that this host, as the teller, has written. */
static bool may_offer(const struct ferry *f, int host) {
    const uint64_t step = atomic_load(&f->head->hosts.offered);
    return f->teller == f->self && is_peer(f, host) && f->peer[host].joined &&
           step > f->peer[host].offered && step <= over(f) + 1;
}

static bool may_tell(struct ferry *f, int host) {
    return f->step && is_peer(f, host) && f->peer[host].joined && !f->peer[host].told &&
           has_all(f);
}

/* Whether a peer that joins is to be sent its pieces. */
static bool may_give(const struct ferry *f, int host) {
    return f->step && f->step == f->first && f->joins[host] && !f->joins[f->self] &&
           f->peer[host].joined && !f->peer[host].given &&
           atomic_load(&f->head->course.committed) >= f->first;
}

/* What the head lacks yet; 0: nothing. */
static uint64_t new_over(struct ferry *f) {
    const uint64_t step = agreed(f) && f->step > over(f) ? f->step : over(f);
    return step > atomic_load(&f->head->hosts.over) ? step : 0;
}

bool ferry_wants(struct ferry *f) {
    if (base_now() > atomic_load(&f->head->hosts.lease)) return false;
    if (f->silent) return true;
    if (f->held)
        return f->reports &&
               atomic_load(&f->head->hosts.enters) <= atomic_load(&f->head->hosts.offered);
    bool wants = may_begin(f) || (f->step && mover_can_send(f->mover)) || new_over(f);
    for (int h = 0; h < f->hosts.n && !wants; h++) 
        wants = may_offer(f, h) || may_tell(f, h) || may_give(f, h);
    return wants;
}

/* ---- what follows ---- */

static tri_status send_to(struct ferry *f, int host, enum link_kind kind, uint32_t item,
                          uint64_t step, const void *at, size_t bytes) {
    const struct link_header h = {.epoch = f->epoch, .step = (uint32_t)step, .kind = kind,
                                  .item = item};
    f->peer[host].lent++;
    return link_send(f->link, host, &h, at, bytes, f);
}

/* Nothing of it changes until the step is over. */
static tri_status give(struct ferry *f, int host) {
    tri_status status = TRI_OK;
    char *at;
    uint64_t bytes;
    f->peer[host].given = true;
    for (uint32_t i = (uint32_t)donor(f, f->self); !status && piece_at(f, i, &at, &bytes);
         i += (uint32_t)f->donors)
        status = send_to(f, host, LINK_EDGE, i, f->first, at, bytes);
    return status;
}

/* Lanes of hosts that have gone. */
static void claim_more(struct ferry *f, const struct schedule *s) {
    _Atomic uint8_t *mine = view_region(f->place.view, REGION_MINE, 0);
    bool more = false;
    for (int k = 0; k < 2; k++)
        for (int lane = 0; s->phase[k].again && lane < s->of.begin[s->of.hosts]; lane++) {
            if (s->phase[k].again[lane] != f->self) continue;
            atomic_store(&mine[lane], BOARD_AGAIN);
            more = true;
        }
    if (more) crew_notify(f->head);
}

static tri_status begin_step(struct ferry *f) {
    const uint64_t next = next_step(f);
    const struct hosts_opening *o = &f->head->hosts.opening[next % 2];
    const bool rest = !f->step && f->first;
    struct schedule *s = rest ? &f->rest : &f->dealt[0];
    tri_status status = TRI_OK;
    if (!rest) {
        if (o->step != next || schedule_check(f->place.view, f->hosts.n, o))
            return base_fail(TRI_FAILED, "step %llu has no opening", (unsigned long long)next);
        s = &f->dealt[o->shape];
        status = schedule_make(f->place.view, &f->hosts, &f->place.way, o, NULL, s);
    }
    struct mover_step step = {.step = next};
    if (!joined_in(f, next)) step = schedule_step(f->place.view, s);
    step.epoch = f->epoch;
    for (int h = 0; h < f->hosts.n; h++) f->peer[h].whole = f->peer[h].told = false;
    f->step = f->spans.step = next;
    mover_watch(f->mover, ferry_spans_are_wanted(&f->spans) ? ferry_spans_note : NULL, &f->spans);
    if (!status) status = mover_begin(f->mover, &step);
    if (!status) claim_more(f, s);
    return status;
}

static tri_status follow(struct ferry *f, bool *more) {
    const struct hosts_opening *o = f->head->hosts.opening;
    tri_status status = may_begin(f) ? begin_step(f) : TRI_OK;
    *more = false;
    /* Before the sums of its step, which wait at the receiver until that has opened the step. */
    for (int h = 0; h < f->hosts.n && !status; h++)
        if (may_offer(f, h)) {
            const uint64_t step = f->peer[h].offered = atomic_load(&f->head->hosts.offered);
            status = send_to(f, h, LINK_VALUE, OPENING, step, &o[step % 2], sizeof *o);
        }
    bool published = false;
    if (!status && f->step) status = mover_send(f->mover, &published);
    if (published) crew_notify(f->head);
    for (int h = 0; h < f->hosts.n && !status; h++)
        if (may_give(f, h)) status = give(f, h);
    for (int h = 0; h < f->hosts.n && !status; h++)
        if (may_tell(f, h)) {
            f->peer[h].told = true;
            status = send_to(f, h, LINK_VALUE, WHOLE, f->step, NULL, 0);
        }
    const uint64_t step = status ? 0 : new_over(f);
    if (step && atomic_load(&f->head->hosts.lacks)) status = end_of_join(f);
    else if (step) set_over(f, step);
    *more = !status && (step || may_begin(f));
    return status;
}

tri_status ferry_work(struct ferry *f) {
    for (bool more = true; more;) {
        struct link_event e = {.what = LINK_NOTHING};
        f->silent = base_now() > atomic_load(&f->head->hosts.lease);
        if (f->silent) return TRI_OK;
        tri_status status = link_next(f->link, &e);
        if (!status) status = take_event(f, &e);
        more = false;
        if (!status) status = f->held ? try_report(f) : follow(f, &more);
        const int wrong = mover_wrong(f->mover);
        if (!status && wrong >= 0)
            status = end_session(f, wrong, "it sent a sum that nobody expects of it");
        more |= e.what != LINK_NOTHING;
        if (status) return status;
    }
    return TRI_OK;
}
