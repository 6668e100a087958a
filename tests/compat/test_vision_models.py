"""Models against torchvision's: names, state_dicts, published weights, results and gradients.

PYTHONPATH=.:tests python tests/compat/test_vision_models.py writes tests/vision/model_digests.json.
"""

import inspect
import json
import sys
import warnings
from unittest import mock

import numpy as np
import pytest
from vision import digests

import rushlight as torch
from rushlight.vision import models
from rushlight.vision.models import feature_extraction

pytorch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
pytest.importorskip("torchvision.models.feature_extraction")

LEFT_OUT = ("quantized_*",)
DENSE = ("detection", "segmentation")  # have tests of their own


def is_dense(package, name):
    return any(part in package.get_model_builder(name).__module__ for part in DENSE)


OURS = [name for name in models.list_models() if not is_dense(models, name)]
# Families whose models are too large to run here; one of each runs.
RUN = {
    "alexnet": 64,
    "vgg11_bn": 32,
    "resnet18": 64,
    "resnet50": 64,
    "resnext50_32x4d": 64,
    "wide_resnet50_2": 64,
    "densenet121": 64,
    "squeezenet1_0": 64,
    "squeezenet1_1": 64,
    "googlenet": 64,
    "inception_v3": 75,
    "mobilenet_v2": 64,
    "mobilenet_v3_large": 64,
    "mobilenet_v3_small": 64,
    "shufflenet_v2_x0_5": 64,
    "mnasnet0_5": 64,
    "efficientnet_b0": 64,
    "efficientnet_v2_s": 64,
    "regnet_x_400mf": 64,
    "regnet_y_400mf": 64,
    "convnext_tiny": 64,
    "vit_b_32": 224,
    "swin_t": 70,
    "swin_v2_t": 64,
    "maxvit_t": 224,
    "r3d_18": (4, 32),
    "mc3_18": (4, 32),
    "r2plus1d_18": (4, 32),
    "s3d": (14, 224),
    "swin3d_t": (6, 60),
    "mvit_v1_b": (16, 224),
    "mvit_v2_s": (16, 224),
}
TRAINED = ["resnet18", "googlenet", "mobilenet_v3_small", "swin_t"]


def make_theirs(name, is_filled=True, **config):
    """A model of torchvision's; its slowest initialization is replaced, or all are left out."""
    draws = {
        "trunc_normal_": lambda x, mean=0.0, std=1.0, **_: pytorch.nn.init.normal_(x, mean, std)
    }
    if not is_filled:
        names = ("normal_", "uniform_", "trunc_normal_", "kaiming_normal_", "kaiming_uniform_")
        draws = dict.fromkeys(names, lambda x, *_, **__: x)
    with mock.patch.multiple(pytorch.nn.init, **draws), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torchvision.models.get_model(name, **config)


def make_both(name, **config):
    """A model of torchvision's, no parameter of which is zero, and ours with its state."""
    pytorch.manual_seed(0)
    theirs = make_theirs(name, **config)
    with pytorch.no_grad():
        for param in theirs.parameters():
            if not param.any():
                param.normal_(std=0.05)
    ours = models.get_model(name, **config)
    state = {key: torch.from_numpy(value.numpy()) for key, value in theirs.state_dict().items()}
    ours.load_state_dict(state)
    return ours, theirs


def make_inputs(name):
    rng = np.random.default_rng(0)
    size = RUN.get(name, 128)
    shape = (1, 3, size[0], size[1], size[1]) if isinstance(size, tuple) else (2, 3, size, size)
    return [rng.normal(size=shape).astype(np.float32)]


def assert_near(ours, theirs, rtol=1e-4):
    ours, theirs = ours.detach().numpy(), theirs.detach().numpy()
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=rtol * np.abs(theirs).max() + 1e-12)


def test_names_are_torchvisions():
    theirs = torchvision.models.list_models(exclude=LEFT_OUT)
    assert [name for name in theirs if not is_dense(torchvision.models, name)] == OURS


def test_public_names_are_torchvisions():
    for package in ("", ".video", ".optical_flow"):
        theirs = sys.modules["torchvision.models" + package]
        ours = sys.modules["rushlight.vision.models" + package]
        for name, value in vars(theirs).items():
            if name.startswith("_") or inspect.ismodule(value):
                continue
            assert hasattr(ours, name), f"{package}.{name}"


def test_digests_are_torchvisions():
    for name, expected in digests.read().items():
        assert digests.describe(make_theirs(name, is_filled=False)) == expected, name


@pytest.mark.parametrize("name", OURS)
def test_weights_are_torchvisions(name):
    ours = models.get_model_weights(name)
    theirs = torchvision.models.get_model_weights(name)
    assert ours.__name__ == theirs.__name__
    assert list(ours.__members__) == list(theirs.__members__)
    for key, weights in theirs.__members__.items():
        mine = ours[key]
        assert mine.name == weights.name
        assert mine.url == weights.url
        facts = {key: value for key, value in weights.meta.items() if key != "_docs"}
        assert repr(sorted(mine.meta.items())) == repr(sorted(facts.items()))
        assert repr(mine.transforms()) == repr(weights.transforms())
        assert mine.transforms().describe() == weights.transforms().describe()


