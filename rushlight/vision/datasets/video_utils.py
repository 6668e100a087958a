"""Clips of videos: which frames they are, and their images and sound.

Owns the numbering of clips over many videos. The videos are decoded by PyAV.
"""

from __future__ import annotations

import bisect
import itertools
import warnings
from typing import Any

import rushlight as rl
from rushlight import Tensor

__all__ = ["VideoClips", "unfold"]


def unfold(tensor: Tensor, size: int, step: int, dilation: int = 1) -> Tensor:
    """Returns all windows of a 1-d tensor, as a view.

    Args:
        tensor: (N,).
        size: of a window.
        step: from one window to the next.
        dilation: from one element of a window to the next.

    Returns:
        (windows, size).

    Raises:
        ValueError: if the tensor is not 1-d.

    Example:
        >>> from rushlight.vision.datasets.video_utils import unfold
        >>> unfold(torch.arange(5), size=3, step=2)
        tensor([[0, 1, 2],
                [2, 3, 4]])
    """
    if tensor.ndim != 1:
        raise ValueError(f"tensor should have 1 dimension instead of {tensor.ndim}")
    (stride,) = tensor.stride()
    count = max(0, (len(tensor) - (dilation * (size - 1) + 1)) // step + 1)
    return tensor.as_strided((count, size), (step * stride, dilation * stride))


def _av() -> Any:
    try:
        import av  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError("Videos are decoded by PyAV. Install it: pip install av") from error
    return av


class _Timestamps:
    """A data set of the numbers of the frames of each video, and how many there are in a second."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> tuple[list[int], float | None]:
        with _av().open(self._paths[index]) as video:
            if not video.streams.video:
                return [], None
            stream = video.streams.video[0]
            # The count in the header may be missing; that of packets may be trusted.
            count = stream.frames or sum(1 for p in video.demux(stream) if p.size)
            return list(range(count)), float(stream.average_rate)


class VideoClips:
    """All runs of so many successive frames of some videos.

    Args:
        video_paths: the videos.
        clip_length_in_frames: frames of a clip.
        frames_between_clips: frames from the start of a clip to that of the next.
        frame_rate: frames in a second to resample the videos to, by default each as it is.
        _precomputed_metadata: the `metadata` of an earlier object, so that no video is read.
        num_workers: processes that look at the videos.
        output_format: "THWC" or "TCHW", the order of the dimensions of a clip.

    Attributes:
        clips: (clips, frames) int64 of each video, the numbers of the frames.

    Raises:
        ImportError: if PyAV is not installed.
        ValueError: if there is no such format.
    """

    def __init__(
        self,
        video_paths: list[str],
        clip_length_in_frames: int = 16,
        frames_between_clips: int = 1,
        frame_rate: float | None = None,
        _precomputed_metadata: dict[str, Any] | None = None,
        num_workers: int = 0,
        _video_width: int = 0,
        _video_height: int = 0,
        _video_min_dimension: int = 0,
        _video_max_dimension: int = 0,
        _audio_samples: int = 0,
        _audio_channels: int = 0,
        output_format: str = "THWC",
    ) -> None:
        self.output_format = output_format.upper()
        if self.output_format not in ("THWC", "TCHW"):
            raise ValueError(
                f"output_format should be either 'THWC' or 'TCHW', got {output_format}."
            )
        self.num_workers = num_workers
        if _precomputed_metadata is None:
            self.video_paths = video_paths
            self._look_at_videos()
        else:
            self.video_paths = _precomputed_metadata["video_paths"]
            self.video_pts: list[Tensor] = list(_precomputed_metadata["video_pts"])
            self.video_fps: list[float | None] = list(_precomputed_metadata["video_fps"])
        self.compute_clips(clip_length_in_frames, frames_between_clips, frame_rate)

    def _look_at_videos(self) -> None:
        loader = rl.utils.data.DataLoader(
            _Timestamps(self.video_paths),
            batch_size=16,
            num_workers=self.num_workers,
            collate_fn=list,
        )
        found = [video for batch in loader for video in batch]
        self.video_pts = [rl.tensor(numbers, dtype=rl.int64) for numbers, _ in found]
        self.video_fps = [rate for _, rate in found]

    @property
    def metadata(self) -> dict[str, Any]:
        """What is known of the videos, for another object."""
        return {
            "video_paths": self.video_paths,
            "video_pts": self.video_pts,
            "video_fps": self.video_fps,
        }

    def subset(self, indices: list[int]) -> VideoClips:
        """Returns the clips of some of the videos."""
        metadata = {name: [values[i] for i in indices] for name, values in self.metadata.items()}
        return type(self)(
            metadata["video_paths"],
            self.num_frames,
            self.step,
            self.frame_rate,
            metadata,
            self.num_workers,
            output_format=self.output_format,
        )

    @staticmethod
    def compute_clips_for_video(
        video_pts: Tensor,
        num_frames: int,
        step: int,
        fps: float | None,
        frame_rate: float | None = None,
    ) -> tuple[Tensor, Any]:
        """Returns the clips of a video, and for each how to resample its frames.

        Args:
            video_pts: numbers of the frames.
            num_frames: frames of a clip.
            step: frames between the starts of clips.
            fps: frames in a second, None if there are none at all.
            frame_rate: frames in a second to resample to.
        """
        fps = fps or 1
        rate = frame_rate or fps
        chosen = VideoClips._resample_video_idx(int(len(video_pts) * rate / fps), fps, rate)
        clips = unfold(video_pts[chosen], num_frames, step)
        if not clips.numel():
            warnings.warn(
                "There aren't enough frames in the current video to get a clip for the given clip "
                "length and frames between clips. The video (and potentially others) will be "
                "skipped.",
                stacklevel=3,
            )
        if isinstance(chosen, slice):
            return clips, [chosen] * len(clips)
        return clips, unfold(chosen, num_frames, step)

    @staticmethod
    def _resample_video_idx(num_frames: int, original_fps: float, new_fps: float) -> Any:
        """What to take of the frames: a slice if it can be, else their numbers."""
        step = original_fps / new_fps
        if float(step).is_integer():
            return slice(None, None, int(step))
        return (rl.arange(num_frames, dtype=rl.float32) * step).floor().to(rl.int64)

    def compute_clips(self, num_frames: int, step: int, frame_rate: float | None = None) -> None:
        """Makes the list of clips anew; see the class for the arguments."""
        self.num_frames = num_frames
        self.step = step
        self.frame_rate = frame_rate
        found = [
            self.compute_clips_for_video(numbers, num_frames, step, rate, frame_rate)
            for numbers, rate in zip(self.video_pts, self.video_fps, strict=True)
        ]
        self.clips = [clips for clips, _ in found]
        self.resampling_idxs = [chosen for _, chosen in found]
        self.cumulative_sizes = list(itertools.accumulate(len(clips) for clips in self.clips))

    def __len__(self) -> int:
        return self.num_clips()

    def num_videos(self) -> int:
        """Returns the number of videos."""
        return len(self.video_paths)

    def num_clips(self) -> int:
        """Returns the number of clips of all videos."""
        return self.cumulative_sizes[-1] if self.cumulative_sizes else 0

    def get_clip_location(self, idx: int) -> tuple[int, int]:
        """Returns the number of a clip's video, and its number among the clips of that."""
        video = bisect.bisect_right(self.cumulative_sizes, idx)
        return video, idx - (self.cumulative_sizes[video - 1] if video else 0)

    def get_clip(self, idx: int) -> tuple[Tensor, Tensor, dict[str, Any], int]:
        """Reads a clip.

        Args:
            idx: its number.

        Returns:
            The frames, uint8; the sound, (channels, samples) float32; a dict with "video_fps"; and
            the number of the video.

        Raises:
            IndexError: if there is no such clip.
            RuntimeError: if the video has fewer frames than it says.
        """
        if not 0 <= idx < self.num_clips():
            raise IndexError(f"Index {idx} out of range ({self.num_clips()} number of clips)")
        number, clip = self.get_clip_location(idx)
        frames = self.clips[number][clip]
        first, last = int(frames[0]), int(frames[-1])
        path = self.video_paths[number]
        rate = self.video_fps[number] or 1.0
        video = _read_frames(path, first, last)
        if self.frame_rate is not None:
            chosen = self.resampling_idxs[number][clip]
            video = video[chosen if isinstance(chosen, slice) else chosen - chosen[0]]
        if len(video) != self.num_frames:
            raise RuntimeError(
                f"VideoClips: {path} has no frames {first} to {last}, though its header says so."
            )
        if self.output_format == "TCHW":
            video = video.permute(0, 3, 1, 2)
        sound = _read_sound(path, first / rate, (last + 1) / rate)
        return video, sound, {"video_fps": self.frame_rate or self.video_fps[number]}, number

    def __getstate__(self) -> dict[str, Any]:
        derived = ("clips", "resampling_idxs", "cumulative_sizes")
        return {name: value for name, value in vars(self).items() if name not in derived}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.compute_clips(self.num_frames, self.step, self.frame_rate)


def _read_frames(path: str, first: int, last: int) -> Tensor:
    """The frames of a video from one to another, (T, H, W, 3) uint8."""
    with _av().open(path) as video:
        frames = itertools.islice(video.decode(video=0), first, last + 1)
        pictures = [rl.from_numpy(frame.to_ndarray(format="rgb24")) for frame in frames]
    return rl.stack(pictures) if pictures else rl.empty(0, 0, 0, 3, dtype=rl.uint8)


def _read_sound(path: str, start: float, end: float) -> Tensor:
    """The sound of a video from one second to another, (channels, samples) float32."""
    av = _av()
    with av.open(path) as video:
        if not video.streams.audio:
            return rl.empty(1, 0)
        stream = video.streams.audio[0]
        resampler = av.AudioResampler(format="fltp")
        parts = []
        for frame in video.decode(stream):
            begin = frame.time or 0.0
            for part in resampler.resample(frame):
                samples = rl.from_numpy(part.to_ndarray())
                skipped = max(0, round((start - begin) * part.sample_rate))
                wanted = max(0, round((end - begin) * part.sample_rate))
                parts.append(samples[:, skipped:wanted])
            if begin > end:
                break
    return rl.cat(parts, 1) if parts else rl.empty(1, 0)
