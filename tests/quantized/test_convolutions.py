"""Convolutions of integers, transposed and of floats, against the float layers."""

from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.ao import quantization as q

nnq = torch.ao.nn.quantized

TRANSPOSED: list[dict[str, Any]] = [
    {"kernel_size": 3},
    {"kernel_size": 2, "stride": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1, "bias": False},
    {"kernel_size": 3, "padding": 1, "dilation": 2, "groups": 2},
    {"kernel_size": 1, "stride": 3, "padding": 1},
]


def random_layer(kind: str, **settings: Any) -> nn.Module:
    torch.manual_seed(0)
    layer = getattr(nn, kind)(4, 6, **settings)
    layer.qconfig = q.QConfig(q.MinMaxObserver, q.default_weight_observer)
    return layer


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("settings", TRANSPOSED)
def test_transposed_convolutions_round_the_exact_result(dims: int, settings: Any) -> None:
    kind = f"ConvTranspose{dims}d"
    layer = random_layer(kind, **settings)
    x = torch.quantize_per_tensor(torch.randn(2, 4, *(5, 4, 3)[:dims]), 0.03, 100, torch.quint8)
    network = q.prepare(nn.Sequential(layer).eval())
    network(x.dequantize())
    small = q.convert(network)[0]
    assert type(small) is getattr(nnq, kind)
    weight = layer.weight.detach().clone()
    layer.weight.data = small.weight().dequantize()
    with torch.no_grad():
        exact, step = layer(x.dequantize()), small.scale
    assert float((layer.weight.detach() - weight).abs().max()) < 0.01
    got = small(x).dequantize()
    assert got.shape == exact.shape
    low, high = -small.zero_point * step, (255 - small.zero_point) * step
    assert float((got - exact.clamp(low, high)).abs().max()) <= 0.501 * step


@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_dynamic_convolutions_round_their_input_alone(kind: str, dims: int) -> None:
    name = f"{kind}{dims}d"
    layer = random_layer(name, kernel_size=3, stride=2, padding=1)
    dynamic = getattr(nnq.dynamic, name)
    layer.qconfig = q.QConfig(q.default_dynamic_quant_observer, q.default_weight_observer)
    small = q.convert(nn.Sequential(layer), {type(layer): dynamic})[0]
    assert type(small) is dynamic and small._get_name() == f"DynamicQuantized{name}"
    x = torch.randn(2, 4, *(5, 4, 3)[:dims])
    rounded = torch.quantize_per_tensor_dynamic(x, torch.quint8, True).dequantize()
    layer.weight.data = small.weight().dequantize()
    assert torch.allclose(small(x), layer(rounded), atol=1e-5)


def test_a_dynamic_convolution_reflects_floats() -> None:
    layer = nnq.dynamic.Conv2d(4, 6, 3, padding=1, padding_mode="reflect")
    assert layer(torch.randn(1, 4, 5, 5)).shape == (1, 6, 5, 5)


def test_transposed_convolutions_load_what_they_save() -> None:
    x = torch.quantize_per_tensor(torch.randn(1, 4, 3, 3), 0.03, 100, torch.quint8)
    first, second = (nnq.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1) for _ in range(2))
    first.set_weight_bias(
        torch.quantize_per_tensor(torch.randn(4, 6, 3, 3), 0.02, 0, torch.qint8), torch.randn(6)
    )
    first.scale, first.zero_point = 0.125, 90
    second.load_state_dict(first.state_dict())
    assert torch.equal(second(x).int_repr(), first(x).int_repr())
    assert repr(second) == (
        "QuantizedConvTranspose2d(4, 6, kernel_size=(3, 3), stride=(2, 2), scale=0.125, "
        "zero_point=90, output_padding=(1, 1))"
    )


@pytest.mark.parametrize("settings", [{"stride": 0}, {"stride": -1}, {"output_padding": 1}])
def test_steps_of_transposed_convolutions_are_checked(settings: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="output padding must be smaller than either"):
        torch.ao.nn.quantized.ConvTranspose2d(2, 2, 3, **settings)
    torch.ao.nn.quantized.ConvTranspose2d(2, 2, 3, dilation=2, output_padding=1)


@pytest.mark.parametrize("groups", [0, -1])
def test_groups_are_checked(groups: int) -> None:
    with pytest.raises(ValueError, match=f"divisible by {groups} groups"):
        torch.ao.nn.quantized.Conv2d(2, 2, 3, groups=groups)


def test_transposed_convolutions_name_what_they_do_not_take() -> None:
    with pytest.raises(ValueError, match="padding_mode must be 'zeros'"):
        nnq.ConvTranspose2d(4, 6, 3, padding_mode="reflect")
    layer = random_layer("ConvTranspose2d", kernel_size=3)
    layer.qconfig = q.QConfig(q.MinMaxObserver, q.default_per_channel_weight_observer)
    with pytest.raises(AssertionError, match="default_weight_observer"):
        q.prepare(nn.Sequential(layer).eval())
    weight = torch.quantize_per_channel(
        torch.randn(4, 6, 3, 3), torch.ones(4), torch.zeros(4), 0, torch.qint8
    )
    with pytest.raises(RuntimeError, match="default_weight_observer"):
        nnq.ConvTranspose2d(4, 6, 3).set_weight_bias(weight, None)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_a_batch_norm_is_folded_into_a_transposed_convolution(dims: int) -> None:
    torch.manual_seed(0)
    layers = getattr(nn, f"ConvTranspose{dims}d")(4, 6, 3), getattr(nn, f"BatchNorm{dims}d")(6)
    network, x = nn.Sequential(*layers), torch.randn(2, 4, *(5, 4, 3)[:dims])
    network(x)
    network.eval()
    fused = q.fuse_modules(network, ["0", "1"])
    assert type(fused[1]) is nn.Identity
    assert torch.allclose(fused(x), network(x), atol=1e-5)
    with pytest.raises(NotImplementedError, match="in evaluation"):
        q.fuse_modules_qat(network.train(), ["0", "1"])
