"""Tensors as Python objects: making, attributes, conversions, sharing with NumPy, lifetime."""

from __future__ import annotations

import copy
import gc
import operator
import pickle
import weakref

import pytest

import rushlight as torch

NUMPY_DTYPES = [
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def test_tensor_infers_shape_and_dtype() -> None:
    assert torch.tensor([[1, 2], [3, 4]]).dtype is torch.int64
    assert torch.tensor([1, 2.5]).dtype is torch.float32
    assert torch.tensor([True, False]).dtype is torch.bool
    assert torch.tensor([1j]).dtype is torch.complex64
    assert torch.tensor([]).shape == (0,)
    assert torch.tensor([[], []]).shape == (2, 0)
    assert torch.tensor(3.0).shape == ()
    assert torch.tensor([torch.tensor(1.0), torch.tensor(2.0)]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([[1, 2], [3]], ValueError, "expected sequence of length 2 at dim 1"),
        ([1, [2]], (ValueError, TypeError), "expected a number|invalid data type"),
        (["a"], (TypeError, ValueError), "too many dimensions .str."),
        ([[1], 2], (TypeError, ValueError), "expected a sequence"),
    ],
)
def test_ragged_and_wrong_data_is_refused(data: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        torch.tensor(data)


def test_numbers_that_do_not_fit_are_refused() -> None:
    for number, dtype in [
        (300, torch.uint8),
        (-256, torch.uint8),
        (-1.5, torch.uint8),
        (1e10, torch.int32),
        (float("nan"), torch.int64),
    ]:
        for make in (torch.tensor, lambda n, dtype: torch.full((2,), n[0], dtype=dtype)):
            with pytest.raises(RuntimeError, match="without overflow"):
                make([number], dtype=dtype)
    assert torch.tensor([-1, -255], dtype=torch.uint8).tolist() == [255, 1]
    with pytest.raises(ValueError, match="does not fit into 64 bits"):
        torch.tensor([2**70])
    with pytest.raises(OverflowError, match="does not fit into 64 bits"):
        torch.tensor([2**70], dtype=torch.int64)


def test_item_and_truth_need_one_element() -> None:
    assert torch.tensor([2.5]).item() == 2.5
    assert bool(torch.tensor(0)) is False
    assert int(torch.tensor(3.7)) == 3 and float(torch.tensor(2)) == 2.0
    assert complex(torch.tensor(1 - 2j)) == 1 - 2j and complex(torch.tensor([3])) == 3
    for number in (int, float, complex):
        with pytest.raises(ValueError, match="only one element tensors can be converted"):
            number(torch.zeros(2))
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        torch.zeros(2).item()
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        bool(torch.zeros(2))
    with pytest.raises(RuntimeError, match="no values is ambiguous"):
        bool(torch.zeros(0))


def test_operators_with_numbers_follow_promotion() -> None:
    ints, halves = torch.ones(2, dtype=torch.int32), torch.ones(2, dtype=torch.float16)
    assert (ints + 1).dtype is torch.int32
    assert (ints + 1.5).dtype is torch.float32
    assert (ints / 2).dtype is torch.float32
    assert (halves * 2.5).dtype is torch.float16
    assert (halves + torch.tensor(1.0, dtype=torch.float64)).dtype is torch.float16
    assert (halves + torch.ones(2)).dtype is torch.float32
    assert (1 - ints).tolist() == [0, 0]
    assert (2**ints).tolist() == [2, 2]
    assert (ints == 1).dtype is torch.bool


def test_attributes_and_subclasses_survive_while_only_the_core_holds_the_tensor() -> None:
    x = torch.ones(1, requires_grad=True)
    x.grad = torch.ones(1)
    x.grad.note = "kept"
    gc.collect()
    assert x.grad.note == "kept"
    reference = weakref.ref(x.grad)
    gc.collect()
    assert reference() is x.grad
    x.grad = None
    gc.collect()
    assert reference() is None


def test_a_weak_reference_gives_a_tensor_that_outlives_its_owner_in_the_core() -> None:
    x = torch.ones(2)
    x.grad = torch.ones(2)
    reference = weakref.ref(x.grad)
    grad = reference()
    del x
    assert grad is not None
    assert grad.sum().item() == 2
    assert reference() is grad
    del grad
    assert reference() is None


def test_dead_tensors_are_freed() -> None:
    before = torch._C._memory_stats()["allocated"]
    for _ in range(10):
        x = torch.ones(1000, requires_grad=True)
        x.note = x * 2
        (x.note * x).sum().backward()
    del x
    gc.collect()
    assert torch._C._memory_stats()["allocated"] - before < 10_000


def test_deepcopy_and_pickle_keep_values_and_flags() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.bool, torch.complex64):
        x = torch.ones(2, 3).to(dtype)
        for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert y.dtype is dtype and y.tolist() == x.tolist() and y is not x
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.zeros(2)
    y = copy.deepcopy(x)
    assert y.requires_grad and y.grad is not x.grad
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


