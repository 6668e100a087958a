"""Videos of what people do: Kinetics, HMDB51 and UCF101.

Owns their folders and lists; clips are made by video_utils.py.
"""

# The class attributes are torchvision's, which programs change.
from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rushlight.vision.datasets._files import Source, read_lines
from rushlight.vision.datasets.folder import find_classes, make_dataset
from rushlight.vision.datasets.utils import verify_str_arg
from rushlight.vision.datasets.video_utils import VideoClips
from rushlight.vision.datasets.vision import AnyPath, Transform, VisionDataset


class _Clips(VisionDataset):
    """Clips of videos in one folder for each class.

    A sample is the clip, its sound and the number of its class.
    """

    def _find(self, folder: AnyPath, extensions: tuple[str, ...], **options: Any) -> VideoClips:
        """Lists the videos and their clips; the options are VideoClips'."""
        self.classes, numbers = find_classes(folder)
        self.samples = make_dataset(folder, numbers, extensions)
        return VideoClips([path for path, _ in self.samples], **options)

    video_clips: VideoClips

    @property
    def metadata(self) -> dict[str, Any]:
        """What is known of all videos, to be given as _precomputed_metadata."""
        return self.video_clips.metadata

    def __getitem__(self, idx: int) -> tuple[Any, Any, int]:
        video, sound, _, number = self.video_clips.get_clip(idx)
        if self.transform is not None:
            video = self.transform(video)
        return video, sound, self._class_of(number)

    def _class_of(self, number: int) -> int:
        """The number of the class of a video among those whose clips are used."""
        return self.samples[number][1]

    def __len__(self) -> int:
        return self.video_clips.num_clips()


class Kinetics(_Clips):
    """Clips of ten seconds of 400, 600 or 700 activities: Kay et al. 2017.

    Args:
        root: folder of the split's folder, which has one for each class.
        frames_per_clip: frames of a clip.
        num_classes: "400", "600" or "700".
        split: "train", "val" or "test".
        frame_rate: frames in a second to resample to.
        step_between_clips: frames from the start of a clip to that of the next.
        transform: function of the clip.
        extensions: endings of the videos.
        download: whether to download the videos if the split's folder is not there.
        num_download_workers: accepted for torchvision's sake; one file is downloaded at a time.
        num_workers: processes that look at the videos.
        _precomputed_metadata: the `metadata` of an earlier object, so that no video is read.
        output_format: "TCHW" or "THWC".

    Raises:
        ImportError: if PyAV is not installed.
        ValueError: if there is no such split, or number of classes.
    """

    _TAR_URLS = {
        "400": "https://s3.amazonaws.com/kinetics/400/{split}/k400_{split}_path.txt",
        "600": "https://s3.amazonaws.com/kinetics/600/{split}/k600_{split}_path.txt",
        "700": "https://s3.amazonaws.com/kinetics/700_2020/{split}/k700_2020_{split}_path.txt",
    }
    _ANNOTATION_URLS = {
        "400": "https://s3.amazonaws.com/kinetics/400/annotations/{split}.csv",
        "600": "https://s3.amazonaws.com/kinetics/600/annotations/{split}.csv",
        "700": "https://s3.amazonaws.com/kinetics/700_2020/annotations/{split}.csv",
    }

    def __init__(
        self,
        root: AnyPath,
        frames_per_clip: int,
        num_classes: str = "400",
        split: str = "train",
        frame_rate: int | None = None,
        step_between_clips: int = 1,
        transform: Transform = None,
        extensions: tuple[str, ...] = ("avi", "mp4"),
        download: bool = False,
        num_download_workers: int = 1,
        num_workers: int = 1,
        _precomputed_metadata: dict[str, Any] | None = None,
        _video_width: int = 0,
        _video_height: int = 0,
        _video_min_dimension: int = 0,
        _audio_samples: int = 0,
        _audio_channels: int = 0,
        _legacy: bool = False,
        output_format: str = "TCHW",
    ) -> None:
        super().__init__(root, transform=transform)
        self.num_classes = verify_str_arg(num_classes, "num_classes", self._TAR_URLS)
        self.extensions = extensions
        self._legacy = _legacy
        if _legacy:  # the classes are in the root
            if download:
                raise ValueError("Cannot download the videos using legacy_structure.")
            self.split, self.split_folder, output_format = "unknown", self.root, "THWC"
        else:
            self.split = verify_str_arg(split, "split", ("train", "val", "test"))
            self.split_folder = os.path.join(self.root, split)
        if download and not os.path.exists(self.split_folder):
            self._download()
        self.video_clips = self._find(
            self.split_folder,
            extensions,
            clip_length_in_frames=frames_per_clip,
            frames_between_clips=step_between_clips,
            frame_rate=frame_rate,
            _precomputed_metadata=_precomputed_metadata,
            num_workers=num_workers,
            output_format=output_format,
        )

    def _download(self) -> None:
        lists = Source(self._TAR_URLS[self.num_classes].format(split=self.split), into=None)
        lists.fetch(os.path.join(self.root, "files"))
        table = Source(self._ANNOTATION_URLS[self.num_classes].format(split=self.split), into=None)
        table.fetch(os.path.join(self.root, "annotations"))
        name = os.path.basename(str(lists.urls))
        for url in read_lines(os.path.join(self.root, "files", name)):
            archive = Source(quote(url, safe="/,:"), folder="tars", into=f"../{self.split}")
            archive.fetch(self.root)
        with open(os.path.join(self.root, "annotations", f"{self.split}.csv")) as file:
            for row in csv.DictReader(file):
                self._sort_in(row)

    def _sort_in(self, row: dict[str, str]) -> None:
        """Moves a video to the folder of its class."""
        start, end = int(row["time_start"]), int(row["time_end"])
        name = f"{row['youtube_id']}_{start:06}_{end:06}.mp4"
        label = "".join(c for c in row["label"].replace(" ", "_") if c not in "'()/")
        video = Path(self.split_folder, name)
        if video.is_file():
            (video.parent / label).mkdir(exist_ok=True)
            video.replace(video.parent / label / name)


