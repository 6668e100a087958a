"""Signatures of operators: `(Tensor x, int n=2) -> Tensor`, read, written and inferred.

The types are those of PyTorch's schemas. Invariant: str(parse(text)) says the same as the text.
"""

from __future__ import annotations

import ast
import collections.abc
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import rushlight as rl
from rushlight import Tensor

__all__ = ["Parameter", "Schema", "infer", "parse"]

_NAMES: dict[Any, str] = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "complex",
    rl.dtype: "ScalarType",
    rl.device: "Device",
    int | float | bool: "Scalar",
    typing.Union[int, float, bool]: "Scalar",  # noqa: UP007
}

# What a value of a type is; a type that is not here takes anything.
_CLASSES: dict[str, Any] = {
    "Tensor": Tensor,
    "SymInt": Integral,  # NumPy's, too
    "int": Integral,
    "float": Real,
    "bool": bool,
    "str": str,
    "Scalar": (int, float, bool, complex),
    "ScalarType": rl.dtype,
    "Device": (rl.device, str),
}


# What else the words of a schema may say.
_TYPES = {
    *_CLASSES,
    *("Any", "Dimname", "Generator", "Layout", "MemoryFormat", "QScheme", "Storage", "Stream"),
    *("SymBool", "SymFloat", "complex"),
}


# "Dict(str, int[])" and "(str, str)", types that are made of others.
_COMPOUND = re.compile(r"(?:Dict)?\(\w+(?:\[\])?(?:, \w+(?:\[\])?)*\)")


class AliasInfo(NamedTuple):
    """Says of an argument that the operator writes to it."""

    is_write: bool


@dataclass(frozen=True)
class Parameter:
    """One argument.

    Attributes:
        name: what it is called.
        type: "Tensor", "Tensor[]", "int?" and so on.
        default: its default, or inspect.Parameter.empty.
        writes: whether the operator writes to it.
        keyword_only: whether it is given by name alone.
        mark: what stands behind the type of one that is written to: "(a!)".
    """

    name: str
    type: str
    default: Any = inspect.Parameter.empty
    writes: bool = False
    keyword_only: bool = False
    mark: str = ""

    @property
    def is_write(self) -> bool:
        """The same, as arguments of the operators of torch.ops.aten say it."""
        return self.writes

    def is_default(self, value: Any) -> bool:
        """Whether a value is that of a call which does not say it."""
        return type(value) is type(self.default) and value == self.default

    def __str__(self) -> str:
        base = re.match(rf"{_COMPOUND.pattern}|\w+", self.type)
        assert base is not None
        text = f"{base[0]}{self.mark}{self.type[base.end() :]} {self.name}"
        if self.default is inspect.Parameter.empty:
            return text
        default = self.default
        if isinstance(default, str | rl.device):
            default = f'"{default}"'
        elif isinstance(default, rl.dtype):
            default = str(default).removeprefix("torch.")
        return f"{text}={default}"

    @property
    def default_value(self) -> Any:
        """The default, or None."""
        return self.default if self.has_default_value() else None

    def has_default_value(self) -> bool:
        """Whether there is a default."""
        return self.default is not inspect.Parameter.empty

    @property
    def kwarg_only(self) -> bool:
        """Whether it is given by name alone."""
        return self.keyword_only

    @property
    def alias_info(self) -> AliasInfo | None:
        """Whether the operator writes to it; None where nothing is said of its memory."""
        return AliasInfo(self.writes) if self.mark else None

    def accepts(self, value: Any) -> bool:
        """Whether a value is of the type."""
        if self.type.endswith("?"):
            if value is None:
                return True
            return Parameter(self.name, self.type[:-1]).accepts(value)
        if self.type.endswith("[]"):
            item = Parameter(self.name, self.type[:-2])
            return isinstance(value, (list, tuple)) and all(map(item.accepts, value))
        return isinstance(value, _CLASSES.get(self.type, object))


