"""Schedules against their closed forms, and what schedulers keep."""

import bisect
import math
import pickle
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight.optim import lr_scheduler as s

STEPS = 30


def optimizer_of(lr=0.5, groups=1):
    params = [torch.nn.Parameter(torch.zeros(1)) for _ in range(groups)]
    return torch.optim.SGD([{"params": [param]} for param in params], lr=lr, momentum=0.9)


def course(scheduler, steps=STEPS):
    """The learning rates of the first group at the first epochs."""
    seen = [scheduler.get_last_lr()[0]]
    for _ in range(steps):
        scheduler.optimizer.step()
        scheduler.step()
        seen.append(scheduler.get_last_lr()[0])
    assert seen[-1] == scheduler.optimizer.param_groups[0]["lr"]
    return seen


def cosine(share):
    return (1 + math.cos(math.pi * share)) / 2


CLOSED_FORMS = {
    "lambda": (lambda o: s.LambdaLR(o, lambda e: 0.9**e), lambda e: 0.9**e),
    "multiplicative": (lambda o: s.MultiplicativeLR(o, lambda e: 0.9), lambda e: 0.9**e),
    "step": (lambda o: s.StepLR(o, 4, 0.5), lambda e: 0.5 ** (e // 4)),
    "multistep": (
        lambda o: s.MultiStepLR(o, [9, 2, 2], 0.5),
        lambda e: 0.5 ** bisect.bisect([2, 2, 9], e),
    ),
    "constant": (lambda o: s.ConstantLR(o, 0.2, 6), lambda e: 0.2 if e < 6 else 1),
    "linear": (lambda o: s.LinearLR(o, 0.2, 0.8, 6), lambda e: 0.2 + 0.6 * min(e, 6) / 6),
    "exponential": (lambda o: s.ExponentialLR(o, 0.9), lambda e: 0.9**e),
    "polynomial": (lambda o: s.PolynomialLR(o, 8, 2.0), lambda e: (1 - min(e, 8) / 8) ** 2),
    "cosine": (lambda o: s.CosineAnnealingLR(o, 7), lambda e: cosine(e / 7)),
    "restarts": (lambda o: s.CosineAnnealingWarmRestarts(o, 5), lambda e: cosine(e % 5 / 5)),
    "longer restarts": (
        lambda o: s.CosineAnnealingWarmRestarts(o, 2, 3),
        lambda e: cosine(
            next((e - at) / n for at, n in ((26, 54), (8, 18), (2, 6), (0, 2)) if e >= at)
        ),
    ),
    "triangles": (
        lambda o: s.CyclicLR(o, 0.1, 0.5, 3, 6),
        lambda e: 0.2 + 0.8 * (e % 9 / 3 if e % 9 <= 3 else (9 - e % 9) / 6),
    ),
    "smaller triangles": (
        lambda o: s.CyclicLR(o, 0.1, 0.5, 4, mode="triangular2"),
        lambda e: 0.2 + 0.8 * (1 - abs(e % 8 - 4) / 4) / 2 ** (e // 8),
    ),
    "sequence": (
        lambda o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 9), s.ExponentialLR(o, 0.5)], [4]),
        lambda e: 0.1 if e < 4 else 0.5 ** (e - 4),
    ),
    "chain": (
        lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.5)]),
        lambda e: (0.1 if e < 4 else 1) * 0.5**e,
    ),
}


