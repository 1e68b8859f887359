/* SPDX-License-Identifier: Apache-2.0
 * trireme pack: makes tar archives from pictures in folders, several at a time. */
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/permute.h"
#include "base/host.h"
#include "base/random.h"
#include "cli/cli.h"
#include "cli/pack_shard.h"
#include "data/data.h"
#include "io/outfile.h"

#define MOST_THREADS 256
#define SIZE (INT64_C(256) << 20) /* largest archive without --size */
#define MOST_SHARDS 1000000

struct own {
    const char *out;
    int64_t samples, size, threads, max_bad;
    uint64_t seed;
    bool no_shuffle;
};

/* ---- the order of samples ---- */

static uint64_t *make_order(const tri_data *d, const struct own *own) {
    struct permutation p;
    uint64_t *order = malloc((size_t)d->size * sizeof *order);
    if (!order) {
        base_no_memory(d->name);
        return NULL;
    }
    permute_make(random_key(own->seed, base_hash_text("pack")), (uint64_t)d->size, &p);
    if (!own->no_shuffle) permute_fill(&p, 0, (size_t)d->size, order);
    for (int64_t i = 0; own->no_shuffle && i < d->size; i++) order[i] = (uint64_t)i;
    return order;
}

/* Divides the order into archives of own->samples samples, or of at most own->size bytes.
 * *begin[*shards + 1]: the first place of each. */
static tri_status divide(const tri_data *d, const struct own *own, const uint64_t *order,
                         int64_t **begin, int64_t *shards) {
    size_t capacity = 0, n = 0;
    int64_t bytes = 0, first = 0;
    *begin = NULL;
    for (int64_t i = 0; i < d->size; i++) {
        int64_t file = own->samples ? 0 : d->about.file_bytes(d->user, (int64_t)order[i]);
        file = (file + 511) / 512 * 512 + 3 * 512; /* with two headers and the class */
        bool full = i && (own->samples ? i - first == own->samples : bytes + file > own->size);
        if (!i || full) {
            if (!ARRAY_GROW(*begin, n, capacity)) return base_no_memory(d->name);
            (*begin)[n++] = first = i;
            bytes = 2 * 512; /* the end of the archive */
        }
        bytes += file;
    }
    *shards = (int64_t)n;
    if (!ARRAY_GROW(*begin, n, capacity)) return base_no_memory(d->name);
    (*begin)[n] = d->size;
    return TRI_OK;
}

/* ---- names ---- */

/* The place of "%d" or "%06d" in the pattern; null unless there is exactly one. */
static const char *find_number(const char *pattern, int *digits, const char **rest) {
    const char *at = strchr(pattern, '%'), *p = at ? at + 1 : NULL;
    *digits = 1;
    if (p && *p == '0' && isdigit((unsigned char)p[1])) {
        *digits = p[1] - '0';
        p += 2;
    }
    if (!p || *p != 'd' || strchr(p, '%')) return NULL;
    *rest = p + 1;
    return at;
}

static tri_status name_shards(struct pack *p, const char *pattern) {
    int digits;
    const char *rest, *at = find_number(pattern, &digits, &rest);
    p->name = calloc((size_t)p->shards, sizeof *p->name);
    if (!p->name) return base_no_memory(pattern);
    if (!at)
        return base_fail(TRI_USAGE, "-o %s: expected a name with %%06d in place of the number: -o "
                         "out-%%06d.tar", pattern);
    if (p->shards > MOST_SHARDS)
        return base_fail(TRI_USAGE, "%lld archives are more than %d: make them larger (--size, "
                         "--samples)", (long long)p->shards, MOST_SHARDS);
    for (int64_t i = 0; i < p->shards; i++) {
        text_add(&p->name[i], "%.*s%0*lld%s", (int)(at - pattern), pattern, digits, (long long)i,
                 rest);
        if (p->name[i].failed) return base_no_memory(pattern);
    }
    return TRI_OK;
}

/* ---- archives that exist ---- */

