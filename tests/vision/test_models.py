"""Models: sizes, results and training of all families; torchvision's state_dicts by digest."""

from collections import OrderedDict

import numpy as np
import pytest
from vision import digests

import rushlight as torch
from rushlight.vision import models
from rushlight.vision.models import vision_transformer
from rushlight.vision.models._utils import IntermediateLayerGetter, _make_divisible
from rushlight.vision.models._windows import shifted_window_attention

DIGESTS = digests.read()
NAMES = [name for name in models.list_models() if name in DIGESTS]
VIDEOS = models.list_models(models.video)
FLOWS = models.list_models(models.optical_flow)


def make(name, **config):
    with torch.device("meta"):
        return models.get_model(name, **config)


def inputs_of(name, batch=2):
    """An input of the size that a model was published for."""
    if name in FLOWS:
        return [torch.empty(batch, 3, 128, 160, device="meta")] * 2
    size = 256 if "swin_v2" in name else 299 if "inception" in name else 224
    places = (16, size, size) if name in VIDEOS else (size, size)
    return [torch.empty(batch, 3, *places, device="meta")]


def test_all_families_are_there():
    assert len(NAMES) == len(DIGESTS)


@pytest.mark.parametrize("name", NAMES)
def test_state_dict_is_torchvisions(name):
    model = make(name)
    assert digests.describe(model) == DIGESTS[name]
    published = [weights.meta["num_params"] for weights in models.get_model_weights(name)]
    has_aux = name in ("googlenet", "inception_v3")  # googlenet's are not counted
    assert has_aux or DIGESTS[name][0] in published


@pytest.mark.parametrize("name", NAMES)
def test_result_has_one_score_for_each_class(name):
    model = make(name).eval()
    result = model(*inputs_of(name))
    if name in FLOWS:
        assert [flow.shape for flow in result] == [(2, 2, 128, 160)] * 12
    else:
        assert result.shape == (2, 400 if name in VIDEOS else 1000)


@pytest.mark.parametrize(
    "name", ["resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "convnext_tiny", "swin_t"]
)
def test_num_classes_sets_the_size_of_the_result(name):
    assert make(name, num_classes=7).eval()(*inputs_of(name)).shape == (2, 7)


def test_googlenet_and_inception_return_more_scores_in_training():
    result = make("googlenet")(*inputs_of("googlenet"))
    assert type(result).__name__ == "GoogLeNetOutputs"
    assert result._fields == ("logits", "aux_logits2", "aux_logits1")
    assert [part.shape for part in result] == [(2, 1000)] * 3
    result = make("inception_v3")(*inputs_of("inception_v3"))
    assert result._fields == ("logits", "aux_logits")
    assert [part.shape for part in result] == [(2, 1000)] * 2
    plain = make("inception_v3", aux_logits=False)(*inputs_of("inception_v3"))
    assert plain.shape == (2, 1000)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("resnet18", {}),
        ("mobilenet_v3_small", {"dropout": 0.0}),
        ("shufflenet_v2_x0_5", {}),
    ],
)
def test_training_lowers_the_loss(name, config):
    torch.manual_seed(0)
    model = models.get_model(name, num_classes=4, **config).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    pictures = torch.randn(8, 3, 32, 32)
    labels = torch.arange(8) % 4
    losses = []
    for _ in range(6):
        loss = torch.nn.functional.cross_entropy(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(param.grad is not None for param in model.parameters())
    assert losses[-1] < 0.85 * losses[0]


def test_initial_weights_have_the_published_spread():
    torch.manual_seed(0)
    convolution = models.resnet18().layer3[0].conv1.weight  # by fan out: 256 * 3 * 3
    assert convolution.std().item() == pytest.approx((2 / (256 * 9)) ** 0.5, rel=0.02)
    linear = models.mobilenet_v2().classifier[1]
    assert linear.weight.std().item() == pytest.approx(0.01, rel=0.02)
    assert not linear.bias.any()
    assert not models.vit_b_32().heads.head.weight.any()
    last = models.resnet18(zero_init_residual=True).layer4[1].bn2
    assert not last.weight.any()


def test_dilation_keeps_the_size():
    with torch.device("meta"):
        model = models.resnet50(replace_stride_with_dilation=[False, True, True])
    body = IntermediateLayerGetter(model, {"layer2": "low", "layer4": "out"})
    results = body(torch.empty(1, 3, 64, 64, device="meta"))
    assert [(name, x.shape) for name, x in results.items()] == [
        ("low", (1, 512, 8, 8)),
        ("out", (1, 2048, 8, 8)),
    ]
    assert "fc" not in body
    dilated = make("mobilenet_v3_large", dilated=True, reduced_tail=True).features
    assert dilated(torch.empty(1, 3, 64, 64, device="meta")).shape == (1, 480, 4, 4)


def test_memory_efficient_densenet_computes_the_same():
    torch.manual_seed(0)
    config = {"growth_rate": 4, "block_config": (2, 2), "num_init_features": 8, "num_classes": 3}
    model = models.DenseNet(**config)
    frugal = models.DenseNet(**config, memory_efficient=True)
    frugal.load_state_dict(model.state_dict())
    pictures = torch.randn(2, 3, 32, 32)
    gradients = []
    for net in (model, frugal):
        net(pictures).square().sum().backward()
        gradients.append(net.features.conv0.weight.grad.numpy())
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-4, atol=1e-6)


