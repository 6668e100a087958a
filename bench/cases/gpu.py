"""Kernels and a training step on the GPU; timing ends when it has done all that was queued."""

from __future__ import annotations

from typing import Any

from cases.case import Call, case
from cases.models import training_step

MILLIONS_64 = 1 << 26


@case("gpu: add, 8 floats", "gpu", 0.5)
def gpu_add_small(torch: Any) -> Call:
    a, b = (torch.randn(8, device="cuda") for _ in range(2))
    return lambda: a + b


@case("gpu: copy, 64M floats", "gpu", 1.0)
def gpu_copy(torch: Any) -> Call:
    a, b = (torch.randn(MILLIONS_64, device="cuda") for _ in range(2))
    return lambda: b.copy_(a)


@case("gpu: add, 64M floats", "gpu", 1.0)
def gpu_add(torch: Any) -> Call:
    a, b = (torch.randn(MILLIONS_64, device="cuda") for _ in range(2))
    return lambda: a + b


@case("gpu: gelu, 64M floats", "gpu", 1.0)
def gpu_gelu(torch: Any) -> Call:
    a = torch.randn(MILLIONS_64, device="cuda")
    return lambda: torch.nn.functional.gelu(a)


@case("gpu: sum, 64M floats", "gpu", 1.0)
def gpu_sum(torch: Any) -> Call:
    a = torch.randn(MILLIONS_64, device="cuda")
    return lambda: a.sum()


@case("gpu: matmul 8192x8192, bfloat16", "gpu", 1.05)
def gpu_matmul(torch: Any) -> Call:
    a, b = (torch.randn(8192, 8192, device="cuda").to(torch.bfloat16) for _ in range(2))
    return lambda: a @ b


@case("gpu: softmax, 16384x4096", "gpu", 1.1)
def gpu_softmax(torch: Any) -> Call:
    a = torch.randn(16384, 4096, device="cuda")
    return lambda: a.softmax(1)


@case("gpu: layer_norm, 16384x4096", "gpu", 1.1)
def gpu_layer_norm(torch: Any) -> Call:
    a = torch.randn(16384, 4096, device="cuda")
    layer = torch.nn.LayerNorm(4096).to("cuda")
    return lambda: layer(a)


@case("gpu: cross_entropy, 16384x4096", "gpu", 1.1)
def gpu_cross_entropy(torch: Any) -> Call:
    a = torch.randn(16384, 4096, device="cuda")
    labels = torch.randint(0, 4096, (16384,), device="cuda")
    return lambda: torch.nn.functional.cross_entropy(a, labels)


@case("gpu: digits training step, batch 64", "gpu", 0.6)
def gpu_digits_step(torch: Any) -> Call:
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),  # (64, 32, 8, 8)
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),  # (64, 64, 4, 4)
        nn.Flatten(),
        nn.Linear(1024, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    ).to("cuda")
    images = torch.randn(64, 1, 8, 8, device="cuda")
    labels = torch.randint(0, 10, (64,), device="cuda")
    return training_step(torch, net, images, labels)
