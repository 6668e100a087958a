"""Times training steps of DistributedDataParallel and fully_shard against PyTorch's over gloo:
`data_parallel.py [--torch-python PYTHON] [--ranks 2] [--filter TEXT]`.

Each framework runs in processes of its own with one thread each; the two take turns, and the table
shows the fastest sample of each. "alone" is the same step of one process on its own, so that the
difference is what averaging costs; "sharded" has every layer cut over the ranks.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

ROUNDS, STEPS = 15, 30
DIGITS = 32  # images of a step of each process


def mlp(nn: Any) -> Any:
    return nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )


def wide(nn: Any) -> Any:
    return nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.Linear(2048, 10))


def deep(nn: Any) -> Any:
    return nn.Sequential(
        nn.Linear(64, 16), *(nn.Linear(16, 16) for _ in range(98)), nn.Linear(16, 10)
    )


def cnn(nn: Any) -> Any:
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1024, 10),
    )


def transformer(nn: Any) -> Any:
    layers = [
        nn.TransformerEncoderLayer(256, 8, 1024, 0.0, batch_first=True, norm_first=True)
        for _ in range(4)
    ]
    return nn.Sequential(
        nn.Unflatten(1, (16, 4)), nn.Linear(4, 256), *layers, nn.Flatten(), nn.Linear(4096, 10)
    )


MODELS: dict[str, Callable[[Any], Any]] = {
    "MLP, 84 thousand parameters": mlp,
    "MLP, 4.3 million parameters": wide,
    "100 layers of 16": deep,
    "CNN with batch norm": cnn,
    "transformer, 3.2 million": transformer,
}


def serve(module: str, rank: int, ranks: int, path: str) -> None:
    """One process: answers each line with the seconds of a step, or ends."""
    torch = importlib.import_module(module)
    dist = importlib.import_module(f"{module}.distributed")
    parallel = importlib.import_module(f"{module}.nn.parallel")
    fsdp = importlib.import_module(f"{module}.distributed.fsdp")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{path}", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    x, y = torch.randn(DIGITS, 64), torch.arange(DIGITS) % 10

    def stepper(model: Any) -> Callable[[], None]:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

        def step() -> None:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

        return step

    def sharded(model: Any) -> Any:
        mesh = dist.device_mesh.init_device_mesh("cpu", (ranks,))
        for layer in model:
            if any(True for _ in layer.parameters()):
                fsdp.fully_shard(layer, mesh=mesh)
        return fsdp.fully_shard(model, mesh=mesh)

    steppers = {}
    for name, build in MODELS.items():
        steppers[name, "alone"] = stepper(build(torch.nn))
        steppers[name, "DDP"] = stepper(parallel.DistributedDataParallel(build(torch.nn)))
        steppers[name, "views"] = stepper(
            parallel.DistributedDataParallel(build(torch.nn), gradient_as_bucket_view=True)
        )
        steppers[name, "sharded"] = stepper(sharded(build(torch.nn)))
    for line in sys.stdin:
        name, kind = json.loads(line)
        step, steps = steppers[name, kind], 4 if name.startswith("transformer") else STEPS
        for _ in range(2):
            step()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        print((time.perf_counter() - begin) / steps, flush=True)
    dist.destroy_process_group()


class Job:
    """The processes of one framework."""

    def __init__(self, python: str, module: str, ranks: int) -> None:
        path = tempfile.mktemp()
        self.processes = [
            subprocess.Popen(
                [python, __file__, "--serve", module, str(rank), str(ranks), path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
            for rank in range(ranks)
        ]

    def sample(self, case: tuple[str, str]) -> float:
        processes = self.processes[:1] if case[1] == "alone" else self.processes
        for process in processes:
            print(json.dumps(case), file=process.stdin, flush=True)
        return max(float(process.stdout.readline()) for process in processes)

    def close(self) -> None:
        for process in self.processes:
            process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-python", default=sys.executable)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--filter", default="", help="only models whose name has this text")
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        module, rank, ranks, path = options.serve
        serve(module, int(rank), int(ranks), path)
        return
    jobs = [
        Job(sys.executable, "rushlight", options.ranks),
        Job(options.torch_python, "torch", options.ranks),
    ]
    print(f"{'microseconds per step':38} {'ours':>8} {'PyTorch':>8} {'ratio':>6}")
    for name in (name for name in MODELS if options.filter in name):
        for kind in ("alone", "DDP", "views", "sharded"):
            samples = [[job.sample((name, kind)) for job in jobs] for _ in range(ROUNDS)]
            ours, theirs = (1e6 * min(times) for times in zip(*samples, strict=True))
            print(f"{name + ', ' + kind:38} {ours:8.0f} {theirs:8.0f} {ours / theirs:6.2f}")
    for job in jobs:
        job.close()


if __name__ == "__main__":
    main()