# State_dicts with names of older versions


def test_densenet_loads_names_from_before_2018():
    torch.manual_seed(0)
    model = models.DenseNet(4, (2, 2), 8, num_classes=3)
    old = OrderedDict()
    for name, value in model.state_dict().items():
        for part in ("norm1", "norm2", "conv1", "conv2"):
            if "denselayer" in name:
                name = name.replace(f".{part}.", f".{part[:-1]}.{part[-1]}.")
        old[name] = value + 1
    assert "features.denseblock1.denselayer1.norm.1.weight" in old
    model.load_state_dict(old)
    value = model.features.denseblock1.denselayer1.norm1.weight
    assert torch.equal(value, old["features.denseblock1.denselayer1.norm.1.weight"])


def test_vit_loads_names_from_before_its_version_2():
    block = vision_transformer.MLPBlock(4, 8, 0.0)
    old = {"linear_1.weight": torch.ones(8, 4), "linear_1.bias": torch.ones(8)}
    old |= {"linear_2.weight": torch.ones(4, 8), "linear_2.bias": torch.ones(4)}
    block.load_state_dict(old)
    assert torch.equal(block[3].weight, torch.ones(4, 8))


# Parts


def test_windows_see_their_own_places_alone():
    rng = np.random.default_rng(0)
    side, window, shift, C = 8, 4, 2, 6
    x = rng.normal(size=(side, side, C)).astype(np.float32)
    qkv_weight = rng.normal(size=(3 * C, C)).astype(np.float32)
    proj = rng.normal(size=(C, C)).astype(np.float32)
    bias = rng.normal(size=(1, 1, window**2, window**2)).astype(np.float32)
    got = shifted_window_attention(
        *map(torch.from_numpy, (x[None], qkv_weight, proj, bias)), [window] * 2, 1, [shift] * 2
    )

    q, k, v = np.split(x @ qkv_weight.T, 3, axis=-1)
    want = np.zeros_like(x)
    moved = (np.arange(side) - shift) % side  # where the roll brings each row and column
    for i, j in np.ndindex(side, side):
        scores, values = [], []
        for m, n in np.ndindex(side, side):
            meets = all(
                moved[a] // window == moved[b] // window and abs(a - b) < window
                for a, b in ((i, m), (j, n))
            )
            if meets:
                one, other = (
                    (moved[a] % window) * window + moved[b] % window for a, b in ((i, j), (m, n))
                )
                scores.append(q[i, j] @ k[m, n] / C**0.5 + bias[0, 0, one, other])
                values.append(v[m, n])
        weights = np.exp(np.array(scores) - max(scores))
        want[i, j] = weights / weights.sum() @ np.array(values)
    np.testing.assert_allclose(got[0].numpy(), want @ proj.T, rtol=1e-4, atol=1e-4)


