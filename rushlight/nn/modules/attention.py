"""Attention over several heads as a layer."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn._attention import changed_inputs
from rushlight.nn.modules.linear import NonDynamicallyQuantizableLinear
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import check_sizes
from rushlight.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of several heads to parts of their input (Vaswani et al. 2017, section 3.2.2).

    concat(head_1, ..., head_h) @ W_O, where head_i = attention(query @ W_Q[i], key @ W_K[i],
    value @ W_V[i]). Projections start as xavier_uniform_ says, biases at 0.

    Args:
        embed_dim: width E of queries and results.
        num_heads: number of heads, which divides E.
        dropout: probability that a weight is dropped in training.
        bias: whether projections have a bias.
        add_bias_kv: whether to learn one more key and value.
        add_zero_attn: whether to add a key and a value of zeros.
        kdim: width of keys; E if None.
        vdim: width of values; E if None.
        batch_first: whether the batch is the first dimension, not the second.
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        query (L, N, E), key (S, N, kdim), value (S, N, vdim), or the same without N; or N first.

    Example:
        >>> layer = torch.nn.MultiheadAttention(4, 2, batch_first=True)
        >>> x = torch.zeros(1, 3, 4)
        >>> out, weights = layer(x, x, x)
        >>> tuple(out.shape), tuple(weights.shape)
        ((1, 3, 4), (1, 3, 3))
    """

    bias_k: Parameter | None
    bias_v: Parameter | None
    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        check_sizes(self, embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"MultiheadAttention: embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads}."
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError(
                f"MultiheadAttention: embed_dim must be divisible by num_heads, got {embed_dim} "
                f"and {num_heads}."
            )
        factory: Any = {"device": device, "dtype": dtype}

        def register(name: str, exists: bool, *sizes: int) -> None:
            parameter = Parameter(rl.empty(sizes, **factory)) if exists else None
            self.register_parameter(name, parameter)

        packed = self._qkv_same_embed_dim
        register("in_proj_weight", packed, 3 * embed_dim, embed_dim)
        register("q_proj_weight", not packed, embed_dim, embed_dim)
        register("k_proj_weight", not packed, embed_dim, self.kdim)
        register("v_proj_weight", not packed, embed_dim, self.vdim)
        register("in_proj_bias", bias, 3 * embed_dim)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **factory)
        register("bias_k", add_bias_kv, 1, 1, embed_dim)
        register("bias_v", add_bias_kv, 1, 1, embed_dim)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        weights = self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        for weight in weights:
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Returns two masks as one, and which of them it came from.

        Args:
            attn_mask: (L, S) or (B * num_heads, L, S), or None.
            key_padding_mask: (B, S), or None; of the same dtype.
            query: what attends, of batch size B.

        Returns:
            The mask, of shape (B, num_heads, L, S), and 2; without attn_mask, the other one and 1;
            without both, None and None.
        """
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        B, (L, S) = query.shape[0], attn_mask.shape[-2:]
        samples, heads = (B, self.num_heads) if attn_mask.dim() == 3 else (1, 1)
        merged = attn_mask.view(samples, heads, L, S).expand(B, self.num_heads, L, S)
        return merged if key_padding_mask is None else merged + key_padding_mask[:, None, None], 2

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns what each query is told, and the weights of the keys unless not needed.

        The masks and the other arguments are those of F.multi_head_attention_forward, which does
        it.
        """
        key_padding_mask = F._canonical_mask(
            key_padding_mask,
            "key_padding_mask",
            F._none_or_dtype(attn_mask),
            "attn_mask",
            query.dtype,
        )
        attn_mask = F._canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        if query.is_nested and not self.batch_first:
            raise AssertionError(
                "MultiheadAttention: the batch of a nested tensor is its first dim. Use "
                "batch_first=True."
            )
        turns = self.batch_first and query.dim() == 3 and not query.is_nested
        if turns:
            query, key, value = changed_inputs(lambda x: x.transpose(0, 1), query, key, value)
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        if turns:
            out = out.transpose(0, 1)
            if not self.training and not rl.is_grad_enabled():
                out = out.contiguous()  # as PyTorch's kernel for inference gives it
        return out, weights
