"""Checks Rushlight on a GPU in stages, each in processes of its own: `gpu_check.py [STAGE ...]`.

Without stages it runs those that have not passed yet, until --minutes are over; called again, it
goes on. A stage that fails or hangs does not keep the next ones from running. Results are written
after each stage: results.json says what came out, STAGE.log is all that it said. They are kept in
build/gpu_check, and copied to --out. Nothing is downloaded: what the interpreter has is used.

  build      the C++ module, if this interpreter cannot import it
  facts      the GPU, the driver, and which libraries were found where
  first      one small piece of work of each kind, each in a fresh process
  kernels    compiles the kernels for this GPU
  tests      tests/cuda, on the real device
  again      the tests that failed, one by one, each launch waited for
  sanitizer  the pieces of `first` under NVIDIA's compute-sanitizer
  training, graph, nccl   see gpu_stages.py
  bench      times against PyTorch's, where it is installed
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "gpu_check"
PIECES = [sys.executable, "bench/gpu_stages.py"]
SLOWEST_TEST = 240  # seconds; the tests on the shim take up to half of it
MOST_TESTS_AGAIN = 40


class Check:
    """What stages share: where they write, and when they must have ended."""

    def __init__(self, minutes: float, torch_python: str) -> None:
        self.end = time.monotonic() + 60 * minutes
        self.torch_python = torch_python
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(
                os.pathsep
            ),
            "PYTHONUNBUFFERED": "1",
            "RUSHLIGHT_CACHE": str(KEPT / "kernels"),
        }
        path = KEPT / "results.json"
        self.results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def left(self) -> float:
        return self.end - time.monotonic()

    def run(self, log: TextIO, *command: str | Path, limit: float = 600, **variables: str) -> int:
        """Runs a command with its output in the log; its exit status, 124 where time was up."""
        words = [str(word) for word in command]
        print("$", *words, file=log, flush=True)
        process = subprocess.Popen(
            words,
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=self.environment | variables,
            start_new_session=True,
        )
        try:
            return process.wait(max(1.0, min(limit, self.left())))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            print(f"\ngpu_check: stopped after {limit:.0f} s or for want of time", file=log)
            return 124

    def write(self, out: Path | None) -> None:
        (KEPT / "results.json").write_text(json.dumps(self.results, indent=1) + "\n")
        if out:
            shutil.copy(KEPT / "results.json", out)
            with open(out / "logs.txt", "w") as logs:
                for log in sorted(KEPT.glob("*.log")):
                    logs.write(f"==== {log.stem}\n{log.read_text(errors='replace')}\n")


def imports(check: Check) -> bool:
    command = [sys.executable, "-c", "import rushlight"]
    done = subprocess.run(command, cwd=ROOT, env=check.environment, capture_output=True)
    return done.returncode == 0


def build(check: Check, log: TextIO) -> int:
    """By the CMake, nanobind and oneDNN that this interpreter has, or else as `make` does it."""
    if imports(check):
        print("The module is there.", file=log)
        return 0
    if not importlib.util.find_spec("nanobind") or not shutil.which("cmake"):
        return check.run(log, "make", "build")
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    names = {distribution.name for distribution in importlib.metadata.distributions()}
    settings = [
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DRUSHLIGHT_ONEDNN={'ON' if 'onednn-devel-cpu-gomp' in names else 'OFF'}",
    ]
    folder, jobs = "build/gpu_check/cmake", str(os.cpu_count())
    return (
        check.run(log, "cmake", "-S", ".", "-B", folder, *generator, *settings)
        or check.run(log, "cmake", "--build", folder, "-j", jobs, "--target", "_C")
        or check.run(log, "cmake", "--install", folder, "--prefix", ".")
    )


def piece(name: str, limit: float) -> Callable[[Check, TextIO], int]:
    """A stage of gpu_stages.py, whose results it writes to a file."""

    def stage(check: Check, log: TextIO) -> int:
        found = KEPT / f"{name}.json"
        found.unlink(missing_ok=True)
        status = check.run(log, *PIECES, name, "--results", found, limit=limit)
        if found.exists():
            check.results[name]["found"] = json.loads(found.read_text())
        return status

    return stage


def kernels(check: Check, log: TextIO) -> int:
    return check.run(log, sys.executable, "-m", "rushlight.cuda.precompile", limit=300)


def failures_of(report: Path) -> dict[str, str]:
    """The failed tests of a report, and the first line of what each said."""
    failures = {}
    for case in ElementTree.parse(report).iter("testcase"):
        for kind in ("failure", "error"):
            problem = case.find(kind)
            if problem is not None:
                path = str(case.get("classname")).replace(".", "/") + ".py"
                failures[f"{path}::{case.get('name')}"] = str(problem.get("message"))[:300]
    return failures


def pytest(check: Check, log: TextIO, report: Path, *options: str, **variables: Any) -> int:
    report.unlink(missing_ok=True)
    # There is no such shim; what the tests keep goes to the folder where it would lie.
    return check.run(
        log, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}",
        *options, RUSHLIGHT_SHIM=str(KEPT / "none"), **variables,
    )  # fmt: skip


def tests(check: Check, log: TextIO) -> int:
    """In parallel; a worker whose GPU context a failed kernel has spoilt is replaced."""
    report = KEPT / "tests.xml"
    workers = str(max(1, min(12, (os.cpu_count() or 2) - 2)))
    options = ["-n", workers, "--max-worker-restart=200"] if has("xdist") else []
    if has("pytest_timeout"):
        options.append(f"--timeout={SLOWEST_TEST}")
    status = pytest(check, log, report, "tests/cuda", *options)
    if report.exists():
        check.results["tests"]["failures"] = failures_of(report)
    return status


def again(check: Check, log: TextIO) -> int:
    failed = list(check.results.get("tests", {}).get("failures", {}))
    still: dict[str, str] = {}
    check.results["again"]["failures"] = still
    for test in failed[:MOST_TESTS_AGAIN]:
        report = KEPT / "again.xml"
        status = pytest(
            check, log, report, test, CUDA_LAUNCH_BLOCKING="1", RUSHLIGHT_CUDA_CACHING="off"
        )
        if status:
            said = failures_of(report) if report.exists() else {}
            still[test] = next(iter(said.values()), f"exit status {status}")
    return int(bool(still))


def sanitizer(check: Check, log: TextIO) -> int:
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not Path(tool).exists():
        print("There is no compute-sanitizer.", file=log)
        return 0
    status = 0
    for kind in ("memcheck", "racecheck", "synccheck"):
        # One process: the tool slows its start, and children would need it, too.
        status |= check.run(
            log, tool, "--tool", kind, "--error-exitcode", "9", *PIECES, "first", "--here",
            limit=150, RUSHLIGHT_CUDA_CACHING="off",
        )  # fmt: skip
    return status


def bench(check: Check, log: TextIO) -> int:
    against = ["--torch-python", check.torch_python] if check.torch_python else []
    return check.run(log, sys.executable, "bench/run.py", "gpu", "--quick", *against, limit=400)


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


STAGES: dict[str, Callable[[Check, TextIO], int]] = {
    "build": build,
    "facts": piece("facts", 60),
    "first": piece("first", 200),
    "kernels": kernels,
    "tests": tests,
    "again": again,
    "sanitizer": sanitizer,
    "training": piece("training", 180),
    "graph": piece("graph", 60),
    "nccl": piece("nccl", 120),
    "bench": bench,
}
NEEDED = ("build", "facts")  # without which nothing else can work


def tail(log: Path, lines: int) -> str:
    last = log.read_text(errors="replace").splitlines()[-lines:]
    return "\n".join("    " + line for line in last)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="run these, also if they passed")
    parser.add_argument("--minutes", type=float, default=9, help="of this call; 9 unless told")
    parser.add_argument("--out", type=Path, metavar="DIR", help="copy results and logs there")
    parser.add_argument(
        "--torch-python",
        metavar="PATH",
        default=sys.executable if has("torch") else "",
        help="an interpreter that has PyTorch",
    )
    options = parser.parse_args(arguments)
    unknown = set(options.stages) - set(STAGES)
    if unknown:
        parser.error(f"unknown stage {', '.join(sorted(unknown))}; there are {', '.join(STAGES)}")
    for folder in (KEPT, *([options.out] if options.out else [])):
        folder.mkdir(parents=True, exist_ok=True)
    check = Check(options.minutes, options.torch_python)
    passed = {name for name, result in check.results.items() if result["status"] == "passed"}
    for name in options.stages or [name for name in STAGES if name not in passed]:
        if check.left() < 5:
            print(f"{name:10} not begun: time is up; call again", flush=True)
            continue
        start = time.monotonic()
        check.results[name] = {"status": "begun"}
        path = KEPT / f"{name}.log"
        with open(path, "w") as log:
            try:
                status = STAGES[name](check, log)
            except Exception as error:
                print(f"gpu_check: {error!r}", file=log)
                status = 1
        outcome = "passed" if status == 0 else "stopped" if status == 124 else "failed"
        check.results[name] |= {"status": outcome, "seconds": round(time.monotonic() - start, 1)}
        check.write(options.out)
        print(f"{name:10} {outcome} in {time.monotonic() - start:.1f} s", flush=True)
        print(tail(path, 4 if status == 0 else 30), flush=True)
        if status and name in NEEDED:
            break
    return int(any(result["status"] != "passed" for result in check.results.values()))


if __name__ == "__main__":
    sys.exit(main())
