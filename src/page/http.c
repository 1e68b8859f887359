/* SPDX-License-Identifier: Apache-2.0
 * The server, on libmicrohttpd: one thread that waits by epoll, and one that makes the answers that
 * last, one after the other. Endless answers are connections that are suspended while there is
 * nothing to say, as are those that wait for the other thread. */
#include "page/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "page/port.h"

#define MEMORY 32768       /* bytes of a connection: longer requests are refused */
#define IDLE 30            /* seconds in which a client takes nothing */
#define MOST 8192          /* connections, unless the limit of files is lower */
#define OWN_FILES 64       /* that are left to the server itself */
#define ALIVE 10000000000  /* nanoseconds: an endless answer is never silent for longer */
#define POLICY \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " \
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

#define FIRST_ANSWER (struct http_answer){.code = MHD_HTTP_OK, .type = "application/json"}

/* A connection. */
struct client {
    struct client *next;
    int fd;
    int64_t since; /* when it began to wait for a whole request; 0: it has one */
};

/* An endless answer. */
struct stream {
    struct stream *next;
    struct MHD_Connection *connection;
    struct http_seen seen;
    struct text rest; /* to be sent, from `at` on */
    size_t at;
    int64_t told;
    bool suspended;
};

/* A request whose answer lasts. */
struct job {
    struct job *next;
    struct MHD_Connection *connection;
    const char *path;
    struct http_answer answer;
};

/* `lock` guards what follows. */
static struct {
    pthread_mutex_t lock;
    const struct http_options *o;
    struct MHD_Daemon *daemon;
    struct client *clients;
    struct stream *streams;
    struct job *jobs, **last_job;
    pthread_cond_t has_job; /* or is over */
    pthread_t worker;
    char cookie[32]; /* its name */
    bool over;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER, .has_job = PTHREAD_COND_INITIALIZER,
            .last_job = &server.jobs};

void http_log(const char *fmt, ...) {
    struct text line = {0};
    char text[512], now[32] = "";
    va_list args;
    const time_t t = time(NULL);
    struct tm utc;
    va_start(args, fmt);
    base_format_list(text, sizeof text, fmt, args);
    va_end(args);
    if (gmtime_r(&t, &utc)) strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", &utc);
    text_add_escaped(&line, text);
    if (!line.failed) fprintf(stderr, "%s  %s\n", now, line.data ? line.data : "");
    text_free(&line);
}

const char *http_value(const struct http_request *r, const char *key) {
    return MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, key);
}

static enum MHD_Result add_value(void *to, enum MHD_ValueKind kind, const char *key,
                                 const char *value) {
    (void)kind;
    text_add(to, "&%zu:%s=%zu:%s", strlen(key), key, value ? strlen(value) : 0, value ? value : "");
    return MHD_YES;
}

void http_add_address(const struct http_request *r, struct text *out) {
    text_add(out, "%s", r->path);
    MHD_get_connection_values(r->connection, MHD_GET_ARGUMENT_KIND, add_value, out);
}

static const char *header(struct MHD_Connection *c, const char *name) {
    const char *value = MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
    return value ? value : "";
}

/* ---- who may ask ---- */

static bool same_secret(const char *given) {
    return given && strlen(given) == HTTP_TOKEN &&
           !sodium_memcmp(given, server.o->token, HTTP_TOKEN);
}

/* Whether the header Host names this server: by the port of a tunnel, too. */
static bool is_ours(const char *host) {
    static const char *const always[] = {"localhost", "127.0.0.1", "[::1]"};
    const char *colon = strrchr(host, ':'), *closed = strchr(host, ']');
    const size_t n = colon && (!closed || colon > closed) ? (size_t)(colon - host) : strlen(host);
    const struct http_options *o = server.o;
    bool ours = false;
    for (size_t i = 0; i < COUNT(always); i++)
        ours |= strlen(always[i]) == n && !strncasecmp(always[i], host, n);
    for (int i = 0; i < o->n_names; i++)
        ours |= strlen(o->name[i]) == n && !strncasecmp(o->name[i], host, n);
    return ours && n;
}

