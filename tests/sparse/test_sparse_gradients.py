"""Gradients of and through sparse tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from grouping import each
from ops.matrix import directional_check, tensor_of
from sparse_matrices import LAYOUTS, coo, in_layout, random_matrix, same

import rushlight as torch
from rushlight import Tensor


def entries_of(rows: int, columns: int, entries: int, seed: int = 0) -> tuple[Any, Tensor]:
    indices, values = random_matrix(rows, columns, entries, seed)
    return (lambda v: torch.sparse_coo_tensor(indices, v, (rows, columns))), tensor_of(values)


GRADIENT_CASES: dict[str, Callable[..., Tensor]] = {
    "to_dense": lambda x, y, d: x.to_dense(),
    "coalesce": lambda x, y, d: x.coalesce().values(),
    "csr": lambda x, y, d: x.to_sparse_csr().values(),
    "csc": lambda x, y, d: x.to_sparse_csc().to_sparse_csr().values(),
    "bsr": lambda x, y, d: x.to_sparse_bsr(2).values(),
    "bsc": lambda x, y, d: x.to_sparse_csr().to_sparse_bsc((1, 2)).to_sparse_csc().values(),
    "dense_bsr": lambda x, y, d: (d * d).to_sparse_bsr((4, 2)).to_sparse_bsr((1, 2)).to_dense(),
    "bsr_mm": lambda x, y, d: x.to_sparse_bsr((2, 4)) @ d,
    "bsc_mm": lambda x, y, d: x.to_sparse_bsc((4, 2)) @ d + x.to_sparse_bsr((1, 2)).t() @ d,
    "dense_mm_bsr": lambda x, y, d: d @ x.to_sparse_bsr((2, 1)),
    "bsr_linear": lambda x, y, d: torch.nn.functional.linear(d, x.to_sparse_bsr(2), d[0]),
    "bsr_sampled": lambda x, y, d: torch.sparse.sampled_addmm(
        x.to_sparse_bsr((2, 1)), d, d.t(), beta=2.0
    ).to_dense(),
    "bsr_add": lambda x, y, d: (
        (x.to_sparse_bsr(2) + y.to_sparse_bsr(2) * 3).to_dense() + (d + x.to_sparse_bsc(2))
    ),
    "bsr_mul": lambda x, y, d: (x.to_sparse_bsr(2) * d * y.to_sparse_bsr((1, 4))).to_dense(),
    "bsr_sum": lambda x, y, d: x.to_sparse_bsr(2).sum() * x.to_sparse_bsr(2).sum(1).to_dense(),
    "mm": lambda x, y, d: x @ d,
    "csr_mm": lambda x, y, d: x.to_sparse_csr() @ d,
    "t_mm": lambda x, y, d: x.t() @ d.t()[:4],
    "csc_mm": lambda x, y, d: x.to_sparse_csr().t() @ d.t()[:4],
    "dense_mm": lambda x, y, d: d.t() @ x.t(),
    "sparse_mm": lambda x, y, d: torch.sparse.mm(x, y.t()).to_dense(),
    "sparse_mm_dense": lambda x, y, d: torch.sparse.mm(x, y.t()) @ d,
    "sampled": lambda x, y, d: torch.sparse.sampled_addmm(x, d.t()[:4], d, beta=2.0).to_dense(),
    "add": lambda x, y, d: (x + y * 2 - x / 3).to_dense(),
    "add_dense": lambda x, y, d: d + x + x @ d,
    "mul": lambda x, y, d: (x * y + x * x).to_dense(),
    "mul_dense": lambda x, y, d: (d * x * d[:1]).to_dense(),
    "pow": lambda x, y, d: (x**3).to_dense(),
    "tanh": lambda x, y, d: torch.tanh(x).coalesce().values(),
    "sum": lambda x, y, d: x.sum() * torch.sparse.sum(x, 1).to_dense(),
    "softmax": lambda x, y, d: torch.sparse.softmax(x, 1).to_dense(),
    "log_softmax": lambda x, y, d: torch.sparse.log_softmax(x, 0).to_dense(),
    "mask": lambda x, y, d: d.sparse_mask(y).to_dense() + x.sparse_mask(y).to_dense(),
    "select": lambda x, y, d: x[1].to_dense() * x[:, 2].to_dense(),
    "index_select": lambda x, y, d: x.index_select(1, torch.tensor([2, 0, 2])).to_dense(),
    "cat": lambda x, y, d: torch.cat([x, y]).to_dense() * torch.stack([x, y])[0].to_dense()[0],
    "to_sparse": lambda x, y, d: (d * d).to_sparse().coalesce().values()[:3] + x.sum(),
    "hspmm": lambda x, y, d: torch.hspmm(x, d).to_dense(),
    "addmm": lambda x, y, d: torch.sparse.addmm(d, x, d, beta=2.0, alpha=0.5),
}


@pytest.mark.parametrize("name", GRADIENT_CASES)
def test_first_and_second_gradients_equal_finite_differences(name: str) -> None:
    make_x, x = entries_of(4, 4, 7)
    make_y, y = entries_of(4, 4, 6, 1)
    d = tensor_of(np.random.default_rng(2).normal(size=(4, 4)))
    weights = tensor_of(np.random.default_rng(3).normal(size=64))

    def f(points: list[Tensor]) -> Tensor:
        result = GRADIENT_CASES[name](make_x(points[0]), make_y(points[1]), points[2]).reshape(-1)
        return (result * weights[: len(result)]).sum()

    directional_check(f, [x, y, d], 1e-6)

    def slope(points: list[Tensor]) -> Tensor:
        leaves = [p if p.requires_grad else p.clone().requires_grad_() for p in points]
        gradients = torch.autograd.grad(
            f(leaves), leaves, create_graph=True, allow_unused=True, materialize_grads=True
        )
        return sum(((g * g.detach().cos()).sum() * 0 + (g * 0.5 * g).sum()) for g in gradients)

    with torch.enable_grad():
        leaves = [p.clone().requires_grad_() for p in (x, y, d)]
        if not slope(leaves).requires_grad:
            return
    directional_check(lambda points: slope_value(slope, points), [x, y, d], 1e-5)


def slope_value(slope: Callable[[list[Tensor]], Tensor], points: list[Tensor]) -> Tensor:
    """The slope, also where gradients are switched off for finite differences."""
    with torch.enable_grad():
        return slope(points)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradient_of_a_sparse_leaf_has_its_pattern(layout: Any) -> None:
    d = tensor_of(np.random.default_rng(2).normal(size=(5, 3))).requires_grad_()
    leaf = in_layout(coo(4, 5, 9).coalesce(), layout).detach().requires_grad_()
    entries = leaf.detach().clone()
    entries.values().fill_(1)
    out = torch.sparse.mm(leaf, d)
    out.backward(torch.ones(4, 3, dtype=torch.float64))
    assert leaf.grad.layout is layout
    assert leaf.grad._nnz() == leaf._nnz()
    expected = torch.ones(4, 3, dtype=torch.float64) @ d.detach().t()
    same(leaf.grad, entries.to_dense() * expected)
    same(d.grad, leaf.detach().to_dense().t() @ torch.ones(4, 3, dtype=torch.float64))
    torch.sparse.mm(leaf, d).sum().backward()
    same(leaf.grad, entries.to_dense() * expected * 2)
    assert leaf.grad._nnz() == leaf._nnz()


def test_complex_gradients_are_conjugated() -> None:
    generator = np.random.default_rng(0)
    indices, values = random_matrix(4, 4, 7)
    d = tensor_of(generator.normal(size=(4, 2)) + 1j * generator.normal(size=(4, 2)))

    def f(points: list[Tensor]) -> Tensor:
        x = torch.sparse_coo_tensor(indices, points[0], (4, 4))
        out = (x @ points[1]) * (2 + 1j) + torch.sparse.mm(x, x.t()) @ points[1]
        return torch.view_as_real(out).sum()

    directional_check(f, [tensor_of(values + 1j * values[::-1]), d], 1e-6)


def test_embedding_gradients_are_sparse_and_add_up() -> None:
    table = torch.nn.Embedding(10, 3, padding_idx=4, sparse=True)
    dense = torch.nn.Embedding.from_pretrained(
        table.weight.detach().clone(), freeze=False, padding_idx=4
    )
    for ids in ([[1, 2], [1, 4]], [[7, 1], [4, 4]]):
        for module in (table, dense):
            (module(torch.tensor(ids)) * torch.arange(1.0, 4.0)).sum().backward()
    grad = table.weight.grad
    assert (grad.layout, grad._nnz()) == (torch.sparse_coo, 5)
    assert (grad.sparse_dim(), grad.dense_dim()) == (1, 1)
    same(grad, dense.weight.grad)
    with torch.no_grad():
        table.weight.add_(grad, alpha=-0.1)
        dense.weight.add_(dense.weight.grad, alpha=-0.1)
    same(table.weight, dense.weight.detach(), 1e-6)
    for ids, known in (([], True), ([3], True), ([3, 4], True), ([1, 2], False)):  # 4 is padding
        table.weight.grad = None
        table(torch.tensor(ids, dtype=torch.int64)).sum().backward()
        assert table.weight.grad.is_coalesced() is known
    with pytest.raises(NotImplementedError, match="scale_grad_by_freq"):
        torch.nn.functional.embedding(
            torch.tensor([1]), table.weight, scale_grad_by_freq=True, sparse=True
        ).sum().backward()


def test_sparse_and_dense_gradients_add_up_to_a_dense_one() -> None:
    for order in ((0, 1), (1, 0)):
        weight = torch.ones(4, 2, requires_grad=True)
        for kind in order:
            if kind:
                (weight * 3).sum().backward()
            else:
                ids = torch.tensor([1, 1])
                torch.nn.functional.embedding(ids, weight, sparse=True).sum().backward()
        assert weight.grad.tolist() == [[3, 3], [5, 5], [3, 3], [3, 3]]
    weight = torch.ones(4, 2, requires_grad=True)
    rows = torch.nn.functional.embedding(torch.tensor([1, 1]), weight, sparse=True)
    (rows.sum() + weight.sum()).backward()
    assert weight.grad.tolist() == [[1, 1], [3, 3], [1, 1], [1, 1]]


def test_a_graph_network_learns() -> None:
    torch.manual_seed(0)
    n = 60
    indices, _ = random_matrix(n, n, 300, repeats=False)
    adjacency = torch.sparse_coo_tensor(indices, torch.ones(300), (n, n)).coalesce()
    degrees = torch.sparse.sum(adjacency, 1).to_dense()
    adjacency = adjacency * (1 / degrees.clamp(min=1)).unsqueeze(1)
    x, labels = torch.randn(n, 8), torch.arange(n) % 3
    layers = [torch.nn.Linear(8, 16), torch.nn.Linear(16, 3)]
    optimizer = torch.optim.Adam([p for layer in layers for p in layer.parameters()], lr=0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        hidden = torch.relu(adjacency @ layers[0](x) + layers[0](x))
        logits = torch.sparse.mm(adjacency, layers[1](hidden)) + layers[1](hidden)
        loss = torch.nn.functional.cross_entropy(logits, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_writing_in_place_is_recorded() -> None:
    values = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = torch.sparse_coo_tensor([[0, 1, 1], [1, 0, 0]], values, (2, 2))
    y = x * 1
    y.mul_(3)
    y.add_(x, alpha=2)
    (y.to_dense() * torch.tensor([[0.0, 1.0], [10.0, 0.0]])).sum().backward()
    assert values.grad.tolist() == [5, 50, 50]
    values.grad = None
    z = torch.sparse_coo_tensor([[0, 1, 1], [1, 0, 0]], values * -1, (2, 2)) * -1
    assert torch.nn.functional.relu(z, inplace=True) is z
    z = torch.sparse_coo_tensor([[0, 1], [1, 0]], values[:2], (2, 2), is_coalesced=True) * -1
    torch.nn.functional.relu(z, inplace=True).sum().backward()
    assert values.grad.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch.eye(2).to_sparse().detach().requires_grad_().mul_(2)


def test_gradients_may_come_in_any_layout() -> None:
    leaf = torch.eye(3).to_sparse().detach().requires_grad_()
    hooked = []
    leaf.register_hook(hooked.append)
    for gradient in (
        torch.full((3, 3), 5.0),
        torch.sparse_coo_tensor([[0, 2], [0, 1]], [5.0, 7.0], (3, 3)),
        torch.full((3, 3), 5.0).to_sparse_csr(),
    ):
        leaf.grad = None
        (leaf * 2).backward(gradient)
        expected = torch.where(torch.eye(3) > 0, gradient.to_dense() * 2, 0.0)
        same(leaf.grad, expected)
    assert all(g.is_sparse for g in hooked)
    result = leaf * 2
    result.retain_grad()
    result.sum().backward()
    same(result.grad, torch.eye(3))


def test_a_changed_tensor_is_refused_in_backward() -> None:
    d = torch.ones(4, 2, dtype=torch.float64, requires_grad=True)
    x = coo(3, 4, 5).coalesce()
    out = x @ d
    x._values().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_gradients_at_places_without_an_entry_are_refused() -> None:
    matrix = torch.eye(2).to_sparse()
    assert matrix.to_dense(masked_grad=False).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(NotImplementedError, match="masked_grad=False is not supported"):
        matrix.requires_grad_().to_dense(masked_grad=False)


GATHERS = [((2, 3), 1, [[0], [2]]), ((3,), 0, 1), ((), 0, [0, 0]), ((2, 3, 2), 0, [[[1], [1]]])]


@each("shape, dim, places", GATHERS)
def test_gather_can_leave_a_gradient_of_the_places_that_it_read(
    shape: tuple[int, ...], dim: int, places: Any
) -> None:
    index = torch.tensor(places)
    x = torch.ones(shape, requires_grad=True)
    (dense,) = torch.autograd.grad(x.gather(dim, index).sum() * 3, x)
    (found,) = torch.autograd.grad(x.gather(dim, index, sparse_grad=True).sum() * 3, x)
    assert found.layout is torch.sparse_coo and found._nnz() == index.numel()
    assert found.shape == x.shape and found.to_dense().tolist() == dense.tolist()
