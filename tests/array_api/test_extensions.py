"""The extensions linalg and fft against array-api-strict."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from array_api.reference import FLOATING, NUMERIC, REAL, check, function_of, numbers

import rushlight as rl
import rushlight.array_api as xp

needs_linalg = pytest.mark.skipif(not hasattr(rl.linalg, "svd"), reason="linalg is not there yet")


def stack_of(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Matrices that are far from singular where they are square."""
    x = numbers(dtype, shape, seed)
    return np.asarray(x + 9 * np.eye(*shape[-2:]), dtype)


def hermitian(dtype: str, *shape: int) -> np.ndarray:
    x = stack_of(dtype, *shape)
    return np.asarray(x @ x.conj().swapaxes(-1, -2), dtype)


@needs_linalg
@pytest.mark.parametrize("dtype", FLOATING)
def test_linalg(dtype: str) -> None:
    x, wide = stack_of(dtype, 2, 3, 3), stack_of(dtype, 2, 3, 4)
    for upper in (False, True):
        check("linalg.cholesky", hermitian(dtype, 2, 3, 3), upper=upper)
    check("linalg.det", x)
    check("linalg.eigvalsh", hermitian(dtype, 2, 3, 3))
    check("linalg.inv", x)
    check("linalg.slogdet", x)
    for n in (-2, 0, 3):
        check("linalg.matrix_power", x, n)
    check("linalg.matrix_rank", wide)
    check("linalg.matrix_rank", wide, rtol=0.5)
    check("linalg.pinv", wide)
    check("linalg.svdvals", wide)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        check("linalg.matrix_norm", wide, ord=order)
        check("linalg.matrix_norm", wide, ord=order, keepdims=True)
    # A 1-d right side is a vector; a 2-d one a matrix, whatever the sizes.
    square = stack_of(dtype, 3, 3)
    check("linalg.solve", square, numbers(dtype, (3,)))
    check("linalg.solve", square, numbers(dtype, (3, 2)))
    check("linalg.solve", x, numbers(dtype, (3,)))
    check("linalg.solve", x, numbers(dtype, (3, 2)))
    check("linalg.solve", stack_of(dtype, 3, 3, 3), numbers(dtype, (3, 3)))
    check("linalg.solve", square, numbers(dtype, (2, 3, 2)))


@needs_linalg
@pytest.mark.parametrize("dtype", FLOATING)
def test_decompositions_multiply_to_what_they_decompose(dtype: str) -> None:
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-10
    for shape in [(2, 3, 4), (4, 3), (3, 3)]:
        x = xp.asarray(stack_of(dtype, *shape))
        for mode in ("reduced", "complete"):
            q, r = xp.linalg.qr(x, mode=mode)
            np.testing.assert_allclose((q @ r).numpy(), x.numpy(), atol=tolerance)
        u, s, vh = xp.linalg.svd(x, full_matrices=False)
        np.testing.assert_allclose(((u * s[..., None, :]) @ vh).numpy(), x.numpy(), atol=tolerance)
        assert xp.linalg.svd(x)[2].shape[-2:] == (shape[-1], shape[-1])
    x = xp.asarray(hermitian(dtype, 2, 3, 3))
    values, vectors = xp.linalg.eigh(x)
    product = (vectors * values[..., None, :]) @ xp.conj(vectors).mT
    np.testing.assert_allclose(product.numpy(), x.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_linalg_without_decompositions(dtype: str) -> None:
    x = numbers(dtype, (2, 3, 4))
    for offset in (0, 1, -2):
        check("linalg.diagonal", x, offset=offset)
        check("linalg.trace", x, offset=offset)
    check("linalg.outer", numbers(dtype, (3,)), numbers(dtype, (2,), 1))
    if hasattr(rl.linalg, "cross"):
        check("linalg.cross", numbers(dtype, (2, 3)), numbers(dtype, (3,), 1))
        check("linalg.cross", numbers(dtype, (3, 2)), numbers(dtype, (3, 1), 1), axis=-2)
        with pytest.raises(ValueError, match="cross: axis -1 has 2 elements"):
            xp.linalg.cross(xp.ones((2,)), xp.ones((3,)))
    if dtype in FLOATING:
        for order in (2, 1, 0, 3.5, np.inf, -np.inf, -1):
            for axis, keepdims in itertools.product([None, 0, (0, 2), ()], [False, True]):
                check("linalg.vector_norm", x, axis=axis, keepdims=keepdims, ord=order)


@pytest.mark.skipif(not hasattr(rl, "fft"), reason="fft is not there yet")
@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_fft(dtype: str, norm: str) -> None:
    is_real = dtype in REAL
    names = ["rfft", "ihfft"] if is_real else ["fft", "ifft", "irfft", "hfft"]
    for name in names:
        for n, axis in [(None, -1), (5, 0), (2, 1), (9, -2)]:
            check(f"fft.{name}", numbers(dtype, (4, 6, 3)), n=n, axis=axis, norm=norm)
    for name in ["rfftn"] if is_real else ["fftn", "ifftn", "irfftn"]:
        for s, axes in [(None, None), (None, (0, 2)), ((3, 5), (0, 1))]:
            check(f"fft.{name}", numbers(dtype, (4, 6, 3)), s=s, axes=axes, norm=norm)
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 0, (0, 2)):
            check(f"fft.{name}", numbers(dtype, (4, 5, 3)), axes=axes)


@pytest.mark.skipif(not hasattr(rl, "fft"), reason="fft is not there yet")
def test_frequencies() -> None:
    for name in ("fftfreq", "rfftfreq"):
        for n in (1, 4, 5):
            check(f"fft.{name}", n, d=0.5, dtype="dtype:float64")
            assert function_of(f"fft.{name}", xp)(n).dtype is xp.float32
