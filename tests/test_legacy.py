"""The constructors from before torch.tensor."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import rushlight as torch


def test_sizes_give_a_tensor_of_that_shape() -> None:
    assert torch.FloatTensor(2, 3).shape == (2, 3)
    assert torch.LongTensor(torch.Size([2, 0])).shape == (2, 0)
    assert torch.FloatTensor(np.int64(2), np.int32(3)).shape == (2, 3)
    assert torch.FloatTensor(size=(2,)).shape == (2,)
    assert torch.FloatTensor().shape == (0,)
    assert torch.Tensor(2, 3).dtype is torch.float32


@pytest.mark.parametrize(
    "data", [[1, 2], (1.5, 2.5), range(2), np.array([1, 2]), [torch.tensor(1), 2], [[1.0], [2.0]]]
)
@pytest.mark.parametrize("name", ["Float", "Double", "Half", "BFloat16", "Long", "Int", "Byte"])
def test_data_is_converted_to_the_dtype(name: str, data: object) -> None:
    made = getattr(torch, f"{name}Tensor")(data)
    assert made.type() == f"torch.{name}Tensor"
    assert made.tolist() == torch.tensor(np.array(data)).to(made.dtype).tolist()


def test_rows_may_be_bytes() -> None:
    assert torch.ByteTensor([b"ab", [1, 2]]).tolist() == [[97, 98], [1, 2]]
    with pytest.raises(TypeError, match="bytes"):
        torch.ByteTensor(b"ab")


def test_digits_survive() -> None:
    assert torch.DoubleTensor([0.1]).item() == 0.1
    assert torch.LongTensor([2**62 + 1]).item() == 2**62 + 1


def test_a_tensor_of_the_dtype_is_shared() -> None:
    x = torch.arange(3.0)
    y = torch.FloatTensor(x)
    y[0] = 7
    assert x[0] == 7
    with pytest.raises(TypeError, match="got torch.FloatTensor"):
        torch.LongTensor(x)
    assert torch.Tensor(torch.arange(3)).dtype is torch.int64


def test_data_stands_alone() -> None:
    with pytest.raises(TypeError, match="one sequence"):
        torch.LongTensor([6, 0], 1)


@pytest.mark.parametrize("data", [5.0, None, "ab", {1: 2}])
def test_other_things_are_refused(data: object) -> None:
    with pytest.raises(TypeError, match="data must be a sequence"):
        torch.FloatTensor(data)


def test_isinstance_asks_for_dtype_and_device() -> None:
    x = torch.ones(2)
    assert isinstance(x, torch.FloatTensor)
    assert isinstance(torch.nn.Parameter(x), torch.FloatTensor)
    assert not isinstance(x, torch.DoubleTensor)
    assert not isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(1.0, torch.FloatTensor)


def test_type_takes_names_and_classes() -> None:
    x = torch.ones(2)
    assert x.type("torch.LongTensor").dtype is torch.int64
    assert x.type(torch.DoubleTensor).dtype is torch.float64
    assert x.type(torch.FloatTensor) is x
    assert torch.ones(2, dtype=torch.uint16).type() == "torch.UInt16Tensor"
    assert torch.empty(2, device="meta").type() == "torch.meta.FloatTensor"
    with pytest.raises(ValueError, match="invalid type"):
        x.type("torch.NoTensor")


def test_new_follows_the_tensor() -> None:
    x = torch.ones(2, dtype=torch.float64)
    assert x.new([1, 2]).dtype is torch.float64
    assert x.new(2, 3).shape == (2, 3)
    assert x.new().numel() == 0
    assert x.new(torch.ones(2, dtype=torch.float64)).tolist() == [1, 1]


def test_default_tensor_type() -> None:
    torch.set_default_tensor_type(torch.DoubleTensor)
    try:
        assert torch.Tensor([1]).dtype is torch.float64
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")
    with pytest.raises(TypeError, match="only floating-point types"):
        torch.set_default_tensor_type(torch.LongTensor)


def test_layout_is_a_class_and_pickles() -> None:
    assert isinstance(torch.ones(2).layout, torch.layout)
    assert pickle.loads(pickle.dumps(torch.strided)) is torch.strided
    assert str(torch.strided) == "torch.strided"


def test_sparse_constructors() -> None:
    indices, values = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])
    x = torch.sparse.FloatTensor(indices, values, torch.Size([2, 3]))
    assert x.to_dense().tolist() == [[0, 1, 0], [2, 0, 0]]
    assert x.type() == "torch.sparse.FloatTensor" and isinstance(x, torch.sparse.FloatTensor)
    assert not isinstance(values, torch.sparse.FloatTensor)
    assert torch.sparse.FloatTensor(indices, values).shape == (2, 2)
    assert torch.sparse.LongTensor(2, 3)._nnz() == 0 and torch.sparse.LongTensor().shape == (0,)
    assert torch.sparse.FloatTensor(indices, values.double()).dtype is torch.float64


def test_new_of_a_sparse_tensor_is_sparse() -> None:
    indices, values = torch.tensor([[1]]), torch.tensor([3.0])
    x = torch.sparse_coo_tensor(indices, values, (2,))
    assert x.new(indices, values, x.size()).to_dense().tolist() == [0, 3]
    assert x.new(indices, values).shape == (2,) and x.new().shape == (0,)
    for empty in (x.new(2, 3), x.new(torch.Size([2, 3])), x.double().new(size=(2, 3)).float()):
        assert empty.is_sparse and empty.shape == (2, 3) and empty._nnz() == 0
        assert empty.dtype is torch.float32
    for data in ([1.0, 2.0], x, np.ones(2)):
        with pytest.raises(TypeError, match="a sparse tensor is made of sizes, or of indices"):
            x.new(data)


def test_sizes_are_ints() -> None:
    size_of: Any = torch.Size  # takes what can be an index, too
    made = size_of([2, torch.tensor(3), np.int32(4), True])
    assert made == (2, 3, 4, 1) and {type(size) for size in made} == {int}
    assert repr(torch.Size()) == "torch.Size([])"
    with pytest.raises(TypeError, match=r"takes an iterable of 'int' \(item 1 is 'float'\)"):
        size_of([1, 1.5])
    with pytest.raises(TypeError, match="not iterable"):
        size_of(3)


def test_dtypes_that_no_tensor_has_can_be_named() -> None:
    names = torch.uint1, torch.int7, torch.float8_e8m0fnu, torch.complex32
    assert [str(name) for name in names[:2]] == ["torch.uint1", "torch.int7"]
    assert [name.itemsize for name in names] == [1, 1, 1, 4] and torch.chalf is torch.complex32
    assert torch.uint4 != torch.uint8 and torch.uint4 in {torch.uint4: 1}
    assert torch.float8_e8m0fnu.is_floating_point and not torch.uint1.is_signed
    assert copy.deepcopy(torch.uint4) is pickle.loads(pickle.dumps(torch.uint4)) is torch.uint4
    with pytest.raises(TypeError, match="dtype"):
        torch.zeros(2, dtype=torch.uint4)


def test_types_of_tensors_have_no_subclasses() -> None:
    with pytest.raises(TypeError, match="not an acceptable base type"):

        class Own(torch.FloatTensor):
            pass


def test_operators_of_python_2_divide() -> None:
    x = torch.tensor([2.0, 4.0])
    assert x.__div__(2).tolist() == [1.0, 2.0] and x.__rdiv__(2).tolist() == [1.0, 0.5]
    assert x.__idiv__(2) is x and x.tolist() == [1.0, 2.0]


def test_operators_are_found_in_the_module_that_programs_import() -> None:
    assert torch._ops.ops is torch.ops
