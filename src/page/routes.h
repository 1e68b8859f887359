/* SPDX-License-Identifier: Apache-2.0
 * What is answered at which path. */
#ifndef PAGE_ROUTES_H
#define PAGE_ROUTES_H

#include "page/http.h"

/* A file of the page, embedded (scripts/embed.py); the last one has no path. */
struct page_file {
    const char *path, *type;
    const unsigned char *data;
    size_t bytes;
};
extern const struct page_file page_files[];

/* May last: for struct http_options. */
bool routes_answer(const struct http_request *r, struct http_answer *a, bool may_last);
void routes_event(struct http_seen *seen, struct text *out);

#endif
