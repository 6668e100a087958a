"""Functionals of vision.transforms on the same inputs equal torchvision's; names and errors too.

An input is made of NumPy arrays in either library. Results of integers may differ by one level
where torchvision computes in another order, those of looking pixels up in a few pixels.
"""

from __future__ import annotations

import importlib
import inspect
import types
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import rushlight

pytorch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
PIL = pytest.importorskip("PIL.Image")

ROWS, COLUMNS = 23, 31
RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (3, ROWS, COLUMNS), dtype=np.uint8)
FLAT_BYTES = (BYTES // 32 + 100).astype(np.uint8)
BOXES = {
    "XYXY": [[2, 3, 12, 14], [0, 0, 31, 23], [5, 8, 29, 22], [20, 1, 20, 9]],
    "XYWH": [[2, 3, 10, 11], [0, 0, 31, 23], [25, 8, 9, 20]],
    "CXCYWH": [[7, 8, 11, 13], [15, 11, 30, 22], [25, 8, 9, 20]],
    "XYWHR": [[4.0, 15.0, 10.0, 8.0, 40.0], [12.0, 6.0, 9.0, 7.0, -20.0]],
    "CXCYWHR": [[12.0, 11.0, 10.0, 8.0, 35.0], [16.0, 12.0, 9.0, 5.0, 110.0]],
    "XYXYXYXY": [[6.0, 15.0, 14.0, 9.0, 18.0, 14.0, 10.0, 20.0]],
}
POINTS = [[0.0, 0.0], [30.0, 22.0], [12.5, 7.25], [3.0, 19.0]]


class Library(NamedTuple):
    """A tensor library with its vision package."""

    torch: Any
    vision: str

    def module(self, name: str) -> Any:
        return importlib.import_module(f"{self.vision}.{name}")


OURS = Library(rushlight, "rushlight.vision")
THEIRS = Library(pytorch, "torchvision")


def image_of(library: Library, kind: str) -> Any:
    """The picture as one of the kinds of values that functionals take."""
    torch, tv = library.torch, library.module("tv_tensors")
    data = torch.from_numpy(BYTES.copy())
    makers = {
        "uint8": lambda: data,
        "float": lambda: data.float() / 255,
        "double": lambda: data.double() / 255,
        "int16": lambda: data.to(torch.int16) * 128,
        "gray": lambda: data[:1],
        "batch": lambda: torch.stack([data, data.flip(-1)]),
        "last": lambda: torch.from_numpy(BYTES.transpose(1, 2, 0).copy()).permute(2, 0, 1),
        "flat": lambda: torch.from_numpy(FLAT_BYTES.copy()),
        "PIL": lambda: PIL.fromarray(BYTES.transpose(1, 2, 0)),
        "PIL L": lambda: PIL.fromarray(BYTES[0]),
        "PIL F": lambda: PIL.fromarray(BYTES[0].astype(np.float32)),
        "PIL I": lambda: PIL.fromarray(BYTES[0].astype(np.int32) * 100),
        "PIL 1": lambda: PIL.fromarray(BYTES[0] > 128),
        "PIL LA": lambda: PIL.fromarray(BYTES.transpose(1, 2, 0)).convert("LA"),
        "PIL RGBA": lambda: PIL.fromarray(BYTES.transpose(1, 2, 0)).convert("RGBA"),
        "PIL P": lambda: PIL.fromarray(BYTES[0]).convert("P"),
        "array": lambda: BYTES.transpose(1, 2, 0).copy(),
        "Image": lambda: tv.Image(data),
        "Video": lambda: tv.Video(torch.stack([data, data.flip(-1)])),
        "Mask": lambda: tv.Mask(data[:2] % 5),
        "Mask 2d": lambda: tv.Mask(data[0] > 128),
        "KeyPoints": lambda: tv.KeyPoints(POINTS, canvas_size=(ROWS, COLUMNS)),
        "KeyPoints 3d": lambda: tv.KeyPoints([POINTS], canvas_size=(ROWS, COLUMNS)),
        "empty": lambda: data[:, :, :0],
        "text": lambda: "text",
        "1d": lambda: data[0, 0],
    }
    if kind in makers:
        return makers[kind]()
    format, _, options = kind.partition(" ")
    dtype = None if "int" in options else torch.float32
    mode = "hard" if "hard" in options else None if "None" in options else "soft"
    rows = BOXES[format]
    return tv.BoundingBoxes(
        torch.tensor(rows, dtype=dtype),
        format=format,
        canvas_size=(ROWS, COLUMNS),
        clamping_mode=mode,
    )


COLORED = ("uint8", "float", "double", "gray", "batch", "last", "PIL", "PIL L", "Image", "Video")
PIXELS = (*COLORED, "PIL RGBA", "Mask", "Mask 2d", "empty", "int16")
PLAIN = ("XYXY", "XYXY int", "XYWH", "XYWH int", "CXCYWH", "CXCYWH int", "XYXY None")
ROTATED = ("XYWHR", "CXCYWHR", "XYXYXYXY", "CXCYWHR hard", "CXCYWHR None")
PLACES = (*PLAIN, *ROTATED, "KeyPoints", "KeyPoints 3d")
ALL = PIXELS + PLACES
COEFFICIENTS = [1.02, 0.03, -0.6, 0.04, 0.97, 0.8, 0.001, -0.002]
CORNERS = ([[0, 0], [30, 0], [30, 22], [0, 22]], [[2, 1], [28, 3], [29, 20], [1, 21]])


def displacement(torch: Any) -> Any:
    steps = np.cos(np.arange(ROWS * COLUMNS * 2)).reshape(1, ROWS, COLUMNS, 2)
    return torch.from_numpy((steps * 0.05).astype(np.float32))


# (functional, kinds of inputs, [(args, kwargs), ...]); a function as argument gets the library.
CASES: list[tuple[str, tuple[str, ...], list[tuple[tuple[Any, ...], dict[str, Any]]]]] = [
    ("horizontal_flip", ALL, [((), {})]),
    ("vertical_flip", ALL, [((), {})]),
    (
        "resize",
        ALL,
        [
            (([12, 17],), {}),
            ((9,), {}),
            (([40, 50],), {}),
            ((12,), {"max_size": 14}),
            ((None,), {"max_size": 12}),
            (([ROWS, COLUMNS],), {}),
            (([12, 17],), {"interpolation": 3}),
            (([50, 60],), {"interpolation": "bicubic"}),
            (([12, 17],), {"interpolation": "nearest"}),
            (([12, 17],), {"interpolation": "nearest-exact"}),
            (([12, 17], 0), {}),
        ],
    ),
    ("resize", ("uint8", "float", "Image"), [(([12, 17],), {"antialias": False})]),
    ("crop", ALL, [((3, 4, 10, 12), {}), ((-3, -4, 30, 40), {}), ((20, 28, 5, 5), {})]),
    ("center_crop", ALL, [(([10, 12],), {}), ((11,), {}), (([30, 12],), {}), (([40, 41],), {})]),
    (
        "pad",
        ALL,
        [
            ((2,), {}),
            (([1, 2],), {"fill": 3}),
            (([1, 2, 3, 4],), {}),
            (([1, 2, 3, 4],), {"padding_mode": "reflect"}),
            (([1, 2, 3, 4],), {"padding_mode": "edge"}),
            (([1, 2, 3, 4],), {"padding_mode": "symmetric"}),
            (([1, -2, 0, -3],), {}),
            ((1,), {"padding_mode": "other"}),
            (([1, 2, 3],), {}),
            (("a",), {}),
        ],
    ),
    ("pad", ("uint8", "float", "Image", "PIL"), [((2,), {"fill": [1, 2, 3]})]),
    (
        "resized_crop",
        ALL,
        [((3, 4, 10, 12, [7, 9]), {}), ((3, 4, 10, 12, [15, 20]), {"interpolation": "nearest"})],
    ),
    ("five_crop", COLORED, [((8,), {}), (([9, 7],), {}), ((40,), {})]),
    ("ten_crop", COLORED, [((8,), {}), (([9, 7],), {"vertical_flip": True})]),
    (
        "affine",
        ALL,
        [
            ((30.0, [2, 3], 1.2, [5.0, 2.0]), {}),
            ((-10, (2, 3), 0.7, 4.0), {"interpolation": "bilinear", "fill": 7}),
            ((10.0, [0, 0], 1.0, [0.0, 0.0]), {"center": [3, 4], "fill": 2}),
            ((10.0, [0], 1.0, [0.0, 0.0]), {}),
            ((10.0, [0, 0], -1.0, [0.0, 0.0]), {}),
            (("a", [0, 0], 1.0, [0.0, 0.0]), {}),
        ],
    ),
    (
        "rotate",
        ALL,
        [
            ((33.0,), {}),
            ((33.0,), {"expand": True}),
            ((90,), {"expand": True}),
            ((180,), {}),
            ((0,), {}),
            ((20.0,), {"interpolation": "bilinear", "fill": 9, "center": [3, 4]}),
        ],
    ),
    (
        "perspective",
        ALL,
        [
            ((None, None), {"coefficients": COEFFICIENTS}),
            (CORNERS, {"fill": 3}),
            (CORNERS, {"interpolation": "nearest"}),
            ((None, None), {}),
            ((None, None), {"coefficients": [1.0, 2.0]}),
        ],
    ),
    (
        "elastic",
        tuple(kind for kind in ALL if kind != "empty"),
        [((displacement,), {}), ((displacement,), {"fill": 5}), ((3,), {})],
    ),
    ("adjust_brightness", COLORED, [((0.6,), {}), ((1.7,), {}), ((-1.0,), {})]),
    ("adjust_contrast", COLORED, [((0.6,), {}), ((1.7,), {}), ((-1.0,), {})]),
    ("adjust_saturation", COLORED, [((0.6,), {}), ((1.7,), {}), ((-1.0,), {})]),
    ("adjust_hue", COLORED, [((0.2,), {}), ((-0.4,), {}), ((0.7,), {})]),
    ("adjust_gamma", COLORED, [((0.6,), {}), ((1.7, 1.3), {}), ((-1.0,), {})]),
    ("adjust_sharpness", COLORED, [((0.0,), {}), ((1.7,), {})]),
    ("posterize", COLORED, [((3,), {}), ((8,), {}), ((0,), {})]),
    ("solarize", COLORED, [((0.5,), {}), ((100,), {}), ((300,), {})]),
    ("autocontrast", (*COLORED, "flat"), [((), {})]),
    ("equalize", (*COLORED, "flat"), [((), {})]),
    ("invert", (*COLORED, "int16"), [((), {})]),
    ("permute_channels", ("uint8", "float", "batch", "PIL", "Video"), [(([2, 0, 1],), {})]),
    ("permute_channels", ("uint8",), [(([2, 0],), {})]),
    (
        "rgb_to_grayscale",
        ("uint8", "float", "gray", "batch", "PIL"),
        [((), {}), ((3,), {}), ((2,), {})],
    ),
    ("grayscale_to_rgb", ("uint8", "gray", "PIL", "PIL L"), [((), {})]),
    (
        "gaussian_blur",
        COLORED,
        [((3,), {}), (([5, 3], [1.5, 0.7]), {}), ((4,), {}), ((3, -1.0), {})],
    ),
    ("normalize", ("uint8", "float", "double", "Image", "PIL"), [(([0.5] * 3, [0.2] * 3), {})]),
    ("normalize", ("float", "1d"), [(([0.5] * 3, [0.2, 0.0, 1.0]), {})]),
    ("to_dtype", (*COLORED, "int16"), [((lambda torch: torch.float32,), {"scale": True})]),
    ("to_dtype", ("uint8", "float", "int16"), [((lambda torch: torch.int16,), {"scale": True})]),
    ("to_dtype", ("uint8", "float", "int16"), [((lambda torch: torch.uint8,), {"scale": True})]),
    ("to_dtype", ("uint8", "float", "Mask"), [((lambda torch: torch.int64,), {"scale": True})]),
    ("to_dtype", ALL, [((lambda torch: torch.float64,), {})]),
    (
        "erase",
        ("uint8", "float", "PIL", "Image"),
        [((2, 3, 5, 6, lambda torch: torch.tensor(7)), {})],
    ),
    ("get_dimensions", ALL, [((), {})]),
    ("get_num_channels", ALL, [((), {})]),
    ("get_size", ALL, [((), {})]),
    ("get_num_frames", ("Video", "PIL"), [((), {})]),
    ("uniform_temporal_subsample", ("Video", "batch", "PIL"), [((1,), {}), ((5,), {})]),
    ("to_image", ("uint8", "PIL", "PIL L", "PIL 1", "array", "text"), [((), {})]),
    ("pil_to_tensor", ("uint8", "PIL", "PIL L", "PIL F", "PIL I", "PIL LA", "PIL P"), [((), {})]),
    ("to_pil_image", ("uint8", "float", "gray", "array", "text", "1d", "batch"), [((), {})]),
    ("jpeg", ("PIL",), [((40,), {})]),
    ("clamp_bounding_boxes", (*PLAIN, *ROTATED, "uint8"), [((), {})]),
    ("clamp_keypoints", ("KeyPoints", "KeyPoints 3d", "uint8"), [((), {})]),
    ("sanitize_bounding_boxes", (*PLAIN, "KeyPoints", "uint8"), [((), {}), ((), {"min_size": 9})]),
    ("sanitize_keypoints", ("KeyPoints", "KeyPoints 3d", "XYXY"), [((), {})]),
    *(
        ("convert_bounding_box_format", (*PLAIN, *ROTATED), [((), {"new_format": new})])
        for new in BOXES
    ),
]
# How much results may differ, in levels: (functional, or with the kind) -> at most.
LEVELS = {
    "autocontrast": 1,
    "adjust_saturation": 1,
    "adjust_sharpness": 1,
    "gaussian_blur": 1,
    "resize": 2,  # bytes as such by v2 and us where it is cubic, else as floats, as v1 does it
    "resized_crop": 1,
}
LOOKED_UP = {"affine", "rotate", "perspective", "elastic"}


def plain(value: Any) -> Any:
    """A result as what can be compared: (type, what it knows, array)."""
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, (rushlight.Tensor, pytorch.Tensor)):
        known = {
            name: str(getattr(value, name))
            for name in ("format", "canvas_size", "clamping_mode")
            if hasattr(value, name) and type(value).__name__ in ("BoundingBoxes", "KeyPoints")
        }
        library = rushlight if isinstance(value, rushlight.Tensor) else pytorch
        array = value.as_subclass(library.Tensor).numpy()
        return (type(value).__name__, str(value.dtype), known, array)
    if isinstance(value, PIL.Image):
        return ("PIL", value.mode, {}, np.asarray(value))
    return value


