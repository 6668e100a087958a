"""Collectives that put tensors of all ranks together, or divide them among the ranks.

Owns their signatures; arguments.py has the checks, and flat_collectives.py the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed import flat_collectives
from rushlight.distributed.arguments import (
    check_dtypes,
    check_list,
    check_room,
    check_tensor,
    check_tensors,
    checked_op,
    cliques_for,
    collect,
    root_rank,
)
from rushlight.distributed.group_calls import (
    AllgatherOptions,
    AllToAllOptions,
    GatherOptions,
    ReduceScatterOptions,
    ScatterOptions,
    delegate,
)
from rushlight.distributed.groups import member
from rushlight.distributed.process_group import BuiltinGroup, ProcessGroup
from rushlight.distributed.reduction import ReduceOp
from rushlight.distributed.work import Work

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_to_all",
    "all_to_all_single",
    "gather",
    "gather_into_tensor",
    "gather_single",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
]


def all_gather(
    tensor_list: list[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Fills a list with the tensors of all ranks.

    Args:
        tensor_list: one tensor for each rank, of the dtype and number of elements of what it
            brings: that of `tensor`, unless NCCL moves them.
        tensor: what this rank brings.
        group: the ranks that take part; all by default.
        async_op: whether to return the work at once.

    Returns:
        The work if async_op, else None.
    """
    ranks = member(group, "all_gather")
    check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    if ranks is None:
        return None
    if not isinstance(ranks, BuiltinGroup):
        opts = AllgatherOptions()
        return delegate(ranks, "allgather", async_op, [tensor_list], [tensor], opts)
    is_even = cliques_for(ranks, "all_gather", [tensor]) is None
    check_list("all_gather", "tensor_list", tensor_list, tensor, ranks, is_even)
    return collect(
        ranks,
        flat_collectives.all_gather,
        tensor_list,
        [tensor],
        tensor.dtype,
        tensor.numel(),
        lambda outs, ins: (outs, ins[0]),
        async_op,
    )


