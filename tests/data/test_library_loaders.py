"""What loaders of libraries, such as torchdata's StatefulDataLoader, are made of."""

import os
import queue
import signal
import subprocess
import threading
from typing import Any

import pytest

import rushlight as torch
from rushlight._utils import ExceptionWrapper
from rushlight.utils.data import DataLoader, IterableDataset, _DatasetKind, _utils, get_worker_info
from rushlight.utils.data._utils import pin_memory, signal_handling, worker
from rushlight.utils.data.dataloader import _BaseDataLoaderIter, _sharding_worker_init_fn
from rushlight.utils.data.datapipes import datapipe
from rushlight.utils.data.datapipes.iter import IterableWrapper
from rushlight.utils.data.datapipes.map import SequenceWrapper


class Again(IterableDataset):
    """A stream whose iterator starts anew when it has ended."""

    def __iter__(self):
        return self

    def __init__(self, size):
        self.size, self.place = size, 0

    def __next__(self):
        if self.place == self.size:
            self.place = 0
            raise StopIteration
        self.place += 1
        return self.place


@pytest.mark.parametrize(
    ("kind", "dataset", "batched", "drop_last", "index", "expected"),
    [
        (_DatasetKind.Map, range(9), True, False, [4, 2], [[4, 2], [4, 2]]),
        (_DatasetKind.Map, range(9), False, False, 3, [3, 3]),
        (_DatasetKind.Iterable, Again(3), True, False, [None] * 2, [[1, 2], [3]]),
        (_DatasetKind.Iterable, Again(4), True, False, [None] * 2, [[1, 2], [3, 4]]),
        (_DatasetKind.Iterable, Again(3), True, True, [None] * 2, [[1, 2]]),
        (_DatasetKind.Iterable, Again(2), False, False, None, [1, 2]),
    ],
)
def test_fetchers(
    kind: int, dataset: Any, batched: bool, drop_last: bool, index: Any, expected: list[Any]
) -> None:
    fetcher = _DatasetKind.create_fetcher(kind, dataset, batched, lambda x: x, drop_last)
    assert [fetcher.fetch(index) for _ in expected] == expected
    if kind == _DatasetKind.Iterable:
        assert fetcher.dataset_iter is dataset and fetcher.dataset is dataset
        assert fetcher.ended is (batched and expected[-1] == [3])
        with pytest.raises(StopIteration):
            fetcher.fetch(index)
        assert fetcher.ended is batched


class Own(DataLoader):
    """Sets what it has by itself, and makes iterators of its own."""

    def __init__(self, dataset, sampler):
        self.dataset, self.sampler, self.collate_fn = dataset, sampler, lambda x: -x
        self._dataset_kind = _DatasetKind.Map
        self.batch_sampler = self.generator = None
        self.num_workers, self.timeout = 0, 0
        self.drop_last = self.pin_memory = self.persistent_workers = False
        self._IterableDataset_len_called = None
        self._DataLoader__initialized = True

    def _get_iterator(self):
        return OwnIter(self)


class OwnIter(_BaseDataLoaderIter):
    def __init__(self, loader):
        super().__init__(loader)
        self.fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )

    def _next_data(self):
        return self.fetcher.fetch(self._next_index())


class Counted:
    """A sampler that counts how often it is started."""

    starts = 0

    def __iter__(self):
        self.starts += 1
        return iter([2, 0])

    def __len__(self):
        return 2


def test_a_loader_with_iterators_of_its_own() -> None:
    sampler = Counted()
    loader = Own([10, 20, 30], sampler)
    loader.check_worker_number_rationality()
    epoch: Any = iter(loader)
    assert list(epoch) == [-30, -10] and sampler.starts == 1 and len(loader) == 2
    assert (epoch._num_workers, epoch._timeout, epoch._persistent_workers) == (0, 0, False)
    assert (epoch._world_size, epoch._rank, epoch._shared_seed) == (1, 0, None)
    epoch._reset(loader)
    assert list(epoch) == [-30, -10] and sampler.starts == 2
    with pytest.raises(ValueError, match="dataset attribute should not be set"):
        loader.dataset = []
    assert list(DataLoader([10, 20, 30], None, sampler=sampler)) == [30, 10]
    assert sampler.starts == 3
    pipe: Any = DataLoader(IterableWrapper([1]), None)
    assert isinstance(iter(pipe)._shared_seed, int)


