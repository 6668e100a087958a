"""GraphModule: a module whose forward is code that was generated from a graph.

Owns the link of graph and code: assigning graph, or calling recompile after a change of it, writes
the code anew. Every GraphModule has a class of its own, as forward belongs to the class.
"""

from __future__ import annotations

import copy
import itertools
import linecache
import os
import textwrap
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from rushlight import Tensor, nn
from rushlight.fx._code import PythonCode
from rushlight.fx.graph import Graph

__all__ = ["GraphModule"]

_numbers = itertools.count()


def _compiled(src: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function forward of generated code, whose lines tracebacks can show while it lives."""
    filename = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[filename] = len(src), None, src.splitlines(True), filename
    scope = dict(names)
    exec(compile(src, filename, "exec"), scope)
    function = scope["forward"]
    weakref.finalize(function, linecache.cache.pop, filename, None).atexit = False
    return function


class GraphModule(nn.Module):
    """A module that runs a graph.

    Args:
        root: where the submodules, parameters and buffers of the graph are found: a module, or a
            dict from their paths. Only those that the graph uses are taken over.
        graph: what is run.
        class_name: what repr calls the module.

    Attributes:
        graph: the graph; call recompile after changing it.
        code: the text that was generated from it.
        meta: what passes note about the module.

    Raises:
        RuntimeError: if the graph uses what root does not have.

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_module("act", (x,))
        >>> _ = graph.output(y)
        >>> module = torch.fx.GraphModule({"act": torch.nn.ReLU()}, graph, "Small")
        >>> module
        Small(
          (act): ReLU()
        )
        >>> module(torch.tensor([-1.0, 1.0]))
        tensor([0., 1.])
    """

    meta: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        """A module of a fresh class, which gets the forward."""
        base = _shared_base(cls)
        own: Any = type(
            base.__name__, (base,), {"_is_of_one_module": True, "__module__": cls.__module__}
        )
        own.__qualname__ = "GraphModuleImpl"  # by which libraries know that forward is the class's
        return super().__new__(own)

    def __init__(
        self, root: nn.Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, nn.Module):
            self.training = root.training
        paths = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            for path in paths:
                install_at(self, path, value_at(root, path))
        else:
            for path in sorted(paths, key=lambda path: path.count(".")):
                if path not in root:
                    raise RuntimeError(
                        f"GraphModule: the graph uses {path!r}, but that is not in root, which has "
                        f"{sorted(root)}."
                    )
                install_at(self, path, root[path])
        self.meta = dict(getattr(root, "meta", {}))
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph that forward was generated from."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The text of the generated code.

        Raises:
            RuntimeError: if there is none yet.
        """
        if "_code" not in self.__dict__:
            raise RuntimeError("code: no code was generated yet. Assign a graph.")
        return self._code

    def recompile(self) -> PythonCode:
        """Writes the code anew after the graph was changed, and returns it."""
        generated = self._graph.python_code(root_module="self")
        self._code = generated.src
        type(self).forward = _compiled(generated.src, generated.globals)
        return generated

    def _replicate_for_data_parallel(self) -> Self:
        replica = super()._replicate_for_data_parallel()
        type(replica).forward = type(self).forward
        return replica

    # Submodules

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Installs a module at a path, with empty modules on the way where there are none.

        Args:
            target: the path.
            m: the module.

        Returns:
            Whether it was possible: what is on the way must be modules.
        """
        *prefix, last = target.split(".")
        owner: Any = self
        for name in prefix:
            if not hasattr(owner, name):
                setattr(owner, name, nn.Module())
            owner = getattr(owner, name)
            if not isinstance(owner, nn.Module):
                return False
        owner.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Drops the module at a path; returns whether there was one."""
        prefix, _, last = target.rpartition(".")
        try:
            owner = self.get_submodule(prefix)
        except AttributeError:
            return False
        if not isinstance(getattr(owner, last, None), nn.Module):
            return False
        delattr(owner, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Drops the modules that neither the graph nor a module of it uses.

        Example:
            >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
            >>> _ = traced.add_submodule("idle", torch.nn.ReLU())
            >>> traced.delete_all_unused_submodules()
            >>> traced
            Sequential(
              (0): ReLU()
            )
        """
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            path = node.target.split(".")
            used.update(".".join(path[:depth]) for depth in range(1, len(path) + 1))
            if node.op == "call_module":
                inside = self.get_submodule(node.target).named_modules()
                used.update(f"{node.target}.{name}" for name, _ in inside if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # Copies, files and text

    def __reduce__(self) -> Any:
        state = {key: value for key, value in self.__dict__.items() if key not in _FROM_GRAPH}
        return _rebuilt, (_shared_base(type(self)), type(self).__name__, state, self._graph)

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        rebuild, (base, name, state, graph) = self.__reduce__()
        # What is noted of the module may lead back to it.
        memo[id(self)] = result = rebuild(base, name, {}, copy.deepcopy(graph, memo))
        result.__dict__.update(copy.deepcopy(state, memo))
        return result

    def __copy__(self) -> GraphModule:
        rebuild, (base, name, state, graph) = self.__reduce__()
        return rebuild(base, name, state, copy.deepcopy(graph))

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Writes the module as a package: its code, which one can edit, and its parameters.

        Args:
            folder: is made if need be.
            module_name: the name of the class in it.
        """
        from rushlight.fx._folder import write_folder

        write_folder(self, Path(folder), module_name)

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """Returns, and prints, the code of this module and of the GraphModules in it as classes.

        Args:
            print_output: whether to print it.
            options: accepted for PyTorch's sake.

        Example:
            >>> _ = torch.fx.symbolic_trace(torch.nn.ReLU()).print_readable()
            class ReLU(torch.nn.Module):
                def forward(self, input : rushlight.Tensor) -> rushlight.Tensor:
                    input_1 = input
                    relu = rushlight.relu(input_1, inplace = False);  input_1 = None
                    return relu
        """
        inside = [
            child.print_readable(print_output=False)
            for child in self.children()
            if isinstance(child, GraphModule)
        ]
        parts = [self.code.strip(), *inside]
        body = textwrap.indent("\n\n".join(parts), " " * 4)
        text = f"class {type(self).__name__}(torch.nn.Module):\n{body}"
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        return (
            f"{super().__repr__()}\n\n{self._code}\n"
            "# To see more debug info, please use `graph_module.print_readable()`"
        )


_FROM_GRAPH = ("_graph", "_code")


def _shared_base(cls: type[GraphModule]) -> type[GraphModule]:
    """The class below those that belong to one module."""
    return next(c for c in cls.__mro__ if "_is_of_one_module" not in vars(c))


def _rebuilt(
    base: type[GraphModule], name: str, state: dict[str, Any], graph: Graph
) -> GraphModule:
    """A GraphModule from the parts of another one."""
    module = base.__new__(base)
    type(module).__name__ = name
    module.__dict__.update(state)
    module.graph = graph
    return module


def value_at(root: Any, path: str) -> Any:
    """What is at a path below a module."""
    for name in path.split("."):
        if not hasattr(root, name):
            raise RuntimeError(
                f"GraphModule: the graph uses {path!r}, but {type(root).__name__} has no {name!r}."
            )
        root = getattr(root, name)
    return root


def install_at(module: nn.Module, path: str, value: Any) -> None:
    """Installs a value at a path, with empty modules on the way where there are none."""
    *prefix, last = path.split(".")
    owner: Any = module
    for name in prefix:
        if getattr(owner, name, None) is value:  # a module that holds itself
            return
        if not hasattr(owner, name):
            setattr(owner, name, nn.Module())
        owner = getattr(owner, name)
    if getattr(owner, last, None) is value and value is not None:
        return
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        owner.register_buffer(last, value)
    else:
        setattr(owner, last, value)