def test_dtypes_devices_and_sizes_behave_like_values() -> None:
    assert pickle.loads(pickle.dumps(torch.float32)) is torch.float32
    assert torch.device("cuda", 1) == torch.device("cuda:1")
    assert str(torch.device("cpu")) == "cpu" and repr(torch.device("cpu")) == "device(type='cpu')"
    size = torch.zeros(2, 3).shape
    assert size == (2, 3) and size.numel() == 6 and isinstance(size[1:], torch.Size)
    assert repr(size) == "torch.Size([2, 3])"
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda, meta, mps.* device type"):
        torch.device("gpu")
    assert torch.finfo(torch.float16).max == 65504.0
    assert torch.iinfo(torch.uint8).max == 255


def test_operators_refuse_what_they_have_no_meaning_for_as_python_does() -> None:
    x = torch.ones(2, 2)
    for call in (lambda: ~x, lambda: x @ 3, lambda: 2.5 @ x, lambda: ~x.to(torch.complex64)):
        with pytest.raises(TypeError, match=r"~ |unsupported operand"):
            call()
    assert (~torch.tensor([True, False])).tolist() == [False, True]
    assert (x @ x).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        x @ torch.ones(3, 2)


def test_a_complex_number_without_imaginary_part_is_a_float() -> None:
    assert float(torch.tensor([2.5 + 0j])) == 2.5
    with pytest.raises(RuntimeError, match="cannot be converted to type double.*complex"):
        float(torch.tensor(1j))


def test_questions_about_dtypes_are_asked_of_tensors() -> None:
    for question in (torch.is_floating_point, torch.is_complex, torch.numel):
        with pytest.raises(
            TypeError, match=r"argument 'input' \(position 1\) must be Tensor, not int"
        ):
            question(3)


def test_dtypes_know_those_of_their_parts() -> None:
    assert torch.complex128.to_real() is torch.float64
    assert torch.float64.to_complex() is torch.complex128
    for dtype in (torch.int8, torch.bool, torch.float8_e5m2):
        assert dtype.to_real() is dtype
        with pytest.raises(RuntimeError, match="no complex dtype"):
            dtype.to_complex()


def test_sums_of_sizes_and_tuples_are_sizes() -> None:
    size = torch.Size([2, 3])
    for total in (operator.add((4,), size), operator.add(size, (4,)), sum([size, size], ())):
        assert isinstance(total, torch.Size)
    assert repr(operator.add((4,), size)) == "torch.Size([4, 2, 3])"
    with pytest.raises(TypeError, match="iterable of 'int'"):
        operator.add(("a",), size)
    with pytest.raises(TypeError, match="can only concatenate"):
        operator.add([1], size)


def test_limits_of_dtypes_are_values() -> None:
    assert torch.finfo(torch.half) == torch.finfo(torch.float16) != torch.finfo(torch.bfloat16)
    assert torch.iinfo(torch.int8) == torch.iinfo(torch.int8) != torch.iinfo(torch.uint8)
    assert len({torch.finfo(torch.half), torch.finfo(torch.float16)}) == 1
    assert torch.finfo(float) == torch.finfo(complex) == torch.finfo(torch.float64)
    assert torch.iinfo(int) == torch.iinfo(torch.int64)
    for info in (torch.finfo(torch.half), torch.iinfo(torch.int8)):
        assert pickle.loads(pickle.dumps(info)) == copy.deepcopy(info) == info
        with pytest.raises(AttributeError, match="not writable"):
            info.max = 1
    for limits, other in ((torch.finfo, int), (torch.iinfo, float)):  # programs try both
        with pytest.raises(TypeError, match="requires an? (integer|floating point) input type"):
            limits(other)
        with pytest.raises(TypeError, match="must be torch.dtype, not type"):
            limits(str)


def test_to_takes_another_tensor_by_name() -> None:
    x = torch.ones(2)
    for other in (torch.zeros((), dtype=torch.int64), torch.zeros(2, dtype=torch.int64)):
        assert x.to(other=other).dtype is torch.int64


@pytest.mark.parametrize("of", ["tensor", "module"])
def test_to_refuses_arguments_that_contradict_each_other_or_have_no_place(of: str) -> None:
    to = torch.ones(2).to if of == "tensor" else torch.nn.Linear(2, 2).to
    dtype, other = torch.float64, torch.ones(1)
    for call in (
        lambda: to(torch.float32, dtype),
        lambda: to("cpu", "cpu"),
        lambda: to(other, dtype),
        lambda: to(dtype, dtype=torch.float32),
        lambda: to("cpu", device="cpu"),
        lambda: to(dtype, None),
        lambda: to(dtype, False, False, False),
        lambda: to("cpu", dtype, 1),
        lambda: to(3.5),
        lambda: to(dtype, color=1),
    ):
        with pytest.raises(TypeError, match=r"^to\(\)"):
            call()


