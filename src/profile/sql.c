/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/sql.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"

static volatile sig_atomic_t interrupted;

void sql_interrupt(void) { interrupted = 1; }
bool sql_is_interrupted(void) { return interrupted; }

/* ---- columns and cells ---- */

#define MOST 1000 /* columns of a table; further ones are left out */

static void name_column(const struct sql_table *t, struct sql_column *c) {
    struct text name = {0};
    int same = 1;
    for (size_t i = 0; i < t->n; i++) same += !strcasecmp(t->column[i].key, c->key);
    text_add(&name, "%s", c->key);
    if (same > 1) text_add(&name, "_%d", same);
    c->name = name.data;
}

static struct sql_column *find_column(struct sql_table *t, const char *key) {
    if (t->at < t->n && !strcmp(t->column[t->at].key, key)) return &t->column[t->at];
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->column[i].key, key)) return &t->column[i];
    if (!t->declares || t->n == MOST || !ARRAY_GROW(t->column, t->n, t->capacity)) return NULL;
    struct sql_column *c = &t->column[t->n];
    *c = (struct sql_column){.key = strdup(key)};
    if (c->key) name_column(t, c);
    if (c->name) return t->n++, c;
    free(c->key);
    return NULL;
}

/* The cell, if the select needs it. */
static struct sql_cell *cell_of(struct sql_table *t, const char *key) {
    struct sql_column *c = find_column(t, key);
    if (c) t->at = (size_t)(c - t->column) + 1;
    return c && c->needed ? &c->cell : NULL;
}

void sql_integer(struct sql_table *t, const char *key, int64_t value) {
    struct sql_cell *c = cell_of(t, key);
    if (c) c->kind = SQL_INTEGER, c->integer = value;
}

void sql_real(struct sql_table *t, const char *key, double value) {
    struct sql_cell *c = cell_of(t, key);
    if (c) c->kind = SQL_REAL, c->real = value;
}

void sql_text(struct sql_table *t, const char *key, const char *value) {
    struct sql_cell *c = value ? cell_of(t, key) : NULL;
    if (!c) return;
    free(c->text);
    c->text = strdup(value);
    c->kind = c->text ? SQL_TEXT : SQL_NULL;
}

/* ---- SQLite ---- */

#define OFTEN 10000 /* steps of SQLite's machine between two looks for an interrupt */

struct sql {
    sqlite3 *db;
    sqlite3_stmt *select;
    struct sql_table *tables;
    bool guards;  /* the statement is the user's */
    bool selects; /* it is a select */
};

const char *sql_version(void) { return sqlite3_libversion(); }

static tri_status fail(const struct sql *s) {
    if (interrupted) return base_fail(TRI_STOPPED, "interrupted");
    return base_fail(TRI_FAILED, "SQLite: %s", s->db ? sqlite3_errmsg(s->db) : "out of memory");
}

static tri_status run(struct sql *s, const char *text) {
    return sqlite3_exec(s->db, text, NULL, NULL, NULL) ? fail(s) : TRI_OK;
}

/* ---- filling tables ---- */

tri_status sql_row(struct sql_table *t) {
    t->at = 0;
    if (interrupted) return base_fail(TRI_STOPPED, "interrupted");
    if (t->declares) return TRI_OK;
    for (size_t i = 0; i < t->n; i++) {
        struct sql_cell *c = &t->column[i].cell;
        const int k = (int)i + 1;
        if (!t->column[i].needed) continue;
        if (c->kind == SQL_INTEGER) sqlite3_bind_int64(t->insert, k, c->integer);
        else if (c->kind == SQL_REAL) sqlite3_bind_double(t->insert, k, c->real);
        else if (c->kind == SQL_TEXT) sqlite3_bind_text(t->insert, k, c->text, -1, SQLITE_STATIC);
        else sqlite3_bind_null(t->insert, k);
        c->kind = SQL_NULL;
    }
    const bool done = sqlite3_step(t->insert) == SQLITE_DONE;
    return sqlite3_reset(t->insert) || !done ? fail(t->of) : TRI_OK;
}

