"""The stages of gpu_check.py that use Rushlight itself: `gpu_stages.py STAGE [--results FILE]`.

facts     the GPU, the versions, and the files of the libraries that were opened
first     one small piece of work of each kind, compared with the CPU, each in a fresh process;
          --only NAME runs one in this process, --here all of them
training  the same networks on both devices to the same accuracy, with cuDNN and without it
graph     a CUDA graph of a training step against the step itself
nccl      collectives between all GPUs (with one GPU, a rank with itself)
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gpu_pieces import PIECES

LIBRARY = re.compile(r"/lib(cu|nv|nccl)[^/]*$")
PIECE_LIMIT = 90  # seconds, compiling included


# Facts


def check_facts() -> dict[str, Any]:
    """Says what is here; raises what is missing."""
    smi = subprocess.run(["sh", "-c", "nvidia-smi || true"], capture_output=True, text=True)
    print(smi.stdout, smi.stderr, platform.platform(), sys.version, sep="\n", flush=True)
    import rushlight as torch
    from rushlight import _C

    torch.cuda.init()
    x = torch.rand(256, 256, device="cuda")
    for use in (lambda: x @ x, lambda: torch.linalg.solve(x, x), torch.backends.cudnn.version):
        try:
            use()
        except Exception as error:
            print(f"{type(error).__name__}: {error}", flush=True)
    maps = Path("/proc/self/maps").read_text().split()
    found = {
        "GPUs": [_C._cuda_properties(i) for i in range(torch.cuda.device_count())],
        "NVRTC": _C._nvrtc_version(),
        "cuDNN": torch.backends.cudnn.version(),
        "NCCL": torch.distributed.is_nccl_available(),
        "Python": sys.version,
        "libraries": sorted(path for path in set(maps) if LIBRARY.search(path)),
    }
    print(json.dumps(found, indent=1, default=str), flush=True)
    return found


# The first work ever done there


def run_piece(name: str) -> str:
    """Runs a piece in a fresh process, where a failed kernel spoils no other; "" if it is right."""
    command = [sys.executable, __file__, "first", "--only", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PIECE_LIMIT)
    except subprocess.TimeoutExpired:
        return f"did not end in {PIECE_LIMIT} s"
    return (
        "" if done.returncode == 0 else f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
    )


def check_first(only: str, here: bool) -> dict[str, Any]:
    import rushlight as torch

    if only or here:
        for name in [only] if only else PIECES:
            print(f"{name}...", flush=True)
            torch.manual_seed(0)
            PIECES[name](torch)
            torch.cuda.synchronize()
        return {}
    wrong = {}
    with ThreadPoolExecutor(max(1, min(4, os.cpu_count() or 1))) as pool:
        for name, said in zip(PIECES, pool.map(run_piece, PIECES), strict=True):
            print(f"{name:16} {said or 'ok'}", flush=True)
            if said:
                wrong[name] = said.strip().splitlines()[-1]
    if wrong:
        print("wrong: " + "; ".join(f"{name}: {said}" for name, said in wrong.items()))
    return {"wrong": wrong, "right": [name for name in PIECES if name not in wrong]}


# Training, graphs, NCCL


def train(torch: Any, net: Any, device: str, images: Any, labels: Any) -> dict[str, float]:
    """Trains on four fifths of the images; returns the accuracy on the rest, and the seconds."""
    net, images, labels = net.to(device), images.to(device), labels.to(device)
    held_out = torch.arange(len(labels), device=device) % 5 == 0
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    train_images, train_labels = images[~held_out], labels[~held_out]
    start = time.perf_counter()
    for _ in range(20):
        order = torch.randperm(len(train_labels)).to(device)
        for batch in order.split(64):
            optimizer.zero_grad()
            logits = net(train_images[batch])
            torch.nn.functional.cross_entropy(logits, train_labels[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        right = (net(images[held_out]).argmax(1) == labels[held_out]).float().mean().item()
    return {"accuracy": right, "seconds": time.perf_counter() - start}


def check_training() -> dict[str, Any]:
    """Trains an MLP and a convolutional network on the digits, on both devices.

    On the GPU the convolutions are those of cuDNN, if it is there, and then our own.
    """
    from sklearn.datasets import load_digits

    import rushlight as torch

    nn = torch.nn
    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16  # (N, 1, 8, 8)
    labels = torch.tensor(data.target)
    nets = {
        "MLP": lambda: nn.Sequential(
            nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)
        ),
        "CNN": lambda: nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 10),
        ),
    }  # fmt: skip
    results: dict[str, Any] = {"cuDNN": torch.backends.cudnn.version()}
    for name, make in nets.items():
        reference = None
        for place in ("cpu", "cuda", "cuda, no cuDNN"):
            torch.manual_seed(0)
            with torch.backends.cudnn.flags(enabled=place == "cuda"):
                device = place.partition(",")[0]
                results[f"{name} on {place}"] = trained = train(
                    torch, make(), device, images, labels
                )
            print(f"{name} on {place}: {trained}", flush=True)
            reference = reference or trained["accuracy"]
            gap = reference - trained["accuracy"]
            if abs(gap) > 0.02:
                raise AssertionError(f"{name} on {place}: the accuracy differs by {gap:.1%}")
    return results


def check_graph() -> dict[str, Any]:
    """Replays a training step with dropout: the same losses in less time.

    The GPU computes powers for Adam that the CPU computes otherwise: the last bits may differ.
    """
    import rushlight as torch

    nn, steps = torch.nn, 200
    images = torch.rand(64, 64, device="cuda")
    labels = torch.randint(10, (64,), device="cuda")
    results: dict[str, Any] = {}
    losses = {}
    for name in ("eager", "graph"):
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 10)
        ).cuda()
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, capturable=True)

        def step(net: Any = net, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            return loss

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step()
        torch.cuda.synchronize()
        graph, captured = torch.cuda.CUDAGraph(), None
        if name == "graph":
            with torch.cuda.graph(graph):
                captured = step()
        seen = torch.zeros(steps, device="cuda")
        torch.cuda.synchronize()
        start = time.perf_counter()
        for i in range(steps):
            if captured is None:
                loss = step()
            else:
                graph.replay()
                loss = captured
            seen[i].copy_(loss.detach())
        torch.cuda.synchronize()
        results[f"{name} step, seconds"] = (time.perf_counter() - start) / steps
        losses[name] = seen.tolist()
    pairs = list(zip(losses["eager"], losses["graph"], strict=True))
    worst = max(abs(a - b) / abs(a) for a, b in pairs)
    results["steps with other bits"] = sum(a != b for a, b in pairs)
    results["largest relative difference"] = worst
    print(results, flush=True)
    if not worst < 1e-3:
        raise AssertionError(f"the graph's losses differ from the eager ones by {worst:.1%}")
    return results


def use_nccl(rank: int, world: int, meeting: str, results: Any) -> None:
    """A rank of check_nccl, each on a GPU of its own."""
    import rushlight as torch

    dist: Any = torch.distributed
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", f"file://{meeting}", rank=rank, world_size=world)
    check_collectives(torch, rank, world)
    check_averaged_gradients(torch, rank, world)
    seconds = time_all_reduce(torch, world)
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        results["version"] = torch.cuda.nccl.version()
        results["ranks"] = world
        results["all_reduce of 64 MiB, seconds"] = seconds


def check_collectives(torch: Any, rank: int, world: int) -> None:
    """Compares what collectives and messages give with what they must."""
    dist = torch.distributed
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
        x = torch.ones(1000, device="cuda", dtype=dtype)
        dist.all_reduce(x)
        wanted = torch.full((1000,), world).to(dtype)
        assert torch.equal(x.cpu(), wanted), (dtype, x)
    mine = torch.full((5,), float(rank), device="cuda")
    whole = torch.empty(5 * world, device="cuda")
    dist.all_gather_into_tensor(whole, mine)
    assert whole.view(world, 5)[:, 0].tolist() == list(range(world))
    part = torch.empty(5, device="cuda")
    dist.reduce_scatter_tensor(part, whole)
    assert part.tolist() == [world * rank] * 5
    out = torch.empty_like(whole)
    dist.all_to_all_single(out, whole)
    assert out[-1].item() == rank
    after = (rank + 1) % world
    before = (rank - 1) % world
    messages = [dist.P2POp(dist.isend, mine, after), dist.P2POp(dist.irecv, part, before)]
    for work in dist.batch_isend_irecv(messages):  # to itself, when there is one rank
        work.wait()
    assert part.tolist() == [before] * 5


def check_averaged_gradients(torch: Any, rank: int, world: int) -> None:
    """Compares the gradients of DistributedDataParallel with those of the whole batch."""
    from rushlight.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    images, labels = torch.rand(8 * world, 64), torch.randint(10, (8 * world,))
    torch.nn.functional.cross_entropy(net(images), labels).backward()
    grads = [param.grad.clone() for param in net.parameters() if param.grad is not None]
    net.zero_grad()
    model = DistributedDataParallel(net.cuda(), device_ids=[rank], bucket_cap_mb=0.01)
    here = slice(8 * rank, 8 * rank + 8)
    loss = torch.nn.functional.cross_entropy(model(images[here].cuda()), labels[here].cuda())
    loss.backward()
    for param, grad in zip(net.parameters(), grads, strict=True):
        assert param.grad is not None
        torch.testing.assert_close(param.grad.cpu(), grad, atol=1e-4, rtol=1e-3)


def time_all_reduce(torch: Any, world: int) -> float:
    """Replays one in a graph, then returns the seconds that one of 64 MiB takes."""
    dist = torch.distributed
    total = torch.ones(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dist.all_reduce(total)
    graph.replay()
    assert total.tolist() == [world] * 1000

    large = torch.ones(1 << 24, device="cuda")
    for _ in range(3):
        dist.all_reduce(large)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(10):
        dist.all_reduce(large)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / 10


def check_nccl() -> dict[str, Any]:
    """Runs collectives, a step of DistributedDataParallel and a graph on all GPUs over NCCL."""
    import multiprocessing
    import tempfile

    import rushlight as torch
    from rushlight import multiprocessing as mp

    if not torch.distributed.is_nccl_available():
        return {"skipped": "there is no NCCL"}
    world = torch.cuda.device_count()
    with multiprocessing.Manager() as manager, tempfile.TemporaryDirectory() as folder:
        results = manager.dict()
        mp.spawn(use_nccl, (world, f"{folder}/meeting", results), nprocs=world)
        found = dict(results)
    print(found, flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=["facts", "first", "training", "graph", "nccl"])
    parser.add_argument("--only", default="", choices=PIECES, metavar="NAME")
    parser.add_argument("--here", action="store_true")
    parser.add_argument("--results", type=Path, metavar="FILE")
    options = parser.parse_args()
    stages: dict[str, Callable[[], dict[str, Any]]] = {
        "facts": check_facts,
        "first": lambda: check_first(options.only, options.here),
        "training": check_training,
        "graph": check_graph,
        "nccl": check_nccl,
    }
    try:
        found = stages[options.stage]()
    except Exception:
        traceback.print_exc()
        return 1
    if options.results:
        options.results.write_text(json.dumps(found, default=str))
    return int(bool(found.get("wrong")))


if __name__ == "__main__":
    sys.exit(main())
