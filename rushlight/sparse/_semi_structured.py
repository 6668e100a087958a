"""Matrices with two zeros in four, which PyTorch multiplies by instructions of some GPUs."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from rushlight import Tensor

__all__ = [
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "to_sparse_semi_structured",
]

_REFUSAL = (
    "sparse: there is no layout for two zeros in four here. Keep the matrix dense, with its zeros, "
    "or use to_sparse_csr()."
)


class SparseSemiStructuredTensor(Tensor):
    """A matrix in that layout, which no tensor is; libraries ask for it by isinstance."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        raise NotImplementedError(_REFUSAL)


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """One that is multiplied by CUTLASS, which no tensor is."""


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """One that is multiplied by cuSPARSELt, which no tensor is."""


def to_sparse_semi_structured(original_tensor: Tensor, transposed: bool | None = None) -> NoReturn:
    """Refuses to pack a matrix.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(_REFUSAL)
