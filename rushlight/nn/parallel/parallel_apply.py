"""Runs several modules at once, a thread for each."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor, cuda
from rushlight.amp.autocast_mode import RestoredAutocast
from rushlight.cuda._device import gpu_index
from rushlight.nn.modules.module import Module

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Tensor | None:
    """Returns a tensor of a structure, the first one; None if there is none."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, dict):
        obj = list(obj.items())
    if isinstance(obj, (list, tuple)):
        for value in obj:
            found = get_a_var(value)
            if found is not None:
                return found
    return None


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Returns the results of modules, each called on its GPU by a thread of its own.

    Whether gradients are recorded, autocast, and the current stream of each GPU are as in the
    calling thread.

    Args:
        modules: the modules.
        inputs: for each its arguments, a list or tuple, or its only one.
        kwargs_tup: for each its keyword arguments.
        devices: for each its GPU; unless given, that of its first tensor.

    Raises:
        AssertionError: if the lists have different lengths.
        Exception: what a module raised, with a note that says which.
    """
    count = len(modules)
    for name, values in (("inputs", inputs), ("kwargs_tup", kwargs_tup), ("devices", devices)):
        if values is not None and len(values) != count:
            raise AssertionError(
                f"The number of modules {count} is not equal to the number of {name} {len(values)}"
            )
    gpus = [_gpu_of(i, inputs[i], None if devices is None else devices[i]) for i in range(count)]
    streams = [cuda.current_stream(gpu) for gpu in gpus]
    records = rl.is_grad_enabled()
    casts = [RestoredAutocast() for _ in range(count)]
    results: list[Any] = [None] * count
    errors: list[Exception | None] = [None] * count

    def run(i: int) -> None:
        args = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
        kwargs = {} if kwargs_tup is None else kwargs_tup[i]
        try:
            with (
                cuda.device(gpus[i]),
                cuda.stream(streams[i]),
                rl.set_grad_enabled(records),
                casts[i],
            ):
                results[i] = modules[i](*args, **kwargs)
        except Exception as error:
            error.add_note(f"in replica {i} on device {gpus[i]}")
            errors[i] = error

    if count == 1:
        run(0)
    else:
        threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for error in errors:
        if error is not None:
            raise error
    return results


def _gpu_of(i: int, inputs: Any, device: Any) -> int:
    if device is not None:
        return gpu_index(device)
    tensor = get_a_var(inputs)
    if tensor is None:
        raise RuntimeError(
            f"parallel_apply: in replica {i}, no device was provided and no tensor input was "
            "found; device cannot be resolved. Pass devices."
        )
    return gpu_index(tensor.device)
