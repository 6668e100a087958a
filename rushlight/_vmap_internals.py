"""vmap where older programs look for it."""

from rushlight.func import vmap

__all__ = ["vmap"]
