"""Runs what bench/ times, without timing it: each case once, and the table for one of them."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch

BENCH = Path(__file__).parents[1] / "bench"

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(BENCH)
    cases = importlib.import_module("cases")


ON_CPU = [case for case in cases.CASES if case.suite not in ("gpu", "sweep")]
SWEPT = [case for case in cases.CASES if case.suite == "sweep"]
FIRST_SETTINGS = {case.name.partition(";")[0]: case for case in reversed(SWEPT)}


@pytest.mark.parametrize("case", ON_CPU, ids=lambda case: case.name)
def test_case_runs_again_and_again(case) -> None:
    call = case.make(torch)
    for _ in range(2):
        call()
    cases.distributed.leave()


def test_every_call_of_the_sweep_runs_in_some_setting() -> None:
    failed = []
    for name, case in FIRST_SETTINGS.items():
        try:
            case.make(torch)()
        except Exception as error:
            failed.append(f"{name}: {error}")
    assert not failed


def test_headlines_are_cases() -> None:
    names = {case.name for case in cases.CASES}
    assert names >= set(cases.MEMORY_CASES)
    assert names | {"import"} | {cases.MEMORY + name for name in names} >= cases.HEADLINES


def run_bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH / "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_table_has_a_row_for_each_case_asked_for() -> None:
    done = run_bench("ops", "--quick", "--filter", "a + 1.5")
    assert (done.returncode, done.stderr) == (0, "")
    about, head, row = done.stdout.splitlines()
    assert f"rushlight {torch.__version__}" in about
    assert head.split() == ["case", "ours", "PyTorch", "ratio", "goal", "mark"]
    assert row.startswith("a + 1.5, 8 floats ")
    assert " 0.30 " in row


@pytest.mark.not_sanitized("memory of the sanitizer counts")
def test_memory_of_a_case_is_that_of_a_fresh_process() -> None:
    done = run_bench("memory", "--quick", "--filter", "MLP")
    assert (done.returncode, done.stderr) == (0, "")
    row = re.match(r"peak memory: 784-512-512-10 MLP.* (\d+) MB ", done.stdout.splitlines()[-1])
    assert row
    assert 30 < int(row[1]) < 300


def test_filter_that_no_case_has_is_refused() -> None:
    done = run_bench("ops", "--filter", "softminus")
    assert done.returncode == 2
    assert "no case has 'softminus' in its name" in done.stderr


def test_unknown_suite_is_refused() -> None:
    done = run_bench("speed")
    assert done.returncode == 2
    assert (
        "unknown suite speed; there are ops, models, networks, data, distributed, startup, "
        "memory, gpu" in done.stderr
    )
