"""Formats the C++ sources with clang-format, or with --check only says which need it.

OP and POINTWISE blocks are laid out by hand, as tables are, so clang-format sees a comment in
the place of each; their lines are only held to the 100 columns that it enforces elsewhere.

Usage: format_cpp.py [--check] [FILE ...]
"""

import re
import subprocess
import sys
from pathlib import Path

COLUMNS = 100
FOLDERS = ("core", "bindings", "tests", "rushlight/include")
SUFFIXES = {".cpp", ".h", ".cu", ".cuh"}
BLOCK_START = re.compile(r"^(?:OP|POINTWISE)\(", re.MULTILINE)
# Parentheses count only outside strings and comments, hence those come first.
TOKEN = re.compile(r'R"\(.*?\)"|"(?:\\.|[^"\\])*"|//[^\n]*|[()]', re.DOTALL)


def end_of_block(text: str, opening: int) -> int:
    """Return the position after the parenthesis that closes the one at `opening`."""
    depth = 0
    for token in TOKEN.finditer(text, opening):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return len(text)


def formatted(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    blocks: list[str] = []
    masked, position = "", 0
    while start := BLOCK_START.search(text, position):
        masked += text[position : start.start()] + f"// block {len(blocks)}"
        position = end_of_block(text, start.end() - 1)
        blocks.append(text[start.start() : position])
    clang_format = Path(sys.executable).with_name("clang-format")
    result = subprocess.run(
        [clang_format, f"--assume-filename={path}"],
        input=masked + text[position:],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return re.sub(r"// block (\d+)$", lambda match: blocks[int(match[1])], result, flags=re.M)


def main() -> int:
    failed = False
    check_only = "--check" in sys.argv[1:]
    files = [Path(name) for name in sys.argv[1:] if name != "--check"]
    if not files:
        files = [path for folder in FOLDERS for path in sorted(Path(folder).rglob("*"))]
    for path in (path for path in files if path.suffix in SUFFIXES):
        result = formatted(path)
        for number, line in enumerate(result.splitlines(), 1):
            if len(line) > COLUMNS:
                failed = True
                print(f"{path}:{number}: {len(line)} columns; the limit is {COLUMNS}.")
        if result != path.read_text(encoding="utf-8"):
            if check_only:
                failed = True
                print(f"{path}: not formatted. Run: make format")
            else:
                path.write_text(result, encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
