"""The functions of nn.functional that are written in Python, against NumPy."""

import numpy as np
import pytest
from scipy import special

import rushlight as torch
import rushlight.nn.functional as F

PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def test_normalize_gives_vectors_of_length_one() -> None:
    x = torch.randn(4, 3, 2)
    a = x.numpy()
    np.testing.assert_allclose(
        F.normalize(x).numpy(), a / np.linalg.norm(a, axis=1, keepdims=True), rtol=1e-5
    )
    np.testing.assert_allclose(
        F.normalize(x, p=1.0, dim=-1).numpy(), a / np.abs(a).sum(-1, keepdims=True), rtol=1e-5
    )
    assert F.normalize(torch.zeros(1, 2)).tolist() == [[0, 0]]


def test_softmin_converts_its_input() -> None:
    x = torch.arange(3)
    result = F.softmin(x, 0, dtype=torch.float64)
    assert result.dtype == torch.float64
    np.testing.assert_allclose(result.numpy(), special.softmax([0.0, -1, -2]))


@pytest.mark.parametrize("mode", PAD_MODES)
@pytest.mark.parametrize("pad", [(1, 2), (3, 0), (2, 1, 0, 3), (0, 0, 1, 1)])
def test_pad_adds_around_the_last_dimensions(mode, pad) -> None:
    x = torch.randn(2, 5, 4)
    amounts = [(0, 0)] * 3
    for i in range(0, len(pad), 2):
        amounts[-1 - i // 2] = (pad[i], pad[i + 1])
    assert np.array_equal(F.pad(x, pad, mode).numpy(), np.pad(x.numpy(), amounts, PAD_MODES[mode]))


@pytest.mark.parametrize("mode", PAD_MODES)
def test_negative_padding_takes_away(mode) -> None:
    x = torch.randn(2, 5)
    kept = F.pad(x, (-1, -2), mode)
    assert kept.tolist() == x[:, 1:3].tolist()
    assert F.pad(x, (-1, 1), mode).shape == x.shape


def test_pad_fills_with_the_value_and_keeps_the_dtype() -> None:
    assert F.pad(torch.tensor([1, 2]), (1, 0), value=7).tolist() == [7, 1, 2]
    assert F.pad(torch.tensor([True]), (0, 1)).tolist() == [True, False]


@pytest.mark.parametrize("mode", PAD_MODES)
def test_gradients_of_pad_return_to_where_values_came_from(mode) -> None:
    x = torch.zeros(3, requires_grad=True)
    F.pad(x, (2, 1), mode).sum().backward()
    source = np.pad(
        np.arange(3),
        (2, 1),
        PAD_MODES[mode],
        **({"constant_values": -1} if mode == "constant" else {}),
    )
    assert x.grad.tolist() == [(source == i).sum() for i in range(3)]


@pytest.mark.parametrize(
    ("pad", "mode", "error", "message"),
    [
        ((1,), "constant", RuntimeError, "must be divisible by 2"),
        ((1,) * 6, "constant", RuntimeError, "less than or equal to two times the input dimension"),
        ((-3, -3), "constant", RuntimeError, "would leave a negative number"),
        ((-6, 6), "reflect", RuntimeError, "would leave a negative number"),
        ((5, 0), "reflect", RuntimeError, "at most 4 for mode reflect"),
        ((6, 0), "circular", RuntimeError, "at most 5 for mode circular"),
        ((1, 1), "mirror", NotImplementedError, "Unrecognized padding mode mirror"),
    ],
)
def test_bad_padding_is_an_error(pad, mode, error, message) -> None:
    with pytest.raises(error, match=message):
        F.pad(torch.zeros(2, 5), pad, mode)


def test_sizes_that_are_none_are_those_of_the_input() -> None:
    from rushlight.nn.modules.utils import _list_with_default, _reverse_repeat_tuple

    assert _list_with_default([None, 5], [1, 2, 3]) == [2, 5] and _list_with_default(4, [1]) == 4
    assert _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    with pytest.raises(ValueError, match="at least 3"):
        _list_with_default([None, 5], [1, 2])


def test_gradients_of_convolutions_are_found_through_the_functions() -> None:
    assert F.grad.conv1d_input is torch.nn.grad.conv1d_input
