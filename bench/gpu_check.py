"""Checks Rushlight on a GPU: the tests of CUDA on the real device, then training, then times.

Run it in a fresh checkout on a machine with an NVIDIA GPU: `python3 bench/gpu_check.py`. It builds,
runs tests/cuda (the op matrix, CPU against GPU), trains the same networks on both devices to the
same accuracy, with cuDNN and without it, compares a CUDA graph of a training step with the step
itself, exchanges tensors between all GPUs over NCCL if it is there (with one GPU, a rank with
itself), and compares times with the PyTorch of --torch-python. Results go to bench/results.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".venv" / "bin" / "python"


def run(*command: str | Path) -> int:
    print("$", *command, flush=True)
    return subprocess.run([str(part) for part in command], cwd=ROOT, check=False).returncode


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
                raise SystemExit(f"{name} on {place}: the accuracy differs by {gap:.1%}")
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
        raise SystemExit(f"the graph's losses differ from the eager ones by {worst:.1%}")
    return results


def use_nccl(rank: int, world: int, meeting: str, results: Any) -> None:
    """A rank of check_nccl, each on a GPU of its own."""
    import rushlight as torch
    from rushlight.nn.parallel import DistributedDataParallel

    dist: Any = torch.distributed
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", f"file://{meeting}", rank=rank, world_size=world)
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
    seconds = (time.perf_counter() - start) / 10
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        results["version"] = torch.cuda.nccl.version()
        results["ranks"] = world
        results["all_reduce of 64 MiB, seconds"] = seconds


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
    parser = argparse.ArgumentParser(description="Checks and measures Rushlight on a GPU.")
    parser.add_argument("--torch-python", metavar="PATH", help="an interpreter that has PyTorch")
    parser.add_argument("--only-training", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only_training:
        found = {**check_training(), "graph": check_graph(), "NCCL": check_nccl()}
        print(json.dumps(found))
        return 0
    if run("make", "build"):
        return 1
    if run(PYTHON, "-c", "import rushlight; rushlight.cuda.init()"):
        return 1  # it has said what is missing
    failed = run(PYTHON, "-m", "pytest", "-q", "tests/cuda")
    done = subprocess.run(
        [PYTHON, __file__, "--only-training"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout)
    failed |= done.returncode
    if not done.returncode:
        path = ROOT / "bench" / "results" / f"{datetime.date.today()}-gpu-training.json"
        path.write_text(done.stdout.splitlines()[-1] + "\n")
    torch_python = ["--torch-python", options.torch_python] if options.torch_python else []
    failed |= run(PYTHON, "bench/run.py", "gpu", "--save", *torch_python)
    return int(bool(failed))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(ROOT))
    sys.exit(main())
