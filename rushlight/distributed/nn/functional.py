"""Collectives that gradients flow through.

The loss is the sum of what all ranks compute, so the gradient of a collective is a collective too,
and all ranks must call backward. They return new tensors instead of filling those they are given.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.autograd import Function
from rushlight.distributed.process_group import ProcessGroup
from rushlight.distributed.reduction import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Tensor:
    """Returns the tensor of rank src on all ranks; its gradient is the sum of theirs.

    Args:
        tensor: of the same shape and dtype everywhere.
        src: the rank in the job.
        group: the ranks that take part; all by default.
    """
    return _Broadcast.apply(src, group, tensor)


def reduce(
    tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """Returns the reduction of all ranks' tensors on rank dst, and the own one elsewhere.

    Args:
        tensor: of the same shape and dtype everywhere.
        dst: the rank in the job.
        op: SUM, whose gradient on all ranks is that of rank dst.
        group: the ranks that take part; all by default.
    """
    return _Reduce.apply(dst, op, group, tensor)


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """Returns the reduction of all ranks' tensors; its gradient is reduced with the same op.

    Args:
        tensor: of the same shape and dtype everywhere.
        op: SUM or AVG, for which that is the gradient.
        group: the ranks that take part; all by default.
    """
    return _AllReduce.apply(op, group, tensor)


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """Returns the tensors of all ranks; a gradient is the sum of what all ranks made of them.

    Args:
        tensor: of the same shape and dtype everywhere.
        group: the ranks that take part; all by default.
    """
    return _AllGather.apply(group, tensor)


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """Returns the tensors of all ranks on rank dst, and zeros elsewhere.

    Args:
        tensor: of the same shape and dtype everywhere.
        dst: the rank in the job.
        group: the ranks that take part; all by default.
    """
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: list[Tensor], src: int = 0, group: ProcessGroup | None = None) -> Tensor:
    """Returns the tensor for this rank of the list of rank src.

    Args:
        tensors: one for each rank, of the same shape and dtype everywhere.
        src: the rank in the job.
        group: the ranks that take part; all by default.
    """
    return _Scatter.apply(src, group, *tensors)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
) -> Tensor:
    """Returns the reduction of all ranks' tensors for this rank.

    Args:
        output: of the shape and dtype of the result; it is filled too.
        input_list: one tensor for each rank.
        op: SUM, whose gradient is gathered from all ranks.
        group: the ranks that take part; all by default.
    """
    return _ReduceScatter.apply(op, group, output, *input_list)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
) -> tuple[Tensor, ...]:
    """Returns what all ranks give to this one.

    Args:
        output_tensor_list: of the shapes and dtypes of the results; they are filled too.
        input_tensor_list: what this rank gives, one tensor for each.
        group: the ranks that take part; all by default.
    """
    return _AllToAll.apply(group, output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
) -> Tensor:
    """Returns what all ranks give to this one, one behind the other along dim 0.

    Args:
        output: of the shape and dtype of the result; it is filled too.
        input: what this rank gives, one part for each along dim 0.
        output_split_sizes, input_split_sizes: the parts' lengths; equal ones by default.
        group: the ranks that take part; all by default.
    """
    return _AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        result = tensor.clone()
        dist.broadcast(result, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (grad,) = grads
        total = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grad)
        return None, None, total if ctx.src == dist.get_rank() else total.zero_()


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: ReduceOp, group: Any, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        result = tensor.clone()
        dist.reduce(result, dst, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grads[0])


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        result = tensor.clone(memory_format=rl.contiguous_format)
        dist.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grads[0])


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        results = _like_each(tensor, dist.get_world_size(group))
        dist.all_gather(results, tensor, group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        mine = rl.empty_like(grads[dist.get_rank(ctx.group)])
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, mine, *grads)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.dst, ctx.group = dst, group
        results = _like_each(tensor, dist.get_world_size(group))
        dist.gather(tensor, results if dist.get_rank() == dst else None, dst, group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        result = rl.empty_like(tensors[0])
        dist.scatter(result, list(tensors) if dist.get_rank() == src else None, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *_Gather.apply(ctx.src, ctx.group, grads[0])


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, group: Any, output: Tensor, *inputs: Tensor) -> Tensor:
        ctx.group = group
        result = rl.empty_like(output)
        dist.reduce_scatter(result, list(inputs), op, group)
        output.detach().copy_(result)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, None, *_AllGather.apply(ctx.group, grads[0])


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: list[Tensor], *inputs: Tensor) -> Any:
        ctx.group, ctx.shapes = group, [part.shape for part in inputs]
        results = [rl.empty_like(output) for output in outputs]
        dist.all_to_all(results, list(inputs), group)
        for output, result in zip(outputs, results, strict=True):
            output.detach().copy_(result)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        outputs = [grads[0].new_empty(shape) for shape in ctx.shapes]
        return None, None, *_AllToAll.apply(ctx.group, outputs, *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(
        ctx: Any, group: Any, output: Tensor, output_splits: Any, input_splits: Any, input: Tensor
    ) -> Tensor:
        ctx.group, ctx.shape, ctx.splits = group, input.shape, (input_splits, output_splits)
        result = rl.empty_like(output)
        dist.all_to_all_single(result, input, output_splits, input_splits, group)
        output.detach().copy_(result)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (grad,) = grads
        output = grad.new_empty(ctx.shape)
        returned = _AllToAllSingle.apply(ctx.group, output, *ctx.splits, grad.contiguous())
        return None, None, None, None, returned


def _like_each(tensor: Tensor, count: int) -> list[Tensor]:
    """Zeros for the tensors of so many ranks."""
    return [rl.zeros_like(tensor, memory_format=rl.contiguous_format) for _ in range(count)]
