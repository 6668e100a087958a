"""Which kernel a functional runs for a value, by the value's type.

A functional is declared by its signature and docstring; kernels join it for tensors, Pillow images
and tv_tensors. Kernels see plain tensors: what comes in as a tv_tensor goes out as one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from rushlight import Tensor
from rushlight._signatures import signature
from rushlight.vision.tv_tensors import (
    BoundingBoxes,
    Image,
    KeyPoints,
    Mask,
    TVTensor,
    Video,
    wrap,
)

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_BUILT_IN = (TVTensor, Image, Video, Mask, BoundingBoxes, KeyPoints)


class PillowImage:
    """Stands for PIL.Image.Image, so that Pillow need not be imported to register a kernel."""


IMAGES = (Tensor, Image, Video)

_kernels: dict[Callable[..., Any], dict[type, Callable[..., Any]]] = {}


def functional(declaration: Kernel) -> Kernel:
    """Make a functional of a function that has a signature and a docstring alone."""

    @functools.wraps(declaration)
    def dispatch(inpt: Any, *args: Any, **kwargs: Any) -> Any:
        kernel = find_kernel(dispatch, type(inpt))
        if kernel is None:
            raise TypeError(
                f"{dispatch.__name__}: got {type(inpt).__name__}. It takes "
                f"{', '.join(cls.__name__ for cls in _kernels[dispatch])}. Convert the input."
            )
        return kernel(inpt, *args, **kwargs)

    _kernels[dispatch] = {}
    declared: Any = dispatch
    return declared


@functools.cache
def find_kernel(function: Callable[..., Any], cls: type) -> Callable[..., Any] | None:
    """The kernel of a functional for a class, None when there is none.

    Those of a superclass count up to TVTensor: a tv_tensor of a class without a kernel is none of a
    functional's business, although it is a tensor.
    """
    registered = _kernels[function]
    for base in cls.__mro__:
        if base.__module__ == "PIL.Image" and base.__name__ == "Image":
            base = PillowImage
        if base in registered:
            return registered[base]
        if base is TVTensor:
            break
    return None


def kernel(function: Callable[..., Any], *types: type) -> Callable[[Kernel], Kernel]:
    """Register the function below as the kernel of a functional for these types.

    For masks, boxes and points it is called with those arguments of the functional that it has, and
    with what the tv_tensor knows under the names of its parameters. A kernel of boxes or points may
    return a pair: the result and the new canvas size.
    """

    def register(implementation: Kernel) -> Kernel:
        for cls in types:
            adapted: Callable[..., Any] = implementation
            if cls in (Image, Video):
                adapted = _of_pixels(implementation)
            elif issubclass(cls, TVTensor):
                adapted = _of_known(implementation, list(signature(function).parameters))
            _kernels[function][cls] = adapted
        return implementation

    return register


def _of_pixels(implementation: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(implementation)
    def call(inpt: TVTensor, *args: Any, **kwargs: Any) -> Any:
        return _wrapped(implementation(inpt.as_subclass(Tensor), *args, **kwargs), inpt)

    return call


def _of_known(implementation: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    accepted = set(signature(implementation).parameters)

    @functools.wraps(implementation)
    def call(inpt: TVTensor, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names[1:], args, strict=False)) | kwargs
        unknown = kwargs.keys() - set(names)
        if unknown or len(args) >= len(names):
            raise TypeError(
                f"{implementation.__name__}: got {len(args) + 1} arguments and {sorted(unknown)}. "
                f"It takes {', '.join(names)}."
            )
        given |= {name: getattr(inpt, name) for name in inpt._attributes}
        taken = {name: value for name, value in given.items() if name in accepted}
        result = implementation(inpt.as_subclass(Tensor), **taken)
        if isinstance(result, tuple):
            output, canvas_size = result
            return wrap(output, like=inpt, canvas_size=canvas_size)
        return _wrapped(result, inpt)

    return call


def _wrapped(result: Any, like: TVTensor) -> Any:
    if isinstance(result, Tensor):
        return wrap(result, like=like)
    # The crops of five_crop are images too; sizes and counts are what they are.
    if isinstance(result, tuple):
        return tuple(wrap(part, like=like) for part in result)
    return result


def on_masks(image_kernel: Callable[..., Any], mask: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """An image kernel on a mask, which may lack the dimension of channels."""
    if mask.ndim > 2:
        return image_kernel(mask, *args, **kwargs)
    return image_kernel(mask.unsqueeze(0), *args, **kwargs).squeeze(0)


def register_kernel(
    functional: Callable[..., Any] | str, tv_tensor_cls: type
) -> Callable[[Kernel], Kernel]:
    """Make a function the kernel of a functional for a TVTensor class of your own.

    Args:
        functional: a functional of transforms.v2.functional, or its name.
        tv_tensor_cls: the class; its kernel gets and returns its instances.

    Returns:
        A decorator for the kernel.

    Raises:
        ValueError: if there is no such functional, if the class is no TVTensor or comes with
            Rushlight, or if it has a kernel.
    """
    if isinstance(functional, str):
        name = functional
        functional = next((each for each in _kernels if each.__name__ == name), lambda: None)
    if functional not in _kernels:
        raise ValueError(
            "register_kernel: this is no functional that has kernels. "
            "They are those of transforms.v2.functional that transforms dispatch to."
        )
    if not (isinstance(tv_tensor_cls, type) and issubclass(tv_tensor_cls, TVTensor)):
        raise ValueError(
            f"register_kernel: got {tv_tensor_cls!r}. Kernels are registered for subclasses of "
            "tv_tensors.TVTensor."
        )
    if tv_tensor_cls in _BUILT_IN or tv_tensor_cls in _kernels[functional]:
        raise ValueError(
            f"register_kernel: {tv_tensor_cls.__name__} has a kernel. "
            "Kernels are registered once, for classes of your own."
        )

    def register(implementation: Kernel) -> Kernel:
        _kernels[functional][tv_tensor_cls] = implementation
        find_kernel.cache_clear()
        return implementation

    return register


def is_pure_tensor(inpt: Any) -> bool:
    """Whether a value is a tensor that is no TVTensor."""
    return isinstance(inpt, Tensor) and not isinstance(inpt, TVTensor)
