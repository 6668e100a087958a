"""Sparse tensors behave as PyTorch's: results, layouts, text, gradients and files."""

import io
from typing import Any

import numpy as np
import pytest
from sparse_matrices import block_of

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

LAYOUTS = ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]


def parts(seed: int = 0, shape: tuple[int, ...] = (4, 5), count: int = 8, dense: tuple = ()) -> Any:
    generator = np.random.default_rng(seed)
    indices = np.stack([generator.integers(0, size, count) for size in shape])
    return indices, np.round(generator.normal(size=(count, *dense)), 3), shape + dense


def sparse_in(library: Any, layout: str = "sparse_coo", *args: Any) -> Any:
    indices, values, shape = parts(*args)
    made = library.sparse_coo_tensor(
        library.from_numpy(indices), library.from_numpy(values.copy()), shape
    )
    if layout == "sparse_coo":
        return made
    options = {"blocksize": block_of(shape)} if layout.startswith("sparse_bs") else {}
    return made.coalesce().to_sparse(layout=getattr(library, layout), **options)


def described(value: Any) -> Any:
    """What a result is, in terms that both libraries share."""
    if not hasattr(value, "layout"):
        return value
    name = str(value.layout).removeprefix("torch.")
    value = value.detach()
    if name == "strided":
        return (name, str(value.dtype).rpartition(".")[2], tuple(value.shape)), value.numpy()
    # How soon entries of one place are added up is each library's own affair.
    facts = (name, str(value.dtype).rpartition(".")[2], tuple(value.shape), value.sparse_dim())
    return facts, value.to_dense().numpy()


def same(ours: Any, theirs: Any) -> None:
    ours, theirs = described(ours), described(theirs)
    if isinstance(ours, tuple):
        assert ours[0] == theirs[0]
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-9, atol=1e-12)
    else:
        assert ours == theirs


