/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/trace.h"

#include <stdlib.h>
#include <string.h>

#include "profile/out.h"

enum layer_kind { LANES, SPENT, OPERATORS, LAYERS }; /* the outermost first */

#define ROWS 64 /* of transfers that a ferry makes at once; one more is drawn shorter */
#define DEEP 32 /* scopes that nest */

/* Spans of a thread of which no two are at the same time. */
struct layer {
    uint32_t *span; /* by time */
    size_t n, at;
    int64_t from;   /* when what remains of span[at] begins; INT64_MAX: there is none */
    int64_t until;  /* the end of the last piece drawn */
};

/* The scopes that are open at a time, the outermost first. */
struct scopes {
    const char *path; /* of the innermost */
    int n;
    int64_t until[DEEP];
};

struct trace {
    const struct profile *p;
    struct out *out;
    int *pid, *tid; /* by thread */
    int tids;
    int64_t arrows;
    bool begun; /* an event has been written */
};

/* ---- events ---- */

static void field(struct out *o, const char *name, int64_t value) {
    out_text(o, name);
    out_integer(o, value);
}

static void begin_event(struct trace *t, const char *phase, int pid, int tid, int64_t ts) {
    OUT(t->out, t->begun ? ",\n{\"ph\":\"" : "\n{\"ph\":\"", phase);
    field(t->out, "\",\"pid\":", pid);
    field(t->out, ",\"tid\":", tid);
    out_text(t->out, ",\"ts\":");
    out_micros(t->out, ts - t->p->begin);
    t->begun = true;
}

static void begin_slice(struct trace *t, int pid, int tid, int64_t begin, int64_t end) {
    begin_event(t, "X", pid, tid, begin);
    out_text(t->out, ",\"dur\":");
    out_micros(t->out, end - begin);
}

/* The arguments of every slice, after others that end with a comma. */
static void end_slice(struct out *o, const struct span *s) {
    field(o, "\"step\":", s->step);
    if (s->lane >= 0) field(o, ",\"lane\":", s->lane);
    if (s->leg >= 0) field(o, s->kind == SPAN_TRANSFER ? ",\"chunk\":" : ",\"leg\":", s->leg);
    out_text(o, "}}");
}

/* what: "process_name" or "thread_name" */
static void name_track(struct trace *t, const char *what, int pid, int tid, const char *name) {
    begin_event(t, "M", pid, tid, t->p->begin);
    OUT(t->out, ",\"name\":\"", what, "\",\"args\":{\"name\":");
    out_json(t->out, name, strlen(name));
    out_text(t->out, "}}");
}

/* ---- slices ---- */

static void text_field(struct out *o, const char *name, const char *value) {
    if (!value || !*value) return;
    out_text(o, name);
    out_json(o, value, strlen(value));
    out_text(o, ",");
}

static void number_field(struct out *o, const char *name, int64_t value, bool known) {
    if (!known) return;
    field(o, name, value);
    out_text(o, ",");
}

static void describe_item(struct out *o, const struct profile_item *i) {
    text_field(o, "\"operator\":", i->operator);
    text_field(o, "\"item\":", i->name);
    text_field(o, "\"scope\":", i->scope);
    text_field(o, "\"why\":", i->move);
    number_field(o, "\"stage\":", i->stage, i->stage >= 0);
    number_field(o, "\"seat\":", i->seat, i->seat >= 0);
    number_field(o, "\"bytes\":", (int64_t)i->bytes, i->bytes > 0);
    number_field(o, "\"flops\":", (int64_t)i->flops, i->flops > 0);
}

static void draw_whom(struct out *o, const struct profile_host *h, const struct span *s) {
    if (s->whom == SPAN_NOBODY || !h->threads || !profile_is_wait(s)) return;
    number_field(o, "\"worker\":", s->whom / h->threads, true);
    number_field(o, "\"thread\":", s->whom % h->threads, true);
}

