"""Networks and functions that the tests of fx record, with PyTorch's names in either library."""

from __future__ import annotations

import math
from typing import Any


def networks(torch: Any) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Modules with the shapes of their inputs."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, width: int, stride: int = 1) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(width // stride, width, 3, stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.downsample = None
            if stride > 1:
                shortcut = nn.Conv2d(width // stride, width, 1, stride, bias=False)
                self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(width))

        def forward(self, x: Any) -> Any:
            identity = x if self.downsample is None else self.downsample(x)
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += identity
            return self.relu(out)

    class ResNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(3, 4, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(4)
            self.maxpool = nn.MaxPool2d(3, 2, 1)
            self.layer1 = nn.Sequential(Block(4), Block(4))
            self.layer2 = nn.Sequential(Block(8, 2), Block(8))
            self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Linear(8, 5)

        def forward(self, x: Any) -> Any:
            x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
            x = self.layer2(self.layer1(x))
            return self.fc(torch.flatten(self.avgpool(x), 1))

    class Functions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.scale = nn.Parameter(torch.ones(4, 1, 1))
            self.register_buffer("shift", torch.ones(4, 1, 1))

        def forward(self, x: Any) -> Any:
            h = F.max_pool2d(F.gelu(self.conv(x)), 2)
            h = F.interpolate(h, scale_factor=2.0, mode="bilinear", align_corners=False)
            h = h * self.scale + self.shift - math.sqrt(h.size(1))
            a, b = h.chunk(2, 1)
            h = torch.cat([a, -b, 2**a], dim=1)
            h = h.view(h.shape[0], -1)[:, None, ..., 0:8].squeeze(1)
            h = F.layer_norm(F.dropout(h, 0.5, self.training), (8,))
            return {"log": F.log_softmax(h, dim=-1), "top": [h.max(dim=1)[0], h.mean()]}

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(10, 8)
            self.qkv = nn.Linear(8, 24)
            self.norm = nn.LayerNorm(8)
            self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
            self.table = nn.Parameter(torch.ones(9))
            self.register_buffer("places", torch.arange(5)[None] - torch.arange(5)[:, None] + 4)

        def forward(self, tokens: Any) -> Any:
            x = self.embed(tokens.long())
            q, k, v = self.qkv(self.norm(x)).split(8, dim=-1)
            scores = q @ k.transpose(-2, -1) / 8**0.5
            weights = (scores + self.table[self.places].unsqueeze(0)).softmax(dim=-1)
            x = x + torch.matmul(weights, v)
            return x + self.mlp(x)

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})
            self.rnn = nn.GRU(4, 3)

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.inner["a"](self.inner["a"](x)))
            out, state = self.rnn(self.inner["b"](y).unsqueeze(1))
            return torch.stack([out.sum(), state.sum().abs()])

    torch.manual_seed(0)
    return {
        "resnet": (ResNet(), (2, 3, 16, 16)),
        "functions": (Functions(), (2, 3, 10, 10)),
        "attention": (Attention(), (2, 5)),
        "twice": (Twice(), (3, 4)),
    }


def inputs(torch: Any, shape: tuple[int, ...]) -> Any:
    """Numbers of a shape that are the same in both libraries."""
    count = math.prod(shape)
    return (torch.arange(count, dtype=torch.float32) % 7 / 3).reshape(shape)
