"""Ops on nested tensors give what a loop over their parts gives, values and gradients alike."""

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight.nn import functional as F

LAYOUTS = [torch.strided, torch.jagged]
SIZES = (3, 5, 1)


def parts_of(*rest: int, sizes: tuple[int, ...] = SIZES) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(size, *rest, generator=generator, dtype=torch.float64, requires_grad=True)
        for size in sizes
    ]


def nested(parts: list[torch.Tensor], layout: Any = torch.jagged) -> torch.Tensor:
    return torch.nested.as_nested_tensor(parts, layout=layout)


def weighted(result: Any) -> torch.Tensor:
    """A number that depends on each element of a result, in the order of the parts."""
    items = result.unbind() if isinstance(result, torch.Tensor) else result
    flat = torch.cat([item.reshape(-1) for item in items])
    return (flat * torch.arange(1.0, len(flat) + 1, dtype=flat.dtype)).sum()


def check(
    op: Callable[[Any], Any],
    layout: Any,
    rest: tuple[int, ...] = (4,),
    on_part: Callable[[Any], Any] | None = None,
) -> None:
    """Compares an op of a nested tensor with the op of each part, dims being one less there."""
    parts, again = parts_of(*rest), parts_of(*rest)
    result = op(nested(parts, layout))
    expected = [(on_part or op)(part) for part in again]
    for ours, theirs in zip(result.unbind(), expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    if expected[0].requires_grad:
        weighted(result).backward()
        weighted(expected).backward()
        for ours, theirs in zip(parts, again, strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad)


WEIGHT = torch.linspace(-1, 1, 12, dtype=torch.float64).view(3, 4)
SAME: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: x.exp(),
    "gelu": F.gelu,
    "arithmetic": lambda x: 2 - x * 3 / (x**2 + 1),
    "compare": lambda x: x > 0,
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "where": lambda x: torch.where(x > 0, x, -x),
    "with row": lambda x: x * torch.arange(4.0) + torch.ones(1, 4),
    "last dims": lambda x: F.layer_norm(x, (4,)),
    "rms_norm": lambda x: F.rms_norm(x, (4,)),
    "linear": lambda x: F.linear(x, WEIGHT),
    "matmul": lambda x: x @ WEIGHT.t(),
    "softmax last": lambda x: x.softmax(-1),
    "log_softmax last": lambda x: F.log_softmax(x, dim=-1),
    "sum last": lambda x: x.sum(-1),
    "mean last keepdim": lambda x: x.mean(-1, keepdim=True),
    "amax last": lambda x: x.amax(dim=-1),
    "var last": lambda x: x.var(-1),
    "max last": lambda x: x.max(-1).values,
    "sort last": lambda x: x.sort(-1).values,
    "cumsum last": lambda x: x.cumsum(-1),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "unflatten": lambda x: x.unflatten(-1, (2, 2)),
    "unflatten flatten": lambda x: x.unflatten(-1, (2, 2)).flatten(-2),
    "chunk last": lambda x: x.chunk(2, -1)[1],
    "split last": lambda x: x.split([1, 3], dim=-1)[1],
    "narrow last": lambda x: x.narrow(-1, 1, 2),
    "select last": lambda x: x.select(-1, 2),
    "ellipsis": lambda x: x[..., 1:3],
    "cat": lambda x: torch.cat([x, x * 2], -1),
    "clone": lambda x: x.clone(),
    "to": lambda x: x.to(torch.float32),
    "double": lambda x: x.half().double(),
    "zeros_like": torch.zeros_like,
    "swap": lambda x: x.transpose(-1, -2).contiguous(),
    "glu": F.glu,
    "by name": lambda x: torch.sum(input=F.linear(input=x, weight=WEIGHT), dim=-1),
    "matmul by name": lambda x: torch.matmul(input=x, other=WEIGHT.t()),
    "norm by name": lambda x: F.layer_norm(input=x, normalized_shape=[4]),
    "var positional": lambda x: x.var(-1, True),
    "std_mean": lambda x: torch.std_mean(x, -1, correction=0)[0],
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("name", SAME)
def test_op_along_dense_dims_equals_that_on_parts(name: str, layout: Any) -> None:
    check(SAME[name], layout)


SHIFTED: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "softmax": (lambda x: x.softmax(1), lambda x: x.softmax(0)),
    "cumsum": (lambda x: x.cumsum(dim=1), lambda x: x.cumsum(0)),
    "flip": (lambda x: x.flip(1), lambda x: x.flip(0)),
    "transpose": (lambda x: x.transpose(1, 2), lambda x: x.transpose(0, 1)),
    "permute": (lambda x: x.permute(0, 2, 1, 3), lambda x: x.permute(1, 0, 2)),
    "unsqueeze": (lambda x: x.unsqueeze(1), lambda x: x.unsqueeze(0)),
    "squeeze": (lambda x: x.unsqueeze(1).squeeze(1), lambda x: x),
    "there and back": (lambda x: x.transpose(1, 2).sum(1), lambda x: x.sum(1)),
    "select before": (lambda x: x.transpose(1, 2).select(1, 0), lambda x: x[:, 0]),
    "index before": (lambda x: x.transpose(1, 2)[:, 1], lambda x: x[:, 1]),
    "view": (lambda x: x.view(3, -1, 4, 1), lambda x: x.view(-1, 4, 1)),
    "reshape": (lambda x: x.reshape(3, -1, 2, 2), lambda x: x.reshape(-1, 2, 2)),
    "unflatten before": (
        lambda x: x.transpose(1, 2).unflatten(1, (2, -1)),
        lambda x: x.transpose(0, 1).unflatten(0, (2, -1)),
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("name", SHIFTED)
def test_op_along_dims_after_the_batch_equals_that_on_parts(name: str, layout: Any) -> None:
    rest = (4, 1) if name in ("permute", "unflatten before") else (4,)
    check(SHIFTED[name][0], layout, rest, SHIFTED[name][1])


@pytest.mark.parametrize("norm", [F.layer_norm, F.rms_norm])
def test_norm_over_the_ragged_dim_equals_that_of_parts(norm: Any) -> None:
    check(lambda x: norm(x, x.shape[1:]), torch.jagged, on_part=lambda x: norm(x, x.shape))
    check(
        lambda x: norm(x.transpose(1, 2), normalized_shape=x.shape[1:2]),
        torch.jagged,
        on_part=lambda x: norm(x.t(), x.shape[:1]),
    )


def test_norm_over_the_ragged_dim_takes_the_sizes_that_there_are() -> None:
    x = nested(parts_of(4))
    assert F.layer_norm(x, x.shape[1:]).shape == x.shape
    with pytest.raises(RuntimeError, match="ragged"):
        F.layer_norm(x, x.shape)
    with pytest.raises(RuntimeError, match="weight"):
        F.layer_norm(x, x.shape[1:], torch.ones(4))


@pytest.mark.parametrize(
    "op", ["sum", "mean", "amax", "amin", "prod", "logsumexp", "argmax", "any", "var", "median"]
)
def test_reduction_over_the_ragged_dim_stacks_those_of_parts(op: str) -> None:
    parts, again = parts_of(4, sizes=(3, 5, 2)), parts_of(4, sizes=(3, 5, 2))
    for keepdim in (False, True):
        result = getattr(nested(parts), op)(1, keepdim=keepdim)
        expected = [getattr(part, op)(0, keepdim=keepdim) for part in again]
        if op == "median":
            result, expected = result.values, [item.values for item in expected]
        torch.testing.assert_close(result, torch.stack(expected))
    if result.requires_grad:
        weighted([result]).backward()
        weighted(expected).backward()
        torch.testing.assert_close(parts[1].grad, again[1].grad)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_reduction_over_everything_sees_all_elements(layout: Any) -> None:
    parts = parts_of(4)
    flat = torch.cat(parts)
    x = nested(parts, layout)
    for op in ("sum", "mean", "amax", "max", "norm", "std"):
        torch.testing.assert_close(getattr(x, op)(), getattr(flat, op)())
    torch.testing.assert_close(x.var(False), flat.var(False))


def test_reduction_over_batch_and_ragged_dim_reduces_rows() -> None:
    parts = parts_of(4)
    torch.testing.assert_close(nested(parts).sum((0, 1)), torch.cat(parts).sum(0))
    torch.testing.assert_close(
        nested(parts).mean((0, 1), keepdim=True), torch.cat(parts).mean(0).view(1, 1, 4)
    )
    torch.testing.assert_close(nested(parts).sum((0, 1, 2)), torch.cat(parts).sum())


@pytest.mark.parametrize("shape", [(3, 1, 1), (3, 1, 4), (1, 1, 4), (3, 5, 4), (5, 1), (3, 7, 1)])
def test_dense_operand_broadcasts_along_batch_and_ragged_dim(shape: tuple[int, ...]) -> None:
    parts = parts_of(4)
    dense = torch.rand(shape, dtype=torch.float64, requires_grad=True)
    weighted(nested(parts) * dense).backward()
    gradient, dense.grad = dense.grad, None
    whole = dense.expand(3, *dense.shape[-2:])
    weighted([p * whole[i, : len(p)] for i, p in enumerate(parts)]).backward()
    torch.testing.assert_close(gradient, dense.grad)


def test_operand_with_rows_between_parts_keeps_them() -> None:
    values = torch.arange(12.0).view(6, 2)
    offsets, lengths = torch.tensor([0, 2, 6]), torch.tensor([1, 3])
    x = torch.nested.nested_tensor_from_jagged(values, offsets, lengths)
    expected = [values[:1], values[2:5]]
    for ours, theirs in zip((x * torch.tensor([[[2.0]], [[3.0]]])).unbind(), expected, strict=True):
        torch.testing.assert_close(ours, theirs * (2 if len(theirs) == 1 else 3))
    assert not x.is_contiguous()
    assert x.contiguous().values().equal(torch.cat(expected))
    assert x.sum().item() == torch.cat(expected).sum().item()
    assert x.numel() == torch.numel(x) == 8
    assert x.to_padded_tensor(0.0).shape == (2, 3, 2)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_of_each_part_sees_that_part(layout: Any, is_causal: bool) -> None:
    def attend(x: Any) -> Any:
        q, k, v = (t.unflatten(-1, (2, -1)).transpose(-3, -2) for t in x.chunk(3, -1))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        return out.transpose(-3, -2).flatten(-2)

    check(attend, layout, (12,))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_products_of_nested_tensors_multiply_parts(layout: Any) -> None:
    parts = parts_of(4)
    x, dense = nested(parts, layout), torch.rand(3, 4, 2, dtype=torch.float64)
    for i, part in enumerate(torch.bmm(x, dense).unbind()):
        torch.testing.assert_close(part, parts[i] @ dense[i])
    gram = x.transpose(1, 2) @ x
    for ours, part in zip(gram.unbind(), parts, strict=True):
        torch.testing.assert_close(ours, part.t() @ part)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_embedding_and_dropout(layout: Any) -> None:
    tokens = [torch.tensor([1, 2]), torch.tensor([3, 0, 3])]
    weight = torch.rand(4, 2, requires_grad=True)
    x = F.embedding(torch.nested.nested_tensor(tokens, layout=layout), weight)
    for part, index in zip(x.unbind(), tokens, strict=True):
        assert part.equal(weight[index])
    x.sum().backward()
    assert weight.grad[:, 0].tolist() == [1, 1, 1, 2]
    kept = F.dropout(x, 0.5).values() != 0
    assert x.to_padded_tensor(0.0).shape == (2, 3, 2)
    assert F.dropout(x, 0.5, training=False).values().equal(x.values())
    assert kept.shape == x.values().shape


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_transformer_gives_what_padding_and_masking_gives(layout: Any) -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, dtype=torch.float64)
    encoder = torch.nn.TransformerEncoder(layer, 2)
    x = torch.nested.nested_tensor([part.detach() for part in parts_of(8)], layout=layout)
    x.requires_grad_()
    (encoder(x) ** 2).sum().backward()
    gradients = [param.grad for param in encoder.parameters()]
    encoder.zero_grad()
    padded = x.detach().to_padded_tensor(0.0).requires_grad_()
    is_padding = torch.arange(5) >= torch.tensor(SIZES).unsqueeze(1)
    out = encoder(padded, src_key_padding_mask=is_padding)
    (out[~is_padding] ** 2).sum().backward()
    for ours, param in zip(gradients, encoder.parameters(), strict=True):
        torch.testing.assert_close(ours, param.grad)
    torch.testing.assert_close(x.grad.to_padded_tensor(0.0), padded.grad)


@pytest.mark.parametrize("is_causal", [False, True])
def test_multihead_attention_of_nested_tensors_pads_weights(is_causal: bool) -> None:
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True, dtype=torch.float64)
    parts = parts_of(4)
    x = nested(parts)
    longest = max(len(part) for part in parts)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(longest, dtype=torch.float64)
    out, weights = attention(x, x, x, attn_mask=mask if is_causal else None, is_causal=is_causal)
    assert weights.shape == (len(parts), longest, longest)
    for ours, w, part in zip(out.unbind(), weights, parts, strict=True):
        n = len(part)
        own = {"attn_mask": mask[:n, :n], "is_causal": True} if is_causal else {}
        expected, expected_weights = attention(part, part, part, **own)
        torch.testing.assert_close(ours, expected)
        torch.testing.assert_close(w[:n, :n], expected_weights)
        assert w.sum().item() == pytest.approx(n)  # the rest is zeros
    assert attention(x, x, x, average_attn_weights=False)[1].dim() == 4


