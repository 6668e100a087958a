"""What the models share: stubs, fusion, and the way to a quantized model."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.ao import quantization as q

__all__ = ["quantize_model"]


class Quantizable:
    """A model between a QuantStub and a DeQuantStub; comes before the float model's class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()

    def forward(self, x: Tensor) -> Tensor:
        return self.dequant(super().forward(self.quant(x)))  # pyright: ignore[reportAttributeAccessIssue]

    def fuse_model(self, is_qat: bool | None = None) -> None:
        """Fuses layers in place: batch norms are folded in, or kept to train if is_qat.

        is_qat is that of the model's mode if None.
        """
        for part in self.modules():  # pyright: ignore[reportAttributeAccessIssue]
            if part is not self and hasattr(part, "fuse_model"):
                part.fuse_model(is_qat)


def fuse(module: nn.Module, names: list[Any], is_qat: bool | None) -> None:
    """Fuses modules in place; is_qat is that of the module's mode if None."""
    is_qat = module.training if is_qat is None else is_qat
    method = q.fuse_modules_qat if is_qat else q.fuse_modules
    method(module, names, inplace=True)


def quantize_model(model: Any, backend: str) -> None:
    """Quantizes a model in place, with scales that fit random numbers: for weights to be loaded.

    Args:
        model: with fuse_model().
        backend: of torch.backends.quantized.supported_engines.

    Raises:
        RuntimeError: if the backend is not one of them.
    """
    if backend not in rl.backends.quantized.supported_engines:
        raise RuntimeError(f"Quantized backend not supported: {backend}")
    rl.backends.quantized.engine = backend
    model.eval()
    weight = q.default_weight_observer
    if backend != "qnnpack":
        weight = q.default_per_channel_weight_observer
    model.qconfig = q.QConfig(q.default_observer, weight)
    model.fuse_model()
    q.prepare(model, inplace=True)
    with rl.no_grad():
        model(rl.rand(1, 3, 299, 299))
    q.convert(model, inplace=True)


def finished(model: Any, weights: Any, quantize: bool) -> Any:
    """Returns a model, quantized if wanted.

    Raises:
        ValueError: for published weights, which there are none of.
    """
    if weights is not None:
        raise ValueError(
            "weights: there are no published weights of quantized models. Load those of the float "
            "model with load_state_dict, and quantize it."
        )
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) in (nn.ReLU, nn.ReLU6):
                setattr(module, name, nn.ReLU())
    if quantize:
        quantize_model(model, rl.backends.quantized.engine)
    return model
