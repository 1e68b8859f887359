/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/host_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A socket takes some 200 KB on any machine. What is longer travels as a file without a name. */
#define AT_ONCE (64 << 10)

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static tri_status failed(const char *what) {
    return base_fail(TRI_FAILED, "cannot %s: %s", what, strerror(errno));
}

static int file_of(const struct text *t) {
    const int fd = memfd_create("message", MFD_CLOEXEC);
    for (size_t at = 0; fd >= 0 && at < t->size;) {
        const ssize_t n = write(fd, t->data + at, t->size - at);
        if (n > 0) at += (size_t)n;
        else if (errno != EINTR) return close(fd), -1;
    }
    return fd;
}

static bool send_text(int fd, const struct text *t, int flags) {
    union control control = {0};
    struct iovec body = {t->data, t->size};
    struct msghdr h = {.msg_iov = &body, .msg_iovlen = 1};
    int file = -1;
    if (t->size > AT_ONCE) {
        if ((file = file_of(t)) < 0) return false;
        body.iov_len = 1;
        h.msg_control = &control;
        h.msg_controllen = sizeof control;
        control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof file),
                                          .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &file, sizeof file);
    }
    ssize_t sent;
    do sent = sendmsg(fd, &h, flags | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    const int error = errno;
    if (file >= 0) close(file);
    errno = error;
    return sent >= 0 || error == EPIPE || error == ECONNRESET || error == EAGAIN;
}

tri_status host_socket_send(int fd, const struct host_message *m, int flags) {
    struct text t = {0};
    tri_status status = host_message_put(m, &t);
    if (!status && !send_text(fd, &t, flags)) status = failed("send a message");
    if (t.data) explicit_bzero(t.data, t.size); /* it may be the key */
    text_free(&t);
    return status;
}

static tri_status take_file(int file, struct host_message *m) {
    struct stat is;
    void *at = MAP_FAILED;
    if (!fstat(file, &is))
        at = mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (at == MAP_FAILED) return failed("read a message");
    tri_status status = host_message_get(at, (size_t)is.st_size, m);
    munmap(at, (size_t)is.st_size);
    return status;
}

tri_status host_socket_take(int fd, int flags, struct host_message *m, enum host_socket *what) {
    char bytes[AT_ONCE];
    union control control;
    struct iovec body = {bytes, sizeof bytes};
    struct msghdr h = {.msg_iov = &body, .msg_iovlen = 1, .msg_control = &control,
                       .msg_controllen = sizeof control};
    ssize_t n;
    *m = (struct host_message){0};
    do n = recvmsg(fd, &h, flags | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    *what = n > 0 ? HOST_SOCKET_TAKEN : HOST_SOCKET_CLOSED;
    if (n < 0 && errno == EAGAIN) *what = HOST_SOCKET_NONE;
    else if (n < 0 && errno != ECONNRESET) return failed("take a message");
    if (n <= 0) return TRI_OK;
    const struct cmsghdr *with = CMSG_FIRSTHDR(&h);
    int file;
    if (with) memcpy(&file, CMSG_DATA(with), sizeof file);
    tri_status status = with ? take_file(file, m) : host_message_get(bytes, (size_t)n, m);
    explicit_bzero(bytes, (size_t)n);
    return status;
}
