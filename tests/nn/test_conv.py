"""Convolution layers against a direct sum in NumPy."""

import itertools

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn

MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def convolve(x, weight, bias, stride, padding, dilation, groups, mode):
    """Cross-correlation by its definition; padding is (before, after) for each dimension."""
    x = np.pad(x, [(0, 0), (0, 0), *padding], mode=MODES[mode])
    out_channels, per_group, *kernel = weight.shape
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    sizes = [(n - span) // s + 1 for n, span, s in zip(x.shape[2:], spans, stride, strict=True)]
    result = np.zeros((x.shape[0], out_channels, *sizes))
    for channel in range(out_channels):
        first = channel // (out_channels // groups) * per_group
        for place in itertools.product(*map(range, sizes)):
            window = tuple(
                slice(p * s, p * s + span, d)
                for p, s, span, d in zip(place, stride, spans, dilation, strict=True)
            )
            patch = x[(slice(None), slice(first, first + per_group), *window)]
            axes = tuple(range(1, patch.ndim))
            result[(slice(None), channel, *place)] = (patch * weight[channel]).sum(axes)
    return result if bias is None else result + bias.reshape(-1, *[1] * len(kernel))


def numpy(tensor):
    return None if tensor is None else tensor.detach().numpy()


def check(layer, x, padding):
    dims = len(layer.kernel_size)
    assert layer.weight.dim() == dims + 2
    expected = convolve(
        x.numpy(),
        numpy(layer.weight),
        numpy(layer.bias),
        layer.stride,
        padding,
        layer.dilation,
        layer.groups,
        layer.padding_mode,
    )
    result = layer(x)
    assert tuple(result.shape) == expected.shape
    np.testing.assert_allclose(numpy(result), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "padding"),
    [
        ({"kernel_size": 3}, [(0, 0)]),
        ({"kernel_size": 3, "stride": 2, "padding": 1}, [(1, 1)]),
        ({"kernel_size": (2,), "dilation": 3, "padding": (2,), "bias": False}, [(2, 2)]),
        ({"kernel_size": 3, "groups": 2}, [(0, 0)]),
        ({"kernel_size": 4, "padding": "same"}, [(1, 2)]),
        ({"kernel_size": 3, "padding": "valid"}, [(0, 0)]),
    ],
)
def test_conv1d_is_cross_correlation(settings, padding) -> None:
    check(nn.Conv1d(4, 6, **settings), torch.randn(2, 4, 9), padding)


