"""Forms of calls and corner cases in which programs for PyTorch meet its rules."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import rushlight as torch

F = torch.nn.functional


def test_nonzero_says_as_tuple_either_way() -> None:
    x = torch.tensor([[0, 2], [3, 0]])
    assert torch.nonzero(x, as_tuple=False).tolist() == [[0, 1], [1, 0]]
    assert [t.tolist() for t in x.nonzero(as_tuple=True)] == [[0, 1], [1, 0]]
    with pytest.raises(TypeError, match="must be a tuple of 2 Tensors"):
        torch.nonzero(x, as_tuple=True, out=torch.empty(2, dtype=torch.int64))
    assert torch.argwhere(x).tolist() == [[0, 1], [1, 0]]


def test_where_of_a_condition_alone_gives_places() -> None:
    rows, columns = torch.where(torch.tensor([[0, 2], [3, 0]]) > 0)
    assert rows.tolist() == [0, 1] and columns.tolist() == [1, 0]


def test_arguments_in_the_order_of_early_versions() -> None:
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0], requires_grad=True)
    assert torch.add(x, 2, y).tolist() == [7, 10]
    assert x.sub(2, y).tolist() == [-5, -6]
    assert x.clone().add_(0.5, y.detach()).tolist() == [2.5, 4]
    assert x.clone().addcmul_(2, y.detach(), y.detach()).tolist() == [19, 34]
    assert x.clone().addcdiv_(-2, y.detach(), y.detach()).tolist() == [-1, 0]
    torch.addcdiv(x, 3, y, x).sum().backward()
    assert y.grad is not None and y.grad.tolist() == [3, 1.5]


def test_sums_of_products_in_the_order_of_early_versions() -> None:
    a, b = torch.randn(2, 2), torch.randn(1, 2, 2)
    calls = [
        ("addmm", (a, a, a)),
        ("addmv", (a[0], a, a[1])),
        ("addr", (a, a[0], a[1])),
        ("addbmm", (a, b, b)),
        ("baddbmm", (b, b, b)),
    ]
    for name, (x, *factors) in calls:
        function, method = getattr(torch, name), getattr(torch.Tensor, name)
        expected = function(x, *factors, beta=2, alpha=3)
        without_alpha = function(x, *factors, beta=2)
        with pytest.warns(UserWarning, match=f"overload of {name} is deprecated"):
            result = function(2, x, 3, *factors)
        assert torch.equal(result, expected)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            assert torch.equal(function(2, x, *factors), without_alpha)
            assert torch.equal(method(x, 2, 3, *factors), expected)
            assert torch.equal(method(x, 2, *factors), without_alpha)
            assert torch.equal(getattr(x.clone(), name + "_")(2, 3, *factors), expected)
            out = torch.empty(0)
            assert function(2, x, 3, *factors, out=out) is out and torch.equal(out, expected)
        for bad in ((2, x, 3, factors[0]), (x, *factors, 2), (2, 3, *factors), ("2", x, *factors)):
            with pytest.raises(TypeError, match=name):
                function(*bad)
    sparse = torch.eye(2).to_sparse()
    with pytest.warns(UserWarning, match="overload of sspaddmm is deprecated"):
        result = torch.sspaddmm(2, sparse, 3, sparse, a)
    assert torch.equal(result.to_dense(), 2 * torch.eye(2) + 3 * a)


def test_names_of_arguments_that_say_their_kind() -> None:
    x = torch.arange(5)
    assert x.split(split_size=2)[2].tolist() == [4]
    assert x.tensor_split(sections=2)[1].tolist() == [3, 4]
    assert x.tensor_split(indices=(1,))[0].tolist() == [0]


def test_tensors_of_one_element_are_integers_whatever_their_shape() -> None:
    x, two = torch.arange(12.0).view(4, 3), torch.tensor([2])
    assert torch.randint(0, two, (two, 3)).shape == torch.zeros(two, 3).shape == (2, 3)
    assert x.sum(two - 1).shape == x.select(1, two).shape == (4,)
    assert x.split(two)[1].tolist() == x[2:].tolist()
    assert x[two].shape == (1, 3)  # but an index is a vector
    assert [len(part) for part in x.tensor_split(two - 1)] == [1, 3]
    for name in ("indices_or_sections", "tensor_indices_or_sections"):
        assert [len(part) for part in x.tensor_split(**{name: two - 1})] == [1, 3]
    assert [len(part) for part in x.tensor_split(torch.tensor(1))] == [4]
    with pytest.raises(TypeError, match="must be int"):
        x.sum(torch.tensor([1.0]))


def test_empty_takes_a_memory_format() -> None:
    x = torch.empty(2, 3, 2, 4, memory_format=torch.channels_last)
    assert x.stride() == (24, 1, 12, 3)


def test_python_types_are_dtypes() -> None:
    assert torch.ones(2).to(int).dtype is torch.int64
    assert torch.ones(2, dtype=torch.int32).to(dtype=float).dtype is torch.float64


def test_div_rounds_in_place() -> None:
    x = torch.tensor([7, -7])
    assert x.div_(2, rounding_mode="floor") is x and x.tolist() == [3, -4]
    assert torch.tensor([7.0, -7.0]).div_(2, rounding_mode="trunc").tolist() == [3, -3]


@pytest.mark.parametrize("name", ["max", "min"])
def test_a_0d_tensor_is_the_other_operand(name: str) -> None:
    x = torch.tensor([1, 5])
    expected = getattr(np, f"{name}imum")(x.numpy(), 3).tolist()
    assert getattr(torch, name)(x, torch.tensor(3)).tolist() == expected
    assert getattr(x, name)(torch.tensor(3)).tolist() == expected
    assert getattr(x, name)(0).values.ndim == 0


def test_nan_to_num_of_integers_writes_out() -> None:
    out = torch.zeros(2, dtype=torch.int64)
    assert torch.nan_to_num(torch.tensor([1, 2]), out=out) is out and out.tolist() == [1, 2]


def test_nan_to_num_of_integers_keeps_the_memory_order() -> None:
    x = torch.arange(6).reshape(2, 3).t()
    assert torch.nan_to_num(x).stride() == (1, 3)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.uint64])
def test_extremes_of_integers_without_the_input(dtype: Any) -> None:
    x = torch.tensor([100, 100, 100], dtype=dtype)
    index, src = torch.tensor([0, 0, 2]), torch.tensor([3, 5, 4], dtype=dtype)
    largest = x.scatter_reduce(0, index, src, "amax", include_self=False)
    assert torch.equal(x.scatter_reduce(0, index, src, "max", include_self=False), largest)
    assert largest.dtype is dtype and largest.tolist() == [5, 100, 4]
    smallest = x.index_reduce(0, index, src, "amin", include_self=False)
    assert smallest.tolist() == [3, 100, 4]


def test_extremes_of_booleans_without_the_input() -> None:
    x, index = torch.tensor([True, True]), torch.tensor([0])
    src = torch.tensor([False])
    assert x.scatter_reduce(0, index, src, "amax", include_self=False).tolist() == [False, True]


def test_index_fill_counts_a_repeated_place_once() -> None:
    value = torch.tensor(2.0, requires_grad=True)
    torch.zeros(3, 2).index_fill(0, torch.tensor([1, -2, 2]), value).sum().backward()
    assert value.grad is not None and value.grad.item() == 4


def test_leading_dims_of_a_written_value_are_dropped() -> None:
    x = torch.zeros(3, 2)
    x[torch.tensor([True, False, True])] = torch.ones(1, 2, 2)
    x[torch.tensor([1])] = torch.full((1, 1, 1, 2), 5.0)
    assert x.tolist() == [[1, 1], [5, 5], [1, 1]]


def test_masks_of_no_elements_from_numpy() -> None:
    assert torch.zeros(0, 5)[np.zeros((0, 5), dtype=bool)].shape == (0,)
    assert torch.zeros(3, 5)[[]].shape == (0, 5)


def test_a_list_of_lists_is_read_as_a_tuple() -> None:
    x = torch.arange(12).view(3, 4)
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        assert x[[[0, 1], [1, 2]]].tolist() == [1, 6]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x[[0, 1]].shape == (2, 4)


def test_transposes_of_few_dims() -> None:
    x = torch.tensor(2.0)
    with pytest.warns(UserWarning, match="use of `x.T`"):
        assert x.T.shape == ()
    assert all(t.shape == () for t in (x.mT, x.H, x.mH))
    with pytest.raises(RuntimeError, match="mT is only supported on matrices"):
        _ = torch.ones(2).mT
    with pytest.raises(RuntimeError, match="H is only supported on matrices"):
        _ = torch.ones(2, 2, 2).H


def test_conversions_take_a_memory_format() -> None:
    x = torch.zeros(2, 3, 2, 4)
    assert x.int(memory_format=torch.channels_last).stride() == (24, 1, 12, 3)
    kept = x.to("cpu", torch.float64, False, True, memory_format=torch.preserve_format)
    assert kept.stride() == x.stride()


def test_numbers_beside_products_of_integers_are_cut_off() -> None:
    a = torch.tensor([[7, 5], [3, 9]])
    assert torch.addmv(a[0], a, a[0], alpha=1.7).tolist() == [81, 71]
    assert torch.addmm(a, a, a, alpha=0.6, beta=0.2).tolist() == [[0, 0], [0, 0]]
    with pytest.raises(RuntimeError, match="must not be a floating point number"):
        torch.addr(a, a[0], a[0], alpha=1.7)
    for name in ("alpha", "beta"):
        with pytest.raises(RuntimeError, match="only supported for Boolean results"):
            torch.addr(a, a[0], a[0], **{name: True})


def test_sums_of_small_integers_count_in_int64() -> None:
    x = torch.ones(3, dtype=torch.int16)
    assert torch.einsum("i->", x).dtype is torch.int64
    assert torch.einsum("i,j->ij", x, x).dtype is torch.int16
    assert torch.tensor(True).sum_to_size(()).dtype is torch.int64


def test_tensordot_spreads_dims_of_size_1() -> None:
    a, b = torch.ones(1, 3), torch.full((2, 3), 2.0)
    out = torch.empty(0)
    assert torch.tensordot(a, b, dims=([0, 1], [0, 1]), out=out) is out
    assert out.item() == 12
    a, b = torch.ones(1, 1, 1, dtype=torch.int16), torch.ones(2, 1, 2, dtype=torch.int16)
    summed = torch.tensordot(a, b, dims=((0, 1), (2, 0)))
    assert summed.dtype is torch.int16 and summed.tolist() == [[4]]


def test_spaced_integers_begin_and_end_at_integers() -> None:
    assert torch.linspace(1.9, 8.9, 4, dtype=torch.int64).tolist() == [1, 3, 5, 8]
    assert torch.logspace(0, 1.2, 2, base=5, dtype=torch.int64).tolist() == [1, 5]


def test_lines_between_tensors() -> None:
    end = torch.tensor(3.0, requires_grad=True)
    line = torch.linspace(torch.tensor(1), end, 3)
    assert line.tolist() == [1, 2, 3] and not line.requires_grad
    assert torch.logspace(0, end, 4, base=2).tolist() == [1, 2, 4, 8]
    with pytest.raises(RuntimeError, match="0-dimensional start and end"):
        torch.linspace(torch.ones(2), 3, 4)


def test_differences_of_order_0_ignore_what_is_joined() -> None:
    x = torch.tensor([1, 2, 4])
    assert torch.diff(x, 0, append=x).tolist() == [1, 2, 4]


def test_take_along_dim_counts_from_the_end() -> None:
    x = torch.arange(6).view(2, 3)
    assert torch.take_along_dim(x, torch.tensor([[-1], [0]]), 1).tolist() == [[2], [3]]
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.take_along_dim(x, torch.tensor([[-4], [0]]), 1)


def test_limits_of_integers_are_cut_off() -> None:
    x = torch.tensor([-3, 0, 2])
    assert F.hardtanh(x, -1.5, 1.5).tolist() == [-1, 0, 1]


def test_losses_of_one_score() -> None:
    assert F.multi_margin_loss(torch.tensor(0.3), torch.tensor(0)).item() == 0
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        F.multi_margin_loss(torch.ones(2, 3), torch.ones(2), reduction="abc")


def test_results_in_given_memory() -> None:
    hist, edges = torch.empty(2), torch.empty(3)
    result = torch.histogram(torch.tensor([1.0, 2.0, 3.0]), 2, out=(hist, edges))
    assert result.hist is hist and hist.tolist() == [1, 2] and edges.tolist() == [1, 2, 3]
    out = torch.empty(2)
    assert F.normalize(torch.tensor([0.0, 4.0]), dim=0, out=out) is out and out.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([1, 2, 3, -1], torch.int8, 2**64 - 1),
        ([1, 2, 3, -1], torch.float16, 9225623836668461056),
        ([1, 0, 1, 1], torch.bool, 1),
    ],
)
def test_hashes_are_those_of_pytorch(values: Any, dtype: Any, expected: int) -> None:
    x = torch.tensor(values).to(dtype)
    assert torch.hash_tensor(x).dtype is torch.uint64
    assert torch.hash_tensor(x).item() == expected
    assert x.view(2, 2).hash_tensor((0, 1), keepdim=True).shape == (1, 1)
    assert x.view(2, 2).hash_tensor([]).shape == ()


def test_hashes_refuse_what_has_none() -> None:
    with pytest.raises(RuntimeError, match="reduction dim"):
        torch.hash_tensor(torch.empty(0))
    with pytest.raises(RuntimeError, match="multiple times"):
        torch.hash_tensor(torch.ones(2, 3), dim=(0, -2))
    with pytest.raises(IndexError, match="dim 1 to have non-zero size"):
        torch.hash_tensor(torch.ones(2, 0, 3), dim=(1, 2))
    assert torch.hash_tensor(torch.ones(2, 0, 3), dim=0).shape == (0, 3)
    with pytest.raises(RuntimeError, match="mode must be 0"):
        torch.hash_tensor(torch.ones(1), mode=1)
    with pytest.raises(NotImplementedError, match="complex64"):
        torch.hash_tensor(torch.ones(1, dtype=torch.complex64))


def test_one_element_becomes_a_complex_number() -> None:
    assert complex(torch.tensor([1 + 2j])) == 1 + 2j
    assert complex(torch.tensor(True)) == 1
    with pytest.raises(ValueError, match="only one element"):
        complex(torch.ones(2))


def test_gradient_takes_none_for_the_usual_spacing() -> None:
    x = torch.tensor([1.0, 2.0, 4.0])
    assert torch.gradient(x, spacing=None)[0].tolist() == [1, 1.5, 2]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.bmm(torch.ones(1, 2, 3), torch.ones(1, 2, 3)), "bmm: "),
        (lambda: torch.broadcast_to(torch.ones(3), (2,)), "broadcast_to: "),
        (lambda: torch.index_add(torch.ones(3), 0, torch.tensor([5]), torch.ones(1)), "index_add"),
        (lambda: torch.linalg.inv(torch.ones(3)), "inv: "),
    ],
)
def test_errors_name_the_op_that_was_called(call: Any, text: str) -> None:
    with pytest.raises((RuntimeError, IndexError)) as raised:
        call()
    assert str(raised.value).startswith(text)


def test_named_results_have_types_of_public_names_and_are_pickled() -> None:
    largest = torch.max(torch.tensor([[1.0, 3.0]]), 1)
    assert type(largest) is torch.return_types.max
    found = pickle.loads(pickle.dumps(largest))
    assert type(found) is torch.return_types.max and found.indices.tolist() == [1]
    assert isinstance(torch.linalg.qr(torch.eye(2)), torch.return_types.linalg_qr)
    assert not hasattr(torch.return_types, "add")
    counts = pickle.loads(pickle.dumps(torch.histogram(torch.tensor([1.0, 2.0]), 2)))
    assert type(counts) is torch.return_types.histogram
    assert repr(counts).startswith("torch.return_types.histogram(\nhist=tensor([1., 1.]),")
    grid = torch.histogramdd(torch.ones(3, 2), 2)
    assert type(grid) is torch.return_types.histogramdd and len(grid.bin_edges) == 2


def test_numbers_alone_are_operands_too() -> None:
    half = torch.div(1, 2)
    assert half.item() == 0.5 and half.dtype == torch.get_default_dtype() and half.dim() == 0
    assert torch.add(1, 2, alpha=3).item() == 7 and torch.mul(2, 3).dtype == torch.int64
    assert torch.floor_divide(-7, 2).item() == -4 and torch.sub(1.5, 1).item() == 0.5
