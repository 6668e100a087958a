"""Jacobians for gradcheck: by finite differences, by forward mode and by backward.

Note [Jacobians with complex numbers]
A complex output counts as two real ones, its real and its imaginary part, which the gradients 1
and 1j single out. The derivative of a real number by a complex one is d/dx + 1j d/dy, which is
what backward gives. So there is a matrix for each part of an output, complex if the input is.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._sparse import compressed_indices_of

# By the position of the output and its part, 1 or 1j: (output elements, input elements).
Jacobians = dict[tuple[int, complex], Tensor]


class GradcheckError(RuntimeError):
    """Raised by gradcheck and gradgradcheck when gradients are wrong."""


def as_tuple(values: Any) -> tuple[Any, ...]:
    """A tuple or list as a tuple, anything else as the only member of one."""
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def is_differentiable(value: Any) -> bool:
    """Whether value is a tensor of floating-point or complex numbers."""
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def steps(tensor: Tensor) -> tuple[complex, ...]:
    """The directions of each of its numbers; also the gradients that single out its parts."""
    return (1, 1j) if tensor.is_complex() else (1,)


def place_of(number: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Where the element with this number in row-major order stands."""
    place: list[int] = []
    for size in reversed(shape):
        number, at = divmod(number, size)
        place.append(at)
    return tuple(reversed(place))


def _exact(tensor: Tensor) -> Tensor:
    """A tensor, flat and in double precision, on the CPU."""
    dtype = rl.complex128 if tensor.is_complex() else rl.float64
    return tensor.detach().to("cpu", dtype).reshape(-1)


def _one_hot(shape: Sequence[int], number: int, value: complex, like: Tensor) -> Tensor:
    one = rl.zeros(shape, dtype=like.dtype, device=like.device)
    one[place_of(number, shape)] = value
    return one


# Inputs


def _numbers(tensor: Tensor) -> Tensor:
    """The memory of a tensor's numbers, without its history and its version."""
    if tensor.layout is rl.sparse_coo:
        tensor = tensor.detach()._values()
    elif tensor.layout is not rl.strided:
        tensor = tensor.detach().values()
    return tensor.data


def _places(tensor: Tensor) -> tuple[Tensor, ...] | None:
    """Where the values of a sparse tensor stand; None when the layout is strided."""
    if tensor.layout is rl.strided:
        return None
    if tensor.layout is rl.sparse_coo:
        return tuple(tensor.detach()._indices())
    ends, plain = compressed_indices_of(tensor)
    *batch, lines = ends.diff().shape
    spread = rl.arange(lines, device=ends.device).expand(*batch, lines).flatten()
    spread = spread.repeat_interleave(ends.diff().flatten()).view(plain.shape)
    by_rows = tensor.layout in (rl.sparse_csr, rl.sparse_bsr)
    rows, columns = (spread, plain) if by_rows else (plain, spread)
    if block := _block_of(tensor):
        rows = rows[..., None, None] * block[0] + rl.arange(block[0]).view(-1, 1)
        columns = columns[..., None, None] * block[1] + rl.arange(block[1])
    matrices = [
        rl.arange(size).view(-1, *[1] * (rows.dim() - dim - 1)) for dim, size in enumerate(batch)
    ]
    return rl.broadcast_tensors(*matrices, rows, columns)


def _block_of(tensor: Tensor) -> tuple[int, ...]:
    """The sizes of a block of a sparse tensor; none where it has no blocks."""
    if tensor.layout not in (rl.sparse_bsr, rl.sparse_bsc):
        return ()
    entry_dim = compressed_indices_of(tensor)[1].dim()
    return tuple(tensor.detach().values().shape[entry_dim : entry_dim + 2])


def _filled(tensor: Tensor) -> Tensor:
    """The same sparse tensor with a value at every place."""
    dense = tensor.to_dense()
    sizes = dense.shape[: dense.dim() - tensor.dense_dim()]
    places = rl.ones(sizes, device=dense.device).nonzero().t()
    values = dense.reshape(-1, *dense.shape[len(sizes) :])
    filled = rl.sparse_coo_tensor(places, values, dense.shape).coalesce()
    if tensor.layout is rl.sparse_coo:
        return filled
    return filled.to_sparse(layout=tensor.layout, blocksize=_block_of(tensor) or None)


