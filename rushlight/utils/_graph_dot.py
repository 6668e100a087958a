"""How a Graph of rushlight.utils.graph is written: Graphviz's language, and plain text.

Owns colors, escapes and columns. Fills are light and letters dark, lines are gray and the ground
is transparent: the picture can be read on a white page and on a black one.
"""

from __future__ import annotations

import html
import itertools
import re
from collections import Counter

from rushlight.utils.graph import Arrow, Box, Graph

# Each kind: form, fill, line, color of the title.
_LOOKS = {
    "input": ("box", "filled", "#d9f2e3", "#2f9e5f", "#14532d"),
    "parameter": ("box", "filled", "#dbe7fb", "#4278d0", "#1e3a70"),
    "op": ("box", "rounded,filled", "#f4f5f7", "#9aa4b2", "#1f2733"),
    "output": ("box", "rounded,filled", "#fde5cd", "#e0812a", "#7c3a06"),
    "note": ("box", "dashed,filled", "#ffffff", "#9aa4b2", "#59636e"),
}
_HEAD = """\
digraph tape {{
  rankdir={direction}; bgcolor="transparent"; nodesep=0.3; ranksep=0.35;
  node [fontname="Helvetica,Arial,sans-serif", fontsize=12, margin="0.15,0.08", penwidth=1.2];
  edge [fontname="Helvetica,Arial,sans-serif", fontsize=9, color="#8a94a3", fontcolor="#8a94a3",
        arrowsize=0.7, penwidth=1.1];
"""


# A leaf that more ops than this read is drawn beside each of them: a weight that every step of a
# loop reads would draw its arrows across the whole picture.
_FAR_READERS = 2


def to_dot(graph: Graph) -> str:
    """Returns a graph in the language of Graphviz."""
    readers = Counter(arrow.source for arrow in graph.arrows)
    split = {
        place
        for place, box in enumerate(graph.boxes)
        if box.kind in ("input", "parameter") and readers[place] > _FAR_READERS
    }
    lines = [_HEAD.format(direction=graph.direction)]
    for place, box in enumerate(graph.boxes):
        if place not in split:
            lines.append(f"  n{place} {_attributes(box)};")
    uses: Counter[int] = Counter()
    for arrow in graph.arrows:
        source, box = f"n{arrow.source}", graph.boxes[arrow.source]
        if arrow.source in split:
            uses[arrow.source] += 1
            use = f"use {uses[arrow.source]} of {readers[arrow.source]}"
            source += f"_{uses[arrow.source]}"
            lines.append(f"  {source} {_attributes(box, use)};")
        lines.append(f"  {source} -> n{arrow.target}{_style(arrow, box)};")
    return "\n".join([*lines, "}\n"])


def _attributes(box: Box, remark: str = "") -> str:
    shape, style, fill, line, ink = _LOOKS[box.kind]
    rows = [f'<FONT COLOR="{ink}"><B>{_markup(_title(box))}</B></FONT>']
    for text, color in (("\n".join(box.results), "#4a5360"), (remark or box.site, "#6a7480")):
        rows += [
            f'<FONT POINT-SIZE="9.5" COLOR="{color}">{_markup(row)}</FONT>'
            for row in text.split("\n")
            if row
        ]
    return (
        f'[shape={shape}, style="{style}", fillcolor="{fill}", color="{line}", '
        f"tooltip={_quoted(box.tooltip or box.title)}, label=<{'<BR/>'.join(rows)}>]"
    )


def _title(box: Box) -> str:
    """ "h = relu", or "_, h = unbind" where only some results have names."""
    if not box.names:
        return box.title
    return f"{', '.join(name or '_' for name in box.names)} = {box.title}"


def _style(arrow: Arrow, source: Box) -> str:
    parts = []
    if source.kind == "op":
        parts.append("weight=5")  # the way through the ops is straight, leaves stand beside it
    if arrow.label:
        parts.append(f"label={_quoted(f' {arrow.label} ')}")
    if arrow.dashed:
        parts.append("style=dashed")
    return f" [{', '.join(parts)}]" if parts else ""


def _printable(text: str) -> str:
    """Without what XML and terminals cannot take: control characters, and halves of pairs."""
    return re.sub(
        "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "\N{REPLACEMENT CHARACTER}", text
    )


def _markup(text: str) -> str:
    return html.escape(_printable(text)) or " "


def _quoted(text: str) -> str:
    return '"' + _printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def to_text(graph: Graph) -> str:
    """Returns a graph as lines of text, each thing after what it was computed from."""
    names = _names(graph)
    reads: dict[int, list[str]] = {place: [] for place in range(len(graph.boxes))}
    for arrow in graph.arrows:
        source = graph.boxes[arrow.source]
        name = source.names[arrow.slot] if source.names else ""
        known = f"({names[arrow.source]})" if source.names else names[arrow.source]
        numbered = f"{known}[{arrow.slot}]" if arrow.label else names[arrow.source]
        reads[arrow.target].append(_printable(name) or numbered)
    rows = []
    for place, box in enumerate(graph.boxes):
        sources = ", ".join(reads[place])
        if box.kind == "op":
            what = f"{names[place]} = {box.title}({sources})"
        elif box.kind == "output":
            what = f"{names[place]} = {sources}"
        else:
            what = f"{names[place]}: {box.title if box.kind == 'note' else box.kind}"
        rows.append((what, ", ".join(box.results), _printable(box.site)))
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return "\n".join(
        f"{what:<{widths[0]}}  {result:<{widths[1]}}  {site}".rstrip()
        for what, result, site in rows
    )


def _names(graph: Graph) -> list[str]:
    """What each box is called in the text; ops without a name are numbered."""
    numbers = itertools.count(1)
    names = []
    for box in graph.boxes:
        if box.kind == "note":
            names.append("...")
        elif box.kind == "op" and not box.names:
            names.append(f"%{next(numbers)}")
        else:
            names.append(_printable(_title(box).removesuffix(f" = {box.title}")))
    return names
