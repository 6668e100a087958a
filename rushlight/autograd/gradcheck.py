"""Checks the gradients of a function against finite differences: gradcheck and gradgradcheck.

This file owns what is compared and how failures are told; _jacobians.py finds the Jacobians.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight.autograd._jacobians import (
    Function,
    GradcheckError,
    Point,
    as_tuple,
    check_points,
    is_differentiable,
    place_of,
)

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

_SHOWN = 5  # differing elements that a message lists


class _Check:
    """The checks of one function at one place, each of which raises when it fails."""

    def __init__(
        self,
        function: Function,
        outputs: dict[int, Tensor],
        atol: float,
        rtol: float,
        nondet_tol: float,
        check_grad_dtypes: bool,
    ) -> None:
        self.function = function
        self.points = function.points
        self.outputs = outputs
        self.atol = atol
        self.rtol = rtol
        self.nondet_tol = nondet_tol
        self.check_grad_dtypes = check_grad_dtypes

    # Whole Jacobians

    def jacobians(self, backward: bool, forward: bool) -> None:
        """Compares every element of every Jacobian."""
        by_rows = None
        if backward:
            by_rows = self.function.jacobians_by_rows(self.outputs, self.check_grad_dtypes)
        for i, point in enumerate(self.points):
            numerical = self.function.jacobians_by_columns(point, self.outputs)
            if by_rows is not None:
                self._compare(point, by_rows[i], numerical, "backward")
            if forward:
                columns = self.function.jacobians_by_columns(point, self.outputs, forward=True)
                self._compare(point, columns, numerical, "forward mode")
        self._check_determinism()

    def _compare(self, point: Point, found: Any, numerical: Any, by: str) -> None:
        for (k, part), analytical in found.items():
            expected = numerical[k, part]
            distance = (analytical - expected).abs()
            allowed = self.atol + self.rtol * expected.abs()
            # Not >, which NaN is never. Equal infinities are no difference.
            wrong = ~((distance <= allowed) | (analytical == expected))
            if not wrong.any():
                continue
            far = sorted(
                ((distance[r, c].item(), r, c) for r, c in wrong.nonzero().tolist()),
                key=lambda found: (not math.isnan(found[0]), -found[0]),
            )
            lines = [
                f"  d output {k}{list(place_of(r, self.outputs[k].shape))} / d input "
                f"{point.position}{list(point.place(c))}: {analytical[r, c].item():.6g} by {by}, "
                f"{expected[r, c].item():.6g} by finite differences; apart {apart:.3g}, allowed "
                f"{allowed[r, c].item():.3g}\n"
                for apart, r, c in far[:_SHOWN]
            ]
            if len(far) > _SHOWN:
                lines.append(f"  and {len(far) - _SHOWN} more\n")
            raise GradcheckError(
                f"gradcheck: Jacobian mismatch for output {k} with respect to input "
                f"{point.position}{self._of_part(k, part)}: {len(far)} of {wrong.numel()} elements "
                f"differ by more than {self.atol} + {self.rtol} * |numerical| (eps="
                f"{self.function.eps}). The farthest are\n{''.join(lines)}"
                f"numerical:{expected}\nanalytical:{analytical}\n{self._determinism_hint()}"
            )

    def _of_part(self, k: int, part: complex) -> str:
        if not self.outputs[k].is_complex():
            return ""
        return f", for the {'real' if part == 1 else 'imaginary'} part of the output"

    def _determinism_hint(self) -> str:
        apart = self.function.nondeterminism
        return f"Two runs of backward were {apart:.3g} apart.\n" if apart > self.nondet_tol else ""

    def _check_determinism(self) -> None:
        if self.function.nondeterminism > self.nondet_tol:
            raise GradcheckError(
                "gradcheck: Backward is not reentrant, i.e., running backward with same input and "
                "grad_output multiple times gives different values, although analytical gradient "
                f"matches numerical gradient. They were {self.function.nondeterminism:.3g} apart. "
                f"The tolerance for nondeterminism was {self.nondet_tol}."
            )

    # Fast mode

    def projections(self, backward: bool, forward: bool) -> None:
        """Compares v^T J u of every Jacobian for one random u and v; on failure, all elements."""
        generator = rl.Generator().manual_seed(0)
        vectors = {k: _direction(out, generator) for k, out in self.outputs.items()}
        by_rows = {
            k: self.function.gradients([out], [vectors[k]], self.check_grad_dtypes)
            for k, out in self.outputs.items()
            if backward
        }
        for i, point in enumerate(self.points):
            u = _direction(point.numbers, generator)
            slopes = self.function.slopes(point, u)
            tangents = self.function.tangents(point, u) if forward else {}
            for k, v in vectors.items():
                expected = _product(v, slopes[k])
                allowed = self.atol * (u.abs().sum() * v.abs().sum()).item()
                allowed += self.rtol * abs(expected)
                for by, found in (
                    ("backward", _product(u, by_rows[k][i]) if backward else None),
                    ("forward mode", _product(v, tangents[k]) if forward else None),
                ):
                    if found is None or abs(found - expected) <= allowed or found == expected:
                        continue
                    self.jacobians(backward, forward)
                    raise GradcheckError(
                        f"gradcheck: Jacobian mismatch for output {k} with respect to input "
                        f"{point.position} in fast mode: its product with random vectors, v^T J u, "
                        f"is {found:.6g} by {by} and {expected:.6g} by finite differences; "
                        f"{allowed:.3g} is allowed. No element differs by more than {self.atol} + "
                        f"{self.rtol} * |numerical| in slow mode. Try other tolerances."
                    )
        self._check_determinism()

    # Absent, zero and batched gradients

    def zero_gradients(self) -> None:
        """Checks that gradients of zero come out of gradients of zero."""
        zeros = [rl.zeros_like(out) for out in self.outputs.values()]
        found = self.function.gradients(list(self.outputs.values()), zeros)
        for point, gradient in zip(self.points, found, strict=True):
            wrong = (~(gradient == 0)).nonzero()
            if wrong.numel():
                number = int(wrong[0].item())
                raise GradcheckError(
                    "gradcheck: backward not multiplied by grad_output: the gradient of input "
                    f"{point.position} is {gradient[number].item()} at {list(point.place(number))} "
                    f"when the gradients of all outputs are zero ({wrong.numel()} of "
                    f"{gradient.numel()} elements are not zero)."
                )

    def undefined_gradients(self) -> None:
        """Checks that absent gradients of outputs, one or all, work like zeros."""
        generator = rl.Generator().manual_seed(0)
        outputs = list(self.outputs.values())
        weights = [_direction(out, generator) for out in outputs]
        cases = [{k} for k in range(len(outputs))]
        if len(outputs) > 1:
            cases.append(set(range(len(outputs))))
        for absent in cases:
            zeroed = [rl.zeros_like(w) if k in absent else w for k, w in enumerate(weights)]
            gated = _C._gate(
                lambda grads, absent=absent: [
                    None if k in absent else g for k, g in enumerate(grads)
                ],
                outputs,
            )
            names = ", ".join(str(list(self.outputs)[k]) for k in sorted(absent))
            expectation = (
                "gradcheck: Expected backward function to handle undefined output grads, as zeros"
            )
            try:
                found = self.function.gradients(gated, zeroed)
            except Exception as error:
                raise GradcheckError(
                    f"{expectation}, but it failed without a gradient for output {names}: {error}"
                ) from error
            expected = self.function.gradients(outputs, zeroed)
            for point, one, other in zip(self.points, found, expected, strict=True):
                if not rl.allclose(one, other, self.rtol, self.atol, equal_nan=True):
                    raise GradcheckError(
                        f"{expectation}, but without a gradient for output {names} the gradient "
                        f"of input {point.position} is\n{one}\nand with zeros\n{other}"
                    )

    def batched_gradients(self) -> None:
        """Checks that backward for a batch of gradients equals a loop over them."""
        generator = rl.Generator().manual_seed(0)
        tensors = [point.tensor for point in self.points]
        for k, out in self.outputs.items():
            batch = rl.stack([_direction(out, generator) for _ in range(2)])
            loop = [self.function.gradients([out], [one]) for one in batch]
            try:
                found = rl.autograd.grad(
                    out, tensors, batch,
                    retain_graph=True, allow_unused=True, is_grads_batched=True,
                )  # fmt: skip
            except RuntimeError as error:
                raise GradcheckError(
                    f"gradcheck: While computing batched gradients of output {k}, got: {error}"
                ) from error
            for i, (point, together) in enumerate(zip(self.points, found, strict=True)):
                parts = [None, None] if together is None else together
                self._compare_batch(
                    f"of output {k} with respect to input {point.position}",
                    [point.read(part) for part in parts],
                    [one[i] for one in loop],
                )

    def batched_tangents(self) -> None:
        """Checks that forward mode for a batch of tangents equals a loop over them."""
        from rushlight import func

        generator = rl.Generator().manual_seed(0)
        for point in self.points:
            batch = rl.stack([_direction(point.numbers, generator) for _ in range(2)])
            loop = [self.function.tangents(point, one) for one in batch]
            try:
                found = func.vmap(lambda one, at=point: self.function.tangents(at, one))(batch)
            except RuntimeError as error:
                raise GradcheckError(
                    f"gradcheck: While computing batched tangents of input {point.position}, got: "
                    f"{error}"
                ) from error
            for k in self.outputs:
                self._compare_batch(
                    f"of output {k} along input {point.position}",
                    list(found[k]),
                    [one[k] for one in loop],
                )

    def _compare_batch(
        self, what: str, together: Sequence[Tensor], apart: Sequence[Tensor]
    ) -> None:
        for entry, (one, other) in enumerate(zip(together, apart, strict=True)):
            if not rl.allclose(one, other, self.rtol, self.atol, equal_nan=True):
                raise GradcheckError(
                    f"gradcheck: Batched gradients {what} are not those of a loop; entry {entry} "
                    f"is\n{one}\nand by a loop\n{other}"
                )


def _direction(like: Tensor, generator: Any) -> Tensor:
    """A random vector of length 1 in the shape of a tensor; its numbers are not negative."""

    def part() -> Tensor:
        return rl.rand(like.shape, generator=generator, dtype=rl.float64) + 0.1

    vector = rl.complex(part(), part()) if like.is_complex() else part()
    return (vector / vector.abs().square().sum().sqrt()).to(like.device, like.dtype)


def _product(first: Tensor, second: Tensor) -> float:
    """The inner product of vectors of real numbers, of which complex ones are two."""
    first = first.to("cpu", second.dtype).reshape(-1)
    return (first.conj() * second).sum().real.item()


def _check_zero(function: Function, values: dict[int, Tensor]) -> None:
    """Where nothing has a gradient, finite differences must agree that there is none."""
    for point in function.points:
        for (k, _), jacobian in function.jacobians_by_columns(point, values).items():
            if (~(jacobian == 0)).any():
                raise GradcheckError(
                    f"gradcheck: Numerical gradient for function expected to be zero, because no "
                    f"output requires grad, but output {k} depends on input {point.position}:\n"
                    f"{jacobian}"
                )


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Returns True if the gradients of func agree with finite differences.

    Every element of every Jacobian must satisfy |analytical - numerical| <= atol + rtol *
    |numerical|, where numerical is (func(x + eps) - func(x - eps)) / (2 * eps). The defaults suit
    float64 and complex128 inputs. Functions that are not smooth at inputs fail rightly.

    Args:
        func: takes tensors, returns a tensor or a tuple of them.
        inputs: its arguments; those of float or complex dtype that require grad are checked.
        eps: how far each number is moved.
        atol: the absolute tolerance.
        rtol: the relative tolerance.
        raise_exception: raises when a check fails, instead of returning False.
        nondet_tol: how far two runs of backward may be apart.
        check_undefined_grad: also checks that absent gradients of outputs count as zeros.
        check_grad_dtypes: also checks that gradients have the dtype of their inputs.
        check_batched_grad: also checks a batch of gradients against a loop.
        check_batched_forward_grad: the same for forward mode.
        check_forward_ad: also checks forward mode.
        check_backward_ad: checks backward.
        fast_mode: compares one random projection v^T J u for each Jacobian, not all elements.
        masked: moves and compares only the specified elements of sparse inputs.

    Raises:
        GradcheckError: if a check fails; says where, with both values and the tolerance.
        ValueError: if no input requires grad.
        RuntimeError: if an input has elements that share memory.

    Example:
        >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(torch.sin, x)
        True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    function = Function(func, as_tuple(inputs), bool(masked), eps)
    check_points(function.points)
    try:
        values = function()
        outputs = {k: out for k, out in values.items() if out.requires_grad}
        if not outputs:
            _check_zero(function, values)
            return True
        check = _Check(function, outputs, atol, rtol, nondet_tol, check_grad_dtypes)
        (check.projections if fast_mode else check.jacobians)(check_backward_ad, check_forward_ad)
        if check_batched_forward_grad:
            check.batched_tangents()
        if check_backward_ad:
            if check_batched_grad:
                check.batched_gradients()
            check.zero_gradients()
            if check_undefined_grad:
                check.undefined_gradients()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Returns True if the gradients of the gradients of func agree with finite differences.

    Checks, as gradcheck does, the function that maps inputs and grad_outputs to the gradients of
    inputs.

    Args:
        func: takes tensors, returns a tensor or a tuple of them.
        inputs: its arguments; those of float or complex dtype that require grad are checked.
        grad_outputs: a gradient for each output that requires grad; random ones when None.
        eps: how far each number is moved.
        atol: the absolute tolerance.
        rtol: the relative tolerance.
        gen_non_contig_grad_outputs: makes the random ones non-contiguous.
        raise_exception: raises when a check fails, instead of returning False.
        nondet_tol: how far two runs of backward may be apart.
        check_undefined_grad: also checks that absent gradients of gradients count as zeros.
        check_grad_dtypes: also checks that gradients have the dtype of their inputs.
        check_batched_grad: also checks a batch of gradients against a loop.
        check_fwd_over_rev: also checks forward mode through backward.
        check_rev_over_rev: checks backward through backward.
        fast_mode: compares one random projection v^T J u for each Jacobian, not all elements.
        masked: moves and compares only the specified elements of sparse inputs.

    Raises:
        GradcheckError: if a check fails; says where, with both values and the tolerance.
        ValueError: if nothing requires grad.

    Example:
        >>> x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradgradcheck(lambda x: x**3, x)
        True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        )
    for option, is_set in (
        ("check_undefined_grad", check_undefined_grad),
        ("check_batched_grad", check_batched_grad),
    ):
        if is_set and not check_rev_over_rev:
            raise AssertionError(f"Setting {option}=True requires check_rev_over_rev to be True")
    from rushlight.testing import make_tensor

    arguments = as_tuple(inputs)
    if grad_outputs is None:
        with rl.enable_grad():
            recorded = _recorded(func(*arguments))
        if not recorded:
            raise ValueError(
                "gradgradcheck: no output of func requires grad, so there is no gradient to "
                "check. gradcheck tells whether there should be one."
            )
        weights = tuple(
            make_tensor(
                out.shape, dtype=out.dtype, device=out.device, low=-1, high=1, requires_grad=True,
                noncontiguous=gen_non_contig_grad_outputs,
            )
            for out in recorded
        )  # fmt: skip
    else:
        weights = as_tuple(grad_outputs)
    watched = [i for i, x in enumerate(arguments) if is_differentiable(x) and x.requires_grad]

    def gradients(*values: Any) -> tuple[Tensor, ...]:
        points, grads = values[: len(arguments)], values[len(arguments) :]
        found = rl.autograd.grad(
            _recorded(func(*points)), [points[i] for i in watched], grads,
            create_graph=True, allow_unused=True,
        )  # fmt: skip
        return tuple(gradient for gradient in found if gradient is not None)

    return gradcheck(
        gradients, arguments + weights, eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked,
    )  # fmt: skip


def _recorded(outputs: Any) -> list[Tensor]:
    return [out for out in as_tuple(outputs) if is_differentiable(out) and out.requires_grad]
