"""The names of backward across processes, which is not there: tensors of remote calls come without
their history. Libraries import the names, and ask is_available.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from rushlight import Tensor

__all__ = ["backward", "context", "get_gradients", "is_available"]


def is_available() -> bool:
    """Returns False."""
    return False


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"{name}: remote calls carry no history, so backward stays in its process. Send gradients "
        "by calls, or use DistributedDataParallel or a pipeline."
    )


class context:
    """A with block of one backward; beginning one raises NotImplementedError."""

    def __enter__(self) -> int:
        _refuse("context")

    def __exit__(self, *error: object) -> None:
        pass


def backward(context_id: int, roots: Sequence[Tensor], retain_graph: bool = False) -> NoReturn:
    """Raises: there is no backward across processes.

    Raises:
        NotImplementedError: always.
    """
    _refuse("backward")


def get_gradients(context_id: int) -> NoReturn:
    """Raises, as backward does.

    Raises:
        NotImplementedError: always.
    """
    _refuse("get_gradients")
