/* SPDX-License-Identifier: Apache-2.0
 * Sealed files and their keys: the content comes back only with the same key and as the same file;
 * each kind of damage is reported. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "io/outfile.h"
#include "unit/scratch.h"

#define HEADER 96
#define PIECE 65536
#define AROUND 21 /* bytes of a piece besides its content */

static struct seal_key *key, *other;

static void put(const char *name, const void *data, size_t bytes, mode_t mode) {
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(at(name), mode), 0);
}

static int make_keys(void **state) {
    if (make_directory(state)) return -1;
    struct seal_key **keys[] = {&key, &other};
    for (int i = 0; i < 2; i++)
        if (seal_key_make(at("key")) || seal_key_open(at("key"), keys[i]) || unlink(at("key")))
            return -1;
    return 0;
}

static int drop_keys(void **state) {
    seal_key_free(key);
    seal_key_free(other);
    return remove_directory(state);
}

/* Seals a file of step 7 as "model"; the caller frees *file. */
static size_t sealed(const char *data, size_t bytes, size_t at_a_time, char **file) {
    const struct seal seal = {key, "model", 7};
    struct outfile f;
    size_t n;
    char hex[65];
    assert_int_equal(outfile_open(&f, at("sealed"), &seal), TRI_OK);
    for (size_t i = 0; i < bytes; i += at_a_time)
        assert_int_equal(outfile_write(&f, data + i, bytes - i < at_a_time ? bytes - i : at_a_time),
                         TRI_OK);
    assert_int_equal(outfile_close(&f, TRI_OK, hex), TRI_OK);
    assert_int_equal(base_read_file(at("sealed"), file, &n), TRI_OK);
    assert_int_equal(n, f.bytes);
    struct sha256 h;
    char again[65];
    sha256_begin(&h);
    sha256_add(&h, *file, n);
    sha256_end_hex(&h, again);
    assert_string_equal(hex, again);
    return n;
}

static tri_status opened(const struct seal *seal, const char *file, size_t bytes, char **data,
                         size_t *n) {
    *data = malloc(bytes + 1);
    assert_non_null(*data);
    memcpy(*data, file, bytes);
    *n = bytes;
    return seal_open("it", seal, *data, n);
}

static tri_status fails(const struct seal *seal, const char *file, size_t bytes) {
    char *data;
    size_t n;
    tri_status status = opened(seal, file, bytes, &data, &n);
    free(data);
    return status;
}

static const struct seal *right(void) {
    static struct seal seal = {.name = "model", .step = 7};
    seal.key = key;
    return &seal;
}

static void comes_back(void **state) {
    (void)state;
    static const size_t sizes[] = {0,     1,         1000,      PIECE - 1,
                                   PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 7};
    static char plain[3 * PIECE + 7];
    for (size_t i = 0; i < sizeof plain; i++) plain[i] = (char)(i * 31 >> 3);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        char *file, *data;
        size_t bytes = sealed(plain, sizes[i], i % 2 ? 777 : 2 * PIECE + 5, &file), n;
        size_t pieces = sizes[i] ? (sizes[i] + PIECE - 1) / PIECE : 1;
        assert_int_equal(bytes, HEADER + sizes[i] + pieces * AROUND);
        assert_int_equal(opened(right(), file, bytes, &data, &n), TRI_OK);
        assert_int_equal(n, sizes[i]);
        assert_memory_equal(data, plain, n);
        if (n >= 1000) assert_null(memmem(file, bytes, plain, 16));
        free(data);
        free(file);
    }
}

static void twice_is_not_the_same(void **state) {
    (void)state;
    char *a, *b;
    size_t n = sealed("hello", 5, 5, &a);
    sealed("hello", 5, 5, &b);
    assert_memory_not_equal(a + HEADER, b + HEADER, n - HEADER);
    free(a);
    free(b);
}

