"""torch.masked behaves as PyTorch's: results, dtypes, text, gradients and classes of errors."""

import re
from typing import Any

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

GENERATOR = np.random.default_rng(3)
DATA = np.round(GENERATOR.normal(size=(3, 4)) * 3, 3)
MASK = np.array([[1, 0, 1, 1], [0, 0, 0, 1], [1, 1, 0, 0]], dtype=bool)


def named(library: Any) -> dict[str, Any]:
    """What the expressions below speak of."""
    data, mask = library.from_numpy(DATA.copy()), library.from_numpy(MASK.copy())
    leaf = library.from_numpy(DATA.copy()).requires_grad_()
    return {
        "torch": library, "masked": library.masked, "d": data, "m": mask, "leaf": leaf,
        "i": data.int(), "none": mask & ~mask, "inf": float("inf"),
        "x": library.masked.masked_tensor(data, mask),
        "y": library.masked.masked_tensor(data, mask, requires_grad=True),
    }  # fmt: skip


def described(value: Any) -> Any:
    """What a result is, in terms that both libraries share: facts, mask and what it keeps."""
    if type(value).__name__ == "MaskedTensor":
        mask, data = value.get_mask().numpy(), value.get_data().detach().numpy()
        return ("masked", str(data.dtype)), mask, np.where(mask, data, 0)
    if hasattr(value, "detach"):
        return ("plain", str(value.dtype).rpartition(".")[2]), None, value.detach().numpy()
    if isinstance(value, (tuple, list)):
        return [described(item) for item in value]
    return str(value)


def same(ours: Any, theirs: Any) -> None:
    ours, theirs = described(ours), described(theirs)
    for a, b in zip(*(x if isinstance(x, list) else [x] for x in (ours, theirs)), strict=True):
        assert a[0] == b[0]
        if isinstance(a, tuple):
            np.testing.assert_array_equal(a[1], b[1])
            tolerance = 1e-6 if "32" in str(a[0]) else 1e-9
            np.testing.assert_allclose(a[2], b[2], rtol=tolerance, atol=1e-12)
        else:
            assert a == b


FUNCTIONS = [
    f"{name}({{}}, 1, mask={{}})"
    for name in ("sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "var", "std",
                 "logsumexp", "softmax", "log_softmax", "softmin", "cumsum", "cumprod")
] + [
    "sum({}, mask={})", "sum({}, (0, 1), True, mask={})", "sum({}, (), mask={})",
    "prod({}, mask={})",
    "prod({}, keepdim=True, mask={})", "argmin({}, mask={})",
    "argmax({}, 0, keepdim=True, mask={})",
    "mean({}, (0, 1), mask={})", "var({}, 0, False, mask={})", "std({}, 1, correction=0, mask={})",
    "norm({}, 2, 1, mask={})", "norm({}, inf, 1, mask={})", "norm({}, -inf, 0, mask={})",
    "norm({}, 1.5, mask={})", "normalize({}, 2.0, 1, mask={})",
    "sum({}, 1, dtype=torch.float32, mask={})",
    "softmax({}, 0, dtype=torch.float32, mask={})", "median({}, 0, keepdim=True, mask={})",
    "mean({}, 1, keepdim=True, dtype=torch.float32, mask={})", "logaddexp({}, d, input_mask={})",
]  # fmt: skip
CASES = [
    f"masked.{function}".replace("{}, ", f"{data}, ", 1).replace("={}", f"={mask}", 1)
    for function in FUNCTIONS
    for data in ("leaf", "i")
    for mask in ("m", "m[0]", "none", "None")
    if not (mask == "None" and "mask" not in function)
]


def ended(text: str, names: dict[str, Any]) -> tuple[Any, tuple[type, ...]]:
    try:
        return eval(text, names), ()
    except Exception as error:
        return None, type(error).__mro__


@pytest.mark.parametrize("text", CASES)
def test_functions(text: str) -> None:
    ours, theirs = named(torch), named(pytorch)
    result, our_error = ended(text, ours)
    expected, their_error = ended(text, theirs)
    assert bool(our_error) == bool(their_error), (our_error, their_error)
    if their_error:
        assert their_error[0] in our_error or issubclass(our_error[0], RuntimeError)
        return
    same(result, expected)
    if expected.requires_grad and expected.isfinite().all():
        (result * result).sum().backward()
        (expected * expected).sum().backward()
        np.testing.assert_allclose(
            ours["leaf"].grad.numpy(), theirs["leaf"].grad.numpy(), rtol=1e-6, atol=1e-9
        )


