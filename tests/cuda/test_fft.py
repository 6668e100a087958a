"""Fourier transforms on CUDA: lines that fit a block, split ones, and lengths with large primes."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl

pytestmark = pytest.mark.skipif(not rl.cuda.is_available(), reason="there is neither GPU nor shim")

SHAPES = [(300, 8), (3, 2048), (2, 4096), (2, 61 * 59), (70, 61), (2, 1009), (1, 3000, 3)]


@pytest.mark.parametrize("dtype", [rl.complex64, rl.complex128], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cuda_agrees_with_the_cpu(shape: tuple[int, ...], dtype: rl.dtype) -> None:
    generator = np.random.default_rng(3)
    x = generator.normal(size=shape) + 1j * generator.normal(size=shape)
    z = rl.from_numpy(x).to(dtype)
    limit = 5e-7 if dtype is rl.complex64 else 1e-14
    for function, input in [
        (rl.fft.fft, z),
        (rl.fft.ifft, z),
        (rl.fft.rfft, z.real),
        (rl.fft.irfft, z),
    ]:
        expected = function(input, dim=1).numpy()
        actual = function(input.cuda(), dim=1)
        assert actual.device.type == "cuda"
        error = np.linalg.norm(actual.cpu().numpy() - expected) / np.linalg.norm(expected)
        assert error < limit
