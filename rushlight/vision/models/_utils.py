"""What builders of models share: rounded widths, older arguments, layers as features."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from rushlight import Tensor, nn

M = TypeVar("M", bound=nn.Module)
V = TypeVar("V")


class IntermediateLayerGetter(nn.ModuleDict):
    """The first children of a model, up to the last one whose result is wanted.

    The children run in the order in which they were assigned, each on the result of the one before.

    Args:
        model: the model.
        return_layers: names of children, each with the name its result gets.

    Returns:
        From forward, an OrderedDict of the wanted results.

    Example:
        >>> model = torch.vision.models.resnet18()
        >>> body = IntermediateLayerGetter(model, {"layer1": "low", "layer3": "high"})
        >>> [(name, x.shape) for name, x in body(torch.zeros(1, 3, 64, 64)).items()]
        [('low', torch.Size([1, 64, 16, 16])), ('high', torch.Size([1, 256, 4, 4]))]
    """

    _version = 2

    def __init__(self, model: nn.Module, return_layers: dict[str, str]) -> None:
        children = dict(model.named_children())
        if not set(return_layers) <= set(children):
            raise ValueError("return_layers are not present in model")
        wanted = {str(name) for name in return_layers}
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for name, child in children.items():
            if not wanted:
                break
            layers[name] = child
            wanted.discard(name)
        super().__init__(layers)
        self.return_layers = return_layers

    def forward(self, x: Tensor) -> OrderedDict[str, Tensor]:
        results: OrderedDict[str, Tensor] = OrderedDict()
        for name, layer in self.items():
            x = layer(x)
            if name in self.return_layers:
                results[self.return_layers[name]] = x
        return results


def _make_divisible(v: float, divisor: int, min_value: int | None = None) -> int:
    """Returns the multiple of divisor nearest to v that is at least 0.9 v, and at least min_value.

    From MobileNet (Sandler et al. 2018): widths that vector units like, never much narrower.
    """
    nearest = max(min_value or divisor, int(v + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * v else nearest


def init_by_fan_out(model: nn.Module, init_linear: Callable[[Tensor], Any]) -> None:
    """Initializes convolutions by fan out (He et al. 2015), linear layers as given, biases as 0."""
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Conv3d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(layer, nn.Linear):
            init_linear(layer.weight)
        else:
            continue
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


def init_narrow(weight: Tensor) -> None:
    """The init_linear of most: normal with a standard deviation of 0.01."""
    nn.init.normal_(weight, std=0.01)


# Names as torchvision spells them: other libraries import them.


def _ovewrite_named_param(kwargs: dict[str, Any], param: str, new_value: Any) -> None:
    """Sets an argument that the weights ask for, unless another value was given."""
    kwargs[param] = _ovewrite_value_param(param, kwargs.get(param, new_value), new_value)


def _ovewrite_value_param(param: str, actual: V | None, expected: V) -> V:
    if actual is not None and actual != expected:
        raise ValueError(
            f"The parameter '{param}' expected value {expected} but got {actual} instead."
        )
    return expected


def handle_legacy_interface(
    **weights: tuple[str, Any],
) -> Callable[[Callable[..., M]], Callable[..., M]]:
    """Makes a builder take the arguments it had before torchvision 0.13, with warnings.

    Args:
        **weights: for an argument of weights, the name of the bool it replaces and what True means:
            a member of an enum, None if there is none, or a function of the arguments.
    """

    def decorate(builder: Callable[..., M]) -> Callable[..., M]:
        names = [
            name
            for name, parameter in inspect.signature(builder).parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        ]

        @functools.wraps(builder)
        def wrapper(*args: Any, **kwargs: Any) -> M:
            if args:
                kwargs |= _name_arguments(builder, names, args)
            for param, (old, meaning) in weights.items():
                _replace_legacy_argument(builder, kwargs, param, old, meaning)
            return builder(**kwargs)

        return wrapper

    return decorate


def _name_arguments(
    builder: Callable[..., Any], names: list[str], args: tuple[Any, ...]
) -> dict[str, Any]:
    if len(args) > len(names):
        raise TypeError(
            f"{builder.__name__}() takes at most {len(names)} positional arguments, "
            f"but {len(args)} were given"
        )
    used = [f"'{name}'" for name in names[: len(args)]]
    listed = " and ".join([", ".join(used[:-1]), used[-1]] if len(used) > 1 else used)
    warnings.warn(
        f"Using {listed} as positional parameter(s) is deprecated since 0.13 and may be removed "
        "in the future. Please use keyword parameter(s) instead.",
        stacklevel=3,
    )
    return dict(zip(names, args, strict=False))


def _replace_legacy_argument(
    builder: Callable[..., Any], kwargs: dict[str, Any], param: str, old: str, meaning: Any
) -> None:
    """Replaces pretrained=True, or weights=True, by the weights they meant."""
    from rushlight.vision.models._api import WeightsEnum

    if param in kwargs:
        given = kwargs[param]
        if given is None or isinstance(given, WeightsEnum):
            return
        if isinstance(given, str) and given != "legacy":
            return
        kwargs[old] = kwargs.pop(param)
    elif old in kwargs:
        warnings.warn(
            f"The parameter '{old}' is deprecated since 0.13 and may be removed in the future, "
            f"please use '{param}' instead.",
            stacklevel=3,
        )
    else:
        return
    chosen = None
    if kwargs[old]:
        chosen = meaning(kwargs) if callable(meaning) else meaning
        if not isinstance(chosen, WeightsEnum):
            raise ValueError(f"No weights available for model {builder.__name__}")
    message = (
        f"Arguments other than a weight enum or `None` for '{param}' are deprecated since 0.13 and "
        f"may be removed in the future. The current behavior is equivalent to passing "
        f"`{param}={chosen}`."
    )
    if chosen is not None:
        message += (
            f" You can also use `{param}={type(chosen).__name__}.DEFAULT` to get the most "
            "up-to-date weights."
        )
    warnings.warn(message, stacklevel=3)
    del kwargs[old]
    kwargs[param] = chosen
