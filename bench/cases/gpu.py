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


@case("gpu: compiled GELU by hand, 64M floats", "gpu", 1.1)
def gpu_compiled_gelu(torch: Any) -> Call:
    x = torch.randn(MILLIONS_64, device="cuda")
    compiled = torch.compile(
        lambda x: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))
    )
    return lambda: compiled(x)


@case("gpu: gelu, 64M bfloat16", "gpu", 1.0)
def gpu_gelu_half(torch: Any) -> Call:
    a = torch.randn(MILLIONS_64, device="cuda").to(torch.bfloat16)
    return lambda: torch.nn.functional.gelu(a)


@case("gpu: add a row, 16384x4096", "gpu", 1.0)
def gpu_add_row(torch: Any) -> Call:
    a, row = torch.randn(16384, 4096, device="cuda"), torch.randn(4096, device="cuda")
    return lambda: a + row


@case("gpu: copy of the transposed, 8192x8192", "gpu", 1.0)
def gpu_transpose(torch: Any) -> Call:
    a = torch.randn(8192, 8192, device="cuda")
    return lambda: a.t().contiguous()


@case("gpu: sum of columns, 16384x4096", "gpu", 1.0)
def gpu_sum_columns(torch: Any) -> Call:
    a = torch.randn(16384, 4096, device="cuda")
    return lambda: a.sum(0)


@case("gpu: layer_norm forward + backward, 16384x1024, bfloat16", "gpu", 1.1)
def gpu_layer_norm_backward(torch: Any) -> Call:
    a = torch.randn(16384, 1024, device="cuda").to(torch.bfloat16).requires_grad_()
    layer = torch.nn.LayerNorm(1024).to("cuda").to(torch.bfloat16)
    g = torch.ones_like(a)
    return lambda: torch.autograd.grad(layer(a), a, g)


@case("gpu: causal attention, 4x16x2048x64, bfloat16", "gpu", 2.0)
def gpu_attention(torch: Any) -> Call:
    q, k, v = (torch.randn(4, 16, 2048, 64, device="cuda").to(torch.bfloat16) for _ in range(3))
    attend = torch.nn.functional.scaled_dot_product_attention
    return lambda: attend(q, k, v, is_causal=True)


@case("gpu: embedding backward, 65536 of 32768x512", "gpu", 1.5)
def gpu_embedding_backward(torch: Any) -> Call:
    table = torch.randn(32768, 512, device="cuda", requires_grad=True)
    index = torch.randint(0, 32768, (65536,), device="cuda")
    g = torch.ones(65536, 512, device="cuda")
    return lambda: torch.autograd.grad(torch.nn.functional.embedding(index, table), table, g)


@case("gpu: cumsum, 16384x4096", "gpu", 1.1)
def gpu_cumsum(torch: Any) -> Call:
    a = torch.randn(16384, 4096, device="cuda")
    return lambda: a.cumsum(1)


@case("gpu: sort, 16M floats", "gpu", 1.5)
def gpu_sort(torch: Any) -> Call:
    a = torch.randn(1 << 24, device="cuda")
    return lambda: a.sort()


@case("gpu: conv2d 3x3, 64x64x56x56, bfloat16, channels_last", "gpu", 1.1)
def gpu_convolution(torch: Any) -> Call:
    a = torch.randn(64, 64, 56, 56, device="cuda").to(torch.bfloat16)
    layer = torch.nn.Conv2d(64, 64, 3, padding=1, bias=False).to("cuda").to(torch.bfloat16)
    a, layer = (x.to(memory_format=torch.channels_last) for x in (a, layer))
    return lambda: layer(a)


@case("gpu: fft, 1024x16384", "gpu", 2.0)
def gpu_fft(torch: Any) -> Call:
    a = torch.randn(1024, 16384, device="cuda").to(torch.complex64)
    return lambda: torch.fft.fft(a)


@case("gpu: Adam step, 100 parameters of 1024x256", "gpu", 1.1)
def gpu_adam(torch: Any) -> Call:
    parameters = [torch.nn.Parameter(torch.randn(1024, 256, device="cuda")) for _ in range(100)]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    return torch.optim.Adam(parameters, lr=1e-3).step


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
