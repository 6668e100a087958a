"""Programs that run with Rushlight and with PyTorch, compared by what they return or raise.

For the tests of transforms: a program is a function of the library.
"""

from typing import Any

import numpy as np
import pytest
from compat.programs import Program

import rushlight as torch

pytorch: Any = pytest.importorskip("torch")


def data(t: Any, *shape: int, seed: int = 0, dtype: str = "float64") -> Any:
    numbers = np.random.default_rng(seed)
    array = numbers.standard_normal(shape)
    if dtype.startswith("complex"):
        array = array + 1j * numbers.standard_normal(shape)
    return t.from_numpy(array).to(getattr(t, dtype))


def described(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [described(v) for v in value]
    if isinstance(value, dict):
        return {k: described(v) for k, v in value.items()}
    if hasattr(value, "requires_grad"):
        facts = tuple(value.shape), str(value.dtype).rpartition(".")[2], value.requires_grad
        return facts, value.detach().resolve_conj().numpy()
    return value


def outcome(library: Any, run: Program) -> Any:
    try:
        return described(run(library))
    except Exception as error:
        return "raises", type(error).__name__, str(error)


def same(ours: Any, theirs: Any, path: str = "") -> None:
    assert type(ours) is type(theirs), (path, ours, theirs)
    if isinstance(ours, dict):
        assert list(ours) == list(theirs), path
        for key in ours:
            same(ours[key], theirs[key], f"{path}[{key!r}]")
    elif isinstance(ours, (tuple, list)):
        if "raises" in (*ours[:1], *theirs[:1]):
            assert ours[:2] == theirs[:2], (path, ours, theirs)
            return
        assert len(ours) == len(theirs), (path, ours, theirs)
        for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            same(one, other, f"{path}[{i}]")
    elif isinstance(ours, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9, err_msg=path)
    else:
        assert ours == theirs, path


def same_outcome(run: Program) -> None:
    """Compares, and checks that no level of a transform is left open."""
    same(outcome(torch, run), outcome(pytorch, run))
    x = torch.tensor([1.0, 2.0])
    assert torch.func.vmap(torch.sin)(x).tolist() == torch.sin(x).tolist()
    assert torch.func.grad(torch.sum)(x).tolist() == [1.0, 1.0]
    with torch.autograd.forward_ad.dual_level():
        pass


def module(t: Any, seed: int = 0) -> Any:
    net = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Linear(4, 2)).double()
    with t.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(data(t, *p.shape, seed=seed + i))
    return net
