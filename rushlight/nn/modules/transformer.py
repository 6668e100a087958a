"""The Transformer (Vaswani et al. 2017), its encoder and its decoder.

_transformer_layers.py has their layers.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.init import xavier_uniform_ as xavier_uniform_
from rushlight.nn.modules._transformer_layers import (
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)
from rushlight.nn.modules._transformer_layers import _get_activation_fn as _get_activation_fn
from rushlight.nn.modules.activation import GELU, ReLU
from rushlight.nn.modules.attention import MultiheadAttention as MultiheadAttention
from rushlight.nn.modules.container import ModuleList
from rushlight.nn.modules.dropout import Dropout as Dropout
from rushlight.nn.modules.linear import Linear as Linear
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


# Copies of these layers call the next three by PyTorch's names.


def _generate_square_subsequent_mask(
    sz: int, device: rl.device | str | None = None, dtype: rl.dtype | None = None
) -> Tensor:
    return rl.full((sz, sz), -math.inf, device=device, dtype=dtype).triu(1)


def _get_seq_len(src: Tensor, batch_first: bool) -> int | None:
    """The length of a sequence, or of those of a batch; None if they have several."""
    return None if src.is_nested else src.shape[1 if batch_first and src.dim() == 3 else 0]


def _detect_is_causal_mask(
    mask: Tensor | None, is_causal: bool | None = None, size: int | None = None
) -> bool:
    """What was said about a mask, else whether it is the causal one for sequences of a size."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    size = mask.shape[-2] if size is None else size
    causal = _generate_square_subsequent_mask(size, mask.device, mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())


def _may_nest(layer: Module) -> bool:
    """Whether PyTorch has a faster form of a stack of such layers, which leaves padding out."""
    return (
        isinstance(layer, TransformerEncoderLayer)
        and not layer.norm_first
        and layer.self_attn.batch_first
        and layer.self_attn._qkv_same_embed_dim
        and layer.self_attn.in_proj_bias is not None
        and (layer.activation in (F.relu, F.gelu) or isinstance(layer.activation, (ReLU, GELU)))
        and layer.norm1.eps == layer.norm2.eps
        and layer.self_attn.num_heads % 2 == 0
    )


