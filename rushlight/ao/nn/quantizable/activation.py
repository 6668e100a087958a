"""Attention of linear layers and stubs, each of which has a form of its own."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.ao.nn import quantized as nnq
from rushlight.ao.nn.quantizable.rnn import _check_float, _own
from rushlight.nn import functional as F

__all__ = ["MultiheadAttention"]


class MultiheadAttention(nn.MultiheadAttention):
    """nn.MultiheadAttention whose products with weights are observed one by one.

    The products of queries, keys and values among each other are those of floats. Its arguments are
    those of nn.MultiheadAttention.

    Example:
        >>> attention = torch.ao.nn.quantizable.MultiheadAttention(8, 2)
        >>> x = torch.zeros(5, 1, 8)
        >>> attention(x, x, x)[0].shape
        torch.Size([5, 1, 8])
    """

    _FLOAT_MODULE: Any = nn.MultiheadAttention

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        from rushlight.ao.quantization.stubs import DeQuantStub, QuantStub

        super().__init__(*args, **kwargs)
        has_bias = self.in_proj_bias is not None
        self.linear_Q: Any = nn.Linear(self.embed_dim, self.embed_dim, has_bias)
        self.linear_K: Any = nn.Linear(self.kdim, self.embed_dim, has_bias)
        self.linear_V: Any = nn.Linear(self.vdim, self.embed_dim, has_bias)
        self.out_proj: Any = nn.Linear(self.embed_dim, self.embed_dim, has_bias)
        self.q_scaling_product = nnq.FloatFunctional()
        self.quant_attn_output = QuantStub()
        self.quant_attn_output_weights = QuantStub()
        self.dequant_q, self.dequant_k, self.dequant_v = DeQuantStub(), DeQuantStub(), DeQuantStub()

    def _get_name(self) -> str:
        return "QuantizableMultiheadAttention"

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
        """Returns the attended values, and the weights or None; see nn.MultiheadAttention.

        Raises:
            AssertionError: for is_causal, or inputs without a batch.
        """
        if is_causal:
            raise AssertionError("causal mask not supported by AO MHA module")
        if query.dim() != 3:
            raise AssertionError(
                f"MultiheadAttention: the query must be (L, N, E), but has {query.dim()} dims."
            )
        if self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        length, batch, _ = query.shape
        q = self.q_scaling_product.mul_scalar(self.linear_Q(query), self.head_dim**-0.5)
        k, v = self.linear_K(key), self.linear_V(value)
        k, v = (self._lengthened(x, bias) for x, bias in ((k, self.bias_k), (v, self.bias_v)))
        q, k, v = (
            stub(self._by_head(x))
            for stub, x in (
                (self.dequant_q, q),
                (self.dequant_k, k),
                (self.dequant_v, v),
            )
        )  # (N * heads, length, head_dim)
        scores = rl.bmm(q, k.transpose(1, 2)).unflatten(0, (batch, self.num_heads))
        scores = self._masked(scores, attn_mask, key_padding_mask)
        weights = F.dropout(F.softmax(scores, dim=-1), self.dropout, self.training)
        attended = rl.bmm(weights.flatten(0, 1), v)
        attended = attended.transpose(0, 1).reshape(length, batch, self.embed_dim)
        output = self.out_proj(self.quant_attn_output(attended))
        weights = self.quant_attn_output_weights(weights)
        if self.batch_first:
            output = output.transpose(0, 1)
        if not need_weights:
            return output, None
        return output, weights.mean(1) if average_attn_weights else weights

    def _by_head(self, x: Tensor) -> Tensor:
        x = x.contiguous().view(x.shape[0], -1, self.head_dim)
        return x.transpose(0, 1)

    def _lengthened(self, x: Tensor, bias: Any) -> Tensor:
        """Keys or values with the bias and the zeros that the layer adds."""
        parts = [x] if bias is None else [x, bias.repeat(1, x.shape[1], 1)]
        if self.add_zero_attn:
            zeros = rl.zeros(1, *x.shape[1:])
            if x.is_quantized:
                zeros = rl.quantize_per_tensor(zeros, x.q_scale(), x.q_zero_point(), x.dtype)
            parts.append(zeros)
        return rl.cat(parts, 0) if len(parts) > 1 else x

    def _masked(self, scores: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor:
        """Scores (N, heads, L, S) with -inf where nothing is to be attended."""
        added = scores.shape[-1]
        if mask is not None:
            if mask.dim() == 3:
                mask = mask.unflatten(0, scores.shape[:2])
            mask = F.pad(mask, (0, added - mask.shape[-1]))
            if mask.dtype is rl.bool:
                scores = scores.masked_fill(mask, float("-inf"))
            else:
                scores = scores + mask
        if padding is not None:
            padding = F.pad(padding, (0, added - padding.shape[-1]))[:, None, None]
            if padding.dtype is rl.bool:
                return scores.masked_fill(padding, float("-inf"))
            scores = scores + padding
        return scores

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """Returns the observed form of an nn.MultiheadAttention that has a qconfig."""
        from rushlight.ao.quantization import prepare

        _check_float(cls, other)
        result = cls(
            other.embed_dim,
            other.num_heads,
            other.dropout,
            other.in_proj_bias is not None,
            other.bias_k is not None,
            other.add_zero_attn,
            other.kdim,
            other.vdim,
            other.batch_first,
        )
        result.bias_k, result.bias_v = other.bias_k, other.bias_v
        result.out_proj.weight, result.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        weights = (other.q_proj_weight, other.k_proj_weight, other.v_proj_weight)
        if other._qkv_same_embed_dim:
            weights = other.in_proj_weight.chunk(3)
        layers = (result.linear_Q, result.linear_K, result.linear_V)
        for layer, weight in zip(layers, weights, strict=True):
            layer.weight = _own(weight)
        if other.in_proj_bias is not None:
            for layer, bias in zip(layers, other.in_proj_bias.chunk(3), strict=True):
                layer.bias = _own(bias)
        result.qconfig = other.qconfig
        return prepare(result.eval(), inplace=True)

    def dequantize(self) -> nn.MultiheadAttention:
        """Returns the float layer with the rounded weights of a quantized one."""
        layers = (self.linear_Q, self.linear_K, self.linear_V)
        parts = [layer._weight_bias() for layer in layers]
        result = nn.MultiheadAttention(
            self.embed_dim,
            self.num_heads,
            self.dropout,
            parts[0][1] is not None,
            self.bias_k is not None,
            self.add_zero_attn,
            self.kdim,
            self.vdim,
            self.batch_first,
        )
        weight, bias = self.out_proj._weight_bias()
        result.out_proj.weight = nn.Parameter(weight.dequantize())
        if bias is not None:
            result.out_proj.bias = nn.Parameter(bias)
        for name in ("bias_k", "bias_v"):
            if getattr(self, name) is not None:
                setattr(result, name, nn.Parameter(getattr(self, name).dequantize()))
        weights = [weight.dequantize() for weight, _ in parts]
        if result._qkv_same_embed_dim:
            result.in_proj_weight = nn.Parameter(rl.cat(weights))
        else:
            for name, each in zip("qkv", weights, strict=True):
                setattr(result, f"{name}_proj_weight", nn.Parameter(each))
        if parts[0][1] is not None:
            result.in_proj_bias = nn.Parameter(rl.cat([bias for _, bias in parts]))
        return result

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """Not here: torch.ao.nn.quantized.MultiheadAttention.from_observed quantizes it."""
        raise NotImplementedError(
            "MultiheadAttention: this class is observed. "
            "torch.ao.nn.quantized.MultiheadAttention.from_observed quantizes it."
        )
