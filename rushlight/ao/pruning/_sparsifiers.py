"""Sparsifiers: which elements of weights are hidden."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import rushlight as rl
from rushlight import Tensor, nn
from rushlight.ao.pruning._utils import (
    FakeSparsity,
    get_arg_info_from_tensor_fqn,
    module_to_fqn,
)
from rushlight.nn import functional as F
from rushlight.nn.utils import parametrize

__all__ = ["BaseSparsifier", "NearlyDiagonalSparsifier", "WeightNormSparsifier"]

SUPPORTED_MODULES = {nn.Linear}
_NOT_SAVED = ("module", "module_fqn", "tensor_name")


class BaseSparsifier(ABC):
    """What sparsifiers share; a subclass has update_mask(module, tensor_name, **settings).

    Args:
        defaults: the settings of weights whose configuration does not have them.
    """

    def __init__(self, defaults: dict[str, Any] | None = None) -> None:
        self.defaults: dict[str, Any] = defaults or {}
        self.state: dict[str, dict[str, Any]] = defaultdict(dict)
        self.groups: list[dict[str, Any]] = []
        self.enable_mask_update = True

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.groups):
            lines += [f"\tGroup {number}", f"\t    module: {group['module']}"]
            lines += [f"\t    {key}: {group[key]}" for key in sorted(group) if key != "module"]
        return "\n".join([*lines, ")"]) if self.groups else lines[0] + ")"

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "groups": self.groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def state_dict(self) -> dict[str, Any]:
        """Returns the masks, and the settings of each weight."""
        groups = [
            {key: value for key, value in group.items() if key not in _NOT_SAVED}
            for group in self.groups
        ]
        return {"state": self.state, "groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Takes over what state_dict returned, with masks in front of the network's weights.

        Raises:
            RuntimeError: if a weight is not there.
        """
        groups = copy.deepcopy(state_dict["groups"])
        for tensor_fqn, state in state_dict["state"].items():
            found = get_arg_info_from_tensor_fqn(self.model, tensor_fqn)
            module, name = found["module"], found["tensor_name"]
            if module is None:
                if strict:
                    raise RuntimeError(f"Error loading {tensor_fqn} into the model")
                continue
            mask = _mask_of(module, name)
            if mask is None:
                mask = FakeSparsity(rl.ones_like(getattr(module, name)))
                parametrize.register_parametrization(module, name, mask)
            if state.get("mask") is not None:
                mask.mask = state["mask"]
            for group in groups:
                if group["tensor_fqn"] == tensor_fqn:
                    group.update(found)
        self.state, self.groups = state_dict["state"], groups

    def make_config_from_model(
        self, model: nn.Module, SUPPORTED_MODULES: set[Any] = SUPPORTED_MODULES
    ) -> None:
        """Sets the configuration to the weights of all linear layers."""
        self.config = [
            {"tensor_fqn": f"{module_to_fqn(model, module)}.weight"}
            for module in model.modules()
            if type(module) in SUPPORTED_MODULES and module is not model
        ]

    def prepare(self, model: nn.Module, config: list[dict[str, Any]] | None) -> None:
        """Puts masks in front of weights, which hide nothing yet.

        Args:
            model: the network, which is changed.
            config: a dict for each weight, with its path "tensor_fqn" and settings; the weights of
                all linear layers if None.
        """
        self.model, self.config = model, config
        if config is None:
            self.make_config_from_model(model)
        for given in self.config or ():
            if not isinstance(given, dict) or given.get("tensor_fqn") is None:
                raise AssertionError(
                    "prepare: each configuration must be a dict with the path of a weight, "
                    "{'tensor_fqn': 'foo.bar.weight'}."
                )
            group = {**copy.deepcopy(self.defaults), **given}
            group.update(get_arg_info_from_tensor_fqn(model, given["tensor_fqn"].lstrip(".")))
            self.groups.append(group)
        self._prepare()

    def _prepare(self, *args: Any, **kwargs: Any) -> None:
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            mask = group.get("mask")
            mask = rl.ones_like(getattr(module, name)).detach() if mask is None else mask
            self.state[group["tensor_fqn"]]["mask"] = mask
            kind = group.get("parametrization", FakeSparsity)
            parametrize.register_parametrization(module, name, kind(mask))

    def squash_mask(
        self,
        params_to_keep: tuple[str, ...] | None = None,
        params_to_keep_per_layer: dict[str, tuple[str, ...]] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Sets the hidden elements to zero for good, and takes the masks away.

        Args:
            params_to_keep: names of settings that each module keeps as the dict sparse_params.
            params_to_keep_per_layer: more of them by the path of a module.
        """
        for group in self.groups:
            module = group["module"]
            parametrize.remove_parametrizations(module, group["tensor_name"], True)
            own = (params_to_keep_per_layer or {}).get(group["module_fqn"], ())
            kept = {name: group[name] for name in (*(params_to_keep or ()), *own)}
            if kept:
                module.sparse_params = kept

    def convert(
        self,
        module: nn.Module,
        mapping: dict[Any, Any] | None = None,
        inplace: bool = False,
        parameterization: Any = FakeSparsity,
    ) -> nn.Module:
        """Returns a network with its masked layers replaced by mapping[class].from_dense(layer)."""
        if mapping is None:
            raise NotImplementedError("convert: give a mapping from classes to classes.")
        if not inplace:
            module = copy.deepcopy(module)
        for name, child in list(module.named_children()):
            kind = parametrize.type_before_parametrizations(child)
            masks = getattr(child, "parametrizations", {})
            is_masked = any(isinstance(p, parameterization) for ps in masks.values() for p in ps)
            if is_masked and kind in mapping:
                setattr(module, name, mapping[kind].from_dense(child))
            else:
                self.convert(child, mapping, True, parameterization)
        return module

    def step(self, use_path: bool = True) -> None:
        """Chooses anew what the masks hide."""
        if self.enable_mask_update:
            with rl.no_grad():
                for group in self.groups:
                    self.update_mask(**group)

    @abstractmethod
    def update_mask(self, module: nn.Module, tensor_name: str, **kwargs: Any) -> None:
        """Sets the mask of a weight: module.parametrizations[tensor_name][0].mask."""


def _mask_of(module: Any, tensor_name: str) -> Any:
    """The FakeSparsity of a weight, or None."""
    if not parametrize.is_parametrized(module, tensor_name):
        return None
    found = [p for p in module.parametrizations[tensor_name] if isinstance(p, FakeSparsity)]
    return found[0] if found else None


class WeightNormSparsifier(BaseSparsifier):
    """Hides the blocks of a matrix whose elements are smallest in the mean.

    Args:
        sparsity_level: the part of blocks that are hidden.
        sparse_block_shape: rows and columns of a block.
        zeros_per_block: how many elements of such a block are hidden, the smallest; all if None.
        norm: 1 or 2, or a function of the weight, whose result is compared.

    Example:
        >>> layers = torch.nn.Sequential(torch.nn.Linear(4, 1, bias=False))
        >>> layers[0].weight = torch.nn.Parameter(torch.tensor([[3.0, 1.0, 4.0, 2.0]]))
        >>> sparsifier = torch.ao.pruning.WeightNormSparsifier(1.0, (1, 4), 2)
        >>> sparsifier.prepare(layers, [{"tensor_fqn": "0.weight"}])
        >>> sparsifier.step()
        >>> sparsifier.squash_mask()
        >>> layers[0].weight.tolist()
        [[3.0, 0.0, 4.0, 0.0]]
    """

    def __init__(
        self,
        sparsity_level: float = 0.5,
        sparse_block_shape: tuple[int, int] = (1, 4),
        zeros_per_block: int | None = None,
        norm: Callable[[Tensor], Tensor] | int | None = None,
    ) -> None:
        if zeros_per_block is None:
            zeros_per_block = math.prod(sparse_block_shape)
        if callable(norm):
            self.norm_fn = norm
        elif norm in (None, 1, 2):
            self.norm_fn = rl.abs if norm == 1 else rl.square
        else:
            raise NotImplementedError(f"L-{norm} is not yet implemented.")
        super().__init__(
            {
                "sparsity_level": sparsity_level,
                "sparse_block_shape": sparse_block_shape,
                "zeros_per_block": zeros_per_block,
            }
        )

    def update_mask(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        module: Any,
        tensor_name: str,
        sparsity_level: float,
        sparse_block_shape: tuple[int, int],
        zeros_per_block: int,
        **kwargs: Any,
    ) -> None:
        """Sets the mask of a weight by the sizes of its elements."""
        if not 0 <= zeros_per_block <= math.prod(sparse_block_shape):
            raise ValueError(
                "Number of zeros per block must be between 0 and the number of elements in that "
                f"block, but is {zeros_per_block} for blocks of {sparse_block_shape}."
            )
        mask = module.parametrizations[tensor_name][0].mask
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.fill_(1)
            return
        sizes = self.norm_fn(getattr(module, tensor_name))
        hidden = _smallest_blocks(sizes, sparsity_level, sparse_block_shape)
        if zeros_per_block < math.prod(sparse_block_shape):
            hidden = hidden & _smallest_inside(sizes, zeros_per_block, sparse_block_shape)
        mask.copy_(~hidden)


def _smallest_blocks(sizes: Tensor, level: float, shape: tuple[int, int]) -> Tensor:
    """Where the part `level` of blocks is whose means are smallest."""
    if level >= 1:
        return rl.ones_like(sizes, dtype=rl.bool)
    means = F.avg_pool2d(sizes[None, None], shape, shape, ceil_mode=True)[0, 0]
    count = max(0, min(means.numel() - 1, round(level * means.numel())))
    chosen = rl.zeros(means.numel(), dtype=rl.bool)
    chosen[means.flatten().topk(count, largest=False).indices] = True
    chosen = chosen.view(means.shape)
    for dim in (0, 1):
        chosen = chosen.repeat_interleave(shape[dim], dim)
    return chosen[: sizes.shape[0], : sizes.shape[1]]


def _smallest_inside(sizes: Tensor, count: int, shape: tuple[int, int]) -> Tensor:
    """Where the `count` smallest elements of each block are; what a block lacks is largest."""
    (rows, columns), (height, width) = sizes.shape, shape
    ends = (0, -columns % width, 0, -rows % height)
    blocks = F.pad(sizes, ends, value=float("inf")).unflatten(1, (-1, width))
    blocks = blocks.unflatten(0, (-1, height)).transpose(1, 2)  # (rows, columns, height, width)
    flat = blocks.flatten(2)
    chosen = rl.zeros_like(flat, dtype=rl.bool)
    chosen.scatter_(2, flat.topk(count, dim=2, largest=False).indices, True)
    chosen = chosen.view(blocks.shape).transpose(1, 2).flatten(2).flatten(0, 1)
    return chosen[:rows, :columns]


class NearlyDiagonalSparsifier(BaseSparsifier):
    """Hides all of a matrix but the diagonal and its neighbors.

    Args:
        nearliness: how many diagonals are left, an odd number.
    """

    def __init__(self, nearliness: int = 1) -> None:
        super().__init__({"nearliness": nearliness})

    def update_mask(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, module: Any, tensor_name: str, nearliness: int, **kwargs: Any
    ) -> None:
        """Sets the mask of a weight to its middle diagonals."""
        mask = module.parametrizations[tensor_name][0].mask
        if nearliness <= 0:
            mask.zero_()
            return
        if nearliness % 2 == 0:
            raise ValueError("nearliness can only be an odd number")
        reach = nearliness // 2
        if reach >= min(mask.shape):
            raise ValueError("nearliness cannot be larger than the dimensions of tensor.")
        mask.copy_(rl.ones_like(mask).tril(reach).triu(-reach))
