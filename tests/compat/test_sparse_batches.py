"""Batches of compressed matrices and their dense dims behave as PyTorch's."""

import io
from typing import Any

import numpy as np
import pytest
from sparse_matrices import BLOCK, batch_of_matrices

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

LAYOUTS = ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]


def compressed(library: Any, layout: str, array: np.ndarray, dense_dim: int = 0) -> Any:
    options = {"blocksize": BLOCK} if layout.startswith("sparse_bs") else {}
    made = library.from_numpy(array.copy())
    return made.to_sparse(layout=getattr(library, layout), dense_dim=dense_dim, **options)


def described(value: Any) -> Any:
    """What a result is, in terms that both libraries share: facts, and arrays."""
    if not hasattr(value, "layout"):
        return value, []
    name = str(value.layout).removeprefix("torch.")
    dtype = str(value.dtype).rpartition(".")[2]
    value = value.detach()
    if name == "strided":
        return (name, dtype, tuple(value.shape)), [value.numpy()]
    facts = (name, dtype, tuple(value.shape), value.sparse_dim(), value.dense_dim(), value._nnz())
    if name == "sparse_coo":
        return facts, [value.to_dense().numpy()]
    by_rows = name in ("sparse_csr", "sparse_bsr")
    starts = value.crow_indices() if by_rows else value.ccol_indices()
    others = value.col_indices() if by_rows else value.row_indices()
    return facts, [part.numpy() for part in (starts, others, value.values())]


def same(ours: Any, theirs: Any) -> None:
    ours, theirs = described(ours), described(theirs)
    assert ours[0] == theirs[0]
    for a, b in zip(ours[1], theirs[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


ALWAYS = [
    "x", "x.to_dense()", "x.to_sparse_coo()", "x.to_sparse()", "x.to_sparse(2)", "x.clone()",
    "x.detach()", "x.float()", "x.to(torch.int64)", "x.cpu()", "-x", "x.abs()", "x.sin()",
    "x.relu()", "x.tanh()", "x.isnan()", "x.signbit()", "x.sgn()", "x * 2", "2 * x",
    "x * torch.tensor(2.0)", "x + x", "torch.add(x, x, alpha=2)", "x.sum()", "x.numel()",
    "x._nnz()", "x.sparse_dim()", "x.dense_dim()", "len(x)", "x.clone().mul_(2)",
    "x.clone().sin_()", "x.clone().zero_()", "x.clone().copy_(x)", "torch.zeros_like(x)",
    "torch.empty_like(x).shape == x.shape", "torch.empty_like(x)._nnz()", "d.sparse_mask(x)",
    "x.requires_grad_().requires_grad", "x.is_sparse", "x.is_sparse_csr", "x.values().shape",
]  # fmt: skip
OF_A_BATCH = ["x[1]", "x.select(0, -1)", "x.unbind(0)[0]", "list(x)[1]"]
OF_DENSE_DIMS = ["x[..., 1]", "x.select(-1, 0)", "x.unbind(-1)[1]"]
OF_MATRICES = [
    "x.mT", "x.mT.mT", "x.transpose(-1, -2)", "x.mT.to_sparse_coo()", "x.mH", "x.adjoint()",
]  # fmt: skip
KINDS = [((2,), ()), ((2, 3), ()), ((2,), (2,)), ((), (2,)), ((2, 1), (2, 3))]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("batch", "dense"), KINDS)
def test_results_equal(layout: str, batch: Any, dense: Any) -> None:
    expressions = ALWAYS + OF_A_BATCH * bool(batch) + OF_DENSE_DIMS * bool(dense)
    if not dense:
        expressions = expressions + OF_MATRICES
    if layout in LAYOUTS[:2]:
        expressions = [*expressions, "x.to_sparse_csr()", "x.to_sparse_csc()"]
    else:
        expressions = [*expressions, "x.to_sparse_bsr((2, 3))", "x.to_sparse_bsc((2, 3))"]
    if layout in LAYOUTS[:2] and not dense:
        expressions = [*expressions, "x + d", "d + x"]
    for expression in expressions:
        results = []
        for library in (torch, pytorch):
            names = {
                "torch": library,
                "x": compressed(library, layout, batch_of_matrices(batch, dense), len(dense)),
                "d": library.from_numpy(batch_of_matrices(batch, dense, 1)),
            }
            try:
                results.append(eval(expression, names))
            except Exception as error:
                raise AssertionError(f"{expression} in {library.__name__}") from error
        try:
            same(*results)
        except AssertionError as error:
            raise AssertionError(f"{expression} differs") from error


CONSTRUCTORS = [
    "torch.sparse_csr_tensor([[0, 1, 2]] * 2, [[0, 1], [1, 0]], [[1.0, 2.0], [3.0, 4.0]])",
    "torch.sparse_csr_tensor([0, 1, 2], [0, 1], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])",
    "torch.sparse_csr_tensor([0, 1], [2], [[1.0, 2.0]], (1, 4, 2), dtype=torch.float64)",
    "torch.sparse_csc_tensor([[[0, 1]]], [[[3]]], [[[[1.0, 2.0]]]])",
    "torch.sparse_bsr_tensor([[0, 1]] * 2, [[1]] * 2, torch.ones(2, 1, 2, 3))",
    "torch.sparse_bsc_tensor([[0, 1]] * 2, [[1]] * 2, torch.ones(2, 1, 2, 3, 5))",
    "torch.sparse_csr_tensor(torch.zeros(0, 3).long(), torch.zeros(0, 0).long(), torch.ones(0, 0),"
    " (0, 2, 2))",
    "torch.zeros(2, 0, 3).to_sparse_csr()", "torch.zeros(2, 3, 0).to_sparse_csc()",
    "torch.zeros(2, 3, 0).to_sparse_csr(dense_dim=1)", "torch.zeros(2, 3, 4).to_sparse_csr()",
    "torch.ones(4, 4, 2).to_sparse_bsr((2, 2), dense_dim=1)",
    "torch.ones(2, 2, 3).to_sparse(2).to_sparse_csr()", "torch.ones(2, 3).to_sparse_csr(0)",
    "torch.zeros(2, 3, 4, layout=torch.sparse_csr)", "torch.eye(3).expand(2, 3, 3).to_sparse_csr()",
]  # fmt: skip


@pytest.mark.parametrize("expression", CONSTRUCTORS)
def test_tensors_are_made_alike(expression: str) -> None:
    same(eval(expression, {"torch": torch}), eval(expression, {"torch": pytorch}))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("batch", "dense"), KINDS)
