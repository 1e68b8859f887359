/* SPDX-License-Identifier: Apache-2.0
 * What is asked on one host of several comes true there, whoever tells. The coordinator is made up:
 * it passes everything on, as launch/coordinator.c does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "launch/steer.h"

#define N 3
#define SECOND INT64_C(1000000000)

static struct steer host[N];
static struct host_message sent[64]; /* to the coordinator, and by whom */
static int sender[64], n_sent, teller;
static int64_t now;

static void send_it(void *user, const struct host_message *m) {
    assert_true(n_sent < 64);
    sender[n_sent] = (int)((struct steer *)user - host);
    sent[n_sent++] = *m; /* its texts stay */
}

static void set_teller(int which) {
    teller = which;
    for (int i = 0; i < N; i++) {
        atomic_store(&host[i].head->hosts.teller, which);
        atomic_fetch_add(&host[i].head->hosts.epoch, 1);
    }
}

static void begin(void) {
    const struct crew_size size = {.workers = 1, .threads = 1, .hosts = N};
    memset(host, 0, sizeof host);
    n_sent = 0;
    now = 10 * SECOND;
    for (int i = 0; i < N; i++) {
        host[i].head = aligned_alloc(128, (sizeof(struct crew_head) + 127) / 128 * 128);
        assert_non_null(host[i].head);
        memset(host[i].head, 0, sizeof *host[i].head);
        crew_head_begin(host[i].head, &size);
        host[i].head->hosts.n = N;
        host[i].head->hosts.self = i;
        atomic_store(&host[i].head->course.total, 100);
        atomic_store(&host[i].head->worker[0].state, CREW_READY);
    }
    set_teller(0);
}

static void end(void) {
    for (int i = 0; i < N; i++) free(host[i].head);
}

/* All turn; what they send arrives at all, or at the teller. */
static void turn(void) {
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) steer_turn(&host[i], true, now, send_it, &host[i]);
        for (int k = 0; k < n_sent; k++)
            for (int i = 0; i < N; i++) {
                const bool all = sent[k].kind == HOST_DONE || sent[k].ask == HOST_PAUSE ||
                                 sent[k].ask == HOST_RESUME;
                if (sent[k].kind != HOST_REQUEST && (all || i == teller))
                    steer_take(&host[i], &sent[k], now);
            }
        n_sent = 0;
    }
}

static void step(uint64_t committed, uint64_t opened) {
    for (int i = 0; i < N; i++) {
        atomic_store(&host[i].head->course.committed, committed);
        atomic_store(&host[i].head->course.opened, opened);
    }
}

static void pauses(void **state) {
    (void)state;
    begin();
    step(4, 5);
    atomic_store(&host[1].head->asked.paused, 7);
    turn();
    for (int i = 0; i < N; i++) {
        assert_true(atomic_load(&host[i].head->asked.paused));
        assert_int_equal(atomic_load(&host[i].head->told.paused), 0); /* step 5 is open */
    }
    step(5, 5);
    turn();
    assert_int_equal(atomic_load(&host[1].head->told.paused), 0); /* the teller may open another */
    struct crew_thread *t = &host[0].head->thread[0];
    atomic_store(&t->since, now + 1);
    atomic_store(&t->at, CREW_AT_WAIT);
    turn();
    for (int i = 0; i < N; i++) assert_int_equal(atomic_load(&host[i].head->told.paused), 6);
    /* Resumed and paused again between two looks. */
    step(6, 7);
    now += SECOND / 10;
    atomic_store(&host[2].head->asked.paused, 9);
    turn();
    assert_int_equal(atomic_load(&host[2].head->told.paused), 0);
    step(7, 7);
    now += 2 * SECOND; /* no reporter takes so long to see it */
    turn();
    assert_int_equal(atomic_load(&host[2].head->told.paused), 8);
    atomic_store(&host[2].head->asked.paused, 0);
    turn();
    for (int i = 0; i < N; i++) {
        assert_false(atomic_load(&host[i].head->asked.paused));
        assert_int_equal(atomic_load(&host[i].head->told.paused), 0);
    }
    end();
}

