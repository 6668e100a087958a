"""The step that leaves items out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight import Tensor
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.iter.callable import arguments_of
from rushlight.utils.data.datapipes.utils.common import validate_input_col

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The items for which a function returns True.

    Args:
        datapipe: the pipe that is read.
        filter_fn: the function.
        input_col: the column, or several, of each item that it gets; else all of it.
    """

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        validate_input_col(filter_fn, input_col)
        self.datapipe = datapipe
        self.filter_fn = filter_fn
        self.input_col = input_col

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            answer = self.filter_fn(*arguments_of(item, self.input_col))
            if isinstance(answer, Tensor) and answer.numel() == 1:
                answer = bool(answer)
            if not isinstance(answer, bool):
                raise ValueError(
                    f"Boolean output is required for `filter_fn` of {self!r}, got {type(answer)}"
                )
            if answer:
                yield item
