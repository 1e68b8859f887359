/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/parts.h"

int parts_buckets(const struct machine *m) { return m ? m->tree[1].buckets.n : 0; }

struct part_bucket parts_bucket(const struct machine *m, int bucket) {
    const struct tree *t = &m->tree[1];
    const struct program *lane = &m->thread[0].lane[0];
    struct part_bucket b = {.item = (int64_t)lane->n_items, .items = (int64_t)lane->n_items,
                            .leg = t->buckets.leg[bucket], .kept = t->bucket[bucket].kept};
    for (int i = 0; i < lane->n_result; i++) {
        const tri_tensor *is = lane->result[i].is;
        if (!tree_has(t, lane, i, bucket)) continue;
        b.bytes += base_spec_bytes(&is->spec);
        b.results++;
        if (!b.largest || base_spec_bytes(&is->spec) > base_spec_bytes(&b.largest->spec))
            b.largest = is;
    }
    for (int i = 0; i < t->events[0].n; i++) {
        const struct bucket_event *event = &t->events[0].event[i];
        if (event->bucket != bucket || event->opens) continue;
        b.item = (int64_t)event->item;
        b.after = lane->item[event->item - 1].unit->node[0]->name;
    }
    return b;
}

struct part_stage parts_stage(const struct machine *m, int stage) {
    const struct program *lane = &m->thread[0].lane[0];
    const struct legs *l = &m->compilation.legs;
    struct part_stage s = {.track = stage % m->pipeline.tracks};
    for (size_t i = 0; i < lane->n_items; i++) {
        const struct unit *u = lane->item[i].unit;
        for (int k = 0; k < u->n; k++) {
            struct leg leg = legs_at(l, u->node[k]->leg);
            if (leg.stage != stage) continue;
            s.operators[leg.kind]++;
            if (leg.kind != LEG_FORWARD) continue;
            s.last = u->node[k]->name;
            if (!s.first) s.first = s.last;
        }
    }
    return s;
}

bool parts_hands_over(const struct machine *m, int bucket) {
    return !buckets_is_summed(&m->tree[1].buckets, bucket);
}

void parts_readers(const struct machine *m, int bucket, struct text *out) {
    const struct buckets *b = &m->tree[1].buckets;
    bool any = false;
    for (int leg = 0; leg < b->legs; leg++) {
        char name[LEG_TEXT];
        if (!leg_set_has(&b->readers[bucket], leg)) continue;
        legs_name(&m->compilation.legs, leg, name);
        text_add(out, "%s%s", any ? "," : "", name);
        any = true;
    }
}

double parts_waiting(const struct machine *m, const double *cost) {
    struct pipeline_times times;
    if (pipeline_simulate(&m->pipeline, &m->compilation.legs, cost, &times)) return -1;
    double waiting = pipeline_idle(&m->pipeline, &times);
    pipeline_times_free(&times);
    return waiting;
}
