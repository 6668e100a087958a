"""The layers that encoders and decoders of transformer.py are stacks of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn.modules.attention import MultiheadAttention
from rushlight.nn.modules.dropout import Dropout
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]

__all__ = ["TransformerDecoderLayer", "TransformerEncoderLayer"]


def _get_activation_fn(name: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(name, str):
        return name
    if name not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {name}")
    return getattr(F, name)


def _attend(
    attention: MultiheadAttention,
    x: Tensor,
    memory: Tensor,
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    is_causal: bool,
) -> Tensor:
    return attention(
        x,
        memory,
        memory,
        attn_mask=attn_mask,
        key_padding_mask=key_padding_mask,
        is_causal=is_causal,
        need_weights=False,
    )[0]


class _Layer(Module):
    """What layers of encoders and decoders share: attention to themselves and the two maps."""

    self_attn: MultiheadAttention
    norm1: LayerNorm
    norm2: LayerNorm
    dropout1: Dropout
    dropout2: Dropout

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        activation: Activation,
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        factory: Any,
        attentions: tuple[str, ...],
    ) -> None:
        super().__init__()
        for name in attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, batch_first=batch_first, bias=bias, **factory
            )
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory)
        self.norm_first = norm_first
        blocks = range(1, len(attentions) + 2)  # of attention and, last, of the two maps
        for i in blocks:
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
            self.add_module(f"norm{i}", norm)
        for i in blocks:
            self.add_module(f"dropout{i}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def _add(self, x: Tensor, block: Callable[[Tensor], Tensor], norm: Module) -> Tensor:
        """x plus what a block makes of it, normalized before or after."""
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        return self.dropout1(_attend(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _maps(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two affine maps of each position.

    x = norm1(x + self_attn(x)), then norm2(x + linear2(activation(linear1(x)))), with dropout; or
    norms before the blocks with norm_first (Xiong et al. 2020).

    Args:
        d_model: width E.
        nhead: number of heads.
        dim_feedforward: width between the two maps.
        dropout: probability that elements are dropped in training.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: eps of the norms.
        batch_first: whether the batch is the first dimension, not the second.
        norm_first: whether to normalize before the blocks.
        bias: whether maps and norms have a bias.
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        (S, N, E), (N, S, E) with batch_first, or (S, E), unchanged.

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(4, 2, dim_feedforward=8, batch_first=True)
        >>> tuple(layer(torch.zeros(5, 3, 4)).shape)
        (5, 3, 4)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias, {"device": device, "dtype": dtype}, ("self_attn",),
        )  # fmt: skip

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Returns the sequence after the layer.

        Args:
            src: the sequence.
            src_mask: (S, S) or (N * nhead, S, S), True or -inf for what is not seen.
            src_key_padding_mask: (N, S), True or -inf for what nothing sees.
            is_causal: a hint that src_mask is the causal one.
        """
        src_key_padding_mask = F._canonical_mask(
            src_key_padding_mask,
            "src_key_padding_mask",
            F._none_or_dtype(src_mask),
            "src_mask",
            src.dtype,
        )
        src_mask = F._canonical_mask(src_mask, "src_mask", None, "", src.dtype, False)

        x = self._add(
            src,
            lambda x: self._sa_block(x, src_mask, src_key_padding_mask, is_causal),
            self.norm1,
        )
        return self._add(x, self._ff_block, self.norm2)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._maps(x))


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself and to a memory, then two affine maps of each position.

    The arguments are those of TransformerEncoderLayer.

    Args:
        d_model: width E.
        nhead: number of heads.
        dim_feedforward: width between the two maps.
        dropout: probability that elements are dropped in training.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: eps of the norms.
        batch_first: whether the batch is the first dimension, not the second.
        norm_first: whether to normalize before the blocks.
        bias: whether maps and norms have a bias.
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        tgt (T, N, E) and memory (S, N, E) to (T, N, E); N first with batch_first; or without N.

    Example:
        >>> layer = torch.nn.TransformerDecoderLayer(4, 2, dim_feedforward=8)
        >>> tuple(layer(torch.zeros(5, 3, 4), torch.zeros(6, 3, 4)).shape)
        (5, 3, 4)
    """

    multihead_attn: MultiheadAttention
    norm3: LayerNorm
    dropout3: Dropout

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias, {"device": device, "dtype": dtype}, ("self_attn", "multihead_attn"),
        )  # fmt: skip

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Returns the sequence after the layer.

        Args:
            tgt: the sequence.
            memory: what the encoder made.
            tgt_mask: (T, T), True or -inf for what the sequence does not see of itself.
            memory_mask: (T, S), likewise of the memory.
            tgt_key_padding_mask: (N, T), True or -inf for what nothing sees.
            memory_key_padding_mask: (N, S), likewise.
            tgt_is_causal: a hint that tgt_mask is the causal one.
            memory_is_causal: a hint that memory_mask is the causal one.
        """
        x = self._add(
            tgt,
            lambda x: self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal),
            self.norm1,
        )
        x = self._add(
            x,
            lambda x: self._mha_block(
                x, memory, memory_mask, memory_key_padding_mask, memory_is_causal
            ),
            self.norm2,
        )
        return self._add(x, self._ff_block, self.norm3)

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        attention = self.multihead_attn
        return self.dropout2(_attend(attention, x, mem, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._maps(x))
