# SPDX-License-Identifier: Apache-2.0
"""Operators in PyTorch: each case is a name, its inputs, and a function of them. cases.h has the
same names with the corresponding calls of the library.

Inputs: "p[2,3]@-1:1" has random numbers by the case's name and the input's position; p is
differentiated, s is f32 but not differentiated, i is int64. In a case whose name ends in
_train the function may change its inputs in place (running statistics); the final content of
an s is stored as "after"."""
import re

import numpy as np
import torch
from torch.nn import functional as F

from make import draw, draw_int

CASES = {}


def case(name, inputs, function):
    assert name not in CASES
    CASES[name] = (inputs.split(), function)


def unary(name, function, low=-3, high=3):
    case(name, f"p[3,7]@{low}:{high}", function)


unary("neg", torch.neg)
unary("exp", torch.exp)
unary("log", torch.log, 0.1, 4)
unary("sqrt", torch.sqrt, 0.1, 4)
unary("rsqrt", torch.rsqrt, 0.1, 4)
unary("abs", torch.abs)
unary("erf", torch.erf)
unary("clip", lambda x: x.clamp(-1, 2))
unary("relu", F.relu)
unary("relu6", F.relu6, -3, 9)
unary("leaky_relu", lambda x: F.leaky_relu(x, 0.2))
unary("gelu", F.gelu)
unary("gelu_wide", F.gelu, -12, 12)
unary("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"))
unary("silu", F.silu)
unary("sigmoid", torch.sigmoid)
unary("sigmoid_wide", torch.sigmoid, -60, 60)
unary("tanh", torch.tanh)
unary("softplus", F.softplus)

case("add_broadcast", "p[2,3,4]@-1:1 p[3,1]@-1:1", torch.add)
case("sub_broadcast", "p[4]@-1:1 p[2,3,4]@-1:1", torch.sub)
case("mul_broadcast", "p[2,1,4]@-1:1 p[3,1]@-1:1", torch.mul)
case("div_broadcast", "p[2,3]@-1:1 p[3]@0.5:2", torch.div)
case("pow", "p[2,5]@0.2:3 p[2,5]@-2:2", torch.pow)
case("pow_broadcast", "p[2,5]@0.2:3 p[5]@-2:2", torch.pow)
case("maximum", "p[3,5]@-1:1 p[3,5]@-1:1", torch.maximum)
case("minimum", "p[3,5]@-1:1 p[5]@-1:1", torch.minimum)
case("where", "p[3,5]@-1:1 p[5]@-1:1", lambda a, b: torch.where(a > b, a * a, b))

case("matmul", "p[5,7]@-1:1 p[7,4]@-1:1", torch.matmul)
case("matmul_ta", "p[7,5]@-1:1 p[7,4]@-1:1", lambda a, b: a.mT @ b)
case("matmul_tb", "p[5,7]@-1:1 p[4,7]@-1:1", lambda a, b: a @ b.mT)
case("matmul_ta_tb", "p[7,5]@-1:1 p[4,7]@-1:1", lambda a, b: a.mT @ b.mT)
case("matmul_batch", "p[2,3,5,7]@-1:1 p[2,3,7,4]@-1:1", torch.matmul)
case("matmul_batch_tb", "p[2,3,5,7]@-1:1 p[2,3,4,7]@-1:1", lambda a, b: a @ b.mT)
case("matmul_broadcast", "p[2,1,5,7]@-1:1 p[3,7,4]@-1:1", torch.matmul)
case("matmul_shared", "p[2,3,7]@-1:1 p[7,4]@-1:1", torch.matmul)

case("conv", "p[2,3,7,6]@-1:1 p[4,3,3,3]@-1:1", F.conv2d)
case("conv_bias", "p[2,3,7,6]@-1:1 p[4,3,3,3]@-1:1 p[4]@-1:1",
     lambda x, w, b: F.conv2d(x, w, b, padding=1))
case("conv_1x1", "p[2,5,4,4]@-1:1 p[6,5,1,1]@-1:1", F.conv2d)
case("conv_stride", "p[2,3,9,8]@-1:1 p[4,3,3,3]@-1:1",
     lambda x, w: F.conv2d(x, w, stride=2, padding=1))
case("conv_stride_uneven", "p[1,2,9,8]@-1:1 p[3,2,3,2]@-1:1",
     lambda x, w: F.conv2d(x, w, stride=(2, 3), padding=(1, 2)))
case("conv_dilation", "p[2,2,9,9]@-1:1 p[3,2,3,3]@-1:1",
     lambda x, w: F.conv2d(x, w, padding=2, dilation=2))
case("conv_groups", "p[2,4,6,6]@-1:1 p[6,2,3,3]@-1:1", lambda x, w: F.conv2d(x, w, groups=2))
case("conv_depthwise", "p[2,4,6,6]@-1:1 p[4,1,3,3]@-1:1",
     lambda x, w: F.conv2d(x, w, padding=1, stride=2, groups=4))
case("conv_stem", "p[1,3,16,16]@-1:1 p[4,3,7,7]@-1:1",
     lambda x, w: F.conv2d(x, w, stride=2, padding=3))

