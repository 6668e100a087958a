"""Levels of transforms belong to a thread: transforms in several at once do not meet."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import rushlight as torch
from rushlight import Tensor, func

CALLS: dict[str, Callable[[Tensor], Tensor]] = {
    "vmap of grad": func.vmap(func.grad(lambda x: (x.sin() ** 2).sum())),
    "hessian": func.hessian(lambda x: (x**3).sum()),
    "jacfwd": func.jacfwd(lambda x: x.exp() * x.sum()),
    "jacrev": func.jacrev(lambda x: x.exp() * x.sum()),
}


@pytest.mark.parametrize("name", CALLS)
def test_threads_at_once_give_what_one_gives(name: str) -> None:
    arguments = [torch.randn(n % 3 + 2, n % 4 + 1) for n in range(24)]
    expected = [CALLS[name](x) for x in arguments]
    with ThreadPoolExecutor(8) as pool:
        for found, one in zip(pool.map(CALLS[name], arguments), expected, strict=True):
            assert torch.equal(found, one)


def test_a_level_is_not_open_in_another_thread() -> None:
    inside, leave = threading.Event(), threading.Event()
    found: list[Tensor] = []

    def wait(x: Tensor) -> Tensor:
        inside.set()
        leave.wait(10)
        return x + torch.ones(())

    held = threading.Thread(target=lambda: found.append(func.vmap(wait)(torch.zeros(3))))
    held.start()
    assert inside.wait(10)
    try:
        assert torch.rand(3).shape == (3,)  # vmap of this thread would refuse to draw
        assert func.vmap(torch.sum)(torch.ones(2, 5)).tolist() == [5, 5]
    finally:
        leave.set()
        held.join()
    assert found[0].tolist() == [1, 1, 1]


def test_an_error_in_one_thread_leaves_no_level_there_or_elsewhere() -> None:
    def fail(x: Tensor) -> Tensor:
        raise KeyError("stop")

    def both(x: Tensor) -> Tensor:
        with pytest.raises(KeyError):
            func.vmap(func.jacfwd(fail))(x)
        return func.vmap(torch.sum)(x) + torch.rand(x.shape[0]) * 0

    with ThreadPoolExecutor(4) as pool:
        for sums in pool.map(both, [torch.ones(2, 3)] * 16):
            assert sums.tolist() == [3, 3]


def test_dual_levels_of_threads_are_their_own() -> None:
    from rushlight.autograd import forward_ad

    def slope(x: Tensor) -> Tensor:
        with forward_ad.dual_level():
            tangent = forward_ad.unpack_dual(forward_ad.make_dual(x, x) ** 2).tangent
            assert tangent is not None
            return tangent

    values = [torch.full((3,), float(n)) for n in range(32)]
    with ThreadPoolExecutor(8) as pool:
        for n, tangent in enumerate(pool.map(slope, values)):
            assert tangent.tolist() == [2.0 * n * n] * 3
