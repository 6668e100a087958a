"""Regions that are computed again for backward: gradients, memory, random numbers, errors."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from memory import kept_by

import rushlight as torch
from rushlight import _C, nn
from rushlight.nn import functional as F
from rushlight.utils import checkpoint as checkpoints
from rushlight.utils.checkpoint import (
    CheckpointError,
    GraphExecGroup,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

both_forms = pytest.mark.parametrize("use_reentrant", [False, True])


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def leaf(*size: int) -> torch.Tensor:
    return torch.randn(*size, dtype=torch.float64).requires_grad_()


def region(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = (x @ w).tanh()
    return F.softmax(h @ w.T, dim=-1) * x.exp()


def grads_of(run: Callable[..., Any], *leaves: torch.Tensor) -> list[list[float]]:
    for x in leaves:
        x.grad = None
    run().sum().backward()
    return [x.grad.tolist() for x in leaves if x.grad is not None]


class Counted:
    """A region that counts its runs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.runs = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.runs += 1
        return self.function(*args, **kwargs)


class Changing:
    """A region that does one thing at first and another thing later."""

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self.functions: Iterator[Callable[..., Any]] = iter(functions)

    def __call__(self, *args: Any) -> Any:
        return next(self.functions)(*args)


@both_forms
def test_gradients_are_those_without_checkpoints(use_reentrant: bool) -> None:
    x, w = leaf(3, 4), leaf(4, 5)
    counted = Counted(region)
    plain = grads_of(lambda: region(x, w).sin(), x, w)
    again = grads_of(lambda: checkpoint(counted, x, w, use_reentrant=use_reentrant).sin(), x, w)
    assert again == plain
    assert counted.runs == 2


@both_forms
def test_computed_arguments_and_other_objects_pass_through(use_reentrant: bool) -> None:
    x = leaf(3)

    def function(x: torch.Tensor, n: int, y: torch.Tensor | None, more: list[int]) -> Any:
        return x**n * more[0], None, x.detach(), "text"

    def run() -> torch.Tensor:
        first, nothing, detached, text = checkpoint(
            function, x * 2, 3, None, [4], use_reentrant=use_reentrant
        )
        assert nothing is None and text == "text" and torch.equal(detached, x * 2)
        return first

    assert grads_of(run, x) == grads_of(lambda: (x * 2) ** 3 * 4, x)


