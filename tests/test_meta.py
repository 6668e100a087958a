"""The op matrix on meta: every op gives the shapes, dtypes and strides that it gives on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops import mutations
from ops.matrix import SAMPLED, SAMPLES, each_sample, function_of, tensor_of, tensors_in
from samples import Sample

import rushlight as rl

# Ops that cannot have a form, and the one that has none for classes to be counted.
DEPEND_ON_VALUES = frozenset({
    "allclose", "bincount", "equal", "gru.data", "is_nonzero", "item",
    "linspace.tensors", "logspace.tensors", "lstm.data", "masked_select", "nonzero",
    "nonzero.tuple", "nonzero.untupled", "repeat_interleave.index", "repeat_interleave.tensor",
    "rnn_relu.data", "rnn_tanh.data", "tensor_split",
    "vision.ops.batched_nms", "vision.ops.nms", "where.places",
})  # fmt: skip
MAY_DEPEND_ON_VALUES = frozenset({"nn.functional.one_hot"})


def run(name: str, sample: Sample, device: str) -> list[Any]:
    def place(array: np.ndarray) -> Any:
        return tensor_of(array).to(device)

    filled = sample.map(place)
    options = {} if sample.arrays() else {"device": device}
    return tensors_in(function_of(name)(*filled.args, **filled.kwargs, **options))


# Ops that look at the sizes of an argument only, sometimes or for one of their results.
TAKE_SIZES = frozenset({
    "broadcast_tensors", "cdist", "expand_as", "lu_unpack", "put", "put_", "reshape_as", "view_as",
})  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAMPLED)
def test_what_comes_of_a_tensor_without_values_has_none(name: str) -> None:
    for sample in SAMPLES[name].all:
        for what, mixed in mutations.mutations(sample):
            if not what.endswith("on meta") or name in TAKE_SIZES:
                continue
            filled = mixed.map(lambda array: mutations.tensor_of(rl, array))
            try:
                result = function_of(name)(*filled.args, **filled.kwargs)
            except RuntimeError:
                continue
            assert all(t.is_meta or not t.numel() for t in tensors_in(result)), what


@pytest.mark.parametrize("way", ["index_add", "index_copy"])
def test_slices_and_their_places_lie_beside_the_tensor(way: str) -> None:
    x, index, source = rl.ones(3, 2, device="meta"), rl.tensor([0]), rl.ones(1, 2)
    for args in ((index, source), (index.to("meta"), source), (index, source.to("meta"))):
        with pytest.raises(RuntimeError, match="same device"):
            getattr(x, way)(0, *args)
    with pytest.raises(RuntimeError, match="same device"):
        x.index_fill(0, index, 1.0)
    for join in (rl.cat, rl.stack, rl.block_diag):
        with pytest.raises(RuntimeError, match="same device"):
            join([x, rl.ones(3, 2)])


@each_sample
@pytest.mark.parametrize("name", SAMPLED)
def test_meta_has_the_shapes_of_the_cpu(name: str, sample: Sample) -> None:
    if name in DEPEND_ON_VALUES:
        with pytest.raises(NotImplementedError, match="meta"):
            run(name, sample, "meta")
        return
    try:
        results = run(name, sample, "meta")
    except NotImplementedError:
        if name not in MAY_DEPEND_ON_VALUES:
            raise
        return
    expected = run(name, sample, "cpu")
    assert [r.device.type for r in results] == ["meta"] * len(expected)
    for mine, theirs in zip(results, expected, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        assert mine.stride() == theirs.stride()


DRAWS = {
    "rand": lambda x: rl.rand(2, 3, device=x.device),
    "randn_like": lambda x: rl.randn_like(x),
    "randint": lambda x: rl.randint(3, (4,), device=x.device),
    "randperm": lambda x: rl.randperm(5, device=x.device),
    "normal": lambda x: rl.normal(x, x.abs()),
    "normal_": lambda x: x.clone().normal_(),
    "bernoulli": lambda x: rl.bernoulli(x.sigmoid()),
    "multinomial": lambda x: rl.multinomial(x.abs(), 2),
    "dropout": lambda x: rl.nn.functional.dropout(x),
    "dropout2d": lambda x: rl.nn.functional.dropout2d(x[:, :, None, None]),
    "alpha_dropout": lambda x: rl.nn.functional.alpha_dropout(x, training=True),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_draws_on_meta_take_no_random_numbers(draw: Any) -> None:
    x = rl.ones(4, 5)
    rl.manual_seed(0)
    expected = draw(x)
    rl.manual_seed(0)
    result = draw(x.to("meta"))
    assert rl.equal(rl.get_rng_state(), rl.manual_seed(0).get_state())
    assert result.is_meta
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert result.stride() == expected.stride()


def test_a_meta_tensor_prints_its_shape() -> None:
    assert repr(rl.empty(2, 3, device="meta")) == "tensor(..., device='meta', size=(2, 3))"
    long = rl.zeros(2, dtype=rl.int64, device="meta", requires_grad=False)
    assert repr(long) == "tensor(..., device='meta', size=(2,), dtype=torch.int64)"


def test_meta_tensors_have_no_data_to_take() -> None:
    x = rl.ones(3, device="meta")
    for take in (x.cpu, lambda: x.to("cpu"), lambda: rl.ones(3).copy_(x)):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            take()
    for read in (lambda: x.sum().item(), x.tolist, x.numpy, lambda: bool(x[0])):
        with pytest.raises((NotImplementedError, RuntimeError, TypeError), match="meta"):
            read()
    assert x.to("meta") is x
    assert x.copy_(rl.ones(3)).is_meta


def test_modules_are_made_on_meta_and_get_memory_later() -> None:
    layer = rl.nn.Linear(3, 4, device="meta")
    assert layer.weight.is_meta and layer.weight.requires_grad
    with pytest.raises(NotImplementedError, match="to_empty"):
        layer.to("cpu")
    layer.to_empty(device="cpu")
    with rl.no_grad():
        layer.weight.fill_(1)
        layer.bias.zero_()
    assert layer(rl.ones(2, 3)).tolist() == [[3.0] * 4] * 2

    with rl.device("meta"):
        model = rl.nn.Sequential(rl.nn.Linear(2, 8), rl.nn.BatchNorm1d(8), rl.nn.Linear(8, 1))
    assert all(t.is_meta for t in model.state_dict().values())
    source = rl.nn.Sequential(rl.nn.Linear(2, 8), rl.nn.BatchNorm1d(8), rl.nn.Linear(8, 1))
    model.load_state_dict(source.state_dict(), assign=True)
    x = rl.randn(5, 2)
    assert rl.equal(model(x), source(x))


def test_the_default_device_is_that_of_new_tensors() -> None:
    assert rl.get_default_device() == rl.device("cpu")
    with rl.device("meta"):
        made = [
            rl.empty(2),
            rl.ones(2),
            rl.arange(3),
            rl.rand(2),
            rl.tensor([1]),
            rl.as_tensor(2.0),
        ]
        assert all(t.is_meta for t in made)
        assert rl.zeros(2, device="cpu").device.type == "cpu"
        with rl.device("cpu"):
            assert rl.get_default_device().type == "cpu"
            assert rl.eye(2).device.type == "cpu"
        assert rl.get_default_device().type == "meta"
    like = rl.ones(2)
    rl.set_default_device("meta")
    try:
        assert rl.full((2,), 1.0).is_meta
        assert rl.zeros_like(like).device.type == "cpu" and like.new_ones(3).device.type == "cpu"
    finally:
        rl.set_default_device(None)
    assert rl.ones(1).device.type == "cpu"


def test_what_masks_and_classes_do_not_shape_has_a_form() -> None:
    x, mask = rl.zeros(3, 2, device="meta"), rl.ones(3, device="meta") > 0
    x[mask] = 1.0
    x[:, mask[:2]] = rl.ones(1, device="meta")
    x[mask[0]] = 2.0
    assert x.masked_scatter_(mask[:, None], x).is_meta
    assert rl.nn.functional.one_hot(x.long(), 4).shape == (3, 2, 4)
    with pytest.raises(NotImplementedError, match="depend on values"):
        x[mask]
    with pytest.raises(IndexError, match="does not match"):
        x[:, mask] = 1.0
    with pytest.raises(RuntimeError, match="on the same device"):
        rl.zeros(3)[mask] = 1.0


@pytest.mark.parametrize("export", [memoryview, rl.from_dlpack, bytes])
def test_memory_that_is_not_the_cpus_is_never_exported(export: Any) -> None:
    with pytest.raises((BufferError, ValueError), match="CPU|no memory"):
        export(rl.ones(3, device="meta"))
