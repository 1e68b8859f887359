/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/membership.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crew/host_socket.h"
#include "launch/agent_inside.h"
#include "launch/member.h"
#include "launch/run_key.h"
#include "launch/steer.h"
#include "link/control.h"

_Static_assert(HOST_MESSAGE <= CONTROL_MOST, "control connections carry all messages");

#define TICK 50                 /* milliseconds */
#define RETRY 500               /* the same */
#define LAST_WORD 10000000000   /* nanoseconds that an ended host waits for the run's end */

struct membership {
    const struct join_options *o;
    struct control *control;
    int conn;
    bool connected;
    struct {
        struct control *control; /* null: none is tried */
        int conn;
        int64_t next;   /* when to try again */
        int64_t joined; /* since when it could take the place of the first; 0: it cannot yet */
    } other;            /* connection to the coordinator, while the host is cut */
    bool again;         /* this membership has ended: another one joins over that connection */
    char own[LINK_ADDRESS]; /* this host, as it reaches the coordinator */
    uint8_t *key; /* in memory that no dump has */
    struct member *member;
    struct host_message welcome; /* what the launch points to */
    bool welcomed;
    struct agent *agent; /* null: it does not run yet */
    struct steer steer;
    pid_t ferry;         /* 0: none */
    int ferry_fd;        /* -1 */
    int exits;           /* of ferries by themselves, in this step: */
    uint64_t exit_step;
    char said[HOST_TEXT]; /* by a ferry, the latest */
    bool ready, failed, closed, leaves; /* the member has been told */
    bool lost;           /* the coordinator has gone for good */
    bool over;           /* the run has ended here, */
    int code;            /* so */
    int64_t waits;       /* since when the agent waits for the end; 0: it does not */
};

/* ---- what the member does ---- */

static void to_coordinator(void *user, const struct host_message *m) {
    struct membership *s = user;
    struct text t = {0};
    if (s->connected && (host_message_put(m, &t) ||
                         control_send(s->control, s->conn, t.data, t.size)))
        fprintf(stderr, "trireme: %s\n", tri_message());
    text_free(&t);
}

/* A ferry that takes nothing does not answer: see `stuck`. */
static void to_ferry(void *user, const struct host_message *m) {
    struct membership *s = user;
    if (s->ferry_fd < 0 || !host_socket_send(s->ferry_fd, m, MSG_DONTWAIT)) return;
    agent_print(s->agent, "message %s to the ferry: %s; the host ends", host_kind_name(m->kind),
                tri_message());
    agent_end_now(s->agent, 1);
}

static void welcome(void *user, const struct host_message *m) {
    struct membership *s = user;
    s->welcome = *m;
    s->welcomed = true;
}

static void wake(void *user) {
    const struct membership *s = user;
    if (s->agent) crew_notify_end(s->agent->head);
}

static void steer(void *user, const struct host_message *m) {
    struct membership *s = user;
    const bool ends = m->kind == HOST_ASK && m->ask == HOST_KILL;
    s->over |= ends;
    if (ends) s->code = AGENT_RESUMABLE;
    if (!s->agent) return;
    if (ends) agent_end_now(s->agent, AGENT_RESUMABLE);
    else steer_take(&s->steer, m, base_now());
}

/* Each agent sees the change; the teller's runs the command. */
static void changed(void *user, int host, const struct host_message *m) {
    const struct membership *s = user;
    const bool alive = m->member[host].alive;
    const struct crew_hosts *h = &s->agent->head->hosts;
    struct event e = {alive ? "host-joined" : "host-lost", NULL, -1, 0, -1, h->name[host]};
    char text[HOSTS_NAME + 128];
    int n = 0;
    e.message = text;
    e.step = (int64_t)atomic_load(&s->agent->head->course.committed);
    for (int i = 0; i < m->n_members; i++) n += m->member[i].alive && m->member[i].weight > 0;
    base_format(text, sizeof text, "host %s %s; hosts that take part: %d; epoch %u", h->name[host],
                alive ? "takes part" : "takes no part any more", n, m->epoch);
    log_event(&s->agent->log, LOG_INFO, e.name, "host=%s epoch=%u", e.host, m->epoch);
    if (m->teller == h->self) events_start(s->agent->events, &e);
}

