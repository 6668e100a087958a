"""Graphs as Python code: the forward that a GraphModule runs.

Owns how each kind of node is written, and what the code needs to know by name.
"""

from __future__ import annotations

import enum
import keyword
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from textwrap import indent
from types import GenericAlias
from typing import Any

import rushlight as rl
from rushlight.fx._naming import Namespace, qualified_name
from rushlight.fx.node import Node, type_name

__all__ = [
    "CodeGen",
    "PythonCode",
    "inplace_methods",
    "magic_methods",
    "reflectable_magic_methods",
]

# How code writes the functions of operator.
reflectable_magic_methods = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "floordiv": "{} // {}",
    "truediv": "{} / {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "matmul": "{} @ {}",
}
magic_methods = {
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "gt": "{} > {}",
    "le": "{} <= {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
    "getitem": "{}[{}]",
    **reflectable_magic_methods,
}
inplace_methods = {
    "iadd": "{} += {}",
    "iand": "{} &= {}",
    "ifloordiv": "{} //= {}",
    "ilshift": "{} <<= {}",
    "imod": "{} %= {}",
    "imul": "{} *= {}",
    "imatmul": "{} @= {}",
    "ior": "{} |= {}",
    "ipow": "{} **= {}",
    "irshift": "{} >>= {}",
    "isub": "{} -= {}",
    "itruediv": "{} /= {}",
    "ixor": "{} ^= {}",
    "setitem": "{}[{}] = {}",
}


@dataclass
class PythonCode:
    """Generated code.

    Attributes:
        src: its text, which defines forward.
        globals: what it knows by name.
    """

    src: str
    globals: dict[str, Any] = field(default_factory=dict)