BN = "p[4,3,2,3]@-2:2 p[3]@0.5:1.5 p[3]@-1:1 s[3]@-1:1 s[3]@0.5:2"


def batch_norm(training, momentum=0.1, eps=1e-5):
    return lambda x, g, b, m, v: F.batch_norm(x, m, v, g, b, training, momentum, eps)


def batch_norm_groups(x, g, b, m, v):
    """Two halves of the batch with their own statistics; the running ones take their mean."""
    before = m.clone(), v.clone()
    kept, out = [], []
    for half in x.chunk(2):
        mean, var = before[0].clone(), before[1].clone()
        out.append(F.batch_norm(half, mean, var, g, b, True))
        kept.append((mean, var))
    m.copy_((kept[0][0] + kept[1][0]) / 2)
    v.copy_((kept[0][1] + kept[1][1]) / 2)
    return torch.cat(out)


case("batch_norm_train", BN, batch_norm(True))
case("batch_norm_momentum_train", BN, batch_norm(True, 0.3, 1e-3))
case("batch_norm_groups_train", BN, batch_norm_groups)
case("batch_norm_dense_train", "p[6,3]@-2:2 p[3]@0.5:1.5 p[3]@-1:1 s[3]@-1:1 s[3]@0.5:2",
     batch_norm(True))
case("batch_norm_eval", BN, batch_norm(False))
case("layer_norm", "p[2,3,8]@-2:2 p[8]@0.5:1.5 p[8]@-1:1",
     lambda x, g, b: F.layer_norm(x, (8,), g, b))
case("layer_norm_axes", "p[2,3,4]@-2:2 p[3,4]@0.5:1.5 p[3,4]@-1:1",
     lambda x, g, b: F.layer_norm(x, (3, 4), g, b, 1e-3))
case("layer_norm_plain", "p[3,8]@-2:2", lambda x: F.layer_norm(x, (8,)))
case("group_norm", "p[2,6,3,2]@-2:2 p[6]@0.5:1.5 p[6]@-1:1",
     lambda x, g, b: F.group_norm(x, 3, g, b))

case("max_pool", "p[2,2,6,6]@-1:1", lambda x: F.max_pool2d(x, 2))
case("max_pool_overlap", "p[2,2,7,8]@-1:1", lambda x: F.max_pool2d(x, 3, 2, 1))
case("max_pool_ceil", "p[1,2,6,8]@-1:1", lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True))
case("avg_pool", "p[2,2,6,6]@-1:1", lambda x: F.avg_pool2d(x, 2))
case("avg_pool_pad", "p[2,2,7,6]@-1:1", lambda x: F.avg_pool2d(x, 3, 2, 1))
case("avg_pool_exclude_pad", "p[2,2,7,6]@-1:1",
     lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False))
case("avg_pool_ceil", "p[1,2,6,8]@-1:1", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True))
case("global_avg_pool", "p[2,3,4,5]@-1:1", lambda x: x.mean((2, 3)))

case("softmax", "p[3,7]@-4:4", lambda x: x.softmax(-1))
case("softmax_middle", "p[2,5,3]@-4:4", lambda x: x.softmax(1))
case("softmax_far", "p[2,5]@-200:200", lambda x: x.softmax(-1))
case("log_softmax", "p[3,7]@-4:4", lambda x: x.log_softmax(-1))
case("log_softmax_far", "p[2,5]@-200:200", lambda x: x.log_softmax(-1))


def attention(q, k, v, mask=None, causal=False, scale=None):
    scores = q @ k.mT * (scale or q.shape[-1] ** -0.5)
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).tril() == 0, -torch.inf)
    return scores.softmax(-1) @ v


def in_heads(*tensors, heads):
    """[b, s, h d] to [b, h, s, d]"""
    return [x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in tensors]


def beside(y):
    return y.transpose(1, 2).flatten(2)


QKV = "p[2,2,5,4]@-2:2 p[2,2,7,4]@-2:2 p[2,2,7,3]@-1:1"
case("attention", QKV, attention)
case("attention_causal", QKV, lambda q, k, v: attention(q, k, v, causal=True, scale=1.5))
case("attention_mask", QKV + " p[2,1,5,7]@-3:3", attention)
case("attention_mask_key", QKV + " p[2,1,1,7]@-3:3",
     lambda q, k, v, m: attention(q, k, v, m, causal=True))
case("attention_bool", QKV + " i[5,7]@0:3",
     lambda q, k, v, m: attention(q, k, v, torch.where(m > 0, 0.0, -torch.inf)))
case("attention_beside", "p[2,5,6]@-2:2 p[2,4,6]@-2:2 p[2,4,9]@-1:1",
     lambda q, k, v: beside(attention(*in_heads(q, k, v, heads=3))))
case("attention_packed", "p[2,5,18]@-2:2",
     lambda x: beside(attention(*in_heads(*x.chunk(3, -1), heads=3), causal=True)))

CE = "p[6,5]@-4:4 i[6]@0:5"


def ignoring(x, y, **options):
    y = y.clone()
    y[1] = y[4] = -100  # the other side uses arithmetic on a list of six
    return F.cross_entropy(x, y, **options)


