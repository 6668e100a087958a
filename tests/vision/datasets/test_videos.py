"""Clips of videos: their numbering, without any video, and their pictures, where PyAV is there."""

import pickle

import numpy as np
import pytest
from vision.datasets.small_data.writing import text

import rushlight as torch
from rushlight.vision import datasets
from rushlight.vision.datasets import samplers
from rushlight.vision.datasets.video_utils import VideoClips, unfold

COUNTS, RATES = (10, 3, 25), (30.0, 24.0, 25.0)


def known(paths=("a", "b", "c")):
    return {
        "video_paths": list(paths),
        "video_pts": [torch.arange(count) for count in COUNTS],
        "video_fps": list(RATES),
    }


def test_windows_have_steps_and_gaps() -> None:
    found = unfold(torch.arange(10), size=3, step=2, dilation=2)
    assert found.tolist() == [[0, 2, 4], [2, 4, 6], [4, 6, 8]]
    assert unfold(torch.arange(2), 3, 1).shape == (0, 3)
    with pytest.raises(ValueError, match="1 dimension instead of 2"):
        unfold(torch.zeros(2, 2), 1, 1)


@pytest.mark.filterwarnings("ignore:There aren't enough frames")
def test_clips_are_numbered_over_all_videos() -> None:
    clips = VideoClips([], 4, 3, _precomputed_metadata=known())
    assert [len(found) for found in clips.clips] == [3, 0, 8]
    assert clips.clips[0].tolist() == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    assert (len(clips), clips.num_videos()) == (11, 3)
    assert [clips.get_clip_location(n) for n in (0, 2, 3, 10)] == [(0, 0), (0, 2), (2, 0), (2, 7)]
    slow = VideoClips([], 2, 1, 15, known())
    assert slow.clips[0].tolist() == [[0, 2], [2, 4], [4, 6], [6, 8]]
    again = pickle.loads(pickle.dumps(clips))
    assert [found.tolist() for found in again.clips] == [found.tolist() for found in clips.clips]
    assert len(clips.subset([2])) == 8
    for index in (-1, 11):
        with pytest.raises(IndexError, match=f"Index {index} out of range"):
            clips.get_clip(index)
    with pytest.raises(ValueError, match="output_format"):
        VideoClips([], output_format="CTHW", _precomputed_metadata=known())


@pytest.mark.filterwarnings("ignore:There aren't enough frames")
def test_samplers_take_clips_of_each_video() -> None:
    clips = VideoClips([], 4, 3, _precomputed_metadata=known())
    even = samplers.UniformClipSampler(clips, 3)
    assert list(even) == [0, 1, 2, 3, 6, 10]
    assert len(even) == 6
    some = samplers.RandomClipSampler(clips, 5)
    found = list(some)
    assert len(found) == len(some) == len(set(found)) == 8
    assert sum(index < 3 for index in found) == 3
    with pytest.raises(TypeError, match="instance of VideoClips"):
        samplers.UniformClipSampler([1], 3)
    with pytest.raises(ValueError, match="multiplier of group size"):
        samplers.DistributedSampler(range(5), 1, 0, group_size=2)


def test_a_missing_library_is_named(monkeypatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ImportError, match="pip install av"):
        VideoClips(["a.avi"])


@pytest.fixture
def videos(tmp_path):
    """Two classes with two videos of 12 frames at 10 a second, the red of each its number."""
    av = pytest.importorskip("av")
    for kind in ("jump", "walk"):
        for name in ("a", "b"):
            path = tmp_path / "videos" / kind / f"{name}_{kind}.avi"
            path.parent.mkdir(parents=True, exist_ok=True)
            with av.open(str(path), "w") as file:
                stream = file.add_stream("ffv1", rate=10)  # loses nothing
                stream.width, stream.height, stream.pix_fmt = 32, 16, "bgr0"
                for number in range(12):
                    pixels = np.full((16, 32, 3), 10 * number, np.uint8)
                    frame = av.VideoFrame.from_ndarray(pixels, "rgb24")
                    file.mux(stream.encode(frame.reformat(format="bgr0")))
                file.mux(stream.encode())
    return tmp_path / "videos"


def test_clips_are_read(videos, tmp_path) -> None:
    text(tmp_path / "lists" / "trainlist01.txt", "jump/b_jump.avi 1\nwalk/a_walk.avi 2\n")
    text(tmp_path / "lists" / "testlist01.txt", "jump/a_jump.avi\n")
    data = datasets.UCF101(videos, str(tmp_path / "lists"), 4, 4, num_workers=0)
    assert (len(data), data.classes) == (6, ["jump", "walk"])
    clip, sound, label = data[4]
    assert (clip.shape, clip.dtype, label) == ((4, 16, 32, 3), torch.uint8, 1)
    assert clip[:, 0, 0, 0].tolist() == [40, 50, 60, 70]
    assert sound.shape == (1, 0)
    again = datasets.UCF101(
        videos,
        str(tmp_path / "lists"),
        3,
        3,
        frame_rate=5,
        train=False,
        output_format="TCHW",
        transform=lambda clip: clip[:, 0],
        _precomputed_metadata=data.metadata,
    )
    clip, _, label = again[1]
    assert (len(again), clip.shape, label) == (2, (3, 16, 32), 0)
    assert clip[:, 0, 0].tolist() == [60, 80, 100]


def test_lists_and_splits_of_others(videos, tmp_path) -> None:
    text(tmp_path / "lists" / "jump_test_split2.txt", "a_jump.avi 1\nb_jump.avi 2\n")
    text(tmp_path / "lists" / "walk_test_split2.txt", "a_walk.avi 0\nb_walk.avi 1\n")
    lists = str(tmp_path / "lists")
    data = datasets.HMDB51(videos, lists, 12, fold=2, num_workers=0)
    assert [data[n][2] for n in range(len(data))] == [0, 1]
    assert len(datasets.HMDB51(videos, lists, 12, fold=2, train=False, num_workers=0)) == 1
    (tmp_path / "val").symlink_to(videos)
    data = datasets.Kinetics(tmp_path, 12, split="val", num_workers=0)
    assert len(data) == 4
    assert data[3][0].shape == (12, 3, 16, 32)
