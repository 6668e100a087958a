"""Folders of files with a class each, and how an image is read from a file.

Owns the walk over such folders, which other data sets use for theirs. Images are read whole and
their files closed; what cannot be read is named in the error.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from PIL import Image, UnidentifiedImageError

from rushlight.vision.datasets.vision import AnyPath, Transform, VisionDataset

__all__ = [
    "IMG_EXTENSIONS",
    "DatasetFolder",
    "ImageFolder",
    "default_loader",
    "find_classes",
    "has_file_allowed_extension",
    "is_image_file",
    "make_dataset",
    "pil_loader",
]

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def read_image(path: AnyPath, mode: str | None = None) -> Image.Image:
    """Reads an image with Pillow and closes its file.

    Args:
        path: the file.
        mode: what to convert the image to, such as "RGB" or "L"; by default it stays as it is.

    Raises:
        OSError: if there is no such file or it holds no whole image.
    """
    try:
        with Image.open(path) as image:
            image.load()
            return image if mode is None else image.convert(mode)
    except UnidentifiedImageError:
        raise  # names the file
    except (OSError, SyntaxError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise OSError(f"read_image: the image {path} is damaged: {error}.") from error


def pil_loader(path: AnyPath) -> Image.Image:
    """Returns the image in a file, in RGB.

    Args:
        path: file of any format that Pillow reads.

    Raises:
        OSError: if there is no such file or it holds no whole image.
    """
    return read_image(path, "RGB")


def default_loader(path: AnyPath) -> Any:
    """Returns the image in a file: what data sets call unless they are given another loader."""
    return pil_loader(path)


def has_file_allowed_extension(filename: str, extensions: str | tuple[str, ...]) -> bool:
    """Returns whether a name has one of these endings, in small or large letters.

    Example:
        >>> from rushlight.vision.datasets.folder import has_file_allowed_extension
        >>> has_file_allowed_extension("cat.JPG", (".png", ".jpg"))
        True
    """
    return filename.lower().endswith(
        extensions if isinstance(extensions, str) else tuple(extensions)
    )


def is_image_file(filename: str) -> bool:
    """Returns whether a name ends as those of images do: see IMG_EXTENSIONS."""
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def find_classes(directory: AnyPath) -> tuple[list[str], dict[str, int]]:
    """Returns the names of the folders in a folder, sorted, and the number of each.

    Raises:
        FileNotFoundError: if there are none.
    """
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
    return classes, {name: index for index, name in enumerate(classes)}


def make_dataset(
    directory: AnyPath,
    class_to_idx: dict[str, int] | None = None,
    extensions: str | tuple[str, ...] | None = None,
    is_valid_file: Callable[[str], bool] | None = None,
    allow_empty: bool = False,
) -> list[tuple[str, int]]:
    """Lists the files below a folder, which has one folder for each class.

    Args:
        directory: the folder.
        class_to_idx: number of each class, by default as in find_classes.
        extensions: endings of the files to list.
        is_valid_file: function of a path that says whether to list it; either this or
            `extensions`.
        allow_empty: whether a class may have no files.

    Returns:
        Pairs of a path and the number of its class, sorted by class and path.

    Raises:
        ValueError: if there are no classes, or not one of `extensions` and `is_valid_file`.
        FileNotFoundError: if a class has no files and that is not allowed.
    """
    directory = os.path.expanduser(directory)
    if class_to_idx is None:
        class_to_idx = find_classes(directory)[1]
    elif not class_to_idx:
        raise ValueError("'class_to_index' must have at least one entry to collect any samples.")
    if (extensions is None) == (is_valid_file is None):
        raise ValueError(
            "Both extensions and is_valid_file cannot be None or not None at the same time"
        )
    instances: list[tuple[str, int]] = []
    empty = []
    for name in sorted(class_to_idx):
        count = len(instances)
        for folder, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=True)):
            for path in (os.path.join(folder, file) for file in sorted(files)):
                if (
                    is_valid_file(path)
                    if is_valid_file is not None
                    else has_file_allowed_extension(path, extensions or ())
                ):
                    instances.append((path, class_to_idx[name]))
        if len(instances) == count:
            empty.append(name)
    if empty and not allow_empty:
        message = f"Found no valid file for the classes {', '.join(empty)}. "
        if extensions is not None:
            listed = extensions if isinstance(extensions, str) else ", ".join(extensions)
            message += f"Supported extensions are: {listed}"
        raise FileNotFoundError(message)
    return instances


class DatasetFolder(VisionDataset):
    """Files of any kind in one folder for each class: root/class/.../file.

    Args:
        root: the folder.
        loader: function of a path that returns the sample.
        extensions: endings of the files that count.
        transform: function of the sample.
        target_transform: function of the number of the class.
        is_valid_file: function of a path that says whether it counts; either this or `extensions`.
        allow_empty: whether a class may have no files.

    Attributes:
        classes: names of the classes, sorted.
        class_to_idx: number of each class.
        samples: pairs of a path and the number of its class.
        targets: numbers of the classes of all samples.

    Raises:
        FileNotFoundError: if there are no classes, or one has no files and that is not allowed.
        ValueError: if there is not one of `extensions` and `is_valid_file`.
    """

    def __init__(
        self,
        root: AnyPath,
        loader: Callable[[str], Any],
        extensions: tuple[str, ...] | None = None,
        transform: Transform = None,
        target_transform: Transform = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.loader = loader
        self.extensions = extensions
        self.samples = self.make_dataset(
            self.root, self.class_to_idx, extensions, is_valid_file, allow_empty
        )
        self.targets = [target for _, target in self.samples]

    @staticmethod
    def make_dataset(
        directory: AnyPath,
        class_to_idx: dict[str, int],
        extensions: tuple[str, ...] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> list[tuple[str, int]]:
        """Lists the samples, as the function make_dataset does; for subclasses to override."""
        if class_to_idx is None:
            # A subclass may find its classes in its own way, which the default would pass over.
            raise ValueError("The class_to_idx parameter cannot be None.")
        return make_dataset(directory, class_to_idx, extensions, is_valid_file, allow_empty)

    def find_classes(self, directory: AnyPath) -> tuple[list[str], dict[str, int]]:
        """Finds the classes, as the function find_classes does; for subclasses to override."""
        return find_classes(directory)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return self._transformed(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Images in one folder for each class: root/dog/xxx.png, root/cat/123.jpg.

    Args:
        root: the folder.
        transform: function of the image.
        target_transform: function of the number of the class.
        loader: function of a path that returns the image, by default Pillow's in RGB.
        is_valid_file: function of a path that says whether it counts, by default those with an
            ending of IMG_EXTENSIONS.
        allow_empty: whether a class may have no files.

    Attributes:
        classes: names of the classes, sorted.
        class_to_idx: number of each class.
        imgs: pairs of a path and the number of its class; also `samples`.
        targets: numbers of the classes of all images.

    Raises:
        FileNotFoundError: if there are no classes, or one has no files and that is not allowed.

    Example:
        >>> import os, tempfile
        >>> from PIL import Image
        >>> root = tempfile.mkdtemp()
        >>> for name in ("cat", "dog"):
        ...     os.mkdir(os.path.join(root, name))
        ...     Image.new("RGB", (4, 3)).save(os.path.join(root, name, "0.png"))
        >>> images = torch.vision.datasets.ImageFolder(root)
        >>> images.classes, len(images)
        (['cat', 'dog'], 2)
        >>> image, target = images[1]
        >>> image.size, target
        ((4, 3), 1)
    """

    def __init__(
        self,
        root: AnyPath,
        transform: Transform = None,
        target_transform: Transform = None,
        loader: Callable[[str], Any] = default_loader,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(
            root,
            loader,
            IMG_EXTENSIONS if is_valid_file is None else None,
            transform,
            target_transform,
            is_valid_file,
            allow_empty,
        )
        self.imgs = self.samples
