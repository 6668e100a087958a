"""The choice of a library for quantized tensors, which keeps what it is set to."""

from __future__ import annotations

import sys
from types import ModuleType

engine: str
supported_engines: list[str]

_ENGINES = ("none", "fbgemm", "qnnpack", "onednn", "x86")


class _Quantized(ModuleType):
    _engine = "x86"

    @property
    def supported_engines(self) -> list[str]:
        """The names that `engine` may have."""
        return ["qnnpack", "onednn", "x86", "fbgemm"]

    @supported_engines.setter
    def supported_engines(self, value: object) -> None:
        raise RuntimeError("Assignment not supported")

    @property
    def engine(self) -> str:
        """The name of the library that is wanted."""
        return self._engine

    @engine.setter
    def engine(self, name: str | None) -> None:
        name = name or "none"
        if name not in _ENGINES:
            raise RuntimeError(f"{name} is not a valid value for quantized engine")
        self._engine = name


sys.modules[__name__].__class__ = _Quantized
