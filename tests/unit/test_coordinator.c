/* SPDX-License-Identifier: Apache-2.0
 * The coordinator and its members: what happens at the start and at each kind of end; and, in
 * thousands of drawn runs with deaths, silence, partitions and hosts that leave and join, that all
 * members are in the same epoch, that nobody comes back without fetching the state, that there is
 * one teller, and that steps go on as long as a host is left. */
#include "launch/requests.h"
#include "unit/hosts_world.h"

static void connect_all(void) {
    for (int i = 0; i < w.n; i++) connect_node(i, node_names[i], "1");
}

static void begin_run(int n, uint64_t seed) {
    begin_world(n, seed);
    connect_all();
    run_for(2 * SECOND);
    assert_true(w.epoch && w.teller == 0);
    assert_true(w.node[0].opened > 2);
}

static bool over(int code) {
    int got;
    return coordinator_is_over(w.c, &got) && got == code;
}

static void said(const char *line) {
    if (!w.said.size || !strstr(w.said.data, line))
        fail_msg("\"%s\" is not in: %s", line, w.said.size ? w.said.data : "");
}

/* ---- the start ---- */

static void refuses_versions(void **state) {
    (void)state;
    begin_world(3, 1);
    connect_node(0, "h0", "1");
    connect_node(1, "h1", "0.9");
    connect_node(2, "h2", "0.8");
    run_for(2 * SECOND);
    said("host h1: it has version 0.9, and the run is started by version 1");
    said("host h2: it has version 0.8");
    assert_true(over(TRI_FAILED) && !w.epoch);
    for (int i = 0; i < w.n; i++) assert_true(w.node[i].gone && w.node[i].code == TRI_FAILED);
    end_world();
}

static void refuses_names(void **state) {
    (void)state;
    struct host_message m = {.kind = HOST_HELLO, .name = "h9", .version = "1", .pid = 1};
    begin_run(2, 2);
    coordinator_arrived(w.c, STRANGER, &m, w.now);
    said("host h9 is not one of the run's");
    m.name = "h1";
    coordinator_arrived(w.c, STRANGER, &m, w.now);
    said("host h1 is in the run already, with another process");
    assert_int_equal(w.to_stranger, HOST_REFUSED);
    m = (struct host_message){.kind = HOST_BEAT};
    coordinator_arrived(w.c, STRANGER + 1, &m, w.now);
    const uint64_t step = w.node[1].opened;
    run_for(SECOND);
    assert_true(w.node[1].opened > step);
    end_world();
}

static void names_the_missing(void **state) {
    (void)state;
    begin_world(3, 3);
    connect_node(0, "h0", "1");
    connect_node(1, "h1", "1");
    w.node[2].broken = true;
    run_for(4 * SECOND);
    said("host h2: it has not connected within 2 s");
    assert_true(over(TRI_FAILED) && w.node[0].gone);
    end_world();
    begin_world(2, 4);
    connect_all();
    for (int i = 0; i < 200; i++) {
        run_for(SECOND / 30);
        w.node[1].ready_at = 0;
    }
    said("host h1: it has not been ready within 4 s");
    assert_true(over(TRI_FAILED) && w.node[0].gone && w.node[1].gone);
    end_world();
}

static void compares_digests(void **state) {
    (void)state;
    begin_world(3, 5);
    connect_all();
    for (int i = 0; i < 6 * w.n || !w.node[1].ready_at; i++) happen();
    become_ready(&w.node[1], 2, 0);
    run_for(3 * SECOND);
    said("host h1: its network or plan differ from those of host h0");
    assert_true(over(TRI_FAILED) && !w.epoch && w.node[1].gone && w.node[2].gone);
    end_world();
}

static void begins_with_the_latest(void **state) {
    (void)state;
    begin_world(3, 9);
    connect_all();
    for (int i = 0; i < 6 * w.n || !w.node[1].ready_at; i++) happen();
    become_ready(&w.node[1], 1, 7);
    run_for(3 * SECOND);
    said("host h0: its checkpoint is of step 0, and that of host h1 of step 7");
    said("host h2: its checkpoint is of step 0, and that of host h1 of step 7");
    assert_true(w.epoch && w.teller == 1);
    end_world();
}

