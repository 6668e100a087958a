"""New tensors without values: shape, strides, dtype and the arguments that all factories share."""

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch

FACTORIES = [torch.empty, torch.zeros, torch.ones, torch.rand, torch.randn]


def test_empty_has_shape_and_dtype() -> None:
    x = torch.empty(2, 3, dtype=torch.int16)
    assert x.shape == (2, 3)
    assert x.dtype is torch.int16
    assert x.is_contiguous()
    assert torch.empty(()).numel() == 1
    assert torch.empty(2, 0).shape == (2, 0)


def test_empty_like_keeps_dense_strides() -> None:
    x = torch.zeros(2, 3, 4, dtype=torch.float64).permute(2, 0, 1)
    like = torch.empty_like(x)
    assert like.shape == x.shape
    assert like.stride() == x.stride()
    assert like.dtype is torch.float64
    assert torch.empty_like(x, dtype=torch.int8).dtype is torch.int8
    assert torch.empty_like(torch.zeros(1).expand(5)).stride() == (1,)


def test_empty_strided_has_the_strides() -> None:
    x = torch.empty_strided((2, 3), (1, 2))
    assert x.stride() == (1, 2)
    assert x.untyped_storage().nbytes() == 24
    with pytest.raises(RuntimeError, match="empty_strided"):
        torch.empty_strided((2, 3), (1,))
    with pytest.raises(RuntimeError, match="empty_strided"):
        torch.empty_strided((2,), (-1,))


def test_new_empty_keeps_the_dtype() -> None:
    x = torch.zeros(2, dtype=torch.float16)
    assert x.new_empty(3).dtype is torch.float16
    assert x.new_empty((2, 2), dtype=torch.bool).dtype is torch.bool


@pytest.mark.parametrize("factory", FACTORIES, ids=lambda f: f.__name__)
def test_factories_share_their_arguments(factory: Callable[..., Any]) -> None:
    assert factory(2, 3).shape == factory((2, 3)).shape == factory([2, 3]).shape == (2, 3)
    x = factory(2, dtype=torch.float64, device="cpu", requires_grad=True)
    assert x.dtype is torch.float64
    assert x.requires_grad
    assert x.is_leaf
    with pytest.raises(RuntimeError, match=factory.__name__):
        factory(-1)
    with pytest.raises(TypeError, match=factory.__name__):
        factory("2")


def test_the_default_dtype_is_that_of_new_floats() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert (
            torch.ones(1).dtype
            is torch.tensor(1.5).dtype
            is torch.arange(1.5).dtype
            is torch.float64
        )
    finally:
        torch.set_default_dtype(torch.float32)
