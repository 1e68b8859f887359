/* SPDX-License-Identifier: Apache-2.0
 * Hashes and safetensors files: round trips, bytes written by hand, each kind of damage. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <dirent.h>
#include <signal.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/safetensors.h"
#include "io/sha256.h"

static char directory[64];

static int make_directory(void **state) {
    (void)state;
    strcpy(directory, "/tmp/trireme-io-XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static int files(bool delete) {
    int n = 0;
    char path[512];
    DIR *d = opendir(directory);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
        if (delete) assert_int_equal(remove(path), 0);
        n++;
    }
    closedir(d);
    return n;
}

static int remove_directory(void **state) {
    (void)state;
    files(true);
    return rmdir(directory);
}

static const char *at(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void assert_message(const char *part) {
    if (!strstr(tri_message(), part) || strchr(tri_message(), '\n'))
        fail_msg("the message is \"%s\", which lacks \"%s\"", tri_message(), part);
}

/* ---- SHA-256 ---- */

static void sha256_vectors(void **state) {
    (void)state;
    static const char *const vectors[][2] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < COUNT(vectors); i++) {
        struct sha256 h;
        char hex[65];
        sha256_begin(&h);
        sha256_add(&h, vectors[i][0], strlen(vectors[i][0]));
        sha256_end_hex(&h, hex);
        assert_string_equal(hex, vectors[i][1]);
    }
}

