"""The default generator: seeds and states."""

import pytest

import rushlight as torch


def test_a_seed_repeats_the_numbers() -> None:
    runs = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        runs.append((torch.rand(3).tolist(), torch.randperm(5).tolist()))
    assert runs[0] == runs[1] != runs[2]
    assert torch.initial_seed() == 4


def test_manual_seed_returns_the_default_generator() -> None:
    assert torch.manual_seed(5) is torch.default_generator
    assert torch.default_generator.initial_seed() == 5


def test_a_state_repeats_the_numbers_from_there() -> None:
    torch.manual_seed(0)
    torch.rand(7)
    state = torch.get_rng_state()
    first = torch.randn(5)
    torch.set_rng_state(state)
    assert torch.equal(torch.randn(5), first)
    assert state.dtype == torch.uint8


def test_seed_takes_another_one_each_time() -> None:
    assert torch.seed() != torch.seed()
    assert torch.initial_seed() == torch.default_generator.initial_seed()


def draw_and_fail() -> None:
    torch.rand(100)
    raise ZeroDivisionError


def test_fork_rng_leaves_the_state_as_it_was() -> None:
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    with torch.random.fork_rng():
        torch.rand(100)
    assert torch.equal(torch.rand(2), expected)
    torch.manual_seed(0)
    with pytest.raises(ZeroDivisionError), torch.random.fork_rng():
        draw_and_fail()
    assert torch.equal(torch.rand(2), expected)
    torch.manual_seed(0)
    with torch.random.fork_rng(enabled=False):
        torch.rand(2)
    assert not torch.equal(torch.rand(2), expected)
