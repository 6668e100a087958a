"""Recurrent cells: one step of one layer, for loops that Python writes."""

from __future__ import annotations

import math

import rushlight as rl
from rushlight import Tensor
from rushlight.nn import init
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import check_sizes
from rushlight.nn.parameter import Parameter

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """What recurrent cells share: parameters, uniform within 1 / sqrt(hidden_size) of zero.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        bias: whether to add learned biases.
        num_chunks: how many gates there are.
        device: where to put the parameters.
        dtype: their dtype.

    Example:
        >>> tuple(torch.nn.modules.rnn.RNNCellBase(2, 3, True, num_chunks=4).weight_hh.shape)
        (12, 3)
    """

    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__()
        check_sizes(self, input_size=input_size, hidden_size=hidden_size)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size

        def made(*shape: int) -> Parameter:
            return Parameter(rl.empty(shape, device=device, dtype=dtype))

        self.weight_ih = made(rows, input_size)
        self.weight_hh = made(rows, hidden_size)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, made(rows) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all parameters anew."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias is True else f"{text}, bias={self.bias}"

    def _check(self, what: str, tensor: Tensor) -> None:
        if tensor.dim() not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {tensor.dim()}D "
                "instead."
            )

    def _zeros(self, input: Tensor) -> Tensor:
        return input.new_zeros((*input.shape[:-1], self.hidden_size))


class RNNCell(RNNCellBase):
    """One step of RNN: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        bias: whether to add learned biases.
        nonlinearity: "tanh" or "relu".
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        input (batch, input_size) and state (batch, hidden_size), zeros unless given, to the next
        state; or all three without a batch.

    Raises:
        ValueError: when called with an input or state that is neither 1-D nor 2-D.
        RuntimeError: when called with another nonlinearity.

    Example:
        >>> tuple(torch.nn.RNNCell(3, 4)(torch.zeros(2, 3)).shape)
        (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self._check("input", input)
        if hx is None:
            hx = self._zeros(input)
        self._check("hidden", hx)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(
                f"RNNCell: Unknown nonlinearity: {self.nonlinearity}. Use 'tanh' or 'relu'."
            )
        op = rl.rnn_tanh_cell if self.nonlinearity == "tanh" else rl.rnn_relu_cell
        return op(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    def extra_repr(self) -> str:
        text = super().extra_repr()
        other = self.nonlinearity != "tanh"
        return f"{text}, nonlinearity={self.nonlinearity}" if other else text


class LSTMCell(RNNCellBase):
    """One step of LSTM.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state and of the cells.
        bias: whether to add learned biases.
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        input (batch, input_size), state and cells (batch, hidden_size) each, zeros unless given, to
        the next state and cells; or all without a batch.

    Raises:
        ValueError: when called with an input or state that is neither 1-D nor 2-D.

    Example:
        >>> state, cells = torch.nn.LSTMCell(3, 4)(torch.zeros(2, 3))
        >>> tuple(state.shape), tuple(cells.shape)
        ((2, 4), (2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        self._check("input", input)
        if hx is None:
            zeros = self._zeros(input)
            hx = zeros, zeros
        for i, state in enumerate(hx):
            self._check(f"hx[{i}]", state)
        return rl.lstm_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class GRUCell(RNNCellBase):
    """One step of GRU.

    Args:
        input_size: features of the input.
        hidden_size: features of the hidden state.
        bias: whether to add learned biases.
        device: where to put the parameters.
        dtype: their dtype.

    Shape:
        input (batch, input_size) and state (batch, hidden_size), zeros unless given, to the next
        state; or all three without a batch.

    Raises:
        ValueError: when called with an input or state that is neither 1-D nor 2-D.

    Example:
        >>> tuple(torch.nn.GRUCell(3, 4)(torch.zeros(2, 3)).shape)
        (2, 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        self._check("input", input)
        if hx is None:
            hx = self._zeros(input)
        self._check("hidden", hx)
        return rl.gru_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
