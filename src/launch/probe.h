/* SPDX-License-Identifier: Apache-2.0
 * `trireme probe`: the process on each host that answers questions before a run (launch/probes.h
 * asks them). A question and its answer are a line of JSON each, on stdin and stdout; the next
 * question follows the answer. The process ends with its stdin.
 *
 *   ask       with                                     answer
 *   describe  names, of which its own is number host;  version, instructions, memory, names, disk
 *             directory and out, or null; file, to be  and key: texts, or in the object `wrong`
 *             left there; nonce; key (file), or null,  what is wrong with them
 *             and hash: the nonce under the right key
 *   look      files                                    sees: for each, whether it is in `out`
 *   listen    address, port, host, hosts, key; open:   address: of its link, as a ferry has it
 *             without it; most: bytes of a message
 *   reach     to: an address, and the host's number    how: "reached", "refused", "silent", or an
 *             if it is that of a link                  error of the system; own: address
 *   measure   host, seconds                            latency (s), bandwidth (B/s), cpu (s/GB)
 *   sum       path, bytes, sums; seconds that they     of one: took (s), cpu (s), sent and received
 *             may take. All hosts are asked at a time  (bytes)
 *
 * Each answer has its time, in nanoseconds since 1970, and perhaps an error. */
#ifndef LAUNCH_PROBE_H
#define LAUNCH_PROBE_H

#include "base/base.h"

#define PROBE_SILENT 2.5 /* seconds after which an address is silent */
#define PROBE_MOST_SUMS 1000
#define PROBE_HASH 65    /* bytes of a hash's digits, and a zero */

/* The process; returns its exit code. */
int probe_run(void);
/* What the nonce becomes under the key of a file. */
tri_status probe_hash_key(const char *path, const char *nonce, char hash[PROBE_HASH]);

#endif
