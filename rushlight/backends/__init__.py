"""Switches of back ends that programs set; none of them changes what the CPU computes."""

from __future__ import annotations

import contextlib

from rushlight import _settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class _Backend:
    """Settings that may be read and written freely."""

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)

    def is_available(self) -> bool:
        """Returns whether the back end can be used: not yet."""
        return False


class _Matmul:
    """Settings of matrix products on CUDA."""

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 may round their factors to TF32."""
        return _settings.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allow: bool) -> None:
        _settings.set_float32_matmul_precision("high" if allow else "highest")


class _OptEinsum:
    """How einsum orders the contraction of three or more operands.

    With the package opt_einsum its strategy decides; without it, each step takes the pair whose
    product is the smallest. When not enabled, operands are contracted from left to right.
    """

    enabled = True

    def __init__(self) -> None:
        self._strategy: str | None = None

    def get_opt_einsum(self) -> Any:
        """Returns the package opt_einsum, or None when it is not installed."""
        import importlib

        try:
            return importlib.import_module("opt_einsum")
        except ImportError:
            return None

    def is_available(self) -> bool:
        """Returns whether the package opt_einsum is installed."""
        return self.get_opt_einsum() is not None

    @property
    def strategy(self) -> str | None:
        """The strategy of opt_einsum: 'auto', 'greedy' or 'optimal'; None without the package."""
        return self._strategy or ("auto" if self.is_available() else None)

    @strategy.setter
    def strategy(self, strategy: str | None) -> None:
        if strategy is not None:
            if not self.is_available():
                raise ValueError(
                    "opt_einsum is not available, so setting `strategy` will not be meaningful. "
                    "Please install opt_einsum or unset `strategy`."
                )
            if strategy not in ("auto", "greedy", "optimal"):
                raise ValueError(
                    f"`strategy` must be one of auto, greedy and optimal, but is {strategy!r}."
                )
        self._strategy = strategy

    def set_flags(
        self, _enabled: bool | None = None, _strategy: str | None = None
    ) -> tuple[bool, str | None]:
        """Sets what is not None, and returns both settings from before."""
        before = self.enabled, self._strategy
        if _enabled is not None:
            self.enabled = _enabled
        if _strategy is not None:
            self.strategy = _strategy
        return before

    @contextlib.contextmanager
    def flags(self, enabled: bool | None = None, strategy: str | None = None) -> Iterator[None]:
        """Sets what is not None for a block."""
        before = self.set_flags(enabled, strategy)
        try:
            yield
        finally:
            self.enabled, self._strategy = before


cudnn = _Backend(enabled=False, benchmark=False, deterministic=True, allow_tf32=False)
cuda = _Backend(matmul=_Matmul())
mps = _Backend()
opt_einsum = _OptEinsum()
