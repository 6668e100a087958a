"""autograd.functional and gradcheck agree with PyTorch's: results, forms and messages."""

from typing import Any

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]])
Y = np.array([1.0, -0.5, 2.5])
Z = np.array([0.3 + 1j, -1.1 - 0.4j])

# Of library t; the arguments are as many of X, Y as the function takes, or Z.
FUNCTIONS = {
    "scalar": lambda t: lambda x: (x.exp() * x).sum(),
    "cubic": lambda t: lambda x, y: ((x * y) ** 3).sum() + (y**2).sum(),
    "element": lambda t: lambda x: (x**3).sum().reshape(1, 1),
    "vector": lambda t: lambda x: x.sin().sum(1),
    "pair": lambda t: lambda x: (x.sin(), x.sum(0) ** 2),
    "two": lambda t: lambda x, y: x * y,
    "two_pair": lambda t: lambda x, y: (x @ y, y.exp()),
    "unused": lambda t: lambda x, y: x.exp().sum(),
    "linear": lambda t: lambda x: 3 * x.sum(),
    "constant": lambda t: lambda x: t.ones(1, dtype=t.float64),
    "detached": lambda t: lambda x, y: (x.detach(), x * 2),
    "number": lambda t: lambda x: 3.0,
    "complex": lambda t: lambda z: (z * z.exp()).abs().sum(),
    "complex_out": lambda t: lambda z: z * z * 1j + z.conj(),
}


def arrays_for(name: str) -> list[np.ndarray]:
    if name.startswith("complex"):
        return [Z]
    return [X, Y][: FUNCTIONS[name](torch).__code__.co_argcount]


def tensors(library: Any, arrays: list[np.ndarray], tupled: bool, grad: bool = False) -> Any:
    made = tuple(library.from_numpy(a.copy()).requires_grad_(grad) for a in arrays)
    return made if tupled or len(made) > 1 else made[0]


def described(value: Any) -> Any:
    """Results as nested lists of arrays with what else both libraries share."""
    if isinstance(value, (tuple, list)):
        return [described(v) for v in value]
    facts = tuple(value.shape), str(value.dtype).rpartition(".")[2]
    return facts, value.requires_grad, value.detach().resolve_conj().numpy()


def same(ours: Any, theirs: Any, recorded: bool = True) -> None:
    assert type(ours) is type(theirs)
    if isinstance(ours, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other, recorded)
    elif isinstance(ours, tuple):
        assert ours[0] == theirs[0]
        # Batched, PyTorch records zeros too.
        assert ours[1] == theirs[1] or not recorded
        np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-9, atol=1e-12)
    else:
        assert ours == theirs


def outcome(library: Any, function: str, name: str, tupled: bool, grad: bool, v: str, **how) -> Any:
    arrays = arrays_for(name)
    inputs = tensors(library, arrays, tupled, grad)
    func = FUNCTIONS[name](library)
    args = [func, inputs]
    try:
        if v == "like inputs":
            args.append(tensors(library, [a[::-1] + 0.5 for a in arrays], tupled))
        elif v == "like outputs":
            made = func(*(inputs if isinstance(inputs, tuple) else (inputs,)))
            made = tuple(
                library.from_numpy(np.cos(1 + np.arange(m.numel())).reshape(m.shape)).to(m.dtype)
                for m in (made if isinstance(made, tuple) else (made,))
            )
            args.append(made if len(made) > 1 else made[0])
        return described(getattr(library.autograd.functional, function)(*args, **how))
    except Exception as error:
        # The names of classes differ by the library.
        text = (
            str(error).split(" has type ")[0].replace("torch.Size", "").replace("isonly", "is only")
        )
        if "real scalar outputs" in text:
            text = "real scalar outputs"
        return f"{type(error).__name__}: {text}"


def compare(function: str, name: str, tupled: bool, grad: bool, v: str, **how: Any) -> None:
    ours, theirs = (outcome(t, function, name, tupled, grad, v, **how) for t in (torch, pytorch))
    same(ours, theirs, recorded=not how.get("vectorize"))


FLAGS = [{}, {"create_graph": True}, {"strict": True}, {"create_graph": True, "strict": True}]


