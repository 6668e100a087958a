"""Products of 8-bit integers against exact sums in NumPy, by oneDNN and by the plain way."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import _C

rng = np.random.default_rng(3)


@pytest.fixture(params=["onednn", "plain"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = request.param == "onednn"
    yield request.param
    torch.backends.mkldnn.enabled = before


def finished(
    sums: np.ndarray,
    weight_scales: np.ndarray,
    bias: np.ndarray,
    scale: float,
    out: tuple[float, int] | None,
    relu: bool,
) -> np.ndarray:
    """The documented arithmetic on sums, (N, C, ...), in float32."""
    along = (1, -1) + (1,) * (sums.ndim - 2)
    factor = (weight_scales * np.float32(scale)).astype(np.float32).reshape(along)
    y = sums.astype(np.float32) * factor + bias.reshape(along)
    y = np.maximum(y, 0) if relu else y
    if out is None:
        return y
    q = np.rint(y * (np.float32(1) / np.float32(out[0])) + np.float32(out[1]))
    return np.clip(q, 0, 255).astype(np.uint8)


def operands(*shapes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    x = rng.integers(0, 256, shapes[0]).astype(np.uint8)
    w = rng.integers(-128, 128, shapes[1]).astype(np.int8)
    n = shapes[1][0]
    scales = rng.uniform(0.001, 0.01, n).astype(np.float32)
    return x, w, scales, rng.normal(size=n).astype(np.float32)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 64, 32), (5, 7, 13), (33, 1, 1), (2, 130, 1257)])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("out", [None, (0.3, 11)])
@pytest.mark.parametrize("zero_point", [0, 5])
def test_linear(way: str, m: int, n: int, k: int, relu: bool, out: Any, zero_point: int) -> None:
    x, w, scales, bias = operands((m, k), (n, k))
    arrays = [torch.tensor(a) for a in (w, bias, scales)]
    wanted = finished(
        (x.astype(np.int64) - zero_point) @ w.T.astype(np.int64), scales, bias, 0.02, out, relu
    )
    for rows in (None, m, 64):  # packed for these rows, or not at all
        args: tuple[Any, ...] = ([], [], [], 1)
        packed = None
        if rows is not None:
            packed = _C._int8_pack(arrays[0], [rows, k], *args, zero_point != 0, out is None)
        form = (None, 0) if out is None else out
        got = _C._int8_product(
            torch.tensor(x),
            arrays[0],
            packed,
            arrays[1],
            arrays[2],
            None,
            *args,
            0.02,
            zero_point,
            *form,
            relu,
        ).numpy()
        if out is None:
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-4)
        else:
            assert np.abs(got.astype(int) - wanted.astype(int)).max() <= 1
            assert (got != wanted).mean() < 0.02


def conv_sums(
    x: np.ndarray, w: np.ndarray, stride: int, padding: int, dilation: int, groups: int
) -> np.ndarray:
    x = np.pad(x.astype(np.int64), [(0, 0), (0, 0)] + [(padding, padding)] * 2)
    (n, _, height, width), (outs, per_group, kh, kw) = x.shape, w.shape
    oh = (height - dilation * (kh - 1) - 1) // stride + 1
    ow = (width - dilation * (kw - 1) - 1) // stride + 1
    sums = np.zeros((n, outs, oh, ow), np.int64)
    for o in range(outs):
        first = o // (outs // groups) * per_group
        for i in range(kh):
            for j in range(kw):
                rows = slice(i * dilation, i * dilation + stride * (oh - 1) + 1, stride)
                columns = slice(j * dilation, j * dilation + stride * (ow - 1) + 1, stride)
                part = x[:, first : first + per_group, rows, columns]
                sums[:, o] += np.einsum("nchw,c->nhw", part, w[o, :, i, j].astype(np.int64))
    return sums


@pytest.mark.parametrize("zero_point", [0, 9])
@pytest.mark.parametrize(
    ("channels", "outs", "kernel", "stride", "padding", "dilation", "groups"),
    [
        (3, 8, 3, 1, 1, 1, 1),
        (16, 16, 3, 2, 1, 1, 16),
        (8, 12, 1, 1, 0, 1, 2),
        (4, 6, 3, 1, 2, 2, 1),
    ],
)
def test_conv(
    way: str,
    channels: int,
    outs: int,
    kernel: int,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
    zero_point: int,
) -> None:
    x, w, scales, bias = operands((2, channels, 9, 8), (outs, channels // groups, kernel, kernel))
    window = ([stride] * 2, [padding] * 2, [dilation] * 2, groups)
    # Padding stands for zeros: numbers equal to the zero point.
    shifted = x.astype(np.int64) - zero_point
    sums = conv_sums(shifted, w, stride, padding, dilation, groups)
    wanted = finished(sums, scales, bias, 0.02, (0.2, 100), False)
    weight = torch.tensor(w)
    for packed in (None, _C._int8_pack(weight, x.shape, *window, zero_point != 0, False)):
        got = _C._int8_product(
            torch.tensor(x),
            weight,
            packed,
            torch.tensor(bias),
            torch.tensor(scales),
            None,
            *window,
            0.02,
            zero_point,
            0.2,
            100,
            False,
        )
        assert got.is_contiguous(memory_format=torch.channels_last)
        assert np.abs(got.numpy().astype(int) - wanted.astype(int)).max() <= 1
        assert (got.numpy() != wanted).mean() < 0.02


def test_zero_points_of_weights_count(way: str) -> None:
    x, w, scales, bias = operands((4, 6), (3, 6))
    zero_points = np.array([1.0, -2.0, 3.0])
    wanted = finished(
        (x.astype(np.int64) - 5) @ (w.astype(np.int64) - zero_points[:, None]).T.astype(np.int64),
        scales, bias, 0.02, None, False,
    )  # fmt: skip
    got = _C._int8_product(
        torch.tensor(x), torch.tensor(w), None, torch.tensor(bias), torch.tensor(scales),
        torch.tensor(zero_points), [], [], [], 1, 0.02, 5, None, 0, False,
    )  # fmt: skip
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5, atol=1e-4)


def test_dynamic_linear_rounds_its_input_and_nothing_else(way: str) -> None:
    _, w, scales, bias = operands((1, 1), (6, 9))
    x = rng.normal(size=(2, 3, 9)).astype(np.float32)
    q = torch.quantize_per_tensor_dynamic(torch.tensor(x), torch.quint8, True)
    weight = w * scales[:, None]
    got = _C._int8_dynamic_linear(
        torch.tensor(x), torch.tensor(w), None, torch.tensor(bias), torch.tensor(scales), None,
        True, False,
    )  # fmt: skip
    wanted = q.dequantize().numpy() @ weight.T + bias
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_empty_inputs_give_empty_results(way: str) -> None:
    weight, scales = torch.zeros(3, 4, dtype=torch.int8), torch.ones(1)
    empty = torch.zeros(0, 4)
    out = _C._int8_dynamic_linear(empty, weight, None, None, scales, None, True, False)
    assert out.shape == (0, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": torch.zeros(3, 4)}, "weight must be int8"),
        ({"input": torch.zeros(2, 5, dtype=torch.uint8)}, "takes 4"),
        ({"packed": torch.zeros(3, dtype=torch.uint8)}, "_int8_pack"),
        ({"scales": torch.ones(2)}, "2 scales"),
        ({"bias": torch.ones(2)}, "the bias 2"),
        ({"input": torch.zeros(2, 3, 4, dtype=torch.uint8)}, "do not have 2 dims"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    args: dict[str, Any] = {
        "input": torch.zeros(2, 4, dtype=torch.uint8),
        "weight": torch.zeros(3, 4, dtype=torch.int8),
        "packed": None,
        "bias": None,
        "scales": torch.ones(1),
    }
    args.update(change)
    with pytest.raises(RuntimeError, match=message):
        _C._int8_product(*args.values(), None, [], [], [], 1, 1.0, 0, 1.0, 0, False)


def test_bytes_of_another_layer_are_no_packed_weight() -> None:
    small = _C._int8_pack(torch.zeros(3, 4, dtype=torch.int8), [64, 4], [], [], [], 1, True, True)
    if small.numel() == 0:
        pytest.skip("needs oneDNN")
    with pytest.raises(RuntimeError):
        _C._int8_product(
            torch.zeros(64, 400, dtype=torch.uint8), torch.zeros(300, 400, dtype=torch.int8), small,
            None, torch.ones(1), None, [], [], [], 1, 1.0, 1, None, 0, False,
        )  # fmt: skip


def test_int_mm_does_not_overflow() -> None:
    a = torch.full((17, 300), -128, dtype=torch.int8)
    assert torch._int_mm(a, a.t()).unique().tolist() == [128 * 128 * 300]
