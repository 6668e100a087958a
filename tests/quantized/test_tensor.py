"""Quantized tensors: what they hold, what moves them, what they refuse, and how they are saved."""

import copy
import io
import pickle

import numpy as np
import pytest

import rushlight as torch

rng = np.random.default_rng(5)
PAIR = torch.ones(2)


def quantized(*shape: int, scale: float = 0.1, zero_point: int = 100) -> torch.Tensor:
    values = torch.tensor(rng.normal(scale=5, size=shape).astype(np.float32))
    return torch.quantize_per_tensor(values, scale, zero_point, torch.quint8)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [(torch.quint8, 0, 255), (torch.qint8, -128, 127), (torch.qint32, -(2**31), 2**31 - 1)],
)
def test_numbers_are_the_nearest_with_halves_to_even(dtype, low: int, high: int) -> None:
    values = np.array([np.nan, -1e12, -2.5, -0.5, 0.5, 1.5, 2.49, 126.5, 1e12], np.float32)
    for count in (1, 9):  # one by one, and many together
        x = np.tile(values, count)
        q = torch.quantize_per_tensor(torch.tensor(x), 1.0, 10, dtype)
        nearest = np.rint(np.nan_to_num(x.astype(np.float64), nan=-1e12))
        wanted = np.clip(nearest + 10, low, high)
        assert q.int_repr().tolist() == wanted.tolist()
        assert q.dtype is dtype and q.is_quantized and q.q_scale() == 1.0 and q.q_zero_point() == 10
        inside = wanted > low  # differences of 32 bits wrap around
        np.testing.assert_allclose(q.dequantize().numpy()[inside], wanted[inside] - 10)


@pytest.mark.parametrize("run", [1, 5, 50])
def test_channels_have_their_own_scales(run: int) -> None:
    x = rng.normal(size=(3, 4, run)).astype(np.float32)
    scales, zero_points = np.array([0.01, 0.1, 1.0, 2.0]), np.array([0, 5, -5, 1])
    q = torch.quantize_per_channel(
        torch.tensor(x), torch.tensor(scales), torch.tensor(zero_points), 1, torch.qint8
    )
    along = (1, 4, 1)
    inverse = (1 / scales.astype(np.float32)).reshape(along)
    wanted = np.clip(np.rint(x * inverse) + zero_points.reshape(along), -128, 127)
    assert np.array_equal(q.int_repr().numpy(), wanted)
    assert q.qscheme() is torch.per_channel_affine and q.q_per_channel_axis() == 1
    assert q.q_per_channel_scales().dtype is torch.float64
    values = (wanted - zero_points.reshape(along)) * scales.reshape(along)
    np.testing.assert_allclose(q.dequantize().numpy(), values, rtol=1e-6)


def test_memory_order_is_kept() -> None:
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    assert q.is_contiguous(memory_format=torch.channels_last)
    assert q.dequantize().stride() == x.stride()
    narrowed = torch.quantize_per_tensor(x[:, 1:, ::2], 0.1, 3, torch.quint8)
    assert torch.equal(narrowed.int_repr(), q.int_repr()[:, 1:, ::2])


def test_moves_keep_the_form() -> None:
    q = quantized(2, 3, 4)
    for move in (
        lambda t: t.view(6, 4), lambda t: t[0], lambda t: t[:, 1:], lambda t: t.permute(2, 0, 1),
        lambda t: torch.flatten(t, 1), lambda t: t.unsqueeze(0), lambda t: t.clone(),
        lambda t: t.contiguous(), lambda t: t.chunk(2, 2)[1], lambda t: torch.cat([t, t], 1),
        lambda t: t.transpose(0, 1), lambda t: t.detach(), lambda t: t.cpu(), lambda t: t.ravel(),
    ):  # fmt: skip
        moved = move(q)
        assert moved.is_quantized and moved.q_scale() == 0.1 and moved.q_zero_point() == 100
        assert torch.equal(moved.int_repr(), move(q.int_repr()))


def test_relu_and_max_pooling_work_on_integers() -> None:
    q, F = quantized(1, 2, 4, 4), torch.nn.functional
    for f in (torch.relu, F.relu, torch.nn.ReLU(), lambda t: F.max_pool2d(t, 2)):
        np.testing.assert_array_equal(f(q).dequantize().numpy(), f(q.dequantize()).numpy())
    r = q.clone()
    assert torch.nn.ReLU(inplace=True)(r) is r and torch.equal(
        r.int_repr(), torch.relu(q).int_repr()
    )


def test_order_is_that_of_integers() -> None:
    x = torch.quantize_per_tensor(torch.tensor([[0.5, -1.0], [1.0, 3.0]]), 0.1, 10, torch.quint8)
    assert x.max().int_repr().item() == 40 and x.min().dequantize().item() == -1.0
    assert x.max(1).values.int_repr().tolist() == [15, 40] and x.min(0).indices.tolist() == [0, 0]
    assert x.topk(1).values.int_repr().tolist() == [[15], [40]]
    assert x.sort(1, descending=True).values.int_repr().tolist() == [[15, 0], [40, 20]]
    assert x.argsort(0).tolist() == [[0, 0], [1, 1]]
    with pytest.raises(NotImplementedError, match="max: not implemented for quantized"):
        torch.max(x, x)