static void draw_slice(struct trace *t, int i, int tid, const struct span *s, int64_t begin,
                       int64_t end) {
    static const char *const kinds[] = {"operator", "lane", "step", "piece", "write", "transfer"};
    const struct profile_thread *on = &t->p->thread[i];
    const struct profile_item *item = profile_item_of(t->p, on, s);
    struct out *o = t->out;
    begin_slice(t, t->pid[i], tid, begin, end);
    if (s->kind == SPAN_OPERATOR && item) {
        OUT(o, ",\"cat\":\"", item->move ? "move" : "operator", "\",\"name\":");
        out_json(o, item->unit, strlen(item->unit));
        out_text(o, ",\"args\":{");
    } else {
        const bool waits = profile_is_wait(s);
        const char *kind = s->kind < SPENTS ? spent_rows[s->kind].name
                                            : kinds[s->kind - SPAN_OPERATOR];
        OUT(o, ",\"cat\":\"", waits ? "wait-" : "", kind, "\",\"name\":\"",
            waits ? "waits for " : "", kind);
        if (s->kind == SPAN_LANE && s->lane >= 0) field(o, " ", s->lane);
        if (s->kind == SPAN_LANE && s->leg >= 0) field(o, ", leg ", s->leg);
        if (s->kind == SPAN_STEP) field(o, " ", s->step);
        out_text(o, "\",\"args\":{");
        draw_whom(o, &t->p->host[on->host], s);
    }
    if (item) describe_item(o, item);
    end_slice(o, s);
}

/* The length of the path's first n + 1 parts; 0: it has not so many. */
static size_t part_of(const char *path, int n) {
    size_t length = *path ? strcspn(path, "/") : 0;
    for (; n && path[length]; n--) length += 1 + strcspn(path + length + 1, "/");
    return n ? 0 : length;
}

static const char *scope_of(const struct trace *t, const struct profile_thread *on,
                            const struct span *s) {
    const struct profile_item *item = profile_item_of(t->p, on, s);
    return item && s->kind == SPAN_OPERATOR ? item->scope : "";
}

/* Whether two paths have their first n + 1 parts in common. */
static bool in_common(const char *a, const char *b, int n) {
    const size_t length = part_of(a, n);
    return length && length == part_of(b, n) && !memcmp(a, b, length);
}

/* Opens the scopes of an operator that are not open yet. A scope ends with the last of the
 * operators in it that follow each other; limit: where all of them end. */
static void draw_scopes(struct trace *t, int i, const struct layer *l, int64_t end, int64_t limit,
                        struct scopes *open) {
    const struct profile_thread *on = &t->p->thread[i];
    const struct span *s = &on->span[l->span[l->at]];
    const char *path = scope_of(t, on, s);
    int n = 0;
    size_t from = 0, length;
    while (n < open->n && in_common(path, open->path, n) && open->until[n] >= end) n++;
    if (n) from = part_of(path, n - 1) + 1;
    for (; n < DEEP && (length = part_of(path, n)); from = length + 1) {
        int64_t until = end;
        for (size_t k = l->at + 1; k < l->n; k++) {
            const struct span *next = &on->span[l->span[k]];
            if (next->begin >= limit || !in_common(path, scope_of(t, on, next), n)) break;
            until = next->end < limit ? next->end : limit;
        }
        open->until[n++] = until;
        begin_slice(t, t->pid[i], t->tid[i], l->from, until);
        out_text(t->out, ",\"cat\":\"scope\",\"name\":");
        out_json(t->out, path + from, length - from);
        out_text(t->out, ",\"args\":{");
        end_slice(t->out, s);
    }
    open->n = n;
    open->path = path;
}

/* ---- arrows ---- */

/* phase: "s", an arrow begins in the slice that there is at this time, or "f", it ends there. */
static void draw_end(struct trace *t, const char *phase, int pid, int tid, int64_t ts,
                     const char *what, int64_t id) {
    begin_event(t, phase, pid, tid, ts);
    OUT(t->out, ",\"cat\":\"", what, "\",\"name\":\"", what);
    field(t->out, "\",\"id\":", id);
    out_text(t->out, *phase == 'f' ? ",\"bp\":\"e\"}" : "}");
}

