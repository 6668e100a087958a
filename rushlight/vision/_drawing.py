"""Drawing on images: boxes with labels, masks, keypoints with their connections."""

from __future__ import annotations

import math
import warnings
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.vision._pillow import pillow
from rushlight.vision.transforms._functional.conversions import (
    pil_to_tensor,
    to_dtype_image,
    to_pil_image,
)

Color = str | tuple[int, ...]
Colors = Color | list[Any] | None

_DASH = 5  # pixels drawn and pixels left out
_FAR = 20_000  # places further from the origin are drawn there: Pillow walks along all of a line


def _check_image(name: str, image: Any, channels: tuple[int, ...]) -> None:
    if not isinstance(image, Tensor):
        raise TypeError(f"{name}: image is {type(image).__name__}. It must be a tensor.")
    if not (image.dtype == rl.uint8 or image.is_floating_point()):
        raise ValueError(f"{name}: image is {image.dtype}. It must be uint8 or floating point.")
    if image.ndim != 3 or image.shape[0] not in channels:
        allowed = " or ".join(map(str, channels))
        raise ValueError(
            f"{name}: the shape is {tuple(image.shape)}. It must be one image (C, H, W) of "
            f"{allowed} channels."
        )


def _palette(count: int) -> list[tuple[int, ...]]:
    primes = (2**25 - 1, 2**15 - 1, 2**21 - 1)
    return [tuple(index * prime % 255 for prime in primes) for index in range(count)]


def _parse_colors(colors: Any, count: int) -> list[tuple[int, ...]]:
    """A color (red, green, blue) in [0, 255] for each of several things."""
    if colors is None:
        return _palette(count)
    if isinstance(colors, list):
        if len(colors) < count:
            raise ValueError(
                f"colors: there are {len(colors)} for {count} objects. Give one for each, or one."
            )
        each = colors
    elif isinstance(colors, str) or (isinstance(colors, tuple) and len(colors) == 3):
        each = [colors] * count
    else:
        raise ValueError(
            f"colors: got {colors!r}. A color is a name or (red, green, blue); a list has several."
        )
    names = pillow("colors", "ImageColor")
    return [names.getrgb(color) if isinstance(color, str) else tuple(color) for color in each]


def _canvas(image: Tensor) -> Any:
    """The image for Pillow to draw on."""
    rgb = image.expand(3, -1, -1) if image.shape[0] == 1 else image
    return to_pil_image(to_dtype_image(rgb, rl.uint8, scale=True))


def _drawn(canvas: Any, like: Tensor) -> Tensor:
    return to_dtype_image(pil_to_tensor(canvas), like.dtype, scale=True)


def _places(coordinates: Tensor) -> list[Any]:
    """Coordinates as whole numbers that can be drawn."""
    return coordinates.nan_to_num(0.0).clamp(-_FAR, _FAR).to(rl.int64).tolist()


def _dashed_line(draw: Any, start: Any, end: Any, fill: Any, width: int) -> None:
    length = math.dist(start, end)
    at = 0.0
    while at < length:
        ends = (at / length, min(at + _DASH, length) / length)
        points = [
            tuple(a + (b - a) * part for a, b in zip(start, end, strict=True)) for part in ends
        ]
        draw.line(points, fill, width)
        at += 2 * _DASH


def _draw_box(draw: Any, box: list[int], outline: Any, fill: Any, width: int) -> None:
    if len(box) == 4:
        draw.rectangle(box, width=width, outline=outline, fill=fill)
        return
    corners = list(zip(box[::2], box[1::2], strict=True))
    # The side that is up before the rotation is dashed, to tell the direction.
    _dashed_line(draw, corners[0], corners[1], outline, width)
    for index in range(1, 4):
        draw.line((corners[index], corners[(index + 1) % 4]), width=width, fill=outline)
    draw.polygon(box, fill=fill, outline=None, width=0)


def _font_of(font: str | None, size: int | None) -> Any:
    fonts = pillow("draw_bounding_boxes", "ImageFont")
    if font is not None:
        return fonts.truetype(font=font, size=size or 10)
    if size is not None:
        warnings.warn(
            "draw_bounding_boxes: font_size is ignored, as there is no font.", stacklevel=4
        )
    return fonts.load_default()


