/* SPDX-License-Identifier: Apache-2.0
 * Transcendental functions with fixed bits: those of libm differ between versions and processors.
 * They use only correctly rounded operations (+ - * / sqrt) in a fixed order, so every IEEE 754
 * machine with round-to-nearest gives the same result. Special values are those of C's Annex F;
 * flags and errno are not set. vmath.h has fp32 forms for loops. */
#ifndef BASE_MATH_H
#define BASE_MATH_H

/* Largest measured error in units in the last place: exp 0.86, log 0.84, log1p 0.85, expm1 1.3, pow
 * 0.87, tanh 2.5, erf 1.2, sin and cos 0.78. Powers of integers that fit in 53 bits are exact. */
double math_exp(double x);
double math_log(double x);
double math_log1p(double x);
double math_expm1(double x);
double math_pow(double x, double y);
double math_tanh(double x);
double math_erf(double x);

/* For arguments up to MATH_ANGLE_MAX in magnitude; beyond it NaN rather than a bad value. */
#define MATH_ANGLE_MAX 1e6
double math_sin(double x);
double math_cos(double x);

/* Fast forms for MATH_EACH elements: y[i] = math_log(x[i]) for normal positive x, and y[i] =
 * math_cos(x[i]) for |x[i]| <= MATH_ANGLE_MAX. */
#define MATH_EACH 16
void math_log_each(const double *x, double *y);
void math_cos_each(const double *x, double *y);

#endif
