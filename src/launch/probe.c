/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "crew/hosts.h"
#include "ferry/sums.h"
#include "io/seal.h"
#include "link/control.h"
#include "link/sockets.h"
#include "observe/json.h"

#define LIFE 60           /* seconds that an answer may take, whatever the system does, beside */
#define MOST_LIFE 3600    /* those that the question names; of these so many at most */
#define JOIN 6            /* the same, of a session's begin */
#define MEASURE 15        /* the same, of a measurement, beside the time that is asked for */
#define MIB 1048576.0
#define LITTLE_MEMORY 512 /* MiB */
#define LITTLE_DISK 64    /* the same */
#define BLOCK (256 << 10) /* bytes of a message */
#define FLYING 4          /* messages that are sent at a time */
#define LEAST 4           /* messages of a measurement */
#define PINGS 100
#define A_WHILE 0.5       /* seconds; and pings, as many as go into it */
#define EPOCH 1           /* of all sessions */

/* What a message is: the header's `part`. */
enum { PING, PONG, DATA, LAST, TOLD };

/* What has arrived after the first message of a measurement. */
struct received {
    int64_t bytes, time, cpu; /* of these nanoseconds */
    int64_t begin, cpu_begin; /* 0: there was no first message */
};

struct probe {
    char file[PATH_MAX]; /* to be removed at the end; "": none */
    char directory[PATH_MAX];
    struct link *link;   /* null: it does not listen yet */
    int host, hosts;
    uint8_t key[LINK_KEY];
    struct peer {
        bool waits;         /* a session is asked for */
        char why[LINK_WHY]; /* there is none: the reason; "": it has joined */
    } peer[HOSTS_MOST];
    struct received received, told;
    bool has_told;
    int pongs, flying;
    struct mover *mover; /* serves `sums` */
    struct sums *sums;   /* null: none have been asked for */
    uint32_t step;
    char block[BLOCK]; /* is sent, and receives */
};

static int64_t cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int64_t after(double seconds) { return base_now() + (int64_t)(1e9 * seconds); }

static void set_text(json_t *a, const char *name, const char *text) {
    json_object_set_new(a, name, json_text(text));
}

/* ---- this host ---- */

static void set_fact(json_t *a, const char *name, bool wrong, const char *text) {
    set_text(wrong ? json_object_get(a, "wrong") : a, name, text);
}

static void check_name(const char *name, struct text *wrong) {
    const struct addrinfo like = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *a = NULL;
    struct sockaddr_storage first = {0};
    char at[LINK_ADDRESS];
    const char *sep = wrong->size ? "; " : "";
    const int failed = getaddrinfo(name, NULL, &like, &a);
    if (failed) text_add(wrong, "%s%s leads nowhere (%s)", sep, name, gai_strerror(failed));
    if (failed) return;
    memcpy(&first, a->ai_addr, a->ai_addrlen);
    freeaddrinfo(a);
    socket_text(&first, false, at);
    if (control_is_loopback(at))
        text_add(wrong, "%s%s leads to %s, a loopback address", sep, name, at);
}

static void check_names(const json_t *q, json_t *a) {
    struct text wrong = {0};
    const json_t *name;
    size_t i;
    json_array_foreach(json_object_get(q, "names"), i, name)
        if (i != (size_t)json_whole_of(q, "host", -1)) check_name(json_string_value(name), &wrong);
    set_fact(a, "names", wrong.size, wrong.size ? wrong.data : "the other hosts are found");
    text_free(&wrong);
}

tri_status probe_hash_key(const char *path, const char *nonce, char hash[PROBE_HASH]) {
    uint8_t key[SEAL_KEY], made[PROBE_HASH / 2];
    if (sodium_init() < 0) return base_fail(TRI_FAILED, "libsodium cannot be used");
    tri_status status = seal_key_read(path, key);
    if (!status)
        crypto_generichash(made, sizeof made, (const uint8_t *)nonce, strlen(nonce), key,
                           sizeof key);
    sodium_memzero(key, sizeof key);
    if (!status) sodium_bin2hex(hash, PROBE_HASH, made, sizeof made);
    return status;
}

