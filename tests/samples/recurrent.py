"""Samples of recurrent networks and cells, with their steps written out in NumPy."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from samples import Sample, normal, samples

BATCH_SIZES = np.array([3, 3, 2, 1])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm_step(x: Any, state: Any, w_ih: Any, w_hh: Any, b_ih: Any = 0, b_hh: Any = 0) -> Any:
    h, c = state
    i, f, g, o = np.split(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x: Any, state: Any, w_ih: Any, w_hh: Any, b_ih: Any = 0, b_hh: Any = 0) -> Any:
    (h,) = state
    (xr, xz, xn) = np.split(x @ w_ih.T + b_ih, 3, axis=-1)
    (hr, hz, hn) = np.split(h @ w_hh.T + b_hh, 3, axis=-1)
    z = sigmoid(xz + hz)
    return ((1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * h,)


def rnn_step(function: Callable[[Any], Any]) -> Callable[..., Any]:
    def step(x: Any, state: Any, w_ih: Any, w_hh: Any, b_ih: Any = 0, b_hh: Any = 0) -> Any:
        return (function(x @ w_ih.T + b_ih + state[0] @ w_hh.T + b_hh),)

    return step


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def network_ref(step: Callable[..., Any]) -> Callable[..., Any]:
    """Sequence by sequence: (time, batch, features) with a length for each of the batch."""

    def run(
        x: Any,
        lengths: Any,
        hx: list[Any],
        params: list[Any],
        biases: bool,
        layers: int,
        both: bool,
    ) -> Any:
        directions = 2 if both else 1
        count = len(params) // (layers * directions)
        last = [np.array(state) for state in hx]
        for layer in range(layers):
            outputs = []
            for direction in range(directions):
                at = layer * directions + direction
                weights = params[at * count : (at + 1) * count]
                project = weights[-1] if count % 2 else None
                out = np.zeros((*x.shape[:2], hx[0].shape[2]))
                for b, length in enumerate(lengths):
                    state = [s[at, b] for s in hx]
                    times = range(length)
                    for t in reversed(times) if direction else times:
                        state = list(step(x[t, b], state, *weights[: 4 if biases else 2]))
                        if project is not None:
                            state[0] = project @ state[0]
                        out[t, b] = state[0]
                    for s, value in zip(last, state, strict=True):
                        s[at, b] = value
                outputs.append(out)
            x = np.concatenate(outputs, axis=2)
        return (x, *last)

    return run


def states_of(hx: Any) -> list[np.ndarray]:
    return hx if isinstance(hx, list) else [hx]


def dense_ref(step: Callable[..., Any]) -> Callable[..., Any]:
    def ref(
        x: Any, hx: Any, params: Any, biases: bool, layers: int, dropout: float, train: bool,
        both: bool, batch_first: bool,
    ) -> Any:  # fmt: skip
        x = x.swapaxes(0, 1) if batch_first else x
        lengths = [x.shape[0]] * x.shape[1]
        out, *last = network_ref(step)(x, lengths, states_of(hx), params, biases, layers, both)
        return (out.swapaxes(0, 1) if batch_first else out, *last)

    return ref


def packed_ref(step: Callable[..., Any]) -> Callable[..., Any]:
    def ref(
        data: Any, sizes: Any, hx: Any, params: Any, biases: bool, layers: int, dropout: float,
        train: bool, both: bool,
    ) -> Any:  # fmt: skip
        exists = np.arange(sizes[0]) < sizes[:, None]  # (time, batch)
        x = np.zeros((*exists.shape, data.shape[1]))
        x[exists] = data
        lengths = exists.sum(0)
        out, *last = network_ref(step)(x, lengths, states_of(hx), params, biases, layers, both)
        return (out[exists], *last)

    return ref


def params(
    gates: int, size: int, features: int, layers: int = 1, both: bool = False, biases: bool = True,
    projected: int = 0,
) -> list[np.ndarray]:  # fmt: skip
    # Small, so that complex numbers stay away from the poles of tanh.
    small = partial(normal, scale=0.4)
    directions, outputs = (2 if both else 1), projected or size
    made = []
    for layer in range(layers):
        inputs = features if layer == 0 else outputs * directions
        for _ in range(directions):
            made += [small(gates * size, inputs), small(gates * size, outputs)]
            made += [small(gates * size), small(gates * size)] if biases else []
            made += [small(projected, size)] if projected else []
    return made


@samples("lstm.input", ref=dense_ref(lstm_step))
def lstm() -> Iterator[Any]:
    yield (
        normal(4, 2, 3), [normal(1, 2, 2), normal(1, 2, 2)], params(4, 2, 3),
        True, 1, 0.0, True, False, False,
    )  # fmt: skip
    yield (
        normal(2, 3, 2), [normal(4, 2, 2), normal(4, 2, 2)],
        params(4, 2, 2, 2, both=True, biases=False), False, 2, 0.0, False, True, True,
    )  # fmt: skip
    yield (
        normal(5, 2, 2), [normal(1, 2, 1), normal(1, 2, 3)], params(4, 3, 2, projected=1),
        True, 1, 0.5, True, False, False,
    )  # fmt: skip
    yield (
        normal(2, 0, 3), [normal(1, 0, 2), normal(1, 0, 2)], params(4, 2, 3),
        True, 1, 0.0, True, False, False,
    )  # fmt: skip


@samples("lstm.data", ref=packed_ref(lstm_step), constant=(1,))
def lstm_packed() -> Iterator[Any]:
    yield (
        normal(9, 2), BATCH_SIZES, [normal(2, 3, 2), normal(2, 3, 2)], params(4, 2, 2, both=True),
        True, 1, 0.0, True, True,
    )  # fmt: skip


def add_samples(name: str, gates: int, step: Callable[..., Any]) -> None:
    @samples(f"{name}.input", ref=dense_ref(step))
    def dense() -> Iterator[Any]:
        yield (
            normal(4, 2, 3), normal(1, 2, 2), params(gates, 2, 3),
            True, 1, 0.0, True, False, False,
        )  # fmt: skip
        yield (
            normal(2, 3, 2), normal(4, 2, 2), params(gates, 2, 2, 2, both=True, biases=False),
            False, 2, 0.0, True, True, True,
        )  # fmt: skip

    @samples(f"{name}.data", ref=packed_ref(step), constant=(1,))
    def packed() -> Iterator[Any]:
        yield (
            normal(9, 2), BATCH_SIZES, normal(2, 3, 2), params(gates, 2, 2, both=True),
            True, 1, 0.0, True, True,
        )  # fmt: skip

    @samples(f"{name}_cell", ref=lambda x, h, *weights: step(x, [h], *weights)[0])
    def cell() -> Iterator[Any]:
        yield normal(3, 2), normal(3, 4), *params(gates, 4, 2)
        yield Sample(normal(2), normal(3), *params(gates, 3, 2, biases=False))


add_samples("gru", 3, gru_step)
add_samples("rnn_tanh", 1, rnn_step(np.tanh))
add_samples("rnn_relu", 1, rnn_step(relu))


@samples("lstm_cell", ref=lstm_step)
def lstm_cell() -> Iterator[Any]:
    yield normal(3, 2), [normal(3, 4), normal(3, 4)], *params(4, 4, 2)
    yield normal(2), [normal(3), normal(3)], *params(4, 3, 2, biases=False)
