/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a picture: read as a whole, and a part of it at a fraction of its size. */
#include "data/picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_part(struct picture_decoder *d, const uint8_t *data, size_t n, int shrink) {
    struct picture_size size;
    struct picture p;
    if (picture_open(d, data, n, "fuzz", &size)) return;
    CHECK(size.width > 0 && size.height > 0);
    struct picture_part part = {size.width / 3, size.height / 4, 0, 0, size.shrinks ? shrink : 1};
    part.width = (size.width - part.x + 1) / 2;
    part.height = (size.height - part.y + 1) / 2;
    if (shrink == 1) part = (struct picture_part){0, 0, size.width, size.height, 1};
    if (picture_read(d, &part, &p)) return;
    CHECK(p.x >= 0 && p.y >= 0 && p.x + p.width <= p.whole.width &&
          p.y + p.height <= p.whole.height);
    CHECK(p.x <= part.x / part.shrink && p.y <= part.y / part.shrink);
    uint64_t sum = 0;
    for (int y = 0; y < p.height; y++)
        sum += base_hash(p.rgb + (size_t)y * p.stride, 3 * (size_t)p.width, 0);
    CHECK(sum != 1); /* all of it was read */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct picture_decoder *d = picture_decoder_new(1 << 18);
    CHECK(d);
    for (int shrink = 1; shrink <= 8; shrink *= 2) read_part(d, data, size, shrink);
    picture_decoder_free(d);
    return 0;
}
