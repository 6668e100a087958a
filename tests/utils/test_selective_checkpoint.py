"""Checkpoints that keep the results of some ops: which ops run again, and that gradients stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from memory import kept_by

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F
from rushlight.overrides import TorchFunctionMode
from rushlight.utils.checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    checkpoint,
    create_selective_checkpoint_contexts,
)


class Ran(TorchFunctionMode):
    """Counts the ops that reach the core, by name."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[func.__name__] += 1
        return func(*args, **(kwargs or {}))


def leaf(*size: int) -> torch.Tensor:
    return torch.randn(*size, dtype=torch.float64).requires_grad_()


def keeping(policy: Any, **options: Any) -> Callable[..., Any]:
    return partial(create_selective_checkpoint_contexts, policy, **options)


def backward_ops(function: Callable[..., Any], policy: Any, *leaves: torch.Tensor) -> Counter[str]:
    """What runs again in backward; checks the gradients on the way."""
    expected = torch.autograd.grad(function(*leaves).sum(), leaves)
    y = checkpoint(function, *leaves, use_reentrant=False, context_fn=keeping(policy))
    with Ran() as ran:
        actual = torch.autograd.grad(y.sum(), leaves)
    assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))
    return ran.counts


def network(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = torch.tanh(x @ w)
    h = F.softmax(h @ w, dim=-1)
    return (F.linear(h, w) * h).sin()


@pytest.mark.parametrize(
    ("kept", "ran", "spared"),
    [
        ([], ["matmul", "tanh", "softmax", "linear", "mul"], []),
        ([torch.matmul], ["tanh", "softmax", "linear", "mul"], ["matmul"]),
        ([torch.matmul, F.linear], ["tanh", "softmax", "mul"], ["matmul", "linear"]),
        ([torch.tanh, F.softmax], ["matmul", "linear"], ["tanh", "softmax"]),
    ],
)
def test_ops_whose_results_are_kept_do_not_run_again(
    kept: list[Any], ran: list[str], spared: list[str]
) -> None:
    counts = backward_ops(network, kept, leaf(3, 4), leaf(4, 4))
    assert all(counts[name] for name in ran)
    assert not any(counts[name] for name in spared)


def test_a_policy_is_asked_once_with_the_result_and_the_arguments() -> None:
    asked: list[Any] = []

    def policy(ctx: SelectiveCheckpointContext, op: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append((op.__name__, ctx.is_recompute, ctx.op_output.shape, len(args), kwargs))
        return CheckpointPolicy.MUST_SAVE if op is torch.exp else CheckpointPolicy.MUST_RECOMPUTE

    counts = backward_ops(lambda x: x.size(0) * x.exp().sum(dim=0).sin(), policy, leaf(3))
    assert [(name, again, tuple(size)) for name, again, size, _, _ in asked] == [
        ("exp", False, (3,)),
        ("sum", False, ()),
        ("sin", False, ()),
        ("mul", False, ()),
    ]
    assert not counts["exp"]


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        (CheckpointPolicy.MUST_SAVE, True),
        (CheckpointPolicy.PREFER_SAVE, True),
        (CheckpointPolicy.MUST_CPU_OFFLOAD, True),
        (CheckpointPolicy.PREFER_CPU_OFFLOAD, True),
        (CheckpointPolicy.MUST_RECOMPUTE, False),
        (CheckpointPolicy.PREFER_RECOMPUTE, False),
        (True, True),
        (False, False),
    ],
)
def test_every_policy(wanted: Any, kept: bool) -> None:
    counts = backward_ops(
        lambda x: x.exp().sin().exp(), lambda ctx, op, *args, **kwargs: wanted, leaf(3)
    )
    assert bool(counts["exp"]) == (not kept)


def test_windows_and_writes_in_place_always_run_again() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        h = x.exp().view(2, 2).T
        h = h * 2.0
        h.mul_(x[0])
        first, second = h.sin().unbind()
        return first * second

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
        return op is not torch.mul  # which is written

    counts = backward_ops(function, policy, leaf(4))
    assert counts["mul_"] and counts["unbind"]
    assert not counts["exp"] and not counts["sin"]


def test_what_an_op_saves_besides_arguments_and_result_is_kept() -> None:
    weight = leaf(5)
    for function in (
        lambda x: F.layer_norm(x, (5,), weight).sin(),
        lambda x: F.dropout(x, 0.5).sin().exp(),
        lambda x: x.max(dim=1).values.exp(),
        lambda x: torch.einsum("ij,kj->ik", x, x).sin(),
        lambda x: torch.cat([x, x.exp()]).sort(dim=0)[0].sin(),
    ):
        torch.manual_seed(1)
        x = leaf(4, 5)
        state = torch.get_rng_state()
        expected = torch.autograd.grad(function(x).sum(), x)
        torch.set_rng_state(state)
        always = keeping(lambda *args, **kwargs: True)
        y = checkpoint(function, x, use_reentrant=False, context_fn=always)
        assert torch.equal(torch.autograd.grad(y.sum(), x)[0], expected[0])


