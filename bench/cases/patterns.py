"""Patterns of programs in which sizes are odd: rows too short for a vector, dims that broadcast in
the middle, results whose elements lie apart, thousands of small products.
"""

from __future__ import annotations

from typing import Any

from cases.case import Call, case


@case("8x3x224x224 - mean[3, 1, 1]", "ops", 1.0)
def subtract_mean(torch: Any) -> Call:
    x, mean = torch.randn(8, 3, 224, 224), torch.randn(3, 1, 1)
    return lambda: x - mean


@case("32x128x64 * scale[128, 1]", "ops", 1.0)
def scale_rows(torch: Any) -> Call:
    x, scale = torch.randn(32, 128, 64), torch.randn(128, 1)
    return lambda: x * scale


@case("outer product, 1000x1000", "ops", 1.0)
def outer(torch: Any) -> Call:
    x, y = torch.randn(1000), torch.randn(1000)
    return lambda: torch.outer(x, y)


@case("addr, 512x512", "ops", 1.0)
def addr(torch: Any) -> Call:
    a, x, y = torch.randn(512, 512), torch.randn(512), torch.randn(512)
    return lambda: torch.addr(a, x, y)


@case("baddbmm with factors, 64 of 64x64, bfloat16", "ops", 1.0)
def baddbmm(torch: Any) -> Call:
    a, x, y = (torch.randn(64, 64, 64).bfloat16() for _ in range(3))
    return lambda: torch.baddbmm(a, x, y, beta=0.5, alpha=2)


@case("64 inverses of 16x16", "ops", 1.0)
def small_inverses(torch: Any) -> Call:
    a = torch.randn(64, 16, 16) + 16 * torch.eye(16)
    return lambda: torch.linalg.inv(a)


@case("sum((0, 2)), 64x128x256", "ops", 1.0)
def sum_around(torch: Any) -> Call:
    x = torch.randn(64, 128, 256)
    return lambda: x.sum((0, 2))


@case("sum(1), 4096x16x16", "ops", 1.0)
def sum_short_runs(torch: Any) -> Call:
    x = torch.randn(4096, 16, 16)
    return lambda: x.sum(1)


@case("sum, 1M complex numbers", "ops", 1.0)
def complex_sum(torch: Any) -> Call:
    x = torch.randn(1000, 1000, dtype=torch.complex64)
    return lambda: x.sum()


@case("pdist, 500 points of 64", "ops", 1.0)
def point_distances(torch: Any) -> Call:
    x = torch.randn(500, 64)
    return lambda: torch.pdist(x)


@case("linspace, 1M floats", "ops", 1.0)
def long_line(torch: Any) -> Call:
    return lambda: torch.linspace(0, 1, 1_000_000)


@case("pad reflect, 8x64x56x56, bfloat16", "ops", 1.0)
def pad_short_floats(torch: Any) -> Call:
    x = torch.randn(8, 64, 56, 56).bfloat16()
    return lambda: torch.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect")


@case("gather(1), 100,000 rows of 8", "ops", 1.0)
def gather_short_rows(torch: Any) -> Call:
    x, places = torch.randn(100_000, 8), torch.randint(0, 8, (100_000, 8))
    return lambda: x.gather(1, places)


@case("scatter(1), 100,000 rows of 8", "ops", 1.0)
def scatter_short_rows(torch: Any) -> Call:
    x, places = torch.randn(100_000, 8), torch.randint(0, 8, (100_000, 8))
    return lambda: x.scatter(1, places, x)


@case("gather of one of 1000, 4096 rows", "ops", 1.0)
def gather_labels(torch: Any) -> Call:
    x, labels = torch.randn(4096, 1000), torch.randint(0, 1000, (4096, 1))
    return lambda: x.gather(1, labels)


