"""What PyTorch's transformer layers call for inference, under the names that it has in torch.

Libraries with copies of these layers call it, too, in evaluation without gradients. Nothing here is
faster than the layers of torch.nn, which compute the same.
"""

from __future__ import annotations

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn._attention import changed_inputs


def _native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor | None,
    proj_weight: Tensor,
    proj_bias: Tensor | None,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Returns nn.functional.multi_head_attention_forward of sequences (N, L, E), or nested ones.

    Args:
        query: what attends, and so on as there.
        mask: True for what is not seen, or numbers that are added to the scores.
        mask_type: 0 for a mask of shape (L, S), 1 for (N, S), 2 for (N, num_head, L, S).

    Raises:
        RuntimeError: if there is a mask without its type.
    """
    if mask is not None:
        if mask_type is None and mask.dim() != 4:
            raise RuntimeError(
                f"_native_multi_head_attention: Mask Type should be defined for a mask of shape "
                f"{tuple(mask.shape)}. Pass mask_type=0 for (L, S) or 1 for (N, S)."
            )
        if not mask.is_floating_point():
            mask = mask.to(rl.bool)
        if mask.dim() == 4:
            mask = mask.flatten(0, 1)
    of_keys = mask_type == 1
    if not query.is_nested:
        query, key, value = changed_inputs(lambda x: x.transpose(0, 1), query, key, value)
    out, weights = F.multi_head_attention_forward(
        query,
        key,
        value,
        embed_dim,
        num_head,
        qkv_weight,
        qkv_bias,
        None,
        None,
        False,
        0.0,
        proj_weight,
        proj_bias,
        training=False,
        key_padding_mask=mask if of_keys else None,
        need_weights=need_weights,
        attn_mask=None if of_keys else mask,
        average_attn_weights=average_attn_weights,
    )
    return out if query.is_nested else out.transpose(0, 1).contiguous(), weights


def _transformer_encoder_layer_fwd(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor | None,
    proj_weight: Tensor,
    proj_bias: Tensor | None,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor | None,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor | None,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor | None,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor | None,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """Returns what nn.TransformerEncoderLayer of these parameters does in evaluation.

    src is (N, L, E) or nested; mask and mask_type are those of _native_multi_head_attention.
    """

    def attention(x: Tensor) -> Tensor:
        return _native_multi_head_attention(
            x,
            x,
            x,
            embed_dim,
            num_heads,
            qkv_weight,
            qkv_bias,
            proj_weight,
            proj_bias,
            mask,
            need_weights=False,
            mask_type=mask_type,
        )[0]

    def maps(x: Tensor) -> Tensor:
        activation = F.gelu if use_gelu else F.relu
        return F.linear(activation(F.linear(x, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)

    def norm1(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm2(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attention(norm1(src))
        return x + maps(norm2(x))
    x = norm1(src + attention(src))
    return norm2(x + maps(x))


def _masked_softmax(
    input: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None
) -> Tensor:
    """Returns softmax of the scores (N, num_head, L, S) that are seen, and 0 for the others.

    Args:
        input: the scores, of any shape for mask_type 2.
        mask: True for what is not seen.
        dim: whose numbers sum to one; the last by default.
        mask_type: 0 for a mask of shape (L, S), 1 for (N, S), 2, the default, for that of input.

    Raises:
        RuntimeError: if the mask is not of bool or of another shape.
    """
    if mask.dtype is not rl.bool:
        raise RuntimeError(
            f"_masked_softmax: Mask should be a boolean tensor, not of {mask.dtype}. Call bool()."
        )
    if input.dim() == 4 and mask_type == 0 and mask.shape == input.shape[2:]:
        mask = mask.expand_as(input)
    elif input.dim() == 4 and mask_type == 1 and mask.shape == (input.shape[0], input.shape[3]):
        mask = mask[:, None, None].expand_as(input)
    if mask.shape != input.shape:
        raise RuntimeError(
            f"_masked_softmax: For mask_type == {mask_type} mask shape should match input shape "
            f"{tuple(input.shape)}, but it is {tuple(mask.shape)}. mask_type 0 takes (L, S), and 1 "
            "(N, S), of scores (N, num_head, L, S)."
        )
    return rl.softmax(input.masked_fill(mask, float("-inf")), -1 if dim is None else dim)


def _nested_tensor_from_mask_left_aligned(t: Tensor, mask: Tensor) -> bool:
    """Returns whether each row of a mask (N, L) is True in its first places and then False."""
    lengths = _lengths(t, mask)
    places = rl.arange(mask.shape[1], device=mask.device)
    return rl.equal(mask, places < lengths.unsqueeze(1))


def _nested_tensor_from_mask(t: Tensor, mask: Tensor, mask_check: bool = True) -> Tensor:
    """Returns a nested tensor of those places of t (N, L, E) for which a mask (N, L) is True.

    Raises:
        RuntimeError: if shapes do not fit, or with mask_check, if places in between are False.
    """
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError(
            "_nested_tensor_from_mask: Mask must be left-aligned without gaps, True for the first "
            "places of each sequence."
        )
    lengths: list[int] = _lengths(t, mask).tolist()
    parts = [sequence[:length] for sequence, length in zip(t, lengths, strict=True)]
    return rl.nested.as_nested_tensor(parts, layout=rl.strided)


def _lengths(t: Tensor, mask: Tensor) -> Tensor:
    if t.dim() != 3 or mask.shape != t.shape[:2] or mask.dtype != rl.bool:
        raise RuntimeError(
            "_nested_tensor_from_mask: expected a tensor of shape (N, L, E) and a bool mask of "
            f"shape (N, L), but got {tuple(t.shape)} and {tuple(mask.shape)} of {mask.dtype}."
        )
    return mask.sum(1)
