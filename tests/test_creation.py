"""New tensors without values: shape, strides, dtype and the arguments that all factories share."""

import warnings
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch

FACTORIES = [torch.empty, torch.zeros, torch.ones, torch.rand, torch.randn]


def test_empty_has_shape_and_dtype() -> None:
    x = torch.empty(2, 3, dtype=torch.int16)
    assert x.shape == (2, 3)
    assert x.dtype is torch.int16
    assert x.is_contiguous()
    assert torch.empty(()).numel() == 1
    assert torch.empty(2, 0).shape == (2, 0)


def test_empty_like_keeps_dense_strides() -> None:
    x = torch.zeros(2, 3, 4, dtype=torch.float64).permute(2, 0, 1)
    like = torch.empty_like(x)
    assert like.shape == x.shape
    assert like.stride() == x.stride()
    assert like.dtype is torch.float64
    assert torch.empty_like(x, dtype=torch.int8).dtype is torch.int8
    assert torch.empty_like(torch.zeros(1).expand(5)).stride() == (1,)


def test_empty_permuted_lies_in_the_given_order() -> None:
    x = torch.empty_permuted((2, 3, 4), (1, 0, 2))
    assert x.shape == (2, 3, 4) and x.stride() == (4, 8, 1)
    assert x.dim_order() == (1, 0, 2)
    with pytest.raises(RuntimeError, match="does not match the length"):
        torch.empty_permuted((2, 3), (0,))
    with pytest.raises(RuntimeError, match="appears multiple times"):
        torch.empty_permuted((2, 3), (0, 0))


def test_new_empty_strided_follows_the_tensor() -> None:
    x = torch.ones(1, dtype=torch.float64).new_empty_strided((2, 3), (1, 2))
    assert x.stride() == (1, 2) and x.dtype is torch.float64


def test_empty_strided_has_the_strides() -> None:
    x = torch.empty_strided((2, 3), (1, 2))
    assert x.stride() == (1, 2)
    assert x.untyped_storage().nbytes() == 24
    with pytest.raises(RuntimeError, match="empty_strided"):
        torch.empty_strided((2, 3), (1,))
    with pytest.raises(RuntimeError, match="empty_strided"):
        torch.empty_strided((2,), (-1,))


def test_new_tensor_follows_the_tensor() -> None:
    made = torch.ones(1, dtype=torch.float16, device="meta").new_tensor([1, 2])
    assert (made.dtype, made.device.type, made.shape) == (torch.float16, "meta", (2,))
    other = torch.ones(1).new_tensor([1], dtype=torch.int64, device="meta")
    assert (other.dtype, other.device.type) == (torch.int64, "meta")


def test_new_tensor_names_the_shorter_way_to_copy_a_tensor() -> None:
    with pytest.warns(UserWarning, match=r"recommended to use sourceTensor.detach\(\).clone\(\)"):
        made = torch.ones(1).new_tensor(torch.zeros(2))
    assert made.tolist() == [0, 0]


def test_new_empty_keeps_the_dtype() -> None:
    x = torch.zeros(2, dtype=torch.float16)
    assert x.new_empty(3).dtype is torch.float16
    assert x.new_empty((2, 2), dtype=torch.bool).dtype is torch.bool


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda f: f.__name__)
def test_factories_share_their_arguments(factory: Callable[..., Any]) -> None:
    assert factory(2, 3).shape == factory((2, 3)).shape == factory([2, 3]).shape == (2, 3)
    x = factory(2, dtype=torch.float64, device="cpu", requires_grad=True)
    assert x.dtype is torch.float64
    assert x.requires_grad
    assert x.is_leaf
    with pytest.raises(RuntimeError, match=factory.__name__):
        factory(-1)
    with pytest.raises(TypeError, match=factory.__name__):
        factory("2")


def test_the_default_dtype_is_that_of_new_floats() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert (
            torch.ones(1).dtype
            is torch.tensor(1.5).dtype
            is torch.arange(1.5).dtype
            is torch.float64
        )
    finally:
        torch.set_default_dtype(torch.float32)


