/* SPDX-License-Identifier: Apache-2.0
 * The tasks: layers of networks, each forward and in both gradients. */
#include <stdio.h>

#include "kernels.h"

/* y [batch, m, n] = x [batch, m, k] w' for w [batch, n, k]. m counts tokens or samples. */
static const struct layer {
    const char *name;
    int64_t batch, m, n, k;
} layers[] = {
    {"bert-proj", 1, 1024, 768, 768},
    {"bert-up", 1, 1024, 3072, 768},
    {"bert-down", 1, 1024, 768, 3072},
    {"bert-pool", 1, 8, 768, 768},
    {"bert-words", 1, 1024, 30522, 768},
    {"bert-heads", 96, 128, 128, 64},
    {"gpt2-qkv", 1, 256, 2304, 768},
    {"gpt2-up", 1, 256, 3072, 768},
    {"gpt2-words", 1, 256, 50257, 768},
    {"gpt2-heads", 12, 256, 256, 64},
    {"mlp-fc1", 1, 128, 2048, 784},
    {"mlp-fc2", 1, 128, 2048, 2048},
    {"mlp-fc3", 1, 128, 10, 2048},
    {"resnet50-fc", 1, 16, 1000, 2048},
    {"lenet5-fc1", 1, 64, 120, 400},
    {"lenet5-fc2", 1, 64, 84, 120},
};

/* Forward, with a bias and GELU. */
static const struct layer gelus[] = {
    {"bert-up-gelu", 1, 1024, 3072, 768},
    {"gpt2-up-gelu", 1, 256, 3072, 768},
};

enum kind {
    INNER,     /* padded by size / 2, as the others */
    FIRST,     /* of its network: nobody needs dx */
    VALID,     /* without padding */
    DEPTHWISE, /* as many groups as channels */
};

/* Every distinct convolution of ResNet-50 and MobileNetV2 at 224, ResNet-18 at 32 and LeNet-5. */
static const struct shape {
    const char *network;
    int64_t count, c, o, size, stride, h;
    enum kind kind;
} shapes[] = {
    {"resnet50", 8, 3, 64, 7, 2, 224, FIRST},
    {"resnet50", 8, 64, 64, 1, 1, 56, INNER},
    {"resnet50", 8, 64, 64, 3, 1, 56, INNER},
    {"resnet50", 8, 64, 256, 1, 1, 56, INNER},
    {"resnet50", 8, 256, 64, 1, 1, 56, INNER},
    {"resnet50", 8, 256, 128, 1, 1, 56, INNER},
    {"resnet50", 8, 128, 128, 3, 2, 56, INNER},
    {"resnet50", 8, 128, 512, 1, 1, 28, INNER},
    {"resnet50", 8, 256, 512, 1, 2, 56, INNER},
    {"resnet50", 8, 512, 128, 1, 1, 28, INNER},
    {"resnet50", 8, 128, 128, 3, 1, 28, INNER},
    {"resnet50", 8, 512, 256, 1, 1, 28, INNER},
    {"resnet50", 8, 256, 256, 3, 2, 28, INNER},
    {"resnet50", 8, 256, 1024, 1, 1, 14, INNER},
    {"resnet50", 8, 512, 1024, 1, 2, 28, INNER},
    {"resnet50", 8, 1024, 256, 1, 1, 14, INNER},
    {"resnet50", 8, 256, 256, 3, 1, 14, INNER},
    {"resnet50", 8, 1024, 512, 1, 1, 14, INNER},
    {"resnet50", 8, 512, 512, 3, 2, 14, INNER},
    {"resnet50", 8, 512, 2048, 1, 1, 7, INNER},
    {"resnet50", 8, 1024, 2048, 1, 2, 14, INNER},
    {"resnet50", 8, 2048, 512, 1, 1, 7, INNER},
    {"resnet50", 8, 512, 512, 3, 1, 7, INNER},
    {"resnet18", 64, 3, 64, 3, 1, 32, FIRST},
    {"resnet18", 64, 64, 64, 3, 1, 32, INNER},
    {"resnet18", 64, 64, 128, 3, 2, 32, INNER},
    {"resnet18", 64, 64, 128, 1, 2, 32, INNER},
    {"resnet18", 64, 128, 128, 3, 1, 16, INNER},
    {"resnet18", 64, 128, 256, 3, 2, 16, INNER},
    {"resnet18", 64, 128, 256, 1, 2, 16, INNER},
    {"resnet18", 64, 256, 256, 3, 1, 8, INNER},
    {"resnet18", 64, 256, 512, 3, 2, 8, INNER},
    {"resnet18", 64, 256, 512, 1, 2, 8, INNER},
    {"resnet18", 64, 512, 512, 3, 1, 4, INNER},
    {"lenet5", 64, 1, 6, 5, 1, 28, FIRST},
    {"lenet5", 64, 6, 16, 5, 1, 14, VALID},
    {"mobilenetv2", 8, 3, 32, 3, 2, 224, FIRST},
    {"mobilenetv2", 8, 32, 32, 3, 1, 112, DEPTHWISE},
    {"mobilenetv2", 8, 32, 16, 1, 1, 112, INNER},
    {"mobilenetv2", 8, 16, 96, 1, 1, 112, INNER},
    {"mobilenetv2", 8, 96, 96, 3, 2, 112, DEPTHWISE},
    {"mobilenetv2", 8, 96, 24, 1, 1, 56, INNER},
    {"mobilenetv2", 8, 24, 144, 1, 1, 56, INNER},
    {"mobilenetv2", 8, 144, 144, 3, 1, 56, DEPTHWISE},
    {"mobilenetv2", 8, 144, 24, 1, 1, 56, INNER},
    {"mobilenetv2", 8, 144, 144, 3, 2, 56, DEPTHWISE},
    {"mobilenetv2", 8, 144, 32, 1, 1, 28, INNER},
    {"mobilenetv2", 8, 32, 192, 1, 1, 28, INNER},
    {"mobilenetv2", 8, 192, 192, 3, 1, 28, DEPTHWISE},
    {"mobilenetv2", 8, 192, 32, 1, 1, 28, INNER},
    {"mobilenetv2", 8, 192, 192, 3, 2, 28, DEPTHWISE},
    {"mobilenetv2", 8, 192, 64, 1, 1, 14, INNER},
    {"mobilenetv2", 8, 64, 384, 1, 1, 14, INNER},
    {"mobilenetv2", 8, 384, 384, 3, 1, 14, DEPTHWISE},
    {"mobilenetv2", 8, 384, 64, 1, 1, 14, INNER},
    {"mobilenetv2", 8, 384, 96, 1, 1, 14, INNER},
    {"mobilenetv2", 8, 96, 576, 1, 1, 14, INNER},
    {"mobilenetv2", 8, 576, 576, 3, 1, 14, DEPTHWISE},
    {"mobilenetv2", 8, 576, 96, 1, 1, 14, INNER},
    {"mobilenetv2", 8, 576, 576, 3, 2, 14, DEPTHWISE},
    {"mobilenetv2", 8, 576, 160, 1, 1, 7, INNER},
    {"mobilenetv2", 8, 160, 960, 1, 1, 7, INNER},
    {"mobilenetv2", 8, 960, 960, 3, 1, 7, DEPTHWISE},
    {"mobilenetv2", 8, 960, 160, 1, 1, 7, INNER},
    {"mobilenetv2", 8, 960, 320, 1, 1, 7, INNER},
    {"mobilenetv2", 8, 320, 1280, 1, 1, 7, INNER},
};

