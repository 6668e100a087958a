"""Random ops take PyTorch's arguments, give its shapes and dtypes, and raise its errors."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")

NUMBERS = ["", "0", "1", "-1", "0.5", "2", "nan", "inf", "-inf", "1e-300", "1e300", "'a'", "None"]
PAIRS = [
    "", "0, 1", "0, 0", "0, -1", "nan, 1", "0, nan", "inf, 1", "0, inf", "-inf, 0", "2, 1", "1, 1",
    "-3e38, 3e38", "0, 1e39", "1e39, 1e40", "-1e39, 0", "0, 'a'", "1e300, 1",
]  # fmt: skip
BOUNDS = [
    "", "0", "3", "-3", "2, 2", "3, 2", "5, None", "2**40", "-2**40, 3", "2**63 - 1",
    "-2**63, 2**63 - 1", "0, 2**64", "2**63", "300", "256", "-1, 5", "nan", "2.5", "to=3",
]  # fmt: skip
IN_PLACE = {
    "cauchy_": PAIRS,
    "normal_": PAIRS,
    "log_normal_": PAIRS,
    "uniform_": PAIRS,
    "geometric_": NUMBERS,
    "exponential_": NUMBERS,
    "bernoulli_": [
        *NUMBERS, "T(0.5)", "T([0.5, 2])", "torch.full((5,), 2.)", "torch.full((5,), 1)",
        "torch.full((5,), .5, dtype=torch.float64)", "torch.full((2, 5), .5)", "T([nan] * 5)",
    ],
    "random_": BOUNDS,
}  # fmt: skip
TARGETS = {
    "float32": "torch.empty(5)",
    "float16": "torch.empty(5, dtype=torch.float16)",
    "bfloat16": "torch.empty(5, dtype=torch.bfloat16)",
    "float64": "torch.empty(5, dtype=torch.float64)",
    "int64": "torch.empty(5, dtype=torch.int64)",
    "uint8": "torch.empty(5, dtype=torch.uint8)",
    "bool": "torch.empty(5, dtype=torch.bool)",
    "complex64": "torch.empty(5, dtype=torch.complex64)",
    "leaf": "torch.zeros(5, requires_grad=True)",
    "expanded": "torch.zeros(1).expand(5)",
    "strided": "torch.zeros(3, 10)[:, ::2]",
    "nothing": "torch.zeros(0)",
}

CALLS = """
torch.poisson(T([1., 2]))
torch.poisson(T([1, 2]))
torch.poisson(T([nan]))
torch.poisson(T([0.]))
torch.poisson(T([1., 2], dtype=torch.float16))
torch.poisson(T([1., 2], dtype=torch.bfloat16))
torch.poisson(T([1., 2], dtype=torch.complex64))
torch.poisson(T([1., 2], requires_grad=True))
torch.poisson(T([1., 2]), torch.Generator())
torch.poisson(T([1., 2]), generator=torch.Generator())
torch.poisson(T([1., 2]), out=torch.empty(2))
torch.binomial(T([10., 2]), T([.5, .5]))
torch.binomial(T([10., 2]), T(.5))
torch.binomial(T(10.), T([.5, .2]))
torch.binomial(T([10, 2]), T([.5, .5]))
torch.binomial(T([10, 2]), T([1, 1]))
torch.binomial(T([10., 2]), T([.5, .5], dtype=torch.float64))
torch.binomial(T([2.7]), T([1.]))
torch.binomial(T([2.]), T([.5]), torch.Generator())
torch.binomial(T([2.], dtype=torch.float16), T([.5], dtype=torch.float16))
torch.binomial(T([2.], dtype=torch.bfloat16), T([.5], dtype=torch.bfloat16))
torch.binomial(torch.ones(2, 3), torch.ones(2, 2))
torch.binomial(torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True))
torch._standard_gamma(T([1, 2]))
torch._standard_gamma(T([1., 2], dtype=torch.float16))
torch._standard_gamma(T([1., 2], requires_grad=True))
torch._sample_dirichlet(T([1., 2, 3]))
torch._sample_dirichlet(T([1., 2, 3], requires_grad=True))
torch._sample_dirichlet(T([1., 0, 3]))
torch._sample_dirichlet(T([1e-4, 1e-4, 1e-4]))
torch._sample_dirichlet(T(1.))
torch._sample_dirichlet(torch.ones(2, 0))
torch._sample_dirichlet(T([1, 2]))
torch._sample_dirichlet(T([1., 2], dtype=torch.float16))
torch._standard_gamma_grad(T([1., 2]), T([1., 2]))
torch.multinomial(T([1., 2]), 2)
torch.multinomial(T([1., 2]), 3)
torch.multinomial(T([1., 2]), 3, True)
torch.multinomial(T([1., 2]), 0)
torch.multinomial(T([1., 2]), -1)
torch.multinomial(T([1., 2]), 0, True)
torch.multinomial(T([1, 2]), 1)
torch.multinomial(T(1.), 1)
torch.multinomial(torch.ones(2, 2, 2), 1)
torch.multinomial(torch.ones(0, 3), 1)
torch.multinomial(torch.ones(3, 0), 1)
torch.multinomial(torch.ones(0), 1)
torch.multinomial(torch.ones(3, 0), 1, True)
torch.multinomial(torch.ones(0, 0), 1, True)
torch.multinomial(torch.zeros(3), 1)
torch.multinomial(torch.zeros(3), 1, True)
torch.multinomial(T([0., 1]), 2)
torch.multinomial(T([nan, 1]), 1)
torch.multinomial(T([inf, 1]), 1)
torch.multinomial(T([nan, 1]), 1, True)
torch.multinomial(T([1e38, 3e38, 3e38]), 1)
torch.multinomial(T([1., 1], dtype=torch.float16), 1)
torch.multinomial(T([1., 1], dtype=torch.complex64), 1)
torch.multinomial(T([1., 1]), 1, out=torch.empty(1))
torch.multinomial(T([1., 1]), 1, out=torch.empty(5, dtype=torch.int64))
torch.multinomial(T([1., 1]), 1, generator=3)
torch.multinomial(T([1., 1]), 1.5)
torch.randint(5, (2,))
torch.randint(high=5, size=(2,))
torch.randint(low=2, high=5, size=(2,))
torch.randint(0, 5, (2,))
torch.randint(2, 5, size=(2,))
torch.randint(5, 2)
torch.randint(5, size=2)
torch.randint(5, 5, (2,))
torch.randint(6, 5, (2,))
torch.randint(0, (2,))
torch.randint(-3, (2,))
torch.randint(0, 5, (2,), dtype=torch.float16)
torch.randint(0, 5000, (2,), dtype=torch.float16)
torch.randint(0, 70000, (2,), dtype=torch.float16)
torch.randint(0, 300, (2,), dtype=torch.uint8)
torch.randint(0, 256, (2,), dtype=torch.uint8)
torch.randint(-1, 25, (2,), dtype=torch.uint8)
torch.randint(0, 2, (2,), dtype=torch.bool)
torch.randint(0, 3, (2,), dtype=torch.bool)
torch.randint(0, 3, (2,), dtype=torch.complex64)
torch.randint(0, 3, (2,), dtype=torch.uint64)
torch.randint(0, 3, (2,), dtype=torch.uint16)
torch.randint(0, 2**62, (2,), dtype=torch.float32)
torch.randint(0, 2**62, (2,), dtype=torch.int32)
torch.randint(-2**63, 2**63-1, (2,))
torch.randint(0, 2**63, (2,))
torch.randint(0, 2**64, (2,))
torch.randint(0, 5.5, (2,))
torch.randint(T(3), (2,))
torch.randint(0, 5, (2,), out=torch.empty(2))
torch.randint(0, 5, (2,), requires_grad=True)
torch.randint(0, 5, (2,), dtype=torch.float32, requires_grad=True)
torch.randint(0, 5, (-2,))
torch.randint(0, 5, (2,), generator=torch.Generator(), pin_memory=False)
torch.randint(0, 5, (2,), generator=None)
torch.randint(0, 5, (2,), layout=torch.strided)
torch.randint_like(torch.ones(2), 5)
torch.randint_like(torch.ones(2), low=3, high=5)
torch.randint_like(torch.ones(2), T(5))
torch.randint_like(torch.ones(2, dtype=torch.int8), 500)
torch.randperm(5)
torch.randperm(T(5))
torch.randperm(5, dtype=torch.float16)
torch.randperm(5000, dtype=torch.float16).shape
torch.randperm(2048, dtype=torch.float16).shape
torch.randperm(2049, dtype=torch.float16).shape
torch.randperm(2050, dtype=torch.float16).shape
torch.randperm(256, dtype=torch.uint8).shape
torch.randperm(257, dtype=torch.uint8).shape
torch.randperm(2, dtype=torch.bool)
torch.randperm(3, dtype=torch.bool)
torch.randperm(3, dtype=torch.complex64)
torch.randperm(3, dtype=torch.uint16)
torch.randperm(-1)
torch.randperm(2.5)
torch.randperm(3, out=torch.empty(7, dtype=torch.int32))
torch.randperm(3, requires_grad=True)
torch.randperm(3, dtype=torch.float32, requires_grad=True)
torch.randperm(2**62)
torch.normal(T([1., 2]), T([1., 2]))
torch.normal(T([1., 2]), T([1., -2]))
torch.normal(T([1., 2]), T([1., nan]))
torch.normal(T([1, 2]), T([1., 2]))
torch.normal(T([1., 2]), T([1, 2]))
torch.normal(T([1., 2]), 1)
torch.normal(T([1., 2]), -1)
torch.normal(T([1., 2]))
torch.normal(1., T([1., 2]))
torch.normal(mean=1., std=T([1., 2]))
torch.normal(mean=T([1., 2]), std=2.)
torch.normal(1., 2.)
torch.normal(1., 2., (2,))
torch.normal(1, 2, (2,))
torch.normal(1., 2., size=(2,))
torch.normal(1., -2., size=(2,))
torch.normal(1., 2., size=(2,), dtype=torch.int64)
torch.normal(1., 2., size=(2,), dtype=torch.complex64)
torch.normal(0., 1., (2,), out=torch.empty(5))
torch.normal(T([1., 2]), T([1., 2]), out=torch.empty(5))
torch.normal(T([1., 2], dtype=torch.complex64), T([1., 2]))
torch.normal(T([1., 2]), T([1., 2], dtype=torch.complex64))
torch.normal(torch.ones(2, 3), torch.ones(3))
torch.normal(torch.ones(2, 3), torch.ones(2))
torch.normal(torch.ones(2, 3), torch.ones(6))
torch.normal(torch.ones(2, 3, requires_grad=True), 1.)
torch.normal(T(1.), T(1.))
torch.rand(2)
torch.rand(2, 3).shape
torch.rand((2, 3)).shape
torch.rand([2, 3]).shape
torch.rand(size=(2, 3)).shape
torch.rand(())
torch.rand()
torch.rand(2, dtype=torch.int64)
torch.rand(2, dtype=torch.complex64)
torch.rand(2, dtype=torch.float16, requires_grad=True)
torch.rand(2, out=torch.empty(5))
torch.rand(2, out=torch.empty(2, dtype=torch.int64))
torch.rand(2, out=torch.empty(2, dtype=torch.float64))
torch.rand(2, generator=torch.Generator())
torch.rand(2, generator=3)
torch.rand(-1)
torch.rand(2.5)
torch.rand(2, 2.5)
torch.rand(2**62)
torch.rand(2**62, 2**62)
torch.rand(2, device='meta')
torch.randn(2, dtype=torch.int64)
torch.randn(2, dtype=torch.bool)
torch.randn(2, dtype=torch.complex128)
torch.rand_like(T([1, 2]))
torch.rand_like(T([1, 2]), dtype=torch.float32)
torch.rand_like(T([1., 2]), layout=torch.strided, device='cpu', requires_grad=True)
torch.rand_like(T([1., 2]), memory_format=torch.preserve_format)
torch.rand_like(T([1., 2]), generator=torch.Generator())
torch.rand_like(3)
torch.randn_like(T([1, 2]))
torch.bernoulli(T([.5, 1]))
torch.bernoulli(T([0, 1]))
torch.bernoulli(T([.5, 1.5]))
torch.bernoulli(T([nan]))
torch.bernoulli(T([.5, 1], dtype=torch.float16))
torch.bernoulli(T([.5, 1], dtype=torch.complex64))
torch.bernoulli(T([.5, 1]), .3)
torch.bernoulli(T([5, 1]), .3)
torch.bernoulli(T([5, 1]), p=.3)
torch.bernoulli(T([5, 1]), 3)
T([.5, 1]).bernoulli(.3)
T([.5, 1]).bernoulli()
torch.bernoulli(T([.5, 1]), out=torch.empty(5))
torch.bernoulli(T([.5, 1]), out=torch.empty(2, dtype=torch.int64))
torch.bernoulli(T([.5, 1]), generator=torch.Generator())
torch.native_dropout(torch.ones(4), .5, True)
torch.native_dropout(torch.ones(4), .5, False)
torch.native_dropout(torch.ones(4), .5, None)
torch.native_dropout(torch.ones(4), 1., True)
torch.native_dropout(torch.ones(4), 0., True)
torch.native_dropout(torch.ones(4), -1., True)
torch.native_dropout(torch.ones(4), 2., True)
torch.native_dropout(torch.ones(4), nan, True)
torch.native_dropout(torch.ones(4, dtype=torch.int64), .5, True)
torch.dropout(torch.ones(4), .5, True)
torch.dropout(torch.ones(4), 2., True)
torch.dropout(torch.ones(4, dtype=torch.int64), .5, True)
torch.dropout(torch.ones(4), nan, True)
torch.dropout(torch.full((4,), nan), 1., True)
torch.dropout_(torch.ones(4), .5, True)
torch.alpha_dropout(torch.ones(4), .5, True)
torch.alpha_dropout_(torch.ones(4), .5, True)
torch.feature_dropout(torch.ones(4, 2), .5, True)
torch.feature_dropout(torch.ones(4), .5, True)
torch.feature_dropout_(torch.ones(4, 2), .5, True)
torch.feature_alpha_dropout(torch.ones(4, 2), .5, True)
torch.feature_alpha_dropout_(torch.ones(4, 2), .5, True)
torch.Generator().manual_seed(2**64)
torch.Generator().manual_seed(-2**63 - 1)
torch.Generator().manual_seed(1.5)
torch.Generator().manual_seed('a')
torch.Generator().manual_seed(True)
torch.Generator().manual_seed(None)
torch.Generator().manual_seed(-5).initial_seed()
torch.Generator().initial_seed()
torch.manual_seed(1.5).initial_seed()
torch.manual_seed('3').initial_seed()
torch.manual_seed('x')
torch.manual_seed(2**64)
torch.Generator('meta')
torch.Generator('nowhere')
torch.Generator().set_state(torch.zeros(3))
torch.Generator().set_state(torch.zeros(3, dtype=torch.uint8))
torch.Generator().set_state(3)
torch.Generator().graphsafe_get_state()
torch.Generator().graphsafe_set_state(torch.Generator())
torch.Generator().get_offset()
torch.Generator().set_offset(4).initial_seed()
torch.Generator().clone_state().initial_seed()
torch.random.thread_safe_generator()
torch.random.fork_rng(device_type='nowhere').__enter__()
torch.set_rng_state(torch.zeros(3))
torch.set_rng_state(3)
torch.get_rng_state().dtype.itemsize
torch.poisson(T([-1., 2]))
torch.poisson(T(3.))
torch.poisson(torch.zeros(0, 3))
torch.poisson(3.)
torch.binomial(torch.zeros(0, 1), torch.zeros(3))
torch.binomial(3., T(.5))
torch.binomial(T([3.]), .5)
torch._standard_gamma(torch.ones(0, 2))
torch._standard_gamma(2.)
torch.multinomial(torch.ones(0, 3), 2, True)
torch.multinomial(torch.ones(3, 0), 0)
torch.randperm(0)
torch.randperm(1)
torch.randint(0, 10, ())
torch.randint(0, 10, (0, 3))
torch.randint(2**31, (3,), dtype=torch.int32)
torch.randint(2**31 + 1, (3,), dtype=torch.int32)
torch.rand(0)
torch.rand((), dtype=torch.float64)
torch.rand(3, dtype=torch.uint8)
torch.rand('a')
torch.rand(None)
torch.rand(3, dtype=3)
torch.rand(3, device=3.5)
torch.normal(T([1., 2]), 'a')
torch.normal(0., 1., (-2,))
torch.normal(0., nan, (2,))
torch.normal(nan, 1., (2,))
torch.bernoulli(torch.full((3,), .5), nan)
torch.bernoulli(torch.full((3,), .5), 'a')
torch.bernoulli(torch.zeros(0))
torch.bernoulli(3.)
torch.rand_like(torch.zeros(2, 3).t()).stride()
torch.randn_like(torch.zeros(2), dtype=torch.int32)
torch.randint_like(torch.zeros(2), 5, 2)
torch.randint_like(torch.zeros(2), 2.5)
""".strip().splitlines()

# What we do otherwise, on purpose.
ACCEPTED = {
    # More dtypes.
    "torch.binomial(T([2.], dtype=torch.float16), T([.5], dtype=torch.float16))",
    "torch.binomial(T([2.], dtype=torch.bfloat16), T([.5], dtype=torch.bfloat16))",
    "torch._standard_gamma(T([1., 2], dtype=torch.float16))",
    "torch._sample_dirichlet(T([1., 2], dtype=torch.float16))",
    "torch.randperm(2, dtype=torch.bool)",
    "torch.randperm(3, dtype=torch.uint16)",
    "torch.randperm(3, dtype=torch.bool)",
    # More forms: out=, plain numbers as sizes and tensors.
    "torch.binomial(T([3.]), .5)",
    "torch.binomial(3., T(.5))",
    "torch.poisson(T([1., 2]), out=torch.empty(2))",
    "torch.randint(5, 2)",
    "torch.normal(1., 2.)",
    # Refused, as PyTorch's documentation says, instead of drawing what has no weight.
    "torch.multinomial(T([0., 1]), 2)",
    # One class of errors for all forms of dropout.
    "torch.dropout(torch.ones(4), 2., True)",
    "torch.dropout(torch.ones(4), nan, True)",
    # The result is cast to out=, where its dtype allows that.
    "torch.rand(2, out=torch.empty(2, dtype=torch.int64))",
    "torch.multinomial(T([1., 1]), 1, out=torch.empty(1))",
    # The shapes are wrong even when there is nothing to draw.
    "torch.zeros(0).bernoulli_(T([0.5, 2]))",
    "torch.zeros(0).bernoulli_(torch.full((5,), 2.))",
    "torch.zeros(0).bernoulli_(torch.full((5,), 1))",
    "torch.zeros(0).bernoulli_(torch.full((2, 5), .5))",
    "torch.zeros(0).bernoulli_(torch.full((5,), .5, dtype=torch.float64))",
    "torch.zeros(0).bernoulli_(T([nan] * 5))",
    # Counters exist for every generator.
    "torch.Generator().get_offset()",
    "torch.Generator().set_offset(4).initial_seed()",
}


def outcome(library: Any, expression: str) -> Any:
    """Shape and dtype of what an expression gives, or its exception."""
    scope = {"torch": library, "T": library.tensor, "nan": float("nan"), "inf": float("inf")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = eval(expression, scope)
        except Exception as error:
            return error
    parts = result if isinstance(result, tuple) else (result,)
    return [
        (tuple(part.shape), str(part.dtype), part.requires_grad)
        if isinstance(part, library.Tensor)
        else part
        for part in parts
    ]


def check(expression: str) -> None:
    mine, expected = outcome(torch, expression), outcome(pytorch, expression)
    if expression in ACCEPTED:
        assert repr(mine) != repr(expected)
    elif isinstance(expected, Exception):
        # NotImplementedError is a RuntimeError, and says more.
        assert isinstance(mine, type(expected)), (expression, mine, expected)
        assert str(mine)
    else:
        assert mine == expected, (expression, mine, expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", IN_PLACE)
def test_draws_in_place(name: str, target: str) -> None:
    for arguments in IN_PLACE[name]:
        check(f"{TARGETS[target]}.{name}({arguments})")


@pytest.mark.parametrize("expression", CALLS)
def test_functions(expression: str) -> None:
    check(expression)
