"""The functions of the package under the name by which copies of PyTorch's layers call them."""

from __future__ import annotations

import rushlight as rl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(rl, name)
