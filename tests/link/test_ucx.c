/* SPDX-License-Identifier: Apache-2.0
 * The row ucx against what comes over UCX: bytes that are changed, repeated or sent back, strangers
 * that say nothing or noise. Between two hosts is a relay, which uses the row's own streams. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <dlfcn.h>

#include "link/bed.h"
#include "link/link_inside.h"
#include "link/wire.h"
#include "ucx/ucx.h"

#define GREETING (WIRE_HELLO + WIRE_TAG) /* what either side sends before messages */
#define MESSAGE(n) (WIRE_HEADER + WIRE_TAG + (n) + ((n) ? WIRE_TAG : 0))

static struct bed b;
static const struct ucx_functions *f;

static struct relay {
    struct ucx *u;
    char address[LINK_ADDRESS];
    struct ucx_stream *side[2]; /* of host 1, which connects; of host 0 */
    struct bytes {
        char *data;
        size_t n, passed;
    } from[2];
    size_t flip;           /* a bit of this byte of host 1 is changed; 0: none */
    size_t again, again_n; /* so many from there come twice, */
    bool back;             /* or go back */
} relay;

static struct sockaddr_in address_of(const char *text) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    a.sin_port = htons((uint16_t)(text ? atoi(strrchr(text, ':') + 1) : 0));
    return a;
}

static struct ucx_stream *stranger(int host) {
    char why[UCX_WHY] = "";
    const struct sockaddr_in to = address_of(link_address(b.l[host]));
    struct ucx_stream *s =
        f->connect(relay.u, (const struct sockaddr *)&to, sizeof to, &relay, why);
    assert_string_equal(why, "");
    return s;
}

static void *accepted(void *user, struct ucx_stream *s, const struct sockaddr *from) {
    (void)user;
    (void)from;
    relay.side[0] = s;
    return &relay;
}

static void ready(void *user, void *owner) { /* the relay asks in each turn */
    (void)user;
    (void)owner;
}

static void put(int to, const char *data, size_t n) {
    struct bytes *x = &relay.from[!to];
    x->data = realloc(x->data, x->n + n + 1);
    assert_non_null(x->data);
    memcpy(x->data + x->n, data, n);
    x->n += n;
}

/* Bytes of one side, with the harm; they are then to be sent. */
static void pass(int i, char *data, size_t n) {
    static char kept[1000];
    const size_t before = relay.from[i].passed, end = before + n, from = relay.again;
    relay.from[i].passed = end;
    if (!i && relay.flip > before && relay.flip <= end) data[relay.flip - before - 1] ^= 4;
    put(!i, data, n);
    for (size_t k = before; !i && relay.again_n && k < end; k++) {
        if (k >= from && k < from + relay.again_n) kept[k - from] = data[k - before];
        if (k + 1 == from + relay.again_n) put(!relay.back, kept, relay.again_n);
    }
}

static void relay_turn(void *user) {
    static char data[65536];
    (void)user;
    f->work(relay.u);
    if (relay.side[0] && !relay.side[1]) relay.side[1] = stranger(0);
    for (int i = 0; i < 2; i++) {
        struct ucx_stream *s = relay.side[i];
        if (!s) continue;
        for (size_t n; (n = f->read(s, &(struct iovec){data, sizeof data}, 1));) pass(i, data, n);
        struct bytes *x = &relay.from[!i];
        for (size_t n; x->n && (n = f->write(s, &(struct iovec){x->data, x->n}, 1));) {
            x->n -= n;
            memmove(x->data, x->data + n, x->n);
        }
        if (!f->broken(s)) continue;
        for (int k = 0; k < 2; k++) /* both end */
            if (relay.side[k]) f->shut(relay.side[k]);
        relay.side[0] = relay.side[1] = NULL;
        break;
    }
}

static void open_hosts(void) {
    static const struct ucx_user row = {accepted, ready};
    char why[UCX_WHY];
    struct sockaddr_storage own;
    const struct sockaddr_in any = address_of(NULL);
    bed_open(&b, &link_ucx, 3); /* it loads the object */
    relay = (struct relay){0};
    relay.u = f->open((const struct sockaddr *)&any, sizeof any, &row, NULL, why);
    assert_non_null(relay.u);
    f->address(relay.u, &own);
    snprintf(relay.address, sizeof relay.address, "127.0.0.1:%d",
             ntohs(((struct sockaddr_in *)&own)->sin_port));
    b.beside = relay_turn;
}

static void over(void) {
    bed_close(&b);
    f->close(relay.u);
    for (int i = 0; i < 2; i++) free(relay.from[i].data);
}

/* Hosts 0 and 1 with the relay between them. */
static void begin(void) {
    open_hosts();
    assert_int_equal(link_peer(b.l[0], 1, 0, NULL), TRI_OK);
    assert_int_equal(link_peer(b.l[1], 0, 0, relay.address), TRI_OK);
    bed_next_of(&b, 0, LINK_JOINED, 1);
    bed_next_of(&b, 1, LINK_JOINED, 0);
}

static void ends_with(int host, const char *words) {
    struct link_event e = bed_next_of(&b, host, LINK_ENDED, 1 - host);
    if (!strstr(e.why, words)) fail_msg("\"%s\" without \"%s\"", e.why, words);
}

