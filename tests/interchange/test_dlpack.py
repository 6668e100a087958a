"""DLPack, both ways, and capsules that are not what they should be."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import rushlight as torch
from rushlight.utils import dlpack

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
          "float16", "float32", "float64", "complex64", "complex128"]  # fmt: skip


# With other libraries


@given(
    arrays.arrays(
        st.sampled_from([np.dtype(name) for name in DTYPES]),
        arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    ),
    st.data(),
)
def test_numpy_and_back_without_copies(array: np.ndarray, data: Any) -> None:
    view = np.asarray(array[data.draw(arrays.basic_indices(array.shape))])
    if any(s < 0 and n > 1 for s, n in zip(view.strides, view.shape, strict=True)) and view.size:
        with pytest.raises(RuntimeError, match="negative strides"):
            torch.from_dlpack(view)
        return
    tensor = torch.from_dlpack(view)
    np.testing.assert_array_equal(tensor.numpy(), view)
    back = np.from_dlpack(tensor)
    assert back.dtype == view.dtype and back.shape == view.shape
    assert not view.size or np.shares_memory(back, view)


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_tensors_come_back_the_same(dtype: str) -> None:
    x = torch.arange(6).to(getattr(torch, dtype)).reshape(2, 3).T
    for capsule in (x, x.__dlpack__(), x.__dlpack__(max_version=(1, 0)), torch.to_dlpack(x)):
        y = torch.from_dlpack(capsule)
        assert y.dtype is x.dtype and y.stride() == x.stride()
        assert y.data_ptr() == x.data_ptr()
        assert torch.equal(x, y)


def test_memory_outlives_its_exporter() -> None:
    tensor = torch.from_dlpack(np.arange(1000))
    gc.collect()
    assert tensor.sum().item() == 499500
    array = np.from_dlpack(torch.arange(1000))
    gc.collect()
    assert array.sum() == 499500


def test_read_only_memory_stays_read_only() -> None:
    array = np.arange(3)
    array.flags.writeable = False
    tensor = torch.from_dlpack(array)
    with pytest.raises(RuntimeError, match="read-only"):
        tensor.add_(1)
    assert not np.from_dlpack(tensor).flags.writeable
    with pytest.raises(BufferError, match="read-only memory"):
        tensor.__dlpack__()  # a capsule from before version 1.0 cannot say so
    torch.from_dlpack(tensor.__dlpack__(copy=True)).add_(1)
    torch.from_dlpack(tensor, copy=True).add_(1)


def test_memory_is_shared_for_reading_alone_on_request() -> None:
    tensor = torch.arange(3)
    shared = dlpack.ReadOnlyTensorWrapper(tensor)
    for array in (np.from_dlpack(shared), np.from_dlpack(torch.from_dlpack(shared))):
        assert np.shares_memory(array, tensor.numpy()) and not array.flags.writeable
    with pytest.raises(BufferError, match="read-only memory"):
        tensor.__dlpack__(read_only=True)
    for refused in (lambda: shared + 1, lambda: shared.shape, lambda: repr(shared)):
        with pytest.raises(RuntimeError, match="ReadOnlyTensorWrapper: .* only supports DLPack"):
            refused()
    tensor.add_(1)


def test_copy_and_device_are_honored() -> None:
    array = np.arange(3.0)
    assert np.shares_memory(torch.from_dlpack(array, copy=False).numpy(), array)
    assert not np.shares_memory(torch.from_dlpack(array, copy=True).numpy(), array)
    assert torch.from_dlpack(array, device="cpu").device.type == "cpu"
    x = torch.arange(3.0)
    assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert not np.shares_memory(np.from_dlpack(x, copy=True), x.numpy())
    with pytest.raises(RuntimeError, match="not a capsule"):
        torch.from_dlpack(torch.to_dlpack(x), copy=True)
    with pytest.raises(BufferError, match="cannot export from device"):
        x.__dlpack__(dl_device=(2, 0))


def test_devices_and_streams() -> None:
    x = torch.ones(2)
    assert x.__dlpack_device__() == (dlpack.DLDeviceType.kDLCPU, 0)
    for stream in (None, -1):
        x.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="stream must be None for CPU tensors"):
        x.__dlpack__(stream=1)
    with pytest.raises(TypeError, match="stream must be an int"):
        x.__dlpack__(stream="1")
    with pytest.raises(ValueError, match="Unknown device type meta"):
        torch.ones(2, device="meta").__dlpack_device__()
    with pytest.raises(BufferError, match="Cannot pack tensors on meta"):
        torch.ones(2, device="meta").__dlpack__()
    with pytest.raises(BufferError, match="require gradient"):
        torch.ones(2, requires_grad=True).__dlpack__()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is neither GPU nor shim")
def test_memory_on_cuda_is_shared_there_and_copied_to_the_cpu() -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3).T
    assert x.__dlpack_device__() == (dlpack.DLDeviceType.kDLCUDA, 0)
    y = torch.from_dlpack(x)
    assert y.device == x.device and y.data_ptr() == x.data_ptr() and y.stride() == x.stride()
    y += 1
    assert x.cpu().tolist() == [[1, 4], [2, 5], [3, 6]]
    here = torch.from_dlpack(x, device="cpu")
    assert here.device.type == "cpu" and here.tolist() == x.cpu().tolist()
    with pytest.raises(BufferError, match="cannot export from device"):
        x.__dlpack__(dl_device=(1, 0), copy=False)


def test_the_device_is_a_named_number() -> None:
    kind, index = torch.ones(2).__dlpack_device__()
    assert kind is dlpack.DLDeviceType.kDLCPU and (kind, index) == (1, 0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is neither GPU nor shim")
def test_memory_on_cuda_is_described_to_other_libraries() -> None:
    names = "bool |b1 uint8 |u1 int8 |i1 uint16 <u2 int64 <i8 float16 <f2 float64 <f8 complex64 <c8"
    words = names.split()
    for name, text in zip(words[::2], words[1::2], strict=True):
        x = torch.ones(2, 3, dtype=getattr(torch, name), device="cuda")
        told: Any = x.__cuda_array_interface__
        place = (x.data_ptr(), False)
        assert told == {
            "typestr": text, "shape": (2, 3), "strides": None, "data": place, "version": 2,
        }  # fmt: skip
    turned: Any = torch.ones(2, 3, device="cuda").T[1:]
    told = turned.__cuda_array_interface__
    assert (told["shape"], told["strides"]) == ((2, 2), (4, 12))
    assert told["data"][0] == turned.data_ptr()
    with pytest.raises(RuntimeError, match="detach"):
        torch.ones(2, device="cuda", requires_grad=True).__cuda_array_interface__  # noqa: B018
    for other in (torch.ones(2), turned.bfloat16(), torch.eye(2).to_sparse()):
        assert not hasattr(other, "__cuda_array_interface__")


class OldProducer:
    """One from before version 1.0, whose __dlpack__ takes a stream only."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_a_producer_from_before_version_1_is_understood() -> None:
    assert torch.from_dlpack(OldProducer(np.arange(3))).tolist() == [0, 1, 2]


