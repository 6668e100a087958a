"""Creation: layouts, lengths of ranges, and sizes or values that do not fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch


def test_empty_tensors_have_the_asked_shape_strides_and_dtype() -> None:
    assert torch.empty(2, 3).shape == (2, 3)
    assert torch.empty((0,), dtype=torch.int8).dtype is torch.int8
    assert torch.empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert torch.ones(2, dtype=torch.int32).new_empty(3, 1).dtype is torch.int32


def test_like_keeps_a_dense_layout() -> None:
    x = torch.zeros(2, 3, 4, 5).permute(0, 2, 3, 1)
    for make in (torch.empty_like, torch.zeros_like, torch.ones_like, torch.rand_like):
        assert make(x).stride() == x.stride()
    row_major = torch.zeros_like(x, memory_format=torch.contiguous_format)
    assert row_major.is_contiguous()
    assert torch.zeros_like(torch.zeros(1).expand(5)).stride() == (1,)


@pytest.mark.parametrize(
    ("args", "length"),
    [
        ((5,), 5),
        ((0, 1, 0.1), 10),
        ((2**62, 2**62 + 5, 2), 3),
        ((-(2**63), 2**63 - 1, 2**62), 4),
        ((3, 3), 0),
        ((5, 0, -2), 3),
    ],
)
def test_arange_has_the_exact_length(args: tuple[Any, ...], length: int) -> None:
    assert torch.arange(*args).numel() == length


def test_arange_takes_its_dtype_from_its_arguments() -> None:
    assert torch.arange(3).dtype is torch.int64
    assert torch.arange(3.0).dtype is torch.float32
    assert torch.arange(0, 3, 0.5).dtype is torch.float32
    assert torch.arange(5.5, dtype=torch.int64).tolist() == [0, 1, 2, 3, 4]


def test_linspace_meets_both_ends_exactly() -> None:
    x = torch.linspace(0.1, 0.7, 1001)
    assert x[0].item() == torch.tensor(0.1).item()
    assert x[-1].item() == torch.tensor(0.7).item()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.arange(0, 5, 0), "step must be nonzero"),
        (lambda: torch.arange(0, 5, -1), "inconsistent with step sign"),
        (lambda: torch.arange(math.inf), "unsupported range"),
        (lambda: torch.arange(0, 2.0**70, 1), "possible overflow"),
        (lambda: torch.linspace(0, 1, -1), "number of steps must be non-negative"),
        (lambda: torch.eye(-1), "greater or equal to 0"),
        (lambda: torch.zeros(-2), "negative dimension -2"),
        (lambda: torch.empty(2**40, 2**40), "overflow"),
        (lambda: torch.empty(2**61, dtype=torch.float64), "overflow"),
        (lambda: torch.empty_strided((2,), (2**62,)), "overflow"),
        (lambda: torch.full((2,), 300, dtype=torch.uint8), "cannot be converted to type uint8"),
        (lambda: torch.zeros(2).fill_(1e300), "cannot be converted to type float32"),
        (
            lambda: torch.zeros(2, dtype=torch.int32).fill_(2**31),
            "cannot be converted to type int32",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_device_that_is_missing_is_refused() -> None:
    with pytest.raises(RuntimeError, match="CUDA cannot be used"):
        torch.zeros(2, device="cuda")
