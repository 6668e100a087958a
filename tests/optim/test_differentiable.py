"""Steps with differentiable=True: the same update, recorded for backward."""

import numpy as np
import pytest

import rushlight as torch

OPTIMIZERS = {
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "Adam": {"amsgrad": True, "weight_decay": 0.1, "eps": 0.1},
    "AdamW": {"maximize": True, "eps": 0.1},
    "RMSprop": {"momentum": 0.9, "centered": True, "eps": 0.1},
    "Adagrad": {"lr_decay": 0.1, "eps": 0.1},
    "Adadelta": {"eps": 0.1},
    "Adamax": {"weight_decay": 0.1, "eps": 0.1},
    "NAdam": {"decoupled_weight_decay": True, "weight_decay": 0.1, "eps": 0.1},
    "RAdam": {"betas": (0.9, 0.99), "eps": 0.1},
    "ASGD": {"t0": 1, "lambd": 0.1},
    "Rprop": {},
}


def trained(name, start, target, steps, **options):
    """Parameters after some steps on a loss that depends on a target."""
    param = start.clone()
    optimizer = getattr(torch.optim, name)([param], lr=0.1, **OPTIMIZERS[name], **options)
    for _ in range(steps):
        value = param.clone()  # the step changes param itself
        loss = ((value - target) ** 2).sum() + (value**3).sum()
        (param.grad,) = torch.autograd.grad(loss, value, create_graph=True)
        optimizer.step()
    return param


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_recorded_step_computes_what_the_fused_one_does(name) -> None:
    rng = np.random.default_rng(0)
    start = torch.tensor(rng.normal(size=(2, 3)), requires_grad=True)
    target = torch.tensor(rng.normal(size=(2, 3)))
    recorded = trained(name, start, target, 7, differentiable=True)
    param = torch.nn.Parameter(start.detach().clone())
    optimizer = getattr(torch.optim, name)([param], lr=0.1, **OPTIMIZERS[name])
    for _ in range(7):
        optimizer.zero_grad()
        (((param - target) ** 2).sum() + (param**3).sum()).backward()
        optimizer.step()
    np.testing.assert_allclose(recorded.detach().numpy(), param.detach().numpy(), rtol=1e-10)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_backward_goes_through_steps(name) -> None:
    rng = np.random.default_rng(1)
    start = torch.tensor(rng.normal(size=3), requires_grad=True)
    target = torch.tensor(rng.normal(size=3), requires_grad=True)

    def run(start, target):
        return trained(name, start, target, 3, differentiable=True)

    assert torch.autograd.gradcheck(run, (start, target), eps=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_complex_parameters_can_be_differentiated(name) -> None:
    rng = np.random.default_rng(2)
    start = torch.tensor(rng.normal(size=2) + 1j * rng.normal(size=2), requires_grad=True)
    target = torch.tensor(rng.normal(size=2) + 1j * rng.normal(size=2))
    options = {**OPTIMIZERS[name], "differentiable": True}

    def run(start):
        param = start.clone()
        optimizer = getattr(torch.optim, name)([param], lr=0.1, **options)
        for _ in range(2):
            param.grad = (param.clone() - target) * 2
            optimizer.step()
        return param

    assert torch.autograd.gradcheck(run, (start,), eps=1e-6, atol=1e-6)


def test_state_can_be_differentiated() -> None:
    start = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    param = start.clone()
    optimizer = torch.optim.SGD([param], lr=0.1, momentum=0.9, differentiable=True)
    for _ in range(2):
        param.grad = param.clone() * 3
        optimizer.step()
    buffer = optimizer.state[param]["momentum_buffer"]
    # buf = 0.9 * 3 p + 3 (p - 0.1 * 3 p)
    (grad,) = torch.autograd.grad(buffer.sum(), start)
    np.testing.assert_allclose(grad.numpy(), [0.9 * 3 + 3 * 0.7] * 2, rtol=1e-12)


def test_a_leaf_that_requires_grad_is_refused() -> None:
    param = torch.nn.Parameter(torch.ones(2))
    param.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="leaf"):
        torch.optim.SGD([param], lr=0.1, differentiable=True).step()


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name not in ("ASGD", "Rprop")])
def test_backward_goes_into_lr(name) -> None:
    rng = np.random.default_rng(3)
    start = torch.tensor(rng.normal(size=3), requires_grad=True)
    target = torch.tensor(rng.normal(size=3))
    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)

    def run(start, lr):
        param = start.clone()
        options = {**OPTIMIZERS[name], "differentiable": True}
        optimizer = getattr(torch.optim, name)([param], lr=lr, **options)
        for _ in range(3):
            value = param.clone()
            loss = ((value - target) ** 2).sum() + (value**3).sum()
            (param.grad,) = torch.autograd.grad(loss, value, create_graph=True)
            optimizer.step()
        return param

    assert torch.autograd.gradcheck(run, (start, lr), eps=1e-6, atol=1e-5)
    assert torch.autograd.gradgradcheck(run, (start, lr), eps=1e-6, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1}),
        ("SGD", {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True, "maximize": True}),
        ("Adam", {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1, "eps": 0.1}),
        ("Adam", {"betas": (0.8, 0.9), "eps": 0.1, "amsgrad": True, "maximize": True}),
        ("AdamW", {"betas": (0.8, 0.9), "weight_decay": 0.1, "eps": 0.1}),
        ("NAdam", {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1, "eps": 0.1}),
        ("NAdam", {"momentum_decay": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ],
)
def test_backward_goes_into_options(name, options) -> None:
    numbers = {key: value for key, value in options.items() if not isinstance(value, bool)}
    start = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)

    def run(start, *tensors):
        values = list(tensors)
        given = {key: values.pop(0) for key in numbers if key != "betas"}
        if "betas" in numbers:
            given["betas"] = tuple(values)
        param = start.clone()
        optimizer = getattr(torch.optim, name)([param], **{**options, **given}, differentiable=True)
        for _ in range(3):
            param.grad = (param.clone() - 1) ** 3
            optimizer.step()
        return param

    ordered = [value for key, value in numbers.items() if key != "betas"]
    ordered += numbers.get("betas", ())
    tensors = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in ordered]
    assert torch.autograd.gradcheck(run, (start, *tensors), eps=1e-6, atol=1e-6)
    fixed = [tensor.detach() for tensor in tensors]
    np.testing.assert_allclose(
        run(start, *tensors).detach().numpy(), run(start, *fixed).detach().numpy(), rtol=1e-7
    )


