"""Benchmarks, counts of operations, quasirandom points: the same figures as PyTorch's."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from typing import Any

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytest.importorskip("torch.utils.benchmark")
import torch.utils.flop_counter  # noqa: E402  of PyTorch
from torch.quasirandom import SobolEngine as TheirSobolEngine  # noqa: E402

LIBRARIES = (torch, pytorch)
TIMES = [2.1e-5, 2.0e-5, 2.2e-5, 2.05e-5, 3.0e-5]


def table(library: Any, *options: str) -> str:
    benchmark = library.utils.benchmark
    results = []
    for size, factor in (("small", 1.0), ("a larger size", 40.3), ("huge", 977.7)):
        for way, extra in (("old", 1.0), ("new way", 1.7), ("old and new", 6.0)):
            for threads in (1, 4):
                names = {"label": "add", "sub_label": size, "description": way}
                times = [factor * extra * time / threads for time in TIMES]
                if (size, way) != ("huge", "new way"):
                    task = benchmark.TaskSpec("x + y", "pass", num_threads=threads, **names)
                    results.append(benchmark.Measurement(100, [100 * t for t in times], task))
    compared = benchmark.Compare(results)
    for option in options:
        getattr(compared, option)()
    return str(compared)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("trim_significant_figures",),
        ("highlight_warnings",),
        ("trim_significant_figures", "highlight_warnings"),
    ],
)
def test_tables_are_pytorchs(options: tuple[str, ...]) -> None:
    assert table(torch, *options) == table(pytorch, *options)


@pytest.mark.parametrize(
    "times", [[2e-6], TIMES, [1.0, 1.1, 1.2], [3e-9] * 7, [5.0, 1.0, 1.2, 1.1]]
)
def test_measurements_are_pytorchs(times: list[float]) -> None:
    ours, theirs = (
        lib.utils.benchmark.Measurement(
            3, times, lib.utils.benchmark.TaskSpec("a\nb", "s\nt", description="d", env="e")
        )
        for lib in LIBRARIES
    )
    for name in ("median", "mean", "iqr", "significant_figures", "times", "title", "as_row_name"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name)) or (
            getattr(ours, name) == getattr(theirs, name)
        ), name
    assert ours.meets_confidence() == theirs.meets_confidence()
    assert ours.has_warnings == theirs.has_warnings
    lines = [line.rstrip() for line in repr(ours).splitlines()[1:]]
    assert lines == [line.rstrip() for line in repr(theirs).splitlines()[1:]]


def test_numbers_are_trimmed_alike() -> None:
    for value in (1.0, 9.99, 10.0, 1234.5, 0.00123):
        for digits in (1, 2, 3):
            ours = torch.utils.benchmark.trim_sigfig(value, digits)
            assert ours == pytest.approx(pytorch.utils.benchmark.trim_sigfig(value, digits))
    for time in (1e-10, 3e-9, 1e-6, 2e-4, 0.5, 20):
        mine = torch.utils.benchmark.select_unit(time)
        assert mine == pytorch.utils.benchmark.select_unit(time)


@pytest.mark.parametrize("name", ["Timer", "Measurement", "Compare", "TaskSpec"])
def test_benchmark_classes_have_pytorchs_names(name: str) -> None:
    ours, theirs = (getattr(lib.utils.benchmark, name) for lib in LIBRARIES)
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    public = {n for n in vars(theirs) if not n.startswith("_") and n != "_sorted_times"}
    assert not {n for n in public if not hasattr(ours, n)} - {"metadata"}


def convolutions(lib: Any) -> Any:
    nn = lib.nn
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 8, 3, 2, groups=2), nn.Flatten()
    )
    return net, (2, 3, 9, 9)


def linears(lib: Any) -> Any:
    nn = lib.nn
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3, bias=False)), (5, 4)


def transposed(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.ConvTranspose2d(3, 4, 3, stride=2)), (2, 3, 5, 5)


def products(lib: Any) -> Any:
    class Products(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            y = lib.bmm(x, x.transpose(1, 2))
            return lib.baddbmm(y, y, y) + x[0, 0] @ x[0].T + lib.mm(y[0], y[1])

    return Products(), (2, 3, 4)


@pytest.mark.parametrize("network", [convolutions, linears, transposed, products])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("needs_input", [False, True])
def test_as_many_operations_are_counted(network: Any, backward: bool, needs_input: bool) -> None:
    if network is products and not needs_input and backward:
        pytest.skip("nothing to differentiate")
    totals = []
    for lib in LIBRARIES:
        net, shape = network(lib)
        x = lib.ones(shape).requires_grad_(needs_input)
        with lib.utils.flop_counter.FlopCounterMode(display=False) as counter:
            out = net(x)
            if backward:
                out.sum().backward()
        counts = counter.get_flop_counts()
        totals.append({name: sum(ops.values()) for name, ops in counts.items()})
        assert counter.get_total_flops() == totals[-1]["Global"]
    if network is products:  # PyTorch leaves out mv, a product of a matrix and a vector
        assert totals[0]["Global"] >= totals[1]["Global"]
    else:
        assert totals[0] == totals[1]


@pytest.mark.parametrize("dimension", [1, 2, 7, 50, 1111])
def test_sobol_points_are_pytorchs(dimension: int) -> None:
    ours, theirs = torch.quasirandom.SobolEngine(dimension), TheirSobolEngine(dimension)
    for n in (1, 5, 10):
        points = ours.draw(n, dtype=torch.float64).numpy()
        np.testing.assert_array_equal(points, theirs.draw(n, dtype=pytorch.float64).numpy())
        assert ours.num_generated == theirs.num_generated
    ours.fast_forward(100)
    theirs.fast_forward(100)
    np.testing.assert_array_equal(ours.draw(3).numpy(), theirs.draw(3).numpy())
    ours.reset()
    theirs.reset()
    np.testing.assert_array_equal(ours.draw_base2(4).numpy(), theirs.draw_base2(4).numpy())
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("module", ["utils.weak", "quasirandom"])
def test_public_names_are_pytorchs(module: str) -> None:
    ours, theirs = (importlib.import_module(f"{lib.__name__}.{module}") for lib in LIBRARIES)
    names = {name for name in dir(theirs) if name[0].isupper()}
    assert names - {"Mapping"} <= set(dir(ours))


def test_swapping_does_the_same() -> None:
    seen = []
    for lib in LIBRARIES:
        a, b = lib.nn.Parameter(lib.ones(2)), lib.zeros(3, dtype=lib.float64)
        b.note = 1
        lib.utils.swap_tensors(a, b)
        graph = b * b
        with pytest.raises(RuntimeError) as caught:
            lib.utils.swap_tensors(a, b)
        with contextlib.suppress(TypeError, AttributeError):
            lib.utils.swap_tensors(a, 3)
        seen.append((type(a).__name__, a.note, a.tolist(), type(b).__name__, b.requires_grad))
        assert graph.requires_grad and caught.value
    assert seen[0] == seen[1]
