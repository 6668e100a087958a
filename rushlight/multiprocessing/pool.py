"""Pools of processes whose tasks and results may hold tensors, which travel as shared memory.

The standard library's pool is enough: its pickler knows tensors once rushlight.multiprocessing is
imported.
"""

from multiprocessing.pool import Pool

__all__ = ["Pool"]
