/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a small network, a mesh and strategies. What is refused is refused with one line;
 * else the network computes the same on the mesh, and a run over it has the same bits whatever is
 * computed again, with stages and ZeRO. */
#include "unit/mesh_found.h"
#include "unit/mesh_train.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct case_result r;
    if (case_run(data, size, &r))
        base_bug(__FILE__, __LINE__, tri_message(), r.text ? r.text : "");
    if (!case_right(&r)) base_bug(__FILE__, __LINE__, "other results on the mesh", r.text);
    free(r.text);
    if (found_run(data, size, &r))
        base_bug(__FILE__, __LINE__, tri_message(), r.text ? r.text : "");
    if (!case_right(&r)) base_bug(__FILE__, __LINE__, "other results of found splits", r.text);
    free(r.text);
    struct train_result t;
    if (train_run(data, size, &t))
        base_bug(__FILE__, __LINE__, tri_message(), t.text ? t.text : "");
    if (strcmp(t.hash[0], t.hash[1])) base_bug(__FILE__, __LINE__, "other bits", t.text);
    free(t.text);
    return 0;
}
