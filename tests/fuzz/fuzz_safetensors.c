/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a safetensors file; if it is accepted, it must be readable to the last byte. */
#include <string.h>

#include "io/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct safetensors *f;
    if (safetensors_parse(data, size, "fuzz", &f)) {
        CHECK(!f && tri_message()[0] && !strchr(tri_message(), '\n'));
        return 0;
    }
    /* The tensors are at the end of the file, one after the other. */
    size_t total = 0;
    for (size_t i = 0; i < f->n; i++) total += base_spec_bytes(&f->entry[i].spec);
    CHECK(total <= size);
    const uint8_t *at = data + size - total;
    for (size_t i = 0; i < f->n; i++) {
        const struct safetensors_entry *e = &f->entry[i];
        size_t bytes = base_spec_bytes(&e->spec);
        CHECK(!bytes || !memcmp(e->data, at, bytes));
        CHECK(safetensors_find(f, e->name) == e);
        at += bytes;
    }
    for (size_t i = 0; i < f->n_metadata; i++)
        CHECK(safetensors_metadata(f, f->metadata[i].key) == f->metadata[i].value);
    safetensors_close(f);
    return 0;
}