@pytest.mark.parametrize("how", FLAGS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("function", ["jacobian", "hessian"])
def test_jacobians_and_hessians_equal(function: str, name: str, how: dict[str, Any]) -> None:
    for grad in (False, True):
        for tupled in (False, True):
            compare(function, name, tupled, grad, "none", **how)


@pytest.mark.parametrize("how", FLAGS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("function", ["vjp", "jvp", "vhp", "hvp"])
def test_products_equal(function: str, name: str, how: dict[str, Any]) -> None:
    for v in ("none", "like inputs", "like outputs"):
        for grad in (False, True):
            compare(function, name, False, grad, v, **how)
        compare(function, name, True, True, v, **how)


@pytest.mark.parametrize("name", ["scalar", "cubic", "pair", "unused", "vector"])
@pytest.mark.parametrize(
    "how",
    [
        {"vectorize": True},
        {"vectorize": True, "create_graph": True},
        {"vectorize": True, "strict": True},
    ],
    ids=str,
)
def test_vectorized_jacobians_equal(name: str, how: dict[str, Any]) -> None:
    compare("jacobian", name, False, True, "none", **how)
    compare("hessian", name, False, True, "none", **how)


@pytest.mark.parametrize("strategy", ["forward-mode", "reverse-mode", "sideways"])
@pytest.mark.parametrize("how", [*FLAGS, {"vectorize": True}], ids=str)
def test_strategies_equal(strategy: str, how: dict[str, Any]) -> None:
    compare("jacobian", "two_pair", False, False, "none", strategy=strategy, **how)
    compare("hessian", "cubic", False, False, "none", outer_jacobian_strategy=strategy, **how)


# gradcheck


def verdict(library: Any, check: str, func: Any, *arrays: np.ndarray, **how: Any) -> Any:
    inputs = [library.from_numpy(a.copy()) for a in arrays]
    for x in inputs:
        x.requires_grad_(x.is_floating_point() or x.is_complex())
    try:
        return getattr(library.autograd, check)(func(library), inputs, **how)
    except Exception as error:
        return type(error).__name__


CHECKED: dict[str, Any] = {
    "matmul": (lambda t: lambda x, y: x @ y, X, Y),
    "detached": (lambda t: lambda x: x * x.detach(), X),
    "no gradient": (lambda t: lambda x: x.detach() * 2, X),
    "constant": (lambda t: lambda x: t.ones(2), X),
    "integers": (lambda t: lambda x, i: x[i], X, np.array([1, 0])),
    "abs at zero": (lambda t: t.abs, np.zeros(2)),
    "nan": (lambda t: t.sqrt, np.array([-1.0])),
    "complex": (lambda t: lambda z: z.exp() * z.conj(), Z),
    "wrong complex": (lambda t: lambda z: z * z.detach().conj(), Z),
    "complex to real": (lambda t: lambda z: (z.real, z.abs()), Z),
    "real to complex": (lambda t: lambda x: t.view_as_complex(x), np.ones((3, 2))),
    "several": (lambda t: lambda x, y: (x * y, x.sum(), y.exp()), X, Y),
    "float32": (lambda t: lambda x: x * x, X.astype(np.float32)),
    "integers only": (lambda t: lambda i: i, np.array([1])),
    "number": (lambda t: t.sin, np.array(0.5)),
    "not_zero_for_zero": (lambda t: lambda x: (x * 0 + 1) / (x - x), X),
    "expanded": (lambda t: lambda x: x.expand(3, 2, 3).sin(), X),
}


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("check", ["gradcheck", "gradgradcheck"])
@pytest.mark.parametrize("name", CHECKED)
def test_verdicts_equal(name: str, check: str, fast_mode: bool) -> None:
    if check == "gradgradcheck" and name in ("no gradient", "constant"):
        pytest.skip("PyTorch stumbles with a TypeError of its own")
    for raises in (True, False):
        how = {"fast_mode": fast_mode, "raise_exception": raises}
        ours, theirs = (verdict(t, check, *CHECKED[name], **how) for t in (torch, pytorch))
        assert ours == theirs
