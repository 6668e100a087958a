"""The optimizers of PyTorch's own database move parameters as PyTorch's do.

The database has the options of all optimizers, and options that must be refused. Five steps are
taken with each, in all implementations that PyTorch has, and parameters of float64 compared.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from compat.databases import Conversion, ConversionError, attempt, pytorch

import rushlight as torch

database = pytest.importorskip("torch.testing._internal.common_optimizers")
pytestmark = pytest.mark.filterwarnings("ignore")

INFOS = {
    info.optim_cls.__name__: info
    for info in database.optim_db
    if hasattr(torch.optim, info.optim_cls.__name__)
}
STEPS = 5
# Numbers of the state are float32. Muon makes matrices orthogonal in bfloat16.
ABSOLUTE_TOLERANCE = {"Muon": 2e-3}
# The one fused form takes tensors for any numbers, which PyTorch's forms take for some.
ACCEPTED = re.compile("as (a )?Tensor .* foreach|both floats or both Tensors")


def trained(library: Any, info: Any, options: dict[str, Any]) -> list[np.ndarray]:
    """Parameters after five steps on a sum of waves and squares."""
    rng = np.random.default_rng(0)
    shapes = [(4, 3), (3, 2)] if info.optim_cls.__name__ == "Muon" else [(4, 3), (3,), (1,)]
    params = [library.from_numpy(rng.normal(size=s)).requires_grad_() for s in shapes]
    optimizer = getattr(library.optim, info.optim_cls.__name__)(params, **options)

    def closure() -> Any:
        optimizer.zero_grad()
        total = sum((p.sin() + 0.1 * p * p).sum() for p in params)
        total.backward()
        if info.only_supports_sparse_grads:
            for p in params:
                p.grad = p.grad.to_sparse()
        return total

    for _ in range(STEPS):
        if info.step_requires_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return [p.detach().numpy() for p in params]


def inputs_of(info: Any) -> list[Any]:
    """The calls of an optimizer, but not the search for a maximum that is not there."""
    calls = info.optim_inputs_func(device="cpu")
    return [c for c in calls if c.params is None and c.desc != "maximize_strong_wolfe"]


@pytest.mark.parametrize("name", INFOS)
def test_options_of_optimizers(name: str) -> None:
    info = INFOS[name]
    for sample in inputs_of(info):
        for flags in ({}, *({impl: True} for impl in info.supported_impls)):
            options = {**sample.kwargs, **flags} if "forloop" not in flags else sample.kwargs
            theirs = attempt(trained, pytorch, info, dict(options))
            ours = attempt(trained, torch, info, dict(Conversion()(options)))
            what = f"{sample.desc} {flags}"
            if isinstance(theirs, Exception):
                assert type(ours).__name__ == type(theirs).__name__, (what, ours, theirs)
                continue
            assert not isinstance(ours, Exception), (what, ours)
            for mine, expected in zip(ours, theirs, strict=True):
                atol = ABSOLUTE_TOLERANCE.get(name, 1e-8)
                np.testing.assert_allclose(mine, expected, rtol=1e-6, atol=atol, err_msg=what)


@pytest.mark.parametrize("name", INFOS)
def test_mistakes_with_optimizers(name: str) -> None:
    info = INFOS[name]
    for wrong in info.optim_error_inputs_func(device="cpu", dtype=pytorch.float32):
        sample = wrong.optimizer_error_input
        if issubclass(wrong.error_type, Warning) or ACCEPTED.search(sample.desc):
            continue

        def run(library: Any, convert: Any, sample: Any = sample) -> Any:
            params = [library.ones(2, requires_grad=True)]
            params = params if sample.params is None else convert(sample.params)
            return getattr(library.optim, name)(params, **convert(sample.kwargs))

        ours, theirs = attempt(run, torch, Conversion()), attempt(run, pytorch, lambda value: value)
        if isinstance(ours, ConversionError):
            continue  # sparse parameters
        assert type(ours).__name__ == type(theirs).__name__, (sample.desc, ours, theirs)
