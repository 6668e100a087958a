"""Names of torch.ops.aten for which Python has other words; tests/compat has all of them."""

from __future__ import annotations

import rushlight as torch

aten = torch.ops.aten


def test_gradients_with_names_of_their_own() -> None:
    x, ones = torch.tensor([[-1.0, 2.0]]), torch.ones(1, 2)
    assert aten.threshold_backward(ones, x, 0).tolist() == [[0, 1]]
    assert aten.tanh_backward(ones, x).tolist() == [[0, -3]]
    image, weight = torch.ones(1, 1, 2, 2), torch.full((1, 1, 1, 1), 3.0)
    options = [1, 1], [0, 0], [1, 1], False, [0, 0], 1
    found = aten.convolution_backward(image, image, weight, [1], *options, [True, False, True])
    assert found[0].tolist() == [[[[3, 3], [3, 3]]]] and found[1] is None
    assert found[2].tolist() == [4]
    largest, places = aten.max_pool2d_with_indices(image.cumsum(-1), [2, 2])
    back = aten.max_pool2d_with_indices_backward(
        largest, image, [2, 2], [2, 2], [0, 0], [1, 1], False, places
    )
    assert back.flatten().tolist() == [0, 2, 0, 0]


def test_padding_and_resampling_by_dims() -> None:
    row = torch.tensor([[1.0, 2.0, 3.0]])
    assert aten.reflection_pad1d(row, [1, 0]).tolist() == [[2, 1, 2, 3]]
    assert aten.replication_pad1d(row, [1, 0]).tolist() == [[1, 1, 2, 3]]
    twice = [[[1, 1, 2, 2, 3, 3]]]
    assert aten.upsample_nearest1d(row[None], [6]).tolist() == twice
    assert aten.upsample_nearest1d.vec(row[None], None, [2.0]).tolist() == twice
    assert aten.upsample_linear1d(row[None], [5], True).tolist() == [[[1, 1.5, 2, 2.5, 3]]]


def test_sizes_are_asked_by_operators() -> None:
    x = torch.ones(2, 3)[:, 1:]
    assert (aten.sym_size.int(x, 1), aten.sym_size.default(x)) == (2, (2, 2))
    assert (aten.sym_stride.int(x, 0), aten.sym_stride.default(x)) == (3, (3, 1))
    assert (aten.sym_numel.default(x), aten.sym_storage_offset.default(x)) == (4, 1)
