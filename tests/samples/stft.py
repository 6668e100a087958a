"""Samples of the short-time Fourier transform and its inverse."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from samples import Sample, complex_normal, normal, samples, uniform

PAD_MODE = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def framed(n_fft: int, win_length: int | None, window: Any) -> tuple[np.ndarray, int, int]:
    """The window between zeros, and what is left before and after it."""
    length = n_fft if win_length is None else win_length
    left = (n_fft - length) // 2
    middle = np.ones(length) if window is None else window
    return np.pad(middle, (left, n_fft - length - left)), left, n_fft - length - left


def stft_ref(
    x: np.ndarray,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: np.ndarray | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> np.ndarray:
    """One frame after the other."""
    hop = hop_length or n_fft // 4
    weights, left, right = framed(n_fft, win_length, window)
    edges = [(0, 0)] * (x.ndim - 1)
    if center:
        x = np.pad(x, [*edges, (n_fft // 2,) * 2], mode=PAD_MODE[pad_mode])
    elif align_to_window:
        x = np.pad(x, [*edges, (left, right)])
    starts = range(0, x.shape[-1] - n_fft + 1, hop)
    frames = np.stack([x[..., s : s + n_fft] * weights for s in starts], -1)
    result = np.fft.fft(frames, axis=-2, norm="ortho" if normalized else None)
    if onesided or (onesided is None and not np.iscomplexobj(frames)):
        result = result[..., : n_fft // 2 + 1, :]
    return result if return_complex is not False else np.stack([result.real, result.imag], -1)


@samples("stft", ref=stft_ref)
def stft() -> Iterator[Any]:
    def sample(x: np.ndarray, *args: Any, **kwargs: Any) -> Sample:
        return Sample(x, *args, return_complex=kwargs.pop("return_complex", True), **kwargs)

    yield sample(normal(2, 20), 8, onesided=False)
    yield sample(normal(2, 20), 8)
    yield sample(normal(20), 8, window=uniform(8))
    yield sample(normal(21), 7, 3, 4, uniform(4))
    yield sample(normal(2, 20), 8, 2, 5, uniform(5), False, align_to_window=True)
    yield sample(normal(20), 8, center=False, normalized=True)
    yield sample(normal(20), 8, onesided=False)
    yield sample(normal(20), 8, pad_mode="constant")
    yield sample(normal(20), 8, pad_mode="replicate")
    yield sample(normal(20), 8, pad_mode="circular")
    yield sample(normal(20), 8, return_complex=False)
    yield sample(complex_normal(2, 20), 8)
    yield sample(normal(20), 8, window=complex_normal(8), return_complex=None)
    yield sample(normal(8), 8, center=False)


def istft_ref(
    spectrum: np.ndarray,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: np.ndarray | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> np.ndarray:
    """Frames added up one after the other."""
    hop = hop_length or n_fft // 4
    weights, _, _ = framed(n_fft, win_length, window)
    back = np.fft.ifft if return_complex else np.fft.irfft
    frames = back(spectrum, n_fft, axis=-2, norm="ortho" if normalized else None)
    count = frames.shape[-1]
    total = n_fft + hop * (count - 1)
    signal = np.zeros((*frames.shape[:-2], total), frames.dtype)
    envelope = np.zeros(total)
    for t in range(count):
        signal[..., t * hop : t * hop + n_fft] += frames[..., t] * weights
        envelope[t * hop : t * hop + n_fft] += weights**2
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    signal = (signal[..., start:end] / envelope[start:end]).copy()
    missing = end - start - signal.shape[-1]
    return np.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, missing)])


@samples("istft", ref=istft_ref)
def istft() -> Iterator[Any]:
    yield complex_normal(2, 5, 6), 8
    yield Sample(complex_normal(5, 6), 8, window=uniform(8, low=0.5))
    yield complex_normal(4, 6), 7, 2, 5, uniform(5, low=0.5)
    yield Sample(complex_normal(5, 6), 8, center=False, normalized=True)
    yield Sample(complex_normal(8, 6), 8, onesided=False)
    yield Sample(complex_normal(2, 8, 6), 8, return_complex=True)
    yield Sample(complex_normal(5, 6), 8, length=9)
    yield Sample(complex_normal(5, 6), 8, length=20)
