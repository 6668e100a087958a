"""Random numbers on CUDA: those of the CPU, bit for bit, from the same generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is neither GPU nor shim"
)

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64]


def assert_same_draw(draw: Callable[[str], Any]) -> None:
    """Compares results and how far the generator went on, from an offset that is not 0."""
    results: list[Any] = []
    states: list[Any] = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(5)
        torch.rand(3)
        result = draw(device)
        assert result.device.type == device
        results.append(result.cpu())
        states.append(torch.get_rng_state())
    assert results[0].dtype == results[1].dtype
    assert torch.equal(*results)
    assert torch.equal(*states)


CONTINUOUS = {
    "rand": lambda n, dtype, device: torch.rand(n, dtype=dtype, device=device),
    "uniform_": lambda n, dtype, device: torch.empty(n, dtype=dtype, device=device).uniform_(-2, 5),
    "randn": lambda n, dtype, device: torch.randn(n, dtype=dtype, device=device),
    "normal_": lambda n, dtype, device: torch.empty(n, dtype=dtype, device=device).normal_(1, 3),
    "exponential_": lambda n, dtype, device: torch.empty(
        n, dtype=dtype, device=device
    ).exponential_(2),
    "cauchy_": lambda n, dtype, device: torch.empty(n, dtype=dtype, device=device).cauchy_(1, 2),
    "log_normal_": lambda n, dtype, device: torch.empty(
        n, dtype=dtype, device=device
    ).log_normal_(),
    "geometric_": lambda n, dtype, device: torch.empty(n, dtype=dtype, device=device).geometric_(
        0.1
    ),
    "poisson": lambda n, dtype, device: torch.poisson(torch.linspace(0, 30, n).to(device, dtype)),
    "binomial": lambda n, dtype, device: torch.binomial(
        torch.linspace(0, 90, n).to(device, dtype), torch.tensor(0.4, dtype=dtype, device=device)
    ),
    "standard gamma": lambda n, dtype, device: torch._standard_gamma(
        torch.linspace(0, 30, n).to(device, dtype)
    ),
    "bernoulli_": lambda n, dtype, device: torch.empty(n, dtype=dtype, device=device).bernoulli_(
        0.3
    ),
    "dropout": lambda n, dtype, device: torch.nn.functional.dropout(
        torch.arange(n, device=device).to(dtype), 0.3
    ),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("draw", CONTINUOUS.values(), ids=CONTINUOUS)
def test_floats_are_those_of_the_cpu(draw: Callable[..., Any], dtype: Any) -> None:
    for n in (0, 1, 2, 7, 1023, 5001):
        assert_same_draw(lambda device, n=n: draw(n, dtype, device))


@pytest.mark.parametrize("dtype", [*INTEGERS, torch.float32], ids=str)
def test_integers_are_those_of_the_cpu(dtype: Any) -> None:
    assert_same_draw(lambda device: torch.empty(777, dtype=dtype, device=device).random_())
    assert_same_draw(lambda device: torch.randint(0, 2, (777,), dtype=dtype, device=device))
    assert_same_draw(lambda device: torch.randperm(2, dtype=dtype, device=device))


OTHERS = {
    "wide integers": lambda v: torch.randint(-(2**62), 2**62, (33,), device=v),
    "all integers": lambda v: torch.empty(33, dtype=torch.int64, device=v).random_(-(2**63), None),
    "strided": lambda v: torch.zeros(8, 9, device=v).t()[1:, ::2].normal_(1, 2),
    "odd offset": lambda v: torch.zeros(99, device=v)[1:].uniform_(),
    "complex": lambda v: torch.randn(9, dtype=torch.complex64, device=v),
    "randperm": lambda v: torch.randperm(1000, device=v),
    "geometric int8": lambda v: torch.empty(99, dtype=torch.int8, device=v).geometric_(0.01),
    "transposed poisson": lambda v: torch.poisson(torch.full((8, 9), 20.0, device=v).t()),
    "broadcast binomial": lambda v: torch.binomial(
        torch.full((8, 1), 20.0, device=v), torch.rand(9, device=v)
    ),
    "native dropout": lambda v: torch.native_dropout(torch.ones(99, device=v), 0.5, True)[1],
    "multinomial": lambda v: torch.multinomial(torch.rand(3, 50, device=v), 7),
    "multinomial again": lambda v: torch.multinomial(torch.rand(5, device=v), 99, replacement=True),
    "chances": lambda v: torch.bernoulli(torch.linspace(0, 1, 99, device=v).expand(4, 99)),
    "chances of rows": lambda v: torch.empty(4, 9, device=v).bernoulli_(torch.rand(4, 1, device=v)),
    "means": lambda v: torch.normal(torch.arange(9.0, device=v), 2.0),
    "stds": lambda v: torch.normal(1.0, torch.arange(9.0, device=v)),
    "strided dropout": lambda v: torch.nn.functional.dropout(torch.ones(8, 9, device=v).t(), 0.5),
    "part dropout": lambda v: torch.nn.functional.dropout(torch.ones(99, device=v)[1:], 0.5),
    "channels": lambda v: torch.nn.functional.dropout2d(torch.ones(4, 9, 2, 3, device=v), 0.5),
    "alpha": lambda v: torch.nn.functional.alpha_dropout(torch.ones(99, device=v), 0.5, True),
}


@pytest.mark.parametrize("draw", OTHERS.values(), ids=OTHERS)
def test_other_draws_are_those_of_the_cpu(draw: Callable[[str], Any]) -> None:
    assert_same_draw(draw)


def test_gamma_and_dirichlet_numbers_have_the_gradients_of_the_cpu() -> None:
    grads: list[Any] = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(5)
        alpha = torch.linspace(0.1, 40, 300, dtype=torch.float64, device=device)
        alpha.requires_grad_()
        torch._standard_gamma(alpha).sum().backward()
        torch._sample_dirichlet(alpha.reshape(60, 5))[:, 0].sum().backward()
        grads.append(alpha.grad.cpu())
    assert torch.allclose(*grads, rtol=1e-9)


def test_dropout_gives_the_gradient_of_what_it_kept() -> None:
    x = torch.ones(1001, device="cuda", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    y.backward(torch.full((1001,), 3.0, device="cuda"))
    assert torch.equal(x.grad.cpu(), y.detach().cpu() * 3)


def test_wrong_chances_are_refused() -> None:
    x = torch.zeros(5, device="cuda")
    for wrong in (-0.5, 1.5, float("nan")):
        with pytest.raises(RuntimeError, match="Expected p_in >= 0 && p_in <= 1, got"):
            torch.bernoulli(torch.full((5,), wrong, device="cuda"))
        with pytest.raises(RuntimeError, match="Expected p_in >= 0 && p_in <= 1, got"):
            x.bernoulli_(wrong)
    with pytest.raises(RuntimeError, match="on the same device"):
        x.bernoulli_(torch.rand(5))
    with pytest.raises(RuntimeError, match="sum of probabilities <= 0"):
        torch.multinomial(x, 2)


def test_one_generator_serves_all_devices() -> None:
    torch.cuda.manual_seed(7)
    assert torch.initial_seed() == torch.cuda.initial_seed() == 7
    first = torch.rand(4, device="cuda").cpu()
    torch.manual_seed(7)
    assert torch.equal(torch.rand(4), first)
    state = torch.cuda.get_rng_state()
    assert torch.equal(state, torch.get_rng_state())
    second = torch.rand(4, device="cuda").cpu()
    assert not torch.equal(first, second)
    torch.cuda.set_rng_state(state, "cuda:0")
    assert torch.equal(torch.rand(4, device="cuda").cpu(), second)
    states = torch.cuda.get_rng_state_all()
    assert len(states) == torch.cuda.device_count()
    third = torch.rand(4)
    torch.cuda.set_rng_state_all(states)
    assert torch.equal(torch.rand(4, device="cuda").cpu(), third)
    with torch.random.fork_rng(devices=[0]):
        inside = torch.rand(4, device="cuda").cpu()
    assert torch.equal(torch.rand(4), inside)


def test_a_generator_of_a_gpu_draws_the_numbers_of_its_seed() -> None:
    on_gpu = torch.Generator(device="cuda").manual_seed(3)
    assert on_gpu.device == torch.device("cuda", torch.cuda.current_device())
    here = torch.Generator().manual_seed(3)
    assert here.device == torch.device("cpu")
    numbers = torch.rand(5, device="cuda", generator=on_gpu)
    assert torch.equal(numbers.cpu(), torch.rand(5, generator=here))
    assert torch.equal(on_gpu.get_state(), here.get_state())
    shared = on_gpu.graphsafe_get_state()
    torch.rand(5, generator=shared)
    assert shared.get_offset() == on_gpu.get_offset()
    other = torch.Generator(device="cuda").graphsafe_set_state(on_gpu)
    assert torch.equal(other.manual_seed(4).get_state(), shared.get_state())
    assert on_gpu.clone_state().device == on_gpu.device
    with pytest.raises(RuntimeError, match="not supported for torch.Generator"):
        torch.Generator(device="meta")