static tri_status create(struct sql *s, const struct sql_table *t) {
    char *text = sqlite3_mprintf("create table \"%w\" (", t->name);
    for (size_t i = 0; i < t->n && text; i++)
        text = sqlite3_mprintf("%z%s\"%w\"", text, i ? ", " : "", t->column[i].name);
    if (text) text = sqlite3_mprintf("%z)", text);
    tri_status status = text ? run(s, text) : base_no_memory("a table");
    sqlite3_free(text);
    return status;
}

static tri_status fill(struct sql *s, struct sql_table *t) {
    struct text text = {0};
    sqlite3_stmt *insert = NULL;
    text_add(&text, "insert into \"%s\" values (", t->name);
    for (size_t i = 0; i < t->n; i++) text_add(&text, i ? ",?" : "?");
    text_add(&text, ")");
    tri_status status = text.failed ? base_no_memory("a table") : TRI_OK;
    if (!status && sqlite3_prepare_v2(s->db, text.data, -1, &insert, NULL)) status = fail(s);
    t->insert = insert;
    if (!status) status = t->walk(t, t->user);
    sqlite3_finalize(insert);
    text_free(&text);
    return status;
}

static tri_status fill_needed(struct sql *s) {
    tri_status status = run(s, "begin");
    for (struct sql_table *t = s->tables; t->name && !status; t++)
        if (t->needed && !t->filled) {
            status = fill(s, t);
            t->filled = true;
        }
    return status ? status : run(s, "commit");
}

tri_status sql_fill_all(struct sql *s) {
    for (struct sql_table *t = s->tables; t->name; t++) {
        t->needed = true;
        for (size_t i = 0; i < t->n; i++) t->column[i].needed = true;
    }
    return fill_needed(s);
}

/* ---- the select ---- */

static void need(struct sql *s, const char *table, const char *column) {
    for (struct sql_table *t = s->tables; t->name; t++) {
        if (strcasecmp(t->name, table)) continue;
        t->needed = true;
        for (size_t i = 0; i < t->n; i++)
            t->column[i].needed |= !strcasecmp(t->column[i].name, column);
    }
}

/* SQLite does not report what "using" and "natural" read. */
static void need_joined(struct sql *s, const char *text) {
    if (!strcasestr(text, "using") && !strcasestr(text, "natural")) return;
    for (struct sql_table *t = s->tables; t->name; t++) {
        t->needed |= strcasestr(text, t->name) != NULL;
        for (size_t i = 0; i < t->n && t->needed; i++) t->column[i].needed = true;
    }
}

/* Lets a statement read, and notes what it reads. */
static int authorize(void *user, int action, const char *a, const char *b, const char *database,
                     const char *view) {
    struct sql *s = user;
    (void)database, (void)view;
    if (!s->guards) return SQLITE_OK;
    if (action == SQLITE_READ && a && b) need(s, a, b);
    if (action == SQLITE_SELECT) s->selects = true;
    const bool loads = action == SQLITE_FUNCTION && b && !strcasecmp(b, "load_extension");
    const bool reads = action == SQLITE_READ || action == SQLITE_SELECT ||
                       action == SQLITE_FUNCTION || action == SQLITE_RECURSIVE;
    return reads && !loads ? SQLITE_OK : SQLITE_DENY;
}

static tri_status only_select(void) {
    return base_fail(TRI_USAGE, "query takes one select, which reads: 'select min(loss) from "
                     "metrics'; --save F.db writes the tables to a database of your own");
}

/* What is meant by a name that SQLite did not find. */
static tri_status explain(const struct sql *s) {
    const char *message = sqlite3_errmsg(s->db);
    if (!strncmp(message, "not authorized", 14)) return only_select();
    const char *colon = strrchr(message, ':');
    struct nearest near = {.wanted = colon ? colon + 2 : ""};
    const char *dot = strrchr(near.wanted, '.');
    if (dot) near.wanted = dot + 1;
    const bool table = !strncmp(message, "no such table", 13);
    const bool column = !strncmp(message, "no such column", 14);
    const char *has = NULL; /* another table that has the column */
    for (const struct sql_table *t = s->tables; t->name && (table || column); t++) {
        if (table) nearest_offer(&near, t->name);
        for (size_t i = 0; i < t->n && column; i++)
            if (nearest_offer(&near, t->column[i].name)) has = t->name;
    }
    if (has) return base_fail(TRI_USAGE, "%s in this table; %s has it", message, has);
    return base_fail(TRI_USAGE, "%s%s", message,
                     nearest_or(&near, "; `trireme query DIR --tables` lists tables and columns"));
}

