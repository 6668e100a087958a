"""Recurrent networks: packed sequences, states, dropout, and what is refused."""

import copy
import pickle
import warnings

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.utils import rnn

NETWORKS = {
    "RNN": lambda **options: nn.RNN(3, 4, dtype=torch.float64, **options),
    "GRU": lambda **options: nn.GRU(3, 4, dtype=torch.float64, **options),
    "LSTM": lambda **options: nn.LSTM(3, 4, dtype=torch.float64, **options),
    "projected": lambda **options: nn.LSTM(3, 4, proj_size=2, dtype=torch.float64, **options),
}


def states(last):
    return last if isinstance(last, tuple) else (last,)


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("lengths", [[4, 2, 1], [1, 4, 2], [3, 3, 3]])
def test_packed_sequences_give_what_each_gives_alone(kind, lengths):
    net = NETWORKS[kind](num_layers=2, bidirectional=True)
    sequences = [torch.randn(n, 3, dtype=torch.float64, requires_grad=True) for n in lengths]
    output, last = net(rnn.pack_sequence(sequences, enforce_sorted=False))
    outputs = rnn.unpack_sequence(output)
    sum(out.square().sum() for out in outputs).backward()
    grads = [sequence.grad for sequence in sequences]
    for b, sequence in enumerate(sequences):
        sequence.grad = None
        alone, alone_last = net(sequence)
        torch.testing.assert_close(outputs[b], alone)
        for together, single in zip(states(last), states(alone_last), strict=True):
            torch.testing.assert_close(together[:, b], single)
        alone.square().sum().backward()
        torch.testing.assert_close(grads[b], sequence.grad)


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_sequence_can_be_continued_from_its_state(kind):
    net = NETWORKS[kind](num_layers=2)
    x = torch.randn(7, 2, 3, dtype=torch.float64)
    whole, last = net(x)
    first, state = net(x[:3])
    second, state = net(x[3:], state)
    torch.testing.assert_close(torch.cat([first, second]), whole)
    torch.testing.assert_close(state, last)


@pytest.mark.parametrize("kind", NETWORKS)
def test_unbatched_and_batch_first_agree_with_time_first(kind):
    net, x = NETWORKS[kind](bidirectional=True), torch.randn(5, 2, 3, dtype=torch.float64)
    turned = NETWORKS[kind](bidirectional=True, batch_first=True)
    turned.load_state_dict(net.state_dict())
    output, last = net(x)
    other, other_last = turned(x.transpose(0, 1))
    torch.testing.assert_close(other.transpose(0, 1), output)
    torch.testing.assert_close(other_last, last)
    single, single_last = net(x[:, 1])
    torch.testing.assert_close(single, output[:, 1])
    torch.testing.assert_close(states(single_last), tuple(state[:, 1] for state in states(last)))


@pytest.mark.parametrize("size", [1, 5, 16, 17, 50])
@pytest.mark.parametrize("batch", [1, 2, 9, 33])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_kernels_agree_with_cells_for_every_remainder_of_a_tile(kind, batch, size):
    net = kind(3, size)
    cell = {nn.LSTM: nn.LSTMCell, nn.GRU: nn.GRUCell, nn.RNN: nn.RNNCell}[kind](3, size)
    cell.load_state_dict({name[:-3]: value for name, value in net.state_dict().items()})
    x, state, grads = torch.randn(6, batch, 3), None, []
    output, last = net(x)
    for t, step in enumerate(x):
        state = cell(step, state)
        torch.testing.assert_close(states(state)[0], output[t], rtol=1e-4, atol=1e-5)
    loss = sum(s.sum() for s in states(last)) + output.square().sum()
    grads = torch.autograd.grad(loss, list(net.parameters()))
    state, outputs = None, []
    for step in x:
        state = cell(step, state)
        outputs.append(states(state)[0])
    loss = sum(s.sum() for s in states(state)) + torch.stack(outputs).square().sum()
    expected = torch.autograd.grad(loss, list(cell.parameters()))
    torch.testing.assert_close(grads, expected, rtol=1e-3, atol=1e-3)


def test_dropout_is_between_layers_and_in_training_only():
    net, x = nn.LSTM(3, 4, num_layers=2, dropout=1.0), torch.randn(5, 2, 3)
    first, _ = net(x)
    zeros = nn.LSTM(3, 4, num_layers=2)
    zeros.load_state_dict(net.state_dict())
    with torch.no_grad():
        zeros.weight_ih_l1.zero_()  # as if the first layer gave nothing
    torch.testing.assert_close(first, zeros(x)[0])
    net.eval()
    assert not torch.equal(net(x)[0], first)


