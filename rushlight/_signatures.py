"""Owns how the signatures of ops and of a program's functions are read.

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


def of_op(op: Any) -> inspect.Signature:
    """What inspect.signature shows of an op; AttributeError where it has several forms."""
    text = op.__text_signature__
    if text is None:
        raise AttributeError("__signature__")
    return inspect._signature_fromstr(inspect.Signature, op, text)  # pyright: ignore