/* The number in an archive's name; -1 if the name does not fit the pattern. */
static int64_t number_of(const char *name, const char *pattern) {
    int digits;
    char *end = NULL;
    const char *rest, *at = find_number(pattern, &digits, &rest);
    struct text expected = {0};
    long long n = strtoll(name + (at - pattern), &end, 10);
    text_add(&expected, "%.*s%0*lld%s", (int)(at - pattern), pattern, digits, n, rest);
    bool same = !expected.failed && !strcmp(expected.data, name);
    text_free(&expected);
    return same ? n : -1;
}

/* Adds a text with glob's special characters escaped. */
static void add_literal(struct text *t, const char *from, const char *to) {
    for (; from < to; from++) text_add(t, "%s%c", strchr("*?[\\", *from) ? "\\" : "", *from);
}

/* Refuses archives of an earlier packing whose numbers follow those to be made: a pattern would
 * match both, and the pictures of the earlier ones would be read twice. */
static tri_status refuse_surplus(const struct pack *p, const char *pattern) {
    int digits;
    const char *rest, *at = find_number(pattern, &digits, &rest), *first = NULL;
    struct text all = {0};
    glob_t found = {0};
    long long surplus = 0;
    add_literal(&all, pattern, at);
    text_add(&all, "[0-9]*");
    add_literal(&all, rest, rest + strlen(rest));
    int code = all.failed ? GLOB_NOSPACE : glob(all.data, 0, NULL, &found);
    text_free(&all);
    if (code == GLOB_NOSPACE) return base_no_memory(pattern);
    for (size_t i = 0; !code && i < found.gl_pathc; i++) {
        if (number_of(found.gl_pathv[i], pattern) < p->shards) continue;
        if (!surplus++) first = found.gl_pathv[i];
    }
    tri_status status = TRI_OK;
    if (surplus)
        status = base_fail(TRI_USAGE, "%s: %lld archives of an earlier packing follow the %lld to "
                           "be made; a pattern for all would read their pictures twice: remove "
                           "them and their .sha256 files, or choose another name (-o)",
                           first, surplus, (long long)p->shards);
    globfree(&found);
    return status;
}

/* Makes the archives' directory, but not its parents. */
static tri_status make_directory(const char *pattern) {
    const char *slash = strrchr(pattern, '/');
    if (!slash || slash == pattern) return TRI_OK;
    char *directory = strndup(pattern, (size_t)(slash - pattern));
    if (!directory) return base_no_memory(pattern);
    tri_status status = TRI_OK;
    if (mkdir(directory, 0777) && errno != EEXIST)
        status = base_fail(TRI_FAILED, "cannot make the directory %s: %s", directory,
                           strerror(errno));
    free(directory);
    return status;
}

/* ---- all archives ---- */

struct packing {
    struct pack *pack;
    atomic_llong next, made;
    pthread_mutex_t lock; /* of the first failure: */
    tri_status status;
    char message[1024];
};

static void *pack_some(void *user) {
    struct packing *w = user;
    struct data_file file = {0};
    tri_status status = TRI_OK;
    for (int64_t i; !status && (i = atomic_fetch_add(&w->next, 1)) < w->pack->shards;) {
        bool made = false;
        status = pack_shard(w->pack, i, &file, &made);
        if (!status && made) atomic_fetch_add(&w->made, 1);
    }
    if (status) {
        atomic_store(&w->next, w->pack->shards);
        pthread_mutex_lock(&w->lock);
        if (!w->status) base_format(w->message, sizeof w->message, "%s", tri_message());
        w->status = status;
        pthread_mutex_unlock(&w->lock);
    }
    free(file.bytes);
    text_free(&file.name);
    return NULL;
}

