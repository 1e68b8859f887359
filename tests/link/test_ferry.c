/* SPDX-License-Identifier: Apache-2.0
 * Ferries as processes of their own, joined over TCP. The test is their agents, their coordinator
 * and their workers. Whatever dies or joins, all that live end with the values of one host. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/random.h"
#include "crew/host_socket.h"
#include "link/hosts.h"

static struct agent {
    int socket;
    pid_t ferry;
    bool alive;  /* the host */
    bool works;  /* its threads do */
    char address[HOSTS_ADDRESS];
    bool has_report;
    struct host_message report;
    int lost; /* the host of the last LOST of this epoch; -1: none */
    char why[HOST_TEXT]; /* it was lost */
    char told[HOST_TEXT];
} agent[MOST];
static struct host host[MOST];
static struct shape shape;
static uint32_t epoch;
static int teller; /* of the epoch */
static uint64_t drawn;

/* Of a case that draws what happens. */
static int rounds(int few) { return getenv("SLOW") ? 200 : few; }

static int draw(int n) { return (int)(random_u32(17, 0, drawn++) % (uint32_t)n); }

/* ---- messages ---- */

static void say(int i, const struct host_message *m) {
    assert_int_equal(host_socket_send(agent[i].socket, m, 0), TRI_OK);
}

/* False: there is none now. */
static bool hear(int i) {
    struct agent *a = &agent[i];
    struct host_message m;
    enum host_socket what;
    assert_int_equal(host_socket_take(a->socket, MSG_DONTWAIT, &m, &what), TRI_OK);
    if (what != HOST_SOCKET_TAKEN) return false;
    if (m.kind == HOST_ADDRESS) snprintf(a->address, sizeof a->address, "%s", m.address);
    if (m.kind == HOST_TOLD) snprintf(a->told, sizeof a->told, "%s", m.text);
    if (m.kind == HOST_LOST && m.epoch == epoch) {
        a->lost = m.host;
        snprintf(a->why, sizeof a->why, "%s", m.text);
    }
    if (m.kind == HOST_REPORT && m.epoch == epoch) {
        assert_false(a->has_report);
        a->has_report = true;
        a->report = m;
    } else {
        host_message_free(&m);
    }
    return true;
}

static void forget_reports(void) {
    for (int i = 0; i < MOST; i++) {
        if (agent[i].has_report) host_message_free(&agent[i].report);
        agent[i].has_report = false;
        agent[i].lost = -1;
    }
}

/* ---- time ---- */

/* A host that the test plays; null: none. */
static struct link *played;
static struct link_event heard; /* its last one, but those of SENT */

static bool hear_played(void) {
    struct link_event e;
    assert_int_equal(link_next(played, &e), TRI_OK);
    if (e.what != LINK_NOTHING && e.what != LINK_SENT) heard = e;
    return e.what != LINK_NOTHING;
}

/* One turn of everything that the test plays. */
static void turn(void) {
    bool did = played && hear_played();
    for (int i = 0; i < shape.hosts; i++) {
        if (!agent[i].alive) continue;
        if (agent[i].works && draw(4)) did |= host_work(&host[i]);
        while (agent[i].ferry && hear(i)) did = true;
    }
    if (!did) usleep(50);
}

static void fail_late(const char *what) {
    for (int i = 0; i < shape.hosts; i++) {
        const struct crew_course *c = &host[i].head->course;
        const struct crew_hosts *h = &host[i].head->hosts;
        print_message("host %d: opened %d, committed %d, offered %d, over %d, at %d, told: %s\n", i,
                      (int)c->opened, (int)c->committed, (int)h->offered, (int)h->over,
                      host[i].at, agent[i].told);
    }
    fail_msg("%s: not in 20 s", what);
}

