/* SPDX-License-Identifier: Apache-2.0
 * array: literal values, stored as decimal text: "1,2,3". */
#include <inttypes.h>
#include <stdlib.h>

#include "base/convert.h"
#include "base/integer.h"
#include "ops/op.h"

static bool holds(tri_type type, int64_t i) {
    static const struct {
        int64_t low, high;
    } range[] = {[TRI_I32] = {INT32_MIN, INT32_MAX}, [TRI_I64] = {INT64_MIN, INT64_MAX},
                 [TRI_U8] = {0, UINT8_MAX}, [TRI_BOOL] = {0, 1}};
    return i >= range[type].low && i <= range[type].high;
}

/* Parses the next number, after a comma unless it is the first. False if there is none or the type
 * cannot hold it. */
static bool next(const char **p, tri_type type, bool first, double *f, int64_t *i) {
    char *end;
    if (!first && *(*p)++ != ',') return false;
    if (type_is_float(type))
        *f = base_number(*p, &end);
    else
        *i = strtoll(*p, &end, 10);
    bool any = end != *p;
    *p = end;
    return any && (type_is_float(type) || holds(type, *i));
}

/* Parses the text; out may be null. False unless it has exactly the numbers for the shape. */
static bool read_values(const char *text, const tri_spec *spec, void *out) {
    int64_t n = tri_shape_count(&spec->shape);
    for (int64_t k = 0; k < n; k++) {
        double f = 0;
        int64_t i = 0;
        if (!next(&text, spec->type, k == 0, &f, &i)) return false;
        if (out && type_is_float(spec->type))
            convert_store(spec->type, out, (size_t)k, f);
        else if (out)
            integer_store(spec->type, out, (size_t)k, i);
    }
    return !*text;
}

static int infer(const tri_node *n, tri_spec *out) {
    out[0] = (tri_spec){(tri_type)tri_attr_int(n, "type"), tri_attr_list(n, "shape")};
    return read_values(tri_attr_text(n, "data"), &out[0], NULL) ||
           tri_op_error(n, "data must be %lld number(s) of type %s with commas between them",
                        (long long)tri_shape_count(&out[0].shape), tri_type_name(out[0].type));
}

bool array_values(const tri_node *n, void *out) {
    return read_values(tri_attr_text(n, "data"), &n->out[0].spec, out);
}

const tri_op op_array = {
    .name = "array",
    .attributes = "data:text type:type shape:ints",
    .infer = infer,
    .gradient = tri_grad_none,
    .examples = EXAMPLES("{data=\"1,-2.5,3e-7,0.1\", type=f32, shape=[2,2]}",
                         "{data=\"9007199254740993\", type=i64, shape=[]}",
                         "{data=\"1,0,1\", type=bool, shape=[3]}",
                         "{data=\"0.5,-2\", type=bf16, shape=[1,2]}"),
};

/* Nine digits are enough to restore every f32 and every 16-bit value. */
tri_tensor *tri_array(tri_graph *g, tri_type type, tri_shape shape, const void *data) {
    struct text text = {0};
    if (!g) return NULL;
    bool shaped = shape.rank >= 0 && shape.rank <= TRI_MAX_RANK, typed = type <= TRI_BOOL;
    int64_t n = shaped && typed ? tri_shape_count(&shape) : 0; /* graph_add reports the others */
    if (n > 0 && !data) graph_mistake(g, "tri_array: the data are a null pointer");
    if (g->status) return g->poison;
    for (int64_t k = 0; k < n && !text.failed; k++) {
        const char *comma = k ? "," : "";
        if (type_is_float(type))
            text_add(&text, "%s%.9g", comma, convert_load(type, data, (size_t)k));
        else
            text_add(&text, "%s%" PRId64, comma, integer_load(type, data, (size_t)k));
    }
    if (text.failed) graph_fail(g, TRI_FAILED, "tri_array: out of memory");
    tri_tensor *t = graph_apply(g, "array", 0, NULL, 3,
                                (const tri_attr[]){AT("data", text.data ? text.data : ""),
                                                   AI("type", type), AL("shape", shape)});
    text_free(&text);
    return t;
}