def test_constructors_take_what_shares_its_memory() -> None:
    array = np.arange(6).reshape(2, 3)
    shared = OldProducer(array)
    for make in (torch.as_tensor, torch.asarray):
        x = make(shared)
        assert x.tolist() == array.tolist() and np.shares_memory(x.numpy(), array)
    copy = torch.tensor(shared)
    assert copy.tolist() == array.tolist() and not np.shares_memory(copy.numpy(), array)
    assert torch.tensor(shared, dtype=torch.float32).tolist() == array.astype(float).tolist()
    assert torch.as_tensor(shared, dtype=torch.float64).dtype is torch.float64


# Capsules

INVALID = "from_dlpack received an invalid capsule"


def test_a_capsule_is_consumed_once() -> None:
    for capsule in (torch.zeros(1).__dlpack__(), torch.zeros(1).__dlpack__(max_version=(1, 0))):
        torch.from_dlpack(capsule)
        with pytest.raises(RuntimeError, match=INVALID):
            torch.from_dlpack(capsule)


def test_what_is_no_capsule_is_refused() -> None:
    for junk in (3, "text", None, object(), b"bytes"):
        with pytest.raises(RuntimeError, match=INVALID):
            torch.from_dlpack(junk)


class DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
name_of = ctypes.pythonapi.PyCapsule_GetName
name_of.restype = ctypes.c_char_p
name_of.argtypes = [ctypes.py_object]


KEPT: list[Any] = []  # as tensors may outlive the tests that made their memory


class HandMade:
    """A capsule whose struct the test fills in; it counts the calls of its deleter."""

    def __init__(
        self,
        shape: list[int] | None = None,
        strides: list[int] | None = None,
        *,
        ndim: int | None = None,
        dtype: tuple[int, int, int] = (2, 32, 1),
        device: tuple[int, int] = (1, 0),
        data: bool = True,
        byte_offset: int = 0,
        versioned: bool = False,
        major: int = 1,
        flags: int = 0,
        name: bytes | None = None,
        deleter: bool = True,
    ) -> None:
        self.deleted = 0
        self.memory = (ctypes.c_float * 16)(*range(16))

        def count(_: Any) -> None:
            self.deleted += 1

        self.deleter = DELETER(count) if deleter else DELETER()
        self.shape, self.strides = (
            None if numbers is None else (ctypes.c_int64 * max(len(numbers), 1))(*numbers)
            for numbers in (shape, strides)
        )
        tensor = DLTensor(
            ctypes.addressof(self.memory) if data else None,
            DLDevice(*device),
            len(shape or []) if ndim is None else ndim,
            DLDataType(*dtype),
            self.shape,
            self.strides,
            byte_offset,
        )
        self.managed: Any = DLManagedTensor(tensor, None, self.deleter)
        if versioned:
            self.managed = DLManagedTensorVersioned(major, 0, None, self.deleter, flags, tensor)
        self.name = name or (b"dltensor_versioned" if versioned else b"dltensor")
        self.capsule = new_capsule(ctypes.addressof(self.managed), self.name, None)
        KEPT.append(self)


