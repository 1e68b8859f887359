/* SPDX-License-Identifier: Apache-2.0 */
#include "run/loader.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "crew/head.h"
#include "crew/spans.h"
#include "data/data.h"
#include "run/executables.h"
#include "run/feed.h"
#include "run/padding.h"

#define PIECE_BYTES 65536 /* a smaller piece is not worth a claim */
#define AT_ONCE 32        /* samples whose indices are taken from the sampler at a time */
#define SLOW 200e-6       /* reading ahead pays if a fetch takes so many seconds */
#define SLOW_STEPS 3      /* consecutive slow fetches to start with; the first are always slow */

/* How many pieces a lane has. */
static int pieces_of(const struct machine *m) {
    int64_t rows = lane_samples(m->batch, m->lanes, 0);
    int64_t bytes = rows * (int64_t)(m->buffer_bytes / (size_t)m->batch);
    int64_t n = bytes / PIECE_BYTES, most = rows < LOADER_MOST_PIECES ? rows : LOADER_MOST_PIECES;
    return n < 1 ? 1 : n > most ? (int)most : (int)n;
}

int loader_words(const struct machine *m, int shapes) {
    int n = 0;
    for (int i = 0; i < shapes; i++) n += MACHINE_BUFFERS * (int)m[i].lanes * pieces_of(&m[i]);
    return n;
}

static struct machine *executable_at(const struct loader *l, int64_t step) {
    return executables_at(l->run, step);
}

static int pieces_at(const struct loader *l, int64_t step) {
    return (int)executable_at(l, step)->lanes * pieces_of(executable_at(l, step));
}

static char *buffer_of(const struct loader *l, int64_t step) {
    return machine_buffer(executable_at(l, step), loader_buffer(l, step));
}

/* ---- reading ---- */

static bool concurrent(const struct loader *l) { return l->run->data->concurrent; }
static bool in_order(const struct loader *l) { return l->run->data->sequential; }

/* Whether other processes share the claims. */
static bool shared(const struct loader *l) { return l->place.word != l->own_word; }

static uint64_t steps_done(const struct loader *l) { return atomic_load(l->place.done); }

int loader_buffer(const struct loader *l, int64_t step) {
    return shared(l) || atomic_load(&l->ahead) ? (int)(step % l->buffers) : 0;
}

struct rows {
    int64_t first, n;
};

/* Reads rows of a step without claims. held: the caller holds l->reading. */
static tri_status read_rows(struct loader *l, struct loader_reader *r, char *buffer, int64_t step,
                            struct rows rows, bool held) {
    uint64_t index[AT_ONCE];
    tri_status status = TRI_OK;
    const struct machine *m = executable_at(l, step);
    struct sampler *sampler = &l->run->sampler;
    for (int64_t i = 0; i < rows.n && !status; i += AT_ONCE) {
        int64_t some = rows.n - i < AT_ONCE ? rows.n - i : AT_ONCE;
        if (!held) pthread_mutex_lock(&l->reading);
        sampler_seek(sampler, step - 1);
        sampler_take(sampler, rows.first + i, some, index);
        int64_t epoch = sampler->epoch, padding = sampler_padding(sampler);
        if (!held) pthread_mutex_unlock(&l->reading);
        for (int64_t k = 0; k < some && !status; k++) {
            struct feed_place to = {buffer, r->spare, rows.first + i + k};
            status = feed_row(m, l->run->data, &to, (int64_t)index[k], epoch, l->run->options.seed);
            if (!status && to.row >= padding) padding_mark(m, &to);
        }
    }
    return status;
}

void loader_name_sample(struct loader *l, int64_t step, struct tri_fault *fault) {
    struct text name = {0};
    uint64_t index;
    if (!fault->sample) return;
    if (!l->run || !l->run->data) { /* the program feeds the batch */
        fault_add(fault, ", sample %lld of the batch", (long long)fault->sample - 1);
        fault->sample = 0;
        return;
    }
    pthread_mutex_lock(&l->reading);
    sampler_seek(&l->run->sampler, step - 1);
    sampler_take(&l->run->sampler, fault->sample - 1, 1, &index);
    data_name_sample(l->run->data, (int64_t)index, &name);
    pthread_mutex_unlock(&l->reading);
    if (!name.failed) fault_add(fault, ", %s", name.data);
    text_free(&name);
    fault->sample = 0;
}

static void lock_reading(struct loader *l) {
    if (!pthread_mutex_trylock(&l->reading)) return;
    const enum spent was = spend(SPENT_WAIT_SAMPLES);
    pthread_mutex_lock(&l->reading);
    spend(was);
}

