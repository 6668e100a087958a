"""Attention on CUDA in the sizes that take other paths of its kernels: several tiles of queries and
of keys and parts of them, heads of other sizes, rows that vectors cannot read, masks, dropout.
"""

from __future__ import annotations

from typing import Any

import pytest
from cuda.numbers import random

import rushlight as rl
from rushlight.nn import functional as F

pytestmark = pytest.mark.skipif(not rl.cuda.is_available(), reason="there is neither GPU nor shim")

TOLERANCES = {rl.float64: 1e-11, rl.float32: 2e-5, rl.float16: 4e-3, rl.bfloat16: 3e-2}


def triple(L: int, S: int, E: int, V: int, *batch: int, dtype: Any = rl.float32) -> list[Any]:
    sizes = [(*batch, L, E), (*batch, S, E), (*batch, S, V)]
    return [random(*size, dtype=dtype, seed=k) for k, size in enumerate(sizes)]


def run(device: str, inputs: list[Any], dtype: Any, layout: Any, how: dict[str, Any]) -> list[Any]:
    """The result, and the gradients of all inputs; a fourth one is a mask."""
    points = [t.to(device, dtype).detach().requires_grad_() for t in inputs]
    how = {name: t.to(device) if isinstance(t, rl.Tensor) else t for name, t in how.items()}
    rl.manual_seed(7)
    result = F.scaled_dot_product_attention(*[layout(t) for t in points], **how)
    weights = random(*result.shape, dtype=inputs[0].dtype, seed=9).to(device, dtype)
    return [result, *rl.autograd.grad(result, points, weights)]


def check(*inputs: Any, layout: Any = lambda t: t, **how: Any) -> None:
    """Results and gradients against those of the CPU in float64, with the same numbers drawn."""
    dtype = inputs[0].dtype
    expected = run("cpu", list(inputs), rl.float64, layout, how)
    mine = run("cuda", list(inputs), dtype, layout, how)
    for a, b in zip(mine, expected, strict=True):
        assert a.device.type == "cuda"
        assert a.dtype is dtype
        assert a.shape == b.shape
        if a.numel() > 0:
            error = ((a.cpu().double() - b).abs() / (b.abs() + b.abs().max() / 4 + 0.1)).max()
            assert error.item() <= 4 * TOLERANCES[dtype]


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(("L", "S"), [(64, 64), (65, 131), (130, 63), (3, 5)])
def test_tiles_and_parts_of_them(L: int, S: int, dtype: Any, is_causal: bool) -> None:
    check(*triple(L, S, 16, 16, 2, dtype=dtype), is_causal=is_causal)


@pytest.mark.parametrize(
    ("dtype", "E", "V"),
    [
        (rl.float32, 64, 64),
        (rl.float32, 1, 40),
        (rl.float32, 128, 128),
        (rl.float32, 256, 256),
        (rl.float64, 64, 64),
        (rl.float16, 64, 64),
        (rl.bfloat16, 80, 33),
        (rl.bfloat16, 128, 128),
        (rl.float16, 144, 144),  # more than tensor cores take
    ],
)
def test_heads_of_many_sizes(dtype: Any, E: int, V: int) -> None:
    check(*triple(35, 70, E, V, dtype=dtype), is_causal=True)


@pytest.mark.parametrize(("dtype", "E"), [(rl.float32, 400), (rl.float64, 128), (rl.float64, 200)])
def test_heads_that_do_not_fit_go_by_ops(dtype: Any, E: int) -> None:
    check(*triple(17, 20, E, 5, dtype=dtype))


def test_few_queries_of_many_keys() -> None:
    check(*triple(1, 300, 8, 8, 2))
    check(*triple(1, 300, 8, 8, 2), dropout_p=0.3)


@pytest.mark.parametrize(
    "sizes", [(66, 70), (1, 70), (66, 1), (2, 3, 66, 70), (3, 1, 70), (2, 1, 1, 1)]
)
def test_masks(sizes: tuple[int, ...]) -> None:
    inputs = triple(66, 70, 8, 8, 2, 3)
    check(*inputs, attn_mask=random(*sizes) > -0.3)
    check(*inputs, random(*sizes))
    check(*inputs, attn_mask=random(*sizes), is_causal=True)


