"""Vision's foundations have torchvision's names, parameters, defaults, reprs and error classes."""

from __future__ import annotations

import inspect
import types
from typing import Any

import pytest
from compat.vision_values import OURS, PIL, THEIRS, Library

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
