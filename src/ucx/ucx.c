/* SPDX-License-Identifier: Apache-2.0 */
#include "ucx/ucx.h"

#include <dirent.h>
#include <endian.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

#define WINDOW (2u << 20) /* bytes that are written and not known to be read */
#define CHUNK (250u << 10) /* of a window; with what UCX adds, a segment: see link/ucx.c */
#define PASSES 32

enum { ID_BYTES = 1, ID_CREDIT };

struct chunk {
    struct ucx *u;
    struct chunk *next; /* of those that are free */
    uint64_t at; /* bytes of the stream before these; of a credit: that were read; little endian */
    char bytes[];
};

struct held { /* bytes that came and were not read */
    struct held *next;
    size_t n, at;
    char bytes[];
};

struct ucx_stream {
    struct ucx *u;
    struct ucx_stream *next;
    void *owner; /* null: shut */
    ucp_ep_h ep;
    uint64_t written, credit;   /* credit: of these the peer has read so many */
    uint64_t came, taken, told; /* taken: of these; told: the last credit */
    struct held *first, **last;
    const char *now; /* bytes that UCX lends at this moment */
    size_t n_now;
    bool broken, is_told;
    char why[UCX_WHY];
};

struct ucx {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_listener_h listener;
    int fd;
    const struct ucx_user *row;
    void *user;
    struct ucx_stream *stream, *closing;
    bool inside; /* of work */
    struct chunk *chunk;
};

static bool failed(char why[UCX_WHY], const char *what, ucs_status_t status) {
    if (status != UCS_OK) snprintf(why, UCX_WHY, "%s: %s", what, ucs_status_string(status));
    return status != UCS_OK;
}

static void fault(struct ucx_stream *s, const char *why) {
    if (s->broken) return;
    s->broken = true;
    snprintf(s->why, sizeof s->why, "%s", why);
}

static void ready(struct ucx_stream *s) {
    if (s->owner) s->u->row->ready(s->u->user, s->owner);
}

/* ---- sending ---- */

static void recycle(struct chunk *c) {
    c->next = c->u->chunk;
    c->u->chunk = c;
}

static void sent(void *request, ucs_status_t status, void *user) {
    (void)status; /* of the stream's failure its handler tells */
    recycle(user);
    ucp_request_free(request);
}

static struct chunk *new_chunk(struct ucx_stream *s, uint64_t at) {
    struct chunk *c = s->u->chunk;
    if (c) s->u->chunk = c->next;
    else c = malloc(sizeof *c + CHUNK);
    if (c) c->u = s->u, c->at = htole64(at);
    else fault(s, "there is no memory for what is sent");
    return c;
}

static void post(struct ucx_stream *s, unsigned id, struct chunk *c, size_t n) {
    const ucp_request_param_t p = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER,
        .cb.send = sent, .user_data = c};
    void *request = ucp_am_send_nbx(s->ep, id, &c->at, sizeof c->at, c->bytes, n, &p);
    if (UCS_PTR_IS_ERR(request)) fault(s, ucs_status_string(UCS_PTR_STATUS(request)));
    if (!request || UCS_PTR_IS_ERR(request)) recycle(c);
}

static bool is_writable(const struct ucx_stream *s) {
    return !s->broken && s->written - s->credit < WINDOW;
}

static size_t fill(struct chunk *c, size_t most, const struct iovec *from, int n) {
    size_t bytes = 0;
    for (int i = 0; i < n && bytes < most; i++) {
        const size_t part = from[i].iov_len < most - bytes ? from[i].iov_len : most - bytes;
        memcpy(c->bytes + bytes, from[i].iov_base, part);
        bytes += part;
    }
    return bytes;
}

static size_t write_some(struct ucx_stream *s, const struct iovec *from, int n) {
    if (!is_writable(s)) return 0;
    const size_t room = WINDOW - (size_t)(s->written - s->credit);
    struct chunk *c = new_chunk(s, s->written);
    if (!c) return 0;
    const size_t bytes = fill(c, room < CHUNK ? room : CHUNK, from, n);
    s->written += bytes;
    post(s, ID_BYTES, c, bytes);
    return bytes;
}

/* ---- receiving ---- */

static bool is_readable(const struct ucx_stream *s) { return s->first || s->n_now; }