def test_keyword_arguments_reach_the_function() -> None:
    x = leaf(3)
    run = lambda: checkpoint(lambda x, *, by: x.exp() * by, x, by=3, use_reentrant=False)  # noqa: E731
    assert grads_of(run, x) == grads_of(lambda: x.exp() * 3, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: by"):
        checkpoint(torch.exp, x, by=3, use_reentrant=True)


@both_forms
def test_regions_in_regions(use_reentrant: bool) -> None:
    x = leaf(4)
    inner, outer = Counted(lambda x: x.sin().exp()), None

    def middle(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(inner, x.cos(), use_reentrant=use_reentrant).tanh()

    outer = Counted(
        lambda x: (
            checkpoint(middle, x * 2, use_reentrant=use_reentrant)
            * checkpoint(middle, x.exp(), use_reentrant=use_reentrant)
        )
    )
    plain = grads_of(lambda: (x * 2).cos().sin().exp().tanh() * x.exp().cos().sin().exp().tanh(), x)
    again = grads_of(lambda: checkpoint(outer, x, use_reentrant=use_reentrant), x)
    assert again == plain
    assert outer.runs == 2


def test_arguments_of_regions_in_regions_are_not_kept() -> None:
    x = torch.ones(1000, requires_grad=True)
    alive: list[Any] = []

    def inner(h: torch.Tensor) -> torch.Tensor:
        return h.sin()

    def outer(x: torch.Tensor) -> torch.Tensor:
        for _ in range(50):
            x = checkpoint(inner, x * 1.5, use_reentrant=False)
        return x

    before = _C._memory_stats()["allocated"]
    alive.append(checkpoint(outer, x, use_reentrant=False))
    assert _C._memory_stats()["allocated"] - before < 25 * 4000  # half of the 50 arguments


@both_forms
def test_random_numbers_are_repeated_and_go_on(use_reentrant: bool) -> None:
    x = leaf(100)
    masks: list[torch.Tensor] = []

    def drop(x: torch.Tensor) -> torch.Tensor:
        y = F.dropout(x, 0.5)
        masks.append(y.detach() != 0)
        return (y * y).exp()

    out = checkpoint(drop, x, use_reentrant=use_reentrant)
    after = torch.rand(3)
    state = torch.get_rng_state()
    out.sum().backward()
    assert torch.equal(masks[0], masks[1])
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(0)
    leaf(100)
    F.dropout(x, 0.5)
    assert torch.equal(torch.rand(3), after)


@both_forms
def test_random_numbers_go_on_where_they_are_not_preserved(use_reentrant: bool) -> None:
    x = leaf(100)
    masks: list[torch.Tensor] = []

    def drop(x: torch.Tensor) -> torch.Tensor:
        y = F.dropout(x, 0.5)
        masks.append(y.detach() != 0)
        return (y * y).exp()

    checkpoint(drop, x, use_reentrant=use_reentrant, preserve_rng_state=False).sum().backward()
    assert not torch.equal(masks[0], masks[1])


def test_autograd_grad_and_inputs_go_through() -> None:
    x, w = leaf(3, 4), leaf(4, 5)
    (expected,) = torch.autograd.grad(region(x, w).sum(), w)
    (actual,) = torch.autograd.grad(checkpoint(region, x, w, use_reentrant=False).sum(), w)
    assert torch.equal(actual, expected)
    checkpoint(region, x, w, use_reentrant=False).sum().backward(inputs=[w])
    assert x.grad is None
    assert torch.equal(w.grad, expected)


def test_reentrant_form_refuses_what_it_cannot_do() -> None:
    x = leaf(3)
    y = checkpoint(torch.sin, x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match=r"incompatible with .grad\(\) or passing an `inputs`"):
        torch.autograd.grad(y, x, retain_graph=True)
    with pytest.raises(RuntimeError, match="use_reentrant=False"):
        y.backward(inputs=[x], retain_graph=True)
    y.backward()
    assert torch.equal(x.grad, x.cos())


def test_second_derivatives() -> None:
    x, w = leaf(2, 2), leaf(2, 2)

    def second(run: Callable[..., torch.Tensor]) -> torch.Tensor:
        (first,) = torch.autograd.grad(run(x, w).sin().sum(), x, create_graph=True)
        return torch.autograd.grad(first.exp().sum(), w)[0]

    plain = second(region)
    assert torch.allclose(
        second(lambda x, w: checkpoint(region, x, w, use_reentrant=False)), plain, rtol=1e-12
    )


def test_inputs_without_gradients_and_weights_of_modules() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    x = torch.randn(5, 4)
    net(x).sum().backward()
    expected = [p.grad for p in net.parameters()]
    net.zero_grad()
    checkpoint(net, x, use_reentrant=False).sum().backward()
    assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), expected, strict=True))
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        y = checkpoint(net, x, use_reentrant=True)
    assert not y.requires_grad


