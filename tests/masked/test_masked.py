"""Masked reductions and MaskedTensor give what NumPy's masked arrays and plain ops give."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import masked
from rushlight.masked import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

GENERATOR = np.random.default_rng(0)
DATA = GENERATOR.normal(size=(4, 5, 3))
MASK = GENERATOR.random((4, 5, 3)) < 0.6
MASK[1, 2] = False  # nothing is kept here


def tensors() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(DATA.copy()), torch.from_numpy(MASK.copy())


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, axis: x.sum(axis).filled(0),
    "prod": lambda x, axis: x.prod(axis).filled(1),
    "amax": lambda x, axis: x.max(axis).filled(-np.inf),
    "amin": lambda x, axis: x.min(axis).filled(np.inf),
    "mean": lambda x, axis: x.mean(axis).filled(np.nan),
    "median": lambda x, axis: np.nanquantile(x.filled(np.nan), 0.5, axis, method="lower"),
    "std": lambda x, axis: x.std(axis, ddof=1).filled(np.nan),
    "norm": lambda x, axis: np.sqrt((x**2).sum(axis)).filled(0),
    "logsumexp": lambda x, axis: np.log(np.exp(x).sum(axis)).filled(-np.inf),
    "argmax": lambda x, axis: x.argmax(axis),
    "argmin": lambda x, axis: x.argmin(axis),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction_leaves_masked_elements_out(name: str, dim: int) -> None:
    data, mask = tensors()
    theirs = np.asarray(REDUCTIONS[name](np.ma.array(DATA, mask=~MASK), dim), dtype=np.float64)
    kept = MASK.sum(dim) > (1 if name == "std" else 0)
    for ours in (
        getattr(masked, name)(data, dim=dim, mask=mask),
        getattr(masked, name)(masked_tensor(data, mask), dim=dim),
    ):
        if name in ("argmax", "argmin", "std"):  # no one answer where nothing is kept
            np.testing.assert_allclose(ours.numpy()[kept], theirs[kept])
        else:
            np.testing.assert_allclose(ours.numpy(), theirs)
    both = getattr(masked, name)(data, dim=dim, mask=mask, keepdim=True)
    np.testing.assert_array_equal(both.squeeze(dim).numpy(), ours.numpy())


@pytest.mark.parametrize("dims", [None, (), (0, 2), (1, -1)])
def test_reduction_over_several_dims(dims: Any) -> None:
    data, mask = tensors()
    axis = dims or None
    plain = np.ma.array(DATA, mask=~MASK)
    np.testing.assert_allclose(masked.sum(data, dims, mask=mask).numpy(), plain.sum(axis))
    np.testing.assert_allclose(masked.mean(data, dims, mask=mask).numpy(), plain.mean(axis))
    np.testing.assert_allclose(
        masked.var(data, dims, unbiased=False, mask=mask).numpy(), plain.var(axis)
    )
    assert masked.prod(data, dims, keepdim=True, mask=mask).dim() == 3


def test_logsumexp_of_complex_numbers() -> None:
    z = torch.tensor([[1 + 2j, 3 - 1j, 0.5j], [1, 2j, 3]])
    mask = torch.tensor([[True, False, True], [False, False, False]])
    result = masked.logsumexp(z, 1, mask=mask)
    torch.testing.assert_close(result[0], z[0, ::2].exp().sum().log())
    assert result[1].real.item() == -np.inf


NORMALIZATIONS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True),
    "log_softmax": lambda x: x - np.ma.log(np.exp(x).sum(1, keepdims=True)),
    "softmin": lambda x: np.exp(-x) / np.exp(-x).sum(1, keepdims=True),
    "cumsum": lambda x: np.ma.array(x.filled(0).cumsum(1), mask=x.mask),
    "cumprod": lambda x: np.ma.array(x.filled(1).cumprod(1), mask=x.mask),
}


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_normalization_leaves_masked_elements_out(name: str) -> None:
    data, mask = tensors()
    theirs = NORMALIZATIONS[name](np.ma.array(DATA, mask=~MASK))
    ours = getattr(masked, name)(data, 1, mask=mask).numpy()
    np.testing.assert_allclose(ours[MASK], theirs.data[MASK])
    if name in ("softmax", "softmin"):
        assert not ours[~MASK & MASK.any(1, keepdims=True)].any()


def test_normalize_and_logaddexp() -> None:
    data, mask = tensors()
    unit = masked.normalize(data, 2.0, 1, mask=mask)
    lengths = torch.linalg.vector_norm(unit, dim=1)
    torch.testing.assert_close(lengths[mask.any(1)], torch.ones_like(lengths[mask.any(1)]))
    both = masked.logaddexp(data, data + 1, input_mask=mask, other_mask=~mask)
    torch.testing.assert_close(both, torch.where(mask, data, data + 1))


def test_gradients_do_not_reach_masked_elements() -> None:
    data, mask = torch.rand(3, 4, dtype=torch.float64), torch.rand(3, 4) > 0.4
    mask[:, 0] = True
    for name in ("sum", "prod", "mean", "var", "norm", "logsumexp", "softmax", "cumsum"):
        op = getattr(masked, name)
        arguments = {"dim": 1, "mask": mask}

        def run(x: torch.Tensor, op: Any = op, arguments: Any = arguments) -> torch.Tensor:
            return op(x, correction=0, **arguments) if op is masked.var else op(x, **arguments)

        assert torch.autograd.gradcheck(run, data.clone().requires_grad_())
        leaf = data.clone().requires_grad_()
        (run(leaf) ** 2).sum().backward()
        assert not leaf.grad[~mask].any()


def test_dtypes_of_results() -> None:
    x, mask = torch.tensor([3, 4], dtype=torch.int32), torch.tensor([True, False])
    assert masked.sum(x, mask=mask).dtype is torch.int64
    assert masked.amax(x, mask=mask).dtype is torch.int32
    assert masked.amax(x, mask=~mask & mask).item() == torch.iinfo(torch.int32).min
    assert masked.std(x, mask=mask, unbiased=False).dtype is torch.float32
    assert masked.median(x, 0, mask=mask).item() == 3
    assert masked.sum(x, mask=mask, dtype=torch.float64).dtype is torch.float64


MISTAKES: list[tuple[Callable[[Any, Any], Any], type[Exception], str]] = [
    (lambda x, m: masked.sum(x, 5, mask=m), IndexError, "out of range"),
    (lambda x, m: masked.sum(x, (0, 0), mask=m), RuntimeError, "multiple times"),
    (lambda x, m: masked.sum(x, 0, mask=m[None]), IndexError, "dimensionality"),
    (lambda x, m: masked.mean(x.long(), 0, mask=m), ValueError, "floating"),
    (lambda x, m: masked.median(x.long(), 0, mask=m & ~m), ValueError, "fully masked"),
    (lambda x, m: masked.var(x, 0, True, correction=1), AssertionError, "unbiased"),
    (lambda x, m: masked.amax(x > 0, 0, mask=m), NotImplementedError, "identity"),
    (lambda x, m: masked.sum(x[0].to_sparse(), 0), ValueError, "to_dense"),
    (lambda x, m: masked_tensor([1.0], m), TypeError, "data must be a Tensor"),
    (lambda x, m: masked_tensor(x, [True]), TypeError, "mask must be a Tensor"),
    (lambda x, m: masked_tensor(x, m.int()), TypeError, "bool"),
    (lambda x, m: masked_tensor(x, m[0]), ValueError, "dim"),
    (lambda x, m: masked_tensor(x, m[:1]), ValueError, "size"),
    (lambda x, m: masked_tensor(x + 0j, m), TypeError, "not supported"),
    (lambda x, m: masked_tensor(x, m) + masked_tensor(x, ~m), ValueError, "masks must match"),
    (lambda x, m: masked_tensor(x, m) @ x, TypeError, "to_tensor"),
    (lambda x, m: masked_tensor(x, m).numpy(), RuntimeError, "to_tensor"),
    (lambda x, m: torch.cat([masked_tensor(x, m), x]), TypeError, "as_masked_tensor"),
]


@pytest.mark.parametrize("index", range(len(MISTAKES)))
def test_mistake_says_what_to_do(index: int) -> None:
    call, kind, words = MISTAKES[index]
    with pytest.raises(kind, match=words):
        call(*tensors())


# MaskedTensor


def same(ours: MaskedTensor, theirs: Any) -> None:
    mask = np.broadcast_to(~np.ma.getmaskarray(theirs), theirs.shape)
    np.testing.assert_array_equal(ours.get_mask().numpy(), mask)
    np.testing.assert_allclose(ours.get_data().numpy()[mask], theirs.data[mask])


OPS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda x: 2 - x * 3 + x**2,
    "itself": lambda x: x * x - x,
    "compare": lambda x: x > 0,
    "abs": lambda x: abs(x),
    "item": lambda x: x[1],
    "slice": lambda x: x[:, 1:3],
    "element": lambda x: x[1:2, 1, 0],
    "reshape": lambda x: x.reshape(5, -1),
    "row": lambda x: x + np.arange(3.0) if isinstance(x, np.ndarray) else x + torch.arange(3.0),
    "transpose": lambda x: x.transpose(1, 0, 2) if isinstance(x, np.ndarray) else x.transpose(0, 1),
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean(2),
    "prod": lambda x: x.prod(0),
}


@pytest.mark.parametrize("name", OPS)
def test_op_equals_that_of_masked_arrays(name: str) -> None:
    same(OPS[name](masked_tensor(*tensors())), OPS[name](np.ma.array(DATA, mask=~MASK)))


def test_reductions_over_all_elements() -> None:
    x, plain = masked_tensor(*tensors()), np.ma.array(DATA, mask=~MASK)
    for name, theirs in (("sum", "sum"), ("mean", "mean"), ("amax", "max"), ("argmin", "argmin")):
        assert math.isclose(getattr(x, name)().item(), getattr(plain, theirs)())
    assert (x == x).all().item() is True
    assert not masked_tensor(torch.ones(2), torch.zeros(2, dtype=torch.bool)).sum().get_mask()


def test_angles_and_histories() -> None:
    data, mask = tensors()
    x = masked_tensor(data, mask)
    assert x.angle().get_data().equal(data.angle()) and torch.positive(x).get_mask().equal(mask)
    with pytest.warns(UserWarning, match="not recommended"):
        masked_tensor(data.clone().requires_grad_(), mask)


def test_moved_in_place_and_chosen() -> None:
    data, mask = tensors()
    x = masked_tensor(data, mask)
    assert x.add_(1) is x
    assert x.get_data().equal(data + 1)
    assert torch.cat([x, x]).get_mask().equal(torch.cat([mask, mask]))
    for part, expected in zip(x.split(2), mask.split(2), strict=True):
        assert part.get_mask().equal(expected)
    y = torch.where(mask, x, masked_tensor(-data, ~mask))
    assert y.get_mask().all()
    assert y.get_data().equal(torch.where(mask, data + 1, -data))


def test_gradient_is_masked_and_free_of_nan_that_is_masked_away() -> None:
    data = torch.tensor([0.0, 4.0, 9.0])
    x = masked_tensor(data, data > 0, requires_grad=True)
    x.sqrt().sum().backward()
    assert is_masked_tensor(x.grad)
    assert x.grad.to_tensor(0).tolist() == [0, 1 / 4, pytest.approx(1 / 6)]
    leaf = torch.ones(3, requires_grad=True)
    (as_masked_tensor(leaf, data > 0) / data).sum().backward()  # 0 / 0 where it is masked
    assert leaf.grad.tolist() == [0, 1 / 4, pytest.approx(1 / 9)]


def test_copies_and_text() -> None:
    x = masked_tensor(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.eye(2).bool())
    text = "MaskedTensor(\n  [\n    [  1.0000,       --],\n    [      --,   4.0000]\n  ]\n)"
    for again in (x, copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert repr(again) == text
    assert repr(x[0, 1]) == "MaskedTensor(--, False)"
    assert repr(masked_tensor(torch.tensor([7, 8]), torch.tensor([False, True]))) == (
        "MaskedTensor(\n  [      --, 8]\n)"
    )
    assert x.double().dtype is torch.float64
    assert x.to(torch.float16).get_mask().equal(x.get_mask())
