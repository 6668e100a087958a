"""bench/gpu_check.py, which checks a real GPU, does its work here on the shim."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cuda.conftest import ROOT


@pytest.fixture
def gpu_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("gpu_check", ROOT / "bench" / "gpu_check.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "gpu_check", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "KEPT", tmp_path / "kept")
    return module


def test_a_stage_that_fails_or_hangs_leaves_the_others_their_turn(
    gpu_check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []

    def good(check: Any, log: Any) -> int:
        ran.append("good")
        return check.run(log, sys.executable, "-c", "print('well')")

    def broken(check: Any, log: Any) -> int:
        ran.append("broken")
        raise ValueError("not today")

    def slow(check: Any, log: Any) -> int:
        return check.run(log, sys.executable, "-c", "import time; time.sleep(60)", limit=1)

    monkeypatch.setattr(gpu_check, "STAGES", {"slow": slow, "broken": broken, "good": good})
    out = tmp_path / "out"
    assert gpu_check.main(["--out", str(out)]) == 1
    results = json.loads((out / "results.json").read_text())
    assert {name: r["status"] for name, r in results.items()} == {
        "slow": "stopped",
        "broken": "failed",
        "good": "passed",
    }
    logs = (out / "logs.txt").read_text()
    assert "well" in logs and "not today" in logs and "stopped after 1 s" in logs
    # What has passed is not done again unless it is named.
    assert gpu_check.main(["--out", str(out)]) == 1
    assert ran == ["broken", "good", "broken"]
    assert gpu_check.main(["good", "--minutes", "0"]) == 1
    assert ran == ["broken", "good", "broken"]


def test_failures_are_read_from_the_report(gpu_check: Any, tmp_path: Path) -> None:
    test = tmp_path / "tests" / "test_wrong.py"
    test.parent.mkdir()
    test.write_text(
        "import pytest\n@pytest.mark.parametrize('n', [1])\ndef test_it(n): assert n == 2\n"
    )
    check = gpu_check.Check(1, "")
    (tmp_path / "kept").mkdir()
    report = tmp_path / "report.xml"
    with open(tmp_path / "log", "w") as log:
        assert gpu_check.pytest(check, log, report, f"--rootdir={tmp_path}", str(test)) == 1
    ((name, said),) = gpu_check.failures_of(report).items()
    assert name.endswith("tests/test_wrong.py::test_it[1]") and "assert 1 == 2" in said


@pytest.mark.parametrize("piece", ["memory", "streams"])
def test_pieces_of_work_run(run_on_shim: Any, piece: str) -> None:
    said = run_on_shim(
        """
        import runpy, sys
        sys.path.insert(0, sys.argv[1])
        sys.argv = ["gpu_stages.py", "first", "--only", sys.argv[2]]
        try:
            runpy.run_path(f"{sys.path[0]}/gpu_stages.py", run_name="__main__")
        except SystemExit as ended:
            assert ended.code == 0
        """,
        str(ROOT / "bench"),
        piece,
    )
    assert said == f"{piece}...\n"
