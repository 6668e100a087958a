"""Models and published weights by name, and the arguments that builders took once."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight.vision import models
from rushlight.vision.models import ResNet18_Weights, ResNet50_Weights, Weights, WeightsEnum
from rushlight.vision.models._api import BUILTIN_MODELS, register_model


@pytest.fixture
def downloads(tmp_path):
    """A folder of downloads in which a test puts what it would download."""
    before = torch.hub.get_dir()
    torch.hub.set_dir(str(tmp_path))
    (tmp_path / "checkpoints").mkdir()
    yield tmp_path / "checkpoints"
    torch.hub.set_dir(before)


def publish(folder, weights, model):
    """Puts a model's state_dict where the weights would be downloaded to."""
    torch.save(model.state_dict(), str(folder / weights.url.rpartition("/")[2]))


def test_builder_loads_weights(downloads):
    torch.manual_seed(0)
    model = models.squeezenet1_1()
    publish(downloads, models.SqueezeNet1_1_Weights.DEFAULT, model)
    for weights in (
        models.SqueezeNet1_1_Weights.IMAGENET1K_V1,
        "DEFAULT",
        "SqueezeNet1_1_Weights.IMAGENET1K_V1",
    ):
        loaded = models.squeezenet1_1(weights=weights, progress=False)
        for name, value in loaded.state_dict().items():
            assert torch.equal(value, model.state_dict()[name])
    with pytest.raises(ValueError, match="'num_classes' expected value 1000 but got 10 instead"):
        models.squeezenet1_1(weights="DEFAULT", num_classes=10)


def test_googlenet_drops_the_other_classifiers_after_loading(downloads):
    publish(downloads, models.GoogLeNet_Weights.DEFAULT, models.googlenet(init_weights=False))
    model = models.googlenet(weights="DEFAULT")
    assert model.aux1 is None and model.aux2 is None and not model.aux_logits
    assert model.transform_input
    with pytest.warns(UserWarning, match="auxiliary heads .* are NOT pretrained"):
        model = models.googlenet(weights="DEFAULT", aux_logits=True, transform_input=False)
    assert model.aux1 is not None and not model.transform_input


def test_pretrained_means_the_first_weights_and_warns(downloads):
    publish(downloads, ResNet18_Weights.IMAGENET1K_V1, models.resnet18())
    with pytest.warns(UserWarning, match="deprecated") as warnings:
        models.resnet18(pretrained=True)
    messages = [str(warning.message) for warning in warnings]
    assert messages[0].startswith("The parameter 'pretrained' is deprecated since 0.13")
    assert "equivalent to passing `weights=ResNet18_Weights.IMAGENET1K_V1`" in messages[1]
    assert "`weights=ResNet18_Weights.DEFAULT`" in messages[1]
    assert all(warning.filename == __file__ for warning in warnings)
    with pytest.warns(UserWarning, match="deprecated") as warnings:
        models.resnet18(False)
    messages = [str(warning.message) for warning in warnings]
    assert messages[0].startswith("Using 'weights' as positional parameter(s) is deprecated")
    assert messages[1].endswith("equivalent to passing `weights=None`.")
    with (
        pytest.warns(UserWarning, match="deprecated"),
        pytest.raises(ValueError, match="No weights available for model regnet_y_128gf"),
    ):
        models.regnet_y_128gf(pretrained=True)
    with pytest.raises(TypeError, match="at most 2 positional arguments, but 3 were given"):
        models.resnet18(None, True, 10)


def test_weights_of_another_model_are_refused():
    with pytest.raises(TypeError, match="expected ResNet18_Weights but received ResNet50_Weights"):
        models.resnet18(weights=ResNet50_Weights.DEFAULT)
    with pytest.raises(KeyError, match="has no V9; there are IMAGENET1K_V1, DEFAULT"):
        models.resnet18(weights="V9")


