# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's gloo and DDP do, one process per host, for bench/wire.py; the environment says
which. Usage: ddp.py sums BYTES ...; ddp.py loss TARGET SECONDS [--fp16]"""
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

SECONDS, LEAST, MOST = 0.5, 5, 1000  # of the sums of a size


def once(x):
    begin = time.perf_counter()
    dist.all_reduce(x)
    return time.perf_counter() - begin


def sums(sizes):
    """A line for each, with the median seconds of a sum; they follow one another."""
    for size in sizes:
        x = torch.zeros(int(size) // 4)
        once(x)
        first = torch.tensor([once(x)])
        dist.broadcast(first, 0)
        n = int(min(MOST, max(LEAST, SECONDS / first.item())))
        took = statistics.median(once(x) for _ in range(n))
        if dist.get_rank() == 0:
            print(f"sum {size} {took:.6g}", flush=True)


def loss(target, seconds, fp16):
    """Trains as convergence.py does; prints the seconds until the mean loss of 50 steps is that
    small, or "never" and the loss after so many seconds."""
    import convergence
    import peers
    torch.manual_seed(0)
    net = peers.begin(peers.Gpt2(2, 128, 2, 64, 256))
    ddp = torch.nn.parallel.DistributedDataParallel(net)
    if fp16:
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    adamw = torch.optim.AdamW(net.parameters(), lr=convergence.RATE, weight_decay=0.01)
    convergence.SEQ = 64
    data, batch = convergence.blocks(torch, "train.txt"), convergence.BATCH // dist.get_world_size()
    last, begin = [], None
    while True:
        ids = data[torch.randint(len(data), (convergence.BATCH,))]
        ids = ids[dist.get_rank() * batch:(dist.get_rank() + 1) * batch]
        adamw.zero_grad()
        value = peers.words_loss(ddp(ids)[:, :-1], ids[:, 1:])
        value.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1)
        adamw.step()
        begin = begin or time.monotonic()
        both = torch.tensor([value.item(), float(time.monotonic() - begin > seconds)])
        dist.all_reduce(both)
        last = [*last[-49:], both[0].item() / dist.get_world_size()]
        mean = statistics.mean(last)
        if both[1] or (len(last) == 50 and mean <= target):
            if dist.get_rank() == 0:
                print(f"never {mean:.3f}" if both[1] else f"after {time.monotonic() - begin:.2f}")
            return


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    if sys.argv[1] == "sums":
        sums(sys.argv[2:])
    else:
        loss(float(sys.argv[2]), float(sys.argv[3]), "--fp16" in sys.argv)
    dist.destroy_process_group()
