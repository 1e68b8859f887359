/* SPDX-License-Identifier: Apache-2.0
 * Messages of a run over several hosts: between the coordinator and the agents, and between an
 * agent and its ferry. Sums and openings do not travel so, but over the link between ferries.
 *
 * A message is its kind, a byte, and the fields of that kind in a fixed order; numbers
 * are little endian, and a list or text begins with its length. Every message has one form of bytes
 * alone. */
#ifndef CREW_HOST_MESSAGES_H
#define CREW_HOST_MESSAGES_H

#include "base/base.h"
#include "crew/hosts.h"

#define HOST_TEXT 1024         /* bytes of a text, with its zero */
#define HOST_LIST (64 << 10)   /* bytes of all texts of a list, with their zeros */
#define HOST_HAS (64 << 10)    /* bytes of a report's bits */
#define HOST_BYTES 32          /* of keys and digests */
#define HOST_NUMBERS 64        /* of a launch */
#define HOST_WEIGHT 1000000    /* at most */
#define HOST_MESSAGE (HOSTS_MOST * (HOST_HAS + 2048)) /* more bytes than any message has */

/* X(NAME, fields): what a message has. HELLO, of an agent, tells whether two versions understand
 * each other, and REFUSED answers it, so these two never change. */
#define HOST_KINDS(X) \
    X(HELLO, VERSION | NAME | PID) \
    X(REFUSED, TEXT) \
    /* agent -> coordinator */ \
    X(READY, STEP | DIGEST | STATE | BYTES | ADDRESS | WEIGHT) \
    X(FAILED, TEXT) \
    X(CLOSED, CODE | TEXT) \
    X(LEAVE, NONE) \
    X(REQUEST, TIME | TEXT) /* of a user; time: its number */ \
    /* coordinator -> agent */ \
    X(WELCOME, HOST | JOINS | RUN | LEASE | NAMES | WEIGHTS | LAUNCH) \
    X(FAIL, TEXT) \
    X(END, CODE | TEXT) \
    X(EVICTED, TEXT) \
    X(ANSWER, TIME | CODE | ROWS) \
    X(SCALE, WORKERS) \
    /* agent -> coordinator -> agents; DONE, of the teller: after which step, and why not */ \
    X(ASK, ASK) \
    X(DONE, ASK | STEP | TEXT) \
    /* agent -> coordinator, which returns it with its own time as the step; step: the latest that \
     * the host has opened */ \
    X(BEAT, TIME | STEP | WORKERS) \
    /* coordinator -> agent -> ferry */ \
    X(HOLD, EPOCH) \
    X(EPOCH, EPOCH | TELLER | MEMBERS) \
    /* ferry -> agent -> coordinator */ \
    X(REPORT, EPOCH | REPORT) \
    X(LOST, EPOCH | HOST | TEXT) \
    /* agent -> ferry */ \
    X(START, HOST | RUN | HOSTS | LEASE | KEY | ADDRESS | PORTS | WIRE) \
    /* agent -> ferry, which returns it */ \
    X(PING, TIME) \
    /* ferry -> agent */ \
    X(ADDRESS, ADDRESS) \
    X(TOLD, TEXT)

#define X(name, fields) HOST_##name,
enum host_kind { HOST_KINDS(X) HOST_KIND_COUNT };
#undef X

enum host_ask { HOST_STOP, HOST_PAUSE, HOST_RESUME, HOST_SAVE,
                HOST_KILL /* end at once, without saving; of the coordinator alone */ };

/* What a host has of the latest step that it has opened. */
struct hosts_report {
    uint64_t step; /* 0: none */
    bool joins;    /* it lacks the state */
    struct hosts_opening opening; /* of this step */
    uint32_t n;    /* bits: by phase, summed bucket and operand */
    uint8_t *has;  /* (n + 7) / 8 bytes; the unused bits of the last are 0 */
};

struct host_texts {
    int n;
    const char **text;
};

struct host_number {
    const char *name; /* "workers", "threads", "audit", ... */
    double value;
};

/* How the agents start the program. */
struct host_launch {
    const char *program, *cwd, *out, *title, *on_event;
    struct host_texts argv, env; /* env: NAME=VALUE */
    int n_numbers;
    struct host_number *number;
};

/* A host, as EPOCH describes it. */
struct host_member {
    bool alive;          /* else nothing follows */
    int32_t weight;      /* 0: it takes no part in steps that are opened from now on */
    const char *address; /* of its ferry */
    struct hosts_report report;
};

/* A null text is "". Names are not empty. */
struct host_message {
    enum host_kind kind;
    uint32_t epoch;
    uint64_t step, run;
    int32_t host, hosts; /* a host's number; how many the run has */
    int32_t teller, weight, code, pid;
    int32_t ask;         /* enum host_ask */
    int32_t workers;
    bool joins;          /* WELCOME: the run has begun */
    int32_t port[2];     /* the first and the last to try; 0: any */
    struct host_wire {
        int32_t link; /* the row, as option --link has them */
        int32_t open; /* 1: messages are not authenticated */
        int32_t late; /* 1: --overlap off */
        int32_t path; /* as in struct launch, and what follows: */
        int64_t latency, bandwidth, cpu; /* nanoseconds, bytes per second, nanoseconds per GB */
    } wire;
    int64_t time, lease; /* nanoseconds */
    int64_t bytes;       /* of the state */
    const char *text, *name, *version;
    const char *address; /* START: to listen at; "": any */
    uint8_t key[HOST_BYTES], digest[HOST_BYTES], state[HOST_BYTES];
    struct host_texts names; /* by host */
    struct host_texts rows;  /* of an answer, or one with the reason for a failure */
    struct host_weights {
        int n;
        int32_t *of;
    } weights; /* by host: its share of the lanes while all take part */
    struct host_launch launch;
    struct hosts_report report;
    int n_members;
    struct host_member *member; /* by host */
    struct arena arena;         /* of host_message_get: everything that is pointed to */
};

const char *host_kind_name(enum host_kind kind); /* "HELLO" */
/* Appends the message, or fails and leaves *to. Fails if a field has a value that
 * host_message_get would refuse. */
tri_status host_message_put(const struct host_message *m, struct text *to);
/* Reads one message of n bytes, after which nothing may follow. Whatever fails, *m may be freed. */
tri_status host_message_get(const void *bytes, size_t n, struct host_message *m);
void host_message_free(struct host_message *m); /* of host_message_get, or all zeros */

#endif
