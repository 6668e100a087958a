"""Pictures of the tape: what stands in them, as text and for Graphviz."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils.graph import Box, Graph, draw

needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


def rows(graph: Graph) -> list[str]:
    """The lines of the text, without the column of call sites."""
    return [
        " ".join(line.replace("test_graph.py", "@").split("@")[0].split())
        for line in graph.text.splitlines()
    ]


def test_text_names_ops_in_the_order_of_the_program_with_sizes_and_lines() -> None:
    x = torch.ones(3, requires_grad=True)
    a = x.exp()
    y = (a.sin() * a.cos()).sum()
    graph = draw({"y": y}, {"x": x, "a": a})
    assert rows(graph) == [
        "x: input (3,) float32",
        "a = exp(x) (3,) float32",
        "%1 = sin(a) (3,) float32",
        "%2 = cos(a) (3,) float32",
        "%3 = mul(%1, %2) (3,) float32",
        "%4 = sum(%3) () float32",
        "y = %4 () float32",
    ]
    line = test_text_names_ops_in_the_order_of_the_program_with_sizes_and_lines.__code__
    assert f"test_graph.py:{line.co_firstlineno + 2}" in graph.text.splitlines()[1]
    assert str(graph) == graph.text
    assert repr(graph) == "<Graph of 7 boxes and 7 arrows>"


def test_names_come_from_modules_dicts_and_pairs() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    out = net(torch.ones(1, 2))
    for names in (net, dict(net.named_parameters()), net.named_parameters()):
        boxes = draw(out, names).boxes
        assert [box.title for box in boxes] == ["0.weight", "0.bias", "linear", "relu", "output"]
        assert [box.kind for box in boxes[:3]] == ["parameter", "parameter", "op"]
    assert [box.title for box in draw(out).boxes][:2] == ["parameter", "parameter"]


def test_results_of_an_op_with_several_are_numbered() -> None:
    x = torch.ones(4, 2, requires_grad=True)
    first, second = x.split(2)
    graph = draw([first, second], {"x": x, "second": second})
    assert rows(graph) == [
        "x: input (4, 2) float32",
        "_, second = split_with_sizes(x) 2 of (2, 2) float32",
        "output 0 = (_, second)[0] (2, 2) float32",
        "output 1 = second (2, 2) float32",
    ]


def test_history_rewritten_by_a_write_into_a_view_is_drawn() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    y[0] = 5.0
    assert [box.title for box in draw(y).boxes] == ["input", "mul", "copy_slices", "output"]


def test_leaf_and_freed_graphs_are_drawn() -> None:
    x = torch.ones(2, requires_grad=True)
    assert rows(draw(x)) == ["input: input (2,) float32", "output = input (2,) float32"]
    y = (x * x).sum()
    y.backward()
    assert [box.title for box in draw(y).boxes] == ["input", "mul", "sum", "output"]


def test_a_leaf_that_is_gone_is_drawn_without_its_name() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x + 1
    del x
    assert draw(y).boxes[0].title == "a tensor that is gone"


def test_long_tapes_are_cut_with_a_note() -> None:
    y = torch.ones(1, requires_grad=True)
    for _ in range(100_000):
        y = y + 1
    graph = draw(y, max_nodes=3)
    assert graph.text.splitlines()[0].startswith("...: 99998 older nodes are not shown")
    assert rows(graph)[1:] == [
        "%1 = add(...) (1,) float32",
        "%2 = add(%1) (1,) float32",
        "%3 = add(%2) (1,) float32",
        "output = %3 (1,) float32",
    ]
    assert "style=dashed" in graph.dot


def test_leaf_that_many_ops_read_is_drawn_beside_each() -> None:
    w = torch.ones(1, requires_grad=True)
    y = w.sin()
    for _ in range(3):
        y = y * w
    dot = draw(y, {"w": w}).dot
    assert "n0 [" not in dot
    assert all(f"use {i} of 4" in dot for i in range(1, 5))


@pytest.mark.parametrize(
    ("tensors", "error", "message"),
    [
        ([], ValueError, "got no tensors"),
        ([3], TypeError, "output 0 is int, not a tensor"),
        ({"y": torch.ones(1)}, ValueError, "y does not require gradients"),
    ],
)
def test_what_has_no_graph_is_refused(
    tensors: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"draw: {message}"):
        draw(tensors)


def test_options_are_checked() -> None:
    x = torch.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="max_nodes is 0"):
        draw(x, max_nodes=0)
    with pytest.raises(ValueError, match="direction is 'up'"):
        draw(x, direction="up")


HOSTILE = [
    '"];x->y[label="',
    "a<b>&amp;</TABLE>",
    "back\\slash\\",
    "line\nbreak",
    "\x00\x1b\ud800",
    "",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_cannot_break_out_of_the_language(name: str) -> None:
    x = torch.ones(1, requires_grad=True)
    graph = draw({name: x * 2}, {name: x})
    assert graph.dot.encode().count(b"->") - name.count("->") * 3 <= 2
    if shutil.which("dot"):
        drawn = ElementTree.fromstring(graph.svg)
        ids = [g.get("class") for g in drawn.iter("{http://www.w3.org/2000/svg}g")]
        assert ids.count("node") == 3
        assert ids.count("edge") == 2


@needs_dot
def test_pictures_are_written_in_the_form_of_their_ending(tmp_path: Path) -> None:
    x = torch.ones(1, requires_grad=True)
    graph = draw(x * 2, direction="LR")
    starts = {
        "svg": b"<?xml",
        "png": b"\x89PNG",
        "pdf": b"%PDF",
        "dot": b"digraph",
        "txt": b"input",
    }
    for ending, start in starts.items():
        graph.save(tmp_path / f"tape.{ending}")
        assert (tmp_path / f"tape.{ending}").read_bytes().startswith(start)
    with pytest.raises(ValueError, match="'tape.gif'"):
        graph.save(tmp_path / "tape.gif")
    with pytest.raises(ValueError, match="'tape'"):
        graph.save(str(tmp_path / "tape"))
    assert set(graph._repr_mimebundle_()) == {"text/plain", "image/svg+xml"}


def test_without_graphviz_a_notebook_shows_text(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(1, requires_grad=True)
    graph = draw(x * 2)
    monkeypatch.setenv("PATH", "/nowhere")
    assert graph._repr_svg_() is None
    assert graph._repr_mimebundle_() == {"text/plain": graph.text}
    with pytest.raises(RuntimeError, match="is not on PATH. Install"):
        _ = graph.svg


@needs_dot
def test_what_dot_says_is_reported() -> None:
    graph = Graph([Box("op", "mul")], [], direction='"')
    with pytest.raises(RuntimeError, match="dot failed"):
        _ = graph.svg


def test_drawing_changes_nothing() -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    draw(y)
    y.backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2]


def test_what_ops_keep_is_shown_until_it_is_freed() -> None:
    w = torch.ones(3, 2, requires_grad=True)
    loss = (torch.ones(4, 3) @ w).exp().sum()
    drawn = draw(loss, show_saved=True)
    kept = [line for box in drawn.boxes for line in box.results if line.startswith("keeps")]
    assert kept == ["keeps input (4, 3) float32", "keeps result (4, 2) float32"]
    assert "keeps result" in drawn.dot and "keeps result" in drawn.text
    loss.backward()
    assert "keeps" not in draw(loss, show_saved=True).text
