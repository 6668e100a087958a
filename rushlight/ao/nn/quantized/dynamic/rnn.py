"""Recurrent networks of floats with weights of 8 bits.

The products with the input are one product for all steps; those with the state come step by step.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.ao.nn.quantized._base import take
from rushlight.ao.nn.quantized._packed import PackedWeight, quantize_weight
from rushlight.ao.nn.quantized.reference._base import ReferenceQuantizedModule
from rushlight.nn import Module
from rushlight.nn import functional as F

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "RNNCell"]


def _quantized(mod: Any, name: str) -> PackedWeight:
    """The weight and bias of a name, quantized as the layer's qconfig or reference form says."""
    bias = getattr(mod, f"bias_{name}", None)
    if isinstance(mod, ReferenceQuantizedModule):
        return PackedWeight(mod._quantized(f"weight_{name}"), bias)
    weight = getattr(mod, f"weight_{name}")
    qconfig = getattr(mod, "qconfig", None)
    if qconfig is None:
        from rushlight.ao.quantization.qconfig import default_dynamic_qconfig as qconfig
    observer = qconfig.weight()
    if observer.dtype is not rl.qint8:
        raise RuntimeError(
            f"{type(mod).__name__}: weights become torch.qint8, but the qconfig wants "
            f"{observer.dtype}."
        )
    observer(weight)
    return PackedWeight(quantize_weight(weight, observer), bias)


def _lstm_step(given: Tensor, recurrent: Tensor, state: Any) -> tuple[Tensor, Any]:
    i, f, g, o = (given + recurrent).chunk(4, -1)
    cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    hidden = o.sigmoid() * cell.tanh()
    return hidden, (hidden, cell)


def _gru_step(given: Tensor, recurrent: Tensor, state: Any) -> tuple[Tensor, Any]:
    r, z, n = given.chunk(3, -1)
    hr, hz, hn = recurrent.chunk(3, -1)
    new = (n + (r + hr).sigmoid() * hn).tanh()
    hidden = new + (z + hz).sigmoid() * (state[0] - new)
    return hidden, (hidden,)


def _tanh_step(given: Tensor, recurrent: Tensor, state: Any) -> tuple[Tensor, Any]:
    hidden = (given + recurrent).tanh()
    return hidden, (hidden,)


def _relu_step(given: Tensor, recurrent: Tensor, state: Any) -> tuple[Tensor, Any]:
    hidden = (given + recurrent).relu()
    return hidden, (hidden,)


class _WithWeights(Module):
    """Weights by the suffix of their name, "_l0" for one: that of the input, that of the state."""

    def __init__(self) -> None:
        super().__init__()
        self._weights: dict[str, list[PackedWeight]] = {}

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Returns the quantized form of a float network or cell."""
        result = cls.__new__(cls)
        _WithWeights.__init__(result)
        result._become(mod)
        result.training = mod.training
        return result

    def _become(self, mod: Any) -> None:
        """Takes the sizes and the weights of a float module."""
        raise NotImplementedError

    from_reference = from_float

    def _take_weights(self, mod: Any, suffixes: list[str]) -> None:
        for suffix in suffixes:
            self._weights[suffix] = [_quantized(mod, f"{kind}{suffix}") for kind in ("ih", "hh")]

    def get_weight(self) -> dict[str, Any]:
        """The quantized weights by name."""
        return {n: v for n, v in self._named().items() if n.startswith("weight")}

    def get_bias(self) -> dict[str, Any]:
        """The biases by name."""
        return {n: v for n, v in self._named().items() if n.startswith("bias")}

    def _named(self) -> dict[str, Any]:
        named: dict[str, Any] = {}
        for suffix, pair in self._weights.items():
            for kind, packed in zip(("ih", "hh"), pair, strict=True):
                named[f"weight_{kind}{suffix}"] = packed.weight
                named[f"bias_{kind}{suffix}"] = packed.bias
        return named

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination.update({prefix + name: value for name, value in self._named().items()})

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        for suffix, pair in self._weights.items():
            for place, kind in enumerate(("ih", "hh")):
                weight = take(state_dict, f"{prefix}weight_{kind}{suffix}", args[2])
                bias = take(state_dict, f"{prefix}bias_{kind}{suffix}", args[2])
                if weight is not None:
                    pair[place] = PackedWeight(weight, bias)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"


def _check_states(name: str, states: Any, count: int, sizes: tuple[int, ...]) -> None:
    found = [tuple(state.shape) for state in states if isinstance(state, Tensor)]
    if len(states) != count or found != [sizes] * count:
        raise RuntimeError(
            f"{name}: Expected hidden size {sizes}, got {', '.join(map(str, found))} of "
            f"{len(states)} states. There {'is one' if count == 1 else 'are two'}."
        )


class _Recurrent(_WithWeights):
    _step: Any
    _float_class: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        kwargs.pop("dtype", None)
        self._become(self._float_class(*args, **kwargs))

    def _become(self, mod: Any) -> None:
        names = "input_size hidden_size num_layers bias batch_first dropout bidirectional"
        for name in names.split():
            setattr(self, name, getattr(mod, name))
        if getattr(mod, "proj_size", 0):
            raise NotImplementedError(f"{type(self).__name__}: proj_size is not supported.")
        ends = ("", "_reverse") if mod.bidirectional else ("",)
        self._take_weights(mod, [f"_l{i}{end}" for i in range(mod.num_layers) for end in ends])

    def _run(self, input: Any, states: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Runs all layers over (T, N, features); states are (layers * directions, N, hidden)."""
        ends: list[list[Tensor]] = [[] for _ in states]
        directions = 2 if self.bidirectional else 1
        cells = list(self._weights.values())
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                k = layer * directions + direction
                given = cells[k][0].dynamic(input).unbind(0)
                state: Any = tuple(s[k] for s in states)
                steps = []
                for x in reversed(given) if direction else given:
                    hidden, state = self._step(x, cells[k][1].dynamic(state[0]), state)
                    steps.append(hidden)
                outputs.append(rl.stack(steps[::-1] if direction else steps))
                for end, last in zip(ends, state, strict=True):
                    end.append(last)
            input = outputs[0] if directions == 1 else rl.cat(outputs, -1)
            if self.dropout and self.training and layer + 1 < self.num_layers:
                input = F.dropout(input, self.dropout)
        return input, tuple(rl.stack(end) for end in ends)

    def _forward(self, input: Any, states: Any, count: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        name = type(self).__name__
        if not isinstance(input, Tensor):
            raise NotImplementedError(
                f"{name}: packed sequences are not supported. Use pad_packed_sequence."
            )
        if input.dim() not in (2, 3) or input.size(-1) != self.input_size:
            raise RuntimeError(
                f"{name}: input must be (T, N, {self.input_size}) or (T, {self.input_size}), "
                f"but has shape {tuple(input.shape)}."
            )
        is_single = input.dim() == 2
        x = input.unsqueeze(1) if is_single else input
        if self.batch_first and not is_single:
            x = x.transpose(0, 1)
        if not x.size(0):
            raise RuntimeError(f"{name}: Expected sequence length to be larger than 0 in RNN")
        rows = self.num_layers * (2 if self.bidirectional else 1)
        sizes = (rows, x.size(1), self.hidden_size)
        if states is None:
            states = (rl.zeros(sizes),) * count
        elif is_single:
            states = [s.unsqueeze(1) if isinstance(s, Tensor) else s for s in states]
        _check_states(name, states, count, sizes)
        output, states = self._run(x, states)
        if is_single:
            return output.squeeze(1), tuple(s.squeeze(1) for s in states)
        return (output.transpose(0, 1) if self.batch_first else output), states

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("num_layers", 1),
            ("batch_first", False),
            ("dropout", 0.0),
            ("bidirectional", False),
        ):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text


