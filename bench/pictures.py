# SPDX-License-Identifier: Apache-2.0
"""Pictures for `make bench`, and the peer's pipeline, in one thread.

    pictures.py make DIR N      writes N JPEGs like photographs: DIR/train/CLASS/*.jpg
    pictures.py rate DIR S      prints "samples_per_s=X by=NAME": decodes, takes a random part at
                                224 x 224, antialiased, mirrors half of them, normalises; for S
                                seconds or more

The pipeline is torchvision's if that is installed. Otherwise it does what torchvision does, with
the same library, Pillow, and NumPy for the rest."""
import glob
import io
import math
import os
import random
import sys
import time

import numpy
from PIL import Image

WIDTH, HEIGHT, BYTES = 500, 375, 100_000  # ImageNet's mean
SIZE = 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def picture(rng):
    """Noise at all scales, weaker where it is finer; colours mostly change together."""
    whole = numpy.zeros((HEIGHT, WIDTH, 3), numpy.float32)
    cells = 2
    while cells < WIDTH:
        shape = (max(2, cells * HEIGHT // WIDTH), cells)
        for channels, part in (1, 1.0), (3, 0.4):
            noise = rng.normal(0, 127, (*shape, channels)).clip(-400, 400)
            layers = [Image.fromarray(noise[..., c].astype(numpy.float32)).resize(
                (WIDTH, HEIGHT), Image.BICUBIC) for c in range(channels)]
            stack = numpy.stack([numpy.asarray(x) for x in layers], 2)
            whole += part * 1.6 / math.sqrt(cells) * stack
        cells *= 2
    return Image.fromarray((whole + 128).clip(0, 255).astype(numpy.uint8))


def encoded(image):
    """With the quality that gives it about as many bytes as a photograph."""
    low, high = 30, 97
    while low < high:
        quality = (low + high) // 2
        out = io.BytesIO()
        image.save(out, "JPEG", quality=quality)
        low, high = (quality + 1, high) if out.tell() < BYTES else (low, quality)
    return out.getvalue()


def make(directory, n):
    rng = numpy.random.default_rng(1)
    for i in range(n):
        folder = f"{directory}/train/{'even' if i % 2 == 0 else 'odd'}"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/{i:04d}.jpg", "wb") as f:
            f.write(encoded(picture(rng)))
    print(f"made {n}")


def random_box(width, height):
    """As in torchvision's RandomResizedCrop."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            x, y = random.randint(0, width - w), random.randint(0, height - h)
            return x, y, x + w, y + h
    return 0, 0, width, height


def by_pillow():
    mean, std = numpy.float32(MEAN), numpy.float32(STD)

    def one(path):
        with Image.open(path) as image:
            part = image.convert("RGB")
        part = part.crop(random_box(*part.size)).resize((SIZE, SIZE), Image.BILINEAR)
        if random.random() < 0.5:
            part = part.transpose(Image.FLIP_LEFT_RIGHT)
        x = numpy.asarray(part).transpose(2, 0, 1).astype(numpy.float32) / 255
        return (x - mean[:, None, None]) / std[:, None, None]

    return one, "Pillow and NumPy"


def by_torchvision():
    import torch
    from torchvision import transforms
    torch.set_num_threads(1)
    change = transforms.Compose([transforms.RandomResizedCrop(SIZE),
                                 transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                                 transforms.Normalize(MEAN, STD)])

    def one(path):
        with open(path, "rb") as f:
            return change(Image.open(f).convert("RGB"))

    return one, "torchvision"


def rate(directory, seconds):
    try:
        one, name = by_torchvision()
    except ImportError:
        one, name = by_pillow()
    paths = sorted(glob.glob(f"{directory}/train/*/*.jpg"))
    done, begin = 0, 0.0
    for warm in (True, False):
        begin, done = time.monotonic(), 0
        while not done or (not warm and time.monotonic() - begin < seconds):
            for path in paths:
                one(path)
            done += len(paths)
    print(f"samples_per_s={done / (time.monotonic() - begin):.1f} by={name.replace(' ', '-')}")


if __name__ == "__main__":
    {"make": lambda d, n: make(d, int(n)),
     "rate": lambda d, s: rate(d, float(s))}[sys.argv[1]](*sys.argv[2:])
