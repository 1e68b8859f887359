/* SPDX-License-Identifier: Apache-2.0
 * One walk over a message's fields both writes and reads it, so that the two agree. */
#include "crew/host_messages.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "crew/head.h"
#include "plan/transfer.h"

struct walk {
    struct text *to;     /* not null: the message is written there; else it is read: */
    const uint8_t *from; /* n bytes, of which `at` are read */
    size_t n, at;
    struct arena *arena;
    const char *field, *wrong; /* of it; null: nothing is wrong */
};

static void fault(struct walk *w, const char *what) {
    if (!w->wrong) w->wrong = what;
}

static void *memory(struct walk *w, size_t n, size_t bytes) {
    void *p = w->wrong ? NULL : arena_alloc(w->arena, n * bytes + 1);
    if (!p) fault(w, "is too large for this host's memory");
    return p;
}

/* What is read after a fault is zero. */
static void bytes(struct walk *w, void *p, size_t n) {
    if (w->to) {
        text_add_bytes(w->to, p, n);
        return;
    }
    if (w->n - w->at < n) fault(w, "is cut off");
    if (w->wrong) {
        memset(p, 0, n);
        return;
    }
    memcpy(p, w->from + w->at, n);
    w->at += n;
}

static uint64_t number(struct walk *w, uint64_t v, size_t n) {
    uint8_t b[8];
    for (size_t i = 0; i < n; i++) b[i] = (uint8_t)(v >> 8 * i);
    bytes(w, b, n);
    v = 0;
    for (size_t i = 0; i < n; i++) v |= (uint64_t)b[i] << 8 * i;
    return v;
}

/* ---- what is at p, within the bounds; only a walk that reads writes there ---- */

static void u32(struct walk *w, void *p, int64_t least, int64_t most) {
    uint32_t v;
    memcpy(&v, p, 4);
    v = (uint32_t)number(w, v, 4);
    if (v < least || v > most) fault(w, "is out of range");
    if (!w->to) memcpy(p, &v, 4);
}

static void i32(struct walk *w, void *p, int64_t least, int64_t most) {
    int32_t v;
    memcpy(&v, p, 4);
    v = (int32_t)(uint32_t)number(w, (uint32_t)v, 4);
    if (v < least || v > most) fault(w, "is out of range");
    if (!w->to) memcpy(p, &v, 4);
}

static void i64(struct walk *w, void *p, int64_t least, int64_t most) {
    int64_t v;
    memcpy(&v, p, 8);
    v = (int64_t)number(w, (uint64_t)v, 8);
    if (v < least || v > most) fault(w, "is out of range");
    if (!w->to) memcpy(p, &v, 8);
}

#define ANY INT64_MIN, INT64_MAX /* also of unsigned numbers, and bits of others */

static void flag(struct walk *w, void *p, int64_t least, int64_t most) {
    bool *is = p;
    const uint64_t v = number(w, *is, 1);
    if (v < (uint64_t)least || v > (uint64_t)most) fault(w, "is neither 0 nor 1");
    if (!w->to) *is = v == 1;
}

static void raw(struct walk *w, void *p, int64_t least, int64_t most) {
    (void)least;
    bytes(w, p, (size_t)most);
}

/* A pointer to a text of less than `most` bytes, and of `least` at least. */
static void text(struct walk *w, void *p, int64_t least, int64_t most) {
    const char **at = p;
    const uint64_t n = number(w, w->to && *at ? strlen(*at) : 0, 4);
    if (n >= (uint64_t)most) fault(w, "is too long");
    if (n < (uint64_t)least) fault(w, "is empty");
    if (w->to) {
        if (n && !w->wrong) text_add_bytes(w->to, *at, n);
        return;
    }
    if (w->n - w->at < n) fault(w, "is cut off");
    char *copy = memory(w, n, 1);
    *at = copy ? copy : "";
    if (copy) bytes(w, copy, n);
    if (copy && memchr(copy, 0, n)) fault(w, "has a zero byte");
}

/* Of a host or a number: it can be printed as it is. */
static void name(struct walk *w, void *p, int64_t least, int64_t most) {
    text(w, p, least, most);
    for (const char *s = *(const char **)p; s && *s; s++)
        if (*s <= ' ' || *s > '~') fault(w, "is not a name");
}

/* The length of a list, of which each element takes a byte or more. A walk that reads takes memory
 * for it, at *list. */
static int count(struct walk *w, int n, int most, void *list, size_t element) {
    i32(w, &n, 0, most);
    if (!w->to && !w->wrong && (size_t)n > w->n - w->at) fault(w, "is cut off");
    if (w->wrong) n = 0;
    if (w->to) return n;
    void *p = memory(w, (size_t)n, element);
    memcpy(list, &p, sizeof p);
    return p ? n : 0;
}

static void texts(struct walk *w, void *p, int64_t least, int64_t most) {
    struct host_texts *l = p;
    const int n = count(w, l->n, HOST_LIST, &l->text, sizeof *l->text);
    size_t all = 0;
    if (!w->to) l->n = n;
    for (int i = 0; i < n && !w->wrong; i++) {
        (least ? name : text)(w, &l->text[i], least, most);
        all += l->text[i] ? strlen(l->text[i]) + 1 : 1;
        if (all > HOST_LIST) fault(w, "is too long");
    }
}

