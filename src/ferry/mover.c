/* SPDX-License-Identifier: Apache-2.0 */
#include "ferry/mover.h"

#include <stdlib.h>

/* A transfer from or to this host. */
struct move {
    enum { WAITS, ON_ITS_WAY, OVER } state; /* on its way: given to the link, or arriving */
    int slot;   /* that a payload is arriving in */
    int64_t began; /* when it was given to the link, or announced; if it is watched */
    int unsent; /* the next one of the bucket; -1: none */
};

/* Memory grows only. */
struct phase {
    struct mover_phase is;
    struct move *move; /* by transfer */
    int *unsent;       /* by bucket: the first transfer from this host that waits; -1: none */
    int *expects;      /* [bucket][node]: the transfer to this host; -1: none */
    int has;           /* the first of [bucket][operand] that was not there at the last look */
    size_t moves, buckets, nodes;
};

struct mover {
    int self, hosts, owner;
    struct link *link;
    uint32_t epoch, step;
    bool fresh; /* the epoch has begun, and no step in it */
    bool late;  /* see mover_send_late */
    struct phase phase[2];
    int *lent;    /* by host: payloads that the link has */
    bool *joined; /* by host */
    int arriving;
    void (*moved)(void *user, const struct mover_moved *is); /* null: nobody watches */
    void *user;
};

tri_status mover_open(int self, int hosts, int owner, struct mover **out) {
    struct mover *m = *out = calloc(1, sizeof *m);
    if (m) {
        *m = (struct mover){.self = self, .hosts = hosts, .owner = owner, .fresh = true};
        m->lent = calloc((size_t)hosts, sizeof *m->lent);
        m->joined = calloc((size_t)hosts, sizeof *m->joined);
    }
    if (m && m->lent && m->joined) return TRI_OK;
    mover_close(m);
    *out = NULL;
    return base_no_memory("a mover of sums");
}

void mover_close(struct mover *m) {
    if (!m) return;
    for (int k = 0; k < 2; k++) {
        free(m->phase[k].move);
        free(m->phase[k].unsent);
        free(m->phase[k].expects);
    }
    free(m->lent);
    free(m->joined);
    free(m);
}

void mover_bind(struct mover *m, struct link *l) { m->link = l; }

void mover_watch(struct mover *m, void (*moved)(void *user, const struct mover_moved *is),
                 void *user) {
    m->moved = moved;
    m->user = user;
}

static void begin_move(const struct mover *m, struct move *x) {
    x->state = ON_ITS_WAY;
    if (m->moved) x->began = base_now();
}

static void end_move(const struct mover *m, struct move *x, int host, bool sent) {
    x->state = OVER;
    for (int k = 0; m->moved && k < 2; k++) {
        const struct phase *p = &m->phase[k];
        if (!p->is.tree || x < p->move || x >= p->move + p->is.plan->n) continue;
        const struct transfer *t = &p->is.plan->all[x - p->move];
        m->moved(m->user, &(struct mover_moved){host, k, t->bucket, t->node, sent, x->began});
    }
}

/* ---- a step ---- */

static int *expected(const struct phase *p, int bucket, int node) {
    return &p->expects[bucket * p->is.tree->n_nodes + node];
}

static int operands(const struct mover_phase *p) {
    return p->tree ? p->plan->buckets * p->plan->n_operands : 0;
}

static bool has_operand(const struct mover_phase *p, uint32_t step, int i) {
    const struct transfers *t = p->plan;
    return board_is_done(p->sums[i / t->n_operands].board, step, t->operand[i % t->n_operands]);
}

static bool grow(void *array, size_t *capacity, size_t n, size_t element) {
    void **at = array;
    if (n <= *capacity) return true;
    free(*at);
    *at = calloc(n, element);
    *capacity = *at ? n : 0;
    return *at;
}

