"""Runs examples/digits.py: as a program for what a shell sees, as a module for the rest.

The images are noise with a bright row for each class, so that one epoch already learns something.
"""

import copy
import importlib
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight as torch

PROGRAM = Path(__file__).parents[2] / "examples" / "digits.py"
COUNT = 50  # images; 40 of them are trained on
SMALL = ["--batch-size", "16"]


@pytest.fixture(scope="module")
def digits() -> types.ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PROGRAM.parent)
        return importlib.import_module("digits")


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make_arrays() -> dict[str, np.ndarray]:
    labels = np.arange(COUNT) % 8
    images = np.random.default_rng(7).uniform(0, 4, (COUNT, 8, 8))
    images[np.arange(COUNT), labels] += 12
    return {"images": images, "labels": labels}


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    np.savez(tmp_path / "data.npz", **make_arrays())
    return ["--data", "data.npz"]


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROGRAM), *arguments]
    env = os.environ | {"OMP_NUM_THREADS": "1"}  # the tests themselves run side by side
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=env)


def run(*arguments: str) -> str:
    process = start(*arguments)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    return out


def refusal(digits: types.ModuleType, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Checks that the program ends with status 2 and one line on stderr, which it returns."""
    assert digits.main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("digits: ")
    assert err.count("\n") == 1
    return err


def test_same_seed_prints_the_same_numbers_and_another_seed_does_not(data: list[str]) -> None:
    first = run(*data, *SMALL, "--epochs", "2")
    assert run(*data, *SMALL, "--epochs", "2") == first
    assert run(*data, *SMALL, "--epochs", "2", "--seed", "1") != first


def test_saved_network_reads_as_well_as_the_trained_one(data: list[str]) -> None:
    out = run(*data, *SMALL, "--epochs", "8", "--save", "kept.pt")
    trained, loaded, last = out.splitlines()[-3:]
    assert trained.startswith("trained: test accuracy ")
    assert loaded.removeprefix("loaded back") == trained.removeprefix("trained")
    assert "(10 of 10)" in trained
    assert last == "saved the network as kept.pt and drew kept.png"
    assert Path("kept.png").read_bytes().startswith(b"\x89PNG")


def test_output_to_a_pipe_is_plain_lines(data: list[str]) -> None:
    lines = run(*data, *SMALL, "--epochs", "3").splitlines()
    assert lines[0] == "40 images to train on, 10 to test on"
    assert [line.split("  ")[:2] for line in lines[1:4]] == [["epoch", f"{n}/3"] for n in (1, 2, 3)]
    assert all(line.isprintable() for line in lines)


def test_ctrl_c_saves_a_checkpoint_that_resume_finishes_like_an_uninterrupted_run(
    data: list[str],
) -> None:
    options = [*data, *SMALL, "--epochs", "30"]
    process = start(*options, "--save", "stopped.pt")
    assert process.stdout is not None
    while not process.stdout.readline().startswith("epoch "):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert err == "digits: interrupted; continue with --resume stopped.pt\n"
    assert process.returncode == 130

    whole = run(*options).splitlines()
    resumed = run(*data, "--resume", "stopped.pt").splitlines()
    assert len(resumed) > 5
    assert resumed[2:] == whole[-len(resumed) + 2 :]


@pytest.mark.parametrize("library", ["numpy", "_C.cpython"])
def test_ctrl_c_during_the_imports_is_one_line(data: list[str], library: str) -> None:
    process = start(*data, *SMALL)
    while library not in Path(f"/proc/{process.pid}/maps").read_text():
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    assert process.communicate() == ("", "digits: interrupted\n")
    assert process.returncode == 130


def test_ctrl_c_during_the_drawing_leaves_the_checkpoint(data: list[str]) -> None:
    process = start(*data, *SMALL, "--epochs", "1")
    assert process.stdout is not None
    while not process.stdout.readline().startswith("loaded back"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.communicate() == ("", "digits: interrupted\n")
    assert process.returncode == 130
    assert "resumed digits.pt after 1 epochs" in run(*data, "--resume", "digits.pt")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_ctrl_c_during_the_saving_leaves_a_whole_checkpoint(
    digits: types.ModuleType,
    capsys: pytest.CaptureFixture[str],
    data: list[str],
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    save = torch.save

    def interrupted_save(*arguments: Any) -> None:
        if moment == "before":
            signal.raise_signal(signal.SIGINT)
        save(*arguments)
        if moment == "after":
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(digits.torch, "save", interrupted_save)
    handler = signal.getsignal(signal.SIGINT)
    assert digits.main([*data, *SMALL, "--epochs", "1"]) == 130
    assert signal.getsignal(signal.SIGINT) is handler
    assert "continue with --resume digits.pt" in capsys.readouterr().err
    assert digits.main([*data, "--resume", "digits.pt"]) == 130
    assert "resumed digits.pt after 1 epochs" in capsys.readouterr().out


def test_bad_option_ends_the_program_with_status_2() -> None:
    process = start("--speed", "3")
    assert process.communicate() == ("", "digits: unrecognized arguments: --speed 3\n")
    assert process.returncode == 2


class StopAfter:
    """Stands for the event that Ctrl-C sets; set from the n-th time that it is asked."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def is_set(self) -> bool:
        self.left -= 1
        return self.left <= 0


@pytest.mark.parametrize("batches", [1, 2, 3, 4])  # 3 is the last batch of the first epoch
def test_resume_is_exact_from_any_batch(
    digits: types.ModuleType, data: list[str], batches: int
) -> None:
    options = digits.parse_options([*data, *SMALL, "--epochs", "2"])
    scans = digits.load_digits(options.data)

    def begin(seed: int):
        torch.manual_seed(seed)
        return digits.Run()

    whole = begin(0)
    digits.train(whole, scans, options, StopAfter(100))

    stopped = begin(0)
    digits.train(stopped, scans, options, StopAfter(batches))
    stopped.save(options, scans)

    resumed = begin(5)
    resumed.restore(options.save, digits.read_checkpoint(options.save), scans)
    digits.train(resumed, scans, options, StopAfter(100))

    assert resumed.progress.history == whole.progress.history
    for name, expected in whole.net.state_dict().items():
        np.testing.assert_array_equal(resumed.net.state_dict()[name].numpy(), expected.numpy())


@pytest.fixture
def checkpoint(digits: types.ModuleType, data: list[str]) -> Path:
    """A checkpoint of a run that was stopped after its second batch of three."""
    options = digits.parse_options([*data, *SMALL, "--epochs", "2"])
    scans, stopped = digits.load_digits(options.data), digits.Run()
    digits.train(stopped, scans, options, StopAfter(2))
    stopped.save(options, scans)
    return options.save


def test_resume_takes_the_options_of_the_run_unless_given_anew(
    digits: types.ModuleType, checkpoint: Path
) -> None:
    saved = digits.read_checkpoint(checkpoint)
    options = digits.options_to_resume(saved, ["--epochs", "5"])
    assert (options.epochs, options.batch_size, options.lr) == (5, 16, 0.005)


def test_failed_save_leaves_the_old_checkpoint_whole(
    digits: types.ModuleType, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = checkpoint.read_bytes()

    def save_half(_: object, path: Path) -> None:
        path.write_bytes(before[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(digits.torch, "save", save_half)
    options = digits.parse_options(["--save", str(checkpoint)])
    scans = digits.load_digits(Path("data.npz"))
    with pytest.raises(digits.InputError, match="No space left on device"):
        digits.Run().save(options, scans)
    assert checkpoint.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--speed", "3"], "unrecognized arguments: --speed 3"),
        (["--epoch", "3"], "unrecognized arguments: --epoch 3"),
        (["--lr"], "argument --lr: expected one argument"),
        (["--epochs", "0"], "argument --epochs: must be a whole number from 1"),
        (["--epochs", "2.5"], "argument --epochs: must be a whole number from 1"),
        (["--batch-size", "0"], "argument --batch-size: must be a whole number from 1"),
        (["--seed", "-1"], "argument --seed: must be a whole number from 0"),
        (["--lr", "0"], "argument --lr: must be a number from"),
        (["--lr", "nan"], "argument --lr: must be a number from"),
        (["--save", "missing/digits.pt"], "argument --save: cannot write missing/digits.pt"),
        (["--save", "x" * 300], "argument --save: cannot write xxx"),
        (["--save", "."], "argument --save: cannot write ."),
        (["--save", "digits.png"], "argument --save: digits.png would be a picture"),
        (
            ["--data", "missing.npz"],
            "missing.npz: not an .npz file with images and labels (No such",
        ),
        (["--resume", "missing.pt"], "missing.pt: cannot read the checkpoint: No such file"),
    ],
)
def test_bad_options_are_refused(
    digits: types.ModuleType,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    assert message in refusal(digits, capsys, *arguments)


def with_value(name: str, index: int, value: float) -> dict[str, np.ndarray]:
    arrays = make_arrays()
    arrays[name].reshape(COUNT, -1)[index, 0] = value
    return arrays


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": make_arrays()["images"]}, "not an .npz file with images and labels"),
        (make_arrays() | {"images": np.zeros((COUNT, 64))}, "must be numbers of shape (N, 8, 8)"),
        (make_arrays() | {"images": np.zeros((COUNT, 8, 8), "U1")}, "images must be numbers"),
        (make_arrays() | {"images": np.zeros((COUNT, 8, 8), object)}, "not an .npz file"),
        (make_arrays() | {"labels": np.zeros(COUNT - 1, int)}, "one for each image, not int64"),
        (make_arrays() | {"labels": np.zeros(COUNT)}, "labels must be integers"),
        ({"images": np.zeros((1, 8, 8)), "labels": np.zeros(1, int)}, "needs 2 images or more"),
        (with_value("images", 3, np.nan), "pixels must be 0 to 16, not nan (at (3, 0, 0))"),
        (with_value("images", 3, np.inf), "pixels must be 0 to 16, not inf"),
        (with_value("images", 3, 16.5), "pixels must be 0 to 16, not 16.5"),
        (with_value("labels", 9, 10), "labels must be 0 to 9, not 10 (at (9,))"),
        (with_value("labels", 9, -1), "labels must be 0 to 9, not -1"),
    ],
)
def test_bad_arrays_are_refused(
    digits: types.ModuleType,
    capsys: pytest.CaptureFixture[str],
    arrays: dict[str, np.ndarray],
    message: str,
) -> None:
    np.savez("bad.npz", **arrays)
    assert message in refusal(digits, capsys, "--data", "bad.npz")


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.6, 0.999])
def test_truncated_files_are_refused(
    digits: types.ModuleType,
    capsys: pytest.CaptureFixture[str],
    checkpoint: Path,
    kept: float,
) -> None:
    for source, option in ((checkpoint, "--resume"), (Path("data.npz"), "--data")):
        content = source.read_bytes()
        Path("cut").write_bytes(content[: int(kept * len(content))])
        assert "digits: cut: " in refusal(digits, capsys, option, "cut")