EXPRESSIONS = [
    "x.coalesce()", "x.to_dense()", "x.to_sparse_csr()", "x.to_sparse_csc()", "x.t()",
    "x.coalesce().t()", "x.transpose(0, 1)", "x + x", "x + y", "x.coalesce() + y.coalesce()",
    "x - y", "x * 3", "x / 2", "-x", "x * y", "d * x", "d + x", "torch.add(d, x, alpha=2)",
    "x.sum()", "torch.sparse.sum(x)", "torch.sparse.sum(x, 0)", "torch.sparse.sum(x, (0, 1))",
    "torch.sparse.softmax(x, 0)", "torch.sparse.log_softmax(x, 1)", "x @ d.t()", "d @ x.t()",
    "torch.mm(x, y.t())", "x @ d[0]", "torch.addmm(d @ d.t(), x, d.t(), beta=2, alpha=3)",
    "torch.smm(x, d.t())", "torch.hspmm(x, d.t())", "x.abs()", "x.coalesce().sqrt().isnan()",
    "x.sin()", "x.neg()", "x.pow(2)", "x[1]", "x[1, 2]", "x.select(1, 2)",
    "x.index_select(0, torch.tensor([3, 0, 3]))", "torch.cat([x, y])", "torch.cat([x, y], 1)",
    "torch.stack([x.coalesce(), y.coalesce()])", "x.unsqueeze(1)", "d.sparse_mask(x.coalesce())",
    "d.to_sparse()", "d.to_sparse(1)", "x.float()", "x.clone().zero_()", "torch.zeros_like(x)",
    "x.clone().mul_(2)", "x.clone().add_(y)", "x.norm()", "x.is_sparse", "x.sparse_dim()",
    "torch.bmm(x.unsqueeze(0), d.t().unsqueeze(0))", "h.to_dense()", "h.coalesce()", "h * 2",
    "h + h", "torch.sparse.sum(h, 0)", "torch.sparse.sum(h, 1)", "h[2]", "h.select(1, 1)",
    "x.sparse_resize_((6, 7), 2, 0)", "torch.nn.functional.linear(x, d)",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_results_equal(expression: str) -> None:
    results = []
    for library in (torch, pytorch):
        names = {
            "torch": library,
            "x": sparse_in(library),
            "y": sparse_in(library, "sparse_coo", 1),
            "h": sparse_in(library, "sparse_coo", 2, (4,), 6, (3,)),
            "d": library.arange(20.0, dtype=library.float64).reshape(4, 5),
        }
        results.append(eval(expression, names))
    same(*results)


@pytest.mark.parametrize(
    "expression",
    ["x", "x.coalesce()", "x.t()", "x.coalesce().t()", "x + y", "x.coalesce() + y.coalesce()",
     "x * 2", "x.coalesce() * 2", "-x", "x.sqrt()", "torch.sparse.sum(x, 0)", "x.clone()",
     "torch.cat([x, y])", "d.to_sparse()", "x.to_sparse_csr().to_sparse_coo()", "x.float()"],
)  # fmt: skip
def test_tensors_are_coalesced_by_the_same_ops(expression: str) -> None:
    results = []
    for library in (torch, pytorch):
        d = library.arange(20.0, dtype=library.float64).reshape(4, 5)
        x, y = sparse_in(library), sparse_in(library, "sparse_coo", 1)
        result = eval(expression, {"torch": library, "x": x, "y": y, "d": d})
        results.append((result.is_coalesced(), result._nnz()))
    assert results[0] == results[1]


CSR_EXPRESSIONS = [
    "x.crow_indices()", "x.col_indices()", "x.values()", "x.to_dense()", "x @ d.t()", "x * 2",
    "x + x", "x.t()", "x.to_sparse_coo()", "x.to_sparse_csc()", "x.is_sparse_csr", "x.is_sparse",
    "x.neg()", "x.sin()", "x.sum()", "torch.mm(x, x.t().to_sparse_csr())", "d @ x.t()",
    "torch.sparse.sampled_addmm(x, d @ d.t(), d)", "x.float()", "x.clone()",
]  # fmt: skip


@pytest.mark.parametrize("expression", CSR_EXPRESSIONS)
def test_results_of_csr_matrices_equal(expression: str) -> None:
    results = []
    for library in (torch, pytorch):
        d = library.arange(20.0, dtype=library.float64).reshape(4, 5)
        names = {"torch": library, "x": sparse_in(library, "sparse_csr"), "d": d}
        results.append(eval(expression, names))
    same(*results)


BSR_EXPRESSIONS = [
    "x.crow_indices()", "x.col_indices()", "x.values()", "x.to_dense()", "x.to_sparse()",
    "x.to_sparse_bsr(2)", "x.to_sparse_bsc(2)", "x.to_sparse_coo()", "x.t()", "x.t().values()",
    "x.t().ccol_indices()", "x.t().row_indices()", "x.mT", "x @ d", "x @ d[0]", "d @ x.t()",
    "torch.mm(x, d)", "torch.sparse.mm(x, d)", "torch.addmm(d[:4], x, d, beta=2, alpha=3)",
    "torch.addmv(d[0, :4], x, d[0])", "torch.nn.functional.linear(d, x)",
    "torch.nn.functional.linear(d, x, d[0, :4])", "torch.nn.functional.linear(d[0], x)",
    "torch.nn.functional.linear(d.reshape(2, 3, 6), x)", "x * 2", "-x", "x.abs()", "x.sin()",
    "x.sqrt().isnan()", "x.relu()", "x.sum()", "x.float()", "x.to(torch.int64)", "x.clone()",
    "x.is_sparse", "x.is_sparse_csr", "x._nnz()", "x.sparse_dim()", "x.dense_dim()", "x.numel()",
    "d[:4].sparse_mask(x)", "torch.zeros_like(x)", "x.clone().zero_()", "x.clone().mul_(2)",
    "x.clone().copy_(x)", "d.to_sparse_bsr(2)", "d.to_sparse_bsr((2, 3), 0).values()",
    "d.to_sparse_bsc((3, 1)).values()", "d.to_sparse_csr().to_sparse_bsr((3, 2)).values()",
    "d.to_sparse().to_sparse_bsc((1, 6)).row_indices()",
    "d.to_sparse(layout=torch.sparse_bsr, blocksize=(2, 2))",
    "torch.sparse_bsr_tensor([0, 1], [1], [[[1.0, 2.0]]])",
    "torch.sparse_bsc_tensor([0, 1], [1], [[[1.0, 2.0]]], (2, 2))",
]  # fmt: skip


@pytest.mark.parametrize("expression", BSR_EXPRESSIONS)
def test_results_of_matrices_of_blocks_equal(expression: str) -> None:
    results = []
    for library in (torch, pytorch):
        d = library.arange(36.0, dtype=library.float64).reshape(6, 6)
        x = sparse_in(library, "sparse_coo", 0, (4, 6)).coalesce().to_sparse_bsr(2)
        results.append(eval(expression, {"torch": library, "x": x, "d": d}))
    same(*results)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "complex64", "bool"])