def test_texts_and_files_are_alike(layout: str, batch: Any, dense: Any) -> None:
    texts = []
    for library, other in ((torch, pytorch), (pytorch, torch)):
        x = compressed(library, layout, batch_of_matrices(batch, dense), len(dense))
        texts.append(repr(x) + repr(x.float().requires_grad_()))
        file = io.BytesIO()
        library.save(x, file)
        file.seek(0)
        same(other.load(file), x)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("batch", [(2,), (2, 3)])
def test_products_sampled_at_the_entries_equal(batch: Any) -> None:
    generator = np.random.default_rng(1)
    left, right = generator.normal(size=(*batch, 4, 5)), generator.normal(size=(*batch, 5, 9))
    results = []
    for library in (torch, pytorch):
        x = compressed(library, "sparse_csr", batch_of_matrices(batch, ()))
        factors = library.from_numpy(left), library.from_numpy(right)
        results.append(library.sparse.sampled_addmm(x, *factors, beta=0.5, alpha=2.0))
    same(*results)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_values_with_dense_dims_equal(layout: str) -> None:
    array = batch_of_matrices((), (2,))
    results = []
    for library in (torch, pytorch):
        x = compressed(library, layout, array, 1)
        by_rows = layout in ("sparse_csr", "sparse_bsr")
        starts = x.crow_indices() if by_rows else x.ccol_indices()
        others = x.col_indices() if by_rows else x.row_indices()
        values = x.values().clone().requires_grad_()
        made = library.sparse_compressed_tensor(
            starts, others, values, x.shape, layout=getattr(library, layout)
        )
        (made.to_dense() ** 3).sum().backward()
        dense = library.from_numpy(array.copy()).requires_grad_()
        options = {"blocksize": BLOCK} if layout.startswith("sparse_bs") else {}
        entries = dense.to_sparse(layout=getattr(library, layout), dense_dim=1, **options)
        (entries.to_dense() ** 3).sum().backward()
        results.append((values.grad, dense.grad))
    for ours, theirs in zip(*results, strict=True):
        same(ours, theirs)