static void any_changed_bit_ends_it(void **state) {
    (void)state;
    const size_t n = 3 * WIRE_PIECE / 2;
    const size_t at[] = {1, 5, WIRE_HEADER + 1, WIRE_HEADER + WIRE_TAG + 1,
                         WIRE_HEADER + WIRE_TAG + WIRE_PIECE + WIRE_TAG + 5,
                         MESSAGE(n) + WIRE_TAG};
    for (size_t i = 0; i < COUNT(at); i++) {
        begin();
        relay.flip = GREETING + at[i];
        char *data = bed_send(&b, 1, 0, n, 2);
        ends_with(0, "its bytes were changed on the way");
        bed_next_of(&b, 1, LINK_ENDED, 0);
        bed_expects_nothing(&b, 0); /* above all no message */
        free(data);
        over();
    }
}

static void a_message_counts_once(void **state) {
    (void)state;
    begin();
    relay.again = GREETING;
    relay.again_n = MESSAGE(100);
    char *data = bed_send(&b, 1, 0, 100, 2);
    bed_arrives(&b, 0, 1, 100, 2);
    ends_with(0, "its bytes were changed on the way");
    bed_next_of(&b, 1, LINK_ENDED, 0);
    free(data);
    over();
}

static void a_message_counts_one_way(void **state) {
    (void)state;
    begin();
    /* Its number is the one that host 1 expects next of host 0. */
    relay.again = GREETING + MESSAGE(0);
    relay.again_n = MESSAGE(100);
    relay.back = true;
    char *first = bed_send(&b, 1, 0, 0, 1), *data = bed_send(&b, 1, 0, 100, 2);
    ends_with(1, "changed on the way");
    free(first);
    free(data);
    over();
}

static void a_changed_greeting_is_refused(void **state) {
    (void)state;
    for (size_t at = 1; at <= GREETING; at += 13) {
        open_hosts();
        relay.flip = at;
        assert_int_equal(link_peer(b.l[0], 1, 0, NULL), TRI_OK);
        assert_int_equal(link_peer(b.l[1], 0, 0, relay.address), TRI_OK);
        bed_next_of(&b, 1, LINK_ENDED, 0);
        bed_next(&b, 0, LINK_REFUSED);
        bed_expects_nothing(&b, 0);
        over();
    }
}

/* Streams of noise, or of nothing, while hosts join and work: a line, and no event else. */
static void strangers(void **state) {
    (void)state;
    open_hosts();
    b.counts_refused = true;
    for (unsigned i = 0; i < 60; i++) {
        struct ucx_stream *s = stranger(0);
        char *noise = bed_bytes(3000, i);
        if (i % 3) f->write(s, &(struct iovec){noise, 3000}, 1);
        if (i == 50) bed_join(&b, 1, 0);
        if (i > 50) {
            char *data = bed_send(&b, i % 2, 1 - (int)i % 2, 1000, i);
            bed_arrives(&b, 1 - (int)i % 2, i % 2, 1000, i);
            free(data);
        }
        bed_turn(&b);
        free(noise);
    }
    for (int host = 0; host < 2; host++) bed_expects_nothing(&b, host);
    assert_int_equal(b.refused, 1);
    over();
}

/* Ports that are taken; one where nobody listens. */
static void addresses_and_ports(void **state) {
    (void)state;
    struct link *l;
    open_hosts();
    struct link_options o = bed_options(&b, 0);
    const int taken = atoi(strrchr(link_address(b.l[0]), ':') + 1);
    o.port[0] = o.port[1] = taken;
    assert_int_equal(link_open(&link_ucx, &o, &l), TRI_FAILED);
    assert_non_null(strstr(tri_message(), "UCX cannot listen at 127.0.0.1:"));
    o.port[1] = taken + 50;
    assert_int_equal(link_open(&link_ucx, &o, &l), TRI_OK);
    assert_in_range(atoi(strrchr(link_address(l), ':') + 1), taken + 1, taken + 50);
    char closed[LINK_ADDRESS];
    strcpy(closed, link_address(l));
    link_close(l);
    assert_int_equal(link_peer(b.l[1], 0, 0, closed), TRI_OK);
    assert_true(strlen(bed_next_of(&b, 1, LINK_ENDED, 0).why) > 10);
    assert_int_equal(link_peer(b.l[1], 0, 0, "name.example:1"), TRI_USAGE);
    over();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_changed_bit_ends_it),
        cmocka_unit_test(a_changed_greeting_is_refused),
        cmocka_unit_test(a_message_counts_once),
        cmocka_unit_test(a_message_counts_one_way),
        cmocka_unit_test(strangers),
        cmocka_unit_test(addresses_and_ports),
    };
    char path[4096];
    if (link_ucx_find(path, sizeof path)) {
        printf("ok ucx # skipped: %s\n", tri_message());
        return 0;
    }
    setenv("UCX_LOG_LEVEL", "fatal", 0);
    void *object = dlopen(path, RTLD_NOW);
    f = object ? dlsym(object, UCX_FUNCTIONS) : NULL;
    if (!f) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
