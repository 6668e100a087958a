"""What save and load do where their arguments do not say it: set the attributes of these classes.

Example:
    >>> from rushlight.utils.serialization import config
    >>> config.save.storage_alignment
    64
"""

from __future__ import annotations

import mmap as mmap_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rushlight.serialization import LoadEndianness

__all__ = ["load", "save"]


class load:
    """Of load.

    Attributes:
        mmap: whether files are mapped into memory.
        endianness: the order of bytes in files that do not tell it; None is little.
        mmap_flags: mmap.MAP_PRIVATE, or mmap.MAP_SHARED where changes go to the file.
        calculate_storage_offsets: has no effect.
    """

    mmap: bool = False
    endianness: LoadEndianness | None = None
    mmap_flags: int | None = mmap_module.MAP_PRIVATE
    calculate_storage_offsets: bool = False


class save:
    """Of save.

    Attributes:
        compute_crc32: has no effect: checksums are written, and load compares them.
        use_pinned_memory_for_d2h: has no effect.
        storage_alignment: the places of tensors in a file are multiples of this many bytes.
    """

    compute_crc32: bool = True
    use_pinned_memory_for_d2h: bool = False
    storage_alignment: int = 64
