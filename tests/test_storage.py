"""Storages, shared memory, and tensors that change what they look at."""

from __future__ import annotations

import copy
import gc
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch


def in_child(work: Callable[[], None]) -> None:
    """Runs work in a forked process and waits for it."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("numel", [0, 1, 100, 100_000])
def test_shared_memory_is_seen_both_ways(numel: int) -> None:
    x = torch.arange(float(numel)).share_memory_()
    assert x.is_shared() and x.tolist() == list(range(numel))
    if not numel:
        return

    def work() -> None:
        x[0] = 41.0
        x[0] += 1

    in_child(work)
    assert x[0] == 42


def test_the_parent_is_seen_in_the_child() -> None:
    x, reading = torch.zeros(1).share_memory_(), os.pipe()

    def work() -> None:
        os.read(reading[0], 1)
        assert x.item() == 7

    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    x[0] = 7.0
    os.write(reading[1], b"!")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for end in reading:
        os.close(end)


def test_views_move_with_the_storage() -> None:
    x = torch.arange(6.0).view(2, 3)
    row, parameter = x[1], torch.nn.Parameter(x)
    assert not row.is_shared()
    assert parameter.share_memory_() is parameter
    assert row.is_shared() and x.is_shared()
    x[1, 0] = 9
    assert row.tolist() == [9, 4, 5] and parameter[1, 0] == 9


def test_numpy_memory_is_copied_when_shared() -> None:
    array = np.arange(3.0)
    x = torch.from_numpy(array).share_memory_()
    x[0] = 5
    assert array[0] == 0


def test_memory_in_use_elsewhere_does_not_move() -> None:
    x = torch.zeros(4)
    array = x.numpy()
    for move in (x.share_memory_, lambda: x.resize_(10_000)):
        with pytest.raises(RuntimeError, match="an array or another library uses its memory"):
            move()
    x.data = torch.ones(2)
    gc.collect()
    assert array.tolist() == [0, 0, 0, 0]
    y = torch.zeros(4)
    del array
    array = y.numpy()
    del array
    gc.collect()
    assert y.share_memory_().is_shared()


def test_shared_memory_opens_by_its_descriptor() -> None:
    x = torch.arange(3, dtype=torch.int32).share_memory_()
    file = torch._C._storage_shared_file(x)
    y = torch._C._open_shared_bytes(file, 12).view(torch.int32)
    y[1] = 7
    assert x.tolist() == [0, 7, 2] and y.is_shared()
    with pytest.raises(RuntimeError, match="were expected"):
        torch._C._open_shared_bytes(file, 2**40)
    with pytest.raises(RuntimeError, match="cannot be opened"):
        torch._C._open_shared_bytes(-1, 4)
    with pytest.raises(RuntimeError, match="not shared"):
        torch._C._storage_shared_file(torch.ones(1))


def test_many_shared_tensors_give_their_memory_back() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        torch.zeros(10).share_memory_()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_meta_has_nothing_to_share() -> None:
    with pytest.raises(NotImplementedError, match="cannot be shared"):
        torch.empty(2, device="meta").share_memory_()


def test_from_file_reads_and_writes(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(4.0).tobytes())
    x = torch.from_file(str(path), size=4, dtype=torch.float64)
    x[0] = 9
    assert np.frombuffer(path.read_bytes())[0] == 0
    y = torch.from_file(path, shared=True, size=6, dtype=torch.float64)
    y[5] = 7
    assert np.frombuffer(path.read_bytes()).tolist() == [0, 1, 2, 3, 0, 7]
    with pytest.raises(RuntimeError, match="are needed"):
        torch.from_file(path, size=100)
    with pytest.raises(RuntimeError, match="cannot be opened"):
        torch.from_file(tmp_path / "none", size=1)
    with pytest.raises(RuntimeError, match="not a regular file"):
        torch.from_file("/dev/null", size=1)


def test_storage_shows_the_memory_of_the_tensor() -> None:
    x = torch.arange(6.0).view(2, 3)
    storage = x[1].storage()
    assert isinstance(storage, torch.FloatStorage) and not isinstance(storage, torch.LongStorage)
    assert torch.is_storage(storage) and isinstance(storage, torch.TypedStorage)
    assert x.storage_type() is torch.FloatStorage
    assert (storage.size(), len(storage), storage.nbytes(), storage.element_size()) == (6, 6, 24, 4)
    assert storage.data_ptr() == x.data_ptr() == x.untyped_storage().data_ptr()
    storage[0] = 5
    storage[1:3] = 6
    assert x.tolist() == [[5, 6, 6], [3, 4, 5]] and storage[-1] == 5
    assert list(storage) == storage.tolist() == [5, 6, 6, 3, 4, 5]
    with pytest.raises(IndexError):
        storage[6]


def test_storages_are_made_of_sizes_and_numbers() -> None:
    assert torch.LongStorage(3).size() == 3
    assert torch.DoubleStorage([0.1, 2]).tolist() == [0.1, 2.0]
    assert torch.TypedStorage([1, 2]).dtype is torch.float32
    assert torch.UntypedStorage([1, 255]).tolist() == [1, 255]
    assert torch.UntypedStorage(5).nbytes() == 5
    assert torch.FloatTensor(torch.FloatStorage([1, 2])).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="dtypes must be the same"):
        torch.FloatTensor(torch.DoubleStorage([1]))


def test_storages_copy_fill_and_convert() -> None:
    a, b = torch.FloatStorage([1, 2]), torch.FloatStorage(2).fill_(7)
    assert b.copy_(a).tolist() == [1, 2]
    for other in (a.clone(), copy.deepcopy(a), copy.copy(a)):
        assert other.tolist() == [1, 2] and other.data_ptr() != a.data_ptr()
    assert a.long().tolist() == [1, 2] and isinstance(a.long(), torch.LongStorage)
    assert a.float() is a and a.cpu() is a and a.type() == "torch.FloatStorage"
    assert (
        str(a)
        == " 1.0\n 2.0\n[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 2]"
    )


def test_resize_of_a_storage_keeps_tensors_safe() -> None:
    x = torch.arange(1000.0)
    storage = x.untyped_storage()
    storage.resize_(8000)
    assert storage.nbytes() == 8000 and x.sum() == 499500
    storage.resize_(0)
    assert storage.nbytes() == 0
    x.add_(1)
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.view(10, 100)
    storage.resize_(4000)
    assert x[999] == 1000
    with pytest.raises(RuntimeError, match="must not be negative"):
        storage.resize_(-1)
    with pytest.raises(RuntimeError, match="not resizable"):
        torch.zeros(2).share_memory_().untyped_storage().resize_(100)


def test_set_looks_at_other_memory() -> None:
    x, y = torch.zeros(3), torch.arange(6.0)
    assert x.set_(y[2:]) is x and x.tolist() == [2, 3, 4, 5] and x.is_set_to(y[2:])
    assert x.set_(y.storage()).tolist() == y.tolist()
    assert x.set_(y.untyped_storage(), 1, (2, 2)).tolist() == [[1, 2], [3, 4]]
    assert x.set_(y, 0, (3,), (2,)).tolist() == [0, 2, 4]
    assert x.set_().shape == (0,)
    with pytest.raises(RuntimeError, match="dtypes must be the same"):
        x.set_(torch.arange(3))
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(2, requires_grad=True).set_(y)
    with pytest.raises(RuntimeError, match="must not be negative"):
        x.set_(y, -1, (2,))
    with pytest.raises(RuntimeError, match="negative dimension"):
        x.set_(y, 0, (2, -2))
    with pytest.raises(RuntimeError):
        x.set_(y, 0, (2, 2), (-1, 1))
    with pytest.raises(RuntimeError):
        x.set_(y, 0, (2**40, 2**40), (2**40, 1))


def test_a_sparse_tensor_has_no_storage() -> None:
    x, sparse = torch.zeros(2, 3), torch.ones(2, 3).to_sparse()
    for call in (
        sparse.untyped_storage, sparse.share_memory_, sparse.is_shared, sparse.set_,
        lambda: sparse.set_(x), lambda: x.set_(sparse),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match="layout sparse_coo"):
            call()
    assert x.zero_().tolist() == [[0] * 3] * 2


def test_the_memory_of_a_tensor_inside_vmap_is_refused() -> None:
    def take(x: torch.Tensor) -> torch.Tensor:
        with pytest.raises(RuntimeError, match="vmap"):
            x.untyped_storage()
        with pytest.raises(BufferError, match="vmap"):
            memoryview(x)
        return x

    torch.func.vmap(take)(torch.ones(3))


def test_old_resize_keeps_the_number_of_elements() -> None:
    x = torch.arange(6.0, requires_grad=True)
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        x.resize(2, 3).sum().backward()
    assert x.grad.tolist() == [1] * 6
    with (
        pytest.warns(UserWarning, match="deprecated"),
        pytest.raises(RuntimeError, match="requested resize to 4"),
    ):
        x.resize(4)


def test_python_functions_see_each_element() -> None:
    x = torch.arange(4.0).view(2, 2)
    assert x.t().apply_(lambda v: v * 2) is not None and x.tolist() == [[0, 2], [4, 6]]
    assert x.map_(torch.ones(2), lambda a, b: a + b).tolist() == [[1, 3], [5, 7]]
    assert x.map2_(x, x, lambda a, b, c: a - b + c).tolist() == [[1, 3], [5, 7]]
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(1, requires_grad=True).apply_(abs)
    with pytest.raises(TypeError, match="only implemented on CPU"):
        torch.ones(1, device="meta").apply_(abs)
    with pytest.raises(ZeroDivisionError):
        torch.zeros(1).apply_(lambda v: 1 / v)


def test_dim_order_follows_the_strides() -> None:
    assert torch.empty(2, 3, 4, 5).dim_order() == (0, 1, 2, 3)
    assert torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last).dim_order() == (0, 2, 3, 1)
    with pytest.raises(RuntimeError, match="unique dim order"):
        torch.empty(2, 1).dim_order(ambiguity_check=True)


def test_slices_of_bytes_share_the_memory() -> None:
    storage = torch.arange(6, dtype=torch.uint8).untyped_storage()
    part = storage[2:5]
    assert isinstance(part, torch.UntypedStorage) and part.tolist() == [2, 3, 4]
    part.fill_(9)
    assert storage.tolist() == [0, 1, 9, 9, 9, 5] and part.data_ptr() == storage.data_ptr() + 2
    assert torch.asarray(storage[1:3], dtype=torch.uint8).tolist() == [1, 9]
    assert storage[4:4].tolist() == [] and storage[::1].nbytes() == 6
    del storage
    assert part.tolist() == [9, 9, 9]
    with pytest.raises(RuntimeError, match="only a step of 1 is supported"):
        part[::2]
    with pytest.raises(RuntimeError, match="slices of numbers share no memory"):
        torch.zeros(3).storage()[:2]


def test_workers_fill_storages_that_are_shared():
    values = torch.arange(3.0)
    storage = values.untyped_storage()._new_shared(values.numel() * values.element_size())
    assert storage.is_shared() and storage.nbytes() == 12
    torch.stack([values], out=values.new(storage).resize_(1, 3))
    assert torch.FloatStorage._new_shared(4).nbytes() == 16
    with pytest.raises(RuntimeError, match="memory of the CPU"):
        torch.UntypedStorage._new_shared(4, device="cuda")


def test_storages_of_the_same_memory_are_equal() -> None:
    x = torch.ones(4)
    storage = x.untyped_storage()
    assert storage == x[1:].untyped_storage() and hash(storage) == hash(x.untyped_storage())
    assert storage != x.clone().untyped_storage() and storage != 3
    assert storage._cdata == x[2:].untyped_storage()._cdata
    assert x.storage() == x.storage() and x.storage() != x.view(torch.int32).storage()


def test_storages_are_pickled_with_what_they_hold() -> None:
    x = torch.arange(3.0)
    storage = x.untyped_storage()
    storage.resize_(16)
    assert pickle.loads(pickle.dumps(storage)).tolist()[:12] == storage.tolist()[:12]
    copied = pickle.loads(pickle.dumps(torch.IntStorage([1, 2])))
    assert type(copied) is torch.IntStorage and copied.tolist() == [1, 2]


def test_storages_are_made_of_buffers_and_files(tmp_path: Path) -> None:
    data = bytearray(b"\0\1\0\2")
    storage = torch.ShortStorage.from_buffer(data, "big")
    data[1] = 9
    assert storage.tolist() == [1, 2] and storage.dtype is torch.ShortStorage.dtype is torch.int16
    assert torch.ShortStorage.from_buffer(data, "little", count=1, offset=2).tolist() == [512]
    complex_numbers = torch.ComplexFloatStorage.from_buffer(
        np.array([1 + 2j], dtype=">c8").tobytes(), "big"
    )
    assert complex_numbers.tolist() == [1 + 2j]
    assert torch.UntypedStorage.from_buffer(b"ab").tolist() == [97, 98]
    assert torch.ByteStorage.from_buffer(b"").tolist() == []
    assert torch.ByteStorage._from_buffer(b"ab").tolist() == [97, 98]
    with pytest.raises(ValueError, match="byte_order must be"):
        torch.IntStorage.from_buffer(data)
    path = tmp_path / "numbers"
    path.write_bytes(np.array([1, 2], dtype=np.float32).tobytes())
    torch.FloatStorage.from_file(str(path), True, 2)[0] = 5
    assert np.fromfile(path, np.float32).tolist() == [5.0, 2.0]


def test_storages_of_bytes_have_the_methods_of_those_of_numbers() -> None:
    storage = torch.UntypedStorage([1, 2])
    assert storage.type() == "torch.storage.UntypedStorage"
    assert storage.float().tolist() == [1.0, 2.0] and storage.float().dtype is torch.float32
    assert storage.new().nbytes() == 0


def test_the_size_of_a_storage_counts_its_memory() -> None:
    empty, ten = (torch.empty(n).storage().__sizeof__() for n in (0, 10))
    assert ten - empty == 40


def test_numpys_ints_are_sizes_of_storages() -> None:
    assert len(torch.Storage(np.int16(3))) == 3
    assert len(torch.UntypedStorage(np.int16(3))) == 3


def test_a_storage_on_meta_has_no_elements() -> None:
    for storage in (torch.TypedStorage(3, device="meta"), torch.UntypedStorage(3, device="meta")):
        assert storage.size() == 3
        with pytest.raises(NotImplementedError, match="no elements"):
            storage[0]


def test_functions_in_python_do_not_record() -> None:
    x, y = torch.ones(2), torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.map_(y, lambda a, b: a + b)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.map2_(x, y, lambda a, b, c: a + b + c)


def test_dim_order_of_several_formats_is_refused() -> None:
    formats = [torch.contiguous_format, torch.channels_last]
    assert torch.empty(2, 3, 4, 5).dim_order(ambiguity_check=formats) == (0, 1, 2, 3)
    with pytest.raises(RuntimeError, match="several"):
        torch.empty(2, 1, 4, 5).dim_order(ambiguity_check=formats)
    with pytest.raises(TypeError, match="memory formats"):
        torch.empty(2, 3).dim_order(ambiguity_check="channels_last")


def test_libraries_reach_the_bytes_of_a_typed_storage() -> None:
    x = torch.ones(3)
    typed = x.storage()
    assert typed._untyped_storage.nbytes() == 12
    assert typed._cdata == x.view(3, 1).storage()._cdata != torch.ones(3).storage()._cdata


def test_a_storage_knows_its_size_and_place() -> None:
    x = torch.ones(3)
    storage = x[1:].untyped_storage()
    assert hash(storage) == hash(x.untyped_storage()) and storage != x.storage() and storage != 1
    assert len(storage) == storage.size() == storage.nbytes() == 12 and storage.element_size() == 1
    assert storage.data_ptr() == x.data_ptr() and torch.UntypedStorage().data_ptr() == 0
    assert storage.device == x.device and not storage.is_cuda and storage.resizable()


def test_a_storage_without_init_has_nothing() -> None:
    storage = torch.UntypedStorage.__new__(torch.UntypedStorage)
    for ask in (len, repr, lambda s: s.device, lambda s: s.nbytes(), lambda s: s._values()):
        with pytest.raises(RuntimeError, match="__init__"):
            ask(storage)


def test_deepcopy_keeps_what_shares_memory_together() -> None:
    x = torch.arange(4.0)
    parts = [x, x.view(torch.int32), x.storage(), x.untyped_storage(), x[2:]]
    y, bits, numbers, memory, end = copy.deepcopy(parts)
    y[2] = 7
    assert bits[2] == torch.tensor(7.0).view(torch.int32) and end[0] == 7
    assert numbers.tolist() == y.tolist() and memory.data_ptr() == y.data_ptr()
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_memory_that_is_lent_cannot_be_resized() -> None:
    x = torch.arange(3)
    assert x.untyped_storage().resizable() and x.storage().resizable()
    array = x.numpy()
    assert not x.untyped_storage().resizable() and not x.storage().resizable()
    del array
    assert x.untyped_storage().resizable()
