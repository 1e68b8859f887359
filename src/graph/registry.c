/* SPDX-License-Identifier: Apache-2.0
 * The table of operators: built-in rows and those that users register. Their attribute schemas are
 * parsed once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

#define MAX_OPS 256

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    struct op_entry entry[MAX_OPS]; /* not reallocated: nodes point to entries */
    int n;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static const char *const kind_names[] = {
    [ATTR_INT] = "int",   [ATTR_FLOAT] = "float", [ATTR_INTS] = "ints",
    [ATTR_TEXT] = "text", [ATTR_SHAPE] = "shape", [ATTR_TYPE] = "type",
};

static bool parse_default(struct attr_schema *s, const char *text, size_t length) {
    char *buffer = s->text, *end = buffer;
    if (length >= sizeof s->text) return false;
    memcpy(buffer, text, length);
    buffer[length] = 0;
    s->has_default = true;
    switch (s->kind) {
    case ATTR_INT: s->value.i = strtoll(buffer, &end, 10); break;
    case ATTR_FLOAT: s->value.f = base_number(buffer, &end); break;
    case ATTR_INTS:
        while (*end && s->value.list.rank < TRI_MAX_RANK) {
            s->value.list.dim[s->value.list.rank++] = strtoll(end, &end, 10);
            if (*end == ',') end++;
        }
        break;
    case ATTR_TEXT:
        s->value.text = buffer;
        return true;
    default: return false; /* shapes and types are always given */
    }
    return !*end;
}

/* One "name:kind=default"; returns the place after it, or null. */
static const char *parse_one(struct attr_schema *s, const char *p) {
    size_t name = strcspn(p, ": ");
    if (p[name] != ':' || name >= sizeof s->name) return NULL;
    memcpy(s->name, p, name);
    s->value.name = s->name;
    s->value.text = "";
    p += name + 1;
    size_t kind = strcspn(p, "= "), k = 0;
    while (k < COUNT(kind_names) &&
           (strlen(kind_names[k]) != kind || memcmp(kind_names[k], p, kind)))
        k++;
    if (k == COUNT(kind_names)) return NULL;
    s->kind = (enum attr_kind)k;
    p += kind;
    if (*p == '=') {
        size_t length = strcspn(++p, " ");
        if (!parse_default(s, p, length)) return NULL;
        p += length;
    }
    return p;
}

static bool parse_schema(struct op_entry *e) {
    for (const char *p = e->op->attributes; p && *p;) {
        if (*p == ' ') {
            p++;
            continue;
        }
        if (e->n_attrs == MAX_ATTRS) return false;
        p = parse_one(&e->attr[e->n_attrs++], p);
        if (!p) return false;
    }
    return true;
}

/* One name of a factor, which ends at a space or comma. */
static const char *parse_label(struct op_entry *e, const char *p, uint8_t letter, int place) {
    if (e->n_labels == MAX_LABELS) return NULL;
    struct factor_label *l = &e->label[e->n_labels++];
    size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (!n || n >= sizeof l->name || (p[n] && p[n] != ' ' && p[n] != ',')) return NULL;
    *l = (struct factor_label){.letter = letter, .place = place};
    memcpy(l->name, p, n);
    return p + n;
}

/* "...:batch,heads m:rows" */
static bool parse_names(struct op_entry *e) {
    for (const char *p = e->op->names; p && *p;) {
        if (*p == ' ') {
            p++;
            continue;
        }
        bool dots = !strncmp(p, "...", 3);
        uint8_t letter = dots ? 0 : (uint8_t)*p;
        if (!dots && (*p < 'a' || *p > 'z')) return false;
        p += dots ? 3 : 1;
        if (*p++ != ':') return false;
        p = parse_label(e, p, letter, 0);
        for (int place = 1; dots && p && *p == ','; place++)
            p = parse_label(e, p + 1, 0, place);
        if (!p || *p == ',') return false;
    }
    return true;
}

