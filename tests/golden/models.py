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
    """The nearest that any relu came to 0, or the two largest of a pooling window to each other,
    relative to the tensor's root mean square. There a rounding error flips a derivative, and ten
    steps of a deep network make another network of it: such data prove nothing."""

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
        top = top[top[..., 0] > 0]  # of zeros, relu's derivative is 0
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
    """Weights uniform with variance 1 / fan-in; scales and variances about 1, the rest small. The
    scale at the end of a residual branch is small too: otherwise the gradients of a deep network
    explode, and rounding errors with them."""
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


def image_batch(shape, classes):
    def batch(n, step, data):
        per = shape[0] * shape[1] * shape[2]
        x = torch.from_numpy(draw(f"image.{data}", n * per, first=step * n * per))
        x = x.reshape(n, *shape)
        y = torch.from_numpy(draw_int(f"label.{data}", n, 0, classes, first=step * n))
        return x.double(), y

    return batch


def linear_batch(n, step, data):
    x = torch.from_numpy(draw(f"features.{data}", n * 2, first=step * n * 2)).reshape(n, 2)
    y = torch.from_numpy(draw(f"target.{data}", n, 0.0, 10.0, first=step * n)).reshape(n, 1)
    return x.double(), y.double()


MNIST = image_batch((1, 28, 28), 10)
FAMILIES = {
    # name: (our spec, network, batches, samples of a batch, loss)
    "linear": ("linear", lambda: Linear(), linear_batch, 16, F.mse_loss),
    "mlp": ("mlp:hidden=24,layers=2,size=8,smoothing=0.1", lambda: Mlp(8, 24, 2, 10),
            image_batch((1, 8, 8), 10), 16,
            lambda y, t: F.cross_entropy(y, t, label_smoothing=0.1)),
    "lenet5": ("lenet5", Lenet5, MNIST, 8, F.cross_entropy),
    "cnn": ("cnn:width=4", lambda: Cnn(4), MNIST, 8, F.cross_entropy),
    "resnet18": ("resnet18:form=small,width=4,classes=10,size=16",
                 lambda: Resnet(Basic, (2, 2, 2, 2), 4, 10, True),
                 image_batch((3, 16, 16), 10), 8, F.cross_entropy),
    "resnet50": ("resnet50:width=4,classes=12,size=32",
                 lambda: Resnet(Bottleneck, (3, 4, 6, 3), 4, 12, False),
                 image_batch((3, 32, 32), 12), 8, F.cross_entropy),
}

# run: family, then what tri_optimizer is told
RUNS = {
    "linear-sgd": ("linear", dict(name="sgd", lr=0.1)),
    "mlp-sgd-decay-all": ("mlp", dict(name="sgd", lr=0.2, weight_decay=0.05, decay_all=1)),
    "mlp-momentum": ("mlp", dict(name="momentum", lr=0.1, weight_decay=0.01)),
    "mlp-nesterov": ("mlp", dict(name="nesterov", lr=0.05, weight_decay=0.01, momentum=0.8)),
    "mlp-adam": ("mlp", dict(name="adam", lr=0.01, weight_decay=0.01)),
    "mlp-adamw": ("mlp", dict(name="adamw", lr=0.01, weight_decay=0.1, beta1=0.8, beta2=0.99)),
    "mlp-clip": ("mlp", dict(name="momentum", lr=0.1, clip_norm=0.5)),
    "lenet5-momentum": ("lenet5", dict(name="momentum", lr=0.05, weight_decay=0.01)),
    "cnn-momentum": ("cnn", dict(name="momentum", lr=0.02, weight_decay=0.01)),
    "resnet18-momentum": ("resnet18", dict(name="momentum", lr=0.01, weight_decay=0.001)),
    "resnet50-momentum": ("resnet50", dict(name="momentum", lr=0.003, weight_decay=0.001)),
}


def optimizer(net, o):
    decay = o.get("weight_decay", 0.0)
    groups = [
        dict(params=[p for p in net.parameters() if p.dim() > 1], weight_decay=decay),
        dict(params=[p for p in net.parameters() if p.dim() <= 1],
             weight_decay=decay if o.get("decay_all") else 0.0),
    ]
    betas = (o.get("beta1", 0.9), o.get("beta2", 0.999))
    if o["name"] == "adam":
        return torch.optim.Adam(groups, o["lr"], betas)
    if o["name"] == "adamw":
        return torch.optim.AdamW(groups, o["lr"], betas)
    momentum = 0.0 if o["name"] == "sgd" else o.get("momentum", 0.9)
    return torch.optim.SGD(groups, o["lr"], momentum, nesterov=o["name"] == "nesterov")


def run_family(family, data, tensors, metadata):
    spec, build, batch, n, loss = FAMILIES[family]
    net = build().double()
    set_drawn(net)
    metadata[family + "/model"], metadata[family + "/batch"] = spec, str(n)
    metadata[family + "/data"] = str(data)
    normed = any(isinstance(m, nn.BatchNorm2d) for m in net.modules())
    metadata[family + "/any_lanes"] = "0" if normed else "1"
    net.eval()
    x, y = batch(n, 0, data)
    out = net(x)
    tensors[family + "/out"] = out.detach().numpy()
    tensors[family + "/loss"] = loss(out, y).detach().reshape(1).numpy()
    net.train()
    loss(net(x), y).backward()
    for name, p in net.named_parameters():
        tensors[f"{family}/grad/{name}"] = digest(name, p.grad)


def run_steps(run, data, tensors, metadata):
    family, o = RUNS[run]
    _, build, batch, n, loss = FAMILIES[family]
    net = build().double()
    set_drawn(net)
    opt = optimizer(net, o)
    metadata[run + "/family"] = family
    for key, value in o.items():
        metadata[f"{run}/{key}"] = str(value)
    losses = []
    for step in range(STEPS):
        x, y = batch(n, step, data)
        opt.zero_grad()
        value = loss(net(x), y)
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
