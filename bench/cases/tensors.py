"""Functions of tensors: scans, sorting, indexing, copies, random numbers, linear algebra, FFT."""

from __future__ import annotations

from typing import Any

from cases.case import MILLIONS_4, Call, case


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


@case("cummax(1), 1000x1000", "ops", 1.0)
def cummax_rows(torch: Any) -> Call:
    a = torch.randn(1000, 1000)
    return lambda: a.cummax(1)


@case("trapezoid, 2000x2000", "ops", 1.0)
def trapezoid_rows(torch: Any) -> Call:
    a = torch.randn(2000, 2000)
    return lambda: torch.trapezoid(a)


@case("sort, 1M floats", "ops", 1.0)
def sort_large(torch: Any) -> Call:
    a = torch.randn(1 << 20)
    return lambda: a.sort()


@case("sort, 30,000 rows of 3", "ops", 1.0)
def sort_short_rows(torch: Any) -> Call:
    a = torch.randn(30_000, 3)
    return lambda: a.sort()


@case("mode, 30,000 rows of 16", "ops", 1.0)
def modes_of_short_rows(torch: Any) -> Call:
    a = torch.randint(0, 10, (30_000, 16))
    return lambda: a.mode()


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


@case("unique, 1M integers below 10,000", "ops", 1.0)
def unique_large(torch: Any) -> Call:
    a = torch.randint(0, 10_000, (1 << 20,))
    return lambda: torch.unique(a)


@case("searchsorted, 100,000 floats in 50", "ops", 1.0)
def searchsorted_few(torch: Any) -> Call:
    edges, a = torch.randn(50).sort().values, torch.randn(100_000)
    return lambda: torch.searchsorted(edges, a)


@case("searchsorted, 1M floats in 10,000", "ops", 1.0)
def searchsorted_large(torch: Any) -> Call:
    edges, a = torch.randn(10_000).sort().values, torch.randn(1 << 20)
    return lambda: torch.searchsorted(edges, a)


@case("histc, 4M floats in 100 bins", "ops", 1.0)
def histc_large(torch: Any) -> Call:
    a = torch.randn(MILLIONS_4)
    return lambda: torch.histc(a, bins=100)


@case("cdist, 1000x64 to 1000x64", "ops", 1.0)
def cdist_large(torch: Any) -> Call:
    a, b = torch.randn(1000, 64), torch.randn(1000, 64)
    return lambda: torch.cdist(a, b)


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


@case("images of bytes, 16x3x224x224: (x + y).clamp(16, 235) where x > y", "ops", 1.0)
def bytes_arithmetic(torch: Any) -> Call:
    x, y = (torch.randint(0, 256, (16, 3, 224, 224), dtype=torch.uint8) for _ in range(2))
    return lambda: torch.where(x > y, (x + y).clamp(16, 235), x)


@case("int32 tokens, 1M: remainder and quotient by 1000", "ops", 1.0)
def integer_division(torch: Any) -> Call:
    tokens = torch.randint(0, 1 << 30, (1 << 20,), dtype=torch.int32)
    return lambda: (tokens % 1000, tokens // 1000)


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