class CodeGen:
    """Writes the code of graphs; a subclass may change its head and what it returns."""

    _transform: Callable[[list[str]], list[str]] | None = None  # see Graph.on_generate_code

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Returns the line that opens the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def forward({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """Returns the line that returns the result."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """Returns the inputs of the graph's placeholders for the arguments of forward."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Returns the result of forward for that of the graph's output."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Returns names that the code needs besides those of the nodes."""
        return []

    def _gen_python_code(self, nodes: Sequence[Node], root_module: str) -> PythonCode:
        return _Writer(self, root_module, nodes).write()


class _Writer:
    """Writes the code of one graph."""

    def __init__(self, codegen: CodeGen, root_module: str, nodes: Sequence[Node]) -> None:
        self._codegen = codegen
        self._root = root_module
        self._nodes = nodes
        self._names = Namespace()
        for node in nodes:
            self._names.create_name(node.name, node)
        self._globals: dict[str, Any] = {
            "NoneType": type(None),
            "device": rl.device,
            "inf": rl.inf,
            "nan": rl.nan,
            "rushlight": rl,
            "torch": rl,  # in the reprs of dtypes and their like
            **dict(codegen.additional_globals()),
        }
        self._wrapped: dict[str, None] = {}

    def write(self) -> PythonCode:
        free_vars: list[str] = []
        body: list[str] = []
        annotation = ""
        freed_by = last_uses(self._nodes)
        for node in self._nodes:
            if node.op == "placeholder":
                free_vars.append(self._parameter(node))
                starless = node.target.replace("*", "")
                if starless != node.name:
                    body.append(f"{node.name} = {starless}")
            elif node.op == "output":
                if node.type is not None:
                    annotation = f" -> {self._annotation(node.type)}"
                body.append(self._codegen.generate_output(_Verbatim(self._text(node.args[0]))))
            else:
                done = [*freed_by.get(node, ()), *([] if node.users else [node])]
                freed = "".join(f"{used.name} = " for used in done)
                body.append(self._statement(node) + (f";  {freed}None" if done else ""))
        head = self._codegen.gen_fn_def(free_vars, annotation)
        wraps = "\n".join(f'rushlight.fx.wrap("{name}")' for name in self._wrapped)
        lines = [f"{line}\n" for line in body or ["pass"]]
        if self._codegen._transform:
            lines = self._codegen._transform(lines)
        text = indent("".join(lines), "    ")
        return PythonCode(f"{wraps}\n\n{head}\n{text}", self._globals)

    def _parameter(self, node: Node) -> str:
        default = f" = {self._text(node.args[0])}" if node.args else ""
        return f"{node.target}{self._annotated(node)}{default}"

    def _annotated(self, node: Node) -> str:
        return "" if node.type is None else f" : {self._annotation(node.type)}"

    def _statement(self, node: Node) -> str:
        left = f"{node.name}{self._annotated(node)} = "
        if node.op == "get_attr":
            return left + attribute_text(self._root, node.target)
        if node.op == "call_method":
            method = attribute_text(self._text(node.args[0]), node.target)
            return f"{left}{method}({self._arguments(node, 1)})"
        if node.op == "call_module":
            module = attribute_text(self._root, node.target)
            return f"{left}{module}({self._arguments(node)})"
        args = [self._text(arg) for arg in node.args]
        name = getattr(node.target, "__name__", "")
        if getattr(operator, name, None) is node.target and not node.kwargs:
            if name in magic_methods:
                return left + magic_methods[name].format(*args)
            if name in inplace_methods:
                return f"{inplace_methods[name].format(*args)};  {left}{args[0]}"
        if node.target is getattr and len(args) == 2 and str(node.args[1]).isidentifier():
            return f"{left}{args[0]}.{node.args[1]}"
        if node.meta.get("is_wrapped"):  # wrap takes a name without dots
            function = self._plain_global(qualified_name(node.target), node.target)
            self._wrapped[function] = None
        else:
            function = self._global(qualified_name(node.target), node.target)
        return f"{left}{function}({self._arguments(node)})"

    def _arguments(self, node: Node, first: int = 0) -> str:
        args = [self._text(arg) for arg in node.args[first:]]
        return ", ".join([*args, *(f"{k} = {self._text(v)}" for k, v in node.kwargs.items())])

    def _text(self, argument: Any) -> str:
        """An argument in code."""
        if isinstance(argument, Node):
            return argument.name
        if type(argument).__module__ == "numpy" and not hasattr(argument, "__len__"):  # a number
            return self._text(argument.item())
        if isinstance(argument, tuple) and hasattr(argument, "_fields"):
            cls = type(argument)
            name = self._global(type_name(cls), cls)
            return f"{name}({', '.join(map(self._text, argument))})"
        if type(argument) is tuple:
            inside = ", ".join(map(self._text, argument))
            return f"({inside},)" if len(argument) == 1 else f"({inside})"
        if isinstance(argument, list):
            return f"[{', '.join(map(self._text, argument))}]"
        if isinstance(argument, dict):
            pairs = (f"{self._text(k)}: {self._text(v)}" for k, v in argument.items())
            return "{" + ", ".join(pairs) + "}"
        if isinstance(argument, slice):
            parts = (argument.start, argument.stop, argument.step)
            return f"slice({', '.join(map(self._text, parts))})"
        if isinstance(argument, enum.Enum):
            cls = type(argument)
            return f"{self._global(type_name(cls), cls)}.{argument.name}"
        if callable(argument):
            is_class = isinstance(argument, type)
            name = type_name(argument) if is_class else qualified_name(argument)
            return self._global(name, argument)
        bases: tuple[Any, ...] = (int, float, complex, str, bytes)
        for base in bases:  # a subclass may have a repr that is no code
            if isinstance(argument, base) and not isinstance(argument, bool):
                return base.__repr__(argument)
        return repr(argument)

    def _annotation(self, annotation: Any) -> str:
        if isinstance(annotation, str):
            return repr(annotation)
        if isinstance(annotation, GenericAlias):
            inside = ", ".join(map(self._annotation, annotation.__args__))
            return f"{self._annotation(annotation.__origin__)}[{inside}]"
        if isinstance(annotation, type) and annotation.__module__ == "builtins":
            return annotation.__name__
        return self._global(type_name(annotation), annotation)

    def _global(self, name: str, value: Any) -> str:
        """A name that the code has for a function, class or annotation."""
        if name.startswith("rushlight.") and _find(name) is value:
            return name
        return self._plain_global(name, value)

    def _plain_global(self, name: str, value: Any) -> str:
        plain = self._names.create_name(name, Identity(value))
        self._globals[plain] = value
        return plain


class _Verbatim(str):
    """Text whose repr is itself, for a CodeGen that formats the output."""

    def __repr__(self) -> str:
        return str(self)


class Identity:
    """Stands for an object among names, also for one that has no hash."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.value is self.value


def last_uses(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """For each node those that nothing after it uses."""
    uses: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for user in reversed(nodes):
        for used in user.all_input_nodes:
            if used not in seen:
                seen.add(used)
                uses.setdefault(user, []).append(used)
    return uses


def attribute_text(expression: str, path: str) -> str:
    """self.layers.0.weight as code has it: getattr(self.layers, "0").weight."""
    for name in path.split("."):
        if name.isidentifier() and not keyword.iskeyword(name):
            expression = f"{expression}.{name}"
        else:
            expression = f'getattr({expression}, "{name}")'
    return expression


def _find(name: str) -> Any:
    """What a dotted name of this package leads to."""
    found: Any = rl
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found
