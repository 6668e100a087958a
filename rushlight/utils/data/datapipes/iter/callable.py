"""Steps that call a function with each item."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data._utils.collate import default_collate
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.utils.common import validate_input_col

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


def arguments_of(item: Any, columns: Any) -> tuple[Any, ...]:
    """The columns of an item, or all of it, as what a function is called with."""
    if columns is None:
        return (item,)
    chosen = columns if isinstance(columns, (list, tuple)) else [columns]
    return tuple(item[column] for column in chosen)


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """What a function returns for each item.

    Args:
        datapipe: the pipe that is read.
        fn: the function.
        input_col: the column, or several, of each item that the function gets; else all of it.
        output_col: the column that its result replaces, -1 to append it. Without it the result
            replaces the first of input_col.
    """

    def __init__(
        self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None
    ) -> None:
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) != 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            (output_col,) = output_col
        validate_input_col(fn, input_col)
        self.datapipe = datapipe
        self.fn = fn
        self.input_col = input_col
        self.output_col = output_col

    def _apply(self, item: Any) -> Any:
        result = self.fn(*arguments_of(item, self.input_col))
        if self.input_col is None:
            return result
        changed = dict(item) if isinstance(item, dict) else list(item)
        if self.output_col == -1 and isinstance(changed, list):
            changed.append(result)
        elif self.output_col is not None:
            changed[self.output_col] = result
        elif isinstance(self.input_col, (list, tuple)):
            changed[self.input_col[0]] = result
            if isinstance(changed, list):
                gone = set(self.input_col[1:])
                changed = [value for i, value in enumerate(changed) if i not in gone]
            else:
                for column in self.input_col[1:]:
                    del changed[column]
        else:
            changed[self.input_col] = result
        return tuple(changed) if isinstance(item, tuple) else changed

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            yield self._apply(item)

    def __len__(self) -> int:
        return length_of(self, self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches made of lists of samples.

    Args:
        datapipe: the pipe that is read, whose items are lists.
        conversion: accepted for PyTorch's sake.
        collate_fn: makes a batch of a list.
    """

    def __init__(
        self,
        datapipe: Any,
        conversion: Any = None,
        collate_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(datapipe, collate_fn or conversion or default_collate)


def length_of(pipe: Any, source: Any) -> int:
    """The length of a source; a pipe whose source has none has none either."""
    try:
        return len(source)
    except TypeError:
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length") from None
