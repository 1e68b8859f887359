/* SPDX-License-Identifier: Apache-2.0
 * The ferry's process. It sleeps until the agent, the link or the head has something for it; a
 * second thread waits for the head, as that has no descriptor. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crew/host_socket.h"
#include "ferry/ferry.h"

struct process {
    int socket;
    int changed; /* readable: the head has changed */
    struct view view;
    struct ferry *ferry; /* null: START has not come */
    uint8_t *key;        /* a page that no dump has */
    pthread_t waiter;
    pthread_mutex_t lock; /* of all above, while the waiter lives */
    sem_t handled;        /* what the waiter has told */
    bool ends;
};

static tri_status failed(const char *what) {
    return base_fail(TRI_FAILED, "cannot %s: %s", what, strerror(errno));
}

/* ---- the head ---- */

static bool wants(void *arg) {
    struct process *p = arg;
    pthread_mutex_lock(&p->lock);
    bool is = p->ends || ferry_wants(p->ferry);
    pthread_mutex_unlock(&p->lock);
    return is;
}

/* It never spins: the cores are for those that compute. */
static void *wait_for_head(void *arg) {
    struct process *p = arg;
    for (bool ends = false; !ends;) {
        wait_until(&p->view.head->event, WAIT_CROWDED, wants, p, INT64_MAX, NULL);
        CHECK(!eventfd_write(p->changed, 1));
        while (sem_wait(&p->handled)) {}
        pthread_mutex_lock(&p->lock);
        ends = p->ends;
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

/* ---- the agent ---- */

static tri_status tell(void *user, const struct host_message *m) {
    const struct process *p = user;
    return host_socket_send(p->socket, m, 0);
}

static tri_status take_key(struct process *p, struct host_message *m) {
    const size_t bytes = CREW_PAGE;
    uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return failed("get memory for a key");
    p->key = at;
    if (madvise(at, bytes, MADV_DONTDUMP)) return failed("keep a key from dumps");
    (void)!mlock(at, bytes); /* where the user's limit allows that */
    memcpy(at, m->key, LINK_KEY);
    explicit_bzero(m->key, sizeof m->key);
    return TRI_OK;
}

static tri_status start(struct process *p, struct host_message *m) {
    if (p->ferry) return base_fail(TRI_FAILED, "a second START");
    tri_status status = view_map(&p->view);
    if (!status && !p->view.base)
        status = base_fail(TRI_FAILED, "the store has not been laid out");
    if (!status) status = take_key(p, m);
    if (status) return status;
    const struct link_row *row;
    if ((status = link_row_find(m->wire.link, &row))) return status;
    const struct ferry_place place = {
        .view = &p->view, .row = row, .late = m->wire.late,
        .way = {m->wire.path, {(double)m->wire.latency / 1e9, (double)m->wire.bandwidth,
                               (double)m->wire.cpu / 1e9}},
        .tell = tell, .user = p,
        .link = {.self = m->host, .hosts = m->hosts, .run = m->run,
                 .key = m->wire.open ? NULL : p->key,
                 /* If a whole host is silent, the coordinator is to notice first. */
                 .silence = 2 * m->lease + INT64_C(2000000000),
                 .address = *m->address ? m->address : NULL,
                 .port = {m->port[0], m->port[1]}}};
    if ((status = ferry_open(&place, &p->ferry))) return status;
    const struct host_message address = {.kind = HOST_ADDRESS,
                                         .address = ferry_address(p->ferry)};
    if (pthread_create(&p->waiter, NULL, wait_for_head, p)) {
        ferry_close(p->ferry);
        p->ferry = NULL;
        return base_fail(TRI_FAILED, "cannot start a thread");
    }
    return tell(p, &address);
}

/* *open: false once the agent has closed the socket. */
static tri_status hear(struct process *p, bool *open) {
    struct host_message m;
    enum host_socket what;
    tri_status status = host_socket_take(p->socket, 0, &m, &what);
    *open = what == HOST_SOCKET_TAKEN;
    if (status || !*open) return status;
    if (m.kind == HOST_START) status = start(p, &m);
    else if (m.kind == HOST_PING) status = tell(p, &m);
    else if (p->ferry) status = ferry_take(p->ferry, &m);
    else status = base_fail(TRI_FAILED, "a message before START");
    host_message_free(&m);
    return status;
}

/* ---- the process ---- */

static tri_status turn(struct process *p, bool *open) {
    struct pollfd on[] = {{p->socket, POLLIN, 0}, {p->changed, POLLIN, 0},
                          {p->ferry ? ferry_fd(p->ferry) : -1, POLLIN, 0}};
    tri_status status = TRI_OK;
    eventfd_t count;
    if (poll(on, COUNT(on), -1) < 0) return errno == EINTR ? TRI_OK : failed("poll");
    pthread_mutex_lock(&p->lock);
    if (on[0].revents) status = hear(p, open);
    if (!status && *open && p->ferry) status = ferry_work(p->ferry);
    pthread_mutex_unlock(&p->lock);
    if (on[1].revents && !eventfd_read(p->changed, &count)) sem_post(&p->handled);
    return status;
}

static void end(struct process *p) {
    if (p->ferry) {
        pthread_mutex_lock(&p->lock);
        p->ends = true;
        pthread_mutex_unlock(&p->lock);
        crew_notify(p->view.head);
        sem_post(&p->handled);
        pthread_join(p->waiter, NULL);
        ferry_close(p->ferry);
    }
    if (p->key) {
        explicit_bzero(p->key, LINK_KEY);
        munmap(p->key, CREW_PAGE);
    }
    view_unmap(&p->view);
    if (p->view.head) munmap(p->view.head, crew_head_bytes());
    if (p->changed >= 0) close(p->changed);
    sem_destroy(&p->handled);
    pthread_mutex_destroy(&p->lock);
}

int ferry_run(int store_fd, int socket_fd) {
    struct process p = {.socket = socket_fd, .view = {.fd = store_fd},
                        .changed = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    bool open = true;
    pthread_mutex_init(&p.lock, NULL);
    sem_init(&p.handled, 0, 0);
    prctl(PR_SET_DUMPABLE, 0);
    tri_status status = p.changed < 0 ? failed("get a descriptor") : TRI_OK;
    if (!status) status = crew_attach(store_fd, &p.view.head);
    while (!status && open) status = turn(&p, &open);
    if (status) {
        char text[HOST_TEXT];
        base_format(text, sizeof text, "%s", tri_message());
        const struct host_message m = {.kind = HOST_TOLD, .text = text};
        tell(&p, &m); /* or the agent has gone, too */
    }
    end(&p);
    return (int)status;
}