class _Folds(_Clips):
    """Clips of those videos that a list names, for one of three ways to split them in two.

    Args:
        root: folder of the classes' folders.
        annotation_path: folder of the lists.
        frames_per_clip: frames of a clip.
        step_between_clips: frames from the start of a clip to that of the next.
        frame_rate: frames in a second to resample to.
        fold: which way to split them, 1 to 3.
        train: whether to take the training set, not the test set.
        transform: function of the clip.
        _precomputed_metadata: the `metadata` of an earlier object, so that no video is read.
        num_workers: processes that look at the videos.
        output_format: "THWC" or "TCHW".

    Raises:
        ImportError: if PyAV is not installed.
        ValueError: if there is no such fold.
    """

    def __init__(
        self,
        root: AnyPath,
        annotation_path: str,
        frames_per_clip: int,
        step_between_clips: int = 1,
        frame_rate: int | None = None,
        fold: int = 1,
        train: bool = True,
        transform: Transform = None,
        _precomputed_metadata: dict[str, Any] | None = None,
        num_workers: int = 1,
        _video_width: int = 0,
        _video_height: int = 0,
        _video_min_dimension: int = 0,
        _audio_samples: int = 0,
        output_format: str = "THWC",
    ) -> None:
        super().__init__(root, transform=transform)
        if fold not in (1, 2, 3):
            raise ValueError(f"fold should be between 1 and 3, got {fold}")
        self.fold = fold
        self.train = train
        self.full_video_clips = self._find(
            self.root,
            ("avi",),
            clip_length_in_frames=frames_per_clip,
            frames_between_clips=step_between_clips,
            frame_rate=frame_rate,
            _precomputed_metadata=_precomputed_metadata,
            num_workers=num_workers,
            output_format=output_format,
        )
        chosen = self._chosen(Path(annotation_path))
        self.indices = [
            index
            for index, (path, _) in enumerate(self.samples)
            if os.path.relpath(path, self.root) in chosen or os.path.basename(path) in chosen
        ]
        self.video_clips = self.full_video_clips.subset(self.indices)

    def _class_of(self, number: int) -> int:
        return self.samples[self.indices[number]][1]

    def _chosen(self, folder: Path) -> set[str]:
        """The names of the videos of the fold, or their paths below the root."""
        raise NotImplementedError

    @property
    def metadata(self) -> dict[str, Any]:
        return self.full_video_clips.metadata


class HMDB51(_Folds):
    """6,849 clips of films in 51 classes: Kuehne et al. 2011. Arguments as for UCF101."""

    data_url = "https://serre-lab.clps.brown.edu/wp-content/uploads/2013/10/hmdb51_org.rar"
    splits = {
        "url": "https://serre-lab.clps.brown.edu/wp-content/uploads/2013/10/test_train_splits.rar",
        "md5": "15e67781e70dcfbdce2d7dbb9b3344b5",
    }
    TRAIN_TAG = 1
    TEST_TAG = 2

    def _chosen(self, folder: Path) -> set[str]:
        tag = self.TRAIN_TAG if self.train else self.TEST_TAG
        lists = folder.glob(f"*test_split{self.fold}.txt")
        rows = [line.split() for path in lists for line in read_lines(path)]
        return {name for name, found in rows if int(found) == tag}


class UCF101(_Folds):
    __doc__ = f"13,320 clips in 101 classes: Soomro et al. 2012.\n\n{_Folds.__doc__}"

    def _chosen(self, folder: Path) -> set[str]:
        name = f"{'train' if self.train else 'test'}list{self.fold:02d}.txt"
        return {line.split(" ")[0] for line in read_lines(folder / name)}
