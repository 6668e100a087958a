"""Instructions of a GPU for each element, which there is no compiler for."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["inline_asm_elementwise"]


def inline_asm_elementwise(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuses to run instructions.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "inline_asm_elementwise: instructions are not compiled here. Use ops of tensors, or a "
        "kernel in CUDA by torch.cuda._compile_kernel."
    )