static void ends_if_one_dies_first(void **state) {
    (void)state;
    begin_world(2, 6);
    connect_all();
    for (int i = 0; i < 6 * w.n || !w.node[1].ready_at; i++) happen();
    kill_node(&w.node[1]);
    run_for(3 * SECOND);
    said("host h1: its connection closed");
    assert_true(over(TRI_FAILED) && w.node[0].gone);
    end_world();
}

/* ---- what users ask ---- */

static void say_up(int i, struct host_message m) {
    push(&w.node[i].up, &m);
    run_for(SECOND / 10);
}

static void asks(void **state) {
    (void)state;
    begin_run(3, 20);
    say_up(2, (struct host_message){.kind = HOST_ASK, .ask = HOST_PAUSE});
    for (int i = 0; i < w.n; i++) assert_int_equal(w.node[i].asked[HOST_PAUSE], 1);
    say_up(1, (struct host_message){.kind = HOST_ASK, .ask = HOST_SAVE});
    for (int i = 0; i < w.n; i++) assert_int_equal(w.node[i].asked[HOST_SAVE], i == w.teller);
    say_up(1, (struct host_message){.kind = HOST_DONE, .ask = HOST_SAVE, .step = 8});
    assert_int_equal(w.node[2].done, 0); /* it is not the teller */
    say_up(0, (struct host_message){.kind = HOST_DONE, .ask = HOST_SAVE, .step = 9});
    assert_int_equal(w.node[1].done, 9);
    kill_node(&w.node[0]);
    run_for(SECOND);
    assert_true(w.node[1].asked[HOST_PAUSE] == 2); /* the new teller gets the request, too */
    assert_true(w.node[1].changed == 1 && w.node[2].changed == 1);
    say_up(2, (struct host_message){.kind = HOST_ASK, .ask = HOST_KILL});
    run_for(SECOND);
    said("host h2 has gone in step ");
    coordinator_ask(w.c, HOST_KILL, w.now);
    assert_true(over(TRI_STOPPED));
    run_for(SECOND);
    assert_int_equal(w.node[1].asked[HOST_KILL], 1);
    end_world();
}

static void request(const char *text, int code, const char *row) {
    static struct request_texts texts;
    struct host_message m = {.kind = HOST_ANSWER};
    request_answer(w.c, w.n, text, w.now, &texts, &m);
    assert_int_equal(m.code, code);
    if (row && (!m.rows.n || !strstr(m.rows.text[m.rows.n - 1], row)))
        fail_msg("\"%s\" is not in: %s", row, m.rows.n ? m.rows.text[m.rows.n - 1] : "");
}

static void requests(void **state) {
    (void)state;
    begin_run(3, 21);
    request("hosts", TRI_OK, "h2\ttakes part\t");
    request("scale h1=3", TRI_OK, NULL);
    request("scale h1=4", TRI_USAGE, "host h1 can have 1 to 3 workers, not 4");
    request("scale h1=0", TRI_USAGE, "not 0");
    request("scale h1=", TRI_USAGE, "HOST=N was expected");
    request("scale h7=1", TRI_USAGE, "host h7 is not in the run");
    request("evict h7", TRI_USAGE, "host h7 is not in the run");
    request("evict", TRI_USAGE, "is not in the run");
    request("", TRI_USAGE, "no request");
    request("dance", TRI_USAGE, "no request dance");
    run_for(SECOND / 10);
    assert_int_equal(w.node[1].workers, 3);
    request("evict h2", TRI_OK, NULL);
    request("hosts", TRI_OK, "h2\tleaving\t");
    run_for(2 * SECOND);
    request("hosts", TRI_OK, "h2\tleft\t");
    request("evict h2", TRI_USAGE, "is not in the run");
    end_world();
}

/* ---- ends ---- */

static void a_death(void **state) {
    (void)state;
    begin_run(3, 7);
    const uint64_t step = w.node[0].opened;
    kill_node(&w.node[0]);
    run_for(SECOND);
    said("host h0 has gone in step ");
    said("(its connection closed): its lanes go to h1, h2; epoch ");
    assert_int_equal(w.teller, 1);
    assert_true(w.node[1].opened > step + 2);
    kill_node(&w.node[1]);
    kill_node(&w.node[2]);
    run_for(SECOND);
    said("no host is left after step ");
    assert_true(over(TRI_FAILED));
    end_world();
}

