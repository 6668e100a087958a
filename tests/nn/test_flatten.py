"""Flatten and Unflatten."""

import rushlight as torch
from rushlight import nn


def test_flatten_joins_dimensions() -> None:
    x = torch.zeros(2, 3, 4, 5)
    assert tuple(nn.Flatten()(x).shape) == (2, 60)
    assert tuple(nn.Flatten(0, 1)(x).shape) == (6, 4, 5)


def test_unflatten_splits_a_dimension() -> None:
    x = torch.arange(12).reshape(2, 6)
    assert nn.Unflatten(1, (2, 3))(x).tolist() == x.reshape(2, 2, 3).tolist()
    assert tuple(nn.Unflatten(-1, [3, -1])(x).shape) == (2, 3, 2)


def test_repr() -> None:
    assert repr(nn.Flatten()) == "Flatten(start_dim=1, end_dim=-1)"
    assert repr(nn.Unflatten(1, [2, 3])) == "Unflatten(dim=1, unflattened_size=(2, 3))"