static void fail(void *user, const char *text) {
    struct membership *s = user;
    if (s->agent) agent_fail(s->agent, text);
}

/* The workers leave at once: whoever tells has saved. */
static void end(void *user, int code, const char *text) {
    struct membership *s = user;
    struct agent *a = s->agent;
    s->over = true;
    s->code = code;
    if (*text) fprintf(stderr, "trireme: %s: %s\n", membership_name(s), text);
    if (!a) return;
    int runs = CREW_RUNS, none = 0;
    const int how = !code ? CREW_FINISHED : code == AGENT_RESUMABLE ? CREW_STOPPED : CREW_FAILED;
    if (how == CREW_FAILED &&
        atomic_compare_exchange_strong(&a->head->course.failing, &none, CREW_AGENT + 1))
        base_format(a->head->course.failure, sizeof a->head->course.failure, "%s", text);
    atomic_compare_exchange_strong(&a->head->course.ending, &runs, how);
    atomic_store(&a->head->told.code, code);
    atomic_store(&a->head->course.closed, 1);
    a->forced_code = code;
    if (!a->stop_deadline) agent_begin_grace(a);
}

/* The coordinator is gone for good. What this host has is saved, if the run saves. */
static void lost(void *user, const char *text) {
    struct membership *s = user;
    struct agent *a = s->agent;
    s->over = s->lost = true;
    s->code = AGENT_RESUMABLE;
    fprintf(stderr, "trireme: %s: %s\n", membership_name(s), text);
    if (!a) return;
    int runs = CREW_RUNS;
    a->forced_code = AGENT_RESUMABLE;
    if (!atomic_load(&a->head->course.keeps) || !crew_begun(a->head)) {
        agent_end_now(a, AGENT_RESUMABLE);
        return;
    }
    /* Nobody else tells any more who could hear it. */
    atomic_store(&a->head->hosts.teller, a->head->hosts.self);
    atomic_compare_exchange_strong(&a->head->course.ending, &runs, CREW_STOPPED);
    agent_begin_grace(a);
}

static void stuck(void *user) {
    const struct membership *s = user;
    if (s->ferry) kill(s->ferry, SIGKILL);
}

static void told(void *user, const char *line) {
    struct membership *s = user;
    base_format(s->said, sizeof s->said, "%s", line);
    if (s->agent) agent_print(s->agent, "%s", line);
}

/* ---- the ferry ---- */

static void become_ferry(const struct agent *a, int socket, pid_t parent) {
    char store[16], fd[16];
    launch_leave_signals(&a->old_mask);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    fcntl(a->fd, F_SETFD, 0);
    fcntl(socket, F_SETFD, 0);
    base_format(store, sizeof store, "%d", a->fd);
    base_format(fd, sizeof fd, "%d", socket);
    execl(LAUNCH_SELF, "trireme", "ferry", store, fd, (char *)NULL);
    _exit(127);
}

static void start_ferry(struct membership *s) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        agent_print(s->agent, "cannot start the ferry: %s", strerror(errno));
        return;
    }
    const pid_t parent = getpid(), pid = fork();
    if (!pid) become_ferry(s->agent, pair[1], parent);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        agent_print(s->agent, "cannot start the ferry: %s", strerror(errno));
        return;
    }
    s->ferry = pid;
    s->ferry_fd = pair[0];
    log_event(&s->agent->log, LOG_INFO, "ferry", "pid=%d", (int)pid);
    const struct launch *l = s->agent->launch;
    const struct host_wire wire = {l->link, l->wire_open, l->no_overlap, l->path,
                                   (int64_t)(1e9 * l->path_latency), (int64_t)l->path_bandwidth,
                                   (int64_t)(1e9 * l->path_cpu)};
    member_ferry_started(s->member, &wire, base_now());
}

