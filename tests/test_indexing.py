"""Indexing and views against NumPy, on random shapes and random indices."""

from __future__ import annotations

from collections import UserList, deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rushlight as torch

examples = settings(max_examples=150, derandomize=True)

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def array_of(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)


FORWARD = st.integers(1, 3)
EITHER_WAY = st.integers(-3, 3).filter(bool)


@st.composite
def basic_item(draw: Any, size: int, steps: Any = FORWARD) -> list[Any]:
    """An integer, a slice, or None before a whole slice, for one dim."""
    kind = draw(st.sampled_from(["slice", "none", "int"] if size else ["slice", "none"]))
    if kind == "int":
        return [draw(st.integers(-size, size - 1))]
    if kind == "none":
        return [None, slice(None)]
    bound = st.one_of(st.none(), st.integers(-size - 2, size + 2))
    return [slice(draw(bound), draw(bound), draw(st.one_of(st.none(), steps)))]


@st.composite
def basic_index(draw: Any, shape: tuple[int, ...], steps: Any = FORWARD) -> Any:
    """Items for the first dims and, behind an ellipsis, for the last ones."""
    first = draw(st.integers(0, len(shape)))
    last = draw(st.integers(0, len(shape) - first))
    items = [i for size in shape[:first] for i in draw(basic_item(size, steps))]
    if draw(st.booleans()):
        end = shape[len(shape) - last :]
        items += [..., *(i for size in end for i in draw(basic_item(size, steps)))]
    return tuple(items)


@st.composite
def advanced_index(draw: Any, shape: tuple[int, ...], step: int | None = None) -> Any:
    """Index arrays that broadcast, mixed with slices and integers, or a mask."""
    if draw(st.booleans()):
        covered = draw(st.integers(1, len(shape)))
        return draw(hnp.arrays(bool, shape[:covered]))
    target = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=3))
    items: list[Any] = []
    for size in shape[: draw(st.integers(1, len(shape)))]:
        kind = draw(st.sampled_from(["array", "slice", "int"]))
        if kind == "array":
            items.append(draw(hnp.arrays(np.int64, target, elements=st.integers(-size, size - 1))))
        elif kind == "int":
            items.append(draw(st.integers(-size, size - 1)))
        else:
            items.append(slice(draw(st.integers(0, size)), None, step))
    return tuple(items)


def for_torch(index: Any) -> Any:
    if isinstance(index, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(index).reshape(index.shape))
    if isinstance(index, tuple):
        return tuple(for_torch(i) for i in index)
    return index


@examples
@given(st.data())
def test_basic_indexing_equals_numpy_and_is_a_view(data: Any) -> None:
    array = array_of(data.draw(SHAPES))
    index = data.draw(basic_index(array.shape))
    tensor = torch.from_numpy(array)
    expected, actual = array[index], tensor[index]
    assert tuple(actual.shape) == expected.shape
    np.testing.assert_array_equal(actual.numpy(), expected)
    if actual.numel():
        assert np.shares_memory(actual.numpy(), array)


@examples
@given(st.data())
def test_basic_assignment_equals_numpy(data: Any) -> None:
    array = array_of(data.draw(SHAPES))
    index = data.draw(basic_index(array.shape))
    tensor = torch.tensor(array)
    array[index] = -1.0
    tensor[index] = -1.0
    np.testing.assert_array_equal(tensor.numpy(), array)


@examples
@given(st.data())
def test_advanced_indexing_equals_numpy(data: Any) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    array = array_of(shape)
    index = data.draw(advanced_index(shape))
    expected = array[index]
    actual = torch.from_numpy(array)[for_torch(index)]
    assert tuple(actual.shape) == expected.shape
    np.testing.assert_array_equal(actual.numpy(), expected)


@examples
@given(st.data())
def test_advanced_assignment_equals_numpy(data: Any) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    array = array_of(shape)
    index = data.draw(advanced_index(shape))
    tensor = torch.tensor(array)
    array[index] = -7.0
    tensor[for_torch(index)] = -7.0
    np.testing.assert_array_equal(tensor.numpy(), array)


@examples
@given(st.data())
def test_gradient_of_indexing_counts_every_use(data: Any) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    index = data.draw(advanced_index(shape))
    x = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    x[for_torch(index)].sum().backward()
    expected = np.zeros(shape)
    np.add.at(expected, index, 1.0)
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@examples
@given(st.data())
def test_permute_reshape_and_slices_equal_numpy(data: Any) -> None:
    array = array_of(data.draw(SHAPES))
    order = data.draw(st.permutations(range(array.ndim)))
    tensor = torch.from_numpy(array).permute(order)
    expected = array.transpose(order)
    np.testing.assert_array_equal(tensor.numpy(), expected)
    np.testing.assert_array_equal(tensor.reshape(-1).numpy(), expected.reshape(-1))
    np.testing.assert_array_equal((tensor + 1).numpy(), expected + 1)
    np.testing.assert_array_equal(tensor.contiguous().numpy(), expected)