static void numbers(struct walk *w, void *p, int64_t least, int64_t most) {
    struct host_weights *l = p;
    const int n = count(w, l->n, HOSTS_MOST, &l->of, sizeof *l->of);
    if (!w->to) l->n = n;
    for (int i = 0; i < n && !w->wrong; i++) i32(w, &l->of[i], least, most);
}

static void wire(struct walk *w, void *p, int64_t least, int64_t most) {
    struct host_wire *l = p;
    i32(w, &l->link, least, most);
    i32(w, &l->open, 0, 1);
    i32(w, &l->late, 0, 1);
    i32(w, &l->path, 0, PATHS);
    i64(w, &l->latency, 0, INT64_MAX);
    i64(w, &l->bandwidth, 0, INT64_MAX);
    i64(w, &l->cpu, 0, INT64_MAX);
}

static void launch(struct walk *w, void *p, int64_t least, int64_t most) {
    struct host_launch *l = p;
    text(w, &l->program, least, most);
    text(w, &l->cwd, least, most);
    text(w, &l->out, least, most);
    text(w, &l->title, least, most);
    text(w, &l->on_event, least, most);
    texts(w, &l->argv, least, most);
    texts(w, &l->env, least, most);
    const int n = count(w, l->n_numbers, HOST_NUMBERS, &l->number, sizeof *l->number);
    if (!w->to) l->n_numbers = n;
    for (int i = 0; i < n && !w->wrong; i++) {
        name(w, &l->number[i].name, 1, HOSTS_NAME);
        i64(w, &l->number[i].value, ANY);
        if (!isfinite(l->number[i].value)) fault(w, "has a number that is not finite");
    }
}

static void opening(struct walk *w, struct hosts_opening *o) {
    i64(w, &o->step, ANY);
    i32(w, &o->shape, 0, CREW_MOST_SHAPES - 1);
    i32(w, &o->hosts, 0, HOSTS_MOST);
    for (int i = 0; i <= o->hosts && !w->wrong; i++)
        i32(w, &o->begin[i], i ? o->begin[i - 1] : 0, i ? INT32_MAX : 0);
    i64(w, &o->rate, ANY);
    i64(w, &o->set_rate, ANY);
    for (int i = 0; i < CREW_MOST_SCALARS; i++) i32(w, &o->scalar[i], ANY);
    i64(w, &o->policy.step, ANY);
    i64(w, &o->policy.best_step, ANY);
    i64(w, &o->policy.no_better, ANY);
    i64(w, &o->policy.best, ANY);
    i64(w, &o->shown.step, ANY);
    i64(w, &o->shown.evaluation, ANY);
    i32(w, &o->shown.notes, ANY);
    i32(w, &o->shown.head, ANY);
    i32(w, &o->shown.not_finite, ANY);
    i64(w, &o->profile[0], ANY);
    i64(w, &o->profile[1], ANY);
    i64(w, &o->profile_most, ANY);
}

static void report(struct walk *w, void *p, int64_t least, int64_t most) {
    struct hosts_report *r = p;
    i64(w, &r->step, ANY);
    flag(w, &r->joins, 0, 1);
    opening(w, &r->opening);
    if (r->opening.step != r->step) fault(w, "has the opening of another step");
    u32(w, &r->n, least, most);
    const size_t n = w->wrong ? 0 : ((size_t)r->n + 7) / 8;
    if (!w->to && w->n - w->at < n) fault(w, "is cut off");
    if (!w->to) r->has = memory(w, n, 1);
    if (w->wrong) return;
    bytes(w, r->has, n);
    if (r->n % 8 && r->has[n - 1] >> r->n % 8) fault(w, "has bits after its last");
}

static void members(struct walk *w, void *p, int64_t least, int64_t most) {
    struct host_message *m = p;
    const int n = count(w, m->n_members, HOSTS_MOST, &m->member, sizeof *m->member);
    if (!w->to) m->n_members = n;
    for (int i = 0; i < n && !w->wrong; i++) {
        struct host_member *one = &m->member[i];
        flag(w, &one->alive, 0, 1);
        if (!w->to) one->address = "";
        if (!one->alive) continue;
        i32(w, &one->weight, 0, HOST_WEIGHT);
        text(w, &one->address, 0, HOSTS_ADDRESS);
        report(w, &one->report, least, most);
    }
}

/* ---- messages ---- */