EXPRESSIONS = [
    "x", "x + 1", "x * 3 - x", "x / d", "d + x", "x * d[0]", "x ** 2", "-x", "x < 1", "x == x",
    "x >= d",
    "x.abs()", "x.exp()", "x.sin()", "x.clamp(-1, 1)", "x.floor()", "x.isnan()", "x.round()",
    "x.sgn()",
    "torch.sqrt(x.abs())", "torch.add(x, x)", "torch.maximum(x, x)", "torch.fmod(x, d)",
    "x.atan2(d)",
    "x.clone().add_(1)", "x.clone().sin_()", "x[0]", "x[:, 1]", "x[1, 1]", "x[1:, ::2]", "x[m]",
    "x.t()", "x.view(4, 3)", "x.reshape(-1)", "x.unsqueeze(0)", "x.expand(2, 3, 4)",
    "x.split(2, 1)",
    "x.chunk(2)", "torch.cat([x, x], 1)", "torch.stack([x, x])", "x.transpose(0, 1)",
    "x.select(0, 1)",
    "x.sum()", "x.sum(1)", "x.sum((0, 1))", "x.sum(dim=0, keepdim=True)", "x.mean()", "x.mean(0)",
    "x.prod(1)", "x.amax()", "x.amin(1)", "x.argmax()", "x.argmin(1)", "x.all()", "(x > 0).all(1)",
    "x.var()", "x.var(1)", "x.std(0)", "x.softmax(1)", "x.to(torch.float32)", "x.float()",
    "x.detach()",
    "torch.ones_like(x)", "x.get_data()", "x.get_mask()", "x.to_tensor(7)", "x.shape", "x.layout",
    "x.is_contiguous()", "len(x)", "x[0, 0].item()", "masked.sum(x)", "masked.sum(x, 1)",
    "masked.amax(x, 0)", "masked.softmax(x, 1)", "masked.is_masked_tensor(x)",
    "masked.is_masked_tensor(d)", "masked.as_masked_tensor(d, m)", "torch.where(m, x, x)",
    "torch.where(m, x, masked.masked_tensor(-d, ~m))", "y.requires_grad", "y.is_leaf", "x + i",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_masked_tensors(text: str) -> None:
    same(eval(text, named(torch)), eval(text, named(pytorch)))


GRADIENTS = [
    "y.sum()", "(y * y).sum()", "y.mean(1).sum()", "y.exp().amax()", "y.prod()",
    "(y / d).sum(0).sum()",
    "y.softmax(1).amax()", "torch.cat([y, y * 2]).sum()", "y.to_tensor(3).sum()",
    "y.get_data().exp().sum()", "y.t().reshape(-1).sin().sum()",
    "torch.where(m, y, masked.masked_tensor(-d, ~m)).exp().sum()", "y.abs().sqrt().log().sum()",
]  # fmt: skip


@pytest.mark.parametrize("text", GRADIENTS)
def test_gradients(text: str) -> None:
    ours, theirs = named(torch), named(pytorch)
    eval(text, ours).backward()
    try:
        eval(text, theirs).backward()
    except (RuntimeError, TypeError, ValueError):
        pytest.skip("PyTorch does not differentiate it")
    same(ours["y"].grad, theirs["y"].grad)


MISTAKES = [
    "masked.sum(d, 5, mask=m)", "masked.sum(d, (0, 0), mask=m)", "masked.sum(d, 1, mask=m[None])",
    "masked.mean(i, 1, mask=m)", "masked.median(i, 1, mask=none)", "masked.amax(d > 0, 1, mask=m)",
    "masked.var(d, 1, True, correction=1)", "masked.softmax(i, 1, mask=m)", "masked.sum(d, 1, m)",
    "masked.masked_tensor([1], m)", "masked.masked_tensor(d, [True])", "masked.masked_tensor(d, i)",
    "masked.masked_tensor(d, m[0])", "masked.masked_tensor(d, m[:1])",
    "masked.masked_tensor(d + 0j, m)",
    "masked.masked_tensor(x, m)", "x + masked.masked_tensor(d, ~m)", "x @ d.t()", "x.median()",
    "x.cumsum(0)", "x.numpy()", "x.tolist()", "bool(x)", "torch.nn.functional.linear(x, d)",
]  # fmt: skip


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_raise_the_same_class(text: str) -> None:
    (_, ours), (_, theirs) = ended(text, named(torch)), ended(text, named(pytorch))
    assert theirs and theirs[0] in ours, (ours, theirs)


def test_text() -> None:
    for text in (
        "x",
        "x[0]",
        "x[1, 1]",
        "x.sum()",
        "x > 0",
        "masked.masked_tensor(i, m)",
        "y.exp()",
    ):
        ours, theirs = (repr(eval(text, named(library))) for library in (torch, pytorch))
        assert re.sub("-0.0000", " 0.0000", ours) == re.sub("-0.0000", " 0.0000", theirs)
