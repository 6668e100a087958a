"""Steps, state and representation equal PyTorch's."""

import itertools

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")

SGD = [
    {"momentum": momentum, "weight_decay": decay, "nesterov": nesterov, "maximize": maximize}
    for momentum, decay, nesterov, maximize in itertools.product(
        (0, 0.9), (0, 0.1), (False, True), (False, True)
    )
    if momentum or not nesterov
]
ADAM = [
    {"weight_decay": decay, "amsgrad": amsgrad, "maximize": maximize}
    for decay, amsgrad, maximize in itertools.product((0, 0.1), (False, True), (False, True))
]
CASES = [
    *(("SGD", options) for options in SGD),
    ("SGD", {"momentum": 0.9, "dampening": 0.3}),
    *((name, options) for name in ("Adam", "AdamW") for options in ADAM),
]


def train(library, name, options):
    rng = np.random.default_rng(0)
    shapes = [(3, 4), (5,), ()]
    params = [library.nn.Parameter(library.tensor(rng.normal(size=s))) for s in shapes]
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.05}]
    optimizer = getattr(library.optim, name)(groups, lr=0.1, **options)
    for step in range(5):
        optimizer.zero_grad()
        for i, param in enumerate(params):
            grad = library.tensor(rng.normal(size=shapes[i]))
            if not (i == 1 and step in (0, 2)):
                param.grad = grad
        optimizer.step()
    return params, optimizer


@pytest.mark.parametrize(("name", "options"), CASES)
def test_training_equals_pytorchs(name, options) -> None:
    params, optimizer = train(torch, name, options)
    expected_params, expected = train(pytorch, name, options)
    for ours, theirs in zip(params, expected_params, strict=True):
        np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=1e-10)
    assert repr(optimizer) == repr(expected)
    ours, theirs = optimizer.state_dict(), expected.state_dict()
    assert ours["param_groups"] == theirs["param_groups"]
    assert list(ours["state"]) == list(theirs["state"])
    for key, state in theirs["state"].items():
        assert list(ours["state"][key]) == list(state)
        for name_in_state, value in state.items():
            mine = ours["state"][key][name_in_state]
            assert str(mine.dtype) == str(value.dtype)
            np.testing.assert_allclose(mine.tolist(), value.tolist(), rtol=1e-10)
