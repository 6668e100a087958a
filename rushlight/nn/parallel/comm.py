"""Copies between GPUs, as torch.nn.parallel.comm and torch.cuda.comm have them.

Each is made of ordinary operations, so gradients flow through all that has no `out`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import rushlight as rl
from rushlight import Tensor, cuda
from rushlight.cuda._device import gpu_index

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]


def gpus(devices: Iterable[Any]) -> list[rl.device]:
    """Returns GPUs, given as devices, names or numbers; None is the current one."""
    return [rl.device("cuda", gpu_index(device)) for device in devices]


def broadcast(
    tensor: Tensor, devices: Iterable[Any] | None = None, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """Returns copies of a tensor on several GPUs.

    Args:
        tensor: on any device; where it is already, it is returned itself.
        devices: the GPUs.
        out: tensors to copy into, in place of devices.

    Raises:
        RuntimeError: unless one of devices and out is given.
    """
    if (devices is None) == (out is None):
        raise RuntimeError(
            "broadcast: Exactly one of 'devices' and 'out' must be specified, but got "
            f"devices={devices} and out={out}."
        )
    if out is None:
        return tuple(tensor.to(device, non_blocking=True) for device in gpus(devices or ()))
    for copy in out:
        copy.copy_(tensor, non_blocking=True)
    return tuple(out)


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Iterable[Any], buffer_size: int = 10485760
) -> list[list[Tensor]]:
    """Returns for each GPU the copies of all tensors.

    Args:
        tensors: on any device; where one is already, it is returned itself.
        devices: the GPUs.
        buffer_size: accepted for PyTorch's sake; each tensor is copied by itself.
    """
    return [
        [tensor.to(device, non_blocking=True) for tensor in tensors] for device in gpus(devices)
    ]


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """Returns the sum of tensors of several GPUs.

    Args:
        inputs: tensors of one shape; one of them is on the destination.
        destination: the GPU of the result; the current one if None.

    Raises:
        AssertionError: if an input is on the CPU.
        ValueError: if the shapes differ.
        RuntimeError: if no input is on the destination.
    """
    (device,) = gpus((destination,))
    for i, tensor in enumerate(inputs):
        if tensor.device.type == "cpu":
            raise AssertionError(
                f"reduce_add expects all inputs to be on GPUs, but input {i} is on CPU"
            )
        if tensor.shape != inputs[0].shape:
            got, expected = ("x".join(map(str, t.shape)) for t in (tensor, inputs[0]))
            raise ValueError(f"input {i} has invalid size: got {got}, but expected {expected}")
    if all(tensor.device != device for tensor in inputs):
        raise RuntimeError(
            "reduce_add expects destination to be on the same GPU with one of the tensors"
        )
    total = inputs[0].to(device, non_blocking=True)
    for tensor in inputs[1:]:
        total = total + tensor.to(device, non_blocking=True)
    return total


def reduce_add_coalesced(
    inputs: Iterable[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """Returns the sums of the first tensors of several GPUs, of the second ones, and so on.

    Args:
        inputs: for each GPU its tensors.
        destination: the GPU of the results; the current one if None.
        buffer_size: accepted for PyTorch's sake; each sum is made by itself.
    """
    return tuple(reduce_add(tensors, destination) for tensors in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor,
    devices: Iterable[Any] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Sequence[Any] | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Returns a tensor in parts, one on each GPU.

    Args:
        tensor: on any device; a part that stays where it is shares its memory.
        devices: the GPUs.
        chunk_sizes: how long the parts are; unless given, equally long but for the last.
        dim: along which it is split.
        streams: of the GPUs, to copy on; None is the current one.
        out: tensors to copy into, in place of devices and chunk_sizes.

    Raises:
        RuntimeError: if out comes together with devices or chunk_sizes.
    """
    if out is not None:
        for name, value in (("devices", devices), ("chunk_sizes", chunk_sizes)):
            if value is not None:
                raise RuntimeError(
                    f"scatter: '{name}' must not be specified when 'out' is specified, but got "
                    f"{name}={value}."
                )
        parts = tensor.split([part.size(dim) for part in out], dim)
        for part, into in zip(parts, out, strict=True):
            into.copy_(part, non_blocking=True)
        return tuple(out)
    targets = gpus(devices or ())
    if chunk_sizes is None:
        parts = tensor.chunk(len(targets), dim)
    else:
        parts = tensor.split(list(chunk_sizes), dim)
    copies = []
    for i, (part, device) in enumerate(zip(parts, targets, strict=False)):
        stream = None if streams is None else streams[i]
        with nullcontext() if stream is None else cuda.stream(stream):
            copies.append(part.to(device, non_blocking=True))
    return tuple(copies)


def gather(
    tensors: Sequence[Tensor],
    dim: int = 0,
    destination: Any = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the tensors of several GPUs joined to one.

    Args:
        tensors: of equal sizes but for dim.
        dim: along which they are joined.
        destination: where the result is: a GPU, "cpu", or None for the current GPU.
        out: a tensor to write into, in place of destination.

    Raises:
        RuntimeError: if out comes together with destination.
    """
    if out is not None and destination is not None:
        raise RuntimeError(
            "gather: 'destination' must not be specified when 'out' is specified, but got "
            f"destination={destination}."
        )
    if out is not None:
        joined = rl.cat([tensor.to(out.device, non_blocking=True) for tensor in tensors], dim)
        return out.copy_(joined)
    is_cpu = destination == -1 or str(destination) == "cpu"
    device = rl.device("cpu") if is_cpu else gpus((destination,))[0]
    return rl.cat([tensor.to(device) for tensor in tensors], dim)
