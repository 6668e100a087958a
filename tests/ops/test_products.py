"""Products of matrices beyond their samples: how often they round."""

import pytest

import rushlight as torch


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_addmm_of_a_bias_rounds_once(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    bias, a, b = (torch.randn(*sizes).to(dtype) for sizes in [(64,), (64, 64), (64, 64)])
    exact = bias.double() + a.double() @ b.double()
    wrong = (torch.addmm(bias, a, b) - exact).abs()
    assert (wrong <= exact.abs() * torch.finfo(dtype).eps / 2 + 1e-4).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("beta", [0.0, 1.0, -0.7])
def test_scaled_products_round_once(dtype: torch.dtype, beta: float) -> None:
    torch.manual_seed(0)
    shapes = [(24, 40), (3, 24, 36), (3, 36, 40), (36,), (24, 1)]
    added, left, right, vector, column = (torch.randn(*shape).to(dtype) for shape in shapes)

    def exactly(added: torch.Tensor, product: torch.Tensor) -> torch.Tensor:
        return beta * added.double() + 1.3 * product

    exact_left, exact_right = left.double(), right.double()
    products = exact_left @ exact_right
    cases = {
        "addmm": ((added, left[0], right[0]), exactly(added, products[0])),
        "baddbmm": ((added, left, right), exactly(added, products)),
        "addbmm": ((added, left, right), exactly(added, products.sum(0))),
        "addmv": (
            (column[:, 0], left[0], vector),
            exactly(column[:, 0], exact_left[0] @ vector.double()),
        ),
    }
    for name, (arguments, exact) in cases.items():
        wrong = (getattr(torch, name)(*arguments, beta=beta, alpha=1.3) - exact).abs()
        assert (wrong <= exact.abs() * torch.finfo(dtype).eps / 2 + 1e-4).all(), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_one_product_for_a_whole_batch(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    left, right = torch.randn(23, 15).to(dtype), torch.randn(15, 12).to(dtype)
    batch = torch.bmm(left.expand(10, 23, 15), right.expand(10, 15, 12))
    assert batch.shape == (10, 23, 12)
    assert (batch == batch[0]).all() and torch.allclose(batch[0], left @ right, rtol=1e-2)


def test_products_of_nothing_are_the_scaled_input() -> None:
    added = torch.tensor([[1.0, 2.0]])
    assert torch.addmm(added, torch.ones(1, 0), torch.ones(0, 2), beta=3).tolist() == [[3.0, 6.0]]
    nan = torch.full((1, 2), torch.nan)
    assert torch.addmm(nan, torch.ones(1, 0), torch.ones(0, 2), beta=0).tolist() == [[0.0, 0.0]]


# Both ways that a matrix may lie, batches, rows too short for vectors, and matrices in pieces.
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [1, 2, 4, 7])
@pytest.mark.parametrize("sizes", [(16, 16), (48, 33), (33, 48), (272, 1040), (1, 32), (80, 1)])
def test_few_rows_of_halves_round_once(
    sizes: tuple[int, int], rows: int, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    k, n = sizes
    a, b = torch.randn(3, rows, k).to(dtype), torch.randn(3, k, n).to(dtype)
    bias, added = torch.randn(n).to(dtype), torch.randn(rows, n).to(dtype)
    turned = b.mT.contiguous().mT
    wide = torch.zeros(3, k, n + 9).to(dtype)
    wide[..., :n] = b
    exact = a.double() @ b.double()
    cases = [(a @ x, exact) for x in (b, turned, wide[..., :n])]
    cases += [(a @ b[0], a.double() @ b[0].double())]
    cases += [(a.mT.contiguous().mT @ b, exact), (b.mT @ a.mT, exact.mT)]
    cases += [(torch.mv(turned[0].T, a[0, 0]), exact[0, 0])]
    for x in (b, turned):
        linear = torch.nn.functional.linear(a[0], x[0].T, bias)
        cases += [(linear, exact[0] + bias.double())]
        scaled = torch.addmm(added, a[0], x[0], beta=-0.7, alpha=1.3)
        cases += [(scaled, 1.3 * exact[0] - 0.7 * added.double())]
    for i, (result, expected) in enumerate(cases):
        wrong = (result - expected).abs()
        assert (wrong <= expected.abs() * torch.finfo(dtype).eps / 2 + 1e-4).all(), i
