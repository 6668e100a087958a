"""NumPy: arrays to tensors, tensors to arrays, and functions and operators on both."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import numpy as np
import pytest
from grouping import each
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import rushlight as torch

NUMPY_DTYPES = [
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


# Arrays to tensors


@pytest.mark.parametrize("name", NUMPY_DTYPES)
def test_numpy_shares_memory_both_ways(name: str) -> None:
    array = np.zeros((2, 3), dtype=name)
    tensor = torch.from_numpy(array)
    assert tensor.dtype is getattr(torch, name)
    array[1, 2] = 1
    assert tensor[1, 2].item() == 1
    back = tensor.numpy()
    assert back.dtype.char == array.dtype.char and np.shares_memory(back, array)


ANY_ARRAY = arrays.arrays(
    st.sampled_from([np.dtype(name) for name in NUMPY_DTYPES]),
    arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
)


@given(ANY_ARRAY, st.data())
def test_any_view_of_an_array_is_shared_or_refused(array: np.ndarray, data: Any) -> None:
    view = array[data.draw(arrays.basic_indices(array.shape, allow_newaxis=True))]
    if not isinstance(view, np.ndarray):
        view = np.asarray(view)
    backwards = any(s < 0 and n > 1 for s, n in zip(view.strides, view.shape, strict=True))
    if backwards and view.size:
        with pytest.raises(ValueError, match="stride in the given numpy array is negative"):
            torch.from_numpy(view)
    else:
        tensor = torch.from_numpy(view)
        np.testing.assert_array_equal(tensor.numpy(), view)
        assert tensor.shape == view.shape
        assert not view.size or np.shares_memory(tensor.numpy(), view)
    copied = torch.tensor(view)
    np.testing.assert_array_equal(copied.numpy(), view)
    assert not np.shares_memory(copied.numpy(), view)


@given(ANY_ARRAY)
def test_arrays_come_back_the_same(array: np.ndarray) -> None:
    back = np.asarray(torch.from_numpy(array))
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def test_numpy_views_keep_their_strides() -> None:
    array = np.arange(12.0).reshape(3, 4)[:, ::2].T
    tensor = torch.from_numpy(array)
    assert tensor.stride() == (2, 4)
    np.testing.assert_array_equal(tensor.numpy(), array)
    # Also those of dims with one element, by which gray images tell their memory format.
    images = np.zeros((2, 1, 4, 5), np.float32)
    assert torch.from_numpy(images).stride() == (20, 20, 5, 1)
    features = torch.nn.functional.conv2d(torch.from_numpy(images), torch.ones(3, 1, 2, 2))
    assert features.view(2, -1).shape == (2, 36)


REFUSED_DTYPES: list[tuple[Any, str]] = [
    (np.array([1, None]), "object_"),
    (np.array(["text"]), "str_"),
    (np.array([b"text"]), "bytes_"),
    (np.array(["2020-01-01"], dtype="M8[D]"), "datetime64"),
    (np.array([1], dtype="m8[s]"), "timedelta64"),
    (np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]), "void"),
    (np.zeros(2, dtype=[("a", ">f4")]), "void"),
    (np.zeros(2, "V4"), "void"),
    (np.zeros(2, np.longdouble), "longdouble"),
    (np.zeros(2, np.clongdouble), "clongdouble"),
]


@pytest.mark.parametrize(("array", "name"), REFUSED_DTYPES, ids=lambda v: str(v)[:20])
def test_arrays_of_other_types_are_refused(array: np.ndarray, name: str) -> None:
    for make in (torch.from_numpy, torch.as_tensor, torch.tensor):
        with pytest.raises(TypeError, match=rf"can't convert np.ndarray of type numpy\.{name}\."):
            make(array)


@each(
    "number", [np.datetime64("2020-01-01"), np.timedelta64(1, "s"), np.longdouble(1), np.void(b"a")]
)
def test_numbers_of_other_types_are_refused(number: Any) -> None:
    for data in (number, [number], [[1.0], [number]]):
        for make in (torch.as_tensor, torch.tensor):
            with pytest.raises(TypeError, match=type(number).__name__):
                make(data)


@pytest.mark.parametrize("dtype", [">f8", ">i2", ">u4", ">c8", ">f2"])
def test_arrays_of_another_byte_order_are_refused(dtype: str) -> None:
    for make in (torch.from_numpy, torch.as_tensor, torch.tensor):
        with pytest.raises(ValueError, match="byte order different from the native byte order"):
            make(np.zeros(2, dtype))


def test_other_objects_are_no_arrays() -> None:
    for junk in ([1, 2], 3, "text", None, torch.ones(2)):
        with pytest.raises(TypeError, match="expected np.ndarray"):
            torch.from_numpy(junk)


def test_strides_between_elements_are_refused_and_copied() -> None:
    fields = np.zeros(3, dtype=[("a", "f8"), ("b", "i1")])  # 9 bytes apart
    fields["a"] = [1, 2, 3]
    with pytest.raises(ValueError, match="strides not a multiple of the element byte size"):
        torch.from_numpy(fields["a"])
    assert torch.tensor(fields["a"]).tolist() == [1, 2, 3]


def test_read_only_arrays_make_read_only_tensors() -> None:
    array = np.arange(6.0).reshape(2, 3)
    array.flags.writeable = False
    tensor = torch.from_numpy(array)
    writes = [
        lambda: tensor.add_(1),
        lambda: tensor[0].zero_(),
        lambda: tensor.__setitem__(0, 5.0),
        lambda: tensor.T.fill_(2.0),
        lambda: torch.add(tensor, 1, out=tensor),
        lambda: tensor.detach().copy_(torch.ones(2, 3)),
    ]
    for write in writes:
        with pytest.raises(RuntimeError, match="read-only"):
            write()
    assert array.sum() == 15
    assert not tensor.numpy().flags.writeable
    tensor.clone().add_(1)
    assert not np.broadcast_to(np.float32(1), (3,)).flags.writeable
    assert torch.from_numpy(np.broadcast_to(np.float32(1), (3,))).sum().item() == 3


def test_empty_and_single_arrays() -> None:
    for shape in [(), (0,), (2, 0, 3), (1, 1)]:
        tensor = torch.from_numpy(np.ones(shape))
        assert tensor.shape == shape
        assert tensor.numpy().shape == shape
    assert torch.from_numpy(np.array(3.5)).item() == 3.5
    # Strides of dims with one element do not matter, whatever NumPy has there.
    odd = np.lib.stride_tricks.as_strided(np.arange(3.0), (1, 3), (-7, 8))
    assert torch.from_numpy(odd).tolist() == [[0.0, 1.0, 2.0]]


def test_unaligned_memory_is_refused_and_copied() -> None:
    memory = np.zeros(8 * 101 + 1, np.uint8)
    array = memory[1:].view(np.float64)
    array[:] = np.arange(101)
    assert not array.flags.aligned
    np.testing.assert_array_equal(torch.tensor(array).numpy(), array)
    with pytest.raises(ValueError, match="not aligned: elements of float64 must begin at"):
        torch.from_numpy(array)
    with pytest.raises(ValueError, match=r"frombuffer: offset \(1 bytes\) must put"):
        torch.frombuffer(memory, dtype=torch.float64, offset=1, count=3)
    with pytest.raises(ValueError, match="not aligned"):
        torch.from_numpy(memory[1:9]).view(torch.int32)
    with pytest.raises(ValueError, match="not aligned"):
        torch.empty(0, dtype=torch.float64).set_(torch.from_numpy(memory[1:]).untyped_storage())


def test_memory_outlives_the_object_that_lent_it() -> None:
    tensor = torch.from_numpy(np.arange(1000.0))
    gc.collect()
    assert tensor.sum().item() == 499500.0
    array = torch.arange(1000.0).numpy()
    gc.collect()
    assert array.sum() == 499500.0


# Numbers and arrays in lists


def test_numpy_numbers_keep_their_dtype() -> None:
    for name in NUMPY_DTYPES:
        number = np.ones((), name)[()]
        expected = getattr(torch, name)
        assert torch.tensor(number).dtype is expected
        assert torch.as_tensor(number).dtype is expected
        assert torch.tensor([number]).dtype is expected
        assert torch.tensor([[number, number]]).tolist() == [[1, 1]]
    assert torch.tensor([np.float64(3), 1.0]).dtype is torch.float64
    assert torch.tensor([np.int8(3), 1]).dtype is torch.int64
    assert torch.tensor([np.complex64(1 + 2j)]).tolist() == [1 + 2j]
    assert torch.tensor([np.float64(3)], dtype=torch.float16).dtype is torch.float16


def test_arrays_in_lists_keep_their_dtype() -> None:
    rows = [np.arange(3, dtype=np.int16), np.arange(3, dtype=np.int16)]
    assert torch.tensor(rows).dtype is torch.int16
    assert torch.as_tensor([np.ones(2), np.ones(2)]).dtype is torch.float64
    assert torch.tensor([np.arange(3)[::-1], np.arange(3)]).tolist() == [[2, 1, 0], [0, 1, 2]]
    assert torch.tensor([np.array(3.5), np.array(1.5)]).tolist() == [3.5, 1.5]
    assert torch.tensor([[np.ones(2)], [torch.zeros(2)]]).shape == (2, 1, 2)
    assert torch.tensor((np.float32(1), torch.tensor(2.0))).tolist() == [1, 2]
    with pytest.raises(ValueError, match="expected a tensor of shape"):
        torch.tensor([np.ones(2), np.ones(3)])
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.tensor([np.int64(300)], dtype=torch.uint8)


def test_data_without_numbers_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Could not infer dtype of object"):
        torch.tensor(object())
    with pytest.raises(RuntimeError, match="Could not infer dtype of dict"):
        torch.tensor([{}])
    with pytest.raises(TypeError, match="invalid data type 'str'"):
        torch.tensor("text")


# Tensors to arrays


def test_asarray_shares_memory() -> None:
    tensor = torch.zeros(2, 2)
    np.asarray(tensor)[0, 0] = 4.0
    assert tensor[0, 0].item() == 4.0
    assert np.shares_memory(np.array(tensor, copy=False), tensor.numpy())
    assert not np.shares_memory(np.array(tensor), tensor.numpy())
    assert not np.shares_memory(np.array(tensor, copy=True), tensor.numpy())


def test_asarray_converts() -> None:
    tensor = torch.tensor([1.5, 2.5])
    assert np.asarray(tensor, dtype=np.int32).tolist() == [1, 2]
    assert tensor.__array__(np.float16).dtype == np.float16
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        np.array(tensor, dtype=np.int32, copy=False)
    assert np.asarray([torch.tensor(1.0), torch.tensor(2.0)]).tolist() == [1, 2]
    assert np.stack([tensor, tensor]).shape == (2, 2)


def test_what_has_no_array_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Can't call numpy\\(\\) on Tensor that requires grad"):
        np.asarray(torch.ones(2, requires_grad=True))
    with pytest.raises(TypeError, match="BFloat16"):
        torch.ones(2, dtype=torch.bfloat16).numpy()
    with pytest.raises(TypeError, match="meta"):
        np.asarray(torch.ones(2, device="meta"))


def test_no_grad_gives_arrays_of_what_requires_grad() -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert np.shares_memory(x.numpy(), np.asarray(x))
    with torch.inference_mode():
        assert x.numpy().tolist() == [1, 1]


def test_force_makes_an_array_of_any_tensor() -> None:
    x = torch.ones(2, requires_grad=True)
    assert np.shares_memory(x.numpy(force=True), x.detach().numpy())
    if torch.cuda.is_available():
        assert x.cuda().numpy(force=True).tolist() == [1, 1]


# Functions and operators of NumPy


def test_functions_of_numpy_return_tensors() -> None:
    x = torch.tensor([0.0, 1.0, 4.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(np.sqrt(x), torch.tensor([0.0, 1.0, 2.0]))
        assert torch.equal(np.add(x, 1), x + 1)
        assert torch.equal(np.add(np.ones(3), x), x.double() + 1)
        assert torch.equal(np.add.reduce(x), torch.tensor(5.0))
        assert torch.equal(np.matmul(np.eye(3), x), x.double())
        # PyTorch has them as uint8 too.
        assert torch.equal(np.isfinite(x), torch.ones(3, dtype=torch.uint8))


def test_operators_with_arrays() -> None:
    x, array = torch.tensor([1.0, 2.0]), np.array([1.0, 4.0])
    assert torch.equal(x + array, torch.tensor([2.0, 6.0], dtype=torch.float64))
    assert torch.equal(x * array, torch.tensor([1.0, 8.0], dtype=torch.float64))
    assert torch.equal(x @ array, torch.tensor(9.0, dtype=torch.float64))
    for result in (x == array, array == x):
        assert torch.equal(result, torch.tensor([True, False]))
    for result in (x != array, array != x):
        assert torch.equal(result, torch.tensor([False, True]))
    assert torch.equal(array / x, torch.tensor([1.0, 2.0], dtype=torch.float64))
    assert torch.equal(np.array(2) / torch.tensor([1, 4]), torch.tensor([2.0, 0.5]).double())
    with pytest.raises(RuntimeError, match="requires grad"):
        array / x.clone().requires_grad_()
    for operation in (lambda: array - x, lambda: array < x):
        with pytest.raises(TypeError, match="numpy.ndarray"):
            operation()


def test_operators_with_numbers_of_numpy() -> None:
    x = torch.tensor([1.0, 2.0])
    for result in (x * np.float64(2), np.float64(2) * x, np.float32(2) * x, np.int64(2) * x):
        assert torch.equal(result, torch.tensor([2.0, 4.0]))
    assert torch.equal(np.float64(1) - x, torch.tensor([0.0, -1.0]))
    assert torch.equal(np.float64(1) < x, torch.tensor([False, True]))
    assert torch.equal(x == np.float64(1), torch.tensor([True, False]))


def test_arrays_and_their_numbers_index_tensors() -> None:
    x = torch.arange(3)
    assert x[np.int64(1)].item() == 1
    assert x[np.array([0, 2])].tolist() == [0, 2]
    assert x[np.array([True, False, True])].tolist() == [0, 2]
    assert np.arange(3)[torch.tensor([2, 0])].tolist() == [2, 0]
    assert torch.zeros(np.int64(2), np.int32(3)).sum(np.int64(0)).shape == (3,)


# torch.asarray


@pytest.mark.skipif(not hasattr(torch, "asarray"), reason="asarray is not there yet")
def test_asarray_of_the_package_shares_or_copies() -> None:
    array = np.arange(6.0).reshape(2, 3)
    tensor = torch.from_numpy(array)
    for shared in (torch.asarray(array), torch.asarray(array, copy=False), torch.asarray(tensor)):
        assert np.shares_memory(shared.numpy(), array)
    for copied in (
        torch.asarray(array, copy=True),
        torch.asarray(tensor, copy=True),
        torch.asarray(array, dtype=torch.float32),
    ):
        assert not np.shares_memory(copied.numpy(), array)
    for forbidden in (
        lambda: torch.asarray(array, dtype=torch.int8, copy=False),
        lambda: torch.asarray([1, 2], copy=False),
    ):
        with pytest.raises(ValueError, match="asarray"):
            forbidden()
    with pytest.raises(ValueError, match="negative"):
        torch.asarray(array[::-1])
    assert torch.asarray(np.float32(3)).dtype is torch.float32
    assert torch.asarray([np.float64(3)]).dtype is torch.float64
    array.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        torch.asarray(array).add_(1)


REDUCTIONS = (np.max, np.min, np.sum, np.mean, np.prod, np.std, np.var, np.all, np.any)


@each("function", [*REDUCTIONS, np.argmax, np.argmin, np.ptp, np.cumsum, np.amax])
@each("options", [{}, {"axis": 0}, {"axis": 1, "keepdims": True}])
def test_functions_of_numpy_take_tensors(function: Any, options: dict[str, Any]) -> None:
    array = np.array([[1.0, 5.0, 2.0], [4.0, 3.0, 7.0]])
    if function is np.cumsum:
        options = {"axis": options.get("axis")}
    result = function(torch.from_numpy(array), **options)
    np.testing.assert_allclose(np.asarray(result), function(array, **options), strict=True)


def test_numpys_deviation_takes_its_correction() -> None:
    array = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(np.std(torch.from_numpy(array), ddof=1), np.std(array, ddof=1))


def test_numpys_maximum_goes_to_a_tensor() -> None:
    out = torch.empty(())
    assert np.max(torch.tensor([1.0, 3.0]), out=out) is out
    assert out.item() == 3
