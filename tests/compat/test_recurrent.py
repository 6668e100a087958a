"""Recurrent networks against PyTorch: a whole training run, and kernels of many sizes."""

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")

VOCABULARY, WIDTH, BATCH, LENGTH, STEPS = 29, 48, 8, 20, 200


@pytest.fixture(autouse=True)
def one_thread_each():
    """Two pools of threads that wait for work would fight for the processors."""
    before = [library.get_num_threads() for library in (torch, pytorch)]
    for library in (torch, pytorch):
        library.set_num_threads(1)
    yield
    for library, count in zip((torch, pytorch), before, strict=True):
        library.set_num_threads(count)


def language_model(library, kind, weights=None):
    nn = library.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.layers = getattr(nn, kind)(WIDTH, WIDTH, num_layers=2)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens, state):
            output, state = self.layers(self.tokens(tokens), state)
            return self.head(output), state

    model = Model()
    if weights is not None:
        model.load_state_dict({name: library.tensor(w) for name, w in weights.items()})
    return model


def losses_of(library, kind, weights, text):
    """Truncated backpropagation: the state goes on from batch to batch, its history does not."""
    model = language_model(library, kind, weights)
    optimizer = library.optim.Adam(model.parameters(), lr=3e-3)
    state, losses = None, []
    for step in range(STEPS):
        at = step * LENGTH
        tokens, targets = (library.tensor(text[at + i : at + i + LENGTH]) for i in (0, 1))
        optimizer.zero_grad()
        scores, state = model(tokens, state)
        loss = library.nn.functional.cross_entropy(
            scores.reshape(-1, VOCABULARY), targets.reshape(-1)
        )
        loss.backward()
        library.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        state = tuple(s.detach() for s in state) if kind == "LSTM" else state.detach()
        losses.append(loss.item())
    return np.array(losses)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_language_models_train_alike_for_200_steps(kind):
    pytorch.manual_seed(0)
    weights = {
        name: value.numpy() for name, value in language_model(pytorch, kind).state_dict().items()
    }
    # Text with something to learn: each token follows from the one before, but for some noise.
    draw = np.random.default_rng(0)
    text = np.zeros((STEPS * LENGTH + 1, BATCH), np.int64)
    for t in range(1, len(text)):
        noise = draw.integers(0, VOCABULARY, BATCH)
        text[t] = np.where(draw.random(BATCH) < 0.1, noise, (text[t - 1] * 3 + 1) % VOCABULARY)
    ours, theirs = (losses_of(library, kind, weights, text) for library in (torch, pytorch))
    assert theirs[-1] < 0.5 * theirs[0]
    np.testing.assert_allclose(ours, theirs, atol=1e-3)


@pytest.mark.parametrize(
    "sizes", [(130, 50, 19, 9), (16, 3, 1, 40), (256, 64, 16, 4), (7, 7, 64, 3)]
)
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_results_and_gradients_equal_pytorchs(kind, sizes):
    hidden, features, batch, length = sizes
    pytorch.manual_seed(0)
    theirs = getattr(pytorch.nn, kind)(features, hidden, num_layers=2, bidirectional=True)
    ours = getattr(torch.nn, kind)(features, hidden, num_layers=2, bidirectional=True)
    weights = {name: torch.tensor(value.numpy()) for name, value in theirs.state_dict().items()}
    ours.load_state_dict(weights)
    x = pytorch.randn(length, batch, features)
    records = []
    for library, net in ((torch, ours), (pytorch, theirs)):
        inputs = library.tensor(x.numpy()).requires_grad_()
        output, state = net(inputs)
        state = state if kind != "LSTM" else state[0] + state[1]
        (output.square().mean() + state.mean()).backward()
        grads = [param.grad.numpy() for param in net.parameters()]
        records.append([output.detach().numpy(), inputs.grad.numpy(), *grads])
    for mine, expected in zip(*records, strict=True):
        np.testing.assert_allclose(mine, expected, atol=2e-5 * np.abs(expected).max())
