"""Fails when code compiled for a newer processor could run on an older one.

Two things let that happen. The linker keeps one copy of an inline function or template, so a copy
compiled with AVX may serve every caller, unless its name holds the instruction set's namespace. And
a static initializer runs at import, before any instruction set is chosen.

Usage: check_isa.py BUILD_FOLDER
"""

import re
import subprocess
import sys
from pathlib import Path

OBJECT_FOLDER = re.compile(r"rushlight_\w+_isa([1-9]\d*)\.dir")


def demangled(symbol: str) -> str:
    return subprocess.run(["c++filt", symbol], capture_output=True, text=True).stdout.strip()


def violations(object_file: Path, isa: str) -> list[str]:
    command = ["nm", "--defined-only", str(object_file)]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = []
    for line in table.splitlines():
        kind, symbol = line.split()[-2:]
        if kind == "W" and f"isa_v{isa}" not in symbol:
            found.append(f"{object_file}: {demangled(symbol)} is shared code outside isa_v{isa}.")
        elif symbol.startswith("_GLOBAL__sub_I_"):
            found.append(f"{object_file}: a static initializer would run at import.")
    return found


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    found = []
    for folder in sorted((Path(sys.argv[1]) / "CMakeFiles").iterdir()):
        if match := OBJECT_FOLDER.fullmatch(folder.name):
            for object_file in sorted(folder.rglob("*.o")):
                found += violations(object_file, match[1])
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
