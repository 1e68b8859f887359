/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/spend.h"

#include <stddef.h>

#include "base/base.h"
#include "crew/ring.h"

const struct spent_row spent_rows[SPENTS] = {
#define ROW(name, text, group, what) {text, SPENT_##group, what},
    EVERY_SPENT(ROW)
};

static _Thread_local struct spender *mine; /* null also while it is paused */
static _Thread_local struct spender *owner;

atomic_bool spend_records;

static int64_t get(const _Atomic int64_t *from) {
    return atomic_load_explicit(from, memory_order_relaxed);
}

static void set(_Atomic int64_t *to, int64_t value) {
    atomic_store_explicit(to, value, memory_order_relaxed);
}

static int64_t sum_of(const struct spending *s) {
    int64_t sum = 0;
    for (int i = 0; i < SPENTS; i++) sum += get(&s->time[i]);
    return sum;
}

void spend_into(struct spender *s, enum spent on) {
    const int64_t now = base_now();
    if (mine) spending_end(mine->to, now);
    mine = owner = s;
    if (!s) return;
    s->mark = now;
    s->item = -1;
    s->whom = SPAN_NOBODY;
    set(&s->to->born, now - sum_of(s->to));
    atomic_store(&s->to->on, (int)on);
    atomic_store(&s->to->since, now);
}

struct spender *spend_owner(void) { return owner; }

void spend_pause(void) { mine = NULL; }

void spend_resume(struct spender *s, const int64_t time[SPENTS], int64_t now) {
    struct spending *to = s->to;
    if (owner != s) return;
    int64_t left = now - get(&to->since);
    for (int i = 0; i < SPENTS; i++) {
        set(&to->time[i], get(&to->time[i]) + time[i]);
        left -= time[i];
    }
    set(&to->time[SPENT_UNKNOWN], get(&to->time[SPENT_UNKNOWN]) + left);
    set(&to->since, now);
    s->mark = now;
    mine = s;
}

enum spent spent_now(void) {
    return mine ? (enum spent)atomic_load_explicit(&mine->to->on, memory_order_relaxed)
                : SPENT_COMPUTE;
}

/* ---- spans ---- */

struct spender *spend_recorder(void) {
    return spend_is_recorded() && mine && mine->ring ? mine : NULL;
}

void spend_beside(struct spender *s, struct spending *to, struct ring *ring, uint32_t step,
                  int lane) {
    *s = (struct spender){.to = to, .ring = ring, .mark = base_now(), .step = step, .item = -1,
                          .lane = (int16_t)lane, .leg = -1, .whom = SPAN_NOBODY};
    set(&to->since, s->mark);
    set(&to->born, s->mark - sum_of(to));
    mine = s;
}

void spend_lane(int lane, int leg) {
    if (!mine) return;
    mine->lane = (int16_t)lane;
    mine->leg = (int8_t)leg;
}

void spend_whom(int whom, int item) {
    if (!mine) return;
    mine->whom = (uint16_t)whom;
    mine->item = item;
}

static void put(const struct spender *s, struct span is) {
    is.step = s->step;
    is.lane = s->lane;
    is.leg = s->leg;
    ring_put(s->ring, &is);
}

void spend_operator(int item, bool first) {
    struct spender *s = mine;
    const int64_t now = base_now();
    put(s, (struct span){.begin = s->mark, .end = now, .item = item, .kind = SPAN_OPERATOR,
                         .whom = first ? 0 : SPAN_NOBODY});
    s->mark = now;
}

void spend_around(int kind, int64_t begin, int64_t end) {
    if (mine && mine->ring)
        put(mine, (struct span){.begin = begin, .end = end, .item = -1, .kind = (uint8_t)kind,
                                .whom = SPAN_NOBODY});
}

enum spent spend_at(enum spent on, int64_t now) {
    if (!mine) return SPENT_COMPUTE;
    struct spending *to = mine->to;
    const int was = atomic_load_explicit(&to->on, memory_order_relaxed);
    const int64_t since = get(&to->since);
    if (was == (int)on) return on;
    set(&to->time[was], get(&to->time[was]) + now - since);
    atomic_store_explicit(&to->on, (int)on, memory_order_relaxed);
    atomic_store_explicit(&to->since, now, memory_order_release);
    mine->mark = now;
    if (spend_is_recorded() && mine->ring)
        put(mine, (struct span){.begin = since, .end = now, .item = mine->item,
                                .kind = (uint8_t)was, .whom = mine->whom});
    return (enum spent)was;
}

enum spent spend(enum spent on) {
    return mine && spent_now() != on ? spend_at(on, base_now()) : spent_now();
}

void spending_end(struct spending *s, int64_t now) {
    const int on = atomic_load(&s->on);
    const int64_t since = get(&s->since);
    if (since && on >= 0 && on < SPENTS) set(&s->time[on], get(&s->time[on]) + now - since);
    set(&s->since, 0);
}

#define LOOKS 8

/* A thread that goes on to something else meanwhile may be seen with a time that has been added and
 * still runs; then the times do not add up. */
int64_t spending_read(const struct spending *s, int64_t now, int64_t time[SPENTS]) {
    int64_t since, sum;
    int on;
    for (int look = 0; look < LOOKS; look++) {
        since = atomic_load_explicit(&s->since, memory_order_acquire);
        on = atomic_load_explicit(&s->on, memory_order_relaxed);
        sum = 0;
        for (int i = 0; i < SPENTS; i++) sum += time[i] = get(&s->time[i]);
        if (!since || sum == since - get(&s->born)) break;
    }
    if (since && now > since && on >= 0 && on < SPENTS) {
        time[on] += now - since;
        sum += now - since;
    }
    return sum;
}

void spending_add(const struct spending *s, int64_t now, int64_t sum[SPENTS]) {
    int64_t time[SPENTS];
    spending_read(s, now, time);
    for (int i = 0; i < SPENTS; i++) sum[i] += time[i];
}

int64_t spent_of(const int64_t time[SPENTS], enum spent_group group) {
    int64_t sum = 0;
    for (int i = 0; i < SPENTS; i++)
        if (spent_rows[i].group == group) sum += time[i];
    return sum;
}
