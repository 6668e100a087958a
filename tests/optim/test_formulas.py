"""The optimizers against their formulas in NumPy; SGD and Adam have files of their own."""

import itertools
import math

import numpy as np
import pytest

import rushlight as torch


def choices(**options):
    return [
        dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())
    ]


def rmsprop(p, g, s, lr, alpha, eps, momentum, centered):
    s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g**2
    s["m"] = alpha * s.get("m", 0) + (1 - alpha) * g
    change = g / (np.sqrt(s["v"] - centered * s["m"] ** 2) + eps)
    s["buf"] = momentum * s.get("buf", 0) + change
    return p - lr * (s["buf"] if momentum else change)


def adagrad(p, g, s, lr, lr_decay, initial_accumulator_value, eps):
    s["sum"] = s.get("sum", initial_accumulator_value) + g**2
    return p - lr / (1 + (s["t"] - 1) * lr_decay) * g / (np.sqrt(s["sum"]) + eps)


def adadelta(p, g, s, lr, rho, eps):
    s["v"] = rho * s.get("v", 0) + (1 - rho) * g**2
    change = np.sqrt(s.get("u", 0) + eps) / np.sqrt(s["v"] + eps) * g
    s["u"] = rho * s.get("u", 0) + (1 - rho) * change**2
    return p - lr * change


def adamax(p, g, s, lr, betas, eps):
    s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    s["u"] = np.maximum(betas[1] * s.get("u", 0), abs(g) + eps)
    return p - lr / (1 - betas[0] ** s["t"]) * s["m"] / s["u"]


def moments(g, s, betas):
    s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    s["v"] = betas[1] * s.get("v", 0) + (1 - betas[1]) * g**2
    return s["m"], s["v"]


def nadam(p, g, s, lr, betas, eps, momentum_decay):
    t = s["t"]
    m, v = moments(g, s, betas)
    mus = [betas[0] * (1 - 0.5 * 0.96 ** (i * momentum_decay)) for i in range(1, t + 2)]
    look = mus[t] * m / (1 - math.prod(mus)) + (1 - mus[t - 1]) * g / (1 - math.prod(mus[:t]))
    return p - lr * look / (np.sqrt(v / (1 - betas[1] ** t)) + eps)


def radam(p, g, s, lr, betas, eps):
    t = s["t"]
    m, v = moments(g, s, betas)
    limit = 2 / (1 - betas[1]) - 1
    rho = limit - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
    scale = 1
    if rho > 5:
        ratio = (rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho)
        scale = np.sqrt(ratio) * np.sqrt(1 - betas[1] ** t) / (np.sqrt(v) + eps)
    return p - lr * m / (1 - betas[0] ** t) * scale


def asgd(p, g, s, lr, lambd, alpha, t0):
    t = s["t"]
    eta = lr / (1 + lambd * lr * (t - 1)) ** alpha
    p = (1 - lambd * eta) * p - eta * g
    mu = 1 / max(1, t - 1 - t0)
    s["ax"] = s.get("ax", 0) + mu * (p - s.get("ax", 0))
    return p


def rprop(p, g, s, lr, etas, step_sizes):
    last, size = s.get("last", np.zeros_like(g)), s.get("size", np.full_like(g, lr))
    factor = np.where(g * last > 0, etas[1], np.where(g * last < 0, etas[0], 1))
    s["size"] = np.clip(size * factor, *step_sizes)
    s["last"] = np.where(g * last < 0, 0, g)
    return p - np.sign(s["last"]) * s["size"]


def adafactor(p, g, s, lr, beta2_decay, eps, d):
    rest = s["t"] ** beta2_decay
    rate = max(eps[1], np.sqrt((p**2).mean())) * min(lr, 1 / math.sqrt(s["t"]))
    if p.ndim < 2:
        variance = s["v"] = (1 - rest) * s.get("v", 0) + rest * g**2
    else:
        s["r"] = (1 - rest) * s.get("r", 0) + rest * (g**2).mean(-1, keepdims=True)
        s["c"] = (1 - rest) * s.get("c", 0) + rest * (g**2).mean(-2, keepdims=True)
        variance = s["r"] * s["c"] / np.maximum(s["r"].mean(-2, keepdims=True), eps[0])
    change = g / np.maximum(np.sqrt(variance), eps[0])
    return p - rate * change / max(1, np.sqrt((change**2).mean()) / d)


