"""What changes while it is read, and threads that live on, never end the interpreter."""

from __future__ import annotations

import contextlib
import gc
import linecache
import os
import random
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from grouping import each

import rushlight as torch
from rushlight import _C
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import tree_leaves

ERRORS = (RuntimeError, TypeError, ValueError, IndexError, KeyError, OverflowError)


class Changes:
    """A number that does something when it is asked for."""

    def __init__(self, does: Callable[[], Any], number: int = 1) -> None:
        self.does, self.number = does, number

    def __index__(self) -> int:
        self.does()
        return self.number


def emptied_while_read() -> list[Any]:
    items: list[Any] = [1, 2, 3]
    items[0] = Changes(items.clear)
    return items


def in_itself() -> list[Any]:
    items: list[Any] = [1, 2]
    items.append(items)
    return items


X = torch.ones(4, 3)
READERS: dict[str, Callable[[Any], Any]] = {
    "tensor": torch.tensor,
    "as_tensor": torch.as_tensor,
    "zeros": torch.zeros,
    "view": X.view,
    "new_tensor": X.new_tensor,
    "index": lambda items: X[items],
    "index with more": lambda items: X[items, 0],
    "write at index": lambda items: X.clone().__setitem__(items, 1.0),
    "write value": lambda items: X.clone().__setitem__(0, items),
    "permute": X.permute,
    "sum": X.sum,
    "stack": torch.stack,
}


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@each("name", sorted(READERS))
@each("items", [emptied_while_read, in_itself])
def test_a_list_that_changes_or_holds_itself_is_read_or_refused(
    name: str, items: Callable[[], list[Any]]
) -> None:
    if items is emptied_while_read:  # some read a list once, and then have all of it
        with contextlib.suppress(*ERRORS):
            READERS[name](items())
    else:
        with pytest.raises(ERRORS):
            READERS[name](items())


class Broken:
    """Counts as an int, until it is asked which."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __index__(self) -> int:
        raise self.error


class BrokenFloat:
    """Counts as a float, until it is asked which."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __float__(self) -> float:
        raise self.error


TAKES_INT: dict[str, Callable[[Any], Any]] = {
    "item of a list": lambda n: X.reshape((n, 4)),
    "the last of ints": lambda n: X.reshape(4, n),
    "int": lambda n: X.sum(n),
    "size": X.size,
    "index": lambda n: X[n],
    "index after another": lambda n: X[0, n],
    "operator": lambda n: X + n,
    "operand": lambda n: torch.add(X, n),
    "device": torch.device,
}
TAKES_FLOAT: dict[str, Callable[[Any], Any]] = {
    "operator": lambda x: X * x,
    "operand": lambda x: torch.mul(X, x),
    "fill": lambda x: torch.full((2,), x),
    "attribute": lambda x: torch.nn.functional.dropout(X, x),
    "write": lambda x: X.clone().__setitem__(0, x),
    "data": torch.tensor,
}


@each("error", [KeyboardInterrupt(), ValueError("no number"), OverflowError()])
@each("take", [*TAKES_INT.values(), *TAKES_FLOAT.values()])
def test_what_a_number_raises_when_asked_is_raised(
    take: Callable[[Any], Any], error: BaseException
) -> None:
    number = Broken(error) if take in TAKES_INT.values() else BrokenFloat(error)
    with pytest.raises(type(error)) as raised:
        take(number)
    assert raised.value is error


def test_by_a_type_error_an_object_says_that_it_is_no_number() -> None:
    with pytest.raises(TypeError, match="'dim' .* must be int or tuple of ints, not Broken"):
        X.sum(Broken(TypeError()))
    with pytest.raises(TypeError, match="unsupported operand type"):
        X + BrokenFloat(TypeError())


def test_an_index_may_change_the_tensor_that_it_is_for() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    assert torch.equal(x[Changes(x.t_, 2)], torch.tensor([2.0, 6.0, 10.0]))
    with pytest.raises(IndexError, match="out of bounds"):
        x[Changes(lambda: x.resize_(1), 2)]


