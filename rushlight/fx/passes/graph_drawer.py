"""Pictures of graphs, laid out by Graphviz."""

from __future__ import annotations

from typing import Any

from rushlight import nn
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, format_argument
from rushlight.utils.graph import Arrow, Box, Graph, Kind

__all__ = ["DotGraph", "FxGraphDrawer"]

_KINDS: dict[str, Kind] = {"placeholder": "input", "get_attr": "parameter", "output": "output"}


class DotGraph(Graph):
    """A picture that is written by the methods that programs know from pydot."""

    def to_string(self) -> str:
        """Returns the picture in the language of Graphviz."""
        return self.dot

    def write_svg(self, path: str) -> None:
        """Writes the picture to an SVG file."""
        self._write(path, "svg")

    def write_png(self, path: str) -> None:
        """Writes the picture to a PNG file."""
        self._write(path, "png")

    def create_svg(self) -> bytes:
        """Returns the picture as SVG."""
        return self._lay_out("svg")

    def create_png(self) -> bytes:
        """Returns the picture as PNG."""
        return self._lay_out("png")

    def _write(self, path: str, form: str) -> None:
        content = self._lay_out(form)
        with open(path, "wb") as file:
            file.write(content)


class FxGraphDrawer:
    """Draws a GraphModule, with shapes where ShapeProp noted them.

    Args:
        graph_module: what is drawn.
        name: of the picture.
        ignore_getattr: whether to leave out parameters and buffers.
        ignore_parameters_and_buffers: the same.
        skip_node_names_in_args: whether the text leaves out arguments that are nodes, which arrows
            show.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x))
        >>> graph = torch.fx.passes.graph_drawer.FxGraphDrawer(traced, "relu").get_dot_graph()
        >>> [box.title for box in graph.boxes]
        ['x', 'relu', 'output']
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
    ) -> None:
        self._name = name
        self._skip_node_names = skip_node_names_in_args
        self._skip_attributes = ignore_getattr or ignore_parameters_and_buffers
        self._pictures = {name: self._draw(graph_module)}
        for path, module in graph_module.named_modules():
            if path and isinstance(module, GraphModule):
                self._pictures[f"{name}_{path}"] = self._draw(module)

    def get_dot_graph(self, submod_name: str | None = None) -> DotGraph:
        """Returns the picture, or that of a GraphModule inside.

        Args:
            submod_name: the path of the one inside.
        """
        return self._pictures[self._name if submod_name is None else f"{self._name}_{submod_name}"]

    def get_main_dot_graph(self) -> DotGraph:
        """Returns the picture of the whole."""
        return self._pictures[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> DotGraph:
        """Returns the picture of a GraphModule inside."""
        return self.get_dot_graph(submod_name)

    def get_all_dot_graphs(self) -> dict[str, DotGraph]:
        """Returns all pictures by their names."""
        return self._pictures

    def _draw(self, module: GraphModule) -> DotGraph:
        nodes = [
            node
            for node in module.graph.nodes
            if not (self._skip_attributes and node.op == "get_attr")
        ]
        places = {node: place for place, node in enumerate(nodes)}
        boxes = [self._box(module, node) for node in nodes]
        arrows = [
            Arrow(places[used], places[node])
            for node in nodes
            for used in node.all_input_nodes
            if used in places
        ]
        return DotGraph(boxes, arrows)

    def _box(self, module: GraphModule, node: Node) -> Box:
        noted: Any = node.meta.get("tensor_meta")
        results = ()
        if hasattr(noted, "shape"):
            results = (f"{tuple(noted.shape)} {str(noted.dtype).removeprefix('torch.')}",)
        return Box(
            _KINDS.get(node.op, "op"),
            node.name,
            results,
            tooltip=f"{node._pretty_target()}{self._arguments(node)}",
            site=self._about(module, node),
        )

    def _about(self, module: GraphModule, node: Node) -> str:
        """The layer for the call of a module, else what is called."""
        if node.op == "call_module":
            layer: nn.Module = module.get_submodule(node.target)
            return repr(layer).split("\n")[0]
        return node._pretty_target() if node.op.startswith("call_") else ""

    def _arguments(self, node: Node) -> str:
        shown: list[Any] = [*node.args, *node.kwargs.items()]
        if self._skip_node_names:
            shown = [item for item in shown if not isinstance(item, Node)]
        return f"({', '.join(map(format_argument, shown))})"
