"""Writing in place: versions, the message with both lines, views and their bases."""

from __future__ import annotations

import math

import pytest

import rushlight as torch
from rushlight import nn


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


def test_a_changed_saved_result_names_both_ops_and_lines() -> None:
    x = leaf(1.0)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError) as error:
        y.sum().backward()
    text = str(error.value)
    assert text.startswith("backward: exp saved its result (test_inplace.py:")
    assert "but add_ changed it in place afterwards (test_inplace.py:" in text
    assert "modified by an inplace operation" in text


def test_a_changed_saved_input_is_found() -> None:
    x = leaf(2.0)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="mul saved its input"):
        z.sum().backward()


def test_in_place_ops_on_results_are_differentiated() -> None:
    x = leaf(2.0)
    y = x * 3
    y.mul_(5)
    y.add_(x)
    y.exp_()
    y.sum().backward()
    assert x.grad.item() == pytest.approx(16.0 * math.exp(32.0), rel=1e-4)


def test_in_place_power_keeps_its_input() -> None:
    x = leaf(3.0)
    y = x * 1
    y.pow_(2)
    y.sum().backward()
    assert x.grad.tolist() == [6.0]


def test_writing_a_leaf_that_requires_grad_is_refused() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(
        RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"
    ):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0].add_(1)
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0, 3.0]


def test_an_in_place_op_makes_a_plain_tensor_require_grad() -> None:
    x = leaf(2.0)
    y = torch.zeros(1)
    y.add_(x)
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [1.0]


def test_a_write_through_a_view_changes_the_history_of_the_base() -> None:
    x = leaf(1.0, 2.0, 3.0)
    base = x * 2
    base[1] = x[0] * 10
    base.sum().backward()
    assert x.grad.tolist() == [12.0, 0.0, 2.0]


def test_a_write_to_the_base_changes_the_history_of_views() -> None:
    x = leaf(1.0, 2.0)
    base = x * 1
    view = base[:1]
    base.mul_(7)
    view.sum().backward()
    assert x.grad.tolist() == [7.0, 0.0]


def test_a_chain_of_writes_through_overlapping_views() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    base = x * 1
    base[:3].mul_(2)
    base[1:].mul_(3)
    base.view(2, 2)[0].add_(base[3] * 0 + 1)
    base.sum().backward()
    assert x.grad.tolist() == [2.0, 6.0, 6.0, 3.0]


def test_assignment_with_an_index_tensor_is_differentiated() -> None:
    x, v = leaf(1.0, 2.0, 3.0), leaf(10.0)
    y = x * 1
    y[torch.tensor([0, 2])] = v * 2
    (y * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 0.0]
    assert v.grad.tolist() == [8.0]


def test_outputs_of_split_cannot_be_written() -> None:
    x = leaf(1.0, 2.0)
    a, _ = (x * 1).chunk(2)
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        a.add_(1)


def test_views_made_without_grad_cannot_be_written_with_grad() -> None:
    x = leaf(1.0, 2.0) * 1
    with torch.no_grad():
        view = x[:1]
    with pytest.raises(RuntimeError, match="view was created in no_grad mode"):
        view.add_(1)


def test_data_is_not_tracked() -> None:
    x = leaf(2.0)
    y = x * x
    x.data.fill_(5.0)
    y.sum().backward()
    assert x.grad.tolist() == [10.0]


def test_expanded_and_read_only_tensors_refuse_writes() -> None:
    import numpy as np

    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.zeros(1).expand(3).add_(1)
    array = np.zeros(3)
    array.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only memory"):
        torch.from_numpy(array).add_(1)


def test_overlapping_windows_of_one_storage_do_not_corrupt() -> None:
    x = torch.arange(6.0)
    x[1:].add_(x[:-1])
    assert x.tolist() == [0.0, 1.0, 3.0, 5.0, 7.0, 9.0]


def test_in_place_result_must_keep_shape_and_dtype() -> None:
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.zeros(1).add_(torch.zeros(3))
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type int64"):
        torch.zeros(3, dtype=torch.int64).add_(1.5)


def test_version_and_base() -> None:
    x = torch.zeros(4)
    view = x[:2]
    assert view._base is x
    before = x._version
    view.add_(1)
    assert x._version == before + 1
    assert x.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_another_shape_in_place_counts_as_a_write() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 1
    z = y * y
    y.t_()
    with pytest.raises(RuntimeError, match="mul saved its input .* but t_ changed it in place"):
        z.sum().backward()


def test_views_follow_a_write_only_where_it_is_clear_what_is_recorded() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    first, _ = y.chunk(2)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modif"):
        first.sum()
    assert "Invalid" in repr(first)


def test_kept_gradients_are_those_of_the_latest_value() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    y.retain_grad()
    y.mul_(3)
    (y * 2).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0] and x.grad.tolist() == [6.0, 6.0]


def test_a_copy_to_integers_leaves_no_history() -> None:
    count = torch.zeros(2, dtype=torch.int64)
    count.copy_(leaf(1.0, 2.0))
    count[0] = leaf(5.0)[0]
    assert not count.requires_grad and count.tolist() == [5, 2]


def test_results_of_several_ops_are_no_views_of_what_they_hide() -> None:
    x = torch.ones(3, 3, requires_grad=True)
    y = x @ leaf(1.0, 2.0, 3.0)
    assert y._base is None
    assert torch.complex(x, x)._base is None
    y.relu_().sum().backward()
    assert x.grad[0].tolist() == [1.0, 2.0, 3.0]


