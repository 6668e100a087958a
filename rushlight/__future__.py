"""torch.__future__: how modules convert their parameters."""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_overwrites = _swaps = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Sets whether conversions such as Module.double make new parameters.

    Args:
        value: False, as at first, for new values of the same parameters.

    Example:
        >>> layer = torch.nn.Linear(2, 3)
        >>> held = layer.weight
        >>> torch.__future__.set_overwrite_module_params_on_conversion(True)
        >>> layer.double().weight is held
        False
        >>> torch.__future__.set_overwrite_module_params_on_conversion(False)
        >>> held = layer.weight
        >>> layer.float().weight is held
        True
    """
    global _overwrites
    _overwrites = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Returns what set_overwrite_module_params_on_conversion set."""
    return _overwrites


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Sets whether load_state_dict loads by the module_load of each tensor, which gives its values.

    Conversions do not heed it: parameters stay the same objects anyway.
    """
    global _swaps
    _swaps = value


def get_swap_module_params_on_conversion() -> bool:
    """Returns what set_swap_module_params_on_conversion set."""
    return _swaps
