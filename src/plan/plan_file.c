/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes the text of plan files. */
#include "plan/plan_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/nearest.h"
#include "plan/option_rows.h"
#include "plan/wire_ask.h"

static const char *const part_names[] = {[PLAN_GRAIN] = "grain", [PLAN_PLACEMENT] = "placement"};

/* What the value of a line that is no option may be. */
enum value_kind { A_TEXT, A_MESH, A_WORKERS, A_TIME, TWO_WORDS, THREE_WORDS };

/* A line of a plan; an option's has null as its name. */
static const struct {
    const char *name;
    enum value_kind kind;
    const char *words; /* of a strategy: those that it has */
} own[PLAN_KEYS] = {
    [PLAN_MODEL] = {"model", A_TEXT, NULL},
    [PLAN_GRAPH] = {"graph", A_TEXT, NULL},
    [PLAN_MESH] = {"mesh", A_MESH, NULL},
    [PLAN_STRATEGY] = {"strategy", TWO_WORDS, "strategy PATTERN FACTORS"},
    [PLAN_LAYOUT] = {"layout", TWO_WORDS, "layout NAME LAYOUT"},
    [PLAN_LAYOUT_OF] = {"layout-of", THREE_WORDS, "layout-of NODE OUTPUT LAYOUT"},
    [PLAN_SHARD] = {"shard", TWO_WORDS, "shard NODE TUPLES"},
    [PLAN_USE] = {"use", TWO_WORDS, "use NODE USE"},
    [PLAN_WORKERS] = {"workers", A_WORKERS, NULL},
    [PLAN_PREDICTED] = {"predicted-ns", A_TIME, NULL},
    [PLAN_HASH] = {"hash", A_TEXT, NULL},
};

static const char *name_of(enum plan_key key) {
    return own[key].name ? own[key].name : option_of_plan(key)->flag + 2;
}

static enum plan_part part_of(enum plan_key key) {
    return key == PLAN_HASH ? PLAN_PARTS : key < PLAN_WORKERS ? PLAN_GRAIN : PLAN_PLACEMENT;
}

/* Strategies: any number of lines, the last that fit win. */
static bool is_strategy(enum plan_key key) { return own[key].words; }

/* ---- reading ---- */

struct reader {
    struct plan_file *p;
    int number;
    int part; /* -1: before the first */
    bool seen[PLAN_PARTS];
};

static tri_status fail_line(const struct reader *r, const char *fmt, ...) TRI_PRINTF(2, 3);
static tri_status fail_line(const struct reader *r, const char *fmt, ...) {
    char what[512];
    va_list args;
    va_start(args, fmt);
    base_format_list(what, sizeof what, fmt, args);
    va_end(args);
    return base_fail(TRI_USAGE, "%s:%d: %s", r->p->name, r->number, what);
}

static tri_status begin_part(struct reader *r, const char *line) {
    struct nearest near = {.wanted = line + 1, .before = "[", .after = "]"};
    for (int i = 0; i < PLAN_PARTS; i++) {
        size_t n = strlen(part_names[i]);
        nearest_offer(&near, part_names[i]);
        if (strncmp(line + 1, part_names[i], n) || strcmp(line + 1 + n, "]")) continue;
        if (r->seen[i]) return fail_line(r, "the part [%s] begins a second time", part_names[i]);
        r->seen[i] = true;
        r->part = i;
        return TRI_OK;
    }
    return fail_line(r, "there is no part %.40s%s", line,
                     nearest_or(&near, "; do you mean [grain] or [placement]?"));
}

static tri_status unknown_key(const struct reader *r, const char *key) {
    struct nearest near = {.wanted = key};
    for (enum plan_key k = PLAN_MODEL; k < PLAN_KEYS; k++)
        if (part_of(k) == PLAN_PARTS || (int)part_of(k) == r->part)
            nearest_offer(&near, name_of(k));
    return fail_line(r, "unknown word \"%.40s\" in [%s]%s", key, part_names[r->part],
                     nearest_or(&near, "; a line begins with one of: %s", near.names));
}

static tri_status check_count(const struct reader *r, enum plan_key key, int64_t most,
                              const char *value) {
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (*end || end == value || (n < 1 && !errno))
        return fail_line(r, "%s \"%.40s\": expected a whole number of at least 1", name_of(key),
                         value);
    if (errno || n < 1 || n > most)
        return fail_line(r, "%s %.40s: there can be 1 to %lld", name_of(key), value,
                         (long long)most);
    return TRI_OK;
}

