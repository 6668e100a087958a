"""Formulas on CUDA over tensors that do not lie in one order, in sizes of several rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as rl

pytestmark = pytest.mark.skipif(not rl.cuda.is_available(), reason="there is neither GPU nor shim")

LAYOUTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Callable[[Any], Any]]] = {
    "a row for all": ((37, 129), (129,), lambda t: t),
    "a column for all": ((37, 129), (37, 1), lambda t: t),
    "transposed": ((61, 67), (67, 61), lambda t: t.t()),
    "one element in three": ((1025,), (3075,), lambda t: t[::3]),
    "backwards by rows": ((5, 41, 7), (7, 41, 5), lambda t: t.permute(2, 1, 0)),
    "both broadcast": ((1, 33, 1, 9), (31, 1, 3, 1), lambda t: t),
    "sizes of one": ((1, 1, 4097), (4097, 1, 1), lambda t: t),
    "misaligned": ((2048,), (2049,), lambda t: t[1:]),
}


@pytest.mark.parametrize("dtype", [rl.float32, rl.float16, rl.int64, rl.complex64], ids=str)
@pytest.mark.parametrize("name", LAYOUTS)
def test_any_layout_gives_what_the_cpu_gives(name: str, dtype: Any) -> None:
    first, second, view = LAYOUTS[name]
    a = (rl.arange(int(rl.tensor(first).prod())) % 101).reshape(first).to(dtype)
    b = (rl.arange(int(rl.tensor(second).prod())) % 89).reshape(second).to(dtype)
    result = a.cuda() + view(b.cuda())
    assert rl.equal(result.cpu(), a + view(b))


def test_a_view_is_written_in_place_and_the_rest_stays() -> None:
    x = rl.zeros(70, 66, device="cuda")
    x.t()[1::2, :69] += rl.arange(69.0, device="cuda")
    expected = rl.zeros(70, 66)
    expected.t()[1::2, :69] += rl.arange(69.0)
    assert rl.equal(x.cpu(), expected)
