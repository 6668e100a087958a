"""Attention with scores and masks of the program's making, against NumPy (Dong et al. 2024)."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.autograd import gradcheck
from rushlight.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    or_masks,
)

DOCUMENTS = np.repeat([0, 1, 2], [3, 5, 4])


def alibi(score, batch, head, query, key):
    return score - (query - key).abs() * (head + 1) / 4


def capped(score, batch, head, query, key):
    return 2 * (score / 2).tanh()


def causal(batch, head, query, key):
    return query >= key


def same_document(batch, head, query, key):
    documents = torch.from_numpy(DOCUMENTS)
    return documents[query] == documents[key]


def late(batch, head, query, key):
    return key < query - 2 * head


def places(*sizes):
    return np.ogrid[tuple(slice(size) for size in sizes)]


SCORES = {
    None: lambda s, b, h, q, k: s,
    alibi: lambda s, b, h, q, k: s - np.abs(q - k) * (h + 1) / 4,
    capped: lambda s, b, h, q, k: 2 * np.tanh(s / 2),
}
MASKS = {
    None: lambda b, h, q, k: True,
    causal: lambda b, h, q, k: q >= k,
    same_document: lambda b, h, q, k: DOCUMENTS[q] == DOCUMENTS[k],
    late: lambda b, h, q, k: k < q - 2 * h,
}


def attention(q, k, v, score_mod, mask_mod, scale):
    """The definition: (B, H, L, E) each, and the logarithm of the sums."""
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * scale
    at = places(*scores.shape)
    scores = np.where(MASKS[mask_mod](*at), SCORES[score_mod](scores, *at), -np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        sums = weights.sum(-1, keepdims=True)
        lse = np.log(np.exp(scores).sum(-1))
    return np.nan_to_num(weights / sums) @ v, lse


@pytest.mark.parametrize("heads", [4, 2])
@pytest.mark.parametrize("mask_mod", MASKS)
@pytest.mark.parametrize("score_mod", SCORES)
def test_it_is_attention_of_changed_scores(score_mod, mask_mod, heads: int) -> None:
    draw = np.random.default_rng(0).normal
    arrays = draw(size=(2, 4, 12, 8)), draw(size=(2, heads, 12, 8)), draw(size=(2, heads, 12, 5))
    mask = create_block_mask(mask_mod, None, 4, 12, 12, BLOCK_SIZE=4) if mask_mod else None
    q, k, v = (torch.from_numpy(x) for x in arrays)
    result = flex_attention(q, k, v, score_mod, mask, enable_gqa=heads < 4)
    np.testing.assert_allclose(
        result.numpy(), attention(*arrays, score_mod, mask_mod, 8**-0.5)[0], atol=1e-12
    )
    result, lse = flex_attention(
        q, k, v, score_mod, mask, scale=0.7, enable_gqa=heads < 4, return_lse=True
    )
    expected = attention(*arrays, score_mod, mask_mod, 0.7)
    np.testing.assert_allclose(result.numpy(), expected[0], atol=1e-12)
    np.testing.assert_allclose(lse.numpy(), expected[1], atol=1e-12)


@pytest.mark.parametrize("score_mod", [None, capped])
@pytest.mark.parametrize("mask_mod", [None, late])
def test_gradients(score_mod, mask_mod) -> None:
    q, k, v = torch.randn(3, 1, 2, 5, 3, dtype=torch.float64, requires_grad=True)
    mask = create_block_mask(mask_mod, None, 2, 5, 5) if mask_mod else None
    assert gradcheck(lambda *x: flex_attention(*x, score_mod, mask), (q, k, v))


def test_a_score_function_may_be_trained() -> None:
    q, k, v = torch.randn(3, 1, 2, 5, 3, dtype=torch.float64)
    bias = torch.randn(2, 9, dtype=torch.float64, requires_grad=True)

    def call(bias):
        return flex_attention(q, k, v, lambda s, b, h, i, j: s + bias[h, i - j + 4])

    assert gradcheck(call, (bias,))


def test_blocks_are_seen_whole_in_part_or_not_at_all() -> None:
    mask = create_block_mask(causal, None, None, 10, 12, BLOCK_SIZE=4)
    assert mask.shape == (1, 1, 10, 12) and mask.seq_lengths == (10, 12)
    assert mask.to_dense()[0, 0].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1, 0]]]  # the last rows are not whole
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 3]]]
    assert mask.q_num_blocks.tolist() == [[[2, 2, 1]]]
    assert mask.sparsity() == pytest.approx(100 * (1 - 6 / 9))
    assert repr(mask) == "BlockMask(shape=(1, 1, 10, 12), sparsity=33.33%)"
    rows = "██    \n████  \n██████"
    assert str(mask) == f"{repr(mask)[:-1]}, \n(0, 0)\n{rows}\n)"
    assert mask.to_string(grid_size=(2, 2)) == "(0, 0)\n░░  \n████\n"
    assert create_block_mask(causal, 2, 3, 8, 8).to_string(limit=2).count("██") == 2
    again = BlockMask.from_kv_blocks(mask.kv_num_blocks, mask.kv_indices, BLOCK_SIZE=4)
    assert again.shape == (1, 1, 12, 12)
    assert create_block_mask(causal, 2, 3, 8, 8, BLOCK_SIZE=4)[:, 1].shape == (2, 1, 8, 8)
    assert mask.to("cpu").mask_mod is causal


def test_masks_are_joined() -> None:
    both = create_mask(and_masks(causal, same_document), 1, 1, 12, 12)
    either = create_mask(or_masks(causal, same_document), 1, 1, 12, 12)
    first, second = (create_mask(mask, 1, 1, 12, 12) for mask in (causal, same_document))
    assert torch.equal(both, first & second) and torch.equal(either, first | second)
    by_score = create_mask(lambda s, b, h, q, k: torch.where(q >= k, s, -torch.inf), 1, 1, 12, 12)
    assert torch.equal(by_score, first)


def test_what_was_asked_for_is_returned_beside() -> None:
    q, k, v = torch.randn(3, 1, 2, 5, 3)
    _, aux = flex_attention(q, k, v, return_aux=AuxRequest(max_scores=True))
    assert aux.lse is None and aux.max_scores.shape == (1, 2, 5)
    torch.testing.assert_close(aux.max_scores, (q @ k.mT).amax(-1) * 3**-0.5)
    assert flex_attention(q.half(), k.half(), v.half(), capped).dtype is torch.float16


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((1, 2, 3), (1, 2, 3), (1, 2, 3)), "to be 4D tensors"),
        (((1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 3, 5)), "same embedding dimension"),
        (((1, 4, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)), "Try setting enable_gqa=True"),
        (((2, 2, 3, 4), (3, 2, 3, 4), (3, 2, 3, 4)), "same batch size"),
    ],
)
def test_shapes_that_do_not_fit(shapes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        flex_attention(*(torch.zeros(shape) for shape in shapes))


def test_a_mask_for_fewer_places_is_refused() -> None:
    x = torch.zeros(1, 1, 9, 4)
    with pytest.raises(ValueError, match="q_len=9 and kv_len=9"):
        flex_attention(x, x, x, block_mask=create_block_mask(causal, None, None, 8, 8))
