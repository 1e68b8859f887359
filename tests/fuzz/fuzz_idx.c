/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as an IDX file, unpacked first if they claim to be gzip data. */
#include <stdlib.h>

#include "data/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const uint8_t *data, size_t size) {
    struct idx_array a;
    if (idx_parse(data, size, "fuzz", &a)) return;
    CHECK(a.rank >= 1 && a.rank <= IDX_MAX_RANK);
    CHECK(a.data >= data && a.data + a.bytes == data + size);
    size_t count = 1;
    for (int i = 0; i < a.rank; i++) count *= (size_t)a.dim[i];
    CHECK(count == a.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unsigned char *out;
    size_t n;
    parse(data, size);
    if (size < 2 || data[0] != 0x1f || data[1] != 0x8b) return 0;
    struct idx_array head;
    size_t most = IDX_HEADER_BYTES;
    for (int i = 0; i < 2 && !idx_unpack(data, size, "fuzz", most, &out, &n); i++) {
        CHECK(n <= most);
        if (i) parse(out, n);
        bool good = !idx_header(out, n, "fuzz", &head);
        if (good) most = (size_t)(head.data - out) + head.bytes + 1;
        free(out);
        if (!good) break;
    }
    return 0;
}