def outcome(library: Library, function: Any, *args: Any, **kwargs: Any) -> Any:
    args = [arg(library.torch) if isinstance(arg, types.FunctionType) else arg for arg in args]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(function(*args, **kwargs))
    except Exception as error:
        return error


def short(result: Any) -> str:
    return repr(result) if isinstance(result, Exception) else f"{str(result)[:60]}..."


def compare(name: str, ours: Any, theirs: Any, context: str) -> None:
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        assert type(ours).__name__ == type(theirs).__name__, (
            f"{context}: {short(ours)}, not {short(theirs)}"
        )
        return
    if isinstance(theirs, list):
        assert isinstance(ours, list), context
        assert len(ours) == len(theirs), context
        for mine, other in zip(ours, theirs, strict=True):
            compare(name, mine, other, context)
        return
    if not isinstance(theirs, tuple):
        assert ours == theirs, context
        return
    assert ours[:3] == theirs[:3], context
    assert ours[3].shape == theirs[3].shape, context
    if ours[3].size == 0:
        return
    a, b = ours[3].astype(np.float64), theirs[3].astype(np.float64)
    whole = theirs[3].dtype.kind in "iub"
    close = np.isclose(a, b, rtol=1e-4, atol=LEVELS.get(name, 0) if whole else 2e-4, equal_nan=True)
    if (name in LOOKED_UP and theirs[3].ndim > 2) or theirs[0] == "Mask":
        close |= (np.abs(a - b) <= 1) & whole
        # A pixel half way between two may be looked up on either side.
        assert close.mean() > 0.98, f"{context}: {close.mean():.4f} of the pixels are equal"
        return
    assert close.all(), f"{context}: {(~close).sum()} of {close.size}, {np.abs(a - b).max()}"