#define PRODUCTS (3 * (int)COUNT(layers))
#define GELUS (int)COUNT(gelus)
#define CONVOLUTIONS (3 * (int)COUNT(shapes))

const char *const directions[] = {"y", "dx", "dw"};

static void product(const struct layer *l, enum direction d, struct task *t) {
    const int64_t m = d == DW ? l->n : l->m, n = d == FORWARD ? l->n : l->k;
    const int64_t k = d == FORWARD ? l->k : d == DX ? l->n : l->m;
    const bool ta = d == DW, tb = d == FORWARD;
    *t = (struct task){.direction = d,
                       .product = {l->batch, m, n, k, .trans_a = ta, .trans_b = tb},
                       .in = {TRI_SHAPE(l->batch, ta ? k : m, ta ? m : k),
                              TRI_SHAPE(l->batch, tb ? n : k, tb ? k : n)},
                       .out = TRI_SHAPE(l->batch, m, n),
                       .flops = 2.0 * (double)(l->batch * m) * (double)(n * k)};
    snprintf(t->name, sizeof t->name, "%s-%s", l->name, directions[d]);
}

static void convolution(const struct shape *s, enum direction d, struct task *t) {
    const int64_t pad = s->kind == VALID ? 0 : s->size / 2;
    const int64_t groups = s->kind == DEPTHWISE ? s->c : 1;
    if (s->kind == FIRST && d == DX) return;
    const int64_t oh = (s->h + 2 * pad - s->size) / s->stride + 1;
    const tri_shape x = TRI_SHAPE(s->count, s->c, s->h, s->h);
    const tri_shape w = TRI_SHAPE(s->o, s->c / groups, s->size, s->size);
    const tri_shape y = TRI_SHAPE(s->count, s->o, oh, oh);
    *t = (struct task){.direction = d, .convolves = true,
                       .conv = {s->count, s->c, s->o, s->h, oh, s->size, s->stride, pad, groups},
                       .in = {d == FORWARD ? x : y, d == DW ? x : w},
                       .out = d == FORWARD ? y : d == DX ? x : w};
    t->flops = 2.0 * (double)tri_shape_count(&y) * (double)(s->c / groups * s->size * s->size);
    snprintf(t->name, sizeof t->name, "%s-%lldto%lld-%lldx%lld%s%s-at%lld-%s", s->network,
             (long long)s->c, (long long)s->o, (long long)s->size, (long long)s->size,
             s->stride > 1 ? "s2" : "", s->kind == DEPTHWISE ? "-depthwise" : "", (long long)s->h,
             directions[d]);
}

bool task_at(int i, struct task *t) {
    const int convolutions = i - PRODUCTS, rest = convolutions - CONVOLUTIONS;
    const enum direction d = (enum direction)(i % 3); /* of rows that come by threes */
    *t = (struct task){0};
    if (convolutions < 0) {
        product(&layers[i / 3], d, t);
    } else if (rest < 0) {
        convolution(&shapes[convolutions / 3], d, t);
    } else if (rest < GELUS) {
        product(&gelus[rest], FORWARD, t);
        t->product.gelu = true;
    }
    return rest < GELUS;
}