static tri_status begin(struct mover *m, struct phase *p) {
    const struct transfers *t = p->is.plan;
    p->has = 0;
    if (!p->is.tree) return TRI_OK;
    const size_t nodes = (size_t)t->buckets * (size_t)p->is.tree->n_nodes;
    if (!grow(&p->move, &p->moves, (size_t)t->n + 1, sizeof *p->move) ||
        !grow(&p->unsent, &p->buckets, (size_t)t->buckets + 1, sizeof *p->unsent) ||
        !grow(&p->expects, &p->nodes, nodes + 1, sizeof *p->expects))
        return base_no_memory("the transfers of a step");
    for (size_t i = 0; i < nodes; i++) p->expects[i] = -1;
    for (int b = 0; b < t->buckets; b++) p->unsent[b] = -1;
    for (int i = t->n - 1; i >= 0; i--) {
        const struct transfer *x = &t->all[i];
        p->move[i] = (struct move){.unsent = -1};
        if (x->to == m->self) *expected(p, x->bucket, x->node) = i;
        if (x->from != m->self) continue;
        p->move[i].unsent = p->unsent[x->bucket];
        p->unsent[x->bucket] = i;
    }
    return TRI_OK;
}

/* Another mover may have died after it published a sum. */
static void repair(const struct mover *m, const struct mover_phase *p) {
    for (int i = 0; i < operands(p); i++)
        board_end_below(p->sums[i / p->plan->n_operands].board, m->step, m->owner,
                        p->plan->operand[i % p->plan->n_operands]);
}

static bool lends(const struct mover *m) {
    int lent = 0;
    for (int host = 0; host < m->hosts; host++) lent += m->lent[host];
    return lent;
}

tri_status mover_begin(struct mover *m, const struct mover_step *s) {
    CHECK(!m->arriving && !lends(m));
    m->epoch = s->epoch;
    m->step = s->step;
    tri_status status = TRI_OK;
    for (int k = 0; k < 2 && !status; k++) {
        m->phase[k].is = s->phase[k];
        status = begin(m, &m->phase[k]);
        if (m->fresh && !status) repair(m, &s->phase[k]);
    }
    m->fresh = false;
    for (int host = 0; host < m->hosts; host++)
        if (m->joined[host]) link_resume(m->link, host);
    return status;
}

/* ---- sending ---- */

static bool can_send(const struct mover *m, const struct phase *p, int i) {
    const struct transfer *x = &p->is.plan->all[i];
    return m->joined[x->to] && board_is_done(p->is.sums[x->bucket].board, m->step, x->node);
}

static tri_status send(struct mover *m, int k, int i) {
    const struct phase *p = &m->phase[k];
    const struct transfer *x = &p->is.plan->all[i];
    const struct view_sums *s = &p->is.sums[x->bucket];
    const struct link_header h = {.epoch = m->epoch, .step = m->step, .kind = LINK_SUM,
                                  .item = (uint32_t)x->bucket, .node = (uint32_t)x->node,
                                  .part = (uint32_t)k, .format = (uint32_t)x->format};
    const char *slot = s->slots + s->stride * (size_t)board_slot_of(s->board, x->node);
    begin_move(m, &p->move[i]);
    m->lent[x->to]++;
    return link_send(m->link, x->to, &h, slot, s->bytes, &p->move[i]);
}

void mover_send_late(struct mover *m) { m->late = true; }

/* Whether the phase's sums can be sent, as far as others are concerned. */
static bool is_time(const struct mover *m, const struct phase *p) {
    for (int b = 0; m->late && p->is.tree && b < p->is.plan->buckets; b++)
        for (int i = p->unsent[b]; i >= 0; i = p->move[i].unsent)
            if (!board_is_done(p->is.sums[b].board, m->step, p->is.plan->all[i].node)) return false;
    return p->is.tree;
}

/* Of each bucket in the schedule's order, but none waits for one that is late. */
tri_status mover_send(struct mover *m) {
    for (int k = 0; k < 2; k++) {
        const struct phase *p = &m->phase[k];
        const bool now = is_time(m, p);
        for (int b = 0; now && b < p->is.plan->buckets; b++)
            for (int *at = &p->unsent[b]; *at >= 0;) {
                const int i = *at;
                tri_status status = TRI_OK;
                if (!can_send(m, p, i)) {
                    at = &p->move[i].unsent;
                    continue;
                }
                *at = p->move[i].unsent;
                if ((status = send(m, k, i))) return status;
            }
    }
    return TRI_OK;
}

bool mover_can_send(struct mover *m) {
    for (int k = 0; k < 2; k++) {
        const struct phase *p = &m->phase[k];
        const bool now = is_time(m, p);
        for (int b = 0; now && b < p->is.plan->buckets; b++)
            for (int i = p->unsent[b]; i >= 0; i = p->move[i].unsent)
                if (can_send(m, p, i)) return true;
    }
    return false;
}

