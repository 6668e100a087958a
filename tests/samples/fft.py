"""Samples of the discrete Fourier transforms."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from samples import Sample, complex_normal, normal, samples


def of_complex() -> Iterator[Any]:
    yield complex_normal(8)
    yield complex_normal(3, 20)
    yield complex_normal(2, 7, 3), None, 1
    yield Sample(complex_normal(3, 5), n=8)
    yield Sample(complex_normal(5, 3), 2, 0, norm="ortho")
    yield Sample(complex_normal(2, 67), norm="forward")  # a prime without a kernel of its own
    yield normal(4, 6)
    yield Sample(normal(5), norm="ortho")
    yield complex_normal(1)
    yield complex_normal(0, 4)


def of_real() -> Iterator[Any]:
    yield normal(8)
    yield normal(3, 21)
    yield normal(2, 6, 3), None, 1
    yield normal(2, 5, 3), None, -2
    yield Sample(normal(3, 5), n=8)
    yield Sample(normal(5, 3), 3, 0, norm="ortho")
    yield Sample(normal(2, 10), norm="forward")
    yield normal(1)
    yield normal(2, 2)
    yield normal(0, 4)


def of_halves() -> Iterator[Any]:
    yield complex_normal(5)
    yield complex_normal(3, 11)
    yield complex_normal(2, 4, 3), None, 1
    yield Sample(complex_normal(3, 5), n=9)
    yield Sample(complex_normal(3, 5), n=6)
    yield Sample(complex_normal(4, 3), 3, 0, norm="ortho")
    yield Sample(complex_normal(2, 6), norm="forward")
    yield complex_normal(2)
    yield Sample(complex_normal(3), n=1)
    yield normal(4)
    yield complex_normal(0, 4)


for _name, _make in {
    "fft": of_complex,
    "ifft": of_complex,
    "rfft": of_real,
    "ihfft": of_real,
    "irfft": of_halves,
    "hfft": of_halves,
}.items():
    samples(f"fft.{_name}", ref=getattr(np.fft, _name))(_make)


def planes(draw: Callable[..., np.ndarray]) -> Callable[[], Iterator[Any]]:
    def make() -> Iterator[Any]:
        yield draw(4, 6)
        yield draw(2, 5, 4)
        yield Sample(draw(3, 4), s=(5, 6))
        yield Sample(draw(3, 4, 2), dim=(0, 1), norm="ortho")
        yield Sample(draw(6, 4), (4, 4), norm="forward")

    return make


def volumes(draw: Callable[..., np.ndarray]) -> Callable[[], Iterator[Any]]:
    def make() -> Iterator[Any]:
        yield draw(6)
        yield draw(3, 4, 2)
        yield Sample(draw(2, 3, 4), s=(2, 6))
        yield Sample(draw(3, 4, 2), dim=(2, 0), norm="ortho")
        yield Sample(draw(2, 4, 3), s=(-1, 3), dim=(0, 1), norm="forward")

    return make


def over(function: Callable[..., np.ndarray], default: tuple[int, ...] | None) -> Any:
    """A NumPy transform with PyTorch's arguments."""

    def ref(x: np.ndarray, s: Any = None, dim: Any = default, norm: Any = None) -> np.ndarray:
        if s is not None and dim is None:
            dim = tuple(range(-len(s), 0))
        if s is not None:
            s = [x.shape[d] if n == -1 else n for n, d in zip(s, dim, strict=True)]
        return function(x, s, dim, norm)

    return ref


def turned(norm: str | None) -> str:
    """The norm of the transform in the other direction."""
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(norm, "ortho")


def hfftn(x: np.ndarray, s: Any, axes: Any, norm: Any) -> np.ndarray:
    return np.fft.irfftn(x.conj(), s, axes, turned(norm))


def ihfftn(x: np.ndarray, s: Any, axes: Any, norm: Any) -> np.ndarray:
    return np.fft.rfftn(x, s, axes, turned(norm)).conj()


for _name, _function, _draw in [
    ("fft", np.fft.fftn, complex_normal),
    ("ifft", np.fft.ifftn, complex_normal),
    ("rfft", np.fft.rfftn, normal),
    ("irfft", np.fft.irfftn, complex_normal),
    ("hfft", hfftn, complex_normal),
    ("ihfft", ihfftn, normal),
]:
    samples(f"fft.{_name}2", ref=over(_function, (-2, -1)))(planes(_draw))
    samples(f"fft.{_name}n", ref=over(_function, None))(volumes(_draw))


@samples("fft.fftfreq", ref=np.fft.fftfreq, grad=False, tolerance=1e-7)
@samples("fft.rfftfreq", ref=np.fft.rfftfreq, grad=False, tolerance=1e-7)
def frequencies() -> Iterator[Any]:
    yield 5
    yield 8, 0.5
    yield 1


def orders() -> Iterator[Any]:
    yield normal(5)
    yield normal(3, 4)
    yield normal(3, 4), 1
    yield Sample(normal(2, 3, 4), dim=(0, -1))
    yield complex_normal(4)


samples("fft.fftshift", ref=lambda x, dim=None: np.fft.fftshift(x, dim))(orders)
samples("fft.ifftshift", ref=lambda x, dim=None: np.fft.ifftshift(x, dim))(orders)
