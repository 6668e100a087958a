"""The table of Module.summary()."""

import pytest

import rushlight as torch
from rushlight import nn


def build():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.Sequential(nn.BatchNorm2d(4), nn.ReLU()), nn.Dropout()
    )


def test_table_shows_the_tree_with_shapes_and_counts() -> None:
    assert str(build().summary(torch.zeros(2, 1, 5, 5))).splitlines() == [
        "layer                output shape  parameters  multiply-adds",
        "Sequential           (2, 4, 3, 3)          48            648",
        "├─ 0 Conv2d          (2, 4, 3, 3)          40            648",
        "├─ 1 Sequential      (2, 4, 3, 3)           8              0",
        "│  ├─ 0 BatchNorm2d  (2, 4, 3, 3)           8              0",
        "│  └─ 1 ReLU         (2, 4, 3, 3)           0              0",
        "└─ 2 Dropout         (2, 4, 3, 3)           0              0",
        "48 parameters (48 trainable) in 232 bytes, 648 multiply-adds",
    ]


def test_table_without_an_example_has_no_shapes_and_depth_limits_it() -> None:
    assert str(build().summary(depth=1)).splitlines() == [
        "layer            parameters",
        "Sequential               48",
        "├─ 0 Conv2d              40",
        "├─ 1 Sequential           8",
        "└─ 2 Dropout              0",
        "48 parameters (48 trainable) in 232 bytes",
    ]


def test_figures_count_shared_parameters_once_and_frozen_ones_apart() -> None:
    layer = nn.Linear(1000, 1000, bias=False)
    net = nn.Sequential(layer, layer, nn.Linear(1000, 1).requires_grad_(False))
    summary = net.summary()
    assert summary.total_parameters == 1_001_001
    assert summary.trainable_parameters == 1_000_000
    assert summary.bytes == 4_004_004
    assert [row.parameters for row in summary.rows] == [1_001_001, 1_000_000, 1_000_000, 1001]
    assert "1,001,001 parameters (1,000,000 trainable) in 3.82 MiB" in str(summary)


def test_trial_forward_leaves_the_module_as_it_was() -> None:
    net = build()
    net[1].eval()
    net.summary(torch.ones(2, 1, 5, 5))
    assert [m.training for m in net.modules()] == [True, True, False, False, False, True]
    assert net[1][0].num_batches_tracked.item() == 0
    assert all(p.grad is None for p in net.parameters())
    assert not any(m._hooks for m in net.modules())


def test_module_that_did_not_run_or_returned_something_else_is_marked() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.unused = nn.ReLU()
            self.pair = nn.Module()
            self.pair.forward = lambda x: (x, [x, 3])

        def forward(self, x):
            return {"pair": self.pair(x)}

    rows = {row.path: row.output_shape for row in Odd().summary(torch.ones(2)).rows}
    assert rows == {"": "dict", "unused": None, "pair": "(2,), (2,), int"}


class Calls(nn.Module):
    """Runs a function of its input."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize(
    ("module", "shape", "cost"),
    [
        (nn.Linear(3, 4), (5, 2, 3), 5 * 2 * 3 * 4),
        (nn.Conv1d(4, 6, 3, groups=2), (2, 4, 7), 2 * 6 * 5 * 2 * 3),
        (nn.ConvTranspose2d(3, 5, 2), (1, 3, 4, 4), 3 * 16 * 5 * 4),
        (nn.Conv3d(1, 2, 2), (1, 1, 3, 3, 3), 2 * 8 * 8),
        (Calls(lambda x: x @ x.mT), (3, 4, 5), 3 * 4 * 5 * 4),
        (Calls(lambda x: torch.bmm(x, x.mT)), (3, 4, 5), 3 * 4 * 5 * 4),
        (Calls(lambda x: torch.addmm(x[0, :4, :4], x[0], x[0].T)), (1, 4, 5), 4 * 5 * 4),
        (Calls(lambda x: torch.einsum("bij,bkj->bik", x, x)), (3, 4, 5), 3 * 4 * 5 * 4),
        (Calls(lambda x: torch.einsum("bij->b", x)), (3, 4, 5), 0),
        (Calls(lambda x: nn.functional.linear(x, bias=None, weight=x)), (3, 2), 18),
        (nn.GRU(3, 4), (5, 2, 3), 5 * 2 * 12 * (3 + 4)),
        (nn.LSTM(3, 4, num_layers=2), (5, 2, 3), 5 * 2 * 16 * (3 + 4 + 4 + 4)),
        (nn.LSTMCell(3, 4), (2, 3), 2 * 16 * (3 + 4)),
        (nn.ReLU(), (3, 4), 0),
        (nn.LSTM(3, 5, 2, bidirectional=True), (7, 2, 3), 14 * 2 * (20 * 8 + 20 * 15)),
        (nn.GRU(3, 5, bias=False, batch_first=True), (7, 2, 3), 14 * 15 * 8),
        (nn.LSTMCell(3, 5), (4, 3), 4 * 20 * 8),
        (
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
            (2, 5, 8),
            4 * 10 * 64 + 2 * 10 * 5 * 8 + 2 * 10 * 8 * 16,
        ),
    ],
)
def test_multiplications_are_counted(module, shape, cost) -> None:
    summary = nn.Sequential(module).summary(torch.ones(shape))
    assert [row.multiply_adds for row in summary.rows[:2]] == [cost, cost]
    assert summary.total_multiply_adds == cost


def test_a_module_that_runs_twice_counts_twice() -> None:
    layer = nn.Linear(3, 3)
    summary = nn.Sequential(layer, nn.Sequential(layer)).summary(torch.ones(1, 3))
    assert [row.multiply_adds for row in summary.rows] == [18, 18, 9, 18]
    assert nn.Linear(3, 3).summary().total_multiply_adds is None