CASES = [
    *(
        ("RMSprop", rmsprop, {"lr": 0.1, "alpha": 0.8, "eps": 1e-3, **more})
        for more in choices(momentum=(0, 0.9), centered=(False, True))
    ),
    ("Adagrad", adagrad,
     {"lr": 0.1, "lr_decay": 0.2, "initial_accumulator_value": 0.5, "eps": 0.1}),
    ("Adadelta", adadelta, {"lr": 2.0, "rho": 0.7, "eps": 0.1}),
    ("Adamax", adamax, {"lr": 0.1, "betas": (0.8, 0.6), "eps": 0.1}),
    ("NAdam", nadam, {"lr": 0.1, "betas": (0.8, 0.9), "eps": 0.1, "momentum_decay": 0.5}),
    *(
        ("RAdam", radam, {"lr": 0.1, "betas": (0.8, beta2), "eps": 0.1})
        for beta2 in (0.9, 0.999, 0.5)
    ),
    ("ASGD", asgd, {"lr": 0.1, "lambd": 0.3, "alpha": 0.75, "t0": 2}),
    ("Rprop", rprop, {"lr": 0.1, "etas": (0.5, 1.5), "step_sizes": (0.06, 0.2)}),
    ("Adafactor", adafactor, {"lr": 0.9, "beta2_decay": -0.6, "eps": (0.1, 0.5), "d": 1.1}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "formula", "options"), CASES)
@pytest.mark.parametrize(("weight_decay", "maximize"), [(0, False), (0.1, False), (0.1, True)])
def test_steps_follow_the_formula(name, formula, options, weight_decay, maximize) -> None:
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape) for shape in ((3, 4), (5,), (), (2, 3, 2))]
    params = [torch.nn.Parameter(torch.tensor(value)) for value in values]
    states = [{"t": 0} for _ in values]
    more = {"maximize": maximize}
    if name != "Rprop":
        more["weight_decay"] = weight_decay
    optimizer = getattr(torch.optim, name)(params, **options, **more)
    for step in range(8):
        for i, param in enumerate(params):
            # The second parameter has no gradient in some steps, so it lags behind.
            grad = rng.normal(size=values[i].shape)
            if i == 1 and step in (0, 2):
                param.grad = None
                continue
            param.grad = torch.tensor(grad)
            states[i]["t"] += 1
            slope = -grad if maximize else grad
            value = values[i]
            if name == "Adafactor":
                lr = options["lr"]
                shrunk = value * (1 - lr * weight_decay)
                values[i] = shrunk + formula(value, slope, states[i], **options) - value
            else:
                if name != "Rprop":
                    slope = slope + weight_decay * value
                values[i] = formula(value, slope, states[i], **options)
        optimizer.step()
    # Where PyTorch keeps numbers in float32, as NAdam's product of momenta, so do we.
    rtol = 1e-6 if name in ("NAdam", "ASGD") else 1e-10
    for param, value in zip(params, values, strict=True):
        np.testing.assert_allclose(param.detach().numpy(), value, rtol=rtol, atol=1e-12)


def test_asgd_averages_from_t0_on() -> None:
    param = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = torch.optim.ASGD([param], lr=1.0, lambd=0.0, t0=1)
    seen = []
    for _ in range(6):
        param.grad = torch.ones_like(param)
        optimizer.step()
        seen.append(param.item())
    # The mean of the parameters since step t0 + 1.
    assert optimizer.state[param]["ax"].item() == pytest.approx(np.mean(seen[2:]))