/* "first=begin:v all=extent:v" */
static bool parse_follows(struct op_entry *e) {
    static const char *const words[] = {[FOLLOW_SIZE] = "size", [FOLLOW_BEGIN] = "begin",
                                        [FOLLOW_EXTENT] = "extent"};
    for (const char *p = e->op->follows; p && *p;) {
        char name[24], word[8], letter;
        int used = 0;
        if (*p == ' ') {
            p++;
            continue;
        }
        if (e->n_follows == MAX_FOLLOWS ||
            sscanf(p, "%23[^= ]=%7[^: ]:%c%n", name, word, &letter, &used) != 3 ||
            letter < 'a' || letter > 'z' || (p[used] && p[used] != ' '))
            return false;
        struct factor_follow *f = &e->follow[e->n_follows++];
        size_t what = 0;
        while (what < COUNT(words) && strcmp(words[what], word)) what++;
        f->attr = 0;
        while (f->attr < e->n_attrs && strcmp(e->attr[f->attr].name, name)) f->attr++;
        if (what == COUNT(words) || f->attr == e->n_attrs || e->attr[f->attr].kind != ATTR_INT)
            return false;
        f->what = (unsigned)what;
        f->letter = (uint8_t)letter;
        p += used;
    }
    return true;
}

static int find_locked(const char *name) {
    for (int i = 0; i < registry.n; i++)
        if (!strcmp(registry.entry[i].op->name, name)) return i;
    return -1;
}

static tri_status register_locked(const tri_op *op) {
    if (!op->name || !op->infer || !op->gradient || !op->examples)
        return base_fail(TRI_USAGE,
                         "operator %s: its row needs name, infer, gradient (or tri_grad_none, "
                         "tri_grad_refused) and examples",
                         op->name ? op->name : "without a name");
    if (find_locked(op->name) >= 0)
        return base_fail(TRI_USAGE, "operator %s is registered already", op->name);
    if (registry.n == MAX_OPS)
        return base_fail(TRI_FAILED, "operator %s: the table is full, %d are registered", op->name,
                         MAX_OPS);
    struct op_entry *e = &registry.entry[registry.n];
    memset(e, 0, sizeof *e);
    e->op = op;
    if (!parse_schema(e))
        return base_fail(TRI_USAGE,
                         "operator %s: attributes \"%s\" are not of the form "
                         "\"name:int name:float=0.5 name:ints=1,1 name:text=x\"",
                         op->name, op->attributes);
    if (!parse_names(e))
        return base_fail(TRI_USAGE,
                         "operator %s: names \"%s\" are not of the form \"m:rows k:in\" or "
                         "\"...:batch,heads k:in\", with small letters and names of at most %d "
                         "characters",
                         op->name, op->names, (int)sizeof e->label->name - 1);
    if (!parse_follows(e))
        return base_fail(TRI_USAGE,
                         "operator %s: follows \"%s\" are not of the form \"groups=size:g "
                         "first=begin:v all=extent:v\", with int attributes of the row",
                         op->name, op->follows);
    registry.n++;
    return TRI_OK;
}

static void register_built_in(void) {
    for (int i = 0; ops_table[i]; i++) {
        tri_status status = register_locked(ops_table[i]);
        if (status) fprintf(stderr, "trireme: %s\n", tri_message());
        CHECK(status == TRI_OK);
    }
}

tri_status tri_register(const tri_op *op) {
    pthread_once(&registry.once, register_built_in);
    pthread_mutex_lock(&registry.lock);
    tri_status status = register_locked(op);
    pthread_mutex_unlock(&registry.lock);
    return status;
}

const struct op_entry *registry_find(const char *name) {
    pthread_once(&registry.once, register_built_in);
    pthread_mutex_lock(&registry.lock);
    int i = find_locked(name);
    const struct op_entry *e = i < 0 ? NULL : &registry.entry[i];
    pthread_mutex_unlock(&registry.lock);
    return e;
}

const struct op_entry *registry_at(int i) {
    pthread_once(&registry.once, register_built_in);
    pthread_mutex_lock(&registry.lock);
    const struct op_entry *e = i >= 0 && i < registry.n ? &registry.entry[i] : NULL;
    pthread_mutex_unlock(&registry.lock);
    return e;
}

const tri_op *tri_op_find(const char *name) {
    const struct op_entry *e = registry_find(name);
    return e ? e->op : NULL;
}
