"""Products with sparse matrices against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops.matrix import tensor_of
from sparse_matrices import LAYOUTS, coo, in_layout, matrices, same, scipy_of

import rushlight as torch


@given(matrices(), st.integers(0, 4), st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS))
@settings(max_examples=60)
def test_products_equal_those_of_scipy(parts: Any, width: int, a: Any, b: Any) -> None:
    indices, values, (rows, columns) = parts
    x = torch.sparse_coo_tensor(indices, values, (rows, columns))
    dense = scipy_of(x).toarray()
    right = np.arange(columns * width, dtype=np.float64).reshape(columns, width)
    x = in_layout(x, a) if a is not torch.sparse_coo else x
    same(x @ tensor_of(right), dense @ right)
    same(tensor_of(right.T) @ x.t(), right.T @ dense.T)
    same(torch.mv(x, torch.ones(columns, dtype=torch.float64)), dense.sum(1))
    same(torch.ones(rows, dtype=torch.float64) @ x, dense.sum(0))
    other = torch.sparse_coo_tensor(indices[::-1].copy(), values, (columns, rows))
    product = torch.sparse.mm(x, in_layout(other, b))
    assert product.layout is a
    same(product, dense @ dense.T)


@pytest.mark.parametrize("width", [1, 3, 16, 17, 64, 100, 200])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_wide_products(width: int, dtype: Any) -> None:
    x = coo(50, 40, 300).to(dtype)
    right = tensor_of(np.random.default_rng(1).normal(size=(40, width))).to(dtype)
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-4}.get(dtype, 0.2)
    for layout in LAYOUTS:
        actual = (in_layout(x, layout) @ right).double().numpy()
        expected = x.double().to_dense().numpy() @ right.double().numpy()
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.complex128])
def test_products_of_other_dtypes(dtype: Any) -> None:
    x = torch.tensor([[0, 3, 0], [2, 0, 1]]).to(dtype)
    y = torch.tensor([[1, 2], [3, 4], [5, 6]]).to(dtype)
    expected = [[9, 12], [7, 10]]
    assert (x.to_sparse() @ y).real.tolist() == expected
    assert (x.to_sparse() @ y.to_sparse()).to_dense().real.tolist() == expected
    assert (x @ y.to_sparse()).real.tolist() == expected


def test_relatives_of_the_product() -> None:
    x, y, z = coo(3, 4, 5), coo(4, 2, 4, 1).to_dense(), coo(3, 2, 3, 2)
    product = x.to_dense() @ y
    same(torch.spmm(x, y), product)
    same(torch.dsmm(x, y), product)
    same(torch.sparse.mm(x, y), product)
    same(torch.smm(x, y), product)
    assert torch.smm(x, y).is_sparse
    hybrid = torch.hspmm(x, y)
    assert (hybrid.sparse_dim(), hybrid.dense_dim()) == (1, 1)
    same(hybrid, product)
    same(torch.hsmm(x, y), product)
    same(torch.sspaddmm(z, x, y, beta=2, alpha=3), 2 * z.to_dense() + 3 * product)
    same(torch.addmm(z.to_dense(), x, y, beta=2, alpha=3), 2 * z.to_dense() + 3 * product)
    same(torch.sparse.addmm(z.to_dense(), x, y), z.to_dense() + product)
    same(torch.addmm(z, x, y.to_sparse()), z.to_dense() + product)
    same(torch.addmv(product[:, 0], x, y[:, 0]), product[:, 0] * 2)
    mask = coo(3, 2, 3, 5).coalesce()
    sampled = torch.sparse.sampled_addmm(mask, x.to_dense(), y, beta=0.5, alpha=2.0)
    same(sampled, np.where(mask.to_dense() != 0, mask.to_dense() * 0.5 + product * 2, 0))


def test_batches_and_linear_layers() -> None:
    generator = np.random.default_rng(0)
    indices = np.stack([generator.integers(0, n, 12) for n in (2, 3, 4)])
    x = torch.sparse_coo_tensor(indices, generator.normal(size=12), (2, 3, 4))
    y = tensor_of(generator.normal(size=(2, 4, 5)))
    same(torch.bmm(x, y), torch.bmm(x.to_dense(), y))
    same(torch.bmm(x.coalesce(), y), torch.bmm(x.to_dense(), y))
    with pytest.raises(RuntimeError, match="do not multiply"):
        torch.bmm(x, y[:1])
    with pytest.raises(NotImplementedError, match="takes a sparse tensor and a dense one"):
        torch.bmm(y, x)
    layer = torch.nn.Linear(4, 6).double()
    z = coo(3, 4, 5)
    same(layer(z), layer(z.to_dense()).detach())
    weight = coo(6, 4, 9).to_sparse_csr()
    expected = torch.nn.functional.linear(z.to_dense(), weight.to_dense())
    same(torch.nn.functional.linear(z.to_dense(), weight), expected)


def test_products_that_do_not_fit_are_refused() -> None:
    x = coo(3, 4, 5)
    for call, message in (
        (
            lambda: x @ torch.ones(3, 2, dtype=torch.float64),
            r"cannot be multiplied \(3x4 and 3x2\)",
        ),
        (lambda: x @ torch.ones(4, 2), "same dtype, but got float64 and float32"),
        (lambda: torch.mm(x, torch.ones(4, dtype=torch.float64)), "mat2 must be a matrix"),
        (lambda: torch.mm(x, x), r"cannot be multiplied \(3x4 and 3x4\)"),
        (lambda: torch.mm(torch.eye(3).to_sparse(1), torch.eye(3)), "must have none"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()


def test_products_are_reduced_by_row() -> None:
    dense = torch.tensor([[0.0, 2.0, -1.0], [0.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
    other = torch.arange(6.0).view(3, 2) - 2
    products = dense.unsqueeze(2) * other  # (row, entry, column)
    is_entry = dense != 0
    for layout in "to_sparse", "to_sparse_csr":
        matrix = getattr(dense, layout)()
        for reduce in "sum", "mean", "amax", "amin":
            rows = [
                getattr(part[there], reduce)(0) if there.any() else torch.zeros(2)
                for part, there in zip(products, is_entry, strict=True)
            ]
            assert torch.equal(torch.sparse.mm(matrix, other, reduce), torch.stack(rows))
            short = reduce.removeprefix("a")
            assert torch.equal(torch.sparse.mm(matrix, other, short), torch.stack(rows))
    with pytest.raises(ValueError, match="reduce must be one of"):
        torch.sparse.mm(dense.to_sparse(), other, "prod")
