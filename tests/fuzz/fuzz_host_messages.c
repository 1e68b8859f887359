/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a message of another host's agent. It is refused with a line, or put again as the
 * same bytes. The first byte is its kind, whatever it is. */
#include <stdlib.h>
#include <string.h>

#include "crew/host_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *data, size_t size) {
    struct host_message m;
    struct text again = {0};
    if (host_message_get(data, size, &m)) {
        CHECK(tri_message()[0] && !strchr(tri_message(), '\n'));
    } else {
        CHECK(!host_message_put(&m, &again));
        CHECK(again.size == size && !memcmp(again.data, data, size));
    }
    text_free(&again);
    host_message_free(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check(data, size);
    if (!size) return 0;
    uint8_t *copy = malloc(size); /* of its very length */
    CHECK(copy);
    memcpy(copy, data, size);
    copy[0] = (uint8_t)(data[0] % HOST_KIND_COUNT);
    check(copy, size);
    free(copy);
    return 0;
}
