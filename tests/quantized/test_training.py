"""Layers that train with rounding: their arguments, what they refuse, and what becomes of them."""

from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.ao import quantization as q

nnqat = torch.ao.nn.qat
nniqat = torch.ao.nn.intrinsic.qat
QCONFIG = q.get_default_qat_qconfig("x86")


def test_layers_with_a_batch_norm_take_arguments_in_pytorchs_order() -> None:
    conv = nniqat.ConvBn2d(2, 4, 3, 2, 1, 1, 2, None, "zeros", 0.25, 0.5, True, QCONFIG)
    assert conv.bias is None and (conv.stride, conv.groups) == ((2, 2), 2)
    assert (conv.bn.eps, conv.bn.momentum, conv.freeze_bn) == (0.25, 0.5, True)
    assert nniqat.ConvBnReLU1d(2, 4, 3, bias=True, qconfig=QCONFIG).bias is not None
    linear = nniqat.LinearBn1d(2, 4, False, 0.25, 0.5, False, QCONFIG)
    assert linear.bias is None and linear.bn.eps == 0.25 and not linear.freeze_bn


def test_tables_need_scales_of_floats() -> None:
    for kind in ("Embedding", "EmbeddingBag"):
        with pytest.raises(AssertionError, match=f"{kind} weights requires a qscheme"):
            getattr(nnqat, kind)(9, 4, qconfig=QCONFIG)
        table = getattr(nn, kind)(9, 4)
        table.qconfig = QCONFIG
        with pytest.raises(AssertionError, match="default_embedding_qat_qconfig"):
            getattr(nnqat, kind).from_float(table)
        table.qconfig = q.default_embedding_qat_qconfig
        assert getattr(nnqat, kind).from_float(table).weight is table.weight


@pytest.mark.filterwarnings("ignore:Please use quant_min")
def test_a_linear_layer_trains_for_dynamic_quantization() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    network.qconfig = q.default_dynamic_qat_qconfig
    network = q.prepare_qat(network.train(), {nn.Linear: nnqat.dynamic.Linear})
    assert type(network[0]) is nnqat.dynamic.Linear
    x = torch.randn(5, 3)
    network(x).sum().backward()
    small = q.convert(network, {nnqat.dynamic.Linear: torch.ao.nn.quantized.dynamic.Linear})
    assert type(small[0]) is torch.ao.nn.quantized.dynamic.Linear
    assert float((small(x) - network(x).detach()).abs().max()) < 0.05
    with pytest.raises(ValueError, match="default_dynamic_qat_qconfig"):
        nnqat.dynamic.Linear(3, 4, qconfig=QCONFIG)


def test_scales_are_written_where_they_were() -> None:
    for fake, shape in (
        (q.FakeQuantize(), [1]),
        (q.default_per_channel_weight_fake_quant(), [4]),
        (q.default_fused_act_fake_quant(), [1]),
    ):
        before = dict(fake.named_buffers())
        x = torch.randn(4, 4, requires_grad=True)
        (fake(x) + fake(2 * x)).sum().backward()  # the tape kept the first scale
        after = dict(fake.named_buffers())
        assert all(after[name] is before[name] for name in ("scale", "zero_point"))
        assert list(fake.scale.shape) == shape and bool((fake.scale != 1).all())


def test_the_middle_of_unsigned_numbers_stands_for_zero() -> None:
    for dtype, middle in ((torch.quint8, 128), (torch.uint8, 128), (torch.uint16, 2**15)):
        observer = q.MinMaxObserver(dtype=dtype, qscheme=torch.per_tensor_symmetric)
        observer(torch.tensor([-1.0, 2.0]))
        assert int(observer.calculate_qparams()[1]) == middle


def test_synchronized_norms_keep_how_they_are_quantized() -> None:
    norm: Any = nn.BatchNorm1d(3)
    norm.qconfig = QCONFIG
    assert nn.SyncBatchNorm.convert_sync_batchnorm(norm).qconfig is QCONFIG
    assert not hasattr(nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3)), "qconfig")


def test_zero_points_between_integers_count_before_rounding() -> None:
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.float16, torch.float64):
        x = torch.randn(5, 3).to(dtype)
        scales, zero_points = torch.rand(3) + 0.1, 10 * torch.rand(3)
        wanted = torch.quantize_per_channel(x.float(), scales, zero_points, 1, torch.quint8)
        got = torch.fake_quantize_per_channel_affine(x, scales, zero_points, 1, 0, 255)
        assert got.dtype is dtype
        assert torch.allclose(
            got.float(), wanted.dequantize(), atol=1e-2 if x.dtype is torch.float16 else 1e-5
        )
    x = torch.tensor([[-9.0, 0.3], [0.2, 900.0]], requires_grad=True)
    form = torch.tensor([0.5, 0.5]), torch.tensor([1.25, 1.25])
    torch.fake_quantize_per_channel_affine(x, *form, 1, 0, 255).sum().backward()
    assert x.grad.tolist() == [[0, 1], [1, 0]]