class Point:
    """An input that gradients are checked for.

    numbers shares its memory, so that they can be moved while func sees the same tensor. Those of
    a sparse tensor are its values; unless masked, at all places of the matrix.
    """

    def __init__(self, position: int, tensor: Tensor, masked: bool) -> None:
        if tensor.layout is not rl.strided and not masked:
            tensor = _filled(tensor.detach()).requires_grad_()
        self.position = position
        self.tensor = tensor
        self.numbers = _numbers(tensor)
        self._places = _places(tensor)

    def read(self, gradient: Tensor | None, check_dtype: bool = False) -> Tensor:
        """A gradient of the input at its numbers, flat; zeros if there is none."""
        if gradient is None:
            return _exact(rl.zeros_like(self.numbers))
        if check_dtype and gradient.dtype != self.tensor.dtype:
            raise GradcheckError(
                f"gradcheck: Gradient has dtype mismatch: input {self.position} is "
                f"{self.tensor.dtype}, its gradient {gradient.dtype}."
            )
        if gradient.shape != self.tensor.shape:
            raise GradcheckError(
                f"gradcheck: Analytical gradient has incorrect size: input {self.position} has "
                f"shape {tuple(self.tensor.shape)}, its gradient {tuple(gradient.shape)}."
            )
        gradient = gradient.detach()
        if self._has_places_of(gradient):
            return _exact(gradient._values())  # one for each entry, also in the same place
        if gradient.layout is not rl.strided:
            gradient = gradient.to_dense()
        return _exact(gradient if self._places is None else gradient[self._places])

    def _has_places_of(self, gradient: Tensor) -> bool:
        is_coo = self.tensor.layout is gradient.layout is rl.sparse_coo
        return is_coo and rl.equal(gradient._indices(), self.tensor._indices())

    def place(self, number: int) -> tuple[int, ...]:
        """The index of a number in the input."""
        place = place_of(number, self.numbers.shape)
        if self._places is None:
            return place
        dims = self._places[0].dim()
        entry, rest = place[:dims], place[dims:]
        return (*(int(indices[entry].item()) for indices in self._places), *rest)

    def rows(self, count: int) -> Tensor:
        """A Jacobian of zeros for an output of count elements."""
        return _exact(self.numbers).new_zeros((count, self.numbers.numel()))

    def like(self, numbers: Tensor) -> Tensor:
        """A tensor of the input's layout with these numbers."""
        if self._places is None:
            return numbers
        tangent = self.tensor.detach().clone()
        _numbers(tangent).copy_(numbers)
        return tangent


def check_points(points: list[Point]) -> None:
    """Refuses inputs without gradients and with overlapping elements; warns of low precision."""
    if not points:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the "
            "them have requires_grad=True."
        )
    for point in points:
        if point.tensor.dtype not in (rl.float64, rl.complex128):
            warnings.warn(
                f"Input #{point.position} requires gradient and is not a double precision "
                "floating point or complex. This check will likely fail if all the inputs are "
                "not of double precision floating point or complex. ",
                stacklevel=3,
            )
        numbers = point.numbers
        strides = zip(numbers.shape, numbers.stride(), strict=True)
        if numbers.numel() and any(size > 1 and stride == 0 for size, stride in strides):
            raise RuntimeError(
                f"The {point.position}th input has a dimension with stride 0. gradcheck only "
                "supports inputs that are non-overlapping to be able to compute the numerical "
                "gradients correctly. You should call .contiguous on the input before passing it "
                "to gradcheck."
            )


# The function