def test_a_leaf_that_wants_no_gradient_any_more_gets_none() -> None:
    x = leaf(1.0)
    y = x * 2
    x.requires_grad_(False)
    y.sum().backward()
    assert x.grad is None


def test_backward_fills_the_inputs_that_were_asked_for_leaves_or_not() -> None:
    x = leaf(1.0)
    y = x * 2
    (y * y).sum().backward(inputs=[y])
    assert y.grad.tolist() == [4.0] and x.grad is None


def test_views_made_in_inference_mode_are_of_normal_tensors_but_not_written() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    with torch.inference_mode():
        view = y[:1]
        made = torch.tensor([1, 0])
        with torch.enable_grad():
            assert not (x * 2).requires_grad
        with torch.inference_mode(False):
            assert (x * 2).requires_grad
    assert made.is_inference() and not view.is_inference()
    with pytest.raises(RuntimeError, match="view was created in inference mode"):
        view.add_(1)
    with pytest.raises(RuntimeError, match="do not track version counter"):
        _ = made._version


def test_renorm_in_place_is_differentiable() -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 1.0]], requires_grad=True)
    y = x * 1
    assert y.renorm_(2, 0, 1) is y
    (written,) = torch.autograd.grad(y[0, 0], x)
    (expected,) = torch.autograd.grad(x.renorm(2, 0, 1)[0, 0], x)
    assert torch.allclose(written, expected) and written[0, 0] > 0
    with torch.no_grad():
        assert torch.allclose(x.clone().renorm_(2, 0, 1), x.renorm(2, 0, 1))


def test_gradient_of_a_window_over_repeated_complex_numbers() -> None:
    x = torch.ones(1, dtype=torch.complex128, requires_grad=True)
    torch.as_strided(x.expand(3), (2,), (0,)).real.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2]


@pytest.mark.parametrize(
    "op",
    [
        torch.erfinv,
        nn.functional.relu6,
        nn.functional.hardtanh,
        lambda x: nn.functional.relu6(x.clone(), inplace=True),
        lambda x: x / x.sum(),
        lambda x: 1 / x,
        lambda x: nn.functional.normalize(x, dim=0),
        lambda x: nn.LSTMCell(2, 2).double()(x)[0],
        lambda x: nn.LSTMCell(2, 2).double()(x)[1],
        lambda x: nn.GRUCell(2, 2).double()(x),
        lambda x: nn.LSTM(2, 2).double()(x[None])[0],
        lambda x: nn.GRU(2, 2, batch_first=True).double()(x[None])[0],
        lambda x: nn.RNN(2, 2, bidirectional=True).double()(x[None])[0],
    ],
)
def test_results_that_gradients_do_not_read_may_be_changed(op) -> None:
    def gradient(change) -> torch.Tensor:
        torch.manual_seed(0)
        x = torch.tensor([0.25, 0.5], dtype=torch.float64, requires_grad=True)
        (grad,) = torch.autograd.grad(change(op(x)).sum(), x)
        return grad

    assert torch.allclose(gradient(lambda y: y.mul_(3)), gradient(lambda y: y * 3))


@pytest.mark.parametrize("loss", [nn.functional.l1_loss, torch.add, torch.nn.functional.pad])
def test_arguments_that_gradients_do_not_read_may_be_changed(loss) -> None:
    x, target = leaf(1.0, 5.0), leaf(3.0, 3.0)
    written, compared = x * 1, target * 1
    y = loss(written, (1, 1)) if loss is nn.functional.pad else loss(written, compared)
    written.zero_()
    compared.zero_()
    y.sum().backward()
    expected = [-0.5, 0.5] if loss is nn.functional.l1_loss else [1, 1]
    assert x.grad is not None and x.grad.tolist() == expected


def test_slope_of_a_division_by_its_divisor() -> None:
    x, y = torch.tensor([3.0, 1 + 2j]), torch.tensor([2.0, 1 - 1j], requires_grad=True)
    (x / y).abs().sum().backward()
    step = 1e-3
    for i in range(2):
        slopes = []
        for direction in (1, 1j):
            moved = y.detach().clone()
            moved[i] += step * direction
            difference = (x / moved).abs().sum() - (x / y.detach()).abs().sum()
            slopes.append(difference.item() / step)
        assert y.grad is not None
        assert abs(y.grad[i].item() - complex(*slopes)) < 5e-3


def test_data_may_be_replaced_between_an_op_and_its_backward() -> None:
    w, x = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with torch.no_grad():
        w.add_(1)  # the version that the product sees is not that of the new data
    y = (w * x).sum()
    w.data = torch.tensor([5.0, 6.0])
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [5, 6]
    assert w.grad is not None and w.grad.tolist() == [3, 4]


@pytest.mark.parametrize("op", [nn.GroupNorm(4, 32), nn.LayerNorm(4), nn.BatchNorm1d(32)])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (64, 32, 4), (2, 32, 8)])
def test_data_of_another_shape_in_backward_is_an_error(op, shape) -> None:
    x = torch.ones(2, 32, 4, requires_grad=True) * 1
    y = op(x)
    x.data = torch.ones(shape)
    with pytest.raises(RuntimeError, match=r"\.data was replaced by a tensor of another shape"):
        y.sum().backward()


def test_data_of_another_dtype_in_backward_is_an_error() -> None:
    layer = nn.Linear(2, 2)
    y = layer(torch.ones(1, 2, requires_grad=True))
    layer.double()
    with pytest.raises(RuntimeError, match=r"linear saved its input \(test_inplace.py:\d+\)"):
        y.sum().backward()