def test_multihead_attention_takes_nested_tensors_without_weights() -> None:
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True, dtype=torch.float64)
    parts = parts_of(4)
    x = nested(parts)
    out, weights = attention(x, x, x, need_weights=False)
    assert weights is None
    for ours, part in zip(out.unbind(), parts, strict=True):
        torch.testing.assert_close(ours, attention(part[None], part[None], part[None])[0][0])
    with pytest.raises(AssertionError, match="key_padding_mask"):
        attention(x, x, x, key_padding_mask=torch.zeros(len(parts), 5, dtype=torch.bool))
    with pytest.raises(AssertionError, match="batch_first"):
        torch.nn.MultiheadAttention(4, 2, dtype=torch.float64)(x, x, x, need_weights=False)


# Making, sizes, copies


def test_ragged_size_is_equal_only_to_itself() -> None:
    x, y = nested(parts_of(4)), nested(parts_of(4))
    assert x.shape == (x + 1).shape == x.clone().shape == copy.deepcopy(x.detach()).shape
    assert x.shape != y.shape
    assert x.size(1) != 3
    assert str(x.size(1) * 4) == f"4*{x.size(1)}"
    assert x.size(1) >= 2
    with pytest.raises(ValueError, match="not known"):
        _ = x.size(1) > 3
    with pytest.raises(RuntimeError, match="ragged sizes differ"):
        x + y
    values, offsets = torch.ones(9, 2), x.offsets()
    z = torch.nested.nested_tensor_from_jagged(values, offsets)
    again = torch.nested.nested_tensor_from_jagged(values, offsets)
    assert (z + again).values().sum() == 36