def _get_clones(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """A stack of encoder layers, copies of one.

    Args:
        encoder_layer: the layer to copy.
        num_layers: how many.
        norm: applied to the result.
        enable_nested_tensor: whether padded places of the last layer's result are zero, where
            PyTorch leaves padding out: in evaluation, without gradients, for a batch of which
            src_key_padding_mask hides the ends, and layers with batch_first. Else, and without it,
            they are computed like the others.
        mask_check: whether to look if the mask hides nothing but the ends.

    Shape:
        That of the layers.

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(4, 2, dim_feedforward=8)
        >>> tuple(torch.nn.TransformerEncoder(layer, 2)(torch.zeros(5, 3, 4)).shape)
        (5, 3, 4)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor and _may_nest(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Returns the sequence after all layers.

        Args:
            src: the sequence.
            mask: (S, S), True or -inf for what is not seen.
            src_key_padding_mask: (N, S), True or -inf for what nothing sees.
            is_causal: whether mask is the causal one; found out if None.
        """
        src_key_padding_mask = F._canonical_mask(
            src_key_padding_mask,
            "src_key_padding_mask",
            F._none_or_dtype(mask),
            "mask",
            src.dtype,
        )
        mask = F._canonical_mask(mask, "mask", None, "", src.dtype, False)
        length = _get_seq_len(src, self.layers[0].self_attn.batch_first)
        is_causal = _detect_is_causal_mask(mask, is_causal, length)
        out = src
        for layer in self.layers:
            out = layer(
                out,
                src_mask=mask,
                src_key_padding_mask=src_key_padding_mask,
                is_causal=is_causal,
            )
        if src_key_padding_mask is not None and mask is None and self._leaves_out_padding(src):
            padded = src_key_padding_mask != 0
            if not self.mask_check or bool((padded[:, 1:] | ~padded[:, :-1]).all()):
                out = out.masked_fill(padded.unsqueeze(-1), 0.0)
        return out if self.norm is None else self.norm(out)

    def _leaves_out_padding(self, src: Tensor) -> bool:
        """Whether PyTorch would leave padding at the ends of sequences out."""
        first = self.layers[0]
        return (
            self.use_nested_tensor
            and rl.backends.mha.get_fastpath_enabled()
            and not first.training
            and not rl.compiler.is_exporting()
            and src.dim() == 3
            and not rl.is_autocast_enabled()
            and not (
                rl.is_grad_enabled()
                and (src.requires_grad or any(param.requires_grad for param in first.parameters()))
            )
        )


class TransformerDecoder(Module):
    """A stack of decoder layers, copies of one.

    Args:
        decoder_layer: the layer to copy.
        num_layers: how many.
        norm: applied to the result.

    Shape:
        That of the layers.

    Example:
        >>> layer = torch.nn.TransformerDecoderLayer(4, 2, dim_feedforward=8)
        >>> decoder = torch.nn.TransformerDecoder(layer, 2)
        >>> tuple(decoder(torch.zeros(5, 3, 4), torch.zeros(6, 3, 4)).shape)
        (5, 3, 4)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Returns the sequence after all layers; the arguments are those of a layer.

        tgt_is_causal is found out if None.
        """
        length = _get_seq_len(tgt, self.layers[0].self_attn.batch_first)
        tgt_is_causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, length)
        out = tgt
        for layer in self.layers:
            out = layer(
                out,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return out if self.norm is None else self.norm(out)


class Transformer(Module):
    """Encoder and decoder (Vaswani et al. 2017). Matrices start as xavier_uniform_ says.

    Args:
        d_model: width E.
        nhead: number of heads.
        num_encoder_layers: layers of the encoder.
        num_decoder_layers: layers of the decoder.
        dim_feedforward: width between the two maps of a layer.
        dropout: probability that elements are dropped in training.
        activation: "relu", "gelu" or a function.
        custom_encoder: replaces the encoder.
        custom_decoder: replaces the decoder.
        layer_norm_eps: eps of the norms.
        batch_first: whether the batch is the first dimension, not the second.
        norm_first: whether to normalize before the blocks.
        bias: whether maps and norms have a bias.
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        src (S, N, E) and tgt (T, N, E) to (T, N, E); N first with batch_first; or without N.

    Example:
        >>> model = torch.nn.Transformer(4, 2, 1, 1, dim_feedforward=8)
        >>> tuple(model(torch.zeros(6, 3, 4), torch.zeros(5, 3, 4)).shape)
        (5, 3, 4)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__()
        factory: Any = {"device": device, "dtype": dtype}
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        options += (batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)

        if custom_encoder is None:
            layer = TransformerEncoderLayer(*options, **factory)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*options, **factory)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Returns the target sequence after the decoder, whose memory is the encoded source.

        The arguments are those of TransformerEncoder and TransformerDecoder.
        """
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError(
                "the batch number of src and tgt must be equal, got "
                f"{src.shape[batch]} and {tgt.shape[batch]}."
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(
                "the feature number of src and tgt must be equal to d_model, got "
                f"{src.shape[-1]}, {tgt.shape[-1]} and {self.d_model}."
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: rl.device | str | None = None, dtype: rl.dtype | None = None
    ) -> Tensor:
        """Returns the causal mask (sz, sz): -inf above the diagonal, else 0.

        Args:
            sz: length of the sequence.
            device: where to put it.
            dtype: its dtype.

        Example:
            >>> torch.nn.Transformer.generate_square_subsequent_mask(2).tolist()
            [[0.0, -inf], [0.0, 0.0]]
        """
        return _generate_square_subsequent_mask(sz, device, dtype)
