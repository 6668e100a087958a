"""Data pipes: what each step makes of a stream, one pass at a time, and in loaders with workers."""

from __future__ import annotations

import copy
import io
import pickle
from operator import add, itemgetter
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight.utils.data import DataLoader, IterDataPipe, functional_datapipe
from rushlight.utils.data.datapipes.iter import (
    FileLister,
    IterableWrapper,
    Sampler,
    Shuffler,
)
from rushlight.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from rushlight.utils.data.datapipes.map import SequenceWrapper
from rushlight.utils.data.datapipes.utils import common
from rushlight.utils.data.graph import traverse_dps
from rushlight.utils.data.graph_settings import apply_sharding, get_all_graph_pipes
from tests.grouping import each


def six() -> Any:
    return IterableWrapper(range(6))


def times_ten(x: Any) -> Any:
    return x * 10


def is_odd(x: int) -> bool:
    return x % 2 == 1


PAIRS = IterableWrapper([(1, 2), (3, 4)])


STEPS: dict[str, tuple[Any, list[Any]]] = {
    "map": (six().map(times_ten), [0, 10, 20, 30, 40, 50]),
    "map a column": (PAIRS.map(times_ten, input_col=0), [(10, 2), (30, 4)]),
    "map to another": (PAIRS.map(times_ten, input_col=1, output_col=0), [(20, 2), (40, 4)]),
    "map and append": (
        PAIRS.map(add, input_col=[0, 1], output_col=-1),
        [(1, 2, 3), (3, 4, 7)],
    ),
    "map columns": (PAIRS.map(add, input_col=[0, 1]), [(3,), (7,)]),
    "map keys": (
        IterableWrapper([{"a": 1}]).map(times_ten, input_col="a", output_col="b"),
        [{"a": 1, "b": 10}],
    ),
    "filter": (six().filter(is_odd), [1, 3, 5]),
    "filter a column": (PAIRS.filter(is_odd, input_col=1), []),
    "batch": (six().batch(4), [[0, 1, 2, 3], [4, 5]]),
    "whole batches": (six().batch(4, drop_last=True), [[0, 1, 2, 3]]),
    "unbatch": (six().batch(2).batch(2).unbatch(), [[0, 1], [2, 3], [4, 5]]),
    "unbatch all": (six().batch(2).batch(2).unbatch(-1), [0, 1, 2, 3, 4, 5]),
    "group": (six().groupby(is_odd, group_size=2), [[0, 2], [1, 3], [4], [5]]),
    "group by key": (
        six().groupby(is_odd, keep_key=True),
        [(False, [0, 2, 4]), (True, [1, 3, 5])],
    ),
    "group, full": (
        six().groupby(is_odd, buffer_size=3, group_size=3, guaranteed_group_size=1),
        [[0, 2], [1, 3], [4], [5]],
    ),
    "concat": (six().concat(IterableWrapper("ab")), [0, 1, 2, 3, 4, 5, "a", "b"]),
    "zip": (six().zip(IterableWrapper("ab")), [(0, "a"), (1, "b")]),
    "mux": (six().mux(IterableWrapper("ab")), [0, "a", 1, "b"]),
    "sample": (Sampler(IterableWrapper(range(3))), [0, 1, 2]),
    "shuffle": (six().shuffle().set_seed(3), [1, 5, 2, 3, 4, 0]),
    "shuffle a little": (six().shuffle(buffer_size=1), [0, 1, 2, 3, 4, 5]),
    "shuffle not": (six().shuffle().set_shuffle(False), [0, 1, 2, 3, 4, 5]),
    "shard": (apply_sharding(six().sharding_filter(), 4, 1), [1, 5]),
}


@each("name", STEPS, ids=str)
def test_a_step_gives(name: str) -> None:
    pipe, expected = STEPS[name]
    unread = pickle.dumps(pipe)
    assert list(pipe) == expected
    for again in (pickle.loads(unread), copy.deepcopy(pickle.loads(unread))):
        assert list(again) == expected


@each("name", STEPS, ids=str)
def test_a_step_has_the_right_length_or_none(name: str) -> None:
    pipe, expected = STEPS[name]
    if any(name.startswith(step) for step in ("filter", "unbatch", "group")):
        with pytest.raises(TypeError, match="has no len|doesn't have valid length"):
            len(pipe)
    else:
        assert len(pipe) == len(expected)