static tri_status check_mesh(const struct reader *r, const char *value) {
    struct mesh m;
    if (!strcmp(value, "none") || !mesh_parse(value, &m)) return TRI_OK;
    return fail_line(r, "%s", tri_message());
}

/* What rounds nothing decides no bit, and is no part of a plan. */
static tri_status check_wire(const struct reader *r, const char *value) {
    const tri_options o = {.wire = value};
    if (wire_ask_check(&o)) return fail_line(r, "%s", tri_message());
    return wire_ask_rounds(&o) ? TRI_OK
                               : fail_line(r, "wire %.40s rounds nothing: give --wire", value);
}

static tri_status no_word(const struct reader *r, const struct option_row *option,
                          const char *value) {
    struct text words = {0};
    for (const char *const *w = option->words; *w; w++) text_add(&words, " %s", *w);
    fail_line(r, "%s \"%.40s\": it can be one of:%s", option->flag + 2, value,
              words.data ? words.data : "");
    text_free(&words);
    return TRI_USAGE;
}

static tri_status check_value(const struct reader *r, enum plan_key key, const char *value) {
    const struct option_row *option = own[key].name ? NULL : option_of_plan(key);
    const enum value_kind kind = own[key].kind;
    int words = 0;
    for (const char *p = value; *p; p += strspn(p, " ")) {
        p += strcspn(p, " ");
        words++;
    }
    if (option && option->words && option_word(option->words, value) < 0)
        return no_word(r, option, value);
    if (option && option->most) return check_count(r, key, option->most, value);
    if (kind == A_WORKERS) return check_count(r, key, PLAN_MOST_WORKERS, value);
    if (kind == A_TIME) return check_count(r, key, INT64_MAX, value);
    if (kind >= TWO_WORDS && words < 2 + (kind == THREE_WORDS))
        return fail_line(r, "%s lacks a word: %s", name_of(key), own[key].words);
    if (!words) return fail_line(r, "%s lacks its value", name_of(key));
    if (key == PLAN_WIRE) return check_wire(r, value);
    return kind == A_MESH ? check_mesh(r, value) : TRI_OK;
}

static tri_status take_hash(struct reader *r, const char *value) {
    char *end;
    uint64_t hash = strtoull(value, &end, 16);
    if (strlen(value) != PLAN_DIGITS - 1 || *end || strspn(value, "+- "))
        return fail_line(r, "hash \"%.40s\": expected %d hexadecimal digits", value,
                         PLAN_DIGITS - 1);
    if (r->p->hashed[r->part])
        return fail_line(r, "[%s] has two hashes", part_names[r->part]);
    r->p->hashed[r->part] = true;
    r->p->hash[r->part] = hash;
    return TRI_OK;
}

static tri_status put(struct plan_file *p, struct plan_line l) {
    if (!l.value || !ARRAY_GROW(p->line, p->n, p->capacity)) return base_no_memory("a plan");
    p->line[p->n++] = l;
    return TRI_OK;
}

/* "batch 8": words separated by one blank. */
static tri_status take_key(struct reader *r, char *line) {
    bool maybe = !strncmp(line, "maybe ", 6);
    if (maybe) line += 6;
    size_t n = strcspn(line, " ");
    const char *value = line + n + (line[n] == ' ');
    line[n] = 0;
    for (enum plan_key key = PLAN_MODEL; key < PLAN_KEYS; key++) {
        if (strcmp(name_of(key), line)) continue;
        if (r->part < 0) break;
        if (part_of(key) != PLAN_PARTS && (int)part_of(key) != r->part)
            return fail_line(r, "%s belongs to [%s], not to [%s]", line, part_names[part_of(key)],
                             part_names[r->part]);
        const struct plan_line *before = is_strategy(key) ? NULL : plan_find(r->p, key);
        if (before)
            return fail_line(r, "%s is given twice: line %d has it too", line, before->number);
        if (maybe && key != PLAN_STRATEGY && key != PLAN_LAYOUT)
            return fail_line(r, "maybe stands before strategy or layout, not before %s", line);
        tri_status status = check_value(r, key, value);
        if (status) return status;
        if (key == PLAN_HASH) return take_hash(r, value);
        return put(r->p, (struct plan_line){.key = key,
                                            .value = arena_copy(&r->p->arena, value),
                                            .number = r->number,
                                            .maybe = maybe});
    }
    if (r->part < 0)
        return fail_line(r, "\"%.40s\" stands before the first part; a plan begins with [grain]",
                         line);
    return unknown_key(r, line);
}