def test_padding_fills_up_and_cuts_layout_jagged() -> None:
    for layout in LAYOUTS:
        x = torch.nested.nested_tensor([[1.0], [2.0, 3.0]], layout=layout)
        assert x.to_padded_tensor(-1.0).tolist() == [[1, -1], [2, 3]]
        padded = torch.nested.to_padded_tensor(x, 0, (2, 4))
        assert padded.tolist() == [[1, 0, 0, 0], [2, 3, 0, 0]]
    assert x.to_padded_tensor(0, (2, 1)).tolist() == [[1], [2]]
    with pytest.raises(RuntimeError, match="less than"):
        x.to_padded_tensor(0, (1, 2))
    with pytest.raises(RuntimeError, match="not nested"):
        torch.ones(2).to_padded_tensor(0)


def test_strided_layout_holds_parts_of_any_sizes() -> None:
    parts = [torch.ones(2, 3), torch.zeros(1, 5)]
    x = torch.nested.nested_tensor(parts)
    assert x.to_padded_tensor(2.0).tolist()[1] == [[0] * 5, [2] * 5]
    assert (x.size(0), x.dim(), x.numel(), len(x)) == (2, 3, 11, 2)
    assert torch.numel(x) == 11
    with pytest.raises(RuntimeError, match="irregular"):
        x.size(1)
    with pytest.raises(RuntimeError, match="single ragged dim"):
        torch.nested.nested_tensor(parts, layout=torch.jagged)


