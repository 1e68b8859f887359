/* SPDX-License-Identifier: Apache-2.0
 * Fields of JSON objects that may be damaged, or of another version. */
#ifndef OBSERVE_JSON_H
#define OBSERVE_JSON_H

#include <jansson.h>

#include "base/base.h"

/* "" if there is no such text. */
const char *json_text_of(const json_t *object, const char *key);
int64_t json_whole_of(const json_t *object, const char *key, int64_t missing);
double json_number_of(const json_t *object, const char *key, double missing);

/* Null for what JSON cannot say: a null pointer, a text that is not UTF-8, NaN, infinity. */
json_t *json_text(const char *text);
json_t *json_finite(double number);

#endif
