"""The fft extension of the array API: torch.fft with the standard's signatures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import rushlight as rl
from rushlight import Tensor

Norm = Literal["backward", "ortho", "forward"]

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def _along_one(name: str, doc: str) -> Callable[..., Tensor]:
    def transform(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
    ) -> Tensor:
        return getattr(rl.fft, name)(x, n, axis, norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"Returns {doc}, of n elements along an axis."
    return transform


def _along_several(name: str, doc: str) -> Callable[..., Tensor]:
    def transform(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> Tensor:
        return getattr(rl.fft, name)(x, s, axes, norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"Returns {doc}, of sizes s over axes; over all of them by default."
    return transform


fft = _along_one("fft", "the Fourier transform")
ifft = _along_one("ifft", "the inverse of the Fourier transform")
rfft = _along_one("rfft", "the Fourier transform of real numbers")
irfft = _along_one("irfft", "the real inverse of a Hermitian transform")
hfft = _along_one("hfft", "the real transform of Hermitian numbers")
ihfft = _along_one("ihfft", "the Hermitian inverse of a real transform")
fftn = _along_several("fftn", "the Fourier transform")
ifftn = _along_several("ifftn", "the inverse of the Fourier transform")
rfftn = _along_several("rfftn", "the Fourier transform of real numbers")
irfftn = _along_several("irfftn", "the real inverse of a Hermitian transform")


def fftfreq(
    n: int, /, *, d: float = 1.0, dtype: rl.dtype | None = None, device: Any | None = None
) -> Tensor:
    """Returns the frequencies of the elements of a transform of n samples that are d apart."""
    return rl.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: rl.dtype | None = None, device: Any | None = None
) -> Tensor:
    """Returns the frequencies of the elements of a transform of n real samples that are d apart."""
    return rl.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Returns a transform with frequency zero in the middle."""
    return rl.fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Returns what fftshift was given."""
    return rl.fft.ifftshift(x, axes)
