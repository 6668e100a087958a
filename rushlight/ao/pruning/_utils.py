"""The mask as a parametrization, and the paths of weights."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor, nn

__all__ = ["FakeSparsity", "fqn_to_module", "get_arg_info_from_tensor_fqn", "module_to_fqn"]


class FakeSparsity(nn.Module):
    """Multiplies a weight by a mask; its state_dict is empty, as masks belong to sparsifiers.

    Args:
        mask: of the weight's shape.

    Example:
        >>> torch.ao.pruning.FakeSparsity(torch.tensor([1.0, 0.0]))(torch.ones(2))
        tensor([1., 0.])
    """

    mask: Tensor

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        """Returns mask * x."""
        if self.mask.shape != x.shape:
            raise AssertionError(f"mask shape ({self.mask.shape}) must match x shape ({x.shape})")
        return self.mask * x

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Returns nothing."""
        return {}


def module_to_fqn(model: nn.Module, module: nn.Module, prefix: str = "") -> str | None:
    """Returns the path of a module inside another, None if it is not there."""
    for name, part in model.named_modules():
        if part is module:
            return f"{prefix}{name}" if name else ""
    return None


def fqn_to_module(model: Any, path: str) -> Any:
    """Returns the module or tensor at a path, None if there is none."""
    for name in path.split(".") if path else ():
        model = getattr(model, name, None)
    return model


def get_arg_info_from_tensor_fqn(model: nn.Module, tensor_fqn: str) -> dict[str, Any]:
    """Returns module_fqn, module, tensor_name and tensor_fqn of a path such as "fc.weight"."""
    module_fqn, _, tensor_name = tensor_fqn.rpartition(".")
    return {
        "module_fqn": module_fqn,
        "module": fqn_to_module(model, module_fqn),
        "tensor_name": tensor_name,
        "tensor_fqn": tensor_fqn,
    }
