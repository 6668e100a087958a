"""Owns how the signatures of a program's functions are read.

From Python 3.14 on annotations are computed when they are asked for, and one that only type
checkers can read raises NameError then. Here it stays a ForwardRef, much as a string would.
"""

from __future__ import annotations

import inspect
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

if sys.version_info >= (3, 14):
    from annotationlib import Format, get_annotations

    def signature(function: Callable[..., Any]) -> inspect.Signature:
        return inspect.signature(function, annotation_format=Format.FORWARDREF)

    def annotations(function: Callable[..., Any]) -> dict[str, Any]:
        return get_annotations(function, format=Format.FORWARDREF)

else:
    signature = inspect.signature
    annotations = inspect.get_annotations
