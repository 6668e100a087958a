"""Attention over sequences that lie behind one another (nn/attention/varlen.py)."""

import math

import pytest

import rushlight as torch
from rushlight.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out

BEGINS = torch.tensor([0, 2, 2, 7], dtype=torch.int32)
KEYS = torch.tensor([0, 3, 4, 8], dtype=torch.int32)


def made(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (1, 0), (0, 2), (2, -1)])
@pytest.mark.parametrize("heads", [4, 2])
def test_each_sequence_attends_to_itself(window: tuple[int, int], heads: int) -> None:
    q, k, v = made(7, 4, 3), made(8, heads, 3), made(8, heads, 3) * 2
    out, lse = varlen_attn(
        q, k, v, BEGINS, KEYS, 5, 4, window_size=window, scale=0.5, enable_gqa=heads != 4,
        return_aux=AuxRequest(lse=True),
    )  # fmt: skip
    assert out.shape == (7, 4, 3) and lse.shape == (7, 4)
    for first, last, begin, end in ((0, 2, 0, 3), (2, 7, 4, 8)):
        for place in range(first, last):
            own = end - begin - (last - place)
            seen = [
                j
                for j in range(end - begin)
                if (window[0] < 0 or j >= own - window[0])
                and (window[1] < 0 or j <= own + window[1])
            ]
            for head in range(4):
                other = head * heads // 4
                scores = k[begin:end, other][seen] @ q[place, head] * 0.5
                expected = scores.softmax(0) @ v[begin:end, other][seen]
                torch.testing.assert_close(out[place, head], expected)
                if seen:
                    torch.testing.assert_close(lse[place, head], scores.logsumexp(0))
                else:
                    assert lse[place, head] == -math.inf


def test_gradients() -> None:
    q, k, v = (made(7, 2, 3).requires_grad_() for _ in range(3))
    torch.autograd.gradcheck(
        lambda *x: varlen_attn(*x, BEGINS, BEGINS, 5, 5, window_size=(-1, 0)), (q, k, v)
    )


def test_keys_may_lie_in_pages() -> None:
    pool, q = made(5, 2, 1, 3), made(3, 1, 3)
    table, used = torch.tensor([[4, 0], [2, 1]], dtype=torch.int32), torch.tensor([3, 1])
    begins = torch.tensor([0, 1, 3])
    out = torch.empty_like(q)
    again = varlen_attn_out(
        out, q, pool, pool, begins, None, 2, 3, seqused_k=used, block_table=table
    )
    keys = torch.cat([pool[4], pool[0, :1], pool[2, :1]])
    torch.testing.assert_close(
        out, varlen_attn(q, keys, keys, begins, torch.tensor([0, 3, 4]), 2, 3)
    )
    assert again is out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": made(7, 2)}, "query has shape .7, 2.. It must have 3 dims"),
        ({"cu_seq_k": torch.tensor([0, 8])}, "cu_seq_q is of 3 sequences, cu_seq_k of 1"),
        ({"cu_seq_q": torch.tensor([0, 2, 2, 6])}, "goes from 0 to 6, but query has 7 places"),
        ({"cu_seq_k": None}, "cu_seq_k is None"),
        ({"block_table": BEGINS, "key": made(8, 2, 1, 3), "value": made(8, 2, 1, 3)}, "seqused_k"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict, message: str) -> None:
    x = {"query": made(7, 2, 3), "key": made(8, 2, 3), "value": made(8, 2, 3)}
    begins = {"cu_seq_q": BEGINS, "cu_seq_k": KEYS}
    with pytest.raises(ValueError, match=message):
        varlen_attn(**{**x, **begins, **change}, max_q=5, max_k=4)
