"""The steps of optimizers as functions: they do what the classes do."""

import importlib
from typing import Any

import pytest
from grouping import each

import rushlight as torch
from rushlight.optim.adam import adam
from rushlight.optim.adamw import adamw
from rushlight.optim.sgd import sgd


def losses(params: list[torch.Tensor], step: int) -> torch.Tensor:
    """Of both parameters, but of the first alone in the first step."""
    return sum(
        ((p * (i + 2)).cos().sum() for i, p in enumerate(params[: 1 + step])), torch.zeros(1)
    )


def by_class(optimizer: type[torch.optim.Optimizer], **options: Any) -> list[list[float]]:
    params = [torch.ones(3, requires_grad=True), torch.full((2,), 2.0, requires_grad=True)]
    steps = optimizer(params, **options)  # pyright: ignore[reportCallIssue]
    for step in range(3):
        steps.zero_grad()
        losses(params, step).backward()
        steps.step()
    return [p.tolist() for p in params]


@each("decay", [0.0, 0.1])
@each("amsgrad", [False, True])
@each("function, optimizer", [(adam, torch.optim.Adam), (adamw, torch.optim.AdamW)])
def test_adam(function: Any, optimizer: Any, amsgrad: bool, decay: float) -> None:
    params = [torch.ones(3, requires_grad=True), torch.full((2,), 2.0, requires_grad=True)]
    state = [[torch.zeros_like(p.detach()) for p in params] for _ in range(3)]
    counts = [torch.zeros(()) for _ in params]
    for step in range(3):
        used = params[: 1 + step]
        grads = torch.autograd.grad(losses(params, step).sum(), used)
        with torch.no_grad():
            function(
                used, grads, *(each[: 1 + step] for each in state), counts[: 1 + step],
                amsgrad=amsgrad, beta1=0.9, beta2=0.99, lr=0.1, weight_decay=decay, eps=1e-8,
                maximize=False,
            )  # fmt: skip
    expected = by_class(optimizer, lr=0.1, betas=(0.9, 0.99), weight_decay=decay, amsgrad=amsgrad)
    assert [p.tolist() for p in params] == expected
    assert [float(count) for count in counts] == [3, 2]


@each("momentum", [0.0, 0.9])
def test_sgd(momentum: float) -> None:
    params = [torch.ones(3, requires_grad=True), torch.full((2,), 2.0, requires_grad=True)]
    buffers: list[torch.Tensor | None] = [None, None]
    for step in range(3):
        used, held = params[: 1 + step], buffers[: 1 + step]
        grads = torch.autograd.grad(losses(params, step).sum(), used)
        with torch.no_grad():
            sgd(
                used, list(grads), held, lr=torch.tensor(0.1, dtype=torch.float64),
                momentum=momentum, weight_decay=0.1, dampening=0, nesterov=momentum > 0,
                maximize=True,
            )  # fmt: skip
        buffers[: 1 + step] = held
    nesterov = momentum > 0
    options = {"lr": 0.1, "momentum": momentum, "weight_decay": 0.1, "nesterov": nesterov}
    assert [p.tolist() for p in params] == by_class(torch.optim.SGD, maximize=True, **options)


def test_what_functions_do_not_take_is_refused() -> None:
    options: Any = {
        "amsgrad": False, "beta1": 0.9, "beta2": 0.9, "lr": 1, "weight_decay": 0, "eps": 1,
        "maximize": False,
    }  # fmt: skip
    one: Any = [torch.ones(1)]
    with pytest.raises(RuntimeError, match="must contain a list of singleton tensors"):
        adam(one, one, one, one, [], [1], **options)  # pyright: ignore[reportArgumentType]
    with pytest.raises(NotImplementedError, match="grad_scale and found_inf"):
        adam(one, one, one, one, [], one, found_inf=torch.ones(1), **options)


