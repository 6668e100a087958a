"""Compares Rushlight with PyTorch: `run.py [suite] ...`, all but gpu and sweep by default.

The two run in turn, sample by sample, in processes of their own; the table shows the fastest
sample of each, which the rest of the machine disturbs least. The results also keep the medians.
The suites startup and memory ask fresh processes, the latter for the most memory that they had.
PyTorch is optional: it is taken from this interpreter, or from that of --torch-python.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import importlib.util
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cases import CASES, HEADLINES, MEMORY, MEMORY_CASES

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
README_TABLE = re.compile(r"(?<=<!-- benchmark: begin -->\n).*(?=<!-- benchmark: end -->)", re.S)
DEFAULT_SUITES = ("ops", "models", "networks", "data", "distributed", "startup", "memory")
SUITES = (*DEFAULT_SUITES, "gpu", "sweep")
IMPORT, IMPORT_GOAL = "import", 0.08
MEMORY_GOAL = 0.80
TRADEMARKS = r"\((R|TM)\)| Processor"  # in the names of processors
VECTORS = {"amx_tile": "with AMX", "avx512f": "with AVX-512", "avx2": "with AVX2"}
# Threads that wait for their next parallel region spin for a while; by then they have gone to
# sleep and do not take the cores from the other framework.
SETTLE = 0.01


class CaseError(Exception):
    """One framework cannot run a case; the table goes on without it."""


class Worker:
    """One framework in a process of its own."""

    def __init__(self, python: str, module: str, threads: int) -> None:
        self.python, self.module, self.threads = python, module, threads
        self.process = subprocess.Popen(
            [python, str(HERE / "worker.py"), module, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(threads)},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests, self.answers = self.process.stdin, self.process.stdout
        self.version = self.read()["version"]

    def read(self) -> dict[str, Any]:
        line = self.answers.readline()
        if not line:
            raise SystemExit(f"bench: the worker for {self.module} has ended")
        return json.loads(line)

    def ask(self, **request: Any) -> dict[str, Any]:
        print(json.dumps(request), file=self.requests, flush=True)
        answer = self.read()
        if "error" in answer:
            raise CaseError(f"{self.module}: {answer['error']}")
        return answer

    def sample(self) -> float:
        """Seconds per call of the case that was prepared."""
        time.sleep(SETTLE)
        return self.ask(sample=True)["seconds"]

    def sample_import(self) -> float:
        """Seconds that `import` takes in a fresh interpreter."""
        clock = "time.perf_counter()"
        program = f"import time; start = {clock}; import {self.module}; print({clock} - start)"
        # pip compiles what it installs; our sources are compiled by the first import, if it may.
        env = {key: v for key, v in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        return float(subprocess.check_output([self.python, "-c", program], text=True, env=env))

    def sample_memory(self, name: str) -> float:
        """The most bytes that a fresh process has had when it has run the case."""
        fresh = Worker(self.python, self.module, self.threads)
        try:
            return fresh.ask(memory=name)["bytes"]
        finally:
            fresh.close()

    def close(self) -> None:
        self.requests.close()
        self.process.wait()


def measure(workers: list[Worker], name: str, budget: float) -> dict[str, Any]:
    """Lets the workers take turns for `budget` seconds each, and three turns at least."""
    if name == IMPORT:
        samplers = [worker.sample_import for worker in workers]
    elif name.startswith(MEMORY):
        case = name.removeprefix(MEMORY)
        samplers = [functools.partial(worker.sample_memory, case) for worker in workers]
    else:
        for worker in workers:
            worker.ask(prepare=name)
        samplers = [worker.sample for worker in workers]

    samples: list[list[float]] = [[] for _ in workers]
    end = time.perf_counter() + budget * len(workers)
    while time.perf_counter() < end or len(samples[0]) < 3:
        for sampler, times in zip(samplers, samples, strict=True):
            times.append(sampler())

    row: dict[str, Any] = {}
    for column, times in zip(("ours", "pytorch"), samples, strict=False):
        row[column] = {"min": min(times), "median": statistics.median(times), "count": len(times)}
    if "pytorch" in row:
        row["ratio"] = row["ours"]["min"] / row["pytorch"]["min"]
    return row


COLUMNS = ("case", "ours", "PyTorch", "ratio", "goal", "mark")
WIDTHS = (48, 8, 8, 6, 5, 6)


def cells(row: dict[str, Any]) -> list[str]:
    goal = f"{row['goal']:.2f}"
    if "error" in row:
        return [row["case"], "-", "-", "-", goal, row["error"]]
    show = size if row["case"].startswith(MEMORY) else duration
    ours = show(row["ours"]["min"])
    if "pytorch" not in row:
        return [row["case"], ours, "-", "-", goal, "-"]
    mark = "ok" if row["ratio"] <= row["goal"] else "missed"
    pytorch = show(row["pytorch"]["min"])
    return [row["case"], ours, pytorch, f"{row['ratio']:.2f}", goal, mark]


def duration(seconds: float) -> str:
    value, unit = (1e6 * seconds, "µs") if seconds < 1e-3 else (1e3 * seconds, "ms")
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f} {unit}"


def size(memory: float) -> str:
    return f"{memory / 1e6:.0f} MB"


def print_row(texts: Sequence[str]) -> None:
    name, *others = (text.rjust(width) for text, width in zip(texts, WIDTHS, strict=True))
    print("  ".join([name.strip().ljust(WIDTHS[0]), *others]), flush=True)


def processor() -> str:
    """Its name and, on x86-64, the widest vectors that it has, or its tiles."""
    entries = [line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
    facts = {key.strip(): value.strip() for key, _, value in entries}
    flags = facts.get("flags", "").split()
    vectors = next((name for flag, name in VECTORS.items() if flag in flags), "")
    name = facts.get("model name", platform.machine())
    return f"{re.sub(TRADEMARKS, '', name)} {vectors}".strip()


def save(rows: list[dict[str, Any]], about: dict[str, Any]) -> Path:
    """Writes the results, which replace those of the same day and processor."""
    name = re.sub(r"[^a-z0-9]+", "-", about["processor"].lower()).strip("-")
    path = HERE / "results" / f"{about['date']}-{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    title = "; ".join(f"{key} {value}" for key, value in about.items())
    path.with_suffix(".md").write_text(f"{title}\n\n{table(rows)}")
    if {row["case"] for row in rows} >= HEADLINES:
        update_readme(rows, about, path.with_suffix(".md"))
    return path


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * 4 + "---|"]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def update_readme(rows: list[dict[str, Any]], about: dict[str, Any], page: Path) -> None:
    """Puts the headlines into the README, and all rows that miss their goals, but no errors."""
    measured = [row for row in rows if "error" not in row]
    shown = [row for row in measured if row["case"] in HEADLINES or cells(row)[-1] != "ok"]
    link = page.relative_to(README.parent)
    text = (
        f"{about['processor']}, {about['date']}. These are some of [all cases]({link}), among them "
        f"each that misses its goal:\n\n{table(shown)}"
    )
    README.write_text(README_TABLE.sub(lambda _: text, README.read_text()))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compares Rushlight's speed with PyTorch's.")
    parser.add_argument("suites", nargs="*", metavar="suite", help=", ".join(SUITES))
    parser.add_argument("--filter", default="", metavar="NAME", help="cases whose name has this")
    parser.add_argument("--quick", action="store_true", help="a tenth of the time for each case")
    parser.add_argument("--torch-python", metavar="PATH", help="an interpreter that has PyTorch")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="2 by default")
    parser.add_argument("--missed", action="store_true", help="show only what misses its goal")
    parser.add_argument("--save", action="store_true", help="keep the table in bench/results")
    options = parser.parse_args()
    unknown = set(options.suites) - set(SUITES)
    if unknown:
        parser.error(f"unknown suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    if not chosen(options.suites or DEFAULT_SUITES, options.filter):
        parser.error(f"no case has {options.filter!r} in its name; bench/cases lists them")
    if not options.torch_python and importlib.util.find_spec("torch"):
        options.torch_python = sys.executable
    return options


def chosen(suites: Sequence[str], part: str) -> list[tuple[str, float]]:
    """The name and the goal of every case in the suites whose name has the part."""
    cases = [(case.name, case.goal) for case in CASES if case.suite in suites]
    if "startup" in suites:
        cases.append((IMPORT, IMPORT_GOAL))
    if "memory" in suites:
        cases += [(MEMORY + name, MEMORY_GOAL) for name in MEMORY_CASES]
    return [(name, goal) for name, goal in cases if part in name]


def main() -> None:
    options = parse_options()
    suites, budget = options.suites or DEFAULT_SUITES, 0.1 if options.quick else 1.0
    workers = [Worker(sys.executable, "rushlight", options.threads)]
    if options.torch_python:
        workers.append(Worker(options.torch_python, "torch", options.threads))
    about = {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "threads": options.threads,
        "Python": platform.python_version(),
        **{worker.module: worker.version for worker in workers},
    }
    print("; ".join(f"{key} {value}" for key, value in about.items()))
    print_row(COLUMNS)
    rows = []
    for name, goal in chosen(suites, options.filter):
        try:
            row = measure(workers, name, budget)
        except CaseError as error:
            row = {"error": str(error)}
        rows.append({"case": name, "goal": goal, **row})
        row_cells = cells(rows[-1])
        if row_cells[-1] != "ok" or not options.missed:
            print_row(row_cells)
    for worker in workers:
        worker.close()
    if options.save:
        print(f"saved {save(rows, about)}")


if __name__ == "__main__":
    main()