/* At its end a slice is over. */
static int64_t just_before_end(const struct span *s) {
    return s->end > s->begin ? s->end - 1 : s->end;
}

static void draw_arrow(struct trace *t, int i, const struct span *wait) {
    const struct span *s;
    const int k = profile_ended_by(t->p, i, wait, &s);
    if (k < 0) return;
    draw_end(t, "s", t->pid[k], t->tid[k], just_before_end(s), "ends", ++t->arrows);
    draw_end(t, "f", t->pid[i], t->tid[i], just_before_end(wait), "ends", t->arrows);
}

/* Both ends of an arrow from host to host have the same number. */
static void draw_transfer(struct trace *t, int i, int tid, const struct span *s) {
    const struct profile_host *h = &t->p->host[t->p->thread[i].host];
    const bool sent = span_is_sent(s);
    const int from = sent ? h->number : s->whom, to = sent ? s->whom : h->number;
    const int64_t key[] = {s->step, s->item, s->lane, s->leg, from, to};
    if (h->clock)
        draw_end(t, sent ? "s" : "f", t->pid[i], tid, sent ? s->begin : just_before_end(s),
                 "transfer", (int64_t)(base_hash(key, sizeof key, 0) >> 11)); /* a double's bits */
}

/* ---- threads ---- */

static bool make_layers(const struct profile_thread *t, struct layer layer[LAYERS]) {
    for (int k = 0; k < LAYERS; k++) {
        layer[k] = (struct layer){.span = malloc((t->n + 1) * sizeof *layer[k].span),
                                  .from = INT64_MAX, .until = INT64_MIN};
        if (!layer[k].span) return false;
    }
    for (size_t i = 0; i < t->n; i++) {
        const int kind = t->span[i].kind;
        if (kind == SPAN_STEP || kind == SPAN_TRANSFER) continue;
        struct layer *l = &layer[kind < SPENTS ? SPENT : kind == SPAN_LANE ? LANES : OPERATORS];
        l->span[l->n++] = (uint32_t)i;
        if (l->n == 1) l->from = t->span[i].begin;
    }
    return true;
}

/* The end of what goes on in layers around layer k, or the beginning of what comes next there. */
static int64_t limit_of(const struct layer layer[LAYERS], int k) {
    int64_t limit = INT64_MAX;
    for (int j = 0; j < k; j++) {
        const int64_t next = layer[j].until > layer[k].from ? layer[j].until : layer[j].from;
        if (next < limit) limit = next;
    }
    return limit;
}

static void draw_piece(struct trace *t, int i, struct layer layer[LAYERS], int k,
                       struct scopes *open) {
    const struct profile_thread *thread = &t->p->thread[i];
    struct layer *l = &layer[k];
    const struct span *s = &thread->span[l->span[l->at]];
    const int64_t begin = l->from, limit = limit_of(layer, k);
    l->until = s->end < limit ? s->end : limit;
    if (k < OPERATORS) open->n = 0;
    else draw_scopes(t, i, l, l->until, limit, open);
    if (s->kind != SPENT_COMPUTE || layer[LANES].until <= begin)
        draw_slice(t, i, t->tid[i], s, begin, l->until);
    l->from = l->until;
    if (l->until < s->end) return;
    if (profile_is_wait(s)) draw_arrow(t, i, s);
    l->at++;
    const int64_t next = l->at < l->n ? thread->span[l->span[l->at]].begin : INT64_MAX;
    if (next > l->from) l->from = next;
}

static tri_status draw_thread(struct trace *t, int i) {
    struct layer layer[LAYERS] = {0};
    struct scopes open = {0};
    const bool good = make_layers(&t->p->thread[i], layer);
    while (good) {
        int k = 0;
        for (int j = 1; j < LAYERS; j++)
            if (layer[j].from < layer[k].from) k = j;
        if (layer[k].from == INT64_MAX) break;
        draw_piece(t, i, layer, k, &open);
    }
    for (int k = 0; k < LAYERS; k++) free(layer[k].span);
    return good ? TRI_OK : base_no_memory("trace.json");
}

