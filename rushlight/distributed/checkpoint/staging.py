"""How async_save copies a state dict before it writes the copy."""

from __future__ import annotations

import copy
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from rushlight import Tensor
from rushlight.distributed.tensor import DTensor
from rushlight.distributed.tensor._api import wrap
from rushlight.utils._pytree import tree_map

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """What async_save asks for a copy of a state dict."""

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether async_save calls synchronize_staging before it returns."""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict[str, Any]) -> Future[dict[str, Any]] | dict[str, Any]:
        """Returns a copy of a state dict, or a future of one, which later changes do not reach."""
        ...

    def synchronize_staging(self) -> None:
        """Waits until the copy is made."""

    def close(self) -> None:
        """Ends what it has started."""


def _copied(value: Any) -> Any:
    if isinstance(value, DTensor):
        return wrap(_copied(value._local_tensor), value._spec)
    if isinstance(value, Tensor):
        return value if value.is_meta else value.detach().to("cpu", copy=True)
    return copy.deepcopy(value)


class BlockingAsyncStager(AsyncStager):
    """Copies at once to the memory of the CPU.

    Args:
        cache_staged_state_dict, type_check: accepted for PyTorch's sake: every copy is a new one.
    """

    _synchronize_after_execute: bool = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        pass

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """Returns a copy of a state dict."""
        return tree_map(_copied, state_dict)


@dataclass
class StagingOptions:
    """How DefaultStager copies.

    Args:
        use_async_staging: whether in a thread. The program must not change the tensors until it has
            made the copy.
        use_pinned_memory, use_shared_memory, use_non_blocking_copy: accepted for PyTorch's sake.
    """

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager(AsyncStager):
    """Copies to the memory of the CPU, in a thread or at once.

    Args:
        config: which of them, and more.

    Example:
        >>> from rushlight.distributed.checkpoint.staging import DefaultStager
        >>> stager = DefaultStager()
        >>> state = {"x": torch.ones(2)}
        >>> copied = stager.stage(state)
        >>> stager.synchronize_staging()
        >>> _ = state["x"].zero_()
        >>> copied.result()
        {'x': tensor([1., 1.])}
        >>> stager.close()
    """

    def __init__(self, config: StagingOptions | None = None) -> None:
        in_thread = (config or StagingOptions()).use_async_staging
        self._executor = ThreadPoolExecutor(1, "staging") if in_thread else None
        self._last: Future[dict[str, Any]] | None = None

    def stage(self, state_dict: dict[str, Any]) -> Future[dict[str, Any]] | dict[str, Any]:
        """Returns a copy of a state dict, or a future of one."""
        if self._executor is None:
            return tree_map(_copied, state_dict)
        self._last = self._executor.submit(tree_map, _copied, state_dict)
        return self._last

    def synchronize_staging(self) -> None:
        """Waits until the copy is made."""
        if self._last is not None:
            self._last.result()

    def close(self) -> None:
        """Ends the thread."""
        if self._executor is not None:
            self._executor.shutdown()
