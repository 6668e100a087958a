"""Nested tensors behave as PyTorch's: results, text, gradients, classes of errors and files."""

import io
import re
from typing import Any

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

LAYOUTS = ["strided", "jagged"]
ARRAYS = [np.random.default_rng(i).normal(size=(n, 4)) for i, n in enumerate((3, 5, 2))]


def named(library: Any, layout: str) -> dict[str, Any]:
    """What the expressions below speak of."""
    parts = [library.from_numpy(array.copy()).requires_grad_() for array in ARRAYS]
    x = library.nested.as_nested_tensor(parts, layout=getattr(library, layout))
    generator = np.random.default_rng(9)

    def dense(*shape: int) -> Any:
        return library.from_numpy(generator.normal(size=shape))

    return {
        "torch": library, "F": library.nn.functional, "nested": library.nested, "x": x,
        "parts": parts, "jagged": library.jagged, "strided": library.strided, "w": dense(4, 6),
        "row": dense(4), "per_part": dense(3, 1, 4), "padded": dense(3, 5, 4),
        "batch": dense(3, 4, 2),
        "tokens": library.nested.nested_tensor(
            [library.tensor([1, 2]), library.tensor([3])], layout=getattr(library, layout)
        ),
        "offsets": library.tensor([0, 2, 6]), "lengths": library.tensor([1, 3]),
        "values": library.arange(12.0).view(6, 2), "mask": library.tensor([[True, False, True]]),
    }  # fmt: skip


def described(value: Any) -> Any:
    """What a result is, in terms that both libraries share: its facts, and its arrays."""
    if isinstance(value, (tuple, list)) and not isinstance(value, (torch.Size, pytorch.Size)):
        items = [described(item) for item in value]
        return [item[0] for item in items], [array for item in items for array in item[1]]
    if not hasattr(value, "layout") or not hasattr(value, "dtype"):
        return re.sub(r"j\d+", "j", str(value)), []
    dtype = str(value.dtype).rpartition(".")[2]
    if not value.is_nested:
        return (dtype, tuple(value.shape)), [value.detach().numpy()]
    name = str(value.layout).rpartition(".")[2]
    shape = re.sub(r"j\d+", "j", str(value.shape)) if name == "jagged" else value.dim()
    return (dtype, name, shape), [part.detach().numpy() for part in value.unbind()]


