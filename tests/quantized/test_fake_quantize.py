"""Rounding in training: the values, and gradients that pass straight through (LSQ+ for scales)."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.ao import quantization as q

rng = np.random.default_rng(2)


def rounded(x: np.ndarray, scale: float, zero_point: int, low: int, high: int) -> np.ndarray:
    return (np.clip(np.rint(x / scale) + zero_point, low, high) - zero_point) * scale


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_values_are_what_integers_would_stand_for(dtype: torch.dtype) -> None:
    x = torch.tensor(rng.normal(size=50)).to(dtype)
    y = torch.fake_quantize_per_tensor_affine(x, 0.25, 3, 0, 7)
    assert y.dtype is dtype
    assert y.tolist() == rounded(np.array(x.tolist()), 0.25, 3, 0, 7).tolist()


def test_gradients_pass_where_nothing_was_cut_off() -> None:
    x = torch.tensor([-1.0, -0.74, 0.1, 0.99, 1.2, float("inf")], requires_grad=True)
    torch.fake_quantize_per_tensor_affine(x, 0.25, 3, 0, 7).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0, 1, 1, 1, 0, 0]


def test_scales_learn_by_the_error_of_rounding() -> None:
    x = rng.normal(size=20)
    scale = torch.tensor([0.25], dtype=torch.float64, requires_grad=True)
    zero_point = torch.tensor([3.0], dtype=torch.float64, requires_grad=True)
    y = torch._fake_quantize_learnable_per_tensor_affine(torch.tensor(x), scale, zero_point, 0, 7)
    y.sum().backward()
    steps = np.rint(x / 0.25)
    inside = (steps + 3 >= 0) & (steps + 3 <= 7)
    wanted = np.where(inside, steps - x / 0.25, np.clip(steps + 3, 0, 7) - 3).sum()
    np.testing.assert_allclose(float(scale.grad or 0), wanted)
    np.testing.assert_allclose(float(zero_point.grad or 0), -0.25 * (~inside).sum())


def test_zero_points_that_observers_compute_are_int32() -> None:
    observer = q.MinMaxObserver()
    observer(torch.tensor([-3.0, 252.0]))
    scale, zero_point = observer.calculate_qparams()
    assert (scale.tolist(), zero_point.tolist(), zero_point.dtype) == ([1.0], [3], torch.int32)


def test_switches_have_the_dtypes_of_checkpoints() -> None:
    dtypes = {torch.uint8: q.FakeQuantize(), torch.int64: q.FusedMovingAvgObsFakeQuantize()}
    for dtype, module in dtypes.items():
        assert module.fake_quant_enabled.dtype is module.observer_enabled.dtype is dtype


def test_the_module_watches_until_it_is_told_not_to() -> None:
    module = q.FakeQuantize(quant_min=0, quant_max=255)
    module(torch.tensor([0.0, 2.55]))
    assert abs(float(module.scale) - 0.01) < 1e-6
    module.apply(q.disable_observer)
    y = module(torch.tensor([0.0, 51.0]))
    assert y.tolist() == pytest.approx([0.0, 2.55]) and abs(float(module.scale) - 0.01) < 1e-6
    module.apply(q.disable_fake_quant)
    assert module(torch.tensor([51.0])).tolist() == [51.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 9, 0, 7),
        lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 7, 0),
        lambda x: torch.fake_quantize_per_channel_affine(x, torch.ones(2), torch.zeros(2), 0, 0, 7),
        lambda x: torch.fake_quantize_per_channel_affine(x, torch.ones(3), torch.zeros(3), 1, 0, 7),
        lambda x: torch.fake_quantize_per_tensor_affine(x.int(), 0.1, 0, 0, 7),
    ],
)
def test_mistakes_are_errors(call) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        call(torch.ones(3))
