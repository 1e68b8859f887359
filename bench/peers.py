# SPDX-License-Identifier: Apache-2.0
"""One training step of a zoo model in PyTorch on one thread: prints the median in milliseconds.
The networks are those of the golden tests; the step is forward, backward and SGD, on synthetic data
made beforehand. Usage: peers.py MODEL BATCH"""
import os
import statistics
import sys
import time

import torch
from torch.nn import functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/golden"))
import models  # noqa: E402

models.relu, models.max_pool = F.relu, F.max_pool2d  # without the golden tests' instruments

DEEP = {"resnet18": (models.Basic, (2, 2, 2, 2)), "resnet34": (models.Basic, (3, 4, 6, 3)),
        "resnet50": (models.Bottleneck, (3, 4, 6, 3)),
        "resnet101": (models.Bottleneck, (3, 4, 23, 3)),
        "resnet152": (models.Bottleneck, (3, 8, 36, 3))}
IMAGES = {"mlp": lambda: models.Mlp(28, 512, 2, 10), "lenet5": models.Lenet5,
          "cnn": lambda: models.Cnn(16)}


def build(spec, n):
    """(network, loss, input, target) of "resnet18" or "resnet18:form=small", as the zoo has them."""
    name, _, options = spec.partition(":")
    if name == "linear":
        return models.Linear(), F.mse_loss, torch.randn(n, 2), torch.randn(n, 1)
    if name in IMAGES and not options:
        return IMAGES[name](), F.cross_entropy, torch.rand(n, 1, 28, 28), torch.randint(10, (n,))
    if name in DEEP and options in ("", "form=small"):
        small = options != ""
        size = 32 if small else 224
        net = models.Resnet(*DEEP[name], 64, 1000, small)
        return net, F.cross_entropy, torch.rand(n, 3, size, size), torch.randint(1000, (n,))
    sys.exit(f"peers.py: {spec}: there are linear, {', '.join(IMAGES)} without options, and "
             f"{', '.join(DEEP)} with form=small or none")


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net, loss, x, y = build(sys.argv[1], int(sys.argv[2]))
    sgd = torch.optim.SGD(net.parameters(), 0.01)
    times, total = [], 0.0
    while len(times) < 13 or total < 5:
        begin = time.perf_counter()
        sgd.zero_grad(set_to_none=True)
        value = loss(net(x), y)
        value.backward()
        sgd.step()
        value.item()
        times.append(time.perf_counter() - begin)
        total += times[-1]
    print(f"{1e3 * statistics.median(times[3:]):.4g}")


main()