/* Any single bit of the file. Damage to the first bytes has other messages. */
static void flipped_bits(void **state) {
    (void)state;
    char *file;
    size_t bytes = sealed("some weights", 12, 12, &file);
    for (size_t i = 0; i < 8 * bytes; i++) {
        file[i / 8] = (char)(file[i / 8] ^ 1 << i % 8);
        assert_int_equal(fails(right(), file, bytes), TRI_FAILED);
        file[i / 8] = (char)(file[i / 8] ^ 1 << i % 8);
        if (i / 8 < 8)
            assert_message("is not a sealed file");
        else if (i / 8 < 12)
            assert_message("in version");
        else if (i / 8 < HEADER || i / 8 >= HEADER + 4) /* a length may point beyond the end */
            assert_message("it is damaged: the data at offset");
    }
    assert_int_equal(fails(right(), file, bytes), TRI_OK);
    free(file);
}

static void cut_short(void **state) {
    (void)state;
    static char plain[2 * PIECE + 100];
    char *file;
    size_t bytes = sealed(plain, sizeof plain, sizeof plain, &file);
    for (size_t n = 0; n < bytes; n += n > 200 && n < bytes - 200 ? 997 : 1) {
        assert_int_equal(fails(right(), file, n), TRI_FAILED);
        assert_message(n < 8 ? "is not a sealed file" : "is truncated");
    }
    for (int i = 1; i < 3; i++) { /* whole pieces */
        assert_int_equal(fails(right(), file, HEADER + (size_t)i * (PIECE + AROUND)), TRI_FAILED);
        assert_message("is truncated");
    }
    file = realloc(file, bytes + 3);
    assert_non_null(file);
    memset(file + bytes, 0, 3);
    assert_int_equal(fails(right(), file, bytes + 3), TRI_FAILED);
    assert_message("3 bytes follow its end");
    free(file);
}

static void pieces_in_another_order(void **state) {
    (void)state;
    static char plain[3 * PIECE], piece[PIECE + AROUND];
    char *file;
    size_t bytes = sealed(plain, sizeof plain, sizeof plain, &file);
    char *first = file + HEADER, *second = first + sizeof piece;
    memcpy(piece, first, sizeof piece);
    memcpy(first, second, sizeof piece);
    assert_int_equal(fails(right(), file, bytes), TRI_FAILED); /* the second twice */
    memcpy(second, piece, sizeof piece);
    assert_int_equal(fails(right(), file, bytes), TRI_FAILED);
    memcpy(first, piece, sizeof piece);
    assert_int_equal(fails(right(), file, bytes), TRI_FAILED);
    assert_message("damaged: the data at offset 65653");
    free(file);
}

static void another_key(void **state) {
    (void)state;
    char *file;
    size_t bytes = sealed("some weights", 12, 12, &file);
    struct seal wrong = *right();
    wrong.key = other;
    assert_int_equal(fails(&wrong, file, bytes), TRI_USAGE);
    assert_message("it was sealed with another key");
    free(file);
}

static void under_anothers_name(void **state) {
    (void)state;
    char *file;
    size_t bytes = sealed("some weights", 12, 12, &file);
    const struct {
        struct seal seal;
        tri_status status;
    } as[] = {{{key, "model", 7}, TRI_OK},         {{key, NULL, -1}, TRI_OK},
              {{key, "model", -1}, TRI_OK},        {{key, "model", 8}, TRI_FAILED},
              {{key, "optimizer", 7}, TRI_FAILED}, {{key, "mode", 7}, TRI_FAILED}};
    for (size_t i = 0; i < COUNT(as); i++) {
        assert_int_equal(fails(&as[i].seal, file, bytes), as[i].status);
        if (as[i].status)
            assert_message("it was sealed as model of step 7: it does not belong here");
    }
    free(file);
}

/* ---- key files ---- */

#define HEX "00112233445566778899aabbccddeeffFFEEDDCCBBAA99887766554433221100"

