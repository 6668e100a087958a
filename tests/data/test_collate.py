"""Batches of samples keep the samples' structure."""

import collections

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils.data import default_collate, default_convert
from rushlight.utils.data._utils.collate import collate, default_collate_fn_map

Point = collections.namedtuple("Point", ["x", "y"])


@pytest.mark.parametrize(
    ("samples", "dtype", "values"),
    [
        ([1, 2], torch.int64, [1, 2]),
        ([True, False], torch.bool, [True, False]),
        ([0.5, 1.5], torch.float64, [0.5, 1.5]),
        ([np.float32(0.5), np.float32(1.5)], torch.float32, [0.5, 1.5]),
        ([np.float64(0.5)], torch.float64, [0.5]),
        ([np.int16(3)], torch.int16, [3]),
        ([np.bool_(True)], torch.bool, [True]),
        ([np.array([1, 2], np.uint8), np.array([3, 4], np.uint8)], torch.uint8, [[1, 2], [3, 4]]),
        ([np.array(5.0)], torch.float64, [5.0]),
    ],
)
def test_numbers_and_arrays_become_tensors(samples, dtype, values) -> None:
    batch = default_collate(samples)
    assert batch.dtype == dtype
    assert batch.tolist() == values


def test_tensors_are_stacked_with_their_gradients() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    batch = default_collate([x, x * 3])
    assert batch.tolist() == [[1.0, 2.0], [3.0, 6.0]]
    batch.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_text_stays_a_list() -> None:
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([b"a"]) == [b"a"]


def test_containers_keep_their_type_but_tuples_become_lists() -> None:
    batch = default_collate([Point(1, [2, 3]), Point(4, [5, 6])])
    assert type(batch) is Point
    assert batch.x.tolist() == [1, 4]
    assert [column.tolist() for column in batch.y] == [[2, 5], [3, 6]]
    assert type(default_collate([(1, 2)])) is list


def test_mappings_keep_their_type_and_order() -> None:
    ordered = collections.OrderedDict(b=1, a=2)
    batch = default_collate([ordered, ordered])
    assert type(batch) is collections.OrderedDict
    assert {key: value.tolist() for key, value in batch.items()} == {"b": [1, 1], "a": [2, 2]}
    counts = collections.defaultdict(int, a=1)
    assert default_collate([counts]).default_factory is int
    assert counts == {"a": 1}


def test_sequences_that_refuse_tensors_become_lists() -> None:
    assert [column.tolist() for column in default_collate([range(2), range(2)])] == [[0, 0], [1, 1]]
    assert type(default_collate([collections.deque([1])])) is collections.deque


def test_samples_of_different_length_are_refused() -> None:
    with pytest.raises(RuntimeError, match=r"should be of equal size.*\[1, 2\]"):
        default_collate([[1], [1, 2]])


@pytest.mark.parametrize("sample", [None, object(), np.array(["text"]), np.array([None])])
def test_other_samples_are_refused(sample) -> None:
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors"):
        default_collate([sample])


@pytest.mark.parametrize("make", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_sparse_tensors_are_refused(make) -> None:
    with pytest.raises(RuntimeError, match="Batches of sparse tensors are not currently supported"):
        default_collate([make(torch.eye(2)), make(torch.eye(2))])


def test_convert_turns_arrays_into_tensors_and_keeps_the_rest() -> None:
    text = np.array(["a"])
    result = default_convert({"x": (np.arange(2), 3), "t": text, "p": Point(np.float32(1), "s")})
    assert result["x"][0].tolist() == [0, 1]
    assert result["x"][1] == 3
    assert result["t"] is text
    assert type(result["p"]) is Point
    assert result["p"].x.dtype == torch.float32
    assert result["p"].y == "s"
    x = torch.zeros(1)
    assert default_convert(x) is x
    assert default_convert(None) is None


def test_classes_can_be_taught(monkeypatch):
    class Text(str):
        pass

    def join(batch, *, collate_fn_map):
        assert collate_fn_map is default_collate_fn_map
        return "+".join(batch)

    assert default_collate([{"t": Text("a")}, {"t": Text("b")}]) == {"t": ["a", "b"]}
    monkeypatch.setitem(default_collate_fn_map, Text, join)
    assert default_collate([{"t": Text("a")}, {"t": Text("b")}]) == {"t": "a+b"}


def test_a_table_of_its_own_is_all_there_is():
    table = {(int, float): lambda numbers, **_: sum(numbers)}
    assert collate([(1, 2.5), (3, 4.5)], collate_fn_map=table) == [4, 7.0]
    with pytest.raises(TypeError, match="found <class 'NoneType'>"):
        collate([None], collate_fn_map=table)
    with pytest.raises(TypeError, match=r"found <class .*Tensor'>"):
        collate([torch.ones(1)], collate_fn_map=table)