#define UNTIL(condition) \
    for (double late = base_seconds() + 20; !(condition); turn()) \
        if (base_seconds() > late) fail_late(#condition)

static void turns(int n) {
    while (n-- > 0) turn();
}

/* ---- hosts ---- */

static void start_ferry(int i) {
    int pair[2];
    struct agent *a = &agent[i];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    a->ferry = fork();
    assert_true(a->ferry >= 0);
    if (!a->ferry) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int k = 0; k < MOST; k++)
            if (agent[k].socket > 0) close(agent[k].socket);
        close(pair[0]);
        _exit(ferry_run(host[i].fd, pair[1]));
    }
    close(pair[1]);
    a->socket = pair[0];
    *a->address = 0;
    struct host_message m = {.kind = HOST_START, .host = i, .hosts = shape.hosts, .run = 7,
                             .lease = 1000000000, .address = "127.0.0.1",
                             .wire.path = shape.path};
    memcpy(m.key, "0123456789abcdefghijklmnopqrstu", HOST_BYTES);
    say(i, &m);
    UNTIL(*a->address);
}

/* Returns its exit status; -1: it was killed. */
static int end_ferry(int i, bool kills) {
    struct agent *a = &agent[i];
    int status;
    if (kills) kill(a->ferry, SIGKILL);
    close(a->socket);
    assert_int_equal(waitpid(a->ferry, &status, 0), a->ferry);
    a->socket = 0;
    a->ferry = 0;
    view_recover(&host[i].view, host[i].head->course.opened, CREW_FERRY);
    wait_wake_after_death(&host[i].head->event);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool has_state(int i) { return agent[i].alive && !lacks(&host[i]); }

/* Those that join did not see the steps before. All have reported. */
static void tell_openings(void) {
    for (int i = 0; i < shape.hosts; i++)
        for (int k = 0; agent[i].alive && !has_state(i) && k < shape.hosts; k++)
            if (has_state(k)) host_learns(&host[i], &host[k], &agent[k].report.report);
}

/* HOLD, the reports, EPOCH. */
static void change_epoch(void) {
    struct host_message m = {.kind = HOST_HOLD, .epoch = ++epoch};
    struct host_member member[MOST] = {{0}};
    forget_reports();
    for (int i = 0; i < shape.hosts; i++)
        if (agent[i].alive) say(i, &m);
    for (int i = 0; i < shape.hosts; i++)
        if (agent[i].alive) UNTIL(agent[i].has_report);
    for (int i = 0; !has_state(teller); i++) teller = i;
    tell_openings();
    turns(draw(10));
    m = (struct host_message){.kind = HOST_EPOCH, .epoch = epoch, .teller = teller,
                              .n_members = shape.hosts, .member = member};
    for (int i = 0; i < shape.hosts; i++)
        member[i] = (struct host_member){.alive = agent[i].alive, .weight = host_weight(i),
                                         .address = agent[i].address,
                                         .report = agent[i].report.report};
    for (int i = 0; i < shape.hosts; i++) {
        if (!agent[i].alive) continue;
        say(i, &m);
        turns(draw(3));
    }
}

/* Of those that say nothing of it, each goes by a path and in a format that is drawn. */
static void begin(const struct shape *s) {
    shape = *s;
    if (!s->path) shape.path = 1 + draw(PATHS);
    if (!s->path && !s->levels) shape.format = (enum wire_format)draw(WIRE_FORMATS);
    if (!s->path && s->levels == 2) shape.format = WIRE_TOPK;
    epoch = 0;
    teller = 0;
    memset(agent, 0, sizeof agent);
    forget_reports();
    for (int i = 0; i < s->hosts; i++) {
        host_make(&host[i], &shape, i, false);
        agent[i].alive = agent[i].works = true;
        start_ferry(i);
    }
    change_epoch();
}

static void die(int i) {
    end_ferry(i, true);
    agent[i].alive = false;
}

/* A host that has died begins with an empty store. */
static void come_back(int i) {
    host_free(&host[i]);
    host_make(&host[i], &shape, i, true);
    agent[i].alive = agent[i].works = true;
    start_ferry(i);
}

static bool all_are(bool (*is)(const struct host *h)) {
    bool all = true;
    for (int i = 0; i < shape.hosts; i++) all &= !agent[i].alive || is(&host[i]);
    return all;
}

static void finish(void) {
    UNTIL(all_are(host_is_done));
    for (int i = 0; i < shape.hosts; i++) {
        if (agent[i].alive) {
            host_check(&host[i]);
            assert_int_equal(end_ferry(i, false), 0);
            if (strncmp(agent[i].told, "refused", 7) && !strstr(agent[i].told, "path"))
                assert_string_equal(agent[i].told, "");
            for (int k = 0; k < i; k++)
                for (uint64_t step = shape.base + 1; agent[k].alive && step <= shape.steps; step++)
                    assert_true(host[i].opened[step].rate == host[k].opened[step].rate);
        }
        host_free(&host[i]);
    }
    forget_reports();
}

/* ---- cases ---- */

static const struct shape shapes[] = {
    {2, 8, 0, {3, 70000}, 12, 0, 0, 0, 0},
    {3, 7, 0, {5, 900}, 12, 0, 0, 0, 0},
    {4, 24, 1, {3, 64}, 8, 0, 0, 0, 0},
    {4, 2, 0, {3, 64}, 8, 0, 0, 0, 0}, /* fewer lanes than hosts */
    {1, 3, 0, {3, 64}, 8, 0, 0, 0, 0},
    {2, 8, 2, {3, 64}, 30, 20, 0, 0, 0}, /* resumed after step 20 */
};

/* What the heads say has been sent has been received. */
static void check_moved(void) {
    uint64_t sent = 0, received = 0;
    for (int i = 0; i < shape.hosts; i++) {
        const struct crew_hosts *h = &host[i].head->hosts;
        const uint64_t is = atomic_load(&h->sent), whole = atomic_load(&h->sent_whole);
        sent += is;
        received += atomic_load(&h->received);
        assert_true(shape.format == WIRE_F32 ? is == whole : is <= whole);
    }
    assert_int_equal(sent, received);
    assert_true(shape.hosts == 1 ? !sent : sent >= shape.steps - shape.base);
}

static void steps_go_through(void **state) {
    (void)state;
    for (int i = 0; i < (int)COUNT(shapes); i++) {
        int computed = 0;
        begin(&shapes[i]);
        UNTIL(all_are(host_is_done));
        for (int k = 0; k < shape.hosts; k++) computed += host[k].computed;
        assert_int_equal(computed, shape.lanes * (int)(shape.steps - shape.base));
        check_moved();
        finish();
    }
}

static uint64_t over_of(int i) { return atomic_load(&host[i].head->hosts.over); }

/* Perhaps one more dies while the first is repaired. */
static void a_host_dies(void **state) {
    (void)state;
    for (int round = 0, n = rounds(36); round < n; round++) {
        begin(&shapes[1 + round % 2]);
        const int times = 1 + round % 3 / 2;
        for (int k = 0; k < times; k++) {
            turns(draw(120));
            const int dead = draw(shape.hosts), other = (dead + 1) % shape.hosts;
            if (!agent[dead].alive) continue;
            const bool known = agent[other].alive && over_of(other) > 0 && !k;
            die(dead);
            if (known) UNTIL(agent[other].lost == dead); /* their session had begun */
            turns(draw(20));
            change_epoch();
        }
        finish();
    }
}

static void a_ferry_is_replaced(void **state) {
    (void)state;
    for (int round = 0, n = rounds(12); round < n; round++) {
        begin(&shapes[round % 3]);
        for (int k = 0; k < 3; k++) {
            const int i = draw(shape.hosts);
            turns(draw(100));
            assert_int_equal(end_ferry(i, true), -1);
            turns(draw(10));
            start_ferry(i);
            change_epoch();
        }
        finish();
    }
}

/* Perhaps the one that joins, or another, dies meanwhile. */
static void a_host_joins(void **state) {
    (void)state;
    static const struct shape joined[] = {
        {2, 8, 0, {3, 700}, 40, 0, (9 << 20) / 4 + 5, 0, 0}, /* in several pieces */
        {4, 24, 1, {3, 64}, 40, 0, (5 << 20) / 4, 0, 0},
        {3, 2, 0, {3, 64}, 50, 20, 1 << 10, 0, 0}, /* fewer lanes than hosts; resumed */
    };
    const int n = rounds(9);
    int soon = 0;
    for (int round = 0; round < n; round++) {
        const struct shape *s = &joined[round % 3];
        begin(s);
        UNTIL(over_of(0) > s->base);
        for (int k = 0; k < 3; k++) {
            const int first = draw(s->hosts), second = draw(s->hosts);
            const bool again = round % 4 == 3 && agent[second].alive;
            int have = 0;
            for (int i = 0; i < s->hosts; i++) have += has_state(i);
            if (has_state(first) && have == 1) continue;
            if (agent[first].alive) die(first);
            turns(draw(20));
            change_epoch();
            turns(draw(200));
            come_back(first);
            change_epoch();
            turns(draw(100));
            soon += has_state(first);
            if (!again || (have <= 2 && second != first)) continue;
            die(second);
            change_epoch();
        }
        for (int i = 0; i < s->hosts; i++)
            if (agent[i].alive) UNTIL(has_state(i));
        finish();
    }
    print_message("# %d have joined soon\n", soon);
    assert_true(soon > n / 4);
}

/* While a host is away, the others have not this path. */
static void a_path_comes_back(void **state) {
    (void)state;
    begin(&(struct shape){4, 8, 0, {3, 700}, 60, 0, 1, 1 + PATH_BUTTERFLY, WIRE_FP16});
    UNTIL(over_of(0) >= 3);
    die(1);
    change_epoch();
    UNTIL(!strcmp(agent[0].told, "3 hosts have no path butterfly: sums go by exchange"));
    come_back(1);
    change_epoch();
    UNTIL(has_state(1) && !strcmp(agent[0].told, "4 hosts: sums go by path butterfly again"));
    finish();
}

static void *sink(void *user, int from, const struct link_header *h) {
    static char memory[1 << 16];
    (void)user, (void)from;
    assert_true(h->length <= sizeof memory);
    return memory;
}

/* Two hosts, of which the test plays the second, which has an operand of the first step to send. */
static struct link_header play(void) {
    const struct host_message hold = {.kind = HOST_HOLD, .epoch = epoch = 1};
    const struct link_options o = {.self = 1, .hosts = 2, .run = 7, .most = 1 << 16, .where = sink,
                                   .key = (const uint8_t *)"0123456789abcdefghijklmnopqrstu",
                                   .address = "127.0.0.1"};
    struct host_member member[2] = {{.alive = true, .weight = 1, .address = agent[0].address},
                                    {.alive = true, .weight = 1}};
    const struct host_message m = {.kind = HOST_EPOCH, .epoch = 1, .n_members = 2,
                                   .member = member};
    int operand[32];
    shape = (struct shape){2, 8, 0, {3, 700}, 3, 0, 0, 1 + PATH_EXCHANGE, WIRE_INT8};
    teller = 0;
    memset(agent, 0, sizeof agent);
    forget_reports();
    host_make(&host[0], &shape, 0, false);
    host_make(&host[1], &shape, 1, false);
    agent[0].alive = agent[0].works = true;
    start_ferry(0);
    say(0, &hold);
    UNTIL(agent[0].has_report);
    member[0].report = agent[0].report.report;
    assert_int_equal(link_open(&link_tcp, &o, &played), TRI_OK);
    member[1].address = link_address(played);
    say(0, &m);
    assert_int_equal(link_peer(played, 0, 1, agent[0].address), TRI_OK);
    heard = (struct link_event){.what = LINK_NOTHING};
    UNTIL(heard.what == LINK_ARRIVED && heard.header.kind == LINK_SUM);
    const int n = transfers_operands(&host[0].view.tree[0][1], 2,
                                     host[0].head->hosts.opening[1].begin, operand, NULL);
    return (struct link_header){.epoch = 1, .step = 1, .kind = LINK_SUM, .item = 1, .part = 1,
                                .node = (uint32_t)operand[n - 1], .format = 1};
}

/* The session ends, and an epoch can follow, in which the first host goes on. */
static void a_peer_sends_nonsense(void **state) {
    static const char unknown[] = "it sent a sum that nobody expects of it";
    static const struct {
        int more, node; /* bytes; added to the right ones */
        const char *why;
    } wrong[] = {{0, 0, "what came are no numbers in the format int8"},
                 {1, 0, unknown}, {-257, 0, unknown}, {0, 1, unknown}};
    static char bytes[4096];
    (void)state;
    memset(bytes, 0xfe, sizeof bytes);
    for (int i = 0; i < (int)COUNT(wrong); i++) {
        struct link_header h = play();
        const size_t right = view_wire_bytes(&host[0].view.sums[0][1][1]);
        h.node += (uint32_t)wrong[i].node;
        assert_int_equal(link_send(played, 0, &h, bytes, right + (size_t)wrong[i].more, NULL), 0);
        UNTIL(agent[0].lost == 1);
        assert_string_equal(agent[0].why, wrong[i].why);
        link_close(played);
        played = NULL;
        change_epoch();
        finish();
    }
}

/* A host without a lease falls silent, and goes on when it has one. */
static void no_lease(void **state) {
    (void)state;
    begin(&(struct shape){2, 8, 0, {3, 64}, 60, 0, 0, 0, 0});
    UNTIL(over_of(0) >= 3);
    atomic_store(&host[1].head->hosts.lease, base_now() - 1);
    for (double until = base_seconds() + 0.2; base_seconds() < until;) turn();
    const uint64_t before = over_of(0);
    assert_true(before < 60);
    for (double until = base_seconds() + 0.2; base_seconds() < until;) turn();
    assert_int_equal(over_of(0), before);
    atomic_store(&host[1].head->hosts.lease, INT64_MAX);
    crew_notify(host[1].head);
    finish();
}

static double seconds_of(pid_t pid) {
    clockid_t clock;
    struct timespec t;
    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &t), 0);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* In the middle of a step: a host's threads do nothing. What ferries had to do before may take a
 * while on a busy machine; one of a few times must be without. */
