"""Random ops inside vmap: refused, drawn for each sample, or drawn once for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as rl

F = rl.nn.functional
COUNT = 5

# Draws that read no sample.
FRESH: dict[str, Callable[[], Any]] = {
    "rand": lambda: rl.rand(40),
    "randn": lambda: rl.randn(4, 10),
    "randint": lambda: rl.randint(0, 1000, (40,)),
    "randperm": lambda: rl.randperm(40),
    "normal": lambda: rl.normal(0.0, 1.0, (40,)),
    "bernoulli": lambda: rl.bernoulli(rl.full((60,), 0.5)),
    "poisson": lambda: rl.poisson(rl.full((40,), 50.0)),
    "multinomial": lambda: rl.multinomial(rl.ones(60), 20),
    "rand_like": lambda: rl.rand_like(rl.ones(40)),
    "dropout": lambda: F.dropout(rl.ones(60)),
    "alpha_dropout": lambda: F.alpha_dropout(rl.ones(60), training=True),
}

# Draws for one sample of shape (60,), of chances.
OF_SAMPLES: dict[str, Callable[[Any], Any]] = {
    "rand_like": rl.rand_like,
    "randn_like": rl.randn_like,
    "bernoulli": rl.bernoulli,
    "bernoulli_p": lambda x: x.clone().bernoulli_(0.5),
    "poisson": lambda x: rl.poisson(x * 100),
    "binomial": lambda x: rl.binomial(x * 0 + 100, x),
    "gamma": lambda x: rl._standard_gamma(x),
    "dirichlet": lambda x: rl._sample_dirichlet(x),
    "normal": lambda x: rl.normal(x, 1.0),
    "normal_": lambda x: x.clone().normal_(),
    "uniform_": lambda x: x.clone().uniform_(),
    "exponential_": lambda x: x.clone().exponential_(),
    "multinomial": lambda x: rl.multinomial(x, 20),
    "multinomial_rows": lambda x: rl.multinomial(x.reshape(2, 30), 20),
    "dropout": F.dropout,
    "feature_dropout": lambda x: F.dropout1d(x.reshape(30, 2), training=True),
}


def chances() -> Any:
    """The same row for every sample, so that only draws can differ."""
    return rl.linspace(0.2, 0.8, 60).repeat(COUNT, 1)


def vmapped(f: Callable[..., Any], randomness: str) -> Any:
    return rl.func.vmap(f, randomness=randomness)(chances())


def all_equal(rows: Any) -> bool:
    return all(rl.equal(rows[0], row) for row in rows)


def all_differ(rows: Any) -> bool:
    return not any(
        rl.equal(rows[i], rows[j]) for i in range(len(rows)) for j in range(i + 1, len(rows))
    )


@pytest.mark.parametrize("name", FRESH)
@pytest.mark.parametrize("randomness", ["different", "same"])
def test_draws_without_samples(name: str, randomness: str) -> None:
    rows = vmapped(lambda x: FRESH[name](), randomness)
    assert rows.shape[0] == COUNT
    assert all_equal(rows) if randomness == "same" else all_differ(rows)


@pytest.mark.parametrize("name", OF_SAMPLES)
@pytest.mark.parametrize("randomness", ["different", "same"])
def test_draws_of_samples(name: str, randomness: str) -> None:
    rows = vmapped(OF_SAMPLES[name], randomness)
    assert rows.shape[0] == COUNT
    assert all_equal(rows) if randomness == "same" else all_differ(rows)


@pytest.mark.parametrize("f", [lambda x: FRESH["rand"](), F.dropout, lambda x: x.normal_()])
def test_error_mode_refuses_draws(f: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match="randomness error mode"):
        rl.func.vmap(f)(chances())


def test_the_draw_of_one_is_the_draw_outside() -> None:
    rl.manual_seed(3)
    outside = rl.rand(40)
    rl.manual_seed(3)
    assert rl.equal(vmapped(lambda x: rl.rand(40), "same")[0], outside)


def test_a_generator_is_used_and_advanced() -> None:
    def rows(randomness: str) -> Any:
        generator = rl.Generator()
        generator.manual_seed(7)
        first = vmapped(lambda x: rl.rand(9, generator=generator), randomness)
        return first, vmapped(lambda x: rl.bernoulli(x, generator=generator), randomness)

    for randomness in ("same", "different"):
        rl.manual_seed(0)
        before = rl.get_rng_state()
        once, again = rows(randomness), rows(randomness)
        assert rl.equal(rl.get_rng_state(), before)
        assert all(rl.equal(a, b) for a, b in zip(once, again, strict=True))


def test_in_place_draws_of_what_all_samples_share_are_refused() -> None:
    shared = rl.zeros(40)
    with pytest.raises(RuntimeError, match="inplace"):
        vmapped(lambda x: shared.normal_() + x[0], "different")
    rows = vmapped(lambda x: shared.normal_() + 0 * x[:40], "same")
    assert all_equal(rows)
    assert rl.equal(rows[0], shared)


@pytest.mark.parametrize(
    ("outer", "inner"), [(a, b) for a in ("same", "different") for b in ("same", "different")]
)
@pytest.mark.parametrize("of_sample", [False, True])
def test_each_level_has_its_own_mode(outer: str, inner: str, of_sample: bool) -> None:
    def f(x: Any) -> Any:
        return rl.bernoulli(x) if of_sample else rl.rand(30)

    x = rl.full((3, 4, 60), 0.5)
    rows = rl.func.vmap(rl.func.vmap(f, randomness=inner), randomness=outer)(x)
    assert rows.shape[:2] == (3, 4)
    along_outer = [rows[i, 0] for i in range(3)]
    along_inner = [rows[0, i] for i in range(4)]
    assert all_equal(along_outer) if outer == "same" else all_differ(along_outer)
    assert all_equal(along_inner) if inner == "same" else all_differ(along_inner)


def test_an_inner_level_may_refuse_what_an_outer_allows() -> None:
    with pytest.raises(RuntimeError, match="randomness error mode"):
        rl.func.vmap(rl.func.vmap(F.dropout), randomness="different")(rl.ones(2, 3, 4))


def test_gradients_go_through_the_numbers_that_were_drawn() -> None:
    x = chances()
    rl.manual_seed(1)
    rows = rl.func.vmap(rl.func.grad(lambda x: F.dropout(x).sum()), randomness="different")(x)
    assert set(rows.unique().tolist()) == {0.0, 2.0}
    assert all_differ(rows)


def test_chunks_draw_different_numbers() -> None:
    f = rl.func.vmap(lambda x: rl.rand(9), randomness="different", chunk_size=2)
    assert all_differ(f(chances()))


def test_what_is_drawn_once_is_the_same_in_all_chunks() -> None:
    draw = rl.func.vmap(lambda x: rl.rand(3) + 0 * x, randomness="same", chunk_size=2)
    assert all_equal(draw(rl.zeros(5)))
