"""Fourier transforms and windows equal PyTorch's: values, gradients, dtypes and refusals."""

import warnings

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
COMPLEX = RNG.normal(size=(3, 4, 6)) + 1j * RNG.normal(size=(3, 4, 6))
REAL = RNG.normal(size=(3, 4, 6))

KINDS = (IndexError, TypeError, ValueError, RuntimeError)
ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
INPUTS = {
    "fft": COMPLEX,
    "ifft": COMPLEX,
    "rfft": REAL,
    "irfft": COMPLEX,
    "hfft": COMPLEX,
    "ihfft": REAL,
}


def outcome(library, f):
    """The result with its dtype, or the kind of refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = f(library)
        except Exception as error:
            return next(
                c for c in (IndexError, TypeError, ValueError, RuntimeError) if isinstance(error, c)
            )
    result = result.detach()
    return str(result.dtype), (result.resolve_conj() if library is pytorch else result).numpy()


def check(f, tolerance=1e-9) -> None:
    mine, expected = outcome(torch, f), outcome(pytorch, f)
    if isinstance(expected, type) or isinstance(mine, type):
        # Of complex numbers where real ones are meant, and the other way round, since PyTorch 2.14.
        assert mine is expected or (mine, expected) == (RuntimeError, TypeError)
        return
    assert mine[0] == expected[0]
    assert mine[1].shape == expected[1].shape
    np.testing.assert_allclose(mine[1], expected[1], rtol=tolerance, atol=tolerance)


def call(name, x, *args, **kwargs):
    return lambda library: getattr(library.fft, name)(library.tensor(x), *args, **kwargs)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 5, 8, 1])
@pytest.mark.parametrize("dim", [-1, 0, 1])
@pytest.mark.parametrize("name", ONE)
def test_transforms_of_one_dim(name, dim, n, norm) -> None:
    check(call(name, INPUTS[name], n, dim, norm))
    if name in ("fft", "ifft", "irfft", "hfft"):
        check(call(name, REAL, n, dim, norm))


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize(
    "options",
    [{}, {"s": (5, 4)}, {"s": (-1, 3)}, {"s": (3, -1)}, {"dim": (0, 1)}, {"dim": (2, 0)},
     {"s": (2, 6), "dim": (1, 0)}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("name", [f"{name}{suffix}" for name in ONE for suffix in "2n"])
def test_transforms_of_several_dims(name, options, norm) -> None:
    check(call(name, INPUTS[name[:-1]], norm=norm, **options))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "bfloat16",
                                   "float32", "float64", "complex64", "complex128"])  # fmt: skip
@pytest.mark.parametrize("name", ONE)
def test_dtypes(name, dtype) -> None:
    def f(library):
        return getattr(library.fft, name)(library.ones(2, 4).to(getattr(library, dtype)))

    check(f, 1e-6)


REFUSED = {
    "no points": ("fft", (REAL,), {"n": 0}),
    "fewer points": ("rfft", (REAL,), {"n": -1}),
    "no such dim": ("fft", (REAL,), {"dim": 3}),
    "a 0-d tensor": ("fft", (np.array(1.0),), {}),
    "a norm": ("fft", (REAL,), {"norm": "half"}),
    "an empty dim": ("fft", (np.zeros((2, 0)),), {}),
    "too many sizes": ("fftn", (REAL,), {"s": (1, 2, 3, 4)}),
    "unlike lengths": ("fftn", (REAL,), {"s": (2, 3), "dim": (1,)}),
    "a dim twice": ("fftn", (REAL,), {"dim": (0, -3)}),
    "a size of zero": ("fftn", (REAL,), {"s": (0, 3)}),
    "no dims of rfftn": ("rfftn", (REAL,), {"dim": ()}),
    "rfftn of a number": ("rfftn", (np.array(2.0),), {}),
    "irfftn of a number": ("irfftn", (np.array(2.0),), {}),
    "fft2 of a row": ("fft2", (np.zeros(3),), {}),
    "irfft of one number": ("irfft", (np.zeros(1, complex),), {}),
    "rfft of complex numbers": ("rfft", (COMPLEX,), {}),
    "n of a float": ("fft", (REAL,), {"n": 2.5}),
    "dim of a tuple": ("fft", (REAL,), {"dim": (0,)}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case) -> None:
    name, args, kwargs = REFUSED[case]
    assert isinstance(outcome(pytorch, call(name, *args, **kwargs)), type)
    check(call(name, *args, **kwargs))


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [("fftn", (np.array(2.0),), {}), ("fftn", (REAL,), {"dim": ()}),
     ("fftn", (REAL,), {"s": 3}), ("fftn", (REAL,), {"dim": 1}),
     ("fftn", (COMPLEX,), {"s": (), "dim": ()})],
    ids=str,
)  # fmt: skip
def test_edges_that_work(name, args, kwargs) -> None:
    check(call(name, *args, **kwargs))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("fft", "complex64"), ("fft", "complex128"), ("fft", "float32"), ("rfft", "complex64"),
     ("rfft", "float64"), ("irfft", "float32"), ("irfft", "float64")],
)  # fmt: skip
def test_out(name, dtype) -> None:
    def f(library):
        out = library.empty(0, dtype=getattr(library, dtype))
        x = library.tensor(REAL[0]).to(library.float32)
        assert getattr(library.fft, name)(x, out=out) is out
        return out

    check(f, 1e-5)


@pytest.mark.parametrize("args", [(5,), (6,), (1,), (0,), (-1,), (5, 0.5), (5, 0)])
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name, args) -> None:
    with np.errstate(all="ignore"):
        check(lambda library: getattr(library.fft, name)(*args), 1e-7)
        check(lambda library: getattr(library.fft, name)(*args, dtype=library.float64), 1e-12)
    check(lambda library: getattr(library.fft, name)(*args, dtype=library.int64))


@pytest.mark.parametrize("dim", [None, 0, -1, (0, 2), (), 3])
@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(name, dim) -> None:
    check(call(name, REAL, dim))
    check(call(name, np.array(1.0), dim))


# Frames

SIGNAL = RNG.normal(size=(2, 100))
WINDOW = RNG.uniform(0.5, 1, size=16)


def framed(name, x, *args, window=None, **kwargs):
    def f(library):
        weights = None if window is None else library.tensor(window)
        return getattr(library.tensor(x), name)(*args, window=weights, **kwargs)

    return f


STFT = [
    ((16,), {}),
    ((16,), {"return_complex": True}),
    ((16,), {"return_complex": False, "window": WINDOW}),
    ((16, 3), {"return_complex": True, "window": WINDOW}),
    ((16, 0), {"return_complex": True}),
    ((16, None, 17), {"return_complex": True}),
    ((16, None, 8), {"return_complex": True, "window": WINDOW}),
    ((20, None, 16), {"return_complex": True, "window": WINDOW}),
    ((0,), {"return_complex": True}),
    ((300,), {"return_complex": True}),
    ((150,), {"return_complex": True, "center": False}),
    ((100,), {"return_complex": True, "center": False}),
    ((16,), {"onesided": True, "return_complex": True, "window": WINDOW + 0j}),
    ((16,), {"window": WINDOW + 0j}),
    ((16,), {"onesided": False, "return_complex": True}),
    ((16,), {"normalized": True, "return_complex": True}),
    ((16,), {"pad_mode": "constant", "return_complex": True}),
    ((16,), {"pad_mode": "replicate", "return_complex": True}),
    ((16,), {"pad_mode": "circular", "return_complex": True}),
    ((16,), {"pad_mode": "other", "return_complex": True}),
    ((15, 4), {"return_complex": True}),
    ((20, None, 13), {"center": False, "align_to_window": True, "return_complex": True}),
    ((20, None, 13), {"align_to_window": True, "return_complex": True}),
]


@pytest.mark.parametrize(("args", "kwargs"), STFT, ids=str)
@pytest.mark.parametrize(
    "x", [SIGNAL, SIGNAL[0], SIGNAL + 0.5j, SIGNAL[None]], ids=["2", "1", "complex", "3"]
)
def test_stft(x, args, kwargs) -> None:
    check(framed("stft", x, *args, **kwargs))


def test_strides_of_stft() -> None:
    def strides(library):
        return library.tensor(SIGNAL).stft(16, return_complex=True).stride()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert strides(torch) == strides(pytorch)


SPECTRUM = RNG.normal(size=(2, 9, 12)) + 1j * RNG.normal(size=(2, 9, 12))
WHOLE = RNG.normal(size=(2, 16, 12)) + 1j * RNG.normal(size=(2, 16, 12))
ISTFT = [
    (SPECTRUM, (16,), {}),
    (SPECTRUM, (16,), {"window": WINDOW}),
    (SPECTRUM[0], (16, 5), {"window": WINDOW}),
    (SPECTRUM, (16,), {"window": WINDOW, "length": 30}),
    (SPECTRUM, (16,), {"window": WINDOW, "length": 70}),
    (SPECTRUM, (16,), {"window": WINDOW, "length": 0}),
    (SPECTRUM, (16,), {"window": WINDOW, "center": False}),
    (SPECTRUM, (16,), {"window": WINDOW * 0}),
    (SPECTRUM, (16, 17), {"window": WINDOW}),
    (SPECTRUM, (16, 0), {"window": WINDOW}),
    (SPECTRUM, (17, None, 16), {"window": WINDOW}),
    (SPECTRUM, (18,), {}),
    (SPECTRUM, (16,), {"onesided": False}),
    (SPECTRUM, (16,), {"return_complex": True}),
    (SPECTRUM, (16,), {"normalized": True, "window": WINDOW}),
    (SPECTRUM[:0], (16,), {}),
    (SPECTRUM.real, (16,), {}),
    (WHOLE, (16,), {"onesided": False, "window": WINDOW}),
    (WHOLE, (16,), {"onesided": False, "window": WINDOW, "return_complex": True}),
    (WHOLE, (16,), {"window": WINDOW + 0j, "return_complex": True}),
    (WHOLE, (16,), {"window": WINDOW + 0j}),
]


@pytest.mark.parametrize("case", range(len(ISTFT)))
def test_istft(case) -> None:
    x, args, kwargs = ISTFT[case]
    check(framed("istft", x, *args, **kwargs))


def test_gradients_of_frames() -> None:
    def gradients(library):
        x = library.tensor(SIGNAL[:, :30], requires_grad=True)
        window = library.tensor(WINDOW[:8], requires_grad=True)
        spectrum = x.stft(8, 3, window=window, return_complex=True)
        back = (spectrum * spectrum).istft(8, 3, window=window)
        return library.autograd.grad((back**2).sum(), [x, window])

    for mine, expected in zip(gradients(torch), gradients(pytorch), strict=True):
        np.testing.assert_allclose(mine.numpy(), expected.numpy(), rtol=1e-9)


# Windows

OLD = ["hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"]


@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, -1])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("name", OLD)
def test_old_windows(name, periodic, length) -> None:
    check(lambda library: getattr(library, name)(length, periodic, dtype=library.float64), 1e-7)
    check(lambda library: getattr(library, name)(length, periodic=periodic), 1e-6)


@pytest.mark.parametrize("name", OLD)
def test_dtypes_of_old_windows(name) -> None:
    check(lambda library: getattr(library, name)(5, dtype=library.float16), 1e-3)
    check(lambda library: getattr(library, name)(5, dtype=library.int32))
    assert getattr(torch, name)(5, requires_grad=True).requires_grad


def test_parameters_of_old_windows() -> None:
    check(lambda library: library.hamming_window(6, True, 0.3), 1e-6)
    check(lambda library: library.hamming_window(6, False, 0.3, 0.5), 1e-6)
    check(lambda library: library.kaiser_window(6, True, 3.0), 1e-6)
    check(lambda library: library.kaiser_window(6, False, beta=20.0), 1e-5)


WINDOWS = [
    ("bartlett", {}), ("blackman", {}), ("cosine", {}), ("exponential", {}),
    ("exponential", {"tau": 2.0}), ("exponential", {"tau": 0.0}), ("exponential", {"center": 1.0}),
    ("gaussian", {}), ("gaussian", {"std": 2.0}), ("gaussian", {"std": -1.0}),
    ("general_cosine", {"a": [0.5, 0.3, 0.2]}), ("general_cosine", {"a": []}),
    ("general_cosine", {"a": 1.0}), ("general_hamming", {}), ("general_hamming", {"alpha": 0.3}),
    ("hamming", {}), ("hann", {}), ("kaiser", {}), ("kaiser", {"beta": 2.0}),
    ("kaiser", {"beta": -1.0}), ("nuttall", {}),
]  # fmt: skip


@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, -1])
@pytest.mark.parametrize("sym", [False, True])
@pytest.mark.parametrize(("name", "options"), WINDOWS, ids=str)
def test_windows(name, options, sym, length) -> None:
    def f(library, **more):
        return getattr(library.signal.windows, name)(length, sym=sym, **options, **more)

    if length in (0, 1) and options.get("a") in ([], 1.0):
        pytest.skip("PyTorch looks at the weights only where it needs them")
    check(f, 1e-5)
    check(lambda library: f(library, dtype=library.float64), 1e-9)
    check(lambda library: f(library, dtype=library.float16))
