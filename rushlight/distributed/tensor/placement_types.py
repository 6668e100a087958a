"""How a tensor lies along one dim of a mesh: in parts, as copies, or as addends."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]

_REDUCTIONS = ("sum", "avg", "product", "max", "min")


def chunk_sizes(length: int, count: int) -> list[int]:
    """Returns the sizes of the parts of a dim, one for each rank.

    Example:
        >>> torch.distributed.tensor.placement_types.chunk_sizes(5, 4)
        [2, 2, 1, 0]
    """
    step = -(-length // count)
    return [max(0, min(step, length - i * step)) for i in range(count)]


class Placement:
    """What Shard, Replicate and Partial have in common."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Returns whether each rank has a part, of this dim if one is given."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Returns whether each rank has all."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Returns whether the ranks have addends, or what else this op is to reduce."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part of a dim, in the order of ranks, cut as torch.chunk does.

    Args:
        dim: which dim of the tensor; the last ranks have less, or nothing, if it does not divide.

    Example:
        >>> torch.distributed.tensor.Shard(0)
        Shard(dim=0)
    """

    dim: int

    @staticmethod
    def local_shard_size_and_offset(
        curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        """Returns how long a rank's part of a dim is, and where it begins.

        Args:
            curr_local_size: how long the dim is.
            num_chunks: the number of ranks.
            rank: this one.

        Example:
            >>> torch.distributed.tensor.Shard.local_shard_size_and_offset(5, 4, 2)
            (1, 4)
        """
        sizes = chunk_sizes(curr_local_size, num_chunks)
        return sizes[rank], sum(sizes[:rank])

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has the whole tensor."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """Each rank has a tensor of the whole shape; the values are what they reduce to.

    Args:
        reduce_op: "sum", "avg", "product", "max" or "min".
    """

    reduce_op: str = "sum"

    def __post_init__(self) -> None:
        if self.reduce_op not in _REDUCTIONS:
            raise ValueError(
                f"Partial: reduce_op must be one of {', '.join(_REDUCTIONS)}, "
                f"not {self.reduce_op!r}."
            )

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


class _StridedShard(Placement):
    """What libraries ask a placement whether it is; no tensor here lies so.

    In PyTorch it is a part of a dim that is made of one piece of each of `split_factor` groups.
    """

    def __init__(self, dim: int, *, split_factor: int = 1) -> None:
        raise NotImplementedError(
            f"_StridedShard: dim {dim} cannot be cut into pieces of {split_factor} groups. Shard "
            "cuts a dim into consecutive parts. Use Shard, with the groups in a dim of their own."
        )
