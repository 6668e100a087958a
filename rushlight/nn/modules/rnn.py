"""Recurrent networks over whole sequences. Cells for one step are in _rnn_cells.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.modules._rnn_base import RNNBase
from rushlight.nn.modules._rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from rushlight.nn.modules.module import Module as Module
from rushlight.nn.parameter import Parameter as Parameter
from rushlight.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]


class _SingleState(RNNBase):
    """A network whose only state is the hidden one."""

    if TYPE_CHECKING:

        @overload
        def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...
        @overload
        def forward(
            self, input: PackedSequence, hx: Tensor | None = None
        ) -> tuple[PackedSequence, Tensor]: ...

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None):
        output, (last,) = self._run(input, None if hx is None else (hx,))
        return output, last


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Returns the samples of a batch in another order."""
    return tensor.index_select(dim, permutation)


class RNN(_SingleState):
    """Elman's recurrent network: h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh), or relu.

    Elman, "Finding structure in time", 1990. Parameters start uniform within
    1 / sqrt(hidden_size) of zero.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        num_layers: how many layers, each on the outputs of the one before.
        nonlinearity: "tanh" or "relu".
        bias: whether to add learned biases.
        batch_first: whether input and output are (batch, time, features).
        dropout: the probability of dropping an output between layers in training.
        bidirectional: whether each layer runs in both directions; outputs lie side by side.
        proj_size: not for this layer: must be 0.
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        input (time, batch, input_size), (time, input_size) or a PackedSequence, and a first state
        (layers * directions, batch, hidden_size), zeros unless given, to the outputs
        (time, batch, directions * hidden_size) and the last state.

    Raises:
        ValueError: for sizes, probabilities or a nonlinearity that do not exist.

    Example:
        >>> output, state = torch.nn.RNN(3, 4, num_layers=2)(torch.zeros(5, 1, 3))
        >>> tuple(output.shape), tuple(state.shape)
        ((5, 1, 4), (2, 1, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"RNN: Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first,
            dropout, bidirectional, proj_size, device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity


class GRU(_SingleState):
    """Gated recurrent units.

    r_t = sigmoid(W_ir x_t + b_ir + W_hr h_(t-1) + b_hr), z_t likewise,
    n_t = tanh(W_in x_t + b_in + r_t * (W_hn h_(t-1) + b_hn)),
    h_t = (1 - z_t) * n_t + z_t * h_(t-1)

    Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014, with r_t applied
    after the product. Weights of r, z and n are rows of one matrix. Parameters start uniform within
    1 / sqrt(hidden_size) of zero.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        num_layers: how many layers, each on the outputs of the one before.
        bias: whether to add learned biases.
        batch_first: whether input and output are (batch, time, features).
        dropout: the probability of dropping an output between layers in training.
        bidirectional: whether each layer runs in both directions; outputs lie side by side.
        proj_size: not for this layer: must be 0.
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        as RNN.

    Raises:
        ValueError: for sizes or probabilities that do not exist.

    Example:
        >>> output, state = torch.nn.GRU(3, 4, batch_first=True)(torch.zeros(1, 5, 3))
        >>> tuple(output.shape), tuple(state.shape)
        ((1, 5, 4), (1, 1, 4))
    """

    def __init__(
        self,
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
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            proj_size, device, dtype,
        )  # fmt: skip


class LSTM(RNNBase):
    """A long short-term memory.

    i_t = sigmoid(W_ii x_t + b_ii + W_hi h_(t-1) + b_hi), f_t and o_t likewise,
    g_t = tanh(W_ig x_t + b_ig + W_hg h_(t-1) + b_hg),
    c_t = f_t * c_(t-1) + i_t * g_t,
    h_t = o_t * tanh(c_t), or W_hr times that with proj_size

    Hochreiter and Schmidhuber, "Long short-term memory", 1997; projections: Sak et al., 2014.
    Weights of i, f, g and o are rows of one matrix. Parameters start uniform within
    1 / sqrt(hidden_size) of zero.

    Args:
        input_size: features of the input.
        hidden_size: features of the cells, and of the hidden state.
        num_layers: how many layers, each on the outputs of the one before.
        bias: whether to add learned biases.
        batch_first: whether input and output are (batch, time, features).
        dropout: the probability of dropping an output between layers in training.
        bidirectional: whether each layer runs in both directions; outputs lie side by side.
        proj_size: features that the hidden state is projected to, if positive.
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        input (time, batch, input_size), (time, input_size) or a PackedSequence, and the first
        state and cells, (layers * directions, batch, size) each, zeros unless given, to the outputs
        (time, batch, directions * size) and the last state and cells.

    Raises:
        ValueError: for sizes or probabilities that do not exist.
        TypeError: when called with states that are not two tensors.

    Example:
        >>> output, (state, cells) = torch.nn.LSTM(3, 4, proj_size=2)(torch.zeros(5, 1, 3))
        >>> tuple(output.shape), tuple(state.shape), tuple(cells.shape)
        ((5, 1, 2), (1, 1, 2), (1, 1, 4))
    """

    def __init__(
        self,
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
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            proj_size, device, dtype,
        )  # fmt: skip

    if TYPE_CHECKING:

        @overload
        def forward(
            self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
        ) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...
        @overload
        def forward(
            self, input: PackedSequence, hx: tuple[Tensor, Tensor] | None = None
        ) -> tuple[PackedSequence, tuple[Tensor, Tensor]]: ...

    def forward(self, input: Tensor | PackedSequence, hx: tuple[Tensor, Tensor] | None = None):
        if hx is not None and (isinstance(hx, Tensor) or len(hx) != 2):
            raise TypeError(
                f"LSTM: hx should be a tuple of two tensors, (h_0, c_0), but got {type(hx)}."
            )
        return self._run(input, hx)