static void silence(void **state) {
    (void)state;
    begin_run(3, 8);
    w.node[1].stopped = w.now + 60 * SECOND;
    run_for(LEASE);
    assert_true(w.alive[1]);
    run_for(SECOND);
    said("(no sign of it for 1.2 s): its lanes go to h0, h2");
    const uint64_t step = w.node[0].opened;
    w.node[1].stopped = 0;
    run_for(2 * SECOND);
    said("host h1 joins: it fetches 4.0 MiB");
    said("host h1 has joined in step ");
    assert_true(w.alive[1] && w.node[1].opened > step + 2 && w.node[1].conn != MOST + 1);
    end_world();
}

/* By other means than its agent's: with another process. What it computes with is compared. */
static void restarted(void **state) {
    (void)state;
    begin_run(3, 19);
    kill_node(&w.node[0]);
    run_for(SECOND / 2);
    const uint64_t step = w.node[1].opened;
    connect_again(0);
    run_for(SECOND);
    said("host h0 has joined in step ");
    assert_true(w.alive[0] && w.node[0].opened > step + 2 && w.teller == 1);
    kill_node(&w.node[2]);
    run_for(SECOND / 2);
    connect_again(2);
    w.node[2].other = true;
    run_for(SECOND);
    said("host h2 has not joined: its network or plan differ from those of the run");
    assert_true(!w.alive[2] && w.node[2].gone && w.node[1].opened > step + 4);
    end_world();
}

/* Nobody has the state but the host that others join. */
static void the_last_donor_dies(void **state) {
    (void)state;
    begin_run(2, 20);
    kill_node(&w.node[0]);
    run_for(SECOND / 2);
    connect_again(0);
    while (!w.alive[0]) happen(), advance(SECOND / 1000);
    assert_true(lacks(&w.node[0]));
    kill_node(&w.node[1]);
    run_for(SECOND);
    said("no host is left after step ");
    assert_true(over(TRI_FAILED) && w.node[0].gone);
    end_world();
}

/* The whole process of the coordinator stands still, and evicts nobody for it. */
static void coordinator_stands_still(void **state) {
    (void)state;
    begin_run(2, 9);
    w.now += 10 * SECOND;
    const uint64_t step = w.node[1].opened;
    coordinator_tick(w.c, w.now);
    run_for(SECOND);
    assert_true(w.alive[0] && w.alive[1] && w.epoch == 1 && w.node[1].opened > step);
    end_world();
}

static void ferries_die(void **state) {
    (void)state;
    begin_run(3, 10);
    const uint64_t step = w.node[0].opened;
    kill_ferry(&w.node[2]);
    run_for(SECOND);
    said("host h2 has replaced its ferry in step ");
    assert_true(w.alive[2] && w.node[2].opened > step + 2);
    end_world();
}

/* It gets HOLD, and does not answer. */
static void a_ferry_hangs(void **state) {
    (void)state;
    begin_run(3, 17);
    w.node[1].ferry.hangs = true;
    w.cut[0][2] = w.cut[2][0] = 1;
    run_for(LEASE);
    const uint64_t step = w.node[1].opened;
    run_for(LEASE / 2);
    assert_int_equal(w.node[1].opened, step);
    run_for(2 * LEASE);
    said("host h1 has replaced its ferry in step ");
    assert_true(w.alive[1] && w.node[1].opened > step + 2);
    end_world();
}

/* What is said of an earlier epoch begins none. */
static void old_news(void **state) {
    (void)state;
    struct host_message m = {.kind = HOST_LOST, .epoch = 1, .host = 1, .text = "reset by peer"};
    begin_run(3, 18);
    kill_node(&w.node[2]);
    run_for(SECOND);
    const uint32_t epoch = w.epoch;
    assert_true(epoch > 1);
    coordinator_arrived(w.c, w.node[0].conn, &m, w.now);
    run_for(SECOND);
    assert_int_equal(w.epoch, epoch);
    m.epoch = epoch;
    coordinator_arrived(w.c, w.node[0].conn, &m, w.now);
    run_for(SECOND);
    assert_int_equal(w.epoch, epoch + 1);
    end_world();
}

