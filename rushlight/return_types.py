"""The types of ops with several results: named tuples such as torch.return_types.max.

The core makes each when it is first asked for, but for those of functions that are no ops. Named
here, results can be pickled.
"""

from __future__ import annotations

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The results of functions that are no ops, and their types.
OF_FUNCTIONS = {
    "histogram": {"hist": "Tensor", "bin_edges": "Tensor"},
    "histogramdd": {"hist": "Tensor", "bin_edges": "tuple[Tensor, ...]"},
}
for _name, _results in OF_FUNCTIONS.items():
    globals()[_name] = _C._make_return_type(_name, list(_results))


def __getattr__(name: str) -> type[tuple[Any, ...]]:
    found = _C._return_type(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, found)
