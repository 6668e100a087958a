"""Recurrent networks and cells, and sequences that are packed or padded."""

from module_cases import Case, floats

CASES = [
    Case("nn.RNN(3, 4)", floats(5, 2, 3)),
    Case("nn.RNN(3, 4, 2, 'relu', batch_first=True)", floats(2, 5, 3), floats(2, 2, 4)),
    Case("nn.RNN(3, 4, bidirectional=True)", floats(5, 2, 3), floats(2, 2, 4)),
    Case("nn.RNN(3, 4, bias=False)", floats(5, 3)),
    Case("nn.GRU(3, 4)", floats(5, 2, 3)),
    Case("nn.GRU(3, 4, 2, batch_first=True)", floats(2, 5, 3), floats(2, 2, 4)),
    Case("nn.GRU(3, 4, num_layers=2, bidirectional=True)", floats(5, 2, 3), floats(4, 2, 4)),
    Case("nn.GRU(3, 4, bias=False)", floats(5, 3), floats(1, 4)),
    Case("nn.LSTM(3, 4)", floats(5, 2, 3)),
    Case("nn.LSTM(3, 4, num_layers=2, dropout=0.5).eval()", floats(5, 2, 3)),
    Case("nn.LSTM(3, 4, 2, batch_first=True)", floats(2, 5, 3), (floats(2, 2, 4), floats(2, 2, 4))),
    Case(
        "nn.LSTM(3, 4, num_layers=2, bidirectional=True)",
        floats(5, 2, 3),
        (floats(4, 2, 4), floats(4, 2, 4)),
    ),
    Case("nn.LSTM(3, 4, bias=False)", floats(5, 3), (floats(1, 4), floats(1, 4))),
    Case(
        "nn.LSTM(3, 5, 2, proj_size=2, bidirectional=True)",
        floats(4, 2, 3),
        (floats(4, 2, 2), floats(4, 2, 5)),
    ),
    Case("nn.LSTM(3, 18)", floats(5, 9, 3)),
    Case("nn.RNNCell(3, 4)", floats(2, 3)),
    Case("nn.RNNCell(3, 4, nonlinearity='relu')", floats(2, 3), floats(2, 4)),
    Case("nn.RNNCell(3, 4, bias=False)", floats(3), floats(4)),
    Case("nn.GRUCell(3, 4)", floats(2, 3), floats(2, 4)),
    Case("nn.GRUCell(3, 4, bias=False)", floats(3)),
    Case("nn.LSTMCell(3, 4)", floats(2, 3), (floats(2, 4), floats(2, 4))),
    Case("nn.LSTMCell(3, 4, bias=False)", floats(3)),
    Case(
        "lambda x: nn.utils.rnn.pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)",
        floats(5, 3, 2),
    ),
    Case(
        "lambda x: nn.utils.rnn.pack_padded_sequence(x, [4, 4, 1], batch_first=True)",
        floats(3, 4, 2),
    ),
    Case(
        "lambda *x: nn.utils.rnn.pad_packed_sequence("
        "nn.utils.rnn.pack_sequence(x, enforce_sorted=False), True, -1.0, 6)",
        floats(2, 3),
        floats(4, 3),
        floats(1, 3),
    ),
    Case("lambda *x: nn.utils.rnn.pad_sequence(x)", floats(2, 3), floats(4, 3)),
    Case(
        "lambda *x: nn.utils.rnn.pad_sequence(x, True, 7.0, 'left')",
        floats(2),
        floats(4),
        floats(1),
    ),
    Case(
        "lambda *x: nn.utils.rnn.unpack_sequence(nn.utils.rnn.pack_sequence(x, False))",
        floats(2, 3),
        floats(4, 3),
    ),
]
