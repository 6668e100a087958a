"""GradScaler and averaged models go through the same numbers as PyTorch's."""

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")

BOTH = (torch, pytorch)


def scaled_training(library, fused, **options):
    rng = np.random.default_rng(0)
    weight = library.nn.Parameter(library.tensor(rng.normal(size=6)))
    bias = library.nn.Parameter(library.zeros(1, dtype=library.float64))
    optimizers = [
        library.optim.Adam([weight], lr=0.1, fused=fused),
        library.optim.SGD([bias], lr=0.1, momentum=0.9, fused=fused),
    ]
    scaler = library.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3, **options)
    seen = []
    for step in range(20):
        for optimizer in optimizers:
            optimizer.zero_grad()
        x = rng.normal(size=6)
        if step in (4, 5, 13):
            x[2] = np.inf if step == 4 else np.nan
        loss = ((weight * library.tensor(x)).sum() + bias.sum() - 1) ** 2
        scaler.scale(loss).backward()
        scaler.unscale_(optimizers[0])
        library.nn.utils.clip_grad_norm_([weight], 1.0)
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update(2.0 if step == 16 else None)
        seen.append([*weight.tolist(), *bias.tolist(), scaler.get_scale()])
    return seen, scaler


@pytest.mark.parametrize("fused", [None, True])
@pytest.mark.parametrize("options", [{}, {"growth_factor": 3.0, "backoff_factor": 0.25}])
def test_scaled_training_equals_pytorchs(options, fused) -> None:
    (ours, scaler), (theirs, expected) = (
        scaled_training(library, fused, **options) for library in BOTH
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    assert scaler.state_dict() == expected.state_dict()
    for source, library in ((scaler, pytorch), (expected, torch)):
        other = library.amp.GradScaler("cpu")
        other.load_state_dict(source.state_dict())
        assert other.state_dict() == source.state_dict()


def averaged_training(library, utils, make_options):
    rng = np.random.default_rng(1)
    net = library.nn.Sequential(
        library.nn.Linear(3, 4), library.nn.BatchNorm1d(4), library.nn.Linear(4, 1)
    ).double()
    with library.no_grad():
        for param in net.parameters():
            param.copy_(library.tensor(rng.normal(size=tuple(param.shape))))
    average = utils.AveragedModel(net, **make_options(utils))
    optimizer = library.optim.SGD(net.parameters(), lr=0.1)
    scheduler = utils.SWALR(optimizer, 0.02, anneal_epochs=3)
    batches = [library.tensor(rng.normal(size=(8, 3))) for _ in range(6)]
    for batch in batches:
        optimizer.zero_grad()
        (net(batch) ** 2).mean().backward()
        optimizer.step()
        scheduler.step()
        average.update_parameters(net)
    before = {name: value.tolist() for name, value in average.state_dict().items()}
    utils.update_bn(batches, average)
    after = {name: value.tolist() for name, value in average.state_dict().items()}
    return before, after


@pytest.mark.parametrize(
    "make_options",
    [
        lambda utils: {},
        lambda utils: {"use_buffers": True},
        lambda utils: {"avg_fn": utils.get_ema_avg_fn(0.7)},
        lambda utils: {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.7), "use_buffers": True},
        lambda utils: {"multi_avg_fn": utils.get_swa_multi_avg_fn()},
    ],
)
def test_averaged_models_equal_pytorchs(make_options) -> None:
    import torch.optim.swa_utils as theirs

    ours, expected = (
        averaged_training(library, utils, make_options)
        for library, utils in ((torch, torch.optim.swa_utils), (pytorch, theirs))
    )
    for mine, other in zip(ours, expected, strict=True):
        assert list(mine) == list(other)
        for name, value in other.items():
            # PyTorch computes some weights of the mean in float32.
            np.testing.assert_allclose(mine[name], value, rtol=1e-6, atol=1e-9, err_msg=name)
