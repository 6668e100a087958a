"""SummaryWriter writes what it is given, read back from the file."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch

pytest.importorskip("tensorboardX")

from tensorboardX.proto.event_pb2 import Event

from rushlight.utils.tensorboard import SummaryWriter
from rushlight.utils.tensorboard.summary import hparams


def values_in(folder: Path) -> dict[str, Any]:
    """The values of all events by tag: records of (length, its checksum, bytes, their checksum)."""
    (file,) = folder.iterdir()
    data, found = file.read_bytes(), {}
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        event = Event.FromString(data[12 : 12 + length])
        found |= {value.tag: value for value in event.summary.value}
        data = data[16 + length :]
    return found


def test_tensors_are_written(tmp_path: Path) -> None:
    with SummaryWriter(log_dir=str(tmp_path)) as writer:
        weights = torch.arange(10.0, requires_grad=True)
        writer.add_scalar("loss", weights.sum(), 3)
        writer.add_scalar("half", torch.tensor(1.5, dtype=torch.bfloat16))
        writer.add_histogram("weights", weights, 3)
        writer.add_image("picture", torch.rand(3, 4, 5))
        writer.add_text("words", "some")
        writer.add_pr_curve("curve", torch.tensor([0, 1, 1]), torch.tensor([0.1, 0.8, 0.6]))
        with pytest.raises(NotImplementedError, match="utils.graph.draw"):
            writer.add_graph(torch.nn.Linear(1, 1), weights)
    values = values_in(tmp_path)
    assert values["loss"].simple_value == 45 and values["half"].simple_value == 1.5
    assert values["weights"].histo.num == 10 and values["weights"].histo.max == 9
    assert (values["picture"].image.height, values["picture"].image.width) == (4, 5)
    assert values["curve"].tensor.tensor_shape.dim[0].size == 6
    assert "words/text_summary" in values


def test_without_the_package_it_is_named() -> None:
    program = (
        "import sys; sys.modules['tensorboardX'] = None\n"
        "from rushlight.utils.tensorboard import SummaryWriter\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "ImportError: utils.tensorboard: needs the package tensorboardX" in done.stderr


def test_libraries_make_records_of_hyperparameters() -> None:
    records = hparams({"lr": 0.1}, {"loss": 1.5})
    assert [record.value[0].tag for record in records] == [
        f"_hparams_/{part}" for part in ("experiment", "session_start_info", "session_end_info")
    ]
