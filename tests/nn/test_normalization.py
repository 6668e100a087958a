"""LayerNorm, GroupNorm and RMSNorm against NumPy."""

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn


def randomize(layer):
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_()
    return layer


def affine(layer, y, shape):
    for name, combine in (("weight", np.multiply), ("bias", np.add)):
        parameter = getattr(layer, name, None)
        if parameter is not None:
            y = combine(y, parameter.detach().numpy().reshape(shape))
    return y


@pytest.mark.parametrize("shape", [(4,), (3, 4)])
@pytest.mark.parametrize("settings", [{}, {"bias": False}, {"elementwise_affine": False}])
def test_layer_norm(shape, settings) -> None:
    layer = randomize(nn.LayerNorm(shape, eps=1e-3, **settings))
    x = torch.randn(2, 5, 3, 4)
    a, axes = x.numpy(), tuple(range(-len(shape), 0))
    y = (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + 1e-3)
    np.testing.assert_allclose(
        layer(x).detach().numpy(), affine(layer, y, shape), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("settings", [{}, {"bias": False}, {"affine": False}])
@pytest.mark.parametrize("rest", [(5,), (3, 2)])
def test_group_norm(groups, settings, rest) -> None:
    layer = randomize(nn.GroupNorm(groups, 6, eps=1e-3, **settings))
    x = torch.randn(2, 6, *rest)
    a = x.numpy().reshape(2, groups, -1)
    y = (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-3)
    expected = affine(layer, y.reshape(x.shape), (6, *[1] * len(rest)))
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_group_norm_takes_inputs_that_are_not_contiguous() -> None:
    layer, x = nn.GroupNorm(2, 4), torch.randn(2, 5, 4).transpose(1, 2)
    np.testing.assert_allclose(
        layer(x).detach().numpy(), layer(x.contiguous()).detach().numpy(), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("shape", "memory_format"),
    [((2, 6, 3, 4), torch.channels_last), ((2, 6, 3, 4, 2), torch.channels_last_3d)],
)
def test_group_norm_keeps_channels_last(shape, memory_format) -> None:
    layer, x = randomize(nn.GroupNorm(2, 6)), torch.randn(shape)
    laid = x.contiguous(memory_format=memory_format).requires_grad_()
    x.requires_grad_()
    for input in (laid, x):
        layer(input).square().sum().backward()
    assert layer(laid).is_contiguous(memory_format=memory_format)
    assert torch.allclose(layer(laid), layer(x), atol=1e-5)
    assert torch.allclose(laid.grad, x.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layer", [nn.GroupNorm(1, 4), nn.InstanceNorm1d(4, affine=True)])
def test_norms_of_no_samples_have_gradients(layer) -> None:
    x = torch.zeros(0, 4, 3, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.shape == x.shape
    assert layer.weight.grad.tolist() == [0] * 4
    assert layer.bias.grad.tolist() == [0] * 4


@pytest.mark.parametrize("shape", [(4,), (3, 4)])
@pytest.mark.parametrize("eps", [None, 0.1])
def test_rms_norm(shape, eps) -> None:
    layer = randomize(nn.RMSNorm(shape, eps))
    x = torch.randn(2, 3, 4)
    a, axes = x.numpy(), tuple(range(-len(shape), 0))
    epsilon = np.finfo(np.float32).eps if eps is None else eps
    y = a / np.sqrt((a**2).mean(axes, keepdims=True) + epsilon)
    np.testing.assert_allclose(
        layer(x).detach().numpy(), affine(layer, y, shape), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("shape", [(3, 6, 7, 5), (2, 36, 9, 8), (2, 4, 40, 60)])
def test_halves_are_normalized_in_float32_and_rounded_once(dtype, layout, shape) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape).to(dtype).to(memory_format=layout)
    weight, bias, mean, var = (torch.rand(shape[1]) + 0.5 for _ in range(4))
    weight, bias = weight.to(dtype), bias.to(dtype)
    for norm in (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        lambda x, w, b: F.batch_norm(x, mean, var, w, b),
        lambda x, w, b: F.group_norm(x, 2, w, b),
    ):
        results = []
        for cast in (lambda t: t, lambda t: t.float()):
            leaf = cast(x).clone().requires_grad_()
            y = norm(leaf, cast(weight), cast(bias))
            y.backward(cast(x.square()))
            assert y.is_contiguous(memory_format=layout)
            results.append([y.detach(), leaf.grad])
        for result, exact in zip(*results, strict=True):
            assert result.dtype is dtype
            torch.testing.assert_close(result, exact.to(dtype), rtol=2.0**-7, atol=1e-6)


@pytest.mark.parametrize("weight_dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("n", [5, 64, 3000])
def test_rms_norm_of_halves_is_computed_in_float32(n, weight_dtype) -> None:
    torch.manual_seed(0)
    x, g = torch.randn(7, n).bfloat16(), torch.randn(7, n).bfloat16()
    weight = torch.randn(n).to(weight_dtype)
    results = []
    for dtype in (torch.bfloat16, torch.float64):
        exact = dtype is torch.float64
        leaf = x.to(dtype, copy=True).requires_grad_()
        scale = weight.to(dtype if exact else weight_dtype, copy=True).requires_grad_()
        y = F.rms_norm(leaf, (n,), scale, eps=1e-6)
        assert y.dtype is dtype
        y.backward(g.to(dtype))
        results.append([y.detach(), leaf.grad, scale.grad])
    assert results[0][2].dtype is weight_dtype
    for result, expected in zip(*results, strict=True):
        torch.testing.assert_close(result.double(), expected, rtol=2.0**-7, atol=2e-2)


@pytest.mark.parametrize("n", [5, 64, 3000])
def test_rms_norm_can_be_differentiated_twice(n) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, n, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(n, dtype=torch.float64, requires_grad=True)

    def by_hand(x, weight):
        return x * (x.square().mean(-1, keepdim=True) + 1e-3).rsqrt() * weight

    results = []
    for function in (lambda x, w: F.rms_norm(x, (n,), w, eps=1e-3), by_hand):
        first = torch.autograd.grad(function(x, weight).sin().sum(), (x, weight), create_graph=True)
        results.append([*first, *torch.autograd.grad(first[0].square().sum(), (x, weight))])
    for result, expected in zip(*results, strict=True):
        torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rms_norm_does_not_overflow_in_half_precision(dtype) -> None:
    x = torch.full((4,), 3000.0, dtype=dtype)  # its square is above float16's largest number
    result = nn.RMSNorm(4, dtype=dtype)(x)
    assert result.dtype == dtype
    assert result.tolist() == [1, 1, 1, 1]


def test_sizes_that_do_not_fit_are_errors() -> None:
    with pytest.raises(ValueError, match=r"num_channels \(5\) must be divisible by num_groups"):
        nn.GroupNorm(2, 5)
    with pytest.raises(RuntimeError, match="to be divisible by num_groups"):
        nn.functional.group_norm(torch.zeros(2, 3), 2)
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        nn.functional.group_norm(torch.zeros(3), 3)
    with pytest.raises(RuntimeError, match="Given normalized_shape="):
        nn.RMSNorm(3)(torch.zeros(2, 4))


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.LayerNorm(4), "LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)"),
        (
            nn.LayerNorm((2, 3), elementwise_affine=False),
            "LayerNorm((2, 3), eps=1e-05, elementwise_affine=False, bias=False)",
        ),
        (nn.GroupNorm(2, 4), "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)"),
        (nn.RMSNorm(4), "RMSNorm((4,), eps=None, elementwise_affine=True)"),
    ],
)
def test_repr(layer, text) -> None:
    assert repr(layer) == text


@pytest.mark.parametrize("shape", [(3, 6, 40, 40), (2, 6, 2100), (5, 6)])
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("channels_last", [False, True])
def test_group_norm_equals_its_formula(shape, groups, channels_last) -> None:
    if (channels_last and len(shape) != 4) or (groups == 6 and len(shape) == 2):
        pytest.skip("no such order of memory, or no gradient where each element is its own mean")
    torch.manual_seed(0)
    x, weight, bias = torch.randn(shape), torch.randn(6), torch.randn(6)
    if len(shape) > 2:
        x += 100
        x.view(-1)[0] += 900  # an outlier in front costs no digits
    grad = torch.randn(shape)
    if channels_last:
        x, grad = (t.contiguous(memory_format=torch.channels_last) for t in (x, grad))

    def formula(x, weight, bias):
        rows = x.reshape(shape[0], groups, -1)
        centered = rows - rows.mean(2, keepdim=True)
        z = centered / ((centered * centered).mean(2, keepdim=True) + 1e-5).sqrt()
        each = [1, 6, *[1] * (len(shape) - 2)]
        return z.reshape(shape) * weight.view(each) + bias.view(each)

    def gradients(function, dtype):
        inputs = [t.to(dtype).requires_grad_() for t in (x, weight, bias)]
        out = function(*inputs)
        return [out, *torch.autograd.grad(out, inputs, grad.to(dtype))]

    ours = gradients(lambda *a: F.group_norm(a[0], groups, *a[1:]), torch.float32)
    theirs = gradients(formula, torch.float64)
    for mine, expected in zip(ours, theirs, strict=True):
        expected = expected.float()
        assert torch.allclose(mine, expected, rtol=1e-4, atol=2e-4 * expected.abs().max().item())


@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 4, 0)])
def test_batch_norm_evaluates_nothing(shape) -> None:
    x = torch.zeros(shape)
    assert F.batch_norm(x, torch.zeros(4), torch.ones(4)).shape == x.shape


