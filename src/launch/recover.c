/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/recover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>


static const struct crew_board *boards_at(const struct crew_layout *l, char *at, int shape,
                                          int phase) {
    return region_at(l->region, at, REGION_BOARDS, l->shape[shape].tree[phase].boards);
}

static tri_status bind_boards(struct recovery *r, int shape, char *at) {
    const struct crew_layout *l = &r->head->layout;
    for (int k = 0; k < 2; k++) {
        struct lane_tree *tree = &r->tree[shape][k];
        int n = l->shape[shape].tree[k].buckets;
        const struct crew_board *where = boards_at(l, at, shape, k);
        claim_word *all = region_at(l->region, at, REGION_BOARD + (enum region_number)k, 0);
        if (!n) continue;
        int levels = k ? l->shape[shape].levels : 0;
        tri_status status = lane_tree_make(l->shape[shape].lanes, levels, tree);
        struct board *board = r->board[shape][k] = calloc((size_t)n, sizeof *board);
        if (!status && !board) status = base_no_memory("boards");
        if (status) return status;
        for (int b = 0; b < n; b++) {
            const struct board_words words = {all, all + l->nodes[k] + where[b].slot, l->nodes[k],
                                              where[b].slots};
            board_bind(&board[b], tree, &words, where[b].first, 1);
        }
    }
    return TRI_OK;
}

static void free_tables(struct recovery *r) {
    free(r->slowest);
    r->slowest = NULL;
    for (int i = 0; i < CREW_MOST_SHAPES; i++)
        for (int k = 0; k < 2; k++) {
            lane_tree_free(&r->tree[i][k]);
            free(r->board[i][k]);
            r->board[i][k] = NULL;
        }
}

tri_status recovery_map(struct recovery *r) {
    const struct crew_layout *l = &r->head->layout;
    if (r->base || !atomic_load(&l->published)) return TRI_OK;
    r->bytes = l->store_bytes;
    char *at = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd,
                    (off_t)crew_head_bytes());
    if (at == MAP_FAILED) return base_fail(TRI_FAILED, "cannot map the store: %s", strerror(errno));
    tri_status status = TRI_OK;
    for (int i = 0; i < l->n_shapes && !status; i++) status = bind_boards(r, i, at);
    r->slowest = calloc((size_t)l->region[REGION_NAMES].n + 1, sizeof *r->slowest);
    if (!status && !r->slowest) status = base_no_memory("times of operators");
    if (status) {
        munmap(at, r->bytes);
        free_tables(r);
    } else {
        r->base = at;
    }
    return status;
}

void recovery_unmap(struct recovery *r) {
    if (r->base) munmap(r->base, r->bytes);
    free_tables(r);
    *r = (struct recovery){.head = r->head, .fd = r->fd};
}

/* On the boards of all shapes: the thread may have held slots in an earlier step. */
static void recover_boards(struct recovery *r, uint64_t step, int thread) {
    const struct crew_layout *l = &r->head->layout;
    for (int i = 0; i < l->n_shapes; i++)
        for (int k = 0; k < 2; k++)
            for (int b = 0; b < l->shape[i].tree[k].buckets; b++)
                board_recover(&r->board[i][k][b], (uint32_t)step, thread);
}

/* In the regions whose claims are freed so. */
static void forget(const struct recovery *r, unsigned how, int owner) {
    const struct region *all = r->head->layout.region;
    for (enum region_number k = 0; r->base && k < REGIONS; k++)
        if (region_rows[k].how & how)
            claim_forget(region_at(all, r->base, k, 0), all[k].n, owner);
}

void recovery_of(struct recovery *r, int place) {
    struct crew_head *h = r->head;
    const struct region *all = h->layout.region;
    uint64_t opened = atomic_load(&h->course.opened);
    const int first = place * h->size.threads; /* stands for the worker as a whole */
    int writer = first + 1;
    if (!atomic_load(&h->course.ending))
        atomic_compare_exchange_strong(&h->course.failing, &writer, 0);
    for (int t = 0; r->base && t < h->size.threads; t++) {
        int thread = first + t;
        atomic_store(&h->thread[thread].rows, 0);
        atomic_store(&h->thread[thread].again, 0); /* others may repeat that lane */
        recover_boards(r, opened, thread);
        forget(r, REGION_BY_THREAD, thread);
        tasks_recover(region_at(all, r->base, REGION_TASKS, 0), (int)all[REGION_TASKS].n, thread,
                      region_at(all, r->base, REGION_UNDO, thread), r->base);
    }
    forget(r, REGION_BY_WORKER, first);
}

void recovery_of_samples(struct recovery *r, int place) {
    forget(r, REGION_BY_READER, place * r->head->size.threads);
    wait_wake_after_death(&r->head->data);
}

static bool is_item(const struct recovery *r, int item) {
    return r->base && item >= 0 && item < r->head->layout.region[REGION_NAMES].n;
}

const char *recovery_name(const struct recovery *r, int item) {
    const struct region *all = r->head->layout.region;
    return is_item(r, item) ? region_at(all, r->base, REGION_NAMES, item) : "";
}

int recovery_leg(const struct recovery *r, int shape, int phase, int bucket) {
    return boards_at(&r->head->layout, r->base, shape, phase)[bucket].leg;
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
    const struct crew_layout *l = &r->head->layout;
    struct text t = {0};
    if (!r->base) return;
    int shape = r->head->course.shape_of[atomic_load(&r->head->course.opened) % 2];
    for (int k = 0; k < 2; k++) {
        const struct board *b = r->board[shape][k];
        if (!b) continue;
        add_words(&t, k ? "lanes" : "counts", b->all, b->n_all);
        const claim_word *printed = NULL; /* buckets of similar sizes are neighbours, mostly */
        for (int i = 0; i < l->shape[shape].tree[k].buckets; printed = b[i++].slot)
            if (b[i].slot != printed) add_words(&t, "slots", b[i].slot, b[i].n_slots);
    }
    add_words(&t, "tasks", region_at(l->region, r->base, REGION_TASKS, 0),
              (int)l->region[REGION_TASKS].n);
    log_event(log, LOG_ERROR, "board", "words=%s", t.data ? t.data : "");
    text_free(&t);
}