@rl.no_grad()
def draw_bounding_boxes(
    image: Tensor,
    boxes: Tensor,
    labels: list[str] | None = None,
    colors: Colors = None,
    fill: bool | None = False,
    width: int = 1,
    font: str | None = None,
    font_size: int | None = None,
    label_colors: Colors = None,
    label_background_colors: Colors = None,
    fill_labels: bool = False,
) -> Tensor:
    """Draw boxes on an image.

    Args:
        image: the image, (3, H, W) or (1, H, W), uint8 or floating-point numbers in [0, 1].
        boxes: (N, 4) left, top, right, bottom, or (N, 8) the corners of rotated boxes.
        labels: a text for each, which may be None.
        colors: a color for all, a list of one for each, or None for a palette.
        fill: whether boxes are filled, half transparent.
        width: how thick lines are, in pixels.
        font: the file of a TrueType font; by default Pillow's own.
        font_size: its size.
        label_colors: the colors of labels, by default those of the boxes, or black on a ground.
        label_background_colors: the colors of the ground, by default those of the boxes.
        fill_labels: whether labels have a ground.

    Returns:
        The drawing, (3, H, W), of the image's dtype.

    Raises:
        TypeError: if the image is no tensor.
        ValueError: for other shapes and dtypes, boxes that end before they begin, or a wrong number
            of labels or colors.
    """
    _check_image("draw_bounding_boxes", image, (1, 3))
    if boxes.shape[-1] == 4 and bool((boxes[:, :2] > boxes[:, 2:]).any()):
        raise ValueError(
            "draw_bounding_boxes: boxes end before they begin. They are (left, top, right, "
            "bottom). Convert them with ops.box_convert."
        )
    count = boxes.shape[0]
    if count == 0:
        warnings.warn("boxes doesn't contain any box. No box was drawn", stacklevel=3)
        return image
    texts: list[Any] = [None] * count if labels is None else list(labels)
    if len(texts) != count:
        raise ValueError(
            f"draw_bounding_boxes: there are {count} boxes and {len(texts)} labels. "
            "Give one for each."
        )
    outlines = _parse_colors(colors, count)
    inks = outlines
    if label_colors or fill_labels:
        inks = _parse_colors(label_colors or "black", count)
    grounds = outlines
    if fill_labels and label_background_colors:
        grounds = _parse_colors(label_background_colors, count)
    text_font = _font_of(font, font_size)
    width = min(width, max(image.shape))  # more would not be seen
    canvas = _canvas(image)
    draw = pillow("draw_bounding_boxes", "ImageDraw").Draw(canvas, "RGBA" if fill else None)
    corners = _places(boxes)
    for box, outline, text, ink, ground in zip(
        corners, outlines, texts, inks, grounds, strict=False
    ):
        _draw_box(draw, box, outline, (*outline, 100) if fill else None, width)
        if text is None:
            continue
        place = (box[0] + width + 1, box[1] + width + 1)
        if fill_labels:
            left, top, right, bottom = draw.textbbox(place, text, font=text_font)
            draw.rectangle((left - 1, top - 1, right + 1, bottom + 1), fill=ground)
        draw.text(place, text, fill=ink, font=text_font)
    return _drawn(canvas, image)


@rl.no_grad()
def draw_segmentation_masks(
    image: Tensor, masks: Tensor, alpha: float = 0.8, colors: Colors = None
) -> Tensor:
    """Color the pixels of masks on an image; where masks overlap it is black.

    Args:
        image: the image, (3, H, W), uint8 or floating-point numbers in [0, 1].
        masks: (H, W) or (N, H, W) bools.
        alpha: how much of the color is mixed in: 0 gives the image, 1 hides it.
        colors: a color for all, a list of one for each, or None for a palette.

    Returns:
        The drawing, of the image's dtype.

    Raises:
        TypeError: if the image is no tensor.
        ValueError: for other shapes and dtypes, or too few colors.
    """
    _check_image("draw_segmentation_masks", image, (3,))
    masks = masks[None] if masks.ndim == 2 else masks
    if masks.ndim != 3 or masks.dtype != rl.bool or masks.shape[-2:] != image.shape[-2:]:
        raise ValueError(
            f"draw_segmentation_masks: masks are {tuple(masks.shape)} {masks.dtype}. They must be "
            f"bools of the image's height and width, {tuple(image.shape[-2:])}."
        )
    count = masks.shape[0]
    if count == 0:
        warnings.warn("masks doesn't contain any mask. No mask was drawn", stacklevel=3)
        return image
    white = 1 if image.dtype == rl.uint8 else 255
    colored = image.detach().clone()
    for mask, color in zip(masks, _parse_colors(colors, count), strict=False):
        paint = rl.tensor([part / white for part in color], device=image.device)
        colored = rl.where(mask, paint.to(image.dtype)[:, None, None], colored)
    colored[:, masks.sum(dim=0) > 1] = 0
    return (image * (1 - alpha) + colored * alpha).to(image.dtype)


@rl.no_grad()
def draw_keypoints(
    image: Tensor,
    keypoints: Tensor,
    connectivity: list[tuple[int, int]] | None = None,
    colors: Color | None = None,
    radius: int = 2,
    width: int = 3,
    visibility: Tensor | None = None,
) -> Tensor:
    """Draw keypoints and the lines between them on an image.

    Args:
        image: the image, (3, H, W), uint8 or floating-point numbers in [0, 1].
        keypoints: (N, K, 2), the x and y of K points of each instance.
        connectivity: pairs of indices of points that a line connects.
        colors: the color of points.
        radius: how large points are, in pixels.
        width: how thick lines are, in pixels.
        visibility: (N, K) whether points are drawn, and lines that end in them.

    Returns:
        The drawing, of the image's dtype.

    Raises:
        TypeError: if the image is no tensor.
        ValueError: for other shapes and dtypes.
    """
    _check_image("draw_keypoints", image, (3,))
    if keypoints.ndim != 3:
        raise ValueError(
            f"draw_keypoints: keypoints have the shape {tuple(keypoints.shape)}. "
            "It must be (instances, points, 2)."
        )
    if visibility is None:
        visibility = rl.ones(keypoints.shape[:-1], dtype=rl.bool)
    elif visibility.ndim == 3:
        visibility = visibility.squeeze(-1)  # as a model's last column is split off
    if visibility.shape != keypoints.shape[:-1]:
        raise ValueError(
            f"draw_keypoints: visibility has the shape {tuple(visibility.shape)}. "
            f"It must be that of the points, {tuple(keypoints.shape[:-1])}."
        )
    radius, width = min(radius, _FAR), min(width, 2 * max(image.shape))
    canvas = _canvas(image)
    draw = pillow("draw_keypoints", "ImageDraw").Draw(canvas)
    for points, visible in zip(_places(keypoints), visibility.cpu().bool().tolist(), strict=True):
        for (x, y), shown in zip(points, visible, strict=True):
            if shown:
                circle = [x - radius, y - radius, x + radius, y + radius]
                draw.ellipse(circle, fill=colors, outline=None, width=0)
        for start, end in connectivity or ():
            if visible[start] and visible[end]:
                draw.line((tuple(points[start]), tuple(points[end])), width=width)
    return _drawn(canvas, image)