def test_files_of_another_kind_are_refused(
    digits: types.ModuleType, capsys: pytest.CaptureFixture[str], checkpoint: Path
) -> None:
    Path("text").write_text("not a file for this program\n")
    torch.save({"weight": torch.zeros(3)}, "other.pt")
    np.save("array.npy", np.zeros((COUNT, 8, 8)))
    assert "cannot read the checkpoint" in refusal(digits, capsys, "--resume", "text")
    assert "not a checkpoint of this program" in refusal(digits, capsys, "--resume", "other.pt")
    assert "cannot read the checkpoint" in refusal(digits, capsys, "--resume", "data.npz")
    assert "not an .npz file" in refusal(digits, capsys, "--data", "text")
    assert "not an .npz file" in refusal(digits, capsys, "--data", "array.npy")
    assert "not an .npz file" in refusal(digits, capsys, "--data", str(checkpoint))


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("data", 0, "digits.pt: this run was trained on other data"),
        ("model", {}, "digits.pt: cannot continue from it: model is dict, not OrderedDict"),
        ("rng", torch.zeros(1), "digits.pt: cannot continue from it"),
        ("progress", {"epoch": 1}, "digits.pt: cannot continue from it: the history"),
        ("progress", {"seen": 41}, "digits.pt: cannot continue from it: epoch 0, image 41"),
        ("progress", {"seen": 5}, "digits.pt: cannot continue from it: the order"),
        (
            "progress",
            {"seen": 5, "order": torch.arange(40.0)},
            "digits.pt: cannot continue from it: the order",
        ),
        ("progress", {"epoch": 1, "history": [[1.0, 2.0, "x", 3.0]]}, "the history holds"),
        ("optimizer", {}, "digits.pt: cannot continue from it: optimizer has too much"),
        ("data", torch.zeros(3), "digits.pt: this run was trained on other data"),
        ("progress", {"seen": 5.0}, "digits.pt: cannot continue from it: seen is not of type int"),
        ("options", {"epochs": 2}, "the checkpoint lacks the options"),
        ("options", {"epochs": -2, "lr": 1, "batch_size": 1, "seed": 0}, "argument --epochs"),
    ],
)
def test_damaged_checkpoints_are_refused(
    digits: types.ModuleType,
    capsys: pytest.CaptureFixture[str],
    data: list[str],
    checkpoint: Path,
    part: str,
    value: object,
    message: str,
) -> None:
    torch.save(digits.read_checkpoint(checkpoint) | {part: value}, checkpoint)
    assert message in refusal(digits, capsys, *data, "--resume", str(checkpoint))