static void check_key(const json_t *q, json_t *a) {
    const char *path = json_text_of(q, "key");
    char hash[PROBE_HASH], text[300] = "the same";
    tri_status status = probe_hash_key(path, json_text_of(q, "nonce"), hash);
    const bool same = !status && !strcmp(hash, json_text_of(q, "hash"));
    if (status) base_format(text, sizeof text, "%s", tri_message());
    else if (!same) base_format(text, sizeof text, "%s: another key than on this machine", path);
    set_fact(a, "key", !same, text);
}

/* Leaves a file in the directory of the run, or the first above it that there is. */
static tri_status try_disk(struct probe *p, const json_t *q) {
    const char *cwd = json_text_of(q, "directory"), *out = json_text_of(q, "out"),
               *nonce = json_text_of(q, "nonce");
    char *slash;
    if (chdir(cwd))
        return base_fail(TRI_USAGE, "the directory %s: %s; --chdir DIR names another", cwd,
                         strerror(errno));
    base_format(p->directory, sizeof p->directory, "%s", out);
    while (access(p->directory, F_OK) && (slash = strrchr(p->directory, '/'))) *slash = 0;
    if (access(p->directory, F_OK)) strcpy(p->directory, *out == '/' ? "/" : ".");
    base_format(p->file, sizeof p->file, "%s/%s", p->directory, json_text_of(q, "file"));
    const int fd = open(p->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) *p->file = 0;
    bool good = fd >= 0 && base_write_all(fd, nonce, strlen(nonce));
    if (fd >= 0 && close(fd)) good = false;
    return good ? TRI_OK : base_fail(TRI_FAILED, "cannot write to %s: %s", p->directory,
                                     strerror(errno));
}

static void check_disk(struct probe *p, const json_t *q, json_t *a) {
    char text[100] = "?";
    struct statvfs disk;
    double free_mib = 0;
    tri_status status = try_disk(p, q);
    if (!status && !statvfs(p->directory, &disk)) {
        free_mib = (double)(disk.f_frsize * disk.f_bavail) / MIB;
        base_format(text, sizeof text, "%.0f MiB", free_mib);
    }
    set_fact(a, "disk", free_mib < LITTLE_DISK, status ? tri_message() : text);
}

static tri_status describe(struct probe *p, const json_t *q, json_t *a) {
    char memory[32];
    struct host h;
    struct text instructions = {0};
    json_object_set_new(a, "wrong", json_object());
    host_read("", &h);
    host_instructions(&instructions);
    set_text(a, "version", TRI_VERSION);
    set_text(a, "instructions", instructions.data);
    text_free(&instructions);
    const double mib = (double)(h.limit && h.limit < h.available ? h.limit : h.available) / MIB;
    base_format(memory, sizeof memory, "%.0f MiB", mib);
    set_fact(a, "memory", mib < LITTLE_MEMORY, memory);
    check_names(q, a);
    if (*json_text_of(q, "out")) check_disk(p, q, a);
    if (*json_text_of(q, "key")) check_key(q, a);
    return TRI_OK;
}

static tri_status look(struct probe *p, const json_t *q, json_t *a) {
    json_t *sees = json_array();
    const json_t *file;
    size_t i;
    json_array_foreach(json_object_get(q, "files"), i, file) {
        char path[PATH_MAX + 300];
        base_format(path, sizeof path, "%s/%s", p->directory, json_string_value(file));
        json_array_append_new(sees, json_boolean(!access(path, F_OK)));
    }
    json_object_set_new(a, "sees", sees);
    return TRI_OK;
}

/* ---- the link, as a ferry has it ---- */

static void *where(void *user, int host, const struct link_header *header) {
    struct probe *p = user;
    if (header->kind == LINK_SUM) return mover_where(p->mover, host, header);
    if (header->length > BLOCK) return NULL;
    if (header->part == TOLD) return header->length == sizeof p->told ? &p->told : NULL;
    return p->block;
}

