"""A transformer learns as PyTorch's does, from the same weights and batches."""

import math

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _one_thread():
    """Two pools of threads in one process wait for each other."""
    before = torch.get_num_threads(), pytorch.get_num_threads()
    torch.set_num_threads(1)
    pytorch.set_num_threads(1)
    yield
    torch.set_num_threads(before[0])
    pytorch.set_num_threads(before[1])


VOCABULARY, WIDTH, LENGTH, STEPS = 17, 32, 24, 200


def model_of(library):
    nn = library.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.places = nn.Embedding(LENGTH, WIDTH)
            layer = nn.TransformerEncoderLayer(
                WIDTH, 4, 64, dropout=0.0, batch_first=True, norm_first=True, activation="gelu"
            )
            self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH), False)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens):
            x = self.tokens(tokens) + self.places(library.arange(LENGTH))
            mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
            return self.head(self.encoder(x, mask, is_causal=True))

    return Model()


def losses_of(library, weights):
    model = model_of(library)
    model.load_state_dict({name: library.tensor(value) for name, value in weights.items()})
    optimizer = library.optim.AdamW(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(STEPS):
        # Sequences that count up.
        start = rng.integers(0, VOCABULARY, (8, 1))
        tokens = library.tensor((start + np.arange(LENGTH + 1)) % VOCABULARY)
        logits = model(tokens[:, :-1])
        loss = library.nn.functional.cross_entropy(
            logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1)
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training_follows_pytorchs_losses() -> None:
    pytorch.manual_seed(0)
    weights = {name: value.numpy() for name, value in model_of(pytorch).state_dict().items()}
    ours, theirs = losses_of(torch, weights), losses_of(pytorch, weights)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    assert theirs[-1] < math.log(VOCABULARY) / 2


def decoder_losses(library, weights):
    model = library.nn.Transformer(16, 2, 1, 2, 32, 0.0, batch_first=True)
    model.load_state_dict({name: library.tensor(value) for name, value in weights.items()})
    optimizer = library.optim.SGD(model.parameters(), lr=0.05)
    rng = np.random.default_rng(1)
    padding = library.tensor(np.arange(9) >= 7).expand(4, 9)
    mask = model.generate_square_subsequent_mask(6)
    losses = []
    for _ in range(50):
        source, target = (
            library.tensor(rng.normal(size=(4, n, 16)).astype(np.float32)) for n in (9, 6)
        )
        out = model(
            source, target, tgt_mask=mask, src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )  # fmt: skip
        loss = ((out - source[:, :6]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_encoder_and_decoder_follow_pytorchs_losses() -> None:
    pytorch.manual_seed(0)
    model = pytorch.nn.Transformer(16, 2, 1, 2, 32, 0.0, batch_first=True)
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    ours, theirs = decoder_losses(torch, weights), decoder_losses(pytorch, weights)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


ENDS = [[False, False, False, True, True], [False] * 5, [False] * 4 + [True]]
ALL = [[True] * 5, [False] * 5, [False] * 5]
START = [[True] + [False] * 4, [False] * 5, [False] * 5]


def encoded(library, padding, *, norm=False, training=False, records=False, **options):
    layer = library.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, **options)
    encoder = library.nn.TransformerEncoder(layer, 2, library.nn.LayerNorm(8) if norm else None)
    rng = np.random.default_rng(0)
    with library.no_grad():
        for param in encoder.parameters():
            param.copy_(library.tensor(rng.normal(size=tuple(param.shape)) * 0.3))
    x = library.tensor(rng.normal(size=(3, 5, 8)).astype(np.float32))
    with library.set_grad_enabled(records):
        out = encoder.train(training)(x, src_key_padding_mask=library.tensor(padding))
    return encoder.use_nested_tensor, out.detach().numpy()


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize(
    ("padding", "options"),
    [
        (ENDS, {}),
        (ALL, {}),
        (START, {}),
        (ENDS, {"norm": True}),
        (ENDS, {"training": True}),
        (ENDS, {"records": True}),
        (ENDS, {"norm_first": True}),
        (ENDS, {"bias": False}),
        (ENDS, {"activation": "gelu"}),
    ],
)
def test_padded_places_of_an_encoder_equal_pytorchs(padding, options) -> None:
    (ours, out), (theirs, expected) = (encoded(lib, padding, **options) for lib in (torch, pytorch))
    assert ours == theirs
    np.testing.assert_allclose(out, expected, atol=1e-5)


def inference_of(library, options, mask, mask_type, lengths=None):
    """What the functions that PyTorch's layers call for inference make of the same numbers."""
    rng = np.random.default_rng(0)

    def numbers(*sizes):
        return library.tensor(rng.normal(size=sizes).astype(np.float32) * 0.3)

    x = numbers(3, 5, 8)
    attention = 8, 2, numbers(24, 8), numbers(24), numbers(8, 8), numbers(8)
    norms = numbers(8), numbers(8), numbers(8), numbers(8)
    maps = numbers(16, 8), numbers(16), numbers(8, 16), numbers(8)
    if lengths is not None:
        valid = library.tensor([[place < n for place in range(5)] for n in lengths])
        assert library._nested_tensor_from_mask_left_aligned(x, valid)
        x = library._nested_tensor_from_mask(x, valid, mask_check=False)
    if mask is not None:
        mask = library.tensor(mask)
    results = library._native_multi_head_attention(
        x, x, x, *attention, mask, mask_type=mask_type, **options
    )
    results += tuple(
        library._transformer_encoder_layer_fwd(
            x, *attention, gelu, first, 1e-5, *norms, *maps, mask, mask_type
        )
        for gelu in (False, True)
        for first in (False, True)
    )
    return [
        None if r is None else (r.to_padded_tensor(0.0) if r.is_nested else r).numpy()
        for r in results
    ]


CAUSAL = np.triu(np.ones((5, 5), dtype=bool), 1)
MERGED = np.broadcast_to(CAUSAL | np.array(ENDS)[:, None, None], (3, 2, 5, 5)).copy()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.filterwarnings("ignore:Converting mask without torch.bool")
@pytest.mark.parametrize(
    ("options", "mask", "mask_type", "lengths"),
    [
        ({}, None, None, None),
        ({"need_weights": False}, ENDS, 1, None),
        ({"average_attn_weights": False}, CAUSAL, 0, None),
        ({}, np.where(CAUSAL, -np.inf, 0).astype(np.float32), 0, None),
        ({}, np.array(ENDS, dtype=np.int64), 1, None),
        ({}, MERGED, 2, None),
        ({}, MERGED, None, None),
        ({}, None, None, [3, 5, 4]),
        ({"need_weights": False}, None, None, [3, 5, 1]),
    ],
)
def test_functions_of_inference_equal_pytorchs(options, mask, mask_type, lengths) -> None:
    with torch.no_grad(), pytorch.no_grad():
        ours, theirs = (
            inference_of(lib, options, mask, mask_type, lengths) for lib in (torch, pytorch)
        )
    for result, expected in zip(ours, theirs, strict=True):
        assert (result is None) == (expected is None)
        if result is not None:
            np.testing.assert_allclose(result, expected, atol=1e-5)


def test_masks_of_inference_that_do_not_fit_are_refused_alike() -> None:
    for library in (torch, pytorch):
        x = library.zeros(3, 5, 8)
        weights = library.zeros(24, 8), library.zeros(24), library.zeros(8, 8), library.zeros(8)
        mask = library.zeros(3, 5, dtype=library.bool)
        with library.no_grad(), pytest.raises(RuntimeError, match="Mask Type should be defined"):
            library._native_multi_head_attention(x, x, x, 8, 2, *weights, mask)
        mask[:, 1] = True
        assert not library._nested_tensor_from_mask_left_aligned(x, mask)
        with pytest.raises(RuntimeError, match="Mask must be left-aligned without gaps"):
            library._nested_tensor_from_mask(x, mask)
        for wrong in (mask[:2], mask.float()):
            with pytest.raises(RuntimeError):
                library._nested_tensor_from_mask(x, wrong)