@case("scatter_reduce amax, 10,000 rows of 64 to 1000", "ops", 1.0)
def scatter_extremes(torch: Any) -> Call:
    x, rows = torch.zeros(1000, 64), torch.randint(0, 1000, (10000, 1)).expand(-1, 64)
    source = torch.randn(10000, 64)
    return lambda: x.scatter_reduce(0, rows, source, "amax")


@case("scatter_reduce mean, 100,000 floats to as many", "ops", 1.0)
def scatter_means(torch: Any) -> Call:
    x, source = torch.randn(100_000), torch.randn(100_000)
    places = torch.randint(0, 100_000, (100_000,))
    return lambda: x.scatter_reduce(0, places, source, "mean")


@case("scatter_reduce amax, 100,000 floats to as many", "ops", 1.0)
def scatter_largest(torch: Any) -> Call:
    x, source = torch.randn(100_000), torch.randn(100_000)
    places = torch.randint(0, 100_000, (100_000,))
    return lambda: x.scatter_reduce(0, places, source, "amax")


@case("index_add, 100,000 floats to as many", "ops", 1.0)
def index_add_elements(torch: Any) -> Call:
    x, source = torch.randn(100_000), torch.randn(100_000)
    places = torch.randint(0, 100_000, (100_000,))
    return lambda: x.index_add(0, places, source)


@case("index_reduce amax, 100,000 rows of 16 to as many", "ops", 1.0)
def index_reduce_rows(torch: Any) -> Call:
    x, source = torch.randn(100_000, 16), torch.randn(100_000, 16)
    places = torch.randint(0, 100_000, (100_000,))
    return lambda: x.index_reduce(0, places, source, "amax")


@case("gather(1), 1000x1000", "ops", 1.0)
def gather_rows(torch: Any) -> Call:
    x, places = torch.randn(1000, 1000), torch.randint(0, 1000, (1000, 1000))
    return lambda: x.gather(1, places)


@case("gather(0), 1000x1000", "ops", 1.0)
def gather_columns(torch: Any) -> Call:
    x, places = torch.randn(1000, 1000), torch.randint(0, 1000, (1000, 1000))
    return lambda: x.gather(0, places)


@case("count_nonzero, 1M floats", "ops", 1.0)
def count_nonzero_large(torch: Any) -> Call:
    x = torch.randn(1_000_000)
    return lambda: x.count_nonzero()


@case("max(0), 30,000x3", "ops", 1.0)
def extremes_of_few_columns(torch: Any) -> Call:
    x = torch.randn(30_000, 3)
    return lambda: x.max(0)


@case("argmax(1), 30,000x3", "ops", 1.0)
def argmax_of_short_rows(torch: Any) -> Call:
    x = torch.randn(30_000, 3)
    return lambda: x.argmax(1)


@case("bincount, 1M integers below 1000", "ops", 1.5)
def bincount_large(torch: Any) -> Call:
    x = torch.randint(0, 1000, (1000000,))
    return lambda: torch.bincount(x)


@case("1000 products of 3x3 and a vector", "ops", 1.0)
def small_products(torch: Any) -> Call:
    a, x = torch.randn(1000, 3, 3), torch.randn(1000, 3, 1)
    return lambda: a @ x


@case("einsum bi,bi->b, 10000x64", "ops", 1.0)
def row_products(torch: Any) -> Call:
    a = torch.randn(10000, 64)
    return lambda: torch.einsum("bi,bi->b", a, a)


@case("fmod, 1M floats", "ops", 1.5)
def fmod_large(torch: Any) -> Call:
    a = torch.randn(1000000)
    return lambda: torch.fmod(a, 0.7)


@case("attention of one query to 512 keys, 8 heads of 64", "ops", 1.0)
def attention_step(torch: Any) -> Call:
    query = torch.randn(1, 8, 1, 64)
    key, value = torch.randn(1, 8, 512, 64), torch.randn(1, 8, 512, 64)
    attention = torch.nn.functional.scaled_dot_product_attention
    return lambda: attention(query, key, value)
