"""Adam and AdamW against their formula in NumPy."""

import itertools

import numpy as np
import pytest

import rushlight as torch
from rushlight.optim import Adam, AdamW


def reference(start, grads, lr, betas, eps, weight_decay, amsgrad, maximize, decoupled):
    p, m, v, v_max, t = start.copy(), 0, 0, 0, 0
    for grad in grads:
        if grad is None:
            continue
        t += 1
        g = -grad if maximize else grad
        if decoupled:
            p = p - lr * weight_decay * p
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        v_max = np.maximum(v_max, v)
        v_hat = (v_max if amsgrad else v) / (1 - betas[1] ** t)
        p = p - lr * (m / (1 - betas[0] ** t)) / (np.sqrt(v_hat) + eps)
    return p


@pytest.mark.parametrize(
    ("cls", "weight_decay", "amsgrad", "maximize"),
    list(itertools.product((Adam, AdamW), (0, 0.1), (False, True), (False, True))),
)
def test_steps_follow_the_formula(cls, weight_decay, amsgrad, maximize) -> None:
    rng = np.random.default_rng(0)
    options = {
        "lr": 0.1,
        "betas": (0.8, 0.95),
        "eps": 1e-3,
        "weight_decay": weight_decay,
        "amsgrad": amsgrad,
        "maximize": maximize,
    }
    starts = [rng.normal(size=shape) for shape in ((3, 4), (5,), ())]
    # The second parameter has no gradient in some steps, so its bias correction lags behind.
    grads = [
        [None if j == 1 and i in (0, 2) else rng.normal(size=start.shape) for i in range(5)]
        for j, start in enumerate(starts)
    ]
    params = [torch.nn.Parameter(torch.tensor(start)) for start in starts]
    optimizer = cls(params, **options)
    for i in range(5):
        for param, sequence in zip(params, grads, strict=True):
            param.grad = None if sequence[i] is None else torch.tensor(sequence[i])
        optimizer.step()
    for param, start, sequence in zip(params, starts, grads, strict=True):
        expected = reference(start, sequence, decoupled=cls is AdamW, **options)
        np.testing.assert_allclose(param.detach().numpy(), expected, rtol=1e-10)


def test_float32_steps_stay_close_to_the_formula() -> None:
    rng = np.random.default_rng(0)
    start = rng.normal(size=100).astype(np.float32)
    grads = [rng.normal(size=100).astype(np.float32) for _ in range(20)]
    param = torch.nn.Parameter(torch.tensor(start))
    optimizer = Adam([param], lr=1e-2)
    for grad in grads:
        param.grad = torch.tensor(grad)
        optimizer.step()
    exact = [grad.astype(np.float64) for grad in grads]
    expected = reference(
        start.astype(np.float64), exact, 1e-2, (0.9, 0.999), 1e-8, 0, False, False, False
    )
    np.testing.assert_allclose(param.detach().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_state_dict_has_pytorchs_layout() -> None:
    param = torch.nn.Parameter(torch.ones(2))
    param.grad = torch.ones(2)
    optimizer = Adam([param], amsgrad=True)
    optimizer.step()
    optimizer.step()
    saved = optimizer.state_dict()
    state = saved["state"][0]
    assert list(state) == ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
    assert state["step"].dtype == torch.float32
    assert state["step"].shape == ()
    assert state["step"].item() == 2.0
    assert list(saved["param_groups"][0]) == [
        "lr",
        "betas",
        "eps",
        "weight_decay",
        "amsgrad",
        "maximize",
        "foreach",
        "capturable",
        "differentiable",
        "fused",
        "decoupled_weight_decay",
        "params",
    ]


def test_adamw_stays_adamw_when_it_loads_adams_state() -> None:
    param = torch.nn.Parameter(torch.ones(2))
    optimizer = AdamW([param])
    optimizer.load_state_dict(Adam([param]).state_dict())
    assert optimizer.param_groups[0]["decoupled_weight_decay"] is True


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0: 1.0"),
        ({"betas": (0.9, -0.1)}, "Invalid beta parameter at index 1: -0.1"),
        ({"eps": -1e-8}, "Invalid epsilon value: -1e-08"),
    ],
)
def test_bad_options_are_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        Adam([torch.zeros(1)], **options)
