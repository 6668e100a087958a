"""vmap where older programs look for it, also by its older name."""

from rushlight.func import vmap

__all__ = ["vmap"]

_vmap = vmap
