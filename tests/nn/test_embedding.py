"""Sparse gradients and errors of Embedding and EmbeddingBag; their values are module cases."""

from functools import partial

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn

F = nn.functional

INDEX = torch.tensor([1, 4, 1, 0])
OFFSETS = torch.tensor([0, 3])


def run(layer: nn.Module, *args: torch.Tensor) -> torch.Tensor:
    layer(*args).square().sum().backward()
    grad = layer.weight.grad
    assert grad is not None
    return grad


@pytest.mark.parametrize(
    ("make", "args"),
    [
        (lambda sparse: nn.Embedding(5, 3, sparse=sparse), (INDEX,)),
        (lambda sparse: nn.Embedding(5, 3, padding_idx=1, sparse=sparse), (INDEX,)),
        (lambda sparse: nn.EmbeddingBag(5, 3, sparse=sparse), (INDEX, OFFSETS)),
        (lambda sparse: nn.EmbeddingBag(5, 3, mode="sum", sparse=sparse), (INDEX, OFFSETS)),
        (lambda sparse: nn.EmbeddingBag(5, 3, padding_idx=1, sparse=sparse), (INDEX, OFFSETS)),
    ],
)
def test_sparse_gradient_equals_the_dense_one_and_accumulates(make, args) -> None:
    dense, sparse = make(False), make(True)
    sparse.load_state_dict(dense.state_dict())
    for _ in range(2):
        expected, grad = run(dense, *args), run(sparse, *args)
        assert grad.is_sparse
        np.testing.assert_allclose(grad.to_dense().numpy(), expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", ["SGD", "Adagrad", "SparseAdam"])
def test_optimizers_take_sparse_gradients(name) -> None:
    make = getattr(torch.optim, name, None)
    if make is None:
        pytest.skip(f"there is no {name}")
    layer = nn.EmbeddingBag(5, 3, mode="sum", sparse=True)
    before = layer.weight.detach().clone()
    optimizer = make(layer.parameters(), lr=0.1)
    run(layer, INDEX, OFFSETS)
    optimizer.step()
    changed = (layer.weight.detach() != before).any(1)
    assert changed.tolist() == [True, True, False, False, True]


def test_frequency_scales_each_rows_gradient() -> None:
    # PyTorch's bag on the CPU divides by the count of another row, so it is no oracle here.
    weight = torch.rand(5, 3, dtype=torch.float64, requires_grad=True)
    F.embedding_bag(INDEX, weight, OFFSETS, scale_grad_by_freq=True, mode="sum").sum().backward()
    assert weight.grad is not None
    assert weight.grad[:, 0].tolist() == [1.0, 1.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_sums_have_tables_of_any_width(dtype: torch.dtype) -> None:
    generator = np.random.default_rng(0)
    index, factors = generator.integers(0, 20, (9, 7)), generator.integers(-4, 5, (9, 7))
    for columns in (1, 3, 7, 8, 9, 16, 50, 63, 96, 97, 130, 200):
        table = generator.integers(-8, 9, (20, columns))  # whose sums all dtypes hold
        sums = F.embedding_bag(
            torch.tensor(index), torch.tensor(table).to(dtype), mode="sum",
            per_sample_weights=torch.tensor(factors).to(dtype),
        )  # fmt: skip
        wanted = (table[index] * factors[..., None]).sum(1)
        np.testing.assert_array_equal(sums.double().numpy(), wanted)


def test_maxima_give_nothing_to_empty_bags() -> None:
    weight = torch.rand(5, 3, requires_grad=True)
    out = F.embedding_bag(INDEX, weight, torch.tensor([0, 0, 4]), mode="max")
    assert out[0].tolist() == [0.0, 0.0, 0.0]
    assert out[2].tolist() == [0.0, 0.0, 0.0]
    out.sum().backward()
    assert weight.grad is not None
    assert weight.grad.sum().item() == 3.0


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("offsets", [[], [0]])
def test_entries_without_a_bag_are_in_no_result(mode, offsets) -> None:
    weight = torch.rand(5, 3, requires_grad=True)
    starts = torch.tensor(offsets, dtype=torch.int64)
    out = F.embedding_bag(INDEX, weight, starts, mode=mode, include_last_offset=bool(offsets))
    out.sum().backward()
    assert out.shape == (0, 3)
    assert weight.grad is not None
    assert weight.grad.tolist() == torch.zeros(5, 3).tolist()


def _bags(weight: torch.Tensor, mode: str) -> torch.Tensor:
    return F.embedding_bag(INDEX, weight, OFFSETS, mode=mode)


def test_rows_are_the_same_as_gathered_ones_for_each_sample_of_vmap() -> None:
    weights = torch.rand(4, 5, 3)
    for mode in ("sum", "mean", "max"):
        bags = partial(_bags, mode=mode)
        out, each = torch.vmap(bags)(weights), [bags(w) for w in weights]
        np.testing.assert_allclose(out.numpy(), torch.stack(each).numpy(), rtol=1e-6)


def test_bags_have_a_shape_on_meta() -> None:
    weight = torch.empty(5, 3, device="meta")
    for mode in ("sum", "mean", "max"):
        out = F.embedding_bag(INDEX.to("meta"), weight, OFFSETS.to("meta"), mode=mode)
        assert out.shape == (2, 3)


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "match"),
    [
        ((INDEX, OFFSETS + 1), {}, RuntimeError, r"offsets\[0\] has to be 0"),
        ((INDEX, OFFSETS * 3), {}, RuntimeError, r"offsets\[-1\] can not be greater"),
        ((INDEX, torch.tensor([0, 3, 1])), {}, RuntimeError, "offsets must not decrease"),
        ((INDEX * 2, OFFSETS), {}, RuntimeError, r"not in the valid range \[0, 5\)"),
        ((-INDEX, OFFSETS), {}, RuntimeError, r"not in the valid range \[0, 5\)"),
        ((INDEX, None), {}, ValueError, "offsets has to be a 1D Tensor but got None"),
        ((INDEX.reshape(2, 2), OFFSETS), {}, ValueError, "offsets has to be None"),
        ((INDEX, OFFSETS), {"mode": "min"}, ValueError, "mode has to be one of"),
        ((INDEX, OFFSETS), {"mode": "max", "sparse": True}, ValueError, "does not support sparse"),
        ((INDEX, OFFSETS), {"padding_idx": 5}, RuntimeError, "padding_idx must be within"),
        (
            (INDEX, OFFSETS),
            {"per_sample_weights": torch.ones(4)},
            NotImplementedError,
            "only supported for mode='sum'",
        ),
        (
            (INDEX, OFFSETS),
            {"per_sample_weights": torch.ones(3), "mode": "sum"},
            ValueError,
            "must have the same shape as the input",
        ),
        ((INDEX.float(), OFFSETS), {}, RuntimeError, "scalar types: Long, Int"),
        (
            (INDEX, torch.zeros(0, dtype=torch.int64)),
            {"include_last_offset": True},
            RuntimeError,
            "number of offset should be at least 1",
        ),
    ],
)
def test_what_does_not_fit_is_refused(args, kwargs, error, match) -> None:
    index, offsets = args
    with pytest.raises(error, match=match):
        F.embedding_bag(index, torch.ones(5, 3), offsets, **kwargs)


@pytest.mark.parametrize("cls", [nn.Embedding, nn.EmbeddingBag])
def test_a_given_weight_has_the_sizes_that_are_said(cls) -> None:
    assert cls(3, 2, _weight=torch.ones(3, 2)).weight.sum() == 6
    with pytest.raises(ValueError, match=r"_weight has shape \(2, 2\), which does not match"):
        cls(3, 2, _weight=torch.ones(2, 2))


@pytest.mark.parametrize("cls", [nn.Embedding, nn.EmbeddingBag])
def test_subclasses_that_draw_other_weights_keep_the_row_of_padding_zero(cls) -> None:
    class Uniform(cls):
        def reset_parameters(self):
            nn.init.uniform_(self.weight, 1, 2)
            self._fill_padding_idx_with_zero()

    weight = Uniform(3, 2, padding_idx=1).weight
    assert (weight == 0).all(1).tolist() == [False, True, False]
    assert (Uniform(3, 2).weight >= 1).all()
