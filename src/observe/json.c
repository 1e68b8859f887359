/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/json.h"

#include <math.h>

const char *json_text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

int64_t json_whole_of(const json_t *object, const char *key, int64_t missing) {
    const json_t *j = json_object_get(object, key);
    return json_is_integer(j) ? json_integer_value(j) : missing;
}

double json_number_of(const json_t *object, const char *key, double missing) {
    const json_t *j = json_object_get(object, key);
    return json_is_number(j) ? json_number_value(j) : missing;
}

json_t *json_text(const char *text) {
    json_t *j = text ? json_string(text) : NULL;
    return j ? j : json_null();
}

json_t *json_finite(double number) {
    return isfinite(number) ? json_real(number) : json_null();
}
