"""Names of parameters as they were before modules were wrapped."""

from __future__ import annotations

__all__ = ["clean_tensor_name"]

_WRAPPERS = ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


def clean_tensor_name(tensor_name: str) -> str:
    """Returns a parameter's name without those of wrappers around its modules.

    Example:
        >>> clean_tensor_name("_fsdp_wrapped_module.0._checkpoint_wrapped_module.weight")
        '0.weight'
    """
    for wrapper in _WRAPPERS:
        tensor_name = tensor_name.replace(wrapper, "")
    return tensor_name
