/* SPDX-License-Identifier: Apache-2.0
 * trireme query: the files of runs as SQL tables. */
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/columns.h"
#include "cli/cli.h"
#include "io/outfile.h"
#include "profile/sql_tables.h"

struct own {
    bool csv, json, tables;
    const char *save;
};

#ifdef HAVE_SQLITE

/* ---- results ---- */

/* exact: reads back as the same number. */
static void add_cell(struct text *t, struct sql_cell c, bool exact) {
    char number[NUMBER_TEXT];
    int digits = exact ? 15 : 7;
    if (c.kind == SQL_REAL) base_format(number, sizeof number, "%.*g", digits, c.real);
    while (c.kind == SQL_REAL && exact && digits < 17 && base_number(number, NULL) != c.real)
        base_format(number, sizeof number, "%.*g", ++digits, c.real);
    if (c.kind == SQL_INTEGER) text_add(t, "%lld", (long long)c.integer);
    else if (c.kind == SQL_REAL) text_add(t, "%s", number);
    else if (c.kind == SQL_TEXT) text_add_escaped(t, c.text);
}

static void add_quoted(struct text *t, const char *text) {
    const bool quoted = strpbrk(text, ",\"");
    if (!quoted) {
        text_add(t, "%s", text);
        return;
    }
    text_add(t, "\"");
    for (; *text; text++) text_add(t, *text == '"' ? "\"\"" : "%c", *text);
    text_add(t, "\"");
}

static void csv_row(const struct sql *s, bool head, struct text *out) {
    for (int i = 0; i < sql_columns(s); i++) {
        struct text t = {0};
        if (head) text_add_escaped(&t, sql_name(s, i));
        else add_cell(&t, sql_cell(s, i), true);
        text_add(out, i ? "," : "");
        add_quoted(out, t.data ? t.data : "");
        out->failed |= t.failed;
        text_free(&t);
    }
    text_add(out, "\n");
}

