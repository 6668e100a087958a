"""The addresses at which PyTorch keeps the layers of torch.ao.nn file by file.

Programs import from those as well. Ours are in other files, so an address leads to the module that
has all layers of its kind.
"""

from __future__ import annotations

import sys
from types import ModuleType

__all__ = ["lead", "repeat"]


def lead(addresses: str, below: str, layers: ModuleType | None = None) -> None:
    """Makes a module importable at other addresses, and an attribute of the modules above them.

    Args:
        addresses: names below that of a module, parents first.
        below: the name of the module.
        layers: what is found there; the module itself by default.

    Example:
        >>> from rushlight.ao.nn.quantized.modules.batchnorm import BatchNorm2d
        >>> BatchNorm2d is torch.ao.nn.quantized.BatchNorm2d
        True
    """
    layers = layers or sys.modules[below]
    for address in addresses.split():
        parent, _, name = f"{below}.{address}".rpartition(".")
        sys.modules[f"{parent}.{name}"] = layers
        if parent in sys.modules and sys.modules[parent] is not layers:
            setattr(sys.modules[parent], name, layers)


def repeat(addresses: str, below: str) -> None:
    """Makes what is importable below one module importable below another one too.

    Args:
        addresses: the name of the first module.
        below: the name of the other one.

    Example:
        >>> from rushlight.nn.quantized.modules.batchnorm import BatchNorm2d
        >>> BatchNorm2d is torch.ao.nn.quantized.BatchNorm2d
        True
    """
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{addresses}."):
            lead(name.removeprefix(f"{addresses}."), below, module)
