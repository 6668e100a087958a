"""The exact texts of errors that people meet first."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from messages.golden import GOLDEN, report

import rushlight as torch

F = torch.nn.functional

CASES: list[tuple[Callable[[], object], type[Exception], str]] = [
    (
        lambda: torch.ones(2, 3) @ torch.ones(4, 5),
        RuntimeError,
        "matmul: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5). "
        "The last dim of mat1 (3) must equal the first dim of mat2 (4).",
    ),
    (
        lambda: torch.nn.Linear(3, 4)(torch.ones(2, 5)),
        RuntimeError,
        "linear: input (2, 5) has 5 features, but weight (4, 3) takes 3.",
    ),
    (
        lambda: F.embedding(torch.tensor([[0, 1, 5]]), torch.ones(3, 2)),
        IndexError,
        "embedding: index 5 at position (0, 2) is out of range for 3 rows; "
        "valid indices are 0 to 2.",
    ),
    (
        lambda: torch.softmax(torch.ones(3, dtype=torch.int64), 0),
        NotImplementedError,
        "softmax: not implemented for int64. Use input.float(), or pass dtype=float32.",
    ),
    (
        lambda: torch.tensor([True]) - 1,
        NotImplementedError,
        "sub: not implemented for bool. Use ~input to invert a mask, or input.float().",
    ),
    (
        lambda: torch.ones(2, 3) + torch.ones(4),
        RuntimeError,
        "add: shapes (2, 3) and (4,) do not broadcast: dim 1 is 3 in input and 4 in other; "
        "sizes must be equal or 1. The size of tensor a (3) must match the size of tensor b (4) "
        "at non-singleton dimension 1.",
    ),
    (
        lambda: F.softplus(torch.ones(2), "a"),
        TypeError,
        "softplus(): argument 'beta' (position 2) must be float, not str.",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), CASES, ids=[c[2].split(":")[0] for c in CASES])
def test_message(call: Callable[[], object], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == text


def test_mistakes_say_what_golden_txt_holds() -> None:
    said = report()
    assert "\n    nothing\n" not in said
    assert said == GOLDEN.read_text()
