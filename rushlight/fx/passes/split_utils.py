"""Cutting graphs by marks on their steps, which split_module does by a function."""

from __future__ import annotations

from typing import Any

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.passes.split_module import Assembly, Partition, link

__all__ = ["split_by_tags"]


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> Any:
    """Returns a module that does the same by parts, which are named by the tags of its calls.

    A call is a node but a placeholder, get_attr or output; its attribute `tag` says which part it
    is of. A part has attributes of gm under the paths that they have there.

    Args:
        gm: what is split.
        tags: the tags of all calls, in the order in which the parts run.
        return_fqn_mapping: whether to return the new paths of attributes by their old ones, too.
        return_tuple: whether a part returns a tuple even of one result.
        GraphModuleCls: the class of the whole.

    Returns:
        The module, or a tuple of it and the paths.

    Raises:
        AssertionError: if a call has no tag, or a part needs a later one.
        KeyError: if the tag of a call is not among tags.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x * 2) + 1)
        >>> for node in list(traced.graph.nodes)[1:-1]:
        ...     node.tag = "last" if node.name == "add" else "first"
        >>> parts = torch.fx.passes.split_utils.split_by_tags(traced, ["first", "last"])
        >>> print(parts.code.strip())
        def forward(self, x):
            first = self.first(x);  x = None
            last = self.last(first);  first = None
            return last
    """
    parts = {tag: Partition(tag, tag) for tag in tags}
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        tag = getattr(node, "tag", None)
        if tag is None:
            raise AssertionError(f"Node does not have tag: {node.format_node()}")
        parts[tag].node_names.append(node.name)
    home = link(gm.graph, parts)
    for place, tag in enumerate(tags):
        late = [name for name in parts[tag].dependencies if name not in tags[:place]]
        if late:
            raise AssertionError(
                f"split_by_tags: part {tag} needs what {', '.join(late)} makes, which comes later. "
                "Give the tags in another order."
            )
    olds: dict[str, str] = {}
    assembly = Assembly(gm, gm, parts, home, olds, keeps_paths=True, returns_tuples=return_tuple)
    whole = assembly.build(tags, GraphModuleCls)
    whole.graph.set_codegen(gm.graph._codegen)
    whole.recompile()
    return (whole, {old: new for new, old in olds.items()}) if return_fqn_mapping else whole
