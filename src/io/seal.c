/* SPDX-License-Identifier: Apache-2.0 */
#include "io/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/outfile.h"

#define MAGIC "TRISEAL\n"
#define VERSION 1
#define PIECE 65536
#define LARGEST_PIECE (1 << 24)
#define LENGTH 4 /* bytes, before each piece */
#define MORE crypto_secretstream_xchacha20poly1305_ABYTES

struct header {
    struct label { /* authenticated with every piece */
        char magic[8];
        uint32_t version, piece;
        int64_t step;
        char name[32];
    } label;
    uint8_t fingerprint[16];
    uint8_t stream[crypto_secretstream_xchacha20poly1305_HEADERBYTES];
};
_Static_assert(sizeof(struct label) == 56 && sizeof(struct header) == 96, "as seal.h says");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "headers are written as they lie in memory");

/* ---- keys ---- */

#define DIGITS (2 * SEAL_KEY)

struct seal_key {
    uint8_t byte[SEAL_KEY];
};
_Static_assert(SEAL_KEY == crypto_secretstream_xchacha20poly1305_KEYBYTES, "as seal.h says");

static tri_status begin_library(void) {
    return sodium_init() < 0 ? base_fail(TRI_FAILED, "libsodium cannot be initialised") : TRI_OK;
}

void seal_key_free(struct seal_key *key) { sodium_free(key); }