def test_asarray_keeps_the_history_of_a_tensor_unless_told() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert torch.asarray(x) is x and torch.asarray(y) is y
    assert torch.asarray(y, dtype=torch.float64).grad_fn is not None
    assert torch.asarray(y, copy=True).requires_grad
    cut = torch.asarray(y, requires_grad=False)
    assert not cut.requires_grad and cut.data_ptr() == y.data_ptr()
    assert torch.asarray(torch.ones(2), requires_grad=True).is_leaf


def test_text_in_a_list_is_a_value_error_as_a_shape_that_does_not_fit() -> None:
    for data in (["a"], [["a", "b"]]):
        with pytest.raises(ValueError, match="too many dimensions 'str'"):
            torch.tensor(data)


@pytest.mark.parametrize("data", ["a", [1, "b"], [[1], "b"], [1, [2]], [[1, 2], [3, [4]]]])
def test_what_is_no_number_where_one_should_be_is_a_type_error(data) -> None:
    with pytest.raises(TypeError):
        torch.tensor(data)


def test_numbers_of_any_size_are_truth_values() -> None:
    assert torch.tensor((-(2**70), 0, 1e300, 2**63), dtype=torch.bool).tolist() == [1, 0, 1, 1]
    assert torch.tensor((0j, 1e-323j, 1 + 2j), dtype=torch.bool).tolist() == [0, 1, 1]
    with pytest.raises(TypeError, match="complex"):
        torch.tensor([1 + 0j], dtype=torch.float32)


def test_a_sequence_that_lacks_items_has_no_shape() -> None:
    class Holes:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, place: int) -> float:
            raise KeyError(place)

    for data in (Holes(), [Holes()]):
        with pytest.raises(
            ValueError, match="could not determine the shape of object type 'Holes'"
        ):
            torch.tensor(data)


def test_asarray_shares_memory_when_it_can() -> None:
    numbers = np.zeros(2, np.float32)
    x = torch.asarray(numbers)
    x[0] = 7
    assert numbers[0] == 7 and torch.asarray(x) is x
    assert torch.asarray(x, copy=True) is not x
    assert torch.asarray(numbers, dtype=torch.float64).dtype is torch.float64
    assert torch.asarray([1, 2]).tolist() == [1, 2] and torch.asarray(3.0).shape == ()
    assert torch.asarray(bytearray(8), dtype=torch.int32).tolist() == [0, 0]
    buffer = array("f", [1.0])
    torch.asarray(buffer, copy=False)[0] = 2.0
    assert buffer[0] == 2.0
    for impossible in (
        lambda: torch.asarray([1], copy=False),
        lambda: torch.asarray(x, dtype=torch.int64, copy=False),
    ):
        with pytest.raises(ValueError, match="can't alias"):
            impossible()


@pytest.mark.parametrize("number", [np.float64(2), np.int32(2), np.bool_(True), np.complex64(2)])
def test_a_number_of_numpy_is_copied(number) -> None:
    for make in (torch.as_tensor, torch.asarray):
        x = make(number)
        x.fill_(0)  # the number's own memory cannot be written
        assert x.shape == () and x.dtype is torch.tensor(number).dtype and number != 0
    with pytest.raises(ValueError, match="can't alias"):
        torch.asarray(number, copy=False)


def test_range_includes_its_end_and_warns() -> None:
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        assert torch.range(1, 3).tolist() == [1.0, 2.0, 3.0]
    with pytest.warns(UserWarning, match="deprecated"):
        x = torch.range(0, 1, 0.5, dtype=torch.float64)
    assert x.tolist() == [0.0, 0.5, 1.0] and x.dtype is torch.float64
    for wrong in ((1, 0), (0, 1, 0)):
        with pytest.warns(UserWarning, match="deprecated"), pytest.raises(RuntimeError):
            torch.range(*wrong)


