# SPDX-License-Identifier: Apache-2.0
"""The zoo's families in PyTorch, and the runs whose numbers test_golden.c compares."""
import itertools
import math

import torch
from torch import nn
from torch.nn import functional as F

from make import digest, draw, draw_int

STEPS = 10
MARGIN = 2e-6


class Kinks:
    """The smallest distance of any relu to 0, or of the two largest values of a pooling window
    to each other, relative to the tensor's root mean square. There a rounding error flips a
    derivative, and ten steps of a deep network amplify it: such data prove nothing."""

    nearest = math.inf

    @classmethod
    def see(cls, distance, x):
        cls.nearest = min(cls.nearest, (distance.min() / x.square().mean().sqrt()).item())

    @classmethod
    def relu(cls, x):
        cls.see(x.detach().abs(), x.detach())
        return F.relu(x)

    @classmethod
    def max_pool(cls, x, size, stride=None, pad=0):
        stride = stride or size
        seen = F.pad(x.detach(), (pad,) * 4, value=-math.inf)
        windows = seen.unfold(2, size, stride).unfold(3, size, stride).flatten(4)
        top = windows.topk(2).values
        top = top[top[..., 0] > 0]  # relu's derivative at 0 is 0
        cls.see(top[..., 0] - top[..., 1], x.detach())
        return F.max_pool2d(x, size, stride, pad)


relu, max_pool = Kinks.relu, Kinks.max_pool


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 1)

    def forward(self, x):
        return self.fc(x)


class Mlp(nn.Module):
    def __init__(self, size, hidden, layers, classes):
        super().__init__()
        width = [size * size] + [hidden] * layers + [classes]
        for i in range(layers + 1):
            self.add_module(f"fc{i + 1}", nn.Linear(width[i], width[i + 1]))

    def forward(self, x):
        x = x.flatten(1)
        *hidden, last = self.children()
        for layer in hidden:
            x = relu(layer(x))
        return last(x)


class Lenet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = max_pool(relu(self.conv1(x)), 2)
        x = max_pool(relu(self.conv2(x)), 2)
        x = relu(self.fc1(x.flatten(1)))
        return self.fc3(relu(self.fc2(x)))


class Cnn(nn.Module):
    def __init__(self, width):
        super().__init__()
        channels = [1, width, 2 * width, 4 * width]
        for i in range(3):
            conv = nn.Conv2d(channels[i], channels[i + 1], 3, padding=1, bias=False)
            self.add_module(f"conv{i + 1}", conv)
            self.add_module(f"bn{i + 1}", nn.BatchNorm2d(channels[i + 1]))
        self.fc1 = nn.Linear(4 * width * 49, 4 * width)
        self.fc2 = nn.Linear(4 * width, 10)

    def forward(self, x):
        x = max_pool(relu(self.bn1(self.conv1(x))), 2)
        x = max_pool(relu(self.bn2(self.conv2(x))), 2)
        x = relu(self.bn3(self.conv3(x)))
        return self.fc2(relu(self.fc1(x.flatten(1))))