static tri_status pack_all(struct pack *p, int64_t threads) {
    struct packing w = {.pack = p, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread[MOST_THREADS];
    int n = 0;
    if (!threads) threads = host_cores();
    while (n < threads - 1 && n < MOST_THREADS && n < p->shards - 1 &&
           !pthread_create(&thread[n], NULL, pack_some, &w))
        n++;
    pack_some(&w);
    for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
    if (w.status) return base_fail(w.status, "%s", w.message);
    printf("packed shards=%lld written=%lld samples=%lld bad=%lld bytes=%lld\n",
           (long long)p->shards, (long long)atomic_load(&w.made),
           (long long)atomic_load(&p->samples), (long long)atomic_load(&p->bad),
           (long long)atomic_load(&p->bytes));
    return TRI_OK;
}

/* Syncs the directory, once for all renames. */
static tri_status sync_names(const char *pattern) {
    const char *slash = strrchr(pattern, '/');
    struct text directory = {0};
    text_add(&directory, "%.*s", slash ? (int)(slash - pattern) + 1 : 1, slash ? pattern : ".");
    tri_status status = TRI_OK;
    if (directory.failed)
        status = base_no_memory(pattern);
    else
        status = outfile_sync_directory(directory.data);
    text_free(&directory);
    return status;
}

/* Refuses names that cannot be written, before the first archive is. */
static tri_status check_names(const struct pack *p) {
    char target[4096];
    tri_status status = TRI_OK;
    for (int64_t i = 0; i < p->shards && !status; i++)
        status = outfile_target(p->name[i].data, target);
    return status;
}

static tri_status work(tri_data *d, const struct own *own) {
    struct pack p = {.data = d, .max_bad = own->max_bad};
    int64_t *begin = NULL;
    uint64_t *order = NULL;
    tri_status status = TRI_OK;
    if (!d->about.file || !d->about.label)
        status = base_fail(TRI_USAGE, "data %s does not consist of files with classes: expected "
                           "images:DIR", d->name);
    if (!status && !(order = make_order(d, own))) status = TRI_FAILED;
    if (!status) status = divide(d, own, order, &begin, &p.shards);
    p.order = order;
    p.begin = begin;
    if (!status) status = name_shards(&p, own->out);
    if (!status) status = refuse_surplus(&p, own->out);
    if (!status) status = make_directory(own->out);
    if (!status) status = check_names(&p);
    if (!status) status = pack_all(&p, own->threads);
    if (!status) status = sync_names(own->out);
    for (int64_t i = 0; p.name && i < p.shards; i++) text_free(&p.name[i]);
    free(p.name);
    free(begin);
    free(order);
    return status;
}

/* ---- the command ---- */

static const struct option_row rows[] = {
    {"-o", "PATTERN", "names of the archives, with %06d for their number: "
                      "out-%06d.tar", OWN(option_text, out)},
    {"--samples", "N", "pictures per archive, instead of --size", OWN(option_count, samples)},
    {"--size", "SIZE", "largest size of an archive: 100M, 1G (default: 256M)",
     OWN(option_size, size)},
    {"--shuffle", "on|off", "shuffle the pictures; off keeps the order of folders (default: on)",
     OWN(option_off, no_shuffle)},
    {"--seed", "N", "seed of the order (default: 0)", OWN(option_seed, seed)},
    {"--threads", "T", "archives made at the same time (default: one per core)",
     OWN(option_count, threads)},
    {"--max-bad", "N",
     "leave out at most N files that are not pictures or cannot be read (default: 10)",
     OWN(option_count, max_bad)},
    {0},
};

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {.size = SIZE, .max_bad = PICTURES_MAX_BAD};
    struct option_set sets[] = {{c->rows, &own}, {0}};
    if (options_take(sets, USE_ALL, false, &argc, argv)) return cli_fail();
    if (argc != 2 || !own.out) {
        base_fail(TRI_USAGE, "pack takes one SPEC and the names of the archives: trireme pack "
                  "images:DIR -o out-%%06d.tar");
        return cli_fail();
    }
    tri_data *d = tri_data_open(argv[1], NULL, 1);
    if (!d) return cli_fail();
    tri_status status = work(d, &own);
    tri_data_free(d);
    return status ? cli_fail() : TRI_OK;
}

const struct command command_pack = {
    .name = "pack",
    .arguments = "SPEC -o PATTERN [options]",
    .help = "make tar archives from pictures in folders",
    .rows = rows,
    .run = run,
};
