"""Learning rates, momentum and state of schedulers equal PyTorch's."""

import copy
import itertools
import warnings

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")

STEPS = 50


def squared(epoch):
    return 1 / (1 + epoch) ** 2


class Decay:
    """A function with a state."""

    def __init__(self, base=0.9):
        self.base = base

    def __call__(self, epoch):
        return self.base**epoch


def simple(name, **options):
    return lambda library, optimizer: getattr(library.optim.lr_scheduler, name)(
        optimizer, **options
    )


def sequential(library, optimizer):
    s = library.optim.lr_scheduler
    parts = [
        s.ConstantLR(optimizer, 0.1, total_iters=4),
        s.ExponentialLR(optimizer, 0.9),
        s.StepLR(optimizer, 3, 0.5),
    ]
    return s.SequentialLR(optimizer, parts, [5, 20])


def sequential_of_cosine(library, optimizer):
    s = library.optim.lr_scheduler
    parts = [
        s.LinearLR(optimizer, 0.01, total_iters=10),
        s.CosineAnnealingLR(optimizer, T_max=40),
    ]
    return s.SequentialLR(optimizer, parts, [10])


def nested(library, optimizer):
    s = library.optim.lr_scheduler
    inner = s.SequentialLR(
        optimizer,
        [s.LinearLR(optimizer, 0.1, total_iters=3), s.ExponentialLR(optimizer, 0.8)],
        [3],
    )
    return s.SequentialLR(optimizer, [inner, s.PolynomialLR(optimizer, 20)], [12])


def chained(library, optimizer):
    s = library.optim.lr_scheduler
    parts = [s.ConstantLR(optimizer, 0.1, total_iters=4), s.ExponentialLR(optimizer, 0.9)]
    return s.ChainedScheduler(parts)


def swa(**options):
    return lambda library, optimizer: library.optim.swa_utils.SWALR(optimizer, **options)


MAKERS = {
    "lambda": simple("LambdaLR", lr_lambda=squared),
    "lambdas": simple("LambdaLR", lr_lambda=[squared, Decay()]),
    "multiplicative": simple("MultiplicativeLR", lr_lambda=lambda epoch: 0.95),
    "step": simple("StepLR", step_size=7, gamma=0.5),
    "multistep": simple("MultiStepLR", milestones=[3, 3, 10, 30], gamma=0.3),
    "constant": simple("ConstantLR", factor=0.25, total_iters=9),
    "linear": simple("LinearLR", start_factor=0.2, end_factor=0.7, total_iters=12),
    "exponential": simple("ExponentialLR", gamma=0.93),
    "polynomial": simple("PolynomialLR", total_iters=30, power=2.0),
    "cosine": simple("CosineAnnealingLR", T_max=11, eta_min=1e-3),
    "long cosine": simple("CosineAnnealingLR", T_max=60),
    "restarts": simple("CosineAnnealingWarmRestarts", T_0=6, T_mult=2, eta_min=1e-4),
    "even restarts": simple("CosineAnnealingWarmRestarts", T_0=7),
    "sequential": sequential,
    "warm up": sequential_of_cosine,
    "nested": nested,
    "chained": chained,
    "swa": swa(swa_lr=0.05),
    "linear swa": swa(swa_lr=[0.05, 0.01], anneal_epochs=5, anneal_strategy="linear"),
    "instant swa": swa(swa_lr=0.05, anneal_epochs=0),
    **{
        f"cyclic {mode} {down}": simple(
            "CyclicLR",
            base_lr=0.01,
            max_lr=[0.1, 0.3],
            step_size_up=4,
            step_size_down=down,
            mode=mode,
            gamma=0.99,
        )
        for mode, down in itertools.product(("triangular", "triangular2", "exp_range"), (None, 7))
    },
    "cyclic by function": simple(
        "CyclicLR",
        base_lr=0.01,
        max_lr=0.1,
        step_size_up=4,
        scale_fn=squared,
        scale_mode="iterations",
        cycle_momentum=False,
    ),
    **{
        f"one cycle {strategy} {three_phase}": simple(
            "OneCycleLR",
            max_lr=[0.1, 0.4],
            total_steps=STEPS + 2,
            anneal_strategy=strategy,
            three_phase=three_phase,
        )
        for strategy, three_phase in itertools.product(("cos", "linear"), (False, True))
    },
    "one cycle by epochs": simple(
        "OneCycleLR", max_lr=0.1, epochs=6, steps_per_epoch=10, pct_start=0.5, cycle_momentum=False
    ),
}
CLOSED = ["step", "multistep", "constant", "linear", "exponential", "polynomial", "cosine"]


def optimizer_of(library, name="SGD"):
    params = [library.nn.Parameter(library.zeros(2)) for _ in range(2)]
    options = {"momentum": 0.9} if name == "SGD" else {}
    return getattr(library.optim, name)(
        [{"params": params[0]}, {"params": params[1], "lr": 0.02}], lr=0.1, **options
    )


def snapshot(optimizer, scheduler):
    groups = [
        {key: value for key, value in group.items() if key != "params"}
        for group in optimizer.param_groups
    ]
    return [scheduler.get_last_lr(), groups]


def history(library, make, name="SGD"):
    optimizer = optimizer_of(library, name)
    scheduler = make(library, optimizer)
    seen = [snapshot(optimizer, scheduler)]
    for _ in range(STEPS):
        optimizer.step()
        scheduler.step()
        seen.append(snapshot(optimizer, scheduler))
    return seen, scheduler