static void add_json(struct text *out, const char *text) {
    struct text escaped = {0};
    json_t *string = json_string(text);
    if (!string) text_add_escaped(&escaped, text); /* it is not UTF-8 */
    if (!string && escaped.data) string = json_string(escaped.data);
    char *quoted = json_dumps(string, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    text_add(out, "%s", quoted ? quoted : "null");
    free(quoted);
    text_free(&escaped);
    json_decref(string);
}

/* An object a line, as in metrics.jsonl. */
static void json_row(const struct sql *s, struct text *out) {
    for (int i = 0; i < sql_columns(s); i++) {
        const struct sql_cell c = sql_cell(s, i);
        text_add(out, i ? "," : "{");
        add_json(out, sql_name(s, i));
        text_add(out, ":");
        if (c.kind == SQL_TEXT) add_json(out, c.text);
        else if (c.kind == SQL_NULL || (c.kind == SQL_REAL && !isfinite(c.real)))
            text_add(out, "null");
        else add_cell(out, c, true);
    }
    text_add(out, "}\n");
}

static tri_status print_lines(struct sql *s, bool csv) {
    tri_status status = TRI_OK;
    struct text t = {0};
    if (csv) csv_row(s, true, &t);
    for (bool more = true; !status && more;) {
        status = sql_next(s, &more);
        if (more && csv) csv_row(s, false, &t);
        else if (more) json_row(s, &t);
        if (!status && (!more || t.size > 65536)) status = cli_print(&t);
    }
    text_free(&t);
    return status;
}

#define BLOCK 10000 /* rows that are as wide as the widest of them */

/* Prints a block; *more: there may be others. */
static tri_status print_block(struct sql *s, bool head, bool *more) {
    char sides[COLUMNS_MOST + 1] = "";
    struct text cells = {0}, out = {0};
    const int n = sql_columns(s);
    tri_status status = TRI_OK;
    memset(sides, 'r', (size_t)n);
    for (int i = 0; i < n && head; i++) {
        text_add_escaped(&cells, sql_name(s, i));
        text_add(&cells, i + 1 < n ? "\t" : "\n");
    }
    for (int rows = 0; rows < BLOCK && !status; rows++) {
        status = sql_next(s, more);
        if (!*more) break;
        for (int i = 0; i < n; i++) {
            const struct sql_cell c = sql_cell(s, i);
            if (c.kind == SQL_TEXT) sides[i] = 'l';
            add_cell(&cells, c, false);
            text_add(&cells, i + 1 < n ? "\t" : "\n");
        }
    }
    columns_add(&out, sides, &cells);
    const tri_status printed = cli_print(&out);
    return status ? status : printed;
}

static tri_status print_table(struct sql *s) {
    tri_status status = TRI_OK;
    bool more = true;
    if (sql_columns(s) > COLUMNS_MOST)
        return base_fail(TRI_USAGE, "the select has %d columns; --csv and --json print more than "
                         "%d", sql_columns(s), COLUMNS_MOST);
    for (bool head = true; more && !status; head = false) status = print_block(s, head, &more);
    return status;
}

static tri_status print_tables(const struct sql_table *tables) {
    struct text out = {0};
    for (const struct sql_table *t = tables; t->name; t++) {
        struct text names = {0};
        for (size_t i = 0; i < t->n; i++) {
            text_add(&names, i ? ", " : "");
            text_add_escaped(&names, t->column[i].name);
        }
        options_item(t->name, NULL, names.data ? names.data : "", &out);
        text_free(&names);
    }
    return cli_print(&out);
}

/* ---- the command ---- */

static void end(int sig) {
    (void)sig;
    sql_interrupt();
}

/* The last word, if it is none of a directory. */
static char *take_select(struct cli_arguments *a) {
    char *last = a->n_words ? a->words[a->n_words - 1] : "";
    struct stat is;
    return strpbrk(last, " \n\t(") && stat(last, &is) ? a->words[--a->n_words] : NULL;
}

static tri_status answer(const struct own *own, const char *select, const char *file,
                         struct sql_runs *r) {
    struct sql *s = NULL;
    tri_status status = sql_open(&s, file, r->tables);
    if (!status && file) status = sql_fill_all(s);
    if (!status && own->tables) status = print_tables(r->tables);
    if (!status && select) status = sql_select(s, select);
    if (!status && select)
        status = own->csv || own->json ? print_lines(s, own->csv) : print_table(s);
    return sql_close(s, status);
}

/* The database replaces one that query has written, but no other file. */
static tri_status save(const struct own *own, const char *select, struct sql_runs *r) {
    char target[4096], begin[SQL_HEADER] = "", part[PART_PATH];
    tri_status status = outfile_target(own->save, target);
    FILE *old = status ? NULL : fopen(target, "re");
    const bool other = old && fread(begin, 1, sizeof begin, old) &&
                       !sql_is_ours(begin, sizeof begin);
    if (old) fclose(old);
    if (status) return status;
    if (other)
        return base_fail(TRI_USAGE, "%s exists and is no database that query has written; choose "
                         "another name for --save", own->save);
    const int fd = part_open(target, 0644, part); /* to SQLite, nothing is an empty database */
    if (fd < 0) return TRI_FAILED;
    close(fd);
    return part_end(target, part, answer(own, select, part, r));
}

static int query(const struct own *own, struct cli_arguments *a) {
    struct sql_runs r;
    char *select = take_select(a), *usual[] = {"run"};
    const struct sigaction action = {.sa_handler = end, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    tri_status status = sql_runs_open(&r, a->n_words ? a->words : usual,
                                      a->n_words ? a->n_words : 1);
    if (!status && own->csv && own->json)
        status = base_fail(TRI_USAGE, "--csv and --json are both given: give one");
    if (!status && !select && !own->tables && !own->save)
        status = base_fail(TRI_USAGE, "query lacks its select: trireme query DIR 'select min(loss) "
                           "from metrics'; --tables lists what there is");
    if (!status) status = own->save ? save(own, select, &r) : answer(own, select, NULL, &r);
    if (!status && r.damaged)
        fprintf(stderr, "trireme: damaged lines of metrics.jsonl are left out: %lld\n",
                (long long)r.damaged);
    sql_runs_close(&r);
    if (!status) return TRI_OK;
    const int code = cli_fail();
    return sql_is_interrupted() ? 128 + SIGINT : code;
}

#else

static int query(const struct own *own, struct cli_arguments *a) {
    (void)own, (void)a;
    base_fail(TRI_FAILED, "query needs SQLite, which was missing when trireme was built; install "
              "it (Debian: libsqlite3-dev) and build again, `meson setup --reconfigure "
              "-Dsqlite=enabled`");
    return cli_fail();
}

#endif

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {0};
    struct cli_arguments a;
    return cli_read(c, argc, argv, &own, &a) ? cli_fail() : query(&own, &a);
}

static const struct option_row rows[] = {
    {"--csv", NULL, "print lines of values with commas, the names of columns first",
     OWN(option_given, csv)},
    {"--json", NULL, "print a JSON object a row", OWN(option_given, json)},
    {"--tables", NULL, "list the tables and their columns", OWN(option_given, tables)},
    {"--save", "F.db", "write all tables to a database of SQLite", OWN(option_text, save)},
    {0},
};

static void more(struct text *out) {
    options_paragraph("DIR is the directory of a run (default: run), which may still be under way; "
                      "a row's column `run` names it. The select is one of SQLite, as "
                      "'select run, min(loss) from metrics group by run'. It can read, and nothing "
                      "else. The column `text` of events has what else a line of a log has, for "
                      "json_extract(text, '$.pid').", out);
}

const struct command command_query = {
    .name = "query",
    .arguments = "DIR... 'select ...' [options]",
    .help = "ask the files of runs by SQL",
    .takes_words = "DIR",
    .rows = rows,
    .more = more,
    .run = run,
};
