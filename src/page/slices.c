/* SPDX-License-Identifier: Apache-2.0 */
#include "page/slices.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "profile/study.h"

#define STEPS 2000   /* that are listed with their times, at most */
#define MATRIX 64    /* workers in the matrix of waits, at most */
#define ARROW 4      /* pixels of a wait whose end is shown, at least */

/* As the page colours them. */
enum category { COMPUTE, SUM, MOVE, DATA, SAVE, WAIT, CATEGORIES };

/* ---- the profile ---- */

static struct {
    struct profile p;
    char *directory, *profiles;   /* profiles: the folder of all profiles of the run */
    struct timespec changed, all; /* its folder, and that */
    bool is;
} kept;

void slices_free(void) {
    if (kept.is) profile_free(&kept.p);
    free(kept.directory);
    free(kept.profiles);
    memset(&kept, 0, sizeof kept);
}

static struct timespec changed_of(const char *folder) {
    struct stat is;
    return stat(folder, &is) ? (struct timespec){0} : is.st_mtim;
}

/* A later profile of the run, or more of the same. */
static bool is_old(const char *directory) {
    if (!kept.is || strcmp(kept.directory, directory)) return true;
    const struct timespec changed = changed_of(kept.p.folder);
    const struct timespec all = changed_of(kept.profiles);
    return changed.tv_sec != kept.changed.tv_sec || changed.tv_nsec != kept.changed.tv_nsec ||
           all.tv_sec != kept.all.tv_sec || all.tv_nsec != kept.all.tv_nsec;
}

const struct profile *slices_profile(const char *directory) {
    if (!is_old(directory)) return &kept.p;
    slices_free();
    tri_status status = profile_read(directory, NULL, &kept.p);
    if (!status) status = study_make(&kept.p);
    if (status) {
        profile_free(&kept.p);
        return NULL;
    }
    struct text profiles = {0};
    text_add(&profiles, "%s/profile", directory);
    kept.directory = strdup(directory);
    kept.profiles = profiles.data;
    kept.is = true;
    if (!kept.directory || profiles.failed) {
        slices_free();
        base_no_memory("the profile");
        return NULL;
    }
    kept.changed = changed_of(kept.p.folder);
    kept.all = changed_of(kept.profiles);
    return &kept.p;
}

/* ---- categories ---- */

static enum category of_kind(int kind) {
    static const enum category groups[SPENT_GROUPS] = {
        [SPENT_NOTHING] = SAVE, [SPENT_APART] = SAVE,  [SPENT_COMPUTES] = COMPUTE,
        [SPENT_SUMS] = SUM,     [SPENT_READS] = DATA,  [SPENT_BESIDE] = SAVE,
        [SPENT_WAITS] = WAIT};
    return groups[spent_rows[kind].group];
}

static enum category of_item(const struct profile_item *item) {
    static const enum category comms[] = {[COMM_MOVE] = MOVE, [COMM_SUM] = SUM,
                                          [COMM_TRANSFER] = MOVE};
    const enum tables_comm comm = tables_comm_of(item);
    return comm ? comms[comm] : strcmp(item->phase, "step") ? COMPUTE : SUM;
}

/* ---- as many as there are pixels ---- */

struct fold {
    struct text *out;
    int64_t from, to, zero;
    double pixel; /* nanoseconds */
    int64_t column;
    double owed[CATEGORIES]; /* time that has no pixel yet */
    int64_t begin, end;      /* merged columns that wait to be told */
    enum category category;
    const char *rest; /* of a merged slice */
    bool any;
};

/* Whether so many nanoseconds are not merged. */
static bool is_wide(const struct fold *f, int64_t time) { return (double)time >= 1.5 * f->pixel; }

static void tell(struct fold *f, int64_t begin, int64_t end, enum category category,
                 const char *rest) {
    text_add(f->out, "%s[%lld,%lld,%d,%s]", f->any ? "," : "", (long long)(begin - f->zero),
             (long long)(end - f->zero), (int)category, rest);
    f->any = true;
}

static void flush(struct fold *f) {
    if (f->end > f->begin) tell(f, f->begin, f->end, f->category, f->rest);
    f->begin = f->end = 0;
}

/* The column has the colour to which most is owed. False: that is too little, it is empty. */
static bool end_column(struct fold *f) {
    double all = 0;
    int most = 0;
    if (f->column < 0) return false;
    for (int k = 0; k < CATEGORIES; k++) {
        all += f->owed[k];
        if (f->owed[k] > f->owed[most]) most = k;
    }
    if (all < f->pixel / 2) return false;
    const int64_t begin = f->from + (int64_t)((double)f->column * f->pixel),
                  end = f->from + (int64_t)((double)(f->column + 1) * f->pixel);
    f->owed[most] -= f->pixel;
    if (f->end == begin && f->category == (enum category)most) {
        f->end = end;
        return true;
    }
    flush(f);
    f->begin = begin, f->end = end, f->category = (enum category)most;
    return true;
}

/* All columns before this one. */
static void end_columns(struct fold *f, int64_t column) {
    while (f->column >= 0 && f->column < column && end_column(f)) f->column++;
}

