/* SPDX-License-Identifier: Apache-2.0
 * Reads a graph from a file and adapts it to a batch. */
#include <stdlib.h>

#include "plan/rebatch.h"

tri_graph *tri_graph_read(const char *path, int64_t batch) {
    char *text;
    size_t bytes;
    if (base_read_file(path, &text, &bytes)) return NULL;
    tri_graph *g = tri_graph_parse(text, bytes, path);
    free(text);
    if (!g || g->status || !batch || batch == g->batch) return g;
    tri_graph *other = graph_rebatch(g, batch, g->lanes, false);
    tri_graph_free(g);
    return other;
}
