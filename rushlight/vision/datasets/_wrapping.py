"""Data sets whose targets transforms.v2 understands: boxes, masks and videos say what they are.

Owns what each data set's targets mean; how tensors carry that is tv_tensors' matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from copy import copy
from importlib import import_module
from typing import Any

import rushlight as rl
from rushlight.vision import datasets, tv_tensors

Wrap = Callable[[int, tuple[Any, ...]], tuple[Any, ...]]

__all__ = ["wrap_dataset_for_transforms_v2"]

# The classes of Pascal VOC and of KITTI, whose place is their label.
_VOC_LABELS = [
    "__background__",
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
]
_KITTI_LABELS = [
    "Car",
    "Van",
    "Truck",
    "Pedestrian",
    "Person_sitting",
    "Cyclist",
    "Tram",
    "Misc",
    "DontCare",
]


def wrap_dataset_for_transforms_v2(dataset: Any, target_keys: Any = None) -> Any:
    """Returns a data set whose samples transforms.v2 can treat as a whole.

    Boxes become tv_tensors.BoundingBoxes in XYXY, masks tv_tensors.Mask, videos tv_tensors.Video;
    numbers of classes stay as they are. Lists of dicts, one for each object, become a dict of
    "boxes", "labels" and the like.

    Args:
        dataset: the data set, whose transforms are taken over.
        target_keys: what to keep of a target that is a dict, "all" for everything, by default what
            models are trained with.

    Returns:
        An object of a subclass of the data set's class.

    Raises:
        TypeError: if it is no VisionDataset, or one whose targets are not known.
        ValueError: if the keys are not strings, or unknown.
        RuntimeError: if transforms.v2 has no such targets.
    """
    is_list = isinstance(target_keys, Collection) and all(isinstance(k, str) for k in target_keys)
    if target_keys is not None and not is_list:
        raise ValueError(
            "`target_keys` can be None, 'all', or a collection of strings denoting the keys to be "
            f"returned, but got {target_keys}"
        )
    cls = type(dataset)
    wrapped = type(f"Wrapped{cls.__name__}", (_Wrapped, cls), {})
    return wrapped(dataset, target_keys)


class _Wrapped:
    """Goes before a data set's class, so that isinstance holds; the data set itself is kept."""

    def __init__(self, dataset: Any, target_keys: Any) -> None:
        self._dataset = dataset
        self._target_keys = target_keys
        self._wrap = _find_wrap(dataset, target_keys)
        for name in ("transform", "target_transform", "transforms"):
            setattr(self, name, getattr(dataset, name))
            setattr(dataset, name, None)  # they come after the wrapping

    def __getattr__(self, name: str) -> Any:
        if name == "_dataset":  # not there yet, when it is copied
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __getitem__(self, index: int) -> Any:
        sample = self._wrap(index, self._dataset[index])
        return sample if self.transforms is None else self.transforms(*sample)

    def __len__(self) -> int:
        return len(self._dataset)

    def __reduce__(self) -> Any:
        dataset = copy(self._dataset)
        for name in ("transform", "target_transform", "transforms"):
            setattr(dataset, name, getattr(self, name))
        return wrap_dataset_for_transforms_v2, (dataset, self._target_keys)


def _find_wrap(dataset: Any, target_keys: Any) -> Wrap:
    if not isinstance(dataset, datasets.VisionDataset):
        raise TypeError(
            "This wrapper is meant for subclasses of `torchvision.datasets.VisionDataset`, but got "
            f"a '{type(dataset).__name__}' instead."
        )
    for cls in type(dataset).__mro__:
        make = _WRAPS.get(cls.__name__) if cls.__module__.startswith(datasets.__name__) else None
        if make is None:
            continue
        if target_keys is not None and make not in _WITH_KEYS:
            raise ValueError(
                "`target_keys` is currently only supported for `CocoDetection`, `VOCDetection`, "
                f"`Kitti`, and `WIDERFace`, but got {cls.__name__}."
            )
        return make(dataset, target_keys)
    raise TypeError(
        f"No wrapper exists for dataset class {type(dataset).__name__}. Please wrap the output "
        "yourself."
    )


def _refuse(what: str) -> None:
    raise RuntimeError(f"{what} is currently not supported by this wrapper.")


