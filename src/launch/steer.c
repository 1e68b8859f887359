/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/steer.h"

#include <string.h>

#define STILL 1000000000 /* nanoseconds after which the reporter must have seen that it pauses */

static bool tells(const struct steer *s) {
    const struct crew_hosts *h = &s->head->hosts;
    return atomic_load(&h->epoch) && atomic_load(&h->teller) == h->self;
}

/* Whether the teller opens no step any more. The reporter may have read the word just before it
 * was set; if it began to wait later, it has seen it. Its state is read before the steps. */
static bool is_quiet(const struct steer *s, int64_t now) {
    const struct crew_head *h = s->head;
    const int reporter = atomic_load(&h->workers.reporter);
    if (reporter < 0 || atomic_load(&h->worker[reporter].state) != CREW_READY) return false;
    const struct crew_thread *t = &h->thread[reporter * h->size.threads];
    const bool seen = atomic_load(&t->at) == CREW_AT_WAIT && atomic_load(&t->since) > s->paused_at;
    const uint64_t committed = atomic_load(&h->course.committed);
    return atomic_load(&h->course.opened) == committed && !atomic_load(&h->course.ending) &&
           committed != atomic_load(&h->course.total) && (seen || now - s->paused_at > STILL);
}

static void note_paused(struct steer *s, int64_t now) {
    s->paused = atomic_load(&s->head->asked.paused);
    s->paused_at = now;
    atomic_store(&s->head->told.paused, 0);
}

/* ---- to the coordinator ---- */

static void answer(struct steer *s, uint32_t request, int code, const struct host_texts *rows) {
    struct crew_told *t = &s->head->told;
    int n = 0;
    if (request != atomic_load(&s->head->asked.requests)) return; /* nobody waits for it any more */
    *t->answer = 0;
    for (int i = 0; i < rows->n && n < CREW_ANSWER - HOST_TEXT; i++)
        n += base_format(t->answer + n, CREW_ANSWER - (size_t)n, "%s\n", rows->text[i]);
    if (n) t->answer[n - 1] = 0;
    t->answer_code = code;
    atomic_store(&t->answered, request);
}

/* If a later request is being written meanwhile, it is counted later. */
static bool copy_request(struct steer *s, char text[CREW_REQUEST]) {
    const struct crew_asked *q = &s->head->asked;
    const uint32_t number = atomic_load(&q->requests);
    if (number == s->requests) return false;
    memcpy(text, q->request, CREW_REQUEST);
    text[CREW_REQUEST - 1] = 0;
    atomic_thread_fence(memory_order_acquire);
    if (number != atomic_load(&q->requests)) return false;
    s->requests = number;
    return true;
}

static void pass_request(struct steer *s, bool connected,
                         void (*send)(void *user, const struct host_message *m), void *user) {
    char text[CREW_REQUEST];
    const char *why = "this host has no connection to the run's coordinator";
    if (!copy_request(s, text)) return;
    if (connected)
        send(user, &(struct host_message){.kind = HOST_REQUEST, .time = s->requests, .text = text});
    else
        answer(s, s->requests, TRI_FAILED, &(struct host_texts){1, &why});
}

/* What the teller has done. */
static void pass_done(struct steer *s, int64_t now,
                      void (*send)(void *user, const struct host_message *m), void *user) {
    struct crew_told *t = &s->head->told;
    const uint32_t answered = atomic_load(&t->save_answered);
    struct host_message m = {.kind = HOST_DONE, .ask = HOST_SAVE};
    if (answered != s->answered) {
        s->answered = answered;
        m.step = atomic_load(&t->saved);
        m.text = t->save_error;
        send(user, &m);
    }
    if (!s->paused || atomic_load(&t->paused) || !is_quiet(s, now)) return;
    m = (struct host_message){.kind = HOST_DONE, .ask = HOST_PAUSE,
                              .step = atomic_load(&s->head->course.committed)};
    atomic_store(&t->paused, m.step + 1);
    send(user, &m);
}

void steer_turn(struct steer *s, bool connected, int64_t now,
                void (*send)(void *user, const struct host_message *m), void *user) {
    struct crew_head *h = s->head;
    const int teller = atomic_load(&h->hosts.epoch) ? 1 + atomic_load(&h->hosts.teller) : 0;
    struct host_message ask = {.kind = HOST_ASK};
    pass_request(s, connected, send, user);
    if (!connected || !teller) return;
    if (teller != s->teller) s->saves = atomic_load(&h->told.save_answered); /* the last had them */
    s->teller = teller;
    if (atomic_load(&h->asked.paused) != s->paused) {
        note_paused(s, now);
        ask.ask = s->paused ? HOST_PAUSE : HOST_RESUME;
        send(user, &ask);
    }
    if (!s->stop && atomic_load(&h->asked.stop) == CREW_STOP_ASKED) {
        s->stop = true;
        ask.ask = HOST_STOP;
        send(user, &ask);
    }
    const uint32_t saves = atomic_load(&h->asked.saves);
    if (saves != s->saves && !tells(s)) {
        s->saves_after = atomic_load(&h->course.committed);
        ask.ask = HOST_SAVE;
        send(user, &ask);
    }
    s->saves = saves;
    if (tells(s)) pass_done(s, now, send, user);
}

/* ---- of the coordinator ---- */

static void take_ask(struct steer *s, enum host_ask what, int64_t now) {
    struct crew_asked *q = &s->head->asked;
    int no = CREW_STOP_NO, runs = 0;
    if (what == HOST_STOP) {
        s->stop = true;
        atomic_compare_exchange_strong(&q->stop, &no, CREW_STOP_ASKED);
    } else if (what == HOST_SAVE) {
        atomic_fetch_add(&q->saves, 1);
    } else {
        if (what == HOST_RESUME) atomic_store(&q->paused, 0);
        else atomic_compare_exchange_strong(&q->paused, &runs, 1);
        note_paused(s, now); /* whoever asks again waits for another answer */
    }
}

/* An answer to an earlier request may be on its way: it is of an earlier step. */
static void take_done(struct steer *s, const struct host_message *m) {
    struct crew_told *t = &s->head->told;
    if (tells(s)) return;
    if (m->ask == HOST_PAUSE && s->paused) atomic_store(&t->paused, m->step + 1);
    if (m->ask != HOST_SAVE || s->saves == atomic_load(&t->save_answered) ||
        m->step < s->saves_after)
        return;
    base_format(t->save_error, sizeof t->save_error, "%s", m->text);
    atomic_store(&t->saved, m->step);
    s->answered = s->saves;
    atomic_store(&t->save_answered, s->saves);
}

void steer_take(struct steer *s, const struct host_message *m, int64_t now) {
    if (m->kind == HOST_ASK) take_ask(s, (enum host_ask)m->ask, now);
    else if (m->kind == HOST_DONE) take_done(s, m);
    else if (m->kind == HOST_ANSWER) answer(s, (uint32_t)m->time, m->code, &m->rows);
    else if (m->kind == HOST_SCALE) atomic_store(&s->head->asked.wanted, m->workers);
    crew_notify(s->head);
}
