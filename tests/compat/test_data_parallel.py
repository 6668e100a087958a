"""DistributedDataParallel, its hooks and ZeroRedundancyOptimizer train as PyTorch's do.

One program runs in two processes with each of the libraries; losses, gradients and states of the
two are compared. Both start from the same NumPy arrays.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

RANKS = 2
STEPS = 5
TINY = 1e-4  # megabytes


class Library:
    """One of the two, as programs write it."""

    def __init__(self, name: str, rank: int, path: str) -> None:
        self.t: Any = importlib.import_module(name)
        self.dist: Any = importlib.import_module(f"{name}.distributed")
        self.nn: Any = importlib.import_module(f"{name}.nn")
        self.parallel: Any = importlib.import_module(f"{name}.nn.parallel")
        self.optim: Any = importlib.import_module(f"{name}.distributed.optim")
        hooks = f"{name}.distributed.algorithms.ddp_comm_hooks"
        self.hooks: Any = importlib.import_module(f"{hooks}.default_hooks")
        self.power: Any = importlib.import_module(f"{hooks}.powerSGD_hook")
        self.join: Any = importlib.import_module(f"{name}.distributed.algorithms.join")
        self.rank = rank
        self.t.set_num_threads(1)
        self.dist.init_process_group("gloo", f"file://{path}", rank=rank, world_size=RANKS)

    def data(self, seed: int, *shape: int) -> Any:
        return self.t.from_numpy(np.random.default_rng(seed).normal(size=shape).astype("f4"))

    def fill(self, module: Any) -> Any:
        """The module with parameters that do not depend on the library."""
        with self.t.no_grad():
            for i, param in enumerate(module.parameters()):
                param.copy_(0.5 * self.data(1000 + i, *param.shape))
        return module

    def mlp(self) -> Any:
        nn = self.nn
        return self.fill(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)))

    def cnn(self) -> Any:
        nn = self.nn
        layers = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3)
        return self.fill(nn.Sequential(*layers))

    def train(self, model: Any, optimizer: Any, shape: tuple[int, ...] = (6, 4)) -> list[float]:
        losses = []
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = model(self.data(10 * step + self.rank, *shape)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    def sgd(self, model: Any) -> Any:
        return self.t.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def summary(self, module: Any) -> list[Any]:
        return [tensor.double().sum().item() for tensor in module.state_dict().values()]


PROGRAMS: dict[str, Callable[[Library], Any]] = {}


def program(run: Callable[[Library], Any]) -> Callable[[Library], Any]:
    PROGRAMS[run.__name__] = run
    return run


@program
def options_of_the_constructor(lib: Library) -> Any:
    found = []
    for options in (
        {},
        {"bucket_cap_mb": TINY},
        {"gradient_as_bucket_view": True},
        {"find_unused_parameters": True},
        {"static_graph": True},
        {"forward_sync_buffers": False},
    ):
        model = lib.parallel.DistributedDataParallel(lib.mlp(), **options)
        found.append([lib.train(model, lib.sgd(model)), lib.summary(model)])
        assert all(key.startswith("module.") for key in model.state_dict())
    return found


@program
def batch_norm_of_process_0(lib: Library) -> Any:
    model = lib.parallel.DistributedDataParallel(lib.cnn())
    losses = lib.train(model, lib.sgd(model), (5, 2, 4, 4))
    model.eval()
    with lib.t.no_grad():
        losses.append(model(lib.data(7, 3, 2, 4, 4)).sum().item())
    return losses, lib.summary(model)


@program
def accumulation_without_sync(lib: Library) -> Any:
    model = lib.parallel.DistributedDataParallel(lib.mlp())
    found = []
    with model.no_sync():
        model(lib.data(lib.rank, 6, 4)).square().mean().backward()
    found.append([p.grad.sum().item() for p in model.parameters()])
    model(lib.data(5 + lib.rank, 6, 4)).square().mean().backward()
    found.append([p.grad.sum().item() for p in model.parameters()])
    return found


@program
def parameters_left_out(lib: Library) -> Any:
    nn = lib.nn

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Linear(4, 3), nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return self.a(x) if lib.rank else self.b(x), x

    found = []
    for cap in (25, TINY):
        model = lib.parallel.DistributedDataParallel(
            lib.fill(Branches()), find_unused_parameters=True, bucket_cap_mb=cap
        )
        for step in range(2):
            model.zero_grad()
            model(lib.data(step, 2, 4))[0].square().sum().backward()
            grads = [p.grad for p in model.parameters()]
            found.append([None if grad is None else grad.sum().item() for grad in grads])
    model = lib.parallel.DistributedDataParallel(lib.fill(Branches()))
    model(lib.data(0, 2, 4))[0].sum().backward()
    with pytest.raises(RuntimeError, match="Expected to have finished reduction"):
        model(lib.data(0, 2, 4))
    return found


@program
def uneven_inputs(lib: Library) -> Any:
    found = []
    for by_initial in (True, False):
        model = lib.parallel.DistributedDataParallel(lib.mlp(), bucket_cap_mb=TINY)
        optimizer = lib.sgd(model)
        with model.join(divide_by_initial_world_size=by_initial):
            for step in range(3 + 2 * lib.rank):
                optimizer.zero_grad()
                model(lib.data(10 * step + lib.rank, 6, 4)).square().mean().backward()
                optimizer.step()
        found.append(lib.summary(model))
    return found


@program
def communication_hooks(lib: Library) -> Any:
    found = []
    for hook in (lib.hooks.allreduce_hook, lib.hooks.fp16_compress_hook):
        model = lib.parallel.DistributedDataParallel(lib.mlp(), bucket_cap_mb=TINY)
        model.register_comm_hook(None, hook)
        found.append(lib.train(model, lib.sgd(model)))
    # Rank 3 is that of the gradients, so both find them, whatever they begin with.
    state = lib.power.PowerSGDState(
        None, matrix_approximation_rank=3, start_powerSGD_iter=2, min_compression_rate=0.5
    )
    model = lib.parallel.DistributedDataParallel(lib.fill(lib.nn.Linear(4, 3)))
    model.register_comm_hook(state, lib.power.powerSGD_hook)
    found.append(lib.train(model, lib.sgd(model)))
    return found


@program
def own_hook(lib: Library) -> Any:
    def hook(state, bucket):  # PyTorch looks at annotations
        state.append([list(g.shape) for g in bucket.gradients()])
        work = lib.dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: 2 * done.value()[0])

    seen: list[Any] = []
    model = lib.parallel.DistributedDataParallel(lib.mlp())
    model.register_comm_hook(seen, hook)
    return lib.train(model, lib.sgd(model)), sorted(shape for shapes in seen for shape in shapes)


@program
def shares_of_an_optimizer(lib: Library) -> Any:
    model = lib.parallel.DistributedDataParallel(lib.mlp())
    zero = lib.optim.ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=lib.t.optim.Adam, lr=0.05
    )
    losses = lib.train(model, zero)
    zero.consolidate_state_dict(to=0)
    if lib.rank:
        return losses
    state = zero.state_dict()
    moments = [state["state"][i]["exp_avg"].sum().item() for i in sorted(state["state"])]
    return losses, moments, state["param_groups"][0]["params"]


def serve(name: str, rank: int, path: str) -> None:
    lib = Library(name, rank, path)
    print(json.dumps({name: run(lib) for name, run in PROGRAMS.items()}))
    lib.dist.destroy_process_group()


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[Any]]:
    """What all programs give, by library and rank."""
    found = {}
    for name in ("rushlight", "torch"):
        path = tempfile.mktemp()
        env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
        processes = [
            subprocess.Popen(
                [sys.executable, "-W", "ignore", __file__, name, str(rank), path],
                stdout=subprocess.PIPE,
                text=True,
                env=env,
            )
            for rank in range(RANKS)
        ]
        texts = [process.communicate(timeout=300)[0] for process in processes]
        assert [process.returncode for process in processes] == [0] * RANKS
        found[name] = [json.loads(text.splitlines()[-1]) for text in texts]
    return found


def numbers(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [np.nan if value is None else value]


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_outcome(outcomes: dict[str, list[Any]], name: str) -> None:
    for ours, theirs in zip(outcomes["rushlight"], outcomes["torch"], strict=True):
        tolerance = 1e-3 if "hooks" in name else 2e-5  # float16 is rounded
        np.testing.assert_allclose(
            numbers(ours[name]), numbers(theirs[name]), rtol=tolerance, atol=tolerance
        )


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])