def conv(i, o, size, stride=1):
    return nn.Conv2d(i, o, size, stride, size // 2, bias=False)


class Basic(nn.Module):
    expansion = 1

    def __init__(self, i, width, stride):
        super().__init__()
        self.conv1, self.bn1 = conv(i, width, 3, stride), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv(width, width, 3), nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or i != width:
            self.downsample = nn.Sequential(conv(i, width, 1, stride), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(relu(self.bn1(self.conv1(x)))))
        return relu(y + (self.downsample(x) if self.downsample else x))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, i, width, stride):
        super().__init__()
        out = 4 * width
        self.conv1, self.bn1 = conv(i, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = conv(width, out, 1), nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1 or i != out:
            self.downsample = nn.Sequential(conv(i, out, 1, stride), nn.BatchNorm2d(out))

    def forward(self, x):
        y = relu(self.bn1(self.conv1(x)))
        y = relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return relu(y + (self.downsample(x) if self.downsample else x))


class Resnet(nn.Module):
    def __init__(self, block, blocks, width, classes, small):
        super().__init__()
        self.small = small
        self.conv1 = conv(3, width, 3) if small else conv(3, width, 7, 2)
        self.bn1 = nn.BatchNorm2d(width)
        i = width
        for layer, n in enumerate(blocks):
            made = []
            for k in range(n):
                made.append(block(i, width << layer, 2 if layer and not k else 1))
                i = (width << layer) * block.expansion
            self.add_module(f"layer{layer + 1}", nn.Sequential(*made))
        self.fc = nn.Linear(i, classes)

    def forward(self, x):
        x = relu(self.bn1(self.conv1(x)))
        if not self.small:
            x = max_pool(x, 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def set_drawn(net):
    """Weights uniform with variance 1 / fan-in; scales and variances about 1, the rest small.
    The scale at the end of a residual branch is small too: otherwise the gradients of a deep
    network explode, and rounding errors with them."""
    for name, value in net.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        n = value.numel()
        if value.dim() > 1:
            bound = math.sqrt(3.0 / (n // value.shape[0]))
            drawn = draw(name, n, -bound, bound)
        elif name.endswith("bn3.weight"):
            drawn = draw(name, n, 0.05, 0.15)
        elif name.endswith(("weight", "running_var")):
            drawn = draw(name, n, 0.5, 1.5)
        else:
            drawn = draw(name, n, -0.2, 0.2)
        value.copy_(torch.from_numpy(drawn).reshape(value.shape))


class Bert(nn.Module):
    """Hugging Face's BertForPreTraining, without dropout."""

    def __init__(self, vocab, positions, hidden, heads, layers):
        super().__init__()
        self.heads = heads
        embeddings = nn.Module()
        embeddings.word_embeddings = nn.Embedding(vocab, hidden)
        embeddings.position_embeddings = nn.Embedding(positions, hidden)
        embeddings.token_type_embeddings = nn.Embedding(2, hidden)
        embeddings.LayerNorm = nn.LayerNorm(hidden, 1e-12)
        encoder, pooler, transform = nn.Module(), nn.Module(), nn.Module()
        encoder.layer = nn.ModuleList(self.layer(hidden) for _ in range(layers))
        pooler.dense = nn.Linear(hidden, hidden)
        self.bert, self.cls = nn.Module(), nn.Module()
        self.bert.embeddings, self.bert.encoder, self.bert.pooler = embeddings, encoder, pooler
        transform.dense = nn.Linear(hidden, hidden)
        transform.LayerNorm = nn.LayerNorm(hidden, 1e-12)
        self.cls.predictions = nn.Module()
        self.cls.predictions.transform = transform
        self.cls.predictions.bias = nn.Parameter(torch.zeros(vocab))
        self.cls.seq_relationship = nn.Linear(hidden, 2)

    @staticmethod
    def layer(hidden):
        def output(i):
            o = nn.Module()
            o.dense, o.LayerNorm = nn.Linear(i, hidden), nn.LayerNorm(hidden, 1e-12)
            return o

        made = nn.Module()
        made.attention, made.intermediate = nn.Module(), nn.Module()
        made.attention.self = nn.Module()
        for name in ("query", "key", "value"):
            made.attention.self.add_module(name, nn.Linear(hidden, hidden))
        made.attention.output = output(hidden)
        made.intermediate.dense = nn.Linear(hidden, 4 * hidden)
        made.output = output(4 * hidden)
        return made

    def forward(self, ids, types, mask, positions=None):
        e = self.bert.embeddings
        x = e.word_embeddings(ids) + e.token_type_embeddings(types)
        x = e.LayerNorm(x + e.position_embeddings(torch.arange(ids.shape[1])))
        for layer in self.bert.encoder.layer:
            own, out = layer.attention.self, layer.attention.output
            y = attention(own.query(x), own.key(x), own.value(x), self.heads,
                          mask[:, None, None, :] != 0)
            x = out.LayerNorm(out.dense(y) + x)
            y = F.gelu(layer.intermediate.dense(x))
            x = layer.output.LayerNorm(layer.output.dense(y) + x)
        pooled = torch.tanh(self.bert.pooler.dense(x[:, 0]))
        head = self.cls.predictions
        if positions is not None:
            x = x.gather(1, positions[:, :, None].expand(-1, -1, x.shape[2]))
        x = head.transform.LayerNorm(F.gelu(head.transform.dense(x)))
        return F.linear(x, e.word_embeddings.weight, head.bias), self.cls.seq_relationship(pooled)


class Conv1D(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(i, o))
        self.bias = nn.Parameter(torch.zeros(o))

    def forward(self, x):
        return x @ self.weight + self.bias


class Gpt2(nn.Module):
    """Hugging Face's GPT2LMHeadModel, without dropout."""

    def __init__(self, vocab, positions, hidden, heads, layers):
        super().__init__()
        self.heads = heads
        self.transformer = t = nn.Module()
        t.wte, t.wpe = nn.Embedding(vocab, hidden), nn.Embedding(positions, hidden)
        t.h = nn.ModuleList(self.block(hidden) for _ in range(layers))
        t.ln_f = nn.LayerNorm(hidden)

    @staticmethod
    def block(hidden):
        made = nn.Module()
        made.ln_1, made.ln_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        made.attn, made.mlp = nn.Module(), nn.Module()
        made.attn.c_attn = Conv1D(hidden, 3 * hidden)
        made.attn.c_proj = Conv1D(hidden, hidden)
        made.mlp.c_fc = Conv1D(hidden, 4 * hidden)
        made.mlp.c_proj = Conv1D(4 * hidden, hidden)
        return made

    def forward(self, ids):
        t, length = self.transformer, ids.shape[1]
        x = t.wte(ids) + t.wpe(torch.arange(length))
        causal = torch.ones(length, length).tril() != 0
        for h in t.h:
            q, k, v = h.attn.c_attn(h.ln_1(x)).split(x.shape[2], 2)
            x = x + h.attn.c_proj(attention(q, k, v, self.heads, causal))
            y = F.gelu(h.mlp.c_fc(h.ln_2(x)), approximate="tanh")
            x = x + h.mlp.c_proj(y)
        return t.ln_f(x) @ t.wte.weight.T


def attention(q, k, v, heads, allowed):
    def apart(x):
        return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)

    q, k, v = apart(q), apart(k), apart(v)
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
    scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    return (scores.softmax(3) @ v).transpose(1, 2).flatten(2)


# ---- fields of the data: name -> (shape of a sample, low, high, whole numbers) ----


def draw_batch(fields, n, step, data):
    batch = {}
    for name, (shape, low, high, whole) in fields.items():
        count = n * math.prod(shape)
        drawn = (draw_int if whole else draw)(f"{name}.{data}", count, low, high, step * count)
        if whole:
            drawn[drawn < 0] = -100  # a place to ignore
        value = torch.from_numpy(drawn).reshape(n, *shape)
        batch[name] = value if whole else value.double()
    return batch


def image_fields(channels, size, classes):
    return {"image": ((channels, size, size), -1, 1, False), "label": ((), 0, classes, True)}


def token_fields(length, vocab, **others):
    return {"input_ids": ((length,), 0, vocab, True), **others}


def bert_fields(length, vocab, **others):
    return token_fields(length, vocab, token_type_ids=((length,), 0, 2, True),
                        attention_mask=((length,), 0.8, 2, True),  # mostly 1
                        next_sentence_label=((), 0, 2, True), **others)


# ---- the network's outputs and the loss ----


def classify(smoothing=0.0):
    def ends(net, b):
        out = net(b["image"])
        return out, F.cross_entropy(out, b["label"], label_smoothing=smoothing)

    return ends


def regress(net, b):
    out = net(b["features"])
    return out, F.mse_loss(out, b["target"])


def pretrain_masked(net, b):
    out, following = net(b["input_ids"], b["token_type_ids"], b["attention_mask"],
                         b["masked_lm_positions"])
    weights = b["masked_lm_weights"]
    each = F.cross_entropy(out.transpose(1, 2), b["masked_lm_ids"], reduction="none")
    masked = (each * weights).sum() / (weights.sum() + 1e-5)
    return out, masked + F.cross_entropy(following, b["next_sentence_label"])


def pretrain_every(net, b):
    out, following = net(b["input_ids"], b["token_type_ids"], b["attention_mask"])
    masked = F.cross_entropy(out.flatten(0, 1), b["labels"].flatten())
    return out, masked + F.cross_entropy(following, b["next_sentence_label"])


def next_token(net, b):
    out = net(b["input_ids"])
    return out, F.cross_entropy(out[:, :-1].flatten(0, 1), b["labels"][:, 1:].flatten())


SMALL = "dropout=0,logits=1,hidden=16,inner=64,heads=2"
MNIST = image_fields(1, 28, 10)
FAMILIES = {
    # name: (our spec, network, fields, samples of a batch, output, output and loss by PyTorch)
    "linear": ("linear", Linear,
               {"features": ((2,), -1, 1, False), "target": ((1,), 0, 10, False)}, 16,
               "prediction", regress),
    "mlp": ("mlp:hidden=24,layers=2,size=8,smoothing=0.1", lambda: Mlp(8, 24, 2, 10),
            image_fields(1, 8, 10), 16, "logits", classify(0.1)),
    "lenet5": ("lenet5", Lenet5, MNIST, 8, "logits", classify()),
    "cnn": ("cnn:width=4", lambda: Cnn(4), MNIST, 8, "logits", classify()),
    "resnet18": ("resnet18:form=small,width=4,classes=10,size=16",
                 lambda: Resnet(Basic, (2, 2, 2, 2), 4, 10, True), image_fields(3, 16, 10), 8,
                 "logits", classify()),
    "resnet50": ("resnet50:width=4,classes=12,size=32",
                 lambda: Resnet(Bottleneck, (3, 4, 6, 3), 4, 12, False),
                 image_fields(3, 32, 12), 8, "logits", classify()),
    "bert": (f"bert-tiny:seq=10,positions=12,vocab=37,predictions=3,{SMALL}",
             lambda: Bert(37, 12, 16, 2, 2),
             bert_fields(10, 37, masked_lm_positions=((3,), 0, 10, True),
                         masked_lm_ids=((3,), 0, 37, True),
                         masked_lm_weights=((3,), 0, 2, False)),
             6, "prediction_logits", pretrain_masked),
    "bert-every": (f"bert-tiny:seq=8,positions=8,vocab=37,head=every,{SMALL}",
                   lambda: Bert(37, 8, 16, 2, 2),
                   bert_fields(8, 37, labels=((8,), -37, 37, True)), 6, "prediction_logits",
                   pretrain_every),
    "gpt2": (f"gpt2-tiny:seq=9,positions=12,vocab=31,{SMALL}", lambda: Gpt2(31, 12, 16, 2, 2),
             token_fields(9, 31, labels=((9,), -6, 31, True)), 6, "logits", next_token),
}

# run: family, then the arguments of tri_optimizer
RUNS = {
    "linear-sgd": ("linear", dict(name="sgd", lr=0.1)),
    "mlp-sgd-decay-all": ("mlp", dict(name="sgd", lr=0.2, weight_decay=0.05, decay_all=1)),
    "mlp-momentum": ("mlp", dict(name="momentum", lr=0.1, weight_decay=0.01)),
    "mlp-nesterov": ("mlp", dict(name="nesterov", lr=0.05, weight_decay=0.01, momentum=0.8)),
    "mlp-adam": ("mlp", dict(name="adam", lr=0.01, weight_decay=0.01)),
    "mlp-adamw": ("mlp", dict(name="adamw", lr=0.01, weight_decay=0.1, beta1=0.8, beta2=0.99)),
    "mlp-clip": ("mlp", dict(name="momentum", lr=0.1, clip_norm=0.5)),
    "mlp-lars": ("mlp", dict(name="lars", lr=5.0, weight_decay=0.01, trust=0.01)),
    "mlp-lars-all": ("mlp", dict(name="lars", lr=5.0, weight_decay=0.1, decay_all=1, momentum=0.5)),
    "mlp-lamb": ("mlp", dict(name="lamb", lr=0.02, weight_decay=0.01)),
    "mlp-lamb-all": ("mlp", dict(name="lamb", lr=0.02, weight_decay=0.1, decay_all=1, beta2=0.9)),
    "lenet5-momentum": ("lenet5", dict(name="momentum", lr=0.05, weight_decay=0.01)),
    "cnn-momentum": ("cnn", dict(name="momentum", lr=0.02, weight_decay=0.01)),
    "resnet18-momentum": ("resnet18", dict(name="momentum", lr=0.003, weight_decay=0.001)),
    "resnet50-momentum": ("resnet50", dict(name="momentum", lr=0.003, weight_decay=0.001)),
    # a large eps: where the derivative is only rounding error, the step must not be as large as the
    # rate
    "bert-adamw": ("bert", dict(name="adamw", lr=0.01, weight_decay=0.1, clip_norm=0.5, eps=1e-3)),
    "bert-lamb": ("bert", dict(name="lamb", lr=0.02, weight_decay=0.01, eps=1e-3)),
    "bert-every-momentum": ("bert-every", dict(name="momentum", lr=0.05, weight_decay=0.01)),
    "bert-every-lars": ("bert-every", dict(name="lars", lr=5.0, weight_decay=0.01, trust=0.01)),
    "gpt2-adamw": ("gpt2", dict(name="adamw", lr=0.01, weight_decay=0.1, eps=1e-3)),
    "gpt2-lamb": ("gpt2", dict(name="lamb", lr=0.02, weight_decay=0.01, clip_norm=0.5, eps=1e-3)),
}


class Layerwise:
    """LARS and LAMB as in timm: the parameters with decay are scaled by their norm."""

    def __init__(self, groups, o, betas):
        self.o, self.betas, self.steps = o, betas, 0
        self.params = [(p, g) for g in groups for p in g["params"]]
        self.first = [torch.zeros_like(p) for p, _ in self.params]
        self.second = [torch.zeros_like(p) for p, _ in self.params]

    def zero_grad(self):
        for p, _ in self.params:
            p.grad = None

    def lars(self, p, m, v, decay, scaled):
        norm, gradient = p.norm(), p.grad.norm()
        step = p.grad + decay * p
        if scaled and norm > 0 and gradient > 0:
            step = step * (self.o.get("trust", 0.001) * norm
                           / (gradient + decay * norm + self.o.get("eps", 1e-8)))
        m.mul_(self.o.get("momentum", 0.9)).add_(step)
        return m

    def lamb(self, p, m, v, decay, scaled):
        beta1, beta2 = self.betas
        m.mul_(beta1).add_(p.grad, alpha=1 - beta1)
        v.mul_(beta2).add_(p.grad.square(), alpha=1 - beta2)
        root = (v / (1 - beta2**self.steps)).sqrt() + self.o.get("eps", 1e-6)
        step = m / (1 - beta1**self.steps) / root + decay * p
        if scaled and p.norm() > 0 and step.norm() > 0:
            step = step * (p.norm() / step.norm())
        return step

    @torch.no_grad()
    def step(self):
        self.steps += 1
        rule = self.lars if self.o["name"] == "lars" else self.lamb
        for (p, g), m, v in zip(self.params, self.first, self.second):
            p.sub_(self.o["lr"] * rule(p, m, v, g["weight_decay"], g["scaled"]))


def optimizer(net, o):
    decay = o.get("weight_decay", 0.0)
    groups = [
        dict(params=[p for p in net.parameters() if p.dim() > 1], weight_decay=decay,
             scaled=True),
        dict(params=[p for p in net.parameters() if p.dim() <= 1],
             weight_decay=decay if o.get("decay_all") else 0.0, scaled=o.get("decay_all")),
    ]
    betas = (o.get("beta1", 0.9), o.get("beta2", 0.999))
    if o["name"] in ("lars", "lamb"):
        return Layerwise(groups, o, betas)
    if o["name"] == "adam":
        return torch.optim.Adam(groups, o["lr"], betas, o.get("eps", 1e-8))
    if o["name"] == "adamw":
        return torch.optim.AdamW(groups, o["lr"], betas, o.get("eps", 1e-8))
    momentum = 0.0 if o["name"] == "sgd" else o.get("momentum", 0.9)
    return torch.optim.SGD(groups, o["lr"], momentum, nesterov=o["name"] == "nesterov")


def run_family(family, data, tensors, metadata):
    spec, build, fields, n, output, ends = FAMILIES[family]
    net = build().double()
    set_drawn(net)
    metadata[family + "/model"], metadata[family + "/batch"] = spec, str(n)
    metadata[family + "/data"], metadata[family + "/output"] = str(data), output
    metadata[family + "/fields"] = " ".join(
        f"{name}:{low}:{high}" for name, (_, low, high, _) in fields.items())
    normed = any(isinstance(m, nn.BatchNorm2d) for m in net.modules())
    metadata[family + "/any_lanes"] = "0" if normed else "1"
    net.eval()
    batch = draw_batch(fields, n, 0, data)
    out, loss = ends(net, batch)
    tensors[family + "/out"] = out.detach().numpy()
    tensors[family + "/loss"] = loss.detach().reshape(1).numpy()
    net.train()
    ends(net, batch)[1].backward()
    for name, p in net.named_parameters():
        # mathematically 0 (of attention's key bias): the rest is only rounding error
        if p.grad.norm() > 1e-12:
            tensors[f"{family}/grad/{name}"] = digest(name, p.grad)


def run_steps(run, data, tensors, metadata):
    family, o = RUNS[run]
    _, build, fields, n, _, ends = FAMILIES[family]
    net = build().double()
    set_drawn(net)
    opt = optimizer(net, o)
    metadata[run + "/family"] = family
    for key, value in o.items():
        metadata[f"{run}/{key}"] = str(value)
    losses = []
    for step in range(STEPS):
        opt.zero_grad()
        value = ends(net, draw_batch(fields, n, step, data))[1]
        value.backward()
        if o.get("clip_norm"):
            norm = nn.utils.clip_grad_norm_(net.parameters(), o["clip_norm"])
            assert norm > o["clip_norm"], "the clipping must clip"
        opt.step()
        losses.append(value.item())
    tensors[run + "/losses"] = torch.tensor(losses, dtype=torch.float64).numpy()
    for name, value in net.state_dict().items():
        if not name.endswith("num_batches_tracked"):
            tensors[f"{run}/after/{name}"] = digest(name, value)


def make():
    """For each family the first data that keep clear of all kinks."""
    tensors, metadata = {}, {}
    for family in FAMILIES:
        for data in itertools.count():
            Kinks.nearest, found, about = math.inf, {}, {}
            run_family(family, data, found, about)
            for run in RUNS:
                if RUNS[run][0] == family and Kinks.nearest > MARGIN:
                    run_steps(run, data, found, about)
            if Kinks.nearest > MARGIN:
                break
        print(f"{family}: data {data}, {Kinks.nearest:.1g} from the nearest kink")
        tensors.update(found)
        metadata.update(about)
    return tensors, metadata
