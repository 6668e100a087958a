"""The committed files that tools write are fresh: type stubs, pages and pictures of docs/."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "tool", ["make_stubs.py", "make_cpp_ops.py", "make_docs.py", "make_pictures.py"]
)
def test_generated_files_are_fresh(tool: str) -> None:
    path = Path(__file__).parent.parent / "tools" / tool
    done = subprocess.run(
        [sys.executable, str(path), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