def test_methods_refuse_arguments_of_another_type() -> None:
    x = torch.ones(2)
    with pytest.raises(TypeError, match=r"type\(\): expected a dtype or the name of a type, got 3"):
        x.type(3)
    for of in (x, torch.nn.Linear(1, 1)):
        with pytest.raises(TypeError, match="'requires_grad' .* must be bool, not str"):
            of.requires_grad_("no")


def test_to_returns_the_tensor_itself_when_nothing_changes() -> None:
    x = torch.ones(2)
    assert x.to(torch.float32) is x and x.to("cpu") is x and x.float() is x
    assert x.to(torch.float32, copy=True) is not x and x.to(torch.float32, False, True) is not x
    assert x.double().dtype is torch.float64
    y = torch.ones(2, requires_grad=True)
    y.double().sum().backward()
    assert y.grad.dtype is torch.float32
    assert x.to("meta").device.type == "meta"


def test_iteration_and_membership() -> None:
    rows = list(torch.arange(4).reshape(2, 2))
    assert [r.tolist() for r in rows] == [[0, 1], [2, 3]]
    assert 3 in torch.arange(4) and 9 not in torch.arange(4)
    with pytest.raises(TypeError, match="0-d"):
        iter(torch.tensor(1))
    with pytest.raises(TypeError, match="0-d"):
        len(torch.tensor(1))


def test_is_signed_asks_the_dtype() -> None:
    signed = {torch.int8, torch.int64, torch.float16, torch.float32, torch.complex64}
    for dtype in (*signed, torch.bool, torch.uint8, torch.uint64):
        x = torch.ones(1, dtype=dtype)
        assert x.is_signed() == torch.is_signed(x) == (dtype in signed)


def test_the_cpu_and_meta_have_no_numbers_in_tensors():
    x = torch.ones(2, device="cpu:0")
    assert x.device == torch.device("cpu") == torch.empty_like(x).device
    assert torch.equal(x + torch.ones(2), torch.full((2,), 2.0))
    meta = torch.ones(2, device="meta:0")
    assert meta.device == torch.device("meta") == (meta + torch.ones(2, device="meta")).device


def test_devices_that_are_not_here_can_be_named_and_compared():
    device = torch.device("mps")
    assert (device.type, device.index, str(torch.device("xpu", 1))) == ("mps", None, "xpu:1")
    assert device == torch.device("mps") != torch.device("cpu") and torch.device("mps:0") != device
    for put in (
        lambda: torch.ones(2, device="mps"),
        lambda: torch.empty(0, device=device),
        lambda: torch.ones(2).to("mps"),
        lambda: torch.nn.Linear(1, 1).to(device),
        lambda: torch.tensor(1.0, device="mps"),
    ):
        with pytest.raises(RuntimeError, match="not linked with support for mps devices"):
            put()


def test_attributes_of_a_tensor_can_be_replaced_as_a_whole():
    x = torch.ones(2)
    x.name = "a"
    x.__dict__ = {"unit": "m"}
    assert x.unit == "m" and not hasattr(x, "name") and vars(x) == {"unit": "m"}
    with pytest.raises(TypeError, match="dictionary"):
        x.__dict__ = 3


def test_arguments_have_the_names_that_programs_use():
    row = torch.tensor([1.0, 3.0])
    assert torch.searchsorted(sorted_sequence=row, input=torch.tensor([2.0])).tolist() == [1]
    assert type(row.as_subclass(cls=torch.nn.Parameter)) is torch.nn.Parameter
    with pytest.raises(TypeError, match="subclass of Tensor"):
        row.as_subclass(int)
    with pytest.raises(TypeError):
        row.as_subclass()


def test_attributes_outlive_cycles_while_others_hold_the_tensor() -> None:
    x, y, z = torch.empty(2), torch.empty(2), torch.empty(2)
    x.other, y.other, x.name = y, x, "x"
    z.grad = x
    del x, y
    gc.collect()
    assert z.grad.name == "x" and z.grad.other.other is z.grad
    gone = weakref.ref(z.grad)
    del z
    gc.collect()
    assert gone() is None


def test_attributes_of_a_saved_tensor_outlive_garbage_that_holds_it() -> None:
    x = torch.rand(2, requires_grad=True).clone()
    x.name = "x"
    garbage = [x]
    garbage.append(garbage)
    y = x**2
    del x, garbage
    gc.collect()
    assert y.grad_fn._saved_self.name == "x"
