"""What handlers of __torch_dispatch__ are told is what PyTorch tells them."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")

# Expressions of which both show the same operators with the same arguments.
EXPRESSIONS = """
x + y | x + 2 | 2 + x | x - 2 | 3 - x | x * y | x / 2 | x**2 | x**y | 2**x | x > 0 | x == y
x // 2 | x % 2 | -x | x @ y.t() | x.sum() | x.sum(0) | x.sum(1, keepdim=True) | x.mean()
x.mean(0) | x.max() | x.max(0) | x.amax(0) | x[0] | x[i] | x[i, i] | x.view(3, 2)
x.reshape(3, 2) | x.t() | x.transpose(0, -1) | x.permute(1, 0) | x.unsqueeze(0) | x.squeeze()
x.expand(4, 2, 3) | x.clone() | x.detach() | x.contiguous() | x.double() | x.to(torch.float16)
x.cpu() | torch.cat([x, y]) | torch.stack([x, y]) | x.unbind() | torch.zeros(2)
torch.ones(2, dtype=torch.float64) | torch.full((2,), 3.0) | torch.empty(2) | torch.arange(5)
torch.arange(1, 5, 2) | torch.eye(3) | torch.linspace(0, 1, 5) | torch.randn(2) | torch.rand(2)
torch.randint(5, (2,)) | torch.randperm(4) | torch.zeros_like(x) | x.new_zeros(3)
torch.rand_like(x) | x.relu() | F.gelu(x) | F.softmax(x, -1) | F.log_softmax(x, -1)
x.sigmoid() | x.exp() | F.silu(x) | F.leaky_relu(x) | F.layer_norm(x, (3,))
F.group_norm(im, 2) | F.conv2d(im, im) | F.embedding(i, x) | F.nll_loss(x, i)
x.masked_fill(x > 0, 0.0) | torch.where(x > 0, x, y) | x.clamp(0, 1) | x.clamp(min=0)
torch.maximum(x, y) | x.cumsum(0) | x.sort() | x.topk(2) | x.argmax() | x.gather(0, i[None])
x.norm() | x.std() | torch.bmm(im[0], im[0]) | torch.addmm(y[0], x, y.t() @ x) | x.add_(1)
x.mul_(y) | x.zero_() | x.copy_(y) | x.fill_(1.0) | torch.add(x, y, out=z) | x[0, 0].item()
x.tolist() | x.all() | x.any() | torch.equal(x, y) | torch.allclose(x, y) | x.nonzero()
torch.tril(z) | x.flip(0) | x.roll(1, 0) | x.repeat(2, 1) | x.abs() | x.scatter(0, i[None], 1.0)
x.index_add(0, i, y) | x.index_select(0, i) | x.addcmul(y, y) | torch.lerp(x, y, 0.5)
x.uniform_() | x.normal_() | x.bernoulli_(0.5) | x.logsumexp(0) | x.prod() | x.isnan()
x.round() | x.is_contiguous() | repr(y) | torch.tensor([1, 2]) | torch.as_tensor([1.0]) | x[[0, 1]]
x.new_tensor([1]) | torch.Tensor([1, 2]) | torch.tensor(1.0, dtype=torch.float64)
""".replace("\n", "|")


def shown(lib: Any, expression: str) -> list[str]:
    """The calls that a mode sees, as text; tensors as their shapes."""
    dispatch = importlib.import_module(f"{lib.__name__}.utils._python_dispatch")

    def text(value: Any) -> str:
        if isinstance(value, lib.Tensor):
            return str(tuple(value.shape))
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(text, value))}]"
        return repr(value)

    class Log(dispatch.TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            named = {
                key: value
                for key, value in (kwargs or {}).items()
                if key not in ("device", "pin_memory")  # told by PyTorch in any case
            }
            calls.append(f"{func}{text(args)}{sorted((k, text(v)) for k, v in named.items())}")
            return func(*args, **(kwargs or {}))

    calls: list[str] = []
    x = lib.arange(6.0).view(2, 3) + 1
    names = {
        "torch": lib, "F": lib.nn.functional, "x": x, "y": x + 1, "z": lib.empty(2, 3),
        "i": lib.tensor([0, 1]), "im": lib.arange(16.0).view(2, 2, 2, 2),
    }  # fmt: skip
    with Log():
        eval(expression, names)
    return calls


def test_operators_and_arguments_are_pytorchs() -> None:
    different = {}
    for expression in filter(None, map(str.strip, EXPRESSIONS.split("|"))):
        expected, found = shown(torch, expression), shown(rushlight, expression)
        if expected != found:
            different[expression] = (expected, found)
    assert not different


FAKE_PROGRAMS: Any = {
    "network": lambda lib: lib.nn.Sequential(
        lib.nn.Conv2d(3, 4, 3), lib.nn.BatchNorm2d(4), lib.nn.Flatten(), lib.nn.Linear(144, 5)
    )(lib.randn(2, 3, 8, 8)),
    "attention": lambda lib: lib.nn.TransformerEncoderLayer(8, 2, 16)(lib.randn(4, 2, 8)),
    "recurrent": lambda lib: lib.nn.LSTM(3, 4)(lib.randn(5, 2, 3))[0],
    "on a GPU": lambda lib: lib.ones(2, device="cuda") * 2,
    "a number with it": lambda lib: lib.ones(2, device="cuda") + lib.tensor(1.0),
    "numbers": lambda lib: lib.zeros(lib.tensor(3), lib.tensor(2) * 2),
    "known": lambda lib: (lib.tensor(2) + 3).item(),
    "changed": lambda lib: lib.tensor(2).add_(3).item(),
    "in place": lambda lib: lib.ones(2, 1).squeeze_(1),
    "mask": lambda lib: lib.ones(3).masked_fill(lib.ones(3) > 0, 2.0),
    "loss": lambda lib: lib.nn.functional.cross_entropy(
        lib.randn(4, 3, requires_grad=True), lib.tensor([0, 1, 2, 0])
    ),
    "item": lambda lib: lib.ones(3).sum().item(),
    "if": lambda lib: bool(lib.ones(3).any()),
    "list": lambda lib: lib.ones(3).tolist(),
    "equal": lambda lib: lib.equal(lib.ones(3), lib.ones(3)),
    "nonzero": lambda lib: lib.ones(3).nonzero(),
    "index by a mask": lambda lib: lib.ones(3)[lib.ones(3) > 0],
    "unique": lambda lib: lib.ones(3).unique(),
    "two devices": lambda lib: lib.ones(2, device="cuda") + lib.ones(2),
    "wrong shapes": lambda lib: lib.ones(2, 3) @ lib.ones(2, 3),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FAKE_PROGRAMS)
def test_programs_without_data_give_or_refuse_the_same(name: str) -> None:
    def outcome(lib: Any) -> Any:
        fake = importlib.import_module(f"{lib.__name__}._subclasses.fake_tensor")
        try:
            with fake.FakeTensorMode():
                result = FAKE_PROGRAMS[name](lib)
        except Exception as error:
            return type(error).__name__
        if not fake.is_fake(result):
            return result
        return tuple(result.shape), str(result.dtype), str(result.device), result.requires_grad

    assert outcome(rushlight) == outcome(torch)
