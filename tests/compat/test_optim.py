"""Steps, state and representation of optimizers equal PyTorch's."""

import io
import itertools
from inspect import signature

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")


def grid(**choices):
    return [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]


DECAYS, FLAGS = (0, 0.1), (False, True)
OPTIONS = {
    "SGD": [
        *(
            options
            for options in grid(
                momentum=(0, 0.9), weight_decay=DECAYS, nesterov=FLAGS, maximize=FLAGS
            )
            if options["momentum"] or not options["nesterov"]
        ),
        {"momentum": 0.9, "dampening": 0.3},
    ],
    "Adam": [
        *grid(weight_decay=DECAYS, amsgrad=FLAGS, maximize=FLAGS),
        {"weight_decay": 0.1, "decoupled_weight_decay": True},
    ],
    "AdamW": grid(weight_decay=DECAYS, amsgrad=FLAGS, maximize=FLAGS),
    "RMSprop": grid(momentum=(0, 0.9), centered=FLAGS, weight_decay=DECAYS, maximize=FLAGS),
    "Adagrad": grid(
        lr_decay=(0, 0.3), initial_accumulator_value=(0, 0.5), weight_decay=DECAYS, maximize=FLAGS
    ),
    "Adadelta": grid(rho=(0.9, 0.5), weight_decay=DECAYS, maximize=FLAGS),
    "Adamax": grid(betas=((0.9, 0.999), (0.5, 0.6)), weight_decay=DECAYS, maximize=FLAGS),
    "NAdam": grid(
        momentum_decay=(4e-3, 0.5),
        weight_decay=DECAYS,
        decoupled_weight_decay=FLAGS,
        maximize=FLAGS,
    ),
    "RAdam": grid(
        betas=((0.9, 0.999), (0.8, 0.7)),
        weight_decay=DECAYS,
        decoupled_weight_decay=FLAGS,
        maximize=FLAGS,
    ),
    "ASGD": grid(t0=(1e6, 2), lambd=(1e-4, 0.3), weight_decay=DECAYS, maximize=FLAGS),
    "Rprop": grid(
        etas=((0.5, 1.2), (0.3, 4.0)), step_sizes=((1e-6, 50), (0.02, 0.2)), maximize=FLAGS
    ),
    "Adafactor": grid(
        eps=((None, 1e-3), (0.1, 0.5)), d=(1.0, 3.0), weight_decay=DECAYS, maximize=FLAGS
    ),
}  # fmt: skip
CASES = [(name, options) for name, each in OPTIONS.items() for options in each]
ONE_EACH = [(name, each[-1]) for name, each in OPTIONS.items()]
STEPS = 8


def groups_of(params):
    return [{"params": params[:1]}, {"params": params[1:], "lr": 0.05}]


def train(library, name, options, steps=STEPS, dtype="float64", load=None):
    """Trains parameters of several shapes; one of them has no gradient in two of the steps."""
    rng = np.random.default_rng(0)
    shapes = [(3, 4), (5,), (), (2, 3, 2)]

    def draw(shape):
        array = rng.normal(size=shape)
        if dtype.startswith("complex") and name != "Adafactor":
            array = array + 1j * rng.normal(size=shape)
        return library.tensor(array, dtype=getattr(library, dtype))

    params = [library.nn.Parameter(draw(shape)) for shape in shapes]
    optimizer = getattr(library.optim, name)(groups_of(params), lr=0.1, **options)
    if load is not None:
        optimizer.load_state_dict(load)
    for step in range(steps):
        optimizer.zero_grad()
        for i, param in enumerate(params):
            grad = draw(shapes[i])
            if not (i == 1 and step in (0, 2)):
                param.grad = grad
        optimizer.step()
    return params, optimizer


def assert_same(ours, theirs, rtol=1e-10):
    np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=rtol, atol=1e-14)


def assert_same_states(ours, theirs, rtol=1e-10):
    assert ours["param_groups"] == theirs["param_groups"]
    assert set(ours["state"]) == set(theirs["state"])
    for key, state in theirs["state"].items():
        assert list(ours["state"][key]) == list(state)
        for name, value in state.items():
            mine = ours["state"][key][name]
            assert str(mine.dtype) == str(value.dtype)
            assert tuple(mine.shape) == tuple(value.shape)
            assert_same(mine, value, rtol)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_training_equals_pytorchs(name, options) -> None:
    params, optimizer = train(torch, name, options)
    expected_params, expected = train(pytorch, name, options)
    for ours, theirs in zip(params, expected_params, strict=True):
        assert_same(ours, theirs)
    assert repr(optimizer) == repr(expected)
    assert_same_states(optimizer.state_dict(), expected.state_dict())


@pytest.mark.parametrize(("name", "options"), [case for case in ONE_EACH if case[0] != "Adafactor"])
def test_complex_training_equals_pytorchs(name, options) -> None:
    params, _ = train(torch, name, options, dtype="complex128")
    expected, _ = train(pytorch, name, options, dtype="complex128")
    for ours, theirs in zip(params, expected, strict=True):
        assert_same(ours, theirs)


@pytest.mark.parametrize(("name", "options"), ONE_EACH)
def test_float32_training_is_close_to_pytorchs(name, options) -> None:
    params, _ = train(torch, name, options, dtype="float32")
    expected, _ = train(pytorch, name, options, dtype="float32")
    for ours, theirs in zip(params, expected, strict=True):
        np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("name", "options"), ONE_EACH)