@each(
    "name, entries, options, changed",
    [
        ("Adadelta", ["square_avg", "acc_delta"], {"rho": 0.8, "eps": 1e-6}, {}),
        ("Adagrad", ["sum"], {"lr_decay": 0.1, "eps": 1e-9}, {}),
        ("Adamax", ["exp_avg", "exp_inf"], {"eps": 1e-8}, {"betas": (0.8, 0.9)}),
        ("ASGD", ["ax", "mu", "eta"], {"lambd": 0.1, "alpha": 0.6, "t0": 1.0}, {}),
        (
            *("NAdam", ["exp_avg", "exp_avg_sq", "mu_product"]),
            *({"eps": 1e-8, "momentum_decay": 0.1}, {"betas": (0.8, 0.9)}),
        ),
        ("RAdam", ["exp_avg", "exp_avg_sq"], {"eps": 1e-8}, {"betas": (0.8, 0.9)}),
        (
            *("RMSprop", ["square_avg", "grad_avg", "momentum_buffer"]),
            *({"alpha": 0.9, "eps": 1e-8, "momentum": 0.5, "centered": True}, {}),
        ),
        ("Rprop", ["prev", "step_size"], {}, {"etas": (0.5, 1.2), "step_sizes": (1e-6, 50)}),
    ],
)
def test_other_steps(
    name: str, entries: list[str], options: dict[str, Any], changed: dict[str, Any]
) -> None:
    module = importlib.import_module(f"rushlight.optim.{name.lower()}")
    start = {"mu": 1.0, "eta": 0.1, "mu_product": 1.0}
    params = [torch.ones(3, requires_grad=True), torch.full((2,), 2.0, requires_grad=True)]
    state: list[list[torch.Tensor]] = [
        [
            torch.tensor(start[entry])
            if entry in start
            else torch.full_like(p.detach(), 0.1 if entry == "step_size" else 0)
            for p in params
        ]
        for entry in entries
    ]
    counts = [torch.zeros(()) for _ in params]
    decay = {} if name == "Rprop" else {"lr": 0.1, "weight_decay": 0.1}
    rate = {} if name == "Rprop" else {"lr": torch.tensor([0.1], dtype=torch.float64)}
    separate = dict(zip(("beta1", "beta2"), changed.get("betas", ()), strict=False))
    separate.update(zip(("etaminus", "etaplus"), changed.get("etas", ()), strict=False))
    sizes = ("step_size_min", "step_size_max")
    separate.update(zip(sizes, changed.get("step_sizes", ()), strict=False))
    for step in range(3):
        used = params[: 1 + step]
        grads = torch.autograd.grad(losses(params, step).sum(), used)
        with torch.no_grad():
            getattr(module, name.lower())(
                used, grads, *(each[: 1 + step] for each in state), counts[: 1 + step],
                maximize=True, **{**decay, **rate}, **options, **separate,
            )  # fmt: skip
    optimizer = getattr(torch.optim, name)
    same = {"lr": 0.1, **decay, **options, **changed, "maximize": True}
    assert [p.tolist() for p in params] == by_class(optimizer, **same)
    assert [float(count) for count in counts] == [3, 2]
    if name == "NAdam":
        assert all(0 < float(product) < 1 for product in state[2])
    one = [[torch.ones(1)]] * (2 + len(entries))
    with pytest.raises(RuntimeError, match=f"{name.lower()}: API has changed"):
        getattr(module, name.lower())(*one, [1], maximize=True, **decay, **options, **separate)


def test_state_of_other_parameters_is_refused() -> None:
    options: Any = {
        "lr": 0.1, "alpha": 0.9, "eps": 1e-8, "weight_decay": 0, "momentum": 0, "centered": False,
    }  # fmt: skip
    one, param = [torch.ones(1)], torch.ones(1)
    with pytest.raises(ValueError, match="rmsprop: 0 entries 'step' for 1 parameters"):
        torch.optim.rmsprop.rmsprop([param], one, one, [], [], [], **options)
    with pytest.raises(ValueError, match="rmsprop: 2 entries 'square_avg' for 1 parameters"):
        torch.optim.rmsprop.rmsprop([param], one, one * 2, [], [], one, **options)
    assert param == 1