@both_forms
def test_no_grad_inside_and_outside(use_reentrant: bool) -> None:
    x = leaf(3)

    def half(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            scale = x.exp().sum()
        return (x * scale).sin()

    plain = grads_of(lambda: half(x), x)
    assert grads_of(lambda: checkpoint(half, x, use_reentrant=use_reentrant), x) == plain
    counted = Counted(half)
    with torch.no_grad():
        y = checkpoint(counted, x, use_reentrant=use_reentrant)
    assert not y.requires_grad
    assert counted.runs == 1


def test_backward_twice_recomputes_twice() -> None:
    x = leaf(3)
    counted = Counted(lambda x: x.sin().exp())
    y = checkpoint(counted, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    assert counted.runs == 3
    assert torch.equal(x.grad, 2 * first)
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()


def test_ops_that_read_what_they_saved_for_two_gradients_recompute_once() -> None:
    x, calls = leaf(4, 4), 0

    def function(x: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        y = x.exp() / (x * x + 1)
        y = torch.where(y > 1, y, y * y).reshape(2, 2, 4) @ x.reshape(2, 4, 2)
        return F.mse_loss(torch.lerp(y, y.sin(), y), y.cos())

    (once,) = torch.autograd.grad(function(x), x)
    checkpoint(function, x, use_reentrant=False).backward()
    assert calls == 3
    assert torch.equal(x.grad, once)


def test_a_group_of_backwards_shares_one_recomputation() -> None:
    x = leaf(3)
    counted = Counted(lambda x: (x.sin().exp(), x.cos().exp()))
    a, b = checkpoint(counted, x, use_reentrant=False)
    with GraphExecGroup():
        a.sum().backward()
        b.sum().backward()
        with pytest.raises(RuntimeError, match="cannot be nested"):
            GraphExecGroup().__enter__()
    assert counted.runs == 2
    assert [x.grad.tolist()] == grads_of(lambda: x.sin().exp() + x.cos().exp(), x)
    a, b = checkpoint(counted, x, use_reentrant=False)
    a.sum().backward()
    b.sum().backward()
    assert counted.runs == 4


def test_the_second_run_ends_with_the_last_saved_tensor() -> None:
    x = leaf(3)
    ends: list[str] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.exp().sum()
        ends.append("end")
        return y

    checkpoint(function, x, use_reentrant=False).backward()
    assert len(ends) == 1
    checkpoint(function, x, use_reentrant=False, early_stop=False).backward()
    assert len(ends) == 3
    with set_checkpoint_early_stop(False):
        y = checkpoint(function, x, use_reentrant=False)
    y.backward()
    assert len(ends) == 5


def test_a_region_that_catches_exceptions_does_not_catch_the_early_end() -> None:
    x = leaf(3)

    def function(x: torch.Tensor) -> torch.Tensor:
        try:
            return x.exp()
        except Exception:
            return x

    assert grads_of(lambda: checkpoint(function, x, use_reentrant=False), x) == [x.exp().tolist()]


MISMATCHES = {
    "shape": (
        lambda x: x[:3].sin().sum(),
        lambda x: x[:2].sin().sum(),
        r"different metadata than during the forward pass.\n"
        r"tensor at position 0:\nsaved metadata: \{'shape': torch.Size\(\[3\]\).*\n"
        r"recomputed metadata: \{'shape': torch.Size\(\[2\]\)",
    ),
    "dtype": (
        lambda x: x.sin(),
        lambda x: x.float().sin(),
        r"'dtype': torch.float64.*\nrecomputed metadata: .*'dtype': torch.float32",
    ),
    "fewer": (
        lambda x: x.sin().exp(),
        lambda x: x.sin(),
        "A different number of tensors was saved during the original forward and recomputation.\n"
        "Number of tensors saved during forward: 2\n"
        "Number of tensors saved during recomputation: 1.",
    ),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_a_region_that_saves_other_tensors_is_an_error(name: str) -> None:
    first, second, message = MISMATCHES[name]
    x = leaf(3)
    y = checkpoint(Changing(first, second), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match=message) as raised:
        y.sum().backward()
    assert "must compute the same each time" in str(raised.value)
    assert "Pass debug=True" in str(raised.value)


def test_a_region_that_saves_more_is_an_error_unless_it_is_stopped() -> None:
    x = leaf(3)
    more = (lambda x: x.sin(), lambda x: x.sin().sin())
    checkpoint(Changing(*more), x, use_reentrant=False).sum().backward()
    y = checkpoint(Changing(*more), x, use_reentrant=False, early_stop=False).sum()
    with pytest.raises(CheckpointError, match="trying to save more tensors during recomputation"):
        y.backward()


def test_metadata_is_not_compared_on_request() -> None:
    x = leaf(3)
    changing = Changing(lambda x: x.sin(), lambda x: (x * 1.0).float().sin())
    y = checkpoint(changing, x, use_reentrant=False, determinism_check="none").sum()
    with pytest.raises(RuntimeError) as raised:  # the op is given a tensor of another dtype
        y.backward()
    assert not isinstance(raised.value, CheckpointError)
    with pytest.raises(ValueError, match=r"one of \['default', 'none'\], but got other"):
        checkpoint(torch.sin, x, use_reentrant=False, determinism_check="other")


def test_debug_shows_where_the_runs_begin_to_differ() -> None:
    x = leaf(3)
    changing = Changing(lambda x: x.exp()[:3].sin(), lambda x: x.exp()[:2].sin())
    y = checkpoint(changing, x, use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError) as raised:
        y.sum().backward()
    rows = str(raised.value).splitlines()
    assert any(row.startswith("   exp -> (3,) float64  (test_checkpoint.py:") for row in rows)
    assert any(row.startswith("-> __getitem__ -> (3,) float64") for row in rows)
    assert any(row.startswith("-> __getitem__ -> (2,) float64") for row in rows)
    with set_checkpoint_debug_enabled(True):
        y = checkpoint(Changing(torch.sin, lambda x: x), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="Operations executed during recomputation"):
        y.sum().backward()


def test_errors_of_the_second_run_reach_the_caller_of_backward() -> None:
    x = leaf(3)

    def fails(x: torch.Tensor) -> torch.Tensor:
        raise KeyError("second")

    y = checkpoint(Changing(torch.sin, fails, torch.sin), x, use_reentrant=False).sum()
    with pytest.raises(KeyError, match="second"):
        y.backward()


def test_an_argument_written_in_place_is_noticed() -> None:
    x = leaf(3)
    h = x * 2
    y = checkpoint(lambda h: h.sin(), h, use_reentrant=False)
    h.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_writes_in_place_inside_a_region() -> None:
    x = leaf(3)

    def function(x: torch.Tensor) -> torch.Tensor:
        h = x * 2
        h[0] = h[1] * 3
        h.mul_(x)
        return h.sin()

    assert grads_of(lambda: checkpoint(function, x, use_reentrant=False), x) == grads_of(
        lambda: function(x), x
    )


def test_backward_in_several_threads() -> None:
    x = leaf(50)
    total = checkpoint(
        lambda x: [(x * i).sin().exp().sum() for i in range(8)], x, use_reentrant=False
    )
    threads = [
        threading.Thread(target=lambda y=y: torch.autograd.grad(y, x, retain_graph=True))
        for y in total
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sum(total).backward()
    assert [x.grad.tolist()] == grads_of(
        lambda: sum((x * i).sin().exp().sum() for i in range(8)), x
    )


def test_options_that_exclude_each_other() -> None:
    x = leaf(3)
    for options in (
        {"debug": True},
        {"context_fn": lambda: checkpoints.noop_context_fn()},
        {"respect_saved_tensors_hooks": False},
    ):
        with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
            checkpoint(torch.sin, x, use_reentrant=True, **options)
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        y = checkpoint(torch.sin, x)
    assert type(y.grad_fn).__name__ == "CheckpointFunctionBackward"


@both_forms
def test_a_decorator_checkpoints_every_call(use_reentrant: bool) -> None:
    counted = Counted(region)
    layer = checkpoint(use_reentrant=use_reentrant, preserve_rng_state=False)(counted)
    x, w = leaf(3, 4), leaf(4, 5)
    assert grads_of(lambda: layer(x, w), x, w) == grads_of(lambda: region(x, w), x, w)
    assert counted.runs == 2

    @checkpoint(use_reentrant=False)
    def scaled(x: torch.Tensor, *, debug: float = 1) -> torch.Tensor:
        """Says what it does."""
        return (x * debug).exp().sin()

    assert grads_of(lambda: scaled(x, debug=2), x) == grads_of(lambda: (x * 2).exp().sin(), x)
    assert (scaled.__name__, scaled.__doc__) == ("scaled", "Says what it does.")


def test_a_decorator_takes_options_only() -> None:
    with pytest.raises(TypeError, match="function is None"):
        checkpoint(None, leaf(3), use_reentrant=False)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: foo"):
        checkpoint(use_reentrant=False, foo=1)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint()


def test_contexts_surround_the_runs() -> None:
    import contextlib

    x = leaf(3)
    events: list[str] = []

    @contextlib.contextmanager
    def note(name: str) -> Iterator[None]:
        events.append(name)
        yield

    y = checkpoint(
        Counted(torch.sin),
        x,
        use_reentrant=False,
        context_fn=lambda: (note("first"), note("again")),
    )
    assert events == ["first"]
    y.sum().backward()
    assert events == ["first", "again"]


@both_forms
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_sequential_segments(use_reentrant: bool, segments: int) -> None:
    net = nn.Sequential(*(nn.Linear(4, 4) if i % 2 == 0 else nn.Tanh() for i in range(5)))
    x = torch.randn(3, 4, requires_grad=True)
    net(x).sum().backward()
    expected = [x.grad, *(p.grad for p in net.parameters())]
    for functions in (net, list(net)):
        x.grad = None
        net.zero_grad()
        checkpoint_sequential(functions, segments, x, use_reentrant=use_reentrant).sum().backward()
        actual = [x.grad, *(p.grad for p in net.parameters())]
        assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))


def test_sequential_arguments_are_checked() -> None:
    x = leaf(3)
    for segments in (0, 2, -1):
        with pytest.raises(ValueError, match=f"segments is {segments} for 1 functions"):
            checkpoint_sequential([torch.sin], segments, x, use_reentrant=False)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: foo"):
        checkpoint_sequential([torch.sin], 1, x, use_reentrant=False, foo=1)
    with pytest.warns(UserWarning, match="checkpoint_sequential: the use_reentrant parameter"):
        checkpoint_sequential([torch.sin, torch.cos], 1, x)


def test_deep_network_needs_a_fraction_of_the_memory() -> None:
    layers = [nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(32)]
    x = torch.randn(256, 64, requires_grad=True)

    plain = kept_by(lambda: nn.Sequential(*layers)(x))
    segments = kept_by(lambda: checkpoint_sequential(layers, 8, x, use_reentrant=False))
    whole = kept_by(lambda: checkpoint(nn.Sequential(*layers), x, use_reentrant=False))
    result = 256 * 64 * 4
    assert plain > 60 * result  # two results of each layer
    assert segments < 18 * result  # the arguments of seven segments, and the whole of the last one
    assert whole < 2 * result


def test_memory_of_the_second_run_is_freed() -> None:
    x = torch.randn(1000, requires_grad=True)
    y = checkpoint(lambda x: x.sin().exp().sin(), x, use_reentrant=False)
    y.sum().backward(retain_graph=True)
    del y
    x.grad = None
    before = _C._memory_stats()["allocated"]
    y = checkpoint(lambda x: x.sin().exp().sin(), x, use_reentrant=False)
    y.sum().backward()
    x.grad = None
    del y
    assert _C._memory_stats()["allocated"] == before


def test_helpers_for_custom_checkpoints() -> None:
    x = leaf(2)
    (detached, three) = checkpoints.detach_variable((x * 2, 3))
    assert detached.is_leaf and detached.requires_grad and three == 3
    with pytest.raises(RuntimeError, match="Only tuple of tensors is supported"):
        checkpoints.detach_variable([x])
    with pytest.warns(UserWarning, match="None of the inputs"):
        checkpoints.check_backward_validity([torch.ones(1), 3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checkpoints.check_backward_validity([x])
    assert checkpoints.get_device_states(x, 3) == ([], [])
    checkpoints.set_device_states([], [])
    assert checkpoints.DefaultDeviceType.get_device_type() in ("cpu", "cuda")
