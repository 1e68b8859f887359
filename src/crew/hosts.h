/* SPDX-License-Identifier: Apache-2.0
 * A run over several hosts: what the processes of one host know of the others, in the head of its
 * store. Hosts are numbered 0 to n - 1 for the whole run, also those that have gone. Each has a
 * store with all parameters, computes an interval of a step's lanes, and gets from the others the
 * sums that they have made of theirs (plan/transfer.h); its *ferry*, a process of its own, moves
 * these. On each host a reporter opens the steps. One of the reporters is the *teller*: it decides
 * how a step is opened (struct hosts_opening), calls back, prints and saves.
 *
 *   1. A step begins on a host when it has the step's opening, and the step before is over: all
 *      hosts have all sums of it. Until then every host keeps what it has of the step before.
 *   2. An *epoch* counts changes of membership. What belongs to an earlier epoch is dropped.
 *   3. A host *joins* a run that has begun in an epoch. The others send it the state that the
 *      epoch's step leaves. Until it has all of that, the step is not over.
 *   4. The agents hold leases of the coordinator. Without one a host claims, sends, prints,
 *      renames and deletes nothing, unless it ends the run because the coordinator is gone. */
#ifndef CREW_HOSTS_H
#define CREW_HOSTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/policy_state.h"
#include "plan/wire_ask.h"
#include "plan/lane_tree.h"

#define HOSTS_MOST 64
#define HOSTS_NAME 64
#define HOSTS_ADDRESS 64
/* A digest has a part of so many bytes for each: network and plan, options, number of samples,
 * samples of the first step. */
#define HOSTS_PART 8
#define HOSTS_PARTS 4
#define CREW_MOST_SCALARS 64

/* How a step is opened, on all hosts alike. */
struct hosts_opening {
    uint64_t step; /* 0: none */
    int32_t shape; /* of the step, as in crew_course.shape_of */
    int32_t hosts; /* of the run when it was opened */
    int32_t begin[HOSTS_MOST + 1]; /* host h computes the lanes begin[h] to begin[h + 1] - 1 */
    double rate, set_rate;         /* as in crew_course */
    float scalar[CREW_MOST_SCALARS];
    struct policy_state policy;
    struct {
        int64_t step, evaluation;
        int32_t notes, head, not_finite;
    } shown; /* as in crew_shown */
    uint64_t profile[2]; /* first and last step of a profile that begins here; 0: none does */
    int64_t profile_most; /* bytes */
};

struct crew_hosts {
    /* The agent, before it starts a worker. n: 0: the run has one host, and nothing below is used;
     * teller: until the first epoch begins, 0, or -1 if it joins. */
    int n, self;
    uint64_t run;
    int joins; /* the run had begun before this host took part */
    char name[HOSTS_MOST][HOSTS_NAME]; /* the agent, before a host takes part */
    _Alignas(64) _Atomic int64_t lease; /* this host may act until then, by base_now; the agent */
    /* What to add to this host's base_now for the coordinator's, and by how much that may be wrong,
     * from the fastest beat so far; 0: not known; the agent. */
    _Atomic int64_t clock, unsure, clock_at; /* clock_at: when that was, by base_now */
    /* The ferry, when an epoch begins; the teller last, after it has taken what others know of the
     * latest step. Else a new teller might open that step in another way. */
    atomic_int teller;             /* the host whose reporter it is */
    atomic_int weight[HOSTS_MOST]; /* shares of the lanes; 0: the host takes no part */
    _Atomic uint32_t epoch;        /* 0: none has begun; no step is opened before */
    /* Openings of even and odd steps. On the teller's host its reporter writes them, elsewhere the
     * ferry. */
    _Alignas(64) _Atomic uint64_t offered; /* the latest step that has an opening */
    struct hosts_opening opening[2];
    _Alignas(64) _Atomic uint64_t over; /* the latest step that is over; the ferry */
    _Atomic uint64_t enters; /* the step that is being opened, or has been; the reporter */
    /* Bytes of sums that were sent and received, and what those sent were in slots; the ferry. */
    _Atomic uint64_t sent, received, sent_whole;
    /* The host lacks the state that the others have. Set by the agent if it joins, before it starts
     * a worker. The ferry clears it, after it has written the state of some step. */
    atomic_int lacks;
    /* What must be the same on all hosts: network, plan and data; before the first step also values
     * and the number of steps done, `state`. The reporter writes them, then `agrees`. */
    uint8_t digest[32], state[32];
    atomic_int agrees;
    atomic_int lacks_path; /* the path that was asked for suits other numbers of hosts; the ferry */
};

/* Deals lanes by weight: fills begin[0] to begin[n]. Neighbouring hosts have neighbouring lanes; a
 * weight of 0 gets none. At least one weight is positive. cut: not lanes are dealt but the nodes of
 * lane_tree_cut; -1: lanes. */
void hosts_deal(const struct lane_tree *tree, int cut, int n, const int *weight, int32_t *begin);

/* By how much `clock` may be wrong at that time: clocks drift apart. 0: it is not known. */
int64_t hosts_unsure(const struct crew_hosts *s, int64_t now);

/* The store is empty: a host that joins lacks everything. For the agent, while no other process has
 * the store. */
void hosts_begin(struct crew_hosts *s);

#endif