static void read_ferry(struct membership *s) {
    struct host_message m;
    enum host_socket what = HOST_SOCKET_TAKEN;
    while (s->ferry_fd >= 0 && what == HOST_SOCKET_TAKEN) {
        if (host_socket_take(s->ferry_fd, MSG_DONTWAIT, &m, &what))
            agent_print(s->agent, "%s", tri_message());
        else if (what == HOST_SOCKET_TAKEN)
            member_from_ferry(s->member, &m);
        host_message_free(&m);
    }
}

#define MOST_EXITS 3 /* of ferries in one step */

/* Frees what it held. Another takes its place, unless it fails again and again. */
static void ferry_ended(struct membership *s, pid_t pid, int status) {
    struct agent *a = s->agent;
    const uint64_t step = atomic_load(&a->head->course.opened);
    const bool killed = WIFSIGNALED(status);
    const int sig = killed ? WTERMSIG(status) : 0;
    read_ferry(s); /* it may have said why */
    close(s->ferry_fd);
    s->ferry_fd = -1;
    s->ferry = 0;
    if (a->recovery.view.base) view_recover(&a->recovery.view, step, CREW_FERRY);
    wait_wake_after_death(&a->head->event);
    if (s->over || a->stopped) return;
    member_ferry_died(s->member);
    const bool outside = sig == SIGKILL || sig == SIGTERM;
    s->exits = outside ? 0 : step != s->exit_step ? 1 : s->exits + 1;
    s->exit_step = step;
    const bool again = s->exits < MOST_EXITS;
    agent_print(a, "the ferry (pid %d) %s %d in step %llu%s%s", (int)pid,
                killed ? "was killed by signal" : "exited with",
                killed ? sig : WEXITSTATUS(status), (unsigned long long)step,
                again ? ", and is replaced" : ", for the third time: ", again ? "" : s->said);
    if (!again) agent_end_now(a, 1);
}

static void check_ferry(struct membership *s) {
    int status;
    const pid_t pid = s->ferry;
    if (pid && waitpid(pid, &status, WNOHANG) == pid) ferry_ended(s, pid, status);
    /* If the run starts again before its first step, the store is made anew. */
    const bool is_there = atomic_load(&s->agent->head->layout.published);
    if (s->ferry && !is_there) kill(s->ferry, SIGKILL);
    if (!s->ferry && is_there && !s->over && !s->agent->stopped) start_ferry(s);
    if (s->ferry) read_ferry(s);
}

/* ---- the coordinator ---- */

static void take_events(struct membership *s) {
    struct control_event e = {0};
    while (s->connected) {
        if (control_next(s->control, &e)) {
            e.what = CONTROL_ENDED;
            base_format(e.why, sizeof e.why, "%s", tri_message());
        }
        struct host_message m = {0};
        if (e.what == CONTROL_NOTHING) return;
        if (e.what == CONTROL_ENDED) {
            s->connected = false;
            member_coordinator_ended(s->member, e.why);
        }
        if (e.what != CONTROL_ARRIVED) continue;
        if (host_message_get(e.bytes, e.n, &m)) fprintf(stderr, "trireme: %s\n", tri_message());
        else member_from_coordinator(s->member, &m, base_now());
        if (!s->welcomed || m.kind != HOST_WELCOME) host_message_free(&m); /* else it is kept */
    }
}

/* ---- another connection, while the host is cut ---- */

static void give_up_other(struct membership *s) {
    control_close(s->other.control);
    s->other.control = NULL;
    s->other.joined = 0;
    s->other.next = base_now() + s->welcome.lease;
}

static void try_other(struct membership *s) {
    const struct control_options c = {.key = s->key, .patience = s->welcome.lease};
    if (base_now() < s->other.next) return;
    if (control_open(&c, &s->other.control) ||
        control_connect(s->other.control, s->o->address, &s->other.conn))
        give_up_other(s);
}