/* Whether another site's page asks. A click on the link there is no such request. */
static bool is_foreign(struct MHD_Connection *c) {
    const char *site = header(c, "Sec-Fetch-Site");
    if (!*site || !strcmp(site, "same-origin") || !strcmp(site, "none")) return false;
    return strcmp(header(c, "Sec-Fetch-Mode"), "navigate") ||
           strcmp(header(c, "Sec-Fetch-Dest"), "document");
}

/* ---- answers ---- */

static void add_headers(struct MHD_Response *r, const char *type) {
    static const char *const headers[][2] = {
        {"Content-Security-Policy", POLICY},   {"Referrer-Policy", "no-referrer"},
        {"X-Content-Type-Options", "nosniff"}, {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"}, {"Cache-Control", "no-store"}};
    for (size_t i = 0; i < COUNT(headers); i++)
        MHD_add_response_header(r, headers[i][0], headers[i][1]);
    MHD_add_response_header(r, "Content-Type", type);
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned code, const char *path,
                              const char *why) {
    struct text body = {0};
    text_add(&body, "%s\n", why);
    struct MHD_Response *r = MHD_create_response_from_buffer(
        body.failed ? 0 : body.size, body.failed ? "" : body.data, MHD_RESPMEM_MUST_COPY);
    text_free(&body);
    http_log("%u %.200s: %s", code, path, why);
    if (!r) return MHD_NO;
    add_headers(r, "text/plain; charset=utf-8");
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(r, "Allow", "GET");
    const enum MHD_Result done = MHD_queue_response(c, code, r);
    MHD_destroy_response(r);
    return done;
}

/* The link has the token. From now on a cookie has it, and the address loses it. */
static enum MHD_Result welcome(struct MHD_Connection *c) {
    char cookie[160];
    struct MHD_Response *r = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (!r) return MHD_NO;
    base_format(cookie, sizeof cookie, "%s=%s; Path=/; SameSite=Lax; HttpOnly", server.cookie,
                server.o->token);
    add_headers(r, "text/plain; charset=utf-8");
    MHD_add_response_header(r, "Set-Cookie", cookie);
    MHD_add_response_header(r, "Location", "/");
    const enum MHD_Result done = MHD_queue_response(c, MHD_HTTP_SEE_OTHER, r);
    MHD_destroy_response(r);
    return done;
}

/* ---- endless answers ---- */

static ssize_t read_stream(void *of, uint64_t position, char *to, size_t room) {
    struct stream *s = of;
    (void)position;
    if (s->at == s->rest.size) {
        text_free(&s->rest);
        s->at = 0;
        server.o->event(&s->seen, &s->rest);
        if (!s->rest.size && base_now() - s->told >= ALIVE) text_add(&s->rest, ":\n\n");
        if (s->rest.failed) return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    const size_t left = s->rest.size - s->at, n = left < room ? left : room;
    if (n) {
        memcpy(to, s->rest.data + s->at, n);
        s->at += n;
        s->told = base_now();
        return (ssize_t)n;
    }
    pthread_mutex_lock(&server.lock);
    const bool over = server.over;
    if (!over) {
        MHD_suspend_connection(s->connection);
        s->suspended = true;
    }
    pthread_mutex_unlock(&server.lock);
    return over ? MHD_CONTENT_READER_END_OF_STREAM : 0;
}

static void free_stream(void *of) {
    struct stream *s = of;
    pthread_mutex_lock(&server.lock);
    for (struct stream **at = &server.streams; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    pthread_mutex_unlock(&server.lock);
    text_free(&s->rest);
    free(s);
}

static struct MHD_Response *make_stream(struct MHD_Connection *c, int run) {
    struct stream *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (struct stream){.connection = c, .seen = {run, -1}};
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream,
                                                               s, free_stream);
    if (!r) {
        free(s);
        return NULL;
    }
    pthread_mutex_lock(&server.lock);
    s->next = server.streams;
    server.streams = s;
    pthread_mutex_unlock(&server.lock);
    return r;
}

/* ---- answers that last ---- */

static bool add_job(struct MHD_Connection *c, const char *path, void **job) {
    struct job *j = malloc(sizeof *j);
    if (!j) return false;
    *j = (struct job){.connection = c, .path = path, .answer = FIRST_ANSWER};
    *job = j;
    pthread_mutex_lock(&server.lock);
    const bool over = server.over;
    if (!over) {
        MHD_suspend_connection(c);
        *server.last_job = j;
        server.last_job = &j->next;
        pthread_cond_signal(&server.has_job);
    }
    pthread_mutex_unlock(&server.lock);
    return !over;
}

static void *work(void *of) {
    (void)of;
    pthread_mutex_lock(&server.lock);
    while (server.jobs || !server.over) {
        struct job *j = server.jobs;
        if (!j) {
            pthread_cond_wait(&server.has_job, &server.lock);
            continue;
        }
        server.jobs = j->next;
        if (!j->next) server.last_job = &server.jobs;
        const bool over = server.over;
        pthread_mutex_unlock(&server.lock);
        if (over) j->answer.code = MHD_HTTP_SERVICE_UNAVAILABLE;
        else server.o->answer(&(struct http_request){j->path, j->connection}, &j->answer, true);
        MHD_resume_connection(j->connection);
        pthread_mutex_lock(&server.lock);
    }
    pthread_mutex_unlock(&server.lock);
    return NULL;
}

static void free_job(struct job *j) {
    text_free(&j->answer.body);
    free(j);
}

/* ---- requests ---- */

/* Takes the answer's body. */
static enum MHD_Result respond(struct MHD_Connection *c, const char *path, struct http_answer *a) {
    struct MHD_Response *r;
    const bool failed = a->body.failed;
    if (failed || a->code >= 400) {
        const enum MHD_Result done =
            refuse(c, failed ? 500 : (unsigned)a->code, path,
                   failed         ? "out of memory"
                   : a->body.data ? a->body.data
                   : a->code == MHD_HTTP_NOT_FOUND ? "there is no such page" : "the server ends");
        text_free(&a->body);
        return done;
    }
    if (a->follows) r = make_stream(c, a->run);
    else if (a->fixed)
        r = MHD_create_response_from_buffer(a->n_fixed, (void *)(uintptr_t)a->fixed,
                                            MHD_RESPMEM_PERSISTENT);
    else r = MHD_create_response_from_buffer(a->body.size, a->body.data, MHD_RESPMEM_MUST_FREE);
    if (!r) {
        text_free(&a->body);
        return MHD_NO;
    }
    a->body = (struct text){0};
    add_headers(r, a->type);
    const enum MHD_Result done = MHD_queue_response(c, (unsigned)a->code, r);
    MHD_destroy_response(r);
    return done;
}

static enum MHD_Result handle(void *of, struct MHD_Connection *c, const char *path,
                              const char *method, const char *version, const char *data,
                              size_t *bytes, void **seen) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct client *client = info ? info->socket_context : NULL;
    (void)of, (void)version, (void)data;
    if (!*seen) { /* an answer before the end of the request would close the connection */
        *seen = &server;
        return MHD_YES;
    }
    if (*seen != &server) return respond(c, path, &((struct job *)*seen)->answer);
    if (*bytes) { /* of a body, which nobody wants */
        *bytes = 0;
        return MHD_YES;
    }
    pthread_mutex_lock(&server.lock);
    if (client) client->since = 0;
    pthread_mutex_unlock(&server.lock);
    if (strcmp(method, "GET"))
        return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, path, "only GET is answered");
    if (!is_ours(header(c, "Host")))
        return refuse(c, MHD_HTTP_MISDIRECTED_REQUEST, path,
                      "the address has a host name that is not known here; --name NAME allows it");
    if (is_foreign(c)) return refuse(c, MHD_HTTP_FORBIDDEN, path, "the page of another site asks");
    const char *token = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token");
    if (same_secret(token) && !strcmp(path, "/")) return welcome(c);
    if (!same_secret(MHD_lookup_connection_value(c, MHD_COOKIE_KIND, server.cookie)))
        return refuse(c, MHD_HTTP_FORBIDDEN, path,
                      token ? "this link is an old one: open the one that trireme dashboard has "
                              "printed last"
                            : "open the link that trireme dashboard has printed");
    struct http_answer a = FIRST_ANSWER;
    if (server.o->answer(&(struct http_request){path, c}, &a, false)) return respond(c, path, &a);
    return add_job(c, path, seen) ? MHD_YES : MHD_NO;
}

/* ---- connections ---- */

static void note_connection(void *of, struct MHD_Connection *c, void **context,
                            enum MHD_ConnectionNotificationCode what) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    (void)of;
    pthread_mutex_lock(&server.lock);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        struct client *client = calloc(1, sizeof *client);
        *context = client;
        if (client) {
            *client = (struct client){server.clients, info ? info->connect_fd : -1, base_now()};
            server.clients = client;
        }
    } else {
        for (struct client **at = &server.clients; *at; at = &(*at)->next)
            if (*at == *context) {
                *at = (*at)->next;
                break;
            }
        free(*context);
        *context = NULL;
    }
    pthread_mutex_unlock(&server.lock);
}