static void add(struct fold *f, int64_t begin, int64_t end, enum category category,
                const char *rest) {
    if (end <= f->from || begin >= f->to) return;
    begin = begin > f->from ? begin : f->from;
    end = end < f->to ? end : f->to;
    if (is_wide(f, end - begin)) {
        end_columns(f, (int64_t)((double)(begin - f->from) / f->pixel));
        flush(f);
        f->column = -1;
        tell(f, begin, end, category, rest);
        return;
    }
    const int64_t column = (int64_t)((double)(begin - f->from) / f->pixel);
    end_columns(f, column);
    f->column = column;
    f->owed[category] += (double)(end - begin);
}

static void end_fold(struct fold *f) {
    end_column(f);
    flush(f);
}

/* ---- threads ---- */

/* The number in threads of whom a wait is for; -1: not known. */
static int whom_of(const struct profile *p, const struct profile_thread *t, const struct span *s) {
    const int threads = p->host[t->host].threads;
    if (s->whom == SPAN_NOBODY || threads < 1) return -1;
    const struct profile_thread *whom =
        profile_thread_at(p, t->host, s->whom / threads, s->whom % threads);
    return whom ? (int)(whom - p->thread) : -1;
}

static void add_times(const struct profile *p, const struct profile_thread *t, struct fold f) {
    char rest[96];
    f.rest = "-1,-1,0,-1";
    for (size_t k = profile_until(t, f.from); k < t->n; k++) {
        const struct span *s = &t->span[k];
        if (s->kind >= SPENTS || s->begin >= f.to) continue;
        const bool told = is_wide(&f, s->end - s->begin);
        base_format(rest, sizeof rest, "%d,%d,%u,%d", s->kind, told ? whom_of(p, t, s) : -1,
                    s->step, s->lane);
        add(&f, s->begin, s->end, of_kind(s->kind), rest);
    }
    end_fold(&f);
}

static void add_operators(const struct profile *p, const struct profile_thread *t, struct fold f,
                          unsigned char *used) {
    char rest[96];
    f.rest = "-1,0,-1";
    for (size_t k = profile_until(t, f.from); k < t->n; k++) {
        const struct span *s = &t->span[k];
        const struct profile_item *item = profile_item_of(p, t, s);
        if ((s->kind != SPAN_OPERATOR && s->kind != SPAN_TRANSFER) || !item || s->begin >= f.to)
            continue;
        const size_t number = tables_number(p, t->host, s->item);
        if (is_wide(&f, s->end - s->begin)) used[number] = 1;
        base_format(rest, sizeof rest, "%zu,%u,%d", number, s->step, s->lane);
        add(&f, s->begin, s->end, of_item(item), rest);
    }
    end_fold(&f);
}