static tri_status put(struct probe *p, int host, uint32_t what, const void *bytes, size_t n) {
    const struct link_header h = {.kind = LINK_USER, .part = what};
    p->flying += what == DATA;
    return link_send(p->link, host, &h, bytes, n, what == DATA ? p->block : NULL);
}

static tri_status arrived(struct probe *p, int host, const struct link_header *h) {
    struct received *r = &p->received;
    if (h->part == PING) {
        *r = (struct received){0}; /* a measurement begins */
        return put(p, host, PONG, NULL, 0);
    }
    p->pongs += h->part == PONG;
    p->has_told |= h->part == TOLD;
    if (h->part == DATA && !r->begin) {
        r->cpu_begin = cpu_now();
        r->begin = base_now();
    } else if (h->part == DATA) {
        r->bytes += (int64_t)h->length;
        r->cpu = cpu_now() - r->cpu_begin;
        r->time = base_now() - r->begin;
    }
    return h->part == LAST ? put(p, host, TOLD, r, sizeof *r) : TRI_OK;
}

/* Whether the event is for the mover alone. */
static bool is_of_sums(const struct probe *p, const struct link_event *e) {
    return (e->what == LINK_ARRIVED && e->header.kind == LINK_SUM) ||
           (e->what == LINK_SENT && e->token && e->token != p->block);
}

static tri_status serve(struct probe *p) {
    struct link_event e;
    bool published = false;
    tri_status status = TRI_OK;
    while (!status && !(status = link_next(p->link, &e)) && e.what != LINK_NOTHING) {
        if (e.what == LINK_REFUSED) continue; /* it names no host */
        struct peer *peer = &p->peer[e.host];
        if (is_of_sums(p, &e) || e.what == LINK_JOINED || e.what == LINK_ENDED)
            status = mover_take(p->mover, &e, &published);
        if (status || is_of_sums(p, &e)) continue;
        p->flying -= e.what == LINK_SENT && e.token;
        if (e.what == LINK_JOINED || e.what == LINK_ENDED) {
            peer->waits = false;
            base_format(peer->why, sizeof peer->why, "%s", e.what == LINK_ENDED ? e.why : "");
        }
        if (e.what == LINK_ENDED) p->flying = 0; /* one host is measured at a time */
        if (e.what == LINK_ARRIVED) status = arrived(p, e.host, &e.header);
    }
    return status;
}

/* The host's session has ended, or none has begun. */
static const char *end_of(const struct probe *p, int host) {
    const struct peer *peer = &p->peer[host];
    return host != p->host && !peer->waits && *peer->why ? peer->why : NULL;
}

/* Serves the link, within a question about so many hosts, until something has happened. */
static tri_status turn(struct probe *p, int host, int hosts, int64_t end) {
    struct pollfd on[] = {{STDIN_FILENO, POLLRDHUP, 0}, {link_fd(p->link), POLLIN, 0}};
    const int64_t left = end - base_now();
    if (left <= 0) return base_fail(TRI_FAILED, "there was no answer in time");
    if (poll(on, COUNT(on), (int)(left / 1000000) + 1) < 0 && errno != EINTR)
        return base_fail(TRI_FAILED, "poll: %s", strerror(errno));
    if (on[0].revents) return base_fail(TRI_FAILED, "nobody asks any more");
    tri_status status = serve(p);
    for (const int last = host + hosts; !status && host < last; host++)
        if (end_of(p, host)) status = base_fail(TRI_FAILED, "%s", end_of(p, host));
    return status;
}

