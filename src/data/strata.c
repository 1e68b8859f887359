/* SPDX-License-Identifier: Apache-2.0 */
#include "data/strata.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

/* Lanes of equal size, the same in every step: `lanes` lanes of `samples` each, from place `first`
 * of a step. */
struct group {
    int64_t first, samples, lanes;
};

#define REST 2 /* the group after those of the lanes: the samples that do not fill a step */

struct strata {
    int64_t size, classes;
    uint64_t seed;
    int64_t share, shares;  /* every shares-th of all samples, sorted by class */
    int64_t places, steps, batch;
    struct group group[2];  /* the larger lanes, the smaller lanes */
    uint32_t *member;       /* [size]: the samples, sorted by class */
    uint32_t *begin;        /* [classes + 1]: the start of each class in `member` */
    uint32_t *class_order;  /* [classes]: their order in the current epoch */
    uint32_t *sorted;       /* [places]: the epoch's samples, sorted by class */
    uint32_t *scratch;         /* [size] */
    uint32_t *count, *part; /* [classes]; [classes][STRATA_GROUPS] */
    uint32_t *next;         /* [classes]: the number dealt so far */
    uint32_t *steps_order;  /* [steps] */
    struct {
        int64_t epoch; /* -1: none */
        uint32_t *index;
    } order[2]; /* of an even and an odd epoch */
};

void strata_free(struct strata *s) {
    if (!s) return;
    uint32_t *all[] = {s->member,      s->begin,          s->class_order,   s->sorted,
                       s->scratch,        s->count,          s->part,          s->next,
                       s->steps_order, s->order[0].index, s->order[1].index};
    for (size_t i = 0; i < COUNT(all); i++) free(all[i]);
    free(s);
}

/* ---- creation ---- */

static uint32_t *numbers(int64_t n, bool *failed) {
    uint32_t *p = calloc((size_t)n + 1, sizeof *p);
    *failed |= !p;
    return p;
}

static bool make_room(struct strata *s) {
    bool failed = false;
    uint32_t **each[] = {&s->begin, &s->class_order, &s->count, &s->next};
    for (size_t i = 0; i < COUNT(each); i++) *each[i] = numbers(s->classes, &failed);
    s->part = numbers(s->classes * STRATA_GROUPS, &failed);
    s->member = numbers(s->size, &failed);
    s->sorted = numbers(s->places, &failed);
    s->scratch = numbers(s->size, &failed);
    s->steps_order = numbers(s->steps, &failed);
    for (int i = 0; i < 2; i++) {
        s->order[i].index = numbers(s->places, &failed);
        s->order[i].epoch = -1;
    }
    return !failed;
}

size_t strata_bytes(const struct strata *s) {
    return (size_t)((4 + STRATA_GROUPS) * s->classes + 2 * s->size + 3 * s->places + s->steps) *
           sizeof(uint32_t);
}

static void sort_members(struct strata *s, const tri_data *d) {
    for (int64_t i = 0; i < s->size; i++) s->begin[d->about.label(d->user, i) + 1]++;
    for (int64_t c = 0; c < s->classes; c++) s->begin[c + 1] += s->begin[c];
    for (int64_t i = 0; i < s->size; i++) {
        int64_t label = d->about.label(d->user, i);
        s->member[s->begin[label] + s->next[label]++] = (uint32_t)i;
    }
}

tri_status strata_make(const tri_data *d, const struct sampler *p, int64_t lanes,
                       struct strata **out) {
    *out = NULL;
    if (!d->about.label || d->about.classes < 1)
        return base_fail(
            TRI_USAGE,
            "data %s does not know the classes of its samples in advance, which a stratified order "
            "needs; images, tar, cifar and idx do, and your own source with tri_data_labels",
            d->name);
    if (p->size > UINT32_MAX)
        return base_fail(TRI_USAGE,
                         "data %s has %lld samples; a stratified order can have at most 2^32 - 1",
                         d->name, (long long)p->size);
    struct strata *s = *out = calloc(1, sizeof *s);
    if (!s) return base_no_memory(d->name);
    s->size = p->size;
    s->classes = d->about.classes;
    s->seed = p->seed;
    s->share = p->share;
    s->shares = p->shares ? p->shares : 1;
    s->places = sampler_places(p);
    s->batch = p->batch;
    s->steps = s->places / s->batch;
    int64_t each = s->batch / lanes, more = s->batch % lanes; /* as in lane_first */
    s->group[0] = (struct group){0, each + 1, more};
    s->group[1] = (struct group){more * (each + 1), each, lanes - more};
    tri_status status = make_room(s) ? data_check_labels(d) : base_no_memory(d->name);
    if (!status) sort_members(s, d);
    if (status) {
        strata_free(s);
        *out = NULL;
    }
    return status;
}

/* ---- an epoch ---- */

static void shuffle(uint64_t key, uint32_t *to, const uint32_t *from, uint32_t n) {
    struct permutation order;
    uint64_t place[256];
    if (!n) return;
    permute_make(key, n, &order);
    for (uint32_t i = 0; i < n; i += COUNT(place)) {
        size_t some = n - i < COUNT(place) ? n - i : COUNT(place);
        permute_fill(&order, i, some, place);
        for (size_t k = 0; k < some; k++) to[i + k] = from ? from[place[k]] : (uint32_t)place[k];
    }
}

