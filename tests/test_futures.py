"""Futures: results, errors, callbacks, waiting for several."""

from __future__ import annotations

import pickle
import threading

import pytest

import rushlight as torch
from rushlight.futures import Future, collect_all, wait_all


def test_a_result_comes_from_another_thread() -> None:
    future = Future()
    assert not future.done()
    with pytest.raises(RuntimeError, match="no result yet"):
        future.value()
    threading.Timer(0.05, future.set_result, (torch.ones(2),)).start()
    assert future.wait().tolist() == [1, 1] and future.done()
    with pytest.raises(RuntimeError, match="already"):
        future.set_result(1)


def test_callbacks_run_in_order_and_pass_errors_on() -> None:
    future, seen = Future(), []
    future.add_done_callback(lambda done: seen.append(done.value()))
    after = future.then(lambda done: done.value() + 1)
    failed = after.then(lambda done: done.value() / 0)
    future.set_result(1)
    future.add_done_callback(lambda done: seen.append("late"))
    assert seen == [1, "late"] and after.value() == 2
    with pytest.raises(ZeroDivisionError):
        failed.wait()
    with pytest.raises(TypeError, match="not an exception"):
        Future().set_exception("no")


def test_what_callbacks_raise_is_logged_only(caplog: pytest.LogCaptureFixture) -> None:
    future, seen = Future(), []
    future.add_done_callback(lambda done: 1 / 0)
    future.add_done_callback(lambda done: seen.append(done.value()))
    future.set_result(1)
    future.add_done_callback(lambda: None)  # type: ignore[arg-type]
    assert seen == [1] and caplog.text.count("a callback of a future failed") == 2


def test_a_future_is_not_pickled_nor_none() -> None:
    with pytest.raises(RuntimeError, match="cannot be pickled"):
        pickle.dumps(Future())
    for wait in (wait_all, collect_all):
        with pytest.raises(RuntimeError, match="is None"):
            wait([Future(), None])  # type: ignore[list-item]


def test_several_are_waited_for() -> None:
    futures = [Future() for _ in range(3)]
    together = collect_all(futures)
    for i, future in reversed(list(enumerate(futures))):
        assert not together.done()
        future.set_result(i)
    assert together.wait() == futures and wait_all(futures) == [0, 1, 2]
    assert collect_all([]).wait() == []
    broken = Future()
    broken.set_exception(KeyError("x"))
    with pytest.raises(KeyError):
        wait_all([*futures, broken])
