"""Whether a profile is being made, and names of methods in it.

Apart from the profiler itself, which programs without one need not import.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

is_profiling = False


def shown_as(name: str) -> Callable[[F], F]:
    """Returns a decorator of methods, whose calls get a name in the profile.

    Args:
        name: what is shown, with {} for the name of the object's class.
    """

    def decorate(method: F) -> F:
        @functools.wraps(method)
        def call(self: object, *args: Any, **kwargs: Any) -> Any:
            if not is_profiling:
                return method(self, *args, **kwargs)
            from rushlight.profiler import record_function

            with record_function(name.format(type(self).__name__)):
                return method(self, *args, **kwargs)

        return call  # pyright: ignore[reportReturnType]

    return decorate