def test_several_ellipses_are_read_as_one() -> None:
    x = torch.arange(12).reshape(3, 4)
    assert x[..., ...].tolist() == x.tolist()
    assert x[1, ..., ...].tolist() == x[1].tolist()
    assert x[..., 1, ..., 2, ...].item() == 6


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (3, "index 3 is out of bounds for dimension 0 with size 3"),
        (-4, "index -4 is out of bounds for dimension 0 with size 3"),
        ((0, 0, 0), "too many indices for tensor of dimension 2"),
        ((..., ..., 0), "Dimension out of range"),
        ("a", "only integers, slices"),
        (2.0, "only integers, slices"),
    ],
)
def test_bad_indices_raise_index_errors(index: Any, message: str) -> None:
    with pytest.raises(IndexError, match=message):
        torch.zeros(3, 4)[index]


def test_index_tensors_out_of_range_raise() -> None:
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 0 with size 3"):
        torch.zeros(3)[torch.tensor([0, 7])]
    x = torch.zeros(3)
    with pytest.raises(IndexError, match="index -9 is out of bounds"):
        x[torch.tensor([-9])] = 1.0
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_masks_must_have_the_shape_they_stand_for() -> None:
    with pytest.raises(IndexError, match="shape of the mask"):
        torch.zeros(3)[torch.tensor([True, False])]


@examples
@given(st.data())
def test_negative_steps_read_a_copy_in_that_order(data: Any) -> None:
    array = array_of(data.draw(SHAPES))
    index = data.draw(basic_index(array.shape, EITHER_WAY))
    expected, actual = array[index], torch.from_numpy(array)[index]
    assert tuple(actual.shape) == expected.shape
    np.testing.assert_array_equal(actual.numpy(), expected)


@examples
@given(st.data())
def test_negative_steps_write_where_numpy_does(data: Any) -> None:
    array = array_of(data.draw(SHAPES))
    index = data.draw(basic_index(array.shape, EITHER_WAY))
    tensor = torch.tensor(array)
    values = -1 - array_of(array[index].shape)
    array[index] = values
    tensor[index] = torch.tensor(values)
    np.testing.assert_array_equal(tensor.numpy(), array)


@examples
@given(st.data())
def test_negative_steps_beside_index_arrays_equal_numpy(data: Any) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    array = array_of(shape)
    index = data.draw(advanced_index(shape, -1))
    tensor = torch.tensor(array)
    np.testing.assert_array_equal(tensor[for_torch(index)].numpy(), array[index])
    array[index] *= -2.0
    tensor[for_torch(index)] *= -2.0
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_negative_steps_have_gradients() -> None:
    x = torch.arange(4.0, requires_grad=True)
    (x[::-2] * torch.tensor([10.0, 1.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0, 10.0]
    y, v = torch.zeros(3), torch.ones(3, requires_grad=True)
    y[::-1] = v * torch.tensor([1.0, 2.0, 3.0])
    (y * torch.tensor([5.0, 0.0, 7.0])).sum().backward()
    assert v.grad.tolist() == [7.0, 0.0, 15.0]


def test_huge_negative_steps_read_one_element() -> None:
    assert torch.arange(5)[:: -(2**63)].tolist() == [4]
    assert torch.arange(5)[:: -(2**80)].tolist() == [4]
    with pytest.raises(ValueError, match="zero"):
        torch.arange(5)[::0]


def test_masks_without_elements_select_nothing() -> None:
    x = torch.ones(2, 5)
    assert x[torch.zeros(0, dtype=torch.bool)].shape == (0, 5)
    assert x[torch.zeros(2, 0, dtype=torch.bool)].shape == (0,)
    x[torch.zeros(0, 5, dtype=torch.bool)] = 7.0
    assert x.sum() == 10


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32, torch.complex64])
def test_one_number_written_by_a_mask_equals_numpy(dims: int, dtype: torch.dtype) -> None:
    array = array_of((3, 4, 5)).swapaxes(0, 2)
    mask = np.random.default_rng(dims).random(array.shape[:dims]) > 0.6
    tensor = torch.from_numpy(array.copy()).to(dtype)
    array[mask] = -7
    values = [-7, np.float64(-7), torch.tensor(-7), torch.full((1, 1), -7.0, dtype=torch.float64)]
    for value in values:
        written = tensor.clone().permute(2, 1, 0).contiguous().permute(2, 1, 0)
        written[torch.from_numpy(mask)] = value
        assert torch.equal(written, torch.from_numpy(array).to(dtype))
        written = tensor.clone()
        assert torch.equal(
            written.index_put_((torch.from_numpy(mask),), torch.tensor(-7, dtype=dtype)),
            torch.from_numpy(array).to(dtype),
        )