@pytest.mark.parametrize(
    ("settings", "padding"),
    [
        ({"kernel_size": 3}, [(0, 0), (0, 0)]),
        ({"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0)}, [(1, 1), (0, 0)]),
        ({"kernel_size": 3, "dilation": (1, 2), "padding": "same"}, [(1, 1), (2, 2)]),
        ({"kernel_size": 2, "groups": 4, "bias": False}, [(0, 0), (0, 0)]),
    ],
)
def test_conv2d_is_cross_correlation(settings, padding) -> None:
    check(nn.Conv2d(4, 8, **settings), torch.randn(2, 4, 7, 6), padding)


def test_conv3d_is_cross_correlation() -> None:
    layer = nn.Conv3d(2, 4, (2, 3, 2), stride=(1, 2, 1), padding=(0, 1, 1), groups=2)
    check(layer, torch.randn(2, 2, 4, 5, 4), [(0, 0), (1, 1), (1, 1)])


@pytest.mark.parametrize(
    ("cls", "conv", "settings"),
    [
        (nn.ConvTranspose1d, nn.Conv1d, {"kernel_size": 3}),
        (nn.ConvTranspose1d, nn.Conv1d, {"kernel_size": 4, "stride": 3, "padding": 1, "groups": 2}),
        (nn.ConvTranspose2d, nn.Conv2d, {"kernel_size": (3, 2), "stride": (2, 1), "bias": False}),
        (nn.ConvTranspose2d, nn.Conv2d, {"kernel_size": 3, "dilation": 2, "padding": (2, 1)}),
    ],
)
def test_transposed_convolution_is_the_gradient_of_a_convolution(cls, conv, settings) -> None:
    transposed = cls(4, 6, **settings)
    forward = conv(6, 4, **{**settings, "bias": False})
    with torch.no_grad():
        forward.weight.copy_(transposed.weight)
    x = torch.randn(2, 4, *[5, 4][: len(transposed.kernel_size)])
    y = transposed(x)
    image = torch.zeros(y.shape, requires_grad=True)
    forward(image).backward(x)
    bias = 0 if transposed.bias is None else numpy(transposed.bias)
    bias = np.reshape(bias, (-1, *[1] * (x.dim() - 2)))
    np.testing.assert_allclose(numpy(y), image.grad.numpy() + bias, rtol=1e-4, atol=1e-5)


def test_transposed_convolution_chooses_among_output_sizes() -> None:
    layer, x = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1), torch.randn(1, 2, 5, 5)
    assert tuple(layer(x).shape) == (1, 3, 9, 9)
    assert tuple(layer(x, output_size=(10, 9)).shape) == (1, 3, 10, 9)
    assert tuple(layer(x, output_size=(1, 3, 9, 10)).shape) == (1, 3, 9, 10)
    larger = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1)
    assert tuple(larger(x).shape) == (1, 3, 10, 10)
    with pytest.raises(ValueError, match=r"valid sizes range from \[9, 9\] to \[10, 10\]"):
        layer(x, output_size=(11, 9))
    with pytest.raises(ValueError, match=r"must have 2 or 4 elements \(got 1\)"):
        layer(x, output_size=(9,))
    with pytest.raises(ValueError, match='Only "zeros" padding mode is supported'):
        nn.ConvTranspose2d(2, 3, 3, padding_mode="reflect")


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    ("amount", "padding"), [((2, 1), [(2, 2), (1, 1)]), ("same", [(1, 2), (0, 1)])]
)
def test_padding_modes(mode, amount, padding) -> None:
    layer = nn.Conv2d(2, 3, (4, 2), padding=amount, padding_mode=mode)
    check(layer, torch.randn(2, 2, 6, 5), padding)


def test_sample_without_batch() -> None:
    layer, x = nn.Conv2d(1, 2, 3), torch.randn(1, 5, 5)
    np.testing.assert_allclose(
        numpy(layer(x)), numpy(layer(x.unsqueeze(0)).squeeze(0)), rtol=1e-5, atol=1e-6
    )


def test_start_is_within_the_bound_of_fan_in() -> None:
    torch.manual_seed(0)
    layer = nn.Conv2d(4, 64, 5)
    for tensor in (layer.weight, layer.bias):
        assert 0.08 < tensor.abs().max().item() <= 0.1  # 1 / sqrt(4 * 25)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"in_channels": 3, "groups": 2}, "in_channels must be divisible by groups, .* 3 and 2"),
        ({"out_channels": 3, "groups": 2}, "out_channels must be divisible by groups"),
        ({"groups": 0}, "groups must be a positive integer"),
        ({"padding_mode": "mirror"}, "padding_mode must be one of .*'mirror'"),
        ({"padding": "some"}, "Invalid padding string 'some'"),
        ({"padding": "same", "stride": 2}, "padding='same' is not supported for strided"),
    ],
)
def test_bad_settings_are_errors(settings, message) -> None:
    settings = {"in_channels": 2, "out_channels": 2, "kernel_size": 3, **settings}
    with pytest.raises(ValueError, match=message):
        nn.Conv2d(**settings)


