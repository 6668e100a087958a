"""Programs of element-wise ops under torch.compile. PyTorch's needs a C++ compiler, and makes its
code while the case warms up.
"""

from __future__ import annotations

from typing import Any

from cases.case import MILLIONS_4, Call, case


@case("compiled: GELU by hand, 4M floats", "ops", 1.0)
def gelu(torch: Any) -> Call:
    x = torch.randn(MILLIONS_4)
    compiled = torch.compile(
        lambda x: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))
    )
    return lambda: compiled(x)


@case("compiled: Horner's rule, 4M floats", "ops", 1.5)
def horner(torch: Any) -> Call:
    x = torch.randn(MILLIONS_4)
    compiled = torch.compile(
        lambda x: ((((x * 0.1 + 0.2) * x + 0.3) * x + 0.4) * x + 0.5) * x + 0.6
    )
    return lambda: compiled(x)


@case("compiled: SwiGLU, 1M floats, forward + backward", "ops", 1.0)
def swiglu(torch: Any) -> Call:
    x, y, g = (torch.randn(1 << 20) for _ in range(3))
    x.requires_grad_()
    y.requires_grad_()
    compiled = torch.compile(lambda x, y: x * torch.sigmoid(x) * y)
    return lambda: torch.autograd.grad(compiled(x, y), (x, y), g)


@case("compiled: density of a normal distribution, 1M floats, forward + backward", "ops", 1.5)
def density(torch: Any) -> Call:
    x, g = torch.randn(1 << 20, requires_grad=True), torch.randn(1 << 20)
    compiled = torch.compile(lambda x: torch.exp(-0.5 * ((x - 0.3) / 1.7) ** 2) / (1.7 * 2.5066))
    return lambda: torch.autograd.grad(compiled(x), x, g)


@case("compiled: mean of a Huber loss by hand, 1M floats, forward + backward", "ops", 1.5)
def huber(torch: Any) -> Call:
    x, y = (torch.randn(1 << 20, requires_grad=True) for _ in range(2))

    def loss(x: Any, y: Any) -> Any:
        apart = (x - y).abs()
        return torch.where(apart < 1, 0.5 * apart * apart, apart - 0.5).mean()

    compiled = torch.compile(loss)
    return lambda: torch.autograd.grad(compiled(x, y), (x, y))


@case("compiled: RMS norm by hand, 2048x1024, bfloat16", "ops", 1.5)
def rms_norm(torch: Any) -> Call:
    x, weight = torch.randn(2048, 1024).bfloat16(), torch.ones(1024).bfloat16()

    def norm(x: Any, weight: Any) -> Any:
        wide = x.float()
        return (wide * (wide.square().mean(-1, keepdim=True) + 1e-6).rsqrt()).to(x.dtype) * weight

    compiled = torch.compile(norm)
    return lambda: compiled(x, weight)
