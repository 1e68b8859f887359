/* SPDX-License-Identifier: Apache-2.0
 * Messages of hosts: each kind is what it was after it has been put and got, and every shorter,
 * longer or wrong one is refused with a line. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <setjmp.h>

#include <cmocka.h>

#include "crew/host_socket.h"

static uint8_t has[] = {0xff, 0x80, 0x05};
static const char *names[] = {"h0", "h1", "node-17.cluster"};
static int32_t weights[] = {1, 4, 2};
static const char *argv[] = {"train", "", "--rate", "0.1\n"}, *env[] = {"TRIREME_ISA=plain"};
static struct host_number number[] = {{"workers", 4}, {"audit", 0.25}, {"no_kill", 1}};
static struct host_member member[3];

static struct hosts_report report_of(uint64_t step) {
    struct hosts_report r = {.step = step, .n = 19, .has = has};
    r.opening = (struct hosts_opening){.step = step, .shape = 1, .hosts = 3, .begin = {0, 2, 2, 7},
                                       .rate = 0.1, .set_rate = NAN};
    for (int i = 0; i < CREW_MOST_SCALARS; i++) r.opening.scalar[i] = (float)i / 3;
    r.opening.policy = (struct policy_state){5, 4, -1, 1e300};
    r.opening.shown.step = INT64_MAX;
    r.opening.shown.not_finite = -7;
    return r;
}

/* With a value for every field of every kind. */
static struct host_message all(enum host_kind kind) {
    struct host_message m = {
        .kind = kind, .epoch = UINT32_MAX, .step = UINT64_MAX, .run = 0x0123456789abcdef, .host = 1,
        .hosts = 3, .teller = 2, .weight = 4, .code = 3, .pid = 4711, .ask = HOST_SAVE,
        .port = {4000, 4010}, .time = 1234567890123, .lease = 3000000000, .text = "went away",
        .name = "h1", .version = "0.9 x86_64", .address = "10.0.0.1:4000", .names = {3, names},
        .weights = {3, weights}, .rows = {3, names}, .workers = 5,
        .launch = {"/usr/bin/train", "/home", "run", "mlp", "", {4, argv}, {1, env}, 3, number},
        .report = report_of(17), .n_members = 3, .member = member};
    for (int i = 0; i < HOST_BYTES; i++) m.key[i] = (uint8_t)i, m.digest[i] = (uint8_t)(255 - i);
    member[0] = (struct host_member){true, 4, "10.0.0.1:1", report_of(17)};
    member[1] = (struct host_member){.alive = false};
    member[2] = (struct host_member){true, 0, "[fe80::1]:2", report_of(0)};
    member[2].report.opening.step = 0;
    return m;
}

static void put(const struct host_message *m, struct text *t) {
    assert_int_equal(host_message_put(m, t), TRI_OK);
    assert_true(t->size && t->size <= HOST_MESSAGE);
}

static void put_and_got(void **state) {
    (void)state;
    for (int k = 0; k < HOST_KIND_COUNT; k++) {
        const struct host_message m = all((enum host_kind)k);
        struct host_message back;
        struct text one = {0}, two = {0};
        put(&m, &one);
        assert_int_equal(host_message_get(one.data, one.size, &back), TRI_OK);
        put(&back, &two);
        assert_int_equal(one.size, two.size);
        assert_memory_equal(one.data, two.data, one.size);
        host_message_free(&back);
        text_free(&one);
        text_free(&two);
    }
}

static struct host_message again(enum host_kind kind) {
    const struct host_message m = all(kind);
    struct host_message back;
    struct text t = {0};
    put(&m, &t);
    assert_int_equal(host_message_get(t.data, t.size, &back), TRI_OK);
    text_free(&t);
    return back;
}

static void same_report(const struct hosts_report *r, const struct hosts_report *want) {
    assert_int_equal(r->step, want->step);
    assert_int_equal(r->n, 19);
    assert_memory_equal(r->has, has, sizeof has);
    assert_memory_equal(r->opening.begin, want->opening.begin, sizeof want->opening.begin);
    assert_memory_equal(r->opening.scalar, want->opening.scalar, sizeof want->opening.scalar);
    assert_true(isnan(r->opening.set_rate) && r->opening.policy.best == 1e300);
    assert_int_equal(r->opening.shown.step, INT64_MAX);
    assert_int_equal(r->opening.shown.not_finite, -7);
}