/* Removes comments and surplus blanks. False: there is a byte that no text has. */
static bool clean(char *line) {
    char *to = line;
    bool blank = false;
    for (const char *p = line; *p && *p != '#'; p++) {
        if (*p == ' ' || *p == '\t' || *p == '\r') {
            blank = to > line;
            continue;
        }
        if ((unsigned char)*p < 32 || *p == 127) return false;
        if (blank) *to++ = ' ';
        blank = false;
        *to++ = *p;
    }
    *to = 0;
    return true;
}

/* Every lane has a sample. */
static tri_status check_lanes(struct reader *r) {
    const struct plan_line *lanes = plan_find(r->p, PLAN_LANES);
    int64_t n = plan_number(r->p, PLAN_LANES), batch = plan_number(r->p, PLAN_BATCH);
    if (!batch || n <= batch) return TRI_OK;
    r->number = lanes->number;
    return fail_line(r, "%lld lane(s) for a batch of %lld: there can be 1 to %lld", (long long)n,
                     (long long)batch, (long long)batch);
}

static tri_status parse(struct reader *r, const char *text, size_t bytes) {
    tri_status status = TRI_OK;
    const char *end = text + bytes;
    while (text < end && !status) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((stop ? stop : end) - text);
        char *line = arena_text(&r->p->arena, "%.*s", (int)(n < 65536 ? n : 65536), text);
        r->number++;
        if (!line) return base_no_memory("a plan");
        if (strlen(line) != n)
            status = fail_line(r, "this is no line of a plan: it has a zero byte or is too long");
        else if (!clean(line))
            status = fail_line(r, "this is no line of a plan: it has bytes that are no text");
        else if (*line == '[')
            status = begin_part(r, line);
        else if (*line)
            status = take_key(r, line);
        text += n + 1;
    }
    if (status) return status;
    if (r->seen[PLAN_GRAIN]) return check_lanes(r);
    return base_fail(TRI_USAGE, "%s is no plan: it has no part [grain]", r->p->name);
}

tri_status plan_parse(const char *name, const char *text, size_t bytes, struct plan_file *out) {
    *out = (struct plan_file){0};
    struct reader r = {.p = out, .part = -1};
    out->name = arena_copy(&out->arena, name);
    tri_status status = out->name ? parse(&r, text, bytes) : base_no_memory("a plan");
    if (status) plan_free(out);
    return status;
}

/* The plans that have been read. Options and runs point to their texts. */
static struct kept_plan {
    struct plan_file plan;
    struct stat st;
    struct kept_plan *next;
} *kept;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static bool has_changed(const struct kept_plan *k, const struct stat *now) {
    return k->st.st_dev != now->st_dev || k->st.st_ino != now->st_ino ||
           k->st.st_size != now->st_size || k->st.st_mtim.tv_sec != now->st_mtim.tv_sec ||
           k->st.st_mtim.tv_nsec != now->st_mtim.tv_nsec;
}

static tri_status read_file(const char *path, struct kept_plan *k) {
    char *text;
    size_t bytes;
    if (stat(path, &k->st)) k->st = (struct stat){0}; /* reading says why */
    if (base_read_file(path, &text, &bytes))
        return base_fail(TRI_USAGE, "cannot read the plan: %s", tri_message());
    tri_status status = plan_parse(path, text, bytes, &k->plan);
    free(text);
    return status;
}

static struct kept_plan *keep(const char *path) {
    struct kept_plan *k = calloc(1, sizeof *k);
    if (!k) base_no_memory("a plan");
    if (!k || read_file(path, k)) {
        free(k);
        return NULL;
    }
    k->next = kept;
    return kept = k;
}

const struct plan_file *plan_read(const char *path, bool afresh) {
    struct stat now;
    pthread_mutex_lock(&mutex);
    struct kept_plan *k = kept;
    while (k && strcmp(k->plan.name, path)) k = k->next;
    if (k && afresh && (stat(path, &now) || has_changed(k, &now))) k = NULL;
    if (!k) k = keep(path);
    pthread_mutex_unlock(&mutex);
    return k ? &k->plan : NULL;
}