static void a_pair_that_fails(void **state) {
    (void)state;
    begin_run(3, 11);
    w.cut[1][2] = w.cut[2][1] = 2;
    run_for(2 * SECOND);
    said("hosts h1 and h2 have lost their connection in step ");
    said("(it cannot keep a connection to host h1): its lanes go to h0, h1");
    const uint64_t step = w.node[1].opened;
    run_for(SECOND);
    assert_true(w.alive[0] && w.alive[1] && !w.alive[2] && w.node[1].opened > step);
    end_world();
}

static void leaving(void **state) {
    (void)state;
    begin_run(3, 12);
    member_leave(w.node[0].member);
    run_for(SECOND);
    said("host h0 has left in step ");
    assert_true(w.node[0].gone && w.node[0].code == 0 && w.teller == 1);
    assert_int_equal(coordinator_evict(w.c, "h0", w.now), TRI_USAGE);
    assert_int_equal(coordinator_evict(w.c, "h2", w.now), TRI_OK);
    const uint64_t step = w.node[1].opened;
    run_for(SECOND);
    assert_true(w.node[2].gone && w.node[2].code == 0 && w.node[1].opened > step);
    member_leave(w.node[1].member); /* the last one saves and stops */
    run_for(SECOND);
    assert_true(over(3) && w.node[1].gone && w.node[1].code == 3);
    end_world();
}

static void closes_and_fails(void **state) {
    (void)state;
    begin_run(2, 13);
    w.node[0].closing = 0;
    run_for(SECOND);
    assert_true(over(0) && w.node[0].gone && w.node[1].gone && !w.node[1].code);
    end_world();
    begin_run(3, 14);
    member_failed(w.node[2].member, "sample 3 cannot be read");
    run_for(SECOND);
    assert_true(over(1) && w.node[2].code == 1);
    end_world();
    begin_run(3, 15);
    coordinator_ask(w.c, HOST_STOP, w.now);
    w.node[0].closing = -1;
    kill_node(&w.node[0]); /* before it has heard of it */
    run_for(SECOND);
    assert_true(over(3) && w.node[1].code == 3);
    end_world();
}

static void coordinator_dies(void **state) {
    (void)state;
    begin_run(2, 16);
    for (int i = 0; i < 2; i++) {
        struct node *h = &w.node[i];
        clear(&h->down);
        member_coordinator_ended(h->member, "gone");
        assert_false(has_lease(h));
        h->broken = h->closed = true;
        clear(&h->up);
    }
    w.coordinator_gone = true;
    for (; w.now < 19 * SECOND; w.now += SECOND / 10)
        for (int i = 0; i < 2; i++) {
            tick_node(&w.node[i]);
            assert_true(w.now > 16 * SECOND || !w.node[i].gone);
        }
    assert_true(w.node[0].gone && w.node[1].gone && w.node[0].code == 3);
    end_world();
}

/* ---- drawn runs ---- */

enum { AGAIN, DIE, DIE_MUTE, RESET, STOP_AGENT, CUT, FERRY, PAIR, PAIR_FOR_GOOD, LEAVE, FAULTS };

static void go_wrong(bool *left) {
    const int i = (int)draw((uint32_t)w.n), k = (int)draw((uint32_t)w.n);
    struct node *h = &w.node[i];
    const int64_t until = w.now + draw(3000) * (SECOND / 1000);
    const uint32_t fault = draw(FAULTS);
    if (!h->lives && fault < 3 && w.epoch) connect_again(i);
    if (!h->lives) return;
    switch (fault) {
    case AGAIN: break;
    case DIE_MUTE: h->mute = true; /* fall through */
    case DIE: kill_node(h); break;
    case RESET:
        if (h->broken) break;
        h->broken = true;
        push(&h->up, NULL);
        push(&h->down, NULL);
        break;
    case STOP_AGENT: h->stopped = until; break;
    case CUT: h->cut = until; break;
    case FERRY:
        if (h->ferry.lives) kill_ferry(h);
        break;
    case PAIR: w.cut[i][k] = w.cut[k][i] = 1; break;
    case PAIR_FOR_GOOD: w.cut[i][k] = w.cut[k][i] = 2; break;
    case LEAVE:
        if (w.epoch) member_leave(h->member);
        *left |= w.epoch;
    }
}

