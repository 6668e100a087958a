"""Gradients of batches of compressed matrices, and of those with dense dims."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.matrix import tensor_of
from sparse_matrices import LAYOUTS, batch_of_matrices, compressed, compressed_parts, same

import rushlight as torch
from rushlight import Tensor

COMPRESSED = LAYOUTS[1:]


@pytest.mark.parametrize("layout", COMPRESSED, ids=str)
@pytest.mark.parametrize(("batch", "dense_sizes"), [((2,), ()), ((2, 1), (2,)), ((), (2,))])
def test_gradients_equal_finite_differences(layout: Any, batch: Any, dense_sizes: Any) -> None:
    dense = batch_of_matrices(batch, dense_sizes, count=2)
    dense_dim = len(dense_sizes)
    leaf = compressed(dense, layout, dense_dim).requires_grad_()
    weights = tensor_of(np.random.default_rng(3).normal(size=dense.shape))
    row = len(batch)
    for masked in (True, False):
        assert torch.autograd.gradcheck(lambda x: x.to_dense() * weights, leaf, masked=masked)
        assert torch.autograd.gradcheck(lambda x: (x * 2).sin().values(), leaf, masked=True)
    for function in (
        lambda x: x.transpose(row, row + 1).to_dense(),
        lambda x: x.to_sparse_coo().to_dense() ** 2,
        lambda x: (x * weights).sum(),
        lambda x: (x[0] if batch else x[..., 0]).to_dense() ** 2,
        lambda x: (x + x).to_dense() * weights,
    ):
        assert torch.autograd.gradcheck(function, leaf, masked=True)
    starts, others, values = compressed_parts(leaf.detach())

    def made(values: Tensor) -> Tensor:
        x = torch.sparse_compressed_tensor(starts, others, values, leaf.shape, layout=layout)
        return x.to_dense().sin() * weights

    assert torch.autograd.gradcheck(made, values.requires_grad_())
    assert torch.autograd.gradgradcheck(made, values)
    source = tensor_of(dense).requires_grad_()
    (compressed(source, layout, dense_dim).to_dense() * weights).sum().backward()
    assert source.grad is not None
    same(source.grad, np.where(dense != 0, weights.numpy(), 0))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_gradients_of_products_of_batches(layout: Any) -> None:
    leaf = compressed(batch_of_matrices((2,), count=2), layout).requires_grad_()
    generator = np.random.default_rng(2)
    y = tensor_of(generator.normal(size=(2, 9, 3))).requires_grad_()
    assert torch.autograd.gradcheck(torch.bmm, (leaf, y), masked=True)
    if layout is not torch.sparse_coo:
        z = tensor_of(generator.normal(size=(2, 4, 3))).requires_grad_()
        assert torch.autograd.gradcheck(
            lambda x, z, y: torch.sparse.sampled_addmm(x, z, y.mT).values(),
            (leaf, z, y),
            masked=True,
        )


@pytest.mark.parametrize("layout", COMPRESSED, ids=str)
def test_the_gradient_of_a_sparse_leaf_has_its_pattern(layout: Any) -> None:
    leaf = compressed(batch_of_matrices((2,), (2,)), layout, 1).requires_grad_()
    for _ in range(2):
        (leaf.to_dense() * 3).sum().backward()
    assert leaf.grad is not None
    assert (leaf.grad.layout, leaf.grad.shape) == (layout, leaf.shape)
    for part, expected in zip(
        compressed_parts(leaf.grad)[:2], compressed_parts(leaf.detach())[:2], strict=True
    ):
        assert torch.equal(part, expected)
    assert (leaf.grad.values() == 6).all()
