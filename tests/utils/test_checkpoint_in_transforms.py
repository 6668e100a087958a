"""Checkpointed regions inside vmap and the transforms of torch.func."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight import _C, Tensor
from rushlight.func import grad, hessian, jacrev, jvp, vmap
from rushlight.utils.checkpoint import checkpoint


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def per_sample(f: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """Transforms of a function of one sample (4,) and weights (4, 4)."""
    over = (0, None)

    def total(x: Tensor, w: Tensor) -> Tensor:
        return f(x, w).sum()

    return {
        "vmap": vmap(f, over),
        "grad": vmap(grad(total), over),
        "grad of weights": vmap(grad(total, argnums=1), over),
        "grad of vmap": grad(lambda x, w: vmap(f, over)(x, w).sum(), argnums=1),
        "jacrev": vmap(jacrev(f), over),
        "second": vmap(jacrev(jacrev(f)), over),
        "hessian": vmap(hessian(total), over),
        "jvp": lambda x, w: jvp(lambda x: vmap(f, over)(x, w), (x,), (x.cos(),)),
        "reverse over forward": grad(
            lambda x, w: jvp(lambda x: vmap(f, over)(x, w), (x,), (x,))[1].sum()
        ),
        "nested": vmap(lambda x, w: vmap(lambda y: f(y * x, w))(w), over),
    }


@pytest.mark.parametrize("name", per_sample(torch.sin))
def test_regions_inside_transforms(name: str) -> None:
    def f(x: Tensor, w: Tensor) -> Tensor:
        return ((x @ w).sin() * x).exp()

    def in_region(x: Tensor, w: Tensor) -> Tensor:
        return checkpoint(f, x, w, use_reentrant=False)

    x, w = torch.randn(3, 4, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)
    expected, found = per_sample(f)[name](x, w), per_sample(in_region)[name](x, w)
    torch.testing.assert_close(found, expected)


def test_backward_through_a_region_after_its_vmap_has_ended() -> None:
    w = torch.randn(4, requires_grad=True)
    x = torch.randn(3, 4, requires_grad=True)
    runs = []

    def sample(x: Tensor, y: Tensor) -> Tensor:
        def region(x: Tensor) -> Tensor:
            runs.append(x.shape)
            return ((x * w).exp() * y).sin()  # y is of the sample, and captured

        return checkpoint(region, x, use_reentrant=False)

    vmap(sample)(x, x.detach()).sum().backward()
    assert runs == [(4,), (4,)]
    expected = torch.autograd.grad(((x * w).exp() * x.detach()).sin().sum(), (x, w))
    torch.testing.assert_close((x.grad, w.grad), expected)


def test_regions_inside_vmap_repeat_the_numbers_of_each_sample() -> None:
    x = torch.ones(3, 50, requires_grad=True)

    def sample(x: Tensor) -> Tensor:
        return checkpoint(
            lambda x: torch.nn.functional.dropout(x, 0.5).exp(), x, use_reentrant=False
        )

    y = vmap(sample, randomness="different")(x)
    y.sum().backward()
    kept = y.detach() != 1
    assert not torch.equal(kept[0], kept[1])
    assert torch.equal(x.grad != 0, kept)


def test_memory_of_regions_inside_transforms_is_given_back() -> None:
    def deep(x: Tensor) -> Tensor:
        for _ in range(20):
            x = x.sin()
        return x

    def live(f: Callable[[Tensor], Tensor]) -> int:
        x = torch.ones(8, 1 << 14, requires_grad=True)
        before = _C._memory_stats()["allocated"]
        y = vmap(f)(x)
        kept = _C._memory_stats()["allocated"] - before
        y.sum().backward()
        return kept

    assert live(lambda x: checkpoint(deep, x, use_reentrant=False)) < live(deep) / 5


def test_a_sample_that_is_written_before_backward_is_noticed() -> None:
    x = torch.ones(3, 4)
    w = torch.ones(4, requires_grad=True)

    def sample(x: Tensor) -> Tensor:
        y = x * 1
        out = checkpoint(lambda y: (y * w).exp(), y, use_reentrant=False)
        y.add_(1)
        return out

    y = vmap(sample)(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
