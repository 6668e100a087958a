"""Tables of 8-bit rows, each with a scale and a float zero point of its own."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight._quantized import PerChannel
from rushlight.ao.nn.quantized._base import PrintedInOneLine, take
from rushlight.ao.nn.quantized._packed import quantize_weight
from rushlight.nn import Module
from rushlight.nn import functional as F

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingPackedParams"]


class EmbeddingPackedParams(Module):
    """The table, where PyTorch's files have it.

    Args:
        num_embeddings: rows.
        embedding_dim: numbers in a row.
        dtype: torch.quint8.
    """

    _version = 1

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = None) -> None:
        super().__init__()
        self.dtype = rl.quint8 if dtype is None else dtype
        if self.dtype is not rl.quint8:
            raise NotImplementedError(
                f"Embedding: dtype must be torch.quint8, but is {dtype}. Tables of 4 bits "
                "are not there."
            )
        ones, zeros = rl.ones(num_embeddings), rl.zeros(num_embeddings)
        table = rl.zeros(num_embeddings, embedding_dim, dtype=rl.uint8)
        self.set_weight(rl._make_per_channel_quantized_tensor(table, ones, zeros, 0))

    def set_weight(self, weight: Any) -> None:
        """Takes a table that is quantized per channel with float zero points."""
        if weight.qscheme() is not rl.per_channel_affine_float_qparams:
            raise RuntimeError(
                "Embedding: the table must have scheme per_channel_affine_float_qparams, but has "
                f"{weight.qscheme()}. Use float_qparams_weight_only_qconfig."
            )
        self._packed_weight = weight

    def _weight(self) -> Any:
        return self._packed_weight

    def rows(self, indices: Tensor) -> Tensor:
        """Returns rows of the table in float32."""
        from rushlight._quantized import integers_of

        form: PerChannel = self._packed_weight.form
        rows = integers_of(self._packed_weight)[indices].float()
        return (rows - form.zero_points[indices].unsqueeze(-1)) * form.scales[indices].unsqueeze(-1)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_weight"] = self._packed_weight

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        take(state_dict, prefix + "dtype", args[2])
        weight = take(state_dict, prefix + "_packed_weight", args[2])
        if weight is not None:
            self.set_weight(weight)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


class Embedding(PrintedInOneLine):
    """nn.Embedding whose table has 8 bits for each number; results are float32.

    Args:
        num_embeddings: rows.
        embedding_dim: numbers in a row.
        padding_idx: kept for its name; the row is one like others.

    Example:
        >>> layer = torch.ao.nn.quantized.Embedding(10, 3)
        >>> layer(torch.tensor([1, 2])).shape
        torch.Size([2, 3])
    """

    _version = 1

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            self.set_weight(_weight)

    def forward(self, indices: Tensor) -> Tensor:
        """Returns the rows at indices."""
        return self._packed_params.rows(indices)

    def weight(self) -> Any:
        """The table, of dtype quint8."""
        return self._packed_params._weight()

    def set_weight(self, w: Any) -> None:
        """Replaces the table."""
        self._packed_params.set_weight(w)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    def extra_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"dtype={self._packed_params.dtype}, qscheme={self.weight().qscheme()}"
        )

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Returns the quantized form of a float layer with float_qparams_weight_only_qconfig."""
        observer = getattr(mod, "weight_fake_quant", None) or mod.qconfig.weight()
        observer(mod.weight)
        result = cls(*cls._arguments(mod))
        result.set_weight(quantize_weight(mod.weight, observer))
        return result

    @classmethod
    def from_reference(cls, ref_embedding: Any) -> Any:
        """Returns the quantized form of a reference layer."""
        result = cls(*cls._arguments(ref_embedding))
        result.set_weight(ref_embedding.get_quantized_weight())
        return result

    @staticmethod
    def _arguments(mod: Any) -> tuple[Any, ...]:
        return mod.num_embeddings, mod.embedding_dim, mod.padding_idx


class EmbeddingBag(Embedding):
    """nn.EmbeddingBag, for sums, whose table has 8 bits for each number.

    Args:
        num_embeddings: rows.
        embedding_dim: numbers in a row.
        mode: 'sum' or 'mean'.
        include_last_offset: that offsets end with the number of indices.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "sum",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(
        self,
        indices: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
        compressed_indices_mapping: None = None,
    ) -> Tensor:
        """Returns the sum of each bag of rows."""
        rows = self._packed_params.rows(indices.reshape(-1))
        places = rl.arange(rows.shape[0]).view(indices.shape)
        return F.embedding_bag(
            places,
            rows,
            offsets,
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
        )

    @staticmethod
    def _arguments(mod: Any) -> tuple[Any, ...]:
        return (
            mod.num_embeddings,
            mod.embedding_dim,
            None,
            2.0,
            False,
            mod.mode,
            False,
            None,
            mod.include_last_offset,
        )
