"""functorch.experimental.control_flow: the first home of cond and map."""

from rushlight._higher_order_ops import cond, map

__all__ = ["cond", "map"]
