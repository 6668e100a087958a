"""Convolutions and pooling with random sizes, strides, paddings and layouts equal PyTorch's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'")

LAYOUTS = {2: "channels_last", 3: "channels_last_3d"}


def same(context: str, run: Callable[[Any], list[np.ndarray]]) -> None:
    """run(library) gives the arrays that PyTorch gives, unless PyTorch refuses."""
    try:
        expected = run(pytorch)
    except RuntimeError:
        return  # the checks of its variants differ, while ours are one
    for ours, theirs in zip(run(rushlight), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9, err_msg=context)


def compare(function: str, inputs: list[Any], last: bool, **kwargs: Any) -> None:
    """Results and gradients of a function of nn.functional, on channels that may lie last."""
    layout = LAYOUTS.get(inputs[0].ndim - 2, "") if last else ""

    def run(library: Any) -> list[np.ndarray]:
        leaves = [None if a is None else library.tensor(a, requires_grad=True) for a in inputs]
        args = list(leaves)
        if layout:
            args[0] = args[0].to(memory_format=getattr(library, layout))
        result = getattr(library.nn.functional, function)(*args, **kwargs)
        results = result if isinstance(result, tuple) else (result,)
        weights = np.cos(np.arange(results[0].numel())).reshape(tuple(results[0].shape))
        (results[0] * library.tensor(weights)).sum().backward()
        grads = [leaf.grad for leaf in leaves if leaf is not None]
        return [tensor.detach().numpy() for tensor in (*results, *grads)]

    same(f"{function} of {inputs[0].shape}, {kwargs}", run)


class Draw:
    """Random numbers for one case."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def numbers(self, low: int, high: int, dims: int) -> Any:
        """One number, or one for each dim."""
        if self.chance(0.3):
            return self.number(low, high)
        return tuple(self.number(low, high) for _ in range(dims))

    def array(self, *shape: int) -> np.ndarray:
        return self.random.normal(size=shape)

    def chance(self, probability: float = 0.5) -> bool:
        return bool(self.random.random() < probability)

    def input(self, channels: int, dims: int, low: int, high: int) -> tuple[np.ndarray, bool]:
        """Sequences, images or volumes, mostly with a batch, and whether to lay channels last."""
        size = [channels, *(self.number(low, high) for _ in range(dims))]
        batched = self.chance(0.8)
        return self.array(*([self.number(1, 3)] * batched), *size), batched and self.chance()


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_convolutions_equal_pytorchs(dims, transposed, seed) -> None:
    draw = Draw(seed)
    groups = draw.number(1, 3)
    ins, outs = groups * draw.number(1, 3), groups * draw.number(1, 3)
    x, last = draw.input(ins, dims, 3, 12 if dims < 3 else 7)
    kernel = [draw.number(1, 4) for _ in range(dims)]
    channels = (ins, outs // groups) if transposed else (outs, ins // groups)
    kwargs = {"stride": draw.numbers(1, 3, dims), "padding": draw.numbers(0, 3, dims)}
    if transposed:
        kwargs["output_padding"] = draw.numbers(0, 2, dims)
    elif draw.chance(0.3):
        kwargs |= {"stride": 1, "padding": "same"} if draw.chance() else {"padding": "valid"}
    compare(
        f"conv{'_transpose' * transposed}{dims}d",
        [x, draw.array(*channels, *kernel), draw.array(outs) if draw.chance() else None],
        last,
        groups=groups,
        dilation=draw.numbers(1, 3, dims),
        **kwargs,
    )


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("seed", range(40))
def test_pooling_equals_pytorchs(dims, seed) -> None:
    draw = Draw(seed)
    x, last = draw.input(draw.number(1, 70), dims, 2, 10 if dims < 3 else 6)
    kernel, padding = draw.numbers(1, 4, dims), draw.numbers(0, 2, dims)
    windows = {
        "kernel_size": kernel,
        "stride": draw.numbers(1, 3, dims),
        "ceil_mode": draw.chance(),
    }
    dilation, counts, out = draw.numbers(1, 2, dims), draw.chance(), draw.numbers(1, 6, dims)
    compare(
        f"max_pool{dims}d",
        [x],
        last,
        padding=padding,
        dilation=dilation,
        return_indices=True,
        **windows,
    )
    compare(f"avg_pool{dims}d", [x], last, padding=padding, count_include_pad=counts, **windows)
    if dims > 1 or isinstance(kernel, int):
        compare(f"lp_pool{dims}d", [np.abs(x)], last, norm_type=2.5, **windows)
    compare(f"adaptive_avg_pool{dims}d", [x], last, output_size=out)
    compare(f"adaptive_max_pool{dims}d", [x], last, output_size=out, return_indices=True)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("seed", range(20))
def test_fractional_pooling_equals_pytorchs(dims, seed) -> None:
    draw = Draw(seed)
    channels = draw.number(1, 3)
    x, _ = draw.input(channels, dims, 3, 9)
    samples = draw.random.random((x.shape[0] if x.ndim == dims + 2 else 1, channels, dims))
    kernel, out = draw.numbers(1, 3, dims), draw.numbers(1, 7, dims)

    def run(library: Any) -> list[np.ndarray]:
        function = getattr(library.nn.functional, f"fractional_max_pool{dims}d")
        results = function(
            library.tensor(x),
            kernel,
            output_size=out,
            return_indices=True,
            _random_samples=library.tensor(samples),
        )
        return [tensor.numpy() for tensor in results]

    same(f"fractional_max_pool{dims}d of {x.shape}, {kernel}, {out}", run)