def test_queries_that_see_nothing() -> None:
    mask = rl.ones(70, 70, dtype=rl.bool).tril(-3)
    check(*triple(70, 70, 8, 8), attn_mask=mask)
    check(*triple(70, 70, 8, 8), attn_mask=rl.zeros(70, 70, dtype=rl.bool))


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("dtype", "S"), [(rl.float32, 66), (rl.float64, 35), (rl.float16, 70)])
def test_dropout_draws_what_the_cpu_draws(dtype: Any, S: int, is_causal: bool) -> None:
    check(*triple(68, S, 8, 8, 2, dtype=dtype), dropout_p=0.4, is_causal=is_causal)
    # In a head that takes the smallest tiles.
    check(*triple(20, S, 250, 3, dtype=dtype), dropout_p=0.4)


def test_the_next_draw_is_the_same_by_kernel_and_by_ops() -> None:
    for sizes in ((20, 30, 8, 8, 2), (3, 300, 8, 8, 2)):
        after = []
        for device in ("cpu", "cuda"):
            rl.manual_seed(3)
            F.scaled_dot_product_attention(*(t.to(device) for t in triple(*sizes)), dropout_p=0.5)
            after.append(rl.rand(2).tolist())
        assert after[0] == after[1]


def heads_within_positions(t: Any) -> Any:
    return t.transpose(-2, -3).contiguous().transpose(-2, -3)


@pytest.mark.parametrize("dtype", [rl.float32, rl.bfloat16])
@pytest.mark.parametrize(
    "layout",
    [
        heads_within_positions,
        lambda t: t.mT.contiguous().mT,
        lambda t: F.pad(t, (1, 0))[..., 1:],
        lambda t: t.expand(2, *t.shape),
    ],
)
def test_layouts(layout: Any, dtype: Any) -> None:
    check(*triple(20, 70, 16, 24, 2, 3, dtype=dtype), layout=layout)
    result = F.scaled_dot_product_attention(
        *[heads_within_positions(t.cuda()) for t in triple(5, 6, 8, 8, 2, 3)]
    )
    assert result.transpose(1, 2).is_contiguous()  # joining heads is a view


def test_batches_broadcast_and_heads_share() -> None:
    check(random(3, 1, 20, 8), random(2, 33, 8, seed=1), random(33, 8, seed=2))
    query, key, value = (
        random(2, 6, 20, 8),
        random(2, 3, 33, 8, seed=1),
        random(2, 3, 33, 4, seed=2),
    )
    check(query, key, value, enable_gqa=True, is_causal=True)
    check(query, key[:, :2], value, attn_mask=random(6, 20, 33), enable_gqa=True)


def test_second_gradients_and_some_gradients() -> None:
    def second(device: str) -> list[Any]:
        rl.manual_seed(1)
        points = [t.to(device).requires_grad_() for t in triple(5, 6, 4, 4, dtype=rl.float64)]
        result = F.scaled_dot_product_attention(*points, dropout_p=0.3)
        first = rl.autograd.grad(result.square().sum(), points, create_graph=True)
        return list(rl.autograd.grad(sum(g.square().sum() for g in first), points))

    for mine, reference in zip(second("cuda"), second("cpu"), strict=True):
        rl.testing.assert_close(mine.cpu(), reference)
    for wanted in range(3):
        points = [t.cuda() for t in triple(20, 70, 8, 8)]
        reference = [t.cpu() for t in points]
        for each in (points, reference):
            each[wanted].requires_grad_()
            F.scaled_dot_product_attention(*each, is_causal=True).square().sum().backward()
            assert [t.grad is not None for t in each] == [k == wanted for k in range(3)]
        rl.testing.assert_close(points[wanted].grad.cpu(), reference[wanted].grad)


def test_the_scores_are_not_in_memory() -> None:
    length = 400
    points = [t.cuda().requires_grad_() for t in triple(length, length, 8, 8)]
    rl.cuda.reset_peak_memory_stats()
    before = rl.cuda.memory_allocated()
    F.scaled_dot_product_attention(*points, is_causal=True).sum().backward()
    assert rl.cuda.max_memory_allocated() - before < length * length * 4 / 4


def test_nothing_and_samples_of_vmap() -> None:
    for sizes in ((0, 3, 2, 2), (3, 0, 2, 2), (3, 2, 0, 2), (3, 2, 2, 0)):
        check(*triple(*sizes, 2, dtype=rl.float64))
    inputs = [t.cuda() for t in triple(9, 10, 8, 8, 3)]
    mapped = rl.func.vmap(F.scaled_dot_product_attention)(*inputs)
    rl.testing.assert_close(mapped, F.scaled_dot_product_attention(*inputs))
