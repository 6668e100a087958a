"""Fails when a C++ file includes a layer above its own.

The layers are base < device < tensor < autograd < ops < bindings, a test in core/tests/<layer>
counts as that layer, and Python is seen by bindings/ alone. Includes are read, not compiled.
"""

import re
import sys
from pathlib import Path, PurePath

LAYERS = ["base", "device", "tensor", "autograd", "ops", "bindings"]
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
ROOTS = ("core/", "bindings/", "rushlight/include/")
PYTHON_HEADERS = ("Python.h", "nanobind/", "numpy/")


def layer_of(path: PurePath) -> str | None:
    """Return the layer a file belongs to, or None for what every test may include."""
    return next((folder for folder in path.parts[:-1] if folder in LAYERS), None)


def violations(path: Path) -> list[str]:
    own = layer_of(path)
    text = path.read_text(encoding="utf-8")
    found = []
    for match in INCLUDE.finditer(text):
        quote, header = match.groups()
        theirs = layer_of(PurePath(header)) if quote == '"' else None
        where = f"{path}:{text.count(chr(10), 0, match.start(2)) + 1}: {header}"
        if header.startswith(PYTHON_HEADERS):
            if own != "bindings":
                found.append(f"{where} is Python's; only bindings/ may include it.")
        elif quote == '"' and not header.startswith(ROOTS):
            found.append(f"{where} must be spelled from the root of the repository.")
        elif own and theirs and LAYERS.index(theirs) > LAYERS.index(own):
            found.append(f"{where} is in the layer {theirs}, which lies above {own}.")
    return found


def main() -> int:
    files = [path for folder in ("core", "bindings") for path in sorted(Path(folder).rglob("*.*"))]
    found = [line for path in files for line in violations(path)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