/* A source that is not concurrent is called by one thread at a time. */
static tri_status read_in_turn(struct loader *l, struct loader_reader *r, char *buffer,
                               int64_t step, struct rows rows) {
    if (concurrent(l)) return read_rows(l, r, buffer, step, rows, false);
    lock_reading(l);
    tri_status status = read_rows(l, r, buffer, step, rows, true);
    pthread_mutex_unlock(&l->reading);
    return status;
}

/* ---- pieces ---- */

/* No piece belongs to two lanes. A piece has no rows if a lane has fewer rows than pieces. */
static struct rows rows_of(const struct loader *l, int64_t step, int piece) {
    const struct machine *m = executable_at(l, step);
    int each = pieces_of(m), lane = piece / each, k = piece % each;
    int64_t first = lane_first(m->batch, m->lanes, lane);
    int64_t n = lane_samples(m->batch, m->lanes, lane);
    return (struct rows){first + n * k / each, n * (k + 1) / each - n * k / each};
}

/* Each executable has its own claims and buffers: a late reader writes only to those of its step's
 * executable. */
static claim_word *word_of(const struct loader *l, int64_t step, int piece) {
    const struct machine *m = executable_at(l, step);
    int first = loader_words(l->run->executable, (int)(m - l->run->executable));
    return &l->place.word[first + loader_buffer(l, step) * (int)m->lanes * pieces_of(m) + piece];
}

/* A piece stays claimed by a late reader even after its step: the step went on without it, and it
 * may still write to the buffer. */
static struct claim look(const struct loader *l, int64_t step, int piece) {
    return claim_look_held(word_of(l, step, piece), (uint32_t)step);
}

static bool claim(const struct loader *l, int64_t step, int piece, struct claim *seen) {
    return claim_try(word_of(l, step, piece), seen, l->place.owner);
}

static void publish(const struct loader *l, int64_t step, int piece, tri_status status) {
    const struct claim held = {.step = (uint32_t)step, .owner = l->place.owner};
    claim_publish(word_of(l, step, piece), &held, status ? CLAIM_FAILED : CLAIM_DONE, held.owner,
                  0);
    wait_wake(l->place.queue);
}

static void note(const struct loader *l, struct loader_reader *r, int64_t step, int piece) {
    atomic_store_explicit(&r->step, step, memory_order_relaxed);
    atomic_store_explicit(&r->lane, piece / pieces_of(executable_at(l, step)),
                          memory_order_relaxed);
}

/* A thread that reads ahead says what its span is about; the run's threads have. */
static void begin_span(const struct loader *l, struct loader_reader *r) {
    const int number = (int)(r - l->reader) - l->run_threads;
    struct ring *ring = number >= 0 && number < SPEND_BESIDE - 1 ? l->run->beside[number]
                                                                      : NULL;
    if (number >= 0)
        spend_beside(&r->spender, &r->spending, ring, (uint32_t)atomic_load(&r->step),
                     atomic_load(&r->lane));
}

static tri_status read_piece(struct loader *l, struct loader_reader *r, int64_t step, int piece) {
    struct rows rows = rows_of(l, step, piece);
    const bool recorded = spend_is_recorded(), timed = shared(l) || recorded;
    int64_t began = timed ? base_now() : 0;
    note(l, r, step, piece);
    if (recorded) begin_span(l, r);
    tri_status status = read_in_turn(l, r, buffer_of(l, step), step, rows);
    publish(l, step, piece, status);
    int64_t took = timed ? base_now() - began : 0;
    if (recorded) spend_around(SPAN_PIECE, began, began + took);
    if (took > atomic_load(&l->slowest)) atomic_store(&l->slowest, took);
    return status;
}

/* Reads the next piece of a sequential source. *more: false if it belongs to a step after `most`.
 * The claims are not used: one thread reads at a time. */
static tri_status read_next(struct loader *l, struct loader_reader *r, int64_t most, bool *more) {
    lock_reading(l);
    int64_t step = l->next_step + 1;
    int piece = l->next_piece;
    tri_status status = TRI_OK;
    *more = step <= most;
    if (*more && *l->error) { /* stays, until a thread of the run needs that step */
        status = base_fail(TRI_FAILED, "%s", l->error);
    } else if (*more) {
        const int64_t began = spend_is_recorded() ? base_now() : 0;
        note(l, r, step, piece);
        if (began) begin_span(l, r);
        status = read_rows(l, r, buffer_of(l, step), step, rows_of(l, step, piece), true);
        if (began) spend_around(SPAN_PIECE, began, base_now());
        if (status) base_format(l->error, sizeof l->error, "%s", tri_message());
        bool last = piece + 1 == pieces_at(l, step);
        l->next_step += !status && last;
        l->next_piece = status ? piece : last ? 0 : piece + 1;
    }
    pthread_mutex_unlock(&l->reading);
    return status;
}

