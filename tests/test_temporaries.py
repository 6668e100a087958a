"""The memory of a temporary is used again, and only that of a temporary. Note [Temporaries]."""

from __future__ import annotations

import operator
import sys
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import rushlight as torch
from rushlight import Tensor

LARGE = (512, 1024)

# A compiler of Python may end PyNumber_Subtract by a jump, which leaves nothing of it on the stack.
may_be_unseen = pytest.mark.xfail(
    (3, 12) <= sys.version_info < (3, 14), reason="not seen on the stack", strict=False
)


class Source:
    """Makes large tensors that nothing else refers to, and remembers where the last one lay."""

    address = 0

    def __call__(self, value: float = 3.0, shape: tuple[int, ...] = LARGE) -> Tensor:
        result = torch.full(shape, value)
        self.address = result.data_ptr()
        return result

    def made(self, tensor: Tensor) -> bool:
        return tensor.data_ptr() == self.address


@pytest.fixture
def fresh() -> Source:
    return Source()


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (lambda fresh, b: fresh() + b, 5.0),
        (lambda fresh, b: b + fresh(), 5.0),
        pytest.param(lambda fresh, b: fresh() - b, 1.0, marks=may_be_unseen),
        (lambda fresh, b: fresh() * b, 6.0),
        (lambda fresh, b: b * fresh(), 6.0),
        (lambda fresh, b: fresh() / b, 1.5),
        (lambda fresh, b: fresh() * 2, 6.0),
        (lambda fresh, b: 2.0 * fresh(), 6.0),
        (lambda fresh, b: fresh() + b.sum() / b.numel(), 5.0),
    ],
)
def test_temporary_takes_the_result(
    fresh: Source, expression: Callable[[Source, Tensor], Tensor], value: float
) -> None:
    result = expression(fresh, torch.full(LARGE, 2.0))
    assert fresh.made(result)
    assert (result == value).all()


@pytest.mark.parametrize(
    "expression",
    [
        lambda fresh, b: b - fresh(),  # the result may not go into the second operand
        lambda fresh, b: fresh(shape=(1024,)) + b,  # nor into a smaller one
        lambda fresh, b: fresh() + b.double(),  # nor one of another dtype
        lambda fresh, b: fresh() + 1j,
        lambda fresh, b: fresh() + b.requires_grad_(),
        lambda fresh, b: fresh().requires_grad_() + b,
        lambda fresh, b: fresh()[:] + b,
        lambda fresh, b: fresh().expand(2, *LARGE) + b,
        lambda fresh, b: operator.add(fresh(), b),
        lambda fresh, b: fresh(shape=(8,)) + 1,  # too small to be worth the question
    ],
)
def test_other_operands_are_left_alone(
    fresh: Source, expression: Callable[[Source, Tensor], Tensor]
) -> None:
    assert not fresh.made(expression(fresh, torch.full(LARGE, 2.0)))


def test_named_tensor_is_never_written(fresh: Source) -> None:
    x = fresh()
    y = x + 1
    assert not fresh.made(y)
    assert (x == 3).all()


def test_c_code_may_own_the_only_reference(fresh: Source) -> None:
    array = np.empty(2, dtype=object)
    array[0], array[1] = fresh(1.0), fresh(2.0)
    sums = array + 1
    assert (array[0] == 1).all() and (array[1] == 2).all()
    assert (sums[0] == 2).all() and (sums[1] == 3).all()


def test_memory_of_an_array_is_not_taken() -> None:
    array = np.ones(LARGE, np.float32)
    assert (torch.from_numpy(array) + 1 == 2).all()
    assert (array == 1).all()


def test_memory_that_an_array_sees_is_not_taken(fresh: Source) -> None:
    arrays: list[np.ndarray] = []

    def shared() -> Tensor:
        x = fresh()
        arrays.append(x.detach().numpy())
        return x

    assert (shared() + 1 == 4).all()
    assert (arrays[0] == 3).all()


def test_weakly_referenced_tensor_is_not_taken(fresh: Source) -> None:
    references: list[weakref.ref[Tensor]] = []

    def watched() -> Tensor:
        x = fresh()
        references.append(weakref.ref(x))
        return x

    assert not fresh.made(watched() + 1)
    assert references[0]() is None


def test_subclass_is_not_taken() -> None:
    class Tagged(Tensor):
        pass

    values = [Tensor._make_subclass(Tagged, torch.full(LARGE, 1.0))]
    address = values[0].data_ptr()
    assert (values.pop() + 1).data_ptr() != address


def test_backward_reads_what_was_saved(fresh: Source) -> None:
    w = torch.full(LARGE, 2.0, requires_grad=True)
    ((fresh() * 2) * w + fresh()).sum().backward()
    assert w.grad is not None
    assert (w.grad == 6).all()
