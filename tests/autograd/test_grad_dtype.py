"""The dtypes of gradients that are chosen: Tensor.grad_dtype and ctx.set_output_grad_dtype."""

from __future__ import annotations

import pytest

import rushlight as torch


def leaf(dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.ones(2, dtype=dtype, requires_grad=True)


def test_it_is_that_of_the_tensor_unless_chosen() -> None:
    assert leaf().grad_dtype is torch.bfloat16
    assert torch.ones(2).grad_dtype is torch.float32


def test_gradients_are_collected_in_the_dtype_that_was_chosen() -> None:
    x = leaf()
    x.grad_dtype = torch.float32
    for _ in range(300):
        x.sum().backward()
    assert x.grad.dtype is torch.float32
    assert x.grad.tolist() == [300.0, 300.0]  # bfloat16 ends at 256
    (g,) = torch.autograd.grad(x.sum(), x)
    assert g.dtype is torch.float32


def test_none_takes_whatever_arrives_first() -> None:
    x = leaf(torch.float32)
    x.grad_dtype = None
    assert x.grad_dtype is None
    x.grad = torch.ones(2, dtype=torch.float64)
    x.sum().backward()
    assert x.grad.dtype is torch.float64 and x.grad.tolist() == [2.0, 2.0]

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: object, g: torch.Tensor) -> torch.Tensor:
            return g.double()

    y = leaf(torch.float32)
    y.grad_dtype = None
    Double.apply(y).sum().backward()
    assert y.grad.dtype is torch.float64


def test_assigned_gradients_must_have_it() -> None:
    x = leaf()
    with pytest.raises(RuntimeError, match="the tensor takes bfloat16"):
        x.grad = torch.ones(2)
    x.grad_dtype = torch.float32
    x.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="already a gradient of float32"):
        x.grad_dtype = torch.bfloat16
    x.grad = None
    x.grad_dtype = torch.bfloat16
    assert x.grad_dtype is torch.bfloat16


def test_it_outlives_new_data() -> None:
    x = leaf()
    x.grad_dtype = torch.float32
    x.data = torch.zeros(3, dtype=torch.bfloat16)
    assert x.grad_dtype is torch.float32
    x.sum().backward()
    assert x.grad.shape == (3,) and x.grad.dtype is torch.float32
    y = leaf()
    y.data = torch.zeros(2)
    assert y.grad_dtype is torch.float32


def test_only_leaves_have_it() -> None:
    y = leaf() * 2
    with pytest.raises(RuntimeError, match="accessed on leaf"):
        _ = y.grad_dtype
    with pytest.raises(RuntimeError, match="set on leaf"):
        y.grad_dtype = torch.float32
    with pytest.raises(TypeError, match="must be a dtype or None, not int"):
        leaf().grad_dtype = 3


def rounding(*dtypes: torch.dtype | None, in_setup: bool = False) -> type[torch.autograd.Function]:
    """A Function with one result in half precision, or four, that keeps what backward gets."""

    class Rounding(torch.autograd.Function):
        got: tuple[torch.Tensor | None, ...] = ()

        @staticmethod
        def backward(ctx: object, *grads: torch.Tensor | None) -> torch.Tensor | None:
            Rounding.got = grads
            return None if grads[0] is None else grads[0].float()

    def compute(x: torch.Tensor) -> object:
        return x.half() if len(dtypes) == 1 else (x.half(), x.half(), "word", x > 0)

    def setup_context(ctx: object, inputs: object, output: object) -> None:
        ctx.set_output_grad_dtype(*dtypes)

    def forward(ctx: object, x: torch.Tensor) -> object:
        ctx.set_output_grad_dtype(*dtypes)
        return compute(x)

    Rounding.forward = staticmethod(compute if in_setup else forward)
    if in_setup:
        Rounding.setup_context = staticmethod(setup_context)
    return Rounding


FINE = 1 + 2**-12  # not in half precision


@pytest.mark.parametrize("in_setup", [False, True])
def test_backward_gets_gradients_in_the_dtype_that_it_declared(in_setup: bool) -> None:
    for declared, given, got in (
        (torch.float32, torch.float32, torch.float32),
        (torch.float32, torch.float64, torch.float32),
        (torch.float32, torch.float16, torch.float32),
        (None, torch.float32, torch.float32),
        (None, torch.float16, torch.float16),
        (torch.float16, torch.float32, torch.float16),
    ):
        function = rounding(declared, in_setup=in_setup)
        x = torch.ones(1, requires_grad=True)
        y = function.apply(x)
        (grad,) = torch.autograd.grad(y, x, torch.tensor([FINE], dtype=given))
        assert function.got[0].dtype is got
        assert grad.item() == (1 if torch.float16 in (given, got) else FINE)
        y = function.apply(x)
        y.retain_grad()
        y.float().sum().backward()
        assert y.grad.dtype is (torch.float32 if declared is None else declared)


def test_each_result_has_its_own_dtype() -> None:
    function = rounding(torch.float32, None, None, None)
    x = torch.ones(1, requires_grad=True)
    y, *_ = function.apply(x)
    y.float().sum().backward()
    assert [None if g is None else g.dtype for g in function.got[:3]] == [
        torch.float32,
        torch.float16,
        None,
    ]
    with torch.no_grad():
        function.apply(x)  # where nothing is recorded, it means nothing


def test_declarations_that_do_not_fit_the_results_are_refused() -> None:
    x = torch.ones(1, requires_grad=True)
    f32 = torch.float32
    for dtypes, message in (
        ((None, None), "4 values but 2 declarations"),
        ((f32, f32, f32, None), "output 2, but that output is not a differentiable tensor"),
        ((f32, f32, None, f32), "output 3, but that output is not a differentiable tensor"),
        ((torch.int32,), "int32 cannot hold the gradient"),
        ((torch.complex64,), "complex64 cannot hold the gradient"),
        (("float32",), "torch.dtype or None, but got str"),
    ):
        with pytest.raises(RuntimeError, match=message):
            rounding(*dtypes).apply(x)

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            ctx.set_output_grad_dtype(None)
            ctx.set_output_grad_dtype(None)
            return x * 2

    with pytest.raises(RuntimeError, match="can only be called once"):
        Twice.apply(x)
