"""The cost of a call on small tensors, and the speed of the kernels on large ones."""

from __future__ import annotations

from typing import Any

from cases.case import MILLIONS_4, Call, case

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


@case("mul, 1M float16", "ops", 1.0)
def mul_float16(torch: Any) -> Call:
    a, b = (torch.randn(1024, 1024).to(torch.float16) for _ in range(2))
    return lambda: a * b


@case("mul, 1M bfloat16", "ops", 1.0)
def mul_bfloat16(torch: Any) -> Call:
    a, b = (torch.randn(1024, 1024).to(torch.bfloat16) for _ in range(2))
    return lambda: a * b


@case("mul, 1M complex64", "ops", 1.0)
def mul_complex(torch: Any) -> Call:
    a, b = (torch.randn(1024, 1024, dtype=torch.complex64) for _ in range(2))
    return lambda: a * b


@case("div, 1M complex64", "ops", 1.0)
def div_complex(torch: Any) -> Call:
    a, b = (torch.randn(1024, 1024, dtype=torch.complex64) for _ in range(2))
    return lambda: a / b


@case("amax(0), 1024x1024 uint8", "ops", 1.0)
def amax_bytes(torch: Any) -> Call:
    a = torch.randint(0, 256, (1024, 1024)).to(torch.uint8)
    return lambda: a.amax(0)


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


@case("2048 x 2048, a tenth of its 32 x 32 blocks @ 2048 x 64", "ops", 1.0)
def block_product(torch: Any) -> Call:
    used = (torch.rand(64, 64) < 0.1).repeat_interleave(32, 0).repeat_interleave(32, 1)
    a, x = (torch.randn(2048, 2048) * used).to_sparse_bsr(32), torch.randn(2048, 64)
    return lambda: a @ x


@case("softmax, 4096x1000", "ops", 1.0)
def softmax_large(torch: Any) -> Call:
    a = torch.randn(4096, 1000)
    return lambda: a.softmax(-1)


@case("layer_norm, 4096x1000", "ops", 1.0)
def layer_norm_large(torch: Any) -> Call:
    a, weight, bias = torch.randn(4096, 1000), torch.randn(1000), torch.randn(1000)
    layer_norm = torch.nn.functional.layer_norm
    return lambda: layer_norm(a, (1000,), weight, bias)


def group_norm(torch: Any, dtype: Any, channels_last: bool = False, backward: bool = False) -> Call:
    """As in the U-Net of a diffusion model."""
    x = torch.randn(8, 320, 32, 32).to(dtype)
    if channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    weight, bias = torch.randn(320).to(dtype), torch.randn(320).to(dtype)
    normalize, inputs = torch.nn.functional.group_norm, (x, weight, bias)
    if not backward:
        return lambda: normalize(x, 32, weight, bias)
    for input in inputs:
        input.requires_grad_()
    grad = torch.randn(8, 320, 32, 32).to(dtype)
    return lambda: torch.autograd.grad(normalize(x, 32, weight, bias), inputs, grad)


@case("group_norm, 8x320x32x32", "ops", 1.0)
def group_norm_large(torch: Any) -> Call:
    return group_norm(torch, torch.float32)


@case("group_norm, 8x320x32x32, backward", "ops", 1.0)
def group_norm_backward(torch: Any) -> Call:
    return group_norm(torch, torch.float32, backward=True)


@case("group_norm, 8x320x32x32, channels_last", "ops", 1.0)
def group_norm_channels_last(torch: Any) -> Call:
    return group_norm(torch, torch.float32, channels_last=True)


@case("group_norm, 8x320x32x32, bfloat16", "ops", 1.0)
def group_norm_bfloat16(torch: Any) -> Call:
    return group_norm(torch, torch.bfloat16)


@case("layer_norm, 8x10000, backward", "ops", 1.0)
def layer_norm_long_rows(torch: Any) -> Call:
    x, weight, bias = (torch.randn(n, requires_grad=True) for n in ((8, 10_000), 10_000, 10_000))
    layer_norm, grad = torch.nn.functional.layer_norm, torch.randn(8, 10_000)
    return lambda: torch.autograd.grad(
        layer_norm(x, (10_000,), weight, bias), (x, weight, bias), grad
    )


@case("nansum(1), 65536x16", "ops", 1.0)
def nansum_short_rows(torch: Any) -> Call:
    a = torch.randn(65_536, 16)
    return lambda: a.nansum(1)


def attention(torch: Any, *shape: int, backward: bool) -> Call:
    q, k, v = (torch.randn(shape, requires_grad=backward) for _ in range(3))
    attend, grad = torch.nn.functional.scaled_dot_product_attention, torch.randn(shape)
    if not backward:
        return lambda: attend(q, k, v, is_causal=True)

    def call() -> None:
        q.grad = k.grad = v.grad = None
        attend(q, k, v, is_causal=True).backward(grad)

    return call


@case("causal attention, 4x8x256x64", "ops", 1.0)
def attention_large(torch: Any) -> Call:
    return attention(torch, 4, 8, 256, 64, backward=False)


@case("causal attention forward + backward, 4x8x256x64", "ops", 1.0)
def attention_large_backward(torch: Any) -> Call:
    return attention(torch, 4, 8, 256, 64, backward=True)


@case("causal attention forward + backward, 12x4x64x32", "ops", 1.0)
def attention_small_backward(torch: Any) -> Call:
    return attention(torch, 12, 4, 64, 32, backward=True)


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
