"""Back ends that tests hand to torch.compile, to count what it gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class CompileCounter:
    """A back end that counts its graphs and their ops, and runs them as they are."""

    def __init__(self) -> None:
        self.clear()

    def __call__(self, gm: Any, example_inputs: Any) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += sum(node.op.startswith("call") for node in gm.graph.nodes)
        return gm.forward

    def clear(self) -> None:
        """Sets both counts to 0."""
        self.frame_count = self.op_count = 0
