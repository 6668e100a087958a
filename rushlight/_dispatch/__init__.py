"""What handlers of __torch_dispatch__ are told of a call: PyTorch's name of the op, its arguments.

The core passes the row of its table and the arguments in the order of the row; Note [Dispatch to
Python] in core/tensor/dispatch.h says when. Arguments that are as the default says are left out.
"""

from __future__ import annotations

from ast import literal_eval
from functools import cache

from rushlight import _C
from rushlight._dispatch.kernels import kernel_of
from rushlight._dispatch.names import Call, overload_of, renamed
from rushlight._op_overload import Argument, OpOverload, OpOverloadPacket
from rushlight._tag import Tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PREFIXES = {"linalg": "linalg_", "fft": "fft_", "special": "special_"}
_NOTHING = object()


class _Row:
    """What is known of a row of the table, in one form."""

    def __init__(self, row: dict[str, Any], index: int, form: str) -> None:
        self.name: str = row["name"]
        self.overload: str = row["overload"]
        self.index = index
        self.form = form
        self.home: str = row["home"].split()[0]
        self.is_internal = self.home in ("core", "private")
        self.is_view: bool = row["view"] and form == ""
        self.draws: bool = row["draws"]
        self.public_name = _PREFIXES.get(self.home, "") + self.name + ("_" if form == "_" else "")
        self.kernel = kernel_of(self.name, index) if self.home == "core" else None
        positional = [arg for arg in row["args"] if not arg["keyword_only"]]
        self.defaults = [_value(arg["default"]) for arg in positional]
        self.named_defaults = {
            arg["name"]: _value(arg["default"]) for arg in row["args"] if arg["keyword_only"]
        }
        self.arguments = tuple(
            Argument(
                arg["name"],
                (form == "_" or row["args"][0]["type"] == "Tensor!") and place == 0,
                arg["keyword_only"],
                arg["default"],
            )
            for place, arg in enumerate(row["args"])
        )
        self.function: Callable[..., Any] = self.kernel or _C._op_of_row(
            index, "_" if form == "_" else ""
        )
        self.has_inplace_flag = any(arg["name"] == "inplace" for arg in positional)

    def trimmed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """The arguments without those that say what the default says."""
        count = len(args)
        if self.has_inplace_flag:  # the last one; the form says it
            count -= 1
        while count and _is_same(args[count - 1], self.defaults[count - 1]):
            count -= 1
        named = {
            key: value
            for key, value in kwargs.items()
            if not _is_same(value, self.named_defaults.get(key, _NOTHING))
        }
        return Call(self.name, args[:count], named)


@cache
def _rows() -> list[dict[str, Any]]:
    return _C._op_table()


@cache
def _row(index: int, form: str) -> _Row:
    return _Row(_rows()[index], index, form)


def _value(text: str | None) -> Any:
    """A default from its text in a schema."""
    if text is None:
        return _NOTHING
    try:
        return literal_eval(text)
    except (SyntaxError, ValueError):
        return _NOTHING


def _is_same(value: Any, default: Any) -> bool:
    if isinstance(value, list) and not value and default is None:  # no dims are all of them
        return True
    if isinstance(value, list) and isinstance(default, (tuple, int)):
        return list(default) == value if isinstance(default, tuple) else {*value} == {default}
    if isinstance(value, bool) is not isinstance(default, bool):
        return False
    return value is default or (isinstance(value, (int, float, str)) and value == default)


def describe(
    index: int, form: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[OpOverload, tuple[Any, ...], dict[str, Any]]:
    """Returns the operator that a call is of, and its arguments.

    Args:
        index: the row of the op in the table.
        form: "", "_" in place, "out" with out= among the kwargs.
        args: the arguments that are not passed by name.
        kwargs: the others.
    """
    from rushlight import ops

    row = _row(index, form)
    if row.kernel is not None:
        row.kernel.note(args)
    call = row.trimmed(args, kwargs)
    other = renamed(call, args) if form == "" else None
    if other is not None:
        packet: OpOverloadPacket = getattr(getattr(ops, other.namespace), other.name)
        return packet.overload(other.overload), other.args, other.kwargs
    if row.is_internal:
        return _packet("rushlight", row).overload("default"), args, kwargs
    namespace = "torchvision" if row.home.startswith("vision") else "aten"
    overload = "out" if form == "out" else overload_of(row.name, row.overload, call)
    return _packet(namespace, row).overload(overload), call.args, call.kwargs


def method(name: str) -> OpOverload:
    """Returns the operator of a method that is no op of the table."""
    from rushlight import ops

    return getattr(ops.aten, name).default


@cache
def _packet(namespace: str, row: _Row) -> OpOverloadPacket:
    """The packet that the namespace has by the name of a row, or a new one that calls the row."""
    from rushlight import ops

    home = getattr(ops, namespace)
    found = getattr(home, row.public_name, None)
    if found is None:
        found = OpOverloadPacket(namespace, row.public_name, row.function)
        setattr(home, row.public_name, found)
    return found


def internal_packet(name: str) -> OpOverloadPacket | None:
    """torch.ops.rushlight.name: an op of the core; None if there is none of the name."""
    for index, row in enumerate(_rows()):
        if row["name"] == name:
            return OpOverloadPacket("rushlight", name, _row(index, "").function)
    return None


@cache
def _rows_by_name() -> dict[str, _Row]:
    """The rows by PyTorch's names of their ops, one for all overloads."""
    rows: dict[str, _Row] = {}
    for index, row in enumerate(_rows()):
        for form in ("", "_") if row["inplace"] else ("",):
            found = _row(index, form)
            rows.setdefault(found.public_name, found)
    return rows


def arguments_of(name: str) -> tuple[Argument, ...]:
    """Returns the parameters of an operator, none where they are not known."""
    row = _rows_by_name().get(name)
    return () if row is None else row.arguments


def is_view_name(name: str) -> bool:
    """Returns whether the results of an operator look into the memory of its first argument."""
    row = _rows_by_name().get(name)
    return name in _VIEWS or (row is not None and row.is_view)


def tags_of(name: str) -> list[Tag]:
    """Returns what is said of an operator: that it draws random numbers, or depends on values."""
    row = _rows_by_name().get(name)
    tags = [Tag.nondeterministic_seeded] if row is not None and row.draws else []
    if name in _READ_VALUES:
        tags.append(Tag.data_dependent_output)
    if name in _SIZED_BY_VALUES:
        tags.append(Tag.dynamic_output_shape)
    return tags


_READ_VALUES = {
    "_local_scalar_dense", "allclose", "equal", "is_nonzero", "item", "linspace", "logspace",
}  # fmt: skip
_SIZED_BY_VALUES = {
    "_to_layout", "_unique", "_unique_consecutive", "batched_nms", "bincount", "index",
    "masked_select", "nms", "nonzero", "one_hot", "repeat_interleave", "tensor_split", "where",
}  # fmt: skip

# Views that are made of others, or are no ops here.
_VIEWS = {
    "adjoint", "alias", "as_strided", "chunk", "detach", "diagonal", "expand_as", "movedim",
    "slice", "split", "swapaxes", "swapdims", "t", "unflatten", "view_as",
}  # fmt: skip
