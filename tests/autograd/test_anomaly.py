"""Anomaly detection, and the notes that errors of backward carry."""

from __future__ import annotations

import pytest

import rushlight as torch


def test_nan_in_a_gradient_raises_with_the_line_of_the_forward() -> None:
    x = torch.tensor([-1.0], requires_grad=True)
    with torch.autograd.detect_anomaly():
        assert torch.is_anomaly_enabled()
        y = x.sqrt()
        with (
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
            pytest.raises(
                RuntimeError,
                match=r"Function 'SqrtBackward0' returned nan values in its 0th output\."
                r".*sqrt at test_anomaly.py:\d+",
            ),
        ):
            y.sum().backward()
    assert not torch.is_anomaly_enabled()
    x.sqrt().sum().backward()


def test_check_nan_can_be_left_out() -> None:
    x = torch.tensor([-1.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        assert not torch.is_anomaly_check_nan_enabled()
        x.sqrt().sum().backward()
    torch.autograd.set_detect_anomaly(True)
    assert torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    torch.autograd.set_detect_anomaly(False)
    assert not torch.is_anomaly_enabled()


def test_errors_of_backward_name_the_line_of_the_forward() -> None:
    x = torch.tensor([1.0], requires_grad=True)
    y = x * 1
    z = y.exp()
    z.add_(1)
    with pytest.raises(RuntimeError) as error:
        z.sum().backward()
    (note,) = error.value.__notes__
    assert note.startswith("Error detected in ExpBackward0, recorded at test_anomaly.py:")


def test_anomaly_shows_the_whole_way_to_the_forward() -> None:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x.sqrt()

    def outer(x: torch.Tensor) -> torch.Tensor:
        return inner(x)

    with torch.autograd.detect_anomaly():
        y = outer(torch.tensor([-1.0], requires_grad=True))
        lines = y.grad_fn.metadata["traceback_"]
        assert "in outer" in lines[-2] and "in inner" in lines[-1]
        with (
            pytest.warns(UserWarning, match="of forward call(.|\n)*in outer(.|\n)*in inner"),
            pytest.raises(RuntimeError, match="nan values") as error,
        ):
            y.sum().backward()
    (note,) = error.value.__notes__
    assert "return inner(x)" in note and "return x.sqrt()" in note
    assert "traceback_" not in torch.ones(1, requires_grad=True).exp().grad_fn.metadata


def test_modes_are_scopes_decorators_and_switches() -> None:
    def now() -> bool:
        return torch.autograd.is_multithreading_enabled()

    with torch.autograd.set_multithreading_enabled(False):
        assert not now()
    assert now()
    assert not torch.autograd.set_multithreading_enabled(False)(now)()
    assert now()
    torch.autograd.set_multithreading_enabled(False)
    assert not now()
    torch.autograd.grad_mode.set_multithreading_enabled(True)
    assert now()
