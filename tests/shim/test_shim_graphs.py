"""What the pretended driver forbids around captures, as the real one documents it."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

import pytest
from shim.fake_driver import CudaError, Driver

UNSUPPORTED, INVALIDATED, UNJOINED, ISOLATION, CAPTURED_EVENT = 900, 901, 904, 905, 907
GLOBAL, RELAXED = 0, 2


@pytest.fixture
def driver() -> Driver:
    return Driver()


def stream(driver: Driver) -> c_void_p:
    made = c_void_p()
    driver("cuStreamCreateWithPriority", byref(made), 1, 0)
    return made


def event(driver: Driver) -> c_void_p:
    made = c_void_p()
    driver("cuEventCreate", byref(made), 2)
    return made


@pytest.fixture
def capturing(driver: Driver) -> Iterator[c_void_p]:
    made = stream(driver)
    driver("cuStreamBeginCapture_v2", made, GLOBAL)
    yield made
    driver.library.cuStreamEndCapture(made, byref(c_void_p()))


def end(driver: Driver, stream: c_void_p) -> c_void_p:
    graph = c_void_p()
    driver("cuStreamEndCapture", stream, byref(graph))
    return graph


def refused(driver: Driver, code: int, function: str, *arguments: object) -> None:
    with pytest.raises(CudaError) as error:
        driver(function, *arguments)
    assert error.value.code == code


def test_work_is_recorded_and_done_by_each_launch(driver: Driver, capturing: c_void_p) -> None:
    memory = driver.allocate(4)
    driver("cuMemsetD8Async", c_uint64(memory), 1, c_size_t(4), None)
    driver("cuMemsetD8Async", c_uint64(memory), 7, c_size_t(4), capturing)
    graph, exec_graph, count = end(driver, capturing), c_void_p(), c_size_t()
    driver("cuGraphGetNodes", graph, None, byref(count))
    assert count.value == 1
    driver("cuGraphInstantiateWithFlags", byref(exec_graph), graph, c_uint64(0))
    for expected in (1, 7):
        seen = (c_int * 1)()
        driver("cuMemcpyDtoHAsync_v2", seen, c_uint64(memory), c_size_t(4), None)
        assert seen[0] == expected * 0x01010101
        driver("cuGraphLaunch", exec_graph, None)
    driver("cuGraphExecDestroy", exec_graph)
    driver("cuGraphDestroy", graph)
    driver.free(memory)


@pytest.mark.parametrize("function", ["cuStreamSynchronize", "cuStreamQuery"])
def test_waiting_spoils_a_capture(driver: Driver, capturing: c_void_p, function: str) -> None:
    refused(driver, UNSUPPORTED, function, capturing)
    refused(driver, INVALIDATED, "cuStreamEndCapture", capturing, byref(c_void_p()))


def test_memory_is_allocated_in_relaxed_mode_only(driver: Driver, capturing: c_void_p) -> None:
    memory, mode = c_uint64(), c_int(RELAXED)
    driver("cuThreadExchangeStreamCaptureMode", byref(mode))
    assert mode.value == GLOBAL
    driver("cuMemAlloc_v2", byref(memory), c_size_t(16))
    driver("cuThreadExchangeStreamCaptureMode", byref(mode))
    refused(driver, UNSUPPORTED, "cuMemFree_v2", memory)
    refused(driver, INVALIDATED, "cuStreamEndCapture", capturing, byref(c_void_p()))
    driver("cuMemFree_v2", memory)


def test_other_streams_take_part_by_events_and_come_back(
    driver: Driver, capturing: c_void_p
) -> None:
    other, point, back = stream(driver), event(driver), event(driver)
    driver("cuEventRecord", point, capturing)
    driver("cuStreamWaitEvent", other, point, 0)
    refused(driver, CAPTURED_EVENT, "cuEventSynchronize", point)
    memory = driver.allocate(4)
    driver("cuMemsetD8Async", c_uint64(memory), 7, c_size_t(4), other)
    driver("cuEventRecord", back, other)
    driver("cuMemsetD8Async", c_uint64(memory), 8, c_size_t(4), other)
    driver("cuStreamWaitEvent", capturing, back, 0)
    refused(driver, UNJOINED, "cuStreamEndCapture", capturing, byref(c_void_p()))


def test_a_capture_cannot_wait_for_work_outside_of_it(driver: Driver, capturing: c_void_p) -> None:
    point = event(driver)
    driver("cuEventRecord", point, None)
    refused(driver, ISOLATION, "cuStreamWaitEvent", capturing, point, 0)


def test_pageable_memory_cannot_be_captured(driver: Driver, capturing: c_void_p) -> None:
    memory, host = driver.allocate(4), (c_int * 1)()
    refused(
        driver, UNSUPPORTED, "cuMemcpyHtoDAsync_v2", c_uint64(memory), host, c_size_t(4), capturing
    )


def test_the_default_stream_captures_nothing(driver: Driver) -> None:
    refused(driver, UNSUPPORTED, "cuStreamBeginCapture_v2", None, GLOBAL)
