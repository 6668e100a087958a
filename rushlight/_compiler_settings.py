"""Settings of the insides of PyTorch's compiler: programs set and read them, and nothing changes.

Owns what such a module of settings can do; the modules are where PyTorch has them. What was not set
raises AttributeError, so that programs which ask hasattr go on as without it.
"""

from __future__ import annotations

import contextlib
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


class Settings(ModuleType):
    """A module, or a group inside of one, whose attributes are settings."""

    @contextlib.contextmanager
    def patch(
        self, names: str | Mapping[str, Any] | None = None, value: Any = None, **settings: Any
    ) -> Iterator[None]:
        """Sets settings inside a with block or a function.

        Args:
            names: the name of one setting, or several with their values.
            value: that of the one.
            settings: more of them.
        """
        before = dict(self.__dict__)
        self.__dict__.update({names: value} if isinstance(names, str) else names or {})
        self.__dict__.update(settings)
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(before)
