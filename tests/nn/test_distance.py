"""PairwiseDistance and CosineSimilarity against NumPy."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("keepdim", [False, True])
def test_pairwise_distance_is_the_norm_of_the_difference(p, keepdim) -> None:
    x1, x2 = torch.randn(5, 3), torch.randn(1, 3)
    expected = np.linalg.norm(x1.numpy() - x2.numpy() + 1e-6, p, axis=-1, keepdims=keepdim)
    result = nn.PairwiseDistance(p, keepdim=keepdim)(x1, x2)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)


def test_pairwise_distance_promotes() -> None:
    number = torch.tensor([3], dtype=torch.uint8)
    assert nn.functional.pairwise_distance(number, number + 1, eps=0) == 1
    assert nn.functional.pairwise_distance(number, number.half()).dtype is torch.float16


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cosine_similarity_is_the_cosine_of_the_angle(dim) -> None:
    x1, x2 = torch.randn(4, 3, 5), torch.randn(4, 3, 5)
    a, b = x1.numpy(), x2.numpy()
    expected = (a * b).sum(dim) / np.linalg.norm(a, axis=dim) / np.linalg.norm(b, axis=dim)
    result = nn.CosineSimilarity(dim)(x1, x2)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-6)


def test_cosine_similarity_broadcasts_and_survives_zero_vectors() -> None:
    x = torch.randn(4, 3)
    result = nn.functional.cosine_similarity(x, torch.zeros(3))
    assert result.tolist() == [0, 0, 0, 0]


def test_cosine_similarity_promotes() -> None:
    number = torch.tensor(12.0)
    assert nn.functional.cosine_similarity(number.to(torch.int8), number, dim=-1) == 1
    angle = nn.functional.cosine_similarity(torch.tensor([3, 4]), torch.tensor([4, 3]), dim=-1)
    assert angle.dtype is torch.float32 and abs(angle.item() - 0.96) < 1e-6


def test_differences_that_are_nan_are_no_count() -> None:
    x = torch.full((2, 2), float("inf"))
    assert torch.cdist(x, x, 0.0).isnan().all() and nn.functional.pdist(x, 0.0).isnan().all()
    assert torch.cdist(x, torch.zeros(2, 2), 0.0).tolist() == [[2.0, 2.0]] * 2