static void values(void **state) {
    (void)state;
    struct host_message m = again(HOST_WELCOME);
    assert_int_equal(m.host, 1);
    assert_int_equal(m.run, 0x0123456789abcdef);
    assert_int_equal(m.lease, 3000000000);
    assert_string_equal(m.names.text[2], "node-17.cluster");
    assert_int_equal(m.launch.argv.n, 4);
    assert_string_equal(m.launch.argv.text[3], "0.1\n");
    assert_string_equal(m.launch.env.text[0], "TRIREME_ISA=plain");
    assert_true(m.launch.number[1].value == 0.25);
    host_message_free(&m);

    const struct host_message want = all(HOST_EPOCH);
    m = again(HOST_EPOCH);
    assert_int_equal(m.epoch, UINT32_MAX);
    assert_int_equal(m.teller, 2);
    assert_false(m.member[1].alive);
    assert_string_equal(m.member[2].address, "[fe80::1]:2");
    same_report(&m.member[0].report, &want.member[0].report);
    host_message_free(&m);

    m = again(HOST_START);
    assert_int_equal(m.port[1], 4010);
    assert_memory_equal(m.key, want.key, HOST_BYTES);
    host_message_free(&m);
}

static void refused(const void *bytes, size_t n) {
    struct host_message m;
    uint8_t *copy = malloc(n + 1); /* for sanitizers: of its very length but one */
    assert_non_null(copy);
    memcpy(copy + 1, bytes, n);
    assert_int_equal(host_message_get(copy + 1, n, &m), TRI_FAILED);
    assert_true(tri_message()[0] && !strchr(tri_message(), '\n'));
    host_message_free(&m);
    free(copy);
}

static void cut_or_longer(void **state) {
    (void)state;
    for (int k = 0; k < HOST_KIND_COUNT; k++) {
        const struct host_message m = all((enum host_kind)k);
        struct text t = {0};
        put(&m, &t);
        for (size_t n = 0; n < t.size; n++) refused(t.data, n);
        text_add_bytes(&t, "\0", 1);
        refused(t.data, t.size);
        t.data[0] = HOST_KIND_COUNT;
        refused(t.data, t.size - 1);
        text_free(&t);
    }
}

/* Each is right but for one field, which the message names. */
static void wrong(enum host_kind kind, void (*spoil)(struct host_message *m), const char *name) {
    struct host_message m = all(kind);
    struct text t = {0};
    text_add(&t, "before");
    spoil(&m);
    assert_int_equal(host_message_put(&m, &t), TRI_FAILED);
    assert_non_null(strstr(tri_message(), name));
    assert_int_equal(t.size, 6);
    text_free(&t);
}

static char much[HOST_LIST + 1];
static const char *many[2] = {much + 100, much + 100};
static void no_name(struct host_message *m) { m->name = ""; }
static void long_name(struct host_message *m) { m->name = much + sizeof much - 1 - HOSTS_NAME; }
static void strange_name(struct host_message *m) { m->name = "h\x1b[0m"; }
static void no_pid(struct host_message *m) { m->pid = 0; }
static void long_text(struct host_message *m) { m->text = much + sizeof much - 1 - HOST_TEXT; }
static void few_names(struct host_message *m) { m->host = 3; }
static void long_list(struct host_message *m) { m->launch.argv = (struct host_texts){2, many}; }
static void infinite(struct host_message *m) {
    static struct host_number n = {"audit", INFINITY};
    m->launch.number = &n;
    m->launch.n_numbers = 1;
}
static void big_weight(struct host_message *m) { m->weight = HOST_WEIGHT + 1; }
static void other_step(struct host_message *m) { m->report.step++; }
static void descends(struct host_message *m) { m->report.opening.begin[2] = 1; }
static void begins_late(struct host_message *m) { m->report.opening.begin[0] = 1; }
static void spare_bits(struct host_message *m) { m->report.n = 18; }
static void many_bits(struct host_message *m) { m->report.n = 8 * HOST_HAS + 1; }
static void dead_teller(struct host_message *m) { m->teller = 1; }
static void no_teller(struct host_message *m) { m->teller = 3; }
static void late_port(struct host_message *m) { m->port[0] = 4011; }
static void self_of_none(struct host_message *m) { m->hosts = 1; }
static void no_ask(struct host_message *m) { m->ask = HOST_KILL + 1; }

