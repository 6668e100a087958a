"""Packages of exported programs on a GPU."""

from pathlib import Path

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._inductor import aoti_compile_and_package, aoti_load_package

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is neither GPU nor shim"
)


def test_a_package_is_moved_with_its_buffers(tmp_path: Path) -> None:
    net, x = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).eval(), torch.randn(2, 3)
    program = torch.export.export(net, (x,))
    path = aoti_compile_and_package(program, package_path=tmp_path / "net.pt2")
    model = aoti_load_package(path, device_index=0)
    assert model.get_metadata()["AOTI_DEVICE_KEY"] == "cuda"
    torch.testing.assert_close(model(x.cuda()).cpu(), net(x), check_device=False)
