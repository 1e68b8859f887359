/* SPDX-License-Identifier: Apache-2.0
 * Tables that a select reads. sql.c alone knows libsqlite3; without it, sql*.c are not built.
 *
 * A table has a function that walks over its rows. It is called once to declare the columns, and
 * again to fill the table if the select needs it; a column that the select does not name stays
 * empty. */
#ifndef PROFILE_SQL_H
#define PROFILE_SQL_H

#include "base/base.h"

struct sql;

struct sql_cell {
    enum { SQL_NULL, SQL_INTEGER, SQL_REAL, SQL_TEXT } kind;
    int64_t integer;
    double real;
    char *text;
};

struct sql_column {
    char *key, *name;     /* name: to SQL, where names that differ in case alone are one */
    bool needed;          /* by the select */
    struct sql_cell cell; /* of the row that is being made */
};

struct sql_table {
    const char *name;
    tri_status (*walk)(struct sql_table *t, void *user);
    void *user;
    struct sql *of;
    bool declares; /* the walk is the first one: rows are of no use */
    bool needed, filled;
    struct sql_column *column;
    size_t n, capacity;
    size_t at; /* the column after that of the last cell */
    void *insert;
};

/* The version of SQLite. */
const char *sql_version(void);
/* file: a new database; null: in memory. A table without a name ends them; of a table, name, walk
 * and user are set. */
tri_status sql_open(struct sql **s, const char *file, struct sql_table *tables);
/* Whether a file that begins so is a database that sql_open has made. */
#define SQL_HEADER 100 /* bytes */
bool sql_is_ours(const char *header, size_t bytes);
/* With all tables. Returns `status`, or the failure to write the file. */
tri_status sql_close(struct sql *s, tri_status status);

/* For a walk: cells of the row by the keys of their columns, and the end of the row. NaN is null.
 * The walk ends if sql_row fails. */
void sql_integer(struct sql_table *t, const char *key, int64_t value);
void sql_real(struct sql_table *t, const char *key, double value);
void sql_text(struct sql_table *t, const char *key, const char *value);
tri_status sql_row(struct sql_table *t);

/* Fills the tables that the select needs, or all of them. */
tri_status sql_select(struct sql *s, const char *text);
tri_status sql_fill_all(struct sql *s);
/* Of the select: its columns, and the next row; its cells stay until the next. */
int sql_columns(const struct sql *s);
const char *sql_name(const struct sql *s, int column);
tri_status sql_next(struct sql *s, bool *more);
struct sql_cell sql_cell(const struct sql *s, int column);

/* From a handler of signals: what fills and reads tables fails soon. */
void sql_interrupt(void);
bool sql_is_interrupted(void);

#endif
