"""torch.onnx.export against onnxruntime: whole networks, also for other sizes."""

from typing import Any

import pytest

import rushlight as torch
from rushlight import Tensor, nn
from rushlight.export import Dim
from rushlight.utils._pytree import tree_leaves
from rushlight.vision import models

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

BATCH, STEPS, SOURCES = Dim("batch"), Dim("steps", max=64), Dim("sources")


def check(module: nn.Module, *examples: tuple[Any, ...], **options: Any) -> Any:
    """Exports with the first example and compares all."""
    torch.manual_seed(0)
    program = torch.onnx.export(module.eval(), examples[0], **options)
    for args in examples:
        with torch.no_grad():
            expected = [x for x in tree_leaves(module(*args)) if isinstance(x, Tensor)]
        results = program(*args)
        assert len(results) == len(expected)
        for result, wanted in zip(results, expected, strict=True):
            scale = max(1.0, float(wanted.abs().max()))
            torch.testing.assert_close(result / scale, wanted / scale, rtol=1e-4, atol=1e-5)
    return program


VISION = {
    "alexnet": 64,
    "convnext_tiny": 32,
    "densenet121": 32,
    "efficientnet_b0": 32,
    "googlenet": 64,
    "mnasnet0_5": 32,
    "mobilenet_v2": 32,
    "mobilenet_v3_small": 32,
    "regnet_y_400mf": 32,
    "resnet18": 32,
    "shufflenet_v2_x0_5": 32,
    "squeezenet1_0": 64,
    "swin_t": 32,
    "swin_v2_t": 32,
}


@pytest.mark.parametrize("name", VISION)
def test_classifiers_take_any_batch(name: str) -> None:
    size = VISION[name]
    network = getattr(models, name)(weights=None)
    pictures = torch.rand(3, 3, size, size)
    axes = {"image": {0: "batch"}, "scores": {0: "batch"}}
    options: Any = {"input_names": ["image"], "output_names": ["scores"], "dynamic_axes": axes}
    program = check(network, (pictures[:1],), (pictures,), **options)
    graph = program.model_proto.graph
    assert [value.name for value in (*graph.input, *graph.output)] == ["image", "scores"]
    for value in (*graph.input, *graph.output):
        assert value.type.tensor_type.shape.dim[0].dim_param == "batch"


@pytest.mark.parametrize(
    "make",
    [
        lambda: models.VisionTransformer(
            image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32
        ),
        lambda: models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None),
        lambda: models.segmentation.deeplabv3_mobilenet_v3_large(
            weights=None, weights_backbone=None
        ),
    ],
)
def test_other_vision_models(make: Any) -> None:
    shapes = ({0: BATCH},)
    check(make(), (torch.rand(1, 3, 32, 32),), (torch.rand(2, 3, 32, 32),), dynamic_shapes=shapes)


class Letters(nn.Module):
    """A small GPT: sizes are read, a causal mask and tied weights."""

    def __init__(self) -> None:
        super().__init__()
        self.letter, self.place = nn.Embedding(20, 8), nn.Embedding(64, 8)
        self.ask, self.answer = nn.Linear(8, 24), nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.letter.weight

    def forward(self, letters: Tensor) -> Tensor:
        x = self.letter(letters) + self.place(torch.arange(letters.shape[1]))
        b, t, c = x.shape
        q, k, v = self.ask(self.norm(x)).view(b, t, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
        scores = (q @ k.mT) / 2.0
        scores = scores.masked_fill(torch.ones(t, t).tril() == 0, -torch.inf)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)
        return self.head(x + self.answer(y))


def test_letters_of_any_number_and_length() -> None:
    examples = [(torch.randint(0, 20, size),) for size in ((2, 8), (1, 64), (3, 1))]
    check(Letters(), *examples, dynamic_shapes={"letters": {0: BATCH, 1: STEPS}})


def test_transformers_with_masks() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)

        def forward(self, src: Tensor, tgt: Tensor, padding: Tensor) -> Tensor:
            mask = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).triu(1)
            return self.net(src, tgt, tgt_mask=mask, memory_key_padding_mask=padding)

    def example(b: int, s: int, t: int) -> tuple[Tensor, ...]:
        padding = torch.arange(s).expand(b, s) >= s - 1
        return torch.rand(b, s, 8), torch.rand(b, t, 8), padding

    shapes = ({0: BATCH, 1: SOURCES}, {0: BATCH, 1: STEPS}, {0: BATCH, 1: SOURCES})
    check(Both(), example(2, 3, 4), example(1, 7, 5), dynamic_shapes=shapes)


def test_encoder_with_padding_keeps_to_the_slow_way() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    x, padding = torch.rand(2, 3, 8), torch.tensor([[False, False, True], [False] * 3])
    program = torch.onnx.export(encoder, (x,), kwargs={"src_key_padding_mask": padding})
    (result,) = program(x, padding)
    expected = encoder(x, src_key_padding_mask=padding).detach()
    torch.testing.assert_close(result[~padding], expected[~padding], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "layer",
    [
        nn.LSTM(4, 5, 2, bidirectional=True),
        nn.GRU(4, 5, 2, bias=False),
        nn.RNN(4, 5, bidirectional=True),
        nn.RNN(4, 5, nonlinearity="relu"),
    ],
    ids=["lstm", "gru", "rnn", "relu"],
)
def test_recurrent_layers_are_one_node_each(layer: Any) -> None:
    shapes = ({0: STEPS, 1: BATCH},)
    program = check(layer, (torch.rand(3, 2, 4),), (torch.rand(6, 5, 4),), dynamic_shapes=shapes)
    kinds = [node.op_type for node in program.model_proto.graph.node]
    kind = {"LSTM": "LSTM", "GRU": "GRU"}.get(layer.mode, "RNN")
    assert kinds.count(kind) == layer.num_layers


def test_recurrent_layers_with_states_and_cells() -> None:
    state = torch.rand(1, 3, 5)
    check(nn.LSTM(4, 5, batch_first=True), (torch.rand(3, 2, 4), (state, state)))
    check(nn.GRU(4, 5), (torch.rand(3, 4),))
    for cell in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
        check(cell(4, 5), (torch.rand(3, 4),))


def test_half_precision_and_bfloat16_are_written() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        network = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).to(dtype)
        graph = torch.onnx.export(network, (torch.ones(1, 4, dtype=dtype),)).model_proto.graph
        assert {tensor.data_type for tensor in graph.initializer} == {
            10 if dtype is torch.float16 else 16
        }
