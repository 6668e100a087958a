"""Averaged models, the statistics of their BatchNorm layers, and SWALR."""

import copy

import numpy as np
import pytest

import rushlight as torch
from rushlight.optim.swa_utils import (
    SWALR,
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)


def model_of(*values):
    model = torch.nn.Linear(1, 2)
    model.register_buffer("count", torch.tensor(0))
    set_to(model, 0.0)
    return model


def set_to(model, value):
    with torch.no_grad():
        for param in model.parameters():
            param.fill_(value)
        model.count.fill_(int(value))


def averaged(values, **options):
    model = model_of()
    average = AveragedModel(model, **options)
    for value in values:
        set_to(model, value)
        average.update_parameters(model)
    return average


VALUES = [1.0, 4.0, 7.0, -2.0]


@pytest.mark.parametrize(
    "options", [{}, {"avg_fn": get_swa_avg_fn()}, {"multi_avg_fn": get_swa_multi_avg_fn()}]
)
def test_equal_averages_are_means(options) -> None:
    average = averaged(VALUES, **options)
    assert average.n_averaged.item() == 4
    for param in average.module.parameters():
        np.testing.assert_allclose(param.tolist(), np.full(param.shape, np.mean(VALUES)))
    assert average.module.count.item() == -2  # copied


@pytest.mark.parametrize(
    "options", [{"avg_fn": get_ema_avg_fn(0.75)}, {"multi_avg_fn": get_ema_multi_avg_fn(0.75)}]
)
def test_moving_averages_decay(options) -> None:
    expected = VALUES[0]
    for value in VALUES[1:]:
        expected = 0.75 * expected + 0.25 * value
    for param in averaged(VALUES, **options).module.parameters():
        np.testing.assert_allclose(param.tolist(), np.full(param.shape, expected), rtol=1e-6)


@pytest.mark.parametrize(
    ("fn", "expected"), [(get_swa_multi_avg_fn(), 3), (get_ema_multi_avg_fn(0.5), 4)]
)
def test_buffers_can_be_averaged_too(fn, expected) -> None:
    average = averaged([2.0, 4.0, 5.0], multi_avg_fn=fn, use_buffers=True)
    assert average.module.count.item() == expected


def test_an_averaged_model_computes_and_keeps_its_state() -> None:
    average = averaged(VALUES)
    assert average(torch.ones(1, 1)).tolist() == [[5.0, 5.0]]
    assert list(average.state_dict()) == [
        "n_averaged",
        "module.weight",
        "module.bias",
        "module.count",
    ]
    other = AveragedModel(model_of())
    other.load_state_dict(average.state_dict())
    assert other.n_averaged.item() == 4
    assert copy.deepcopy(average).n_averaged.item() == 4


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        AveragedModel(model_of(), avg_fn=get_swa_avg_fn(), multi_avg_fn=get_swa_multi_avg_fn())
    for make in (get_ema_avg_fn, get_ema_multi_avg_fn):
        with pytest.raises(ValueError, match="Invalid decay value 1.5"):
            make(1.5)
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    with pytest.raises(ValueError, match="anneal_strategy must be one of"):
        SWALR(optimizer, 0.1, anneal_strategy="x")
    with pytest.raises(ValueError, match="anneal_epochs must be equal or greater than 0"):
        SWALR(optimizer, 0.1, anneal_epochs=-1)
    with pytest.raises(ValueError, match="swa_lr has 2 values, param_groups has 1"):
        SWALR(optimizer, [0.1, 0.2])


@pytest.mark.parametrize("wrap", [lambda batch: batch, lambda batch: (batch, None)])
def test_update_bn_takes_the_mean_over_all_batches(wrap) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(3, momentum=0.3), torch.nn.Linear(3, 1))
    model[0].running_mean.fill_(9.0)
    model.eval()
    batches = [torch.randn(8, 3) for _ in range(5)]
    update_bn([wrap(batch) for batch in batches], model)
    arrays = [batch.numpy() for batch in batches]
    np.testing.assert_allclose(
        model[0].running_mean.numpy(), np.mean([a.mean(0) for a in arrays], 0), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        model[0].running_var.numpy(), np.mean([a.var(0, ddof=1) for a in arrays], 0), rtol=1e-5
    )
    assert model[0].momentum == 0.3
    assert not model.training


def test_update_bn_leaves_a_model_without_batch_norm_alone() -> None:
    def never():
        raise AssertionError
        yield

    update_bn(never(), torch.nn.Linear(1, 1))
