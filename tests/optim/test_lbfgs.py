"""L-BFGS: what it finds, what it costs, and what it keeps."""

import copy

import numpy as np
import pytest

import rushlight as torch


def closure_of(optimizer, loss_of, counts):
    def closure():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        counts.append(loss.item())
        return loss

    return closure


def minimized(params, loss_of, steps=5, **options):
    optimizer = torch.optim.LBFGS(params, **options)
    losses = []
    for _ in range(steps):
        optimizer.step(closure_of(optimizer, loss_of, losses))
    return optimizer, losses


def test_it_finds_the_minimum_of_a_curved_valley() -> None:
    x = torch.nn.Parameter(torch.tensor([-1.2, 1.0], dtype=torch.float64))
    minimized(
        [x],
        lambda: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2,
        line_search_fn="strong_wolfe",
        tolerance_change=1e-15,
    )
    np.testing.assert_allclose(x.tolist(), [1, 1], atol=1e-6)


def test_it_solves_least_squares_over_several_parameters() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(20, 4)), rng.normal(size=20)
    left, right = (torch.nn.Parameter(torch.zeros(s, dtype=torch.float64)) for s in ((3, 1), (1,)))
    matrix, target = torch.tensor(a), torch.tensor(b)
    minimized(
        [left, right],
        lambda: ((matrix[:, :3] @ left[:, 0] + matrix[:, 3] * right - target) ** 2).sum(),
        line_search_fn="strong_wolfe",
        tolerance_change=1e-15,
    )
    expected = np.linalg.lstsq(a, b, rcond=None)[0]
    np.testing.assert_allclose([*left[:, 0].tolist(), *right.tolist()], expected, atol=1e-7)


def test_complex_parameters_are_pairs_of_real_ones() -> None:
    z = torch.nn.Parameter(torch.tensor([0j, 1j], dtype=torch.complex128))
    target = torch.tensor([1 + 2j, -3j], dtype=torch.complex128)
    minimized([z], lambda: ((z - target).abs() ** 2).sum(), line_search_fn="strong_wolfe")
    np.testing.assert_allclose(z.tolist(), target.tolist(), atol=1e-7)


def test_a_step_evaluates_no_more_than_it_may() -> None:
    for options in ({"max_iter": 3}, {"max_eval": 4, "line_search_fn": "strong_wolfe"}):
        x = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
        optimizer, losses = minimized([x], lambda x=x: (x**4).sum(), steps=1, lr=1e-3, **options)
        state = optimizer.state[x]
        # One before the search.
        assert state["func_evals"] == len(losses) <= 5


def test_the_search_of_a_line_ends_with_the_evaluations_of_the_step() -> None:
    for max_eval in (1, 2, 5):
        x = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
        options = {"max_iter": 1, "max_eval": max_eval, "line_search_fn": "strong_wolfe"}
        _, losses = minimized([x], lambda x=x: x.sum(), steps=1, **options)
        assert len(losses) == 1 + max_eval  # a line always is looked at once


def test_a_search_ends_where_rounding_hides_every_decrease() -> None:
    x = torch.nn.Parameter(torch.zeros(2))
    options = {"line_search_fn": "strong_wolfe", "tolerance_change": 0, "max_eval": 40}
    _, losses = minimized([x], lambda: 1e4 + 1e-3 * x.sum(), steps=1, **options)
    assert len(losses) == 1 + 40
    assert x.tolist() == [0, 0]


def test_it_stops_at_once_where_the_gradient_vanishes() -> None:
    x = torch.nn.Parameter(torch.zeros(2))
    _, losses = minimized([x], lambda: (x**2).sum(), steps=1)
    assert losses == [0.0]


def test_it_finds_a_maximum() -> None:
    for search in (None, "strong_wolfe"):
        x, y = (torch.nn.Parameter(torch.tensor([-1.2, 1.0])) for _ in range(2))
        options = {"line_search_fn": search, "lr": 0.1}
        optimizer, heights = minimized([x], lambda x=x: -(x**4).sum(), maximize=True, **options)
        _, losses = minimized([y], lambda y=y: (y**4).sum(), **options)
        assert x.tolist() == y.tolist()
        assert heights == [-loss for loss in losses]
        del optimizer.param_groups[0]["maximize"]  # as checkpoints of PyTorch 2.13 are
        optimizer.step(closure_of(optimizer, lambda x=x: (x**4).sum(), []))


def test_parameters_without_gradient_and_empty_ones_stay() -> None:
    x, other = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))
    empty = torch.nn.Parameter(torch.zeros(0))
    minimized([x, other, empty], lambda: (x**2).sum() + empty.sum())
    assert other.tolist() == [1, 1, 1]
    np.testing.assert_allclose(x.tolist(), [0, 0], atol=1e-5)


def test_a_loaded_state_continues_exactly() -> None:
    def start():
        return torch.nn.Parameter(torch.tensor([3.0, -2.0], dtype=torch.float64))

    x, y = start(), start()
    one, _ = minimized([x], lambda: (x**4 + x**2).sum(), steps=2, lr=0.1, max_iter=3)
    two = torch.optim.LBFGS([y])
    two.load_state_dict(copy.deepcopy(one.state_dict()))
    y.data.copy_(x.data)
    one.step(closure_of(one, lambda: (x**4 + x**2).sum(), []))
    two.step(closure_of(two, lambda: (y**4 + y**2).sum(), []))
    assert torch.equal(x, y)


def test_misuse_is_refused() -> None:
    x = torch.nn.Parameter(torch.ones(2))
    with pytest.raises(ValueError, match="doesn't support per-parameter options"):
        torch.optim.LBFGS([{"params": [x]}, {"params": [torch.zeros(1)]}])
    with pytest.raises(TypeError, match="closure is missing"):
        torch.optim.LBFGS([x]).step()
    optimizer = torch.optim.LBFGS([x], line_search_fn="armijo")
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer.step(closure_of(optimizer, lambda: (x**2).sum(), []))


def test_the_search_steps_far_where_the_line_only_falls() -> None:
    # Down a slope that is the same at 0 and 2 and flatter between: no cubic has its minimum there.
    x = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    seen = []

    def loss_of():
        seen.append(x.item())
        return (-((x - 1) ** 3) / 3 - x / 3 + (x / 20) ** 8).sum()

    minimized([x], loss_of, steps=1, lr=2.0, line_search_fn="strong_wolfe", max_eval=3)
    # The first step is lr / |slope| = 2 / (4 / 3) times the slope; the next one lies in the middle
    # of what it may be: from 1.01 to 10 times the first.
    np.testing.assert_allclose(seen[:3], [0.0, 2.0, 11.01])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_ends_the_search(bad) -> None:
    x = torch.nn.Parameter(torch.ones(2))
    minimized([x], lambda: (x * bad).sum(), steps=1, line_search_fn="strong_wolfe", max_iter=3)
