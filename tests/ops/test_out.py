"""out=: the result goes into the tensor that the caller gave, whatever that shares with the inputs.

The oracle is the same op without out=, on copies.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as rl

Op = Callable[..., Any]


def filled(*shape: int, dtype: Any = rl.float32) -> rl.Tensor:
    return (rl.arange(1, int(np.prod(shape)) + 1).reshape(shape) * 3 % 17 + 1).to(dtype)


def check(op: Op, *args: Any, out: rl.Tensor, **kwargs: Any) -> None:
    """Checks that `out` holds the result of op and that its neighbors in memory are untouched."""
    copies = [a.clone() if isinstance(a, rl.Tensor) else a for a in args]
    expected = op(*copies, **kwargs).to(out.dtype)
    address, version, strides = out.data_ptr(), out._version, out.stride()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert op(*args, out=out, **kwargs) is out
    assert (out.data_ptr(), out._version, out.stride()) == (address, version + 1, strides)
    np.testing.assert_array_equal(out.numpy(), expected.numpy())


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 0, 3), (130, 700)])
@pytest.mark.parametrize("op", [rl.add, rl.mul, rl.sub, rl.div, rl.maximum, rl.pow, rl.atan2])
def test_result_of_two_tensors(op: Op, shape: tuple[int, ...]) -> None:
    a, b = filled(*shape), filled(*shape) / 7
    check(op, a, b, out=rl.empty(shape))


@pytest.mark.parametrize("op", [rl.neg, rl.exp, rl.sqrt, rl.sigmoid, rl.sign])
def test_result_of_one_tensor(op: Op) -> None:
    check(op, filled(300, 7), out=rl.empty(300, 7))


def test_result_with_a_number_and_a_factor() -> None:
    check(rl.mul, filled(64), 2, out=rl.empty(64))
    check(rl.add, filled(64), filled(64), alpha=3, out=rl.empty(64))


def test_broadcast_operands() -> None:
    check(rl.add, filled(3, 1), filled(4), out=rl.empty(3, 4))
    check(rl.mul, filled(1), filled(2, 3, 4), out=rl.empty(2, 3, 4))


def test_result_in_an_out_with_gaps_leaves_the_gaps() -> None:
    memory = rl.zeros(6, 10)
    check(rl.add, filled(3, 5), filled(3, 5), out=memory[::2, ::2])
    assert memory[1::2].eq(0).all() and memory[:, 1::2].eq(0).all()
    check(rl.exp, filled(4, 3) / 8, out=rl.zeros(3, 4).t())


@pytest.mark.parametrize("dtype", [rl.float64, rl.float16, rl.complex64])
def test_result_in_another_dtype(dtype: Any) -> None:
    out = rl.zeros(4, 5, dtype=dtype)
    check(rl.mul, filled(4, 5), filled(4, 5), out=out)
    check(rl.add, filled(4, 5, dtype=rl.int64), 2, out=out)


def test_comparison_into_numbers() -> None:
    check(rl.gt, filled(9), 5, out=rl.empty(9))
    check(rl.eq, filled(9), filled(9), out=rl.empty(9, dtype=rl.int64))


@pytest.mark.parametrize("size", [10, 5000])
def test_out_is_an_input(size: int) -> None:
    a, b = filled(size), filled(size) / 3
    check(rl.mul, a, b, out=a)
    check(rl.sub, a, b, out=b)
    check(rl.exp, b / 9, out=b)
    check(rl.add, a, a, out=a)


@pytest.mark.parametrize("size", [10, 5000])
@pytest.mark.parametrize("shift", [1, 2, 9])
def test_out_overlaps_an_input(size: int, shift: int) -> None:
    memory = filled(size + shift)
    check(rl.add, memory[:size], filled(size), out=memory[shift:])
    memory = filled(size + shift)
    check(rl.mul, filled(size), memory[shift:], out=memory[:size])
    memory = filled(size)
    check(rl.neg, memory.flip(0), out=memory)
    square = filled(60, 60)
    check(rl.sub, square, square.t(), out=square)
    check(rl.mul, square[0], square, out=square)


def test_out_overlaps_an_input_of_another_dtype() -> None:
    memory = rl.zeros(64, dtype=rl.float64)
    narrow = memory.view(rl.float32)[:64]
    narrow.copy_(filled(64))
    check(rl.mul, narrow, 2, out=memory)


def test_out_of_no_elements_takes_the_shape() -> None:
    out = rl.empty(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rl.add(filled(3, 4), 1, out=out) is out
    assert out.shape == (3, 4)
    np.testing.assert_array_equal(out.numpy(), (filled(3, 4) + 1).numpy())


def test_out_of_another_shape_takes_the_shape_with_a_warning() -> None:
    out = rl.zeros(7)
    with pytest.warns(UserWarning, match=r"add: An output with one or more elements was resized"):
        rl.add(filled(3), 1, out=out)
    np.testing.assert_array_equal(out.numpy(), (filled(3) + 1).numpy())
    with pytest.warns(UserWarning, match=r"had shape \(3,\).*output shape \(2, 4\)"):
        rl.exp(filled(2, 4), out=out)
    assert out.shape == (2, 4)


def test_numbers_that_are_made_resize_out_silently() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in (rl.zeros, rl.rand, rl.eye):
            assert make(6, out=rl.zeros(2, 4)).numel() in (6, 36)
        assert rl.bernoulli(rl.ones(6), out=rl.zeros(2, 4)).tolist() == [1.0] * 6
        assert rl.randperm(6, out=rl.zeros(2, 3, dtype=rl.int64)).shape == (6,)
    assert rl.arange(6, out=rl.zeros(2, 3)).shape == (2, 3)
    with pytest.warns(UserWarning, match="arange: An output with one or more elements"):
        assert rl.arange(6, out=rl.zeros(2, 4)).shape == (6,)


def test_out_that_is_resized_lies_as_the_result() -> None:
    transposed = filled(3, 4).t()
    assert rl.exp(transposed, out=rl.empty(0)).stride() == (1, 4)
    assert rl.linalg.inv(rl.eye(5), out=rl.empty(0)).stride() == rl.linalg.inv(rl.eye(5)).stride()
    assert rl.sum(transposed[None].expand(2, 4, 3), 0, out=rl.empty(0)).shape == (4, 3)


@pytest.mark.parametrize("shape", [(3,), (0,)])
def test_out_of_a_narrower_kind_is_refused(shape: tuple[int, ...]) -> None:
    message = "result type float32 can't be cast to the desired output type int64"
    with pytest.raises(RuntimeError, match=f"mul: {message}"):
        rl.mul(filled(3), 2, out=rl.empty(shape, dtype=rl.int64))
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type bool"):
        rl.add(filled(3, dtype=rl.int64), 2, out=rl.empty(shape, dtype=rl.bool))


def test_out_that_repeats_elements_is_refused() -> None:
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        rl.add(filled(3, 4), 1, out=rl.zeros(4).expand(3, 4))


def test_read_only_out_is_refused_and_kept() -> None:
    array = np.ones(3, np.float32)
    array.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        rl.add(filled(3), 1, out=rl.from_numpy(array))
    assert (array == 1).all()


def test_out_or_input_that_requires_grad_is_refused_and_kept() -> None:
    wanting = rl.ones(3, requires_grad=True)
    message = "add: functions with out=... arguments don't support automatic differentiation"
    for args, out in (((wanting, 1), rl.zeros(3)), ((filled(3), 1), wanting)):
        before = out.detach().clone()
        with pytest.raises(RuntimeError, match=message):
            rl.add(*args, out=out)
        assert out.eq(before).all()
        with rl.no_grad():
            rl.add(*args, out=out)


def test_out_that_backward_needs_is_noticed() -> None:
    x = rl.ones(3, requires_grad=True)
    y = x.exp()
    rl.add(filled(3), 1, out=y.detach())
    with pytest.raises(RuntimeError, match="add changed it in place afterwards"):
        y.sum().backward()


def test_out_of_several_results() -> None:
    values, indices = rl.empty(0), rl.empty(0, dtype=rl.int64)
    result = rl.max(filled(3, 4), 1, out=(values, indices))
    assert result.values is values and result.indices is indices
    np.testing.assert_array_equal(values.numpy(), filled(3, 4).numpy().max(1))
    np.testing.assert_array_equal(indices.numpy(), filled(3, 4).numpy().argmax(1))


@pytest.mark.parametrize("ord", [None, 1, 2, "fro", "nuc"])
def test_norms_of_complex_numbers_in_a_real_out(ord: Any) -> None:
    x = rl.complex(filled(3, 3), filled(3, 3).flip(0))
    check(rl.linalg.norm, x, ord, out=rl.empty(()))
    check(rl.linalg.norm, x, ord, dtype=rl.complex64, out=rl.empty(()))


def test_wrong_out_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="argument 'out' must be Tensor, not int"):
        rl.add(filled(3), 1, out=3)
    with pytest.raises(TypeError, match="argument 'out' must be a tuple of 2 Tensors"):
        rl.max(filled(3, 4), 1, out=rl.empty(0))


def test_out_of_threads() -> None:
    outs = [rl.empty(200_000) for _ in range(4)]
    a = filled(200_000)
    threads = [
        threading.Thread(target=rl.mul, args=(a, i), kwargs={"out": outs[i]}) for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, out in enumerate(outs):
        np.testing.assert_array_equal(out.numpy(), a.numpy() * i)