def all_gather_single(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Fills one tensor with those of all ranks, one behind the other.

    Args:
        output_tensor: with as many times the elements of input_tensor as there are ranks, either in
            shape (size * N, ...) or (size, N, ...).
        input_tensor: what this rank brings.
        group: the ranks that take part; all by default.
        async_op: whether to return the work at once.

    Returns:
        The work if async_op, else None.
    """
    ranks = member(group, "all_gather_into_tensor")
    check_tensor(output_tensor, "output_tensor")
    check_tensor(input_tensor, "input_tensor")
    if ranks is None:
        return None
    size = ranks.size()
    check_room(
        "all_gather_into_tensor",
        output_tensor,
        input_tensor,
        size,
        ("output_tensor", "input_tensor"),
    )
    if not isinstance(ranks, BuiltinGroup):
        opts = AllgatherOptions()
        return delegate(ranks, "_allgather_base", async_op, output_tensor, input_tensor, opts)
    return collect(
        ranks,
        flat_collectives.all_gather,
        [output_tensor],
        [input_tensor],
        input_tensor.dtype,
        input_tensor.numel(),
        lambda outs, ins: (outs[0].view(size, -1).unbind(), ins[0]),
        async_op,
    )


all_gather_into_tensor = all_gather_single
_all_gather_base = all_gather_single


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Fills a list of one rank with the tensors of all.

    Args:
        tensor: what this rank brings.
        gather_list: on rank dst, one tensor for each rank; nothing elsewhere.
        dst: the rank in the job that gets them; 0 by default.
        group: the ranks that take part; all by default.
        async_op: whether to return the work at once.
        group_dst: the rank in the group, instead of dst.

    Returns:
        The work if async_op, else None.
    """
    ranks = member(group, "gather")
    check_tensor(tensor, "tensor")
    check_tensors(gather_list or [], "gather_list")
    if ranks is None:
        return None
    root = root_rank(ranks, dst, group_dst)
    outputs = gather_list or []
    if ranks.rank() == root:
        if not outputs:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        check_list("gather", "gather_list", outputs, tensor, ranks)
    elif outputs:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    if not isinstance(ranks, BuiltinGroup):
        opts = GatherOptions(rootRank=root)
        lists = [outputs] if outputs else []
        return delegate(ranks, "gather", async_op, lists, [tensor], opts)
    return _gathered(ranks, outputs, tensor, root, async_op, lambda outs: outs)


def gather_single(
    tensor: Tensor,
    gather_tensor: Tensor | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Fills one tensor of one rank with those of all, one behind the other.

    Args:
        tensor: what this rank brings.
        gather_tensor: on rank dst, with as many times the elements of tensor as there are ranks,
            either in shape (size * N, ...) or (size, N, ...); ignored elsewhere.
        dst: the rank in the job that gets them; 0 by default.
        group: the ranks that take part; all by default.
        async_op: whether to return the work at once.
        group_dst: the rank in the group, instead of dst.

    Returns:
        The work if async_op, else None.

    Raises:
        ValueError: if there is no gather_tensor on rank dst, or no room in it.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> everyone = torch.empty(1, 2)
        >>> torch.distributed.gather_single(torch.ones(2), everyone)
        >>> everyone
        tensor([[1., 1.]])
        >>> torch.distributed.destroy_process_group()
    """
    ranks = member(group, "gather_single")
    check_tensor(tensor, "tensor")
    if ranks is None:
        return None
    size = ranks.size()
    root = root_rank(ranks, dst, group_dst)
    outputs: list[Tensor] = []
    if ranks.rank() == root:
        if gather_tensor is None:
            raise ValueError("gather_tensor must be specified on the destination rank")
        check_tensor(gather_tensor, "gather_tensor")
        check_room("gather_single", gather_tensor, tensor, size, ("gather_tensor", "tensor"))
        outputs = [gather_tensor]
    if not isinstance(ranks, BuiltinGroup):
        output = outputs[0] if outputs else tensor.new_empty(0)
        opts = GatherOptions(rootRank=root)
        return delegate(ranks, "gather_single", async_op, output, tensor, opts)
    return _gathered(ranks, outputs, tensor, root, async_op, lambda outs: [*outs[0].view(size, -1)])


gather_into_tensor = gather_single


def _gathered(
    ranks: BuiltinGroup,
    outputs: Sequence[Tensor],
    tensor: Tensor,
    root: int,
    async_op: bool,
    places: Callable[[Sequence[Tensor]], Sequence[Tensor]],
) -> Work | None:
    """Begins to gather in a group of our own; `places` are those of each rank in the outputs."""
    return collect(
        ranks,
        flat_collectives.gather,
        outputs,
        [tensor],
        tensor.dtype,
        tensor.numel(),
        lambda outs, ins: (places(outs) if outs else None, ins[0], root),
        async_op,
        root=root,
    )


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Fills the tensor of each rank with one of a list of one rank.

    Args:
        tensor: what this rank gets.
        scatter_list: on rank src, one tensor for each rank; nothing elsewhere.
        src: the rank in the job that has them; 0 by default.
        group: the ranks that take part; all by default.
        async_op: whether to return the work at once.
        group_src: the rank in the group, instead of src.

    Returns:
        The work if async_op, else None.
    """
    ranks = member(group, "scatter")
    check_tensor(tensor, "tensor")
    check_tensors(scatter_list or [], "scatter_list")
    if ranks is None:
        return None
    root = root_rank(ranks, src, group_src)
    inputs = scatter_list or []
    if ranks.rank() == root:
        if not inputs:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        check_list("scatter", "scatter_list", inputs, tensor, ranks)
    elif inputs:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    if not isinstance(ranks, BuiltinGroup):
        opts = ScatterOptions(rootRank=root)
        lists = [inputs] if inputs else []
        return delegate(ranks, "scatter", async_op, [tensor], lists, opts)
    return collect(
        ranks,
        flat_collectives.scatter,
        [tensor],
        inputs,
        tensor.dtype,
        tensor.numel(),
        lambda outs, ins: (outs[0], ins or None, root),
        async_op,
        root=root,
    )


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces a list of tensors over all ranks; each rank gets the one at its place.

    Args:
        output: what this rank gets.
        input_list: one tensor for each rank, of the dtype and number of elements of its output.
        op: what is computed.
        group: the ranks that take part; all by default.
        async_op: whether to return the work at once.

    Returns:
        The work if async_op, else None.
    """
    ranks = member(group, "reduce_scatter")
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    if ranks is None:
        return None
    if len(input_list) != ranks.size():
        raise ValueError(
            f"reduce_scatter: input_list has {len(input_list)} tensors. It needs one for each of "
            f"the {ranks.size()} ranks."
        )
    check_dtypes("reduce_scatter", output, *input_list)
    mine = input_list[ranks.rank()]
    if mine.numel() != output.numel():
        raise ValueError(
            f"reduce_scatter: input_list[{ranks.rank()}] has shape {tuple(mine.shape)}, but output "
            f"has {tuple(output.shape)}, which gets the reduction of it."
        )
    if not isinstance(ranks, BuiltinGroup):
        opts = ReduceScatterOptions(reduceOp=op)
        return delegate(ranks, "reduce_scatter", async_op, [output], [input_list], opts)
    return collect(
        ranks,
        flat_collectives.reduce_scatter,
        [output],
        input_list,
        output.dtype,
        sum(part.numel() for part in input_list),
        lambda outs, ins: (outs[0], ins, op),
        async_op,
        op=checked_op(op),
    )


def reduce_scatter_single(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces a tensor over all ranks; each rank gets one part of the result, in their order.

    Args:
        output: what this rank gets.
        input: with as many times the elements of output as there are ranks.
        op: what is computed.
        group: the ranks that take part; all by default.
        async_op: whether to return the work at once.

    Returns:
        The work if async_op, else None.
    """
    ranks = member(group, "reduce_scatter_tensor")
    check_tensor(output, "output")
    check_tensor(input, "input")
    if ranks is None:
        return None
    size = ranks.size()
    check_room("reduce_scatter_tensor", input, output, size, ("input", "output"))
    if not isinstance(ranks, BuiltinGroup):
        opts = ReduceScatterOptions(reduceOp=op)
        return delegate(ranks, "_reduce_scatter_base", async_op, output, input, opts)
    return collect(
        ranks,
        flat_collectives.reduce_scatter,
        [output],
        [input],
        output.dtype,
        input.numel(),
        lambda outs, ins: (outs[0], ins[0].view(size, -1).unbind(), op),
        async_op,
        op=checked_op(op),
    )


reduce_scatter_tensor = reduce_scatter_single
_reduce_scatter_base = reduce_scatter_single


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gives each rank one tensor of a list, and fills another with what the ranks give to this one.

    Args:
        output_tensor_list: one tensor for each rank, with as many elements as that gives.
        input_tensor_list: one tensor for each rank.
        group: the ranks that take part; all by default.
        async_op: whether to return the work at once.

    Returns:
        The work if async_op, else None.

    Raises:
        DistBackendError: on all ranks, if a rank gives more or less than is expected.
    """
    ranks = member(group, "all_to_all")
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    if ranks is None:
        return None
    for param, tensors in (("output", output_tensor_list), ("input", input_tensor_list)):
        if len(tensors) != ranks.size():
            raise ValueError(
                f"all_to_all: {param}_tensor_list has {len(tensors)} tensors. It needs one for "
                f"each of the {ranks.size()} ranks."
            )
    check_dtypes("all_to_all", *input_tensor_list, *output_tensor_list)
    if not isinstance(ranks, BuiltinGroup):
        lists = output_tensor_list, input_tensor_list
        return delegate(ranks, "alltoall", async_op, *lists, AllToAllOptions())
    return _exchange(
        ranks,
        output_tensor_list,
        input_tensor_list,
        lambda outs, ins: (outs, ins),
        async_op,
    )


def _exchange(
    ranks: BuiltinGroup,
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    args: Callable[[Sequence[Tensor], Sequence[Tensor]], tuple[object, ...]],
    async_op: bool,
) -> Work | None:
    sizes = ranks.call("all_to_all", rl.int64, 2 * ranks.size())
    return collect(
        ranks,
        flat_collectives.all_to_all,
        outputs,
        inputs,
        outputs[0].dtype,
        0,
        args,
        async_op,
        before=(sizes,),
    )


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gives each rank one part of a tensor, and fills another with what the ranks give to this one.

    Args:
        output: what this rank gets, one part for each rank along dim 0.
        input: what it gives, one part for each rank along dim 0.
        output_split_sizes: the parts' lengths along dim 0; equal ones by default.
        input_split_sizes: the same for input.
        group: the ranks that take part; all by default.
        async_op: whether to return the work at once.

    Returns:
        The work if async_op, else None.

    Raises:
        ValueError: if the lengths do not fit the tensors.
        DistBackendError: on all ranks, if a rank gives more or less than is expected.
    """
    ranks = member(group, "all_to_all_single")
    check_tensor(output, "output")
    check_tensor(input, "input")
    if ranks is None:
        return None
    check_dtypes("all_to_all_single", input, output)
    size = ranks.size()
    out_sizes = _splits("output", output, output_split_sizes, size)
    in_sizes = _splits("input", input, input_split_sizes, size)
    if not isinstance(ranks, BuiltinGroup):
        lengths = output_split_sizes or [], input_split_sizes or []
        opts = AllToAllOptions()
        return delegate(ranks, "alltoall_base", async_op, output, input, *lengths, opts)
    return _exchange(
        ranks,
        [output],
        [input],
        lambda outs, ins: (outs[0].split(out_sizes), ins[0].split(in_sizes)),
        async_op,
    )


def _splits(param: str, tensor: Tensor, lengths: list[int] | None, size: int) -> list[int]:
    """The numbers of elements of the parts along dim 0."""
    rows = tensor.shape[0] if tensor.dim() else 1
    if not lengths:
        if rows % size:
            raise ValueError(
                f"all_to_all_single: {param} has {rows} rows, which is no multiple of the {size} "
                f"ranks. Give {param}_split_sizes."
            )
        lengths = [rows // size] * size
    if len(lengths) != size or sum(lengths) != rows or min(lengths) < 0:
        raise ValueError(
            f"all_to_all_single: {param}_split_sizes {lengths} must be {size} numbers whose sum is "
            f"{rows}, the rows of {param}."
        )
    width = tensor.numel() // rows if rows else 0
    return [length * width for length in lengths]