@pytest.mark.parametrize("name", OURS)
def test_builders_take_torchvisions_arguments(name):
    ours = inspect.signature(models.get_model_builder(name)).parameters
    theirs = inspect.signature(torchvision.models.get_model_builder(name)).parameters
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [
        (p.name, p.kind, p.default) for p in theirs.values()
    ]


def test_classes_take_torchvisions_arguments():
    for package in ("", ".video", ".optical_flow"):
        theirs = sys.modules["torchvision.models" + package]
        for name, value in vars(theirs).items():
            if inspect.isclass(value) and issubclass(value, pytorch.nn.Module):
                ours = getattr(sys.modules["rushlight.vision.models" + package], name)
                mine = inspect.signature(ours.__init__).parameters
                assert list(mine) == list(inspect.signature(value.__init__).parameters), name


@pytest.mark.parametrize("name", RUN)
def test_results_are_torchvisions(name):
    ours, theirs = make_both(name)
    inputs = make_inputs(name)
    with torch.no_grad(), pytorch.no_grad():
        mine = ours.eval()(*map(torch.from_numpy, inputs))
        expected = theirs.eval()(*map(pytorch.from_numpy, inputs))
    assert_near(mine, expected)


@pytest.mark.parametrize("name", ["raft_small", "raft_large"])
def test_flows_are_torchvisions(name):
    ours, theirs = make_both(name)
    rng = np.random.default_rng(0)
    pair = [rng.uniform(-1, 1, size=(1, 3, 128, 136)).astype(np.float32) for _ in range(2)]
    with torch.no_grad(), pytorch.no_grad():
        mine = ours.eval()(*map(torch.from_numpy, pair), num_flow_updates=3)
        expected = theirs.eval()(*map(pytorch.from_numpy, pair), num_flow_updates=3)
    assert len(mine) == len(expected) == 3
    for flow, other in zip(mine, expected, strict=True):
        assert_near(flow, other)


@pytest.mark.parametrize("name", TRAINED)
def test_losses_and_gradients_are_torchvisions(name):
    ours, theirs = make_both(name, num_classes=10)
    inputs = make_inputs(name)

    def gradients(library, model):
        for layer in model.modules():
            if type(layer).__name__ in ("Dropout", "StochasticDepth"):
                layer.p = 0.0
        model.double().train()  # batch norm of a small batch makes much of rounding
        result = model(*(library.from_numpy(x).double() for x in inputs))
        outputs = result if isinstance(result, tuple) else (result,)
        labels = library.tensor([3, 7])
        loss = sum(library.nn.functional.cross_entropy(output, labels) for output in outputs)
        loss.backward()
        return loss, {name: param.grad for name, param in model.named_parameters()}

    loss, mine = gradients(torch, ours)
    other, expected = gradients(pytorch, theirs)
    assert loss.item() == pytest.approx(other.item(), rel=1e-8)
    for key, grad in expected.items():
        assert_near(mine[key], grad, rtol=1e-6)
    for key, value in theirs.state_dict().items():
        if "running" in key or "tracked" in key:
            assert_near(ours.state_dict()[key], value, rtol=1e-6)


@pytest.mark.parametrize(
    "name",
    ["resnet18", "vgg11_bn", "mobilenet_v3_small", "densenet121", "efficientnet_b0", "googlenet"],
)
@pytest.mark.filterwarnings("ignore:NOTE")
def test_names_of_nodes_are_torchvisions(name):
    mine = feature_extraction.get_graph_node_names(models.get_model(name))
    theirs = torchvision.models.feature_extraction.get_graph_node_names(make_theirs(name))
    assert mine == theirs


def test_checkpoints_of_either_load_in_the_other(tmp_path):
    ours, theirs = models.shufflenet_v2_x0_5(), make_theirs("shufflenet_v2_x0_5")
    pytorch.save(theirs.state_dict(), tmp_path / "theirs.pth")
    ours.load_state_dict(torch.load(tmp_path / "theirs.pth"))
    torch.save(ours.state_dict(), tmp_path / "ours.pth")
    state = pytorch.load(tmp_path / "ours.pth", weights_only=True)
    for key, value in theirs.state_dict().items():
        assert pytorch.equal(state[key], value)
    theirs.load_state_dict(state)


def test_initial_weights_have_torchvisions_spread():
    pytorch.manual_seed(0)
    torch.manual_seed(0)
    for name in ("resnet18", "densenet121", "efficientnet_b0", "mnasnet0_5", "squeezenet1_1"):
        ours, theirs = models.get_model(name), make_theirs(name)
        for (key, mine), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
            if other.numel() < 5000:
                continue
            spread = other.std().item()
            assert mine.std().item() == pytest.approx(spread, rel=0.1, abs=1e-6), f"{name} {key}"


if __name__ == "__main__":
    described = {name: digests.describe(make_theirs(name, is_filled=False)) for name in OURS}
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in described.items())
    digests.FILE.write_text("{\n" + rows + "\n}\n")
