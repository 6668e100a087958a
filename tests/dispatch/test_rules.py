"""Rules of register_torch_dispatch, in place of the __torch_dispatch__ of modes and classes."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.utils._python_dispatch import TorchDispatchMode

log: list[Any] = []


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        log.append("mode")
        return func(*args, **(kwargs or {}))


class Other(Mode):
    """Has no rule: those of its base are not its own."""


class Twos(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        log.append("class")
        return torch.full((2,), 2.0)


class Others(Twos):
    pass


@torch.library.custom_op("rules::scaled", mutates_args=())
def scaled(x: torch.Tensor, k: float = 1.0) -> torch.Tensor:
    return x * k


@torch.library.register_torch_dispatch("rules::scaled", Mode)
def _(mode: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    log.append((type(mode), types, len(args), kwargs))
    return func(*args, **kwargs) + 1


def of_twos(cls: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    log.append((cls, types, len(args), kwargs))
    return torch.full((2,), 7.0)


torch.library.register_torch_dispatch(scaled, Twos, of_twos)

X = torch.ones(2)


def call(mode: Any, *args: Any) -> list[float]:
    log.clear()
    if mode is None:
        return scaled(*args).tolist()
    with mode:
        return scaled(*args).tolist()


def test_modes_have_rules() -> None:
    assert call(None, X, 2.0) == [2, 2] and log == []
    assert call(Mode(), X, 2.0) == [3, 3] and log == [(Mode, (), 2, {})]
    assert call(Other(), X, 2.0) == [2, 2] and log == ["mode"]
    assert call(Mode(), torch.ones(2, requires_grad=True)) == [2, 2]
    with Mode():  # which is in force again after the rule
        assert [scaled(X).tolist() for _ in range(2)] == [[2, 2]] * 2


def test_classes_of_tensors_have_rules() -> None:
    twos, others = (torch.Tensor._make_subclass(kind, X) for kind in (Twos, Others))
    assert call(None, twos) == [7, 7] and log == [(Twos, (Twos,), 1, {})]
    assert call(None, others) == [2, 2] and log == ["class"]
    assert call(Mode(), twos) == [8, 8]
    assert log == [(Mode, (Twos,), 1, {}), (Twos, (Twos,), 1, {})]
    assert call(Other(), twos) == [7, 7] and log == ["mode", (Twos, (Twos,), 1, {})]


def test_operators_must_be_there() -> None:
    with pytest.raises(RuntimeError, match="none"):
        torch.library.register_torch_dispatch("rules::none", Mode, of_twos)
