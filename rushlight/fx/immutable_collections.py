"""The lists and dicts among a node's arguments, which change only with all of the arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from rushlight.utils._pytree import SUPPORTED_NODES, register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. The arguments of a "
        "torch.fx.Node know which nodes use which. Make a changed copy and assign it: "
        "node.args = new_args."
    )


class immutable_list(list):
    """A list that refuses to be changed.

    Example:
        >>> torch.fx.immutable_collections.immutable_list([1, 2]) == [1, 2]
        True
    """

    __delitem__ = __iadd__ = __imul__ = __setitem__ = append = clear = extend = _refuse
    insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """A dict that refuses to be changed.

    Example:
        >>> torch.fx.immutable_collections.immutable_dict(a=1)
        {'a': 1}
    """

    __delitem__ = __ior__ = __setitem__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self.items()),)


def _unflatten_list(values: Iterable[Any], context: None) -> immutable_list:
    return immutable_list(values)


def _unflatten_dict(values: Iterable[Any], context: list[Any]) -> immutable_dict:
    return immutable_dict(zip(context, values, strict=True))


for _kind, _base, _unflatten in (
    (immutable_list, list, _unflatten_list),
    (immutable_dict, dict, _unflatten_dict),
):
    register_pytree_node(
        _kind,
        SUPPORTED_NODES[_base].flatten_fn,
        _unflatten,
        serialized_type_name=f"torch.fx.immutable_collections.{_kind.__name__}",
        flatten_with_keys_fn=SUPPORTED_NODES[_base].flatten_with_keys_fn,
    )