/* If the coordinator has only stood still, it answers on both; then the first one stays. */
static void check_other(struct membership *s) {
    struct control_event e = {0};
    const bool cut = !s->over && !s->leaves && member_is_cut(s->member, base_now());
    if (!cut && s->other.control) give_up_other(s);
    if (cut && !s->other.control) try_other(s);
    while (s->other.control) {
        const bool failed = control_next(s->other.control, &e);
        if (!failed && e.what == CONTROL_NOTHING) break;
        if (!failed && e.what == CONTROL_JOINED) s->other.joined = base_now();
        if (failed || e.what == CONTROL_ENDED) give_up_other(s);
    }
    if (!s->other.joined || (s->connected && base_now() - s->other.joined < s->welcome.lease / 2))
        return;
    agent_print(s->agent, "the coordinator can be reached again: this host joins anew");
    s->again = true;
    agent_end_now(s->agent, AGENT_RESUMABLE);
}

/* ---- the agent's run ---- */

const char *membership_name(const struct membership *s) {
    return s->welcomed ? s->welcome.names.text[s->welcome.host] : "this host";
}

uint64_t membership_run(const struct membership *s) { return s->welcome.run; }

void membership_size(const struct membership *s, const struct launch *l, struct crew_size *size) {
    size->hosts = s->welcome.names.n;
    for (int i = 0; i < size->hosts; i++) size->weight[i] = s->welcome.weights.of[i];
    size->paths = launch_has_paths(l);
}

void membership_attach(struct membership *s, struct agent *a) {
    s->agent = a;
    s->steer.head = a->head;
    member_attach(s->member, &a->head->hosts);
}

void membership_poll(const struct membership *s, struct pollfd to[MEMBERSHIP_FDS]) {
    to[0] = (struct pollfd){s->connected ? control_fd(s->control) : -1, POLLIN, 0};
    to[1] = (struct pollfd){s->ferry_fd, POLLIN, 0};
    to[2] = (struct pollfd){s->other.control ? control_fd(s->other.control) : -1, POLLIN, 0};
}

/* Tells the member once what has become true. */
static void tell(struct membership *s) {
    const struct crew_head *h = s->agent->head;
    const struct crew_hosts *own = &h->hosts;
    if (!s->ready && atomic_load(&own->agrees)) {
        s->ready = true;
        member_ready(s->member, (int64_t)h->layout.region[REGION_VALUES].bytes,
                     own->n ? s->welcome.weights.of[own->self] : 1,
                     own->joins ? 0 : atomic_load(&h->course.base));
    }
    const bool teller = atomic_load(&own->teller) == own->self;
    if (!s->failed && !teller && atomic_load(&h->course.ending) == CREW_FAILED) {
        s->failed = true;
        member_failed(s->member, h->course.failure);
    }
    if (!s->closed && teller && atomic_load(&h->course.closed)) {
        const int ending = atomic_load(&h->course.ending);
        s->closed = true;
        member_closed(s->member,
                      ending == CREW_STOPPED ? AGENT_RESUMABLE : atomic_load(&h->told.code),
                      ending == CREW_FAILED ? h->course.failure : "");
    }
}

static int count_ready(const struct crew_head *h) {
    int n = 0;
    for (int i = 0; i < h->size.places; i++)
        n += atomic_load(&h->worker[i].rank) >= 0 &&
             atomic_load(&h->worker[i].state) == CREW_READY;
    return n;
}

static void pass(void *user, const struct host_message *m) {
    const struct membership *s = user;
    member_pass(s->member, m);
}

void membership_turn(struct membership *s) {
    take_events(s);
    check_ferry(s);
    if (!s->over) tell(s);
    if (!s->over) {
        const int64_t now = base_now();
        steer_turn(&s->steer, s->connected, now, pass, s);
        member_workers(s->member, count_ready(s->agent->head));
        member_tick(s->member, atomic_load(&s->agent->head->course.opened), now);
    }
    if (!s->again) check_other(s);
}

bool membership_joins_again(const struct membership *s) { return s->again; }

