"""The loader in one process."""

import itertools
from typing import Any

import pytest

import rushlight as torch
from rushlight.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    dataloader,
    default_collate,
    get_worker_info,
    random_split,
)


class Squares(Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if not 0 <= index < self.size:
            raise IndexError(index)
        return index * index


class Stream(IterableDataset):
    def __init__(self, size):
        self.size = size

    def __iter__(self):
        return iter(range(self.size))

    def __len__(self):
        return self.size


def lists(loader):
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize("make", [range, Stream])
@pytest.mark.parametrize(
    ("drop_last", "batches"),
    [(False, [[0, 1], [2, 3], [4]]), (True, [[0, 1], [2, 3]])],
)
def test_batches_in_order(make, drop_last, batches) -> None:
    loader = DataLoader(make(5), batch_size=2, drop_last=drop_last)
    assert lists(loader) == batches
    assert len(loader) == len(batches)
    assert lists(loader) == batches  # each iter() is an epoch of its own


@pytest.mark.parametrize("make", [range, Stream])
def test_without_a_batch_size_samples_come_alone(make) -> None:
    loader = DataLoader(make(3), batch_size=None)
    assert list(loader) == [0, 1, 2]
    assert len(loader) == 3


def test_two_epochs_at_the_same_time_do_not_disturb_each_other() -> None:
    loader = DataLoader(range(3))
    assert [(a.item(), b.item()) for a, b in zip(loader, loader, strict=True)] == [
        (0, 0),
        (1, 1),
        (2, 2),
    ]


def test_shuffle_visits_all_in_an_order_of_the_generator() -> None:
    def epochs(seed):
        generator = torch.Generator().manual_seed(seed)
        loader = DataLoader(range(20), batch_size=20, shuffle=True, generator=generator)
        return lists(loader) + lists(loader)

    first, second = epochs(0)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second
    assert epochs(0) == [first, second]
    assert epochs(1) != [first, second]


def test_samplers_give_the_order() -> None:
    assert lists(DataLoader(range(9), batch_size=2, sampler=[5, 3, 1])) == [[5, 3], [1]]
    assert lists(DataLoader(range(9), batch_sampler=[[5, 3], [1]])) == [[5, 3], [1]]


def test_collate_fn_makes_the_batch() -> None:
    assert list(DataLoader("abc", batch_size=2, collate_fn="".join)) == ["ab", "c"]
    assert list(DataLoader("ab", batch_size=None, collate_fn=str.upper)) == ["A", "B"]


def test_a_dataset_may_return_a_batch_of_samples_itself() -> None:
    class Many(Squares):
        def __getitems__(self, indices):
            return [-index for index in indices]

    assert lists(DataLoader(Many(3), batch_size=2)) == [[0, -1], [-2]]


def test_a_batch_that_raises_does_not_end_the_epoch() -> None:
    epoch = iter(DataLoader(Squares(3), batch_size=1, sampler=[0, 9, 2]))
    assert next(epoch).item() == 0
    with pytest.raises(IndexError):
        next(epoch)
    assert next(epoch).item() == 4
    assert len(epoch) == 3


def whole_and_single(data, **options):
    """Batches as the loader makes them, and by collating one sample after the other."""
    yield from zip(
        DataLoader(data, **options),
        DataLoader(data, collate_fn=lambda samples: default_collate(samples), **options),
        strict=True,
    )


def test_whole_batches_of_tensors_equal_collated_samples() -> None:
    images = torch.arange(5 * 2 * 3, dtype=torch.float32).reshape(5, 2, 3)
    tensors = (images, images.permute(0, 2, 1), torch.arange(5), torch.zeros(5, 0).bool())
    data = TensorDataset(*tensors)
    subsets = (Subset(data, [4, -2, 0]), Subset(Subset(data, range(1, 5)), torch.tensor([3, 0])))
    for dataset, batch_size in itertools.product((data, *subsets), (1, 2, 5)):
        for whole, single in whole_and_single(dataset, batch_size=batch_size):
            assert type(whole) is type(single) is list
            for x, y in zip(whole, single, strict=True):
                assert x.dtype == y.dtype
                assert x.shape == y.shape
                assert torch.equal(x, y)


def test_whole_batches_are_copies() -> None:
    x = torch.zeros(4)
    (batch,) = next(iter(DataLoader(TensorDataset(x), batch_size=4)))
    batch += 1
    assert x.tolist() == [0.0] * 4


def test_whole_batches_carry_gradients() -> None:
    x = torch.zeros(3, requires_grad=True)
    (batch,) = next(iter(DataLoader(TensorDataset(x), batch_sampler=[[2, 0, 2]])))
    batch.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 2.0]