@pytest.mark.parametrize("batch", [(), (2,)])
def test_the_gradient_of_a_leaf_has_its_pattern(batch: Any) -> None:
    results = []
    for library in (torch, pytorch):
        leaf = compressed(library, "sparse_csr", batch_of_matrices(batch, (2,)), 1).requires_grad_()
        (leaf.values() ** 3).sum().backward()
        results.append(leaf.grad)
    same(*results)


def test_values_of_a_picked_matrix_are_those_of_the_batch() -> None:
    for library in (torch, pytorch):
        x = library.eye(3).expand(2, 3, 3).to_sparse_csr()
        x[0].values().zero_()
        assert x.values().tolist() == [[0, 0, 0], [1, 1, 1]]


ERRORS = [
    "torch.sparse_csr_tensor([[0, 1, 2]] * 2, [[0, 1]] * 3, torch.ones(2, 2))",
    "torch.sparse_csr_tensor([[0, 1, 2]] * 2, [[0, 1]] * 2, torch.ones(3, 2))",
    "torch.sparse_csr_tensor([0, 1, 2], [[0, 1]] * 2, torch.ones(2, 2))",
    "torch.sparse_csr_tensor([[0, 1, 2]] * 2, [[0, 1]] * 2, torch.ones(2))",
    "torch.sparse_csr_tensor([[0, 1, 2]] * 2, [[0, 1]] * 2, torch.ones(2, 2), (3, 2, 2))",
    "torch.sparse_csr_tensor([[0, 1, 2]] * 2, [[0, 1]] * 2, torch.ones(2, 2), (2, 2))",
    "torch.sparse_csr_tensor([[0, 1, 2], [0, 1, 1]], [[0, 1]] * 2, torch.ones(2, 2), (2, 2, 2))",
    "torch.sparse_csr_tensor([[0, 1, 2], [1, 1, 2]], [[0, 1]] * 2, torch.ones(2, 2), (2, 2, 2))",
    "torch.sparse_csr_tensor([[0, 1, 2]] * 2, [[0, 1], [0, 7]], torch.ones(2, 2), (2, 2, 2))",
    "torch.sparse_csr_tensor([[0, 1, 2]] * 2, [[0, 1]] * 2, torch.ones(2, 2), (2, 3, 2))",
    "torch.sparse_csr_tensor(torch.tensor(0), [0], torch.ones(1))",
    "torch.sparse_csr_tensor(torch.zeros(2, 0).long(), torch.zeros(2, 0).long(), torch.ones(2, 0))",
    "torch.stack([torch.eye(2), torch.ones(2, 2)]).to_sparse_csr()",
    "torch.stack([torch.eye(2), torch.ones(2, 2)]).to_sparse_csc()",
    "torch.stack([torch.eye(4), torch.ones(4, 4)]).to_sparse_bsr((2, 2))",
    "torch.ones(3).to_sparse_csr()", "torch.ones(3, 2).to_sparse_csr(dense_dim=1)",
    "torch.ones(3, 2, 2).to_sparse_csr(dense_dim=-1)", "torch.ones(2, 3, 5).to_sparse_bsr((2, 2))",
    "x.t()", "x.transpose(0, 1)", "x.select(0, 5)", "x.indices()", "x.ccol_indices()", "x.exp()",
    "x.numpy()", "x.tolist()", "x.reshape(-1)", "x.coalesce()", "x.to_sparse_csr(dense_dim=0)",
    "torch.mm(x, torch.ones(4, 2))", "torch.testing.assert_close(x, x * 2)", "x.to_sparse(1)",
    "torch.bmm(x, torch.ones(3, 4, 5))", "torch.stack([x, x])", "x.to_sparse_csr().to_sparse(1)",
    "torch.sparse.sampled_addmm(x, torch.ones(3, 2), torch.ones(2, 4))", "x + 1",
]  # fmt: skip


@pytest.mark.parametrize("expression", ERRORS)
def test_errors_are_of_one_class(expression: str) -> None:
    kinds = []
    for library in (torch, pytorch):
        x = library.ones(2, 3, 4).to_sparse_csr()
        with (
            library.sparse.check_sparse_tensor_invariants(),
            pytest.raises((RuntimeError, IndexError, TypeError, AssertionError)) as caught,
        ):
            eval(expression, {"torch": library, "x": x})
        kinds.append(caught.type)
    ours, theirs = kinds
    assert issubclass(ours, theirs) or issubclass(theirs, ours) or theirs is IndexError, kinds