def test_backward_goes_into_the_product_in_the_state_of_nadam() -> None:
    product = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)

    def run(product):
        param = torch.ones(2, dtype=torch.float64)
        param.grad = torch.tensor([0.5, 2.0], dtype=torch.float64)
        optimizer = torch.optim.NAdam([param], lr=0.1, differentiable=True)
        optimizer.state[param] = {
            "step": torch.tensor(3.0),
            "mu_product": product,
            "exp_avg": torch.ones_like(param),
            "exp_avg_sq": torch.ones_like(param),
        }
        optimizer.step()
        return param

    assert torch.autograd.gradcheck(run, (product,), eps=1e-6, atol=1e-6)


def test_a_step_by_an_lr_of_zero_has_no_derivative() -> None:
    lr = torch.tensor(0.0, requires_grad=True)
    param = torch.ones(2, requires_grad=True) * 1
    param.grad = torch.ones(2)
    with pytest.raises(ValueError, match="Adagrad: lr requires grad, but is 0"):
        torch.optim.Adagrad([param], lr=lr, differentiable=True).step()


def test_an_option_that_requires_grad_is_refused() -> None:
    weight_decay = torch.tensor(0.1, requires_grad=True)
    param = torch.ones(2, requires_grad=True) * 1
    param.grad = torch.ones(2)
    with pytest.raises(NotImplementedError, match="Adagrad: weight_decay requires grad"):
        torch.optim.Adagrad([param], weight_decay=weight_decay, differentiable=True).step()
    lr = torch.tensor(0.1, requires_grad=True)
    with pytest.raises(NotImplementedError, match="Rprop: lr requires grad"):
        torch.optim.Rprop([param], lr=lr, differentiable=True).step()
