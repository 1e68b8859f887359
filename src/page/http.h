/* SPDX-License-Identifier: Apache-2.0
 * Answers HTTP. http.c alone knows libmicrohttpd; who may ask is decided there, too. */
#ifndef PAGE_HTTP_H
#define PAGE_HTTP_H

#include "base/base.h"

#define HTTP_TOKEN 32 /* characters */

struct http_request {
    const char *path; /* decoded */
    void *connection;
};
/* Of the query; null: it has none. */
const char *http_value(const struct http_request *r, const char *key);
/* Adds the path and all of the query. */
void http_add_address(const struct http_request *r, struct text *out);

struct http_answer {
    int code; /* 200 to begin with */
    const char *type;
    struct text body;
    const void *fixed; /* in place of the body, of n_fixed bytes that stay */
    size_t n_fixed;
    bool follows; /* an endless answer: what http_event says, now and after each http_wake */
    int run;      /* that it follows; -1: all */
};

/* What a page has been told last. */
struct http_seen {
    int run;
    int64_t version;
};

struct http_options {
    const char *host; /* null: this machine alone */
    int port;
    const char **name; /* [n_names], by which --host is also reached */
    int n_names;
    char token[HTTP_TOKEN + 1];
    /* False: it would last, and may not; then a thread for such answers calls it again, so that
     * nobody else waits. */
    bool (*answer)(const struct http_request *r, struct http_answer *a, bool may_last);
    /* Adds what is new since *seen, which it changes; adds nothing if nothing is. */
    void (*event)(struct http_seen *seen, struct text *out);
};

/* Fails if the port is taken, and says by whom and which one is free. *o stays until http_stop. */
tri_status http_start(const struct http_options *o);
/* To be called a few times a second: asks `event` for those that follow, and closes connections
 * that have not sent a whole request for HTTP_SECONDS. */
void http_wake(void);
void http_stop(void);
/* One line to stderr, with the time; the text is escaped. */
void http_log(const char *fmt, ...) TRI_PRINTF(1, 2);

#define HTTP_SECONDS 5

#endif