def test_the_product_of_sizes_is_exact() -> None:
    assert torch.Size((2**62, 4)).numel() == 2**64
    assert torch.Size((2**70, 0)).numel() == 0
    assert torch.Size(()).numel() == 1


def test_what_takes_over_may_empty_the_list_of_arguments() -> None:
    items: list[torch.Tensor] = []

    class First(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            items.clear()
            gc.collect()
            return NotImplemented

    class Second(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

    items += [torch.ones(3).as_subclass(First), torch.ones(3).as_subclass(Second)]
    with pytest.raises(TypeError, match="no implementation found"):
        torch.cat(items)


def test_ops_that_trust_their_arguments_are_not_for_python() -> None:
    trusting = [row for row in _C._op_table() if row["home"] == "core"]
    names = {row["name"] for row in trusting}
    assert {"_nll_loss", "_cross_entropy", "_ctc_loss_backward", "_mode_places"} <= names
    assert not [row["name"] for row in trusting if hasattr(_C, row["name"])]


@each("other", [0, None, int, lambda: 1])
def test_results_are_of_classes_of_tensors_alone(other: Any) -> None:
    with pytest.raises(TypeError, match="must be a subclass of Tensor"):
        _C._set_tensor_class(other)


@each("device", [-(2**31), -1, 32, 100, 2**31 - 1])
def test_numbers_that_cannot_be_those_of_gpus_are_refused(device: int) -> None:
    for function in (
        _C._cuda_memory_info, _C._cuda_memory_stats, _C._cuda_leave_pool, _C._cuda_memory_blocks,
        _C._cuda_is_capturing, _C._cuda_reset_peak_memory_stats,
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            function(device)


def test_the_kernel_of_batch_norm_checks_what_sync_batch_norm_gives_it() -> None:
    with pytest.raises(RuntimeError, match="at least 2 dims"):
        _C._batch_norm(torch.ones(33), None, None, None, None, True, 0.1, 1e-5)
    with pytest.raises(RuntimeError, match="should contain 2 elements"):
        _C._batch_norm(torch.ones(3, 2), torch.ones(5), None, None, None, True, 0.1, 1e-5)
    with pytest.raises(RuntimeError, match="must be given in evaluation mode"):
        _C._batch_norm(torch.ones(3, 2), None, None, None, None, False, 0.1, 1e-5)


# Memory that is written behind our back


def nll(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.nll_loss(scores, target)


def cross_entropy(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(scores, target)


def ctc(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    lengths = torch.full((1,), 4), torch.full((1,), 4)
    return torch.nn.functional.ctc_loss(scores.log_softmax(1)[:, None], target[None], *lengths)


@each("loss", [nll, cross_entropy, ctc])
def test_classes_that_are_written_between_forward_and_backward(loss: Callable[..., Any]) -> None:
    scores = torch.zeros(4, 6, requires_grad=True)
    target = torch.tensor([1, 2, 3, 4])
    result = loss(scores, target)
    target.numpy()[...] = 10**9  # shares memory; no version tells
    result.backward()
    assert scores.grad is not None and scores.grad.isfinite().all()


class WritesNumbers(TorchDispatchMode):
    """Writes to all integers that an op has read or made, without a version that tells."""

    def __init__(self, value: int, after: int) -> None:
        super().__init__()
        self.value, self.after = value, after

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.after -= 1
        if self.after < 0:
            for x in tree_leaves((args, result)):
                if isinstance(x, torch.Tensor) and x.dtype == torch.int64:
                    x.numpy()[...] = self.value
        return result


@each("value", [-(10**9), 3, 10**9])
@each("loss", [nll, cross_entropy, ctc])
def test_classes_that_a_mode_writes(loss: Callable[..., Any], value: int) -> None:
    for after in range(20):
        scores = torch.zeros(4, 6, requires_grad=True)
        with contextlib.suppress(IndexError, RuntimeError), WritesNumbers(value, after):
            loss(scores, torch.tensor([1, 2, 3, 4])).backward()


@each("loss", [nll, cross_entropy])
def test_classes_that_are_replaced_between_forward_and_backward(loss: Callable[..., Any]) -> None:
    scores = torch.zeros(4000, 6, requires_grad=True)
    target = torch.zeros(4000, dtype=torch.int64)
    result = loss(scores, target)
    target.data = torch.zeros(1, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="replaced by a tensor of another shape or dtype"):
        result.backward()


def test_a_result_that_is_replaced_has_no_gradient() -> None:
    x = torch.ones(2, 70, 3, requires_grad=True)
    result = x.log_softmax(1)
    result.data = torch.zeros(2, 2)
    with pytest.raises(RuntimeError, match=r"had shape \(2, 70, 3\)"):
        result.backward(torch.ones(2, 2))


def in_threads(seconds: float, *works: Callable[[], Any]) -> None:
    """Runs each again and again beside the others, whatever errors they raise."""
    done = threading.Event()

    def repeat(work: Callable[[], Any]) -> None:
        while not done.is_set():
            with contextlib.suppress(*ERRORS):
                work()

    threads = [threading.Thread(target=repeat, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    done.wait(seconds)
    done.set()
    for thread in threads:
        thread.join()


def test_memory_may_be_shared_while_another_thread_reads_it() -> None:
    begun = threading.Event()
    seen: list[float] = []

    def read(x: torch.Tensor) -> None:
        begun.set()
        for _ in range(3):
            seen.append(x.lgamma().max().item() - x.lgamma().min().item())

    for _ in range(8):
        x = torch.full((500_000,), 3.0)
        begun.clear()
        thread = threading.Thread(target=read, args=(x,))
        thread.start()
        begun.wait()
        x.share_memory_()
        torch.zeros(500_000)  # in the memory that was left
        thread.join()
    assert set(seen) == {0}


def test_sharing_that_is_refused_leaves_no_file_open() -> None:
    x = torch.ones(3)
    array = x.numpy()
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        with pytest.raises(RuntimeError, match="an array or another library uses"):
            x.share_memory_()
    assert len(os.listdir("/proc/self/fd")) == len(before) and array[0] == 1


@pytest.mark.not_sanitized("the races are those of the program")
def test_another_thread_may_change_what_an_op_reads() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        one, other = torch.ones(300_000), torch.zeros(3)
        in_threads(
            0.3,
            lambda: torch.utils.swap_tensors(one, other),
            lambda: one * one,
            lambda: one[2:].sum(),
        )
        scores, target = torch.zeros(1000, 100), torch.zeros(1000, dtype=torch.int64)
        in_threads(
            0.3,
            lambda: target.fill_(random.choice([0, 5, 10**9, -(10**9)])),
            lambda: cross_entropy(scores, target),
            lambda: nll(scores, target),
        )
        counts = torch.ones(1000, dtype=torch.int64)
        in_threads(
            0.3,
            lambda: counts.fill_(random.choice([0, 1, 40])),
            lambda: scores.repeat_interleave(counts, 0),
        )
    finally:
        sys.setswitchinterval(before)


# Threads that live on when the interpreter ends

LIVES_ON = {
    "ops": "work = lambda: (x + x).exp().sum()",
    "backward": "work = lambda: (w * w).sum().backward()",
    "hooks": "w.register_hook(lambda g: g * 2)\nwork = lambda: (w * w).sum().backward()",
    "modules": "net = torch.nn.Sequential(torch.nn.Linear(9, 9), torch.nn.ReLU())\n"
    "work = lambda: net(torch.ones(2, 9)).sum().backward()",
    "functions": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
work = lambda: Double.apply(w).sum().backward()
""",
}


@pytest.mark.parametrize("kind", sorted(LIVES_ON))
def test_daemon_threads_do_no_harm_at_exit(kind: str) -> None:
    program = f"""
import threading, time
import rushlight as torch
x = torch.ones(100_000)
w = torch.ones(100_000, requires_grad=True)
{LIVES_ON[kind]}
def forever():
    while True:
        work()
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.1)
"""
    run_to_its_end(program)


def run_to_its_end(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0 and done.stderr == ""


def test_a_hook_that_is_due_after_the_end_of_python_does_no_harm() -> None:
    run_to_its_end("""
        import ctypes, threading, time
        import rushlight as torch

        libc = ctypes.CDLL(None)  # the process outlives Python by a second
        libc.__cxa_atexit(ctypes.cast(libc.usleep, ctypes.c_void_p), ctypes.c_void_p(10**6), None)
        w = torch.ones(10_000_000, requires_grad=True)
        w.register_hook(lambda grad: None)
        y = w.lgamma().sum()
        threading.Thread(target=y.backward, daemon=True).start()  # digamma takes long
        time.sleep(0.05)
    """)


def test_the_text_of_generated_code_goes_with_the_code() -> None:
    def lines() -> int:
        gc.collect()
        return sum(name.startswith("<eval_with_key>") for name in linecache.cache)

    before = lines()
    graphs = [torch.fx.symbolic_trace(torch.nn.Linear(2, 2)) for _ in range(5)]
    assert lines() == before + 5
    del graphs
    assert lines() == before


# A walk through indexing


class Walk:
    """Draws tensors and indices of every kind, some of which change the tensor while read."""

    def __init__(self, seed: int) -> None:
        self.source = random.Random(seed)
        self.pick = self.source.choice

    def tensor(self) -> torch.Tensor:
        shape = self.pick([(), (0,), (5,), (2, 3), (3, 0), (2, 1, 4), (1,) * 64])
        x = torch.arange(int(np.prod(shape))).reshape(shape)
        x = x.to(self.pick([torch.bool, torch.uint8, torch.int64, torch.float32, torch.complex64]))
        change = self.pick(["none", "none", "expand", "step", "meta", "turned", "freed"])
        if change == "expand" and x.dim() < 60:
            x = x.expand(3, *shape)
        elif change == "step":
            x = torch.stack([x, x], -1)[..., 0] if x.dim() < 60 else x
        elif change == "meta":
            x = torch.empty(self.pick([(2**62,), (0, 2**62), (3, 4)]), device="meta")
        elif change == "turned" and x.dim():
            x = x.transpose(0, -1)
        elif change == "freed":
            x.untyped_storage().resize_(0)
        return x

    def item(self, x: torch.Tensor) -> Any:
        number = self.pick([0, 1, -1, 2, 7, 2**31, 2**62, 2**63 - 1, -(2**63), 2**64])
        change = self.pick([x.t_, lambda: x.resize_(0), lambda: x.resize_(100), gc.get_count])
        return self.pick([
            number, slice(None, number), slice(number, None, self.pick([1, 2, -1, 0, 2**62])),
            None, ..., True, False, self.tensor(), [], [0, 1], [[0], [1]], [True, False], [0.5],
            in_itself(), emptied_while_read(), [Changes(change)], Changes(change, -1),
            Changes(change), slice(Changes(change), Changes(change, 5)), np.array([0, 1]), range(2),
            "a", object(),
        ])  # fmt: skip

    def step(self) -> None:
        x = self.tensor()
        count = self.pick([1, 1, 1, 2, 2, 3, 70])
        index = self.item(x) if count == 1 else tuple(self.item(x) for _ in range(count))
        if self.source.random() < 0.5:
            result = x[index]
            if result.device.type == "cpu" and result.numel() < 1000:
                result.tolist()
        else:
            x[index] = self.pick([1, 2.5, self.tensor(), [1, 2], emptied_while_read(), "a", None])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_a_walk_through_indexing(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(1500):
        with contextlib.suppress(*ERRORS):
            walk.step()