def test_forks_read_one_source_at_their_own_speeds() -> None:
    first, second = six().fork(2)
    assert list(first) == list(second) == list(first) == [0, 1, 2, 3, 4, 5]
    assert list(zip(first, second, strict=True)) == [(i, i) for i in range(6)]
    even, odd = six().demux(2, is_odd)
    assert list(even) == [0, 2, 4] and list(odd) == [1, 3, 5]
    items = iter(even)
    next(items)
    list(iter(even))
    with pytest.raises(RuntimeError, match="invalidated"):
        next(items)
    with pytest.raises(BufferError, match="ForkerIterDataPipe buffer overflow,buffer size 2"):
        list(six().fork(2, buffer_size=2)[0])
    lists = IterableWrapper([[1]]).fork(2, copy="deep")
    next(iter(lists[0])).append(2)
    assert list(lists[1]) == [[1]]


def test_a_pipe_has_one_iterator_at_a_time() -> None:
    class Counted(IterDataPipe):
        passes = 0

        def reset(self) -> None:
            self.passes += 1

        def __iter__(self) -> Any:
            return iter("abc")

    pipe = Counted()
    items = iter(pipe)
    assert next(items) == "a"
    assert list(pipe) == ["a", "b", "c"] and pipe.passes == 2
    with pytest.raises(RuntimeError, match="another iterator has been created .*Counted"):
        next(items)


def test_data_by_key() -> None:
    pipe = SequenceWrapper([1, 2, 3])
    assert (pipe.map(times_ten)[1], pipe.batch(2)[1], len(pipe.batch(2))) == (20, [3], 2)
    other = SequenceWrapper([8, 9])
    assert (pipe.concat(other)[4], pipe.zip(other)[1], len(pipe.zip(other))) == (9, (2, 9), 2)
    assert sorted(pipe.shuffle()) == [1, 2, 3]
    assert [b.tolist() for b in DataLoader(pipe, batch_size=2)] == [[1, 2], [3]]
    for call in (lambda: pipe.batch(2)[2], lambda: pipe.concat(other)[5]):
        with pytest.raises(IndexError):
            call()


def test_loaders_share_a_pipe_among_workers() -> None:
    pipe = IterableWrapper(range(8)).shuffle().sharding_filter()
    for workers in (0, 2):
        loader = DataLoader(
            pipe, batch_size=2, num_workers=workers, persistent_workers=workers > 0, shuffle=True
        )
        orders = [[i for batch in loader for i in batch.tolist()] for _ in range(4)]
        assert all(sorted(order) == list(range(8)) for order in orders)
        assert len(set(map(tuple, orders))) > 1
    loader = DataLoader(pipe, batch_size=2, num_workers=2, shuffle=False)
    assert [b.tolist() for b in loader] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        loader = DataLoader(six(), shuffle=True)
    assert isinstance(loader.dataset, Shuffler)


def test_the_steps_of_a_pipe_can_be_found() -> None:
    source = six()
    pipe = source.map(times_ten).zip(source)
    ((top, below),) = traverse_dps(pipe).values()
    assert top is pipe and [p for p, _ in below.values()] == list(pipe.datapipes)
    assert {id(p) for p in get_all_graph_pipes(traverse_dps(pipe))} == {
        *map(id, (pipe, source, pipe.datapipes[0]))
    }
    assert repr(pipe) == "ZipperIterDataPipe" and "batch" in dir(pipe)


def test_files(tmp_path: Any) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.txt", "a.txt", "deep/c.txt", "d.png"):
        (tmp_path / name).write_text(name)
    found = FileLister(str(tmp_path), "*.txt", recursive=True).open_files().read_from_stream()
    assert list(found.map(itemgetter(1))) == ["a.txt", "b.txt", "deep/c.txt"]
    assert len(list(FileLister([str(tmp_path)]))) == 3
    parts = FileLister(str(tmp_path), "d*").open_files("b").read_from_stream(3)
    assert list(parts.map(itemgetter(1))) == [b"d.p", b"ng"]


def test_streams_are_closed_after_their_parts() -> None:
    archive = common.StreamWrapper(io.BytesIO(b"ab\ncd"), name="archive")
    parts = [common.StreamWrapper(io.BytesIO(b"x"), archive) for _ in range(2)]
    archive.autoclose()
    common.StreamWrapper.close_streams({"a": [parts[0]]})
    assert parts[0].closed and parts[0].file_obj.closed and not archive.closed
    assert next(archive) == b"ab\n" and list(archive) == [b"cd"] and "read" in dir(archive)
    assert repr(archive).startswith("StreamWrapper<archive,<_io.BytesIO")
    with parts[1] as part:
        assert part.read() == b"x"
    assert archive.closed and archive.file_obj.closed
    archive.close()
    file = io.BytesIO()
    alone = common.StreamWrapper(file)
    del alone
    assert file.closed
    again = pickle.loads(pickle.dumps(common.StreamWrapper(io.BytesIO(b"y"))))
    assert again.read() == b"y"
    with pytest.raises(RuntimeError, match="should be StreamWrapper"):
        common.StreamWrapper(file, parent_stream=io.BytesIO())  # pyright: ignore