def test_weights_say_what_is_known_about_them():
    weights = ResNet50_Weights.DEFAULT
    assert repr(weights) == "ResNet50_Weights.IMAGENET1K_V2"
    assert weights.url == "https://download.pytorch.org/models/resnet50-11ad3fa6.pth"
    assert weights.meta["num_params"] == 25557032
    assert weights.meta["min_size"] == (1, 1)
    assert weights.meta["_metrics"] == {"ImageNet-1K": {"acc@1": 80.858, "acc@5": 95.434}}
    assert len(weights.meta["categories"]) == 1000
    assert weights.meta["categories"][281] == "tabby"
    video = models.video.S3D_Weights.DEFAULT
    assert len(video.meta["categories"]) == 400 and video.meta["min_temporal_size"] == 14
    assert isinstance(weights.value, Weights)


def test_weights_are_copied_and_pickled_as_themselves():
    weights = ResNet50_Weights.IMAGENET1K_V1
    assert copy.deepcopy(weights) is weights
    assert pickle.loads(pickle.dumps(weights)) is weights


def test_all_weights_are_found_by_name():
    for name in models.list_models():
        weights_enum = models.get_model_weights(name)
        assert models.get_model_weights(models.get_model_builder(name)) is weights_enum
        assert models.get_weight(f"{weights_enum.__name__}.DEFAULT") is weights_enum.DEFAULT
        for weights in weights_enum:
            assert weights.url.startswith("https://download.pytorch.org/models/")


@pytest.mark.parametrize("name", ["ResNet18_Weights", "a.b.c", "None_Weights.DEFAULT"])
def test_wrong_names_of_weights_are_refused(name):
    with pytest.raises(ValueError, match=r"Invalid weight name|couldn't be retrieved"):
        models.get_weight(name)


def test_models_are_listed_by_patterns():
    assert models.list_models(include="mobilenet*") == [
        "mobilenet_v2",
        "mobilenet_v3_large",
        "mobilenet_v3_small",
    ]
    assert models.list_models(models.optical_flow) == ["raft_large", "raft_small"]
    assert models.list_models(models.video, include=["r3d*", "s3d"]) == ["r3d_18", "s3d"]
    some = models.list_models(include=["vgg*"], exclude=["*_bn", "*1?"])
    assert some == []
    assert models.get_model_builder("ResNet18") is models.resnet18
    with pytest.raises(ValueError, match="Unknown model resnet19"):
        models.get_model("resnet19")


def test_own_models_can_be_registered():
    class Own_Weights(WeightsEnum):
        DEFAULT = Weights("file", lambda: None, {})

    def own(*, weights: Own_Weights | None = None) -> torch.nn.Module:
        return torch.nn.Linear(1, 1)

    try:
        register_model()(own)
        assert models.get_model("own").in_features == 1
        assert models.get_model_weights("own") is Own_Weights
        with pytest.raises(ValueError, match="already registered under the name 'own'"):
            register_model()(own)
        register_model("bare")(torch.nn.Identity)
        with pytest.raises(ValueError, match="missing the 'weights' argument"):
            models.get_model_weights("bare")
    finally:
        for name in ("own", "bare"):
            BUILTIN_MODELS.pop(name, None)


def test_presets_prepare_inputs():
    picture = torch.full((3, 300, 400), 255, dtype=torch.uint8)
    prepared = ResNet50_Weights.IMAGENET1K_V1.transforms()(picture)
    assert prepared.shape == (3, 224, 224)
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    torch.testing.assert_close(prepared[:, 0, 0], (1 - mean) / std)
    assert "crop_size=[224]" in repr(ResNet50_Weights.IMAGENET1K_V1.transforms())
    video = models.video.R3D_18_Weights.DEFAULT.transforms()
    assert video(torch.zeros(2, 8, 3, 60, 80, dtype=torch.uint8)).shape == (2, 3, 8, 112, 112)
    flow = models.optical_flow.Raft_Small_Weights.DEFAULT.transforms()
    first, second = flow(picture, torch.zeros_like(picture))
    assert (first.max().item(), second.min().item()) == (1.0, -1.0)
