"""Collectives of Python objects, which go as pickle writes them.

Reading a pickle can run any code. So these functions are for processes that trust each other, as
those of one job do; they give no protection against one that was taken over. With weights_only,
objects go as files of torch.save do, and reading them runs no code.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.arguments import group_rank, root_rank
from rushlight.distributed.collectives import broadcast
from rushlight.distributed.gathering import all_gather, gather, scatter
from rushlight.distributed.groups import get_global_rank, member
from rushlight.distributed.point_to_point import recv, send
from rushlight.distributed.process_group import ProcessGroup

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _pickled(obj: Any, weights_only: bool) -> Tensor:
    if weights_only:
        file = io.BytesIO()
        rl.save(obj, file)
        data = file.getvalue()
    else:
        data = pickle.dumps(obj, pickle.HIGHEST_PROTOCOL)
    return rl.frombuffer(bytearray(data), dtype=rl.uint8)


def _unpickled(data: Tensor, size: int, weights_only: bool) -> Any:
    view = memoryview(data[:size])
    return rl.load(io.BytesIO(view), weights_only=True) if weights_only else pickle.loads(view)


def _padded(data: Tensor, size: int) -> Tensor:
    whole = rl.zeros(size, dtype=rl.uint8)
    whole[: data.numel()] = data
    return whole


def _all_sizes(data: Tensor, ranks: ProcessGroup) -> list[int]:
    sizes = [rl.zeros(1, dtype=rl.int64) for _ in range(ranks.size())]
    all_gather(sizes, rl.tensor([data.numel()]), ranks)
    return [int(size) for size in sizes]


def all_gather_object(
    object_list: list[Any],
    obj: Any,
    group: ProcessGroup | None = None,
    weights_only: bool = False,
) -> None:
    """Fills a list with the objects of all ranks, by pickle: use it among trusted processes only.

    Args:
        object_list: with one place for each rank.
        obj: what this rank brings.
        group: the ranks that take part; all by default.
        weights_only: sends what torch.load(weights_only=True) takes, the same on all ranks; reading
            it runs no code.

    Raises:
        ValueError: if the list has another length.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> everyone = [None]
        >>> torch.distributed.all_gather_object(everyone, {"loss": 0.5})
        >>> everyone
        [{'loss': 0.5}]
        >>> torch.distributed.destroy_process_group()
    """
    ranks = member(group, "all_gather_object")
    if ranks is None:
        return
    _check_length("all_gather_object", "object_list", object_list, ranks.size())
    mine = _pickled(obj, weights_only)
    sizes = _all_sizes(mine, ranks)
    data = [rl.empty(max(sizes), dtype=rl.uint8) for _ in sizes]
    all_gather(data, _padded(mine, max(sizes)), ranks)
    _fill_each(object_list, data, sizes, weights_only)


def _check_length(name: str, param: str, objects: Sequence[Any] | None, size: int) -> None:
    if objects is None or len(objects) != size:
        count = "none" if objects is None else len(objects)
        raise ValueError(
            f"{name}: {param} has {count} places. It needs one for each of the {size} ranks."
        )


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
    weights_only: bool = False,
) -> None:
    """Fills a list of one rank with the objects of all, by pickle: among trusted processes only.

    Args:
        obj: what this rank brings.
        object_gather_list: on rank dst, with one place for each rank; nothing elsewhere.
        dst: the rank in the job that gets them; 0 by default.
        group: the ranks that take part; all by default.
        group_dst: the rank in the group, instead of dst.
        weights_only: sends what torch.load(weights_only=True) takes, the same on all ranks; reading
            it runs no code.
    """
    ranks = member(group, "gather_object")
    if ranks is None:
        return
    root = root_rank(ranks, dst, group_dst)
    is_root = ranks.rank() == root
    if is_root:
        _check_length("gather_object", "object_gather_list", object_gather_list, ranks.size())
    elif object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    mine = _pickled(obj, weights_only)
    sizes = _all_sizes(mine, ranks)
    data = [rl.empty(max(sizes), dtype=rl.uint8) for _ in sizes] if is_root else None
    gather(_padded(mine, max(sizes)), data, group=ranks, group_dst=root)
    if object_gather_list is not None and data is not None:
        _fill_each(object_gather_list, data, sizes, weights_only)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: rl.device | None = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Fills the lists of all ranks with the objects of one, by pickle: among trusted ones only.

    Args:
        object_list: of the same length everywhere.
        src: the rank in the job whose objects they get; 0 by default.
        group: the ranks that take part; all by default.
        device: ignored.
        group_src: the rank in the group, instead of src.
        weights_only: sends what torch.load(weights_only=True) takes, the same on all ranks; reading
            it runs no code.
    """
    ranks = member(group, "broadcast_object_list")
    if ranks is None:
        return
    root = root_rank(ranks, src, group_src)
    is_root = ranks.rank() == root
    data = [_pickled(obj, weights_only) for obj in object_list] if is_root else []
    sizes = rl.tensor([part.numel() for part in data] or [0] * len(object_list), dtype=rl.int64)
    broadcast(sizes, group=ranks, group_src=root)
    whole = rl.cat(data) if data else rl.empty(int(sizes.sum()), dtype=rl.uint8)
    broadcast(whole, group=ranks, group_src=root)
    if not is_root:
        _fill(object_list, whole, sizes, weights_only)


