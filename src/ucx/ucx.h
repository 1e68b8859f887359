/* SPDX-License-Identifier: Apache-2.0
 * Streams of bytes over UCX, in a shared object that the row `ucx` of the link loads
 * (link/ucx.c), so that nothing else needs libucx. It includes no other file of ours and reports
 * failures as text, so it has no symbol of the program's.
 *
 * A stream is like a socket that never blocks: bytes arrive in order or not at all, and what the
 * receiver does not read makes the sender wait. It is made of active messages: chunks of bytes, and
 * credits, which say how many bytes have been read. Written bytes are copied, so that memory is
 * free whatever UCX still does with a stream that is closed. Nothing is authenticated here. */
#ifndef UCX_UCX_H
#define UCX_UCX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define UCX_WHY 160

struct ucx;
struct ucx_stream;

/* Called inside `work`, and nowhere else. They may call all functions but close and work. */
struct ucx_user {
    /* Who owns a stream that a stranger has opened; null: it is closed. */
    void *(*accepted)(void *user, struct ucx_stream *s, const struct sockaddr *from);
    /* There is something to read, or room to write, or the stream is broken. */
    void (*ready)(void *user, void *owner);
};

struct ucx_functions {
    /* address: at which others connect. Zero, with the reason in why, if that fails. */
    struct ucx *(*open)(const struct sockaddr *address, socklen_t n, const struct ucx_user *row,
                        void *user, char why[UCX_WHY]);
    void (*close)(struct ucx *u); /* with all streams; nullable */
    int (*fd)(const struct ucx *u); /* readable if there is work, once work was 0 */
    void (*address)(const struct ucx *u, struct sockaddr_storage *to);
    /* One pass without waiting. 1: there is more to do; 0: not until fd is readable. */
    int (*work)(struct ucx *u);
    struct ucx_stream *(*connect)(struct ucx *u, const struct sockaddr *to, socklen_t n,
                                  void *owner, char why[UCX_WHY]);
    void (*shut)(struct ucx_stream *s); /* at once; nothing is called for it after that */
    /* How many bytes; 0 if there are none, or no room. */
    size_t (*read)(struct ucx_stream *s, const struct iovec *to, int n);
    size_t (*write)(struct ucx_stream *s, const struct iovec *from, int n);
    bool (*is_readable)(const struct ucx_stream *s);
    bool (*is_writable)(const struct ucx_stream *s);
    const char *(*broken)(const struct ucx_stream *s); /* why; else null */
};

#define UCX_FUNCTIONS "trireme_ucx_2" /* the symbol; another version has another name */

#endif