@pytest.mark.parametrize("versioned", [False, True])
def test_a_good_capsule_is_deleted_once(versioned: bool) -> None:
    made = HandMade([2, 3], [3, 1], versioned=versioned)
    tensor = torch.from_dlpack(made.capsule)
    assert tensor.tolist() == [[0, 1, 2], [3, 4, 5]]
    view = tensor[1]
    del tensor
    gc.collect()
    assert made.deleted == 0
    del view
    gc.collect()
    assert made.deleted == 1


def test_strides_may_be_absent_and_offsets_present() -> None:
    assert torch.from_dlpack(HandMade([2, 2]).capsule).tolist() == [[0, 1], [2, 3]]
    assert torch.from_dlpack(HandMade([2], byte_offset=8).capsule).tolist() == [2, 3]
    assert torch.from_dlpack(HandMade([]).capsule).item() == 0
    assert torch.from_dlpack(HandMade([3], [0]).capsule).tolist() == [0, 0, 0]
    assert torch.from_dlpack(HandMade([0, 5], [-3, 7], data=False).capsule).shape == (0, 5)
    assert torch.from_dlpack(HandMade([1, 2], [-9, 1]).capsule).tolist() == [[0, 1]]
    assert torch.from_dlpack(HandMade([2], device=(3, 0)).capsule).tolist() == [0, 1]
    without = HandMade([2], deleter=False)
    assert torch.from_dlpack(without.capsule).tolist() == [0, 1]


HOSTILE: list[tuple[dict[str, Any], str]] = [
    ({"shape": [2], "strides": [-1]}, "negative strides"),
    ({"shape": [-1]}, "negative dimension"),
    ({"shape": [2**62, 4]}, "overflow"),
    ({"shape": [2**40, 2**40]}, "overflow"),
    ({"shape": [2, 2], "strides": [2**62, 2**62]}, "overflow"),
    ({"shape": [2**62]}, "overflow"),
    ({"shape": [2], "ndim": -1}, "-1 dims are not supported"),
    ({"shape": [2], "ndim": 65}, "65 dims are not supported"),
    ({"shape": [2], "ndim": 2**31 - 1}, "dims are not supported"),
    ({"shape": None, "ndim": 2}, "2 dims, but no shape"),
    ({"shape": [2], "data": False}, "2 elements, but no data"),
    ({"shape": [2], "dtype": (2, 32, 4)}, "4 lanes"),
    ({"shape": [2], "dtype": (2, 32, 0)}, "0 lanes"),
    ({"shape": [2], "dtype": (2, 8, 1)}, "type code 2, 8 bits"),
    ({"shape": [2], "dtype": (2, 128, 1)}, "128 bits"),
    ({"shape": [2], "dtype": (0, 24, 1)}, "24 bits"),
    ({"shape": [2], "dtype": (3, 64, 1)}, "type code 3"),
    ({"shape": [2], "dtype": (255, 255, 65535)}, "type code 255"),
    ({"shape": [2], "device": (2, 100)}, "there is no CUDA device 100"),
    ({"shape": [2], "device": (2, -1)}, "there is no CUDA device -1"),
    ({"shape": [2], "device": (10, 0)}, "device type 10"),
    ({"shape": [2], "device": (0, 0)}, "device type 0"),
]


@pytest.mark.parametrize(("parts", "message"), HOSTILE, ids=lambda v: str(v)[:40])
@pytest.mark.parametrize("versioned", [False, True])
def test_hostile_capsules_are_refused_and_left_to_their_owner(
    parts: dict[str, Any], message: str, versioned: bool
) -> None:
    made = HandMade(**parts, versioned=versioned)
    with pytest.raises(RuntimeError, match=message):
        torch.from_dlpack(made.capsule)
    assert name_of(made.capsule) == made.name
    assert made.deleted == 0


def test_capsules_of_other_names_and_versions_are_refused() -> None:
    for name in (b"used_dltensor", b"used_dltensor_versioned", b"dltensor2", b"x"):
        made = HandMade([2], name=name)
        with pytest.raises(RuntimeError, match=INVALID):
            torch.from_dlpack(made.capsule)
        assert made.deleted == 0
    for major in (0, 2, 2**32 - 1):
        made = HandMade([2], versioned=True, major=major)
        with pytest.raises(RuntimeError, match=f"DLPack version {major}"):
            torch.from_dlpack(made.capsule)


def test_flags_are_read() -> None:
    with pytest.raises(RuntimeError, match="read-only"):
        torch.from_dlpack(HandMade([2], versioned=True, flags=1).capsule).add_(1)
    torch.from_dlpack(HandMade([2], versioned=True, flags=2).capsule).add_(1)


def test_a_capsule_that_nobody_takes_frees_its_tensor() -> None:
    x = torch.ones(3)
    for options in ({}, {"max_version": (1, 0)}):
        capsule = x.__dlpack__(**options)
        del capsule
        gc.collect()
    renamed = x.__dlpack__()
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    rename(renamed, b"used_dltensor")  # as a consumer does; its struct is the consumer's now
    del renamed
    gc.collect()
    assert x.sum().item() == 3