static void note_end(void *of, struct MHD_Connection *c, void **seen,
                     enum MHD_RequestTerminationCode how) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    (void)of, (void)how;
    if (*seen && *seen != &server) free_job(*seen);
    *seen = NULL;
    pthread_mutex_lock(&server.lock);
    if (info && info->socket_context) ((struct client *)info->socket_context)->since = base_now();
    pthread_mutex_unlock(&server.lock);
}

static void wake_streams(void) {
    for (struct stream *s = server.streams; s; s = s->next) {
        if (!s->suspended) continue;
        s->suspended = false;
        MHD_resume_connection(s->connection);
    }
}

/* Whether there is something to read, for which the server had no time. */
static bool has_sent(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void http_wake(void) {
    const int64_t now = base_now();
    pthread_mutex_lock(&server.lock);
    for (struct client *c = server.clients; c; c = c->next)
        if (c->since && now - c->since > HTTP_SECONDS * INT64_C(1000000000) && !has_sent(c->fd)) {
            c->since = 0;
            shutdown(c->fd, SHUT_RDWR);
        }
    wake_streams();
    pthread_mutex_unlock(&server.lock);
}

static void take_log(void *of, const char *fmt, va_list args) {
    char text[256];
    (void)of;
    if (!strncmp(fmt, "Failed to send", 14)) return; /* a page was closed, or goes to another */
    base_format_list(text, sizeof text, fmt, args);
    text[strcspn(text, "\n")] = 0;
    http_log("%s", text);
}

tri_status http_start(const struct http_options *o) {
    struct rlimit files;
    int fd;
    tri_status status = port_open(o->host, o->port, &fd);
    if (status) return status;
    server.o = o;
    /* Of the token: the same after a start with the same one, another one for another server. */
    base_format(server.cookie, sizeof server.cookie, "trireme-%08x",
                (unsigned)base_hash_text(o->token));
    unsigned most = MOST;
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        if (files.rlim_cur < MOST + OWN_FILES)
            most = files.rlim_cur > 2 * OWN_FILES ? (unsigned)files.rlim_cur - OWN_FILES
                                                  : OWN_FILES;
    }
    server.daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        handle, NULL, MHD_OPTION_EXTERNAL_LOGGER, take_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY, MHD_OPTION_CONNECTION_LIMIT,
        most, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE, MHD_OPTION_NOTIFY_COMPLETED,
        note_end, NULL, MHD_OPTION_NOTIFY_CONNECTION, note_connection, NULL,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (!server.daemon) {
        close(fd);
        return base_fail(TRI_FAILED, "the server cannot be started: %s", strerror(errno));
    }
    const int error = pthread_create(&server.worker, NULL, work, NULL);
    if (!error) return TRI_OK;
    MHD_stop_daemon(server.daemon);
    return base_fail(TRI_FAILED, "the server cannot be started: %s", strerror(error));
}

void http_stop(void) {
    pthread_mutex_lock(&server.lock);
    server.over = true;
    wake_streams();
    pthread_cond_signal(&server.has_job);
    pthread_mutex_unlock(&server.lock);
    pthread_join(server.worker, NULL);
    MHD_stop_daemon(server.daemon);
}
