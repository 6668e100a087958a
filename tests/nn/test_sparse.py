"""Embedding."""

import pytest

import rushlight as torch
from rushlight import nn


def test_embedding_returns_rows() -> None:
    table = nn.Embedding(5, 3)
    ids = torch.tensor([[0, 4], [2, 2]])
    rows = table.weight.tolist()
    assert table(ids).tolist() == [[rows[0], rows[4]], [rows[2], rows[2]]]


def test_embedding_starts_normal() -> None:
    torch.manual_seed(0)
    weight = nn.Embedding(100, 100).weight.detach()
    assert weight.mean().item() == pytest.approx(0, abs=0.05)
    assert weight.std().item() == pytest.approx(1, abs=0.05)


def test_gradients_add_up_in_the_rows_that_were_used() -> None:
    table = nn.Embedding(4, 2)
    table(torch.tensor([1, 1, 3])).sum().backward()
    assert table.weight.grad.tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]


@pytest.mark.parametrize("padding_idx", [1, -3])
def test_padding_row_is_zero_and_gets_no_gradient(padding_idx) -> None:
    table = nn.Embedding(4, 2, padding_idx=padding_idx)
    assert table.padding_idx == 1
    assert table.weight[1].tolist() == [0, 0]
    table(torch.tensor([1, 2])).sum().backward()
    assert table.weight.grad.tolist() == [[0, 0], [0, 0], [1, 1], [0, 0]]


def test_frequent_rows_may_get_smaller_gradients() -> None:
    table = nn.Embedding(3, 1, scale_grad_by_freq=True)
    table(torch.tensor([0, 0, 1])).sum().backward()
    assert table.weight.grad.tolist() == [[1], [1], [0]]


def test_long_rows_are_shortened_when_used() -> None:
    table = nn.Embedding.from_pretrained(torch.tensor([[3.0, 4.0], [30.0, 40.0]]), max_norm=1.0)
    table(torch.tensor([0]))
    assert table.weight[0].norm().item() == pytest.approx(1, rel=1e-4)
    assert table.weight[1].tolist() == [30, 40]


def test_pretrained_table_is_shared_and_frozen_unless_told_otherwise() -> None:
    rows = torch.zeros(3, 2)
    table = nn.Embedding.from_pretrained(rows)
    rows.fill_(7)
    assert table(torch.tensor(0)).tolist() == [7, 7]
    assert not table.weight.requires_grad
    assert nn.Embedding.from_pretrained(rows, freeze=False).weight.requires_grad


def test_bad_settings_and_indices_are_errors() -> None:
    for padding_idx in (3, -4):
        for layer in (nn.Embedding, nn.EmbeddingBag):
            with pytest.raises(AssertionError, match=f"padding_idx {padding_idx} must be within"):
                layer(3, 2, padding_idx=padding_idx)
    with pytest.raises(ValueError, match="expected to be 2-dimensional"):
        nn.Embedding.from_pretrained(torch.zeros(3))
    with pytest.raises(IndexError):
        nn.Embedding(3, 2)(torch.tensor([3]))


def test_repr() -> None:
    assert repr(nn.Embedding(3, 4)) == "Embedding(3, 4)"
    assert repr(nn.Embedding(3, 4, -1, 1.0, 1.0, True)) == (
        "Embedding(3, 4, padding_idx=2, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True)"
    )
