"""The small tools of torch.utils, and quasirandom points."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula
from rushlight.utils.weak import TensorWeakRef, WeakIdKeyDictionary


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(4 * 6 * 6, 5))

    def forward(self, x: Any) -> Any:
        return self.head(torch.relu(self.conv(x)))


CONV, LINEAR = 2 * 2 * 4 * 36 * 27, 2 * 2 * 144 * 5


def test_flops_are_counted_by_module_and_op() -> None:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        Net()(torch.ones(2, 3, 8, 8))
    counts = {"conv2d": CONV, "linear": LINEAR}
    assert counter.get_flop_counts() == {
        "Global": counts,
        "Net": counts,
        "Net.conv": {"conv2d": CONV},
        "Net.head": {"linear": LINEAR},
        "Net.head.1": {"linear": LINEAR},
    }
    assert counter.get_total_flops() == CONV + LINEAR
    assert "Net.head.1" not in counter.get_table() and "Net.head.1" in counter.get_table(3)


@pytest.mark.parametrize(("needs_input", "times"), [(False, 1), (True, 2)])
def test_backward_counts_the_gradients_that_are_needed(needs_input: bool, times: int) -> None:
    x = torch.ones(2, 3, 8, 8, requires_grad=needs_input)
    with FlopCounterMode(display=False) as counter:
        out = Net()(x)
        out.sum().backward()
    counts = counter.get_flop_counts()["Net"]
    assert counts["conv2d_backward"] == times * CONV
    assert counts["linear_backward"] == 2 * LINEAR
    total = counter.get_total_flops()
    Net()(x).sum().backward()
    assert counter.get_total_flops() == total


def test_backward_of_layers_of_several_products_is_counted() -> None:
    with FlopCounterMode(display=False) as counter:
        out = nn.MultiheadAttention(4, 2)(*[torch.ones(3, 1, 4)] * 3)[0]
        out.sum().backward()
        nn.GRU(4, 3)(torch.ones(2, 1, 4))[0].sum().backward()
    counts = counter.get_flop_counts()["Global"]
    assert (counts["linear"], counts["matmul"]) == (384, 144)  # as PyTorch counts attention
    assert (counts["linear_backward"], counts["matmul_backward"]) == (480, 288)
    assert counts["gru_backward"] == 2 * counts["gru"] > 0


def test_flops_have_formulas_of_ones_own() -> None:
    def formula(shape: Any, dim: int, *, out_shape: Any) -> int:
        return shape.numel() + 1000 * len(out_shape)

    def raw(*args: Any, out_val: torch.Tensor) -> int:
        return out_val.numel()

    raw._get_raw = True
    x = torch.ones(3, 4)
    with FlopCounterMode(display=False, custom_mapping={torch.softmax: formula}) as counter:
        torch.softmax(x, 1)
    assert counter.get_flop_counts() == {"Global": {"softmax": 2012}}
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.add: raw}) as counter:
        _ = x + x
        x.add(1)
    assert counter.get_flop_counts() == {"Global": {"add": 2 * x.numel()}}
    register_flop_formula([torch.cumsum], get_raw=True)(lambda x, dim, out_val: 7)
    try:
        with pytest.raises(RuntimeError, match="duplicate registrations"):
            register_flop_formula(torch.cumsum)(formula)
        with FlopCounterMode(display=False) as counter:
            torch.cumsum(x, 0)
        assert counter.get_total_flops() == 7
    finally:
        flop_registry.pop(torch.cumsum)


def test_tensors_change_places() -> None:
    layer = nn.Linear(2, 1)
    held = layer.weight
    other = torch.zeros(3, dtype=torch.float64)
    other.note = "mine"
    held.grad = torch.ones(1, 2)
    values = held.tolist()
    torch.utils.swap_tensors(held, other)
    assert held is layer.weight and type(held) is torch.Tensor and held.dtype == torch.float64
    assert held.note == "mine" and held.grad is None and not held.requires_grad
    assert type(other) is nn.Parameter and other.tolist() == values and other.requires_grad
    assert other.grad is not None and other.grad.tolist() == [[1, 1]] and not hasattr(other, "note")
    assert (held + 1).tolist() == [1, 1, 1]


def test_tensors_that_others_use_stay() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.zeros(2)
    z = x * x  # which backward needs
    with pytest.raises(RuntimeError, match="another owner uses t1"):
        torch.utils.swap_tensors(x, y)
    del z
    a, reference = torch.ones(1), weakref.ref(y)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref"):
        torch.utils.swap_tensors(a, y)
    assert reference() is y
    with pytest.raises(TypeError, match="t2 must be Tensor"):
        torch.utils.swap_tensors(torch.ones(1), 3)


def test_copies_of_weak_dicts_have_the_same_keys() -> None:
    x, y = torch.ones(1), torch.ones(1)
    names = WeakIdKeyDictionary({x: ["x"]})
    copied, deep = names.copy(), copy.deepcopy(names)
    assert copied[x] is names[x] is not deep[x] and deep[x] == ["x"]
    both = names | {y: "y"}
    names |= {x: "z"}
    assert (both[x], both[y], ({y: 1} | both)[y], names[x]) == (["x"], "y", "y", "z")
    assert [ref() is x for ref in names.keyrefs()] == [True]
    with pytest.raises(TypeError):
        _ = names | 3  # type: ignore[operator]


def test_dicts_know_tensors_by_identity_and_let_them_go() -> None:
    names = WeakIdKeyDictionary()
    x, y = torch.ones(2), torch.ones(2)
    names[x], names[y] = "x", "y"
    assert [names[x], names[y], len(names)] == ["x", "y", 2]
    assert all(a is b for a, b in zip(names, (x, y), strict=True))
    assert 3 not in names and torch.ones(2) not in names
    names.pop(y)
    with pytest.raises(KeyError):
        names[y]
    reference = TensorWeakRef(x)
    assert reference() is x
    del x
    gc.collect()
    assert len(names) == 0 and reference() is None
    with pytest.raises(AssertionError, match=r"expected torch\.Tensor"):
        TensorWeakRef(3)


def test_the_environment_is_printed() -> None:
    command = [sys.executable, "-m", "rushlight.utils.collect_env"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"Rushlight version: {torch.__version__}" in done.stdout
    assert f"[pip3] numpy=={np.__version__}" in done.stdout


def test_sobol_points_fill_each_box_once() -> None:
    engine = torch.quasirandom.SobolEngine(2)
    points = engine.draw(16, dtype=torch.float64)
    boxes = (points * 4).floor()
    assert len({tuple(box) for box in boxes.tolist()}) == 16  # a net in base 2: 4 x 4 boxes
    assert engine.num_generated == 16 and points[0].tolist() == [0, 0]
    engine.reset()
    assert torch.equal(engine.fast_forward(5).draw(3, dtype=torch.float64), points[5:8])
    out = torch.empty(0)
    assert engine.draw(2, out=out) is out and out.dtype == torch.float32
    assert torch.equal(out, points[8:10].float())


def test_scrambled_points_depend_on_the_seed() -> None:
    a, b, c = (torch.quasirandom.SobolEngine(3, scramble=True, seed=s).draw(8) for s in (1, 1, 2))
    assert torch.equal(a, b) and not torch.equal(a, c)
    assert a.min() >= 0 and a.max() < 1
    torch.manual_seed(0)
    first = torch.quasirandom.SobolEngine(3, scramble=True).draw(4)
    torch.manual_seed(0)
    assert torch.equal(torch.quasirandom.SobolEngine(3, scramble=True).draw(4), first)


def test_sobol_engines_say_what_they_cannot() -> None:
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match=r"\[1, 21201\]"):
            torch.quasirandom.SobolEngine(dimension)
    engine = torch.quasirandom.SobolEngine(1)
    engine.draw_base2(2)
    with pytest.raises(ValueError, match="require n to be a power of 2. 4 points"):
        engine.draw_base2(0)
    assert repr(engine) == "SobolEngine(dimension=1)"
