/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/study.h"

#include <stdlib.h>
#include <string.h>

/* Adds the times of a worker. */
static bool add_worker(const struct profile *p, int host, int place, struct study *s) {
    const struct profile_host *h = &p->host[host];
    int64_t *sum = tables_spent(p, host, place);
    for (int i = 0; sum && i < h->n_steps; i++) {
        s->all += (double)(tables_threads(p, host, place) * (h->step[i].next - h->step[i].begin));
        for (size_t k = 0; k < SPENTS; k++)
            s->spent[k] += (double)sum[(size_t)i * SPENTS + k];
    }
    free(sum);
    return sum;
}

tri_status study_make(struct profile *p) {
    if (p->study) return TRI_OK;
    const size_t items = (tables_number(p, p->n_hosts, 0) + 1) * sizeof(struct tables_item);
    struct study *s = arena_alloc(&p->arena, sizeof *s + items);
    struct tables_item *of = tables_items(p);
    bool good = s && of && !path_find(p, &p->arena, &s->path);
    for (int i = 0; i < p->n_threads && good; i++) {
        const struct profile_thread *t = &p->thread[i];
        const bool same = i && t[-1].host == t->host && t[-1].place == t->place;
        if (!same) good = add_worker(p, t->host, t->place, s);
    }
    if (good) s->item = memcpy(s + 1, of, items);
    free(of);
    if (!good) return base_no_memory("the figures of the profile");
    for (int k = 0; k < SPENTS && s->all > 0; k++) s->spent[k] /= s->all;
    if (s->path.all) s->threads = s->all / (double)s->path.all;
    if (p->n_hosts && p->host[0].n_steps)
        s->step = 1e-9 * (double)s->path.all / p->host[0].n_steps;
    p->study = s;
    return TRI_OK;
}

double study_share(const struct profile *p, int host, int item) {
    const struct study *s = p->study;
    const size_t number = tables_number(p, host, item);
    if (!host && s->path.turns) return (double)s->path.item[number] / (double)s->path.all;
    return s->all > 0 ? (double)s->item[number].ns / s->all : 0;
}