static void tell_taken(struct ucx_stream *s) {
    if (s->broken || s->taken - s->told < WINDOW / 4) return;
    struct chunk *c = new_chunk(s, s->taken);
    if (!c) return;
    s->told = s->taken;
    post(s, ID_CREDIT, c, 0);
}

static size_t take(struct ucx_stream *s, char *to, size_t n) {
    struct held *h = s->first;
    const size_t have = h ? h->n - h->at : s->n_now;
    if (n > have) n = have;
    if (!n) return 0;
    memcpy(to, h ? h->bytes + h->at : s->now, n);
    if (!h) {
        s->now += n;
        s->n_now -= n;
    } else if ((h->at += n) == h->n) {
        s->first = h->next;
        if (!s->first) s->last = &s->first;
        free(h);
    }
    s->taken += n;
    return n;
}

static size_t read_some(struct ucx_stream *s, const struct iovec *to, int n) {
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        for (size_t part = 0, more; part < to[i].iov_len; part += more, bytes += more)
            if (!(more = take(s, (char *)to[i].iov_base + part, to[i].iov_len - part))) goto done;
done:
    tell_taken(s);
    return bytes;
}

/* Keeps what was not read: UCX lends it only now. */
static void hold(struct ucx_stream *s) {
    struct held *h = malloc(sizeof *h + s->n_now);
    if (h) {
        *h = (struct held){.n = s->n_now};
        memcpy(h->bytes, s->now, s->n_now);
        *s->last = h;
        s->last = &h->next;
    } else {
        fault(s, "there is no memory for what it sent");
    }
    s->n_now = 0;
}

/* The peer's stream, which is in good order; else null. */
static struct ucx_stream *find(struct ucx *u, const ucp_am_recv_param_t *p) {
    if (!(p->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP)) return NULL;
    for (struct ucx_stream *s = u->stream; s; s = s->next)
        if (s->ep == p->reply_ep && s->owner && !s->broken) return s;
    return NULL;
}

static bool get_at(struct ucx_stream *s, const void *header, size_t n, uint64_t *at) {
    if (n == sizeof *at) {
        memcpy(at, header, n);
        *at = le64toh(*at);
        return true;
    }
    fault(s, "it sent a message of another kind");
    return false;
}

static ucs_status_t bytes_came(void *user, const void *header, size_t header_n, void *data,
                               size_t n, const ucp_am_recv_param_t *p) {
    struct ucx_stream *s = find(user, p);
    uint64_t at;
    if (!s) return UCS_OK;
    if (p->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV || n > WINDOW || s->came - s->told + n > WINDOW) {
        fault(s, "it sent more than it may");
    } else if (get_at(s, header, header_n, &at)) {
        if (at != s->came) fault(s, "its bytes arrived out of order");
        else {
            s->came += n;
            s->now = data;
            s->n_now = n;
        }
    }
    ready(s);
    if (s->n_now) hold(s);
    return UCS_OK;
}

static ucs_status_t credit_came(void *user, const void *header, size_t header_n, void *data,
                                size_t n, const ucp_am_recv_param_t *p) {
    struct ucx_stream *s = find(user, p);
    uint64_t at;
    (void)data;
    (void)n;
    if (!s) return UCS_OK;
    if (get_at(s, header, header_n, &at)) {
        if (at < s->credit || at > s->written) fault(s, "it has read what was not sent");
        else s->credit = at;
    }
    ready(s);
    return UCS_OK;
}

/* ---- streams ---- */

static void unlink_from(struct ucx_stream **list, const struct ucx_stream *s) {
    while (*list != s) list = &(*list)->next;
    *list = s->next;
}

static void closed(void *request, ucs_status_t status, void *user) {
    struct ucx_stream *s = user;
    (void)status;
    unlink_from(&s->u->closing, s);
    free(s);
    ucp_request_free(request);
}

/* UCX may know it until the request is complete. */
static void remove_stream(struct ucx_stream *s) {
    const ucp_request_param_t p = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_EP_CLOSE_FLAG_FORCE, .cb.send = closed, .user_data = s};
    unlink_from(&s->u->stream, s);
    for (struct held *h; (h = s->first); free(h)) s->first = h->next;
    s->next = s->u->closing;
    s->u->closing = s;
    void *request = ucp_ep_close_nbx(s->ep, &p);
    if (UCS_PTR_IS_PTR(request)) return;
    unlink_from(&s->u->closing, s);
    free(s);
}