void plan_free(struct plan_file *p) {
    free(p->line);
    arena_free(&p->arena);
    *p = (struct plan_file){0};
}

/* ---- what it says ---- */

const struct plan_line *plan_find(const struct plan_file *p, enum plan_key key) {
    for (size_t i = 0; i < p->n; i++)
        if (p->line[i].key == key) return &p->line[i];
    return NULL;
}

int64_t plan_number(const struct plan_file *p, enum plan_key key) {
    const struct plan_line *l = plan_find(p, key);
    return l ? strtoll(l->value, NULL, 10) : 0;
}

void plan_print_line(const struct plan_line *l, struct text *out) {
    text_add(out, "%s%s %s", l->maybe ? "maybe " : "", name_of(l->key), l->value);
}

/* The lines of a part in the order of the keys; strategies keep theirs. */
static void print_part(const struct plan_file *p, enum plan_part part, struct text *out) {
    bool strategies = false;
    for (enum plan_key k = PLAN_MODEL; k < PLAN_KEYS; k++) {
        if (part_of(k) != part || (is_strategy(k) && strategies)) continue;
        strategies |= is_strategy(k);
        for (size_t i = 0; i < p->n; i++) {
            enum plan_key of = p->line[i].key;
            if (of != k && !(is_strategy(of) && is_strategy(k))) continue;
            plan_print_line(&p->line[i], out);
            text_add(out, "\n");
        }
    }
}

static uint64_t hash_of(const struct plan_file *p, enum plan_part part) {
    struct text t = {0};
    print_part(p, part, &t);
    uint64_t hash = base_hash(t.data ? t.data : "", t.size, 0);
    text_free(&t);
    return hash;
}

char *plan_hash(const struct plan_file *p, enum plan_part part, char digits[PLAN_DIGITS]) {
    snprintf(digits, PLAN_DIGITS, "%016llx", (unsigned long long)hash_of(p, part));
    return digits;
}

bool plan_is_edited(const struct plan_file *p, enum plan_part part) {
    return !p->hashed[part] || p->hash[part] != hash_of(p, part);
}

void plan_print(const struct plan_file *p, struct text *out) {
    char digits[PLAN_DIGITS];
    text_add(out, "# How a run is divided. What is under [grain] decides its bits; [placement] "
                  "does not.\n");
    for (int i = 0; i < PLAN_PARTS; i++) {
        text_add(out, "%s[%s]\n", i ? "\n" : "", part_names[i]);
        print_part(p, (enum plan_part)i, out);
        text_add(out, "hash %s\n", plan_hash(p, (enum plan_part)i, digits));
    }
}

/* ---- comparing ---- */

bool plan_line_equal(const struct plan_line *a, const struct plan_line *b) {
    return a->key == b->key && a->maybe == b->maybe && !strcmp(a->value, b->value);
}

/* The lines of one plan that the other lacks. */
static bool add_lines(const struct plan_file *a, const struct plan_file *b, enum plan_key first,
                      enum plan_key end, char sign, struct text *out) {
    bool any = false;
    for (size_t i = 0; i < a->n; i++) {
        bool has = a->line[i].key < first || a->line[i].key >= end;
        for (size_t k = 0; k < b->n && !has; k++) has = plan_line_equal(&a->line[i], &b->line[k]);
        if (has) continue;
        text_add(out, "%c ", sign);
        plan_print_line(&a->line[i], out);
        text_add(out, "\n");
        any = true;
    }
    return any;
}

/* The next strategy from i on. */
static const struct plan_line *strategy_from(const struct plan_file *p, size_t *i) {
    while (*i < p->n && !is_strategy(p->line[*i].key)) ++*i;
    return *i < p->n ? &p->line[(*i)++] : NULL;
}

bool plan_differ(const struct plan_file *a, const struct plan_file *b, enum plan_key first,
                 enum plan_key end, struct text *out) {
    bool less = add_lines(a, b, first, end, '-', out), more = add_lines(b, a, first, end, '+', out);
    if (less || more) return true;
    for (size_t i = 0, k = 0;;) {
        const struct plan_line *x = strategy_from(a, &i), *y = strategy_from(b, &k);
        if (!x && !y) return false;
        if (x && y && plan_line_equal(x, y)) continue;
        text_add(out, "the same lines, but strategies in another order\n");
        return true;
    }
}