@pytest.mark.parametrize("name", ["NAdam", "RAdam"])
def test_decoupled_weight_decay_shrinks_the_parameter(name) -> None:
    values = np.array([1.0, -2.0])
    results = {}
    for decay in (0, 0.1):
        param = torch.nn.Parameter(torch.tensor(values))
        param.grad = torch.tensor([0.5, 1.0], dtype=torch.float64)
        cls = getattr(torch.optim, name)
        cls([param], lr=0.5, weight_decay=decay, decoupled_weight_decay=True).step()
        results[decay] = param.detach().numpy()
    np.testing.assert_allclose(results[0] - results[0.1], 0.5 * 0.1 * values, rtol=1e-12)


@pytest.mark.parametrize(
    ("shape", "adjust", "ratio"),
    [
        ((8, 2), None, 2.0),
        ((2, 8), "original", 1.0),
        ((3, 16), "match_rms_adamw", 0.8),
        ((4, 16), "spectral_unclamped", 0.5),
        ((16, 4), "spectral_unclamped", 2),
    ],
)
def test_muon_steps_along_a_nearly_orthogonal_matrix(shape, adjust, ratio) -> None:
    grad = np.random.default_rng(0).normal(size=shape)
    param = torch.nn.Parameter(torch.zeros(shape, dtype=torch.float64))
    param.grad = torch.tensor(grad)
    optimizer = torch.optim.Muon([param], lr=0.5, adjust_lr_fn=adjust)
    optimizer.step()
    update = -param.detach().numpy() / (0.5 * ratio)
    left, _, right = np.linalg.svd(grad, full_matrices=False)
    spread = np.linalg.svd(update, compute_uv=False)
    assert spread.min() > 0.6
    assert spread.max() < 1.25
    turned = left.T @ update @ right.T
    np.testing.assert_allclose(turned, np.diag(np.diag(turned)), atol=0.06)
    buffer = optimizer.state[param]["momentum_buffer"]
    np.testing.assert_allclose(buffer.numpy(), 0.05 * grad, rtol=1e-12)


def test_sparse_adam_is_adam_on_the_rows_of_the_gradient() -> None:
    rng = np.random.default_rng(0)
    table, rows = torch.nn.Parameter(torch.tensor(rng.normal(size=(5, 2)))), [1, 4]
    dense = torch.nn.Parameter(table.detach()[rows].clone())
    start = table.detach().clone()
    # SparseAdam adds eps before it corrects the bias, so only without eps are they equal.
    sparse_adam = torch.optim.SparseAdam([table], lr=0.1, eps=1e-30)
    adam = torch.optim.Adam([dense], lr=0.1, eps=1e-30)
    for _ in range(4):
        values = torch.tensor(rng.normal(size=(2, 2)))
        # Entries that come twice add up.
        table.grad = torch.sparse_coo_tensor([[1, 4, 4]], torch.cat([values, values[1:]]), (5, 2))
        dense.grad = torch.stack([values[0], 2 * values[1]])
        sparse_adam.step()
        adam.step()
    np.testing.assert_allclose(table.detach()[rows].numpy(), dense.detach().numpy(), rtol=1e-10)
    others = [0, 2, 3]
    assert torch.equal(table.detach()[others], start[others])


@pytest.mark.parametrize(("name", "options"), [("SGD", {}), ("Adagrad", {})])
def test_sparse_gradients_change_only_their_rows(name, options) -> None:
    sparse = torch.nn.Parameter(torch.ones(4, 2, dtype=torch.float64))
    dense = torch.nn.Parameter(torch.ones(4, 2, dtype=torch.float64))
    optimizers = [getattr(torch.optim, name)([p], lr=0.1, **options) for p in (sparse, dense)]
    for row in (0, 2, 2):
        sparse.grad = torch.sparse_coo_tensor([[row]], [[0.5, -2.0]], (4, 2)).double()
        dense.grad = sparse.grad.to_dense()
        for optimizer in optimizers:
            optimizer.step()
    np.testing.assert_allclose(sparse.detach().numpy(), dense.detach().numpy(), rtol=1e-12)


