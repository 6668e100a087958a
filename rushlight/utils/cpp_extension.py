"""The names by which programs build extensions in C++ and CUDA, none of which can be built.

They are compiled against PyTorch's headers, and Rushlight has others. Libraries import these names
early and go another way when the build fails, as it does here at once.
"""

from __future__ import annotations

import shutil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

__all__ = [
    "CUDA_HOME",
    "ROCM_HOME",
    "BuildExtension",
    "CUDAExtension",
    "CppExtension",
    "is_ninja_available",
    "load",
    "load_inline",
]

CUDA_HOME: str | None = None  # where a compiler of CUDA is
ROCM_HOME: str | None = None


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(
        f"{name}: extensions in C++ and CUDA are built for PyTorch. Use the way without, or write "
        "the operator in Python, with torch.library."
    )


def load(name: str, *args: Any, **options: Any) -> NoReturn:
    """Raises: there is nothing that an extension could be compiled against.

    Raises:
        RuntimeError: always, as PyTorch does when a build fails.
    """
    _refuse("load")


def load_inline(name: str, *args: Any, **options: Any) -> NoReturn:
    """Raises, as load does.

    Raises:
        RuntimeError: always.
    """
    _refuse("load_inline")


class BuildExtension:
    """A command of setuptools; making one raises, as load does."""

    def __init__(self, *args: Any, **options: Any) -> None:
        _refuse("BuildExtension")

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """Returns the class."""
        return cls


def CppExtension(name: str, *args: Any, **options: Any) -> NoReturn:
    """Raises, as load does.

    Raises:
        RuntimeError: always.
    """
    _refuse("CppExtension")


def CUDAExtension(name: str, *args: Any, **options: Any) -> NoReturn:
    """Raises, as load does.

    Raises:
        RuntimeError: always.
    """
    _refuse("CUDAExtension")


def is_ninja_available() -> bool:
    """Returns whether the program ninja is there."""
    return shutil.which("ninja") is not None
