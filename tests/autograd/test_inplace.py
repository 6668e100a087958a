"""Writing in place: versions, the message with both lines, views and their bases."""

from __future__ import annotations

import math

import pytest

import rushlight as torch


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