void membership_forgets(struct membership *s) {
    const pid_t pid = s->ferry;
    int status;
    if (!pid) return;
    kill(pid, SIGKILL);
    if (waitpid(pid, &status, 0) == pid) ferry_ended(s, pid, status);
    s->ready = false;
}

bool membership_told_end(const struct membership *s) { return s->closed; }

bool membership_waits(struct membership *s) {
    const int64_t now = base_now();
    if (s->over || s->again || !s->connected) return false;
    if (!s->waits) s->waits = now;
    return now - s->waits < LAST_WORD && (s->failed || s->closed || s->leaves);
}

bool membership_lost(const struct membership *s) { return s->lost; }

void membership_leave(struct membership *s) {
    if (!s->leaves) member_leave(s->member);
    s->leaves = true;
}

static const char *why_it_failed(const struct membership *s) {
    const struct agent *a = s->agent;
    const struct crew_head *h = a ? a->head : NULL;
    const char *said = h ? h->worker[atomic_load(&h->workers.reporter)].failure : "";
    return *said ? said : a && *a->last_print ? a->last_print : "it has ended";
}

void membership_ended(struct membership *s, int code) {
    if (!s->over && !s->again && code && !s->failed && s->connected) {
        member_failed(s->member, why_it_failed(s));
        s->failed = true;
    }
    if (s->ferry) {
        kill(s->ferry, SIGKILL);
        waitpid(s->ferry, NULL, 0);
        s->ferry = 0;
    }
    if (s->ferry_fd >= 0) close(s->ferry_fd);
    s->ferry_fd = -1;
    s->agent = NULL;
}

/* ---- joining ---- */

/* The launch points into the welcome, which stays. */
static tri_status take_launch(struct membership *s, struct launch *l, char out[4096]) {
    const struct host_launch *from = &s->welcome.launch;
    for (int i = 0; i < from->env.n; i++) {
        const char *is = strchr(from->env.text[i], '=');
        char name[256];
        if (!is || is - from->env.text[i] >= (ptrdiff_t)sizeof name) continue;
        base_format(name, sizeof name, "%.*s", (int)(is - from->env.text[i]), from->env.text[i]);
        setenv(name, is + 1, 1);
    }
    if (*from->cwd && chdir(from->cwd))
        return base_fail(TRI_USAGE, "the directory %s: %s; --chdir DIR names another", from->cwd,
                         strerror(errno));
    char **argv = calloc((size_t)from->argv.n + 1, sizeof *argv);
    if (!argv) return base_no_memory("a command line");
    for (int i = 0; i < from->argv.n; i++) argv[i] = (char *)(uintptr_t)from->argv.text[i];
    base_format(out, 4096, "%s/hosts/%s", from->out, s->welcome.names.text[s->welcome.host]);
    *l = (struct launch){.out = *from->out ? out : NULL, .membership = s, .argv = argv,
                         .directory = *from->out ? from->out : NULL,
                         .title = *from->title ? from->title : NULL,
                         .program = *from->program ? from->program : NULL,
                         .on_event = *from->on_event ? from->on_event : NULL};
    tri_status status = launch_numbers_take(from->number, from->n_numbers, l);
    const struct link_row *row;
    return status ? status : link_row_find(l->link, &row);
}

static tri_status connect_once(struct membership *s) {
    const struct control_options c = {.key = s->key};
    struct control_event e = {0};
    tri_status status = control_open(&c, &s->control);
    if (!status) status = control_connect(s->control, s->o->address, &s->conn);
    while (!status && e.what != CONTROL_JOINED) {
        struct pollfd wait = {control_fd(s->control), POLLIN, 0};
        poll(&wait, 1, TICK);
        status = control_next(s->control, &e);
        if (e.what != CONTROL_ENDED) continue;
        s->connected = false;
        status = base_fail(TRI_FAILED, "the coordinator at %s: %s", s->o->address, e.why);
    }
    s->connected = !status;
    return status;
}

