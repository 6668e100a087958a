"""Files of recorded programs: damage is an error, and nothing of a file runs."""

import contextlib
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._checkpoint.plain_data import tagged


@pytest.fixture(scope="module")
def content() -> bytes:
    file = io.BytesIO()
    network = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    example = (torch.ones(2, 2),)
    shapes = {"input": {0: torch.export.Dim("batch", max=9)}}
    torch.export.save(torch.export.export(network, example, dynamic_shapes=shapes), file)
    return file.getvalue()


def rewritten(content: bytes, change: Any) -> io.BytesIO:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "program.json":
                program = json.loads(data)
                change(program)
                data = json.dumps(program).encode()
            new.writestr(name, data)
    made.seek(0)
    return made


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.update(version=2),
        lambda p: p["nodes"][-2].update(target="os.system"),
        lambda p: p["nodes"][-2].update(target="torch.save"),
        lambda p: p["nodes"][-2].update(target="_C._fused_sgd_"),
        lambda p: p["nodes"][-2].update(op="call_module"),
        lambda p: p["nodes"][-2].update(op="call_method", target="backward"),
        lambda p: p["nodes"][-2].update(name="x = 1; import os"),
        lambda p: p["nodes"][0].update(target="x=print(1)"),
        lambda p: p["nodes"][0].update(target="class"),
        lambda p: p["nodes"][0].update(args=tagged("tuple", [1])),
        lambda p: p["nodes"][-2].update(
            op="call_method", target="size", args=tagged("tuple", [1, 0])
        ),
        lambda p: p["nodes"][-2].update(op="call_method", target="size", args=tagged("tuple", [])),
        lambda p: p["nodes"][-2].update(target="add", args=tagged("tuple", [tagged("node", 0)])),
        lambda p: p["nodes"][1].update(target="__class__"),
        lambda p: p["nodes"][-1].update(args=tagged("tuple", [tagged("node", 99)])),
        lambda p: p["nodes"][-1].update(kwargs={"a b": 1}),
        lambda p: p.update(names=["x, y=print(1)"]),
        lambda p: p.update(names=["a", "b"]),
        lambda p: p.update(leaves=[]),
        lambda p: p.update(out_spec=["set", None]),
        lambda p: p["tensors"].update({'a"]': next(iter(p["tensors"].values()))}),
        lambda p: p["tensors"]["0.weight"].update(key="none"),
        lambda p: p["nodes"].pop(),
        lambda p: p.pop("nodes"),
    ],
)
def test_changed_files_are_refused(content: bytes, change: Any) -> None:
    with pytest.raises(RuntimeError, match=r"load: "):
        torch.export.load(rewritten(content, change))


def test_random_damage_never_gets_past_the_reader(content: bytes) -> None:
    draw = random.Random(0)
    for _ in range(200):
        damaged = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        end = draw.choice([len(damaged), draw.randrange(len(damaged))])
        with contextlib.suppress(RuntimeError, ValueError, AssertionError, TypeError):
            torch.export.load(io.BytesIO(bytes(damaged[:end]))).module()(torch.ones(2, 2))


def test_other_files_are_named(tmp_path: Path) -> None:
    for name, word in [
        ("m/code/a.py", "TorchScript"),
        ("a/data.pkl", "torch.load"),
        ("a", "no program"),
    ]:
        with zipfile.ZipFile(tmp_path / "file", "w") as archive:
            archive.writestr(name, b"")
        with pytest.raises(RuntimeError, match=word):
            torch.export.load(tmp_path / "file")
    for text, word in [("[" * 10**5, "nested too deeply"), ("{}" + " " * 10**5, "compressed")]:
        with zipfile.ZipFile(tmp_path / "file", "w") as archive:
            kind = zipfile.ZIP_DEFLATED if word == "compressed" else zipfile.ZIP_STORED
            archive.writestr("program.json", text, kind)
        with pytest.raises(RuntimeError, match=f"load: .* {word}"):
            torch.export.load(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RuntimeError, match="damaged"):
        torch.jit.load(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        torch.jit.load(tmp_path / "none")


def test_extra_files_are_kept(tmp_path: Path) -> None:
    program = torch.export.export(nn.ReLU(), (torch.ones(1),))
    torch.export.save(program, tmp_path / "a.pt2", extra_files={"labels.txt": "cat\ndog"})
    extra: dict[str, Any] = {"labels.txt": "", "missing": None}
    torch.export.load(tmp_path / "a.pt2", extra_files=extra)
    assert extra == {"labels.txt": b"cat\ndog", "missing": None}
    with pytest.raises(TypeError, match="ExportedProgram"):
        torch.export.save(nn.ReLU(), tmp_path / "b")
    with pytest.raises(TypeError, match=r"extra file 'labels.txt' is <class 'int'>"):
        torch.export.save(program, tmp_path / "b", extra_files={"labels.txt": 3})
    assert not (tmp_path / "b").exists()


def test_tensors_without_elements_cannot_be_kept() -> None:
    net = nn.Linear(2, 1, device="meta")
    program = torch.export.export(net, (torch.ones(1, 2, device="meta"),))
    with pytest.raises(RuntimeError, match="save: weight is on meta"):
        torch.export.save(program, io.BytesIO())
