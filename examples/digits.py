"""Trains a small convolutional network to read handwritten digits, in one file.

    python examples/digits.py                      # train, save, load back, draw
    python examples/digits.py --resume digits.pt   # go on exactly where Ctrl-C stopped

The data are the 1,797 scans that ship inside scikit-learn, or an .npz file with `images` (N, 8, 8)
of pixels from 0 to 16 and `labels` (N,) from 0 to 9. The same seed prints the same numbers, and a
run that was interrupted and resumed ends with the numbers of one that was not.
Exit status: 0 done, 2 bad input (one line on stderr), 130 interrupted (the checkpoint is saved).
"""

from __future__ import annotations

import os
import signal
import stat
import sys

if __name__ == "__main__":  # before the imports that take long: Ctrl-C is never a traceback

    def end_at_once(*_: object) -> None:
        os.write(2, b"digits: interrupted\n")
        os._exit(130)  # an exception could be caught by whatever runs just now

    signal.signal(signal.SIGINT, end_at_once)

import argparse
import math
import textwrap
import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


class InputError(Exception):
    """Something the user gave cannot be used; the message is the line to show."""


def reason(error: Exception) -> str:
    """What an exception says, in one line that is not too long."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return textwrap.shorten(text or type(error).__name__, 200)


class Digits(NamedTuple):
    """The scans, split 80/20 with every class in its share; images are (N, 1, 8, 8) in 0..1."""

    train_images: torch.Tensor
    train_labels: torch.Tensor
    test_images: torch.Tensor
    test_labels: torch.Tensor
    fingerprint: int  # a checkpoint continues only on the data that it began with


def load_digits(path: Path | None) -> Digits:
    images, labels = read_scikit_learn() if path is None else read_npz(path)
    images = np.asarray(images[:, None] / 16, np.float32, order="C")
    labels = np.asarray(labels, np.int64, order="C")

    # Shuffle, sort by class, take every fifth image for the test. The seed is not --seed: all
    # runs are tested on the same images.
    order = np.random.default_rng(0).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    is_test = np.arange(len(order)) % 5 == 0
    train, test = order[~is_test], order[is_test]
    parts = (images[train], labels[train], images[test], labels[test])
    fingerprint = zlib.crc32(labels.tobytes(), zlib.crc32(images.tobytes()))
    return Digits(*(torch.from_numpy(part) for part in parts), fingerprint)


def read_scikit_learn() -> tuple[np.ndarray, np.ndarray]:
    try:
        from sklearn import datasets
    except ImportError:
        raise InputError("the scans are in scikit-learn: pip install scikit-learn") from None
    scans: Any = datasets.load_digits()
    return scans.images, scans.target


def read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        with path.open("rb") as file:
            arrays = np.load(file, allow_pickle=False)
            images, labels = arrays["images"], arrays["labels"]
    except Exception as error:  # a damaged file can fail anywhere in zip, zlib and NumPy
        what = f"not an .npz file with images and labels ({reason(error)})"
        raise InputError(f"{path}: {what}") from None
    if images.shape[1:] != (8, 8) or images.dtype.kind not in "uif":
        found = f"not {images.dtype} of shape {images.shape}"
        raise InputError(f"{path}: images must be numbers of shape (N, 8, 8), {found}")
    if labels.shape != images.shape[:1] or labels.dtype.kind not in "ui":
        found = f"not {labels.dtype} of shape {labels.shape}"
        raise InputError(f"{path}: labels must be integers, one for each image, {found}")
    if len(images) < 2:
        raise InputError(f"{path}: needs 2 images or more, to train on one and test on the other")
    for name, values, high in (("pixels", images, 16), ("labels", labels, 9)):
        bad = np.argwhere(~((values >= 0) & (values <= high)))  # written so that NaN is bad too
        if len(bad):
            place = tuple(bad[0].tolist())
            raise InputError(
                f"{path}: {name} must be 0 to {high}, not {values[place]} (at {place})"
            )
    return images, labels


def build_net() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),  # (B, 32, 8, 8)
        nn.Conv2d(32, 64, 3, padding=1),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 64, 4, 4)
        nn.Conv2d(64, 64, 3, padding=1),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 64, 2, 2)
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(256, 10),  # (B, 10)
    )


@dataclass
class Progress:
    """Where training stands: always between two batches, never inside one."""

    epoch: int = 0  # epochs finished
    seen: int = 0  # images of this epoch already trained on
    order: torch.Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    loss: float = 0.0  # summed over the images seen
    correct: int = 0  # of the images seen
    history: list[list[float]] = field(default_factory=list)  # per epoch, what its line prints

    def check(self, count: int) -> None:
        for name, usual in vars(Progress()).items():
            if type(getattr(self, name)) is not type(usual):
                raise TypeError(f"{name} is not of type {type(usual).__name__}")
        if any(type(figure) is not float for row in self.history for figure in row):
            raise TypeError("the history holds something else than numbers")
        if self.epoch < 0 or not 0 <= self.seen <= count:
            raise ValueError(f"epoch {self.epoch}, image {self.seen} is no place in training")
        if [len(row) for row in self.history] != [4] * self.epoch:
            raise ValueError(f"the history is not that of {self.epoch} epochs")
        order = torch.arange(count)
        if self.seen and (
            self.order.dtype != order.dtype or not torch.equal(self.order.sort().values, order)
        ):
            raise ValueError(f"the order is not one of {count} images")


class Run:
    """The network, its optimizer and its progress, which are saved and restored together."""

    def __init__(self) -> None:
        self.net = build_net()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), weight_decay=0.01)
        self.progress = Progress()

    def state(self) -> dict[str, Any]:
        """What training continues from; the tensors are not copied."""
        return {
            "model": self.net.state_dict(),
            "optimizer": self.optimizer.state_dict()["state"],  # its options are in this file
            "rng": torch.get_rng_state(),
            "progress": vars(self.progress),
        }

    def save(self, options: argparse.Namespace, digits: Digits) -> None:
        checkpoint = self.state() | {
            "options": {name: getattr(options, name) for name in SAVED_OPTIONS},
            "data": digits.fingerprint,
        }
        part = options.save.with_name(options.save.name + ".part")
        try:
            torch.save(checkpoint, part)
            os.replace(part, options.save)  # the old file stays whole until the new one is
        except (OSError, RuntimeError) as error:
            raise InputError(f"cannot write {options.save}: {reason(error)}") from None

    def restore(self, path: Path, checkpoint: dict[str, Any], digits: Digits) -> None:
        data = checkpoint["data"]
        if type(data) is not int or data != digits.fingerprint:
            raise InputError(f"{path}: this run was trained on other data; give it the same --data")
        try:
            usual = state_after_a_step()
            for name in ("model", "optimizer", "rng"):
                check_alike(name, checkpoint[name], usual[name])
            self.net.load_state_dict(checkpoint["model"])
            options = self.optimizer.state_dict()["param_groups"]
            moments = {"state": checkpoint["optimizer"], "param_groups": options}
            self.optimizer.load_state_dict(moments)
            self.progress = Progress(**checkpoint["progress"])
            self.progress.check(len(digits.train_labels))
            torch.set_rng_state(checkpoint["rng"])
        except Exception as error:  # the file may hold anything under these names
            raise InputError(f"{path}: cannot continue from it: {reason(error)}") from None


def state_after_a_step() -> dict[str, Any]:
    """What a sound checkpoint holds, but for the values of its tensors."""
    run = Run()
    for param in run.net.parameters():
        param.grad = torch.zeros_like(param)
    run.optimizer.step()
    return run.state()


def check_alike(name: str, found: Any, usual: Any) -> None:
    """Raises ValueError unless `found` is built like `usual`; only numbers may differ."""
    if type(found) is not type(usual):
        raise ValueError(f"{name} is {type(found).__name__}, not {type(usual).__name__}")
    if isinstance(usual, torch.Tensor):
        kinds = [f"{tensor.dtype} of shape {tuple(tensor.shape)}" for tensor in (found, usual)]
        if kinds[0] != kinds[1]:
            raise ValueError(f"{name} is {kinds[0]}, not {kinds[1]}")
    elif isinstance(usual, dict):
        differing = ", ".join(map(repr, found.keys() ^ usual.keys()))
        if differing:
            raise ValueError(f"{name} has too much or too little: {differing}")
        for key in usual:
            check_alike(f"{name}[{key!r}]", found[key], usual[key])
    elif isinstance(usual, list | tuple):
        if len(found) != len(usual):
            raise ValueError(f"{name} has {len(found)} parts, not {len(usual)}")
        for i, parts in enumerate(zip(found, usual, strict=True)):
            check_alike(f"{name}[{i}]", *parts)


def read_checkpoint(path: Path) -> dict[str, Any]:
    try:
        checkpoint = torch.load(path)
    except Exception as error:  # a damaged file can fail anywhere
        raise InputError(f"{path}: cannot read the checkpoint: {reason(error)}") from None
    parts = ("model", "optimizer", "rng", "progress", "options", "data")
    if not isinstance(checkpoint, dict) or not all(part in checkpoint for part in parts):
        raise InputError(f"{path}: not a checkpoint of this program")
    return checkpoint


def train(run: Run, digits: Digits, options: argparse.Namespace, stop: threading.Event) -> None:
    """Trains to the last epoch, or to the batch after which `stop` is set."""
    progress, count = run.progress, len(digits.train_labels)
    while progress.epoch < options.epochs:
        if progress.seen == 0:
            progress.order = torch.randperm(count)
        run.net.train()
        while progress.seen < count:
            train_batch(run, digits, options)
            draw_bar(progress, count, options.epochs)
            if stop.is_set():
                return
        finish_epoch(run, digits, options.epochs)


def train_batch(run: Run, digits: Digits, options: argparse.Namespace) -> None:
    progress, count = run.progress, len(digits.train_labels)
    batch = progress.order[progress.seen : progress.seen + options.batch_size]
    images, labels = digits.train_images[batch], digits.train_labels[batch]  # (B, 1, 8, 8), (B,)

    # The rate climbs during the first fifth of the run, then falls to nearly nothing.
    passed = (progress.epoch + (progress.seen + len(batch) / 2) / count) / options.epochs
    for group in run.optimizer.param_groups:
        group["lr"] = options.lr * min(passed / 0.2, (1 - passed) / 0.8)

    logits = run.net(images)  # (B, 10)
    loss = F.cross_entropy(logits, labels)
    run.optimizer.zero_grad()
    loss.backward()
    run.optimizer.step()

    value = loss.item()
    if not math.isfinite(value):
        raise InputError(f"the loss is {value} in epoch {progress.epoch + 1}; lower --lr")
    progress.seen += len(batch)
    progress.loss += value * len(batch)
    progress.correct += count_correct(logits, labels)


def finish_epoch(run: Run, digits: Digits, epochs: int) -> None:
    progress = run.progress
    logits = read(run.net, digits.test_images)
    figures = [
        progress.loss / progress.seen,
        100 * progress.correct / progress.seen,
        F.cross_entropy(logits, digits.test_labels).item(),
        100 * count_correct(logits, digits.test_labels) / len(digits.test_labels),
    ]
    progress.epoch += 1
    progress.history.append(figures)
    progress.seen, progress.loss, progress.correct = 0, 0.0, 0
    train_text = "loss {:.4f}  accuracy {:.2f} %".format(*figures[:2])
    test_text = "test loss {:.4f}  accuracy {:.2f} %".format(*figures[2:])
    print(f"{CLEAR}epoch {progress.epoch:2}/{epochs}  {train_text}  {test_text}", flush=True)


def read(net: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """Returns the logits, (N, 10), without training on the images."""
    net.eval()
    with torch.no_grad():
        return torch.cat([net(part) for part in images.split(256)])


def count_correct(logits: torch.Tensor, labels: torch.Tensor) -> int:
    return int((logits.argmax(dim=1) == labels).sum().item())


IS_TERMINAL = sys.stdout.isatty()
CLEAR = "\r\033[K" if IS_TERMINAL else ""


def draw_bar(progress: Progress, count: int, epochs: int) -> None:
    """Redraws one line on a terminal. A file or a pipe gets only the line of each epoch."""
    if IS_TERMINAL:
        bar = ("#" * (24 * progress.seen // count)).ljust(24, ".")
        loss, accuracy = progress.loss / progress.seen, 100 * progress.correct / progress.seen
        figures = f"loss {loss:.4f}  accuracy {accuracy:.2f} %"
        print(f"{CLEAR}epoch {progress.epoch + 1:2}/{epochs} [{bar}] {figures}", end="", flush=True)


def draw_picture(
    path: Path, history: list[list[float]], digits: Digits, guesses: list[int]
) -> None:
    """Draws the curves of the run, and every misread digit under its label and its guess."""
    try:
        import matplotlib
    except ImportError:
        raise InputError("the picture needs matplotlib: pip install matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    labels = digits.test_labels.tolist()
    wrong = [i for i in range(len(labels)) if guesses[i] != labels[i]]
    columns = math.ceil(math.sqrt(max(1, len(wrong))))
    rows = math.ceil(max(1, len(wrong)) / columns)
    width = max(4, columns)
    figure = pyplot.figure(figsize=(5 + width, max(5, rows)), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[5, width])

    epochs = range(1, len(history) + 1)
    for axes, column, name in zip(left.subplots(2), (0, 1), ("loss", "accuracy, %"), strict=True):
        axes.plot(epochs, [row[column] for row in history], ".-", label="training")
        axes.plot(epochs, [row[column + 2] for row in history], ".-", label="test")
        axes.set(xlabel="epoch", ylabel=name)
        axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        axes.legend()

    # A cell of 10 x 10 for each digit and its text. NaN is left white.
    mosaic = np.full((10 * rows, 10 * columns), math.nan)
    axes = right.subplots()
    for place, i in enumerate(wrong):
        y, x = 10 * (place // columns) + 2, 10 * (place % columns) + 1
        mosaic[y : y + 8, x : x + 8] = digits.test_images[i, 0].numpy()
        text = f"{labels[i]} read as {guesses[i]}"
        axes.text(x + 3.5, y - 1, text, size=8, ha="center", va="center")
    axes.imshow(mosaic, cmap="gray", vmin=0, vmax=1)
    axes.set_title(f"{len(wrong)} of {len(labels)} misread")
    axes.axis("off")
    try:
        figure.savefig(path, dpi=100)
    except OSError as error:
        raise InputError(f"cannot write {path}: {reason(error)}") from None


SAVED_OPTIONS = ("epochs", "lr", "batch_size", "seed")


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(message)


def number(kind: type, low: float, high: float) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"must be {what} from {low} to {high}, not {text!r}")
        return value

    return parse


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        description="Trains a small network to read handwritten digits.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--epochs", type=number(int, 1, 10**6), default=15, help="passes over the images")
    add("--lr", type=number(float, 1e-9, 100), default=0.005, help="the highest learning rate")
    add("--batch-size", type=number(int, 1, 10**6), default=64, help="images in one step")
    add("--seed", type=number(int, 0, 2**63 - 1), default=0, help="of all random numbers")
    add("--save", type=Path, default=Path("digits.pt"), help="checkpoint; its .png is the picture")
    add("--resume", type=Path, help="checkpoint to continue, with its options unless given anew")
    add("--data", type=Path, help="an .npz file with images and labels, in place of scikit-learn's")
    options = parser.parse_args(arguments)
    if options.save.suffix in (".png", ".npz"):
        raise InputError(f"argument --save: {options.save} would be a picture or data by its name")
    writable = os.access(options.save.parent, os.W_OK)
    try:
        writable &= not stat.S_ISDIR(os.stat(options.save).st_mode)
    except FileNotFoundError:
        pass
    except OSError:  # the name is too long
        writable = False
    if not writable:
        raise InputError(f"argument --save: cannot write {options.save}")
    return options


def options_to_resume(checkpoint: dict[str, Any], arguments: Sequence[str]) -> argparse.Namespace:
    """Parses the options of the saved run and then the given ones, so that those given win."""
    saved = checkpoint["options"]
    if not isinstance(saved, dict) or set(saved) != set(SAVED_OPTIONS):
        raise InputError("argument --resume: the checkpoint lacks the options of its run")
    texts = [f"--{name.replace('_', '-')}={value}" for name, value in saved.items()]
    options = parse_options([*texts, *arguments])
    if options.seed != saved["seed"]:
        raise InputError(f"argument --seed: the run to resume began with seed {saved['seed']}")
    return options


def main(arguments: Sequence[str]) -> int:
    try:
        run_program(arguments)
    except (InputError, KeyboardInterrupt) as error:
        print(CLEAR, end="", flush=True)
        print(f"digits: {str(error) or 'interrupted'}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 130
    return 0


def run_program(arguments: Sequence[str]) -> None:
    options = parse_options(arguments)
    checkpoint = read_checkpoint(options.resume) if options.resume else None
    if checkpoint:
        options = options_to_resume(checkpoint, arguments)
    digits = load_digits(options.data)
    print(f"{len(digits.train_labels)} images to train on, {len(digits.test_labels)} to test on")

    torch.manual_seed(options.seed)
    run = Run()
    if checkpoint:
        run.restore(options.resume, checkpoint, digits)
        place = f"{run.progress.epoch} epochs and {run.progress.seen} images"
        print(f"resumed {options.resume} after {place}")

    # Here Ctrl-C only sets a flag, which train() reads between two batches: no batch is left half
    # done, and pressing it again cannot stop the saving.
    stop = threading.Event()
    ends_at_once = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        train(run, digits, options, stop)
        run.save(options, digits)
    finally:
        signal.signal(signal.SIGINT, ends_at_once)
    if stop.is_set():
        raise KeyboardInterrupt(f"interrupted; continue with --resume {options.save}")

    show_accuracy("trained", run.net, digits)
    show_accuracy("loaded back", load_net(options.save), digits)
    picture = options.save.with_suffix(".png")
    guesses = read(run.net, digits.test_images).argmax(dim=1).tolist()
    draw_picture(picture, run.progress.history, digits, guesses)
    print(f"saved the network as {options.save} and drew {picture}")


def show_accuracy(name: str, net: nn.Module, digits: Digits) -> None:
    correct = count_correct(read(net, digits.test_images), digits.test_labels)
    count = len(digits.test_labels)
    print(f"{name}: test accuracy {100 * correct / count:.2f} % ({correct} of {count})", flush=True)


def load_net(path: Path) -> nn.Module:
    net = build_net()
    net.load_state_dict(read_checkpoint(path)["model"])
    return net


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
