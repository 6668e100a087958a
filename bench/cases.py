"""The benchmark cases: each is a function that takes the framework and returns the call to time.

A case uses only the API that Rushlight and PyTorch share, so that both run the same code. It owns
its inputs; making them is not timed. Goals are ratios to PyTorch's time: at most this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Call = Callable[[], Any]
Make = Callable[[Any], Call]

MILLIONS_4 = 2048 * 2048


@dataclass(frozen=True)
class Case:
    name: str
    suite: str  # "ops", "models" or "gpu"
    goal: float
    make: Make


CASES: list[Case] = []


def case(name: str, suite: str, goal: float) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        CASES.append(Case(name, suite, goal, make))
        return make

    return register


# Small tensors: the cost of a call.


@case("a + b, 8 floats", "ops", 0.30)
def add_small(torch: Any) -> Call:
    a, b = torch.randn(8), torch.randn(8)
    return lambda: a + b


@case("a + 1.5, 8 floats", "ops", 0.30)
def add_scalar(torch: Any) -> Call:
    a = torch.randn(8)
    return lambda: a + 1.5


@case("tracked a + b, 8 floats", "ops", 0.30)
def add_tracked(torch: Any) -> Call:
    a, b = torch.randn(8, requires_grad=True), torch.randn(8)
    return lambda: a + b


@case("view + slice + reshape", "ops", 0.5)
def views(torch: Any) -> Call:
    a = torch.randn(8, 8)
    return lambda: a.view(4, 16)[1:3].reshape(-1)


@case("matmul 16x16", "ops", 0.5)
def matmul_small(torch: Any) -> Call:
    a, b = torch.randn(16, 16), torch.randn(16, 16)
    return lambda: a @ b


@case(".item()", "ops", 0.5)
def item(torch: Any) -> Call:
    a = torch.tensor(1.5)
    return lambda: a.item()


@case("((a*b).tanh()+b).sum().backward(), 8 floats", "ops", 0.30)
def backward_small(torch: Any) -> Call:
    a, b = torch.randn(8, requires_grad=True), torch.randn(8, requires_grad=True)
    return lambda: ((a * b).tanh() + b).sum().backward()


# Large tensors: the speed of a kernel.


@case("add, 4M floats", "ops", 1.0)
def add_large(torch: Any) -> Call:
    a, b = torch.randn(MILLIONS_4), torch.randn(MILLIONS_4)
    return lambda: a + b


@case("add_, 4M floats", "ops", 1.0)
def add_in_place(torch: Any) -> Call:
    a, b = torch.randn(MILLIONS_4), torch.randn(MILLIONS_4)
    return lambda: a.add_(b)


@case("exp, 4M floats", "ops", 1.0)
def exp_large(torch: Any) -> Call:
    a = torch.randn(MILLIONS_4)
    return lambda: a.exp()


@case("tanh, 4M floats", "ops", 1.0)
def tanh_large(torch: Any) -> Call:
    a = torch.randn(MILLIONS_4)
    return lambda: a.tanh()


@case("gelu, 4M floats", "ops", 1.0)
def gelu_large(torch: Any) -> Call:
    a, gelu = torch.randn(MILLIONS_4), torch.nn.functional.gelu
    return lambda: gelu(a)


@case("sum, 2048x2048", "ops", 1.0)
def sum_large(torch: Any) -> Call:
    a = torch.randn(2048, 2048)
    return lambda: a.sum()


@case("sum(0), 2048x2048", "ops", 1.0)
def sum_columns(torch: Any) -> Call:
    a = torch.randn(2048, 2048)
    return lambda: a.sum(0)


@case("sum(1), 2048x2048", "ops", 1.0)
def sum_rows(torch: Any) -> Call:
    a = torch.randn(2048, 2048)
    return lambda: a.sum(1)


@case("where, 4M floats", "ops", 1.0)
def where_large(torch: Any) -> Call:
    a, b = torch.randn(MILLIONS_4), torch.randn(MILLIONS_4)
    condition = a > b
    return lambda: torch.where(condition, a, b)


@case("sparse 10k x 10k, 100k entries @ 10k x 64, backward", "ops", 1.0)
def sparse_product(torch: Any) -> Call:
    indices = torch.randint(0, 10_000, (2, 100_000))
    a = torch.sparse_coo_tensor(indices, torch.randn(100_000), (10_000, 10_000)).coalesce()
    x = torch.randn(10_000, 64, requires_grad=True)
    return lambda: torch.sparse.mm(a, x).sum().backward()


@case("softmax, 4096x1000", "ops", 1.0)
def softmax_large(torch: Any) -> Call:
    a = torch.randn(4096, 1000)
    return lambda: a.softmax(-1)


@case("layer_norm, 4096x1000", "ops", 1.0)
def layer_norm_large(torch: Any) -> Call:
    a, weight, bias = torch.randn(4096, 1000), torch.randn(1000), torch.randn(1000)
    layer_norm = torch.nn.functional.layer_norm
    return lambda: layer_norm(a, (1000,), weight, bias)


@case("(a*2+b).relu(), 4M floats", "ops", 0.7)
def chain_large(torch: Any) -> Call:
    a, b = torch.randn(MILLIONS_4), torch.randn(MILLIONS_4)
    return lambda: (a * 2 + b).relu()


@case("matmul 1024x1024, float32", "ops", 1.05)
def matmul_float32(torch: Any) -> Call:
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    return lambda: a @ b


@case("matmul 1024x1024, bfloat16", "ops", 0.6)
def matmul_bfloat16(torch: Any) -> Call:
    a, b = (torch.randn(1024, 1024).to(torch.bfloat16) for _ in range(2))
    return lambda: a @ b


@case("conv 3x3, 64 channels, 8x64x56x56, inference", "ops", 1.0)
def conv_inference(torch: Any) -> Call:
    layer, x = torch.nn.Conv2d(64, 64, 3, padding=1), torch.randn(8, 64, 56, 56)

    def call() -> Any:
        with torch.no_grad():
            return layer(x)

    return call


# Functions of tensors.


@case("cumsum, 4M floats", "ops", 1.0)
def cumsum_large(torch: Any) -> Call:
    a = torch.randn(MILLIONS_4)
    return lambda: a.cumsum(0)


@case("cumsum(0), 1000x1000", "ops", 1.0)
def cumsum_columns(torch: Any) -> Call:
    a = torch.randn(1000, 1000)
    return lambda: a.cumsum(0)


@case("cumsum(1), 1000x1000", "ops", 1.0)
def cumsum_rows(torch: Any) -> Call:
    a = torch.randn(1000, 1000)
    return lambda: a.cumsum(1)


@case("sort, 1M floats", "ops", 1.0)
def sort_large(torch: Any) -> Call:
    a = torch.randn(1 << 20)
    return lambda: a.sort()


@case("topk 1000 of 1M floats", "ops", 1.0)
def topk_large(torch: Any) -> Call:
    a = torch.randn(1 << 20)
    return lambda: a.topk(1000)


@case("topk 10, 100x10000", "ops", 1.0)
def topk_rows(torch: Any) -> Call:
    a = torch.randn(100, 10000)
    return lambda: a.topk(10)


@case("argmax, 4M floats", "ops", 1.0)
def argmax_large(torch: Any) -> Call:
    a = torch.randn(MILLIONS_4)
    return lambda: a.argmax()


@case("argmax(1), 2048x2048", "ops", 1.0)
def argmax_rows(torch: Any) -> Call:
    a = torch.randn(2048, 2048)
    return lambda: a.argmax(1)


@case("kthvalue, 1M floats", "ops", 1.0)
def kthvalue_large(torch: Any) -> Call:
    a = torch.randn(1 << 20)
    return lambda: a.kthvalue(1 << 18)


@case("median, 1M floats", "ops", 1.0)
def median_large(torch: Any) -> Call:
    a = torch.randn(1 << 20)
    return lambda: a.median()


@case("einsum bhqd,bhkd->bhqk, 8x8x256x64", "ops", 1.0)
def einsum_attention(torch: Any) -> Call:
    q, k = torch.randn(8, 8, 256, 64), torch.randn(8, 8, 256, 64)
    return lambda: torch.einsum("bhqd,bhkd->bhqk", q, k)


@case("50,000 rows of 100,000x64 by index", "ops", 1.0)
def index_rows(torch: Any) -> Call:
    a, rows = torch.randn(100_000, 64), torch.randint(0, 100_000, (50_000,))
    return lambda: a[rows]


@case("mask select, 4M floats", "ops", 1.0)
def mask_select(torch: Any) -> Call:
    a = torch.randn(MILLIONS_4)
    mask = a > 0
    return lambda: a[mask]


@case("cat of four, 4M floats", "ops", 1.0)
def cat(torch: Any) -> Call:
    parts = [torch.randn(1024, 1024) for _ in range(4)]
    return lambda: torch.cat(parts, dim=1)


@case("transpose copy, 2048x2048", "ops", 1.0)
def transpose_copy(torch: Any) -> Call:
    a = torch.randn(2048, 2048)
    return lambda: a.t().contiguous()


@case("NCHW to NHWC copy, 16x64x56x56", "ops", 1.0)
def channels_last_copy(torch: Any) -> Call:
    a = torch.randn(16, 64, 56, 56)
    return lambda: a.contiguous(memory_format=torch.channels_last)


@case("cast float32 to bfloat16, 4M floats", "ops", 1.0)
def cast(torch: Any) -> Call:
    a = torch.randn(MILLIONS_4)
    return lambda: a.bfloat16()


@case("randn, 4M floats", "ops", 0.5)
def randn(torch: Any) -> Call:
    return lambda: torch.randn(MILLIONS_4)


@case("exponential_, 4M floats", "ops", 1.0)
def exponential(torch: Any) -> Call:
    a = torch.empty(MILLIONS_4)
    return lambda: a.exponential_()


@case("randperm, 1M", "ops", 1.0)
def randperm(torch: Any) -> Call:
    return lambda: torch.randperm(1_000_000)


@case("multinomial, 10 of 1000x100", "ops", 1.0)
def multinomial(torch: Any) -> Call:
    weights = torch.rand(1000, 100)
    return lambda: torch.multinomial(weights, 10)


@case("poisson, 256k floats", "ops", 1.0)
def poisson(torch: Any) -> Call:
    rates = torch.full((1 << 18,), 30.0)
    return lambda: torch.poisson(rates)


@case("bmm, 64 of 128x128", "ops", 1.0)
def bmm(torch: Any) -> Call:
    a, b = torch.randn(64, 128, 128), torch.randn(64, 128, 128)
    return lambda: torch.bmm(a, b)


@case("matrix @ vector, 2048x2048", "ops", 1.0)
def matvec(torch: Any) -> Call:
    a, b = torch.randn(2048, 2048), torch.randn(2048)
    return lambda: a @ b


@case("matmul 512x512, float64", "ops", 1.0)
def matmul_double(torch: Any) -> Call:
    a, b = (torch.randn(512, 512, dtype=torch.float64) for _ in range(2))
    return lambda: a @ b


@case("svd, 200x200", "ops", 1.0)
def svd(torch: Any) -> Call:
    a = torch.randn(200, 200)
    return lambda: torch.linalg.svd(a)


@case("solve, 500x500", "ops", 1.0)
def solve(torch: Any) -> Call:
    a, b = torch.randn(500, 500), torch.randn(500, 500)
    return lambda: torch.linalg.solve(a, b)


@case("fft2, 512x512", "ops", 1.0)
def fft2(torch: Any) -> Call:
    a = torch.randn(512, 512, dtype=torch.complex64)
    return lambda: torch.fft.fft2(a)


@case("fft, 1M complex64", "ops", 1.0)
def fft_long(torch: Any) -> Call:
    z, fft = torch.complex(torch.randn(1 << 20), torch.randn(1 << 20)), torch.fft.fft
    return lambda: fft(z)


@case("rfft, 1000x1024", "ops", 1.0)
def rfft_rows(torch: Any) -> Call:
    a, rfft = torch.randn(1000, 1024), torch.fft.rfft
    return lambda: rfft(a)


@case("stft, 8x16000, frames of 1024", "ops", 1.0)
def stft_frames(torch: Any) -> Call:
    a, window, stft = torch.randn(8, 16000), torch.hann_window(1024), torch.stft
    return lambda: stft(a, 1024, window=window, return_complex=True)


# Layers, optimizers and training steps.


@case("Linear(16, 16) forward + backward, 4 rows", "models", 0.30)
def linear_small(torch: Any) -> Call:
    layer, x = torch.nn.Linear(16, 16), torch.randn(4, 16)
    return lambda: layer(x).sum().backward()


def parameters_with_grads(torch: Any) -> list[Any]:
    parameters = [torch.nn.Parameter(torch.randn(8, 8)) for _ in range(20)]
    for parameter in parameters:
        parameter.grad = torch.randn(8, 8)
    return parameters


@case("Adam step, 20 parameters of 8x8", "models", 0.30)
def adam_step(torch: Any) -> Call:
    return torch.optim.Adam(parameters_with_grads(torch), lr=1e-3).step


@case("SGD step, 20 parameters of 8x8", "models", 0.30)
def sgd_step(torch: Any) -> Call:
    return torch.optim.SGD(parameters_with_grads(torch), lr=1e-6).step


def training_step(torch: Any, net: Any, x: Any, labels: Any) -> Call:
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    cross_entropy = torch.nn.functional.cross_entropy

    def call() -> None:
        optimizer.zero_grad()
        cross_entropy(net(x), labels).backward()
        optimizer.step()

    return call


@case("10-32-3 MLP training step, batch 16", "models", 0.35)
def mlp_step(torch: Any) -> Call:
    nn = torch.nn
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
    return training_step(torch, net, torch.randn(16, 10), torch.randint(0, 3, (16,)))


@case("conv 3x3, 64 channels, 8x64x56x56, training step", "models", 1.0)
def conv_step(torch: Any) -> Call:
    layer = torch.nn.Conv2d(64, 64, 3, padding=1)
    x, grad = torch.randn(8, 64, 56, 56, requires_grad=True), torch.randn(8, 64, 56, 56)

    def call() -> None:
        x.grad = None  # as in the middle of a network, where the input's gradient is passed on
        layer.zero_grad()
        layer(x).backward(grad)

    return call


@case("MNIST CNN training step, batch 64", "models", 0.9)
def mnist_step(torch: Any) -> Call:
    nn = torch.nn
    net = nn.Sequential(  # the network of the PyTorch examples
        nn.Conv2d(1, 32, 3),  # (64, 32, 26, 26)
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),  # (64, 64, 24, 24)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (64, 64, 12, 12)
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(9216, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 10),
    )
    return training_step(torch, net, torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,)))


# The GPU. Timing ends when it has done all that the calls queued.

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
