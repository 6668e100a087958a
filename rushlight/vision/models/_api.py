"""Models and their published weights by name, and the decorator that makes builders of models.

A builder is a function such as resnet18(weights=..., progress=...). Its family's file says how the
model is made; `builder` adds what all of them do with weights. The figures about the weights are
data (weights.json, categories/), and so facts of what torchvision 0.29 publishes.
"""

from __future__ import annotations

import fnmatch
import functools
import inspect
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from types import ModuleType
from typing import Any, Optional, Self, TypeVar, get_args

from rushlight import nn
from rushlight.vision.models._utils import _ovewrite_named_param, handle_legacy_interface

__all__ = [
    "Weights",
    "WeightsEnum",
    "get_model",
    "get_model_builder",
    "get_model_weights",
    "get_weight",
    "list_models",
]

_SITE = "https://download.pytorch.org/models/"

M = TypeVar("M", bound=nn.Module)


# Weights


@dataclass
class Weights:
    """A file of weights: where it is, how its inputs were prepared, what is known about it.

    Args:
        url: address of the state_dict.
        transforms: makes the function that prepares an input.
        meta: num_params, min_size, categories, recipe, _metrics and others.
    """

    url: str
    transforms: Callable[..., Any]
    meta: dict[str, Any]


class WeightsEnum(Enum):
    """The weights published for one model; the values are of the class Weights.

    Example:
        >>> weights = torch.vision.models.ResNet18_Weights.DEFAULT
        >>> weights.meta["num_params"], weights.meta["categories"][:2]
        (11689512, ['tench', 'goldfish'])
    """

    @classmethod
    def verify(cls, obj: Any) -> Self | None:
        """Returns the member that obj is or names, or None for None.

        Raises:
            TypeError: if obj is something else, such as another model's weights.
            KeyError: if there is no member of that name.
        """
        if obj is None or isinstance(obj, cls):
            return obj
        if not isinstance(obj, str):
            raise TypeError(
                f"Invalid Weight class provided; expected {cls.__name__} but received "
                f"{type(obj).__name__}."
            )
        name = obj.removeprefix(f"{cls.__name__}.")
        if name not in cls.__members__:
            raise KeyError(f"{cls.__name__} has no {name}; there are {', '.join(cls.__members__)}")
        return cls[name]

    def get_state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Downloads the state_dict; the arguments are hub.load_state_dict_from_url's."""
        from rushlight.hub import load_state_dict_from_url

        return load_state_dict_from_url(self.url, *args, **kwargs)

    @property
    def url(self) -> str:
        """Address of the state_dict."""
        return self.value.url

    @property
    def transforms(self) -> Callable[..., Any]:
        """Makes the function that prepares an input."""
        return self.value.transforms

    @property
    def meta(self) -> dict[str, Any]:
        """What is known about the weights."""
        return self.value.meta

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (type(self), self.name)  # by name: values do not compare when copied


def published(file: str) -> Weights:
    """Returns a file of weights on PyTorch's site, with its row of weights.json."""
    row = _read_table()[file]
    meta = {name: _as_tuple(value) for name, value in row["meta"].items()}
    for name in ("categories", "keypoint_names"):
        if meta.get(name):
            meta[name] = read_names(meta[name])
    options = {name: _as_tuple(value) for name, value in row["options"].items()}
    return Weights(_SITE + file, functools.partial(_preset, row["preset"], **options), meta)


def read_names(name: str) -> list[str]:
    """Returns the names of the classes of a data set, in the order of a model's outputs."""
    return _read_lines(name).copy()


@functools.cache
def _read_lines(name: str) -> list[str]:
    with open(_beside("categories", f"{name}.txt"), encoding="utf-8") as file:
        return file.read().splitlines()


@functools.cache
def _read_table() -> dict[str, dict[str, Any]]:
    with open(_beside("weights.json"), encoding="utf-8") as file:
        return json.load(file)


def _beside(*parts: str) -> str:
    return os.path.join(os.path.dirname(__file__), *parts)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _preset(name: str, **options: Any) -> nn.Module:
    from rushlight.vision.transforms import _presets

    return getattr(_presets, name)(**options)


# Builders


BUILTIN_MODELS: dict[str, Callable[..., nn.Module]] = {}


def register_model(name: str | None = None) -> Callable[[Callable[..., M]], Callable[..., M]]:
    """Makes get_model and list_models know a builder, under its own name or another.

    Raises:
        ValueError: if there is a model of that name.
    """

    def register(builder: Callable[..., M]) -> Callable[..., M]:
        key = name or getattr(builder, "__name__", "")
        if key in BUILTIN_MODELS:
            raise ValueError(f"An entry is already registered under the name '{key}'.")
        BUILTIN_MODELS[key] = builder
        return builder

    return register