/* ---- what a step needs ---- */

struct wanted {
    const struct loader *l;
    int64_t step;
    int piece;
    int64_t until;
};

static bool over(const struct loader *l, int64_t step) {
    return (int64_t)steps_done(l) >= step || (l->place.ending && atomic_load(l->place.ending));
}

/* The piece is ready or free, or the step is over, or the reader is late. */
static bool is_settled(void *arg) {
    const struct wanted *w = arg;
    return look(w->l, w->step, w->piece).state != CLAIM_TAKEN || over(w->l, w->step) ||
           base_now() > w->until;
}

/* Reads the pieces that nobody reads. A piece that another failed to read is read again, to learn
 * why. */
static tri_status take_pieces(struct loader *l, int thread, int64_t step, int from, int to) {
    tri_status status = TRI_OK;
    for (int i = from; i < to && !status; i++) {
        struct claim c = look(l, step, i);
        if (c.state != CLAIM_FREE && c.state != CLAIM_FAILED) continue;
        if (claim(l, step, i, &c)) status = read_piece(l, &l->reader[thread], step, i);
    }
    return status;
}

/* Reads the pieces that nobody reads, and waits for those that others read. A dead reader's pieces
 * become free again. *ready: false if another reader takes too long. */
static tri_status fetch_pieces(struct loader *l, const struct loader_request *r, int from, int to,
                               bool *ready) {
    int64_t late_at = INT64_MAX;
    *ready = true;
    for (int i = from; i < to;) {
        tri_status status = take_pieces(l, r->thread, r->step, i, to);
        if (status) return status;
        struct wanted w = {l, r->step, i, late_at};
        struct claim c = look(l, r->step, i);
        if (c.state == CLAIM_PASSED || over(l, r->step)) return TRI_OK;
        if (c.state == CLAIM_DONE) {
            i++;
            continue;
        }
        /* No limit for a reader of this process: whatever delays it would delay this thread too. */
        if (late_at == INT64_MAX && c.owner != l->place.owner)
            w.until = late_at = wait_late(atomic_load(&l->slowest));
        /* A reader that still reads for an earlier step is late already. */
        *ready = c.step == (uint32_t)r->step && base_now() <= late_at;
        if (!*ready) return TRI_OK;
        const enum spent was = spend(SPENT_WAIT_SAMPLES);
        if (spend_is_recorded()) spend_whom(shared(l) ? c.owner : -1, -1);
        wait_until(l->place.queue, WAIT_CROWDED, is_settled, &w, late_at, r->heartbeat);
        spend(was);
    }
    return TRI_OK;
}

/* Reads the lane's samples into a private buffer, to which the late reader does not write. */
static tri_status read_own(struct loader *l, const struct loader_request *r, char **buffer) {
    const struct machine *m = executable_at(l, r->step);
    struct loader_reader *self = &l->reader[r->thread];
    size_t most = 0;
    for (int i = 0; i < l->run->n_executables; i++)
        if (l->run->executable[i].buffer_bytes > most) most = l->run->executable[i].buffer_bytes;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    most = (most / page + 1) * page;
    if (!self->own && !(self->own = aligned_alloc(page, most)))
        return base_no_memory("samples that another reader is late with");
    madvise(self->own, most, MADV_DONTNEED); /* so only a lane's rows take memory */
    *buffer = self->own;
    const struct rows rows = {lane_first(m->batch, m->lanes, r->lane),
                              lane_samples(m->batch, m->lanes, r->lane)};
    return read_in_turn(l, self, self->own, r->step, rows);
}

static tri_status fetch_in_order(struct loader *l, int thread, int64_t step) {
    tri_status status = TRI_OK;
    for (bool more = true; more && !status;) status = read_next(l, &l->reader[thread], step, &more);
    return status;
}

/* ---- reading ahead ---- */

