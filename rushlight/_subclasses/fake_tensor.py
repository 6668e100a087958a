"""Fake tensors, which no tensor is; the meta device has tensors without data."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake", "unset_fake_temporarily"]


class FakeTensor:
    """What no tensor is; programs ask isinstance."""


class FakeTensorMode:
    """What no program runs in; making one raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            'FakeTensorMode: there are no fake tensors. Use device="meta" for tensors without data.'
        )


def unset_fake_temporarily() -> AbstractContextManager[None]:
    """Does nothing: no mode of fake tensors is on."""
    return nullcontext()


def is_fake(x: object) -> bool:
    """Returns False: no tensor is fake."""
    return False
