"""The gradients that DistributedDataParallel averages together, as communication hooks see them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, get_origin

from rushlight import Tensor
from rushlight._copying import is_dense
from rushlight.futures import Future

__all__ = ["GradBucket"]


def lay_out(flat: Tensor, params: Sequence[Tensor]) -> list[Tensor]:
    """Returns views of memory, one after another, with the shapes and strides of parameters."""
    views, offset = [], 0
    for param in params:
        if param.is_contiguous() or not is_dense(param):
            views.append(flat[offset : offset + param.numel()].view(param.shape))
        else:
            views.append(flat.as_strided(param.shape, param.stride(), offset))
        offset += param.numel()
    return views


class GradBucket:
    """Gradients that are averaged together: what a communication hook gets.

    Args:
        index: which bucket of the backward this is.
        buffer: the gradients, in one dim.
        params: the parameters that they are of, in this order.
        is_last: whether no bucket follows.
    """

    def __init__(self, index: int, buffer: Tensor, params: Sequence[Tensor], is_last: bool) -> None:
        self._index = index
        self._buffer = buffer
        self._params = params
        self._is_last = is_last

    def index(self) -> int:
        """Which bucket this is, in the order in which they are reduced."""
        return self._index

    def buffer(self) -> Tensor:
        """The gradients one after another, in one dim."""
        return self._buffer

    def gradients(self) -> list[Tensor]:
        """The gradients, as views of the buffer."""
        return lay_out(self._buffer, self._params)

    def parameters(self) -> list[Tensor]:
        """The parameters that they are of."""
        return list(self._params)

    def is_last(self) -> bool:
        """Whether no bucket follows in this backward."""
        return self._is_last

    def set_buffer(self, buffer: Tensor) -> None:
        """Replaces the gradients."""
        self._buffer = buffer


def check_hook(hook: Callable[..., Any]) -> None:
    """Sees that a communication hook can be called, and that its annotations, if any, are right.

    Raises:
        TypeError: if it cannot be called.
        ValueError: if it says that it takes no GradBucket, or returns no Future.
    """
    if not callable(hook):
        raise TypeError("Communication hook must be callable.")
    try:
        signature = inspect.signature(hook, eval_str=True)
    except (ValueError, TypeError, NameError, AttributeError):
        return  # it has none that can be read here
    empty = inspect.Signature.empty
    bucket = signature.parameters.get("bucket")
    for name, found, kind, kind_name in (
        ("bucket", bucket.annotation if bucket else empty, GradBucket, "dist.GradBucket"),
        ("return", signature.return_annotation, Future, "torch.futures.Future"),
    ):
        found = get_origin(found) or found
        if found not in (empty, kind, Any):
            raise ValueError(
                f"Communication hook: {name} annotation should be {kind_name}, not {found!r}."
            )
