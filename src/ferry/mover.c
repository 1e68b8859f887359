/* SPDX-License-Identifier: Apache-2.0 */
#include "ferry/mover.h"

#include <stdlib.h>

enum state {
    WAITS,
    ON_ITS_WAY, /* given to the link; or its payload is arriving */
    OVER,
};

/* A payload of an epoch that is over, which the link may still write. */
struct late {
    int host, bucket, node, slot;
    uint32_t epoch, step;
};

struct mover {
    struct mover_place place;
    struct link *link;
    uint32_t epoch, step;
    struct {
        enum state state;
        int slot; /* that a payload is arriving in */
    } *of;        /* by transfer; of those that concern this host */
    int *expects; /* [bucket][node]: the transfer to this host; -1: none */
    int to_come, to_send;
    uintptr_t begins; /* how often mover_begin was called: a part of tokens */
    int *borrowed;    /* by host: payloads that the link has, of all epochs */
    bool *joined;     /* by host */
    struct late *late;
    size_t n_late, late_capacity;
};

static int *expected(const struct mover *m, uint32_t bucket, uint32_t node) {
    return &m->expects[(size_t)bucket * (size_t)m->place.tree->n_nodes + node];
}

tri_status mover_open(const struct mover_place *place, struct mover **out) {
    const struct transfers *plan = place->plan;
    const size_t nodes = (size_t)plan->buckets * (size_t)place->tree->n_nodes;
    struct mover *m = calloc(1, sizeof *m);
    *out = m;
    if (m) {
        m->place = *place;
        m->of = calloc((size_t)plan->n + 1, sizeof *m->of);
        m->expects = malloc(sizeof *m->expects * nodes + 1);
        m->borrowed = calloc((size_t)plan->hosts, sizeof *m->borrowed);
        m->joined = calloc((size_t)plan->hosts, sizeof *m->joined);
    }
    if (!m || !m->of || !m->expects || !m->borrowed || !m->joined) {
        mover_close(m);
        *out = NULL;
        return base_no_memory("a mover of sums");
    }
    for (size_t i = 0; i < nodes; i++) m->expects[i] = -1;
    for (int i = 0; i < plan->n; i++)
        if (plan->all[i].to == place->self)
            *expected(m, (uint32_t)plan->all[i].bucket, (uint32_t)plan->all[i].node) = i;
    return TRI_OK;
}

void mover_close(struct mover *m) {
    if (!m) return;
    free(m->of);
    free(m->expects);
    free(m->borrowed);
    free(m->joined);
    free(m->late);
    free(m);
}

void mover_bind(struct mover *m, struct link *l) { m->link = l; }

/* ---- a step ---- */

static void drop(struct mover *m, const struct late *l) {
    board_drop(m->place.bucket[l->bucket].board, l->step, m->place.owner, l->node, l->slot);
}

static struct late coming(const struct mover *m, int i) {
    const struct transfer *x = &m->place.plan->all[i];
    return (struct late){x->from, x->bucket, x->node, m->of[i].slot, m->epoch, m->step};
}

/* Drops what has come late of this host: the message; null: all of it. */
static void drop_late(struct mover *m, int host, const struct link_header *h) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_late; i++) {
        const struct late *l = &m->late[i];
        if (l->host == host &&
            (!h || (h->epoch == l->epoch && h->step == l->step &&
                    h->item == (uint32_t)l->bucket && h->node == (uint32_t)l->node)))
            drop(m, l);
        else m->late[n++] = *l;
    }
    m->n_late = n;
}

static void claim_others(struct mover *m) {
    const int lanes = m->place.tree->lanes, self = m->place.self;
    for (int k = 0; k < m->place.plan->buckets; k++)
        for (int lane = 0; lane < lanes; lane++)
            if (lane < m->place.begin[self] || lane >= m->place.begin[self + 1])
                board_claim(m->place.bucket[k].board, m->step, m->place.owner, lane);
}

tri_status mover_begin(struct mover *m, uint32_t epoch, uint32_t step) {
    const struct transfers *plan = m->place.plan;
    m->to_come = m->to_send = 0;
    for (int i = 0; i < plan->n; i++) {
        const bool comes = plan->all[i].to == m->place.self;
        if (comes && m->of[i].state == ON_ITS_WAY) {
            if (!ARRAY_GROW(m->late, m->n_late, m->late_capacity))
                return base_no_memory("payloads of an earlier epoch");
            m->late[m->n_late++] = coming(m, i);
        }
        m->of[i].state = WAITS;
        m->to_come += comes;
        m->to_send += plan->all[i].from == m->place.self;
    }
    m->epoch = epoch;
    m->step = step;
    m->begins++;
    claim_others(m);
    for (int host = 0; host < plan->hosts; host++)
        if (host != m->place.self) link_resume(m->link, host);
    return TRI_OK;
}

/* ---- sending ---- */

static void *token(const struct mover *m, int i) {
    return (void *)(m->begins * (uintptr_t)m->place.plan->n + (uintptr_t)i);
}