SPARSELESS = ["Adam", "AdamW", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop",
              "Adafactor", "Muon"]  # fmt: skip


@pytest.mark.parametrize("name", SPARSELESS)
def test_others_refuse_sparse_gradients(name) -> None:
    param = torch.nn.Parameter(torch.ones(4, 2))
    param.grad = torch.sparse_coo_tensor([[1]], [[0.5, -2.0]], (4, 2))
    with pytest.raises(RuntimeError, match=f"{name} does not support sparse gradients"):
        getattr(torch.optim, name)([param]).step()
    param.grad = torch.ones(4, 2)
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        torch.optim.SparseAdam([param]).step()


def test_complex_parameters_that_cannot_be_are_refused() -> None:
    param = torch.nn.Parameter(torch.ones(2, 2, dtype=torch.complex64))
    param.grad = torch.ones_like(param)
    for name in ("Adafactor", "Muon"):
        with pytest.raises(RuntimeError, match=f"{name} does not support complex parameters"):
            getattr(torch.optim, name)([param]).step()
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[0, 0\]\]"):
        torch.optim.SparseAdam([param])


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("RMSprop", {"alpha": -1}, "Invalid alpha value: -1"),
        ("Adadelta", {"rho": 1.5}, "Invalid rho value: 1.5"),
        ("Adagrad", {"lr_decay": -1}, "Invalid lr_decay value: -1"),
        ("Adamax", {"betas": (0.9, 1.0)}, "Invalid beta parameter at index 1: 1.0"),
        ("NAdam", {"momentum_decay": -1}, "Invalid momentum_decay value: -1"),
        ("Rprop", {"etas": (1.5, 1.2)}, "Invalid eta values: 1.5, 1.2"),
        ("SparseAdam", {"lr": 0.0}, "Invalid learning rate: 0.0"),
        ("SparseAdam", {"eps": 0.0}, "Invalid epsilon value: 0.0"),
        ("Adafactor", {"d": 0.5}, "Clipping threshold d should be >= 1 but is: 0.5"),
        ("Adafactor", {"beta2_decay": 0.5}, "beta2_decay should be <= 0 but is: 0.5"),
        ("Muon", {"adjust_lr_fn": "x"}, "Adjust learning rate function x is not supported"),
        ("Muon", {"momentum": -1}, "momentum should be >= 0 but is: -1"),
        ("LBFGS", {"lr": -1}, "Invalid learning rate: -1"),
    ],
)
def test_bad_options_are_refused(name, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(torch.optim, name)([torch.zeros(2, 2)], **options)


def test_muon_takes_matrices_only() -> None:
    with pytest.raises(ValueError, match=r"parameter with size: \(3,\)"):
        torch.optim.Muon([torch.zeros(3)])


ALL = [*SPARSELESS, "SGD", "Adagrad"]


@pytest.mark.parametrize("name", ALL)
def test_empty_parameters_and_those_without_gradient_stay(name) -> None:
    empty, without = torch.nn.Parameter(torch.zeros(0, 3)), torch.nn.Parameter(torch.ones(2, 2))
    empty.grad = torch.zeros(0, 3)
    optimizer = getattr(torch.optim, name)([empty, without])
    optimizer.step()
    assert without.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    optimizer.zero_grad()
    optimizer.step()  # nobody has a gradient


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ALL)
def test_half_parameters_stay_half(name, dtype) -> None:
    param = torch.nn.Parameter(torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=dtype))
    param.grad = torch.tensor([[0.5, 1.0], [-1.0, 0.25]], dtype=dtype)
    exact = torch.nn.Parameter(param.detach().float())
    exact.grad = param.grad.float()
    options = {"eps": (1e-3, 1e-3)} if name == "Adafactor" else {}
    for each in (param, exact):
        optimizer = getattr(torch.optim, name)([each], lr=0.25, **options)
        optimizer.step()
        optimizer.step()
    assert param.dtype == dtype
    np.testing.assert_allclose(param.float().tolist(), exact.tolist(), rtol=0.02, atol=0.02)
