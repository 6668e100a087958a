"""Programs that two processes run together, with either framework."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def results_of(program: str, framework: str, path: Path) -> list[dict[str, Any]]:
    """What each rank prints last, as JSON; its arguments are the framework, the path, the rank."""
    file = path.parent / "program.py"
    file.write_text(program)
    processes = [
        subprocess.Popen(
            [sys.executable, str(file), framework, str(path), str(rank)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    texts = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    return [json.loads(text.splitlines()[-1]) for text in texts]


def near(mine: Any, other: Any, tolerance: float) -> bool:
    if isinstance(mine, dict) and isinstance(other, dict):
        return mine.keys() == other.keys() and all(near(mine[k], other[k], tolerance) for k in mine)
    if isinstance(mine, list) and isinstance(other, list):
        pairs = zip(mine, other, strict=False)
        return len(mine) == len(other) and all(near(a, b, tolerance) for a, b in pairs)
    if isinstance(mine, int | float) and isinstance(other, int | float):
        return abs(mine - other) <= tolerance * (1 + abs(other))
    return mine == other


def check_agreement(
    ours: list[dict[str, Any]], theirs: list[dict[str, Any]], tolerance: Callable[[str], float]
) -> None:
    """Fails with the results that differ; the tolerance depends on their names."""
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.keys() == other.keys()
        different = {
            name: (mine[name], other[name])
            for name in mine
            if not near(mine[name], other[name], tolerance(name))
        }
        assert not different
