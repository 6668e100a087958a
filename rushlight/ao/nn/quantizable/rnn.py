"""The LSTM of linear layers and functionals, each of which has a form of its own."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.ao.nn import quantized as nnq

__all__ = ["LSTM", "LSTMCell"]

_GATES = ("input", "forget", "cell", "output")
_Pair = tuple[Tensor, Tensor]


def _own(part: Tensor) -> nn.Parameter:
    return nn.Parameter(part.detach(), part.requires_grad)


class LSTMCell(nn.Module):
    """nn.LSTMCell of linear layers, sums and products that are observed one by one.

    Args:
        input_dim: features of the input.
        hidden_dim: features of the states.
        bias: whether there are biases.
        device: where to put the parameters.
        dtype: their dtype.
        split_gates: gives each gate layers of its own, and so a scale of its own.

    Example:
        >>> cell = torch.ao.nn.quantizable.LSTMCell(3, 4)
        >>> h, c = cell(torch.zeros(2, 3))
        >>> h.shape
        torch.Size([2, 4])
    """

    _FLOAT_MODULE = nn.LSTMCell

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        split_gates: bool = False,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_dim, hidden_dim, bias
        self.split_gates = split_gates

        def linear(ins: int) -> nn.Module:
            if not split_gates:
                return nn.Linear(ins, 4 * hidden_dim, bias, device, dtype)
            return nn.ModuleDict(
                {gate: nn.Linear(ins, hidden_dim, bias, device, dtype) for gate in _GATES}
            )

        sums: Any = nnq.FloatFunctional()
        if split_gates:
            sums = nn.ModuleDict({gate: nnq.FloatFunctional() for gate in _GATES})
        self.igates: Any = linear(input_dim)
        self.hgates: Any = linear(hidden_dim)
        self.gates: Any = sums
        self.input_gate, self.forget_gate = nn.Sigmoid(), nn.Sigmoid()
        self.cell_gate, self.output_gate = nn.Tanh(), nn.Sigmoid()
        self.fgate_cx, self.igate_cgate = nnq.FloatFunctional(), nnq.FloatFunctional()
        self.fgate_cx_igate_cgate = nnq.FloatFunctional()
        self.ogate_cy = nnq.FloatFunctional()
        self.initial_hidden_state_qparams: tuple[float, int] = (1.0, 0)
        self.initial_cell_state_qparams: tuple[float, int] = (1.0, 0)
        self.hidden_state_dtype: Any = rl.quint8
        self.cell_state_dtype: Any = rl.quint8

    def forward(self, x: Tensor, hidden: _Pair | None = None) -> _Pair:
        """Returns the states (h, c) after an input (N, input_dim)."""
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        h, c = hidden
        if self.split_gates:
            sums = [
                self.gates[gate].add(self.igates[gate](x), self.hgates[gate](h)) for gate in _GATES
            ]
        else:
            sums = self.gates.add(self.igates(x), self.hgates(h)).chunk(4, 1)
        i, f, g, o = (
            gate(total)
            for gate, total in zip(
                (self.input_gate, self.forget_gate, self.cell_gate, self.output_gate),
                sums,
                strict=True,
            )
        )
        kept, new = self.fgate_cx.mul(f, c), self.igate_cgate.mul(i, g)
        c = self.fgate_cx_igate_cgate.add(kept, new)
        return self.ogate_cy.mul(o, rl.tanh(c)), c

    def initialize_hidden(self, batch_size: int, is_quantized: bool = False) -> _Pair:
        """Returns zeros (batch_size, hidden_dim) for both states, quantized if the input is."""
        zeros = rl.zeros(batch_size, self.hidden_size)
        if not is_quantized:
            return zeros, zeros
        h, c = (
            rl.quantize_per_tensor(zeros, *form, dtype)
            for form, dtype in (
                (self.initial_hidden_state_qparams, self.hidden_state_dtype),
                (self.initial_cell_state_qparams, self.cell_state_dtype),
            )
        )
        return h, c

    def _get_name(self) -> str:
        return "QuantizableLSTMCell"

    @classmethod
    def from_params(
        cls,
        wi: Tensor,
        wh: Tensor,
        bi: Tensor | None = None,
        bh: Tensor | None = None,
        split_gates: bool = False,
    ) -> LSTMCell:
        """Returns a cell with weights (4 * hidden, ...) and biases (4 * hidden,), or none."""
        if (bi is None) != (bh is None):
            raise AssertionError("bi and bh must both be None or both have values")
        cell = cls(wi.shape[1], wh.shape[1], bi is not None, split_gates=split_gates)
        for layers, weight, bias in ((cell.igates, wi, bi), (cell.hgates, wh, bh)):
            each = list(layers.values()) if split_gates else [layers]
            for layer, part in zip(each, weight.chunk(len(each)), strict=True):
                layer.weight = _own(part)
            if bias is not None:
                for layer, part in zip(each, bias.chunk(len(each)), strict=True):
                    layer.bias = _own(part)
        return cell

    @classmethod
    def from_float(
        cls, other: Any, use_precomputed_fake_quant: bool = False, split_gates: bool = False
    ) -> LSTMCell:
        """Returns the cell with the parameters and the qconfig of an nn.LSTMCell."""
        _check_float(cls, other)
        biases = (other.bias_ih, other.bias_hh) if other.bias else (None, None)
        cell = cls.from_params(other.weight_ih, other.weight_hh, *biases, split_gates=split_gates)
        _give_qconfig(cell, other.qconfig)
        return cell


def _check_float(cls: Any, other: Any) -> None:
    if type(other) is not cls._FLOAT_MODULE:
        raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
    if not hasattr(other, "qconfig"):
        raise AssertionError("The float module must have 'qconfig'")


def _give_qconfig(module: nn.Module, qconfig: Any) -> None:
    for part in module.modules():
        part.qconfig = qconfig


class _LSTMSingleLayer(nn.Module):
    """One direction of one layer over a whole sequence."""

    def __init__(self, cell: LSTMCell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, hidden: _Pair | None) -> tuple[Tensor, _Pair]:
        steps = []
        for step in x.unbind(0):
            hidden = self.cell(step, hidden)
            steps.append(hidden[0])
        return rl.stack(steps, 0), hidden  # pyright: ignore[reportReturnType]


class _LSTMLayer(nn.Module):
    """One layer, in one direction or both."""

    def __init__(self, forwards: LSTMCell, backwards: LSTMCell | None) -> None:
        super().__init__()
        self.layer_fw = _LSTMSingleLayer(forwards)
        self.bidirectional = backwards is not None
        if backwards is not None:
            self.layer_bw = _LSTMSingleLayer(backwards)

    def forward(self, x: Tensor, hidden: list[_Pair] | None) -> tuple[Tensor, list[_Pair]]:
        output, last = self.layer_fw(x, None if hidden is None else hidden[0])
        if not self.bidirectional:
            return output, [last]
        back, last_back = self.layer_bw(x.flip(0), None if hidden is None else hidden[1])
        return rl.cat([output, back.flip(0)], output.dim() - 1), [last, last_back]


class LSTM(nn.Module):
    """nn.LSTM of cells whose parts are observed one by one; it drops nothing out.

    Args:
        input_size: features of the input.
        hidden_size: features of the states.
        num_layers: how many layers, each on the outputs of the one before.
        bias: whether there are biases.
        batch_first: whether input and output are (batch, time, features).
        dropout: has no effect.
        bidirectional: whether each layer runs in both directions.
        device: where to put the parameters.
        dtype: their dtype.
        split_gates: gives each gate of a cell layers of its own.

    Example:
        >>> lstm = torch.ao.nn.quantizable.LSTM(3, 4, num_layers=2)
        >>> output, (h, c) = lstm(torch.zeros(5, 1, 3))
        >>> tuple(output.shape), tuple(h.shape)
        ((5, 1, 4), (2, 1, 4))
    """

    _FLOAT_MODULE: Any = nn.LSTM

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        split_gates: bool = False,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.bidirectional = bias, batch_first, bidirectional
        self.dropout, self.training = float(dropout), False
        directions = 2 if bidirectional else 1

        def cell(layer: int) -> LSTMCell:
            ins = input_size if layer == 0 else hidden_size * directions
            return LSTMCell(ins, hidden_size, bias, device, dtype, split_gates=split_gates)

        self.layers = nn.ModuleList(
            _LSTMLayer(cell(i), cell(i) if bidirectional else None) for i in range(num_layers)
        )

    def forward(self, x: Tensor, hidden: _Pair | None = None) -> tuple[Tensor, _Pair]:
        """Returns the outputs of the last layer, and the last states, as nn.LSTM does."""
        if self.batch_first:
            x = x.transpose(0, 1)
        directions = 2 if self.bidirectional else 1
        states: list[Any] = [None] * self.num_layers
        if hidden is not None:
            pairs = list(zip(*(state.unbind(0) for state in hidden), strict=True))
            states = [pairs[i * directions : (i + 1) * directions] for i in range(self.num_layers)]
        ends: list[_Pair] = []
        for layer, state in zip(self.layers, states, strict=True):
            x, last = layer(x, state)
            ends += last
        h, c = (rl.stack(list(parts), 0) for parts in zip(*ends, strict=True))
        return x.transpose(0, 1) if self.batch_first else x, (h, c)

    def _get_name(self) -> str:
        return "QuantizableLSTM"

    @classmethod
    def from_float(cls, other: Any, qconfig: Any = None, split_gates: bool = False) -> LSTM:
        """Returns the observed form of an nn.LSTM that has a qconfig, or is given one."""
        from rushlight.ao.quantization import prepare, prepare_qat

        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig") and qconfig is None:
            raise AssertionError("The float module must have 'qconfig'")
        if other.proj_size:
            raise NotImplementedError("LSTM: proj_size is not supported.")
        result = cls(
            other.input_size,
            other.hidden_size,
            other.num_layers,
            other.bias,
            other.batch_first,
            other.dropout,
            other.bidirectional,
            split_gates=split_gates,
        )
        for i, layer in enumerate(result.layers):
            for part, end in ((layer.layer_fw, ""), (getattr(layer, "layer_bw", None), "_reverse")):
                if part is not None:
                    names = ["weight_ih", "weight_hh"] + ["bias_ih", "bias_hh"] * other.bias
                    given = [getattr(other, f"{name}_l{i}{end}") for name in names]
                    part.cell = LSTMCell.from_params(*given, split_gates=split_gates)
        _give_qconfig(result, getattr(other, "qconfig", qconfig))
        result.train(other.training)
        return (prepare_qat if other.training else prepare)(result, inplace=True)

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """Not here: torch.ao.nn.quantized.LSTM.from_observed makes the quantized form."""
        raise NotImplementedError(
            "LSTM: this class is observed. torch.ao.nn.quantized.LSTM.from_observed quantizes it."
        )
