"""Pictures of the tape: which op made a tensor from what, and where in the program.

Owns the walk over nodes and what is written about each; rushlight.utils._graph_dot turns that into
Graphviz's language. Invariant: nothing is computed or changed, and no walk recurses, so that a tape
of any length can be drawn.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import pathlib
import re
import shutil
import subprocess
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import rushlight as rl
from rushlight import Tensor, nn
from rushlight._C import Node

Kind: TypeAlias = Literal["input", "parameter", "op", "output", "note"]

__all__ = ["Graph", "draw"]


@dataclass
class Box:
    """One thing in the picture: a tensor at either end of the tape, or an op."""

    kind: Kind
    title: str
    results: tuple[str, ...] = ()  # "(2, 3) float32"
    names: tuple[str, ...] = ()  # of the results, "" for those without
    site: str = ""  # "train.py:12"
    tooltip: str = ""


@dataclass
class Arrow:
    """What flows forward from one box to another, by their places in the list of boxes."""

    source: int
    target: int
    slot: int = 0  # which result of the source
    label: str = ""
    dashed: bool = False


class Graph:
    """A picture of a tape, which a notebook shows by itself.

    Attributes:
        boxes: leaves, ops and outputs, each after what it was computed from.
        arrows: from each tensor or op to the ops that read it.
        direction: "TB" from top to bottom, "LR" from left to right.
    """

    def __init__(self, boxes: list[Box], arrows: list[Arrow], direction: str = "TB") -> None:
        self.boxes = boxes
        self.arrows = arrows
        self.direction = direction

    @property
    def dot(self) -> str:
        """The picture in the language of Graphviz."""
        from rushlight.utils._graph_dot import to_dot

        return to_dot(self)

    @property
    def text(self) -> str:
        """The graph as lines of text: `%2 = relu(%1)  (8, 16) float32  train.py:12`."""
        from rushlight.utils._graph_dot import to_text

        return to_text(self)

    @property
    def svg(self) -> str:
        """The picture as SVG, laid out by Graphviz.

        Raises:
            RuntimeError: Graphviz is not installed.
        """
        return self._lay_out("svg").decode()

    def save(self, path: str | pathlib.Path) -> None:
        """Writes the picture; the ending of the name says how: .svg, .png, .pdf, .dot or .txt.

        Args:
            path: the file, which is replaced.

        Raises:
            ValueError: another ending.
            RuntimeError: Graphviz is needed and not installed.
        """
        path = pathlib.Path(path)
        ending = path.suffix.lower().removeprefix(".")
        if ending in ("dot", "gv"):
            path.write_text(self.dot, encoding="utf-8")
        elif ending == "txt":
            path.write_text(self.text + "\n", encoding="utf-8")
        elif ending in ("svg", "png", "pdf"):
            path.write_bytes(self._lay_out(ending))
        else:
            raise ValueError(
                f"save: the name {path.name!r} does not say which form to write. "
                "It must end in .svg, .png, .pdf, .dot or .txt."
            )

    def _lay_out(self, form: str) -> bytes:
        program = shutil.which("dot")
        if program is None:
            raise RuntimeError(
                "draw: Graphviz's program dot, which lays pictures out, is not on PATH. Install "
                "Graphviz (apt-get install graphviz), or use .text, or .dot with another viewer."
            )
        options = ["-Gdpi=144", "-Gbgcolor=white"] if form == "png" else []
        done = subprocess.run(
            [program, f"-T{form}", *options],
            input=self.dot.encode(),
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"draw: dot failed: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Graph of {len(self.boxes)} boxes and {len(self.arrows)} arrows>"

    def _repr_svg_(self) -> str | None:
        """What a notebook shows; None, which makes it show text, without Graphviz."""
        return self.svg if shutil.which("dot") else None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = {"text/plain": self.text}
        svg = self._repr_svg_()
        return bundle if svg is None else {**bundle, "image/svg+xml": svg}


def draw(
    tensors: Tensor | Sequence[Tensor] | Mapping[str, Tensor],
    params: nn.Module | Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None = None,
    *,
    max_nodes: int = 400,
    direction: Literal["TB", "LR"] = "TB",
    show_saved: bool = False,
) -> Graph:
    """Returns a picture of how tensors were computed, as far as gradients flow.

    An op shows the size and dtype of its result, and the line of the program that called it. Its
    arrows come from what the gradient will go to: tensors that want none are not on the tape.

    Args:
        tensors: the results to explain; a dict gives them names.
        params: names of tensors: a module, a dict, or pairs like those of named_parameters(). A
            name of a computed tensor stands beside the op that made it.
        max_nodes: ops and leaves shown, those next to the results first.
        direction: "TB" draws from top to bottom, "LR" from left to right.
        show_saved: also show what each op keeps for backward, until backward has freed it.

    Returns:
        A Graph: shown by a notebook, with .text, .dot, .svg and save(path).

    Raises:
        TypeError: something else than tensors.
        ValueError: a tensor that does not require gradients, so that it has no graph.

    Example:
        >>> w = torch.ones(3, 2, requires_grad=True)
        >>> loss = (torch.ones(4, 3) @ w).relu().sum()
        >>> graph = torch.utils.graph.draw({"loss": loss}, {"w": w})
        >>> [box.title for box in graph.boxes]
        ['w', 'mm', 'relu', 'sum', 'loss']
    """
    outputs = _named_outputs(tensors)
    if max_nodes < 1:
        raise ValueError(f"draw: max_nodes is {max_nodes}. At least 1 node must be shown.")
    if direction not in ("TB", "LR"):
        raise ValueError(f"draw: direction is {direction!r}. It must be 'TB' or 'LR'.")
    return Graph(*_Walk(outputs, _names_of(params), max_nodes, show_saved).run(), direction)


def _named_outputs(tensors: Any) -> list[tuple[str, Tensor]]:
    if isinstance(tensors, Tensor):
        named = [("output", tensors)]
    elif isinstance(tensors, Mapping):
        named = [(str(name), tensor) for name, tensor in tensors.items()]
    else:
        named = [(f"output {i}", tensor) for i, tensor in enumerate(tensors)]
    if not named:
        raise ValueError("draw: got no tensors. Pass at least one.")
    for name, tensor in named:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"draw: {name} is {type(tensor).__name__}, not a tensor.")
        if not tensor.requires_grad:
            raise ValueError(
                f"draw: {name} does not require gradients, so nothing was recorded about it. "
                "Compute it outside no_grad, from tensors that require gradients."
            )
    return named


def _names_of(params: Any) -> list[tuple[str, Tensor]]:
    if params is None:
        return []
    if isinstance(params, rl.nn.Module):
        params = params.named_parameters()
    elif isinstance(params, Mapping):
        params = params.items()
    return [(str(name), tensor) for name, tensor in params]


def _op_name(node: Node) -> str:
    """What the program called, which the node's name need not tell; that of a Function's class."""
    if node.name().endswith("Backward0"):
        return node._op().strip("_")
    name = re.sub(r"Backward$", "", node.name())
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() or node.name()


def _results(node: Node) -> list[str]:
    """What is known of each result of an op."""
    found = []
    with contextlib.suppress(IndexError):
        for slot in itertools.count():
            size, dtype, _ = node._result(slot)
            found.append(_describe(size, dtype))
    return found


def _saved(node: Node) -> list[str]:
    """What an op keeps for backward."""
    try:
        kept = node._saved()
    except RuntimeError:  # freed
        return []
    return [f"keeps {name} {_describe(t.shape, t.dtype)}" for name, t in kept if t is not None]


def _describe(size: Sequence[int], dtype: Any) -> str:
    return f"{tuple(size)} {str(dtype).removeprefix('torch.')}"


def _leaf_of(node: Node) -> Tensor | None:
    try:
        return node.variable
    except AttributeError:  # not the end of the tape, or the leaf is gone
        return None


class _Walk:
    """Turns the tape behind outputs into boxes and arrows."""

    def __init__(
        self,
        outputs: list[tuple[str, Tensor]],
        names: list[tuple[str, Tensor]],
        max_nodes: int,
        show_saved: bool,
    ) -> None:
        self.show_saved = show_saved
        self.outputs = outputs
        self.leaf_names = {id(tensor): name for name, tensor in names if tensor.is_leaf}
        self.result_names = {
            (tensor.grad_fn, tensor.output_nr): name for name, tensor in names if tensor.grad_fn
        }
        self.max_nodes = max_nodes
        self.boxes: list[Box] = []
        self.arrows: list[Arrow] = []
        self.places: dict[Any, int] = {}  # of nodes, and of leaves by id
        self.leaves: list[Tensor] = []  # keeps the ids valid

    def run(self) -> tuple[list[Box], list[Arrow]]:
        roots = [tensor.grad_fn for _, tensor in self.outputs if tensor.grad_fn]
        shown, hidden = self._nearest(roots)
        rest = -1
        if hidden:
            rest = self._add(
                Box(
                    "note",
                    f"{hidden} older nodes are not shown",
                    site="raise max_nodes to see them",
                )
            )
        for node in _inputs_first(shown):
            self.places[node] = self._place_of(node)
            cut = False
            for source, slot in node.next_functions:
                if source in shown:
                    self._connect(source, slot, self.places[node])
                elif source is not None and not cut:
                    cut = True  # one arrow says it
                    self.arrows.append(Arrow(rest, self.places[node], dashed=True))
        for name, tensor in self.outputs:
            self._add_output(name, tensor)
        self._label_results()
        return self.boxes, self.arrows

    def _nearest(self, roots: list[Node]) -> tuple[set[Node], int]:
        """The nodes to show, and how many others there are."""
        seen = set(roots)
        order = deque(dict.fromkeys(roots))
        shown: set[Node] = set()
        while order:
            node = order.popleft()
            if len(shown) < self.max_nodes:
                shown.add(node)
            for source, _ in node.next_functions:
                if source is not None and source not in seen:
                    seen.add(source)
                    order.append(source)
        return shown, len(seen) - len(shown)

    def _add(self, box: Box) -> int:
        self.boxes.append(box)
        return len(self.boxes) - 1

    def _place_of(self, node: Node) -> int:
        if node.name() != "torch::autograd::AccumulateGrad":
            return self._add(self._op_box(node))
        leaf = _leaf_of(node)
        if leaf is not None:
            return self._place_of_leaf(leaf)
        return self._add(Box("input", "a tensor that is gone", tuple(_results(node))))

    def _place_of_leaf(self, leaf: Tensor) -> int:
        if id(leaf) not in self.places:
            self.leaves.append(leaf)
            parameter = isinstance(leaf, rl.nn.Parameter)
            name = self.leaf_names.get(id(leaf), "parameter" if parameter else "input")
            kind: Kind = "parameter" if parameter else "input"
            self.places[id(leaf)] = self._add(
                Box(kind, name, (_describe(leaf.shape, leaf.dtype),), tooltip=f"{name}: a leaf")
            )
        return self.places[id(leaf)]

    def _op_box(self, node: Node) -> Box:
        results = _results(node)
        names = [self.result_names.get((node, slot), "") for slot in range(len(results))]
        counts = Counter(results)
        lines = [text if count == 1 else f"{count} of {text}" for text, count in counts.items()]
        if len(lines) > 4:
            lines[4:] = [f"and {len(lines) - 4} other sizes"]
        if self.show_saved:
            lines += _saved(node)
        return Box(
            kind="op",
            title=_op_name(node),
            results=tuple(lines),
            names=tuple(names) if any(names) else (),
            site=node.call_site or "",
            tooltip=node.name(),
        )

    def _connect(self, source: Node, slot: int, target: int) -> None:
        self.arrows.append(Arrow(self.places[source], target, slot))

    def _label_results(self) -> None:
        """Numbers the results of ops of which others than the first are read."""
        several = {arrow.source for arrow in self.arrows if arrow.slot > 0}
        for arrow in self.arrows:
            if arrow.source in several:
                arrow.label = f"result {arrow.slot}"

    def _add_output(self, name: str, tensor: Tensor) -> None:
        node = tensor.grad_fn
        source = self.places[node] if node else self._place_of_leaf(tensor)
        place = self._add(Box("output", name, (_describe(tensor.shape, tensor.dtype),)))
        self.arrows.append(Arrow(source, place, tensor.output_nr if node else 0))


def _inputs_first(shown: set[Node]) -> Iterator[Node]:
    """The nodes as the program ran them, each leaf before the first op that reads it."""
    readers: dict[Node, list[Node]] = {node: [] for node in shown}
    missing = dict.fromkeys(shown, 0)
    for node in shown:
        for source, _ in node.next_functions:
            if source in shown and source.next_functions:
                readers[source].append(node)
                missing[node] += 1
    # The numbers of threads are not comparable, therefore inputs are counted as well.
    numbered = itertools.count()
    ready = [
        (node._sequence_nr(), next(numbered), node)
        for node, count in missing.items()
        if count == 0 and node.next_functions
    ]
    heapq.heapify(ready)
    leaves: set[Node] = set()
    while ready:
        _, _, node = heapq.heappop(ready)
        for source, _ in node.next_functions:
            if source in shown and not source.next_functions and source not in leaves:
                leaves.add(source)
                yield source
        yield node
        for reader in readers[node]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heapq.heappush(ready, (reader._sequence_nr(), next(numbered), reader))
    yield from (node for node in shown if not node.next_functions and node not in leaves)