static bool any_alive(void) {
    for (int i = 0; i < w.n; i++)
        if (w.alive[i] && w.node[i].lives && !w.node[i].broken && !lacks(&w.node[i])) return true;
    return false;
}

static uint64_t steps(void) {
    uint64_t most = 0;
    for (int i = 0; i < w.n; i++)
        if (w.alive[i] && w.node[i].opened > most) most = w.node[i].opened;
    return most;
}

/* Nothing goes wrong any more. */
static void check_goes_on(void) {
    uint64_t before = steps();
    run_for(SECOND);
    assert_true(steps() > before + 2);
    for (int i = 0; i < w.n; i++) {
        struct node *h = &w.node[i];
        if (!w.alive[i]) continue;
        assert_true(h->lives && !h->broken && has_lease(h));
        assert_int_equal(atomic_load(&h->head.epoch), w.epoch);
        assert_int_equal(atomic_load(&h->head.teller), w.teller);
        assert_int_equal(h->ferry.begun, w.epoch);
    }
}

static void check_has_ended(int code, bool left) {
    assert_true(!any_alive() || (!w.epoch && code == TRI_FAILED) || (left && code == 3));
    for (int i = 0; i < w.n; i++) assert_true(!w.node[i].lives || w.node[i].broken);
}

static int ended, went_on;
static uint64_t running; /* its seed */

static int name_seed(void **state) {
    (void)state;
    if (running) print_message("# SEED=%llu\n%s", (unsigned long long)running, w.said.data);
    return 0;
}

static void one_run(uint64_t seed) {
    bool left = false;
    running = seed;
    int code;
    begin_world(2 + (int)(seed % 3), seed);
    connect_all();
    run_for(draw(2) ? SECOND : draw(400) * (SECOND / 1000));
    for (int i = (int)draw(5); i > 0; i--) {
        for (int k = (int)draw(100); k > 0; k--) happen();
        go_wrong(&left);
        run_for(draw(500) * (SECOND / 1000));
    }
    run_for(SECOND / 5);
    memset(w.cut, 0, sizeof w.cut);
    for (int i = 0; i < w.n; i++) w.node[i].stopped = w.node[i].cut = 0;
    run_for(4 * SECOND);
    if (coordinator_is_over(w.c, &code))
        check_has_ended(code, left), ended++;
    else
        check_goes_on(), went_on++;
    end_world();
    running = 0;
}

static void drawn_runs(void **state) {
    (void)state;
    const int runs = getenv("SLOW") ? 100000 : getenv("FEW") ? 300 : 5000;
    const char *one = getenv("SEED");
    for (int seed = 1; seed <= runs && !one; seed++) one_run((uint64_t)seed);
    if (one) one_run(strtoull(one, NULL, 10));
    print_message("# %d runs have gone on, %d have ended\n", went_on, ended);
    assert_true(one || went_on > runs / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_versions),
        cmocka_unit_test(refuses_names),
        cmocka_unit_test(names_the_missing),
        cmocka_unit_test(compares_digests),
        cmocka_unit_test(begins_with_the_latest),
        cmocka_unit_test(ends_if_one_dies_first),
        cmocka_unit_test(asks),
        cmocka_unit_test(requests),
        cmocka_unit_test(a_death),
        cmocka_unit_test(silence),
        cmocka_unit_test(restarted),
        cmocka_unit_test(the_last_donor_dies),
        cmocka_unit_test(coordinator_stands_still),
        cmocka_unit_test(ferries_die),
        cmocka_unit_test(a_ferry_hangs),
        cmocka_unit_test(old_news),
        cmocka_unit_test(a_pair_that_fails),
        cmocka_unit_test(leaving),
        cmocka_unit_test(closes_and_fails),
        cmocka_unit_test(coordinator_dies),
        cmocka_unit_test_teardown(drawn_runs, name_seed),
    };
    return cmocka_run_group_tests_name("coordinator", tests, NULL, NULL);
}
