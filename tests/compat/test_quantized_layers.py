"""Layers that are quantized part by part, and kernels of quantized tensors, as PyTorch's."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from compat.quantizing import filled, of_pytorch, quietly, values

import rushlight as torch

pytorch = pytest.importorskip("torch")
LIBRARIES = (torch, pytorch)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with quietly(pytorch, "fbgemm"):
        yield


def wrapped(lib: Any, layer: Any, call: Any) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            q = lib.ao.quantization
            self.quant, self.layer, self.dequant = q.QuantStub(), layer, q.DeQuantStub()

        def forward(self, x: Any) -> Any:
            return self.dequant(call(self.layer, self.quant(x)))

    return Net()


def steps(lib: Any, layer: Any, call: Any, x: np.ndarray, is_qat: bool = False) -> Any:
    q, net = lib.ao.quantization, filled(lib, wrapped(lib, layer, call)).train(is_qat)
    for name, value in net.named_parameters():
        if name.endswith(("bias_k", "bias_v")):
            value.data.mul_(3)
    if is_qat:
        net.qconfig = q.get_default_qat_qconfig("fbgemm", 0)
        prepared = q.prepare_qat(net)
    else:
        net.qconfig = q.get_default_qconfig("fbgemm")
        prepared = q.prepare(net)
    exact = prepared(lib.tensor(x))
    if is_qat:
        exact.sum().backward()
    small = q.convert(prepared.eval())
    modules = [(n, type(m).__name__) for n, m in small.named_modules()]
    keys = sorted(small.state_dict())
    return modules, keys, exact.detach().numpy(), small(lib.tensor(x)).detach().numpy(), small


def compare(
    make: Any, call: Any, x: np.ndarray, is_qat: bool = False, equal_scales: bool = False
) -> None:
    ours, theirs = (steps(lib, make(lib), call, x, is_qat) for lib in LIBRARIES)
    packed = ("LinearPackedParams", "Identity")
    for a, b in zip(ours[:2], theirs[:2], strict=True):
        assert [e for e in a if e[1] not in packed] == [e for e in b if e[1] not in packed]
    np.testing.assert_allclose(ours[2], theirs[2], atol=0.02 if is_qat else 1e-5)
    step = np.abs(theirs[3]).max() / 50
    assert np.abs(ours[3] - theirs[3]).max() <= 3 * step
    ours[4].load_state_dict({k: of_pytorch(v) for k, v in theirs[4].state_dict().items()})
    got = ours[4](torch.tensor(x)).detach().numpy() if equal_scales else ours[3]
    assert (np.abs(got - theirs[3]) > step / 10).mean() < 0.1


@pytest.mark.parametrize("is_qat", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True}, {"bias": False}],
    ids=str,
)
def test_lstm(options: dict[str, Any], is_qat: bool) -> None:
    def make(lib: Any) -> Any:
        return lib.nn.LSTM(4, 5, **options)

    compare(make, lambda layer, x: layer(x)[0], values(3, 6, 4), is_qat)
    if not is_qat and not options.get("bidirectional"):  # PyTorch takes a state apart otherwise
        compare(make, lambda layer, x: layer(x)[1][0], values(3, 6, 4))


@pytest.mark.parametrize("split", [False, True])
def test_the_parts_of_an_lstm(split: bool) -> None:
    def program(lib: Any) -> Any:
        nnqa = import_module(f"{lib.__name__}.ao.nn.quantizable")
        q = lib.ao.quantization
        lstm = filled(lib, nnqa.LSTM(4, 5, 2, split_gates=split))
        x = lib.tensor(values(3, 6, 4))
        h, c = (lib.tensor(values(2, 6, 5, seed=s)) for s in (1, 2))
        cell = filled(lib, lib.nn.LSTMCell(4, 5))
        cell.qconfig = q.default_qconfig
        cell = nnqa.LSTMCell.from_float(cell, split_gates=split)
        outputs = [lstm(x)[0], *lstm(x, (h, c))[1], *cell(x[0], (h[0], c[0]))]
        return list(lstm.state_dict()), repr(cell), [y.detach().numpy() for y in outputs]

    ours, theirs = map(program, LIBRARIES)
    assert ours[:2] == theirs[:2]
    for got, wanted in zip(ours[2], theirs[2], strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [{}, {"bias": False}, {"add_zero_attn": True}, {"kdim": 8, "vdim": 8}],
    ids=str,
)
def test_attention(options: dict[str, Any]) -> None:
    def make(lib: Any) -> Any:
        return lib.nn.MultiheadAttention(8, 2, **options)

    x = values(4, 3, 8)
    compare(make, lambda layer, x: layer(x, x, x)[0], x)
    # Means over two heads lie halfway between steps, where the last bit of a scale decides.
    compare(make, lambda layer, x: layer(x, x, x)[1], x, equal_scales=True)


def test_added_keys_and_values_each_have_a_form() -> None:
    errors = []  # PyTorch rounds both as the key
    for lib in LIBRARIES:
        layer = lib.nn.MultiheadAttention(8, 2, add_bias_kv=True)
        _, _, exact, small, _ = steps(
            lib, layer, lambda layer, x: layer(x, x, x)[0], values(4, 3, 8)
        )
        errors.append(np.abs(exact - small).max() / np.abs(exact).max())
    assert errors[0] < 0.2 and errors[0] < errors[1]


@pytest.mark.parametrize("kind", ["float", "bool", "many", "padding"])
def test_masks_of_attention(kind: str) -> None:
    def call(lib: Any) -> Any:
        upper = np.triu(np.ones((4, 4), dtype=bool), 1)
        if kind == "float":
            mask = {"attn_mask": lib.tensor(np.where(upper, -np.inf, 0.5).astype("f4"))}
        elif kind == "bool":
            mask = {"attn_mask": lib.tensor(upper)}
        elif kind == "many":
            mask = {"attn_mask": lib.tensor(np.broadcast_to(upper, (6, 4, 4)).copy())}
        else:
            mask = {"key_padding_mask": lib.tensor(np.arange(12).reshape(3, 4) % 4 == 3)}
        return lambda layer, x: layer(x, x, x, average_attn_weights=False, **mask)[0]

    x = values(4, 3, 8)
    results = [
        steps(lib, lib.nn.MultiheadAttention(8, 2, add_zero_attn=True), call(lib), x)
        for lib in LIBRARIES
    ]
    np.testing.assert_allclose(results[0][2], results[1][2], atol=1e-5)
    np.testing.assert_allclose(results[0][3], results[1][3], atol=0.08)


def test_attention_with_the_batch_first_is_that_of_floats() -> None:
    layer, x = filled(torch, torch.nn.MultiheadAttention(8, 2, batch_first=True)), values(4, 3, 8)
    wanted = layer(*[torch.tensor(x)] * 3)[0].detach().numpy()
    _, _, exact, small, net = steps(torch, layer, lambda layer, x: layer(x, x, x)[0], x)
    np.testing.assert_allclose(exact, wanted, atol=1e-5)
    assert np.abs(small - wanted).max() < 0.1 * np.abs(wanted).max()
    again = net.layer.dequantize()(*[torch.tensor(x)] * 3)[0].detach().numpy()
    assert np.abs(again - wanted).max() < 0.05 * np.abs(wanted).max()


def test_kernels_by_their_names() -> None:
    def program(lib: Any) -> Any:
        ops = lib.ops.quantized
        a, b = (
            lib.quantize_per_tensor(lib.tensor(values(3, 4, seed=s)), 0.03, 100, lib.quint8)
            for s in (0, 1)
        )
        weight = lib.quantize_per_tensor(lib.tensor(values(5, 4, seed=2)), 0.02, 0, lib.qint8)
        packed = ops.linear_prepack(weight, lib.tensor(values(5, seed=3)))
        results = [
            ops.add(a, b, 0.05, 110),
            ops.add_relu(a, b, 0.05, 110),
            ops.mul(a, b, 0.05, 110),
            ops.add(a, 0.5),
            ops.mul(a, 2.0),
            ops.add_scalar(a, 0.5),
            ops.matmul(a, b.transpose(0, 1), 0.05, 110),
            ops.cat([a, b], 1, 0.05, 110),
            ops.hardswish(a, output_scale=0.02, output_zero_point=90),
            ops.leaky_relu(a, 0.1, False, 0.02, 90),
            ops.elu(a, 0.02, 90),
            ops.linear(a, packed, 0.05, 110),
            ops.linear_relu(a, packed, 0.05, 110),
            ops.layer_norm(a, [4], None, None, 1e-5, 0.02, 90),
            ops.celu(a, 0.02, 90, 0.5),
            ops.softmax(a, 1, 0.02, 90),
            ops.sigmoid(a, 0.02, 90),
        ]
        dynamic = ops.linear_dynamic(lib.tensor(values(3, 4)), packed, reduce_range=True)
        return [r.int_repr().numpy().astype(int) for r in results], dynamic.numpy()

    (got, dynamic), (wanted, their_dynamic) = map(program, LIBRARIES)
    for k, (a, b) in enumerate(zip(got, wanted, strict=True)):
        assert np.abs(a - b).max() <= 1 and (a != b).mean() < 0.1, k
    np.testing.assert_allclose(dynamic, their_dynamic, atol=1e-3)


def decomposed(lib: Any) -> list[Any]:
    """Results of all operators of torch.ops.quantized_decomposed."""
    import_module(f"{lib.__name__}.ao.quantization.fx._decomposed")
    o = lib.ops.quantized_decomposed
    x = lib.tensor(values(4, 8))
    scale, zero = lib.tensor(0.03), lib.tensor(3)
    int8 = -128, 127, lib.int8
    whole = o.quantize_per_tensor(x, 0.03, 3, *int8)
    form = lib.tensor([0.02, 0.03, 0.01, 0.05]), lib.tensor([1, -2, 3, 0])
    rows = o.quantize_per_channel(x, *form, 0, *int8)
    tokens = o.choose_qparams_per_token_asymmetric(x, lib.int8)
    by_token = o.quantize_per_token(x, *tokens, *int8)
    groups = lib.full((4, 2), 0.05), lib.ones(4, 2, dtype=lib.int32)
    by_group = o.quantize_per_channel_group(x, *groups, -8, 7, lib.int8, 4)
    return [
        whole,
        o.quantize_per_tensor.tensor(x.to(lib.bfloat16), scale, zero, *int8),
        o.dequantize_per_tensor(whole, 0.03, 3, *int8),
        o.dequantize_per_tensor.tensor(whole, scale, zero, *int8, out_dtype=lib.float16),
        *o.choose_qparams.tensor(x, -128, 127, 1e-5, lib.int8),
        *o.choose_qparams.tensor(x.abs(), 0, 255, 1e-5, lib.uint8),
        *o.choose_qparams_symmetric.tensor(x, -127, 127, 1e-5, lib.int8),
        rows,
        o.dequantize_per_channel(rows, *form, 0, *int8),
        o.dequantize_per_channel(rows, form[0], None, 0, *int8),
        *o.choose_qparams_per_token(x, lib.int8),
        *tokens,
        by_token,
        o.dequantize_per_token(by_token, *tokens, *int8, lib.float32),
        by_group,
        o.dequantize_per_channel_group(by_group, *groups, -8, 7, lib.int8, 4, lib.float32),
        o.fake_quant_per_channel(x, *form, 0, -128, 127),
    ]


def test_integers_whose_forms_are_arguments() -> None:
    for k, (ours, theirs) in enumerate(zip(*map(decomposed, LIBRARIES), strict=True)):
        assert str(ours.dtype) == str(theirs.dtype) and tuple(ours.shape) == tuple(theirs.shape), k
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, err_msg=str(k))
    with pytest.raises(AssertionError, match="quant_min out of bounds for dtype"):
        torch.ops.quantized_decomposed.quantize_per_tensor(
            torch.ones(2), 1.0, 0, -300, 127, torch.int8
        )


def test_which_elements_share_a_scale() -> None:
    def program(lib: Any) -> list[Any]:
        o = lib.ao.quantization.observer
        kinds = [o.PerTensor(), o.PerAxis(1), o.PerGroup(3), o.PerRow(), o.PerToken()]
        observer = o.AffineQuantizedObserverBase
        names = [e.name for kind in (o.MappingType, o.ZeroPointDomain) for e in kind]
        blocks = [o.get_block_size((4, 6), kind) for kind in kinds]
        assert observer.with_args(granularity=kinds[0]) and kinds[1] == o.PerAxis(1)
        return [names, blocks, [repr(kind) for kind in kinds]]

    assert program(torch) == program(pytorch)