/* Hosts of higher numbers connect, once they are asked to reach this one. */
static tri_status listen_here(struct probe *p, const json_t *q, json_t *a) {
    const char *key = json_text_of(q, "key");
    const struct link_row *row;
    size_t bytes;
    const int64_t most = json_whole_of(q, "most", 0);
    int host, hosts, low, high;
    if (sodium_init() < 0 || p->link ||
        json_unpack((json_t *)(uintptr_t)q, "{s:i, s:i, s:[ii]}", "host", &host, "hosts", &hosts,
                    "port", &low, &high) ||
        host < 0 || host >= hosts || hosts > HOSTS_MOST ||
        sodium_hex2bin(p->key, LINK_KEY, key, strlen(key), NULL, &bytes, NULL) || bytes != LINK_KEY)
        return base_fail(TRI_USAGE, "version " TRI_VERSION " has no such question");
    const bool open = json_is_true(json_object_get(q, "open"));
    const struct link_options o = {.self = host, .hosts = hosts, .run = 1,
                                   .key = open ? NULL : p->key,
                                   .most = (uint64_t)(most > BLOCK ? most : BLOCK),
                                   .where = where, .user = p,
                                   .address = json_text_of(q, "address"), .port = {low, high}};
    tri_status status = link_row_find(LINK_TCP, &row);
    if (!status) status = mover_open(host, hosts, 1, &p->mover);
    if (!status) status = link_open(row, &o, &p->link);
    if (!status) mover_bind(p->mover, p->link);
    for (int i = 0; i < hosts && !status; i++) {
        strcpy(p->peer[i].why, "there is no session");
        p->peer[i].waits = i > host;
        if (i > host) status = link_peer(p->link, i, EPOCH, NULL);
    }
    if (status) return status;
    p->host = host;
    p->hosts = hosts;
    set_text(a, "address", link_address(p->link));
    return TRI_OK;
}

/* Connects, and says nothing. *how: what comes of it. */
static tri_status try_address(const char *address, json_t *a, const char **how) {
    char own[LINK_ADDRESS];
    int fd = -1, error;
    struct addrinfo *found;
    tri_status status = socket_find(address, false, &found);
    if (status) return status;
    status = socket_connect(found, &fd, &error);
    freeaddrinfo(found);
    if (status) return status;
    socket_name(fd, false, false, own);
    if (!error) set_text(a, "own", own);
    struct pollfd on[] = {{error ? -1 : fd, POLLOUT, 0}, {STDIN_FILENO, POLLRDHUP, 0}};
    const bool ended = poll(on, COUNT(on), error ? 0 : (int)(1e3 * PROBE_SILENT)) > 0;
    if (ended) error = socket_error(fd);
    close(fd);
    *how = error == ECONNREFUSED ? "refused" : error ? strerror(error)
                                   : ended           ? "reached" : "silent";
    return TRI_OK;
}

/* A host of a higher number connects to the link of a lower one, if it is reached at all. */
static tri_status reach(struct probe *p, const json_t *q, json_t *a) {
    const int host = (int)json_whole_of(q, "host", HOSTS_MOST);
    const char *address = json_text_of(q, "to"), *how = "";
    tri_status status = try_address(address, a, &how);
    set_text(a, "how", how);
    if (status || strcmp(how, "reached") || host < 0 || host >= p->host) return status;
    struct peer *peer = &p->peer[host];
    peer->waits = true;
    status = link_peer(p->link, host, EPOCH, address);
    for (const int64_t end = after(JOIN); !status && peer->waits;) status = turn(p, host, 1, end);
    return status;
}

/* The median of round trips. */
static tri_status ping(struct probe *p, int host, int64_t late, double *latency) {
    double trip[PINGS] = {0};
    int n = 0;
    tri_status status = TRI_OK;
    for (const int64_t end = after(A_WHILE); !status && n < PINGS && base_now() < end; n++) {
        const int64_t begin = base_now();
        p->pongs = 0;
        status = put(p, host, PING, NULL, 0);
        while (!status && !p->pongs) status = turn(p, host, 1, late);
        trip[n] = 1e-9 * (double)(base_now() - begin);
    }
    qsort(trip, (size_t)n, sizeof *trip, base_by_size);
    *latency = trip[n / 2];
    return status;
}

