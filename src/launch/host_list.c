/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/host_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crew/head.h"
#include "observe/json.h"

static tri_status refuse(const char *from, const char *word, const char *why) {
    return base_fail(TRI_USAGE, "%s: '%s': %s", from, word, why);
}

/* One name of a host, "h1" or "h1:4". */
static tri_status add(struct host_list *l, const char *from, char *word) {
    const char *given = word;
    char whole[HOSTS_NAME + 16], *colon = strrchr(word, ':');
    base_format(whole, sizeof whole, "%s", given);
    long workers = 0;
    if (colon) {
        char *end;
        workers = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || *end || workers < 1 || workers > CREW_MOST_WORKERS)
            return refuse(from, whole, "a number of workers, 1 to 128, must follow the colon");
        *colon = 0;
    }
    if (!*word) return refuse(from, whole, "a host lacks its name");
    const char *may_have = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    if (strlen(word) >= HOSTS_NAME || strchr("-.", *word) || word[strspn(word, may_have)])
        return refuse(from, whole, "no name of a host, which has letters, digits, '.', '-', '_'; "
                      "h1:4 has 4 workers on h1; a file has a name per line");
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->host[i].name, word)) return refuse(from, whole, "it is named twice");
    if (l->n == HOSTS_MOST)
        return base_fail(TRI_USAGE, "%s: more than %d hosts", from, HOSTS_MOST);
    struct named_host *to = &l->host[l->n++];
    base_format(to->name, sizeof to->name, "%s", word);
    to->workers = (int)workers;
    return TRI_OK;
}

static tri_status read_words(struct host_list *l, const char *from, char *text, const char *by) {
    tri_status status = TRI_OK;
    for (char *next = text, *word; !status && (word = strsep(&next, by));)
        if (*word || *by == ',') status = add(l, from, word);
    return status;
}

/* ---- MindSpore's rank table ---- */

#define RANKS (HOSTS_MOST * CREW_MOST_WORKERS)

/* A number is a text there. */
static long number_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    const char *text = json_string_value(value);
    char *end = NULL;
    const long n = text ? strtol(text, &end, 10) : (long)json_integer_value(value);
    return n >= 0 && n <= RANKS && (text ? end > text && !*end : json_is_integer(value)) ? n : -1;
}

/* A worker for each device. Ranks are only checked: they do not matter here. */
static tri_status add_server(struct host_list *l, const char *path, const json_t *server,
                             bool has[RANKS + 1]) {
    char word[HOSTS_NAME + 16];
    const json_t *devices = json_object_get(server, "device");
    const size_t n = json_array_size(devices);
    for (size_t i = 0; i < n; i++) {
        const long rank = number_of(json_array_get(devices, i), "rank_id");
        if (rank < 0 || has[rank])
            return base_fail(TRI_USAGE, "%s: server %s: rank_id %ld: %s", path,
                             json_text_of(server, "server_id"), rank,
                             rank < 0 ? "a device lacks it" : "another device has it, too");
        has[rank] = true;
    }
    base_format(word, sizeof word, "%.63s:%zu", json_text_of(server, "server_id"), n);
    return add(l, path, word);
}

static tri_status read_table(FILE *f, const char *path, struct host_list *l) {
    json_error_t error;
    json_t *root = json_loadf(f, 0, &error);
    if (!root) return base_fail(TRI_USAGE, "%s: line %d: %s", path, error.line, error.text);
    const json_t *servers = json_object_get(root, "server_list");
    const long said = number_of(root, "server_count"), n = (long)json_array_size(servers);
    bool *has = calloc(RANKS + 1, sizeof *has);
    tri_status status = has ? TRI_OK : base_no_memory("a rank table");
    if (!status && !json_is_array(servers))
        status = base_fail(TRI_USAGE, "%s: a rank table of version 1.0 has a server_list", path);
    if (!status && said >= 0 && said != n)
        status = base_fail(TRI_USAGE, "%s: server_count is %ld, but server_list has %ld", path,
                           said, n);
    for (long i = 0; i < n && !status; i++)
        status = add_server(l, path, json_array_get(servers, (size_t)i), has);
    free(has);
    json_decref(root);
    return status;
}

/* ---- files ---- */

static bool is_table(FILE *f) {
    int c;
    while ((c = getc(f)) == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    rewind(f);
    return c == '{';
}

static tri_status read_lines(FILE *f, const char *path, struct host_list *l) {
    char *line = NULL;
    size_t room = 0;
    tri_status status = TRI_OK;
    while (!status && getline(&line, &room, f) >= 0) {
        line[strcspn(line, "#")] = 0;
        status = read_words(l, path, line, " \t\r\n");
    }
    if (!status && ferror(f)) status = base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
    free(line);
    return status;
}

static tri_status read_file(const char *path, struct host_list *l) {
    FILE *f = fopen(path, "r");
    if (!f) return base_fail(TRI_USAGE, "--hosts %s: %s", path, strerror(errno));
    tri_status status = (is_table(f) ? read_table : read_lines)(f, path, l);
    fclose(f);
    if (!status && !l->n) status = base_fail(TRI_USAGE, "%s names no host", path);
    return status;
}

tri_status host_list_read(const char *text, struct host_list *out) {
    *out = (struct host_list){0};
    struct stat is;
    if (strchr(text, '/')) return read_file(text, out);
    if (!stat(text, &is) && S_ISREG(is.st_mode))
        return base_fail(TRI_USAGE, "--hosts %s: this is a file here; --hosts ./%s reads the names "
                         "in it", text, text);
    char *copy = strdup(text);
    if (!copy) return base_no_memory("the names of hosts");
    tri_status status = read_words(out, "--hosts NAMES", copy, ",");
    free(copy);
    return status;
}

bool host_list_is_here(const char *name) {
    char own[HOSTS_NAME] = "";
    if (gethostname(own, sizeof own - 1)) return false;
    size_t first = strcspn(own, ".");
    return !strcmp(name, own) || !strcmp(name, "localhost") ||
           (strlen(name) == first && !strncmp(name, own, first));
}