@pytest.mark.parametrize(("make", "closed_form"), CLOSED_FORMS.values(), ids=CLOSED_FORMS)
def test_learning_rates_follow_the_closed_form(make, closed_form) -> None:
    seen = course(make(optimizer_of(0.5)))
    expected = [0.5 * closed_form(epoch) for epoch in range(STEPS + 1)]
    np.testing.assert_allclose(seen, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("three_phase", [False, True])
@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_one_cycle_goes_through_its_points(strategy, three_phase) -> None:
    optimizer = optimizer_of()
    scheduler = s.OneCycleLR(
        optimizer, 1.0, 21, pct_start=0.3, anneal_strategy=strategy, three_phase=three_phase
    )
    assert optimizer.param_groups[0]["momentum"] == pytest.approx(0.95)
    seen = course(scheduler, 20)
    assert seen[0] == pytest.approx(1 / 25)
    assert max(seen) == pytest.approx(1.0, rel=0.06)
    assert seen[-1] == pytest.approx(1 / 25 / 1e4)
    assert optimizer.param_groups[0]["momentum"] == pytest.approx(0.95)
    if strategy == "linear" and not three_phase:
        np.testing.assert_allclose(np.diff(seen[:6], 2), 0, atol=1e-12)
    scheduler.step()
    with pytest.raises(ValueError, match="Tried to step 22 times"):
        scheduler.step()


def test_momentum_moves_against_the_rate() -> None:
    for make in (
        lambda o: s.CyclicLR(o, 0.1, 0.5, 2, base_momentum=0.7, max_momentum=0.9),
        lambda o: s.OneCycleLR(o, 0.5, 9, pct_start=0.5, base_momentum=0.7, max_momentum=0.9),
    ):
        for name in ("SGD", "Adam"):
            options = {"momentum": 0.5} if name == "SGD" else {"betas": (0.5, 0.99)}
            optimizer = getattr(torch.optim, name)([torch.zeros(1)], lr=0.1, **options)
            scheduler = make(optimizer)
            rates, momentums = [], []
            for _ in range(8):
                group = optimizer.param_groups[0]
                rates.append(group["lr"])
                momentums.append(group["momentum"] if name == "SGD" else group["betas"][0])
                optimizer.step()
                scheduler.step()
            assert np.corrcoef(rates, momentums)[0, 1] < -0.9
            assert max(momentums) == pytest.approx(0.9)
            assert name == "SGD" or group["betas"][1] == 0.99


def test_a_plateau_lowers_the_rate_after_its_patience() -> None:
    optimizer = optimizer_of(1.0)
    scheduler = s.ReduceLROnPlateau(optimizer, patience=2, cooldown=1, min_lr=0.05)
    seen = []
    for loss in [3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1]:
        scheduler.step(loss)
        seen.append(scheduler.get_last_lr()[0])
    # Three bad epochs; one that does not count, then three bad ones again; then it is at min_lr.
    assert seen == [1, 1, 1, 1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05]
    assert scheduler.best == 1


def test_programs_replace_how_a_plateau_lowers_the_rates() -> None:
    scheduler = s.ReduceLROnPlateau(optimizer_of(1.0), patience=1)
    epochs = []
    scheduler._reduce_lr = epochs.append
    for loss in [3, 2, 2, 2, 2, 2]:
        scheduler.step(loss)
    assert epochs == [4, 6]
    assert scheduler.get_last_lr() == [1.0]


@pytest.mark.parametrize("make", [make for make, _ in CLOSED_FORMS.values()], ids=CLOSED_FORMS)
def test_a_loaded_state_continues_exactly(make) -> None:
    one, two = optimizer_of(), optimizer_of()
    first, second = make(one), make(two)
    course(first, 11)
    state = first.state_dict()
    assert "optimizer" not in state
    second.load_state_dict(pickle.loads(pickle.dumps(state)))
    two.load_state_dict(one.state_dict())
    two._opt_called = True
    assert course(first, 5) == course(second, 5)


def test_groups_have_their_own_rates() -> None:
    optimizer = optimizer_of(1.0, groups=2)
    optimizer.param_groups[1]["lr"] = 0.5
    scheduler = s.LambdaLR(optimizer, [lambda e: 0.5**e, lambda e: 1])
    assert course(scheduler, 2) == [1, 0.5, 0.25]
    assert scheduler.get_last_lr() == [0.25, 0.5]
    with pytest.raises(ValueError, match="Expected 2 lr_lambdas, but got 1"):
        s.LambdaLR(optimizer, [lambda e: 1])


def test_a_tensor_rate_is_changed_in_place() -> None:
    rate = torch.tensor(1.0)
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=rate)
    scheduler = s.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == 0.5
    assert scheduler.base_lrs[0].item() == 1.0
    assert scheduler.get_last_lr()[0] is not rate


def test_stepping_before_the_optimizer_warns_once() -> None:
    optimizer = optimizer_of()
    scheduler = s.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match=r"`lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()


