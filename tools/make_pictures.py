"""Draws the pictures of docs/autograd.md: what NAME.svg shows is the Graph NAME of the page's code.

python tools/make_pictures.py            run the code and write them (needs Graphviz)
python tools/make_pictures.py --check    fail when a committed one says something else
"""

from __future__ import annotations

import argparse
import html
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from rushlight.utils.graph import Graph  # noqa: E402

PAGE = ROOT / "docs" / "autograd.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def graphs_of(page: Path) -> dict[Path, Graph]:
    """Return what the pictures of a page show, by file, after running its code."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for block in BLOCK.finditer(text):
        lines_above = "\n" * text.count("\n", 0, block.start(1))  # so that nodes know their line
        exec(compile(lines_above + block[1], page.name, "exec"), names)
    graphs = {}
    for target in re.findall(r"\]\((pictures/[^)]+)\)", text):
        path = page.parent / target
        graph = names.get(path.stem)
        if not isinstance(graph, Graph):
            sys.exit(f"{page.name} shows {target}, but its code has no graph {path.stem}.")
        graphs[path] = graph
    return graphs


def words_of(graph: Graph) -> set[str]:
    boxes = graph.boxes
    return {word for box in boxes for word in (*box.results, box.site or box.title) if word}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    stale = []
    for path, graph in graphs_of(PAGE).items():
        if not check:
            path.parent.mkdir(exist_ok=True)
            graph.save(path)
        elif not words_of(graph) <= set(
            map(html.unescape, re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text()))
        ):
            stale.append(path)
    for path in stale:
        print(f"{path.relative_to(ROOT)} is stale. Run: python tools/make_pictures.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