def same(ours: Any, theirs: Any) -> None:
    (facts, arrays), (their_facts, their_arrays) = described(ours), described(theirs)
    assert facts == their_facts
    for a, b in zip(arrays, their_arrays, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def learns(value: Any) -> bool:
    return getattr(value, "requires_grad", False) and value.dtype.is_floating_point


def backward(value: Any) -> None:
    (value * value).values().sum().backward() if value.is_nested else (
        value * value
    ).sum().backward()


BOTH = [
    "x", "x + 1", "x + x", "x * 2 - x / 3", "-x", "x > 0", "x.sin()", "x.abs()", "F.gelu(x)",
    "F.relu(x)", "x.tanh()", "F.linear(x, w.t())", "x.transpose(1, 2)", "x.softmax(-1)",
    "x.softmax(1)", "x.clone()", "x.detach()", "torch.zeros_like(x)", "x.to(torch.float32)",
    "x.chunk(2, -1)", "x.unsqueeze(-1)", "x.unsqueeze(1)", "x.unsqueeze(-1).squeeze(-1)",
    "x.reshape(3, -1, 2, 2)", "x[1]", "x[0, 1]", "x.unbind()",
    "x.to_padded_tensor(7.0)", "nested.to_padded_tensor(x, 0.5, (3, 6, 4))", "x.numel()", "x.dim()",
    "x.size(0)", "x.size(2)", "x.is_nested", "x.sum(-1, keepdim=True)", "F.embedding(tokens, w)",
    "x.layout", "x.dtype", "F.dropout(x, 0.3, False)",
    "nested.nested_tensor(parts, layout=x.layout)", "x.values()", "x.is_leaf", "x.requires_grad",
    "nested.nested_tensor([[1, 2], [3]], layout=x.layout)", "x.masked_fill(x > 0, 0.0)",
    "nested.as_nested_tensor(padded, layout=x.layout)",
    "nested.as_nested_tensor(x, layout=x.layout) is x",
    "nested.nested_tensor(parts, dtype=torch.int64, layout=x.layout)", "x.isnan()",
    "F.layer_norm(x, (4,), row, row)",
]  # fmt: skip
JAGGED = [
    "torch.cat([x, x], -1)",
    "x.shape", "x.offsets()", "x.lengths()", "x.size()", "len(x)", "x.stride()",
    "x.is_contiguous()",
    "x + row", "x * per_part", "x - padded", "row - x", "1 - x", "x ** 2", "x == x", "x.sigmoid()",
    "x.sum()", "x.mean()", "x.sum(1)", "x.sum(-1)", "x.sum(1, keepdim=True)", "x.sum((0, 1))",
    "x.sum((0, 1, 2))", "x.mean(1)", "x.mean(-1)", "x.max()", "x.max(1)", "x.max(-1).values",
    "x.min(1)",
    "x.amax(1)", "x.amin(2)", "x.argmax(1)", "x.prod(1)", "(x > 0).any(1)", "(x > 0).all()",
    "x.log_softmax(-1)", "x.transpose(1, 2).shape", "x.transpose(1, 2).values()",
    "x.permute(0, 2, 1)", "x.unflatten(-1, [2, 2])", "x.unflatten(-1, [2, 2]).flatten(-2)",
    "x.view(3, x.size(1), 2, 2)", "x.view(3, -1, 1, 4)", "x.split([1, 3], -1)",
    "x.narrow(-1, 1, 2)",
    "x.select(-1, 0)", "x[..., 1]", "x.chunk(3, 0)", "x @ w", "x @ batch", "x.transpose(1, 2) @ x",
    "torch.bmm(x, batch)", "F.rms_norm(x, (4,))", "torch.where(x > 0, x, 0.0)", "x.clamp(-1, 1)",
    "x.transpose(1, 2).contiguous()", "x.transpose(1, 2).sum(2)", "torch.ones_like(x)",
    "nested.to_padded_tensor(x, 0.0, (3, 2, 4))", "torch.full_like(x, 3)", "list(x)",
    "nested.nested_tensor_from_jagged(values, offsets)", "x.transpose(1, 2).to_padded_tensor(0.0)",
    "nested.nested_tensor_from_jagged(values, lengths=torch.tensor([2, 4]))",
    "nested.nested_tensor_from_jagged(values, offsets, lengths)",
    "nested.nested_tensor_from_jagged(values, offsets, lengths).lengths()",
    "nested.nested_tensor_from_jagged(values, offsets, lengths).is_contiguous()",
    "nested.nested_tensor_from_jagged(values, offsets, lengths) * 2",
    "nested.nested_tensor_from_jagged(values, offsets, lengths).contiguous().values()",
    "nested.nested_tensor_from_jagged(values.t(), offsets, jagged_dim=2)",
    "nested.narrow(padded, 1, 0, torch.tensor([1, 5, 2]), layout=jagged)",
    "nested.narrow(padded, 1, torch.tensor([1, 0, 2]), torch.tensor([1, 5, 2]), layout=jagged)",
    "nested.masked_select(torch.arange(6).view(2, 3), mask)", "x._get_max_seqlen()",
    "nested.nested_tensor([torch.ones(2, 3), torch.ones(2, 4)], layout=jagged)",
    "(x.size(1) == (x + 1).size(1), x.size(1) == 3, x.size(1) >= 2, x.size(1) * 2)",
    "F.scaled_dot_product_attention(*[x.unflatten(-1, [2, 2]).transpose(1, 2)] * 3)",
]  # fmt: skip


# Where PyTorch's gradient mixes the parts.
NO_GRADIENT = {("jagged", "x.softmax(1)")}


@pytest.mark.parametrize(
    ("layout", "text"),
    [(layout, text) for layout in LAYOUTS for text in BOTH] + [("jagged", t) for t in JAGGED],
)
def test_results_and_gradients(layout: str, text: str) -> None:
    ours, theirs = named(torch, layout), named(pytorch, layout)
    result, expected = eval(text, ours), eval(text, theirs)
    same(result, expected)
    if not learns(expected) or (layout, text) in NO_GRADIENT:
        return
    try:
        backward(expected)
    except (RuntimeError, NotImplementedError, AttributeError, ValueError):
        pytest.skip("PyTorch does not differentiate it")
    backward(result)
    for a, b in zip(ours["parts"], theirs["parts"], strict=True):
        assert (a.grad is None) == (b.grad is None)
        if b.grad is not None:
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-9, atol=1e-12)