@pytest.mark.parametrize(
    ("dtype", "number"), [(torch.float32, np.float32), (torch.float64, np.float64)]
)
def test_spaced_numbers_are_rounded_once(dtype, number) -> None:
    """start + i * step from the nearer end, all of the dtype: metrics compare for equality."""
    for start, end, steps in (0, 1, 101), (0.5, 0.95, 10), (-3.3, 7.1, 57), (2, 2.5, 1):
        first, last = number(start), number(end)
        step = (last - first) / number(max(steps - 1, 1))
        i = np.arange(steps, dtype=np.longdouble)
        left, right = first + i * step, last - (steps - 1 - i) * step
        expected = np.where((i < steps // 2) | (steps == 1), left, right).astype(number)
        assert torch.linspace(start, end, steps, dtype=dtype).tolist() == expected.tolist()


def test_tensors_of_one_element_are_numbers_in_a_sequence() -> None:
    one = torch.tensor([0.5])
    assert torch.tensor([[one, 0], [0, one.double()]]).tolist() == [[0.5, 0], [0, 0.5]]
    assert torch.tensor([torch.ones(1, 1), torch.ones(())]).shape == (2,)
    assert torch.tensor([torch.ones(1, dtype=torch.int64), 2.5]).dtype == torch.float32
    assert torch.tensor([[1], one]).tolist() == [[1], [0.5]]
    assert torch.tensor([torch.ones(2), torch.ones(2)]).shape == (2, 2)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float64, torch.complex64])
def test_what_is_made_in_out_has_its_dtype(dtype: torch.dtype) -> None:
    for make in (
        lambda out: torch.full((2,), 1.0, out=out),
        lambda out: torch.eye(2, out=out),
        lambda out: torch.empty(2, out=out),
        lambda out: torch.ones(2, out=out),
        lambda out: torch.linspace(0, 3, 4, out=out),
        lambda out: torch.logspace(0, 3, 4, out=out),
        lambda out: torch.sum(torch.tensor([2.5, 2.5]), dim=0, out=out),
    ):
        out = torch.empty(0, dtype=dtype)
        assert make(out) is out
        assert out.dtype is dtype
    assert torch.equal(torch.eye(2, out=torch.empty(0, dtype=dtype)), torch.eye(2, dtype=dtype))
    total = torch.sum(torch.tensor([2.5, 2.5]), dim=0, out=torch.empty(0, dtype=dtype))
    assert total == (5 if dtype.is_floating_point or dtype.is_complex else 4)


@pytest.mark.parametrize("fold", [torch.sum, torch.mean, torch.nansum, torch.cumsum])
def test_a_wider_out_gets_the_digits_that_it_has_room_for(fold: Any) -> None:
    numbers = torch.tensor([1.0, 2.0**-30])
    out = fold(numbers, 0, out=torch.empty(0, dtype=torch.float64))
    assert torch.equal(out, fold(numbers.double(), 0))


def test_a_complex_out_takes_the_sum_of_integers() -> None:
    for fold in torch.sum, torch.nansum:
        out = fold(torch.tensor([1, 2]), 0, out=torch.empty(0, dtype=torch.complex64))
        assert out == 3 and out.is_complex()


def test_another_dtype_than_that_of_out_is_refused() -> None:
    for make in (torch.zeros, torch.arange, torch.rand):
        with pytest.raises(RuntimeError, match="does not match dtype float32 of out"):
            make(2, dtype=torch.float64, out=torch.zeros(2))


def test_another_layout_or_device_than_that_of_out_is_refused() -> None:
    for make in (torch.zeros, torch.arange, torch.rand, torch.eye, torch.empty):
        for name, value in (("layout", torch.sparse_coo), ("device", "meta")):
            with pytest.raises(RuntimeError, match=f"{name} .* does not match {name} .* of out"):
                make(2, out=torch.zeros(2), **{name: value})


