"""The lists and dicts among a node's arguments, which change only with all of the arguments."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

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
