"""Checks Rushlight on a GPU: the tests of CUDA on the real device, then training, then times.

Run it in a fresh checkout on a machine with an NVIDIA GPU: `python3 bench/gpu_check.py`. It builds,
runs tests/cuda (the op matrix, CPU against GPU), trains the same networks on both devices to the
same accuracy, compares a CUDA graph of a training step with the step itself, and compares times
with the PyTorch of --torch-python. Results go to bench/results.
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
    """Trains an MLP and a convolutional network on the digits, on both devices."""
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
    results: dict[str, Any] = {}
    for name, make in nets.items():
        for device in ("cpu", "cuda"):
            torch.manual_seed(0)
            results[f"{name} on {device}"] = train(torch, make(), device, images, labels)
        print({key: value for key, value in results.items() if key.startswith(name)}, flush=True)
        gap = results[f"{name} on cpu"]["accuracy"] - results[f"{name} on cuda"]["accuracy"]
        if abs(gap) > 0.02:
            raise SystemExit(f"{name}: the devices differ in accuracy by {gap:.1%}")
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


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks and measures Rushlight on a GPU.")
    parser.add_argument("--torch-python", metavar="PATH", help="an interpreter that has PyTorch")
    parser.add_argument("--only-training", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only_training:
        print(json.dumps({**check_training(), "graph": check_graph()}))
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