def test_group_norm_of_samples_with_their_own_parameters() -> None:
    x, weight, bias = torch.randn(3, 2, 4, 5), torch.randn(3, 4), torch.randn(3, 4)
    mine = torch.func.vmap(lambda x, w, b: F.group_norm(x, 2, w, b))(x, weight, bias)
    each = [F.group_norm(x[i], 2, weight[i], bias[i]) for i in range(3)]
    assert torch.allclose(mine, torch.stack(each), atol=1e-6)
    mine = torch.func.vmap(lambda x: F.group_norm(x, 2, weight[0], bias[0]))(x)
    each = [F.group_norm(x[i], 2, weight[0], bias[0]) for i in range(3)]
    assert torch.allclose(mine, torch.stack(each), atol=1e-6)


def test_subclasses_of_instance_norms_say_which_inputs_they_take() -> None:
    class AnyDims(nn.modules.instancenorm._InstanceNorm):
        def _get_no_batch_dim(self) -> int:
            return 5

        def _check_input_dim(self, input: torch.Tensor) -> None:
            if input.dim() == 2:
                raise ValueError("expected more")

    x = torch.randn(2, 3, 2, 2, 2, 2)
    torch.testing.assert_close(AnyDims(3)(x), F.instance_norm(x))
    with pytest.raises(ValueError, match="expected more"):
        AnyDims(3)(x[0, 0, 0, 0])
    with pytest.raises(ValueError, match="3D or 4D"):
        nn.InstanceNorm2d(3)._check_input_dim(torch.zeros(2, 3))


def test_a_group_of_one_value_is_refused() -> None:
    for shape in ((1, 4), (1, 4, 1)):
        with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
            nn.GroupNorm(4, 4)(torch.ones(shape))
    assert nn.GroupNorm(4, 4)(torch.ones(2, 4)).shape == (2, 4)