def walk(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Goes through everything in a checkpoint, with the keys that lead there."""
    yield path, part
    if isinstance(part, dict | list):
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            yield from walk(value, (*path, key))


def other_tensors(tensor: torch.Tensor) -> Iterator[Any]:
    yield tensor.tolist()
    yield tensor.unsqueeze(0)
    yield tensor.to(torch.float64)
    yield tensor.to(torch.complex64)
    if tensor.numel() > 1:
        yield tensor.reshape(-1)[:-1]


def test_no_altered_entry_of_the_model_or_the_optimizer_is_taken(
    digits: types.ModuleType, checkpoint: Path
) -> None:
    saved, usual = digits.read_checkpoint(checkpoint), digits.state_after_a_step()

    def check_refused(part: str, altered: Any) -> None:
        with pytest.raises(ValueError, match=part):
            digits.check_alike(part, altered, usual[part])

    for part in ("model", "optimizer", "rng"):
        for path, value in walk(saved[part]):
            others = [None, 3, "x", {}, torch.zeros(3, 5)]
            if isinstance(value, torch.Tensor):
                others += list(other_tensors(value))
            for other in others:
                if not path:
                    check_refused(part, other)
                    continue
                altered = copy.deepcopy(saved[part])
                parent = altered
                for key in path[:-1]:
                    parent = parent[key]
                parent[path[-1]] = other
                check_refused(part, altered)
                del parent[path[-1]]  # dropped, then renamed
                check_refused(part, altered)
                parent["another"] = value
                check_refused(part, altered)


@pytest.mark.parametrize("option", ["--data", "--resume"])
@pytest.mark.parametrize("path", ["folder", "empty", "/dev/null", "x" * 300])
def test_paths_to_no_file_of_ours_are_refused(
    digits: types.ModuleType, capsys: pytest.CaptureFixture[str], option: str, path: str
) -> None:
    Path("folder").mkdir()
    Path("empty").touch()
    assert f"digits: {path}: " in refusal(digits, capsys, option, path)


def test_resume_with_another_seed_is_refused(
    digits: types.ModuleType, capsys: pytest.CaptureFixture[str], checkpoint: Path
) -> None:
    err = refusal(digits, capsys, "--resume", str(checkpoint), "--seed", "3")
    assert "the run to resume began with seed 0" in err


def test_diverging_run_is_stopped_with_advice(
    digits: types.ModuleType,
    capsys: pytest.CaptureFixture[str],
    data: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def infinite(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return logits.sum() * float("inf")

    monkeypatch.setattr(digits.F, "cross_entropy", infinite)
    assert "lower --lr" in refusal(digits, capsys, *data)
