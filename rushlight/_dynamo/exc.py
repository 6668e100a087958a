"""The errors of torch.compile."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """What torch.compile raises."""


class InvalidBackend(TorchDynamoException):
    """There is no back end of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available "
            "backends."
        )


class Unsupported(TorchDynamoException):
    """A program without a graph, where fullgraph asks for one."""
