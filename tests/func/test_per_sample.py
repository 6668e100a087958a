"""Gradients of each sample, and ensembles, of whole models: equal to loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as rl
from rushlight import nn
from rushlight.func import functional_call, grad, stack_module_state, vmap

F = nn.functional
COUNT = 4
CLASSES = 5


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, CLASSES)
    )


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.GroupNorm(2, 4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3, stride=2, groups=2, bias=False),
        nn.SiLU(),
        nn.AvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, CLASSES),
    )


def batch_norm_cnn() -> nn.Module:
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, CLASSES)
    )
    return rl.func.replace_all_batch_norm_modules_(net)


class Transformer(nn.Module):
    """One block of causal attention over embedded tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.norm, self.last_norm = nn.LayerNorm(8), nn.LayerNorm(8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        self.head = nn.Linear(8, CLASSES)

    def forward(self, tokens: Any) -> Any:
        x = self.embedding(tokens)
        n, length, width = x.shape
        q, k, v = (
            t.reshape(n, length, 2, 4).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1)
        )
        scores = q @ k.mT / 2
        mask = rl.triu(rl.ones(length, length, dtype=rl.bool), 1)
        weights = scores.masked_fill(mask, -float("inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(n, length, width))
        x = x + self.mlp(self.last_norm(x))
        return self.head(x[:, -1])


class Recurrent(nn.Module):
    """A recurrent network written out."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(9, 6), nn.Linear(6, CLASSES)

    def forward(self, x: Any) -> Any:
        state = x.new_zeros(x.shape[0], 6)
        for step in x.unbind(1):
            state = rl.tanh(self.inner(rl.cat([step, state], -1)))
        return self.outer(state)


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[int], Any]]] = {
    "mlp": (mlp, lambda n: rl.randn(n, 6)),
    "cnn": (cnn, lambda n: rl.randn(n, 2, 6, 6)),
    "batch_norm_cnn": (batch_norm_cnn, lambda n: rl.randn(n, 2, 6, 6)),
    "transformer": (Transformer, lambda n: rl.randint(0, 11, (n, 7))),
    "recurrent": (Recurrent, lambda n: rl.randn(n, 4, 3)),
}


def made(name: str) -> tuple[nn.Module, Any, Any]:
    rl.manual_seed(4)
    make, inputs = CASES[name]
    x = inputs(COUNT)
    model = make().double()
    return model, x if x.dtype == rl.int64 else x.double(), rl.randint(0, CLASSES, (COUNT,))


def parameters(model: nn.Module) -> dict[str, Any]:
    return {name: p.detach() for name, p in model.named_parameters()}


def assert_same(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        rl.testing.assert_close(actual[name], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_gradient_of_each_sample(name: str) -> None:
    model, x, y = made(name)

    def loss(params: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(functional_call(model, params, (x[None],)), y[None])

    params = parameters(model)
    each = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    loop = [grad(loss)(params, x[i], y[i]) for i in range(COUNT)]
    assert_same(each, {key: rl.stack([one[key] for one in loop]) for key in params})
    chunked = vmap(grad(loss), in_dims=(None, 0, 0), chunk_size=3)(params, x, y)
    assert_same(chunked, each)


@pytest.mark.parametrize("name", CASES)
def test_ensemble(name: str) -> None:
    rl.manual_seed(9)
    models = [CASES[name][0]().double() for _ in range(3)]
    _, x, y = made(name)
    params, buffers = stack_module_state(models)
    base = models[0]

    def call(params: Any, buffers: Any, x: Any) -> Any:
        return functional_call(base, (params, buffers), (x,))

    outputs = vmap(call, in_dims=(0, 0, None))(params, buffers, x)
    rl.testing.assert_close(outputs, rl.stack([model(x) for model in models]))

    def loss(params: Any, buffers: Any) -> Any:
        return F.cross_entropy(call(params, buffers, x), y)

    each = vmap(grad(loss))(params, buffers)
    for i, model in enumerate(models):
        F.cross_entropy(model(x), y).backward()
        for key, parameter in model.named_parameters():
            rl.testing.assert_close(each[key][i], parameter.grad, rtol=1e-9, atol=1e-12)


def test_forward_mode_of_a_model() -> None:
    model, x, y = made("transformer")
    params = parameters(model)
    along = {key: rl.randn_like(p) for key, p in params.items()}

    def loss(params: Any) -> Any:
        return F.cross_entropy(functional_call(model, params, (x,)), y)

    _, slope = rl.func.jvp(loss, (params,), (along,))
    gradient = grad(loss)(params)
    expected = sum((gradient[key] * along[key]).sum() for key in params)
    rl.testing.assert_close(slope, expected, rtol=1e-9, atol=1e-12)


def test_named_results_keep_their_names() -> None:
    found = vmap(rl.linalg.svd)(rl.randn(3, 4, 2))
    assert type(found) is type(rl.linalg.svd(rl.eye(2)))
    assert found.S.shape == (3, 2)


def test_norms_of_the_gradients_of_samples() -> None:
    model, x, y = made("mlp")
    params = parameters(model)

    def loss(params: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(functional_call(model, params, (x,)), y)

    each = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    norms = sum((g**2).flatten(1).sum(1) for g in each.values()).sqrt()
    for i in range(COUNT):
        one = grad(loss)(params, x[i], y[i])
        expected = sum((g**2).sum() for g in one.values()).sqrt()
        rl.testing.assert_close(norms[i], expected)
