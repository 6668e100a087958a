"""What recurrent networks share: parameters, checks of inputs, and the call of the op."""

from __future__ import annotations

import math
import warnings
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight.nn import init
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import check_sizes
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.rnn import PackedSequence

__all__ = ["RNNBase"]

# By mode: gates, and the op.
_MODES = {
    "LSTM": (4, rl.lstm),
    "GRU": (3, rl.gru),
    "RNN_TANH": (1, rl.rnn_tanh),
    "RNN_RELU": (1, rl.rnn_relu),
}


class RNNBase(Module):
    """What recurrent networks share: parameters by layer and direction, and checks of inputs.

    All parameters start uniform within 1 / sqrt(hidden_size) of zero.

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        input_size: features of the input.
        hidden_size: features of the hidden state.
        num_layers: how many layers, each on the outputs of the one before.
        bias: whether to add learned biases.
        batch_first: whether input and output are (batch, time, features).
        dropout: the probability of dropping an output between layers in training.
        bidirectional: whether each layer runs in both directions; outputs lie side by side.
        proj_size: features that an LSTM's hidden state is projected to, if positive.
        device: where to put the parameters.
        dtype: their dtype.

    Raises:
        ValueError: for sizes or probabilities out of range.
        TypeError: for a bias or batch_first that is no bool, or sizes that are no integers.

    Example:
        >>> [name for name, _ in torch.nn.modules.rnn.RNNBase("GRU", 2, 3).named_parameters()]
        ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0']
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__()
        if mode not in _MODES:
            raise ValueError(f"RNNBase: Unrecognized RNN mode: {mode}. Use one of {list(_MODES)}.")
        self._check_arguments(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size
        )
        if proj_size and mode != "LSTM":
            raise ValueError(
                f"{type(self).__name__}: proj_size argument is only supported for LSTM, not RNN or "
                "GRU."
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={num_layers}",
                stacklevel=3,
            )

        rows = _MODES[mode][0] * hidden_size
        outputs = proj_size or hidden_size
        directions = ["", "_reverse"] if bidirectional else [""]
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else outputs * len(directions)
            shapes = {"weight_ih": (rows, inputs), "weight_hh": (rows, outputs)}
            if bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for direction in directions:
                names = {f"{name}_l{layer}{direction}": shape for name, shape in shapes.items()}
                for name, shape in names.items():
                    setattr(self, name, Parameter(rl.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(list(names))
        self.reset_parameters()

    def _check_arguments(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        proj_size: int,
    ) -> None:
        name = type(self).__name__
        for flag, value in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(value, bool):
                raise TypeError(
                    f"{name}: {flag} should be of type bool, got: {type(value).__name__}."
                )
        check_sizes(self, input_size=input_size, hidden_size=hidden_size)
        check_sizes(self, num_layers=num_layers, proj_size=proj_size)
        for size, value in (("input_size", input_size), ("hidden_size", hidden_size)):
            if value <= 0:
                raise ValueError(f"{name}: {size} must be greater than zero, got {value}.")
        if (
            isinstance(dropout, bool)
            or not isinstance(dropout, (int, float))
            or not 0 <= dropout <= 1
        ):
            raise ValueError(
                f"{name}: dropout should be a number in range [0, 1] representing the probability "
                f"of an element being zeroed, got {dropout}."
            )
        if num_layers <= 0:
            raise ValueError(f"{name}: num_layers must be greater than zero, got {num_layers}.")
        if proj_size < 0:
            raise ValueError(
                f"{name}: proj_size should be a positive integer or zero to disable projections, "
                f"got {proj_size}."
            )
        if proj_size >= hidden_size:
            raise ValueError(
                f"{name}: proj_size has to be smaller than hidden_size, got {proj_size} and "
                f"{hidden_size}."
            )

    def reset_parameters(self) -> None:
        """Draws all parameters anew."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing: parameters need not lie side by side in memory."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [getattr(self, name) for name in self._flat_weights_names]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, default in defaults.items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises unless the layer takes such an input."""
        name, weight = type(self).__name__, self._flat_weights[0]
        autocasts = _C._autocast("cpu")[0] or _C._autocast("cuda")[0]
        if input.dtype != weight.dtype and not autocasts:
            raise ValueError(
                f"{name}: RNN input dtype ({input.dtype}) does not match weight dtype "
                f"({weight.dtype}). Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({input.dtype})."
            )
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(
                f"{name}: input must have {expected} dimensions, got {input.dim()}. Its shape is "
                f"{tuple(input.shape)}."
            )
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"{name}: input.size(-1) must be equal to input_size. Expected {self.input_size}, "
                f"got {input.size(-1)}."
            )

    def _state_size(
        self, input: Tensor, batch_sizes: Tensor | None, features: int
    ) -> tuple[int, int, int]:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0 if self.batch_first else 1)
        return len(self._all_weights), batch, features

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """Returns the shape of the hidden state for such an input."""
        return self._state_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """Returns the shape of the cells for such an input."""
        return self._state_size(input, batch_sizes, self.hidden_size)

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raises unless a state has the expected shape."""
        if tuple(hx.shape) != expected_hidden_size:
            text = msg.format(expected_hidden_size, list(hx.shape))
            raise RuntimeError(f"{type(self).__name__}: {text}.")

    def check_forward_args(
        self, input: Tensor, hidden: Tensor | tuple[Tensor, ...], batch_sizes: Tensor | None
    ) -> None:
        """Raises unless the layer takes such an input, and such a state or the two of an LSTM."""
        self.check_input(input, batch_sizes)
        sizes = [self.get_expected_hidden_size(input, batch_sizes)]
        if self.mode == "LSTM":
            sizes.append(self.get_expected_cell_size(input, batch_sizes))
        states = (hidden,) if isinstance(hidden, Tensor) else hidden
        for i, (state, size) in enumerate(zip(states, sizes, strict=True)):
            which = f"hidden[{i}]" if self.mode == "LSTM" else "hidden"
            self.check_hidden_size(state, size, f"Expected {which} size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Returns a state, or the two of an LSTM, with the samples in another order."""
        if permutation is None:
            return hx
        if isinstance(hx, Tensor):
            return hx.index_select(1, permutation)
        return tuple(state.index_select(1, permutation) for state in hx)

    def _run(
        self, input: Tensor | PackedSequence, states: tuple[Tensor, ...] | None
    ) -> tuple[Tensor | PackedSequence, tuple[Tensor, ...]]:
        """Output and last states; those of an LSTM are the hidden state and the cells."""
        if isinstance(input, PackedSequence):
            data, batch_sizes, order, places = input
            output, last = self._run_op(data, batch_sizes, states, order)
            last = self.permute_hidden(last, places)
            return PackedSequence(output, batch_sizes, order, places), last
        self._check_ranks(input, states)
        if input.dim() == 3:
            return self._run_op(input, None, states)
        batch_dim = 0 if self.batch_first else 1
        states = states and tuple(state.unsqueeze(1) for state in states)
        output, last = self._run_op(input.unsqueeze(batch_dim), None, states)
        return output.squeeze(batch_dim), tuple(state.squeeze(1) for state in last)

    def _check_ranks(self, input: Tensor, states: tuple[Tensor, ...] | None) -> None:
        name, rank = type(self).__name__, input.dim()
        if rank not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {rank}D instead.")
        for state in states or ():
            if state.dim() != rank:
                kind = "batched" if rank == 3 else "unbatched"
                raise RuntimeError(
                    f"{name}: For {kind} {rank}-D input, hx should also be {rank}-D but got "
                    f"{state.dim()}-D tensor."
                )

    def _run_op(
        self,
        data: Tensor,
        batch_sizes: Tensor | None,
        states: tuple[Tensor, ...] | None,
        order: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The same for a batch of samples, or for packed rows; `order` is that of the samples."""
        if states is None:
            self.check_input(data, batch_sizes)
            hx = data.new_zeros(self.get_expected_hidden_size(data, batch_sizes))
            if self.mode == "LSTM":
                hx = hx, data.new_zeros(self.get_expected_cell_size(data, batch_sizes))
        else:
            hx = self.permute_hidden(states if self.mode == "LSTM" else states[0], order)
            self.check_forward_args(data, hx, batch_sizes)
        inputs = (data,) if batch_sizes is None else (data, batch_sizes)
        layout = (self.batch_first,) if batch_sizes is None else ()
        output, *last = _MODES[self.mode][1](
            *inputs,
            hx,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            *layout,
        )
        return output, tuple(last)