/* Finds a piece of a coming step that nobody reads. */
static bool find_piece(const struct loader *l, int64_t *step, int *piece, struct claim *seen) {
    uint64_t done = steps_done(l), last = done + (uint64_t)l->buffers;
    if (last > (uint64_t)l->run->total) last = (uint64_t)l->run->total;
    if (over(l, (int64_t)done + 1)) return false;
    for (uint64_t s = done + 1 > l->first ? done + 1 : l->first; s <= last; s++) {
        int pieces = pieces_at(l, (int64_t)s), from = pieces * l->place.from / l->place.of;
        const int each = pieces_of(executable_at(l, (int64_t)s));
        for (int i = 0; i < pieces; i++) {
            *step = (int64_t)s;
            *piece = (from + i) % pieces;
            if (l->place.mine && !l->place.mine[*piece / each]) continue;
            *seen = look(l, *step, *piece);
            if (seen->state == CLAIM_FREE) return true;
        }
    }
    return false;
}

/* False: nothing is left to read. A thread that needs a piece that failed reports the failure. */
static bool read_any(struct loader *l, struct loader_reader *r) {
    int64_t step, last = (int64_t)steps_done(l) + l->buffers;
    int piece;
    struct claim seen;
    bool more = false;
    if (in_order(l))
        return !read_next(l, r, last < l->run->total ? last : l->run->total, &more) && more;
    more = find_piece(l, &step, &piece, &seen);
    if (more && claim(l, step, piece, &seen)) read_piece(l, r, step, piece);
    return more;
}

struct news {
    const struct loader *l;
    uint64_t done;
};

/* A claim may also become free because its owner has died; then no step is done. */
static bool has_news(void *arg) {
    const struct news *n = arg;
    int64_t step;
    int piece;
    struct claim seen;
    return atomic_load(&n->l->quit) || steps_done(n->l) != n->done ||
           (!in_order(n->l) && find_piece(n->l, &step, &piece, &seen));
}

static void *read_ahead(void *arg) {
    struct loader_reader *r = arg;
    struct loader *l = r->loader;
    crash_thread_begin(&r->self);
    while (!atomic_load(&l->quit)) {
        struct news n = {l, steps_done(l)};
        if (!read_any(l, r))
            wait_until(l->place.queue, WAIT_CROWDED, has_news, &n, INT64_MAX, NULL);
    }
    crash_thread_end(&r->self);
    return NULL;
}

static tri_status start_thread(struct loader *l) {
    sigset_t all, old;
    struct loader_reader *r = &l->reader[l->run_threads + atomic_load(&l->n_threads)];
    sigfillset(&all); /* signals go to the program's threads, except those of this thread's crash */
    crash_unblock(&all);
    sigdelset(&all, SIGPIPE);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(&r->thread, NULL, read_ahead, r);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed)
        return base_fail(TRI_FAILED, "a thread that reads data cannot be started (error %d)",
                         failed);
    atomic_fetch_add(&l->n_threads, 1);
    return TRI_OK;
}

/* Whether to start reading ahead. Data that is read quickly is not worth waking a thread. A run of
 * one process has used buffer 0 so far, so it starts after an even step. */
static bool is_time(struct loader *l, int64_t step, double took) {
    l->slow = took >= SLOW ? l->slow + 1 : 0;
    return l->most_threads && step % l->buffers == 0 &&
           (l->run->options.data_threads > 0 || l->slow >= SLOW_STEPS);
}

/* Starts the threads. It is no error if they cannot be started, unless the options ask for them. */
static tri_status start(struct loader *l, int64_t step) {
    tri_status status = TRI_OK;
    l->first = (uint64_t)step + 1;
    atomic_store(&l->ahead, true);
    for (int i = 0; i < l->most_threads && !status; i++) status = start_thread(l);
    if (!status || l->run->options.data_threads > 0) return status;
    fprintf(stderr, "trireme: %s: nothing is read ahead\n", tri_message());
    return TRI_OK;
}

/* ---- the step ---- */

static tri_status fetch(struct loader *l, const struct loader_request *r, int from, int to,
                        bool *ready) {
    bool timed = !r->thread && concurrent(l) && !atomic_load(&l->ahead);
    double began = timed ? base_seconds() : 0;
    *ready = true;
    tri_status status = in_order(l) ? fetch_in_order(l, r->thread, r->step)
                                    : fetch_pieces(l, r, from, to, ready);
    if (!status && timed && is_time(l, r->step, base_seconds() - began)) status = start(l, r->step);
    return status;
}

tri_status loader_fetch(struct loader *l, const struct loader_request *r, char **buffer) {
    const struct machine *m = executable_at(l, r->step);
    int each = pieces_of(m);
    bool ready;
    *buffer = machine_buffer(m, loader_buffer(l, r->step));
    tri_status status = fetch(l, r, r->lane * each, (r->lane + 1) * each, &ready);
    return status || ready ? status : read_own(l, r, buffer);
}

tri_status loader_fetch_apart(struct loader *l, const struct loader_request *r, char **buffer) {
    return read_own(l, r, buffer);
}