def both(name: str, home: str, kind: str, args: Any, kwargs: Any) -> None:
    results = [
        outcome(
            library,
            getattr(library.module(home), name),
            image_of(library, kind),
            *args,
            **kwargs,
        )
        for library in (OURS, THEIRS)
    ]
    compare(name, *results, f"{name}({kind}, {args}, {kwargs})")


# What is not compared, and why.
LEFT_OUT = {
    ("center_crop", "empty"): "ours gives the border that any smaller image gets",
    ("pad", "empty"): "the exceptions of a symmetric border differ",
    ("elastic", "XYWH int"): "torchvision rounds the corners before it looks them up",
    ("perspective", "CXCYWH int"): "torchvision rounds the corners before it maps them",
    ("elastic", "CXCYWH int"): "torchvision rounds the corners before it looks them up",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_functionals_of_v2_agree(case: Any) -> None:
    name, kinds, calls = case
    check("transforms.v2.functional", name, [k for k in kinds if (name, k) not in LEFT_OUT], calls)


def check(home: str, name: str, kinds: Any, calls: Any) -> None:
    failures = []
    for kind in kinds:
        for args, kwargs in calls:
            try:
                both(name, home, kind, args, kwargs)
            except AssertionError as error:
                failures.append(str(error).split("\nassert")[0])
    assert not failures, "\n".join(failures)


# Those of the first version take no tv_tensors, and some of them fewer images.
V1 = {
    "horizontal_flip": "hflip",
    "vertical_flip": "vflip",
    "elastic": "elastic_transform",
    "to_image": "to_tensor",
}
V1_NAMES = set(importlib.import_module("torchvision.transforms.functional").__dict__)
V1_KINDS = {kind for kind in (*PIXELS, "text") if kind not in ("Image", "Video", "Mask", "Mask 2d")}
V1_KINDS -= {"empty"}
V1_CASES = [
    (V1.get(name, name), [kind for kind in kinds if kind in V1_KINDS], calls)
    for name, kinds, calls in CASES
    if V1.get(name, name) in V1_NAMES
]
# Names of modes and one size by the longer side are of v2; a fill per channel is ours.
V1_LACKS = (
    "nearest'",
    "exact'",
    "bilinear'",
    "coefficients",
    "(None,)",
    "'fill': [1",
    "(None, None)",
)


LEFT_OUT_OF_V1 = {
    ("rgb_to_grayscale", "gray"): "torchvision gives one channel where three are asked for",
}


@pytest.mark.parametrize("case", V1_CASES, ids=lambda case: case[0])
def test_functionals_of_v1_agree(case: Any) -> None:
    name, kinds, calls = case
    kinds = [kind for kind in kinds if (name, kind) not in LEFT_OUT_OF_V1]
    known = [call for call in calls if not any(word in str(call) for word in V1_LACKS)]
    check("transforms.functional", name, kinds, known)


MODES = {"interpolation": lambda library: library.module("transforms").InterpolationMode.BILINEAR}


@pytest.mark.parametrize("name", ["affine", "rotate", "perspective"])
def test_bilinear_warps_of_v1_agree(name: str) -> None:
    calls = {
        "affine": ((-10, [2, 3], 0.7, 4.0), {"fill": [7.0]}),
        "rotate": ((33.0,), {"expand": True}),
        "perspective": (CORNERS, {"fill": [3.0]}),
    }
    args, kwargs = calls[name]
    for kind in ("uint8", "float", "batch", "gray", "PIL L"):
        results = []
        for library in (OURS, THEIRS):
            mode = MODES["interpolation"](library)
            function = getattr(library.module("transforms.functional"), name)
            image = image_of(library, kind)
            results.append(outcome(library, function, image, *args, interpolation=mode, **kwargs))
        compare(name, *results, f"{name}({kind})")


# Names of a module that are no part of its interface.
OTHER_NAMES = {
    "transforms.functional": {"accimage", "PILImage", "pil_modes_mapping"},
    "utils": {"PILLOW_VERSION_STRING", "FunctionType", "BinaryIO", "repeat"},
}


@pytest.mark.parametrize(
    "name",
    [
        "transforms",
        "transforms.functional",
        "transforms.v2",
        "transforms.v2.functional",
        "io",
        "utils",
        "tv_tensors",
    ],
)
def test_all_public_names_are_there(name: str) -> None:
    ours, theirs = OURS.module(name), THEIRS.module(name)
    public = {
        each
        for each, value in vars(theirs).items()
        if not each.startswith("_")
        and not isinstance(value, types.ModuleType)
        and getattr(value, "__module__", "") not in ("typing", "enum", "torch")
    }
    missing = {each for each in public if not hasattr(ours, each)}
    assert missing <= OTHER_NAMES.get(name, set())


def parameters(value: Any) -> Any:
    """The names and defaults of the parameters of a function or class."""
    found = inspect.signature(value).parameters.values()
    return [(p.name, p.default if p.default is not p.empty else "none") for p in found]


def comparable(default: Any) -> str:
    text = str(default).replace("rushlight", "torch").replace("InterpolationMode.", "")
    return text.lower().removeprefix("torch.")


# Defaults that say the same in another way.
SAME_DEFAULTS = {("RandomErasing", "value")}


@pytest.mark.parametrize("home", ["transforms", "transforms.v2"])
def test_parameters_and_defaults_of_classes_agree(home: str) -> None:
    ours, theirs = OURS.module(home), THEIRS.module(home)
    differences = []
    for name, cls in vars(theirs).items():
        if not inspect.isclass(cls) or name.startswith("_") or name in ("InterpolationMode",):
            continue
        if cls.__init__ is object.__init__ or name == "AutoAugmentPolicy":
            continue
        mine, other = parameters(getattr(ours, name)), parameters(cls)
        mine = [(n, comparable(d)) for n, d in mine]
        other = [(n, comparable(d)) for n, d in other]
        if mine != other and mine != [(n, d) for n, d in other if n not in ("args", "kwargs")]:
            differences.append(f"{name}: {mine} not {other}")
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize(
    "home", ["transforms.functional", "transforms.v2.functional", "io", "utils"]
)
def test_parameters_and_defaults_of_functions_agree(home: str) -> None:
    ours, theirs = OURS.module(home), THEIRS.module(home)
    differences = []
    for name, function in vars(theirs).items():
        own = getattr(function, "__module__", "").startswith("torchvision")
        if not inspect.isfunction(function) or name.startswith("_") or not own:
            continue
        if name.endswith(("_video", "_mask")) or name in ("jpeg", "clamp_keypoints"):
            continue  # one function with the one of images
        mine = [(n, comparable(d)) for n, d in parameters(getattr(ours, name))]
        other = [(n, comparable(d)) for n, d in parameters(function)]
        if mine != other:
            differences.append(f"{name}: {mine} not {other}")
    assert not differences, "\n".join(differences)


REPRS = """
T.Compose([T.CenterCrop(10), T.ToTensor()])
T.PILToTensor()
T.ToPILImage("RGB")
T.Normalize((0.5,), (0.5,))
T.Resize(256)
T.Resize([10, 20], T.InterpolationMode.NEAREST, antialias=None)
T.Pad(3)
T.Lambda(len)
T.RandomApply([T.CenterCrop(10)], p=0.3)
T.RandomChoice([T.CenterCrop(10)])
T.RandomOrder([T.CenterCrop(10)])
T.RandomCrop(32, padding=4)
T.RandomHorizontalFlip()
T.RandomVerticalFlip(0.1)
T.RandomResizedCrop(224)
T.FiveCrop(3)
T.TenCrop((3, 4))
T.ColorJitter(0.4, (0.5, 1.5), 0, 0.1)
T.RandomRotation(10)
T.RandomRotation((1, 20), center=(1, 2), fill=(1, 2, 3))
T.RandomAffine(10, (0.1, 0.2), (0.5, 2), 10)
T.RandomAffine(10, interpolation=T.InterpolationMode.BILINEAR, fill=3, center=(1, 2))
T.RandomPerspective()
T.Grayscale(3)
T.RandomGrayscale()
T.RandomErasing()
T.GaussianBlur(3)
T.GaussianBlur((3, 5), 1.0)
T.RandomInvert()
T.RandomPosterize(3)
T.RandomSolarize(100)
T.RandomAdjustSharpness(2)
T.RandomAutocontrast()
T.RandomEqualize()
T.ElasticTransform()
T.AutoAugment()
T.RandAugment()
T.TrivialAugmentWide()
T.AugMix()
T.ConvertImageDtype(torch.float32)
v2.Compose([v2.CenterCrop(10), v2.ToImage()])
v2.RandomApply([v2.CenterCrop(10)])
v2.RandomChoice([v2.CenterCrop(10), v2.Identity()])
v2.Resize(256)
v2.RandomResizedCrop(224)
v2.RandomCrop(32, padding=4)
v2.Pad([1, 2], fill=3)
v2.RandomZoomOut()
v2.RandomRotation(10)
v2.RandomAffine(10, shear=3)
v2.RandomPerspective()
v2.ElasticTransform()
v2.RandomIoUCrop()
v2.ScaleJitter((10, 20))
v2.RandomShortestSize([10, 20], 30)
v2.RandomResize(10, 20)
v2.ColorJitter(0.4)
v2.RandomPhotometricDistort()
v2.RandomErasing()
v2.MixUp(num_classes=3)
v2.CutMix(alpha=0.5, num_classes=3)
v2.JPEG((10, 20))
v2.AutoAugment()
v2.RandAugment()
v2.AugMix()
v2.Lambda(len, int, str)
v2.Normalize([0.5], [0.5])
v2.GaussianBlur(3)
v2.GaussianNoise()
v2.ToDtype(torch.float32, scale=True)
v2.SanitizeBoundingBoxes()
v2.SanitizeKeyPoints()
v2.ClampBoundingBoxes()
v2.ConvertBoundingBoxFormat("XYWH")
v2.SetClampingMode("hard")
v2.UniformTemporalSubsample(3)
tv.BoundingBoxes([[1.0, 2.0, 3.0, 4.0]], format="XYXY", canvas_size=(5, 6))
tv.KeyPoints([[1.0, 2.0]], canvas_size=(5, 6))
tv.Image([[1.0, 2.0]])
tv.Mask([[1, 2]])
""".strip().splitlines()

ERRORS = """
T.Resize(1.5)
T.Resize([1, 2, 3])
T.CenterCrop([1, 2, 3])
T.Pad("a")
T.Pad([1, 2, 3])
T.Pad(1, padding_mode="b")
T.Lambda(3)
T.RandomOrder(3)
T.RandomChoice([1], p=3)
T.RandomResizedCrop(3, scale=1)
T.ColorJitter(-1)
T.ColorJitter("a")
T.ColorJitter(hue=0.7)
T.RandomRotation(-1)
T.RandomRotation([1])
T.RandomRotation(3, fill={1})
T.RandomAffine(3, translate=(2, 3))
T.RandomAffine(3, scale=(-1, 3))
T.RandomErasing(value="b")
T.RandomErasing(value=None)
T.RandomErasing(scale=3)
T.RandomErasing(p=2)
T.GaussianBlur(4)
T.GaussianBlur(3, -1)
T.GaussianBlur(3, (2, 1))
T.ElasticTransform(alpha=[1.0, 2.0, 3.0])
T.ElasticTransform(alpha=[1, 2])
T.ElasticTransform(fill="a")
T.AugMix(severity=11)
T.AutoAugment(policy="a")
T.LinearTransformation(torch.ones(2, 3), torch.ones(2))
T.LinearTransformation(torch.ones(2, 2), torch.ones(3))
T.RandomCrop(10)(torch.ones(3, 4, 4))
T.ToTensor()("a")
T.ToPILImage()("a")
T.ToPILImage("L")(torch.ones(3, 4, 4))
T.Normalize([0.5], [0.0])(torch.ones(1, 4, 4))
T.Compose([T.ToTensor()])(3)
v2.Compose([])
v2.Compose(3)
v2.RandomApply([], 0.5)
v2.RandomApply([v2.Identity()], 2)
v2.RandomChoice([v2.Identity()], p=[1, 2])
v2.RandomHorizontalFlip(2)
v2.Resize(1.5)
v2.Resize(None)
v2.RandomResizedCrop(3, scale=1)
v2.Pad("a")
v2.Pad([1, 2, 3])
v2.Pad(1, fill="a")
v2.RandomZoomOut(side_range=(0.5, 2))
v2.RandomCrop(10)(torch.ones(3, 4, 4))
v2.RandomPerspective(2)
v2.ElasticTransform(alpha="a")
v2.ColorJitter(-1)
v2.JPEG(0)
v2.JPEG(True)
v2.MixUp()(torch.ones(2, 3, 4, 4), torch.tensor([0, 1]))
v2.MixUp(num_classes=3)(torch.ones(3, 4, 4), torch.tensor([0, 1]))
v2.CutMix(num_classes=3)(torch.ones(2, 3, 4, 4))
v2.ToDtype("a")
v2.SanitizeBoundingBoxes(min_size=0)
v2.SanitizeBoundingBoxes()(torch.ones(3, 4, 4), torch.ones(2))
v2.RandomIoUCrop()(torch.ones(3, 4, 4))
v2.FiveCrop(3)(tv.Mask(torch.ones(4, 4)))
v2.AutoAugment()(tv.Mask(torch.ones(4, 4)))
v2.Normalize([0.5], [0.5])(PIL.new("RGB", (3, 3)))
v2.SetClampingMode("a")
v2.GaussianNoise(sigma=-1)(torch.ones(3, 4, 4))
tv.BoundingBoxes([[1, 2, 3, 4]], format="XYXX", canvas_size=(5, 6))
tv.BoundingBoxes([[1, 2, 3, 4, 5]], format="XYWHR", canvas_size=(5, 6))
tv.BoundingBoxes([[[1, 2, 3, 4]]], format="XYXY", canvas_size=(5, 6))
tv.BoundingBoxes([[1, 2, 3, 4]], format="XYXY", canvas_size=(5, 6), clamping_mode="a")
tv.KeyPoints([[1, 2, 3]], canvas_size=(5, 6))
tv.Image(torch.ones(3))
tv.set_return_type("a")
""".strip().splitlines()


def evaluated(library: Library, text: str) -> Any:
    names = {
        "torch": library.torch,
        "T": library.module("transforms"),
        "v2": library.module("transforms.v2"),
        "tv": library.module("tv_tensors"),
        "PIL": PIL,
    }
    return eval(text, names)


@pytest.mark.parametrize("text", REPRS)
def test_reprs_agree(text: str) -> None:
    assert repr(evaluated(OURS, text)) == repr(evaluated(THEIRS, text))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", ERRORS)
def test_errors_are_of_the_same_class(text: str) -> None:
    found = []
    for library in (OURS, THEIRS):
        with pytest.raises(Exception) as error:  # noqa: PT011 - compared below
            evaluated(library, text)
        found.append(error.type)
    assert found[0] is found[1], found
