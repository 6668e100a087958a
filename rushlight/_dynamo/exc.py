"""The errors of torch.compile."""

from __future__ import annotations

from typing import Any


class TorchDynamoException(RuntimeError):
    """What torch.compile raises."""


class InvalidBackend(TorchDynamoException):
    """There is no back end of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available "
            "backends."
        )


class BackendCompilerFailed(TorchDynamoException):
    """A back end that raised an error when it got a graph.

    Attributes:
        backend_name: the name of its function.
        inner_exception: what it raised.
    """

    def __init__(self, backend_fn: Any, inner_exception: Exception) -> None:
        self.backend_name = getattr(backend_fn, "__name__", "?")
        self.inner_exception = inner_exception
        super().__init__(
            f"backend={self.backend_name!r} raised:\n"
            f"{type(inner_exception).__name__}: {inner_exception}"
        )


class Unsupported(TorchDynamoException):
    """A program without a graph, where fullgraph asks for one."""