def test_what_is_written_is_rounded_to_the_form() -> None:
    x = torch.quantize_per_tensor(torch.tensor([[0.5, -1.0], [1.0, 3.0]]), 0.1, 10, torch.quint8)
    y = x.clone()
    y[0] = x[1]
    y[1, 1] = 0.33
    assert y.int_repr().tolist() == [[20, 40], [20, 13]]
    assert y.fill_(2.04).int_repr().tolist() == [[30, 30], [30, 30]]
    mask = torch.tensor([True, False])
    assert x.masked_fill(mask, 0.5).int_repr().tolist() == [[15, 0], [15, 40]]
    assert x.int_repr()[1, 0] == 20 and y.masked_fill_(mask, 0).int_repr()[1].tolist() == [10, 30]
    y.index_put_((torch.tensor([1]),), torch.tensor([1.0, 2.0]))
    assert y.int_repr()[1].tolist() == [20, 30]
    assert torch.stack([x, y], 1).int_repr().shape == (2, 2, 2)
    assert torch.empty_like(x).q_scale() == x.q_scale()
    assert torch.iinfo(x.dtype).max == 255 and torch.iinfo(torch.qint8).min == -128


def test_averages_are_rounded_to_the_inputs_form() -> None:
    q, F = quantized(1, 2, 4, 4), torch.nn.functional
    for f in (
        lambda t: F.adaptive_avg_pool2d(t, 1),
        lambda t: F.avg_pool2d(t, 2),
        lambda t: t.mean([2, 3]),
    ):
        got, wanted = f(q), f(q.dequantize())
        assert got.q_scale() == 0.1
        assert float((got.dequantize() - wanted).abs().max()) <= 0.0501


def test_results_of_known_range_have_their_own_scale() -> None:
    q = quantized(5)
    assert (q.sigmoid().q_scale(), torch.tanh(q).q_zero_point()) == (1 / 256, 128)


def test_other_ops_name_dequantize() -> None:
    q = quantized(3)
    for f in (lambda: q + q, lambda: q.exp(), lambda: torch.fft.fft(q), lambda: q.sum()):
        with pytest.raises(NotImplementedError, match="dequantize"):
            f()
    with pytest.raises(RuntimeError, match="dequantize"):
        q.float()
    with pytest.raises(TypeError, match="dequantize"):
        q.numpy()
    with pytest.raises(RuntimeError, match="expected a quantized tensor"):
        torch.ones(1).q_scale()
    assert torch.ones(2).int().dequantize().dtype is torch.float32


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.quantize_per_tensor(torch.ones(2).double(), 0.1, 0, torch.quint8),
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 256, torch.quint8),
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, -1, torch.quint8),
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.0, 0, torch.quint8),
        lambda: torch.quantize_per_tensor(torch.ones(2), float("nan"), 0, torch.quint8),
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.uint8),
        lambda: torch.quantize_per_channel(PAIR, torch.ones(3), torch.zeros(3), 0, torch.qint8),
        lambda: torch.quantize_per_channel(PAIR, torch.ones(2), torch.zeros(2), 1, torch.qint8),
        lambda: torch.quantize_per_tensor_dynamic(torch.ones(2), torch.qint32, False),
    ],
)  # fmt: skip
def test_mistakes_are_errors(make) -> None:
    with pytest.raises(RuntimeError):
        make()


@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8])
@pytest.mark.parametrize("reduce_range", [False, True])
def test_dynamic_forms_cover_the_range(dtype, reduce_range: bool) -> None:
    for low, high in ((-1.0, 3.0), (0.0, 5.0), (-7.0, -1.0), (0.0, 0.0), (1e-9, 2e-9)):
        x = torch.tensor([low, high])
        q = torch.quantize_per_tensor_dynamic(x, dtype, reduce_range)
        error = (q.dequantize() - x).abs().max()
        assert float(error) <= q.q_scale() * 0.5001
        assert torch.quantize_per_tensor_dynamic(x * 0, dtype, reduce_range).dequantize().any() == 0


def test_the_text_has_numbers_and_form() -> None:
    q = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.5, 1, torch.qint8)
    assert repr(q) == (
        "tensor([1., 2.], size=(2,), dtype=torch.qint8,\n"
        "       quantization_scheme=torch.per_tensor_affine, scale=0.5, zero_point=1)"
    )


@pytest.mark.parametrize("kind", ["tensor", "channel", "float channel"])
def test_copies_and_files_keep_the_form(kind: str) -> None:
    q = quantized(3, 4)
    if kind != "tensor":
        zero_points = torch.tensor([1, 2, 3]) if kind == "channel" else torch.rand(3)
        q = torch.quantize_per_channel(
            q.dequantize(), torch.rand(3) + 0.1, zero_points, 0, torch.quint8
        )
    file = io.BytesIO()
    saved = {"q": q, "dtype": q.dtype}
    if kind == "tensor":
        saved["view"] = q[1:]
    torch.save(saved, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["dtype"] is torch.quint8
    if kind == "tensor":
        assert torch.equal(loaded["view"].int_repr(), q[1:].int_repr())
    for other in (loaded["q"], copy.deepcopy(q), pickle.loads(pickle.dumps(q)), q.clone()):
        assert other.is_quantized and repr(other) == repr(q)
        assert other.data_ptr() != q.data_ptr()


def test_copy_into_rounds_floats() -> None:
    q = quantized(3)
    q.copy_(torch.tensor([0.12, 0.18, 100.0]))
    assert q.int_repr().tolist() == [101, 102, 255]


def test_numbers_of_less_than_a_byte_have_names_only() -> None:
    for dtype in torch.quint4x2, torch.quint2x4:
        assert pickle.loads(pickle.dumps(dtype)) is dtype and dtype.itemsize == 1
        with pytest.raises(RuntimeError, match=f"qint8, quint8 or qint32, but is {dtype}"):
            torch.quantize_per_tensor(torch.ones(2), 0.1, 0, dtype)
