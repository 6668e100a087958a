"""Batch normalization: batch statistics, running statistics and their settings."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn

CASES = [
    (nn.BatchNorm1d, (8, 3)),
    (nn.BatchNorm1d, (8, 3, 5)),
    (nn.BatchNorm2d, (4, 3, 5, 2)),
    (nn.BatchNorm3d, (4, 3, 2, 5, 2)),
]


def per_channel(values, dims):
    return values.reshape(1, -1, *[1] * (dims - 2))


@pytest.mark.parametrize(("cls", "shape"), CASES)
def test_training_normalizes_by_the_batch(cls, shape) -> None:
    layer, x = cls(3, eps=1e-3), torch.randn(*shape) * 3 + 1
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([1.0, 2.0, 3.0]))
        layer.bias.copy_(torch.tensor([0.0, -1.0, 1.0]))
    a = x.numpy()
    axes = (0, *range(2, a.ndim))
    mean, var = a.mean(axes), a.var(axes)
    expected = (a - per_channel(mean, a.ndim)) / np.sqrt(per_channel(var, a.ndim) + 1e-3)
    expected = expected * per_channel(np.array([1, 2, 3]), a.ndim)
    expected = expected + per_channel(np.array([0, -1, 1]), a.ndim)
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("cls", "shape"), CASES)
def test_evaluation_normalizes_by_the_running_statistics(cls, shape) -> None:
    layer, x = cls(3).eval(), torch.randn(*shape)
    layer.running_mean.copy_(torch.tensor([1.0, 2.0, 3.0]))
    layer.running_var.copy_(torch.tensor([4.0, 9.0, 16.0]))
    a = x.numpy()
    expected = (a - per_channel(np.array([1, 2, 3]), a.ndim)) / per_channel(
        np.array([2, 3, 4]), a.ndim
    )
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-4, atol=1e-5)
    assert layer.num_batches_tracked.item() == 0


def test_running_statistics_move_by_the_momentum_with_unbiased_variance() -> None:
    layer = nn.BatchNorm1d(2, momentum=0.25)
    mean, var = np.zeros(2), np.ones(2)
    for _ in range(3):
        x = torch.randn(6, 2) + 2
        layer(x)
        mean = 0.75 * mean + 0.25 * x.numpy().mean(0)
        var = 0.75 * var + 0.25 * x.numpy().var(0, ddof=1)
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-5)
    np.testing.assert_allclose(layer.running_var.numpy(), var, rtol=1e-5)
    assert layer.num_batches_tracked.item() == 3


def test_momentum_none_averages_all_batches() -> None:
    layer = nn.BatchNorm1d(2, momentum=None)
    batches = [torch.randn(6, 2) for _ in range(4)]
    for x in batches:
        layer(x)
    expected = np.mean([x.numpy().mean(0) for x in batches], axis=0)
    np.testing.assert_allclose(layer.running_mean.numpy(), expected, rtol=1e-4, atol=1e-6)


def test_without_running_statistics_evaluation_uses_the_batch() -> None:
    layer, x = nn.BatchNorm1d(2, track_running_stats=False), torch.randn(6, 2)
    assert layer.running_mean is layer.running_var is layer.num_batches_tracked is None
    assert list(layer.state_dict()) == ["weight", "bias"]
    trained = layer(x).tolist()
    assert layer.eval()(x).tolist() == trained


def test_statistics_stay_when_tracking_is_switched_off() -> None:
    layer, x = nn.BatchNorm1d(2), torch.randn(6, 2)
    layer.track_running_stats = False
    layer(x)
    assert layer.running_mean.tolist() == [0, 0]
    assert layer.num_batches_tracked.item() == 0
    expected = x.numpy() / np.sqrt(1 + 1e-5)
    np.testing.assert_allclose(layer.eval()(x).detach().numpy(), expected, rtol=1e-5)


def test_affine_parameters_are_optional() -> None:
    assert list(nn.BatchNorm2d(2, affine=False).parameters()) == []
    assert [n for n, _ in nn.BatchNorm2d(2, bias=False).named_parameters()] == ["weight"]


def test_reset_restores_the_start() -> None:
    layer = nn.BatchNorm1d(2)
    layer(torch.randn(6, 2))
    layer.reset_parameters()
    assert layer.running_mean.tolist() == [0, 0]
    assert layer.running_var.tolist() == [1, 1]
    assert layer.num_batches_tracked.item() == 0


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (nn.BatchNorm1d(2), (2,), r"expected 2D or 3D input \(got 1D input\)"),
        (nn.BatchNorm2d(2), (2, 2), r"expected 4D input \(got 2D input\)"),
        (nn.BatchNorm3d(2), (2, 2, 2, 2), r"expected 5D input \(got 4D input\)"),
    ],
)
def test_other_numbers_of_dimensions_are_refused(layer, shape, message) -> None:
    with pytest.raises(ValueError, match=message):
        layer(torch.zeros(shape))


def test_repr() -> None:
    assert repr(nn.BatchNorm1d(3, momentum=None, affine=False)) == (
        "BatchNorm1d(3, eps=1e-05, momentum=None, affine=False, bias=False, "
        "track_running_stats=True)"
    )


def test_synchronized_batch_norms_keep_the_state_of_those_they_replace() -> None:
    net = torch.nn.Sequential(
        torch.nn.Conv2d(2, 3, 1), torch.nn.Sequential(torch.nn.BatchNorm2d(3)), torch.nn.ReLU()
    )
    x = torch.rand(4, 2, 5, 5)
    net(x)
    expected = net.eval()(x)
    state = {name: value.clone() for name, value in net.state_dict().items()}
    weight = net[1][0].weight
    converted = torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert converted is net
    assert type(net[1][0]) is torch.nn.SyncBatchNorm
    assert net[1][0].weight is weight
    assert not net[1][0].training
    assert torch.equal(converted(x), expected)
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())


def test_synchronized_batch_norm_takes_any_input_with_channels() -> None:
    layer = torch.nn.SyncBatchNorm(3, affine=False)
    for shape in ((4, 3), (4, 3, 2), (4, 3, 2, 2, 2)):
        assert layer(torch.rand(*shape)).shape == shape
    with pytest.raises(ValueError, match="expected at least 2D input"):
        layer(torch.rand(3))
    with pytest.raises(ValueError, match="channels should be non-zero"):
        layer(torch.rand(3, 0))


@pytest.mark.parametrize(("cls", "shape"), [*CASES, (nn.SyncBatchNorm, (8, 3))])
def test_a_batch_without_samples_moves_no_statistics(cls, shape) -> None:
    layer, x = cls(3), torch.zeros(0, *shape[1:], requires_grad=True)
    output = layer(x)
    assert output.shape == x.shape
    assert layer.running_mean.tolist() == [0, 0, 0]
    assert layer.running_var.tolist() == [1, 1, 1]
    assert layer.num_batches_tracked.item() == 1
    output.sum().backward()
    assert x.grad.shape == x.shape
    assert layer.weight.grad.tolist() == [0, 0, 0]
    assert layer.bias.grad.tolist() == [0, 0, 0]


def test_subclasses_of_batch_norms_say_which_inputs_they_take() -> None:
    class AnyDims(torch.nn.modules.batchnorm._BatchNorm):
        def _check_input_dim(self, input: torch.Tensor) -> None:
            if input.dim() == 2:
                raise ValueError("expected more")

    assert AnyDims(3)(torch.zeros(2, 3, 4)).shape == (2, 3, 4)
    with pytest.raises(ValueError, match="expected more"):
        AnyDims(3)(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="4D"):
        torch.nn.BatchNorm2d(3)._check_input_dim(torch.zeros(2, 3))


def test_an_old_state_without_a_count_keeps_the_count() -> None:
    layer = nn.BatchNorm1d(2)
    layer.num_batches_tracked = torch.tensor(10)
    layer.load_state_dict({}, strict=False)
    assert layer.num_batches_tracked == 10
