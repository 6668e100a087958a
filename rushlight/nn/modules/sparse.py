"""Layers that look rows up in a table."""

from __future__ import annotations

from typing import Self

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import check_sizes
from rushlight.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """What both layers share: a table of rows, one of which may be for padding."""

    weight: Parameter

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None) -> None:
        super().__init__()
        check_sizes(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        if padding_idx is not None:
            check_sizes(self, padding_idx=padding_idx)
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(
                    f"{type(self).__name__}: padding_idx {padding_idx} must be within "
                    f"num_embeddings ({num_embeddings})."
                )
            padding_idx %= num_embeddings
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx

    def _check_weight(self, weight: Tensor) -> None:
        if list(weight.shape) != [self.num_embeddings, self.embedding_dim]:
            raise ValueError(
                f"{type(self).__name__}: _weight has shape {tuple(weight.shape)}, which does not "
                f"match num_embeddings {self.num_embeddings} and embedding_dim "
                f"{self.embedding_dim}."
            )

    def reset_parameters(self) -> None:
        """Draws the weight anew."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:  # subclasses call it by PyTorch's name
        if self.padding_idx is not None:
            with rl.no_grad():
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def _table_sizes(cls, embeddings: Tensor) -> tuple[int, ...]:
        if embeddings.dim() != 2:
            raise ValueError(
                f"{cls.__name__}.from_pretrained: Embeddings parameter is expected to be "
                f"2-dimensional, but got shape {tuple(embeddings.shape)}."
            )
        return embeddings.shape


class Embedding(_Table):
    """A learned table of vectors: returns weight[input].

    Weight starts normal with mean 0 and deviation 1.

    Args:
        num_embeddings: number of rows.
        embedding_dim: length of each row.
        padding_idx: a row that starts as zeros and gets no gradient.
        max_norm: rows that are used and longer than this are scaled to it, in place.
        norm_type: order of the norm for max_norm.
        scale_grad_by_freq: whether to divide each row's gradient by how often it was used.
        sparse: whether the gradient of weight is a sparse tensor of the rows that were used.
        device: where to put the weight.
        dtype: its dtype.

    Shape:
        integers (*) to (*, embedding_dim).

    Raises:
        ValueError: if padding_idx is not a row.

    Example:
        >>> table = torch.nn.Embedding.from_pretrained(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> table(torch.tensor([1, 0, 1])).tolist()
        [[3.0, 4.0], [1.0, 2.0], [3.0, 4.0]]
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            weight = rl.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(weight, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            self._check_weight(_weight)
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        settings = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            settings.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            settings.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            settings.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            settings.append("scale_grad_by_freq=True")
        if self.sparse:
            settings.append("sparse=True")
        return ", ".join(settings)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """Returns an Embedding over a given table.

        Args:
            embeddings: table (num_embeddings, embedding_dim), whose memory is shared.
            freeze: whether the table is fixed rather than learned.
            padding_idx: see Embedding.
            max_norm: see Embedding.
            norm_type: see Embedding.
            scale_grad_by_freq: see Embedding.
            sparse: see Embedding.

        Raises:
            ValueError: if embeddings does not have 2 dimensions.

        Example:
            >>> table = torch.nn.Embedding.from_pretrained(torch.eye(2))
            >>> table.weight.requires_grad
            False
        """
        rows, columns = cls._table_sizes(embeddings)
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of rows of a learned table; the rows are never gathered.

    Weight starts normal with mean 0 and deviation 1.

    Args:
        num_embeddings: number of rows.
        embedding_dim: length of each row.
        max_norm: rows that are used and longer than this are scaled to it, in place.
        norm_type: order of the norm for max_norm.
        scale_grad_by_freq: whether to divide each row's gradient by how often it was used.
        mode: "sum", "mean" or "max".
        sparse: whether the gradient of weight is a sparse tensor of the rows that were used.
        include_last_offset: whether offsets ends with the end of the last bag.
        padding_idx: a row that counts in no bag, starts as zeros and gets no gradient.
        device: where to put the weight.
        dtype: its dtype.

    Shape:
        integers (B, N), or (N) with offsets (B), to (B, embedding_dim).

    Raises:
        ValueError: if padding_idx is not a row.

    Example:
        >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> bags = torch.nn.EmbeddingBag.from_pretrained(table, mode="sum")
        >>> bags(torch.tensor([[0, 1], [1, 1]])).tolist()
        [[4.0, 6.0], [6.0, 8.0]]
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if _weight is None:
            weight = rl.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(weight)
            self.reset_parameters()
        else:
            self._check_weight(_weight)
            self.weight = Parameter(_weight)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        settings = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            settings.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            settings.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            settings.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        settings.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            settings.append(f"padding_idx={self.padding_idx}")
        return ", ".join(settings)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """Returns an EmbeddingBag over a given table.

        Args:
            embeddings: table (num_embeddings, embedding_dim), whose memory is shared.
            freeze: whether the table is fixed rather than learned.
            max_norm: see EmbeddingBag, as for the arguments that follow.
            norm_type: see EmbeddingBag.
            scale_grad_by_freq: see EmbeddingBag.
            mode: see EmbeddingBag.
            sparse: see EmbeddingBag.
            include_last_offset: see EmbeddingBag.
            padding_idx: see EmbeddingBag.

        Raises:
            ValueError: if embeddings does not have 2 dimensions.

        Example:
            >>> bags = torch.nn.EmbeddingBag.from_pretrained(torch.eye(2))
            >>> bags.weight.requires_grad
            False
        """
        rows, columns = cls._table_sizes(embeddings)
        bag = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        bag.weight.requires_grad = not freeze
        return bag
