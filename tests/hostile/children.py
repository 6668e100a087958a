"""Runs hostile calls in forked children and tells those that crash, hang or are told unclearly.

    PYTHONPATH=tests python -m hostile.children 'nn.functional' 7 100

makes 100 calls of seed 7 with each function whose name matches. A finding begins with the
arguments that repeat it, `NAME 7 42 42` for call 42 alone, which is then shown with what it was
given. The name "walk" stands for the programs of walks.py, of which each number is one.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import re
import resource
import select
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from hostile.calls import FUNCTIONS, Call
from hostile.values import ERRORS
from hostile.walks import Walk

import rushlight as torch
from rushlight import _C

STEPS = 300  # of a walk
SECONDS = 20  # that a call may take
MEMORY = 1 << 30  # that a child may take beside what it has
Job = tuple[str, int, int]  # a function or "walk", seed and number


def perform(job: Job, tell: Callable[[str], object]) -> None:
    """Makes the calls of a job; raises what is not the error of a wrong argument."""
    name, seed, number = job
    torch.manual_seed(number)
    if name == "walk":
        walk = Walk(1_000_000 * seed + number)
        fuses = contextlib.ExitStack()
        if walk.chance(0.3):  # as under torch.compile
            _C._begin_fusion(1)
            fuses.callback(_C._end_fusion)
        with fuses:
            for _ in range(STEPS):
                attempt(lambda: walk.step(tell), tell)
    else:
        call = Call(name, seed, number)
        tell(str(call))
        attempt(call.run, tell)


def attempt(call: Callable[[], object], tell: Callable[[str], object]) -> None:
    try:
        call()
    except ERRORS as error:
        tell(f"    {type(error).__name__}: {error}")
        is_clear = str(error) or isinstance(error, (AssertionError, StopIteration))
        if not is_clear or re.search("internal error|bad_alloc|vector::|basic_string", str(error)):
            raise SystemError(repr(error)) from error


def in_child(jobs: Iterable[Job], pipe: int) -> None:
    """Performs jobs, and says before each that it begins."""
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # which has reserved all addresses
        pages = Path("/proc/self/statm").read_text().split()[0]
        limit = int(pages) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    for job in jobs:
        os.write(pipe, b"begins\n")
        try:
            perform(job, lambda text: None)
        except BaseException as error:
            text = f"raises {type(error).__name__}: {error}".replace("\n", " ")
            os.write(pipe, text[:300].encode("utf8", "replace") + b"\n")


def findings(jobs: list[Job]) -> Iterator[str]:
    """What went wrong in jobs; after a crash or a hang another child goes on with the next."""
    with tempfile.TemporaryDirectory() as folder:
        while jobs:
            begun, problems = _one_child(jobs, folder)
            for place, problem in problems:
                name, seed, number = jobs[place]
                yield f"{name} {seed} {number} {number}: {problem}"
            jobs = jobs[begun:]


def _one_child(jobs: list[Job], folder: str) -> tuple[int, list[tuple[int, str]]]:
    """How many jobs a child began, and the places and texts of its problems."""
    ours, theirs = os.pipe()
    with tempfile.TemporaryFile() as errors:
        pid = os.fork()
        if pid == 0:
            try:
                os.chdir(folder)
                null = os.open(os.devnull, os.O_RDWR)
                for to, file in enumerate((null, null, errors.fileno())):
                    os.dup2(file, to)
                faulthandler.disable()
                in_child(jobs, theirs)
            finally:
                os._exit(0)
        os.close(theirs)
        begun, problems, rest, hangs = 0, [], b"", False
        while True:
            if not select.select([ours], [], [], SECONDS)[0]:
                hangs = True
                os.kill(pid, signal.SIGKILL)
            got = os.read(ours, 1 << 16)
            if not got:
                break
            *lines, rest = (rest + got).split(b"\n")
            for line in lines:
                if line == b"begins":
                    begun += 1
                else:
                    problems.append((begun - 1, line.decode("utf8", "replace")))
        os.close(ours)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if hangs:
            problems.append((begun - 1, "hangs"))
        elif code:
            errors.seek(0)
            problems.append((begun - 1, f"ends the process ({code}){summary(errors.read())}"))
        return begun, problems


def summary(report: bytes) -> str:
    """The first lines of what a sanitizer says, if one did."""
    lines = re.findall(
        r".*(?:runtime error|ERROR: ).*|^ *#\d.* in .*", report.decode(), re.MULTILINE
    )
    return "".join(f"\n    {line.strip()[:200]}" for line in lines if "libasan" not in line)[:2000]


def main() -> None:
    pattern, seed, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[-1])
    warnings.simplefilter("ignore")
    if len(sys.argv) == 5 and sys.argv[3] == sys.argv[4]:
        faulthandler.enable()
        perform((pattern, seed, last), lambda text: print(text, flush=True))
        return
    first = int(sys.argv[3]) if len(sys.argv) == 5 else 0
    names = ["walk"] if pattern == "walk" else [n for n in FUNCTIONS if re.search(pattern, n)]
    gc.freeze()
    for finding in findings([(name, seed, i) for name in names for i in range(first, last)]):
        print(finding, flush=True)


if __name__ == "__main__":
    main()