def _fill(object_list: list[Any], whole: Tensor, sizes: Tensor, weights_only: bool) -> None:
    parts = whole.split(sizes.tolist())
    _fill_each(object_list, parts, sizes.tolist(), weights_only)


def _fill_each(
    objects: list[Any], data: Sequence[Tensor], sizes: list[int], weights_only: bool
) -> None:
    objects[:] = [
        _unpickled(each, size, weights_only) for each, size in zip(data, sizes, strict=True)
    ]


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Gives each rank one object of a list of one, by pickle: among trusted processes only.

    Args:
        scatter_object_output_list: its first place gets the object.
        scatter_object_input_list: on rank src, one object for each rank; ignored elsewhere.
        src: the rank in the job that has them; 0 by default.
        group: the ranks that take part; all by default.
        group_src: the rank in the group, instead of src.
        weights_only: sends what torch.load(weights_only=True) takes, the same on all ranks; reading
            it runs no code.
    """
    ranks = member(group, "scatter_object_list")
    if ranks is None:
        return
    root = root_rank(ranks, src, group_src)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    data: list[Tensor] = []
    if ranks.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        _check_length(
            "scatter_object_list",
            "scatter_object_input_list",
            scatter_object_input_list,
            ranks.size(),
        )
        data = [_pickled(obj, weights_only) for obj in scatter_object_input_list]
    sizes = rl.tensor([part.numel() for part in data] or [0] * ranks.size(), dtype=rl.int64)
    broadcast(sizes, group=ranks, group_src=root)
    longest = int(sizes.max())
    mine = rl.empty(longest, dtype=rl.uint8)
    parts = [_padded(part, longest) for part in data] or None
    scatter(mine, parts, group=ranks, group_src=root)
    scatter_object_output_list[0] = _unpickled(mine, int(sizes[ranks.rank()]), weights_only)


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: rl.device | None = None,
    group_dst: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> None:
    """Sends objects to a rank, by pickle; see send.

    Args:
        object_list: what is sent.
        dst: the rank in the job.
        group: the ranks that take part; all by default.
        device, use_batch: ignored.
        group_dst: the rank in the group, instead of dst.
        weights_only: sends what torch.load(weights_only=True) takes, the same on all ranks; reading
            it runs no code.
    """
    ranks = member(group, "send_object_list")
    if ranks is None:
        return
    rank = group_rank(ranks, dst, group_dst, "dst")
    data = [_pickled(obj, weights_only) for obj in object_list]
    send(rl.tensor([part.numel() for part in data]), group=ranks, group_dst=rank)
    send(rl.cat(data), group=ranks, group_dst=rank)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: rl.device | None = None,
    group_src: int | None = None,
    use_batch: bool = False,
    weights_only: bool = False,
) -> int:
    """Fills a list with objects from a rank, by pickle: among trusted processes only; see recv.

    Args:
        object_list: as long as the sent one.
        src: the rank in the job; None for whoever sends.
        group: the ranks that take part; all by default.
        device, use_batch: ignored.
        group_src: the rank in the group, instead of src.
        weights_only: sends what torch.load(weights_only=True) takes, the same on all ranks; reading
            it runs no code.

    Returns:
        The rank in the job that sent them; -1 if this one is not in the group.
    """
    ranks = member(group, "recv_object_list")
    if ranks is None:
        return -1
    if group_src is not None:
        src = get_global_rank(ranks, group_src)
    sizes = rl.empty(len(object_list), dtype=rl.int64)
    source = recv(sizes, src, ranks)
    whole = rl.empty(int(sizes.sum()), dtype=rl.uint8)
    recv(whole, source, ranks)
    _fill(object_list, whole, sizes, weights_only)
    return source