static tri_status measure(struct probe *p, const json_t *q, json_t *a) {
    const int host = (int)json_whole_of(q, "host", -1);
    const double seconds = json_number_of(q, "seconds", 1);
    const int64_t late = after(seconds + MEASURE);
    double latency = 0;
    tri_status status = TRI_OK;
    if (host < 0 || host >= p->hosts)
        return base_fail(TRI_FAILED, "there is no session with host %d", host);
    const struct peer *peer = &p->peer[host];
    while (!status && peer->waits) status = turn(p, host, 1, late);
    if (!status) status = ping(p, host, late, &latency);
    const int64_t cpu = cpu_now(), end = after(seconds);
    int64_t sent = 0;
    p->has_told = false;
    while (!status && (base_now() < end || sent < LEAST)) {
        if (p->flying == FLYING) status = turn(p, host, 1, late);
        else if (!(status = put(p, host, DATA, p->block, BLOCK))) sent++;
    }
    if (!status) status = put(p, host, LAST, NULL, 0);
    while (!status && !p->has_told) status = turn(p, host, 1, late);
    if (status) return status;
    const struct received *r = &p->told;
    const double own = (double)(cpu_now() - cpu) / (double)(sent * BLOCK),
                 theirs = (double)r->cpu / (double)r->bytes;
    json_object_set_new(a, "latency", json_finite(latency));
    json_object_set_new(a, "bandwidth", json_finite(1e9 * (double)r->bytes / (double)r->time));
    json_object_set_new(a, "cpu", json_finite(own + theirs)); /* ns per byte */
    return TRI_OK;
}

/* ---- sums over all hosts ---- */

static tri_status one_sum(struct probe *p, uint32_t set, int64_t late) {
    struct sums *s = p->sums;
    bool published = false;
    sums_begin(s, ++p->step);
    const struct mover_step step = sums_step(s, EPOCH);
    tri_status status = mover_begin(p->mover, &step);
    if (status) return status;
    sums_put(s, 0, set);
    sums_publish(s, 0);
    for (;;) {
        status = mover_send(p->mover, &published);
        sums_follow(s, 0);
        if (status || (sums_are_there(s) && mover_has_sent(p->mover))) return status;
        if ((status = turn(p, 0, p->hosts, late))) return status;
    }
}

/* A sum of other numbers. wrong: what is wrong with it; other hosts go on meanwhile. */
static tri_status try_sum(struct probe *p, uint32_t set, int64_t late, char wrong[300]) {
    tri_status status = one_sum(p, set, late);
    if (!status && sums_check(p->sums, set)) base_format(wrong, 300, "%s", tri_message());
    return status;
}

/* The median time of n sums, one after the other, and what moves and is computed in one. The next
 * one begins when the host has this one, but no host gets ahead by more than one. The first is not
 * counted: others may still be busy with their check. */
static tri_status time_sums(struct probe *p, int n, int64_t late, json_t *a) {
    double *time = calloc((size_t)n, sizeof *time);
    tri_status status = time ? one_sum(p, 0, late) : base_no_memory("times");
    const struct mover_bytes before = mover_bytes(p->mover);
    const int64_t cpu = cpu_now();
    for (int64_t i = 0, begin = base_now(); i < n && !status; i++) {
        status = one_sum(p, 0, late);
        time[i] = 1e-9 * (double)(base_now() - begin);
        begin = base_now();
    }
    const struct mover_bytes after_all = mover_bytes(p->mover);
    if (!status) {
        qsort(time, (size_t)n, sizeof *time, base_by_size);
        json_object_set_new(a, "took", json_finite(time[n / 2]));
        json_object_set_new(a, "cpu", json_finite(1e-9 * (double)(cpu_now() - cpu) / n));
        json_object_set_new(a, "sent", json_finite((double)(after_all.sent - before.sent) / n));
        json_object_set_new(a, "received",
                            json_finite((double)(after_all.received - before.received) / n));
    }
    free(time);
    return status;
}

