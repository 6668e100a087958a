"""How einsum orders the contraction of three or more operands.

With the package opt_einsum its strategy decides; without it, each step takes the pair whose product
is the smallest. When not enabled, operands are contracted from left to right.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

enabled: bool = True
strategy: str | None
_strategy: str | None = None


def get_opt_einsum() -> Any:
    """Returns the package opt_einsum, or None when it is not installed."""
    try:
        return importlib.import_module("opt_einsum")
    except ImportError:
        return None


def is_available() -> bool:
    """Returns whether the package opt_einsum is installed."""
    return get_opt_einsum() is not None


def set_flags(
    _enabled: bool | None = None, _strategy: str | None = None
) -> tuple[bool, str | None]:
    """Sets what is not None, and returns both settings from before."""
    module: Any = sys.modules[__name__]
    before = module.enabled, module._strategy
    if _enabled is not None:
        module.enabled = _enabled
    if _strategy is not None:
        module.strategy = _strategy
    return before


@contextlib.contextmanager
def flags(enabled: bool | None = None, strategy: str | None = None) -> Iterator[None]:
    """Sets what is not None for a block."""
    module: Any = sys.modules[__name__]
    before = set_flags(enabled, strategy)
    try:
        yield
    finally:
        module.enabled, module._strategy = before


class _OptEinsum(ModuleType):
    _strategy: str | None

    @property
    def strategy(self) -> str | None:
        """One of opt_einsum's strategies, 'auto' or 'greedy' for example; None without it."""
        return self._strategy or ("auto" if is_available() else None)

    @strategy.setter
    def strategy(self, strategy: str | None) -> None:
        if strategy is not None and not is_available():
            raise ValueError(
                "opt_einsum is not available, so setting `strategy` will not be meaningful. "
                "Please install opt_einsum or unset `strategy`."
            )
        self._strategy = strategy


sys.modules[__name__].__class__ = _OptEinsum