def _boxes(values: Any, image: Any, format: str) -> Any:
    from rushlight.vision.transforms.v2 import functional as F

    boxes = tv_tensors.BoundingBoxes(values, format=format, canvas_size=(image.height, image.width))
    return F.convert_bounding_box_format(boxes, new_format="XYXY")


def _by_key(objects: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Lists of the values of each key, from one dict for each object."""
    result = defaultdict(list)
    for one in objects:
        for key, value in one.items():
            result[key].append(value)
    return dict(result)


def _keys(wanted: Any, known: str, usual: str) -> set[str]:
    if wanted is None:
        return set(usual.split())
    if wanted == "all":
        return set(known.split())
    unknown = set(wanted) - set(known.split())
    if unknown:
        raise ValueError(f"Target keys {sorted(unknown)} are not available")
    return set(wanted)


def _unchanged(dataset: Any, target_keys: Any) -> Wrap:
    return lambda index, sample: sample


def _mask(dataset: Any, target_keys: Any) -> Wrap:
    return lambda index, sample: (sample[0], tv_tensors.Mask(sample[1]))


def _caltech101(dataset: Any, target_keys: Any) -> Wrap:
    if "annotation" in dataset.target_type:
        _refuse("Caltech101 dataset with `target_type=['annotation', ...]`")
    return _unchanged(dataset, target_keys)


def _sbd(dataset: Any, target_keys: Any) -> Wrap:
    if dataset.mode == "boundaries":
        _refuse("SBDataset with mode='boundaries'")
    return _mask(dataset, target_keys)


def _video(dataset: Any, target_keys: Any) -> Wrap:
    if dataset.video_clips.output_format == "THWC":
        raise RuntimeError(
            f"{type(dataset).__name__} with `output_format='THWC'` is not supported by this "
            "wrapper, since it is not compatible with the transformations. Please use "
            "`output_format='TCHW'` instead."
        )
    return lambda index, sample: (tv_tensors.Video(sample[0]), *sample[1:])


def _by_type(kinds: list[str], wraps: dict[str, Any]) -> Wrap:
    """Wraps each target by its kind, if there is a function for that, given it and the image."""

    def wrap(index: int, sample: tuple[Any, ...]) -> tuple[Any, ...]:
        image, target = sample
        if target is None:
            return sample
        targets = target if len(kinds) > 1 else (target,)
        done = tuple(
            wraps[kind](one, image) if kind in wraps else one
            for kind, one in zip(kinds, targets, strict=True)
        )
        return image, done if len(kinds) > 1 else done[0]

    return wrap


def _celeba(dataset: Any, target_keys: Any) -> Wrap:
    if {"attr", "landmarks"} & set(dataset.target_type):
        _refuse("`CelebA` dataset with `target_type=['attr', 'landmarks', ...]`")
    return _by_type(dataset.target_type, {"bbox": lambda box, image: _boxes(box, image, "XYWH")})


def _pet(dataset: Any, target_keys: Any) -> Wrap:
    masks = {"segmentation": lambda mask, image: tv_tensors.Mask(mask)}
    return _by_type(dataset._target_types, masks)


def _cityscapes(dataset: Any, target_keys: Any) -> Wrap:
    if {"polygon", "color"} & set(dataset.target_type):
        _refuse("`Cityscapes` dataset with `target_type=['polygon', 'color', ...]`")

    def instances(mask: Any, image: Any) -> dict[str, Any]:
        # A pixel is the class of its object times 1000 plus its number, or the class alone.
        pixels = tv_tensors.Mask(mask).as_subclass(rl.Tensor)  # (1, height, width)
        ids = pixels.unique()
        masks = tv_tensors.Mask(pixels == ids[:, None, None, None])
        return {"masks": masks, "labels": rl.where(ids >= 1000, ids // 1000, ids)}

    semantic = {"semantic": lambda mask, image: tv_tensors.Mask(mask)}
    return _by_type(dataset.target_type, {"instance": instances, **semantic})


def _coco(dataset: Any, target_keys: Any) -> Wrap:
    native = "segmentation area iscrowd image_id bbox category_id"
    keys = _keys(target_keys, f"{native} boxes masks labels", "image_id boxes labels")

    def wrap(index: int, sample: tuple[Any, ...]) -> tuple[Any, ...]:
        image, objects = sample
        number = dataset.ids[index]
        if not objects:
            return image, {"image_id": number}
        found: dict[str, Any] = _by_key(objects)
        made = {
            "image_id": lambda: number,
            "boxes": lambda: _boxes(found["bbox"], image, "XYWH"),
            "masks": lambda: tv_tensors.Mask(
                rl.stack([_outline(one, image) for one in found["segmentation"]])
            ),
            "labels": lambda: rl.tensor(found["category_id"]),
        }
        return image, {key: made[key]() if key in made else found[key] for key in keys}

    return wrap


def _outline(segmentation: Any, image: Any) -> Any:
    """The pixels of an object, (height, width) uint8, from polygons or from lengths of runs."""
    mask: Any = import_module("pycocotools.mask")
    size = image.height, image.width
    if isinstance(segmentation, list):
        segmentation = mask.merge(mask.frPyObjects(segmentation, *size))
    elif not isinstance(segmentation, dict):
        raise ValueError(
            f"COCO segmentation expected to be a dict or a list, got {type(segmentation)}"
        )
    elif not isinstance(segmentation["counts"], str):
        segmentation = mask.frPyObjects(segmentation, *size)
    return rl.from_numpy(mask.decode(segmentation))


def _voc(dataset: Any, target_keys: Any) -> Wrap:
    keys = _keys(target_keys, "annotation boxes labels", "boxes labels")

    def wrap(index: int, sample: tuple[Any, ...]) -> tuple[Any, ...]:
        image, target = sample
        found = _by_key(target["annotation"]["object"])
        sides = ("xmin", "ymin", "xmax", "ymax")
        if "annotation" not in keys:
            target = {}
        if "boxes" in keys:
            boxes = [[int(box[side]) for side in sides] for box in found["bndbox"]]
            target["boxes"] = _boxes(boxes, image, "XYXY")
        if "labels" in keys:
            target["labels"] = rl.tensor([_VOC_LABELS.index(name) for name in found["name"]])
        return image, target

    return wrap


def _kitti(dataset: Any, target_keys: Any) -> Wrap:
    native = "type truncated occluded alpha bbox dimensions location rotation_y"
    keys = _keys(target_keys, f"{native} boxes labels", "boxes labels")

    def wrap(index: int, sample: tuple[Any, ...]) -> tuple[Any, ...]:
        image, objects = sample
        if objects is None:
            return sample
        found: dict[str, Any] = _by_key(objects)
        made = {
            "boxes": lambda: _boxes(found["bbox"], image, "XYXY"),
            "labels": lambda: rl.tensor([_KITTI_LABELS.index(kind) for kind in found["type"]]),
        }
        return image, {key: made[key]() if key in made else found[key] for key in keys}

    return wrap


def _widerface(dataset: Any, target_keys: Any) -> Wrap:
    known = "bbox blur expression illumination occlusion pose invalid"
    keys = _keys(target_keys, known, known)

    def wrap(index: int, sample: tuple[Any, ...]) -> tuple[Any, ...]:
        image, target = sample
        if target is None:
            return sample
        target = {key: target[key] for key in keys}
        if "bbox" in keys:
            target["bbox"] = _boxes(target["bbox"], image, "XYWH")
        return image, target

    return wrap


_WITH_KEYS = (_coco, _voc, _kitti, _widerface)
# By name, so that no data set is imported that is not used.
_WRAPS: dict[str, Callable[[Any, Any], Wrap]] = {
    **dict.fromkeys(
        [
            "Caltech256",
            "CIFAR10",
            "CIFAR100",
            "CocoCaptions",
            "DatasetFolder",
            "FashionMNIST",
            "GTSRB",
            "ImageFolder",
            "ImageNet",
            "Imagenette",
            "MNIST",
        ],
        _unchanged,
    ),
    **dict.fromkeys(("HMDB51", "Kinetics", "UCF101"), _video),
    "CelebA": _celeba,
    "Caltech101": _caltech101,
    "Cityscapes": _cityscapes,
    "CocoDetection": _coco,
    "Kitti": _kitti,
    "OxfordIIITPet": _pet,
    "SBDataset": _sbd,
    "VOCDetection": _voc,
    "VOCSegmentation": _mask,
    "WIDERFace": _widerface,
}