@dataclass(frozen=True)
class Schema:
    """A signature.

    Attributes:
        parameters: the arguments in order.
        returns: the types of the results.
        name: "namespace::name" of the operator, if there is one.
    """

    parameters: tuple[Parameter, ...]
    returns: tuple[str, ...]
    name: str = ""
    overload_name = ""

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """The arguments in order."""
        return self.parameters

    @property
    def is_mutable(self) -> bool:
        """Whether the operator writes to an argument."""
        return any(parameter.writes for parameter in self.parameters)

    def __str__(self) -> str:
        texts: list[str] = []
        for parameter in self.parameters:
            if parameter.keyword_only and "*" not in texts:
                texts.append("*")
            texts.append(str(parameter))
        result = self.returns[0] if len(self.returns) == 1 else f"({', '.join(self.returns)})"
        return f"{self.name}({', '.join(texts)}) -> {result}"

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Returns a value for each parameter.

        Raises:
            RuntimeError: if the values do not fit.
        """
        name = self.name
        places = [p for p in self.parameters if not p.keyword_only]
        if len(args) > len(places):
            raise RuntimeError(
                f"{name}() expected at most {len(places)} argument(s) but received {len(args)} "
                f"argument(s). Declaration: {self}"
            )
        given = {**{p.name: value for p, value in zip(places, args, strict=False)}}
        for key, value in kwargs.items():
            if key in given or all(key != p.name for p in self.parameters):
                problem = "got twice the" if key in given else "has no"
                raise RuntimeError(f"{name}() {problem} argument '{key}'. Declaration: {self}")
            given[key] = value
        values = []
        for place, parameter in enumerate(self.parameters):
            value = given.get(parameter.name, parameter.default)
            if value is inspect.Parameter.empty:
                raise RuntimeError(
                    f"{name}() is missing value for argument '{parameter.name}'. "
                    f"Declaration: {self}"
                )
            if not parameter.accepts(value):
                raise RuntimeError(
                    f"{name}() Expected a value of type '{parameter.type}' for argument "
                    f"'{parameter.name}' but instead found type '{type(value).__name__}'. "
                    f"Position: {place}. Declaration: {self}"
                )
            values.append(value)
        return values


# Reading

_PARAMETER = re.compile(
    rf"({_COMPOUND.pattern}|\w+)"
    r"(\(\w*!?\s*(?:->\s*\w+)?\)|!)?((?:\[\d*\]|\?)*)\s+(\w+)(?:\s*=\s*(.+))?"
)


def parse(text: str) -> Schema:
    """Returns the signature that a text says.

    Raises:
        RuntimeError: if it says none.

    Example:
        >>> from rushlight.library._schema import parse
        >>> print(parse("(Tensor x, *, int[] sizes=[1, 2]) -> (Tensor, Tensor)"))
        (Tensor x, *, int[] sizes=[1, 2]) -> (Tensor, Tensor)
    """
    match = re.fullmatch(r"\s*\((.*)\)\s*->\s*(.+?)\s*", text, re.DOTALL)
    if match is None:
        raise RuntimeError(f"define: cannot read the schema {text!r}. Write (Tensor x) -> Tensor.")
    parameters: list[Parameter] = []
    keyword_only = False
    for part in _split(match[1]):
        if part == "*":
            keyword_only = True
            continue
        found = _PARAMETER.fullmatch(part)
        if found is None:
            raise RuntimeError(f"define: cannot read {part!r} in the schema {text!r}.")
        base, mark, suffix, name, default = found.groups()
        mark = f"(a{len(parameters)}!)" if mark == "!" else mark or ""
        _check_type(base, text)
        value = inspect.Parameter.empty if default is None else _constant(base, default)
        suffix = re.sub(r"\[\d+\]", "[]", suffix)
        parameters.append(Parameter(name, base + suffix, value, "!" in mark, keyword_only, mark))
    returns = match[2].strip()
    inside = _split(returns[1:-1]) if returns.startswith("(") else [returns]
    kinds = tuple(
        found[0] if (found := _COMPOUND.match(part)) else re.sub(r"\(\w*!?\)", "", part).split()[0]
        for part in inside
    )
    for kind in kinds:
        _check_type(kind.rstrip("[]?0123456789"), text)
    return Schema(tuple(parameters), kinds)


def _check_type(base: str, text: str) -> None:
    if _COMPOUND.fullmatch(base):
        for part in re.findall(r"\w+", base.removeprefix("Dict")):
            _check_type(part, text)
    elif base not in _TYPES:
        raise RuntimeError(f"define: unknown type specifier {base!r} in the schema {text!r}.")


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _constant(base: str, text: str) -> Any:
    """The default that a text says for a type."""
    if base == "ScalarType" and isinstance(getattr(rl, text, None), rl.dtype):
        return getattr(rl, text)
    if base == "Device" and text != "None":
        return rl.device(text.strip("'\""))
    names = {"None": None, "True": True, "False": False, "inf": float("inf")}
    if text in names:
        return names[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise RuntimeError(f"define: cannot read the default {text!r}.") from None


# Inferring


def infer(function: Callable[..., Any], mutates_args: str | Iterable[str]) -> Schema:
    """Returns the signature that a function's annotations say.

    Args:
        function: has an annotation for each parameter and the result.
        mutates_args: the names of the arguments that it writes to, or "unknown".

    Raises:
        ValueError: if an annotation is missing or has no type in schemas.
    """
    signature = inspect.signature(function, eval_str=True)
    where = f"Got func with signature {signature}"
    unknown = mutates_args == "unknown"
    if isinstance(mutates_args, str) and not unknown:
        raise ValueError(
            "infer_schema(func): mutates_args must be a sequence of names or the string 'unknown', "
            f"not {mutates_args!r}."
        )
    written = set() if unknown else set(mutates_args)
    parameters = []
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ValueError(
                f"infer_schema(func): we do not support positional-only args, varargs, or "
                f"varkwargs. {where}"
            )
        if parameter.annotation is inspect.Parameter.empty:
            raise ValueError(
                f"infer_schema(func): Parameter {name} must have a type annotation. {where}"
            )
        kind = _type_of(parameter.annotation)
        if kind is None:
            raise ValueError(
                f"infer_schema(func): Parameter {name} has unsupported type "
                f"{parameter.annotation}. Use Tensor, int, float, bool, str, dtype, device, and "
                f"lists and optionals of them. {where}"
            )
        writes = name in written or (unknown and kind.startswith("Tensor"))
        mark = f"(a{len(parameters)}!)" if writes else ""
        keyword_only = parameter.kind is parameter.KEYWORD_ONLY
        parameters.append(Parameter(name, kind, parameter.default, writes, keyword_only, mark))
    missing = written - signature.parameters.keys()
    if missing:
        raise ValueError(
            f"infer_schema(func): {missing} in mutates_args were not found in the custom op's "
            "signature. mutates_args should contain the names of all args that the custom op "
            f"mutates, or just the string 'unknown' if you don't know. {where}"
        )
    return Schema(tuple(parameters), _returns_of(signature.return_annotation, where))


def _type_of(annotation: Any) -> str | None:
    """The type in a schema for an annotation, None if there is none."""
    if annotation in _NAMES:
        return _NAMES[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType) and type(None) in arguments:
        rest = tuple(a for a in arguments if a is not type(None))
        inner = _type_of(rest[0] if len(rest) == 1 else typing.Union[rest])  # noqa: UP007
        return None if inner is None else f"{inner}?"
    if origin in (list, collections.abc.Sequence) and len(arguments) == 1:
        inner = _type_of(arguments[0])
        return None if inner is None else f"{inner}[]"
    return None


def _returns_of(annotation: Any, where: str) -> tuple[str, ...]:
    if annotation is None:
        return ()
    if annotation is inspect.Signature.empty:
        raise ValueError(f"infer_schema(func): No return type annotation was provided. {where}")
    several = typing.get_origin(annotation) is tuple
    kinds = [_type_of(a) for a in (typing.get_args(annotation) if several else [annotation])]
    if None in kinds:
        raise ValueError(
            f"infer_schema(func): Return has unsupported type {annotation}. Return tensors, "
            f"numbers, a list of tensors or a tuple of these. {where}"
        )
    return tuple(kind for kind in kinds if kind is not None)
