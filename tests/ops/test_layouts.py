"""Copies between all layouts and element sizes, large enough for blocks and threads."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import rushlight as torch

DTYPES = ["bool", "int16", "float32", "float64", "complex128"]
SHAPES = [(300, 257), (3, 70, 65), (2, 17, 33, 20), (40_001, 3), (3, 40_001), (999, 2), (2, 999, 4)]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    generator = np.random.default_rng(4)
    values = generator.normal(size=shape) * 100
    return values > 0 if dtype == "bool" else values.astype(dtype)


pytestmark = pytest.mark.usefixtures("threads")


def same(tensor: Any, array: np.ndarray) -> None:
    np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_permutation_is_copied_both_ways(shape: tuple[int, ...], dtype: str) -> None:
    array = numbers(shape, dtype)
    tensor = torch.from_numpy(array)
    for order in permutations(range(len(shape))):
        turned = np.ascontiguousarray(array.transpose(order))
        same(tensor.permute(order).contiguous(), turned)
        target = torch.zeros(shape, dtype=tensor.dtype)
        target.permute(order).copy_(torch.from_numpy(turned))
        same(target, array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_steps_repeats_and_reversals_are_copied(dtype: str) -> None:
    array = numbers((61, 67, 35), dtype)
    tensor = torch.from_numpy(array)
    same(tensor[::2, 1:, ::3].permute(2, 0, 1).contiguous(), array[::2, 1:, ::3].transpose(2, 0, 1))
    same(tensor[:, :1].expand(61, 9, 35).contiguous(), np.repeat(array[:, :1], 9, 1))
    same(tensor.repeat_interleave(2, -1), np.repeat(array, 2, -1))
    for dims in [(0,), (2,), (0, 1, 2)]:
        same(tensor.transpose(0, 2).flip(dims), np.flip(array.swapaxes(0, 2), dims))


def test_channels_last_is_kept_where_it_can_be() -> None:
    x = torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert x.is_contiguous(memory_format=torch.channels_last)
    assert x.clone().stride() == x.stride()
    assert x.double().stride() == x.stride()
    assert torch.cat([x, x], 1).is_contiguous(memory_format=torch.channels_last)
    assert x.contiguous().is_contiguous()
    assert torch.equal(x.contiguous(), x)


def test_overlapping_copies_read_before_they_write() -> None:
    x = torch.arange(6)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    y = torch.arange(9).reshape(3, 3)
    y.copy_(y.t())
    assert y.tolist() == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


def test_elements_that_share_memory_are_not_written() -> None:
    for write in (lambda x: x.add_(1), lambda x: x.copy_(torch.ones(3)), torch.Tensor.random_):
        with pytest.raises(RuntimeError, match="single memory location"):
            write(torch.zeros(1).expand(3))


def test_elements_that_share_memory_are_filled() -> None:
    x = torch.ones(2, 1)
    assert x.expand(4, 2, 3).fill_(7).sum() == 4 * 2 * 3 * 7
    x[:1].expand(1, 5).zero_()
    assert x.tolist() == [[0], [7]]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.expand(2**62, 2**10, 3),
        lambda x: x.repeat(2**40, 2**40),
        lambda x: x.as_strided((2**40,), (2**40,)),
        lambda x: x.as_strided((2,), (1,), 2),
        lambda x: x.as_strided((2,), (-1,), 2),
        lambda x: x.as_strided((1, 1), (2**62, 2**62)),
        lambda x: x.as_strided((0,), (1,), 2**63 - 1),
        lambda x: x.view(2**62, -1),
        lambda x: x.repeat_interleave(2**62),
        lambda x: torch.stack([x.expand(2**60, 3)] * 9),
        lambda x: torch.diag_embed(x, -(2**63)),
        lambda x: x.unflatten(0, (2**62, 6)),
        lambda x: x[0].expand(2**31, 2**31) + torch.zeros(4, 1, 1),
        lambda x: torch.view_as_real(x[0].to(torch.complex64).expand(2**62)),
        lambda x: torch.kron(x[:, None], torch.zeros(2**62, 0)),
        lambda x: torch.empty(2**31, 2**31, 4, 4, memory_format=torch.channels_last),
    ],
)
def test_sizes_that_overflow_or_leave_the_storage_are_refused(call: Any) -> None:
    with pytest.raises(RuntimeError):
        call(torch.zeros(3))


def test_a_write_through_a_view_of_a_transposed_base_has_the_right_gradient() -> None:
    x = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    base = (x * 2).t().clone()
    assert base.stride() == (1, 3)
    base[0].mul_(3)
    (base * base).sum().backward()
    expected = 8 * x.detach()
    expected[:, 0] *= 9
    assert torch.allclose(x.grad, expected)


def test_a_write_through_a_view_of_a_channels_last_base_has_the_right_gradient() -> None:
    x = torch.rand(2, 3, 2, 2, dtype=torch.float64, requires_grad=True)
    base = (x * 2).contiguous(memory_format=torch.channels_last)
    base[:, 1].mul_(3)
    (base * base).sum().backward()
    expected = 8 * x.detach()
    expected[:, 1] *= 9
    assert torch.allclose(x.grad, expected)


def test_gradients_of_overlapping_windows_add_up() -> None:
    x = torch.arange(5.0, requires_grad=True)
    (x.as_strided((4, 2), (1, 1)) * torch.arange(8.0).reshape(4, 2)).sum().backward()
    assert x.grad.tolist() == [0, 3, 7, 11, 7]
    y = torch.arange(3.0, requires_grad=True)
    y.expand(2, 3).as_strided((3,), (1,), 0).sum().backward()
    assert y.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("change", "shape"),
    [
        (lambda x: x.unsqueeze_(1), (2, 1, 3)),
        (lambda x: x.transpose_(0, 1), (3, 2)),
        (lambda x: x.t_(), (3, 2)),
        (lambda x: x.unsqueeze_(0).squeeze_(0).unsqueeze_(-1).squeeze_(), (2, 3)),
    ],
)
def test_a_layout_changed_in_place_keeps_elements_and_gradients(change: Any, shape: Any) -> None:
    x = torch.rand(2, 3, requires_grad=True)
    y = x * 2
    pointer = y.data_ptr()
    assert change(y) is y
    assert y.shape == shape
    assert y.data_ptr() == pointer
    y.sum().backward()
    assert torch.equal(x.grad, torch.full((2, 3), 2.0))
    with pytest.raises(RuntimeError, match="leaf Variable"):
        change(x)


def test_large_slices_are_joined_from_where_they_begin() -> None:
    whole = torch.arange(1 << 16).reshape(-1, 2)  # enough for threads, which join ranges of rows
    assert torch.equal(torch.cat(whole.split([20_000, 12_768])), whole)
    assert torch.equal(torch.cat((whole[9:], whole[:9])), whole.roll(-9, 0))


def test_large_tensors_are_joined_side_by_side() -> None:
    whole = torch.arange(1 << 17).reshape(1 << 10, -1)
    for part in (whole, whole.t(), whole.reshape(64, 16, 2, 64)):
        pieces = (part.narrow(1, 0, 9), part.narrow(1, 9, 1), part[:, 10:])
        assert torch.equal(torch.cat(pieces, 1), part)
    columns = torch.stack([whole[:, 0], whole[:, 1].int(), whole[:, 0]] * 100, 1)
    assert torch.equal(columns[:, 297:], whole[:, (0, 1, 0)])


def test_large_tensors_are_equal_up_to_their_last_element() -> None:
    x = torch.arange(100_000)
    for same in (x, x.reshape(10, -1).t(), x.reshape(1, -1), x[:4097]):
        other = same.clone()
        assert torch.equal(same, other)
        other[(-1,) * other.dim()] = 0
        assert not torch.equal(same, other)
    zeros = torch.zeros(5000)
    assert torch.equal(zeros, -zeros)
    assert not torch.equal(torch.full((5000,), torch.nan), torch.full((5000,), torch.nan))
    assert not torch.equal(zeros, torch.ones(5000, dtype=torch.int64))


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(700, 300), (17, 9000), (60, 50, 40), (5, 130, 300)])
def test_operands_that_lie_across_the_result(shape: tuple[int, ...], dtype: str) -> None:
    x, y = numbers(shape, dtype), numbers(shape, dtype)[::-1]
    tensor = torch.tensor(x)
    for order in permutations(range(len(shape))):
        moved = torch.tensor(np.ascontiguousarray(y.transpose(order)))
        back = moved.permute([int(d) for d in np.argsort(order)])
        same(tensor - back, x - y)
        same(back < tensor[:1], y < x[:1])
        same(torch.where(back > 0, tensor, back), np.where(y > 0, x, y))
        same(tensor.clone().sub_(back), x - y)
