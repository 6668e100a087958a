"""copy.copy, copy.deepcopy and pickle."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rushlight as torch
from rushlight.nn import Buffer, Parameter

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32,
    torch.uint64, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.complex64, torch.complex128,
]  # fmt: skip


def pickled(value: Any, protocol: int = pickle.DEFAULT_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


WAYS = pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, pickled], ids=["copy", "deepcopy", "pickle"]
)


@WAYS
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (2, 3)], ids=str)
def test_duplicates_are_equal(duplicate: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    x = torch.ones(shape).to(dtype)
    y = duplicate(x)
    assert y is not x
    assert y.dtype is dtype
    assert torch.equal(x, y)
    assert y.shape == shape


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_pickles(protocol: int) -> None:
    assert torch.equal(pickled(torch.arange(5), protocol), torch.arange(5))


@WAYS
def test_duplicates_keep_class_attributes_and_requires_grad(duplicate: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    x.note = ["text"]
    y = duplicate(x)
    assert y.requires_grad and y.is_leaf
    assert y.note == ["text"]
    parameter = Parameter(torch.ones(2), requires_grad=False)
    assert type(duplicate(parameter)) is Parameter
    assert not duplicate(parameter).requires_grad
    buffer = duplicate(Buffer(torch.ones(2), persistent=False))
    assert type(buffer) is Buffer and not buffer.persistent


def test_a_shallow_copy_shares_memory_and_a_deep_one_does_not() -> None:
    x = torch.zeros(3)
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    x[0] = 1
    assert shallow[0].item() == 1
    assert deep[0].item() == 0


def test_a_deep_copy_shares_what_was_shared() -> None:
    x = torch.arange(6.0)
    halves = {"first": x[:3], "last": x[3:], "whole": x, "bits": x.view(torch.int32)}
    twin = copy.deepcopy(halves)
    twin["whole"][:] = 7.0
    assert twin["first"].tolist() == twin["last"].tolist() == [7, 7, 7]
    assert twin["bits"].tolist() == torch.full((6,), 7.0).view(torch.int32).tolist()
    assert x[0].item() == 0
    same = copy.deepcopy([x, x])
    assert same[0] is same[1]


def test_a_deep_copy_has_the_gradient() -> None:
    x = torch.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    y = copy.deepcopy(x)
    assert y.grad.tolist() == [3, 3]
    assert y.grad is not x.grad
    assert copy.copy(x).grad is None


@WAYS
@given(order=st.permutations(range(3)))
def test_duplicates_of_dense_tensors_keep_the_order_of_memory(duplicate: Any, order: Any) -> None:
    x = torch.arange(24.0).reshape(2, 3, 4).permute(order)
    y = duplicate(x)
    assert y.stride() == x.stride()
    assert torch.equal(x, y)


def test_a_pickle_of_a_view_holds_its_storage() -> None:
    whole = torch.zeros(100_000)
    assert len(pickle.dumps(whole[10:13])) > 400_000 > 1000 > len(pickle.dumps(whole[:3].clone()))
    assert pickled(whole[::2]).stride() == (2,)
    assert pickled(torch.ones(1).expand(3)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("value", [*DTYPES, torch.channels_last, torch.device("meta")], ids=str)
def test_what_describes_tensors_is_pickled_by_name(value: Any) -> None:
    assert pickled(value) == value
    assert b"rushlight" in pickle.dumps(value)
    assert copy.deepcopy(value) == value


def test_computed_tensors() -> None:
    x = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x)
    for duplicate in (copy.copy, pickled):
        y = duplicate(x)
        assert y.is_leaf and y.requires_grad
        assert y.tolist() == [2, 2]


@WAYS
def test_tensors_on_meta(duplicate: Any) -> None:
    y = duplicate(torch.ones(2, 3, device="meta"))
    assert y.device.type == "meta" and y.shape == (2, 3)


@WAYS
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is neither GPU nor shim")
def test_tensors_on_cuda(duplicate: Any) -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3).T
    y = duplicate(x)
    assert y.device == x.device and y.stride() == x.stride()
    np.testing.assert_array_equal(y.cpu().numpy(), x.cpu().numpy())


def test_duplicates_of_shared_read_only_memory() -> None:
    x = torch.frombuffer(b"12345678", dtype=torch.uint8)
    copy.deepcopy(x).add_(1)
    pickled(x).add_(1)
    with pytest.raises(RuntimeError, match="read-only"):
        copy.copy(x).add_(1)