def test_ragged_dim_may_be_any_but_the_first() -> None:
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(2, 4)], layout=torch.jagged)
    assert (x.size(1), x.values().shape) == (2, (2, 7))
    assert x.sum(2).tolist() == [[3, 3], [4, 4]]
    assert x.to_padded_tensor(0.0).shape == (2, 2, 4)


def test_narrow_and_masked_select_share_rows() -> None:
    x = torch.arange(10).view(2, 5)
    start, length = torch.tensor([0, 1]), torch.tensor([2, 3])
    cut = torch.nested.narrow(x, 1, start, length, layout=torch.jagged)
    assert [part.tolist() for part in cut.unbind()] == [[0, 1], [6, 7, 8]]
    x += 100
    assert [part.tolist() for part in cut.unbind()] == [[100, 101], [106, 107, 108]]
    whole = torch.nested.narrow(x, 1, 1, 2)
    assert [part.tolist() for part in whole.unbind()] == [[101, 102], [106, 107]]
    chosen = torch.nested.masked_select(x, x % 2 == 1)
    assert [part.tolist() for part in chosen.unbind()] == [[101, 103], [105, 107, 109]]


def test_masked_select_takes_rows_in_any_dims() -> None:
    x, mask = torch.arange(8).view(2, 2, 2), torch.tensor([[True, False], [True, True]])
    chosen = torch.nested.masked_select(x, mask)
    assert [part.tolist() for part in chosen.unbind()] == [[0], [2, 3], [4], [6, 7]]
    row = torch.nested.masked_select(torch.arange(3), torch.tensor([True, False, True]))
    assert row.values().tolist() == [0, 2] and row.offsets().tolist() == [0, 2]


