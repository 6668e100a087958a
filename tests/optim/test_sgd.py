"""SGD against its formula in NumPy."""

import itertools

import numpy as np
import pytest

import rushlight as torch
from rushlight.optim import SGD


def reference(start, grads, lr, momentum, dampening, weight_decay, nesterov, maximize):
    p, buf = start.copy(), None
    for grad in grads:
        if grad is None:
            continue
        g = (-grad if maximize else grad) + weight_decay * p
        if momentum:
            buf = g if buf is None else momentum * buf + (1 - dampening) * g
            g = g + momentum * buf if nesterov else buf
        p = p - lr * g
    return p


CASES = [
    dict(zip(("momentum", "dampening", "weight_decay", "nesterov", "maximize"), case, strict=True))
    for case in itertools.product((0, 0.9), (0, 0.3), (0, 0.1), (False, True), (False, True))
    if not case[3] or (case[0] and not case[1])
]


@pytest.mark.parametrize("options", CASES)
def test_steps_follow_the_formula(options) -> None:
    rng = np.random.default_rng(0)
    starts = [rng.normal(size=shape) for shape in ((3, 4), (5,), ())]
    # The second parameter has no gradient in some steps, among them the first.
    grads = [
        [None if j == 1 and i in (0, 2) else rng.normal(size=start.shape) for i in range(5)]
        for j, start in enumerate(starts)
    ]
    params = [torch.nn.Parameter(torch.tensor(start)) for start in starts]
    optimizer = SGD(params, lr=0.1, **options)
    for i in range(5):
        for param, sequence in zip(params, grads, strict=True):
            param.grad = None if sequence[i] is None else torch.tensor(sequence[i])
        optimizer.step()
    for param, start, sequence in zip(params, starts, grads, strict=True):
        expected = reference(start, sequence, lr=0.1, **options)
        np.testing.assert_allclose(param.detach().numpy(), expected, rtol=1e-12)


def test_only_momentum_keeps_state() -> None:
    for momentum, keys in ((0, []), (0.9, ["momentum_buffer"])):
        param = torch.nn.Parameter(torch.ones(2))
        param.grad = torch.ones(2)
        optimizer = SGD([param], lr=0.1, momentum=momentum)
        optimizer.step()
        assert list(optimizer.state[param]) == keys


def test_options_changed_between_steps_count() -> None:
    param = torch.nn.Parameter(torch.zeros(1))
    param.grad = torch.ones(1)
    optimizer = SGD([param], lr=0.5)
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.25
    optimizer.step()
    assert param.item() == -0.75


@pytest.mark.parametrize("options", [{"momentum": 0}, {"momentum": 0.9, "dampening": 0.1}])
def test_nesterov_needs_momentum_without_dampening(options) -> None:
    with pytest.raises(ValueError, match="Nesterov momentum requires a momentum and zero damp"):
        SGD([torch.zeros(1)], lr=0.1, nesterov=True, **options)
