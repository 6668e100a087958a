"""Every op gives the same where a mode passes it on, and so do its gradients."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from samples import OpSamples, Sample, load_all

import rushlight as torch
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import TorchDispatchMode


class Pass(TorchDispatchMode):
    """Runs each op as it is."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def function_of(name: str) -> Any:
    """What Python calls for "linalg.norm.ord_str"."""
    found: Any = torch
    for part in name.split("."):
        found = getattr(found, part, found)
    return found


def leaf(array: np.ndarray) -> torch.Tensor:
    tensor = torch.from_numpy(np.array(array))
    return tensor.requires_grad_() if tensor.is_floating_point() else tensor


def run(function: Any, sample: Sample, mode: Any) -> list[Any]:
    """Results and gradients, or the class of the error."""
    call = sample.map(leaf)
    torch.manual_seed(1)
    try:
        with mode:
            results = pytree.tree_leaves(function(*call.args, **call.kwargs))
            roots = [
                t.sum()
                for t in results
                if isinstance(t, torch.Tensor) and t.requires_grad and not t.is_complex()
            ]
            if roots:
                torch.autograd.backward(roots)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return [type(error)]
    leaves = pytree.tree_leaves((call.args, call.kwargs))
    grads = [t.grad for t in leaves if isinstance(t, torch.Tensor) and t.requires_grad]
    return [*results, *grads]


def is_same(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or a.layout is not torch.strided:
        return type(a) is type(b)
    if a.dtype != b.dtype or a.shape != b.shape or a.requires_grad != b.requires_grad:
        return False
    return torch.allclose(a.detach(), b.detach(), rtol=1e-6, atol=1e-8, equal_nan=True)


def differs(op: OpSamples) -> bool:
    function = function_of(op.name)
    for sample in op.all[:3]:
        expected = run(function, sample, contextlib.nullcontext())
        found = run(function, sample, Pass())
        if len(expected) != len(found) or not all(map(is_same, expected, found)):
            return True
    return False


def test_all_ops_are_the_same_in_a_mode() -> None:
    wrong = [name for name, op in load_all().items() if callable(function_of(name)) and differs(op)]
    assert not wrong
