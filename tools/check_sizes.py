"""Warns of source files over 500 lines and fails on those over 1,000."""

import sys
from pathlib import Path

WARN, FAIL = 500, 1000
SUFFIXES = {".cpp", ".h", ".cu", ".cuh", ".py"}
NOT_SOURCES = (".", "build", "dist")


def main() -> int:
    folders = [path for path in Path().iterdir() if not path.name.startswith(NOT_SOURCES)]
    files = [file for folder in folders for file in folder.rglob("*") if file.suffix in SUFFIXES]
    failed = False
    for file in sorted(files):
        lines = len(file.read_text(encoding="utf-8").splitlines())
        if lines > FAIL:
            failed = True
            print(f"{file}: {lines} lines; the limit is {FAIL}. Split the file by subject.")
        elif lines > WARN:
            print(f"{file}: warning: {lines} lines; {WARN} are preferred.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