static void answer_save(int by, uint64_t saved, const char *error) {
    struct crew_told *t = &host[by].head->told;
    atomic_store(&t->saved, saved);
    base_format(t->save_error, sizeof t->save_error, "%s", error);
    atomic_store(&t->save_answered, atomic_load(&host[by].head->asked.saves));
}

static bool answered(int i) {
    const struct crew_head *h = host[i].head;
    return atomic_load(&h->told.save_answered) == atomic_load(&h->asked.saves);
}

static void saves(void **state) {
    (void)state;
    begin();
    step(4, 5);
    atomic_store(&host[1].head->asked.saves, 1);
    turn();
    assert_int_equal(atomic_load(&host[0].head->asked.saves), 1);
    assert_int_equal(atomic_load(&host[2].head->asked.saves), 0);
    answer_save(0, 3, ""); /* to an earlier request of another host */
    turn();
    assert_false(answered(1));
    atomic_fetch_add(&host[0].head->asked.saves, 1);
    answer_save(0, 5, "the disk is full");
    turn();
    assert_true(answered(1) && atomic_load(&host[1].head->told.saved) == 5);
    assert_string_equal(host[1].head->told.save_error, "the disk is full");
    /* The teller goes before it has answered: the next one is asked; it may be this host. */
    atomic_fetch_add(&host[1].head->asked.saves, 1);
    turn();
    set_teller(2);
    turn();
    assert_false(answered(1) || answered(2));
    answer_save(2, 5, "");
    turn();
    assert_true(answered(1) && !*host[1].head->told.save_error);
    atomic_fetch_add(&host[1].head->asked.saves, 1);
    turn();
    set_teller(1);
    turn();
    assert_false(answered(1));
    end();
}

static void stops(void **state) {
    (void)state;
    begin();
    step(4, 5);
    atomic_store(&host[2].head->asked.stop, CREW_STOP_ASKED);
    turn();
    assert_int_equal(atomic_load(&host[0].head->asked.stop), CREW_STOP_ASKED);
    assert_int_equal(atomic_load(&host[1].head->asked.stop), CREW_STOP_NO);
    end();
}

static void requests(void **state) {
    (void)state;
    begin();
    struct crew_head *h = host[1].head;
    const char *rows[] = {"one", "two"};
    base_format(h->asked.request, CREW_REQUEST, "hosts");
    atomic_fetch_add(&h->asked.requests, 1);
    steer_turn(&host[1], true, now, send_it, &host[1]);
    assert_true(n_sent == 1 && sent[0].kind == HOST_REQUEST && sent[0].time == 1);
    steer_turn(&host[1], true, now, send_it, &host[1]);
    assert_int_equal(n_sent, 1);
    struct host_message m = {.kind = HOST_ANSWER, .time = 7, .rows = {2, rows}};
    steer_take(&host[1], &m, now);
    assert_int_equal(atomic_load(&h->told.answered), 0); /* of another request */
    m.time = 1;
    steer_take(&host[1], &m, now);
    assert_int_equal(atomic_load(&h->told.answered), 1);
    assert_string_equal(h->told.answer, "one\ntwo");
    assert_int_equal(h->told.answer_code, 0);
    atomic_fetch_add(&h->asked.requests, 1);
    steer_turn(&host[1], false, now, send_it, &host[1]);
    assert_int_equal(atomic_load(&h->told.answered), 2);
    assert_int_equal(h->told.answer_code, TRI_FAILED);
    steer_take(&host[1], &(struct host_message){.kind = HOST_SCALE, .workers = 3}, now);
    assert_int_equal(atomic_load(&h->asked.wanted), 3);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses),
        cmocka_unit_test(saves),
        cmocka_unit_test(stops),
        cmocka_unit_test(requests),
    };
    return cmocka_run_group_tests_name("steer", tests, NULL, NULL);
}
