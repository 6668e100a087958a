"""linear_cross_entropy with the logits of a part of the batch at a time.

Where the losses become one number, the gradients are computed together with them, up to the factor
that backward brings; the losses of single rows compute their logits again in backward.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.autograd.function import Function, once_differentiable
from rushlight.nn import _ops as ops
from rushlight.nn._linear_cross_entropy_options import LinearCrossEntropyOptions


class _Problem:
    """The arguments of one call, and the passes over its parts."""

    def __init__(
        self,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        class_weight: Tensor | None,
        ignore_index: int,
        options: LinearCrossEntropyOptions,
    ) -> None:
        self.input, self.weight, self.bias = input, weight, bias
        self.target, self.ignore_index = target, ignore_index
        self.rows, self.dtype = _settled(options, input, weight.shape[0])
        self.class_weight = None if class_weight is None else class_weight.to(self.dtype)

    def parts(self) -> Iterator[slice]:
        count = self.input.shape[0]
        for start in range(0, max(count, 1), self.rows):
            yield slice(start, min(start + self.rows, count))

    def logits(self, part: slice) -> Tensor:
        return ops.linear(self.input[part], self.weight, self.bias).to(self.dtype)

    def loss(self, logits: Tensor, part: slice, reduction: str) -> Tensor:
        return ops.cross_entropy(
            logits,
            self.target[part],
            self.class_weight,
            ignore_index=self.ignore_index,
            reduction=reduction,
        )

    def total_weight(self) -> Tensor:
        kept = self.target != self.ignore_index
        if self.class_weight is None:
            return kept.sum().to(self.dtype)
        known = self.target.masked_fill(~kept, 0)
        return (self.class_weight[known] * kept).sum()


class _Gradients:
    """Those of input, weight and bias as far as they are needed, added up part by part."""

    def __init__(self, problem: _Problem, needs: tuple[bool, bool, bool]) -> None:
        self.problem = problem
        self.input = rl.empty_like(problem.input) if needs[0] else None
        self.weight = self._sum_like(problem.weight) if needs[1] else None
        self.bias = self._sum_like(problem.bias) if needs[2] and problem.bias is not None else None

    def _sum_like(self, t: Tensor) -> Tensor:
        return rl.zeros_like(t, dtype=self.problem.dtype)

    def add(self, slopes: Tensor, part: slice) -> None:
        """Takes the gradient of the logits of a part."""
        rows, weight = self.problem.input[part], self.problem.weight
        if self.input is not None:
            self.input[part] = slopes.to(weight.dtype) @ weight
        if self.weight is not None:
            self.weight.addmm_(slopes.t(), rows.to(slopes.dtype))
        if self.bias is not None:
            self.bias += slopes.sum(0)

    def tensors(self) -> list[Tensor | None]:
        wanted = (self.problem.input, self.problem.weight, self.problem.bias)
        sums = (self.input, self.weight, self.bias)
        return [
            None if sum is None or like is None else sum.to(like.dtype)
            for sum, like in zip(sums, wanted, strict=True)
        ]


class ChunkedLinearCrossEntropy(Function):
    """apply(input, weight, bias, target, class_weight, reduction, ignore_index, options)."""

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        class_weight: Tensor | None,
        reduction: str,
        ignore_index: int,
        options: LinearCrossEntropyOptions,
    ) -> Tensor:
        problem = _Problem(input, weight, bias, target, class_weight, ignore_index, options)
        ctx.reduction, ctx.ignore_index, ctx.options = reduction, ignore_index, options
        if reduction == "none":
            ctx.save_for_backward(input, weight, bias, target, class_weight)
            losses = [problem.loss(problem.logits(p), p, "none") for p in problem.parts()]
            return rl.cat(losses).to(input.dtype)
        needs = ctx.needs_input_grad[:3]
        gradients = _Gradients(problem, needs)
        divisor = problem.total_weight() if reduction == "mean" else input.new_ones(())
        loss = rl.zeros((), dtype=problem.dtype, device=input.device)
        for part in problem.parts():
            logits = problem.logits(part)
            if any(needs):
                part_loss, slopes = _loss_and_slopes(problem, logits, part, 1 / divisor)
                gradients.add(slopes, part)
            else:
                part_loss = problem.loss(logits, part, "sum")
            loss += part_loss
        ctx.gradients = gradients.tensors()
        return (loss / divisor).to(input.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.reduction == "none":
            input, weight, bias, target, class_weight = ctx.saved_tensors
            problem = _Problem(
                input, weight, bias, target, class_weight, ctx.ignore_index, ctx.options
            )
            gradients = _Gradients(problem, ctx.needs_input_grad[:3])
            for part in problem.parts():
                logits = problem.logits(part)
                scale = grad[part].to(problem.dtype)
                gradients.add(_loss_and_slopes(problem, logits, part, scale, "none")[1], part)
            return (*gradients.tensors(), None, None, None, None, None)
        if ctx.gradients is None:
            raise RuntimeError(
                "linear_cross_entropy: backward was called a second time, but its gradients were "
                "used up by the first. Pass LinearCrossEntropyOptions(allow_retain_graph=True)."
            )
        if ctx.options.allow_retain_graph:
            scaled = [None if t is None else t * grad for t in ctx.gradients]
        else:
            scaled = [None if t is None else t.mul_(grad) for t in ctx.gradients]
            ctx.gradients = None
        return (*scaled, None, None, None, None, None)


def _loss_and_slopes(
    problem: _Problem, logits: Tensor, part: slice, scale: Tensor, reduction: str = "sum"
) -> tuple[Tensor, Tensor]:
    """The loss of a part, and scale times the gradient of its logits."""
    with rl.enable_grad():
        logits.requires_grad_()
        loss = problem.loss(logits, part, reduction)
        (slopes,) = rl.autograd.grad(loss, logits, scale.to(loss.dtype).expand_as(loss))
    return loss.detach(), slopes


def _settled(
    options: LinearCrossEntropyOptions, input: Tensor, classes: int
) -> tuple[int, rl.dtype]:
    """How many rows go at a time, and the dtype that logits and sums have."""
    is_half = input.dtype in (rl.float16, rl.bfloat16)
    dtype = options.acc_dtype
    if dtype is None:
        wide = is_half and options.acc_policy == "auto"
        dtype = rl.float32 if wide else input.dtype
    count, features = input.shape
    given, method = options.batch_chunk_size, options.chunking_method
    if method == "auto":
        method = "aspect_ratio" if is_half and input.device.type == "cpu" else "aspect_ratio:2"
        method = None if given is not None else method
    rows = count if given is None else min(given, count)
    if method is not None:
        _, _, factor = method.partition(":")
        # As many logits as the input has elements, with rows rounded up to a power of 2.
        fair = -(-count // max(-(-classes // max(features, 1)), 1))
        rows = min((1 << max(fair - 1, 0).bit_length()) // int(factor or 1), count)
        if given is not None and given != rows:
            raise ValueError(
                f"batch_chunk_size (={given}) and chunking_method ('{method}') give different "
                f"chunk sizes ({given} vs {rows}); pass only one."
            )
    return max(rows, 1), dtype
