"""Window functions with keyword-only options, as SciPy has them.

They are computed in float64 and rounded once. A symmetric window has equal ends; one that is not
is a period of a periodic signal, which suits Fourier transforms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import rushlight as rl
from rushlight import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _check(name: str, M: int, dtype: rl.dtype | None, layout: Any) -> rl.dtype:
    """The dtype to use, after the checks that all windows share."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not rl.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    dtype = dtype or rl.get_default_dtype()
    if dtype not in (rl.float32, rl.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def _window(
    value: Callable[[Tensor, int], Tensor],
    M: int,
    sym: bool,
    dtype: rl.dtype,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    """value(k, n) for k = 0 to M - 1, where n is the distance between equal ends."""
    if M == 0:
        return rl.empty(0, dtype=dtype, device=device, requires_grad=requires_grad)
    with rl.no_grad():
        points = rl.arange(M, dtype=rl.float64, device=device)
        window = value(points, M - 1 if sym or M == 1 else M).to(dtype)
    return window.requires_grad_(requires_grad)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: rl.dtype | None = None,
    layout: Any = rl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle that begins and ends with zero: 1 - |2 k / n - 1|.

    Args:
        M: the length; n is M - 1, or M if not sym.
        sym: whether both ends are equal, rather than the window a period.
        dtype: float32 or float64; the default dtype if None.
        layout: torch.strided.
        device: where it is made; the default device if None.
        requires_grad: whether it collects a gradient.

    Raises:
        ValueError: for a negative length or another dtype or layout.

    Example:
        >>> torch.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    dtype = _check("bartlett", M, dtype, layout)
    return rl.bartlett_window(M, not sym, dtype=dtype, device=device, requires_grad=requires_grad)


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: rl.dtype | None = None,
    layout: Any = rl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n). See bartlett for the arguments.

    Example:
        >>> torch.signal.windows.blackman(5)
        tensor([0.0000, 0.3400, 1.0000, 0.3400, 0.0000])
    """
    dtype = _check("blackman", M, dtype, layout)
    return rl.blackman_window(M, not sym, dtype=dtype, device=device, requires_grad=requires_grad)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: rl.dtype | None = None,
    layout: Any = rl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Half a wave: sin(pi (k + 0.5) / (n + 1)). See bartlett for the arguments.

    Example:
        >>> torch.signal.windows.cosine(4)
        tensor([0.3827, 0.9239, 0.9239, 0.3827])
    """
    dtype = _check("cosine", M, dtype, layout)
    return _window(
        lambda k, n: ((k + 0.5) * (math.pi / (n + 1))).sin(), M, sym, dtype, device, requires_grad
    )


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: rl.dtype | None = None,
    layout: Any = rl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-|k - center| / tau).

    Args:
        M: the length; n is M - 1, or M if not sym.
        center: where the window is 1; n / 2 if None, as it must be if sym.
        tau: the distance over which it falls to 1 / e.
        sym, dtype, layout, device, requires_grad: as in bartlett.

    Raises:
        ValueError: for a negative length, a tau that is not positive, a center of a symmetric
            window, or another dtype or layout.

    Example:
        >>> torch.signal.windows.exponential(3)
        tensor([0.3679, 1.0000, 0.3679])
    """
    dtype = _check("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def value(k: Tensor, n: int) -> Tensor:
        return (-(k - (n / 2 if center is None else center)).abs() / tau).exp()

    return _window(value, M, sym, dtype, device, requires_grad)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: rl.dtype | None = None,
    layout: Any = rl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-((k - n / 2) / std)^2 / 2). See bartlett for the other arguments.

    Raises:
        ValueError: for a negative length, a std that is not positive, or another dtype or layout.

    Example:
        >>> torch.signal.windows.gaussian(3)
        tensor([0.6065, 1.0000, 0.6065])
    """
    dtype = _check("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _window(
        lambda k, n: (((k - n / 2) / std) ** 2 * -0.5).exp(), M, sym, dtype, device, requires_grad
    )


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: rl.dtype | None = None,
    layout: Any = rl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A sum of cosines: a[0] - a[1] cos(2 pi k / n) + a[2] cos(4 pi k / n) - ...

    Args:
        M: the length; n is M - 1, or M if not sym.
        a: the weights.
        sym, dtype, layout, device, requires_grad: as in bartlett.

    Raises:
        ValueError: for a negative length, no weights, or another dtype or layout.
        TypeError: if a is no list or tuple.

    Example:
        >>> torch.signal.windows.general_cosine(5, a=[0.5, 0.5])
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    dtype = _check("general_cosine", M, dtype, layout)
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")

    def value(k: Tensor, n: int) -> Tensor:
        if n == 0:
            return rl.ones_like(k)
        total = rl.zeros_like(k)
        for i, weight in enumerate(a):
            total = total + (k * (2 * math.pi * i / n)).cos() * (-weight if i % 2 else weight)
        return total

    return _window(value, M, sym, dtype, device, requires_grad)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: rl.dtype | None = None,
    layout: Any = rl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi k / n). See bartlett for the other arguments.

    Example:
        >>> torch.signal.windows.general_hamming(3, alpha=0.5)
        tensor([0., 1., 0.])
    """
    dtype = _check("general_hamming", M, dtype, layout)
    return rl.hamming_window(
        M, not sym, alpha, 1 - alpha, dtype=dtype, device=device, requires_grad=requires_grad
    )


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: rl.dtype | None = None,
    layout: Any = rl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.54 - 0.46 cos(2 pi k / n). See bartlett for the arguments.

    Example:
        >>> torch.signal.windows.hamming(3)
        tensor([0.0800, 1.0000, 0.0800])
    """
    dtype = _check("hamming", M, dtype, layout)
    return rl.hamming_window(M, not sym, dtype=dtype, device=device, requires_grad=requires_grad)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: rl.dtype | None = None,
    layout: Any = rl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.5 - 0.5 cos(2 pi k / n). See bartlett for the arguments.

    Example:
        >>> torch.signal.windows.hann(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    dtype = _check("hann", M, dtype, layout)
    return rl.hann_window(M, not sym, dtype=dtype, device=device, requires_grad=requires_grad)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: rl.dtype | None = None,
    layout: Any = rl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """I0(beta sqrt(1 - (2 k / n - 1)^2)) / I0(beta), with the Bessel function I0.

    See bartlett for the other arguments.

    Raises:
        ValueError: for a negative length or beta, or another dtype or layout.

    Example:
        >>> torch.signal.windows.kaiser(3, beta=0.0)
        tensor([1., 1., 1.])
    """
    dtype = _check("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return rl.kaiser_window(
        M, not sym, beta, dtype=dtype, device=device, requires_grad=requires_grad
    )


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: rl.dtype | None = None,
    layout: Any = rl.strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A general_cosine of four terms. See bartlett for the arguments.

    Source: A. H. Nuttall, Some windows with very good sidelobe behavior (1981).

    Example:
        >>> torch.signal.windows.nuttall(3)
        tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    return general_cosine(
        M,
        a=[0.3635819, 0.4891775, 0.1365995, 0.0106411],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )
