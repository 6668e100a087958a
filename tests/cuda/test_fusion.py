"""Compiled functions on a GPU: a chain is one kernel, with the bits of the ops one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cuda.test_nvrtc import ARCHITECTURES, COMPILE, needs_nvrtc

import rushlight as torch
from rushlight import _C

on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is neither GPU nor shim")

N = 20_011  # elements: more than fill the blocks, and a rest


def randn(*shape: int, dtype: Any = torch.float32, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype).cuda()


def fused() -> set[str]:
    """The chains for which there are kernels, as the names of their formulas."""
    return {name.split(": ")[1] for name in _C._cuda_kernels() if name.startswith("fused ")}


def assert_same(function: Callable[..., Any], *args: Any) -> None:
    """Compares results, and gradients where arguments want them."""

    def run(call: Callable[..., Any]) -> list[Any]:
        leaves = [a.detach().requires_grad_(a.requires_grad) for a in args]
        result = call(*leaves)
        points = [leaf for leaf in leaves if leaf.requires_grad]
        if not points:
            return [result]
        weights = torch.linspace(-1, 1, result.numel(), device="cuda").reshape(result.shape)
        return [result, *torch.autograd.grad((result * weights).sum(), points)]

    for e, f in zip(run(function), run(torch.compile(function)), strict=True):
        assert e.dtype == f.dtype and e.shape == f.shape and e.stride() == f.stride()
        assert torch.equal(e, f)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3)))


@on_cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_a_chain_is_one_kernel_with_the_same_bits(dtype: Any) -> None:
    assert_same(gelu, randn(N, dtype=dtype).requires_grad_())
    assert (
        "mul_value cube_value mul_value add_value mul_value tanh_value add_value mul_value"
    ) in fused()


@on_cuda
def test_a_chain_changes_dtypes_on_its_way() -> None:
    def change(x: Any, k: Any) -> Any:
        near = (x.to(torch.float32) - 0.5).abs() < 1
        return torch.where(near, x.double(), k * 2).to(torch.bfloat16) + k.to(torch.uint8)

    assert_same(change, randn(N, dtype=torch.float16), torch.arange(N, device="cuda") % 300)
    assert_same(
        lambda x, y: (x * y).conj() + x.real,
        *(randn(N, dtype=torch.complex64, seed=s) for s in (1, 2)),
    )


@on_cuda
def test_operands_may_lie_in_any_order() -> None:
    def mix(x: Any, row: Any, column: Any, number: Any) -> Any:
        return ((x * row + column).relu() * number - column).sigmoid() + row

    row, column = randn(301, seed=1), randn(200, 1, seed=2)
    number = randn(1, seed=3)[0]
    for x in (
        randn(200, 301),
        randn(301, 200).t(),
        randn(60_201)[1:].as_strided((200, 301), (301, 1)),  # not aligned
        randn(200, 602)[:, ::2],
        randn(1, 301).expand(200, 301),
    ):
        assert_same(mix, x.requires_grad_(), row.requires_grad_(), column, number)
    image = randn(4, 8, 32, 32).to(memory_format=torch.channels_last)
    scale = randn(8, 1, 1, seed=4)
    assert_same(lambda x, s: (x * s + 1).relu() * s, image.requires_grad_(), scale.requires_grad_())


@on_cuda
def test_long_chains_and_many_operands_become_several_kernels() -> None:
    def long(x: Any) -> Any:
        for i in range(80):
            x = x * (1 + i / 7) + torch.tensor(0.5)
            x = x.clamp(-i, i)
        return x

    def wide(*tensors: Any) -> Any:
        total = tensors[0]
        for tensor in tensors[1:]:
            total = total * 0.5 + tensor.exp()
        return total

    assert_same(long, randn(N))
    assert_same(wide, *(randn(N, seed=s) for s in range(40)))


@on_cuda
def test_writes_wait_for_those_who_read_the_old_elements() -> None:
    def write(x: Any) -> Any:
        y = x * 2 + 1
        z = y.sin()
        y.mul_(3)
        x.zero_()
        return z + y

    assert_same(lambda x: write(x.clone()), randn(N))


@on_cuda
def test_a_graph_records_the_kernel_of_a_chain() -> None:
    x = randn(N)
    compiled = torch.compile(gelu)
    compiled(x)  # compiles the kernel
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = compiled(x) * 2
    for seed in (1, 2):
        x.copy_(randn(N, seed=seed))
        graph.replay()
        assert torch.equal(y, gelu(randn(N, seed=seed)) * 2)


STREAMS = """
import rushlight as torch

n = 20_011
side, third = torch.cuda.Stream(), torch.cuda.Stream()
x = torch.arange(n, device="cuda", dtype=torch.float32, requires_grad=True)
angle = torch.arange(n, device="cuda").float() * 2 + 1

@torch.compile
def spread(x):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x * 2 + 1
    done = side.record_event()     # y is queued before it
    with torch.cuda.stream(third):
        third.wait_event(done)
        z = y.sin()
        y.record_stream(third)
    torch.cuda.current_stream().wait_stream(third)
    z.record_stream(torch.cuda.current_stream())
    return z + 0

y = spread(x)
with torch.cuda.stream(side):      # other streams than those of forward
    side.wait_stream(torch.cuda.default_stream())
    y.backward(torch.ones(n, device="cuda"))
torch.cuda.synchronize()
assert torch.equal(y, angle.sin()) and torch.equal(x.grad, angle.cos() * 2)

@torch.compile
def timed(x):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    y = x.detach() * 2 + 1
    end.record()
    end.synchronize()
    assert begin.elapsed_time(end) >= 0
    return y

assert timed(x)[1].item() == 3
print("done")
"""


def test_streams_and_events_order_what_was_deferred(run_on_shim: Any) -> None:
    assert run_on_shim(STREAMS, RUSHLIGHT_SHIM_LAZY="1") == "done\n"
    assert run_on_shim(STREAMS, RUSHLIGHT_SHIM_RACES="1") == "done\n"


TEXTS = """
import rushlight as torch

@torch.compile
def chain(x, row):
    return (x.float() * row + 1).sigmoid().to(torch.bfloat16) > 0.5

chain(torch.ones(200, 300, device="cuda", dtype=torch.bfloat16), torch.ones(300, device="cuda"))
(name,) = (name for name in torch._C._cuda_kernels() if name.startswith("fused "))
print(torch._C._cuda_kernel_text(name))
"""


@needs_nvrtc
@pytest.mark.not_sanitized("NVRTC does not find the second of its libraries")
def test_kernels_of_chains_compile(run_on_shim: Any, run_python: Any) -> None:
    text = run_on_shim(TEXTS)
    assert "Places<1, n> places" in text and "auto r0 = read<BFloat16, n>(args, 0, first);" in text
    for arch in ARCHITECTURES:
        assert int(run_python(COMPILE, text, arch)) > 500
