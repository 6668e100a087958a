"""Models that return what they compute on the way: names of nodes, graphs of both modes."""

import copy
import pickle

import pytest
from vision import digests

import rushlight as torch
from rushlight import fx, nn
from rushlight.vision import models
from rushlight.vision.models.feature_extraction import (
    create_feature_extractor,
    get_graph_node_names,
)

# RAFT decides by the sizes of its inputs, and detectors do; test_models.py's are the rest.
TRACED = [name for name in digests.read() if "raft" not in name]


def make(name):
    with torch.device("meta"):
        return models.get_model(name)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.inside = nn.Sequential(nn.ReLU(), nn.Linear(3, 3))
        self.last = nn.Linear(3, 1)

    def forward(self, x):
        x = self.first(x) + 1
        x = self.inside(self.inside(x)) + 2
        return self.last(x).relu()


@pytest.mark.parametrize("name", TRACED)
@pytest.mark.parametrize("mode", [True, False])
def test_models_have_graphs(name, mode):
    graph = fx.Tracer().trace(make(name).train(mode))
    assert len(graph.find_nodes(op="call_module")) > 5


def test_names_are_paths_counted_within_their_module():
    train, evaluation = get_graph_node_names(Small())
    assert train == evaluation
    body = ["inside.0", "inside.1", "inside.0_1", "inside.1_1"]
    assert train == ["x", "first", "add", *body, "add_1", "last", "relu"]


def test_results_are_those_of_the_model():
    torch.manual_seed(0)
    model = models.resnet18().eval()
    body = create_feature_extractor(model, {"layer1": "low", "layer3.1.relu_1": "high", "fc": "y"})
    picture = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        results = body.eval()(picture)
        x = model.layer1(model.maxpool(model.relu(model.bn1(model.conv1(picture)))))
        assert torch.equal(results["low"], x)
        assert torch.equal(results["high"], model.layer3(model.layer2(x)))
        assert torch.equal(results["y"], model(picture))
    assert list(results) == ["low", "high", "y"]


def test_what_is_not_needed_is_left_out_and_the_rest_is_shared():
    model = Small()
    body = create_feature_extractor(model, ["first"])
    assert [name for name, _ in body.named_children()] == ["first"]
    assert body.first is model.first
    assert list(body(torch.zeros(1, 2))) == ["first"]


def test_train_and_eval_choose_the_graph():
    model = make("googlenet")
    model.inception3a.eval()  # a part that a user froze stays so
    with pytest.warns(UserWarning, match="in eval mode are a subsequence|subsequence"):
        body = create_feature_extractor(
            model, train_return_nodes=["aux1", "fc"], eval_return_nodes=["fc"]
        )
    assert model.training and not model.inception3a.training
    picture = torch.empty(2, 3, 64, 64, device="meta")
    for module in (body, copy.deepcopy(body), pickle.loads(pickle.dumps(body))):
        assert list(module.train()(picture)) == ["aux1", "fc"]
        assert list(module.eval()(picture)) == ["fc"]
        assert list(module.train()(picture)) == ["aux1", "fc"]


def test_own_classes_can_be_leaves():
    class Sized(nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x

    model = nn.Sequential(nn.Linear(2, 2), Sized())
    with pytest.raises(fx.proxy.TraceError):
        create_feature_extractor(model, ["1"])
    body = create_feature_extractor(model, ["1"], tracer_kwargs={"leaf_modules": [Sized]})
    x = torch.ones(1, 2)
    assert torch.equal(body(x)["1"], model(x))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Either `return_nodes` or"),
        ({"train_return_nodes": ["a"]}, "both should be specified"),
        (
            {"return_nodes": ["a"], "train_return_nodes": ["a"], "eval_return_nodes": ["a"]},
            "`return_nodes` should not be specified",
        ),
        ({"return_nodes": ["fir"]}, "node: 'fir' is not present in model"),
    ],
)
def test_wrong_nodes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        create_feature_extractor(Small(), **arguments)


@pytest.mark.parametrize("mode", [True, False])
def test_an_extractor_is_in_the_mode_of_its_model(mode: bool) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)).train(mode)
    made = create_feature_extractor(model, ["1"])
    assert {module.training for module in [*made.modules(), *model.modules()]} == {mode}