static void shut(struct ucx_stream *s) {
    s->owner = NULL;
    s->n_now = 0;
    if (!s->u->inside) remove_stream(s); /* else work does */
}

/* UCX may call it inside ucp_am_send_nbx, too, so the owner learns of it later, in `work`. */
static void broke(void *user, ucp_ep_h ep, ucs_status_t status) {
    (void)ep;
    fault(user, ucs_status_string(status));
}

static struct ucx_stream *add(struct ucx *u, void *owner, ucp_ep_params_t *p, char why[UCX_WHY]) {
    struct ucx_stream *s = calloc(1, sizeof *s);
    if (!s) {
        snprintf(why, UCX_WHY, "there is no memory for a session");
        return NULL;
    }
    p->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    p->err_mode = UCP_ERR_HANDLING_MODE_PEER;
    p->err_handler = (ucp_err_handler_t){broke, s};
    *s = (struct ucx_stream){.u = u, .owner = owner, .last = &s->first, .next = u->stream};
    if (failed(why, "an endpoint", ucp_ep_create(u->worker, p, &s->ep))) {
        free(s);
        return NULL;
    }
    return u->stream = s;
}

static struct ucx_stream *connect_to(struct ucx *u, const struct sockaddr *to, socklen_t n,
                                     void *owner, char why[UCX_WHY]) {
    ucp_ep_params_t p = {.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR,
                         .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER, .sockaddr = {to, n}};
    return add(u, owner, &p, why);
}

static void asked(ucp_conn_request_h request, void *user) {
    struct ucx *u = user;
    char why[UCX_WHY];
    ucp_conn_request_attr_t from = {.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR};
    if (ucp_conn_request_query(request, &from) != UCS_OK)
        from.client_address.ss_family = AF_UNSPEC;
    ucp_ep_params_t p = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST, .conn_request = request};
    struct ucx_stream *s = add(u, NULL, &p, why);
    if (s) s->owner = u->row->accepted(u->user, s, (struct sockaddr *)&from.client_address);
}

/* ---- all ---- */

static int work(struct ucx *u) {
    int more = 1;
    u->inside = true;
    for (int i = 0; i < PASSES && more; i++) more = (int)ucp_worker_progress(u->worker);
    for (struct ucx_stream *s = u->stream; s; s = s->next) {
        if (s->broken && !s->is_told) ready(s);
        s->is_told = s->broken;
    }
    u->inside = false;
    for (struct ucx_stream *s = u->stream, *next; s; s = next) {
        next = s->next;
        if (s->owner) continue;
        remove_stream(s);
        more = 1;
    }
    return more || ucp_worker_arm(u->worker) != UCS_OK;
}

/* The names by which UCX knows the interface that has the address; "all" if it is any. */
static void devices(const struct sockaddr *address, char *to, size_t n) {
    const struct sockaddr_in *four = (const void *)address;
    const struct sockaddr_in6 *six = (const void *)address;
    const bool is_six = address->sa_family == AF_INET6;
    const void *mine = is_six ? (const void *)&six->sin6_addr : &four->sin_addr;
    const size_t bytes = is_six ? sizeof six->sin6_addr : sizeof four->sin_addr;
    struct ifaddrs *all = NULL;
    snprintf(to, n, "all");
    if (getifaddrs(&all)) return;
    for (struct ifaddrs *a = all; a; a = a->ifa_next) {
        char path[64 + IF_NAMESIZE];
        if (!a->ifa_addr || a->ifa_addr->sa_family != address->sa_family) continue;
        const void *its = is_six ? (const void *)&((struct sockaddr_in6 *)a->ifa_addr)->sin6_addr
                                 : &((struct sockaddr_in *)a->ifa_addr)->sin_addr;
        if (memcmp(its, mine, bytes)) continue;
        size_t used = (size_t)snprintf(to, n, "%s", a->ifa_name);
        snprintf(path, sizeof path, "/sys/class/net/%s/device/infiniband", a->ifa_name);
        DIR *d = opendir(path); /* the same card, for verbs */
        for (struct dirent *e; d && (e = readdir(d)) && used < n;)
            if (e->d_name[0] != '.')
                used += (size_t)snprintf(to + used, n - used, ",%s:1", e->d_name);
        if (d) closedir(d);
        break;
    }
    freeifaddrs(all);
}

