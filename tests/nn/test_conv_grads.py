"""nn.grad: the gradients of convolutions as functions, against autograd."""

import pytest

import rushlight as torch
from rushlight.nn import functional as F


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "groups": 2, "padding": (2,)}]
)
def test_gradients_are_those_of_autograd(dims: int, options: dict[str, object]) -> None:
    options = {k: v * dims if isinstance(v, tuple) else v for k, v in options.items()}
    torch.manual_seed(0)
    x = torch.randn(2, 4, *[7] * dims, requires_grad=True)
    weight = torch.randn(6, 4 // int(str(options.get("groups", 1))), *[3] * dims)
    weight.requires_grad_()
    y = getattr(F, f"conv{dims}d")(x, weight, **options)
    grad = torch.randn_like(y)
    by_input, by_weight = torch.autograd.grad(y, (x, weight), grad)
    of_input = getattr(torch.nn.grad, f"conv{dims}d_input")
    of_weight = getattr(torch.nn.grad, f"conv{dims}d_weight")
    torch.testing.assert_close(of_input(x.shape, weight, grad, **options), by_input)
    torch.testing.assert_close(of_weight(x, weight.shape, grad, **options), by_weight)


def test_an_op_that_gives_no_tensor_gives_none() -> None:
    weight, bias = torch._C._conv_weight(
        torch.ones(1, 1, 3), torch.ones(1, 1, 2), [2], [1], [0], [0], [1], 1, False
    )
    assert weight.shape == (1, 1, 2) and bias is None


def test_shapes_must_fit_each_other() -> None:
    x, weight, grad = torch.ones(2, 3, 8), torch.ones(4, 3, 3), torch.ones(2, 4, 6)
    for size in [(8,), (2, 5, 8), (1, 3, 8)]:
        with pytest.raises(RuntimeError, match=r"input_size is \(.* make it \(2, 3, 8\)"):
            torch.nn.grad.conv1d_input(size, weight, grad)
    for size in [(3,), (4, 1, 3), (5, 3, 3)]:
        with pytest.raises(RuntimeError, match=r"weight_size is \(.* make it \(4, 3, 3\)"):
            torch.nn.grad.conv1d_weight(x, size, grad)