def test_parts_of_layout_strided_can_be_narrowed() -> None:
    x = torch.nested.nested_tensor([[1.0], [2.0, 3.0], [4.0]], requires_grad=True)
    cut = x.narrow(0, 1, 2)
    assert [part.tolist() for part in cut.unbind()] == [[2, 3], [4]]
    assert [part.tolist() for part in x.narrow(0, -1, 1).unbind()] == [[4]]
    (grad,) = torch.autograd.grad(cut.to_padded_tensor(0.0).sum(), x)
    assert [part.tolist() for part in grad.unbind()] == [[0], [1, 1], [1]]
    with pytest.raises((RuntimeError, IndexError)):
        x.narrow(0, 2, 2)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_sizes_are_compared(layout: Any) -> None:
    x = torch.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=layout)
    assert x.is_same_size(x * 2) and not x.is_same_size(torch.ones(2, 2))
    assert not x.is_same_size(torch.nested.nested_tensor([[1.0], [3.0]], layout=layout))


def test_padding_of_no_parts() -> None:
    assert torch.nested.nested_tensor([]).to_padded_tensor(4.0).shape == (0,)


def test_what_libraries_read_of_layout_jagged() -> None:
    x = torch.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=torch.jagged)
    assert x._offsets.tolist() == [0, 2, 3] and x._lengths is None
    assert (x._min_seqlen, x._max_seqlen) == (1, 2)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_copies_and_files_keep_parts_and_requires_grad(layout: Any) -> None:
    x = torch.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=layout, requires_grad=True)
    file = io.BytesIO()
    torch.save({"x": x.detach(), "layout": layout}, file)
    file.seek(0)
    loaded = torch.load(file)
    copies = [copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), loaded["x"]]
    assert loaded["layout"] is layout
    for i, again in enumerate(copies):
        assert again.layout is layout
        assert [part.tolist() for part in again.unbind()] == [[1, 2], [3]]
        assert again.requires_grad == (i < 3)


def test_gradient_of_a_leaf_is_nested() -> None:
    for layout in LAYOUTS:
        x = torch.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=layout, requires_grad=True)
        y = x * x
        y.backward(torch.ones_like(y))
        assert [part.tolist() for part in x.grad.unbind()] == [[2, 4], [6]]
        (gradient,) = torch.autograd.grad((x * x).sum(), x)
        assert [part.tolist() for part in gradient.unbind()] == [[2, 4], [6]]
        x.grad = x.grad * 2
        assert x.grad.values().tolist() == [4, 8, 12]
        with pytest.raises(RuntimeError, match="nested"):
            x.grad = torch.ones(3)