def test_what_is_made_in_out_may_require_grad() -> None:
    out = torch.zeros(2)
    assert torch.ones(2, out=out, requires_grad=True) is out
    assert out.requires_grad


def test_sequences_fill_out_of_any_shape() -> None:
    for make in (
        lambda out: torch.arange(0, 4, out=out),
        lambda out: torch.linspace(0, 3, 4, out=out),
        lambda out: torch.range(0, 3, out=out),
    ):
        x = torch.zeros(2, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            make(x[:, 1:])
        assert x.tolist() == [[0, 0, 1], [0, 2, 3]]


def test_asarray_takes_a_capsule_of_dlpack() -> None:
    x = torch.ones(2)
    y = torch.asarray(torch.utils.dlpack.to_dlpack(x))
    y[0] = 5
    assert x.tolist() == [5, 1]


def test_tensors_of_the_common_shape_are_not_viewed() -> None:
    loc, scale = torch.zeros(3, requires_grad=True), torch.ones(())
    wide, other = torch.broadcast_tensors(loc, scale)
    assert wide is loc and other is not scale
    assert torch.distributions.Normal(loc, 1.0).loc is loc


def test_only_some_functions_take_tensors_without_brackets() -> None:
    x = torch.ones(2)
    assert [t.shape for t in torch.broadcast_tensors(x, torch.ones(3, 1))] == [(3, 2), (3, 2)]
    assert torch.block_diag().shape == (1, 0)
    assert torch.broadcast_tensors() == ()
    with pytest.raises(TypeError, match="found element of type str at pos 1"):
        torch.meshgrid(x, "x")
    for stack in (torch.hstack, torch.vstack, torch.dstack, torch.column_stack):
        for tensors in ((x,), (x, x)):
            with pytest.raises(TypeError, match="must be tuple of Tensors, not Tensor"):
                stack(*tensors)


def test_shapes_to_broadcast_are_checked() -> None:
    for shapes in ((-1,), ((1, -12),), ((2,), (-1,))):
        with pytest.raises(ValueError, match="negative length"):
            torch.broadcast_shapes(*shapes)
    with pytest.raises(RuntimeError, match="ints"):
        torch.broadcast_shapes(1.1)


def test_a_complex_number_is_no_int() -> None:
    with pytest.raises(RuntimeError, match="is complex"):
        int(torch.tensor(1.5j))


def test_gradient_computes_in_the_dtype_of_the_places() -> None:
    x, places = torch.rand(50), torch.rand(50, dtype=torch.float64).cumsum(0)
    for edge_order in (1, 2):
        (slope,) = torch.gradient(x, spacing=(places,), edge_order=edge_order)
        expected = np.gradient(x.double().numpy(), places.numpy(), edge_order=edge_order)
        np.testing.assert_allclose(slope.numpy(), expected, rtol=1e-9)


def test_out_of_a_wider_dtype_does_not_change_the_result() -> None:
    x, base = torch.tensor([17], dtype=torch.uint8), torch.tensor([0.3], dtype=torch.float16)
    for dtype in (torch.int64, torch.int32):
        out = torch.empty(1, dtype=dtype)
        assert torch.pow(2, x, out=out).item() == torch.pow(2, x).item() == 0
    out = torch.empty(1)
    assert torch.sin(base, out=out).item() == torch.sin(base).item()


def test_a_step_that_is_no_integer_is_a_value_error_where_integers_are_made() -> None:
    for options in ({"dtype": torch.int64}, {"out": torch.empty(0, dtype=torch.int64)}):
        with pytest.raises(ValueError, match="step must be nonzero"):
            torch.arange(0, 64, 0.5, **options)
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        torch.arange(0, 3, 0)


def test_joined_floats_do_not_go_into_integers() -> None:
    for join in (torch.cat, torch.concat, torch.stack, torch.hstack, torch.row_stack):
        with pytest.raises(TypeError, match="can't be cast"):
            join([torch.ones(2)], out=torch.empty(0, dtype=torch.int64))
