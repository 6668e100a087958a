"""Sparsifiers and their schedulers as PyTorch's torch.ao.pruning."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")
LIBRARIES = (torch, pytorch)


def network(lib: Any) -> Any:
    nn, rng = lib.nn, np.random.default_rng(5)
    net = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 6)))
    for value in net.state_dict().values():
        value.copy_(lib.tensor(rng.normal(size=tuple(value.shape)).astype("f4")))
    return net


SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"sparsity_level": 0.3, "sparse_block_shape": (1, 1)},
    {"sparsity_level": 0.6, "sparse_block_shape": (2, 3)},
    {"sparsity_level": 1.0, "sparse_block_shape": (1, 4), "zeros_per_block": 2},
    {"sparsity_level": 0.5, "sparse_block_shape": (2, 2), "zeros_per_block": 3, "norm": 1},
    {"sparsity_level": 0.0},
    {"sparsity_level": 1.0},
)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_smallest_weights_are_hidden(settings: dict[str, Any]) -> None:
    def program(lib: Any) -> list[Any]:
        net, sparsifier = network(lib), lib.ao.pruning.WeightNormSparsifier(**settings)
        sparsifier.prepare(net, None)
        sparsifier.step()
        hidden = [net[0].weight.detach().numpy(), net[2][0].weight.detach().numpy()]
        x = lib.ones(2, 12)
        net(x).sum().backward()
        gradient = net[0].parametrizations.weight.original.grad.numpy()
        state = sparsifier.state_dict()
        sparsifier.squash_mask(params_to_keep=("sparsity_level",))
        rest = [net[0].weight.detach().numpy(), net(x).detach().numpy()]
        keys = sorted(state["state"]), [sorted(group) for group in state["groups"]]
        return [[*hidden, gradient, *rest], keys, list(net.state_dict()), net[0].sparse_params]

    ours, theirs = program(torch), program(pytorch)
    assert sorted(ours[1][0]) == sorted(theirs[1][0]) and ours[2:] == theirs[2:]
    for got, wanted in zip(ours[0], theirs[0], strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_diagonals_settings_of_weights_and_saved_masks() -> None:
    def program(lib: Any) -> list[np.ndarray]:
        net, sparsifier = network(lib), lib.ao.pruning.NearlyDiagonalSparsifier(3)
        sparsifier.prepare(
            net, [{"tensor_fqn": "0.weight"}, {"tensor_fqn": "2.0.weight", "nearliness": 1}]
        )
        sparsifier.step()
        again = lib.ao.pruning.NearlyDiagonalSparsifier(3)
        other = network(lib)
        again.prepare(other, [{"tensor_fqn": "0.weight"}, {"tensor_fqn": "2.0.weight"}])
        again.load_state_dict(sparsifier.state_dict())
        return [m.weight.detach().numpy() for m in (net[0], net[2][0], other[0], other[2][0])]

    for got, wanted in zip(*map(program, LIBRARIES), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("kind", ["lambda", "lambdas", "cubic", "late"])
def test_levels_of_epochs(kind: str) -> None:
    def program(lib: Any) -> list[Any]:
        pruning, net = lib.ao.pruning, network(lib)
        sparsifier = pruning.WeightNormSparsifier(0.8)
        sparsifier.prepare(net, None)
        if kind == "lambda":
            scheduler = pruning.LambdaSL(sparsifier, lambda epoch: epoch / 5)
        elif kind == "lambdas":
            scheduler = pruning.LambdaSL(sparsifier, [lambda epoch: 0.5, lambda epoch: 0.9**epoch])
        elif kind == "cubic":
            scheduler = pruning.CubicSL(sparsifier, init_sl=0.1, delta_t=1, total_t=4)
        else:
            scheduler = pruning.CubicSL(
                sparsifier, init_t=2, delta_t=1, total_t=[3, 4], initially_zero=True
            )
        levels = [scheduler.get_last_sl()]
        for _ in range(5):
            sparsifier.step()
            scheduler.step()
            levels.append(scheduler.get_last_sl())
        return [levels, int((net[0].weight == 0).sum()), scheduler.state_dict()["last_epoch"]]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = program(torch), program(pytorch)
    np.testing.assert_allclose(ours[0], theirs[0])
    assert ours[1:] == theirs[1:]


def test_mistakes_are_named() -> None:
    net, pruning = network(torch), torch.ao.pruning
    with pytest.raises(AssertionError, match="tensor_fqn"):
        pruning.WeightNormSparsifier().prepare(net, [{"sparsity_level": 0.1}])
    sparsifier = pruning.WeightNormSparsifier(0.5, (1, 2), 3)
    sparsifier.prepare(net, None)
    with pytest.raises(ValueError, match="Number of zeros per block"):
        sparsifier.step()
    with pytest.raises(NotImplementedError, match="L-3"):
        pruning.WeightNormSparsifier(norm=3)
    with pytest.raises(TypeError, match="is not an instance of torch.ao.pruning.BaseSparsifier"):
        pruning.LambdaSL(net, lambda epoch: 1.0)
