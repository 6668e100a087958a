"""Library: operators of a namespace that are added by their schemas, and leave together."""

from __future__ import annotations

import contextlib
import functools
import re
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.library._operator import (
    Operator,
    OperatorPacket,
    operator_of,
    operators,
    packets,
)
from rushlight.library._schema import parse

__all__ = ["Library", "add_operator", "define"]

_NAME = re.compile(r"\w+")
_defined_namespaces: set[str] = set()
# Kernels by the names of operators that are not defined yet.
_early_kernels: dict[str, list[Callable[[], None]]] = {}

# Where kernels that Library.impl registers run.
_KEYS = {
    "CPU": "cpu",
    "CUDA": "cuda",
    "Meta": "meta",
    "HPU": "hpu",  # devices that no tensor here is on: their kernels wait in vain
    "MPS": "mps",
    "MTIA": "mtia",
    "PrivateUse1": "privateuseone",
    "XPU": "xpu",
    "CompositeExplicitAutograd": "",
    "CompositeImplicitAutograd": None,
    "Autograd": None,
    "AutogradCPU": None,
    "AutogradCUDA": None,
    "": None,
}


def add_operator(qualname: str, schema: str, tags: Any = ()) -> Operator:
    """Adds an operator."""
    parts = qualname.split("::")
    if len(parts) != 2 or not all(_NAME.fullmatch(part.split(".")[0]) for part in parts):
        raise ValueError(
            f"custom_op: the name is {qualname!r}. It must be of the form namespace::name."
        )
    operators[qualname] = op = Operator(qualname, parse(schema))
    packet, _, overload = qualname.partition(".")
    if overload:
        packets.setdefault(packet, OperatorPacket(packet))
    op.tags = [*tags] if isinstance(tags, (list, tuple)) else [] if tags is None else [tags]
    return op


def define(
    qualname: str | Library,
    schema: str,
    *,
    lib: Library | None = None,
    tags: Any = (),
    alias_analysis: str = "",
) -> Any:
    """Adds an operator by its schema.

    Args:
        qualname: "namespace::name", or "namespace::name.overload" for one of several; or a Library,
            and then schema begins with the name, and a decorator is returned for the function whose
            ops the operator is made of.
        schema: "(Tensor x, int n=2) -> Tensor".
        lib: what the operator leaves with.
        tags: torch.Tag or several, which its `tags` are.
        alias_analysis: has no effect.

    Example:
        >>> torch.library.define("docs::twice", "(Tensor x) -> Tensor")
        >>> @torch.library.impl("docs::twice", "default")
        ... def twice(x):
        ...     return 2 * x
        >>> torch.ops.docs.twice(torch.ones(2))
        tensor([2., 2.])
    """
    if isinstance(qualname, Library):
        name, library = qualname.define(schema, tags=tags), qualname

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, function)
            return function

        return register
    if qualname in operators:
        raise RuntimeError(
            f"Tried to register an operator ({qualname}{schema}) with the same name and overload "
            "name multiple times."
        )
    add_operator(qualname, schema, tags)
    if lib is not None:
        lib._names.append(qualname)
    for register_early in _early_kernels.pop(qualname, ()):
        register_early()
    return None


def is_key(name: object) -> bool:
    """Whether a name is that of a place where kernels run: CPU, not cpu."""
    return name in _KEYS and name != ""


def set_kernel(op: Operator, key: str, fn: Callable[..., Any]) -> None:
    """Registers a kernel by the name of such a place."""
    device = _KEYS[key]
    if device is None:
        op.composite = fn
    elif device == "meta":
        op.fake = fn
    else:
        op.kernels[device] = fn


class Library:
    """Adds operators of a namespace by schemas; they leave when it does.

    Args:
        ns: the namespace.
        kind: "DEF" for a new namespace, "FRAGMENT" for one that others add to as well, "IMPL" for
            kernels alone.
        dispatch_key: where kernels run that are registered without one.

    Raises:
        ValueError: for another kind, or the namespace "prim".
        RuntimeError: if DEF is said twice of a namespace.

    Example:
        >>> library = torch.library.Library("docs_library", "DEF")
        >>> library.define("scale(Tensor x, float factor=2.0) -> Tensor")
        'scale'
        >>> library.impl("scale", lambda x, factor=2.0: x * factor, "CPU")
        >>> torch.ops.docs_library.scale(torch.ones(2), factor=3.0)
        tensor([3., 3.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim" and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Choose another name.")
        if kind == "DEF":
            if ns in _defined_namespaces:
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; "
                    'please put all of your definitions in a single Library, or use "FRAGMENT".'
                )
            _defined_namespaces.add(ns)
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._names: list[str] = []
        self._end = weakref.finalize(self, _forget, self._names, ns if kind == "DEF" else None)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Adds an operator; returns its name.

        Args:
            schema: "name(Tensor x, int n=2) -> Tensor", the name with or without the namespace.
            alias_analysis: has no effect.
            tags: torch.Tag or several, which its `tags` are.

        Raises:
            RuntimeError: if there is one of the name.
            ValueError: if it is of another namespace.
        """
        name, bracket, rest = schema.partition("(")
        name = name.strip().removeprefix(f"{self.ns}::")
        define(f"{self.ns}::{name}", bracket + rest, lib=self, tags=tags)
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Registers a kernel.

        Args:
            op_name: the operator or its name, without the namespace.
            fn: computes its results.
            dispatch_key: "CPU", "CUDA" or "Meta" for a device, "CompositeExplicitAutograd" for all,
                and "CompositeImplicitAutograd", which none says too, for a function whose ops
                are recorded one by one.
            with_keyset: must be False.
            allow_override: has no effect.

        Raises:
            ValueError: for another key.
            RuntimeError: if there is no such operator.
        """
        key = dispatch_key or self.dispatch_key
        if key not in _KEYS or with_keyset:
            raise ValueError(
                f"impl: there is no dispatch key {key!r} here. Use one of "
                f"{', '.join(filter(None, _KEYS))}."
            )
        name = op_name if isinstance(op_name, str) else operator_of(op_name)._qualname
        set_kernel(operator_of(name if "::" in name else f"{self.ns}::{name}"), key, fn)

    def _impl_when_defined(self, op_name: str, fn: Callable[..., Any], key: str) -> None:
        """Registers a kernel of C++, whose files are loaded in any order, now or after define()."""
        qualname = f"{self.ns}::{op_name}"
        if qualname in operators:
            self.impl(op_name, fn, key)
        else:
            early = _early_kernels.setdefault(qualname, [])
            early.append(functools.partial(self.impl, op_name, fn, key))

    def _destroy(self) -> None:
        """Takes the operators away."""
        self._end()


def _forget(names: list[str], namespace: str | None) -> None:
    for name in names:
        operators.pop(name, None)
        packet = name.partition(".")[0]
        if packet in packets and not packets[packet].overloads():
            del packets[packet]
    if namespace is not None:
        _defined_namespaces.discard(namespace)


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A Library that ends with a with block."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()
