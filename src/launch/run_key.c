/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/run_key.h"

#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#include "io/seal.h"

/* Of standard input, which the workers then do not have. */
static tri_status read_digits(uint8_t key[LINK_KEY]) {
    char digits[2 * LINK_KEY];
    size_t have = 0, bytes = 0;
    for (ssize_t n = 1; n > 0 && have < sizeof digits; have += n > 0 ? (size_t)n : 0)
        n = read(STDIN_FILENO, digits + have, sizeof digits - have);
    const bool good = have == sizeof digits &&
                      !sodium_hex2bin(key, LINK_KEY, digits, have, NULL, &bytes, NULL) &&
                      bytes == LINK_KEY;
    sodium_memzero(digits, sizeof digits);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    if (nothing > STDIN_FILENO) close(nothing);
    return good ? TRI_OK : base_fail(TRI_USAGE, "--key -: no key of 64 digits came");
}

tri_status run_key_hold(const char *path, uint8_t *bytes, uint8_t **key) {
    if (sodium_init() < 0) return base_fail(TRI_FAILED, "libsodium cannot be used");
    *key = sodium_malloc(LINK_KEY);
    if (!*key) return base_no_memory("a key");
    if (!path) memcpy(*key, bytes, LINK_KEY), sodium_memzero(bytes, LINK_KEY);
    return !path ? TRI_OK : strcmp(path, "-") ? seal_key_read(path, *key) : read_digits(*key);
}

tri_status run_key_make(const char *path, uint8_t key[LINK_KEY]) {
    if (sodium_init() < 0) return base_fail(TRI_FAILED, "libsodium cannot be used");
    if (path) return seal_key_read(path, key);
    randombytes_buf(key, LINK_KEY);
    return TRI_OK;
}
