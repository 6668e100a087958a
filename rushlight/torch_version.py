"""Versions that compare as versions, with texts and tuples of numbers."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

__all__ = ["TorchVersion"]

_FORM = re.compile(r"v?(\d+(?:\.\d+)*)([^+]*)(?:\+(.*))?")


def _order(version: Any) -> tuple[list[int], bool, str] | None:
    """What versions are ordered by: numbers, whether it is a release, what stands after a +."""
    text = version if isinstance(version, str) else ".".join(map(str, version))
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    numbers, stage, local = match.groups()
    release = [int(number) for number in numbers.split(".")]
    while release and release[-1] == 0:
        release.pop()
    return release, not stage, local or ""


def _comparison(name: str) -> Callable[[Any, Any], bool]:
    def compare(self: Any, other: Any) -> bool:
        if not isinstance(other, (str, tuple, list)):
            return NotImplemented
        mine, its = _order(self), _order(other)
        if mine is None or its is None:  # a text that is no version is a text
            return getattr(str, name)(self, other)
        return getattr(operator, name)(mine, its)

    return compare


class TorchVersion(str):
    """A version, which is a text, but compares by its numbers.

    Args:
        version: the text, "2.13.0" for one. It is compared with another, with a tuple of numbers,
            or with any other text, as texts are.

    Example:
        >>> version = torch.torch_version.TorchVersion("2.13.0")
        >>> version >= (2, 2), version < "2.4", version
        (True, False, '2.13.0')
    """

    __slots__ = ()
    __hash__ = str.__hash__
    __eq__ = _comparison("__eq__")
    __ne__ = _comparison("__ne__")
    __lt__ = _comparison("__lt__")
    __le__ = _comparison("__le__")
    __gt__ = _comparison("__gt__")
    __ge__ = _comparison("__ge__")