static bool configure(struct ucx *u, const struct sockaddr *address, char why[UCX_WHY]) {
    char names[512];
    devices(address, names, sizeof names);
    const char *const values[][2] = {
        /* Hosts may be namespaces of one machine, whose boot they share: never shared memory. */
        {"TLS", "ib,tcp"},
        {"NET_DEVICES", names},
        {"MAX_EAGER_LANES", "1"}, /* chunks stay in order */
        {"RNDV_THRESH", "inf"},
    };
    const ucp_params_t p = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                            .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP};
    ucp_config_t *config;
    if (failed(why, "UCX's settings", ucp_config_read(NULL, NULL, &config))) return false;
    bool bad = false;
    for (size_t i = 0; i < sizeof values / sizeof *values && !bad; i++) {
        if (!strcmp(values[i][0], "NET_DEVICES") && getenv("UCX_NET_DEVICES")) continue;
        bad = failed(why, values[i][0], ucp_config_modify(config, values[i][0], values[i][1]));
    }
    if (!bad) bad = failed(why, "UCX", ucp_init(&p, config, &u->context));
    ucp_config_release(config);
    return !bad;
}

static bool handle(struct ucx *u, unsigned id, ucp_am_recv_callback_t f, char why[UCX_WHY]) {
    const ucp_am_handler_param_t p = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
        .id = id, .cb = f, .arg = u, .flags = UCP_AM_FLAG_WHOLE_MSG};
    return !failed(why, "active messages", ucp_worker_set_am_recv_handler(u->worker, &p));
}

static bool start(struct ucx *u, const struct sockaddr *address, socklen_t n, char why[UCX_WHY]) {
    const ucp_worker_params_t w = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                   .thread_mode = UCS_THREAD_MODE_SINGLE};
    const ucp_listener_params_t l = {
        .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
        .sockaddr = {address, n}, .conn_handler = {asked, u}};
    return configure(u, address, why) &&
           !failed(why, "a worker", ucp_worker_create(u->context, &w, &u->worker)) &&
           !failed(why, "a worker's descriptor", ucp_worker_get_efd(u->worker, &u->fd)) &&
           handle(u, ID_BYTES, bytes_came, why) && handle(u, ID_CREDIT, credit_came, why) &&
           !failed(why, "its listener", ucp_listener_create(u->worker, &l, &u->listener));
}

static void close_all(struct ucx *u) {
    if (!u) return;
    if (u->listener) ucp_listener_destroy(u->listener);
    while (u->stream) remove_stream(u->stream);
    if (u->worker) ucp_worker_destroy(u->worker);
    if (u->context) ucp_cleanup(u->context);
    for (struct chunk *c; (c = u->chunk); free(c)) u->chunk = c->next;
    for (struct ucx_stream *s; (s = u->closing); free(s)) u->closing = s->next;
    free(u);
}

static struct ucx *open_all(const struct sockaddr *address, socklen_t n, const struct ucx_user *row,
                            void *user, char why[UCX_WHY]) {
    struct ucx *u = calloc(1, sizeof *u);
    snprintf(why, UCX_WHY, "there is no memory for it");
    if (!u) return NULL;
    u->row = row;
    u->user = user;
    if (start(u, address, n, why)) return u;
    close_all(u);
    return NULL;
}

static int fd(const struct ucx *u) { return u->fd; }

static void get_address(const struct ucx *u, struct sockaddr_storage *to) {
    ucp_listener_attr_t a = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
    *to = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (ucp_listener_query(u->listener, &a) == UCS_OK) *to = a.sockaddr;
}

static const char *broken(const struct ucx_stream *s) { return s->broken ? s->why : NULL; }

extern const struct ucx_functions trireme_ucx_2;
__attribute__((visibility("default"))) const struct ucx_functions trireme_ucx_2 = {
    .open = open_all, .close = close_all, .fd = fd, .address = get_address, .work = work,
    .connect = connect_to, .shut = shut, .read = read_some, .write = write_some,
    .is_readable = is_readable, .is_writable = is_writable, .broken = broken};
