"""Distributions on CUDA: the same samples and densities as on the CPU."""

from __future__ import annotations

import pytest
from distributions.cases import CASES

import rushlight as rl

pytestmark = pytest.mark.skipif(not rl.cuda.is_available(), reason="there is neither GPU nor shim")

# Matrices are factorized on the CPU only, so far.
FACTORIZED = ("LowRank", "MixtureSameFamily-vectors", "MultivariateNormal", "Wishart")
# What is made of numbers alone is on the CPU.
NUMBERS = ("Bernoulli-number", "Beta-number", "Normal-numbers")


@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith((*FACTORIZED, *NUMBERS))])
def test_cuda_agrees_with_the_cpu(name: str) -> None:
    samples, log_probs = [], []
    for device in ("cpu", "cuda"):
        rl.manual_seed(0)
        distribution = CASES[name](
            rl.distributions, lambda x, on=device: rl.tensor(x, dtype=rl.float64, device=on)
        )
        sample = distribution.sample((2,))
        log_prob = distribution.log_prob(sample)
        assert sample.device.type == log_prob.device.type == device
        samples.append(sample.cpu())
        log_probs.append(log_prob.cpu())
        if distribution.has_enumerate_support and not name.startswith("Binomial-logits"):
            assert distribution.enumerate_support().device.type == device
    rl.testing.assert_close(*samples, rtol=1e-6, atol=1e-9)
    rl.testing.assert_close(*log_probs, rtol=1e-6, atol=1e-6)
