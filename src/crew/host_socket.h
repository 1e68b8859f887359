/* SPDX-License-Identifier: Apache-2.0
 * Messages between an agent and its ferry, over a pair of sockets of the kind SOCK_SEQPACKET. */
#ifndef CREW_HOST_SOCKET_H
#define CREW_HOST_SOCKET_H

#include "crew/host_messages.h"

/* TRI_OK also if the other end has gone, or (MSG_DONTWAIT) takes nothing now: it will not
 * answer. */
tri_status host_socket_send(int fd, const struct host_message *m, int flags);

enum host_socket { HOST_SOCKET_NONE, HOST_SOCKET_TAKEN, HOST_SOCKET_CLOSED };
/* Takes one message, which host_message_free frees, whatever fails. NONE: with MSG_DONTWAIT
 * alone. */
tri_status host_socket_take(int fd, int flags, struct host_message *m, enum host_socket *what);

#endif