class Function:
    """func at its inputs: values, slopes by finite differences, gradients by backward.

    nondeterminism is how far gradients of the same function at the same inputs were apart.
    """

    def __init__(
        self, func: Callable[..., Any], inputs: tuple[Any, ...], masked: bool, eps: float
    ) -> None:
        self._func = func
        self.eps = eps
        self.points = [
            Point(i, x, masked)
            for i, x in enumerate(inputs)
            if is_differentiable(x) and x.requires_grad
        ]
        self._inputs = list(inputs)
        for point in self.points:
            self._inputs[point.position] = point.tensor
        self.nondeterminism = 0.0

    def __call__(self, changed: dict[int, Tensor] | None = None) -> dict[int, Tensor]:
        """The float and complex outputs by position, dense; with some inputs changed."""
        inputs = [(changed or {}).get(i, x) for i, x in enumerate(self._inputs)]
        with rl.enable_grad():
            outputs = as_tuple(self._func(*inputs))
            if not any(isinstance(out, Tensor) for out in outputs):
                raise TypeError(
                    "gradcheck: func must return a tensor or a tuple of them, got "
                    f"{', '.join(type(out).__name__ for out in outputs) or 'an empty tuple'}."
                )
            return {
                k: out if out.layout is rl.strided else out.to_dense()
                for k, out in enumerate(outputs)
                if is_differentiable(out)
            }

    def slopes(self, point: Point, direction: Tensor) -> dict[int, Tensor]:
        """How fast every output, flat, changes along a direction, by central differences."""
        kept = point.numbers.clone()
        moved = []
        try:
            for step in (self.eps, -self.eps):
                point.numbers.copy_(kept + direction * step)
                # A function that works in place may return its input.
                moved.append({k: out.detach().clone() for k, out in self().items()})
        finally:
            point.numbers.copy_(kept)
        ahead, behind = moved
        for k, out in ahead.items():
            self._check_same_kind(out, behind.get(k), point)
        return {k: (_exact(out) - _exact(behind[k])) / (2 * self.eps) for k, out in ahead.items()}

    def _check_same_kind(self, ahead: Tensor, behind: Tensor | None, point: Point) -> None:
        start = (
            f"gradcheck: Expected `func` to return outputs with the same {{}} when inputs are "
            f"perturbed on index {point.position} by {self.eps}, but got "
        )
        if behind is None or ahead.shape != behind.shape:
            shapes = [None if out is None else tuple(out.shape) for out in (ahead, behind)]
            raise AssertionError(start.format("shape") + f"shapes {shapes[0]} and {shapes[1]}.")
        if ahead.dtype != behind.dtype:
            raise AssertionError(
                start.format("dtype") + f"dtypes {ahead.dtype} and {behind.dtype}."
            )

    def tangents(self, point: Point, direction: Tensor) -> dict[int, Tensor]:
        """The same by forward mode, where the other inputs have tangents of zero."""
        from rushlight.autograd import forward_ad

        with forward_ad.dual_level():
            duals = {
                p.position: forward_ad.make_dual(
                    p.tensor, p.like(direction if p is point else rl.zeros_like(p.numbers))
                )
                for p in self.points
            }
            parts = {k: forward_ad.unpack_dual(out) for k, out in self(duals).items()}
        return {
            k: _exact(rl.zeros_like(part.primal) if part.tangent is None else part.tangent)
            for k, part in parts.items()
        }

    def gradients(
        self, outputs: Sequence[Tensor], weights: Sequence[Tensor], check_dtypes: bool = False
    ) -> list[Tensor]:
        """The gradients of points, flat, by a backward that runs twice to see if both agree."""
        tensors = [point.tensor for point in self.points]
        runs = []
        for _ in range(2):
            found = rl.autograd.grad(
                outputs, tensors, weights, retain_graph=True, allow_unused=True
            )
            runs.append([p.read(g, check_dtypes) for p, g in zip(self.points, found, strict=True)])
        for first, second in zip(*runs, strict=True):
            apart = (first != second) & ~(first.isnan() & second.isnan())
            if apart.any():
                difference = (first - second)[apart].abs().max().item()
                self.nondeterminism = max(
                    self.nondeterminism, math.inf if math.isnan(difference) else difference
                )
        return runs[0]

    def jacobians_by_columns(
        self, point: Point, outputs: dict[int, Tensor], forward: bool = False
    ) -> Jacobians:
        """The Jacobians of outputs by finite differences or by forward mode."""
        found = {
            (k, part): point.rows(out.numel()) for k, out in outputs.items() for part in steps(out)
        }
        for j in range(point.numbers.numel()):
            for step in steps(point.numbers):
                direction = _one_hot(point.numbers.shape, j, step, point.numbers)
                columns = (self.tangents if forward else self.slopes)(point, direction)
                for (k, part), jacobian in found.items():
                    column = columns[k]
                    if column.is_complex():
                        column = column.real if part == 1 else column.imag
                    jacobian[:, j] += column * step
        return found

    def jacobians_by_rows(
        self, outputs: dict[int, Tensor], check_dtypes: bool = False
    ) -> list[Jacobians]:
        """The Jacobians of outputs by backward, for each point."""
        found: list[Jacobians] = [{} for _ in self.points]
        for k, output in outputs.items():
            for part in steps(output):
                for jacobians, point in zip(found, self.points, strict=True):
                    jacobians[k, part] = point.rows(output.numel())
                for i in range(output.numel()):
                    weight = _one_hot(output.shape, i, part, output)
                    rows = self.gradients([output], [weight], check_dtypes)
                    for jacobians, row in zip(found, rows, strict=True):
                        jacobians[k, part][i] = row
        return found
