"""Datasets that combine or cut others."""

import pytest

import rushlight as torch
from rushlight.utils.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Stream(IterableDataset):
    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        return iter(self.items)

    def __len__(self):
        return len(self.items)


class Batched(Dataset):
    """Doubles its indices and notes whether it was asked for many at once."""

    def __init__(self, size):
        self.size = size
        self.asked = []

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return index * 2

    def __getitems__(self, indices):
        self.asked.append(indices)
        return [index * 2 for index in indices]


def test_tensor_dataset_gives_rows() -> None:
    data = TensorDataset(torch.arange(6).reshape(3, 2), torch.arange(3))
    assert len(data) == 3
    row, label = data[1]
    assert (row.tolist(), label.item()) == ([2, 3], 1)
    assert [part.tolist() for part in data[1:]] == [[[2, 3], [4, 5]], [1, 2]]


def test_tensor_dataset_needs_equal_first_sizes() -> None:
    with pytest.raises(AssertionError, match=r"Size mismatch between tensors.*\[2, 3\]"):
        TensorDataset(torch.zeros(2), torch.zeros(3))


def test_concat_indexes_across_parts_and_from_the_end() -> None:
    data = ConcatDataset([[10, 11], [], [12]])
    assert [data[i] for i in range(-3, 3)] == [10, 11, 12, 10, 11, 12]
    with pytest.raises(IndexError, match="index 3 is out of range for length 3"):
        data[3]
    with pytest.raises(ValueError, match="absolute value of index should not exceed"):
        data[-4]
    with pytest.warns(FutureWarning, match="is renamed to cumulative_sizes"):
        assert data.cummulative_sizes == data.cumulative_sizes == [2, 2, 3]


def test_plus_concatenates_datasets_and_chains_streams() -> None:
    assert list(Stream(1) + Stream(2, 3)) == [1, 2, 3]
    both = Batched(2) + Batched(3)
    assert [both[i] for i in range(len(both))] == [0, 2, 0, 2, 4]


def test_concat_and_chain_refuse_the_other_kind() -> None:
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        ConcatDataset([Stream(1)])
    with pytest.raises(AssertionError, match="should not be an empty iterable"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="only supports IterableDataset, not Batched"):
        list(ChainDataset([Batched(1)]))


def test_chain_adds_up_lengths() -> None:
    assert len(ChainDataset([Stream(1), Stream(2, 3)])) == 3


def test_stack_makes_tuples_or_dicts() -> None:
    assert StackDataset([1, 2], "ab")[1] == (2, "b")
    assert StackDataset(x=[1, 2], y="ab")[0] == {"x": 1, "y": "a"}
    assert len(StackDataset([1, 2])) == 2


def test_stack_fetches_many_samples_at_once_where_a_part_can() -> None:
    part = Batched(3)
    data = StackDataset(x=part, y="abc")
    assert data.__getitems__([2, 0]) == [{"x": 4, "y": "c"}, {"x": 0, "y": "a"}]
    assert part.asked == [[2, 0]]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ([], {}, "At least one dataset"),
        ([[1]], {"x": [1]}, "positional or named"),
        ([[1], [1, 2]], {}, "Size mismatch between datasets"),
    ],
)
def test_stack_refuses_what_it_cannot_pair(args, kwargs, message) -> None:
    with pytest.raises(ValueError, match=message):
        StackDataset(*args, **kwargs)


def test_stack_notices_a_part_that_returns_too_few_samples() -> None:
    class Short(Batched):
        def __getitems__(self, indices):
            return [0]

    with pytest.raises(ValueError, match=r"output size mismatch\. Expected 2, got 1"):
        StackDataset(Short(3)).__getitems__([0, 1])


def test_subset_follows_its_indices() -> None:
    subset = Subset("abcd", [3, 1])
    assert (subset[0], subset[-1], len(subset)) == ("d", "b", 2)
    part = Batched(5)
    assert Subset(part, [4, 2, 0]).__getitems__([0, 2]) == [8, 0]
    assert part.asked == [[4, 0]]


def test_subset_of_tensors_takes_a_list_of_indices() -> None:
    subset = Subset(TensorDataset(torch.arange(5) * 10), [4, 2, 0])
    assert subset[[0, 1]][0].tolist() == [40, 20]


def test_a_subclass_of_subset_must_say_how_batches_are_made() -> None:
    class Doubled(Subset):
        def __getitem__(self, index):
            return super().__getitem__(index) * 2

    with pytest.raises(NotImplementedError, match="overrides __getitem__ but not __getitems__"):
        Doubled([1, 2], [0])


def test_random_split_covers_the_dataset_once() -> None:
    parts = random_split(range(10), [3, 7])
    assert [len(part) for part in parts] == [3, 7]
    assert sorted(sample for part in parts for sample in part) == list(range(10))


def test_random_split_gives_what_shares_leave_over_to_the_first_parts() -> None:
    assert [len(part) for part in random_split(range(11), [0.5, 0.25, 0.25])] == [6, 3, 2]


def test_random_split_repeats_with_a_generator() -> None:
    splits = [
        [
            part.indices
            for part in random_split(range(20), [15, 5], torch.Generator().manual_seed(s))
        ]
        for s in (1, 1, 2)
    ]
    assert splits[0] == splits[1] != splits[2]


def test_random_split_refuses_lengths_that_do_not_add_up() -> None:
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        random_split(range(10), [3, 8])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        random_split(range(10), [1.5, -0.5])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split(range(3), [0.99, 0.01])


def test_subclasses_use_the_sum_of_lengths() -> None:
    class Weighted(ConcatDataset):
        @staticmethod
        def cumsum(sequence):
            return [2 * n for n in ConcatDataset.cumsum(sequence)]

    assert ConcatDataset.cumsum([[1, 2], [3]]) == [2, 3]
    assert len(Weighted([[1, 2], [3]])) == 6
