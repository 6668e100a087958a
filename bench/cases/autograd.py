"""The benchmark cases of the tape: what recording, walking and freeing it costs."""

from __future__ import annotations

from typing import Any

from cases.case import Call, case


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