def test_vit_refuses_pictures_of_another_size():
    model = make("vit_b_32", image_size=64)
    with pytest.raises(AssertionError, match="96 x 64, but the model was made for image_size=64"):
        model(torch.empty(1, 3, 96, 64, device="meta"))
    with pytest.raises(AssertionError, match="indivisible by patch size"):
        make("vit_b_32", image_size=65)


def test_places_of_a_vit_are_interpolated():
    grid = torch.arange(4.0).view(1, 2, 2, 1)
    places = torch.cat([torch.full((1, 1, 1), 9.0), grid.view(1, 4, 1)], dim=1)
    state = OrderedDict({"encoder.pos_embedding": places, "heads.head.weight": torch.ones(1)})
    new = vision_transformer.interpolate_embeddings(12, 4, state, "bilinear", reset_heads=True)
    assert list(new) == ["encoder.pos_embedding"]
    want = [9, 0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3]  # the token, then rows of the finer grid
    np.testing.assert_allclose(new["encoder.pos_embedding"].flatten().numpy(), want, atol=1e-6)
    state = {"encoder.pos_embedding": torch.zeros(1, 4, 1)}
    with pytest.raises(ValueError, match="not a perfect square"):
        vision_transformer.interpolate_embeddings(12, 4, OrderedDict(state))


def test_raft_finds_that_nothing_moves_where_it_corrects_nothing():
    torch.manual_seed(0)
    model = models.optical_flow.raft_small().eval()
    for part in model.update_block.flow_head.conv2.parameters():
        torch.nn.init.zeros_(part)
    picture = torch.rand(1, 3, 128, 128)
    with torch.no_grad():
        flows = model(picture, picture, num_flow_updates=2)
    assert len(flows) == 2 and not flows[-1].any()


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((1, 3, 64, 128), (1, 3, 128, 128)), "should have the same shape"),
        (((1, 3, 100, 128),) * 2, "should be divisible by 8"),
        (((1, 3, 64, 64),) * 2, "too small to be down-sampled"),
    ],
)
def test_raft_says_what_is_wrong_with_pictures(shapes, message):
    model = make("raft_small")
    with pytest.raises(ValueError, match=message):
        model(*[torch.empty(*shape, device="meta") for shape in shapes])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: models.SqueezeNet("1_2"), ValueError, "Unsupported SqueezeNet version 1_2"),
        (lambda: models.MNASNet(0.0), ValueError, "alpha should be greater than 0.0"),
        (lambda: models.MobileNetV2(inverted_residual_setting=[]), ValueError, "non-empty"),
        (lambda: models.MobileNetV3([], 8), ValueError, "should not be empty"),
        (lambda: models.MobileNetV3([1], 8), TypeError, "List.InvertedResidualConfig"),
        (lambda: models.EfficientNet([1], 0.1), TypeError, "List.MBConvConfig"),
        (lambda: models.ConvNeXt([]), ValueError, "should not be empty"),
        (lambda: models.ShuffleNetV2([4], [1] * 5), ValueError, "list of 3 positive ints"),
        (
            lambda: models.resnet18(replace_stride_with_dilation=[True]),
            ValueError,
            "None or a 3-element tuple",
        ),
        (lambda: models.resnet18(width_per_group=128), ValueError, "BasicBlock only supports"),
        (lambda: models.maxvit_t(input_size=(96, 96)), ValueError, "not divisible by partition"),
    ],
)
def test_wrong_configurations_say_what_is_wrong(call, error, message):
    with torch.device("meta"), pytest.raises(error, match=message):
        call()


def test_widths_are_divisible_and_never_much_narrower():
    assert [_make_divisible(value, 8) for value in (1, 12, 11.9, 33, 100)] == [8, 16, 16, 32, 104]
