/* SPDX-License-Identifier: Apache-2.0
 * What the coordinator's files share: coordinator_start.c begins the run and lets hosts join. */
#ifndef LAUNCH_COORDINATOR_INSIDE_H
#define LAUNCH_COORDINATOR_INSIDE_H

#include "launch/coordinator.h"

#define SLACK 200000000   /* nanoseconds that a silent host has after its lease */
#define OTHERS 1000000000 /* after one host has failed to start: for the same line of others */
#define MOST_LOST 3       /* sessions of a pair, in a row */

/* No epoch names a host before it is a MEMBER. In a run that has begun a READY one waits until
 * there is a step. */
enum state { ABSENT, GREETED, READY, MEMBER, GONE, LEFT };
#define IN(value) (1u << (value)) /* a set of states, or of enum host_ask */
#define CONNECTED (IN(GREETED) | IN(READY) | IN(MEMBER))

struct host {
    const char *name;
    char address[HOSTS_ADDRESS];
    enum state state;
    int conn; /* -1: none */
    int32_t pid;
    int64_t greeted; /* when */
    bool joins;      /* it lacks the state */
    int64_t bytes;   /* of the state */
    int32_t weight;
    uint8_t digest[HOST_BYTES], values[HOST_BYTES];
    int64_t deadline; /* MEMBER: if it is silent until then, it is evicted */
    uint64_t step;    /* the latest that it has opened, as far as is known */
    int workers;      /* that are ready there */
    bool leaves;      /* when it has opened the step leave_at; 0: not known yet. END tells it; */
    bool leaving;     /* it has left when its connection ends, lest two hosts are tellers */
    uint64_t leave_at;
    bool reported, has_closed;
    struct host_message report, closed; /* if so */
    char cause[HOST_TEXT];              /* GONE: why; */
    bool told;                          /* and the user knows */
};

struct coordinator {
    struct coordinator_options o;
    int64_t now, ticked, began;
    int64_t doomed; /* the run ends then without having begun; 0: not */
    enum { STARTING, HOLDING, RUNNING, OVER } phase;
    bool changed; /* a new epoch is needed */
    uint32_t epoch;
    uint64_t step; /* the latest of any host */
    uint64_t barren; /* with that one no host could join */
    uint8_t digest[HOST_BYTES]; /* of all */
    int teller, code; /* teller: -1: not chosen yet */
    int informed;     /* the teller that knows of these: */
    unsigned wishes;  /* bits: enum host_ask */
    char failure[HOST_TEXT]; /* of a lane, or ""; the teller ends the run */
    uint8_t lost[HOSTS_MOST][HOSTS_MOST]; /* sessions, in lost_step */
    uint64_t lost_step;
    struct host host[HOSTS_MOST];
};

static inline bool is_in(const struct host *h, unsigned states) { return IN(h->state) & states; }

#define EACH(c, h) (struct host *h = (c)->host; h < (c)->host + (c)->o.n; h++)

TRI_PRINTF(2, 3) void coordinator_say(const struct coordinator *c, const char *fmt, ...);
void coordinator_send(struct coordinator *c, const struct host *h, struct host_message m);
void coordinator_end_run(struct coordinator *c, int code, const char *text);
void coordinator_drop(struct coordinator *c, int conn, enum host_kind kind, const char *text);
/* The names of hosts in these states; of those that leave only if nobody stays. */
const char *coordinator_names(const struct coordinator *c, unsigned states, char text[HOST_TEXT]);
/* Its connection has ended; it may join again; it must not without the user's doing. */
enum going { ENDED, SILENT, OUT };
/* The host takes no part any more. If it was a member, the user learns of it as soon as the step is
 * known in which that happened. */
void coordinator_lose(struct coordinator *c, struct host *h, enum going how, const char *why);
void coordinator_tell_gone(struct coordinator *c);

/* The beginning (coordinator_start.c). */
struct coordinator_welcome {
    struct host_message m;
    const char *name[HOSTS_MOST];
    int32_t weight[HOSTS_MOST];
    struct host_number number[HOST_NUMBERS + 1];
};

void coordinator_make_welcome(const struct coordinator_options *o, int host,
                              struct coordinator_welcome *w);
void coordinator_take_hello(struct coordinator *c, int conn, const struct host_message *m);
void coordinator_take_ready(struct coordinator *c, struct host *h, struct host_message *m);
void coordinator_check_timeouts(struct coordinator *c);
void coordinator_settle_start(struct coordinator *c);

#endif
