"""The pretended cuDNN convolves, and refuses what the real one would refuse or go wrong with."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_float, c_int, c_int64, c_uint64, c_void_p
from typing import Any

import numpy as np
import pytest
from shim.fake_driver import Driver, fails

BAD_PARAMETER, UNSUPPORTED = 2000, 3000
HANDLE, ENUM, INT64, FLOAT, ADDRESS, MODE, HEURISTICS, DESCRIPTOR = 0, 1, 3, 4, 6, 7, 8, 15
EXACT = 8  # the engine without notes
SIZES = {"x": [1, 2, 3, 4], "w": [2, 2, 2, 2], "y": [1, 2, 2, 3]}


class Cudnn:
    """Makes descriptors out of {attribute: (type, values)}."""

    def __init__(self) -> None:
        self.cuda = Driver()
        self.handle = c_void_p()
        self.cuda("cudnnCreate", byref(self.handle))
        self.cuda("cudnnSetStream", self.handle, None)

    def start(self, kind: int, **attributes: Any) -> c_void_p:
        descriptor = c_void_p()
        self.cuda("cudnnBackendCreateDescriptor", kind, byref(descriptor))
        for name, (type_, values) in attributes.items():
            c_type = {ENUM: c_int, MODE: c_int, HEURISTICS: c_int, INT64: c_int64, FLOAT: c_float}
            array = (c_type.get(type_, c_void_p) * len(values))(*values)
            self.cuda("cudnnBackendSetAttribute", descriptor, int(name[1:]), type_,
                      c_int64(len(values)), array)  # fmt: skip
        return descriptor

    def make(self, kind: int, **attributes: Any) -> c_void_p:
        descriptor = self.start(kind, **attributes)
        self.cuda("cudnnBackendFinalize", descriptor)
        return descriptor

    def tensor(self, number: int, sizes: list[int], **changed: Any) -> c_void_p:
        strides = [int(np.prod(sizes[d + 1 :])) for d in range(len(sizes))]
        given = {
            "_900": (INT64, [4]), "_901": (ENUM, [0]), "_902": (INT64, sizes),
            "_903": (INT64, strides), "_906": (INT64, [number]),
        }  # fmt: skip
        return self.make(17, **given | changed)

    def graph(self, sizes: dict[str, list[int]] = SIZES, **windows: list[int]) -> c_void_p:
        given = {"_102": [1, 1], "_103": [1, 1], "_104": [0, 0], "_105": [0, 0]} | windows
        lists = {name: (INT64, values) for name, values in given.items()}
        convolution = self.make(1, _100=(ENUM, [0]), _101=(MODE, [1]), _106=(INT64, [2]), **lists)
        x, w, y = (self.tensor(i, sizes[name]) for i, name in enumerate("xwy"))
        parts = {"_702": convolution, "_703": w, "_704": x, "_705": y}
        links: dict[str, Any] = {name: (DESCRIPTOR, [part]) for name, part in parts.items()}
        operation = self.make(10, _700=(FLOAT, [1.0]), _701=(FLOAT, [0.0]), **links)
        return self.make(15, _800=(HANDLE, [self.handle]), _801=(DESCRIPTOR, [operation]))

    def plan(self, graph: c_void_p, engine: int = EXACT) -> c_void_p:
        found = self.make(4, _200=(HEURISTICS, [3]), _201=(DESCRIPTOR, [graph]))
        configs = (c_void_p * (engine + 1))(*[self.start(3) for _ in range(engine + 1)])
        count = c_int64()
        self.cuda("cudnnBackendGetAttribute", found, 202, DESCRIPTOR, c_int64(len(configs)),
                  byref(count), configs)  # fmt: skip
        chosen = c_void_p(configs[engine])
        return self.make(5, _400=(HANDLE, [self.handle]), _401=(DESCRIPTOR, [chosen]))

    def run(self, plan: c_void_p, x: int, w: int, y: int, workspace: int, count: int = 3) -> None:
        pack = self.make(16, _1000=(INT64, list(range(count))), _1001=(ADDRESS, [x, w, y]),
                         _1003=(ADDRESS, [workspace]))  # fmt: skip
        self.cuda("cudnnBackendExecute", self.handle, plan, pack)


@pytest.fixture
def cudnn() -> Cudnn:
    return Cudnn()


def memory(cudnn: Cudnn) -> dict[str, int]:
    x, w = np.arange(24, dtype=np.float32), np.ones(16, np.float32)
    to_device, allocate = cudnn.cuda.to_device, cudnn.cuda.allocate
    return {"x": to_device(x), "w": to_device(w), "y": allocate(48), "workspace": allocate(1024)}


def test_it_convolves(cudnn: Cudnn) -> None:
    given = memory(cudnn)
    cudnn.run(cudnn.plan(cudnn.graph()), **given)
    y = cudnn.cuda.to_host(given["y"], 12).reshape(2, 2, 3)
    x = np.arange(24).reshape(2, 3, 4)
    sums = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (1, 2)).sum((0, 3, 4))
    assert y.tolist() == [sums.tolist()] * 2


def test_memory_is_checked(cudnn: Cudnn) -> None:
    plan = cudnn.plan(cudnn.graph())
    for name, size in (("x", 92), ("w", 60), ("y", 44), ("workspace", 500)):
        with fails(5000):  # less than there should be
            cudnn.run(plan, **memory(cudnn) | {name: cudnn.cuda.allocate(size)})
    on_host = np.zeros(24, np.float32)
    with fails(5000):
        cudnn.run(plan, **memory(cudnn) | {"x": on_host.ctypes.data})
    with fails(BAD_PARAMETER):  # misaligned
        cudnn.run(plan, **memory(cudnn) | {"x": cudnn.cuda.allocate(100) + 2})
    with fails(BAD_PARAMETER):
        cudnn.run(plan, **memory(cudnn), count=2)
    with fails(BAD_PARAMETER):
        cudnn.run(c_void_p(16), **memory(cudnn))


@pytest.mark.parametrize(
    "changed",
    [
        {"_903": (INT64, [24, 12, 0, 1])},
        {"_902": (INT64, [1, 2, 3])},
        {"_901": (ENUM, [1])},
        {"_901": (INT64, [0])},
        {"_900": (INT64, [2])},
        {"_101": (MODE, [1])},
    ],
)
def test_wrong_tensors_are_refused(cudnn: Cudnn, changed: dict[str, Any]) -> None:
    with fails(BAD_PARAMETER):
        cudnn.tensor(1, [1, 2, 3, 4], **changed)


def test_wrong_convolutions_are_refused(cudnn: Cudnn) -> None:
    with fails(BAD_PARAMETER):
        cudnn.graph(_103=[1, 2])  # the output has another size then
    with fails(BAD_PARAMETER):
        cudnn.graph(_105=[0, 0, 0])
    with fails(BAD_PARAMETER):
        cudnn.graph(SIZES | {"w": [3, 2, 2, 2]})
    with fails(UNSUPPORTED):
        cudnn.graph(SIZES | {"y": [1, 2, 1, 3]}, _103=[10, 1])
    with fails(BAD_PARAMETER):
        cudnn.cuda("cudnnBackendFinalize", cudnn.start(17))


def test_engines_that_are_not_to_be_taken(cudnn: Cudnn, capfd: Any) -> None:
    with fails(BAD_PARAMETER):
        cudnn.run(cudnn.plan(cudnn.graph(), 0), **memory(cudnn))
    assert "an engine that it promised not to take" in capfd.readouterr().err
    with fails(UNSUPPORTED):
        cudnn.plan(cudnn.graph(), 5)


def test_handles_are_checked(cudnn: Cudnn) -> None:
    text = ctypes.create_string_buffer(100)
    with fails(1001):
        cudnn.cuda("cudnnSetStream", c_void_p(16), None)
    with fails(BAD_PARAMETER):
        cudnn.start(16, _1000=(ADDRESS, [1]))
    cudnn.cuda.library.cudnnGetLastErrorString(text, c_uint64(100))
    assert text.value == b"an attribute has another type"
