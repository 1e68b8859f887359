/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints on disk: every flipped bit of any of their files is detected. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <fcntl.h>

#include "checkpoint/checkpoint.h"
#include "scratch.h"

static struct seal_key *make_key(void) {
    struct seal_key *key;
    assert_int_equal(seal_key_make(at("key")), TRI_OK);
    assert_int_equal(seal_key_open(at("key"), &key), TRI_OK);
    return key;
}

static void write_one(const char *where, const struct seal_key *key, int64_t step) {
    static const float value[] = {1, 2, 3};
    const struct safetensors_entry e[] = {{"w", {TRI_F32, TRI_SHAPE(3)}, value},
                                          {"optimizer.w", {TRI_F32, TRI_SHAPE(3)}, value}};
    const struct checkpoint_state state = {
        .step = step,
        .epoch = 2,
        .batch = 4,
        .lanes = 2,
        .seed = 7,
        .loss = 0.1,
        .metric = "loss",
        .policy_state = {.step = step, .best_step = 1, .best = 0.5},
        .data = "\"own_sha256\": \"x",
        .n_scalars = 1,
        .scalar = {{"own_sha256", 0.25f}},
        .options = {.n = 1, .one = {{"--lr", "0.1"}}}};
    const struct checkpoint_content c = {
        .state = &state, .entries = e, .n_model = 1, .n_optimizer = 1,
        .network = "graph {batch=4}\n", .plan = "[grain]\nbatch 4\n", .key = key};
    size_t bytes;
    assert_int_equal(checkpoint_prepare(where), TRI_OK);
    assert_int_equal(checkpoint_write(where, &c, &bytes), TRI_OK);
}

static size_t read_bytes(const char *path, unsigned char *to, size_t most) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(to, 1, most, f);
    assert_true(n > 0 && n < most);
    fclose(f);
    return n;
}

static void flip(int fd, unsigned char byte, size_t bit) {
    byte ^= (unsigned char)(1u << bit % 8);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
}

static void flip_all(const char *folder, const char *path, const struct seal_key *key) {
    static unsigned char bytes[1 << 16];
    size_t n = read_bytes(path, bytes, sizeof bytes);
    struct checkpoint_state state;
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        flip(fd, bytes[bit / 8], bit);
        if (!checkpoint_verify(folder, key, &state))
            fail_msg("%s: bit %zu is flipped, and passes", path, bit);
        assert_int_equal(pwrite(fd, &bytes[bit / 8], 1, (off_t)(bit / 8)), 1);
    }
    close(fd);
}

static void no_flipped_bit_passes(const struct seal_key *key) {
    char folder[4096], path[4096], *text;
    struct checkpoint_state state;
    write_one(at("bits"), key, 3);
    checkpoint_path(at("bits"), 3, folder);
    assert_int_equal(checkpoint_verify(folder, key, &state), TRI_OK);
    assert_true(state.checked && state.step == 3 && !strcmp(state.data, "\"own_sha256\": \"x") &&
                state.scalar[0].value == 0.25f);
    assert_true(state.format == CHECKPOINT_FORMAT && state.files == CHECKPOINT_FILES);
    for (int i = 0; i <= CHECKPOINT_FILES; i++) {
        const char *file = i ? checkpoint_files[i - 1] : CHECKPOINT_STATE;
        checkpoint_file(folder, file, key, path);
        flip_all(folder, path, key);
    }
    assert_int_equal(checkpoint_read_text(folder, CHECKPOINT_PLAN, key, 3, &text), TRI_OK);
    assert_string_equal(text, "[grain]\nbatch 4\n");
    free(text);
    assert_int_equal(checkpoint_verify(folder, key, &state), TRI_OK);
}

static void flipped_bits(void **state) {
    (void)state;
    no_flipped_bit_passes(NULL);
}

static void flipped_bits_of_sealed(void **state) {
    (void)state;
    struct seal_key *key = make_key();
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", at("bits"));
    assert_int_equal(system(command), 0);
    no_flipped_bit_passes(key);
    seal_key_free(key);
}

/* For any form of the path; a name that is not that of a step gives none. */
static void names(void **state) {
    (void)state;
    char folder[4096], other[4096], with[4200], here[4096];
    struct checkpoint_state s;
    write_one(at("names"), NULL, 8);
    checkpoint_path(at("names"), 8, folder);
    checkpoint_path(at("names"), 9, other);
    assert_int_equal(rename(folder, other), 0);
    snprintf(with, sizeof with, "%s//", other);
    assert_int_equal(checkpoint_verify(other, NULL, &s), TRI_FAILED);
    assert_message("is the checkpoint of step 8");
    assert_int_equal(checkpoint_verify(with, NULL, &s), TRI_FAILED);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(other), 0);
    assert_int_equal(checkpoint_verify(".", NULL, &s), TRI_FAILED);
    assert_message("is the checkpoint of step 8");
    assert_int_equal(chdir(here), 0);
    assert_int_equal(rename(other, at("kept")), 0);
    assert_int_equal(checkpoint_verify(at("kept"), NULL, &s), TRI_OK);
    assert_int_equal(symlink(at("kept"), folder), 0);
    assert_int_equal(symlink(at("kept"), other), 0);
    assert_int_equal(checkpoint_verify(folder, NULL, &s), TRI_OK);
    assert_int_equal(checkpoint_verify(other, NULL, &s), TRI_FAILED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flipped_bits),
        cmocka_unit_test(flipped_bits_of_sealed),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
