"""Times cases in one framework: `worker.py MODULE THREADS`, started by run.py once for each.

Two frameworks in one process would share two thread pools on the same cores, so each has its own
process. It answers one JSON line for each JSON line that it reads:
  {"prepare": "a case's name"} builds and warms up that case; {"sample": true} times it once;
  {"memory": "a case's name"} runs it and tells the most memory that the process has had.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from cases import CASES, Call

WARM_UP = 0.05  # seconds, and at least two calls
SAMPLE = 0.01  # seconds that one sample lasts at least, so that the clock's grain is nothing


def time_calls(call: Call, count: int, finish: Call) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    finish()
    return time.perf_counter() - start


def calls_per_sample(call: Call, finish: Call) -> int:
    """Warms up and finds how many calls a sample needs."""
    call()
    count, spent = 1, 0.0
    while True:
        elapsed = time_calls(call, count, finish)
        spent += elapsed
        if elapsed >= SAMPLE and spent >= WARM_UP:
            return count
        if elapsed < SAMPLE:
            count *= 2


def peak_memory() -> int:
    """The most bytes of memory that this process has had at once."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


class Worker:
    def __init__(self, module: str, threads: int) -> None:
        self.torch = importlib.import_module(module)
        self.torch.set_num_threads(threads)
        self.cases = {case.name: case for case in CASES}
        self.call: Call = lambda: None
        self.finish: Call = lambda: None  # waits for what the calls queued
        self.count = 0

    def prepare(self, name: str) -> None:
        self.torch.manual_seed(0)
        case = self.cases[name]
        self.call = case.make(self.torch)
        self.finish = self.torch.cuda.synchronize if case.suite == "gpu" else lambda: None
        self.count = calls_per_sample(self.call, self.finish)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if "prepare" in request:
            self.prepare(request["prepare"])
            return {"count": self.count}
        if "memory" in request:
            self.prepare(request["memory"])
            return {"bytes": peak_memory()}
        self.call()  # takes the caches back from the other framework
        self.finish()
        return {"seconds": time_calls(self.call, self.count, self.finish) / self.count}


def main() -> None:
    module, threads = sys.argv[1:]
    try:
        worker = Worker(module, int(threads))
    except ImportError as error:
        sys.exit(f"bench: cannot import {module} in {sys.executable}: {error}")
    gc.disable()
    print(json.dumps({"version": worker.torch.__version__}), flush=True)
    for line in sys.stdin:
        try:
            answer = worker.answer(json.loads(line))
        except Exception as error:  # a case that one framework cannot run must not end the table
            answer = {"error": f"{type(error).__name__}: {error}".partition("\n")[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