def gradients(x, weight, bias, **options):
    """The result of a convolution of images with its gradients, all in float32."""
    leaves = [t.detach().requires_grad_() for t in (x, weight, bias)]
    y = nn.functional.conv2d(*leaves, **options)
    grad = torch.arange(y.numel()).reshape(y.shape).remainder(5).to(y.dtype) - 2
    return [t.detach().float() for t in (y, *torch.autograd.grad(y, leaves, grad))]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("groups", "per_group"), [(8, (8, 8)), (6, (4, 8)), (32, (4, 2)), (8, (6, 10)), (3, (4, 4))]
)
def test_groups_of_few_channels(layout, dtype, groups, per_group) -> None:
    torch.manual_seed(0)
    channels, out_channels = per_group
    x = torch.randint(-2, 3, (2, groups * channels, 7, 6)).to(dtype)
    weight = torch.randint(-1, 2, (groups * out_channels, channels, 3, 3)).to(dtype)
    x, weight = (t.to(memory_format=layout) for t in (x, weight))
    bias = torch.arange(groups * out_channels).remainder(3).to(dtype)
    options = {"groups": groups, "padding": 1, "stride": 2}
    # Sums of small integers have no rounding but that of the result.
    expected = gradients(x.double(), weight.double(), bias.double(), **options)
    for result, exact in zip(gradients(x, weight, bias, **options), expected, strict=True):
        assert torch.equal(result, exact.to(dtype).float())


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_wide_filters_of_single_channels_in_half_precision(layout, dtype) -> None:
    torch.manual_seed(0)
    x = torch.randint(-2, 3, (2, 6, 9, 8)).to(dtype).to(memory_format=layout)
    weight = torch.randint(-1, 2, (6, 1, 7, 7)).to(dtype)
    bias = torch.arange(6).to(dtype)
    options = {"groups": 6, "padding": 3}
    expected = gradients(x.float(), weight.float(), bias.float(), **options)
    for result, exact in zip(gradients(x, weight, bias, **options), expected, strict=True):
        assert torch.equal(result, exact.to(dtype).float())
    y = nn.functional.conv2d(x, weight, bias, **options)
    assert y.is_contiguous(memory_format=layout)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_infinity_stays_in_its_group(dtype) -> None:
    x, weight, bias = torch.ones(1, 32, 5, 5), torch.ones(32, 4, 3, 3), torch.zeros(32)
    for place in [x[0, 9, 2], weight[9, 1, 1]]:
        place[0] = torch.inf
    last = {"dtype": dtype, "memory_format": torch.channels_last}
    results = gradients(x.to(**last), weight.to(**last), bias.to(dtype), groups=8)
    exact_results = gradients(x.double(), weight.double(), bias.double(), groups=8)
    for result, exact in zip(results, exact_results, strict=True):
        assert torch.equal(result.isfinite(), exact.isfinite())


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.Conv1d(1, 2, 3), "Conv1d(1, 2, kernel_size=(3,), stride=(1,))"),
        (
            nn.Conv2d(4, 8, 3, 2, 1, 2, 2, False, "circular"),
            "Conv2d(4, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), dilation=(2, 2), "
            "groups=2, bias=False, padding_mode=circular)",
        ),
        (
            nn.Conv1d(1, 2, 3, padding="same"),
            "Conv1d(1, 2, kernel_size=(3,), stride=(1,), padding=same)",
        ),
        (
            nn.ConvTranspose2d(4, 8, 3, 2, 1, 1, 2, False, 2),
            "ConvTranspose2d(4, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), "
            "dilation=(2, 2), output_padding=(1, 1), groups=2, bias=False)",
        ),
    ],
)
def test_repr(layer, text) -> None:
    assert repr(layer) == text


def test_the_padding_of_a_layer_is_kept_as_pad_takes_it() -> None:
    pad = "_reversed_padding_repeated_twice"
    assert getattr(torch.nn.Conv2d(1, 1, 3, padding=(1, 2)), pad) == (2, 2, 1, 1)
    assert getattr(torch.nn.Conv2d(1, 1, (2, 5), padding="same"), pad) == [2, 2, 0, 1]
    assert getattr(torch.nn.Conv1d(1, 1, 3, padding="valid"), pad) == [0, 0]
    assert getattr(torch.nn.ConvTranspose1d(1, 1, 3, padding=1), pad) == (1, 1)
