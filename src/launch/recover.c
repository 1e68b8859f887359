/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/recover.h"

#include <stdlib.h>

tri_status recovery_map(struct recovery *r) {
    const struct crew_layout *l = &r->view.head->layout;
    if (r->view.base || !atomic_load(&l->published)) return TRI_OK;
    r->slowest = calloc((size_t)l->region[REGION_NAMES].n + 1, sizeof *r->slowest);
    tri_status status = r->slowest ? view_map(&r->view) : base_no_memory("times of operators");
    if (status) recovery_unmap(r);
    return status;
}

void recovery_unmap(struct recovery *r) {
    view_unmap(&r->view);
    free(r->slowest);
    r->slowest = NULL;
}

/* In the regions whose claims are freed so. */
static void forget(const struct recovery *r, unsigned how, int owner) {
    const struct region *all = r->view.head->layout.region;
    for (enum region_number k = 0; r->view.base && k < REGIONS; k++)
        if (region_rows[k].how & how)
            claim_forget(view_region(&r->view, k, 0), all[k].n, owner);
}

void recovery_of(struct recovery *r, int place) {
    struct crew_head *h = r->view.head;
    const struct region *all = h->layout.region;
    uint64_t opened = atomic_load(&h->course.opened);
    const int first = place * h->size.threads; /* stands for the worker as a whole */
    int writer = first + 1;
    if (!atomic_load(&h->course.ending))
        atomic_compare_exchange_strong(&h->course.failing, &writer, 0);
    for (int t = 0; r->view.base && t < h->size.threads; t++) {
        int thread = first + t;
        atomic_store(&h->thread[thread].rows, 0);
        atomic_store(&h->thread[thread].again, 0); /* others may repeat that lane */
        view_recover(&r->view, opened, thread);
        forget(r, REGION_BY_THREAD, thread);
        tasks_recover(view_region(&r->view, REGION_TASKS, 0), (int)all[REGION_TASKS].n, thread,
                      view_region(&r->view, REGION_UNDO, thread), r->view.base);
    }
    forget(r, REGION_BY_WORKER, first);
}

void recovery_of_samples(struct recovery *r, int place) {
    forget(r, REGION_BY_READER, place * r->view.head->size.threads);
    wait_wake_after_death(&r->view.head->data);
}

static bool is_item(const struct recovery *r, int item) {
    return r->view.base && item >= 0 && item < r->view.head->layout.region[REGION_NAMES].n;
}

const char *recovery_name(const struct recovery *r, int item) {
    return is_item(r, item) ? view_region(&r->view, REGION_NAMES, item) : "";
}

int recovery_leg(const struct recovery *r, int shape, int phase, int bucket) {
    return view_boards(&r->view, shape, phase)[bucket].leg;
}

double *recovery_slowest(const struct recovery *r, int item) {
    return is_item(r, item) ? &r->slowest[item] : NULL;
}

static void add_words(struct text *t, const char *what, claim_word *word, int n) {
    text_add(t, " %s", what);
    for (int i = 0; i < n; i++) {
        struct claim c = claim_read(&word[i]);
        text_add(t, " %u:%d:%d:%d", c.step, (int)c.state, c.owner, c.value);
    }
}

void recovery_log(const struct recovery *r, struct log *log) {
    const struct crew_layout *l = &r->view.head->layout;
    struct text t = {0};
    if (!r->view.base) return;
    int shape = r->view.head->course.shape_of[atomic_load(&r->view.head->course.opened) % 2];
    for (int k = 0; k < 2; k++) {
        const struct board *b = r->view.board[shape][k];
        if (!b) continue;
        add_words(&t, k ? "lanes" : "counts", b->all, b->n_all);
        const claim_word *printed = NULL; /* buckets of similar sizes are neighbours, mostly */
        for (int i = 0; i < l->shape[shape].tree[k].buckets; printed = b[i++].slot)
            if (b[i].slot != printed) add_words(&t, "slots", b[i].slot, b[i].n_slots);
    }
    add_words(&t, "tasks", view_region(&r->view, REGION_TASKS, 0),
              (int)l->region[REGION_TASKS].n);
    log_event(log, LOG_ERROR, "board", "words=%s", t.data ? t.data : "");
    text_free(&t);
}