static bool anything_free(const struct loader *l, int64_t step) {
    for (int i = 0; i < pieces_at(l, step); i++)
        if (look(l, step, i).state == CLAIM_FREE) return true;
    return false;
}

struct fetching {
    struct loader *l;
    int64_t step;
    tri_status status; /* of thread 0, which reports failures */
};

static void fetch_part(void *arg, int thread) {
    struct fetching *s = arg;
    const struct loader_request all_lanes = {.step = s->step};
    bool ready; /* always: no other process can be late */
    int all = pieces_at(s->l, s->step);
    if (thread) spend(SPENT_READ);
    if (thread) take_pieces(s->l, thread, s->step, 0, all);
    else s->status = fetch(s->l, &all_lanes, 0, all, &ready);
}

tri_status loader_fetch_all(struct loader *l, int64_t step) {
    struct fetching s = {.l = l, .step = step};
    bool together = concurrent(l) && !in_order(l) && pieces_at(l, step) > 1 &&
                    (l->ahead ? anything_free(l, step) : l->slow > 0);
    team_run(together ? l->run->team : NULL, fetch_part, &s);
    return s.status;
}

tri_status loader_read(struct loader *l, int64_t step) {
    const struct rows all = {0, executable_at(l, step)->batch};
    if (in_order(l)) return TRI_OK;
    return read_in_turn(l, &l->reader[0], buffer_of(l, step), step, all);
}

void loader_done(struct loader *l, int64_t step) {
    atomic_store(&l->own_done, (uint64_t)step);
    if (l->ahead) wait_wake(&l->own_queue);
}

bool loader_at(const struct loader *l, pid_t number, int64_t *step, int *lane) {
    for (int i = 0; i < l->n_threads; i++) {
        const struct loader_reader *r = &l->reader[l->run_threads + i];
        if (atomic_load(&r->self.number) != number) continue;
        *step = atomic_load(&r->step);
        *lane = atomic_load(&r->lane);
        return true;
    }
    return false;
}

/* ---- making ---- */

static tri_status make_readers(struct loader *l) {
    int n = l->run_threads + l->most_threads;
    size_t spare = 0;
    for (int i = 0; i < l->run->n_executables; i++) {
        size_t bytes = l->run->executable[i].feed.spare_bytes;
        if (bytes > spare) spare = bytes;
    }
    l->reader = calloc((size_t)n, sizeof *l->reader);
    if (!l->reader) return base_no_memory("threads that read data");
    for (int i = 0; i < n; i++) {
        l->reader[i].loader = l;
        l->reader[i].spare = malloc(spare + 1);
        if (!l->reader[i].spare) return base_no_memory("a sample");
    }
    return TRI_OK;
}

tri_status loader_make(struct loader *l, tri_run *run, const struct loader_place *place) {
    int words = loader_words(run->executable, run->n_executables);
    int64_t asked = run->options.data_threads;
    *l = (struct loader){.run = run,
                         .made = true,
                         .run_threads = team_threads(run->team),
                         .buffers = run->executable->n_buffers};
    bool none = asked < 0 || l->buffers < 2 || !concurrent(l);
    l->most_threads = none ? 0 : asked > 0 && !in_order(l) ? (int)asked : 1;
    pthread_mutex_init(&l->reading, NULL);
    if (place) l->place = *place;
    else l->place = (struct loader_place){.queue = &l->own_queue, .done = &l->own_done, .of = 1};
    if (!l->place.word) l->own_word = l->place.word = calloc((size_t)words, sizeof *l->own_word);
    return l->place.word ? make_readers(l) : base_no_memory("claims of samples");
}

static bool end_threads(struct loader *l) {
    struct timespec until;
    bool all = true;
    atomic_store(&l->quit, true);
    if (l->n_threads) wait_wake(l->place.queue);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LOADER_PATIENCE;
    for (int i = 0; i < l->n_threads; i++) {
        if (!pthread_timedjoin_np(l->reader[l->run_threads + i].thread, NULL, &until)) continue;
        pthread_detach(l->reader[l->run_threads + i].thread);
        all = false;
    }
    return all;
}

bool loader_free(struct loader *l) {
    if (!l->made) return true;
    if (!end_threads(l)) return false;
    for (int i = 0; l->reader && i < l->run_threads + l->most_threads; i++) {
        free(l->reader[i].spare);
        free(l->reader[i].own);
    }
    free(l->reader);
    free(l->own_word);
    pthread_mutex_destroy(&l->reading);
    *l = (struct loader){0};
    return true;
}
