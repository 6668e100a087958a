"""Data sets of images and videos, with torchvision's names, arguments and files.

Each is in a file with its relatives, which is imported when the data set is first used.
"""

from __future__ import annotations

from rushlight import _later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.vision.datasets._arrays import FER2013, SEMEION, STL10, SVHN, USPS
    from rushlight.vision.datasets._captions import SBU, Flickr8k, Flickr30k
    from rushlight.vision.datasets._faces import CelebA, LFWPairs, LFWPeople, WIDERFace
    from rushlight.vision.datasets._labeled import (
        DTD,
        GTSRB,
        SUN397,
        CLEVRClassification,
        FGVCAircraft,
        Food101,
        Imagenette,
        Omniglot,
        RenderedSST2,
        StanfordCars,
    )
    from rushlight.vision.datasets._large_arrays import PCAM, MovingMNIST, PhotoTour
    from rushlight.vision.datasets._optical_flow import (
        HD1K,
        FlyingChairs,
        FlyingThings3D,
        KittiFlow,
        Sintel,
    )
    from rushlight.vision.datasets._photographs import (
        Caltech101,
        Caltech256,
        Country211,
        EuroSAT,
        Flowers102,
        OxfordIIITPet,
        Places365,
    )
    from rushlight.vision.datasets._scenes import (
        Cityscapes,
        Kitti,
        SBDataset,
        VOCDetection,
        VOCSegmentation,
    )
    from rushlight.vision.datasets._stereo_matching import (
        CarlaStereo,
        CREStereo,
        ETH3DStereo,
        FallingThingsStereo,
        InStereo2k,
        Kitti2012Stereo,
        Kitti2015Stereo,
        Middlebury2014Stereo,
        SceneFlowStereo,
        SintelStereo,
    )
    from rushlight.vision.datasets._video import HMDB51, UCF101, Kinetics
    from rushlight.vision.datasets._wrapping import wrap_dataset_for_transforms_v2
    from rushlight.vision.datasets.cifar import CIFAR10, CIFAR100
    from rushlight.vision.datasets.coco import CocoCaptions, CocoDetection
    from rushlight.vision.datasets.fakedata import FakeData
    from rushlight.vision.datasets.folder import DatasetFolder, ImageFolder
    from rushlight.vision.datasets.imagenet import ImageNet
    from rushlight.vision.datasets.inaturalist import INaturalist
    from rushlight.vision.datasets.lsun import LSUN, LSUNClass
    from rushlight.vision.datasets.mnist import EMNIST, KMNIST, MNIST, QMNIST, FashionMNIST
    from rushlight.vision.datasets.vision import VisionDataset

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "CLEVRClassification",
    "CREStereo",
    "Caltech101",
    "Caltech256",
    "CarlaStereo",
    "CelebA",
    "Cityscapes",
    "CocoCaptions",
    "CocoDetection",
    "Country211",
    "DTD",
    "DatasetFolder",
    "EMNIST",
    "ETH3DStereo",
    "EuroSAT",
    "FER2013",
    "FGVCAircraft",
    "FakeData",
    "FallingThingsStereo",
    "FashionMNIST",
    "Flickr30k",
    "Flickr8k",
    "Flowers102",
    "FlyingChairs",
    "FlyingThings3D",
    "Food101",
    "GTSRB",
    "HD1K",
    "HMDB51",
    "INaturalist",
    "ImageFolder",
    "ImageNet",
    "Imagenette",
    "InStereo2k",
    "KMNIST",
    "Kinetics",
    "Kitti",
    "Kitti2012Stereo",
    "Kitti2015Stereo",
    "KittiFlow",
    "LFWPairs",
    "LFWPeople",
    "LSUN",
    "LSUNClass",
    "MNIST",
    "Middlebury2014Stereo",
    "MovingMNIST",
    "Omniglot",
    "OxfordIIITPet",
    "PCAM",
    "PhotoTour",
    "Places365",
    "QMNIST",
    "RenderedSST2",
    "SBDataset",
    "SBU",
    "SEMEION",
    "STL10",
    "SUN397",
    "SVHN",
    "SceneFlowStereo",
    "Sintel",
    "SintelStereo",
    "StanfordCars",
    "UCF101",
    "USPS",
    "VOCDetection",
    "VOCSegmentation",
    "VisionDataset",
    "WIDERFace",
    "wrap_dataset_for_transforms_v2",
]

_MODULES = {
    "_arrays": "FER2013 SEMEION STL10 SVHN USPS",
    "_captions": "Flickr30k Flickr8k SBU",
    "_faces": "CelebA LFWPairs LFWPeople WIDERFace",
    "_labeled": "CLEVRClassification DTD FGVCAircraft Food101 GTSRB Imagenette Omniglot "
    "RenderedSST2 SUN397 StanfordCars",
    "_large_arrays": "MovingMNIST PCAM PhotoTour",
    "_optical_flow": "FlyingChairs FlyingThings3D HD1K KittiFlow Sintel",
    "_photographs": "Caltech101 Caltech256 Country211 EuroSAT Flowers102 OxfordIIITPet Places365",
    "_scenes": "Cityscapes Kitti SBDataset VOCDetection VOCSegmentation",
    "_stereo_matching": "CREStereo CarlaStereo ETH3DStereo FallingThingsStereo InStereo2k "
    "Kitti2012Stereo Kitti2015Stereo Middlebury2014Stereo SceneFlowStereo SintelStereo",
    "_video": "HMDB51 Kinetics UCF101",
    "_wrapping": "wrap_dataset_for_transforms_v2",
    "cifar": "CIFAR10 CIFAR100",
    "coco": "CocoCaptions CocoDetection",
    "fakedata": "FakeData",
    "folder": "DatasetFolder ImageFolder",
    "imagenet": "ImageNet",
    "inaturalist": "INaturalist",
    "lsun": "LSUN LSUNClass",
    "mnist": "EMNIST FashionMNIST KMNIST MNIST QMNIST",
    "vision": "VisionDataset",
}
__getattr__ = _later.imports(__name__, (*_MODULES, "samplers", "utils", "video_utils"), _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "folder", "samplers", "utils", "video_utils", "vision"})
