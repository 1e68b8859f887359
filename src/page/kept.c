/* SPDX-License-Identifier: Apache-2.0 */
#include "page/kept.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ANSWERS 64
#define BYTES (32 << 20) /* of all answers */
#define LARGEST (8 << 20) /* of one that is kept */
#define CURVES 64        /* of at most 0.5 MB each */

/* ---- answers ---- */

static struct answer {
    char *address; /* null: there is none */
    struct text body;
    const char *type;
    int64_t version;
} answers[ANSWERS];

static size_t next, bytes; /* next: that which is replaced next, as it is the oldest */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all these */

static void forget(struct answer *k) {
    bytes -= k->body.size;
    free(k->address);
    text_free(&k->body);
    *k = (struct answer){0};
}

/* An answer of another version is forgotten. */
static const struct answer *find(const char *address, int64_t version) {
    for (size_t i = 0; i < ANSWERS; i++) {
        if (!answers[i].address || strcmp(answers[i].address, address)) continue;
        if (answers[i].version == version) return &answers[i];
        forget(&answers[i]);
    }
    return NULL;
}

bool kept_find(const char *address, int64_t version, struct http_answer *a) {
    pthread_mutex_lock(&lock);
    const struct answer *k = find(address, version);
    if (k) {
        text_add_bytes(&a->body, k->body.data, k->body.size);
        a->type = k->type;
    }
    pthread_mutex_unlock(&lock);
    return k;
}

void kept_add(const char *address, int64_t version, const struct http_answer *a) {
    struct answer k = {.address = strdup(address), .type = a->type, .version = version};
    if (!k.address || !a->body.size || a->body.size > LARGEST) {
        free(k.address);
        return;
    }
    text_add_bytes(&k.body, a->body.data, a->body.size);
    pthread_mutex_lock(&lock);
    if (k.body.failed || find(address, version)) {
        free(k.address);
        text_free(&k.body);
    } else {
        do forget(&answers[next++ % ANSWERS]);
        while (bytes + k.body.size > BYTES);
        answers[(next - 1) % ANSWERS] = k;
        bytes += k.body.size;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- curves ---- */

static struct scan {
    char *directory, *key; /* null: there is none */
    struct curves curves;
    int64_t used;
} scans[CURVES];

static void forget_scan(struct scan *s) {
    free(s->directory);
    free(s->key);
    curves_free(&s->curves);
    *s = (struct scan){0};
}

tri_status kept_curves(const char *directory, const char *key, const struct curves **c) {
    static int64_t uses;
    struct scan *s = NULL, *oldest = scans;
    for (struct scan *at = scans; at < scans + CURVES; at++) {
        if (at->directory && !strcmp(at->directory, directory) && !strcmp(at->key, key)) s = at;
        if (at->used < oldest->used) oldest = at;
    }
    if (!s) {
        forget_scan(s = oldest);
        s->directory = strdup(directory);
        s->key = strdup(key);
    }
    s->used = ++uses;
    *c = &s->curves;
    tri_status status = s->directory && s->key ? curves_read(&s->curves, directory, key)
                                               : base_no_memory("a curve");
    if (status) forget_scan(s);
    return status == TRI_USAGE ? TRI_OK : status;
}

void kept_free(void) {
    for (size_t i = 0; i < ANSWERS; i++) forget(&answers[i]);
    for (size_t i = 0; i < CURVES; i++) forget_scan(&scans[i]);
}