def test_what_pipes_of_ones_own_get_is_checked(tmp_path: Any) -> None:
    assert common.match_masks("a.txt", "") and common.match_masks("a.txt", ["*.png", "a*"])
    assert not common.match_masks("a.txt", ["*.png"])
    (tmp_path / "a.txt").write_text("text")
    ((path, stream),) = common.get_file_binaries_from_pathnames(str(tmp_path / "a.txt"), "t")
    common.validate_pathname_binary_tuple((path, stream))  # pyright: ignore
    with stream:
        assert stream.read() == "text"
    assert list(common.get_file_pathnames_from_root(path, "*.txt", abspath=True)) == [path]
    with pytest.raises(FileNotFoundError):
        list(common.get_file_pathnames_from_root(str(tmp_path / "none"), ""))
    with pytest.raises(TypeError, match="Expected string type for pathname"):
        list(common.get_file_binaries_from_pathnames([3], "b"))  # pyright: ignore
    for wrong in (path, (path,), (3, stream), (path, 3)):
        with pytest.raises(TypeError, match="expected a tuple of a path and an open file"):
            common.validate_pathname_binary_tuple(wrong)  # pyright: ignore
    common._check_unpickable_fn(times_ten)
    with pytest.warns(UserWarning, match="Lambda function is not supported by pickle"):
        common._check_unpickable_fn(lambda: 0)
    with pytest.raises(TypeError, match="callable function is expected"):
        common._check_unpickable_fn(3)  # pyright: ignore


def test_wrong_use() -> None:
    with pytest.raises(Exception, match="map as it is already taken"):
        functional_datapipe("map")(type("Another", (IterDataPipe,), {}))
    with pytest.raises(TypeError, match="can only decorate"):
        functional_datapipe("another")(int)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        six().nothing()
    with pytest.raises(ValueError, match="Boolean output"):
        list(six().filter(times_ten))
    with pytest.raises(IndexError, match="exceeds the depth"):
        list(six().unbatch())
    with pytest.raises(ValueError, match="between 0 and 1. 2 is returned"):
        list(six().demux(2, lambda x: 2)[0])
    with pytest.raises(ValueError, match="num_instances"):
        six().fork(0)
    with (
        torch.utils.data.guaranteed_datapipes_determinism(),
        pytest.raises(TypeError, match="non-deterministic"),
    ):
        torch.utils.data.non_deterministic(Shuffler)(six())


def test_groups_divide_the_parts_of_each_other() -> None:
    groups = SHARDING_PRIORITIES

    def divided(*filters: int | None) -> Any:
        pipe: Any = IterableWrapper(range(90))
        for group in filters:
            pipe = pipe.sharding_filter(sharding_group_filter=group)
            pipe.apply_sharding(3, 1, 300)
            pipe.apply_sharding(2, 1, groups.DISTRIBUTED)
            pipe.apply_sharding(5, 3, groups.MULTIPROCESSING)
        return pipe

    for pipe in divided(None), divided(groups.DISTRIBUTED, groups.MULTIPROCESSING, 300):
        assert list(pipe) == [17, 47, 77] and len(pipe) == 3
    with pytest.raises(RuntimeError, match="together with other groups"):
        divided(None).apply_sharding(2, 0)
    with pytest.raises(RuntimeError, match="Sharding twice"):
        apply_sharding(divided(None, None), 2, 0, groups.DISTRIBUTED)


def test_pipes_warn_of_buffers_without_end_and_list_files(tmp_path: Path) -> None:
    pipe = IterableWrapper(range(3))
    for fork in (lambda: pipe.fork(2, -1), lambda: pipe.demux(2, bool, buffer_size=-1)):
        with pytest.warns(UserWarning, match="Unlimited buffer"):
            fork()
    with pytest.raises(AssertionError, match="larger than 0"):
        pipe.shuffle(buffer_size=0)
    names = [str(tmp_path / name) for name in "ab"]
    for name in names:
        Path(name).touch()
    assert list(FileLister([str(tmp_path), names[1]])) == [*names, names[1]]


@pytest.mark.parametrize("columns", [None, 0, [0, 1, 2]])
def test_a_function_must_take_the_columns(columns: Any) -> None:
    for step in IterableWrapper([(1, 2, 3)]).map, IterableWrapper([(1, 2, 3)]).filter:
        with pytest.raises(ValueError, match="cannot be called with"):
            step(lambda a, b: True, input_col=columns)


def test_map_pipes_are_joined_with_map_pipes_alone() -> None:
    for step in SequenceWrapper([1]).concat, SequenceWrapper([1]).zip:
        with pytest.raises(TypeError, match="Expected all inputs to be `MapDataPipe`"):
            step([2])
