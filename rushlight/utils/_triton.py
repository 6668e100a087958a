"""What libraries ask about Triton, which is not used here."""

from __future__ import annotations

__all__ = ["has_triton", "has_triton_package"]


def has_triton_package() -> bool:
    """Returns False: kernels written for Triton cannot take these tensors."""
    return False


has_triton = has_triton_package
