"""nn.utils: gradient clipping and parameters as a vector."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn


def with_grads(*grads):
    parameters = []
    for grad in grads:
        parameter = nn.Parameter(torch.zeros(len(grad)) if grad is not None else torch.zeros(1))
        parameter.grad = None if grad is None else torch.tensor(grad)
        parameters.append(parameter)
    return parameters


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, float("inf"), "inf"])
def test_gradients_are_scaled_to_the_norm(norm_type) -> None:
    grads = [[3.0, -4.0], [12.0]]
    parameters = with_grads(*grads)
    flat = np.array([3.0, -4.0, 12.0])
    norm = np.linalg.norm(flat, float(norm_type))
    total = nn.utils.clip_grad_norm_(parameters, 2.0, norm_type)
    assert total.item() == pytest.approx(norm)
    clipped = np.concatenate([p.grad.numpy() for p in parameters])
    np.testing.assert_allclose(clipped, flat * 2 / norm, rtol=1e-5)


def test_small_gradients_are_left_alone() -> None:
    (parameter,) = with_grads([0.5, 0.5])
    nn.utils.clip_grad_norm_(parameter, 2.0)
    assert parameter.grad.tolist() == [0.5, 0.5]


def test_parameters_without_gradients_are_skipped() -> None:
    parameters = with_grads(None, [3.0, 4.0])
    assert nn.utils.clip_grad_norm_(iter(parameters), 1.0).item() == 5
    assert parameters[0].grad is None
    assert parameters[1].grad.norm().item() == pytest.approx(1, rel=1e-5)
    assert nn.utils.clip_grad_norm_([parameters[0]], 1.0).item() == 0


def test_norm_that_is_not_finite_may_be_an_error() -> None:
    parameters = with_grads([float("nan")])
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)


def test_values_are_limited() -> None:
    parameters = with_grads([-3.0, 0.5], [7.0], None)
    nn.utils.clip_grad_value_(parameters, 1.0)
    assert [p.grad.tolist() for p in parameters[:2]] == [[-1.0, 0.5], [1.0]]


def test_vector_makes_the_round_trip() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert tuple(vector.shape) == (6 + 3 + 3 + 1,)
    with torch.no_grad():
        nn.utils.vector_to_parameters(vector * 2, net.parameters())
    again = nn.utils.parameters_to_vector(net.parameters())
    assert again.tolist() == (vector * 2).tolist()
    assert all(p.is_leaf and p.requires_grad for p in net.parameters())


def test_vector_of_another_length_or_kind_is_refused() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="vec has 5 elements, but the parameters have 6"):
        nn.utils.vector_to_parameters(torch.zeros(5), layer.parameters())
    with pytest.raises(TypeError, match="expected Tensor, but got: list"):
        nn.utils.vector_to_parameters([1.0], layer.parameters())