static void key_files(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
        mode_t mode;
        tri_status status;
        const char *said;
    } rows[] = {
        {HEX, 64, 0600, TRI_OK, NULL},
        {HEX "\n", 65, 0400, TRI_OK, NULL},
        {HEX "\r\n", 66, 0600, TRI_OK, NULL},
        {HEX, 32, 0600, TRI_OK, NULL}, /* any 32 bytes are a key */
        {"", 0, 0600, TRI_USAGE, "is not a key: a key is 32 bytes or 64 hexadecimal digits"},
        {HEX, 63, 0600, TRI_USAGE, "is not a key"},
        {HEX "0", 65, 0600, TRI_USAGE, "is not a key"},
        {HEX HEX, 128, 0600, TRI_USAGE, "is not a key"},
        {"x" HEX, 64, 0600, TRI_USAGE, "is not a key"},
        {HEX, 64, 0640, TRI_USAGE,
         "holds a key, but other users may access it (mode 640): chmod 600"},
        {HEX, 64, 0602, TRI_USAGE, "other users may access it"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct seal_key *k;
        put("given", rows[i].text, rows[i].bytes, rows[i].mode);
        uint8_t raw[SEAL_KEY];
        assert_int_equal(seal_key_read(at("given"), raw), rows[i].status);
        assert_int_equal(seal_key_open(at("given"), &k), rows[i].status);
        if (rows[i].said) assert_message(rows[i].said);
        assert_null(strstr(tri_message(), "0011223344"));
        assert_true(!k == !!rows[i].status);
        seal_key_free(k);
    }
    struct seal_key *k;
    assert_int_equal(seal_key_open(at("missing"), &k), TRI_FAILED);
    assert_message("missing: No such file");
    assert_int_equal(seal_key_open(directory, &k), TRI_FAILED);
}

/* The digits give the same key as the bytes. */
static void digits_and_bytes(void **state) {
    (void)state;
    static const char bytes[] = "0123456789abcdefghijklmnopqrstuv";
    char digits[65], *file;
    struct seal_key *kept = key, *as_digits;
    uint8_t raw[SEAL_KEY];
    for (int i = 0; i < 32; i++) snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
    put("bytes", bytes, 32, 0600);
    put("digits", digits, 64, 0600);
    assert_int_equal(seal_key_open(at("bytes"), &key), TRI_OK);
    assert_int_equal(seal_key_open(at("digits"), &as_digits), TRI_OK);
    for (int i = 0; i < 2; i++) {
        memset(raw, 0, sizeof raw);
        assert_int_equal(seal_key_read(at(i ? "digits" : "bytes"), raw), TRI_OK);
        assert_memory_equal(raw, bytes, sizeof raw);
    }
    size_t n = sealed("x", 1, 1, &file);
    seal_key_free(key);
    key = as_digits;
    assert_int_equal(fails(right(), file, n), TRI_OK);
    seal_key_free(key);
    key = kept;
    free(file);
}

static void new_keys(void **state) {
    (void)state;
    struct stat st;
    struct seal_key *k;
    char *first, *again;
    size_t n;
    umask(0);
    assert_int_equal(seal_key_make(at("new")), TRI_OK);
    assert_int_equal(stat(at("new"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(seal_key_open(at("new"), &k), TRI_OK);
    seal_key_free(k);
    assert_int_equal(base_read_file(at("new"), &first, &n), TRI_OK);
    assert_int_equal(seal_key_make(at("new")), TRI_USAGE);
    assert_message(" exists; without the key");
    assert_int_equal(base_read_file(at("new"), &again, &n), TRI_OK);
    assert_string_equal(first, again);
    free(first);
    free(again);
    assert_int_equal(seal_key_make(at("no/such/place")), TRI_FAILED);
    assert_message("can't create");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),        cmocka_unit_test(twice_is_not_the_same),
        cmocka_unit_test(flipped_bits),      cmocka_unit_test(cut_short),
        cmocka_unit_test(pieces_in_another_order), cmocka_unit_test(another_key),
        cmocka_unit_test(under_anothers_name), cmocka_unit_test(key_files),
        cmocka_unit_test(digits_and_bytes),  cmocka_unit_test(new_keys),
    };
    return cmocka_run_group_tests_name("seal", tests, make_keys, drop_keys);
}