static tri_status prepare(struct sql *s, const char *text) {
    const char *rest = NULL;
    s->guards = true;
    int wrong = sqlite3_prepare_v2(s->db, text, -1, &s->select, &rest);
    s->guards = false;
    if (wrong) return explain(s);
    if (!s->select || !s->selects || !sqlite3_stmt_readonly(s->select)) return only_select();
    sqlite3_stmt *more = NULL;
    wrong = sqlite3_prepare_v2(s->db, rest, -1, &more, NULL);
    const bool second = wrong || more;
    sqlite3_finalize(more);
    return second ? only_select() : TRI_OK;
}

tri_status sql_select(struct sql *s, const char *text) {
    tri_status status = prepare(s, text);
    if (!status) need_joined(s, text);
    if (!status) status = fill_needed(s);
    s->guards = true; /* what a table's function runs */
    return status;
}

int sql_columns(const struct sql *s) { return sqlite3_column_count(s->select); }

const char *sql_name(const struct sql *s, int column) {
    const char *name = sqlite3_column_name(s->select, column);
    return name ? name : "?";
}

tri_status sql_next(struct sql *s, bool *more) {
    const int how = sqlite3_step(s->select);
    *more = how == SQLITE_ROW;
    return *more || how == SQLITE_DONE ? TRI_OK : fail(s);
}

struct sql_cell sql_cell(const struct sql *s, int column) {
    struct sql_cell c = {0};
    const int type = sqlite3_column_type(s->select, column);
    c.kind = type == SQLITE_INTEGER ? SQL_INTEGER : type == SQLITE_FLOAT ? SQL_REAL : SQL_TEXT;
    c.integer = sqlite3_column_int64(s->select, column);
    c.real = sqlite3_column_double(s->select, column);
    if (c.kind == SQL_TEXT) c.text = (char *)sqlite3_column_text(s->select, column);
    if (type == SQLITE_NULL || (c.kind == SQL_TEXT && !c.text)) c.kind = SQL_NULL;
    return c;
}

/* ---- the database ---- */

static int look(void *user) {
    (void)user;
    return interrupted;
}

/* In the header of a database, big-endian. */
#define SQL_OURS "1416784242" /* "Trir" */
#define OURS_AT 68

bool sql_is_ours(const char *header, size_t bytes) {
    return bytes >= SQL_HEADER && !strcmp(header, "SQLite format 3") &&
           !memcmp(header + OURS_AT, "Trir", 4);
}

tri_status sql_open(struct sql **opened, const char *file, struct sql_table *tables) {
    struct sql *s = calloc(1, sizeof *s);
    *opened = s;
    if (!s) return base_no_memory("tables");
    s->tables = tables;
    if (sqlite3_open(file ? file : ":memory:", &s->db)) return fail(s);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL); /* "x" is a column, never a text */
    sqlite3_set_authorizer(s->db, authorize, s);
    sqlite3_progress_handler(s->db, OFTEN, look, NULL);
    tri_status status = run(s, "pragma journal_mode=off; pragma synchronous=off;"
                               "pragma application_id=" SQL_OURS);
    for (struct sql_table *t = tables; t->name && !status; t++) {
        t->of = s;
        t->declares = true;
        status = t->walk(t, t->user);
        t->declares = false;
        if (!status) status = create(s, t);
    }
    return status;
}

tri_status sql_close(struct sql *s, tri_status status) {
    if (!s) return status;
    sqlite3_finalize(s->select);
    if (sqlite3_close(s->db) && !status) status = fail(s);
    for (struct sql_table *t = s->tables; t->name; t++) {
        for (size_t i = 0; i < t->n; i++) {
            free(t->column[i].key);
            free(t->column[i].name);
            free(t->column[i].cell.text);
        }
        free(t->column);
        t->column = NULL;
        t->n = t->capacity = 0;
    }
    free(s);
    return status;
}
