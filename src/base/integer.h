/* SPDX-License-Identifier: Apache-2.0
 * Elements of i32, i64, u8 and bool tensors as integers; a double would lose those beyond 2^53. */
#ifndef BASE_INTEGER_H
#define BASE_INTEGER_H

#include "base/base.h"

static inline int64_t integer_load(tri_type type, const void *data, size_t i) {
    switch (type) {
    case TRI_I32: return ((const int32_t *)data)[i];
    case TRI_I64: return ((const int64_t *)data)[i];
    case TRI_U8: return ((const uint8_t *)data)[i];
    case TRI_BOOL: return ((const uint8_t *)data)[i] != 0;
    default: CHECK(false && "an integer type"); return 0;
    }
}

/* Wraps around in two's complement; bool is v != 0. */
static inline void integer_store(tri_type type, void *data, size_t i, int64_t v) {
    switch (type) {
    case TRI_I32: ((int32_t *)data)[i] = (int32_t)v; break;
    case TRI_I64: ((int64_t *)data)[i] = v; break;
    case TRI_U8: ((uint8_t *)data)[i] = (uint8_t)v; break;
    case TRI_BOOL: ((uint8_t *)data)[i] = v != 0; break;
    default: CHECK(false && "an integer type");
    }
}

#endif