def test_the_epoch_argument_warns_and_jumps() -> None:
    optimizer = optimizer_of(1.0)
    scheduler = s.StepLR(optimizer, 2, 0.5)
    optimizer.step()
    with pytest.warns(UserWarning, match="The epoch parameter in `scheduler.step"):
        scheduler.step(5)
    assert scheduler.get_last_lr() == [0.25]
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        scheduler.get_lr()


def test_resuming_needs_the_first_rates() -> None:
    with pytest.raises(KeyError, match="param 'initial_lr' is not specified in param_groups"):
        s.StepLR(optimizer_of(), 2, last_epoch=3)
    optimizer = optimizer_of(0.25)
    optimizer.param_groups[0]["initial_lr"] = 1.0
    scheduler = s.StepLR(optimizer, 2, 0.5, last_epoch=4)
    assert course(scheduler, 3) == [0.25, 0.125, 0.125, 0.0625]


def test_fractions_of_an_epoch_restart_too() -> None:
    scheduler = s.CosineAnnealingWarmRestarts(optimizer_of(1.0), 2, 2)
    for epoch, share in ((0.5, 0.25), (2.0, 0.0), (3.0, 0.25), (7.0, 0.125)):
        scheduler.step(epoch)
        assert scheduler.get_last_lr()[0] == pytest.approx(cosine(share))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda o: s.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda o: s.ConstantLR(o, 2.0), ValueError, "expected to be between 0 and 1"),
        (lambda o: s.LinearLR(o, 0.0), ValueError, "Starting multiplicative factor"),
        (lambda o: s.LinearLR(o, 0.5, 2.0), ValueError, "Ending multiplicative factor"),
        (lambda o: s.MultiplicativeLR(o, 3), TypeError, "should be a function, but got int"),
        (lambda o: s.CyclicLR(o, 0.1, [1.0, 2.0], 3), ValueError, "max_lr has 2 values"),
        (lambda o: s.CyclicLR(o, 0.1, 1.0, 3, mode="x"), ValueError, "mode is invalid"),
        (lambda o: s.CosineAnnealingWarmRestarts(o, 0), ValueError, "positive integer T_0"),
        (lambda o: s.CosineAnnealingWarmRestarts(o, 1, 0), ValueError, "T_mult >= 1"),
        (lambda o: s.OneCycleLR(o, 1.0), ValueError, "define either total_steps OR"),
        (lambda o: s.OneCycleLR(o, 1.0, 0), ValueError, "positive integer total_steps"),
        (lambda o: s.OneCycleLR(o, 1.0, 5, pct_start=2.0), ValueError, "pct_start, but got 2.0"),
        (lambda o: s.OneCycleLR(o, 1.0, 5, anneal_strategy="x"), ValueError, "one of 'cos'"),
        (lambda o: s.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor should be < 1.0"),
        (lambda o: s.ReduceLROnPlateau(o, "x"), ValueError, "mode x is unknown"),
        (lambda o: s.ReduceLROnPlateau(o, min_lr=[1, 2]), ValueError, "expected 1 min_lrs, got 2"),
        (lambda o: s.SequentialLR(o, [], []), ValueError, "expects at least one scheduler"),
        (lambda o: s.SequentialLR(o, [s.StepLR(o, 1)], [1]), ValueError, "one more than the numb"),
        (
            lambda o: s.ChainedScheduler([s.StepLR(o, 1), s.StepLR(optimizer_of(), 1)]),
            ValueError,
            "belong to the same optimizer",
        ),
        (
            lambda o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]),
            ValueError,
            "does not support `ReduceLROnPlateau`",
        ),
    ],
)
def test_bad_arguments_are_refused(make, error, message) -> None:
    with pytest.raises(error, match=message):
        make(optimizer_of())


def test_cycles_of_momentum_need_an_optimizer_that_has_it() -> None:
    optimizer = torch.optim.Adagrad([torch.zeros(1)])
    for make in (lambda o: s.CyclicLR(o, 0.1, 1.0), lambda o: s.OneCycleLR(o, 1.0, 5)):
        with pytest.raises(ValueError, match="must support momentum or beta1"):
            make(optimizer)