def test_dropout_with_one_layer_warns():
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.GRU(3, 4, dropout=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.GRU(3, 4, num_layers=2, dropout=0.5)


def test_half_types_compute_in_float32_and_keep_their_dtype():
    net, x = nn.LSTM(3, 4), torch.randn(5, 2, 3)
    expected, _ = net(x)
    output, (state, cells) = net.bfloat16()(x.bfloat16())
    assert {output.dtype, state.dtype, cells.dtype} == {torch.bfloat16}
    torch.testing.assert_close(output.float(), expected, rtol=0.05, atol=0.02)
    output.float().sum().backward()
    assert net.weight_hh_l0.grad.dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [16, 17, 48])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_half_types_give_the_same_when_nothing_is_recorded(kind, size, dtype):
    torch.manual_seed(0)
    options = [{}, {"bias": False, "num_layers": 2}, {"bidirectional": True}]
    if kind is nn.LSTM:
        options += [{"proj_size": size // 3}]
    for option in options:
        net = kind(size, size, dtype=dtype, **option)
        for lengths in ([5], [1], [4, 4], [4] * 9, [6, 3, 3, 1, 1]):
            x = torch.randn(lengths[0], len(lengths), size).to(dtype)
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
            for given in (x, packed):
                with torch.no_grad():
                    output, last = net(given)
                expected, expected_last = net(given)
                outputs = [o if given is x else o.data for o in (output, expected)]
                for mine, wanted in zip(
                    (outputs[0], *states(last)), (outputs[1], *states(expected_last)), strict=True
                ):
                    assert mine.dtype == dtype
                    torch.testing.assert_close(mine, wanted.detach(), rtol=0.02, atol=0.01)


def test_gradients_of_gradients_and_forward_mode():
    torch.manual_seed(3)
    net = nn.LSTM(2, 3, proj_size=2, bidirectional=True, dtype=torch.float64)
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)

    def run(x, *weights):
        named = dict(zip(dict(net.named_parameters()), weights, strict=True))
        output, (state, cells) = torch.func.functional_call(net, named, (x,))
        return output, state, cells

    args = (x, *net.parameters())
    assert torch.autograd.gradcheck(run, args, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(run, args)


@pytest.mark.parametrize("kind", NETWORKS)
def test_vmap_over_inputs_and_over_weights(kind):
    net = NETWORKS[kind]()
    x = torch.randn(3, 5, 2, 3, dtype=torch.float64)
    output, last = torch.vmap(net)(x)
    for i in range(3):
        alone, alone_last = net(x[i])
        torch.testing.assert_close(output[i], alone)
        torch.testing.assert_close(states(last)[-1][i], states(alone_last)[-1])
    weights = {name: torch.stack([p, 2 * p]) for name, p in net.named_parameters()}

    def call(weights):
        return torch.func.functional_call(net, weights, (x[0],))[0]

    both = torch.vmap(call)(weights)
    torch.testing.assert_close(both[0], net(x[0])[0])


@pytest.mark.parametrize("sizes", [(0, 4, 0), (3, 0, 0), (3, 4, 0), (0, 0, 0)])
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_ops_take_sizes_of_zero(sizes, batch):
    features, hidden, projected = sizes
    x = torch.ones(5, batch, features, requires_grad=True)
    state, cells = torch.ones(1, batch, projected), torch.ones(1, batch, hidden)
    weights = [
        torch.ones(*shape, requires_grad=True)
        for shape in [(4 * hidden, features), (4 * hidden, projected), (projected, hidden)]
    ]
    if projected == hidden:
        del weights[2]
    output, last, last_cells = torch.lstm(
        x, [state, cells], weights, False, 1, 0.0, True, False, False
    )
    assert (output.shape, last.shape) == ((5, batch, projected), (1, batch, projected))
    last_cells.sum().backward()
    assert [w.grad.shape for w in weights[:2]] == [w.shape for w in weights[:2]]
    assert x.grad.isfinite().all()


def test_biases_that_get_equal_gradients_do_not_share_them():
    net = nn.LSTM(3, 4)
    net(torch.randn(5, 2, 3))[0].sum().backward()
    net.bias_ih_l0.grad.zero_()
    assert net.bias_hh_l0.grad.abs().sum() > 0


def test_the_last_state_has_memory_of_its_own():
    output, state = nn.GRU(3, 4)(torch.randn(5, 2, 3))
    before = output.detach().clone()
    state.detach().zero_()
    assert torch.equal(output, before)


@pytest.mark.parametrize("kind", NETWORKS)
def test_networks_are_copied_and_pickled(kind):
    net, x = NETWORKS[kind](num_layers=2), torch.randn(5, 2, 3, dtype=torch.float64)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(other(x)[0], net(x)[0])
    net.flatten_parameters()
    assert [len(weights) for weights in net.all_weights] == [4 + (kind == "projected")] * 2
    assert net._flat_weights_names == [name for name, _ in net.named_parameters()]


def test_meta_has_shapes_only():
    output, (state, cells) = nn.LSTM(3, 4, 2, device="meta")(torch.empty(5, 2, 3, device="meta"))
    assert output.is_meta
    assert (output.shape, state.shape, cells.shape) == ((5, 2, 4), (2, 2, 4), (2, 2, 4))


REFUSED_BY_CONSTRUCTOR = [
    (ValueError, "dropout should be a number", {"dropout": 1.5}),
    (ValueError, "dropout should be a number", {"dropout": True}),
    (ValueError, "num_layers must be greater", {"num_layers": 0}),
    (ValueError, "hidden_size must be greater", {"hidden_size": 0}),
    (ValueError, "input_size must be greater", {"input_size": -1}),
    (TypeError, "hidden_size should be of type int", {"hidden_size": 4.0}),
    (TypeError, "bias should be of type bool", {"bias": 1}),
    (TypeError, "batch_first should be of type bool", {"batch_first": None}),
    (ValueError, "proj_size should be a positive", {"proj_size": -1}),
    (ValueError, "proj_size has to be smaller", {"proj_size": 4}),
]


@pytest.mark.parametrize(("error", "text", "options"), REFUSED_BY_CONSTRUCTOR)
def test_constructors_refuse(error, text, options):
    with pytest.raises(error, match=text):
        nn.LSTM(**({"input_size": 3, "hidden_size": 4} | options))


def test_constructors_refuse_what_only_others_have():
    with pytest.raises(ValueError, match="only supported for LSTM"):
        nn.GRU(3, 4, proj_size=2)
    with pytest.raises(ValueError, match="Unknown nonlinearity 'gelu'"):
        nn.RNN(3, 4, nonlinearity="gelu")
    with pytest.raises(ValueError, match="Unrecognized RNN mode"):
        nn.RNNBase("ELMAN", 3, 4)


X = torch.zeros(5, 2, 3)
REFUSED_CALLS = {
    "features": (RuntimeError, "Expected 3, got 4", "GRU", (torch.zeros(5, 2, 4),)),
    "dims": (ValueError, "2D or 3D, got 1D", "LSTM", (torch.zeros(3),)),
    "dtype": (ValueError, "does not match weight dtype", "RNN", (X.double(),)),
    "state": (RuntimeError, r"Expected hidden size \(1, 2, 4\), got", "GRU", (X, X[:1, :, :2])),
    "cells": (
        RuntimeError,
        r"Expected hidden\[1\] size",
        "LSTM",
        (X, (torch.zeros(1, 2, 4), torch.zeros(1, 3, 4))),
    ),
    "unbatched": (RuntimeError, "unbatched 2-D input", "GRU", (X[:, 0], torch.zeros(1, 1, 4))),
    "batched": (RuntimeError, "batched 3-D input", "RNN", (X, torch.zeros(1, 4))),
    "empty": (RuntimeError, "length to be larger than 0", "LSTM", (X[:0],)),
    "one state": (TypeError, "two tensors", "LSTM", (X, torch.zeros(2, 2, 4))),
    "cell dims": (ValueError, "Expected input to be 1D or 2D, got 3D", "LSTMCell", (X,)),
    "cell state": (ValueError, r"Expected hidden to be 1D", "GRUCell", (X[0], X)),
    "cell states": (ValueError, r"Expected hx\[1\]", "LSTMCell", (X[0], (X[0], X))),
}


@pytest.mark.parametrize("name", REFUSED_CALLS)
def test_calls_refuse(name):
    error, text, kind, args = REFUSED_CALLS[name]
    with pytest.raises(error, match=text):
        getattr(nn, kind)(3, 4)(*args)


@pytest.mark.parametrize("cell", [torch.gru_cell, torch.rnn_tanh_cell])
def test_cells_take_one_bias_without_the_other(cell):
    rows = 12 if cell is torch.gru_cell else 4
    x, h, bias, zero = torch.randn(2, 3), torch.randn(2, 4), torch.randn(rows), torch.zeros(rows)
    weights = torch.randn(rows, 3), torch.randn(rows, 4)
    assert torch.equal(cell(x, h, *weights, b_ih=bias), cell(x, h, *weights, bias, zero))
    assert torch.equal(cell(x, h, *weights, b_hh=bias), cell(x, h, *weights, zero, bias))


def test_complex_networks_are_those_of_pairs_of_numbers():
    net = nn.GRU(3, 4, num_layers=2, bidirectional=True)
    with torch.no_grad():
        expected, _ = net(x := torch.randn(5, 2, 3))
        output, _ = net.to(torch.complex64)(x.to(torch.complex64))
    torch.testing.assert_close(output, expected.to(torch.complex64))


H, W = torch.zeros(1, 2, 4), [torch.zeros(12, 3), torch.zeros(12, 4)]
FLAGS = (False, 1, 0.0, False, False)
REFUSED_OPS = {
    "params": ("takes 2 params", lambda: torch.gru(X, H, W[:1], *FLAGS, False)),
    "layers": (
        "num_layers must be positive",
        lambda: torch.gru(X, H, [], False, 0, 0.0, *FLAGS[3:], False),
    ),
    "weights": ("w_ih must have", lambda: torch.gru(X, H, [W[0][:, :2], W[1]], *FLAGS, False)),
    "gates": ("3 \\* hidden", lambda: torch.gru(X, H, [W[0], W[1][:10]], *FLAGS, False)),
    "vector": ("w_hh must be a matrix", lambda: torch.gru(X, H, [W[0], W[1][0]], *FLAGS, False)),
    "states": ("hidden state must have shape", lambda: torch.gru(X, H[0], W, *FLAGS, False)),
    "features": ("hx must have shape", lambda: torch.gru(X, H[..., :3], W, *FLAGS, False)),
    "dtype": ("not the same dtype", lambda: torch.gru(X.double(), H, W, *FLAGS, False)),
    "pair": ("two hidden states", lambda: torch.lstm(X, [H], W, *FLAGS, False)),
    "grow": ("must not grow", lambda: torch.gru(X[0], torch.tensor([1, 1, 2]), H, W, *FLAGS)),
    "short": ("data must have shape", lambda: torch.gru(X[0], torch.tensor([1]), H, W, *FLAGS)),
    "negative": ("must be positive", lambda: torch.gru(X[0], torch.tensor([2, -1]), H, W, *FLAGS)),
    "many": ("must be positive", lambda: torch.gru(X[0], torch.tensor([9]), H, W, *FLAGS)),
    "none": ("one row of int64", lambda: torch.gru(X[0], torch.tensor([1.0]), H, W, *FLAGS)),
    "cell": ("1D or 2D", lambda: torch.gru_cell(X, H, *W)),
    "dropout": (
        "dropout probability has to be between 0 and 1",
        lambda: torch.gru(X, H, W, False, 1, 1.5, *FLAGS[3:], False),
    ),
    "cell states of one row": (
        "the states of a 1D input to be 1D",
        lambda: torch.gru_cell(X[0, 0], H[0, :1], *W),
    ),
    "cell hx": ("hx must have shape", lambda: torch.gru_cell(X[0], H[0, :1], *W)),
}


@pytest.mark.parametrize("name", REFUSED_OPS)
def test_ops_refuse(name):
    text, call = REFUSED_OPS[name]
    with pytest.raises(RuntimeError, match=rf"^(gru|gru_cell|lstm): .*{text}"):
        call()


@pytest.mark.parametrize("cls", [nn.RNN, nn.LSTM, nn.GRU])
def test_layers_check_and_permute_states_by_methods_that_a_class_may_replace(cls):
    class Counted(cls):
        checked = 0

        def check_forward_args(self, input, hidden, batch_sizes):
            self.checked += 1
            super().check_forward_args(input, hidden, batch_sizes)

    layer, state = Counted(2, 3), torch.arange(6.0).view(1, 2, 3)
    states = (state, state) if cls is nn.LSTM else state
    layer(torch.ones(4, 2, 2), states)
    assert layer.checked == 1
    swapped = layer.permute_hidden(states, torch.tensor([1, 0]))
    assert torch.equal(swapped[0] if cls is nn.LSTM else swapped, state.flip(1))
    assert layer.permute_hidden(states, None) is states
