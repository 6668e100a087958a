"""Embedding and EmbeddingBag, and their functions."""

import numpy as np

from module_cases import Case, floats, ints

ENTRIES = ints(9, high=5)
OFFSETS = np.array([0, 2, 2, 6])  # the second bag is empty
BAGS = ints(3, 4, high=5)

CASES = [
    Case("nn.Embedding(5, 3)", ints(2, 4, high=5)),
    Case("nn.Embedding(5, 3, padding_idx=-2)", ints(2, 4, high=5)),
    Case("nn.Embedding(5, 3, max_norm=0.4, norm_type=1.5)", ints(2, 4, high=5)),
    Case("nn.Embedding(5, 3, scale_grad_by_freq=True)", ints(2, 4, high=5)),
    Case("nn.EmbeddingBag(5, 3)", BAGS),
    Case("nn.EmbeddingBag(5, 3, mode='sum')", ENTRIES, OFFSETS),
    Case("nn.EmbeddingBag(5, 3, mode='mean')", ENTRIES, OFFSETS),
    Case("nn.EmbeddingBag(5, 3, mode='max')", ENTRIES, OFFSETS),
    Case("nn.EmbeddingBag(5, 3, mode='max', padding_idx=1)", BAGS),
    Case("nn.EmbeddingBag(5, 3, mode='sum', padding_idx=2)", ENTRIES, OFFSETS),
    Case("nn.EmbeddingBag(5, 3, mode='mean', padding_idx=-1)", ENTRIES, OFFSETS),
    Case("nn.EmbeddingBag(5, 3, max_norm=0.4, norm_type=1, mode='sum')", BAGS),
    Case(
        "nn.EmbeddingBag(5, 3, mode='sum', include_last_offset=True)",
        ENTRIES,
        np.array([0, 2, 2, 9]),
    ),
    Case("nn.EmbeddingBag(5, 19, mode='sum')", BAGS, None, floats(3, 4)),
    Case("nn.EmbeddingBag(5, 70, mode='sum', padding_idx=3)", ENTRIES, OFFSETS, floats(9)),
    Case("nn.EmbeddingBag.from_pretrained(torch.eye(5), mode='sum')", BAGS),
    Case(
        "lambda i, w: F.embedding_bag(i, w, max_norm=1.5, mode='max').sum(0)",
        BAGS,
        floats(5, 4, low=1),
    ),
    Case(
        "lambda i, w: torch.embedding_bag(w, i, torch.tensor([0, 3]), mode=1)[0]",
        ENTRIES,
        floats(5, 4),
    ),
]