def builder(
    weights_enum: type[WeightsEnum],
    *,
    adapt: Callable[[dict[str, Any], WeightsEnum], Callable[[Any], None] | None] | None = None,
    legacy: str = "IMAGENET1K_V1",
) -> Callable[[Callable[..., M]], Callable[..., M]]:
    """Makes a registered builder of a function that makes an untrained model.

    The builder takes weights and progress besides the function's arguments. Given weights, it sets
    num_classes to what they were trained on, and loads them.

    Args:
        weights_enum: the weights that it takes.
        adapt: called as adapt(kwargs, weights) to set what else the weights ask of the model; if it
            returns a function, that is called with the loaded model.
        legacy: name of the weights that pretrained=True meant.
    """

    def decorate(make: Callable[..., M]) -> Callable[..., M]:
        @functools.wraps(make)
        def build(*, weights: Any = None, progress: bool = True, **kwargs: Any) -> M:
            weights = weights_enum.verify(weights)
            if weights is None:
                return make(**kwargs)
            categories = weights.meta.get("categories")
            if categories is not None:
                _ovewrite_named_param(kwargs, "num_classes", len(categories))
            finish = adapt(kwargs, weights) if adapt is not None else None
            model = make(**kwargs)
            model.load_state_dict(weights.get_state_dict(progress=progress, check_hash=True))
            if finish is not None:
                finish(model)
            return model

        parameters = inspect.signature(build, follow_wrapped=False).parameters
        weights = parameters["weights"].replace(annotation=Optional[weights_enum])  # noqa: UP045
        signature = inspect.Signature([weights, *list(parameters.values())[1:]])
        build.__signature__ = signature  # pyright: ignore[reportAttributeAccessIssue]
        default = weights_enum.__members__.get(legacy)
        return register_model()(handle_legacy_interface(weights=("pretrained", default))(build))

    return decorate


def get_model_builder(name: str) -> Callable[..., nn.Module]:
    """Returns the function that makes the model of a name.

    Raises:
        ValueError: if there is none.
    """
    found = BUILTIN_MODELS.get(name.lower())
    if found is None:
        raise ValueError(f"Unknown model {name}. torch.vision.models.list_models() lists them.")
    return found


def get_model(name: str, **config: Any) -> nn.Module:
    """Returns a new model by name; config is its builder's arguments.

    Example:
        >>> model = torch.vision.models.get_model("squeezenet1_1", num_classes=10)
        >>> model(torch.zeros(1, 3, 64, 64)).shape
        torch.Size([1, 10])
    """
    return get_model_builder(name)(**config)


def get_model_weights(name: Callable[..., nn.Module] | str) -> type[WeightsEnum]:
    """Returns the enum of the weights of a model, given by its builder or its name.

    Raises:
        ValueError: if the builder's argument `weights` has no enum for its annotation.

    Example:
        >>> list(torch.vision.models.get_model_weights("resnet50"))
        [ResNet50_Weights.IMAGENET1K_V1, ResNet50_Weights.IMAGENET1K_V2]
    """
    found = get_model_builder(name) if isinstance(name, str) else name
    parameter = inspect.signature(found).parameters.get("weights")
    if parameter is None:
        raise ValueError("The method is missing the 'weights' argument.")
    annotation = parameter.annotation
    if isinstance(annotation, str):
        annotation = eval(annotation, inspect.unwrap(found).__globals__)
    for choice in (annotation, *get_args(annotation)):
        if isinstance(choice, type) and issubclass(choice, WeightsEnum):
            return choice
    raise ValueError(
        "The WeightsEnum class for the specific method couldn't be retrieved. Make sure the "
        "typing info is correct."
    )


def get_weight(name: str) -> WeightsEnum:
    """Returns weights by the name of their enum and their own, as "ResNet50_Weights.DEFAULT".

    Raises:
        ValueError: if there is no such enum, or name has another form.
        KeyError: if the enum has no such member.

    Example:
        >>> torch.vision.models.get_weight("ResNet50_Weights.DEFAULT")
        ResNet50_Weights.IMAGENET1K_V2
    """
    enum_name, dot, value_name = name.partition(".")
    if not dot or "." in value_name:
        raise ValueError(f"Invalid weight name provided: '{name}'.")
    for found in BUILTIN_MODELS.values():
        weights_enum = get_model_weights(found)
        if weights_enum.__name__ == enum_name:
            return weights_enum[value_name]
    raise ValueError(
        f"The weight enum '{enum_name}' for the specific method couldn't be retrieved."
    )


def list_models(
    module: ModuleType | None = None,
    include: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
) -> list[str]:
    """Returns the names of the models, sorted.

    Args:
        module: keeps those of one package, as torch.vision.models.video.
        include: keeps those that match one of these shell patterns.
        exclude: leaves out those that match one of these.

    Example:
        >>> torch.vision.models.list_models(include="resnet*", exclude=["*101", "*152"])
        ['resnet18', 'resnet34', 'resnet50']
    """

    def matching(patterns: Iterable[str] | str) -> set[str]:
        patterns = [patterns] if isinstance(patterns, str) else patterns
        return {name for pattern in patterns for name in fnmatch.filter(names, pattern)}

    names = {
        name
        for name, found in BUILTIN_MODELS.items()
        if module is None or found.__module__.rpartition(".")[0] == module.__name__
    }
    if include:
        names = matching(include)
    if exclude:
        names -= matching(exclude)
    return sorted(names)
