/* SPDX-License-Identifier: Apache-2.0 */
#include "ferry/mover.h"

#include <stdlib.h>
#include <string.h>

#include "ferry/mover_inside.h"

tri_status mover_open(int self, int hosts, int owner, struct mover **out) {
    struct mover *m = *out = calloc(1, sizeof *m);
    if (m) {
        *m = (struct mover){.self = self, .hosts = hosts, .owner = owner, .fresh = true,
                            .wrong = -1};
        m->lent = calloc((size_t)hosts, sizeof *m->lent);
        m->joined = calloc((size_t)hosts, sizeof *m->joined);
        m->coded = calloc((size_t)hosts + MOVER_CODED, sizeof *m->coded);
    }
    if (m && m->lent && m->joined && m->coded) return TRI_OK;
    mover_close(m);
    *out = NULL;
    return base_no_memory("a mover of sums");
}

void mover_close(struct mover *m) {
    if (!m) return;
    for (int k = 0; k < 2; k++) {
        free(m->phase[k].move);
        for (size_t b = 0; b < m->phase[k].buckets; b++) pieces_free(&m->phase[k].way[b].pieces);
        free(m->phase[k].way);
        free(m->phase[k].expects);
    }
    for (int i = 0; m->coded && i < m->hosts + MOVER_CODED; i++) free(m->coded[i].at);
    free(m->coded);
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

/* The range of a transfer in the slots. */
static void range(const struct phase *p, const struct transfer *t, uint64_t *first, uint64_t *n) {
    wire_chunk(&p->way[t->bucket].map, t->chunk, p->is.plan->chunks[t->bucket], first, n);
}

static size_t bytes_of(const struct phase *p, const struct transfer *t) {
    uint64_t first, n;
    range(p, t, &first, &n);
    return wire_bytes(&p->way[t->bucket].map, first, n);
}

/* The phase of a transfer; null: it is of an earlier epoch. */
static struct phase *phase_of(struct mover *m, const struct move *x) {
    for (int k = 0; k < 2; k++) {
        struct phase *p = &m->phase[k];
        if (p->is.tree && x >= p->move && x < p->move + p->is.plan->n) return p;
    }
    return NULL;
}

/* What a message is of the most that it could be; an empty chunk is all of it. */
static double share_of(const struct move *x, size_t most) {
    return most ? (double)x->bytes / (double)most : 1;
}

static void end_move(struct mover *m, struct move *x, int host, bool sent) {
    const struct phase *p = phase_of(m, x);
    x->state = OVER;
    if (!p) return;
    const struct transfer *t = &p->is.plan->all[x - p->move];
    const struct way *w = &p->way[t->bucket];
    uint64_t first, n;
    range(p, t, &first, &n);
    *(sent ? &m->bytes.sent : &m->bytes.received) += x->bytes;
    m->bytes.whole[!sent] += wire_slot_bytes(&w->map, first, n);
    if (m->moved)
        m->moved(m->user, &(struct mover_moved){host, (int)(p - m->phase), t->bucket, t->node,
                                                t->chunk, p->is.plan->chunks[t->bucket], sent,
                                                share_of(x, bytes_of(p, t)),
                                                x->began});
}

struct mover_bytes mover_bytes(const struct mover *m) { return m->bytes; }

/* ---- a step ---- */

static int *expected(const struct phase *p, int bucket, int node, int chunk) {
    return &p->expects[p->way[bucket].expects + node * p->is.plan->chunks[bucket] + chunk];
}

static int operands(const struct mover_phase *p) {
    return p->tree ? p->plan->buckets * p->plan->n_operands : 0;
}

static bool has_operand(const struct mover_phase *p, uint64_t step, int i) {
    const struct transfers *t = p->plan;
    return board_is_done(p->sums[i / t->n_operands].board, (uint32_t)step,
                         t->operand[i % t->n_operands]);
}

static bool is_own(const struct phase *p, int i) {
    const struct transfers *t = p->is.plan;
    return board_makes(p->is.sums[i / t->n_operands].board, t->operand[i % t->n_operands]);
}

static bool grow(void *array, size_t *capacity, size_t n, size_t element) {
    void **at = array;
    if (n <= *capacity) return true;
    free(*at);
    *at = calloc(n, element);
    *capacity = *at ? n : 0;
    return *at;
}

static tri_status grow_ways(struct phase *p, size_t n) {
    if (n <= p->buckets) return TRI_OK;
    struct way *more = realloc(p->way, n * sizeof *more);
    if (!more) return base_no_memory("the transfers of a step");
    p->way = more;
    memset(p->way + p->buckets, 0, (n - p->buckets) * sizeof *p->way);
    p->buckets = n;
    return TRI_OK;
}

/* Returns how many pieces all buckets have. */
static tri_status begin_ways(struct mover *m, struct phase *p, size_t *pieces) {
    const struct transfers *t = p->is.plan;
    tri_status status = grow_ways(p, (size_t)t->buckets);
    *pieces = 0;
    p->pieces = false;
    for (int b = 0; b < t->buckets && !status; b++) {
        struct way *w = &p->way[b];
        const struct view_sums *s = &p->is.sums[b];
        w->whole = (struct wire_part){.n = s->bytes / 4, .format = WIRE_F32};
        w->map = (struct wire_map){.part = s->part ? s->part : &w->whole,
                                   .n = s->part ? s->parts : 1};
        w->plain = wire_is_plain(&w->map);
        w->unsent = -1;
        w->here = 0;
        w->expects = (int)*pieces;
        *pieces += (size_t)p->is.tree->n_nodes * (size_t)t->chunks[b];
        w->pieces.tree = t->path[b] == PATH_EXCHANGE ? NULL : p->is.tree;
        p->pieces |= t->path[b] != PATH_EXCHANGE;
        w->pieces.sums = s;
        w->pieces.map = &w->map;
        w->pieces.owner = m->owner;
        w->pieces.key = (struct wire_key){m->seed, m->step, 0};
        if (w->pieces.tree) status = pieces_begin(&w->pieces, t, b);
    }
    return status;
}

/* A message of a chunk is at most this long. */
static tri_status grow_coded(struct mover *m, const struct phase *p) {
    size_t most = m->coded_bytes;
    for (int b = 0; b < p->is.plan->buckets; b++) {
        const struct wire_map *map = &p->way[b].map;
        if (p->way[b].plain) continue;
        const size_t bytes = wire_bytes(map, 0, wire_blocks(map));
        if (bytes > most) most = bytes;
    }
    for (int i = 0; i < m->hosts + MOVER_CODED && most > m->coded_bytes; i++) {
        free(m->coded[i].at);
        if (!(m->coded[i].at = malloc(most))) return base_no_memory("what hosts send");
    }
    m->coded_bytes = most;
    return TRI_OK;
}

static tri_status begin(struct mover *m, struct phase *p) {
    const struct transfers *t = p->is.plan;
    size_t pieces;
    p->has = 0;
    if (!p->is.tree) return TRI_OK;
    tri_status status = begin_ways(m, p, &pieces);
    if (!status) status = grow_coded(m, p);
    if (status) return status;
    if (!grow(&p->move, &p->moves, (size_t)t->n + 1, sizeof *p->move) ||
        !grow(&p->expects, &p->nodes, pieces + 1, sizeof *p->expects))
        return base_no_memory("the transfers of a step");
    for (size_t i = 0; i < pieces; i++) p->expects[i] = -1;
    for (int i = t->n - 1; i >= 0; i--) {
        const struct transfer *x = &t->all[i];
        p->move[i] = (struct move){.unsent = -1, .coded = -1, .slot = -1};
        if (x->to == m->self) *expected(p, x->bucket, x->node, x->chunk) = i;
        if (x->from != m->self) continue;
        p->move[i].unsent = p->way[x->bucket].unsent;
        p->way[x->bucket].unsent = i;
    }
    return TRI_OK;
}

/* Another mover may have died after it published a sum. */
static void repair(const struct mover *m, const struct mover_phase *p) {
    for (int i = 0; i < operands(p); i++)
        board_end_below(p->sums[i / p->plan->n_operands].board, (uint32_t)m->step, m->owner,
                        p->plan->operand[i % p->plan->n_operands]);
    for (int b = 0; p->tree && b < p->plan->buckets; b++)
        if (board_holds(p->sums[b].board, (uint32_t)m->step, p->tree->n_nodes - 1))
            board_end_below(p->sums[b].board, (uint32_t)m->step, m->owner, p->tree->n_nodes - 1);
}

static bool lends(const struct mover *m) {
    int lent = 0;
    for (int host = 0; host < m->hosts; host++) lent += m->lent[host];
    return lent;
}

/* Whether the link, or a transfer that waits, reads a slot of pieces. */
static bool reads_pieces(const struct mover *m, const struct phase *p) {
    for (int b = 0; b < p->is.plan->buckets; b++)
        if (p->way[b].pieces.tree && (p->way[b].unsent >= 0 || !p->way[b].pieces.is_over))
            return true;
    return lends(m);
}

/* Slots that are not published are free again before the step is over. */
static void let_go(const struct mover *m, struct phase *p) {
    if (!p->is.tree || !p->pieces || reads_pieces(m, p)) return;
    for (int b = 0; b < p->is.plan->buckets; b++) pieces_drop(&p->way[b].pieces);
}

tri_status mover_begin(struct mover *m, const struct mover_step *s) {
    CHECK(!m->arriving && !lends(m));
    for (int k = 0; k < 2; k++) let_go(m, &m->phase[k]);
    m->epoch = s->epoch;
    m->step = s->step;
    m->seed = s->seed;
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

/* A buffer with the bytes of a transfer, coded by now; null: all are used. */
static struct coded *code(struct mover *m, const struct phase *p, const struct transfer *x) {
    const int k = (int)(p - m->phase);
    struct coded *free = NULL;
    for (struct coded *c = m->coded; c < m->coded + MOVER_CODED; c++) {
        if (!c->users) free = c;
        else if (c->phase == k && c->bucket == x->bucket && c->node == x->node &&
                 c->chunk == x->chunk)
            return c;
    }
    return free;
}

static char *slot_of(struct phase *p, int bucket, int node) {
    const struct view_sums *s = &p->is.sums[bucket];
    struct pieces *pieces = &p->way[bucket].pieces;
    return pieces->tree
               ? pieces_slot(pieces, node)
               : s->slots + s->stride * (size_t)board_slot_of(s->board, node);
}

static bool is_there(struct mover *m, struct phase *p, const struct transfer *x) {
    const struct pieces *pieces = &p->way[x->bucket].pieces;
    return pieces->tree ? pieces_has(pieces, x->node, x->chunk)
                        : board_is_done(p->is.sums[x->bucket].board, (uint32_t)m->step, x->node);
}

static bool can_send(struct mover *m, struct phase *p, int i) {
    const struct transfer *x = &p->is.plan->all[i];
    return m->joined[x->to] && is_there(m, p, x) &&
           (p->way[x->bucket].plain || code(m, p, x));
}

static tri_status send(struct mover *m, int k, int i) {
    struct phase *p = &m->phase[k];
    const struct transfer *x = &p->is.plan->all[i];
    const struct way *w = &p->way[x->bucket];
    const struct link_header h = {.epoch = m->epoch, .step = (uint32_t)m->step, .kind = LINK_SUM,
                                  .item = (uint32_t)x->bucket, .node = (uint32_t)x->node,
                                  .part = (uint32_t)k, .format = !w->plain,
                                  .offset = (uint64_t)x->chunk};
    const char *from = slot_of(p, x->bucket, x->node);
    uint64_t first, n;
    range(p, x, &first, &n);
    p->move[i].bytes = bytes_of(p, x);
    if (w->plain) {
        from += first * WIRE_BLOCK * sizeof(float);
    } else {
        struct coded *c = code(m, p, x);
        if (!c->users) {
            *c = (struct coded){.at = c->at, .phase = k, .bucket = x->bucket, .node = x->node,
                                .chunk = x->chunk};
            c->bytes = wire_put(&w->map, from, first, n, c->at);
        }
        c->users++;
        p->move[i].coded = (int)(c - m->coded);
        p->move[i].bytes = c->bytes;
        from = (const char *)c->at;
    }
    begin_move(m, &p->move[i]);
    m->lent[x->to]++;
    return link_send(m->link, x->to, &h, from, p->move[i].bytes, &p->move[i]);
}

void mover_send_late(struct mover *m) { m->late = true; }

/* Whether the phase's sums can be sent, as far as others are concerned. */
static bool is_time(const struct mover *m, const struct phase *p) {
    for (int i = 0; m->late && i < operands(&p->is); i++)
        if (is_own(p, i) && !has_operand(&p->is, m->step, i)) return false;
    return p->is.tree;
}

static void look(struct phase *p) {
    for (int b = 0; p->is.tree && b < p->is.plan->buckets; b++)
        if (p->way[b].pieces.tree) pieces_look(&p->way[b].pieces);
}

/* Of each bucket in the schedule's order, but none waits for one that is late; if no buffer is
 * free, all wait that are coded. */
tri_status mover_send(struct mover *m, bool *published) {
    for (int k = 0; k < 2; k++) {
        struct phase *p = &m->phase[k];
        const bool now = is_time(m, p);
        look(p);
        for (int b = 0; now && b < p->is.plan->buckets; b++)
            for (int *at = &p->way[b].unsent; *at >= 0;) {
                const int i = *at;
                tri_status status = TRI_OK;
                if (!can_send(m, p, i)) {
                    at = &p->move[i].unsent;
                    continue;
                }
                *at = p->move[i].unsent;
                if ((status = send(m, k, i))) return status;
            }
        *published |= mover_publish(m, p);
        let_go(m, p);
    }
    return TRI_OK;
}

bool mover_can_send(struct mover *m) {
    for (int k = 0; k < 2; k++) {
        struct phase *p = &m->phase[k];
        const bool now = is_time(m, p);
        if (mover_can_publish(m, p)) return true;
        for (int b = 0; now && b < p->is.plan->buckets; b++) {
            if (p->way[b].pieces.tree && pieces_wants(&p->way[b].pieces)) return true;
            for (int i = p->way[b].unsent; i >= 0; i = p->move[i].unsent)
                if (can_send(m, p, i)) return true;
        }
    }
    return false;
}

bool mover_has_sent(const struct mover *m) {
    for (int k = 0; k < 2; k++) {
        const struct phase *p = &m->phase[k];
        for (int b = 0; p->is.tree && b < p->is.plan->buckets; b++)
            if (p->way[b].unsent >= 0) return false;
    }
    return !lends(m);
}

/* ---- receiving ---- */

/* The transfer that a header announces; null: none that is expected. */
static struct move *announced(struct mover *m, int host, const struct link_header *h) {
    const struct phase *p = &m->phase[h->part == 1];
    const struct transfers *t = p->is.plan;
    if (h->epoch != m->epoch || h->step != (uint32_t)m->step || h->part > 1 || !p->is.tree ||
        h->item >= (uint32_t)t->buckets || h->node >= (uint32_t)p->is.tree->n_nodes ||
        h->offset >= (uint64_t)t->chunks[h->item])
        return NULL;
    const int i = *expected(p, (int)h->item, (int)h->node, (int)h->offset);
    if (i < 0 || t->all[i].from != host || h->format != !p->way[h->item].plain ||
        h->length > bytes_of(p, &t->all[i]) ||
        (h->length < bytes_of(p, &t->all[i]) && !wire_is_packed(&p->way[h->item].map)))
        return NULL;
    return &p->move[i];
}

/* Messages of a peer are in order: whatever it sent for this step came before one of a later step.
 * So no message that this step needs comes after one of a later step. */
static bool is_later(const struct mover *m, const struct link_header *h) {
    return m->fresh || (int32_t)(h->step - (uint32_t)m->step) > 0;
}

void *mover_where(void *user, int host, const struct link_header *h) {
    struct mover *m = user;
    if (h->kind != LINK_SUM) return NULL;
    if (is_later(m, h)) return LINK_LATER;
    struct move *x = announced(m, host, h);
    if (!x || x->state != WAITS) {
        if (h->epoch == m->epoch && h->step == (uint32_t)m->step) m->wrong = host;
        return NULL;
    }
    struct phase *p = &m->phase[h->part];
    struct way *w = &p->way[h->item];
    const struct view_sums *s = &p->is.sums[h->item];
    uint64_t first, n;
    char *slot;
    range(p, &p->is.plan->all[x - p->move], &first, &n);
    struct coded *in = &m->coded[MOVER_CODED + host];
    if (!w->plain && in->users) return LINK_LATER; /* the message before has not been decoded */
    x->state = OVER;
    /* The host has computed it, as an earlier epoch asked. */
    if (board_is_done(s->board, (uint32_t)m->step, (int)h->node)) return NULL;
    begin_move(m, x);
    x->bytes = (size_t)h->length;
    m->arriving++;
    if (w->pieces.tree) {
        slot = pieces_slot(&w->pieces, (int)h->node);
    } else {
        x->slot = board_take(s->board, (uint32_t)m->step, m->owner, (int)h->node);
        slot = s->slots + s->stride * (size_t)x->slot;
    }
    if (!w->plain) in->users = 1;
    return w->plain ? slot + first * WIRE_BLOCK * sizeof(float) : (char *)in->at;
}

/* Decodes what has arrived. */
static tri_status decode(struct mover *m, struct phase *p, const struct move *x, int host) {
    const struct transfer *t = &p->is.plan->all[x - p->move];
    struct way *w = &p->way[t->bucket];
    const struct view_sums *s = &p->is.sums[t->bucket];
    struct coded *in = &m->coded[MOVER_CODED + host];
    struct wire_map map = w->map;
    uint64_t first, n;
    range(p, t, &first, &n);
    if (w->plain) return TRI_OK;
    const int top = p->is.tree->node[t->node].top;
    if (top >= 0 && s->values) map.estimate = s->values + s->apart * (size_t)top;
    tri_status status = wire_take(&map, in->at, x->bytes, first, n,
                                  w->pieces.tree ? pieces_slot(&w->pieces, t->node)
                                                 : s->slots + s->stride * (size_t)x->slot);
    in->users = 0;
    if (!status) link_resume(m->link, host);
    return status;
}

static tri_status arrived(struct mover *m, const struct link_event *e) {
    const struct link_header *h = &e->header;
    struct move *x = announced(m, e->host, h);
    CHECK(x && x->state == ON_ITS_WAY);
    struct phase *p = &m->phase[h->part];
    struct way *w = &p->way[h->item];
    tri_status status = decode(m, p, x, e->host);
    if (status) return status;
    end_move(m, x, e->host, false);
    if (w->pieces.tree) {
        m->arriving--;
        pieces_put(&w->pieces, (int)h->node, (int)h->offset);
    } else {
        x->state = HERE;
        w->here++;
    }
    return TRI_OK;
}

static void drop(struct mover *m, struct phase *p, int i) {
    const struct transfer *x = &p->is.plan->all[i];
    if (!p->way[x->bucket].pieces.tree)
        board_drop(p->is.sums[x->bucket].board, (uint32_t)m->step, m->owner, x->node,
                   p->move[i].slot);
    m->arriving--;
    p->way[x->bucket].here -= p->move[i].state == HERE;
    p->move[i].state = WAITS;
}

/* What the peer had may be lost: a new epoch must follow. */
static void lose(struct mover *m, int host) {
    m->lent[host] = 0;
    m->joined[host] = false;
    m->coded[MOVER_CODED + host].users = 0;
    for (int k = 0; k < 2; k++) {
        struct phase *p = &m->phase[k];
        for (int i = 0; p->is.tree && i < p->is.plan->n; i++) {
            const struct transfer *x = &p->is.plan->all[i];
            if (x->from == host && x->to == m->self && p->move[i].state == ON_ITS_WAY)
                drop(m, p, i);
            if (x->to != host || p->move[i].state != ON_ITS_WAY || p->move[i].coded < 0) continue;
            m->coded[p->move[i].coded].users--;
            p->move[i].coded = -1;
        }
    }
}

void mover_stop(struct mover *m) {
    for (int host = 0; host < m->hosts; host++) lose(m, host);
    for (int k = 0; k < 2; k++) {
        struct phase *p = &m->phase[k];
        for (int i = 0; p->is.tree && i < p->is.plan->n; i++)
            if (p->move[i].state == HERE) drop(m, p, i);
        for (int b = 0; p->is.tree && b < p->is.plan->buckets; b++)
            if (p->way[b].pieces.tree) pieces_drop(&p->way[b].pieces);
        p->is = (struct mover_phase){0};
    }
    m->fresh = true;
}

int mover_wrong(struct mover *m) {
    const int host = m->wrong;
    m->wrong = -1;
    return host;
}

tri_status mover_take(struct mover *m, const struct link_event *e, bool *published) {
    tri_status status = TRI_OK;
    if (e->what == LINK_SENT) {
        struct move *x = e->token;
        if (x->coded >= 0) m->coded[x->coded].users--;
        x->coded = -1;
        end_move(m, x, e->host, true);
        m->lent[e->host]--;
    }
    if (e->what == LINK_JOINED) m->joined[e->host] = true;
    if (e->what == LINK_ENDED) lose(m, e->host);
    if (e->what != LINK_ARRIVED || e->header.kind != LINK_SUM) return TRI_OK;
    status = arrived(m, e);
    for (int k = 0; k < 2 && !status; k++) *published |= mover_publish(m, &m->phase[k]);
    return status;
}

/* What a thread has made may still be arriving, as a root whose operands had come before. */
bool mover_has_all(struct mover *m) {
    if (m->arriving) return false;
    for (int k = 0; k < 2; k++) {
        struct phase *p = &m->phase[k];
        for (; p->has < operands(&p->is); p->has++)
            if (!has_operand(&p->is, m->step, p->has)) return false;
    }
    return true;
}

/* An operand that came with the root has no slot of its own. */
static bool holds(const struct mover_phase *p, uint64_t step, int bucket, int k) {
    const int node = k < p->plan->n_operands ? p->plan->operand[k] : p->tree->n_nodes - 1;
    return board_holds(p->sums[bucket].board, (uint32_t)step, node);
}

uint32_t mover_report(const struct mover_step *s, uint8_t *has) {
    uint32_t n = 0;
    for (int k = 0; k < 2; k++)
        for (int b = 0; s->phase[k].tree && b < s->phase[k].plan->buckets; b++)
            for (int i = 0; i <= s->phase[k].plan->n_operands; i++, n++)
                if (has && holds(&s->phase[k], s->step, b, i)) has[n / 8] |= (uint8_t)(1u << n % 8);
    return n;
}
