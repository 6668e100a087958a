"""Images and videos: data sets, models, detection's ops and transforms, as in torchvision.

`import rushlight.vision as torchvision` runs ordinary torchvision programs. Submodules are imported
when first used; reading and writing images needs Pillow (`pip install rushlight[vision]`).
"""

from __future__ import annotations

from rushlight import __version__, _later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.vision import datasets, io, models, ops, transforms, tv_tensors, utils

__all__ = [
    "__version__",
    "datasets",
    "disable_beta_transforms_warning",
    "get_image_backend",
    "get_video_backend",
    "io",
    "models",
    "ops",
    "set_image_backend",
    "set_video_backend",
    "transforms",
    "tv_tensors",
    "utils",
]

_LATER = ("datasets", "io", "models", "ops", "transforms", "tv_tensors", "utils")


def get_image_backend() -> str:
    """Return the name of the library that opens images: "PIL"."""
    return "PIL"


def set_image_backend(backend: str) -> None:
    """Choose the library that opens images; Pillow is the only one.

    Raises:
        ValueError: For any other name than "PIL".
    """
    if backend != "PIL":
        raise ValueError(f"set_image_backend: got {backend!r}. Pillow opens images; pass 'PIL'.")


def get_video_backend() -> str:
    """Return the name of the library that reads videos: "pyav"."""
    return "pyav"


def set_video_backend(backend: str) -> None:
    """Do nothing: PyAV reads videos, as in torchvision, where the choice is gone too."""


def disable_beta_transforms_warning() -> None:
    """Do nothing: transforms.v2 warns of nothing, and old programs still call this."""


__getattr__ = _later.imports(__name__, _LATER)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
