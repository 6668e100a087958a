"""The handle that registering a hook returns.

Owns handles only; the tables of hooks belong to modules, tensors and optimizers.
Invariant: ids are unique across all tables, so a handle removes its own hook or nothing.
"""

from __future__ import annotations

import itertools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import OrderedDict
    from typing import Any

_ids = itertools.count()


class RemovableHandle:
    """What registering a hook returns: remove() takes the hook out again.

    It is also a context manager that removes the hook at the end of the block.

    Args:
        hooks: the table whose entry under `id` the handle removes.

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)])
        >>> with optimizer.register_step_post_hook(lambda *_: print("stepped")):
        ...     optimizer.step()
        stepped
        >>> optimizer.step()
    """

    def __init__(self, hooks: OrderedDict[int, Any]) -> None:
        self.id = next(_ids)
        self._hooks = hooks

    def remove(self) -> None:
        """Takes the hook out; does nothing the second time."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()
