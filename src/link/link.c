/* SPDX-License-Identifier: Apache-2.0 */
#include "link/link_inside.h"

#include <stdlib.h>
#include <string.h>

tri_status link_open(const struct link_row *row, const struct link_options *o, struct link **l) {
    *l = NULL;
    CHECK(o->where && o->self >= 0 && o->self < o->hosts);
    tri_status status = row->open(o, l);
    if (*l) {
        (*l)->row = row;
        (*l)->o = *o;
    }
    return status;
}

void link_close(struct link *l) {
    if (!l) return;
    struct link_event *event = l->event;
    l->row->close(l);
    free(event);
}

tri_status link_row_find(int which, const struct link_row **row) {
    char path[4096];
    *row = which == LINK_UCX ? &link_ucx : &link_tcp;
    if (which < LINK_TCP || which > LINK_UCX)
        return base_fail(TRI_USAGE, "there is no row %d of the link", which);
    return which == LINK_UCX ? link_ucx_find(path, sizeof path) : TRI_OK;
}

const char *link_address(const struct link *l) { return l->address; }
int link_fd(const struct link *l) { return l->fd; }

tri_status link_peer(struct link *l, int host, uint32_t epoch, const char *address) {
    CHECK(host >= 0 && host < l->o.hosts && host != l->o.self);
    return l->row->peer(l, host, epoch, address);
}

tri_status link_send(struct link *l, int host, const struct link_header *header,
                     const void *payload, uint64_t length, void *token) {
    struct link_header h = *header;
    h.run = l->o.run;
    h.length = length;
    CHECK(h.kind < LINK_KINDS && length <= l->o.most && (payload || !length));
    return l->row->send(l, host, &h, payload, token);
}

void link_end(struct link *l, int host) {
    l->row->end(l, host);
    link_untell(l, host);
}

void link_resume(struct link *l, int host) { l->row->resume(l, host); }

struct link_event *link_tell(struct link *l, enum link_what what, int host) {
    if (l->first == l->n_events) l->first = l->n_events = 0;
    if (!ARRAY_GROW(l->event, l->n_events, l->capacity)) {
        l->failed = true;
        return &l->lost;
    }
    l->event[l->n_events] = (struct link_event){.what = what, .host = host};
    return &l->event[l->n_events++];
}

void link_untell(struct link *l, int host) {
    size_t n = l->first;
    for (size_t i = l->first; i < l->n_events; i++)
        if (l->event[i].host != host) l->event[n++] = l->event[i];
    l->n_events = n;
}

tri_status link_next(struct link *l, struct link_event *event) {
    *event = (struct link_event){.what = LINK_NOTHING, .host = -1};
    if (l->first == l->n_events) {
        tri_status status = l->row->work(l);
        if (status) return status;
    }
    if (l->failed) return base_no_memory("events of a link");
    if (l->first < l->n_events) *event = l->event[l->first++];
    return TRI_OK;
}
