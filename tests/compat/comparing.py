"""What comparing programs with PyTorch's modules needs: a program run with either library."""

import warnings

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.utils.prune")
pytest.importorskip("rushlight.nn.utils.prune")

LIBRARIES = (torch, pytorch)


def tensor(library, values, **options):
    return library.from_numpy(np.array(values, dtype=np.float32)).to(**options)


def fill(module, seed=0):
    """Gives the parameters and buffers of a module of either library the same numbers."""
    rng = np.random.default_rng(seed)
    for value in module.state_dict().values():
        if value.is_floating_point():
            library = torch if isinstance(value, torch.Tensor) else pytorch
            value.copy_(library.from_numpy(rng.normal(size=tuple(value.shape))))
    return module


def numbers(value):
    if isinstance(value, dict):
        return {key: numbers(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [numbers(part) for part in value]
    return value.detach().numpy() if hasattr(value, "detach") else value


def assert_close(ours, theirs, rtol=1e-4, atol=1e-5):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            assert_close(ours[key], theirs[key], rtol, atol)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            assert_close(our, their, rtol, atol)
    elif isinstance(theirs, np.ndarray):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)
    else:
        assert ours == theirs


def compare(program, **tolerance):
    """Runs a program with either library; it returns tensors and containers of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = (numbers(program(library)) for library in LIBRARIES)
    assert_close(ours, theirs, **tolerance)


def compare_errors(program, phrase=None):
    """Both libraries raise the same kind of error, with one phrase in it."""
    raised = []
    for library in LIBRARIES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(Exception) as info:  # noqa: PT011 - compared below
                program(library)
        raised.append(info.value)
    assert type(raised[0]) is type(raised[1]), raised
    if phrase is not None:
        assert all(phrase in str(error) for error in raised), raised


def backward_through(library, module, x):
    out = module(x)
    (out * out.detach().cos()).sum().backward()
    grads = {name: p.grad for name, p in module.named_parameters()}
    return [out, dict(module.state_dict()), grads]


def weight_input(library):
    return tensor(library, np.random.default_rng(5).normal(size=(4, 3)))


def linear(library, inputs=3, outputs=3):
    return fill(library.nn.Linear(inputs, outputs))
