"""Quantization of random chains of layers and calls on graphs: nodes and numbers as PyTorch's."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compat.quantizing import filled, nodes, part, values

import rushlight as torch

pytorch = pytest.importorskip("torch")
LIBRARIES = (torch, pytorch)

# Layers of images (2, 4, 8, 8), made by a library's nn.
LAYERS: tuple[Callable[[Any], Any], ...] = (
    lambda nn: nn.Conv2d(4, 4, 3, padding=1),
    lambda nn: nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)),
    lambda nn: nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.ReLU()),
    lambda nn: nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU()),
    lambda nn: nn.ConvTranspose2d(4, 4, 3, padding=1),
    lambda nn: nn.Linear(8, 8),
    lambda nn: nn.ReLU(),
    lambda nn: nn.ReLU6(),
    lambda nn: nn.MaxPool2d(3, 1, 1),
    lambda nn: nn.Hardswish(),
    lambda nn: nn.LeakyReLU(0.1),
    lambda nn: nn.Dropout(0.0),
    lambda nn: nn.LayerNorm(8),
    lambda nn: nn.GroupNorm(2, 4),
    lambda nn: nn.InstanceNorm2d(4),
    lambda nn: nn.Hardtanh(),
    lambda nn: nn.BatchNorm2d(4),
    lambda nn: nn.Sequential(nn.BatchNorm2d(4), nn.ReLU()),
    lambda nn: nn.Identity(),
    lambda nn: nn.Tanh(),
    lambda nn: nn.Upsample(scale_factor=1),
)
# Calls with the last value, an earlier one, and the library.
CALLS: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda y, z, lib: lib.nn.functional.relu(y),
    lambda y, z, lib: lib.nn.functional.avg_pool2d(y, 3, 1, 1),
    lambda y, z, lib: y + z,
    lambda y, z, lib: lib.relu(y + z),
    lambda y, z, lib: lib.relu(y * 0.5),
    lambda y, z, lib: lib.add(y, y),
    lambda y, z, lib: y * z,
    lambda y, z, lib: y + 2,
    lambda y, z, lib: y * 1.5,
    lambda y, z, lib: lib.cat([y, z], 1)[:, :4],
    lambda y, z, lib: lib.cat([y, y], 1).narrow(1, 0, 4),
    lambda y, z, lib: lib.sigmoid(y),
    lambda y, z, lib: y.tanh(),
    lambda y, z, lib: lib.nn.functional.hardswish(y),
    lambda y, z, lib: lib.nn.functional.leaky_relu(y, 0.1),
    lambda y, z, lib: lib.nn.functional.elu(y),
    lambda y, z, lib: y + y.mean([2, 3], keepdim=True),
    lambda y, z, lib: y.view(y.size(0), -1, 8, 8),
    lambda y, z, lib: lib.flatten(y, 2).unflatten(2, (8, 8)),
    lambda y, z, lib: y.permute(0, 1, 3, 2),
    lambda y, z, lib: lib.transpose(y, 2, 3),
    lambda y, z, lib: lib.matmul(y, z),
    lambda y, z, lib: lib.nn.functional.interpolate(y, scale_factor=1.0),
    lambda y, z, lib: y.clamp(-1, 1),
    lambda y, z, lib: lib.cat(y.chunk(2, 1), 1),
    lambda y, z, lib: y[:, [1, 0, 3, 2]],
    lambda y, z, lib: lib.nn.functional.softmax(y, dim=-1),
    lambda y, z, lib: y - z,
    lambda y, z, lib: y / 2,
    lambda y, z, lib: lib.nn.functional.hardsigmoid(y),
    lambda y, z, lib: lib.nn.functional.pixel_shuffle(y, 2).view(2, 4, 8, 8),
    lambda y, z, lib: lib.stack([y, z]).mean(0),
    lambda y, z, lib: y.unsqueeze(0).squeeze(0),
    lambda y, z, lib: lib.nn.functional.gelu(y),
    lambda y, z, lib: lib.nn.functional.layer_norm(y, [8]),
)


def chain(lib: Any, seed: int) -> Any:
    rng = random.Random(seed)
    steps = [
        (rng.choice((LAYERS, CALLS)), rng.random(), rng.random())
        for _ in range(rng.randint(3, 8))
    ]  # fmt: skip

    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for number, (table, pick, _) in enumerate(steps):
                if table is LAYERS:
                    layer: Any = LAYERS[int(pick * len(LAYERS))](lib.nn)
                    setattr(self, f"layer{number}", layer)
            self.last = lib.nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            values = [x]
            for number, (table, pick, other) in enumerate(steps):
                if table is LAYERS:
                    values.append(getattr(self, f"layer{number}")(values[-1]))
                else:
                    earlier = values[int(other * len(values))]
                    values.append(CALLS[int(pick * len(CALLS))](values[-1], earlier, lib))
            return self.last(values[-1])

    return filled(lib, Net())


def quantized(lib: Any, seed: int, is_qat: bool) -> tuple[Any, ...]:
    fx = part(lib, "ao.quantization.quantize_fx")
    q, net = lib.ao.quantization, chain(lib, seed).train(is_qat)
    x = lib.tensor(values(2, 4, 8, 8))
    if is_qat:
        prepared = fx.prepare_qat_fx(net, q.get_default_qat_qconfig_mapping("x86"), (x,))
    else:
        prepared = fx.prepare_fx(net, q.get_default_qconfig_mapping("x86"), (x,))
    with lib.no_grad():
        prepared(x)
        prepared.eval()
        texts = nodes(prepared)
        reference = fx.convert_to_reference_fx(copy.deepcopy(prepared))
        small = fx.convert_fx(prepared)
        return texts, nodes(reference), sorted(small.state_dict()), reference(x), small(x)


@pytest.mark.parametrize("seed", range(60))
def test_chains(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = quantized(pytorch, seed, is_qat=seed % 4 == 0)
        except (RuntimeError, NotImplementedError, AttributeError, TypeError) as error:
            pytest.skip(f"PyTorch cannot: {error}")
        ours = quantized(torch, seed, is_qat=seed % 4 == 0)
    assert ours[:3] == theirs[:3]
    reference, small = (each.numpy() for each in theirs[3:])
    # Norms of nearly equal numbers make much of what is at the edge of rounding.
    allowed = max(0.1 * np.abs(reference).max(), 1.5 * np.abs(reference - small).max()) + 1e-6
    for got, wanted in zip(ours[3:], (reference, small), strict=True):
        assert np.abs(got.numpy() - wanted).max() <= allowed