static void wrong_values(void **state) {
    (void)state;
    memset(much, 'x', sizeof much - 1);
    wrong(HOST_HELLO, no_name, "HELLO: its NAME is empty");
    wrong(HOST_HELLO, long_name, "NAME is too long");
    wrong(HOST_HELLO, strange_name, "NAME is not a name");
    wrong(HOST_HELLO, no_pid, "PID is out of range");
    wrong(HOST_FAILED, long_text, "TEXT is too long");
    wrong(HOST_WELCOME, few_names, "NAMES are too few");
    wrong(HOST_WELCOME, long_list, "LAUNCH is too long");
    wrong(HOST_WELCOME, infinite, "LAUNCH has a number that is not finite");
    wrong(HOST_READY, big_weight, "WEIGHT");
    wrong(HOST_REPORT, other_step, "opening of another step");
    wrong(HOST_REPORT, descends, "REPORT is out of range");
    wrong(HOST_REPORT, begins_late, "REPORT is out of range");
    wrong(HOST_REPORT, spare_bits, "bits after its last");
    wrong(HOST_REPORT, many_bits, "REPORT is out of range");
    wrong(HOST_EPOCH, dead_teller, "MEMBERS lack the teller");
    wrong(HOST_EPOCH, no_teller, "MEMBERS lack the teller");
    wrong(HOST_START, late_port, "LAST is below the first");
    wrong(HOST_START, self_of_none, "HOSTS are too few");
    wrong(HOST_ASK, no_ask, "ASK");
}

/* Short, and longer than any socket takes at once. */
static void over_a_socket(void **state) {
    (void)state;
    static uint8_t bits[1 << 16], other[1 << 16];
    static struct host_member each[HOSTS_MOST];
    int pair[2];
    struct host_message m;
    enum host_socket what;
    const struct host_message hold = {.kind = HOST_HOLD, .epoch = 5};
    struct host_message epoch = {.kind = HOST_EPOCH, .epoch = 6, .n_members = HOSTS_MOST,
                                 .member = each};
    for (size_t i = 0; i < sizeof bits; i++) bits[i] = (uint8_t)(i * i >> 7), other[i] = ~bits[i];
    for (int h = 0; h < HOSTS_MOST; h++) {
        each[h] = (struct host_member){true, 1, "10.0.0.1:1", report_of(17)};
        each[h].report.n = 8 * HOST_HAS;
        each[h].report.has = h % 2 ? bits : other;
    }
    assert_true(HOST_HAS <= sizeof bits);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    assert_int_equal(host_socket_take(pair[1], MSG_DONTWAIT, &m, &what), TRI_OK);
    assert_int_equal(what, HOST_SOCKET_NONE);
    assert_int_equal(host_socket_send(pair[0], &epoch, MSG_DONTWAIT), TRI_OK);
    assert_int_equal(host_socket_send(pair[0], &hold, MSG_DONTWAIT), TRI_OK);
    assert_int_equal(host_socket_take(pair[1], 0, &m, &what), TRI_OK);
    assert_true(what == HOST_SOCKET_TAKEN && m.kind == HOST_EPOCH);
    for (int h = 0; h < HOSTS_MOST; h++)
        assert_memory_equal(m.member[h].report.has, each[h].report.has, HOST_HAS);
    host_message_free(&m);
    assert_int_equal(host_socket_take(pair[1], 0, &m, &what), TRI_OK);
    assert_true(what == HOST_SOCKET_TAKEN && m.kind == HOST_HOLD && m.epoch == 5);
    close(pair[0]);
    assert_int_equal(host_socket_take(pair[1], 0, &m, &what), TRI_OK);
    assert_int_equal(what, HOST_SOCKET_CLOSED);
    assert_int_equal(host_socket_send(pair[1], &hold, 0), TRI_OK); /* the other end is known gone */
    close(pair[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_and_got),
        cmocka_unit_test(values),
        cmocka_unit_test(cut_or_longer),
        cmocka_unit_test(wrong_values),
        cmocka_unit_test(over_a_socket),
    };
    return cmocka_run_group_tests_name("host messages", tests, NULL, NULL);
}