static void end_sessions(struct probe *p) {
    for (int i = 0; i < p->hosts; i++) {
        if (i == p->host) continue;
        link_end(p->link, i);
        p->peer[i] = (struct peer){.why = "the session was ended after a sum that failed"};
    }
    mover_stop(p->mover);
}

static tri_status sum(struct probe *p, const json_t *q, json_t *a) {
    const int64_t bytes = json_whole_of(q, "bytes", 0), n = json_whole_of(q, "sums", 0);
    const int64_t late = after(json_number_of(q, "seconds", 0) + MEASURE);
    struct sums_ask ask = {.self = p->host, .hosts = p->hosts, .threads = 1,
                           .numbers = (size_t)bytes / sizeof(float)};
    while (ask.path < PATHS && strcmp(path_name(ask.path), json_text_of(q, "path"))) ask.path++;
    if (!p->link || ask.path == PATHS || !path_allows(ask.path, p->hosts) || !ask.numbers ||
        n < 1 || n > PROBE_MOST_SUMS)
        return base_fail(TRI_USAGE, "version " TRI_VERSION " has no such question");
    for (int i = 0; i < p->hosts; i++)
        if (end_of(p, i)) return base_fail(TRI_FAILED, "host %d: %s", i, end_of(p, i));
    struct sums *before = p->sums, *s; /* before: the mover lets go of it in the next step */
    char wrong[300] = "";
    tri_status status = sums_open(&ask, &s);
    if (status) return status;
    p->sums = s;
    status = try_sum(p, 0, late, wrong);
    sums_close(before);
    if (!status) status = time_sums(p, (int)n, late, a);
    if (!status) status = try_sum(p, 1, late, wrong);
    if (status) end_sessions(p); /* nobody can finish the step */
    return status || !*wrong ? status : base_fail(TRI_FAILED, "%s", wrong);
}

/* ---- the process ---- */

static const struct {
    const char *ask;
    tri_status (*answer)(struct probe *p, const json_t *q, json_t *a);
} rows[] = {
    {"describe", describe}, {"look", look}, {"listen", listen_here}, {"reach", reach},
    {"measure", measure}, {"sum", sum},
};

static void answer(struct probe *p, const char *line) {
    json_t *q = json_loads(line, 0, NULL), *a = json_object();
    size_t i = 0;
    while (i < COUNT(rows) && strcmp(rows[i].ask, json_text_of(q, "ask"))) i++;
    const double more = json_number_of(q, "seconds", 0);
    alarm(LIFE + (unsigned)(more > 0 && more < MOST_LIFE ? more : 0));
    tri_status status = i < COUNT(rows)
                            ? rows[i].answer(p, q, a)
                            : base_fail(TRI_USAGE, "version " TRI_VERSION " has no such question");
    alarm(0);
    if (status) set_text(a, "error", tri_message());
    json_object_set_new(a, "time", json_integer(base_realtime()));
    json_dumpf(a, stdout, JSON_COMPACT);
    printf("\n");
    fflush(stdout);
    json_decref(a);
    json_decref(q);
}

int probe_run(void) {
    static struct probe p;
    char *line = NULL;
    size_t room = 0;
    bool open = true;
    signal(SIGTERM, SIG_IGN); /* whoever has started it closes its stdin, also by dying */
    signal(SIGPIPE, SIG_IGN);
    while (open) {
        const int fd = p.link ? link_fd(p.link) : -1;
        struct pollfd on[] = {{STDIN_FILENO, POLLIN, 0}, {fd, POLLIN, 0}};
        if (poll(on, COUNT(on), -1) < 0 && errno != EINTR) break;
        if (on[1].revents && serve(&p)) open = false;
        if (on[0].revents) open = getline(&line, &room, stdin) > 0;
        if (on[0].revents && open) answer(&p, line);
    }
    if (*p.file) unlink(p.file);
    link_close(p.link);
    mover_close(p.mover);
    sums_close(p.sums);
    free(line);
    return 0;
}
