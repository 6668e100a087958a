"""Spectral norm as it was before parametrizations: a hook that divides the weight before forward.

Files that it wrote before version 1 have the divided weight in place of the vector v.
"""

from __future__ import annotations

from typing import Any, TypeVar

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.modules._hook_tables import HookView
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.parametrizations import (
    as_matrix,
    check_steps,
    output_dim,
    power_iteration,
    random_direction,
)
from rushlight.nn.utils.weight_norm import hook_of, refuse_uninitialized

M = TypeVar("M", bound=Module)

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "remove_spectral_norm",
    "spectral_norm",
]


class SpectralNorm:
    """The hook of spectral_norm: sets the weight to weight_orig over its largest singular value.

    Args:
        name: the parameter that is divided.
        n_power_iterations: number of power iterations before each forward in training mode.
        dim: dim of the outputs.
        eps: lower bound of lengths that are divided by.

    Raises:
        ValueError: if n_power_iterations is not positive.
    """

    _version: int = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        check_steps(n_power_iterations)
        self.name = name
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Returns a weight as a matrix with one row for each output."""
        return as_matrix(weight, self.dim)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Returns the divided weight, after power iterations if wanted."""
        weight, u, v = (getattr(module, self.name + suffix) for suffix in ("_orig", "_u", "_v"))
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            power_iteration(matrix.detach(), u, v, self.n_power_iterations, self.eps)
            # Clones, because the next forward changes the buffers before this one's backward.
            u, v = u.clone(), v.clone()
        return weight / rl.dot(u, matrix.mv(v))

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Adds the norm to a parameter of a module; see spectral_norm."""
        if hook_of(module, SpectralNorm, name) is not None:
            raise RuntimeError(
                f"Cannot register two spectral_norm hooks on the same parameter {name}"
            )
        norm = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        refuse_uninitialized(weight, "SpectralNorm", "spectral")
        matrix = as_matrix(weight.detach(), dim)
        u, v = (random_direction(matrix, size, eps) for size in matrix.shape)
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        # A plain tensor, which a hook replaces before the first forward.
        setattr(module, name, weight.detach())
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(norm)
        module._register_state_dict_hook(SpectralNormStateDictHook(norm))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(norm))
        return norm

    def remove(self, module: Module) -> None:
        """Makes the divided weight the parameter."""
        with rl.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


class SpectralNormStateDictHook:
    """Notes in the metadata of a state dict which layout the norm's entries have."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]
    ) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.fn.name}.version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Finds v in files from before version 1, which have the divided weight instead."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        *rest: Any,
    ) -> None:
        fn = self.fn
        version = local_metadata.get("spectral_norm", {}).get(f"{fn.name}.version")
        if version is not None and version >= fn._version:
            return
        key = prefix + fn.name
        is_new = version is None and key not in state_dict
        if is_new and all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v")):
            return
        missing = [key + suffix for suffix in ("_orig", "", "_u") if key + suffix not in state_dict]
        if missing:
            if strict:
                missing_keys.extend(missing)
            return
        with rl.no_grad():
            original, u = state_dict[f"{key}_orig"], state_dict[f"{key}_u"]
            sigma = (original / state_dict.pop(key)).mean()
            matrix = as_matrix(original, fn.dim)
            # v that solves u = W v / sigma in the least squares, and gives u' W v = sigma
            v = rl.linalg.pinv(matrix).mv(u)
            state_dict[f"{key}_v"] = v * (sigma / rl.dot(u, matrix.mv(v)))


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divides a parameter by its spectral norm; old, see parametrizations.spectral_norm.

    Args:
        module: the layer; its parameter becomes weight_orig, and a hook computes the weight from it
            before each forward.
        name: the parameter; with more than two dims it is taken as a matrix of dim by the rest.
        n_power_iterations: number of power iterations before each forward in training mode.
        eps: lower bound of lengths that are divided by.
        dim: dim of the outputs; None is 1 for transposed convolutions, otherwise 0.

    Returns:
        module.

    Raises:
        RuntimeError: if the parameter has spectral norm already.
        ValueError: if the parameter is None, or n_power_iterations not positive.

    Example:
        >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(20, 40))
        >>> list(layer.state_dict())
        ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    dim = output_dim(module) if dim is None else dim
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Makes a parameter that spectral_norm divided an ordinary one, with the divided value.

    Raises:
        ValueError: if it has no spectral norm.

    Example:
        >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 3))
        >>> list(torch.nn.utils.remove_spectral_norm(layer).state_dict())
        ['bias', 'weight']
    """
    found = hook_of(module, SpectralNorm, name)
    if found is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    key, norm = found
    norm.remove(module)
    del module._forward_pre_hooks[key]
    for moment, kind in (
        ("state_dict_post", SpectralNormStateDictHook),
        ("load_state_dict_pre", SpectralNormLoadStateDictPreHook),
    ):
        hooks = HookView(module, moment)
        for key, hook in list(hooks.items()):
            if isinstance(hook, kind) and hook.fn.name == name:
                del hooks[key]
    return module