/* X(NAME, member, walk, least, most), in the order of a message's bytes. */
#define FIELDS(X) \
    X(VERSION, version, text, 0, HOSTS_NAME) \
    X(NAME, name, name, 1, HOSTS_NAME) \
    X(PID, pid, i32, 1, INT32_MAX) \
    X(EPOCH, epoch, u32, 0, UINT32_MAX) \
    X(STEP, step, i64, INT64_MIN, INT64_MAX) \
    X(HOST, host, i32, 0, HOSTS_MOST - 1) \
    X(HOSTS, hosts, i32, 1, HOSTS_MOST) \
    X(JOINS, joins, flag, 0, 1) \
    X(TELLER, teller, i32, 0, HOSTS_MOST - 1) \
    X(RUN, run, i64, INT64_MIN, INT64_MAX) \
    X(TIME, time, i64, 0, INT64_MAX / 4) \
    X(LEASE, lease, i64, 1, INT64_MAX / 4) \
    X(BYTES, bytes, i64, 0, INT64_MAX) \
    X(CODE, code, i32, 0, 255) \
    X(ASK, ask, i32, 0, HOST_KILL) \
    X(WORKERS, workers, i32, 0, CREW_MOST_WORKERS) \
    X(WEIGHT, weight, i32, 0, HOST_WEIGHT) \
    X(FIRST, port[0], i32, 0, 65535) \
    X(LAST, port[1], i32, 0, 65535) \
    X(WIRE, wire, wire, 0, 255) \
    X(KEY, key, raw, 0, HOST_BYTES) \
    X(DIGEST, digest, raw, 0, HOST_BYTES) \
    X(STATE, state, raw, 0, HOST_BYTES) \
    X(TEXT, text, text, 0, HOST_TEXT) \
    X(ADDRESS, address, text, 0, HOSTS_ADDRESS) \
    X(NAMES, names, texts, 1, HOSTS_NAME) \
    X(ROWS, rows, texts, 0, HOST_TEXT) \
    X(WEIGHTS, weights, numbers, 1, HOST_WEIGHT) \
    X(LAUNCH, launch, launch, 0, HOST_LIST) \
    X(REPORT, report, report, 0, 8 * HOST_HAS) \
    X(MEMBERS, kind, members, 0, 8 * HOST_HAS) /* p: the message, which begins with its kind */

#define X(name, member, walk, least, most) AT_##name,
enum { FIELDS(X) AT_COUNT };
#undef X
#define X(name, member, walk, least, most) name = 1 << AT_##name,
enum { NONE = 0, FIELDS(X) PORTS = FIRST | LAST };
#undef X
#define X(name, member, walk, least, most) \
    {#name, walk, offsetof(struct host_message, member), least, most},
static const struct {
    const char *name;
    void (*walk)(struct walk *w, void *p, int64_t least, int64_t most);
    size_t at;
    int64_t least, most;
} fields[] = {FIELDS(X)};
#undef X
#define X(name, fields) {#name, fields},
static const struct {
    const char *name;
    int fields;
} rows[] = {HOST_KINDS(X)};
#undef X

const char *host_kind_name(enum host_kind kind) {
    return (unsigned)kind < COUNT(rows) ? rows[kind].name : "?";
}

/* With the fields before it. */
static void compare(struct walk *w, const struct host_message *m, int field) {
    if (field == HOSTS && m->host >= m->hosts) fault(w, "are too few");
    if (field == LAST && m->port[0] > m->port[1]) fault(w, "is below the first");
    if (field == NAMES && (m->names.n > HOSTS_MOST || m->host >= m->names.n))
        fault(w, "are too few or too many");
    if (field == WEIGHTS && m->weights.n != m->names.n) fault(w, "are not as many as names");
    if (field == MEMBERS && (m->teller >= m->n_members || !m->member[m->teller].alive))
        fault(w, "lack the teller");
}

static tri_status walk_message(struct walk *w, struct host_message *m) {
    const int has = rows[m->kind].fields;
    for (int i = 0; i < AT_COUNT && !w->wrong; i++) {
        if (!(has & 1 << i)) continue;
        w->field = fields[i].name;
        fields[i].walk(w, (char *)m + fields[i].at, fields[i].least, fields[i].most);
        if (!w->wrong) compare(w, m, 1 << i);
    }
    if (!w->wrong && !w->to && w->at < w->n) fault(w, "is followed by more");
    if (!w->wrong) return TRI_OK;
    return base_fail(TRI_FAILED, "message %s: its %s %s", rows[m->kind].name, w->field, w->wrong);
}

tri_status host_message_put(const struct host_message *m, struct text *to) {
    CHECK((unsigned)m->kind < COUNT(rows));
    struct walk w = {.to = to};
    const size_t before = to->size;
    const uint8_t kind = (uint8_t)m->kind;
    text_add_bytes(to, &kind, 1);
    tri_status s = walk_message(&w, (struct host_message *)(uintptr_t)m);
    if (to->failed) return base_no_memory("a message");
    if (s) to->size = before;
    return s;
}

tri_status host_message_get(const void *message, size_t n, struct host_message *m) {
    const uint8_t *b = message;
    *m = (struct host_message){0};
    if (!n || b[0] >= COUNT(rows))
        return base_fail(TRI_FAILED, "a message of an unknown kind: %d", n ? b[0] : -1);
    struct walk w = {.from = b, .n = n, .at = 1, .field = "kind", .arena = &m->arena};
    m->kind = (enum host_kind)b[0];
    return walk_message(&w, m);
}

void host_message_free(struct host_message *m) {
    arena_free(&m->arena);
    *m = (struct host_message){0};
}
