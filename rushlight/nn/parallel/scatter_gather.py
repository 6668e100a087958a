"""Splits the arguments of a call for several GPUs, and joins what comes back."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from rushlight import Tensor
from rushlight.nn.parallel import comm
from rushlight.utils._pytree import is_namedtuple_instance

__all__ = ["gather", "scatter", "scatter_kwargs"]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Returns for each GPU its part of the tensors in a structure.

    Tensors are split into about equal parts along dim, and gradients come back through them;
    tuples, lists and dicts are taken apart; each GPU gets a reference to anything else.

    Args:
        inputs: a tensor, or a structure with tensors.
        target_gpus: the GPUs, as devices, names or numbers.
        dim: along which tensors are split.

    Returns:
        A tuple of tensors for a tensor, a list of structures for a structure. There are fewer of
        them than GPUs if a tensor is too short.
    """
    if isinstance(inputs, Tensor):
        return comm.scatter(inputs, target_gpus, dim=dim)

    def parts(values: Any) -> Any:
        return zip(*(scatter(value, target_gpus, dim) for value in values), strict=False)

    if is_namedtuple_instance(inputs):
        return [type(inputs)(*part) for part in parts(inputs)]
    if isinstance(inputs, tuple) and inputs:
        return list(parts(inputs))
    if isinstance(inputs, list) and inputs:
        return list(map(list, parts(inputs)))
    if isinstance(inputs, dict) and inputs:
        return [type(inputs)(part) for part in parts(inputs.items())]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Returns for each GPU its positional arguments, and its keyword arguments.

    Args:
        inputs: positional arguments.
        kwargs: keyword arguments.
        target_gpus: the GPUs, as devices, names or numbers.
        dim: along which tensors are split.
    """
    args_of = scatter(inputs, target_gpus, dim) if inputs else []
    kwargs_of = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(args_of), len(kwargs_of))
    args_of.extend(() for _ in range(count - len(args_of)))
    kwargs_of.extend({} for _ in range(count - len(kwargs_of)))
    return tuple(args_of), tuple(kwargs_of)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Returns the results of several GPUs as one structure, with tensors joined along dim.

    Args:
        outputs: a sequence of tensors, or of structures with tensors, one for each GPU.
        target_device: a GPU, or "cpu".
        dim: along which tensors are joined; numbers become a vector.

    Raises:
        AssertionError: if a tensor is on the CPU.
        ValueError: if dicts have different numbers of keys.
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        return _join(outputs, target_device, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(output) != len(first) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)(
            (key, gather([output[key] for output in outputs], target_device, dim)) for key in first
        )
    parts = (gather(values, target_device, dim) for values in zip(*outputs, strict=True))
    return type(first)(*parts) if is_namedtuple_instance(first) else type(first)(parts)


def _join(tensors: Sequence[Tensor], device: Any, dim: int) -> Tensor:
    if any(tensor.device.type == "cpu" for tensor in tensors):
        raise AssertionError("Gather function not implemented for CPU tensors")
    if isinstance(device, int) and device == -1:
        warnings.warn(
            "Using -1 to represent CPU tensor is deprecated. Please use a device object or string "
            'instead, e.g., "cpu".',
            FutureWarning,
            stacklevel=3,
        )
    if dim == 0 and all(tensor.dim() == 0 for tensor in tensors):
        warnings.warn(
            "Was asked to gather along dimension 0, but all input tensors were scalars; will "
            "instead unsqueeze and return a vector.",
            stacklevel=3,
        )
        tensors = [tensor.view(1) for tensor in tensors]
    return comm.gather(tensors, dim, device)