def test_state_dicts_can_be_exchanged(name, options) -> None:
    _, ours = train(torch, name, options)
    _, theirs = train(pytorch, name, options)
    mine, other = train(torch, name, options, load=converted(theirs.state_dict(), torch))
    expected, same = train(pytorch, name, options, load=converted(ours.state_dict(), pytorch))
    continued, _ = train(pytorch, name, options, load=theirs.state_dict())
    # PyTorch goes on in the parameter's dtype with numbers that it began in float32.
    rtol = 1e-6 if name in ("NAdam", "ASGD") else 1e-10
    for a, b, c in zip(mine, expected, continued, strict=True):
        assert_same(a, c, rtol)
        assert_same(b, c, rtol)
    assert set(other.state_dict()["state"]) == set(same.state_dict()["state"])


def converted(value, library):
    """Tensors of one library become those of the other."""
    if hasattr(value, "numpy"):
        return library.tensor(value.detach().numpy().copy())
    if isinstance(value, dict):
        return {key: converted(each, library) for key, each in value.items()}
    if isinstance(value, list):
        return [converted(each, library) for each in value]
    return value


@pytest.mark.parametrize(("name", "options"), ONE_EACH)
def test_saved_state_dicts_can_be_read_by_pytorch(name, options) -> None:
    _, ours = train(torch, name, options)
    file = io.BytesIO()
    torch.save(ours.state_dict(), file)
    file.seek(0)
    read = pytorch.load(file)
    assert_same_states(ours.state_dict(), read)
    train(pytorch, name, options, steps=1, load=read)


def matrices(library, steps, **options):
    rng = np.random.default_rng(1)
    shapes = [(4, 4), (3, 7), (6, 2)]
    params = [library.nn.Parameter(library.tensor(rng.normal(size=s))) for s in shapes]
    optimizer = library.optim.Muon(params, lr=0.1, **options)
    for _ in range(steps):
        for param, shape in zip(params, shapes, strict=True):
            param.grad = library.tensor(rng.normal(size=shape))
        optimizer.step()
    return params, optimizer


@pytest.mark.parametrize(
    "options",
    grid(nesterov=FLAGS, adjust_lr_fn=(None, "original", "match_rms_adamw"), weight_decay=DECAYS),
)
def test_muon_equals_pytorchs_up_to_bfloat16(options) -> None:
    (params, optimizer), (expected, other) = (
        matrices(library, 3, **options) for library in (torch, pytorch)
    )
    for ours, theirs in zip(params, expected, strict=True):
        np.testing.assert_allclose(ours.tolist(), theirs.tolist(), atol=0.02)
    assert repr(optimizer) == repr(other)
    assert_same_states(optimizer.state_dict(), other.state_dict())


def rosenbrock(library, steps, **options):
    x = library.nn.Parameter(library.tensor([-1.2, 1.0], dtype=library.float64))
    y = library.nn.Parameter(library.tensor([[0.5]], dtype=library.float64))
    optimizer = library.optim.LBFGS([x, y], **options)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2 + (y**4).sum()
        loss = -loss if options.get("maximize") else loss
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    return [x, y], losses, optimizer


@pytest.mark.parametrize(
    "options",
    [
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "max_iter": 5, "history_size": 2},
        {"line_search_fn": "strong_wolfe", "max_eval": 4},
        {"lr": 1e-3},
        {"lr": 0.1, "history_size": 3, "max_iter": 4},
        {"line_search_fn": "strong_wolfe", "maximize": True},
    ],
)
def test_lbfgs_equals_pytorchs(options) -> None:
    if "maximize" in options and "maximize" not in signature(pytorch.optim.LBFGS).parameters:
        pytest.skip("before PyTorch 2.14")
    ours, losses, optimizer = rosenbrock(torch, 4, **options)
    theirs, expected, other = rosenbrock(pytorch, 4, **options)
    assert len(losses) == len(expected)
    np.testing.assert_allclose(losses, expected, rtol=1e-6, atol=1e-12)
    for mine, theirs_ in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.tolist(), theirs_.tolist(), rtol=1e-6, atol=1e-8)
    mine, theirs = optimizer.state_dict(), other.state_dict()
    assert set(mine["state"][0]) == set(theirs["state"][0])
    assert mine["state"][0]["func_evals"] == theirs["state"][0]["func_evals"]
    assert mine["state"][0]["n_iter"] == theirs["state"][0]["n_iter"]


def sparse_training(library, name, **options):
    rng = np.random.default_rng(2)
    table = library.nn.Parameter(library.tensor(rng.normal(size=(6, 3))))
    optimizer = getattr(library.optim, name)([table], lr=0.1, **options)
    for _ in range(4):
        rows = library.tensor([[0, 3, 3, int(rng.integers(6))]])
        values = library.tensor(rng.normal(size=(4, 3)))
        table.grad = library.sparse_coo_tensor(rows, values, (6, 3))
        optimizer.step()
    return table


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {}),
        ("SGD", {"momentum": 0.9, "dampening": 0.1}),
        ("SGD", {"momentum": 0.9, "nesterov": True, "maximize": True}),
        ("Adagrad", {"lr_decay": 0.1}),
        ("Adagrad", {"maximize": True, "initial_accumulator_value": 0.1}),
        ("SparseAdam", {}),
        ("SparseAdam", {"maximize": True, "betas": (0.5, 0.6)}),
    ],
)
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # PyTorch's own
def test_sparse_training_equals_pytorchs(name, options) -> None:
    ours, theirs = (sparse_training(library, name, **options) for library in (torch, pytorch))
    assert_same(ours, theirs)