/* Steps have a track of their own, and transfers as many as are made at once. */
static void draw_apart(struct trace *t, int i, int kind, const char *name) {
    const struct profile_thread *thread = &t->p->thread[i];
    int64_t until[ROWS];
    int tid[ROWS], rows = 0;
    for (size_t k = 0; k < thread->n; k++) {
        const struct span *s = &thread->span[k];
        int row = 0;
        if (s->kind != kind) continue;
        while (row < rows && until[row] > s->begin) row++;
        if (row == rows && rows < ROWS) {
            tid[rows++] = ++t->tids;
            until[row] = INT64_MIN;
            name_track(t, "thread_name", t->pid[i], tid[row], name);
        }
        if (row == ROWS) row--;
        const int64_t begin = s->begin > until[row] ? s->begin : until[row];
        draw_slice(t, i, tid[row], s, begin, s->end);
        until[row] = s->end;
        if (kind == SPAN_TRANSFER) draw_transfer(t, i, tid[row], s);
    }
}

static void name_thread(struct trace *t, int i) {
    static const char *const names[] = {"thread", "reader", "writer", "ferry"};
    const struct profile_thread *thread = &t->p->thread[i];
    const char *host = t->p->host[thread->host].name;
    char name[400];
    const struct profile_thread *before = i ? thread - 1 : NULL;
    const bool same = before && before->host == thread->host && before->place == thread->place;
    t->pid[i] = same ? t->pid[i - 1] : i ? t->pid[i - 1] + 1 : 1;
    t->tid[i] = ++t->tids;
    if (!same) {
        base_format(name, sizeof name, "%.255s%s%s %d (pid %d)", host, *host ? " " : "",
                    thread->what == SPAN_FERRIES ? "ferry" : "worker", thread->place, thread->pid);
        name_track(t, "process_name", t->pid[i], t->tid[i], name);
    }
    base_format(name, sizeof name, "%s %d", names[thread->what], thread->thread);
    name_track(t, "thread_name", t->pid[i], t->tid[i], name);
}

/* ---- the file ---- */

static void draw_head_of_file(struct trace *t) {
    struct out *o = t->out;
    field(o, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"lost\":", t->p->lost);
    field(o, ",\"cut\":", t->p->cut);
    field(o, ",\"damaged\":", t->p->damaged);
    out_text(o, ",\"clocks\":[");
    for (int i = 0; i < t->p->n_hosts; i++) {
        const struct profile_host *h = &t->p->host[i];
        out_text(o, i ? ",{\"host\":" : "{\"host\":");
        out_json(o, h->name, strlen(h->name));
        field(o, ",\"offset_ns\":", h->offset);
        if (h->clock) field(o, ",\"uncertainty_ns\":", h->uncertainty);
        out_text(o, "}");
    }
    out_text(o, "]},\"traceEvents\":[");
}

static tri_status draw(struct trace *t) {
    tri_status status = TRI_OK;
    draw_head_of_file(t);
    for (int i = 0; i < t->p->n_threads; i++) name_thread(t, i);
    for (int i = 0; i < t->p->n_threads && !status; i++) {
        draw_apart(t, i, SPAN_STEP, "steps");
        draw_apart(t, i, SPAN_TRANSFER, "transfers");
        status = draw_thread(t, i);
    }
    out_text(t->out, "\n]}\n");
    return status;
}

tri_status trace_write(const struct profile *p, const char *folder) {
    const size_t threads = (size_t)p->n_threads + 1;
    struct trace t = {.p = p, .out = malloc(sizeof *t.out),
                      .pid = calloc(threads, sizeof *t.pid), .tid = calloc(threads, sizeof *t.tid)};
    tri_status status = t.out && t.pid && t.tid ? out_open(t.out, folder, "trace.json")
                                                : base_no_memory("trace.json");
    if (!status) status = out_close(t.out, draw(&t));
    free(t.out);
    free(t.pid);
    free(t.tid);
    return status;
}
