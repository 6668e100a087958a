"""Images as tensors of bytes (C, H, W): files, decoders and encoders. Pillow does the work.

Encoded data are 1-D tensors of bytes, as they stand in the file.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.vision._pillow import pillow


class ImageReadMode(Enum):
    """The channels that an image is decoded to.

    UNCHANGED leaves them as they are in the file: a palette gives its indices, one channel.
    """

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4
    RGBA = RGB_ALPHA


_PILLOW_MODES = {
    ImageReadMode.GRAY: "L",
    ImageReadMode.GRAY_ALPHA: "LA",
    ImageReadMode.RGB: "RGB",
    ImageReadMode.RGB_ALPHA: "RGBA",
}

# Pillow's modes whose bytes are not what an image holds; a palette stays indices, as in masks.
_RESOLVED = {"1": "L", "PA": "RGBA", "La": "LA", "RGBa": "RGBA", "RGBX": "RGB"}
_DEEP = ("I", "I;16", "I;16B", "I;16L")


def read_file(path: str | Path) -> Tensor:
    """The bytes of a file, (size,) uint8.

    Args:
        path: the file.

    Raises:
        RuntimeError: if it cannot be read.
    """
    try:
        data = bytearray(Path(path).read_bytes())
    except OSError as error:
        reason = error.strerror or str(error)
        raise RuntimeError(f"read_file: {path} cannot be read: {reason}.") from error
    return rl.frombuffer(data, dtype=rl.uint8) if data else rl.empty(0, dtype=rl.uint8)


def write_file(filename: str | Path, data: Tensor) -> None:
    """Write bytes to a file.

    Args:
        filename: the file, which is replaced.
        data: the bytes, (size,) uint8.

    Raises:
        RuntimeError: if data are no bytes or the file cannot be written.
    """
    _check_bytes("write_file", data)
    try:
        Path(filename).write_bytes(data.contiguous().numpy().tobytes())
    except OSError as error:
        reason = error.strerror or str(error)
        raise RuntimeError(f"write_file: {filename} cannot be written: {reason}.") from error


def _check_bytes(name: str, data: Any) -> None:
    if not isinstance(data, Tensor) or data.dtype != rl.uint8 or data.ndim != 1:
        what = f"{tuple(data.shape)} {data.dtype}" if isinstance(data, Tensor) else type(data)
        raise RuntimeError(
            f"{name}: got {what}. Encoded data are a 1-D tensor of torch.uint8, as of read_file."
        )
    if data.device.type != "cpu":
        raise RuntimeError(f"{name}: the data are on {data.device}. Move them to the CPU.")


@contextmanager
def _reading(name: str, data: Tensor) -> Iterator[None]:
    """Says whose bytes cannot be read; the decoders raise all kinds of errors for such."""
    try:
        yield
    except Exception as error:
        raise RuntimeError(
            f"{name}: {data.numel()} bytes cannot be read as an image: {error}. "
            "The file is damaged or of another kind."
        ) from error


def _open(name: str, data: Tensor, formats: tuple[str, ...] | None) -> Any:
    _check_bytes(name, data)
    module = pillow(name)
    with _reading(name, data):
        return module.open(io.BytesIO(data.contiguous().numpy().tobytes()), formats=formats)


def _parse_mode(mode: Any) -> ImageReadMode:
    if isinstance(mode, ImageReadMode):
        return mode
    names = ImageReadMode.__members__
    if not isinstance(mode, str) or mode.upper() not in names:
        raise ValueError(
            f"mode: got {mode!r}. It is an ImageReadMode or one of {', '.join(names)}."
        )
    return names[mode.upper()]


def _pixels(image: Any, mode: ImageReadMode) -> Tensor:
    """A decoded image in a mode, (C, H, W)."""
    from rushlight.vision.transforms._functional.conversions import pil_to_tensor

    wanted = _PILLOW_MODES.get(mode, _RESOLVED.get(image.mode, image.mode))
    if image.mode not in _DEEP:
        return pil_to_tensor(image if image.mode == wanted else image.convert(wanted))
    # 16 bits, which Pillow's modes of several channels have not.
    gray = pil_to_tensor(image).to(rl.int32)
    colors = [gray] * (3 if wanted in ("RGB", "RGBA") else 1)
    alpha = [rl.full_like(gray, 65535)] if wanted in ("LA", "RGBA") else []
    return rl.cat(colors + alpha).to(rl.uint16)


def _decode(
    name: str,
    data: Tensor,
    mode: Any,
    formats: tuple[str, ...] | None,
    apply_exif_orientation: bool = False,
) -> Tensor:
    mode = _parse_mode(mode)
    image = _open(name, data, formats)
    with _reading(name, data):
        if apply_exif_orientation:
            image = pillow(name, "ImageOps").exif_transpose(image)
        return _pixels(image, mode)


def decode_image(
    input: Tensor | str | Path,
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """Decode an image of any format that Pillow knows.

    Args:
        input: the encoded bytes, or a file.
        mode: the channels of the result.
        apply_exif_orientation: whether it is turned as its EXIF data say.

    Returns:
        The image (C, H, W) uint8, uint16 for PNG of 16 bits; frames (N, 3, H, W) for an animated
        GIF.

    Raises:
        RuntimeError: if the bytes are no image or the file cannot be read.
        ValueError: for another mode.
    """
    data = input if isinstance(input, Tensor) else read_file(input)
    image = _open("decode_image", data, None)
    if image.format == "GIF":
        return decode_gif(data)
    return _decode("decode_image", data, mode, None, apply_exif_orientation)


def read_image(
    path: str | Path,
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """Read an image from a file; the arguments are those of decode_image."""
    return decode_image(read_file(path), mode, apply_exif_orientation)


def decode_png(
    input: Tensor,
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    apply_exif_orientation: bool = False,
) -> Tensor:
    """Decode a PNG, (C, H, W) uint8, or uint16 for 16 bits; RuntimeError if it is none."""
    return _decode("decode_png", input, mode, ("PNG",), apply_exif_orientation)


def decode_jpeg(
    input: Tensor | list[Tensor],
    mode: ImageReadMode | str = ImageReadMode.UNCHANGED,
    device: str | rl.device = "cpu",
    apply_exif_orientation: bool = False,
) -> Any:
    """Decode a JPEG or a list of them.

    Args:
        input: the encoded bytes, on the CPU.
        mode: the channels of the result.
        device: where the result shall be; it is decoded on the CPU.
        apply_exif_orientation: whether it is turned as its EXIF data say.

    Returns:
        The image (C, H, W) uint8, or a list of them.

    Raises:
        RuntimeError: if the bytes are no JPEG.
        ValueError: if the list is empty or holds other things.
    """
    if isinstance(input, list):
        if not input or not all(isinstance(each, Tensor) for each in input):
            raise ValueError(
                "decode_jpeg: the list is empty or holds other things. It must be of tensors."
            )
        return [decode_jpeg(each, mode, device, apply_exif_orientation) for each in input]
    decoded = _decode("decode_jpeg", input, mode, ("JPEG",), apply_exif_orientation)
    return decoded.to(device)


def decode_gif(input: Tensor) -> Tensor:
    """Decode a GIF: (3, H, W) uint8, or (N, 3, H, W) for N frames; RuntimeError if it is none."""
    image = _open("decode_gif", input, ("GIF",))
    frames = []
    with _reading("decode_gif", input):
        for index in range(getattr(image, "n_frames", 1)):
            image.seek(index)
            frames.append(_pixels(image, ImageReadMode.RGB))
    return frames[0] if len(frames) == 1 else rl.stack(frames)


def decode_webp(input: Tensor, mode: ImageReadMode | str = ImageReadMode.UNCHANGED) -> Tensor:
    """Decode a WebP, (C, H, W) uint8; RuntimeError if it is none."""
    return _decode("decode_webp", input, mode, ("WEBP",))


def decode_avif(input: Tensor, mode: ImageReadMode | str = ImageReadMode.UNCHANGED) -> Tensor:
    """Decode an AVIF, (C, H, W) uint8; RuntimeError if it is none or Pillow was built without."""
    return _decode("decode_avif", input, mode, ("AVIF",))


def decode_heic(input: Tensor, mode: ImageReadMode | str = ImageReadMode.UNCHANGED) -> Tensor:
    """Decode a HEIC, (C, H, W) uint8, with the package pillow-heif.

    Raises:
        ImportError: if that package is not installed.
        RuntimeError: if the bytes are no HEIC.
    """
    try:
        from pillow_heif import register_heif_opener  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            "decode_heic: the package pillow-heif is not installed. Pillow opens HEIC with it. "
            "Install it with `pip install pillow-heif`."
        ) from error
    register_heif_opener()
    return _decode("decode_heic", input, mode, ("HEIF",))


def _encode(name: str, image: Any, format: str, **options: Any) -> Tensor:
    if not isinstance(image, Tensor) or image.dtype != rl.uint8:
        what = image.dtype if isinstance(image, Tensor) else type(image).__name__
        raise RuntimeError(f"{name}: got {what}. An image is a tensor of torch.uint8.")
    if image.ndim != 3 or image.shape[0] not in (1, 3):
        raise RuntimeError(
            f"{name}: the shape is {tuple(image.shape)}. An image has one or three channels, "
            "(C, H, W)."
        )
    from rushlight.vision.transforms._functional.conversions import to_pil_image

    pillow(name)
    file = io.BytesIO()
    to_pil_image(image).save(file, format=format, **options)
    return rl.frombuffer(bytearray(file.getvalue()), dtype=rl.uint8)


def encode_png(input: Tensor, compression_level: int = 6) -> Tensor:
    """Encode an image as PNG.

    Args:
        input: the image, (1, H, W) or (3, H, W) uint8.
        compression_level: from 0, large, to 9, small and slow.

    Returns:
        The bytes, (size,) uint8.

    Raises:
        RuntimeError: if it is no such image or level.

    Example:
        >>> from rushlight.vision import io
        >>> image = torch.randint(0, 256, (3, 4, 5), dtype=torch.uint8)
        >>> torch.equal(io.decode_png(io.encode_png(image)), image)
        True
    """
    if not 0 <= compression_level <= 9:
        raise RuntimeError(
            f"encode_png: compression_level is {compression_level}. It must be from 0 to 9."
        )
    return _encode("encode_png", input, "PNG", compress_level=compression_level)


def encode_jpeg(input: Tensor | list[Tensor], quality: int = 75) -> Any:
    """Encode an image, or a list of them, as JPEG.

    Args:
        input: the image, (1, H, W) or (3, H, W) uint8.
        quality: from 1, small and bad, to 100.

    Returns:
        The bytes, (size,) uint8, or a list of them.

    Raises:
        RuntimeError: if it is no such image.
        ValueError: for another quality or an empty list.
    """
    if not 1 <= quality <= 100:
        raise ValueError(f"encode_jpeg: quality is {quality}. It must be from 1 to 100.")
    if isinstance(input, list):
        if not input:
            raise ValueError("encode_jpeg: the list is empty. It must hold images.")
        return [encode_jpeg(each, quality) for each in input]
    return _encode("encode_jpeg", input, "JPEG", quality=quality)


def write_png(input: Tensor, filename: str | Path, compression_level: int = 6) -> None:
    """Encode an image as PNG and write it to a file; the arguments are those of encode_png."""
    write_file(filename, encode_png(input, compression_level))


def write_jpeg(input: Tensor, filename: str | Path, quality: int = 75) -> None:
    """Encode an image as JPEG and write it to a file; the arguments are those of encode_jpeg."""
    write_file(filename, encode_jpeg(input, quality))
