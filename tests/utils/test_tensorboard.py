"""SummaryWriter writes what it is given, read back from the file."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn

pytest.importorskip("tensorboardX")

from tensorboardX.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.proto.graph_pb2 import GraphDef  # pyright: ignore[reportAttributeAccessIssue]

from rushlight.utils.tensorboard import SummaryWriter, summary
from rushlight.utils.tensorboard.summary import hparams


def events_in(folder: Path) -> Iterator[Event]:
    """All events: records of (length, its checksum, bytes, their checksum)."""
    (file,) = folder.iterdir()
    data = file.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        yield Event.FromString(data[12 : 12 + length])
        data = data[16 + length :]


def values_in(folder: Path) -> dict[str, Any]:
    """The values of all events by tag."""
    return {value.tag: value for event in events_in(folder) for value in event.summary.value}


def test_tensors_are_written(tmp_path: Path) -> None:
    with SummaryWriter(log_dir=str(tmp_path)) as writer:
        weights = torch.arange(10.0, requires_grad=True)
        writer.add_scalar("loss", weights.sum(), 3)
        writer.add_scalar("half", torch.tensor(1.5, dtype=torch.bfloat16))
        writer.add_histogram("weights", weights, 3)
        writer.add_image("picture", torch.rand(3, 4, 5))
        writer.add_text("words", "some")
        writer.add_pr_curve("curve", torch.tensor([0, 1, 1]), torch.tensor([0.1, 0.8, 0.6]))
    values = values_in(tmp_path)
    assert values["loss"].simple_value == 45 and values["half"].simple_value == 1.5
    assert values["weights"].histo.num == 10 and values["weights"].histo.max == 9
    assert (values["picture"].image.height, values["picture"].image.width) == (4, 5)
    assert values["curve"].tensor.tensor_shape.dim[0].size == 6
    assert "words/text_summary" in values


def test_the_arguments_are_pytorchs(tmp_path: Path) -> None:
    with SummaryWriter(log_dir=str(tmp_path)) as writer:
        writer.add_scalar("loss", torch.tensor(2.0), 1, new_style=True, double_precision=True)
        writer.add_tensor("whole", torch.tensor([[1, 2, 3]], dtype=torch.int16), 4)
        writer.add_hparams({"lr": torch.tensor(0.5)}, {"accuracy": 1.0}, run_name="run")
    assert len(list((tmp_path / "run").iterdir())) == 1
    (file,) = (path for path in tmp_path.iterdir() if path.is_file())
    folder = tmp_path / "alone"
    folder.mkdir()
    file.rename(folder / file.name)
    values = values_in(folder)
    tensor = values["whole"].tensor
    assert values["loss"].simple_value == 2 and [d.size for d in tensor.tensor_shape.dim] == [1, 3]
    assert (tensor.dtype, tensor.tensor_content) == (5, struct.pack("<3h", 1, 2, 3))
    record = summary.scalar("loss", torch.tensor(2.0))
    assert record.value[0].simple_value == 2


def test_graphs_are_written_in_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Sequential(nn.Linear(2, 2)))
    with SummaryWriter(log_dir=str(tmp_path)) as writer:
        writer.add_graph(net, torch.ones(4, 3), verbose=True)
    (text,) = [event.graph_def for event in events_in(tmp_path) if event.graph_def]
    graph = GraphDef.FromString(text)
    assert [(node.name, node.op, list(node.input)) for node in graph.node] == [
        ("input/input_1", "IO Node", []),
        ("Sequential/0/weight", "Parameter", []),
        ("Sequential/0/bias", "Parameter", []),
        ("Sequential/0/linear", "linear",
         ["input/input_1", "Sequential/0/weight", "Sequential/0/bias"]),
        ("Sequential/relu", "relu", ["Sequential/0/linear"]),
        ("Sequential/2/0/weight", "Parameter", []),
        ("Sequential/2/0/bias", "Parameter", []),
        ("Sequential/2/0/linear_1", "linear",
         ["Sequential/relu", "Sequential/2/0/weight", "Sequential/2/0/bias"]),
        ("output/output", "IO Node", ["Sequential/2/0/linear_1"]),
    ]  # fmt: skip
    (shape,) = graph.node[3].attr["_output_shapes"].list.shape
    assert [dim.size for dim in shape.dim] == [4, 2]
    assert "Sequential/relu" in capsys.readouterr().out


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
