"""The benchmark cases of the tape: what recording, walking and freeing it costs.

They join those of cases.py, under the same rules.
"""

from __future__ import annotations

import math
from typing import Any

from cases import Call, case, training_step


@case("chain of 100 products, forward + backward, 8 floats", "ops", 0.35)
def chain_backward(torch: Any) -> Call:
    x = torch.ones(8, requires_grad=True)

    def call() -> None:
        y = x
        for _ in range(100):
            y = y * 1.01
        y.sum().backward()

    return call


@case("1,000 leaves into one sum, forward + backward", "ops", 0.35)
def fan_in_backward(torch: Any) -> Call:
    leaves = [torch.ones(8, requires_grad=True) for _ in range(1000)]
    return lambda: torch.stack(leaves).sum().backward()


@case("one leaf used 1,000 times, forward + backward", "ops", 0.35)
def fan_out_backward(torch: Any) -> Call:
    x = torch.ones(8, requires_grad=True)
    return lambda: torch.stack([x * 2.0 for _ in range(1000)]).sum().backward()


@case("backward of 64 paths that split and join", "ops", 0.35)
def diamond_backward(torch: Any) -> Call:
    x = torch.ones(8, requires_grad=True)

    def call() -> None:
        y = x
        for _ in range(64):
            y = (y + y) * 0.5
        y.sum().backward()

    return call


@case("grad of grad, tanh(x)^2, 8 floats", "ops", 0.35)
def double_backward(torch: Any) -> Call:
    x = torch.randn(8, requires_grad=True)

    def call() -> None:
        y = x.tanh()
        (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        g.sum().backward()

    return call


@case("10 writes through views, forward + backward", "ops", 0.35)
def views_backward(torch: Any) -> Call:
    x = torch.ones(10, 8, requires_grad=True)

    def call() -> None:
        y = x * 1.0
        for k in range(10):
            y[k].mul_(2.0)
        y.sum().backward()

    return call


def char_gpt(torch: Any, vocabulary: int, width: int, heads: int, layers: int, length: int) -> Any:
    """A GPT in the style of nanoGPT's smallest: attention written out, weights not tied."""
    nn, functional = torch.nn, torch.nn.functional
    blocked = torch.ones(length, length).tril() == 0

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch = x.shape[0]
            q, k, v = (
                part.view(batch, length, heads, width // heads).transpose(1, 2)
                for part in self.qkv(self.norm1(x)).split(width, dim=2)
            )  # (batch, heads, length, width / heads)
            scores = q @ k.transpose(-2, -1) / math.sqrt(width // heads)
            weights = scores.masked_fill(blocked, -math.inf).softmax(-1)
            mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
            x = x + self.proj(mixed)
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.places = nn.Embedding(length, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.places(torch.arange(length))
            return self.head(self.norm(self.blocks(x))).view(-1, vocabulary)

    return GPT()


@case("char-GPT training step, 4 layers of 128, 16x64", "models", 0.9)
def gpt_step(torch: Any) -> Call:
    net = char_gpt(torch, vocabulary=65, width=128, heads=4, layers=4, length=64)
    tokens = torch.randint(0, 65, (16, 64))
    return training_step(torch, net, tokens, torch.randint(0, 65, (16 * 64,)))
