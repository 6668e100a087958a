"""The arguments of calls in one form: by name, with the defaults filled in.

Owns the signatures of ops in inspect's terms, and which form of an op a call in a graph means. What
a call runs is decided elsewhere, by the values: a graph has only nodes in their places.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from numbers import Number
from types import FunctionType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import rushlight as rl
from rushlight import _C, _signatures
from rushlight._op_overload import OpOverload

__all__ = [
    "ArgsKwargsPair",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]

# By the types of arguments in schemas, see core/base/schema.h.
_TYPES: dict[str, Any] = {
    "Tensor": rl.Tensor,
    "Tensor!": rl.Tensor,
    "Tensor[]": list[rl.Tensor],
    "Tensor?[]": list[rl.Tensor | None],
    "int": int,
    "int[]": list[int],
    "float": float,
    "bool": bool,
    "str": str,
    "Scalar": Number,
    "dtype": rl.dtype,
    "device": rl.device,
    "memory_format": rl.memory_format,
    "Generator": rl.Generator,
}


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def get_signature_for_torch_op(op: Callable[..., Any]) -> list[inspect.Signature] | None:
    """Returns the signature of each form of an op, or None for other functions.

    Example:
        >>> from rushlight.fx.operator_schemas import get_signature_for_torch_op
        >>> list(get_signature_for_torch_op(torch.flatten)[0].parameters)
        ['input', 'start_dim', 'end_dim']
    """
    if not isinstance(op, type(rl.add)):
        return None
    home = op.__module__.removeprefix("rushlight").removeprefix(".") or "torch"
    return [
        _signature(row["args"])
        for row in _C._op_table()
        if row["name"] == op.__name__ and home in row["home"].split()
    ]


def _signature(args: list[dict[str, Any]]) -> inspect.Signature:
    parameter = inspect.Parameter
    return inspect.Signature(
        [
            parameter(
                arg["name"],
                parameter.KEYWORD_ONLY if arg["keyword_only"] else parameter.POSITIONAL_OR_KEYWORD,
                default=parameter.empty if arg["default"] is None else _default(arg["default"]),
                annotation=_annotation(arg["type"]),
            )
            for arg in args
        ]
    )


def _annotation(kind: str) -> Any:
    return _TYPES[kind[:-1]] | None if kind.endswith("?") else _TYPES[kind]


def _default(text: str) -> Any:
    from ast import literal_eval

    try:
        return literal_eval(text)
    except (SyntaxError, ValueError):  # inf
        return float(text)


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Returns whether a parameter takes arguments of a type; one int stands for a list of them.

    Example:
        >>> torch.fx.operator_schemas.type_matches(list[int], int)
        True
    """
    if signature_type == argument_type:
        return True
    if get_origin(signature_type) in (Union, UnionType):
        return any(type_matches(choice, argument_type) for choice in get_args(signature_type))
    if get_origin(signature_type) is list:
        (element,) = get_args(signature_type)
        if get_origin(argument_type) in (list, tuple):
            given = [each for each in get_args(argument_type) if each is not Ellipsis]
            return all(type_matches(element, each) for each in given)
        return element is int and argument_type is int
    both_classes = inspect.isclass(signature_type) and inspect.isclass(argument_type)
    return both_classes and issubclass(argument_type, signature_type)


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Returns the arguments of a call with defaults filled in, or None where none are known.

    Args:
        target: an op, an operator of torch.ops, or a function written in Python.
        args: its arguments.
        kwargs: its arguments by name.
        arg_types: types of args, which decide where several forms of an op could be meant.
        kwarg_types: the same of kwargs.
        normalize_to_only_use_kwargs: gives all arguments by name; else those that args has stay
            where they are.

    Raises:
        RuntimeError: if several forms of an op could be meant.
        TypeError: if a function written in Python does not take the arguments.

    Example:
        >>> torch.fx.operator_schemas.normalize_function(torch.flatten, (3,), {"end_dim": 1})
        ArgsKwargsPair(args=(3,), kwargs={'start_dim': 0, 'end_dim': 1})
    """
    kwargs = kwargs or {}
    if isinstance(target, OpOverload):
        target = target.op
    signatures = get_signature_for_torch_op(target)
    if signatures is not None:
        signatures = [one for one in signatures if _takes(one, args, kwargs)]
        if len(signatures) > 1 and arg_types is not None:
            types = (arg_types, kwarg_types or {})
            signatures = [one for one in signatures if _takes_types(one, *types)]
        if len(signatures) > 1:
            raise RuntimeError(
                f"normalize_function: {len(signatures)} forms of {target.__name__} take these "
                "arguments. Pass arg_types."
            )
    elif isinstance(target, FunctionType):
        signatures = [_signatures.signature(inspect.unwrap(target))]
    if not signatures:
        return None
    return _normalized(signatures[0], args, kwargs, normalize_to_only_use_kwargs)


def normalize_module(
    root: rl.nn.Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Returns the arguments of a call of a submodule in the same form, or None.

    Args:
        root: the module that the path begins at.
        target: the path of a module of torch.nn; for others the result is None.
        args: its arguments.
        kwargs: its arguments by name.
        normalize_to_only_use_kwargs: gives all arguments by name.

    Raises:
        RuntimeError: if there is no such submodule.
    """
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"normalize_module: root has no submodule {target!r}. Pass the module that was traced."
        ) from error
    if type(module) is not getattr(rl.nn, type(module).__name__, None):
        return None
    signature = _signatures.signature(inspect.unwrap(module.forward))
    return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def _takes(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _takes_types(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    if not _takes(signature, args, kwargs):
        return False
    given = signature.bind(*args, **kwargs).arguments
    return all(type_matches(signature.parameters[n].annotation, t) for n, t in given.items())


def _normalized(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], only_kwargs: bool
) -> ArgsKwargsPair | None:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(parameter.kind not in named for parameter in signature.parameters.values()):
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    count = 0 if only_kwargs else len(args)
    arguments = list(bound.arguments.items())
    return ArgsKwargsPair(tuple(value for _, value in arguments[:count]), dict(arguments[count:]))