static void an_idle_ferry_sleeps(void **state) {
    (void)state;
    begin(&shapes[0]);
    UNTIL(over_of(0) >= 2);
    agent[1].works = false;
    for (double until = base_seconds() + 0.1; base_seconds() < until;) turn();
    double used[2] = {1, 1};
    for (int tries = 0; tries < 3 && (used[0] >= 0.002 || used[1] >= 0.002); tries++) {
        for (int i = 0; i < 2; i++) used[i] = seconds_of(agent[i].ferry);
        usleep(1000000);
        for (int i = 0; i < 2; i++) used[i] = seconds_of(agent[i].ferry) - used[i];
    }
    print_message("%.5f and %.5f s of processor time in 1 s\n", used[0], used[1]);
    assert_true(used[0] < 0.002 && used[1] < 0.002);
    agent[1].works = true;
    finish();
}

/* The ferry checks what the agent says, and reports what is wrong. */
static void wrong_messages(void **state) {
    (void)state;
    const struct host_message again = {.kind = HOST_START, .hosts = 1, .run = 7, .lease = 1};
    const struct host_message beat = {.kind = HOST_BEAT};
    struct host_member few = {.alive = true};
    const struct host_message few_hosts = {.kind = HOST_EPOCH, .epoch = 1, .n_members = 1,
                                           .member = &few};
    const struct {
        const struct host_message *m;
        const char *told;
    } wrong[] = {{&again, "a second START"},
                 {&beat, "message BEAT is not for a ferry"},
                 {&few_hosts, "an epoch of 1 hosts, not of 2 and this one"}};
    for (int i = 0; i < (int)COUNT(wrong); i++) {
        const struct host_message hold = {.kind = HOST_HOLD, .epoch = epoch = 1};
        shape = shapes[0];
        memset(agent, 0, sizeof agent);
        host_make(&host[0], &shape, 0, false);
        agent[0].alive = true;
        start_ferry(0);
        say(0, &hold);
        UNTIL(agent[0].has_report);
        assert_int_equal(agent[0].report.report.step, 0);
        say(0, wrong[i].m);
        UNTIL(*agent[0].told);
        assert_string_equal(agent[0].told, wrong[i].told);
        assert_int_equal(end_ferry(0, false), TRI_FAILED);
        forget_reports();
        host_free(&host[0]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_go_through),    cmocka_unit_test(a_host_dies),
        cmocka_unit_test(a_ferry_is_replaced), cmocka_unit_test(a_host_joins),
        cmocka_unit_test(a_path_comes_back),   cmocka_unit_test(a_peer_sends_nonsense),
        cmocka_unit_test(no_lease),            cmocka_unit_test(an_idle_ferry_sleeps),
        cmocka_unit_test(wrong_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