/* Reads at most `most` bytes. */
static tri_status read_some(const char *path, int fd, char *to, size_t most, size_t *n) {
    ssize_t got = 1;
    for (*n = 0; *n < most && got;) {
        got = read(fd, to + *n, most - *n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
        *n += (size_t)got;
    }
    return TRI_OK;
}

static tri_status check_mode(const char *path, const struct stat *st) {
    if (st->st_mode & (S_IRWXG | S_IRWXO))
        return base_fail(TRI_USAGE,
                         "%s holds a key, but other users may access it (mode %03o): chmod 600 %s",
                         path, (unsigned)st->st_mode & 0777, path);
    return TRI_OK;
}

static tri_status take_key(const char *path, const char *text, size_t n,
                           uint8_t key[SEAL_KEY]) {
    size_t length = 0;
    if (n == SEAL_KEY) {
        memcpy(key, text, n);
        return TRI_OK;
    }
    while (n && strchr("\r\n", text[n - 1])) n--;
    if (n == DIGITS && !sodium_hex2bin(key, SEAL_KEY, text, n, NULL, &length, NULL) &&
        length == SEAL_KEY)
        return TRI_OK;
    return base_fail(TRI_USAGE,
                     "%s is not a key: a key is 32 bytes or %d hexadecimal digits (`trireme ckpt "
                     "key FILE` makes one)",
                     path, (int)DIGITS);
}

tri_status seal_key_read(const char *path, uint8_t key[SEAL_KEY]) {
    char text[DIGITS + 3]; /* room for a line end; anything longer is not a key */
    size_t n;
    struct stat st;
    int fd = base_open(path, O_RDONLY, &st);
    if (fd < 0) return base_fail(TRI_FAILED, "key %s", tri_message());
    tri_status status = read_some(path, fd, text, sizeof text, &n);
    if (!status) status = take_key(path, text, n, key);
    if (!status) status = check_mode(path, &st);
    close(fd);
    sodium_memzero(text, sizeof text);
    return status;
}

tri_status seal_key_open(const char *path, struct seal_key **out) {
    *out = NULL;
    tri_status status = begin_library();
    if (status) return status;
    struct seal_key *key = sodium_malloc(sizeof *key);
    if (!key) return base_no_memory("a key");
    status = seal_key_read(path, key->byte);
    if (status) seal_key_free(key);
    else *out = key;
    return status;
}

tri_status seal_key_make(const char *path) {
    uint8_t bytes[sizeof(struct seal_key)];
    char text[DIGITS + 1];
    tri_status status = begin_library();
    if (status) return status;
    struct outfile f = {.path = path,
                        .fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
    if (f.fd < 0 && errno == EEXIST)
        return base_fail(TRI_USAGE,
                         "%s exists; without the key in it, files sealed with that key could never "
                         "be read again: name another file",
                         path);
    if (f.fd < 0) return base_fail(TRI_FAILED, "%s: can't create: %s", path, strerror(errno));
    sha256_begin(&f.hash);
    randombytes_buf(bytes, sizeof bytes);
    sodium_bin2hex(text, sizeof text, bytes, sizeof bytes);
    status = outfile_write(&f, text, DIGITS);
    if (!status) status = outfile_write(&f, "\n", 1);
    status = outfile_close(&f, status, NULL);
    sodium_memzero(bytes, sizeof bytes);
    sodium_memzero(text, sizeof text);
    sodium_memzero(&f, sizeof f); /* the hash has seen it */
    return status;
}

/* Reveals nothing about the key. */
static void fingerprint(const struct seal_key *key, uint8_t out[16]) {
    static const char about[] = "trireme key";
    crypto_generichash(out, 16, (const uint8_t *)about, strlen(about), key->byte, sizeof key->byte);
}

/* ---- writing ---- */

struct sealing {
    crypto_secretstream_xchacha20poly1305_state stream;
    struct label label;
    struct seal_sink sink;
    size_t held; /* bytes in `plain` */
    uint8_t plain[PIECE];
    uint8_t sealed[LENGTH + PIECE + MORE];
};

tri_status sealing_begin(const struct seal *seal, const struct seal_sink *sink,
                         struct sealing **out) {
    struct header h = {.label = {.version = VERSION, .piece = PIECE, .step = seal->step}};
    *out = NULL;
    CHECK(strlen(seal->name) <= sizeof h.label.name);
    memcpy(h.label.magic, MAGIC, sizeof h.label.magic);
    memcpy(h.label.name, seal->name, strlen(seal->name));
    tri_status status = begin_library();
    if (status) return status;
    struct sealing *s = malloc(sizeof *s);
    if (!s) return base_no_memory(seal->name);
    fingerprint(seal->key, h.fingerprint);
    crypto_secretstream_xchacha20poly1305_init_push(&s->stream, h.stream, seal->key->byte);
    s->label = h.label;
    s->sink = *sink;
    s->held = 0;
    status = sink->put(sink->to, &h, sizeof h);
    if (status)
        sealing_free(s);
    else
        *out = s;
    return status;
}

static tri_status put_piece(struct sealing *s, uint8_t tag) {
    const uint32_t n = (uint32_t)s->held;
    memcpy(s->sealed, &n, LENGTH);
    crypto_secretstream_xchacha20poly1305_push(&s->stream, s->sealed + LENGTH, NULL, s->plain,
                                               s->held, (const uint8_t *)&s->label, sizeof s->label,
                                               tag);
    s->held = 0;
    return s->sink.put(s->sink.to, s->sealed, LENGTH + n + MORE);
}

tri_status sealing_add(struct sealing *s, const void *data, size_t bytes) {
    const char *p = data;
    tri_status status = TRI_OK;
    while (bytes && !status) {
        if (s->held == PIECE)
            status = put_piece(s, crypto_secretstream_xchacha20poly1305_TAG_MESSAGE);
        size_t n = bytes < PIECE - s->held ? bytes : PIECE - s->held;
        memcpy(s->plain + s->held, p, n);
        s->held += n;
        p += n;
        bytes -= n;
    }
    return status;
}

tri_status sealing_finish(struct sealing *s) {
    return put_piece(s, crypto_secretstream_xchacha20poly1305_TAG_FINAL);
}

void sealing_free(struct sealing *s) {
    if (!s) return;
    sodium_memzero(&s->stream, sizeof s->stream);
    free(s);
}

/* ---- reading ---- */

bool seal_is(const void *data, size_t bytes) {
    return bytes >= strlen(MAGIC) && !memcmp(data, MAGIC, strlen(MAGIC));
}

struct opening {
    const char *path;
    crypto_secretstream_xchacha20poly1305_state stream;
    struct header header;
    bool other_key;
    char *data;
    size_t at, bytes; /* of the file */
    /* decrypted bytes, at the start of the same memory: always before the read position */
    size_t done;
    uint8_t *plain;   /* one piece */
};

static tri_status cut_short(const struct opening *o) {
    return base_fail(TRI_FAILED,
                     "%s is truncated: it ends at offset %zu, before the end of its last piece",
                     o->path, o->bytes);
}

static tri_status damaged(const struct opening *o, size_t at) {
    return base_fail(TRI_FAILED, "%s is damaged: the data at offset %zu is not what was sealed",
                     o->path, at);
}

/* The fingerprint is checked only if a piece does not open, since it may be damaged too. */
static tri_status open_piece(struct opening *o, bool *last) {
    uint32_t n;
    uint8_t tag;
    if (o->bytes - o->at < LENGTH + MORE) return cut_short(o);
    memcpy(&n, o->data + o->at, LENGTH);
    if (n > o->header.label.piece) return damaged(o, o->at);
    if (o->bytes - o->at < LENGTH + n + MORE) return cut_short(o);
    if (crypto_secretstream_xchacha20poly1305_pull(
            &o->stream, o->plain, NULL, &tag, (const uint8_t *)o->data + o->at + LENGTH, n + MORE,
            (const uint8_t *)&o->header.label, sizeof o->header.label)) {
        if (!o->done && o->other_key)
            return base_fail(TRI_USAGE, "%s was sealed with another key",
                             o->path);
        return damaged(o, o->at);
    }
    *last = tag == crypto_secretstream_xchacha20poly1305_TAG_FINAL;
    o->at += LENGTH + n + MORE;
    memcpy(o->data + o->done, o->plain, n);
    o->done += n;
    return TRI_OK;
}

static tri_status open_header(struct opening *o, const struct seal *seal) {
    uint8_t own[sizeof o->header.fingerprint];
    const struct label *l = &o->header.label;
    if (!seal_is(o->data, o->bytes))
        return base_fail(TRI_FAILED, "%s is not a sealed file", o->path);
    if (o->bytes < sizeof o->header) return cut_short(o);
    memcpy(&o->header, o->data, sizeof o->header);
    o->at = sizeof o->header;
    if (l->version != VERSION)
        return base_fail(TRI_FAILED, "%s is sealed in version %u; this program reads %d", o->path,
                         (unsigned)l->version, VERSION);
    if (!l->piece || l->piece > LARGEST_PIECE) return damaged(o, offsetof(struct label, piece));
    fingerprint(seal->key, own);
    o->other_key = memcmp(own, o->header.fingerprint, sizeof own);
    if (crypto_secretstream_xchacha20poly1305_init_pull(&o->stream, o->header.stream,
                                                        seal->key->byte))
        return damaged(o, offsetof(struct header, stream));
    o->plain = malloc(l->piece);
    return o->plain ? TRI_OK : base_no_memory(o->path);
}

/* Checks the name and step, which the pieces have authenticated. */
static tri_status check_label(const struct opening *o, const struct seal *seal) {
    const struct label *l = &o->header.label;
    bool other = seal->name && strncmp(seal->name, l->name, sizeof l->name);
    if (o->other_key) return damaged(o, offsetof(struct header, fingerprint));
    if (!other && (seal->step < 0 || seal->step == l->step)) return TRI_OK;
    return base_fail(TRI_FAILED, "%s was sealed as %.*s of step %lld: it does not belong here",
                     o->path, (int)sizeof l->name, l->name, (long long)l->step);
}

tri_status seal_open(const char *path, const struct seal *seal, char *data, size_t *bytes) {
    struct opening o = {.path = path, .data = data, .bytes = *bytes};
    bool last = false;
    tri_status status = begin_library();
    if (!status) status = open_header(&o, seal);
    while (!status && !last) status = open_piece(&o, &last);
    if (!status && o.at < o.bytes)
        status = base_fail(TRI_FAILED, "%s is damaged: %zu bytes follow its end", path,
                           o.bytes - o.at);
    if (!status) status = check_label(&o, seal);
    free(o.plain);
    sodium_memzero(&o.stream, sizeof o.stream);
    *bytes = o.done;
    return status;
}

tri_status seal_read(const char *path, const struct seal *seal, char **data, size_t *bytes) {
    tri_status status = base_read_file(path, data, bytes);
    if (!status) status = seal_open(path, seal, *data, bytes);
    if (!status) return TRI_OK;
    free(*data);
    *data = NULL;
    return status;
}
