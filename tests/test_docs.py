"""Runs the ```python blocks of the documents, top to bottom, one process for each file.

Also follows their links to files, and compares the code that the guide quotes with the sources.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GUIDE = ROOT / "CONTRIBUTING.md"
PROGRAMS = [path for path in FILES if path != GUIDE and PYTHON.search(path.read_text())]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_blocks_run(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    code = ""
    for block in PYTHON.finditer(text):  # each at its own line, which errors then name
        code += "\n" * (text.count("\n", 0, block.start(1)) - code.count("\n")) + block[1]
    program = tmp_path / f"{path.stem}.py"
    program.write_text(code)
    # More workers than cores are worth a warning, but not a mistake of the document.
    warnings = ("-W", "error", "-W", "ignore:This DataLoader will create")
    done = subprocess.run(
        [sys.executable, *warnings, str(program)],
        cwd=tmp_path,  # blocks may save files
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(path: Path) -> None:
    targets = re.findall(
        r"\]\((?!https?:|#)([^)#]+)", re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
    )
    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.parametrize(("language", "folder"), [("cpp", "core/ops"), ("python", "tests/samples")])
def test_code_in_the_guide_stands_in_the_sources_word_for_word(language: str, folder: str) -> None:
    quotes = re.findall(f"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    sources = [path.read_text() for path in (ROOT / folder).iterdir() if path.is_file()]
    assert quotes
    for quote in quotes:
        assert any(quote in source for source in sources), quote


def test_readme_and_quickstart_have_programs_to_run() -> None:
    assert {path.name for path in PROGRAMS} >= {"README.md", "quickstart.md"}


def test_index_of_notes_names_every_note_and_its_home() -> None:
    title = re.compile(r"^(?:(?://|#) )?Note \[(.+)\]$", re.MULTILINE)
    sources = {
        str(path.relative_to(ROOT)): path.read_text()
        for folder in ("core", "bindings", "rushlight")
        for path in (ROOT / folder).rglob("*.*")
        if path.suffix in {".h", ".cpp", ".cu", ".cuh", ".py"}
    }
    homes = {note: path for path, text in sources.items() for note in title.findall(text)}
    cited = {note for text in sources.values() for note in re.findall(r"Note \[(.+?)\]", text)}
    assert cited == set(homes)
    index = (ROOT / "ARCHITECTURE.md").read_text().partition("## Index of Notes")[2]
    assert dict(re.findall(r"^\| (.+) \| `(.+)` \|$", index, re.MULTILINE)) == homes
