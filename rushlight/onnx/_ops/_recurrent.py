"""Recurrent layers, one ONNX node for each layer, and cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._ops._table import TABLE, converts

# The gates in ONNX's order, as their places in ours.
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _tensor(g: Builder, value: Value) -> Tensor:
    """The known value of a weight."""
    if value.name not in g.initializers:
        g.refuse("its weights are computed from inputs")
    return g.initializers[value.name]


def _stacked(g: Builder, kind: str, parts: Sequence[Sequence[Value]]) -> Value:
    """Weights of all directions, each of one or several tensors, with the gates in ONNX's order."""

    def ordered(value: Value) -> Tensor:
        gates = _tensor(g, value).chunk(len(_GATES[kind]))
        return rl.cat([gates[place] for place in _GATES[kind]])

    stacked = rl.stack([rl.cat([ordered(value) for value in values]) for values in parts])
    return g.initializer("weights", stacked)


def _layers(
    g: Builder,
    kind: str,
    input: Value,
    states: list[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    bidirectional: bool,
    batch_first: bool,
    activation: str | None = None,
) -> tuple[Value, ...]:
    """The outputs of all steps, and the last states."""
    directions = 2 if bidirectional else 1
    each = 4 if has_biases else 2
    if len(params) != num_layers * directions * each:
        g.refuse("projections have no ONNX form")
    hidden = states[0].shape[-1] if states[0].shape else None
    if not isinstance(hidden, int):
        g.refuse("the size of the hidden state may change")
    x = g.transpose(input, [1, 0, 2]) if batch_first else input
    last: list[list[Value]] = [[] for _ in states]
    options: Any = {"hidden_size": hidden}
    options["direction"] = "bidirectional" if bidirectional else "forward"
    if kind == "GRU":
        options["linear_before_reset"] = 1
    if activation:
        options["activations"] = [activation] * directions
    for layer in range(num_layers):
        first = layer * directions
        sets = [params[(first + d) * each : (first + d + 1) * each] for d in range(directions)]
        begin = [g.slice(state, 0, first, first + directions) for state in states]
        outputs = g.op(
            kind,
            x,
            _stacked(g, kind, [s[:1] for s in sets]),
            _stacked(g, kind, [s[1:2] for s in sets]),
            _stacked(g, kind, [s[2:] for s in sets]) if has_biases else None,
            None,
            *begin,
            outputs=1 + len(states),
            **options,
        )
        steps = g.op("Transpose", outputs[0], perm=[0, 2, 1, 3])  # (T, B, directions, H)
        x = g.reshape(steps, [0, 0, directions * hidden])
        for values, value in zip(last, outputs[1:], strict=True):
            values.append(value)
    ends = [g.op("Concat", *v, axis=0) if len(v) > 1 else v[0] for v in last]
    if batch_first:
        x = g.op("Transpose", x, perm=[1, 0, 2])
    return x, *ends


def _checked(g: Builder, args: tuple[Any, ...], train: bool, dropout: float) -> None:
    if train and dropout:
        g.refuse("it drops elements at random. Call eval() first")
    if not isinstance(args[0], (list, tuple)):
        g.refuse("packed sequences have no ONNX form. Pad them")


@converts("lstm")
def lstm(g: Builder, input: Value, hx: Any, *args: Any) -> Any:
    if isinstance(hx, Value):  # the sizes of a packed sequence
        g.refuse("packed sequences have no ONNX form. Pad them")
    params, has_biases, num_layers, dropout, train, bidirectional, batch_first = args
    _checked(g, args, train, dropout)
    return _layers(
        g, "LSTM", input, list(hx), params, has_biases, num_layers, bidirectional, batch_first
    )


def _one_state(kind: str, activation: str | None) -> Callable[..., Any]:
    def convert(g: Builder, input: Value, hx: Value, *args: Any) -> Any:
        if isinstance(args[0], Value):
            g.refuse("packed sequences have no ONNX form. Pad them")
        params, has_biases, num_layers, dropout, train, bidirectional, batch_first = args
        _checked(g, args, train, dropout)
        return _layers(
            g, kind, input, [hx], params, has_biases, num_layers, bidirectional, batch_first,
            activation,
        )  # fmt: skip

    return convert


TABLE["gru"] = _one_state("GRU", None)
TABLE["rnn_tanh"], TABLE["rnn_relu"] = _one_state("RNN", "Tanh"), _one_state("RNN", "Relu")


# Cells


def _gates(g: Builder, x: Value, weight: Value, bias: Value | None, count: int) -> Any:
    product = g.op("Gemm", x, weight, bias, transB=1)
    return g.op("Split", product, outputs=count, axis=1, num_outputs=count)


@converts("lstm_cell")
def lstm_cell(
    g: Builder, input: Value, hx: Any, w_ih: Value, w_hh: Value, b_ih: Any = None, b_hh: Any = None
) -> Any:
    pairs = zip(_gates(g, input, w_ih, b_ih, 4), _gates(g, hx[0], w_hh, b_hh, 4), strict=True)
    i, f, c, o = (g.op("Add", a, b) for a, b in pairs)
    kept = g.op("Mul", g.op("Sigmoid", f), hx[1])
    cell = g.op("Add", kept, g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", c)))
    return g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", cell)), cell


@converts("gru_cell")
def gru_cell(
    g: Builder,
    input: Value,
    hx: Value,
    w_ih: Value,
    w_hh: Value,
    b_ih: Any = None,
    b_hh: Any = None,
) -> Value:
    (r1, z1, n1), (r2, z2, n2) = _gates(g, input, w_ih, b_ih, 3), _gates(g, hx, w_hh, b_hh, 3)
    reset = g.op("Sigmoid", g.op("Add", r1, r2))
    keep = g.op("Sigmoid", g.op("Add", z1, z2))
    new = g.op("Tanh", g.op("Add", n1, g.op("Mul", reset, n2)))
    return g.op("Add", new, g.op("Mul", keep, g.op("Sub", hx, new)))


def _plain_cell(kind: str) -> Callable[..., Any]:
    def convert(
        g: Builder,
        input: Value,
        hx: Value,
        w_ih: Value,
        w_hh: Value,
        b_ih: Any = None,
        b_hh: Any = None,
    ) -> Value:
        a = g.op("Gemm", input, w_ih, b_ih, transB=1)
        return g.op(kind, g.op("Add", a, g.op("Gemm", hx, w_hh, b_hh, transB=1)))

    return convert


TABLE["rnn_tanh_cell"], TABLE["rnn_relu_cell"] = _plain_cell("Tanh"), _plain_cell("Relu")
