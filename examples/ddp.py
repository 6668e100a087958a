"""Trains the network of digits.py in several processes at once, in one file.

    python examples/ddp.py                   # starts a process for each core, four at most
    python examples/ddp.py --processes 3
    python -m rushlight.distributed.run --nproc-per-node 2 examples/ddp.py

Each process reads its own part of every batch and computes gradients; these are averaged while
backward goes on, so that the copies of the network stay equal. With several machines, start the
last line on each, with --nnodes, --node-rank and --master-addr.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import rushlight as torch
from rushlight import distributed as dist
from rushlight import multiprocessing as mp
from rushlight import nn
from rushlight.nn import functional as F
from rushlight.nn.parallel import DistributedDataParallel
from rushlight.utils.data import DataLoader, DistributedSampler, TensorDataset


def load_digits() -> tuple[TensorDataset, TensorDataset]:
    """The 1,797 scans inside scikit-learn, of which every fifth is for the test."""
    from sklearn import datasets

    images, labels = datasets.load_digits(return_X_y=True)
    x = torch.from_numpy(images).float().view(-1, 1, 8, 8) / 16  # (N, 1, 8, 8) in 0..1
    y = torch.from_numpy(labels)
    is_test = torch.arange(len(y)) % 5 == 0
    return TensorDataset(x[~is_test], y[~is_test]), TensorDataset(x[is_test], y[is_test])


def build_net() -> nn.Module:
    net = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),  # (B, 32, 8, 8)
        nn.Conv2d(32, 64, 3, padding=1),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(4),  # (B, 64, 2, 2)
        nn.Flatten(),
        nn.Linear(256, 10),  # (B, 10)
    )
    return nn.SyncBatchNorm.convert_sync_batchnorm(net)  # statistics of the whole batch


def sum_over_processes(*numbers: float) -> list[float]:
    sums = torch.tensor(numbers, dtype=torch.float64)
    dist.all_reduce(sums)
    return sums.tolist()


def train_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, batches: DataLoader) -> float:
    """Returns the mean loss."""
    total, seen = 0.0, 0
    model.train()
    for images, labels in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()  # gradients are averaged over the processes here
        optimizer.step()
        total += loss.item() * len(labels)
        seen += len(labels)
    total, count = sum_over_processes(total, seen)
    return total / count


@torch.no_grad()
def test(net: nn.Module, digits: TensorDataset) -> float:
    """Returns the share of digits that are read right; each process reads some of them."""
    net.eval()
    rank, size = dist.get_rank(), dist.get_world_size()
    images, labels = (tensor[rank::size] for tensor in digits.tensors)
    right = (net(images).argmax(1) == labels).sum().item()
    return sum_over_processes(right)[0] / len(digits)


def train(options: argparse.Namespace) -> None:
    """What each process does."""
    is_first = dist.get_rank() == 0
    torch.manual_seed(0)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // dist.get_world_size()))
    train_digits, test_digits = load_digits()
    sampler = DistributedSampler(train_digits)
    batch_size = options.batch_size // dist.get_world_size()  # of one process
    batches = DataLoader(train_digits, batch_size, sampler=sampler, drop_last=True)

    model = DistributedDataParallel(build_net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)  # another order, the same in all processes
        begin = time.perf_counter()
        loss = train_epoch(model, optimizer, batches)
        accuracy = test(model.module, test_digits)
        if is_first:
            seconds = time.perf_counter() - begin
            print(f"epoch {epoch}  loss {loss:.4f}  right {accuracy:.2%}  {seconds:.2f} s")
    if is_first and options.save is not None:
        torch.save(model.module.state_dict(), options.save)  # one process is enough


def start(rank: int, meeting_place: str, options: argparse.Namespace) -> None:
    dist.init_process_group("gloo", meeting_place, rank=rank, world_size=options.processes)
    train(options)
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--processes", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64, help="of all processes together")
    parser.add_argument("--save", type=Path, help="where to save the network")
    options = parser.parse_args()
    if dist.is_torchelastic_launched():  # rushlight.distributed.run has started the processes
        dist.init_process_group("gloo")
        train(options)
        dist.destroy_process_group()
        return
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(start, (f"file://{folder}/store", options), nprocs=options.processes)


if __name__ == "__main__":
    main()
