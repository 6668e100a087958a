"""The keywords with which modules make their tensors."""

from __future__ import annotations

from typing import Any

_KEYS = ("device", "dtype", "memory_format")


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Returns the keywords for functions such as empty from those of a module.

    Args:
        kwargs: device, dtype and memory_format, by themselves or in a dict "factory_kwargs", which
            serves where a module has an argument of such a name.

    Raises:
        TypeError: if there are others, or one is given in both ways.

    Example:
        >>> torch.nn.factory_kwargs({"factory_kwargs": {"device": "cpu"}})
        {'device': 'cpu'}
    """
    if kwargs is None:
        return {}
    unexpected = kwargs.keys() - {*_KEYS, "factory_kwargs"}
    if unexpected:
        raise TypeError(f"factory_kwargs: unexpected kwargs {unexpected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for key in _KEYS:
        if key not in kwargs:
            continue
        if key in result:
            raise TypeError(
                f"factory_kwargs: {key} specified twice, in **kwargs and in factory_kwargs"
            )
        result[key] = kwargs[key]
    return result
