/* SPDX-License-Identifier: Apache-2.0 Any bytes as an array of NumPy. */
#include "data/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct npy_header h;
    if (npy_parse(data, size, "fuzz", &h)) return 0;
    size_t bytes = h.row_bytes;
    CHECK(h.rank >= 1 && h.rank <= TRI_MAX_RANK && h.dim[0] > 0);
    CHECK(h.offset + bytes * (size_t)h.dim[0] == size);
    for (int i = 1; i < h.rank; i++) CHECK(h.dim[i] > 0);
    return 0;
}
