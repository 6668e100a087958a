"""The committed type stubs are those of the op table."""

import subprocess
import sys
from pathlib import Path


def test_stubs_are_fresh() -> None:
    tool = Path(__file__).parent.parent / "tools" / "make_stubs.py"
    done = subprocess.run(
        [sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
