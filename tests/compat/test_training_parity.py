"""Training runs follow PyTorch's: the same weights and batches give the same losses."""

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")

STEPS = 200
OPTIMIZERS = {
    "SGD": {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-4},
    "AdamW": {"lr": 3e-3},
    "RMSprop": {"lr": 1e-3, "momentum": 0.5},
    "NAdam": {"lr": 3e-3},
    "Adafactor": {"lr": 5e-2},
}


def mlp(nn):
    return nn.Sequential(
        nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 4)
    )


def cnn(nn):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),  # (B, 8, 8, 8)
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 8, 4, 4)
        nn.Conv2d(8, 16, 3),  # (B, 16, 2, 2)
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64, 4),
    )


def weights_of(make):
    pytorch.manual_seed(0)
    return {name: value.numpy().copy() for name, value in make(pytorch.nn).state_dict().items()}


def losses_of(library, make, weights, shape, name, schedule):
    """The losses of a run on a fixed task: which of four random directions is the nearest."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(int(np.prod(shape)), 4))
    net = make(library.nn)
    net.load_state_dict({key: library.tensor(value) for key, value in weights.items()})
    optimizer = getattr(library.optim, name)(net.parameters(), **OPTIMIZERS[name])
    scheduler = schedule(library.optim.lr_scheduler, optimizer)
    losses = []
    for _ in range(STEPS):
        batch = rng.normal(size=(32, *shape)).astype(np.float32)
        labels = (batch.reshape(32, -1) @ directions).argmax(1)
        optimizer.zero_grad()
        output = net(library.tensor(batch))
        loss = library.nn.functional.cross_entropy(output, library.tensor(labels))
        loss.backward()
        library.nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return np.array(losses)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(("make", "shape"), [(mlp, (12,)), (cnn, (1, 8, 8))], ids=["mlp", "cnn"])
def test_losses_equal_pytorchs(make, shape, name) -> None:
    weights = weights_of(make)

    def schedule(schedulers, optimizer):
        return schedulers.OneCycleLR(
            optimizer, OPTIMIZERS[name]["lr"], STEPS + 1, cycle_momentum=False
        )

    ours, theirs = (
        losses_of(library, make, weights, shape, name, schedule) for library in (torch, pytorch)
    )
    assert theirs[-20:].mean() < 0.9 * theirs[:20].mean()
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