def assert_same(ours, theirs):
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key, value in theirs.items():
            assert_same(ours[key], value)
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for mine, value in zip(ours, theirs, strict=True):
            assert_same(mine, value)
    elif isinstance(theirs, float):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-15)
    else:
        assert ours == theirs


@pytest.mark.filterwarnings("ignore:Detected call")  # PyTorch's own, for nested ones
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_learning_rates_and_state_equal_pytorchs(make, optimizer) -> None:
    ours, scheduler = history(torch, make, optimizer)
    theirs, expected = history(pytorch, make, optimizer)
    assert_same(ours, theirs)
    mine, state = scheduler.state_dict(), expected.state_dict()
    for each in (mine, state):
        each.pop("_scale_fn_custom", None)
        each.pop("_anneal_func", None)
    assert_same(mine, state)


@pytest.mark.filterwarnings("ignore:Detected call")
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_state_can_be_exchanged(make) -> None:
    states = {}
    for library in (torch, pytorch):
        optimizer = optimizer_of(library)
        scheduler = make(library, optimizer)
        for _ in range(13):
            optimizer.step()
            scheduler.step()
        states[library] = copy.deepcopy((scheduler.state_dict(), snapshot(optimizer, scheduler)))

    def resumed(library, other):
        optimizer = optimizer_of(library)
        scheduler = make(library, optimizer)
        state, (_, groups) = copy.deepcopy(states[other])
        scheduler.load_state_dict(state)
        for group, values in zip(optimizer.param_groups, groups, strict=True):
            group.update(values)
        seen = []
        for _ in range(10):
            optimizer.step()
            scheduler.step()
            seen.append(scheduler.get_last_lr())
        return seen

    expected = resumed(pytorch, pytorch)
    assert_same(resumed(torch, pytorch), expected)
    assert_same(resumed(pytorch, torch), expected)


@pytest.mark.parametrize("make", [MAKERS[name] for name in [*CLOSED, "restarts"]])
@pytest.mark.filterwarnings("ignore:The epoch parameter")
def test_a_step_to_an_epoch_equals_pytorchs(make) -> None:
    seen = {}
    for library in (torch, pytorch):
        optimizer = optimizer_of(library)
        scheduler = make(library, optimizer)
        optimizer.step()
        seen[library] = []
        for epoch in (3, 10, 11, 25, 4):
            scheduler.step(epoch)
            seen[library].append(scheduler.get_last_lr())
    assert_same(seen[torch], seen[pytorch])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"patience": 2, "cooldown": 3, "factor": 0.5},
        {"mode": "max", "patience": 1, "threshold": 0.1, "min_lr": [0.001, 0.01]},
        {"mode": "max", "patience": 1, "threshold": 0.1, "threshold_mode": "abs"},
        {"mode": "min", "patience": 1, "threshold": 0.1, "threshold_mode": "abs", "eps": 1e-3},
    ],
)
def test_plateaus_equal_pytorchs(options) -> None:
    metrics = np.random.default_rng(3).normal(size=STEPS) + np.linspace(3, -1, STEPS).clip(0)
    seen, states = {}, {}
    for library in (torch, pytorch):
        optimizer = optimizer_of(library)
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        seen[library] = []
        for metric in metrics:
            scheduler.step(library.tensor(metric))
            seen[library].append(scheduler.get_last_lr())
        states[library] = scheduler.state_dict()
    assert_same(seen[torch], seen[pytorch])
    assert_same(states[torch], states[pytorch])


@pytest.mark.parametrize("make", [MAKERS[n] for n in ("step", "cosine", "linear", "warm up")])
def test_tensor_rates_stay_tensors(make) -> None:
    seen = {}
    for library in (torch, pytorch):
        rate = library.tensor(0.1)
        optimizer = library.optim.SGD([library.nn.Parameter(library.zeros(2))], lr=rate)
        scheduler = make(library, optimizer)
        seen[library] = []
        for _ in range(20):
            optimizer.step()
            scheduler.step()
            assert optimizer.param_groups[0]["lr"] is rate
            seen[library].append(float(scheduler.get_last_lr()[0]))
    np.testing.assert_allclose(seen[torch], seen[pytorch], rtol=1e-5)


def test_resuming_at_an_epoch_equals_pytorchs() -> None:
    for name in CLOSED:
        seen = {}
        for library in (torch, pytorch):
            optimizer = optimizer_of(library)
            for group in optimizer.param_groups:
                group["initial_lr"] = group["lr"]
            options = {**MAKERS[name].__closure__[1].cell_contents}
            kind = MAKERS[name].__closure__[0].cell_contents
            scheduler = getattr(library.optim.lr_scheduler, kind)(
                optimizer, **options, last_epoch=4
            )
            seen[library] = [scheduler.get_last_lr()]
            for _ in range(5):
                optimizer.step()
                scheduler.step()
                seen[library].append(scheduler.get_last_lr())
        assert_same(seen[torch], seen[pytorch])


@pytest.mark.parametrize("library", [torch, pytorch])
def test_a_scheduler_that_steps_first_warns(library) -> None:
    optimizer = optimizer_of(library)
    scheduler = library.optim.lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match=r"`lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()
