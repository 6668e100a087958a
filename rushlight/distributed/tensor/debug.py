"""Seeing what DTensors communicate, and which rank has which part."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Self

from rushlight import ops
from rushlight.distributed.tensor._api import DTensor
from rushlight.distributed.tensor._redistribute import counters
from rushlight.distributed.tensor.placement_types import Shard

__all__ = ["CommDebugMode", "visualize_sharding"]

Span = tuple[int, int]  # the first and the last index


class CommDebugMode:
    """A with block that counts the collectives of DTensors, forward and backward.

    Where PyTorch reduces and scatters, or exchanges dims, it counts that, however it is done here.
    """

    def __init__(self) -> None:
        self._counter: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._counter.clear()
        counters.append(self._counter)
        return self

    def __exit__(self, *_: object) -> None:
        counters[:] = [counter for counter in counters if counter is not self._counter]

    def get_total_counts(self) -> int:
        """Returns the number of collectives."""
        return self._counter.total()

    def get_comm_counts(self) -> dict[Any, int]:
        """Returns the numbers by the operator, such as torch.ops.c10d_functional.all_reduce."""
        counts = {getattr(ops.c10d_functional, name): n for name, n in self._counter.items()}
        return defaultdict(int, counts)

    @property
    def comm_counts(self) -> dict[Any, int]:
        """What get_comm_counts returns."""
        return self.get_comm_counts()


def visualize_sharding(dtensor: DTensor, header: str = "", use_rich: bool = False) -> None:
    """Prints a table of which ranks have which rows and columns, on the mesh's first rank.

    Args:
        dtensor: of one or two dims; of an empty one nothing is printed.
        header: a line above the table.
        use_rich: accepted for PyTorch's sake; there are no colors.

    Raises:
        RuntimeError: if it has no dims, or more than two.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1,))
        >>> shard = torch.distributed.tensor.Shard(0)
        >>> x = torch.distributed.tensor.distribute_tensor(torch.ones(4, 3), mesh, [shard])
        >>> torch.distributed.tensor.debug.visualize_sharding(x)
                 Col 0-2
        -------  -------
        Row 0-3  cpu:0
        >>> torch.distributed.destroy_process_group()
    """
    mesh = dtensor.device_mesh
    if dtensor.ndim not in (1, 2):
        raise RuntimeError(
            f"visualize_sharding: supports only 1D or 2D DTensors, and this one has {dtensor.ndim} "
            "dims. Take a slice of it."
        )
    if not dtensor.numel() or any(mesh.get_coordinate() or [1]):
        return
    ranks: dict[tuple[Span, Span], str] = {}
    for place in itertools.product(*map(range, mesh.mesh.shape)):
        rows, columns = _spans(dtensor, place)
        rank = str(int(mesh.mesh[place]))
        before = ranks.get((rows, columns), f"{mesh.device_type}:")
        ranks[rows, columns] = before + rank if before[-1] == ":" else f"{before},{rank}"
    all_rows = sorted({rows for rows, _ in ranks})
    all_columns = sorted({columns for _, columns in ranks})
    table = [["", *(f"Col {first}-{last}" for first, last in all_columns)]]
    for rows in all_rows:
        cells = [ranks.get((rows, columns), "") for columns in all_columns]
        table.append([f"Row {rows[0]}-{rows[1]}", *cells])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    table.insert(1, ["-" * width for width in widths])
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in table)
    print("\n".join([header, *lines] if header else lines))


def _spans(dtensor: DTensor, place: Sequence[int]) -> tuple[Span, Span]:
    """Which rows and columns a rank has, by its place in the mesh."""
    spans = [(0, size) for size in (*dtensor.shape, 1)[:2]]
    for placement, count, rank in zip(
        dtensor.placements, dtensor.device_mesh.mesh.shape, place, strict=True
    ):
        if isinstance(placement, Shard):
            begin, end = spans[placement.dim]
            size, offset = placement.local_shard_size_and_offset(end - begin, count, rank)
            spans[placement.dim] = begin + offset, begin + offset + size
    return (spans[0][0], spans[0][1] - 1), (spans[1][0], spans[1][1] - 1)
