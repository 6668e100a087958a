"""The text of tensors equals PyTorch's, on random tensors and options."""

import itertools

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["bool", "uint8", "int8", "int16", "int32", "int64"]
COMPLEX = ["complex64", "complex128"]
SHAPES = [(), (1,), (7,), (40,), (2, 3), (3, 1, 4), (0,), (2, 0), (2, 2, 3, 2), (1200,), (40, 50)]
SCALES = [1.0, 1e-6, 1e5, 1e9, 30.0]
OPTIONS = [
    {},
    {"precision": 2},
    {"linewidth": 40},
    {"threshold": 20},
    {"threshold": 5, "edgeitems": 1},
    {"threshold": 5, "edgeitems": 0},
    {"sci_mode": True},
    {"sci_mode": False},
    {"profile": "short"},
    {"profile": "full"},
]


@pytest.fixture(autouse=True)
def default_options():
    yield
    for library in (torch, pytorch):
        library.set_printoptions(profile="default")


def random_array(rng, shape, scale, kind):
    array = np.asarray(rng.normal(scale=scale, size=shape))
    if kind == "whole":
        array = np.round(array)
    if kind == "special":
        for value in (np.nan, np.inf, -np.inf, 0.0, -0.0):
            array = np.where(rng.random(shape) < 0.15, value, array)
    return np.asarray(array)


def check(array, dtype, **flags):
    ours = torch.tensor(array.tolist(), dtype=torch.float64 if array.dtype.kind == "f" else None)
    theirs = pytorch.tensor(
        array.tolist(), dtype=pytorch.float64 if array.dtype.kind == "f" else None
    )
    ours = ours.reshape(array.shape).to(getattr(torch, dtype))
    theirs = theirs.reshape(array.shape).to(getattr(pytorch, dtype))
    for name, value in flags.items():
        setattr(ours, name, value)
        setattr(theirs, name, value)
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(dtype, options) -> None:
    torch.set_printoptions(**options)
    pytorch.set_printoptions(**options)
    rng = np.random.default_rng(0)
    for shape, scale, kind in itertools.product(SHAPES, SCALES, ("any", "whole", "special")):
        check(random_array(rng, shape, scale, kind), dtype)
    check(rng.normal(size=(3,)), dtype, requires_grad=True)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype, options) -> None:
    torch.set_printoptions(**options)
    pytorch.set_printoptions(**options)
    rng = np.random.default_rng(0)
    for shape, high in itertools.product(SHAPES, (2, 100)):
        check(rng.integers(0, high, shape), dtype)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_numbers(dtype, options) -> None:
    torch.set_printoptions(**options)
    pytorch.set_printoptions(**options)
    rng = np.random.default_rng(0)
    for shape, scale, kind in itertools.product(SHAPES, SCALES, ("any", "whole", "special")):
        real, imag = (random_array(rng, shape, scale, kind) for _ in range(2))
        array = np.empty(shape, complex)
        array.real, array.imag = real, imag
        check(array, dtype)


EXPRESSIONS = [
    "T.empty(0)",
    "T.empty(2, 0)",
    "T.empty(0, dtype=T.int64)",
    "T.empty(2, 0, 3, dtype=T.bool)",
    "T.empty(0, requires_grad=True)",
    "T.empty(2, 0, dtype=T.complex64)",
    "T.tensor(1 + 2j)",
    "T.tensor(float('nan'))",
    "T.tensor([True, False])",
    "T.tensor([1, 2], dtype=T.uint16)",
    "T.tensor([complex('nan'), complex(0, float('inf'))])",
    "T.tensor([1.0, 2.0], requires_grad=True)",
    "T.tensor([1.0, 2.0], requires_grad=True) * 2",
    "T.tensor([1.0, 2.0], requires_grad=True, dtype=T.float64).sum()",
    "T.ones(2, 3, device='meta')",
    "T.ones((), device='meta')",
    "T.ones(0, device='meta', dtype=T.int64)",
    "T.ones(2, device='meta', requires_grad=True) * 2",
    "T.nn.Parameter(T.ones(2, dtype=T.float64))",
    "T.nn.Parameter(T.ones(2, device='meta'))",
    "T.nn.Parameter(T.ones(2, 2), requires_grad=False)",
    "T.ones(3).expand(2, 3)",
    "T.ones(1, 7, 1, 200)",
    "T.max(T.ones(2, 2), 0)",
    "T.ones(2, 3, requires_grad=True).reshape(6)",
    "T.ones(2, 2, 3, 3, dtype=T.bfloat16).to_sparse()",
    "T.zeros(0, 1, 3, dtype=T.complex128).to_sparse()",
    "T.ones(2, 3, dtype=T.float64).to_sparse_csr()",
    "T.ones(2, 3).shape",
    "T.strided",
    "T.float32",
    "T.channels_last",
    "T.device('cuda', 1)",
    "T.finfo(T.float32)",
    "T.FloatStorage([1, 2])",
    "T.UntypedStorage([1, 2])",
    "f'{T.tensor(1.5)} {T.tensor(1.5):.3f} {T.ones(2)} {T.tensor(2, dtype=T.int8):04d}'",
    "f'{T.tensor(1.5, requires_grad=True)}'",
]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated", "ignore:Sparse CSR")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_other_things(options) -> None:
    torch.set_printoptions(**options)
    pytorch.set_printoptions(**options)
    for expression in EXPRESSIONS:
        ours, theirs = (repr(eval(expression, {"T": library})) for library in (torch, pytorch))
        assert ours == theirs, expression


def test_default_dtype_decides_what_is_said() -> None:
    for default in ("float64", "float16", "float32"):
        for library in (torch, pytorch):
            library.set_default_dtype(getattr(library, default))
        for dtype in FLOATS + COMPLEX + INTEGERS:
            texts = [repr(T.ones(2, dtype=getattr(T, dtype))) for T in (torch, pytorch)]
            assert texts[0] == texts[1]