MISTAKES = [
    "x.sum(0)", "x.sum((0, 2))", "x.softmax(0)", "x.transpose(0, 1)", "x.unsqueeze(0)",
    "x.unbind(1)",
    "x.chunk(2, 1)", "x.split(1, 1)", "x.flatten()",
    "x + nested.nested_tensor(parts, layout=jagged)",
    "x[7]", "x @ x.transpose(1, 2)", "x.numpy()", "bool(x)", "x.item()", "torch.stack([x, x])",
    "nested.nested_tensor([], layout=jagged)", "nested.nested_tensor(None)", "x[0:2]",
    "nested.nested_tensor([torch.tensor(1.0)], layout=jagged)", "x.cross(x)", "x.tolist()",
    "nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 4)], layout=jagged)",
    "nested.nested_tensor([torch.ones(2), torch.ones(3, 4)], layout=jagged)",
    "nested.as_nested_tensor([[1.0], [2.0, 3.0]])", "nested.as_nested_tensor(row)",
    "nested.nested_tensor_from_jagged(values)", "torch.cat([x, x], 1)", "x.view(-1)",
    "nested.nested_tensor_from_jagged([1], offsets)", "nested.narrow(padded, 1, 0, lengths)",
    "F.conv2d(x, w)", "x.sort()", "x.size(9)", "int(x.size(1))", "x.size(1) > 3",
]  # fmt: skip
# What Rushlight gives, and where its class of error says more.
WIDER = {"x.sort()": "gives", "int(x.size(1))": "TypeError", "x.cross(x)": "NotImplementedError"}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_raise_the_same_class(text: str) -> None:
    def ended(names: dict[str, Any]) -> tuple[type, ...]:
        try:
            eval(text, names)
        except Exception as error:
            return type(error).__mro__
        return ()

    ours, theirs = ended(named(torch, "jagged")), ended(named(pytorch, "jagged"))
    assert theirs
    if text in WIDER:
        assert (ours[0].__name__ if ours else "gives") == WIDER[text]
    else:
        assert theirs[0] in ours, (ours, theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_text(layout: str) -> None:
    for text in (
        "x.detach()", "tokens", "nested.nested_tensor([values, values[:1]], layout=x.layout)",
        "nested.nested_tensor(parts, dtype=torch.float32, layout=x.layout)",
    ):  # fmt: skip
        ours, theirs = (repr(eval(text, named(library, layout))) for library in (torch, pytorch))
        assert re.sub(r"j\d+", "j", ours) == re.sub(r"j\d+", "j", theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_of_ours_are_read_by_pytorch(layout: str) -> None:
    file = io.BytesIO()
    torch.save(named(torch, layout)["x"].detach(), file)
    file.seek(0)
    same(named(torch, layout)["x"].detach(), pytorch.load(file))


def test_strided_files_of_pytorch_are_read() -> None:
    file = io.BytesIO()
    pytorch.save(named(pytorch, "strided")["x"].detach(), file)
    file.seek(0)
    same(torch.load(file), named(pytorch, "strided")["x"].detach())


PROGRAM = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        q, k, v = (
            project(x).unflatten(-1, [2, 4]).transpose(1, 2) for project in (self.q, self.k, self.v)
        )
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.0)
        return self.out(y.transpose(1, 2).flatten(-2))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend, self.norm1, self.norm2 = Attention(), nn.LayerNorm(8), nn.LayerNorm(8)
        self.maps = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.maps(self.norm2(x))


model = nn.Sequential(nn.Embedding(10, 8), Layer(), Layer(), nn.Linear(8, 10)).double()
with torch.no_grad():
    for i, param in enumerate(model.parameters()):
        param.copy_(torch.arange(param.numel()).view(param.shape).double().add(i).sin() / 3)
tokens = torch.nested.nested_tensor(
    [torch.tensor(row) for row in ([1, 2, 3], [4, 5, 6, 7, 8], [9])], layout=torch.jagged
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
losses = []
for _ in range(5):
    logits = model(tokens)
    loss = F.cross_entropy(logits.values(), (tokens.values() + 1) % 10)
    loss = loss + torch.stack([part.mean(0) for part in logits.unbind()]).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
"""


def test_training_a_ragged_transformer_goes_alike() -> None:
    runs = []
    for library in (torch, pytorch):
        names = {"torch": library, "nn": library.nn, "F": library.nn.functional}
        exec(PROGRAM, names)
        runs.append(names["losses"])
    np.testing.assert_allclose(*runs, rtol=1e-9)
