"""Programs as modules again: the paths, the parameters and the results are those before."""

import io
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.export import export, unflatten


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.linear = nn.Linear(4, 4)
        self.act = nn.ReLU()

    def forward(self, x: Any, shift: Any = None) -> Any:
        y = self.act(self.norm(self.act(self.linear(x))))
        return y if shift is None else y + shift


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.blocks[0].linear.weight
        self.head = nn.Sequential(nn.Linear(2, 1), nn.Flatten(0))
        self.register_buffer("shift", torch.ones(4))
        self.register_buffer("unused", torch.ones(1), persistent=False)

    def forward(self, x: Any, scale: Any) -> Any:
        for block in self.blocks:
            x = block(x, self.shift)
        left, right = self.tied(self.blocks[0](x)).split(2, -1)
        return {"y": self.head(left), "z": scale * right}


@pytest.mark.parametrize("is_training", [False, True])
def test_modules_are_where_they_were_and_share_the_parameters(is_training: bool) -> None:
    network = Network().train(is_training)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    again = unflatten(export(network, (torch.randn(3, 4),), {"scale": torch.tensor(2.0)}))
    assert again.training is is_training
    paths = {path for path, _ in network.named_modules()}
    made = {path for path, _ in again.named_modules()}
    assert paths == {path for path in made if "@" not in path} and "blocks.0@1" in made
    for path, tensor in (*network.named_parameters(), *network.named_buffers()):
        found: Any = again.get_parameter if isinstance(tensor, nn.Parameter) else again.get_buffer
        assert found(path) is tensor
    saved = {key for key in again.state_dict() if "@" not in key}
    assert saved == network.state_dict().keys()
    assert again.tied.weight is network.tied.weight

    x, scale = torch.randn(3, 4), torch.tensor(3.0)
    ours = again(x, scale=scale)
    after = {key: value.clone() for key, value in network.state_dict().items()}
    network.load_state_dict(before)
    theirs = network(x, scale=scale)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    for key, value in network.state_dict().items():  # the statistics of batches, too
        assert torch.equal(value, after[key])


def test_a_part_can_be_replaced() -> None:
    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
            self.last = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.last(self.first(x))

    root = Root()
    again = unflatten(export(root, (torch.ones(1, 2),)))
    again.set_submodule("first.1", nn.Sigmoid())
    x = torch.randn(1, 2)
    assert torch.equal(again(x), root.last(root.first[0](x).sigmoid()))


def test_calls_that_took_the_same_steps_are_one_module() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.linear(self.linear(x))

    twice = Twice()
    again = unflatten(export(twice, (torch.ones(1, 2),)))
    assert [path for path, _ in again.named_children()] == ["linear"]
    assert torch.equal(again(torch.ones(1, 2)), twice(torch.ones(1, 2)))


def test_what_is_called_from_beside_is_inside_the_caller() -> None:
    class Caller(nn.Module):
        def __init__(self, other: nn.Module) -> None:
            super().__init__()
            self.others = [other]

        def forward(self, x: Any) -> Any:
            return self.others[0](x) + 1

    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.caller = Caller(self.linear)

        def forward(self, x: Any) -> Any:
            return self.caller(x) * self.linear(x)

    root = Root()
    again = unflatten(export(root, (torch.ones(1, 2),)))
    x = torch.randn(3, 2)[:1]
    assert torch.equal(again(x), root(x))
    assert list(again.state_dict()) == list(root.state_dict())


def test_modules_may_be_called_from_above_their_parents() -> None:
    class Scale(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 3

    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = Scale()

        def forward(self, x: Any) -> Any:
            return x + 1

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: Any) -> Any:
            return self.inner.scale(x) + 2

    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.outer = Outer()

        def forward(self, x: Any) -> Any:
            return self.outer.inner(self.outer(x))

    again = unflatten(export(Root(), (torch.ones(1),)))
    assert again(torch.ones(1)).tolist() == [6]
    assert [path for path, _ in again.named_modules()] == [
        "", "outer", "outer.inner", "outer.inner.scale",
    ]  # fmt: skip


def test_sizes_may_change_and_other_arguments_are_refused() -> None:
    batch = torch.export.Dim("batch", max=9)
    network = nn.Sequential(nn.Flatten(), nn.Linear(6, 2), nn.LazyBatchNorm1d()).eval()
    network(torch.ones(2, 2, 3))
    program = export(network, (torch.ones(2, 2, 3),), dynamic_shapes={"input": {0: batch}})
    again = unflatten(program)
    x = torch.randn(5, 2, 3)
    assert torch.equal(again(x), network(x))
    with pytest.raises(Exception, match="batch"):
        again(torch.ones(10, 2, 3))


def test_files_know_the_modules() -> None:
    network = Network().eval()
    file = io.BytesIO()
    torch.export.save(export(network, (torch.ones(2, 4), torch.tensor(1.0))), file)
    file.seek(0)
    again = unflatten(torch.export.load(file))
    paths = {path for path, _ in network.named_modules()}
    assert paths <= {path for path, _ in again.named_modules()}
    x = torch.randn(2, 4)
    assert torch.equal(again(x, torch.tensor(2.0))["y"], network(x, torch.tensor(2.0))["y"])
