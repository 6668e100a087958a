"""Fourier transforms of every length at which the way to compute them changes.

The oracle is NumPy in float64, and the error is relative in the Euclidean norm.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import rushlight as rl

# Single vectors, passes of each radix, primes with and without a kernel, splits, long transforms.
LENGTHS = [1, 2, 3, 7, 8, 11, 16, 30, 61, 67, 97, 122, 128, 210, 256, 500, 1001, 1024, 1009, 2032,
           3599, 4096, 8192, 10007, 32768, 99999, 131072]  # fmt: skip
LIMIT = {np.complex64: 4e-7, np.complex128: 1.2e-15}


def numbers(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    generator = np.random.default_rng(5)
    return (generator.normal(size=shape) + 1j * generator.normal(size=shape)).astype(dtype)


def assert_near(actual: rl.Tensor, expected: np.ndarray, limit: float) -> None:
    assert tuple(actual.shape) == expected.shape
    error = np.linalg.norm(actual.numpy() - expected) / np.linalg.norm(expected)
    assert error < limit


@pytest.mark.parametrize("dtype", LIMIT, ids=lambda d: d.__name__)
@pytest.mark.parametrize("n", LENGTHS)
def test_rows_of_any_length_are_exact_to_the_last_digits(n: int, dtype: type) -> None:
    for count in (1, 3, 20) if n < 5000 else (1, 2):
        x = numbers((count, n), dtype)
        wide, z, real = x.astype(complex), rl.from_numpy(x), rl.from_numpy(x.real.copy())
        half = np.fft.rfft(wide.real)
        assert_near(rl.fft.fft(z), np.fft.fft(wide), LIMIT[dtype])
        assert_near(rl.fft.ifft(z), np.fft.ifft(wide), LIMIT[dtype])
        assert_near(rl.fft.fft(real), np.fft.fft(wide.real), LIMIT[dtype])
        assert_near(rl.fft.ifft(real), np.fft.ifft(wide.real), LIMIT[dtype])
        assert_near(rl.fft.rfft(real), half, LIMIT[dtype])
        assert_near(rl.fft.irfft(rl.from_numpy(half.astype(dtype)), n=n), wide.real, LIMIT[dtype])


@pytest.mark.parametrize("dtype", LIMIT, ids=lambda d: d.__name__)
@pytest.mark.parametrize("inner", [2, 8, 16, 21])
@pytest.mark.parametrize("n", [1, 2, 5, 8, 61, 67, 96, 97, 720, 8192])
def test_columns_of_any_length_are_exact_to_the_last_digits(
    n: int, inner: int, dtype: type
) -> None:
    x = numbers((2, n, inner), dtype)
    wide, z, real = x.astype(complex), rl.from_numpy(x), rl.from_numpy(x.real.copy())
    half = np.fft.rfft(wide.real, axis=1)
    assert_near(rl.fft.fft(z, dim=1), np.fft.fft(wide, axis=1), LIMIT[dtype])
    assert_near(rl.fft.ifft(z, dim=1), np.fft.ifft(wide, axis=1), LIMIT[dtype])
    assert_near(rl.fft.fft(real, dim=1), np.fft.fft(wide.real, axis=1), LIMIT[dtype])
    assert_near(rl.fft.rfft(real, dim=1), half, LIMIT[dtype])
    back = rl.fft.irfft(rl.from_numpy(half.astype(dtype)), n=n, dim=1)
    assert_near(back, wide.real, LIMIT[dtype])


@pytest.mark.parametrize("shape", [(300, 256), (1 << 16,), (512, 40), (64, 1009)])
def test_digits_do_not_depend_on_the_number_of_threads(shape: tuple[int, ...]) -> None:
    z = rl.from_numpy(numbers(shape, np.complex64))
    before = rl.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            rl.set_num_threads(threads)
            results.append((rl.fft.fftn(z), rl.fft.rfftn(z.real), rl.fft.irfft(z)))
    finally:
        rl.set_num_threads(before)
    for other in results[1:]:
        assert all(rl.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_several_threads_share_plans() -> None:
    z = rl.from_numpy(numbers((2, 3000), np.complex128))
    expected = {n: np.fft.fft(z.numpy(), n) for n in range(2900, 3000)}
    wrong: list[int] = []

    def work(order: int) -> None:
        for n in list(expected)[::order]:
            result = rl.fft.fft(z, n).numpy()
            if not np.allclose(result, expected[n], rtol=1e-9, atol=1e-9):
                wrong.append(n)

    workers = [threading.Thread(target=work, args=(order,)) for order in (1, -1, 1, -1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_inputs_stay_unchanged_where_results_could_lie_on_them() -> None:
    for shape in [(4, 1024), (1 << 15,), (96, 40), (33, 67)]:
        x = numbers(shape, np.complex128)
        z = rl.from_numpy(x.copy())
        rl.fft.fftn(z)
        rl.fft.irfftn(z)
        np.testing.assert_array_equal(z.numpy(), x)


def test_nan_and_inf_stay_in_their_row() -> None:
    x = numbers((40, 256), np.complex64)
    x[3, 5] = np.nan
    x[7, 0] = np.inf
    finite = np.isfinite(rl.fft.fft(rl.from_numpy(x)).numpy()).all(axis=1)
    assert not finite[3] and not finite[7] and finite.sum() == 38


@pytest.mark.parametrize(
    "call",
    [
        lambda: rl.fft.fft(rl.ones(3), n=1 << 62),
        lambda: rl.fft.irfft(rl.ones(3), n=(1 << 63) - 1),
        lambda: rl.fft.fftn(rl.ones(3, 3), s=(1 << 40, 1 << 40)),
        lambda: rl.fft.fftfreq(1 << 62),
        lambda: rl.hann_window(1 << 62),
        lambda: rl.stft(rl.ones(8), (1 << 63) - 1, pad_mode="constant", return_complex=True),
        lambda: rl.istft(rl.ones(3, 4) + 0j, 4, length=(1 << 63) - 1),
    ],
)
def test_lengths_that_no_memory_holds_are_refused(call) -> None:
    with pytest.raises(RuntimeError):
        call()


@pytest.mark.parametrize("length", [100, 103])
def test_istft_undoes_stft(length: int) -> None:
    x = rl.from_numpy(numbers((2, length), np.complex128).real.copy())
    window = rl.hann_window(16, dtype=rl.float64)
    spectrum = rl.stft(x, 16, window=window, return_complex=True)
    back = rl.istft(spectrum, 16, window=window, length=length)
    whole = length // 4 * 4  # what frames reach
    np.testing.assert_allclose(back.numpy()[:, :whole], x.numpy()[:, :whole], atol=1e-12)
