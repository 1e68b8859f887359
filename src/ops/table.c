/* SPDX-License-Identifier: Apache-2.0
 * The list of all built-in operators. Each row is in the file with the operator's name. */
#include "ops/op.h"

#define SOURCES(X) X(input) X(param) X(state) X(constant) X(scalar) X(array) X(fill_like) X(given)

#define UNARY(X)                                                                            \
    X(neg) X(exp) X(log) X(sqrt) X(rsqrt) X(abs) X(sign) X(erf) X(clip)                     \
    X(relu) X(relu6) X(leaky_relu) X(gelu) X(gelu_tanh) X(silu) X(sigmoid) X(tanh)          \
    X(softplus) X(not) X(cast) X(stop_gradient)

#define BINARY(X)                                                                           \
    X(add) X(sub) X(mul) X(div) X(pow) X(maximum) X(minimum)                                \
    X(equal) X(not_equal) X(less) X(less_equal) X(greater) X(greater_equal)                 \
    X(and) X(or) X(where)

#define SHAPE(X)                                                                            \
    X(reshape) X(transpose) X(slice) X(concat) X(split) X(pad) X(expand)                    \
    X(gather) X(gather_grad) X(one_hot) X(reorder)

#define REDUCE(X)                                                                           \
    X(sum) X(mean) X(spread) X(max) X(argmax) X(top_k) X(sum_squares) X(all_finite)

#define NETWORK(X)                                                                          \
    X(matmul) X(conv2d) X(conv2d_dx) X(conv2d_dw)                                           \
    X(max_pool) X(max_pool_dx) X(avg_pool) X(avg_pool_dx)                                   \
    X(batch_norm) X(batch_norm_dx) X(layer_norm) X(layer_norm_dx)                           \
    X(group_norm) X(group_norm_dx) X(softmax) X(log_softmax)                                \
    X(cross_entropy) X(cross_entropy_dx) X(in_top_k) X(dropout)                              \
    X(attention) X(attention_dx) X(attention_dmask)

#define OPERATORS(X) SOURCES(X) UNARY(X) BINARY(X) SHAPE(X) REDUCE(X) NETWORK(X)

#define DECLARE(name) extern const tri_op op_##name;
#define ADDRESS(name) &op_##name,

OPERATORS(DECLARE)

const tri_op *const ops_table[] = {OPERATORS(ADDRESS) NULL};
