"""Sparse tensors in the rest of the framework: files, printing, every op of the table."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ops.matrix import ROWS, SAMPLED, SAMPLES, function_of, tensor_of
from sparse_matrices import LAYOUTS, coo, in_layout, same

import rushlight as torch
from rushlight import Tensor


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_pickles_and_checkpoints(layout: Any) -> None:
    x = in_layout(coo(3, 4, 5), layout).detach().requires_grad_()
    file = io.BytesIO()
    parameter = torch.nn.Parameter(x.detach())
    hybrid = torch.eye(3).to_sparse(1)
    torch.save({"x": parameter, "hybrid": hybrid, "layout": torch.sparse_csr}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["layout"] is torch.sparse_csr
    same(loaded["hybrid"], np.eye(3))
    for y in (
        copy.deepcopy(x),
        pickle.loads(pickle.dumps(x)),
        loaded["x"],
        copy.deepcopy(parameter),
        x.clone().detach().requires_grad_(),
    ):
        assert (y.layout, y.requires_grad, y._nnz()) == (layout, True, x._nnz())
        same(y, x.detach())
    assert pickle.loads(pickle.dumps(layout)) is layout


def test_damaged_files_are_refused() -> None:
    from rushlight._checkpoint.rebuild import get_layout, rebuild_sparse

    indices, values = torch.tensor([[0, 5]]), torch.ones(2)
    for layout, parts in (
        (torch.sparse_coo, (indices, values, (3,), False)),
        (torch.sparse_coo, (indices, values, (3,))),
        (torch.sparse_coo, (indices, values, (6,), 1)),
        (torch.sparse_coo, (indices, values, (2**70,), True)),
        (torch.sparse_coo, (indices, values, (6.0,), True)),
        (torch.sparse_coo, (indices, [1.0, 2.0], (6,), True)),
        (torch.sparse_coo, (indices.to_sparse(), values, (6,), True)),
        (torch.sparse_coo, [indices, values, (6,), True]),
        (torch.sparse_csr, (torch.tensor([0, 9]), torch.tensor([0]), torch.ones(1), (1, 1))),
        (torch.sparse_csr, (indices, values, (3,))),
        (torch.sparse_bsr, (torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1))),
        (torch.sparse_bsr, (torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1, 2, 2), (2, 3))),
        (torch.sparse_bsc, (torch.tensor([0, 1]), torch.tensor([1]), torch.ones(1, 2, 2), (2, 2))),
        (torch.strided, (indices, values, (6,), True)),
        ("torch.sparse_coo", (indices, values, (6,), True)),
    ):
        with pytest.raises(pickle.UnpicklingError):
            rebuild_sparse(layout, parts)
    assert rebuild_sparse(torch.sparse_coo, (indices, values, (6,))).shape == (6,)
    for name in ("torch.sparse_blocks", ["torch.strided"], None):
        with pytest.raises(pickle.UnpicklingError):
            get_layout(name)


def test_data_and_parameters_may_be_sparse() -> None:
    x, y = coo(3, 4, 5), coo(2, 2, 3)
    parameter = torch.nn.Parameter(x)
    assert parameter.is_sparse
    assert parameter.requires_grad
    parameter.data = y
    same(parameter.detach(), y)
    parameter.data = torch.ones(2)
    assert not parameter.is_sparse
    assert parameter.tolist() == [1, 1]


def test_modules_keep_sparse_buffers() -> None:
    class Graph(torch.nn.Module):
        def __init__(self, scale: float) -> None:
            super().__init__()
            self.register_buffer("edges", torch.eye(3).to_sparse() * scale)
            self.weight = torch.nn.Parameter(torch.eye(3).to_sparse_csr() * scale)

    one, other = Graph(1.0).double(), Graph(2.0).double()
    other.load_state_dict(one.state_dict())
    for module in (other, copy.deepcopy(one)):
        assert module.edges.dtype is torch.float64
        torch.testing.assert_close(module.edges, one.edges)
        torch.testing.assert_close(module.weight, one.weight)
    with pytest.raises(AssertionError, match="attribute 'layout' do not match"):
        torch.testing.assert_close(one.edges, one.edges.to_sparse_csr())


def test_one_element_is_a_number() -> None:
    x = torch.sparse_coo_tensor([[0, 0]], [5.0, -3.0], (1,))
    assert x.item() == float(x) == 2 and bool(x) and x.is_nonzero()
    assert not torch.sparse_coo_tensor((1, 1)).to_sparse_csr()
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(torch.sparse_coo_tensor([[0]], [5.0], (2,)))
    with pytest.raises(RuntimeError, match="2 elements"):
        torch.sparse_coo_tensor([[0]], [5.0], (2,)).item()


def test_memory_is_not_handed_out() -> None:
    x = torch.eye(3).to_sparse()
    assert x.data_ptr() == 0
    with pytest.raises(BufferError, match="to_dense"):
        memoryview(x)
    with pytest.raises(BufferError, match="to_dense"):
        x.__dlpack__()
    with pytest.raises(BufferError, match="to_dense"):
        torch.to_dlpack(x)
    with pytest.raises(NotImplementedError, match="^tolist: not implemented for sparse"):
        x.tolist()
    with pytest.raises(NotImplementedError):
        x[0:2]
    with pytest.raises(TypeError):
        x[0] = 1


def test_printing() -> None:
    x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    assert repr(x) == (
        "tensor(indices=tensor([[0, 1],\n"
        "                       [2, 0]]),\n"
        "       values=tensor([3., 4.]),\n"
        "       size=(2, 3), nnz=2, layout=torch.sparse_coo)"
    )
    assert repr(x.double().to_sparse_csr().requires_grad_()) == (
        "tensor(crow_indices=tensor([0, 1, 2]),\n"
        "       col_indices=tensor([2, 0]),\n"
        "       values=tensor([3., 4.]), size=(2, 3), nnz=2, dtype=torch.float64,\n"
        "       layout=torch.sparse_csr, requires_grad=True)"
    )


def test_checks_of_indices_answer_as_in_pytorch() -> None:
    checks = torch.sparse.check_sparse_tensor_invariants
    assert not checks.is_enabled()
    with checks():
        assert checks.is_enabled()
        with checks(False):
            assert not checks.is_enabled()
        assert checks.is_enabled()
    assert checks(True)(checks.is_enabled)()
    checks.enable()
    assert checks.is_enabled()
    checks.disable()
    assert not checks.is_enabled()


def test_factories_take_a_layout() -> None:
    assert torch.ones(2, 3, layout=torch.sparse_csr)._nnz() == 6
    assert torch.zeros(2, layout=torch.strided).layout is torch.strided
    with pytest.raises(TypeError, match="argument 'layout' must be torch.layout, not int"):
        torch.zeros(2, layout=3)


def test_out_takes_a_sparse_tensor_of_the_layout() -> None:
    x, y = coo(3, 4, 5), coo(3, 4, 6, 1)
    out = torch.sparse_coo_tensor(size=(3, 4)).double()
    assert torch.add(x, y, out=out) is out
    same(out, x.to_dense() + y.to_dense())
    with pytest.raises(RuntimeError, match="out has sparse_csr"):
        torch.add(x, y, out=out.to_sparse_csr())
    with pytest.raises(RuntimeError, match="out is a dense tensor"):
        torch.add(x, y, out=torch.zeros(3, 4))


@contextlib.contextmanager
def standard_refusal() -> Iterator[None]:
    """Lets an op refuse its arguments by the message that names it."""
    try:
        yield
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        if not re.match(r"\w+(: (?!internal error)|\(\))", str(error)):
            raise


@pytest.mark.parametrize("name", SAMPLED)
def test_every_op_takes_sparse_tensors_or_refuses_them(name: str) -> None:
    sample = SAMPLES[name].all[0]
    method = getattr(torch.Tensor, ROWS[name]["name"] + "_", None)
    for layout in LAYOUTS:
        for position in range(len(sample.arrays())):
            left = iter(range(len(sample.arrays())))

            def converted(array: np.ndarray) -> Tensor:
                tensor = tensor_of(array)
                wanted = next(left) == position  # noqa: B023
                if not wanted or tensor.dim() == 0:
                    return tensor
                return in_layout(tensor, layout if tensor.dim() == 2 else torch.sparse_coo)  # noqa: B023

            call = sample.map(converted)
            for function in (function_of(name), method):
                if function is None or (function is method and not call.args):
                    continue
                with standard_refusal():
                    function(*call.args, **call.kwargs)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_what_asks_whose_memory_it_is_takes_tensors_without(layout: Any) -> None:
    sparse = in_layout(torch.eye(3).mul(2), layout)

    class Product(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("matrix", sparse)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.matrix @ x

    x = torch.ones(3, 2, requires_grad=True)
    exported = torch.export.export(Product(), (x.detach(),))
    assert exported.module()(x.detach()).tolist() == [[2, 2]] * 3
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        Product()(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[2, 2]] * 3