case("cross_entropy", CE, F.cross_entropy)
case("cross_entropy_sum", CE, lambda x, y: F.cross_entropy(x, y, reduction="sum"))
case("cross_entropy_none", CE, lambda x, y: F.cross_entropy(x, y, reduction="none"))
case("cross_entropy_smoothing", CE, lambda x, y: F.cross_entropy(x, y, label_smoothing=0.2))
case("cross_entropy_ignore", CE, ignoring)
case("cross_entropy_ignore_smoothing", CE, lambda x, y: ignoring(x, y, label_smoothing=0.1))
case("cross_entropy_places", "p[2,3,5]@-4:4 i[2,3]@0:5",
     lambda x, y: F.cross_entropy(x.reshape(6, 5), y.reshape(6)))
case("cross_entropy_dense", "p[6,5]@-4:4 s[6,5]@-2:2",
     lambda x, y: F.cross_entropy(x, y.softmax(-1)))
case("cross_entropy_dense_smoothing", "p[6,5]@-4:4 s[6,5]@-2:2",
     lambda x, y: F.cross_entropy(x, y.softmax(-1), label_smoothing=0.2))
case("cross_entropy_far", "p[4,5]@-300:300 i[4]@0:5", F.cross_entropy)
PAIR = "p[4,3]@-2:2 p[4,3]@-2:2"
case("mse", PAIR, F.mse_loss)
case("mse_sum", PAIR, lambda x, y: F.mse_loss(x, y, reduction="sum"))
case("mse_none", PAIR, lambda x, y: F.mse_loss(x, y, reduction="none"))
case("l1", PAIR, F.l1_loss)
case("huber", PAIR, F.huber_loss)
case("huber_delta", PAIR, lambda x, y: F.huber_loss(x, y, delta=0.4, reduction="sum"))
case("bce", "p[4,3]@-4:4 s[4,3]@0:1", F.binary_cross_entropy_with_logits)
case("bce_far", "p[4,3]@-90:90 s[4,3]@0:1",
     lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"))

case("sum_axis", "p[2,3,4]@-1:1", lambda x: x.sum(1))
case("mean_axes_keep", "p[2,3,4]@-1:1", lambda x: x.mean((0, 2), keepdim=True))
case("max_axis", "p[2,3,4]@-1:1", lambda x: x.amax(1))
case("argmax", "s[3,7]@-1:1", lambda x: x.argmax(1))
case("top_k", "p[3,7]@-1:1", lambda x: x.topk(3))
case("gather", "p[6,4]@-1:1 i[2,5]@0:6", lambda t, i: F.embedding(i, t))
case("one_hot", "i[5]@0:4", lambda i: F.one_hot(i, 4).double())
case("reshape", "p[2,6]@-1:1", lambda x: x.reshape(3, 4))
case("transpose", "p[2,3,4]@-1:1", lambda x: x.permute(2, 0, 1))
case("slice", "p[3,6]@-1:1", lambda x: x[:, 1:4])
case("concat", "p[2,3]@-1:1 p[2,2]@-1:1", lambda a, b: torch.cat((a, b), 1))
case("split", "p[2,6]@-1:1", lambda x: x.chunk(3, 1))
case("pad", "p[2,3]@-1:1", lambda x: F.pad(x, (2, 0, 0, 1), value=0.5))
case("expand", "p[3,1]@-1:1", lambda x: x.expand(2, 3, 4))
case("global_norm", "p[3,4]@-1:1 p[5]@-1:1",
     lambda a, b: torch.cat((a.flatten(), b.flatten())).norm())


def make_input(name, i, text):
    kind, shape, low, high = re.fullmatch(r"([psi])\[([\d,]+)\]@([\d.-]+):([\d.-]+)", text).groups()
    shape = [int(d) for d in shape.split(",")]
    made = draw_int if kind == "i" else draw
    value = made(f"{name}.in{i}", int(np.prod(shape)), float(low), float(high))
    value = torch.from_numpy(value).reshape(shape)
    return kind, value if kind == "i" else value.double().requires_grad_(kind == "p")


def make():
    tensors, metadata = {}, {}
    for name, (inputs, function) in CASES.items():
        made = [make_input(name, i, text) for i, text in enumerate(inputs)]
        outs = function(*(value for _, value in made))
        outs = outs if isinstance(outs, (tuple, list)) else (outs,)
        for k, out in enumerate(outs):
            tensors[f"{name}/out{k}"] = out.detach().numpy()
        if outs[0].requires_grad:
            # every floating-point output is weighted, the k-th with its own numbers
            total = 0
            for k, out in enumerate(outs):
                if out.is_floating_point():
                    dy = torch.from_numpy(draw(f"{name}.dy{k}", out.numel())).double()
                    total = total + (out * dy.reshape(out.shape)).sum()
            total.backward()
        for i, (kind, value) in enumerate(made):
            if kind == "p":
                tensors[f"{name}/d{i}"] = value.grad.numpy()
            elif kind == "s" and name.endswith("_train"):
                tensors[f"{name}/after{i}"] = value.numpy()
        metadata[name] = " ".join(inputs)
    return tensors, metadata