@pytest.mark.parametrize("shape", [((4, 5), 8), ((200, 3), 400), ((2, 9000), 1300), ((3, 3), 0)])
def test_text_equals(layout: str, dtype: str, shape: Any) -> None:
    texts = []
    for library in (torch, pytorch):
        x = sparse_in(library, layout, 0, *shape).to(getattr(library, dtype))
        texts.append(repr(x).replace("rushlight", "torch"))
        if dtype.startswith("float"):
            texts[-1] += repr(x.detach().requires_grad_()).replace("rushlight", "torch")
    assert texts[0] == texts[1]


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_gradients_equal(layout: str) -> None:
    results = []
    for library in (torch, pytorch):
        leaf = sparse_in(library, layout)
        leaf = (leaf.coalesce() if layout == "sparse_coo" else leaf).detach().requires_grad_()
        d = library.arange(15.0, dtype=library.float64).reshape(5, 3).requires_grad_()
        weights = library.arange(12.0, dtype=library.float64).reshape(4, 3)
        (library.sparse.mm(leaf, d) * weights).sum().backward()
        results.append((leaf.grad, d.grad))
    for ours, theirs in zip(*results, strict=True):
        same(ours, theirs)


def test_embedding_gradients_equal() -> None:
    results = []
    for library in (torch, pytorch):
        weight = library.arange(12.0).reshape(4, 3).requires_grad_()
        for ids in ([1, 3, 1], [2, 1]):
            rows = library.nn.functional.embedding(
                library.tensor(ids), weight, padding_idx=2, sparse=True
            )
            (rows * rows).sum().backward()
        results.append(weight.grad)
    same(*results)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_of_one_open_in_the_other(layout: str) -> None:
    for writer, reader in ((torch, pytorch), (pytorch, torch)):
        file = io.BytesIO()
        writer.save({"x": sparse_in(writer, layout), "layout": getattr(writer, layout)}, file)
        file.seek(0)
        loaded = reader.load(file)
        assert loaded["layout"] is getattr(reader, layout)
        same(loaded["x"], sparse_in(reader, layout))


@pytest.mark.parametrize(
    "expression",
    [
        "torch.sparse_coo_tensor([[0, 1]], [1.0], (3,))",
        "torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 3))",
        "x.values()", "x.indices()", "x.crow_indices()", "torch.ones(2).coalesce()",
        "torch.ones(2).values()", "x.exp()", "x == x", "x.view(20)", "x.max()", "x.numpy()",
        "x + torch.sparse_coo_tensor((5, 4))", "x @ x", "x[9]", "x.to_sparse(1)",
        "x.to_dense().to_sparse_bsr(2)", "x.to_dense().to_sparse_bsr((2, 0))",
        "x.to_dense().to_sparse(layout=torch.sparse_bsr)", "x.to_dense().to_sparse(blocksize=2)",
        "torch.sparse_bsr_tensor([0, 1], [0], [1.0])", "x.to_sparse_bsr((2, 5)).indices()",
    ],
)  # fmt: skip
def test_errors_are_of_one_class(expression: str) -> None:
    for library in (torch, pytorch):
        with pytest.raises((RuntimeError, IndexError, TypeError)) as caught:
            eval(expression, {"torch": library, "x": sparse_in(library)})
        if library is torch:
            ours = caught.type
    assert issubclass(ours, caught.type) or issubclass(caught.type, ours)
