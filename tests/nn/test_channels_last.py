"""Networks in channels_last: the same training as in the default layout, without conversions."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn

LAST = torch.channels_last


class Block(nn.Module):
    """A residual block (He et al. 2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
        )

    def forward(self, x: Any) -> Any:
        out = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu_(self.bn2(self.conv2(out)) + self.shortcut(x))


def resnet() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1, bias=False),  # (B, 8, 16, 16)
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),  # (B, 8, 8, 8)
        Block(8, 16, 1),
        nn.Dropout2d(0.0),
        Block(16, 32, 2),  # (B, 32, 4, 4)
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 5),
    )


def batch(seed: int) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(6, 3, 16, 16, generator=generator)
    return x, torch.randint(0, 5, (6,), generator=generator)


def is_last(tensor: Any) -> bool:
    return tensor.is_contiguous(memory_format=LAST)


def train(net: Any, optimizer: Any, format: Any, steps: int = 8) -> list[float]:
    losses = []
    for step in range(steps):
        x, labels = batch(step % 2)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x.to(memory_format=format)), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def watch(net: Any) -> dict[str, list[Any]]:
    """Collects what goes through each module, and the gradients of it."""
    seen: dict[str, list[Any]] = {"outputs": [], "gradients": []}

    def keep(module: Any, args: Any, out: Any) -> None:
        if out.dim() == 4:
            seen["outputs"].append(out)
            if out.requires_grad:
                out.register_hook(lambda grad: seen["gradients"].append(grad))

    for module in net.modules():
        module.register_forward_hook(keep)
    return seen


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_training_is_that_of_the_default_layout(name: str) -> None:
    # RMSprop's first step is as long where a gradient is but rounding noise, if eps is below that.
    options = {"SGD": {"momentum": 0.9}, "RMSprop": {"eps": 1e-3}}.get(name, {})
    runs = []
    for format in (torch.contiguous_format, LAST):
        net = resnet().to(memory_format=format)
        optimizer = getattr(torch.optim, name)(net.parameters(), lr=1e-2, **options)
        runs.append(train(net, optimizer, format))
        assert all(
            value.is_contiguous(memory_format=format)
            for state in optimizer.state.values()
            for value in state.values()
            if isinstance(value, torch.Tensor) and value.dim() == 4
        )
    assert runs[1] == pytest.approx(runs[0], rel=2e-3)
    assert runs[0][-1] < runs[0][0]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_everything_stays_channels_last(dtype: Any, training: bool) -> None:
    net = resnet().to(memory_format=LAST).train(training)
    seen = watch(net)
    x, labels = batch(0)
    x = x.to(memory_format=LAST).requires_grad_()
    with torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
        loss = nn.functional.cross_entropy(net(x), labels)
    loss.backward()
    assert len(seen["outputs"]) == 22
    assert all(is_last(out) for out in seen["outputs"])
    assert len(seen["gradients"]) >= 20
    # That of pooling to one pixel is one number for each image, expanded.
    assert all(is_last(grad) or 0 in grad.stride() for grad in seen["gradients"])
    assert is_last(x.grad)
    assert all(is_last(p) and is_last(p.grad) for p in net.parameters() if p.dim() == 4)


def test_the_weights_alone_make_a_network_channels_last() -> None:
    net = resnet().to(memory_format=LAST)
    seen = watch(net)
    net(batch(0)[0])
    assert all(is_last(out) for out in seen["outputs"])


def test_copies_keep_the_layout() -> None:
    net = resnet().to(memory_format=LAST)
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    copies = [
        list(copy.deepcopy(net).state_dict().values()),
        list(pickle.loads(pickle.dumps(net)).state_dict().values()),
        list(torch.load(file).values()),
    ]
    for values in copies:
        for ours, theirs in zip(values, net.state_dict().values(), strict=True):
            assert ours.stride() == theirs.stride()
            assert ours.equal(theirs)


def test_load_state_dict_keeps_the_layout_of_the_parameters() -> None:
    net = resnet().to(memory_format=LAST)
    net.load_state_dict(resnet().state_dict())
    assert all(is_last(p) for p in net.parameters() if p.dim() == 4)


def test_module_to_changes_images_and_volumes_only() -> None:
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Conv1d(2, 3, 3), nn.BatchNorm2d(3))
    before = [p.stride() for p in net.parameters()]
    net.to(memory_format=LAST)
    after = [p.stride() for p in net.parameters()]
    assert after[0] == (18, 1, 6, 2)
    assert after[1:] == before[1:]


@pytest.mark.parametrize("size", [1, 5, 40])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weight_format", [torch.contiguous_format, LAST])
@pytest.mark.parametrize("format", [torch.contiguous_format, LAST])
def test_convolutions_of_few_and_of_many_points(
    format: Any, weight_format: Any, bias: bool, size: int
) -> None:
    torch.manual_seed(0)
    x, w, b = torch.randn(2, 6, size, size), torch.randn(8, 6, 3, 2), torch.randn(8)
    options = {"stride": (2, 1), "padding": (2, 1), "dilation": (1, 2)}
    out = nn.functional.conv2d(
        x.to(memory_format=format),
        w.to(memory_format=weight_format),
        b if bias else None,
        **options,
    )
    expected = nn.functional.conv2d(x.double(), w.double(), b.double() if bias else None, **options)
    torch.testing.assert_close(out.double(), expected, rtol=1e-4, atol=1e-4)
    if size > 1 and LAST in (format, weight_format):
        assert is_last(out)


def test_one_channel_is_laid_out_as_asked() -> None:
    x = torch.ones(2, 1, 5, 7).to(memory_format=LAST)
    assert x.stride() == (35, 1, 7, 1)
    assert x.to(memory_format=LAST) is x
    assert x.to(memory_format=torch.contiguous_format).stride() == (35, 35, 7, 1)
    assert torch.ones(2, 1, 5, 7).to(torch.float64, memory_format=LAST).stride() == (35, 1, 7, 1)
    conv = torch.nn.Conv2d(1, 4, 3).to(memory_format=LAST)
    assert conv.weight.stride() == (9, 1, 3, 1)
    assert conv(x).stride() == (60, 1, 20, 4)