def test_random_numbers_after_an_op_that_does_not_run_again_are_the_same() -> None:
    x = leaf(50)

    def function(x: torch.Tensor) -> torch.Tensor:
        noise = torch.rand(50)
        return (F.dropout(x * noise, 0.5) * x).sin()

    state = torch.get_rng_state()
    expected = torch.autograd.grad(function(x).sum(), x)[0]
    torch.set_rng_state(state)
    y = checkpoint(function, x, use_reentrant=False, context_fn=keeping([torch.rand]))
    with Ran() as ran:
        assert torch.equal(torch.autograd.grad(y.sum(), x)[0], expected)
    assert not ran.counts["rand"] and ran.counts["dropout"]


def test_a_kept_result_that_was_written_is_refused() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        h = x.sin()
        y = h.exp()
        h.detach().mul_(1.0)
        return y.exp() * 2

    x = leaf(3)
    y = checkpoint(function, x, use_reentrant=False, context_fn=keeping([torch.sin]))
    with pytest.raises(RuntimeError, match="Tensor cached during selective .* has been mutated"):
        y.sum().backward()
    allowed = keeping([torch.sin], allow_cache_entry_mutation=True)
    checkpoint(function, x, use_reentrant=False, context_fn=allowed).sum().backward()
    assert torch.equal(x.grad, torch.autograd.grad(function(x).sum(), x)[0])
    y = checkpoint(lambda x: x.sin().mul_(2).cos(), x, use_reentrant=False, context_fn=allowed)
    y.sum().backward()


def test_results_of_added_operators_are_kept() -> None:
    calls = []

    @torch.library.custom_op("tests::kept_sine", mutates_args=())
    def kept_sine(x: torch.Tensor) -> torch.Tensor:
        calls.append(x)
        return x.sin()

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    kept_sine.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=setup)
    x = leaf(3)
    kept = keeping([torch.ops.tests.kept_sine.default])
    y = checkpoint(lambda x: kept_sine(x).exp().sin(), x, use_reentrant=False, context_fn=kept)
    y.sum().backward()
    assert len(calls) == 1
    assert torch.equal(x.grad, torch.autograd.grad(kept_sine(x).exp().sin().sum(), x)[0])


def test_kept_results_go_through_the_hooks_around_on_request() -> None:
    x = leaf(3)
    packed: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> tuple[str, torch.Tensor]:
        packed.append(tensor)
        return "packed", tensor.clone()

    def run(respect: bool | None) -> tuple[int, torch.Tensor]:
        packed.clear()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda pair: pair[1]):
            y = checkpoint(
                lambda x: F.dropout(x.exp().sin()).exp(), x, use_reentrant=False,
                context_fn=keeping([torch.sin, F.dropout]), respect_saved_tensors_hooks=respect,
            )  # fmt: skip
        count = len(packed)
        return count, torch.autograd.grad(y.sum(), x)[0]

    def seeded(respect: bool | None) -> tuple[int, torch.Tensor]:
        torch.manual_seed(0)
        return run(respect)

    (through, grad), (beside, expected) = seeded(True), seeded(False)
    assert torch.equal(grad, expected)
    assert through > beside == 1  # the argument alone
    with pytest.warns(FutureWarning, match="Pass respect_saved_tensors_hooks=True"):
        assert run(None)[0] == beside


def test_backward_twice_and_second_derivatives() -> None:
    x, w = leaf(3, 3), leaf(3, 3)

    def second(y: torch.Tensor) -> torch.Tensor:
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return torch.autograd.grad(first.sin().sum(), w)[0]

    y = checkpoint(network, x, w, use_reentrant=False, context_fn=keeping([torch.matmul]))
    first = torch.autograd.grad(y.sum(), x, retain_graph=True)[0]
    assert torch.equal(torch.autograd.grad(y.sum(), x, retain_graph=True)[0], first)
    assert torch.allclose(second(y), second(network(x, w)), rtol=1e-12)


def test_memory_lies_between_all_and_nothing() -> None:
    layers = nn.Sequential(
        *(nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Tanh()) for _ in range(10))
    )
    x = torch.randn(256, 64, requires_grad=True)

    result = 256 * 64 * 4
    plain = kept_by(lambda: layers(x))
    products = kept_by(
        lambda: checkpoint(layers, x, use_reentrant=False, context_fn=keeping([F.linear]))
    )
    assert plain > 19 * result
    assert 10 * result <= products < 12 * result


def test_policies_name_operators() -> None:
    x, w = leaf(3, 4), leaf(4, 4)
    mm = torch.ops.aten.mm.default

    def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.mm(x, w).sin().cos()

    kept = backward_ops(product, [mm], x, w)
    assert kept == backward_ops(product, [torch.mm], x, w)
    assert kept == backward_ops(product, lambda ctx, op, *args, **kwargs: op == mm, x, w)
    assert kept != backward_ops(product, [torch.sin], x, w)


def test_policies_are_checked() -> None:
    with pytest.raises(ValueError, match="contains 3 of type int"):
        create_selective_checkpoint_contexts([torch.mm, 3])
    with pytest.raises(TypeError, match="either a function or a list of ops"):
        create_selective_checkpoint_contexts(3)
    assert torch.Tensor.detach in SAC_IGNORED_OPS