bool mover_has_sent(const struct mover *m) {
    for (int k = 0; k < 2; k++) {
        const struct phase *p = &m->phase[k];
        for (int b = 0; p->is.tree && b < p->is.plan->buckets; b++)
            if (p->unsent[b] >= 0) return false;
    }
    return !lends(m);
}

/* ---- receiving ---- */

/* The transfer that a header announces; null: none that is expected. */
static struct move *announced(struct mover *m, int host, const struct link_header *h) {
    const struct phase *p = &m->phase[h->part == 1];
    const struct transfers *t = p->is.plan;
    if (h->epoch != m->epoch || h->step != m->step || h->part > 1 || !p->is.tree ||
        h->item >= (uint32_t)t->buckets || h->node >= (uint32_t)p->is.tree->n_nodes)
        return NULL;
    const int i = *expected(p, (int)h->item, (int)h->node);
    if (i < 0 || t->all[i].from != host || h->format != (uint32_t)t->all[i].format ||
        h->length != p->is.sums[h->item].bytes || h->offset)
        return NULL;
    return &p->move[i];
}

/* Messages of a peer are in order: whatever it sent for this step came before one of a later step.
 * So no message that this step needs comes after one of a later step. */
static bool is_later(const struct mover *m, const struct link_header *h) {
    return m->fresh || (int32_t)(h->step - m->step) > 0;
}

void *mover_where(void *user, int host, const struct link_header *h) {
    struct mover *m = user;
    if (h->kind != LINK_SUM) return NULL;
    if (is_later(m, h)) return LINK_LATER;
    struct move *x = announced(m, host, h);
    if (!x || x->state != WAITS) return NULL;
    const struct view_sums *s = &m->phase[h->part].is.sums[h->item];
    x->state = OVER;
    /* The host has computed it, as an earlier epoch asked. */
    if (board_is_done(s->board, m->step, (int)h->node)) return NULL;
    begin_move(m, x);
    x->slot = board_take(s->board, m->step, m->owner, (int)h->node);
    m->arriving++;
    return s->slots + s->stride * (size_t)x->slot;
}

static void arrived(struct mover *m, const struct link_event *e) {
    const struct link_header *h = &e->header;
    struct move *x = announced(m, e->host, h);
    CHECK(x && x->state == ON_ITS_WAY);
    board_publish_whole(m->phase[h->part].is.sums[h->item].board, m->step, m->owner, (int)h->node,
                        x->slot);
    end_move(m, x, e->host, false);
    m->arriving--;
}

/* What the peer had may be lost: a new epoch must follow. */
static void lose(struct mover *m, int host) {
    m->lent[host] = 0;
    m->joined[host] = false;
    for (int k = 0; k < 2; k++) {
        const struct phase *p = &m->phase[k];
        for (int i = 0; p->is.tree && i < p->is.plan->n; i++) {
            const struct transfer *x = &p->is.plan->all[i];
            if (x->from != host || x->to != m->self || p->move[i].state != ON_ITS_WAY) continue;
            board_drop(p->is.sums[x->bucket].board, m->step, m->owner, x->node, p->move[i].slot);
            p->move[i].state = WAITS;
            m->arriving--;
        }
    }
}

void mover_stop(struct mover *m) {
    for (int host = 0; host < m->hosts; host++) lose(m, host);
    for (int k = 0; k < 2; k++) m->phase[k].is = (struct mover_phase){0};
    m->fresh = true;
}

bool mover_take(struct mover *m, const struct link_event *e) {
    if (e->what == LINK_SENT) {
        end_move(m, e->token, e->host, true);
        m->lent[e->host]--;
    }
    if (e->what == LINK_JOINED) m->joined[e->host] = true;
    if (e->what == LINK_ENDED) lose(m, e->host);
    if (e->what != LINK_ARRIVED || e->header.kind != LINK_SUM) return false;
    arrived(m, e);
    return true;
}

bool mover_has_all(struct mover *m) {
    for (int k = 0; k < 2; k++) {
        struct phase *p = &m->phase[k];
        for (; p->has < operands(&p->is); p->has++)
            if (!has_operand(&p->is, m->step, p->has)) return false;
    }
    return true;
}

uint32_t mover_report(const struct mover_step *s, uint8_t *has) {
    uint32_t n = 0;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < operands(&s->phase[k]); i++, n++)
            if (has && has_operand(&s->phase[k], s->step, i))
                has[n / 8] |= (uint8_t)(1u << n % 8);
    return n;
}
