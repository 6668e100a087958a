"""What PyTorch's FSDP does after a backward, which FSDP here does by itself."""

from __future__ import annotations

from typing import Any, NoReturn

__all__: list[str] = []


def _post_backward_final_callback(state: Any, module: Any) -> NoReturn:
    """Refuses to end a backward that was left by an error.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "FSDP: a backward that an error ended cannot be ended by hand. Make the model anew."
    )
