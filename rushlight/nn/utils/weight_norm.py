"""Weight norm as it was before parametrizations: a hook that computes the weight before forward."""

from __future__ import annotations

import warnings
from typing import Any, Protocol, TypeVar

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.parametrizations import normalized


class _Norm(Protocol):
    name: str


M = TypeVar("M", bound=Module)
H = TypeVar("H", bound=_Norm)

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The hook of weight_norm: sets the weight to g v / |v|.

    Args:
        name: the parameter that g and v replace.
        dim: dim along which magnitudes are kept apart; None or -1 for one magnitude.
    """

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """Returns the weight for the magnitude and direction that the module has now."""
        g, v = (getattr(module, f"{self.name}_{part}") for part in "gv")
        return normalized(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Splits a parameter of a module; see weight_norm."""
        warnings.warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of "
            "`torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
            stacklevel=3,
        )
        if hook_of(module, WeightNorm, name) is not None:
            raise RuntimeError(
                f"Cannot register two weight_norm hooks on the same parameter {name}"
            )
        norm = WeightNorm(name, dim)
        weight = getattr(module, name)
        refuse_uninitialized(weight, "WeightNorm", "weight")
        magnitude = rl.norm_except_dim(weight.detach(), 2, norm.dim)
        del module._parameters[name]
        module.register_parameter(f"{name}_g", Parameter(magnitude))
        module.register_parameter(f"{name}_v", Parameter(weight.detach()))
        setattr(module, name, norm.compute_weight(module))
        module.register_forward_pre_hook(norm)
        return norm

    def remove(self, module: Module) -> None:
        """Makes the weight a parameter again."""
        weight = self.compute_weight(module).detach()
        delattr(module, self.name)
        for part in "gv":
            del module._parameters[f"{self.name}_{part}"]
        setattr(module, self.name, Parameter(weight))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def hook_of(module: Module, kind: type[H], name: str) -> tuple[int, H] | None:
    """Returns the hook of a norm on a module's parameter, and its key."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:
            return key, hook
    return None


def refuse_uninitialized(weight: Tensor, norm: str, words: str) -> None:
    """Refuses a parameter whose shape the first forward will tell."""
    if isinstance(weight, Parameter) and hasattr(weight, "materialize"):
        raise ValueError(
            f"The module passed to `{norm}` can't have uninitialized parameters. Make sure to run "
            f"the dummy forward before applying {words} normalization"
        )


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Splits a parameter into magnitude and direction; old, see parametrizations.weight_norm.

    Args:
        module: the layer; its parameter becomes weight_g and weight_v, and a hook computes the
            weight from them before each forward.
        name: the parameter.
        dim: dim along which magnitudes are kept apart; None for one magnitude.

    Returns:
        module.

    Raises:
        RuntimeError: if the parameter has weight norm already.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> layer = torch.nn.utils.weight_norm(torch.nn.Linear(2, 3))
        >>> list(layer.state_dict())
        ['bias', 'weight_g', 'weight_v']
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Makes a parameter that weight_norm split a parameter again.

    Raises:
        ValueError: if it has no weight norm.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("ignore")
        >>> layer = torch.nn.utils.weight_norm(torch.nn.Linear(2, 3))
        >>> list(torch.nn.utils.remove_weight_norm(layer).state_dict())
        ['bias', 'weight']
    """
    found = hook_of(module, WeightNorm, name)
    if found is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    key, hook = found
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module
