"""Modules of devices that Rushlight does not run on: torch.xpu, torch.mps, torch.mtia.

Programs ask is_available and call the rest where it says True, but all names are looked up by some.
They do what PyTorch's do without the device: counts are 0, what must not fail does nothing, and
everything else raises an error.
"""

from __future__ import annotations

import functools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def attribute_of(
    module: str, answers: dict[str, Any], refused: str, classes: str = "", error: Any = RuntimeError
) -> Callable[[str], Any]:
    """Returns the __getattr__ of a module.

    Args:
        module: its name, such as "xpu".
        answers: what functions return, by name, of the kinds that are made anew for each call.
        refused: names of functions that raise.
        classes: names of classes that cannot be made.
        error: what is raised.
    """

    def refuse(name: str) -> Any:
        raise error(
            f"{module}.{name}: Rushlight runs without {module.upper()} backend. Ask "
            f"{module}.is_available() first."
        )

    def get(name: str) -> Any:
        if name in answers:
            kind = answers[name]

            def function(*args: Any, **kwargs: Any) -> Any:
                return kind() if isinstance(kind, type) else kind
        elif name in refused.split():

            def function(*args: Any, **kwargs: Any) -> Any:
                return refuse(name)
        elif name in classes.split():

            def made(cls: type, *args: Any, **kwargs: Any) -> Any:
                return refuse(name)

            return type(name, (), {"__new__": made, "__module__": f"rushlight.{module}"})
        else:
            raise AttributeError(f"module 'rushlight.{module}' has no attribute '{name}'")
        function.__name__ = function.__qualname__ = name
        function.__module__ = f"rushlight.{module}"
        function.__doc__ = f"Stands for PyTorch's {module}.{name} where there is no such device."
        return function

    return functools.cache(get)
