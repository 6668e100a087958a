"""torch.ops.aten.add and torch.ops.aten.add.Tensor: operators by PyTorch's names.

An overload is one object, so that programs compare it and keep it in tables; called, it is a
function of this package. It equals that function too: a table of overloads serves for the functions
that tools of this package name.
"""

from __future__ import annotations

from dataclasses import dataclass

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = ["OpOverload", "OpOverloadPacket"]


@dataclass(frozen=True)
class Argument:
    """A parameter of an operator.

    Attributes:
        name: of the parameter.
        is_write: whether the operator writes into what is passed.
        kwarg_only: whether it is passed by its name.
        default: what is used where nothing is passed, as text; None if something must be.
    """

    name: str
    is_write: bool = False
    kwarg_only: bool = False
    default: str | None = None

    def has_default_value(self) -> bool:
        """Returns whether it may be left out."""
        return self.default is not None


@dataclass(frozen=True)
class Schema:
    """What programs ask about an operator's signature.

    Attributes:
        name: "aten::add".
        overload_name: "Tensor", empty for "default".
        arguments: the parameters, none where they are not known.
        is_mutable: whether the operator writes into an argument.
    """

    name: str
    overload_name: str
    arguments: tuple[Argument, ...]
    is_mutable: bool

    def __str__(self) -> str:
        dot = f".{self.overload_name}" if self.overload_name else ""
        names = ", ".join(argument.name for argument in self.arguments)
        return f"{self.name}{dot}({names})"


class OpOverload:
    """One overload of an operator.

    Args:
        packet: the operator.
        overload: "Tensor", "default", ...
        function: what it computes with.
    """

    def __init__(
        self, packet: OpOverloadPacket, overload: str, function: Callable[..., Any]
    ) -> None:
        self.overloadpacket = packet
        self._overloadname = overload
        self._opname: str = packet.__name__
        self.namespace: str = packet.namespace
        self._computes_with = function
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__qualname__ = self.__name__
        self.__module__ = f"rushlight.ops.{packet.namespace}"

    @property
    def _schema(self) -> Schema:
        """The signature, as far as it is known."""
        from rushlight._dispatch import arguments_of

        overload = "" if self._overloadname == "default" else self._overloadname
        name = f"{self.namespace}::{self._opname}"
        arguments = arguments_of(self._opname)
        is_mutable = overload == "out" or any(argument.is_write for argument in arguments)
        return Schema(name, overload, arguments, is_mutable)

    @property
    def is_view(self) -> bool:
        """Whether the result looks into the memory of the first argument."""
        from rushlight._dispatch import is_view_name

        return is_view_name(self._opname)

    @property
    def op(self) -> Callable[..., Any]:
        """The function that it computes with."""
        return self._computes_with

    @property
    def tags(self) -> list[Any]:
        """What is said of the operator by torch.Tag: whether its results depend on values."""
        from rushlight._dispatch import tags_of

        return tags_of(self._opname)

    def name(self) -> str:
        """Returns the name as the dispatcher of PyTorch writes it: aten::add.Tensor."""
        dot = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self._opname}{dot}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _C._argument_takes_over(args, kwargs):
            return _C._call_taken_over(self, args, kwargs)
        return self._computes_with(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, OpOverload):
            return self is other
        return self._computes_with == other

    def __hash__(self) -> int:
        return hash(self._computes_with)

    def __deepcopy__(self, memo: dict[int, Any]) -> OpOverload:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _find, (self.namespace, self._opname, self._overloadname)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """All overloads of an operator; called, it is the function that they share.

    Args:
        namespace: "aten", or another one of torch.ops.
        name: the operator's.
        function: what it computes with.
    """

    def __init__(self, namespace: str, name: str, function: Callable[..., Any]) -> None:
        self.namespace = namespace
        self.__name__ = name
        self.__module__ = f"rushlight.ops.{namespace}"
        self._computes_with = function

    def overload(self, name: str) -> OpOverload:
        """Returns one of the overloads; what they are called is not checked."""
        found = self.__dict__.get(name)
        if not isinstance(found, OpOverload):
            found = self.__dict__[name] = OpOverload(self, name, self._computes_with)
        return found

    def overloads(self) -> list[str]:
        """Returns the names of the overloads that were asked for until now."""
        return list(self)

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("_"):
            raise AttributeError(overload)
        return self.overload(overload)

    def __iter__(self) -> Iterator[str]:
        return (key for key, value in vars(self).items() if isinstance(value, OpOverload))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _C._argument_takes_over(args, kwargs):
            return _C._call_taken_over(self, args, kwargs)
        return self._computes_with(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> OpOverloadPacket:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _find, (self.namespace, self.__name__)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


def _find(namespace: str, name: str, overload: str | None = None) -> OpOverload | OpOverloadPacket:
    """The operator that was pickled, or one of its overloads."""
    from rushlight import ops

    packet = getattr(getattr(ops, namespace), name)
    return packet if overload is None else packet.overload(overload)
