"""What tests of libraries hand to torch.compile to count what it compiles: here nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CompileCounter:
    """A backend of torch.compile that counts its graphs and their ops: always 0."""

    frame_count = op_count = 0

    def __call__(self, gm: Any, example_inputs: Any) -> Any:
        """Returns the graph's function as it is."""
        return gm.forward

    def clear(self) -> None:
        """Sets both counts to 0, which they are."""
