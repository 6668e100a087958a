"""The pretended cuSOLVER and cuBLAS refuse what the real ones would refuse or go wrong with."""

from __future__ import annotations

from ctypes import byref, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np
import pytest
from shim.fake_driver import Driver, fails

REFUSED = 3
LOWER, LEFT, AS_IS, ANY_DIAGONAL = 0, 0, 0, 0


@pytest.fixture
def cuda() -> Driver:
    return Driver()


@pytest.fixture
def solver(cuda: Driver) -> c_void_p:
    handle = c_void_p()
    cuda("cusolverDnCreate", byref(handle))
    cuda("cusolverDnSetStream", handle, None)
    return handle


def address(memory: int) -> c_uint64:
    return c_uint64(memory)


def factor(cuda: Driver, solver: c_void_p, n: int = 2, **changed: Any) -> tuple[np.ndarray, int]:
    """The Cholesky factor of [[4, 2], [2, 5]], with some of the arguments changed."""
    size = c_int()
    a = cuda.to_device(np.array([4.0, 2.0, 2.0, 5.0]))
    cuda("cusolverDnDpotrf_bufferSize", solver, LOWER, n, address(a), n, byref(size))
    given = {
        "a": a, "lda": n, "work": cuda.allocate(8 * size.value), "lwork": size.value,
        "info": cuda.allocate(4),
    } | changed  # fmt: skip
    cuda(
        "cusolverDnDpotrf", solver, LOWER, n, address(given["a"]), given["lda"],
        address(given["work"]), given["lwork"], address(given["info"]),
    )  # fmt: skip
    return cuda.to_host(a, 4, np.float64), cuda.to_host(given["info"], 1, np.int32)[0]


def test_it_factors(cuda: Driver, solver: c_void_p) -> None:
    a, info = factor(cuda, solver)
    assert a[[0, 1, 3]].tolist() == [2, 1, 2] and info == 0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lda": 1}, "a leading dimension is too small"),
        ({"lwork": 3}, "there is not enough room to work"),
        ({"info": 64}, "far from every allocation begin 4 bytes"),
        ({"n": 0}, "a size is not positive"),
    ],
)
def test_wrong_arguments_are_refused(
    cuda: Driver, solver: c_void_p, capfd: Any, changed: dict[str, int], said: str
) -> None:
    with fails(REFUSED):
        factor(cuda, solver, **changed)
    assert f"cuda shim: potrf: {said}" in capfd.readouterr().err


def test_memory_must_be_as_large_as_it_is_said_to_be(cuda: Driver, solver: c_void_p) -> None:
    with fails(REFUSED):
        factor(cuda, solver, a=cuda.allocate(24))
    with fails(REFUSED):
        factor(cuda, solver, work=cuda.allocate(8))


def test_memory_of_the_host_is_refused(cuda: Driver, solver: c_void_p) -> None:
    on_host = np.array([4.0, 2.0, 2.0, 5.0])
    with fails(REFUSED):
        factor(cuda, solver, a=on_host.ctypes.data)


def test_what_is_no_handle_is_refused(cuda: Driver) -> None:
    with fails(REFUSED):
        factor(cuda, c_void_p(16))


def test_batches_are_found_by_addresses_on_the_device(cuda: Driver) -> None:
    handle, one = c_void_p(), c_double(1)
    cuda("cublasCreate_v2", byref(handle))
    matrices = [cuda.to_device(np.array([2.0, 1.0, 0.0, 4.0])) for _ in range(2)]
    sides = [cuda.to_device(np.array([2.0, 9.0])) for _ in range(2)]

    def solve(a: int, b: int) -> None:
        cuda(
            "cublasDtrsmBatched", handle, LEFT, LOWER, AS_IS, ANY_DIAGONAL, 2, 1, byref(one),
            address(a), 2, address(b), 2, 2,
        )  # fmt: skip

    def addresses(memory: list[int]) -> np.ndarray:
        return np.array(memory, dtype=np.uint64)

    on_host = addresses(matrices)
    with fails(REFUSED):
        solve(on_host.ctypes.data, cuda.to_device(addresses(sides)))
    solve(cuda.to_device(addresses(matrices)), cuda.to_device(addresses(sides)))
    for side in sides:
        assert cuda.to_host(side, 2, np.float64).tolist() == [1, 2]


def test_work_on_the_host_is_asked_for(cuda: Driver, solver: c_void_p) -> None:
    real, n = 1, c_int64(1)
    on_device, on_host = c_size_t(), c_size_t()
    a, b = (cuda.to_device(np.array([x])) for x in (4.0, 8.0))
    pivots, info = cuda.to_device(np.array([1], dtype=np.int64)), cuda.allocate(4)
    system = [
        LOWER, n, n, real, address(a), n, address(pivots), real, address(b), n
    ]  # fmt: skip
    cuda("cusolverDnXsytrs_bufferSize", solver, *system, byref(on_device), byref(on_host))
    work = cuda.allocate(on_device.value)
    host_work = np.empty(on_host.value, dtype=np.uint8)
    with fails(REFUSED):
        cuda("cusolverDnXsytrs", solver, *system, address(work), on_device,
             c_void_p(host_work.ctypes.data), c_size_t(1), address(info))  # fmt: skip
    cuda("cusolverDnXsytrs", solver, *system, address(work), on_device,
         c_void_p(host_work.ctypes.data), on_host, address(info))  # fmt: skip
    assert cuda.to_host(b, 1, np.float64)[0] == 2
