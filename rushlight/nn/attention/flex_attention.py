"""Attention whose scores and mask are functions of the program.

A score function gets (score, batch, head, query, key) and returns the score; a mask function gets
the four places and tells whether the query may see the key. They are written for single numbers and
called for all at once, by vmap. Scores are in memory; a mask without a score function goes to
scaled_dot_product_attention, which never keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import rushlight as rl
from rushlight import Tensor
from rushlight.func import vmap
from rushlight.nn.functional import scaled_dot_product_attention

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class FlexKernelOptions(TypedDict, total=False):
    """Options of PyTorch's compiled kernels; accepted, and without effect."""

    BLOCK_M: int
    BLOCK_N: int
    num_warps: int
    num_stages: int
    BACKEND: str


class AuxRequest(NamedTuple):
    """What flex_attention should return beside its result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for by an AuxRequest, float32 of (B, Hq, L); None for what was not."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask by which all queries see all keys."""
    return batch.new_ones((), dtype=rl.bool)


def _joined(mask_mods: tuple[MaskMod, ...], join: Callable[[Tensor, Tensor], Tensor]) -> MaskMod:
    if not all(callable(mask_mod) for mask_mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def joined(*places: Tensor) -> Tensor:
        result = mask_mods[0](*places)
        for mask_mod in mask_mods[1:]:
            result = join(result, mask_mod(*places))
        return result

    return joined


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """Returns the mask that lets through what all of them let through.

    Example:
        >>> from rushlight.nn.attention.flex_attention import and_masks, create_mask
        >>> near = and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2)
        >>> create_mask(near, 1, 1, 3, 3).int()[0, 0]
        tensor([[1, 0, 0],
                [1, 1, 0],
                [0, 1, 1]], dtype=torch.int32)
    """
    return _joined(mask_mods, lambda x, y: x & y) if mask_mods else noop_mask


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """Returns the mask that lets through what any of them lets through."""
    return _joined(mask_mods, lambda x, y: x | y) if mask_mods else noop_mask


def _over_places(function: Callable[..., Tensor], takes_score: bool) -> Callable[..., Tensor]:
    """A function of single places as one of four ranges of places (and of all scores)."""
    first = (0,) if takes_score else ()
    for places in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None)):
        function = vmap(function, in_dims=(*first, *places))
    return vmap(function, in_dims=(*first, 0, None, None, None))


def _places(sizes: tuple[int, ...], device: Any) -> list[Tensor]:
    return [rl.arange(size, device=device) for size in sizes]