class LSTM(_Recurrent):
    """nn.LSTM with qint8 weights; its arguments are those of nn.LSTM.

    Example:
        >>> lstm = torch.ao.nn.quantized.dynamic.LSTM(4, 3)
        >>> output, (h, c) = lstm(torch.zeros(5, 2, 4))
        >>> output.shape
        torch.Size([5, 2, 3])
    """

    _float_class = nn.LSTM
    _step = staticmethod(_lstm_step)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> Any:
        """Returns the outputs of the last layer, and the last states (h, c)."""
        return self._forward(input, hx, 2)


class GRU(_Recurrent):
    """nn.GRU with qint8 weights; its arguments are those of nn.GRU."""

    _float_class = nn.GRU
    _step = staticmethod(_gru_step)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Any:
        """Returns the outputs of the last layer, and the last state."""
        output, states = self._forward(input, None if hx is None else (hx,), 1)
        return output, states[0]


class _Cell(_WithWeights):
    _step: Any
    _float_class: Any

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, **kwargs: Any) -> None:
        super().__init__()
        kwargs.pop("dtype", None)
        self._become(self._float_class(input_size, hidden_size, bias, **kwargs))

    def _become(self, mod: Any) -> None:
        self.input_size, self.hidden_size, self.bias = mod.input_size, mod.hidden_size, mod.bias
        self.nonlinearity = getattr(mod, "nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}. Use tanh or relu.")
        self._take_weights(mod, [""])

    def _forward(self, input: Tensor, states: Any, count: int) -> Any:
        sizes = (*input.shape[:-1], self.hidden_size)
        if states is None:
            states = (rl.zeros(sizes),) * count
        _check_states(type(self).__name__, states, count, sizes)
        of_input, of_state = self._weights[""]
        return self._step(of_input.dynamic(input), of_state.dynamic(states[0]), states)[1]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}"


class LSTMCell(_Cell):
    """nn.LSTMCell with qint8 weights; its arguments are those of nn.LSTMCell."""

    _float_class = nn.LSTMCell
    _step = staticmethod(_lstm_step)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> Any:
        """Returns the states (h, c)."""
        return self._forward(input, hx, 2)


class GRUCell(_Cell):
    """nn.GRUCell with qint8 weights; its arguments are those of nn.GRUCell."""

    _float_class = nn.GRUCell
    _step = staticmethod(_gru_step)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Returns the state."""
        return self._forward(input, None if hx is None else (hx,), 1)[0]


class RNNCell(_Cell):
    """nn.RNNCell with qint8 weights; its arguments are those of nn.RNNCell."""

    _float_class = nn.RNNCell

    def _step(self, given: Tensor, recurrent: Tensor, state: Any) -> tuple[Tensor, Any]:
        step = _relu_step if self.nonlinearity == "relu" else _tanh_step
        return step(given, recurrent, state)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Returns the state."""
        return self._forward(input, None if hx is None else (hx,), 1)[0]
