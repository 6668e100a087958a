"""torch.layout, the ways in which a tensor's elements can be stored, by name."""

from __future__ import annotations


class layout:
    """How a tensor's elements are stored.

    Example:
        >>> torch.ones(2).layout
        torch.strided
        >>> isinstance(torch.strided, torch.layout)
        True
    """

    __module__ = "rushlight"
    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
jagged = layout("jagged")

# By the number that the core knows them under; it does not know of nested tensors.
LAYOUTS = (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
