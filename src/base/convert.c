/* SPDX-License-Identifier: Apache-2.0 */
#include "base/convert.h"

static int64_t to_integer(double v, double low, double high) {
    if (v != v) return 0;
    if (v <= low) return (int64_t)low;
    if (v >= high) return high >= 0x1p63 ? INT64_MAX : (int64_t)high;
    return (int64_t)v;
}

/* Rounds a double to bf16 or fp16 without rounding twice: the float below, made odd if inexact,
 * keeps what the second rounding needs to know. */
static float round_to_odd(double v) {
    float f = (float)v;
    if (f != f || (double)f == v) return f;
    uint32_t u = convert_bits(f);
    if (f > v ? f > 0 : f < 0) u--; /* toward zero */
    return convert_float(u | 1u);
}

double convert_load(tri_type type, const void *p, size_t i) {
    switch (type) {
    case TRI_F32: return (double)((const float *)p)[i];
    case TRI_BF16: return (double)convert_from_bf16(((const uint16_t *)p)[i]);
    case TRI_F16: return (double)convert_from_f16(((const uint16_t *)p)[i]);
    case TRI_I32: return (double)((const int32_t *)p)[i];
    case TRI_I64: return (double)((const int64_t *)p)[i];
    case TRI_U8: return (double)((const uint8_t *)p)[i];
    case TRI_BOOL: return (double)(((const uint8_t *)p)[i] != 0);
    }
    return 0;
}

void convert_store(tri_type type, void *p, size_t i, double v) {
    switch (type) {
    case TRI_F32: ((float *)p)[i] = (float)v; break;
    case TRI_BF16: ((uint16_t *)p)[i] = convert_to_bf16(round_to_odd(v)); break;
    case TRI_F16: ((uint16_t *)p)[i] = convert_to_f16(round_to_odd(v)); break;
    case TRI_I32: ((int32_t *)p)[i] = (int32_t)to_integer(v, INT32_MIN, INT32_MAX); break;
    case TRI_I64: ((int64_t *)p)[i] = to_integer(v, -0x1p63, 0x1p63); break;
    case TRI_U8: ((uint8_t *)p)[i] = (uint8_t)to_integer(v, 0, UINT8_MAX); break;
    case TRI_BOOL: ((uint8_t *)p)[i] = v != 0; break;
    }
}

static bool is_integer(tri_type t) { return t == TRI_I32 || t == TRI_I64 || t == TRI_U8; }

static int64_t load_integer(tri_type t, const void *p, size_t i) {
    return t == TRI_I64 ? ((const int64_t *)p)[i]
           : t == TRI_I32 ? ((const int32_t *)p)[i] : ((const uint8_t *)p)[i];
}

static void store_integer(tri_type t, void *p, size_t i, int64_t v) {
    if (t == TRI_I64)
        ((int64_t *)p)[i] = v;
    else if (t == TRI_I32)
        ((int32_t *)p)[i] = v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : (int32_t)v;
    else
        ((uint8_t *)p)[i] = v < 0 ? 0 : v > UINT8_MAX ? UINT8_MAX : (uint8_t)v;
}

void convert(tri_type to, void *dst, tri_type from, const void *src, size_t n) {
    if (to == from) {
        memcpy(dst, src, n * tri_type_size(to));
    } else if (to == TRI_BF16 && from == TRI_F32) {
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)dst)[i] = convert_to_bf16(((const float *)src)[i]);
    } else if (to == TRI_F32 && from == TRI_BF16) {
        for (size_t i = 0; i < n; i++)
            ((float *)dst)[i] = convert_from_bf16(((const uint16_t *)src)[i]);
    } else if (is_integer(to) && is_integer(from)) {
        for (size_t i = 0; i < n; i++) store_integer(to, dst, i, load_integer(from, src, i));
    } else if (to == TRI_F32 && from == TRI_I64) {
        for (size_t i = 0; i < n; i++) ((float *)dst)[i] = (float)((const int64_t *)src)[i];
    } else {
        for (size_t i = 0; i < n; i++) convert_store(to, dst, i, convert_load(from, src, i));
    }
}
