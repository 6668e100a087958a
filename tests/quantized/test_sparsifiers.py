"""torch.ao.pruning hides the weights that NumPy says are smallest."""

from __future__ import annotations

import numpy as np

import rushlight as torch
from rushlight import nn
from rushlight.ao import pruning


def test_the_smallest_blocks_are_hidden_until_they_are_zero() -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(12, 8))
    weight = layers[0].weight.detach().numpy().copy()
    sparsifier = pruning.WeightNormSparsifier(0.5, (1, 4))
    sparsifier.prepare(layers, None)
    sparsifier.step()
    sizes = (weight**2).reshape(8, 3, 4).mean(-1)
    hidden = np.repeat(sizes <= np.sort(sizes.ravel())[11], 4, axis=1)
    np.testing.assert_array_equal(layers[0].weight.detach().numpy(), np.where(hidden, 0, weight))
    assert list(layers.state_dict()) == ["0.bias", "0.parametrizations.weight.original"]
    sparsifier.squash_mask()
    np.testing.assert_array_equal(layers[0].weight.detach().numpy(), np.where(hidden, 0, weight))
    assert sorted(layers.state_dict()) == ["0.bias", "0.weight"]


def test_two_of_four_are_hidden_also_where_blocks_are_cut() -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(10, 3))
    weight = layers[0].weight.detach().numpy().copy()
    sparsifier = pruning.WeightNormSparsifier(1.0, (1, 4), 2)
    sparsifier.prepare(layers, [{"tensor_fqn": "0.weight"}])
    sparsifier.step()
    left = layers[0].weight.detach().numpy() != 0
    for start in (0, 4):
        part = np.abs(weight[:, start : start + 4])
        largest = np.argsort(-part, axis=1)[:, :2]
        assert (left[:, start : start + 4].sum(1) == 2).all()
        assert np.take_along_axis(left[:, start : start + 4], largest, 1).all()
    assert not left[:, 8:].any()  # what the last block lacks counts as large


def test_levels_rise_along_a_curve() -> None:
    sparsifier = pruning.WeightNormSparsifier(0.8)
    sparsifier.prepare(nn.Sequential(nn.Linear(4, 4)), None)
    scheduler = pruning.CubicSL(sparsifier, delta_t=1, total_t=4)
    levels = scheduler.get_last_sl()
    for _ in range(5):
        sparsifier.step()
        scheduler.step()
        levels += scheduler.get_last_sl()
    wanted = [0.8 * (1 - (1 - min(t, 4) / 4) ** 3) for t in range(6)]
    np.testing.assert_allclose(levels, wanted, atol=1e-12)