static tri_status connect_to(struct membership *s) {
    const int64_t end = base_now() + (int64_t)(1e9 * s->o->patience);
    bool said = false;
    tri_status status;
    while ((status = connect_once(s)) && base_now() < end) { /* it, or its name, may come later */
        if (!said) fprintf(stderr, "trireme: %s; it is tried for %g s\n", tri_message(),
                           s->o->patience);
        said = true;
        control_close(s->control);
        s->control = NULL;
        poll(NULL, 0, RETRY);
    }
    if (!status || !(s->o->patience > 0)) return status;
    char why[LINK_WHY];
    base_format(why, sizeof why, "%s", tri_message());
    return base_fail(status, "%s; tried for %g s", why, s->o->patience);
}

static tri_status open_member(struct membership *s) {
    char own[HOSTS_NAME] = "";
    if (!s->o->name && gethostname(own, sizeof own - 1)) *own = 0;
    struct member_options m = {
        .name = s->o->name ? s->o->name : own, .version = TRI_VERSION, .pid = getpid(),
        .key = s->key, .address = s->own, .user = s, .to_coordinator = to_coordinator,
        .to_ferry = to_ferry, .welcome = welcome, .wake = wake, .steer = steer,
        .changed = changed, .fail = fail, .end = end, .lost = lost, .stuck = stuck, .told = told};
    control_own_address(s->control, s->conn, s->own);
    tri_status status = launch_ports(s->o->ports, m.port);
    return status ? status : member_open(&m, base_now(), &s->member);
}

static void wait_for_welcome(struct membership *s) {
    while (!s->welcomed && !s->over && s->connected) {
        struct pollfd wait = {control_fd(s->control), POLLIN, 0};
        poll(&wait, 1, TICK);
        take_events(s);
        if (!s->welcomed && !s->over) member_tick(s->member, 0, base_now());
    }
}

/* Takes part, until this host is cut, or the run ends. Returns the exit code. */
static int take_part(struct membership *s) {
    struct launch l = {0};
    char out[4096];
    tri_status status = open_member(s);
    if (!status) wait_for_welcome(s);
    const bool runs = s->welcomed && !s->over; /* both may have come at once */
    if (!status && runs) status = take_launch(s, &l, out);
    if (status) fprintf(stderr, "trireme: %s\n", tri_message());
    if (status && s->member) member_failed(s->member, tri_message());
    const int code = status ? (int)status : runs ? agent_run(&l) : s->over ? s->code : 1;
    free((void *)(uintptr_t)l.argv);
    return code;
}

/* What is not for the next membership. */
static void end_membership(struct membership *s) {
    member_close(s->member);
    control_close(s->control);
    host_message_free(&s->welcome);
}

static void begin_again(struct membership *s) {
    struct membership next = {.o = s->o, .control = s->other.control, .conn = s->other.conn,
                              .connected = true, .ferry_fd = -1};
    next.key = s->key;
    end_membership(s);
    *s = next;
}

static void say_goodbye(const struct membership *s) {
    struct control_event e = {0};
    control_finish(s->control, s->conn);
    while (e.what != CONTROL_ENDED) {
        struct pollfd wait = {control_fd(s->control), POLLIN, 0};
        if (e.what == CONTROL_NOTHING) poll(&wait, 1, TICK);
        if (control_next(s->control, &e)) return;
    }
}

int membership_join(const struct join_options *o) {
    struct membership s = {.o = o, .ferry_fd = -1};
    prctl(PR_SET_PDEATHSIG, 0); /* whoever started it: if the coordinator dies, this host saves */
    tri_status status = run_key_hold(o->key, o->secret, &s.key);
    if (!status) status = connect_to(&s);
    if (status) fprintf(stderr, "trireme: %s\n", tri_message());
    int code = status ? (int)status : take_part(&s);
    while (s.again) {
        begin_again(&s);
        code = take_part(&s);
    }
    if (s.connected) say_goodbye(&s);
    control_close(s.other.control);
    end_membership(&s);
    sodium_free(s.key); /* which clears it */
    return code;
}