def test_text_is_pytorchs() -> None:
    x = torch.nested.nested_tensor([[1.0, 2.0], [3.0]])
    assert repr(x) == "nested_tensor([\n  tensor([1., 2.]),\n  tensor([3.])\n])"
    y = torch.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=torch.jagged, requires_grad=True)
    size = y.size(1)
    assert repr(y) == (
        f"NestedTensor(size=(2, {size}), offsets=tensor([0, 2, 3]), requires_grad=True, "
        "contiguous=True)"
    )


# Mistakes


MISTAKES: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: F.conv1d(x, torch.ones(1, 4, 1)), NotImplementedError, "to_padded_tensor"),
    (lambda x: torch.stack([x, x]), NotImplementedError, "unbind"),
    (lambda x: x.sum(0), RuntimeError, "batch"),
    (lambda x: x.sum(5), IndexError, "out of range"),
    (lambda x: x.softmax(0), RuntimeError, "dim=0"),
    (lambda x: x.transpose(0, 1), ValueError, "batch"),
    (lambda x: x.permute(0, 1), ValueError, "2 dims for a tensor with"),
    (lambda x: x.chunk(2, 1), RuntimeError, "ragged"),
    (lambda x: x.flatten(), RuntimeError, "flatten"),
    (lambda x: x.view(-1), RuntimeError, "number of parts"),
    (lambda x: x.view(3, 2, 2, -1), RuntimeError, "no place"),
    (lambda x: x.view(3, 4, x.size(1)), RuntimeError, "mix"),
    (lambda x: x[0:2], RuntimeError, "dim=0"),
    (lambda x: x[:, 1:], RuntimeError, "ragged"),
    (lambda x: x[7], IndexError, "out of bounds"),
    (lambda x: x @ x, RuntimeError, "matmul"),
    (lambda x: x + torch.ones(7, 1, 4), RuntimeError, "batch"),
    (lambda x: x + torch.ones(3, 2, 4), RuntimeError, "at least 5"),
    (lambda x: F.linear(x.transpose(1, 2), WEIGHT), RuntimeError, "ragged"),
    (lambda x: F.layer_norm(x.transpose(1, 2), (9,)), RuntimeError, "ragged"),
    (lambda x: x.numpy(), RuntimeError, "values"),
    (lambda x: bool(x), RuntimeError, "ambiguous"),
    (lambda x: torch.nn.Parameter(x), TypeError, "parameter"),
    (lambda x: torch.cat([x, torch.ones(3, 1, 4)], -1), RuntimeError, "cat"),
    (lambda x: torch.nested.as_nested_tensor(x, layout=torch.strided), RuntimeError, "convert"),
]


@pytest.mark.parametrize("index", range(len(MISTAKES)))
def test_mistake_says_what_to_do(index: int) -> None:
    call, kind, words = MISTAKES[index]
    with pytest.raises(kind, match=words):
        call(nested(parts_of(4)))


def test_parts_and_offsets_are_checked() -> None:
    jagged = torch.nested.nested_tensor_from_jagged
    values = torch.ones(3)
    for offsets in ([0.0, 3.0], [0, 4], [2, 1, 3], [-1, 3], [[0, 3]], []):
        with pytest.raises(RuntimeError):
            jagged(values, torch.tensor(offsets))
    with pytest.raises(RuntimeError, match="At least one"):
        jagged(values)
    with pytest.raises(RuntimeError, match="jagged_dim"):
        jagged(values, torch.tensor([0, 3]), jagged_dim=2)
    with pytest.raises(TypeError, match="plain Tensor"):
        jagged([1.0], torch.tensor([0, 1]))
    for parts in ([], [torch.tensor(1.0)], [torch.ones(1), torch.ones(1, 1)]):
        with pytest.raises(RuntimeError):
            torch.nested.nested_tensor(parts, layout=torch.jagged)
    with pytest.raises(TypeError):
        torch.nested.nested_tensor(None)
    with pytest.raises(TypeError):
        torch.nested.as_nested_tensor([[1.0], [2.0]])
    assert jagged(torch.ones(0, 2), torch.tensor([0])).sum().item() == 0