def test_one_number_written_by_a_mask_has_gradients() -> None:
    x, v = torch.ones(3, 2, requires_grad=True), torch.tensor(5.0, requires_grad=True)
    y, mask = x * 2, torch.tensor([True, False, True])
    y[mask] = v
    (y * torch.arange(6.0).view(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0, 0], [4, 6], [0, 0]] and v.grad == 10
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x[mask] = 1.0
    repeated = torch.zeros(1, 3).expand(2, 3)
    with pytest.warns(UserWarning, match="expanded tensors"):
        repeated[torch.tensor([[True, False, True], [False, False, False]])] = 1.0
    assert repeated.tolist() == [[1, 0, 1], [1, 0, 1]]


def test_lists_and_numpy_arrays_are_index_tensors() -> None:
    x = torch.arange(5)
    assert x[[0, 3]].tolist() == [0, 3]
    assert x[np.array([4, -1])].tolist() == [4, 4]
    assert x[[True, False, True, False, False]].tolist() == [0, 2]
    assert x[[]].tolist() == []


def test_any_sequence_is_an_index_tensor() -> None:
    x = torch.arange(12).reshape(3, 4)
    assert x[range(3), [1, 0, 3]].tolist() == [1, 4, 11]  # one element of each row
    assert x[:, range(2)].tolist() == [[0, 1], [4, 5], [8, 9]]
    assert x[range(0)].shape == (0, 4)
    for places in (range(0, 3, 2), deque([0, 2]), UserList([0, 2])):
        assert torch.equal(x[places], x[[0, 2]])
        assert torch.equal(x[torch.tensor([1, 1]), places], x[1, [0, 2]])
    x[range(3), [1, 0, 3]] -= 20
    assert x[range(3), [1, 0, 3]].tolist() == [-19, -16, -9]
    with pytest.raises(IndexError, match="index 3 is out of"):
        x[range(5)]
    for other in ("ab", b"ab", {0: 1}, {0, 1}, iter([0])):
        with pytest.raises(IndexError, match=f"got {type(other).__name__}"):
            x[other]


def test_zero_dim_masks_add_a_dim() -> None:
    x = torch.arange(3)
    assert x[True].shape == (1, 3)
    assert x[torch.tensor(False)].shape == (0, 3)
    assert torch.tensor(5.0)[torch.tensor(True)].tolist() == [5.0]


def test_nothing_is_picked_from_a_turned_tensor_without_elements() -> None:
    x = torch.zeros(1, 3, 2).transpose(1, 2)
    assert x[1::2, False].shape == (0, 0, 2, 3)
    assert x[1::2][torch.zeros(2, dtype=torch.int64)[:0]].shape == (0, 2, 3)


def test_values_broadcast_into_the_assigned_window() -> None:
    x = torch.zeros(2, 3)
    x[:, 1:] = torch.tensor([5.0, 6.0])
    x[1] = torch.ones(1, 1, 3)
    assert x.tolist() == [[0.0, 5.0, 6.0], [1.0, 1.0, 1.0]]
    with pytest.raises(RuntimeError):
        x[0] = torch.zeros(4)


def test_a_loop_makes_no_more_rows_than_it_needs() -> None:
    rows = torch.empty(2**40, 3, device="meta")
    assert next(iter(rows)).shape == (3,)


def test_a_loop_in_parts_gives_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rushlight._tensor._ROWS_AT_ONCE", 2)
    x = torch.arange(5.0, requires_grad=True)
    rows = list(x)
    assert [row.item() for row in rows] == [0, 1, 2, 3, 4]
    sum(row * i for i, row in enumerate(rows)).backward()
    assert x.grad.tolist() == [0, 1, 2, 3, 4]


def test_an_expanded_tensor_is_written_where_any_repeat_is_asked_for() -> None:
    mask = torch.tensor([[False, True], [False, False], [True, True]])
    for write in (
        lambda x: x.masked_fill_(mask, 2),
        lambda x: x.masked_fill_(mask, torch.tensor(2.0)),
        lambda x: x.__setitem__(mask, 2.0),
        lambda x: x.index_fill_(0, torch.tensor([0, 2]), 2),
        lambda x: x.index_put_((torch.tensor([0, 2]), torch.tensor([1, 0])), torch.tensor(2.0)),
    ):
        x = torch.ones(3, 1).expand(3, 2)
        with pytest.warns(UserWarning, match="expanded tensors"):
            write(x)
        assert x.tolist() == [[2, 2], [1, 1], [2, 2]]


@pytest.mark.parametrize(
    "write",
    [
        lambda x, index, values: x.index_add_(0, index, values),
        lambda x, index, values: x.index_copy_(0, index, values),
        lambda x, index, values: x.put_(index, values),
        lambda x, index, values: x.scatter_(0, index, values),
        lambda x, index, values: x.index_put_((index,), values, accumulate=True),
    ],
)
def test_other_writes_to_an_expanded_tensor_are_refused(write) -> None:
    with pytest.raises(RuntimeError, match="single memory location"):
        write(torch.ones(1).expand(3), torch.tensor([0, 2]), torch.ones(2))
