/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as run.json: everything that is read is there, and a refusal is one line of text. */
#include <math.h>
#include <string.h>

#include "observe/run_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t length(const char *text) { return strlen(text); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct run_read r;
    size_t sum = 0;
    if (run_file_parse("fuzz", (const char *)data, size, &r)) {
        const char *m = tri_message();
        CHECK(m[0] && !strchr(m, '\n') && !r.root);
        return 0;
    }
    sum += length(r.version) + length(r.title) + length(r.plan) + length(r.grain) +
           length(r.placement) + length(r.device) + length(r.isa) + length(r.checkpoints);
    for (size_t i = 0; i < r.n_command; i++) sum += length(r.command[i]);
    for (size_t i = 0; i < r.n_hosts; i++) sum += length(r.host[i]);
    for (size_t i = 0; i < 2 * r.n_options; i++) sum += length(r.option[i]);
    for (size_t i = 0; i < r.n_entries; i++) sum += length(r.entry[i].host);
    for (size_t i = 0; i < r.n_faults; i++)
        sum += length(r.fault[i].kind) + length(r.fault[i].text);
    CHECK(sum < 8 * size + 1);
    run_file_free(&r);
    return 0;
}
