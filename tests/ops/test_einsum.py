"""einsum: every form of its arguments, and any order of contraction, against NumPy."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from ops.matrix import directional_check, weighted_sum

import rushlight as torch
from rushlight import testing

rng = np.random.default_rng(11)

EQUATIONS = {
    "i->": [(4,)],
    "ij->ji": [(3, 4)],
    "ii->i": [(3, 3)],
    "ii": [(3, 3)],
    "iji->j": [(3, 4, 3)],
    "ij,jk": [(2, 3), (3, 4)],
    "ij,ij->": [(2, 3), (2, 3)],
    "i,j->ji": [(2,), (3,)],
    "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
    "bhqd,bhkd->bhqk": [(2, 3, 4, 5), (2, 3, 6, 5)],
    "...ij,...jk->...ik": [(2, 1, 3, 4), (5, 4, 2)],
    "i...->...": [(2, 3, 4)],
    "...,...": [(2, 3), (3,)],
    "ij,jk,kl->il": [(2, 3), (3, 4), (4, 5)],
    "ea,fb,abcd,gc,hd->efgh": [(2, 3), (3, 2), (3, 2, 4, 2), (2, 4), (3, 2)],
    "a,b,c,abc->": [(2,), (3,), (4,), (2, 3, 4)],
    "ab,ab,ab,b->a": [(2, 3), (2, 3), (2, 3), (3,)],
    "ij,kl,mn->": [(2, 3), (2, 2), (3, 1)],
    "Zz, zZ -> Z": [(2, 3), (3, 2)],
}


def operands_of(equation: str) -> list[np.ndarray]:
    return [rng.normal(size=shape) for shape in EQUATIONS[equation]]


def check(equation: str, operands: list[np.ndarray]) -> None:
    result = torch.einsum(equation, *map(torch.tensor, operands))
    np.testing.assert_allclose(result.numpy(), np.einsum(equation, *operands), rtol=1e-10)


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_values_in_any_order_of_contraction(equation: str, enabled: bool) -> None:
    with torch.backends.opt_einsum.flags(enabled=enabled):
        check(equation, operands_of(equation))


@pytest.mark.parametrize("equation", ["ij,jk,kl->il", "ab,ab,ab,b->a", "...ij,...jk->...ik"])
def test_gradients(equation: str) -> None:
    points = [torch.tensor(a) for a in operands_of(equation)]
    directional_check(lambda t: weighted_sum([torch.einsum(equation, *t)]), points, 1e-6)


def test_an_ellipsis_that_the_output_lacks_is_summed() -> None:
    a, b, c = (torch.randn(shape) for shape in ((2, 4), (3, 4), (4,)))
    expected = torch.einsum("ax,bx,x->ab", a, b, c)
    testing.assert_close(torch.einsum("a...,b...,...->ab", a, b, c), expected)


def test_lists_of_numbers_and_a_list_of_operands() -> None:
    a, b = torch.randn(2, 3, 4), torch.randn(5, 4, 3)
    expected = torch.einsum("...ij,...ji->...i", a[:, None], b)
    result = torch.einsum(a[:, None], [..., 0, 1], b, [..., 1, 0], [..., 0])
    testing.assert_close(result, expected)
    testing.assert_close(torch.einsum("aij,bjk->abik", [a, b]), torch.einsum("aij,bjk->abik", a, b))
    testing.assert_close(torch.einsum(a, [0, 1, 2]), a)


def test_a_large_chain_takes_the_cheap_order() -> None:
    # From left to right the first product would have 4e8 elements.
    a, b, c = torch.ones(20_000, 1), torch.ones(1, 20_000), torch.ones(20_000, 1)
    assert torch.einsum("ij,jk,kl->il", a, b, c).sum().item() == 4e8


def test_sums_over_one_element_are_products_that_promote() -> None:
    a, b = torch.ones(1, 3, 1, dtype=torch.int8), torch.ones(2, 1, 1)
    assert torch.einsum("ijk,lkj->ijl", a[:, :1], b).dtype == torch.float32
    assert torch.einsum("ik,ki->i", a[0], a[:, :, 0].short()).dtype == torch.int16
    assert torch.einsum("ij->i", torch.ones(2, 1, dtype=torch.bool)).dtype == torch.int64
    many = torch.full((3,), 100, dtype=torch.int8)
    assert torch.einsum("i,j->i", torch.ones(1), many > 0).tolist() == [3]
    assert torch.einsum("i,j->i", many[:1], many).tolist() == [30000]
    assert torch.einsum("ij,jkm->ik", many[None, :1], many[None, None]).tolist() == [[30000]]
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.einsum("ijk,jl->il", a, torch.ones(3, 2, dtype=torch.int32))


def test_a_path_is_checked() -> None:
    a = torch.ones(2, 2)
    for path in ([0], [0, 1, 0, 5], [0, 0, 0, 1], [-1, 0, 0, 1]):
        with pytest.raises(RuntimeError, match="path names|must name"):
            torch._C.einsum("ij,jk,kl->il", [a, a, a], path)


def test_no_operands_are_a_value_error() -> None:
    with pytest.raises(ValueError, match="at least one operand"):
        torch.einsum("", [])


def test_settings_of_the_order() -> None:
    backend = torch.backends.opt_einsum
    assert backend.enabled
    with backend.flags(enabled=False):
        assert not backend.enabled
    assert backend.enabled
    assert backend.is_available() == (importlib.util.find_spec("opt_einsum") is not None)
    with pytest.raises(ValueError, match="strategy"):
        backend.strategy = "fast"


@pytest.mark.parametrize("step", ["pairs", "all at once"])
def test_the_order_of_a_planner_is_kept(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Planner:
        @staticmethod
        def contract_path(equation: str, *shapes: Any, **options: Any) -> Any:
            assert options == {"shapes": True, "optimize": "auto"}
            last = [(2, 3), (1, 2), (0, 2), (0, 1)] if step == "pairs" else [(0, 2, 4), (0, 1, 2)]
            return last, None

    backend = torch.backends.opt_einsum
    monkeypatch.setattr(backend, "get_opt_einsum", lambda: Planner)
    check("ea,fb,abcd,gc,hd->efgh", operands_of("ea,fb,abcd,gc,hd->efgh"))


def test_a_product_without_sums_lies_in_memory_as_it_is_returned() -> None:
    a, b = torch.randn(5, 4), torch.randn(3, 4)
    result = torch.einsum("nd,bd->bnd", a, b)
    assert result.is_contiguous()
    assert torch.equal(result, a * b[:, None])
    assert torch.einsum("a,b->ba", a[:, 0], b[:, 0]).is_contiguous()