static tri_status send(struct mover *m, int i) {
    const struct transfer *x = &m->place.plan->all[i];
    const struct mover_bucket *b = &m->place.bucket[x->bucket];
    const struct link_header h = {.epoch = m->epoch, .step = m->step, .kind = LINK_SUM,
                                  .item = (uint32_t)x->bucket, .node = (uint32_t)x->node,
                                  .format = (uint32_t)x->format};
    const char *slot = b->slots + b->stride * (size_t)board_slot_of(b->board, x->node);
    m->of[i].state = ON_ITS_WAY;
    m->borrowed[x->to]++;
    return link_send(m->link, x->to, &h, slot, b->bytes, token(m, i));
}

/* In the schedule's order, but none waits for one that is late. */
tri_status mover_send(struct mover *m) {
    const struct transfers *plan = m->place.plan;
    tri_status status = TRI_OK;
    for (int i = plan->first[m->place.self]; i < plan->first[m->place.self + 1] && !status; i++) {
        const struct transfer *x = &plan->all[i];
        struct board *b = m->place.bucket[x->bucket].board;
        if (m->of[i].state == WAITS && m->joined[x->to] && board_is_done(b, m->step, x->node))
            status = send(m, i);
    }
    return status;
}

/* ---- receiving ---- */

/* The transfer that a header announces; -1: none that is expected. */
static int announced(const struct mover *m, int host, const struct link_header *h) {
    const struct transfers *plan = m->place.plan;
    if (h->item >= (uint32_t)plan->buckets || h->node >= (uint32_t)m->place.tree->n_nodes)
        return -1;
    const int i = *expected(m, h->item, h->node);
    if (i < 0 || plan->all[i].from != host || h->format != (uint32_t)plan->all[i].format ||
        h->length != m->place.bucket[h->item].bytes || h->offset || h->part)
        return -1;
    return i;
}

/* Messages of a peer are in order: whatever it sent for this step came before one of a later step.
 * So nothing that this step needs waits behind that. */
static bool is_later(const struct mover *m, const struct link_header *h) {
    const int32_t epochs = (int32_t)(h->epoch - m->epoch), steps = (int32_t)(h->step - m->step);
    return !m->begins || epochs > 0 || (!epochs && steps > 0);
}

void *mover_where(void *user, int host, const struct link_header *h) {
    struct mover *m = user;
    if (h->kind != LINK_SUM) return NULL;
    if (is_later(m, h)) return LINK_LATER;
    const int i = announced(m, host, h);
    if (h->epoch != m->epoch || h->step != m->step || i < 0 || m->of[i].state != WAITS) return NULL;
    const struct mover_bucket *b = &m->place.bucket[h->item];
    m->of[i].slot = board_take(b->board, m->step, m->place.owner, (int)h->node);
    m->of[i].state = ON_ITS_WAY;
    return b->slots + b->stride * (size_t)m->of[i].slot;
}

static void arrived(struct mover *m, const struct link_event *e) {
    const int i = announced(m, e->host, &e->header);
    if (e->header.step != m->step || e->header.epoch != m->epoch) {
        drop_late(m, e->host, &e->header);
        return;
    }
    const struct transfer *x = &m->place.plan->all[i];
    board_publish_whole(m->place.bucket[x->bucket].board, m->step, m->place.owner, x->node,
                        m->of[i].slot);
    m->of[i].state = OVER;
    m->to_come--;
}

static void sent(struct mover *m, const struct link_event *e) {
    const uintptr_t n = (uintptr_t)m->place.plan->n, of = (uintptr_t)e->token;
    m->borrowed[e->host]--;
    if (of / n != m->begins) return;
    m->of[of % n].state = OVER;
    m->to_send--;
}

void mover_lose(struct mover *m, int host) {
    const struct transfers *plan = m->place.plan;
    m->borrowed[host] = 0;
    m->joined[host] = false;
    drop_late(m, host, NULL);
    for (int i = 0; i < plan->n; i++) {
        const bool comes = plan->all[i].from == host && plan->all[i].to == m->place.self;
        const bool goes = plan->all[i].to == host && plan->all[i].from == m->place.self;
        if (m->of[i].state != ON_ITS_WAY || !(comes || goes)) continue;
        const struct late l = coming(m, i);
        if (comes) drop(m, &l);
        m->of[i].state = WAITS;
    }
}

tri_status mover_take(struct mover *m, const struct link_event *e, bool *published) {
    *published = false;
    if (e->what == LINK_SENT) {
        sent(m, e);
    } else if (e->what == LINK_ARRIVED && e->header.kind == LINK_SUM) {
        arrived(m, e);
        *published = true;
        return mover_send(m); /* some may be sent on */
    } else if (e->what == LINK_ENDED) {
        mover_lose(m, e->host);
    } else if (e->what == LINK_JOINED) {
        m->joined[e->host] = true;
        return mover_send(m);
    }
    return TRI_OK;
}

bool mover_has_all(const struct mover *m) { return !m->to_come; }
bool mover_is_over(const struct mover *m) {
    int borrowed = 0;
    for (int host = 0; host < m->place.plan->hosts; host++) borrowed += m->borrowed[host];
    return !m->to_come && !m->to_send && !borrowed;
}