def create_mask(
    mod_fn: ScoreMod | MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """Returns the mask of a mask function, or of a score function that makes scores -inf.

    Args:
        mod_fn: a function of four places, or of a score and four places.
        B: number of samples; 1 when None.
        H: number of heads; 1 when None.
        Q_LEN: number of queries.
        KV_LEN: number of keys.
        device: of the places.

    Returns:
        (B, H, Q_LEN, KV_LEN), bool.
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    places = _places(sizes, device)
    if _count_arguments(mod_fn) == 5:
        return _over_places(mod_fn, True)(rl.zeros(sizes, device=device), *places) != -math.inf
    return _over_places(mod_fn, False)(*places).expand(sizes)


def _count_arguments(function: Callable[..., Any]) -> int:
    import inspect

    from rushlight._signatures import signature

    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = signature(function).parameters.values()
    if any(p.kind == inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return 4
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters)


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks of each row are set, and the columns with those first."""
    order = blocks.to(rl.int32).argsort(dim=-1, descending=True, stable=True)
    return blocks.sum(-1).to(rl.int32), order.to(rl.int32)


def _dense(counts: Tensor, indices: Tensor) -> Tensor:
    """The opposite of _ordered: int32, 1 where a block is set."""
    is_set = rl.arange(indices.shape[-1], device=indices.device) < counts[..., None]
    return rl.zeros_like(indices).scatter(-1, indices.long(), is_set.to(rl.int32))


class BlockMask:
    """A mask function and which blocks of queries and keys it touches; create_block_mask makes it.

    Attributes:
        kv_num_blocks: for each row of blocks, how many are partly seen, (B, H, rows), int32.
        kv_indices: their columns first, then the others, (B, H, rows, columns), int32.
        full_kv_num_blocks, full_kv_indices: the same for blocks that are seen whole, or None.
        q_num_blocks, q_indices, full_q_num_blocks, full_q_indices: the same by columns.
        BLOCK_SIZE: queries and keys of a block.
        seq_lengths: the numbers of queries and keys.
        mask_mod: the function, which alone decides what is seen.

    Example:
        >>> from rushlight.nn.attention.flex_attention import create_block_mask
        >>> create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256).to_dense()
        tensor([[[[1, 0],
                  [1, 1]]]], dtype=torch.int32)
    """

    _TENSORS = (
        "kv_num_blocks",
        "kv_indices",
        "full_kv_num_blocks",
        "full_kv_indices",
        "q_num_blocks",
        "q_indices",
        "full_q_num_blocks",
        "full_q_indices",
    )

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: MaskMod = noop_mask,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise RuntimeError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """Returns the mask whose blocks are given by rows; those by columns are worked out."""
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        by_column: list[Tensor | None] = [None] * 4
        if compute_q_blocks:
            by_column[:2] = _ordered(_dense(kv_num_blocks, kv_indices).transpose(-2, -1))
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                full = _dense(full_kv_num_blocks, full_kv_indices)
                by_column[2:] = _ordered(full.transpose(-2, -1))
        rows, columns = kv_indices.shape[-2:]
        return cls(
            seq_lengths or (rows * size[0], columns * size[1]),
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            *by_column,
            BLOCK_SIZE=size,
            mask_mod=mask_mod or noop_mask,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Returns how many pairs of a query and a key there are."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """Returns which blocks are touched, (B, H, rows, columns), int32."""
        dense = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            dense = dense | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return dense

    def sparsity(self) -> float:
        """Returns how many blocks are left out, in percent."""
        return 100 * (1 - self.to_dense().double().mean().item())

    def to(self, device: Any) -> BlockMask:
        """Returns the mask with its tensors on another device."""
        moved = BlockMask.__new__(BlockMask)
        moved.__dict__.update(self.__dict__)
        for name in self._TENSORS:
            tensor = getattr(self, name)
            setattr(moved, name, None if tensor is None else tensor.to(device))
        return moved

    def __getitem__(self, index: Any) -> BlockMask:
        """The blocks of some samples, heads or rows; the mask function must be set anew."""
        indices = index if isinstance(index, tuple) else (index,)
        indices = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in indices)
        counts, places = self.full_kv_num_blocks, self.full_kv_indices
        return BlockMask.from_kv_blocks(
            self.kv_num_blocks[indices],
            self.kv_indices[indices],
            None if counts is None else counts[indices],
            None if places is None else places[indices],
            BLOCK_SIZE=self.BLOCK_SIZE,
            seq_lengths=self.seq_lengths if len(indices) < 3 else None,
            compute_q_blocks=self.q_indices is not None,
        )

    def to_string(self, grid_size: tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Returns a picture of the blocks that are touched, for each sample and head.

        Args:
            grid_size: how many rows and columns the picture has at most; blocks share a place where
                there are more, and it is grey if not all are touched. (-1, -1) is one for each.
            limit: how many pictures there are at most.
        """
        dense = self.to_dense()
        dense = dense.reshape(-1, *dense.shape[-2:])
        steps = [
            1 if most == -1 else -(-size // most)
            for size, most in zip(dense.shape[1:], grid_size, strict=True)
        ]
        heads = self.kv_indices.size(-3)
        pictures = []
        for i, blocks in enumerate(dense[:limit]):
            rows = [
                "".join(_shade(place) for place in row.split(steps[1], 1))
                for row in blocks.split(steps[0])
            ]
            pictures.append(f"({i // heads}, {i % heads})\n" + "".join(f"{row}\n" for row in rows))
        if len(dense) > limit:
            pictures.append(
                "...\nTo print out more, set BlockMask.to_string(limit=N)\nYou can also index "
                "(BlockMask[batch, head]) to choose a specific batch or head"
            )
        return "\n".join(pictures)

    def __str__(self) -> str:
        return f"{repr(self)[:-1]}, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        return f"BlockMask(shape=({sizes}), sparsity={self.sparsity():.2f}%)"


def _shade(blocks: Tensor) -> str:
    """How a place of a picture looks whose blocks are touched (1) or not (0)."""
    return ("██" if blocks.all() else "░░") if blocks.any() else "  "


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """Returns a mask function with the blocks that it touches.

    Args:
        mask_mod: gets the places of sample, head, query and key; returns a bool.
        B: number of samples; 1, for all, when None.
        H: number of heads; 1, for all, when None.
        Q_LEN: number of queries.
        KV_LEN: number of keys.
        device: of the tensors.
        BLOCK_SIZE: of queries and keys.
        _compile: accepted; there is no compiler.
        separate_full_blocks: list blocks that are seen whole apart.
    """
    if _count_arguments(mask_mod) != 4:
        raise AssertionError(
            f"create_block_mask: mask_mod takes {_count_arguments(mask_mod)} arguments. It must "
            "take batch, head, q_idx and kv_idx."
        )
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // size[0]), -(-KV_LEN // size[1])
    padding = (0, columns * size[1] - KV_LEN, 0, rows * size[0] - Q_LEN)
    padded = rl.nn.functional.pad(mask, padding)
    blocks = padded.view(*mask.shape[:2], rows, size[0], columns, size[1])
    seen = blocks.sum(dim=(-3, -1))  # (B, H, rows, columns)
    full = seen == math.prod(size)
    partial = (seen > 0) & ~full if separate_full_blocks else seen > 0
    return BlockMask.from_kv_blocks(
        *_ordered(partial),
        *(_ordered(full) if separate_full_blocks else (None, None)),
        BLOCK_SIZE=size,
        mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention with scores of the program's making: softmax(score_mod(q k^T scale)) v.

    See Dong et al. 2024, Flex Attention. A query that sees no key gets zeros.

    Args:
        query: (B, Hq, L, E).
        key: (B, H, S, E); a batch of one serves all.
        value: (B, H, S, Ev).
        score_mod: gets (score, batch, head, query, key), returns the score.
        block_mask: which pairs count; by its mask_mod, for all pairs.
        scale: of the products, 1 / sqrt(E) by default.
        enable_gqa: heads of keys and values may serve several heads of queries.
        return_lse: return log(sum(exp(scores))), too.
        kernel_options: accepted.
        return_aux: what to return beside the result.

    Returns:
        (B, Hq, L, Ev); with return_lse also (B, Hq, L), with return_aux also an AuxOutput.

    Raises:
        ValueError: shapes or heads that do not fit.

    Example:
        >>> from rushlight.nn.attention.flex_attention import flex_attention
        >>> q, k, v = torch.randn(3, 1, 2, 5, 8)
        >>> def alibi(score, batch, head, query, key):
        ...     return score - (query - key).abs() * 2.0 ** -(head + 1)
        >>> flex_attention(q, k, v, alibi).shape
        torch.Size([1, 2, 5, 8])
    """
    _check(query, key, value, enable_gqa, block_mask)
    shared = query.shape[1] // key.shape[1]
    if shared > 1:
        key, value = key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1)
    key, value = (t.expand(query.shape[0], *t.shape[1:]) for t in (key, value))
    batch, heads, length = query.shape[:3]
    sizes = (batch, heads, length, key.shape[2])
    mask = None
    if block_mask is not None and block_mask.mask_mod is not noop_mask:
        mask = create_mask(block_mask.mask_mod, batch, heads, length, key.shape[2], query.device)
    request = return_aux or AuxRequest(lse=return_lse)
    if score_mod is None and not any(request):
        result = scaled_dot_product_attention(query, key, value, mask, scale=scale)
        return result if return_aux is None else (result, AuxOutput())

    wide = rl.float64 if query.dtype is rl.float64 else rl.float32
    scores = (query @ key.mT).to(wide) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if score_mod is not None:
        scores = _over_places(score_mod, True)(scores, *_places(sizes, query.device)).to(wide)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    sees_none = (scores == -math.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(sees_none, 0).softmax(-1).masked_fill(sees_none, 0)
    result = weights.to(query.dtype) @ value
    if return_lse:
        return result, scores.logsumexp(-1)
    if return_aux is None:
        return result
    return result, AuxOutput(
        lse=scores.logsumexp(-1) if request.lse else None,
        max_scores=scores.amax(-1) if request.max_scores else None,
    )


def _check(
    query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool, block_mask: BlockMask | None
) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise ValueError(
            "Expected query, key, and value to be 4D tensors, but got query.dim(): "
            f"{query.dim()}, key.dim(): {key.dim()} and value.dim(): {value.dim()}."
        )
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.shape[-1]} and E={key.shape[-1]}."
        )
    if query.shape[0] != key.shape[0] and key.shape[0] != 1:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or key/value of batch size 1, "
            f"but got Bq={query.shape[0]} and Bkv={key.shape[0]}."
        )
    heads, shared = query.shape[1], key.shape[1]
    if heads != shared and not enable_gqa:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={shared}. Try setting enable_gqa=True for GQA."
        )
    if shared == 0 or heads % shared:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={shared}."
        )
    if block_mask is not None:
        lengths = (query.shape[2], key.shape[2])
        fits = all(n <= limit for n, limit in zip(lengths, block_mask.seq_lengths, strict=True))
        if not fits:
            raise ValueError(
                f"block_mask was created for block_mask.shape={block_mask.shape} but got "
                f"q_len={lengths[0]} and kv_len={lengths[1]}. Make a mask of these lengths."
            )
