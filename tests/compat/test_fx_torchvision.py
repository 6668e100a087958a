"""The graphs of torchvision's models, whose own source runs with either library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchvision")


def test_graphs_of_torchvisions_models_are_the_same() -> None:
    script = Path(__file__).with_name("torchvision_graphs.py")
    ours, theirs = (
        json.loads(subprocess.run([sys.executable, script, lib], stdout=-1, check=True).stdout)
        for lib in ("rushlight", "torch")
    )
    assert ours.keys() == theirs.keys() and len(theirs) == 18
    for name, graph in theirs.items():
        assert len(ours[name]) == len(graph), name
        for a, b in zip(ours[name], graph, strict=True):
            assert a == b, name
