"""What tests of quantization share: the same numbers in both libraries, and graphs as text."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

import rushlight as torch


@contextmanager
def quietly(pytorch: Any, engine: str | None = None) -> Iterator[None]:
    """Without warnings, and with PyTorch's engine as it was afterwards."""
    before = pytorch.backends.quantized.engine
    pytorch.backends.quantized.engine = engine or before
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    pytorch.backends.quantized.engine = before


def part(lib: Any, path: str) -> Any:
    """A module of a library."""
    return import_module(f"{lib.__name__}.{path}")


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def filled(lib: Any, network: Any) -> Any:
    """The network with numbers that are the same in both libraries."""
    rng = np.random.default_rng(5)
    for name, value in network.state_dict().items():
        if value.is_floating_point():
            numbers = rng.normal(scale=0.3, size=tuple(value.shape)).astype("f4")
            value.copy_(lib.tensor(np.abs(numbers) + 0.5 if "var" in name else numbers))
    return network


def nodes(graph_module: Any) -> list[tuple[str, str, list[str]]]:
    """A graph as text: op and name of each node, and the names of its inputs."""
    return [
        (node.op, node.name, [n.name for n in node.all_input_nodes])
        for node in graph_module.graph.nodes
    ]


def numbers(value: Any) -> np.ndarray:
    """A tensor's values, of a quantized one what it stands for."""
    return (value.dequantize() if value.is_quantized else value).detach().numpy()


def of_pytorch(value: Any) -> Any:
    """An entry of PyTorch's state dicts of quantized networks, in this library."""
    if isinstance(value, tuple):
        return tuple(of_pytorch(each) for each in value)
    if str(value) == "torch.qint8":
        return torch.qint8
    if not hasattr(value, "is_quantized"):
        return value
    if not value.is_quantized:
        return torch.tensor(value.detach().numpy())
    integers = torch.tensor(value.int_repr().numpy())
    if "per_tensor" in str(value.qscheme()):
        form = value.q_scale(), value.q_zero_point()
        return torch._make_per_tensor_quantized_tensor(integers, *form)
    scales = torch.tensor(value.q_per_channel_scales().numpy())
    zero_points = torch.tensor(value.q_per_channel_zero_points().numpy())
    axis = value.q_per_channel_axis()
    return torch._make_per_channel_quantized_tensor(integers, scales, zero_points, axis)