static void sha256_in_pieces(void **state) {
    (void)state;
    char a[997], hex[65];
    memset(a, 'a', sizeof a);
    struct sha256 h;
    sha256_begin(&h);
    for (size_t left = 1000000, n = 1; left; left -= n, n = n % sizeof a + 1) {
        if (n > left) n = left;
        sha256_add(&h, a, n);
    }
    sha256_end_hex(&h, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* ---- safetensors ---- */

static const float f32[6] = {1, -2, 3.5f, 0, 1e-30f, 1e30f};
static const uint16_t half[2] = {0x3c00, 0xc000};
static const int32_t i32[1] = {-7};
static const int64_t i64[2] = {INT64_MIN, 42};
static const uint8_t u8[3] = {0, 128, 255}, boolean[2] = {1, 0};

static const struct safetensors_entry all[] = {
    {"z.weight", {TRI_F32, {2, {2, 3}}}, f32},
    {"odd", {TRI_U8, {1, {3}}}, u8},
    {"a \"quoted\"\n\xc3\xa9", {TRI_I64, {1, {2}}}, i64},
    {"bf16", {TRI_BF16, {2, {1, 2}}}, half},
    {"f16", {TRI_F16, {1, {2}}}, half},
    {"scalar", {TRI_I32, {0, {0}}}, i32},
    {"none", {TRI_F32, {3, {4, 0, 5}}}, NULL},
    {"flags", {TRI_BOOL, {1, {2}}}, boolean},
};

static void round_trip(void **state) {
    (void)state;
    const struct safetensors_pair pairs[] = {{"step", "12"}, {"format", "pt"}};
    assert_int_equal(safetensors_write(at("all"), all, COUNT(all), pairs, 2), TRI_OK);
    assert_int_equal(files(false), 1);
    struct safetensors *f;
    assert_int_equal(safetensors_open(at("all"), NULL, false, &f), TRI_OK);
    assert_int_equal(f->n, COUNT(all));
    for (size_t i = 0; i < COUNT(all); i++) {
        const struct safetensors_entry *e = &f->entry[i];
        assert_string_equal(e->name, all[i].name);
        assert_ptr_equal(safetensors_find(f, all[i].name), e);
        assert_int_equal(e->spec.type, all[i].spec.type);
        assert_true(base_shape_equal(&e->spec.shape, &all[i].spec.shape));
        assert_int_equal((uintptr_t)e->data % 16, 0);
        if (all[i].data) assert_memory_equal(e->data, all[i].data, base_spec_bytes(&e->spec));
    }
    assert_null(safetensors_find(f, "nothing"));
    assert_int_equal(f->n_metadata, 2);
    assert_string_equal(f->metadata[0].key, "step");
    assert_string_equal(safetensors_metadata(f, "format"), "pt");
    assert_null(safetensors_metadata(f, "nothing"));
    safetensors_close(f);
    safetensors_close(NULL);
}

static void empty_file(void **state) {
    (void)state;
    struct safetensors *f;
    assert_int_equal(safetensors_write(at("empty"), NULL, 0, NULL, 0), TRI_OK);
    assert_int_equal(safetensors_open(at("empty"), NULL, false, &f), TRI_OK);
    assert_int_equal(f->n, 0);
    assert_null(safetensors_find(f, "x"));
    safetensors_close(f);
}

/* The exact bytes that the writer must write; the reader reads them from memory. */
static const char by_hand[] =
    "\x50\0\0\0\0\0\0\0"
    "{\"__metadata__\":{\"k\":\"v\"},"
    "\"w\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]}}"
    " "
    "\x01\x02\0\x80";

static void bytes_by_hand(void **state) {
    (void)state;
    const int32_t w = INT32_MIN + 0x201;
    const struct safetensors_entry entry = {"w", {TRI_I32, {1, {1}}}, &w};
    assert_int_equal(sizeof by_hand - 1, 8 + 0x50 + 4);
    assert_int_equal(
        safetensors_write(at("hand"), &entry, 1, &(struct safetensors_pair){"k", "v"}, 1), TRI_OK);
    char *data;
    size_t n;
    assert_int_equal(base_read_file(at("hand"), &data, &n), TRI_OK);
    assert_int_equal(n, sizeof by_hand - 1);
    assert_memory_equal(data, by_hand, n);
    free(data);
    struct safetensors *f;
    assert_int_equal(safetensors_parse(by_hand, sizeof by_hand - 1, "hand", &f), TRI_OK);
    assert_memory_equal(safetensors_find(f, "w")->data, &w, 4);
    assert_string_equal(safetensors_metadata(f, "k"), "v");
    safetensors_close(f);
    for (size_t short_by = 1; short_by < sizeof by_hand; short_by++)
        assert_int_equal(safetensors_parse(by_hand, sizeof by_hand - 1 - short_by, "hand", &f),
                         TRI_FAILED);
}

static tri_status parse_header(const char *json, size_t data) {
    char bytes[2048] = {0};
    size_t n = strlen(json);
    assert_true(8 + n + data <= sizeof bytes);
    bytes[0] = (char)(n & 0xff);
    bytes[1] = (char)(n >> 8);
    memcpy(bytes + 8, json, n);
    memset(bytes + 8 + n, 2, data);
    struct safetensors *f;
    tri_status status = safetensors_parse(bytes, 8 + n + data, "bad.st", &f);
    assert_int_equal(!f, status != TRI_OK);
    safetensors_close(f);
    return status;
}

#define TENSOR(name, type, shape, offsets) \
    "\"" name "\":{\"dtype\":" type ",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void damaged_headers(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        const char *message;
    } cases[] = {
        {"", 0, "bad.st: offset 8: the header is not valid JSON"},
        {"{\"a\":", 0, "not valid JSON"},
        {"{}\n\x01{", 0, "not valid JSON"},
        {"[]", 0, "the header is not a JSON object"},
        {"{\"a\":{},\"a\":{}}", 0, "duplicate"},
        {"{\"a\":[]}", 0, "tensor 'a': its header entry is not a JSON object"},
        {"{\"a\":{}}", 0, "tensor 'a': \"dtype\" is missing"},
        {"{" TENSOR("a", "7", "[1]", "[0,4]") "}", 4, "\"dtype\" is missing or not a text"},
        {"{" TENSOR("a", "\"F64\"", "[2]", "[0,8]") "}", 8, "'a': f64[2] takes 16 bytes"},
        {"{" TENSOR("a", "\"I16\"", "[1]", "[0,2]") "}", 2, "type I16 is not supported"},
        {"{" TENSOR("a", "\"I8\"", "[1]", "[0,1]") "}", 1, "type I8 is not supported"},
        {"{" TENSOR("a\\nb", "\"X\\n\"", "[1]", "[0,1]") "}", 1, "'a?b': unknown dtype 'X?'"},
        {"{" TENSOR("a", "\"F32\"", "4", "[0,4]") "}", 4, "\"shape\" is missing or not"},
        {"{" TENSOR("a", "\"F32\"", "[-1]", "[0,4]") "}", 4, "dimension 0 is not a whole number"},
        {"{" TENSOR("a", "\"F32\"", "[1,1.0]", "[0,4]") "}", 4, "dimension 1 is not a whole"},
        {"{" TENSOR("a", "\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, "it has 9 dimensions"},
        {"{" TENSOR("a", "\"F32\"", "[4294967296,4294967296]", "[0,4]") "}", 4, "can be counted"},
        {"{" TENSOR("a", "\"F32\"", "[99999999999999999999]", "[0,4]") "}", 4, "too big integer"},
        {"{" TENSOR("a", "\"F32\"", "[1]", "[0]") "}", 4, "\"data_offsets\" is missing or not"},
        {"{" TENSOR("a", "\"F32\"", "[1]", "[4,0]") "}", 4, "data_offsets [4,0] are not in order"},
        {"{" TENSOR("a", "\"F32\"", "[1]", "[-4,0]") "}", 4, "data_offsets [-4,0] are not in"},
        {"{" TENSOR("a", "\"F32\"", "[2]", "[0,8]") "}", 4,
         "tensor 'a': data_offsets [0,8] reach beyond the 4 bytes of data, which end at file "
         "offset 66"},
        {"{" TENSOR("a", "\"F32\"", "[2]", "[0,4]") "}", 4,
         "tensor 'a': f32[2] takes 8 bytes, but its data_offsets [0,4] (file offset 62) hold 4"},
        {"{" TENSOR("a", "\"U8\"", "[4]", "[0,4]") "," TENSOR("b", "\"U8\"", "[4]", "[2,6]") "}", 6,
         "tensor 'b': its data at file offset 115 overlaps that of 'a', which ends at 117"},
        {"{" TENSOR("a", "\"U8\"", "[4]", "[0,4]") "," TENSOR("b", "\"U8\"", "[4]", "[6,10]") "}",
         10, "tensor 'b': its data begins at file offset 120, after 2 bytes that no tensor uses"},
        {"{" TENSOR("a", "\"U8\"", "[4]", "[0,4]") "}", 6,
         "offset 65: 2 bytes follow the last tensor"},
        {"{" TENSOR("a", "\"BOOL\"", "[1]", "[0,1]") "}", 1,
         "tensor 'a': file offset 63: 2 is not a BOOL"},
        {"{\"__metadata__\":7}", 0, "__metadata__ is not a JSON object"},
        {"{\"__metadata__\":{\"k\":7}}", 0, "__metadata__: the value of 'k' is not a text"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(parse_header(cases[i].header, cases[i].data), TRI_FAILED);
        assert_message("bad.st: ");
        assert_message(cases[i].message);
    }
    /* Data may be in another order than the header, and there may be unknown fields. */
    assert_int_equal(parse_header("{" TENSOR("b", "\"U8\"", "[4]", "[2,6]") "," TENSOR(
                                      "a", "\"U8\"", "[2]", "[0,2],\"more\":1") "}  ",
                                  6),
                     TRI_OK);
}

static void doubles(void **state) {
    (void)state;
    static const char header[] = "{" TENSOR("d", "\"F64\"", "[3]", "[0,24]") "}";
    double values[] = {0.1, -3e38, INFINITY};
    struct safetensors *f;
    unsigned char bytes[8 + sizeof header - 1 + sizeof values] = {sizeof header - 1};
    memcpy(bytes + 8, header, sizeof header - 1);
    memcpy(bytes + 8 + sizeof header - 1, values, sizeof values);
    assert_int_equal(safetensors_parse(bytes, sizeof bytes, "d.st", &f), TRI_OK);
    assert_int_equal(f->entry->spec.type, TRI_F32);
    const float *read = f->entry->data;
    for (int i = 0; i < 3; i++) assert_true(read[i] == (float)values[i]);
    safetensors_close(f);
    values[1] = 1e39;
    memcpy(bytes + 8 + sizeof header - 1, values, sizeof values);
    assert_int_equal(safetensors_parse(bytes, sizeof bytes, "d.st", &f), TRI_FAILED);
    assert_message("tensor 'd': file offset 71: 1e+39 is too large for f32, as which F64 is read");
}

/* Elements are read from the file when they are asked for, and checked then. */
static void in_pieces(void **state) {
    (void)state;
    static const char header[] = "{" TENSOR("d", "\"F64\"", "[3]", "[0,24]") ","
                                 TENSOR("b", "\"BOOL\"", "[3]", "[24,27]") "}";
    const double values[] = {0.1, 1e39, 7};
    const unsigned char flags[] = {0, 1, 2};
    struct safetensors *f;
    unsigned char bytes[8 + sizeof header - 1 + sizeof values + sizeof flags] = {sizeof header - 1};
    memcpy(bytes + 8, header, sizeof header - 1);
    memcpy(bytes + 8 + sizeof header - 1, values, sizeof values);
    memcpy(bytes + sizeof bytes - sizeof flags, flags, sizeof flags);
    FILE *file = fopen(at("pieces"), "wb");
    assert_true(file && fwrite(bytes, sizeof bytes, 1, file) == 1 && !fclose(file));
    assert_int_equal(safetensors_open(at("pieces"), NULL, true, &f), TRI_OK);
    const struct safetensors_entry *d = safetensors_find(f, "d"), *b = safetensors_find(f, "b");
    double room[3];
    float value;
    assert_null(d->data);
    assert_int_equal(safetensors_read(f, d, 2, 1, room), TRI_OK);
    memcpy(&value, room, sizeof value);
    assert_true(value == 7);
    assert_int_equal(safetensors_read(f, d, 0, 3, room), TRI_FAILED);
    assert_message("1e+39 is too large for f32");
    assert_int_equal(safetensors_read(f, b, 0, 2, room), TRI_OK);
    assert_int_equal(((unsigned char *)room)[1], 1);
    assert_int_equal(safetensors_read(f, b, 1, 2, room), TRI_FAILED);
    assert_message("2 is not a BOOL");
    assert_int_equal(truncate(at("pieces"), (off_t)sizeof bytes - 1), 0);
    assert_int_equal(safetensors_read(f, b, 0, 3, room), TRI_FAILED);
    assert_message("it had");
    safetensors_close(f);
}

static void damaged_lengths(void **state) {
    (void)state;
    struct safetensors *f;
    assert_int_equal(safetensors_parse("\x02\0\0", 3, "bad.st", &f), TRI_FAILED);
    assert_message("bad.st: 3 bytes are too few");
    assert_int_equal(safetensors_parse(NULL, 0, "bad.st", &f), TRI_FAILED);
    assert_message("bad.st: 0 bytes are too few");
    assert_int_equal(safetensors_parse("\x03\0\0\0\0\0\0\0{}", 10, "bad.st", &f), TRI_FAILED);
    assert_message("bad.st: offset 0: header length 3, but only 2 bytes follow");
    assert_int_equal(safetensors_parse("PK\3\4PK\3\xff{}", 10, "bad.st", &f), TRI_FAILED);
    assert_message("not a safetensors file");
    /* A header larger than the limit, in a sparse file. */
    FILE *sparse = fopen(at("sparse"), "wb");
    assert_non_null(sparse);
    assert_int_equal(fwrite("\0\0\0\x10\0\0\0\0", 1, 8, sparse), 8);
    assert_int_equal(ftruncate(fileno(sparse), 0x20000000), 0);
    assert_int_equal(fclose(sparse), 0);
    assert_int_equal(safetensors_open(at("sparse"), NULL, false, &f), TRI_FAILED);
    assert_message("header length 268435456 is above the limit");
}

static void unreadable(void **state) {
    (void)state;
    struct safetensors *f;
    assert_int_equal(safetensors_open(at("missing"), NULL, false, &f), TRI_FAILED);
    assert_message("missing: No such file");
    assert_int_equal(safetensors_open(directory, NULL, false, &f), TRI_FAILED);
    assert_message("not a regular file");
}

static void unwritable(void **state) {
    (void)state;
    assert_int_equal(safetensors_write(at("no/file"), all, 1, NULL, 0), TRI_FAILED);
    assert_message("can't create: No such file");
    int before = files(false);
    assert_int_equal(mkdir(at("taken"), 0777), 0);
    assert_int_equal(safetensors_write(at("taken"), all, 1, NULL, 0), TRI_FAILED);
    assert_message("it is a directory");
    assert_int_equal(files(false), before + 1);

    const struct safetensors_entry twice[] = {all[0], all[0]};
    assert_int_equal(safetensors_write(at("x"), twice, 2, NULL, 0), TRI_USAGE);
    assert_message("two entries have the name 'z.weight'");
    const struct safetensors_entry negative = {"n", {TRI_F32, {2, {0, -1}}}, f32};
    assert_int_equal(safetensors_write(at("x"), &negative, 1, NULL, 0), TRI_USAGE);
    assert_message("tensor 'n' has an impossible type or shape");
    const struct safetensors_entry reserved = {"__metadata__", {TRI_F32, {1, {6}}}, f32};
    assert_int_equal(safetensors_write(at("x"), &reserved, 1, NULL, 0), TRI_USAGE);
    const struct safetensors_entry latin1 = {"\xe9t\xe9", {TRI_F32, {1, {6}}}, f32};
    assert_int_equal(safetensors_write(at("x"), &latin1, 1, NULL, 0), TRI_FAILED);
    assert_message("not UTF-8");
    const struct safetensors_pair pair = {"k", "\xff"};
    assert_int_equal(safetensors_write(at("x"), all, 1, &pair, 1), TRI_FAILED);
    assert_message("metadata 'k'");
    assert_int_equal(files(false), before + 1);
}

static mode_t kind_of(const char *name) {
    struct stat st;
    return lstat(at(name), &st) ? 0 : st.st_mode & S_IFMT;
}

static void link_to(const char *to, const char *name) {
    assert_int_equal(symlink(to, at(name)), 0);
}

/* Writing through symlinks replaces their target, even if it does not exist yet; the links stay. */
static void links(void **state) {
    (void)state;
    assert_int_equal(safetensors_write(at("real"), all, 1, NULL, 0), TRI_OK);
    link_to("real", "link");
    char whole[256];
    snprintf(whole, sizeof whole, "%s/link", directory);
    link_to(whole, "second");
    link_to("later", "dangling");
    struct safetensors *f;
    static const char *const names[] = {"link", "second", "dangling"}, *const targets[] = {
                                                                           "real", "real", "later"};
    for (size_t i = 0; i < COUNT(names); i++) {
        remove(at(targets[i]));
        for (int again = 0; again < 2; again++) {
            assert_int_equal(outfile_check(at(names[i])), TRI_OK);
            assert_int_equal(safetensors_write(at(names[i]), all, 1, NULL, 0), TRI_OK);
            assert_true(kind_of(names[i]) == S_IFLNK && kind_of(targets[i]) == S_IFREG);
        }
        assert_int_equal(safetensors_open(at(targets[i]), NULL, false, &f), TRI_OK);
        safetensors_close(f);
    }
    files(true);
}

/* A file that is not regular is refused beforehand and stays. */
static void refused_targets(void **state) {
    (void)state;
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    assert_int_equal(mkdir(at("folder"), 0700), 0);
    link_to("/dev/full", "device");
    link_to("pipe", "to pipe");
    link_to("loop", "loop");
    link_to("no/such/place", "nowhere");
    static const struct {
        const char *name, *why;
        mode_t kind;
    } bad[] = {{"pipe", "it is a named pipe, not a regular file", S_IFIFO},
               {"folder", "it is a directory, not a regular file", S_IFDIR},
               {"device", "it is a character device", S_IFLNK},
               {"to pipe", "it is a named pipe", S_IFLNK},
               {"loop", "Too many levels of symbolic links", S_IFLNK},
               {"nowhere", "No such file", S_IFLNK},
               {"new/", "No such file", 0}};
    int before = files(false);
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(outfile_check(at(bad[i].name)), TRI_FAILED);
        assert_message(bad[i].why);
        assert_int_equal(safetensors_write(at(bad[i].name), all, 1, NULL, 0), TRI_FAILED);
        assert_message(bad[i].why);
        assert_int_equal(kind_of(bad[i].name), bad[i].kind);
    }
    assert_int_equal(files(false), before);
    char name[256];
    memset(name, 'x', 250);
    name[250] = 0; /* it could be a name, but not with a suffix */
    assert_int_equal(outfile_check(name), TRI_FAILED);
    assert_message("File name too long");
    assert_int_equal(outfile_check(""), TRI_USAGE);
    files(true);
}

/* A full disk leaves the old file, and no part of the new one. */
static void full_disk(void **state) {
    (void)state;
    assert_int_equal(safetensors_write(at("kept"), all, 1, NULL, 0), TRI_OK);
    int before = files(false);
    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){4096, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    static const uint8_t large[8192];
    const struct safetensors_entry entry = {"l", {TRI_U8, {1, {8192}}}, large};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    tri_status status = safetensors_write(at("kept"), &entry, 1, NULL, 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, TRI_FAILED);
    assert_message("write at offset 4096");
    assert_int_equal(files(false), before);
    struct safetensors *f;
    assert_int_equal(safetensors_open(at("kept"), NULL, false, &f), TRI_OK);
    assert_non_null(safetensors_find(f, "z.weight"));
    safetensors_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_vectors),  cmocka_unit_test(sha256_in_pieces),
        cmocka_unit_test(round_trip),      cmocka_unit_test(empty_file),
        cmocka_unit_test(bytes_by_hand),   cmocka_unit_test(damaged_headers),
        cmocka_unit_test(doubles),         cmocka_unit_test(in_pieces),
        cmocka_unit_test(damaged_lengths), cmocka_unit_test(unreadable),
        cmocka_unit_test(unwritable),      cmocka_unit_test(links),
        cmocka_unit_test(refused_targets), cmocka_unit_test(full_disk),
    };
    return cmocka_run_group_tests_name("io", tests, make_directory, remove_directory);
}
