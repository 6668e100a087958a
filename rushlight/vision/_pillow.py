"""Pillow, which opens, draws and transforms images: found when it is first needed.

Nothing here imports it for a question; what is not loaded cannot have made an image.
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeGuard

    from PIL.Image import Image


def is_pil_image(value: object) -> TypeGuard[Image]:
    """Whether a value is an image of Pillow."""
    module: Any = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)


def pillow(asking: str, module: str = "Image") -> Any:
    """A module of Pillow.

    Args:
        asking: the function that needs it, for the message.
        module: the name of the module.

    Raises:
        ImportError: if Pillow is not installed, with how to install it.
    """
    try:
        return import_module(f"PIL.{module}")
    except ImportError as error:
        raise ImportError(
            f"{asking}: Pillow is not installed. Images are opened and saved by it. "
            "Install it with `pip install pillow`."
        ) from error
