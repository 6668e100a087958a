"""Rushlight: a small, fast deep-learning framework with PyTorch's API.

`import rushlight as torch` runs ordinary PyTorch programs. Names come from the op table of the
native core; submodules are imported when first used.
"""

from __future__ import annotations

import sys as _sys

from rushlight import _load_core as _load_core  # before all that imports the core

# isort: split
from rushlight import _C
from rushlight._C import (
    Generator,
    Size,
    as_tensor,
    can_cast,
    device,
    dtype,
    from_numpy,
    frombuffer,
    get_default_dtype,
    get_num_threads,
    is_grad_enabled,
    is_inference_mode_enabled,
    memory_format,
    promote_types,
    result_type,
    set_default_dtype,
    set_flush_denormal,
    set_num_threads,
    tensor,
)
from rushlight._C import bfloat16 as bfloat16
from rushlight._C import channels_last as channels_last
from rushlight._C import channels_last_3d as channels_last_3d
from rushlight._C import complex64 as complex64
from rushlight._C import complex128 as complex128
from rushlight._C import contiguous_format as contiguous_format
from rushlight._C import float8_e4m3fn as float8_e4m3fn
from rushlight._C import float8_e5m2 as float8_e5m2
from rushlight._C import float16 as float16
from rushlight._C import float32 as float32
from rushlight._C import float64 as float64
from rushlight._C import int8 as int8
from rushlight._C import int16 as int16
from rushlight._C import int32 as int32
from rushlight._C import int64 as int64
from rushlight._C import preserve_format as preserve_format
from rushlight._C import uint8 as uint8
from rushlight._C import uint16 as uint16
from rushlight._C import uint32 as uint32
from rushlight._C import uint64 as uint64

_C._set_library_search_path([_sys.prefix + "/lib", *_sys.path])

from rushlight import _later, _later_names
from rushlight._dtype_info import finfo, iinfo
from rushlight._errors import AcceleratorError as AcceleratorError
from rushlight._errors import OutOfMemoryError
from rushlight._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from rushlight._layout import (
    jagged,
    layout,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from rushlight._tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight._later_names import *

__version__ = "0.1.0"

bool = _C.bool
legacy_contiguous_format = contiguous_format
half = float16
float = float32
double = float64
short = int16
int = int32
long = int64
cfloat = complex64
cdouble = complex128

from math import e, inf, nan, pi

from rushlight._ops import *

newaxis = None

_find = _later.imports(__name__, _later_names.SUBMODULES, _later_names.NAMES_IN)


if not TYPE_CHECKING:  # a checker is to find names that do not exist

    def __getattr__(name: str) -> Any:
        if name.startswith("_foreach_"):
            from rushlight import _foreach

            return globals().setdefault(name, getattr(_foreach, name))
        return _find(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_later_names.SUBMODULES, *_later_names.names()})
