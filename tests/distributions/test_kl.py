"""KL divergences against the mean of log p(x) - log q(x) over samples of p, and the dispatch."""

import pytest
from distributions.cases import KL_CASES
from distributions.doubles import t

import rushlight as torch

D = torch.distributions


def pairs():
    for p_name, make_p in KL_CASES.items():
        for q_name, make_q in KL_CASES.items():
            try:
                D.kl.kl_divergence(make_p(D, t), make_q(D, t))
            except (NotImplementedError, ValueError, RuntimeError):
                continue
            yield p_name, q_name


@pytest.mark.parametrize(("p_name", "q_name"), list(pairs()))
def test_divergence_is_the_mean_log_ratio_of_samples(p_name, q_name):
    torch.manual_seed(0)
    p, q = KL_CASES[p_name](D, t), KL_CASES[q_name](D, t)
    q._validate_args = False
    for part in (q, getattr(q, "base_dist", q)):
        part._validate_args = False
    kl = D.kl_divergence(p, q)
    assert kl.shape == torch.broadcast_shapes(p.batch_shape, q.batch_shape)
    known = torch.isfinite(kl)
    if not known.any():
        return
    sample = p.expand(kl.shape).sample((5000,))
    ratio = p.log_prob(sample) - q.log_prob(sample)
    far = (ratio.mean(0) - kl).abs() / (ratio.std(0) / 5000**0.5 + 1e-9)
    assert (far[known] < 6).all(), (kl, ratio.mean(0))


@pytest.mark.parametrize("name", [n for n in KL_CASES if n != "StudentT"])
def test_divergence_of_a_distribution_from_itself_is_zero(name):
    p = KL_CASES[name](D, t)
    kl = D.kl_divergence(p, KL_CASES[name](D, t))
    torch.testing.assert_close(kl, torch.zeros_like(kl), atol=1e-9, rtol=0)


# The Bregman divergence of the log normalizer says what the closed forms say.
@pytest.mark.parametrize("name", ["Beta", "Dirichlet", "Exponential", "Gamma", "Normal", "Wishart"])
def test_divergence_of_exponential_families(name):
    p, q = KL_CASES[name](D, t), KL_CASES[f"{name}-2"](D, t)
    general = D.kl._KL_REGISTRY[D.ExponentialFamily, D.ExponentialFamily]
    torch.testing.assert_close(general(p, q), D.kl_divergence(p, q))


def test_the_nearest_registered_pair_is_taken():
    class Base(D.Normal):
        pass

    class Derived(Base):
        pass

    one, other = Base(0.0, 1.0), Derived(0.0, 1.0)
    assert D.kl_divergence(other, one).item() == 0
    try:
        D.register_kl(Base, Base)(lambda p, q: torch.tensor(2.0))
        assert D.kl_divergence(other, one).item() == 2
        D.register_kl(Derived, D.Normal)(lambda p, q: torch.tensor(3.0))
        assert D.kl_divergence(one, one).item() == 2
        with pytest.warns(RuntimeWarning, match="Ambiguous kl_divergence"):
            assert D.kl_divergence(other, other).item() == 3
    finally:
        for pair in ((Base, Base), (Derived, D.Normal)):
            D.kl._KL_REGISTRY.pop(pair, None)
        D.kl._KL_MEMOIZE.clear()


def test_unknown_pairs_and_classes_are_refused():
    with pytest.raises(NotImplementedError, match="Cauchy and q type Normal"):
        D.kl_divergence(D.Cauchy(0.0, 1.0), D.Normal(0.0, 1.0))
    with pytest.raises(TypeError, match="type_p to be a class"):
        D.register_kl("Normal", D.Normal)


def test_a_base_that_is_no_distribution_may_have_a_divergence():
    class Mixin:
        pass

    class Mine(Mixin, D.Normal):
        pass

    try:
        D.register_kl(Mine, Mixin)(lambda p, q: torch.tensor(5.0))
        assert D.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0)).item() == 5
    finally:
        D.kl._KL_REGISTRY.pop((Mine, Mixin), None)
        D.kl._KL_MEMOIZE.clear()


def test_divergences_have_gradients():
    loc = torch.zeros(3, requires_grad=True)
    D.kl_divergence(D.Normal(loc, 1.0), D.Normal(2.0, 1.0)).sum().backward()
    assert loc.grad.tolist() == [-2.0] * 3
