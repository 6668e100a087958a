"""Fusion of layers with what follows them: a batch norm is folded in, a relu comes along."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from rushlight import nn
from rushlight.ao.nn import intrinsic as nni
from rushlight.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "fuse_conv_bn",
    "fuse_conv_bn_relu",
    "fuse_convtranspose_bn",
    "fuse_known_modules",
    "fuse_linear_bn",
    "fuse_modules",
    "fuse_modules_qat",
    "get_fuser_method",
]

# By class of the convolution: its norm, and the fused forms (conv + relu, conv + bn, all three).
_CONVS: dict[Any, tuple[Any, Any, Any, Any]] = {
    nn.Conv1d: (nn.BatchNorm1d, nni.ConvReLU1d, nni.ConvBn1d, nni.ConvBnReLU1d),
    nn.Conv2d: (nn.BatchNorm2d, nni.ConvReLU2d, nni.ConvBn2d, nni.ConvBnReLU2d),
    nn.Conv3d: (nn.BatchNorm3d, nni.ConvReLU3d, nni.ConvBn3d, nni.ConvBnReLU3d),
}


def _check_modes(*layers: nn.Module) -> None:
    if len({layer.training for layer in layers}) > 1:
        raise AssertionError("Conv and BN both must be in the same mode (train or eval).")


def fuse_conv_bn(is_qat: bool, conv: Any, bn: Any) -> Any:
    """Returns a convolution with a batch norm folded in, or, to train, both as one module."""
    _check_modes(conv, bn)
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    if bn.num_features != conv.out_channels:
        raise AssertionError("Output channel of Conv must match num_features of BatchNorm")
    return _CONVS[type(conv)][2](conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: Any, bn: Any, relu: Any) -> Any:
    """Returns a convolution with a batch norm folded in and a relu, or all three to train."""
    _check_modes(conv, bn, relu)
    if is_qat:
        return _CONVS[type(conv)][3](conv, bn, relu)
    return _CONVS[type(conv)][1](fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat: bool, linear: Any, bn: Any) -> Any:
    """Returns a linear layer with a batch norm folded in, or, to train, both as one module."""
    _check_modes(linear, bn)
    return nni.LinearBn1d(linear, bn) if is_qat else fuse_linear_bn_eval(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: Any, bn: Any) -> Any:
    """Returns a transposed convolution with a batch norm folded in."""
    _check_modes(convt, bn)
    if is_qat:
        raise NotImplementedError(
            "fuse_modules_qat: a transposed convolution and a batch norm are not trained as one "
            "module. Fuse them by fuse_modules in evaluation."
        )
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _sequence(kind: Any) -> Callable[..., Any]:
    return lambda is_qat, *layers: kind(*layers)


_METHODS: dict[tuple[Any, ...], Callable[..., Any]] = {
    (nn.Linear, nn.ReLU): _sequence(nni.LinearReLU),
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
    (nn.BatchNorm2d, nn.ReLU): _sequence(nni.BNReLU2d),
    (nn.BatchNorm3d, nn.ReLU): _sequence(nni.BNReLU3d),
}
for _dims in (1, 2, 3):
    _classes = getattr(nn, f"ConvTranspose{_dims}d"), getattr(nn, f"BatchNorm{_dims}d")
    _METHODS[_classes] = fuse_convtranspose_bn
for _conv, (_norm, _with_relu, _, _) in _CONVS.items():
    _METHODS[_conv, nn.ReLU] = _sequence(_with_relu)
    _METHODS[_conv, _norm] = fuse_conv_bn
    _METHODS[_conv, _norm, nn.ReLU] = fuse_conv_bn_relu


def get_fuser_method(op_list: Any, additional_fuser_method_mapping: Any = None) -> Any:
    """Returns the function that fuses layers of these classes: f(is_qat, *layers)."""
    known = {**_METHODS, **(additional_fuser_method_mapping or {})}
    if tuple(op_list) not in known:
        names = [getattr(kind, "__name__", kind) for kind in op_list]
        raise NotImplementedError(f"Cannot fuse modules: {names}")
    return known[tuple(op_list)]


def fuse_known_modules(
    mod_list: Sequence[Any], is_qat: bool, additional_fuser_method_mapping: Any = None
) -> list[Any]:
    """Returns the fused module, and an Identity for each of the others."""
    method = get_fuser_method([type(m) for m in mod_list], additional_fuser_method_mapping)
    fused = method(is_qat, *mod_list)
    # Hooks see what they saw: what came into the first module, and what the last one gave.
    for hook_id, hook in mod_list[0]._forward_pre_hooks.items():
        fused._forward_pre_hooks[hook_id] = hook
    for hook_id, hook in mod_list[-1]._forward_hooks.items():
        fused._forward_hooks[hook_id] = hook
    mod_list[0]._forward_pre_hooks.clear()
    mod_list[-1]._forward_hooks.clear()
    identities: list[Any] = []
    for module in mod_list[1:]:
        identity = nn.Identity()
        identity.training = module.training
        identities.append(identity)
    return [fused, *identities]


def _fuse(
    model: nn.Module,
    modules_to_fuse: Any,
    is_qat: bool,
    inplace: bool,
    fuser_func: Any,
    custom: dict[str, Any] | None,
) -> Any:
    if not inplace:
        model = copy.deepcopy(model)
    lists = (
        [modules_to_fuse] if all(isinstance(n, str) for n in modules_to_fuse) else modules_to_fuse
    )
    mapping = (custom or {}).get("additional_fuser_method_mapping", {})
    for names in lists:
        fused = fuser_func([model.get_submodule(name) for name in names], is_qat, mapping)
        for name, module in zip(names, fused, strict=True):
            parent, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(parent), leaf, module)
    return model


def fuse_modules(
    model: Any,
    modules_to_fuse: Any,
    inplace: bool = False,
    fuser_func: Any = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> Any:
    """Returns a network with lists of its modules fused into the first of each.

    Known are: conv, bn / conv, bn, relu / conv, relu / linear, relu / linear, bn / bn, relu, and a
    transposed conv with its bn. The others of a list become Identity. A batch norm is folded in, so
    that the network must be in evaluation.

    Args:
        model: the network.
        modules_to_fuse: a list of names of modules, or several.
        inplace: changes the network itself.
        fuser_func: makes the new modules of a list.
        fuse_custom_config_dict: {"additional_fuser_method_mapping": {classes: function}}.

    Example:
        >>> layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()).eval()
        >>> torch.ao.quantization.fuse_modules(layers, ["0", "1"])
        Sequential(
          (0): LinearReLU(
            (0): Linear(in_features=2, out_features=3, bias=True)
            (1): ReLU()
          )
          (1): Identity()
        )
    """
    return _fuse(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: Any,
    modules_to_fuse: Any,
    inplace: bool = False,
    fuser_func: Any = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> Any:
    """fuse_modules for a network in training, which keeps its batch norms."""
    return _fuse(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