def test_subclasses_of_tensor_dataset_decide_what_a_sample_is() -> None:
    class Doubled(TensorDataset):
        def __getitem__(self, index):
            return tuple(2 * x for x in super().__getitem__(index))

    data = Doubled(torch.arange(4))
    for dataset in (data, Subset(data, range(4))):
        (batch,) = next(iter(DataLoader(dataset, batch_size=4)))
        assert batch.tolist() == [0, 2, 4, 6]


def test_indices_out_of_range_are_refused() -> None:
    loader = DataLoader(TensorDataset(torch.arange(3)), batch_sampler=[[0, 3]])
    with pytest.raises(IndexError):
        next(iter(loader))


def test_random_split_loads_in_batches() -> None:
    data = TensorDataset(torch.arange(10), torch.arange(10) * 2)
    train, _ = random_split(data, [0.8, 0.2], torch.Generator().manual_seed(0))
    seen = []
    for x, y in DataLoader(train, batch_size=3):
        assert torch.equal(y, x * 2)
        seen += x.tolist()
    assert seen == train.indices


def test_this_process_is_no_worker() -> None:
    assert get_worker_info() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"multiprocessing_context": "fork"}, "multiprocessing_context can only be used"),
        ({"num_workers": 1, "multiprocessing_context": "x"}, "should specify a valid start method"),
        ({"num_workers": 1, "prefetch_factor": 0}, "prefetch_factor option should be positive"),
        ({"sampler": [0], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
        ({"batch_sampler": [[0]], "shuffle": True}, "batch_sampler option is mutually exclusive"),
        ({"batch_sampler": [[0]], "drop_last": True}, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
        ({"batch_size": 0}, "batch_size should be a positive integer value"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        DataLoader(range(3), **options)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": []}, {"batch_sampler": []}])
def test_streams_refuse_an_order(options) -> None:
    with pytest.raises(ValueError, match="DataLoader with IterableDataset: expected unspecified"):
        DataLoader(Stream(3), **options)


@pytest.mark.parametrize("name", ["batch_size", "sampler", "dataset", "drop_last"])
def test_what_the_sampler_was_made_of_cannot_be_changed(name) -> None:
    loader = DataLoader(range(3))
    with pytest.raises(ValueError, match=f"{name} attribute should not be set"):
        setattr(loader, name, None)
    loader.collate_fn = tuple
    assert list(loader) == [(0,), (1,), (2,)]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="pinning needs a GPU or the shim")
def test_batches_are_pinned_on_request() -> None:
    samples = [{"x": torch.ones(2) * i, "y": (i, "name")} for i in range(4)]
    plain = next(iter(DataLoader(samples, batch_size=2)))
    pinned = next(iter(DataLoader(samples, batch_size=2, pin_memory=True)))
    assert not plain["x"].is_pinned()
    assert pinned["x"].is_pinned()
    assert pinned["y"][0].is_pinned()
    assert list(pinned["y"][1]) == list(plain["y"][1])
    assert torch.equal(pinned["x"], plain["x"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is something to pin for")
def test_pinning_warns_where_nothing_needs_it() -> None:
    loader = DataLoader(range(2), pin_memory=True)
    with pytest.warns(UserWarning, match="no accelerator is found") as caught:
        batches = list(loader)
    assert caught[0].filename == __file__ and not batches[0].is_pinned()


class OwnLoader:
    """A loader of a library's own, with what PyTorch's iterators read of one."""

    dataset = range(6)
    num_workers = 0
    collate_fn = staticmethod(default_collate)
    in_order, drop_last, pin_memory, persistent_workers = True, False, False, False
    generator = prefetch_factor = multiprocessing_context = worker_init_fn = None
    timeout, _IterableDataset_len_called = 0, None
    _auto_collation, _dataset_kind = True, dataloader._DatasetKind.Map
    _index_sampler = BatchSampler(range(6), 4, drop_last=False)


@pytest.mark.parametrize("workers", [0, 1])
def test_iterators_have_the_names_that_libraries_use(workers: int) -> None:
    loader: Any = OwnLoader()
    loader.num_workers = workers
    classes = (
        dataloader._SingleProcessDataLoaderIter,
        dataloader._MultiProcessingDataLoaderIter,
    )
    epoch = classes[workers](loader)
    assert isinstance(epoch, dataloader._BaseDataLoaderIter) and len(epoch) == 2
    assert [batch.tolist() for batch in epoch] == [[0, 1, 2, 3], [4, 5]]
    if workers:
        assert not any(process.is_alive() for process in epoch._workers)
    else:
        epoch._reset(loader)
        assert next(epoch).tolist() == [0, 1, 2, 3] and epoch._num_yielded == 1
    assert isinstance(iter(DataLoader(range(6), num_workers=workers)), classes[workers])


def test_a_loader_keeps_the_last_epoch_of_workers_that_stay() -> None:
    for num_workers in (0, 1):
        loader = DataLoader(range(4), num_workers=num_workers)
        assert [x.item() for x in loader] == [0, 1, 2, 3] and loader._iterator is None
    loader = DataLoader(range(4), num_workers=1, persistent_workers=True)
    epoch = iter(loader)
    assert loader._iterator is epoch and next(epoch).item() == 0
    loader._iterator._shutdown_workers()
    assert [x.item() for x in loader] == [0, 1, 2, 3]  # by new workers
    loader._iterator._shutdown_workers()


def test_workers_serve_an_iterator_that_is_kept_for_all_epochs() -> None:
    loader = DataLoader(range(5), 2, num_workers=1, persistent_workers=True)
    epoch = loader._get_iterator()
    for _ in range(2):
        assert [batch.tolist() for batch in epoch] == [[0, 1], [2, 3], [4]]
        epoch._reset(loader)
    epoch._shutdown_workers()


@pytest.mark.parametrize(
    "dataset", [TensorDataset(torch.arange(6)), [(torch.tensor(i),) for i in range(6)]]
)
def test_the_indices_of_a_batch_may_be_a_tensor(dataset: Any) -> None:
    batches = [torch.tensor([4, 1]), torch.tensor([3])]
    loaded = [x.tolist() for (x,) in DataLoader(dataset, batch_sampler=batches)]
    assert loaded == [[4, 1], [3]]


def test_streams_that_are_their_own_iterators_begin_once_an_epoch() -> None:
    class Counter(IterableDataset):
        def __iter__(self) -> Any:
            self.count = 0
            return self

        def __next__(self) -> int:
            if self.count == 5:
                raise StopIteration
            self.count += 1
            return self.count

    loader = DataLoader(Counter(), batch_size=2)
    for _ in range(2):
        batches = [batch.tolist() for batch in itertools.islice(loader, 4)]
        assert batches == [[1, 2], [3, 4], [5]]


def test_streams_that_yield_more_than_their_length_are_told_of() -> None:
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(3))

        def __len__(self):
            return 2

    loader = DataLoader(Stream(), batch_size=None)
    assert [*iter(loader)] == [0, 1, 2] and loader._IterableDataset_len_called is None
    assert len(loader) == loader._IterableDataset_len_called == 2
    with pytest.warns(UserWarning, match=r"reported to be 2 .* but 3 samples have been fetched"):
        assert list(loader) == [0, 1, 2]


def test_a_start_method_becomes_a_context() -> None:
    loader = DataLoader(range(3), num_workers=1, multiprocessing_context="fork")
    assert loader.multiprocessing_context.get_start_method() == "fork"
    assert DataLoader(range(3), num_workers=1).multiprocessing_context is None


def test_the_prefetch_factor_is_told_where_workers_use_it() -> None:
    assert DataLoader(range(3), num_workers=1).prefetch_factor == 2
    assert DataLoader(range(3), num_workers=1, prefetch_factor=5).prefetch_factor == 5
    assert DataLoader(range(3)).prefetch_factor is None