def test_workers_take_their_part_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe: Any = IterableWrapper(range(12)).sharding_filter()
    info = worker.WorkerInfo(id=1, num_workers=2, seed=0, dataset=pipe)
    monkeypatch.setattr(worker, "_worker_info", info)
    assert get_worker_info() is info
    called: list[int] = []
    _sharding_worker_init_fn(called.append, 3, 2, 1)  # of rank 2 of 3
    assert list(pipe) == [5, 11] and called == [1]


def test_pipes_in_pipes() -> None:
    stream: Any = datapipe._IterDataPipeSerializationWrapper(IterableWrapper([1, 2]))
    assert list(stream) == [1, 2] and len(stream) == 2
    items: Any = datapipe._MapDataPipeSerializationWrapper(SequenceWrapper([1, 2]))
    assert items[1] == 2 and len(items) == 2


def test_messages_of_workers() -> None:
    assert worker._IterableDatasetStopIteration(3).worker_id == 3
    assert worker._ResumeIteration().seed is None and worker._ResumeIteration(4).seed == 4
    watchdog = worker.ManagerWatchdog()
    assert watchdog.is_alive()
    watchdog.manager_pid = -1
    assert not watchdog.is_alive()
    assert _utils.HAS_NUMPY in (True, False) and _utils.MP_STATUS_CHECK_INTERVAL == 5
    assert _utils.python_exit_status is False
    assert torch.set_vital("Dataloader", "enabled", "True") is False


def start(end: str) -> Any:
    """A process that ends in some way when it is told to."""
    return subprocess.Popen(["sh", "-c", f"read line; {end}"], stdin=subprocess.PIPE)


def end_and_wait(process: Any) -> None:
    process.stdin.close()
    threading.Event().wait(60)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("exit 3", "exited unexpectedly with exit code 3"),
        ("kill -9 $$", "is killed by signal: Killed"),
        ("exit 0", None),
    ],
)
def test_workers_that_die_are_told_of(end: str, message: str | None) -> None:
    process = start(end)
    signal_handling._set_worker_pids(1, (process.pid,))
    signal_handling._error_if_any_worker_fails()
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    if message is None:
        signal_handling._error_if_any_worker_fails()
    else:
        with pytest.raises(
            RuntimeError, match=rf"DataLoader worker \(pid {process.pid}\) {message}"
        ):
            signal_handling._error_if_any_worker_fails()
        signal_handling._error_if_any_worker_fails()  # once
    assert (process.wait() == 0) is (message is None)  # which is still to be known
    signal_handling._error_if_any_worker_fails()
    signal_handling._remove_worker_pids(1)


def test_a_worker_that_dies_interrupts_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGCHLD)
    monkeypatch.setattr(signal_handling, "_is_handled", False)
    ends: list[int] = []
    try:
        signal.signal(signal.SIGCHLD, lambda number, frame: ends.append(number))
        signal_handling._set_SIGCHLD_handler()
        signal_handling._set_SIGCHLD_handler()
        for code in (3, 0):
            process = start(f"exit {code}")
            signal_handling._set_worker_pids(1, (process.pid,))
            if code:
                with pytest.raises(RuntimeError, match="exit code 3"):
                    end_and_wait(process)
            process.stdin.close()
            process.wait()
            signal_handling._remove_worker_pids(1)
        assert ends == [signal.SIGCHLD]
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_thread_pins_what_workers_send(monkeypatch: pytest.MonkeyPatch) -> None:
    class Batch:
        def __init__(self, problem: Any = None):
            self.problem = problem

        def pin_memory(self):
            if self.problem:
                raise self.problem
            return "pinned"

    monkeypatch.setattr(torch.accelerator, "set_device_index", lambda index: None)
    asked: queue.Queue[Any] = queue.Queue()
    made: queue.Queue[Any] = queue.Queue()
    done = threading.Event()
    failed = ExceptionWrapper((ValueError, ValueError("of a worker"), None))
    for item in enumerate([(Batch(), 1, None), failed, Batch(ValueError("of pinning"))]):
        asked.put(item)
    thread = threading.Thread(
        target=pin_memory._pin_memory_loop, args=(asked, made, 0, done, "cuda")
    )
    thread.start()
    assert made.get(timeout=60) == (0, ["pinned", 1, None])
    assert made.get(timeout=60) == (1, failed)
    number, broken = made.get(timeout=60)
    assert number == 2
    with pytest.raises(ValueError, match="of pinning"):
        broken.reraise()
    done.set()
    asked.put((None, None))
    thread.join()