static void add_text(struct text *out, const char *text) {
    text_add(out, "\"");
    for (const char *c = text; *c; c++) /* escaped already, but for these */
        text_add(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    text_add(out, "\"");
}

static void add_items(const struct profile *p, const unsigned char *used, struct text *out) {
    const char *before = "";
    for (int h = 0; h < p->n_hosts; h++)
        for (int i = 0; i < p->host[h].n_items; i++) {
            const struct profile_item *item = &p->host[h].item[i];
            const size_t number = tables_number(p, h, i);
            const struct tables_item *of = &p->study->item[number];
            if (!used[number]) continue;
            text_add(out, "%s\"%zu\":{\"operator\":", before, number);
            add_text(out, item->operator);
            const char *const texts[][2] = {{"name", item->name}, {"scope", item->scope},
                                            {"phase", item->phase}, {"in", item->in},
                                            {"out", item->out},
                                            {"move", item->move ? item->move : ""}};
            for (size_t k = 0; k < COUNT(texts); k++) {
                text_add(out, ",\"%s\":", texts[k][0]);
                add_text(out, texts[k][1]);
            }
            text_add(out, ",\"stage\":%lld,\"leg\":%lld,\"seat\":%lld,\"backward\":%s,"
                     "\"flops\":%.6g,\"bytes\":%.6g,\"calls\":%lld,\"ns\":%lld,"
                     "\"waited\":%lld,\"ideal\":%.6g}",
                     (long long)item->stage, (long long)item->leg, (long long)item->seat,
                     item->backward ? "true" : "false", item->flops, item->bytes,
                     (long long)of->calls, (long long)of->ns, (long long)of->waited,
                     1e9 * tables_ideal(&p->host[h], item));
            before = ",";
        }
}

static void add_steps(const struct profile *p, struct text *out) {
    const struct profile_host *h = &p->host[0];
    for (int i = 0; i < h->n_steps && i < STEPS; i++)
        text_add(out, "%s[%u,%lld,%lld]", i ? "," : "", h->step[i].step,
                 (long long)(h->step[i].begin - p->begin), (long long)(h->step[i].end - p->begin));
}

/* Pieces of the critical path, of at least a pixel. */
static void add_path(const struct profile *p, const struct fold *f, struct text *out) {
    const struct path *path = &p->study->path;
    const char *between = "";
    for (size_t i = 0; i < path->n; i++) {
        const struct path_piece *piece = &path->piece[i];
        if (piece->begin >= f->to || piece->end <= f->from ||
            (double)(piece->end - piece->begin) < f->pixel)
            continue;
        text_add(out, "%s[%d,%lld,%lld]", between, piece->thread,
                 (long long)(piece->begin - f->zero), (long long)(piece->end - f->zero));
        between = ",";
    }
}

/* What ended waits that are wide enough to be seen. */
static void add_arrows(const struct profile *p, const struct fold *f, struct text *out) {
    const char *between = "";
    for (int i = 0; i < p->n_threads; i++) {
        const struct profile_thread *t = &p->thread[i];
        for (size_t k = profile_until(t, f->from); k < t->n && t->span[k].begin < f->to; k++) {
            const struct span *wait = &t->span[k], *last;
            if (!profile_is_wait(wait) || (double)(wait->end - wait->begin) < ARROW * f->pixel)
                continue;
            const int from = profile_ended_by(p, i, wait, &last);
            if (from < 0) continue;
            text_add(out, "%s[%d,%lld,%d,%lld,%lld]", between, from,
                     (long long)(last->end - f->zero), i, (long long)(wait->begin - f->zero),
                     (long long)(wait->end - f->zero));
            between = ",";
        }
    }
}

void slices_add(const struct profile *p, int64_t from, int64_t to, int pixels, struct text *out) {
    static const char *const whats[] = {"computes", "reads samples", "writes checkpoints",
                                        "sends and receives"};
    unsigned char *used = calloc(tables_number(p, p->n_hosts, 0) + 1, 1);
    struct text path = {0};
    if (!used) out->failed = true;
    if (from < 0 || from > p->end - p->begin) from = 0;
    if (to <= from || to > p->end - p->begin) to = p->end - p->begin;
    const struct fold fold = {.out = out, .from = p->begin + from, .to = p->begin + to,
                              .zero = p->begin, .column = -1,
                              .pixel = (double)(to > from ? to - from : 1) / pixels};
    path_tell(&p->study->path, &path);
    text_add(out, "{\"name\":");
    add_text(out, p->name);
    text_add(out, ",\"begin\":0,\"end\":%lld,\"lost\":%lld,\"path\":",
             (long long)(p->end - p->begin), (long long)p->lost);
    add_text(out, path.data ? path.data : "");
    text_add(out, ",\"step\":%.9g,\"steps\":[", p->study->step);
    add_steps(p, out);
    text_add(out, "],\"critical\":[");
    add_path(p, &fold, out);
    text_add(out, "],\"arrows\":[");
    add_arrows(p, &fold, out);
    text_add(out, "],\"threads\":[");
    for (int i = 0; i < p->n_threads && used; i++) {
        const struct profile_thread *t = &p->thread[i];
        text_add(out, "%s{\"host\":", i ? "," : "");
        add_text(out, p->host[t->host].name);
        text_add(out, ",\"worker\":%d,\"thread\":%d,\"what\":\"%s\",\"times\":[", t->place,
                 t->thread, whats[t->what]);
        add_times(p, t, fold);
        text_add(out, "],\"operators\":[");
        add_operators(p, t, fold, used);
        text_add(out, "]}");
    }
    text_add(out, "],\"kinds\":[");
    for (int k = 0; k < SPENTS; k++) {
        const bool waits = spent_rows[k].group == SPENT_WAITS;
        text_add(out, "%s\"%s%s\"", k ? "," : "", waits ? "waits for " : "", spent_rows[k].name);
    }
    text_add(out, "],\"items\":{");
    if (used) add_items(p, used, out);
    text_add(out, "}}");
    text_free(&path);
    free(used);
}

/* ---- who waits for whom ---- */

void slices_waits(const struct profile *p, struct text *out) {
    double (*waits)[MATRIX] = calloc(MATRIX, sizeof *waits);
    const int threads = p->n_hosts && p->host[0].threads > 0 ? p->host[0].threads : 1;
    int n = 0;
    if (!waits) out->failed = true;
    for (int i = 0; i < p->n_threads && waits; i++) {
        const struct profile_thread *t = &p->thread[i];
        if (t->host || t->place >= MATRIX) continue;
        if (t->what == SPAN_COMPUTES && t->place >= n) n = t->place + 1;
        for (size_t k = 0; k < t->n; k++) {
            const struct span *s = &t->span[k];
            const int whom = s->whom == SPAN_NOBODY ? MATRIX : s->whom / threads;
            if (profile_is_wait(s) && whom < MATRIX && whom != t->place)
                waits[t->place][whom] += 1e-9 * (double)(s->end - s->begin);
        }
    }
    const double steps = p->n_hosts && p->host[0].n_steps ? p->host[0].n_steps : 1;
    text_add(out, "{\"workers\":%d,\"seconds\":[", n);
    for (int i = 0; i < n && waits; i++) {
        text_add(out, "%s[", i ? "," : "");
        for (int k = 0; k < n; k++) text_add(out, "%s%.6g", k ? "," : "", waits[i][k] / steps);
        text_add(out, "]");
    }
    text_add(out, "]}");
    free(waits);
}