/* Every shares-th of all samples, sorted by class. If the share needs one more than there are, it
 * takes it from the start. */
static void sort_epoch(struct strata *s, uint64_t key) {
    int64_t at = 0, next = s->share, to = 0;
    int64_t last = s->share + (s->places - 1) * s->shares;
    int64_t again = last >= s->size ? last % s->size : -1;
    shuffle(random_key(key, 0), s->class_order, NULL, (uint32_t)s->classes);
    memset(s->count, 0, (size_t)s->classes * sizeof *s->count);
    for (int64_t i = 0; i < s->classes; i++) {
        uint32_t c = s->class_order[i], n = s->begin[c + 1] - s->begin[c];
        shuffle(random_key(key, 1 + (uint64_t)c), s->scratch, s->member + s->begin[c], n);
        for (int64_t k = 0; k < n; k++, at++) {
            if (at != again && at != next) continue;
            if (at == next) next += s->shares;
            if (to == s->places) continue;
            s->sorted[to++] = s->scratch[k];
            s->count[c]++;
        }
    }
    CHECK(to == s->places);
}

/* The place of card `card` of a group: a step, a lane, and a place in the lane. */
static int64_t place_of(const struct strata *s, const struct group *g, uint64_t card) {
    uint64_t step = card % (uint64_t)s->steps, rest = card / (uint64_t)s->steps;
    int64_t lane = (int64_t)(rest % (uint64_t)g->lanes), row = (int64_t)(rest / (uint64_t)g->lanes);
    return s->steps_order[step] * s->batch + g->first + lane * g->samples + row;
}

static void deal(struct strata *s, int group, const uint64_t size[STRATA_GROUPS], uint32_t *to) {
    uint32_t begin = 0;
    uint64_t card = 0;
    for (int64_t i = 0; i < s->classes; i++) {
        uint32_t c = s->class_order[i], n = s->part[c * STRATA_GROUPS + (uint32_t)group];
        const uint32_t *from = s->sorted + begin + s->next[c];
        for (uint32_t k = 0; k < n; k++, card++) {
            if (group == REST) s->scratch[card] = from[k];
            else to[place_of(s, &s->group[group], card)] = from[k];
        }
        s->next[c] += n;
        begin += s->count[c];
    }
    CHECK(card == size[group]);
}

static void make_epoch(struct strata *s, int64_t epoch, uint32_t *to) {
    uint64_t key = random_key(random_key(s->seed, base_hash_text("strata")), (uint64_t)epoch);
    uint64_t steps = (uint64_t)s->steps, size[STRATA_GROUPS] = {0};
    sort_epoch(s, key);
    for (int g = 0; g < 2; g++)
        size[g] = steps * (uint64_t)(s->group[g].lanes * s->group[g].samples);
    size[REST] = (uint64_t)s->places - size[0] - size[1];
    strata_round(&(struct strata_table){
        s->count, s->classes, {size[0], size[1], size[2]}, (uint64_t)s->places, s->part});
    shuffle(random_key(key, UINT64_MAX), s->steps_order, NULL, (uint32_t)s->steps);
    memset(s->next, 0, (size_t)s->classes * sizeof *s->next);
    for (int g = 0; g < STRATA_GROUPS; g++) deal(s, g, size, to);
    shuffle(random_key(key, UINT64_MAX - 1), to + s->steps * s->batch, s->scratch,
            (uint32_t)size[REST]);
}

const uint32_t *strata_order(struct strata *s, int64_t epoch) {
    if (s->order[epoch % 2].epoch != epoch) make_epoch(s, epoch, s->order[epoch % 2].index);
    s->order[epoch % 2].epoch = epoch;
    return s->order[epoch % 2].index;
}

/* ---- rounding ---- */

/* One class in one group. */
struct cell {
    uint64_t whole; /* its share, rounded down */
    bool broken;    /* its share is not an integer and may be rounded up */
};

static struct cell cell_of(const struct strata_table *t, int64_t c, int g) {
    uint64_t product = t->count[c] * t->size[g];
    return (struct cell){product / t->all, product % t->all != 0};
}

/* The remainder of each class goes to the groups with the largest debt so far (in units of 1/all of
 * a sample). With three groups no debt reaches a whole sample in either direction: of two groups
 * that may take one, the larger debt is at least half of the remainder less half the third debt. So
 * at the end, where debts are integers, they are 0. */
void strata_round(const struct strata_table *t) {
    int64_t debt[STRATA_GROUPS] = {0};
    for (int64_t c = 0; c < t->classes; c++) {
        uint64_t left = t->count[c];
        struct cell cell[STRATA_GROUPS];
        for (int g = 0; g < STRATA_GROUPS; g++) {
            cell[g] = cell_of(t, c, g);
            t->out[c * STRATA_GROUPS + g] = (uint32_t)cell[g].whole;
            left -= cell[g].whole;
            debt[g] += (int64_t)(t->count[c] * t->size[g] % t->all);
        }
        for (; left; left--) {
            int best = -1;
            for (int g = 0; g < STRATA_GROUPS; g++)
                if (cell[g].broken && (best < 0 || debt[g] > debt[best])) best = g;
            CHECK(best >= 0);
            cell[best].broken = false;
            t->out[c * STRATA_GROUPS + best]++;
            debt[best] -= (int64_t)t->all;
        }
    }
    for (int g = 0; g < STRATA_GROUPS; g++) CHECK(!debt[g]);
}
