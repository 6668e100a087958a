"""Draws hostile values from a seed: numbers out of range, tensors in odd layouts, deep lists."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import rushlight as torch

NAN, INF = float("nan"), float("inf")
ERRORS = (
    RuntimeError, TypeError, ValueError, LookupError, OverflowError, MemoryError, AttributeError,
    StopIteration, BufferError, AssertionError,
)  # fmt: skip
INTEGERS = [
    0, 1, -1, 2, 3, -2, 7, 31, 32, 63, 64, 65, -64, 100, -100, 2**31 - 1, 2**31, -(2**31), 2**32,
    2**40, 2**53, 2**62, 2**63 - 1, -(2**63), 1 - 2**63, -(2**62),
]  # fmt: skip
REALS = [
    0.0, -0.0, 0.5, -0.5, 1.5, 1e-45, 1e-300, 1e300, 3.4e38, 1e19, -1e19, 2.0**63, NAN, INF, -INF,
]  # fmt: skip
WORDS = [
    "", "x", "a\0b", "\ud800", "mean", "sum", "none", "reflect", "circular", "replicate", "border",
    "nearest", "bilinear", "linear", "cpu", "meta", "cuda:9", "float32", "i,j->", "...", "N" * 5000,
]  # fmt: skip
OTHERS = [
    None, True, False, 1j, complex(NAN, INF), 2**63, 2**64, 2**70, b"x", object(), ..., slice(None),
    {}, set(), int, torch.sparse_coo, torch.strided, torch.channels_last, torch.preserve_format,
]  # fmt: skip
DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32,
    torch.uint64, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.complex64, torch.complex128, torch.float8_e4m3fn,
]  # fmt: skip
SHAPES = [
    (), (0,), (1,), (5,), (2, 3), (3, 3), (3, 0), (0, 3), (2, 3, 4), (7, 1), (1, 9), (2, 0, 3),
    (1, 2, 6, 5), (2, 4, 4), (1, 1, 3, 4, 4), (70,), (1,) * 20, (1,) * 64,
]  # fmt: skip
# With more elements than memory could hold.
HUGE_SHAPES = [(2**62,), (2**31, 2**31), (0, 2**62), (2**40, 3), (2**63 - 1,)]


@functools.cache
def _nest(depth: int, holds_itself: bool) -> list[Any]:
    """Made once, as the deepest takes the time of a thousand calls."""
    items: list[Any] = [1]
    if holds_itself:
        items.append(items)
    for _ in range(depth):
        items = [items]
    return items


class Values:
    """The values of one seed; a seed gives the same ones in every run."""

    def __init__(self, seed: str) -> None:
        self.source = random.Random(seed)
        self.pick = self.source.choice

    def chance(self, probability: float) -> bool:
        return self.source.random() < probability

    def integer(self) -> int:
        return self.pick(INTEGERS)

    def integers(self) -> tuple[int, ...]:
        return tuple(self.integer() for _ in range(self.pick([0, 1, 1, 2, 2, 3, 4, 6, 65])))

    def nest(self) -> list[Any]:
        """A list that is deep, or holds itself."""
        holds_itself = self.chance(0.3)
        return [_nest(self.pick([2, 70, 2000, 100_000]) - 1, holds_itself)]

    def storage(self) -> Any:
        x = torch.zeros(self.pick(SHAPES[:9]), dtype=self.pick(DTYPES))
        return x.untyped_storage()

    def value(self) -> Any:
        """Anything at all."""
        kinds: list[Callable[[], Any]] = [
            self.tensor, self.tensor, self.tensor, self.integer, self.integer, self.integers,
            lambda: self.pick(REALS), lambda: self.pick(WORDS), lambda: self.pick(OTHERS),
            lambda: self.pick(DTYPES), lambda: list(self.integers()), self.nest, self.storage,
            lambda: [self.tensor() for _ in range(self.pick([0, 1, 2, 3]))], torch.Generator,
            lambda: np.zeros(self.pick(SHAPES[:12])), lambda: lambda *x: x[0],
        ]  # fmt: skip
        return self.pick(kinds)()

    def like(self, value: Any) -> Any:
        """Something of the kind of a valid argument, so that the first checks let it pass."""
        if self.chance(0.12):
            return self.value()
        if isinstance(value, torch.Tensor):
            return self.twisted(value) if self.chance(0.7) else self.tensor()
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            near = [value + 1, value - 1, value * 2, -value, 0]
            return self.pick(near) if self.chance(0.4) else self.integer()
        if isinstance(value, float):
            return self.pick(REALS) if self.chance(0.7) else self.integer()
        if isinstance(value, (list, tuple)):
            return type(value)(self._like_items(list(value)))
        return self.value()

    def _like_items(self, items: list[Any]) -> list[Any]:
        if not items:
            return [self.integer()]
        at = self.source.randrange(len(items))
        match self.pick(["one", "one", "one", "all", "less", "more", "twice", "turned"]):
            case "one":
                items[at] = self.like(items[at])
            case "all":
                items = [self.like(item) for item in items]
            case "less":
                del items[at]
            case "more":
                items.insert(at, self.like(items[at]))
            case "twice":
                items *= 2
            case _:
                items.reverse()
        return items

    def tensor(self) -> torch.Tensor:
        shape, dtype = self.pick(SHAPES), self.pick([*DTYPES, torch.float32, torch.int64])
        number = self.pick([0, 1, 2, -1, 0.5, 40, 255, 2**31, 2**62, -(2**63), NAN, INF])
        x = torch.full(shape, number, dtype=torch.float64).to(dtype)
        return self.twisted(x) if self.chance(0.6) else x

    def twisted(self, x: torch.Tensor) -> torch.Tensor:
        """A tensor as this one, but for its layout, dtype, numbers, memory or place."""
        try:
            return self.pick(TWISTS)(self, x)
        except ERRORS:
            return x  # one for which that is impossible

    def dim_of(self, x: torch.Tensor) -> int:
        return self.source.randrange(x.dim())

    def overlapping(self, x: torch.Tensor) -> torch.Tensor:
        """Several elements in one place, or rows that overlap."""
        strides = [self.pick([0, 1, 1, 2]) for _ in x.shape]
        reach = 1 + sum((n - 1) * s for n, s in zip(x.shape, strides, strict=True))
        memory = x.flatten().repeat(reach // max(x.numel(), 1) + 1)
        return memory.as_strided(x.shape, strides)

    def freed(self, x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        x.untyped_storage().resize_(self.pick([0, 0, 1, x.element_size()]))
        return x

    def huge(self, x: torch.Tensor) -> torch.Tensor:
        if self.chance(0.5):
            return torch.empty(self.pick(HUGE_SHAPES), device="meta", dtype=x.dtype)
        return x.flatten()[:1].expand(0, 2**40)

    def with_number(self, x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        x.view(-1)[self.source.randrange(x.numel())] = self.pick([*INTEGERS, *REALS])
        return x

    def with_any_bytes(self, x: torch.Tensor) -> torch.Tensor:
        """As bools they are neither 0 nor 1."""
        numbers = list(self.source.randbytes(min(x.numel(), 10_000)))
        dtype = self.pick([torch.bool, torch.int8])
        return torch.tensor(numbers, dtype=torch.uint8).view(dtype).view(x.shape)


TWISTS: list[Callable[[Values, torch.Tensor], torch.Tensor]] = [
    Values.overlapping,
    Values.freed,
    Values.huge,
    Values.with_number,
    Values.with_any_bytes,
    lambda v, x: x[:1].expand(x.shape) if x.dim() else x.expand(3),
    lambda v, x: x.mT.contiguous().mT,
    lambda v, x: x.transpose(0, -1),
    lambda v, x: torch.stack([x, x, x], -1)[..., 1],
    lambda v, x: torch.cat([x.flatten()[:1], x.flatten()])[1:].reshape(x.shape),  # not aligned
    lambda v, x: x.to("meta"),
    lambda v, x: x.to_sparse(layout=v.pick([torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])),
    lambda v, x: v.pick([x.to_sparse_bsr, x.to_sparse_bsc])(v.pick([1, 2, (2, 1), (1, 3)])),
    lambda v, x: x.narrow(v.dim_of(x), 0, 0),
    lambda v, x: x.narrow(v.dim_of(x), 0, 1),
    lambda v, x: x.select(v.dim_of(x), 0),
    lambda v, x: x.unsqueeze(v.source.randrange(x.dim() + 1)),
    lambda v, x: x.flatten()[0],
    lambda v, x: torch.cat([x, x], v.dim_of(x)),
    lambda v, x: x.to(v.pick(DTYPES)),
    lambda v, x: x.to(torch.float32 if x.is_floating_point() else torch.int32),
    lambda v, x: torch.full_like(x, v.pick([*INTEGERS, *REALS])),
    lambda v, x: x.detach().requires_grad_(),
    lambda v, x: x.to(torch.complex64).conj(),
    lambda v, x: x.to(torch.complex64).conj().imag,
]
