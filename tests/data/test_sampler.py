"""Samplers: orders of indices and batches of them."""

import collections

import pytest

import rushlight as torch
from rushlight.utils.data import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def test_sequential_goes_in_order() -> None:
    sampler = SequentialSampler("abc")
    assert (list(sampler), len(sampler)) == ([0, 1, 2], 3)


def test_random_visits_each_index_once_in_a_new_order() -> None:
    sampler = RandomSampler(range(100), generator=seeded(0))
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second
    assert first == list(RandomSampler(range(100), generator=seeded(0)))


def test_random_follows_the_default_generator() -> None:
    orders = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        orders.append(list(RandomSampler(range(50))))
    assert orders[0] == orders[1] != orders[2]


@pytest.mark.parametrize("count", [1, 3, 4, 6, 7])
def test_random_starts_over_when_more_samples_are_asked_for(count) -> None:
    drawn = list(RandomSampler(range(3), num_samples=count))
    assert len(drawn) == count
    for start in range(0, count, 3):
        part = drawn[start : start + 3]
        assert len(set(part)) == len(part)


def test_random_with_replacement_repeats_indices() -> None:
    sampler = RandomSampler(range(3), replacement=True, num_samples=100)
    counts = collections.Counter(sampler)
    assert sum(counts.values()) == len(sampler) == 100
    assert set(counts) == {0, 1, 2}


def test_random_follows_a_growing_dataset() -> None:
    data = [0]
    sampler = RandomSampler(data)
    data.append(1)
    assert sorted(sampler) == [0, 1]
    assert len(sampler) == 2


def test_subset_random_permutes_the_given_indices() -> None:
    sampler = SubsetRandomSampler([7, 5, 3, 1])
    assert sorted(sampler) == [1, 3, 5, 7]
    assert len(sampler) == 4


def test_weighted_draws_in_proportion() -> None:
    sampler = WeightedRandomSampler([1, 0, 3], 4000, generator=seeded(0))
    counts = collections.Counter(sampler)
    assert counts[1] == 0
    # Four standard deviations of a binomial with 4,000 draws and p = 1/4 are 110.
    assert abs(counts[0] - 1000) < 110


def test_weighted_without_replacement_draws_each_index_once() -> None:
    sampler = WeightedRandomSampler([1.0, 2.0, 3.0], 3, replacement=False)
    assert sorted(sampler) == [0, 1, 2]


@pytest.mark.parametrize(
    ("drop_last", "batches"), [(False, [[0, 1], [2, 3], [4]]), (True, [[0, 1], [2, 3]])]
)
def test_batches_group_any_iterable(drop_last, batches) -> None:
    sampler = BatchSampler(range(5), 2, drop_last)
    assert list(sampler) == batches
    assert len(sampler) == len(batches)


def test_batches_of_a_full_size_are_kept_when_the_last_is_dropped() -> None:
    assert list(BatchSampler(range(4), 2, True)) == [[0, 1], [2, 3]]
    assert len(BatchSampler(range(4), 2, False)) == 2


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RandomSampler([]), ValueError, "num_samples=0"),
        (lambda: RandomSampler([1], num_samples=True), ValueError, "num_samples=True"),
        (lambda: RandomSampler([1], replacement=1), TypeError, "replacement=1"),
        (lambda: WeightedRandomSampler([1.0], 0), ValueError, "num_samples=0"),
        (lambda: WeightedRandomSampler([1.0], 1, replacement=0), ValueError, "replacement=0"),
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, r"shape \(1, 1\)"),
        (lambda: BatchSampler([1], 0, False), ValueError, "batch_size=0"),
        (lambda: BatchSampler([1], 1, None), ValueError, "drop_last=None"),
        (lambda: iter(Sampler()), NotImplementedError, "Sampler must define __iter__"),
    ],
)
def test_bad_options_are_refused(make, error, message) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("replacement", [True, False])
def test_what_is_drawn_follows_from_the_seed_when_the_first_index_is_asked_for(
    replacement: bool,
) -> None:
    sampler = WeightedRandomSampler([1.0, 2.0, 3.0], 3, replacement)
    orders = [iter(sampler), iter(sampler)]
    drawn = []
    for order in orders:
        torch.manual_seed(0)
        drawn.append(list(order))
    assert drawn[0] == drawn[1]
