"""Models for quantization: they compute what the float models do, and fuse and convert whole."""

import warnings

import pytest

import rushlight as torch
from rushlight.ao import quantization as q
from rushlight.vision import models


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_models_give_the_results_of_their_float_forms(name: str) -> None:
    torch.manual_seed(0)
    plain = getattr(models, name)(num_classes=10)
    for module in plain.modules():  # norms that fit the random weights
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    plain.train()(torch.randn(8, 3, 32, 32))
    plain.eval()
    model = getattr(models.quantization, name)(num_classes=10).eval()
    model.load_state_dict(plain.state_dict())
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = model(x)
        if name == "resnet18":  # the other has relu in place of relu6
            torch.testing.assert_close(wanted, plain(x), rtol=1e-4, atol=1e-4)
        model.fuse_model()
        torch.testing.assert_close(model(x), wanted, rtol=1e-3, atol=1e-3)
        model.qconfig = q.get_default_qconfig("onednn")
        q.prepare(model, inplace=True)
        model(x)
        q.convert(model, inplace=True)
        got = model(x)
    # Random weights let errors of rounding grow from layer to layer.
    assert float(torch.nn.functional.cosine_similarity(got.flatten(), wanted.flatten(), 0)) > 0.9
    kinds = {type(m).__name__ for m in model.modules()}
    assert "BatchNorm2d" not in kinds and "FloatFunctional" not in kinds


def test_published_weights_are_refused() -> None:
    with pytest.raises(ValueError, match="no published weights"):
        models.quantization.resnet18(weights="DEFAULT")
