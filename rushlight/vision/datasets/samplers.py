"""Samplers of clips of videos: so many of each, evenly or at random; and one for processes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import rushlight as rl
from rushlight.utils.data import Sampler
from rushlight.vision.datasets.video_utils import VideoClips

__all__ = ["DistributedSampler", "RandomClipSampler", "UniformClipSampler"]


class DistributedSampler(Sampler):
    """Deals samples to processes, in groups that stay together, such as the clips of a video.

    Args:
        dataset: data set, or a sampler whose indices are dealt.
        num_replicas: number of processes, by default that of torch.distributed.
        rank: number of this process, by default that of torch.distributed.
        shuffle: whether to shuffle the samples, as the epoch says.
        group_size: samples of a group.

    Raises:
        ValueError: if the number of samples is no multiple of `group_size`.

    Example:
        >>> from rushlight.vision.datasets.samplers import DistributedSampler
        >>> list(DistributedSampler(range(14), num_replicas=4, rank=1, group_size=2))
        [2, 3, 10, 11]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        group_size: int = 1,
    ) -> None:
        if len(dataset) % group_size != 0:
            raise ValueError(
                "dataset length must be a multiplier of group size dataset length: "
                f"{len(dataset)}, group size: {group_size}"
            )
        self.dataset = dataset
        self.group_size = group_size
        self.num_replicas = _ask("get_world_size") if num_replicas is None else num_replicas
        self.rank = _ask("get_rank") if rank is None else rank
        self.epoch = 0
        self.shuffle = shuffle
        self.num_group_samples = math.ceil(len(dataset) // group_size / self.num_replicas)
        self.num_samples = self.num_group_samples * group_size
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        indices = rl.arange(count)
        if self.shuffle:
            indices = rl.randperm(count, generator=rl.Generator().manual_seed(self.epoch))
        if self.total_size > count:  # the first ones again, so that all get as many
            indices = rl.cat([indices, indices[: self.total_size - count]])
        groups = indices.reshape(-1, self.group_size)[self.rank :: self.num_replicas]
        mine = groups.reshape(-1).tolist()
        if isinstance(self.dataset, Sampler):
            dealt = list(self.dataset)
            return iter([dealt[index] for index in mine])
        return iter(mine)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Sets what the next shuffle depends on."""
        self.epoch = epoch


def _ask(question: str) -> int:
    distributed = getattr(rl, "distributed", None)
    if distributed is None or not distributed.is_available():
        raise RuntimeError("Requires distributed package to be available")
    return getattr(distributed, question)()


class _ClipSampler(Sampler):
    """Takes a number of clips of each video."""

    def __init__(self, video_clips: VideoClips, count: int) -> None:
        if not isinstance(video_clips, VideoClips):
            raise TypeError(
                f"Expected video_clips to be an instance of VideoClips, got {type(video_clips)}"
            )
        self.video_clips = video_clips
        self._count = count

    def _ranges(self) -> list[tuple[int, int]]:
        """The number of the first clip of each video that has any, and how many it has."""
        ends = self.video_clips.cumulative_sizes
        starts = [0, *ends[:-1]]
        return [(s, e - s) for s, e in zip(starts, ends, strict=True) if e > s]


class UniformClipSampler(_ClipSampler):
    """Takes as many clips of each video, at even distances; some twice if there are fewer.

    Args:
        video_clips: the clips.
        num_clips_per_video: how many to take.

    Raises:
        TypeError: if the clips are not VideoClips.
    """

    def __init__(self, video_clips: VideoClips, num_clips_per_video: int) -> None:
        super().__init__(video_clips, num_clips_per_video)
        self.num_clips_per_video = num_clips_per_video

    def __iter__(self) -> Iterator[int]:
        for start, count in self._ranges():
            chosen = rl.linspace(start, start + count - 1, steps=self._count)
            yield from chosen.floor().to(rl.int64).tolist()

    def __len__(self) -> int:
        return self._count * len(self._ranges())


class RandomClipSampler(_ClipSampler):
    """Takes at most so many clips of each video, at random and in random order.

    Args:
        video_clips: the clips.
        max_clips_per_video: how many to take.

    Raises:
        TypeError: if the clips are not VideoClips.
    """

    def __init__(self, video_clips: VideoClips, max_clips_per_video: int) -> None:
        super().__init__(video_clips, max_clips_per_video)
        self.max_clips_per_video = max_clips_per_video

    def __iter__(self) -> Iterator[int]:
        chosen = [rl.randperm(n)[: self._count] + start for start, n in self._ranges()]
        indices = rl.cat(chosen) if chosen else rl.arange(0)
        return iter(indices[rl.randperm(len(indices))].tolist())

    def __len__(self) -> int:
        return sum(min(count, self._count) for _, count in self._ranges())
