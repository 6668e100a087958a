"""Writes the type stubs of the native module, the ops and what the root imports later.

python tools/make_stubs.py            write them
python tools/make_stubs.py --check    fail when the committed ones are stale
"""

from __future__ import annotations

import argparse
import inspect
import keyword
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ClassMethodDescriptorType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from rushlight import _C, _foreach  # noqa: E402
from rushlight._later_names import NAMES_IN, SUBMODULES  # noqa: E402
from rushlight._tensor import _CONVERSIONS  # noqa: E402
from rushlight.return_types import OF_FUNCTIONS  # noqa: E402

# By the types of arguments in schemas, see core/base/schema.h.
TYPES = {
    "Tensor": "Tensor",
    "Tensor!": "Tensor",
    "Tensor[]": "Sequence[Tensor]",
    "Tensor?[]": "Sequence[Tensor | None]",
    "int": "_int",
    "int[]": "Sequence[_int]",
    "float": "_float",
    "bool": "_bool",
    "str": "str",
    "Scalar": "Number",
    "dtype": "_dtype",
    "device": "_device | str | _int",
    "memory_format": "_memory_format",
    "Generator": "Generator",
}
RETURNS = {
    "Tensor": "Tensor",
    "Tensor[]": "tuple[Tensor, ...]",
    "bool": "_bool",
    "int": "_int",
    "float": "_float",
    "Scalar": "Number",
    "dtype": "_dtype",
}
CLASSES = [
    "dtype",
    "device",
    "memory_format",
    "Size",
    "Generator",
    "Node",
    "_FunctionBase",
    "_TensorMeta",
    "StorageHolder",
    "_CudaEvent",
    "_CudaGraph",
    "_CudaKernel",
    "_CudaPool",
    "_NcclCommunicator",
]
HEAD = '''"""{title} Written by tools/make_stubs.py; do not edit."""

# pyright: reportIncompatibleMethodOverride=false, reportOverlappingOverload=false

import builtins
from collections.abc import Callable, Sequence
from typing import Any, overload

'''
ALIASES = """_int = builtins.int
_float = builtins.float
_bool = builtins.bool
_dtype = dtype
_device = device
_memory_format = memory_format
Number = _int | _float | builtins.complex
"""


def parameter(arg: dict[str, Any], is_written: bool) -> str:
    kind = TYPES[arg["type"].removesuffix("?")] + " | None" * arg["type"].endswith("?")
    if arg["type"] in ("int[]", "int[]?"):
        kind = "_int | " + kind
    elif arg["takes_number"] and not is_written:
        kind = kind.replace("Tensor", "Tensor | Number")
    default = "" if arg["default"] is None else " = ..."
    name = arg["name"] + "_" * keyword.iskeyword(arg["name"])
    return f"{name}: {kind}{default}"


def signature(row: dict[str, Any], inplace: bool, method: bool) -> str:
    parts: list[str] = []
    starred = False
    for i, arg in enumerate(row["args"]):
        if method and i == 0:
            parts.append("self")
            continue
        if arg["keyword_only"] and not starred:
            parts.append("*")
            starred = True
        parts.append(parameter(arg, inplace and i == 0))
    names = [a["name"] for a in row["args"]]
    positional = [a for a in row["args"] if not a["keyword_only"]]
    # A list of ints that comes last may be given one by one, as in x.view(2, 3).
    last = positional[-1] if positional else None
    if last and last["type"] == "int[]" and not last["expand_to"] and len(positional) <= 2:
        parts = [p for p in parts if p != "*"]
        parts[len(positional) - 1] = f"*{last['name']}: _int | Sequence[_int]"
    if positional and positional[0]["one_by_one"]:
        parts[0] = f"*{names[0]}: Tensor | Sequence[Tensor]"
        parts = [p for p in parts if p != "*"]
    factory = {"dtype", "device"} <= set(names)
    if not method and row["function"] and row["returns"][0][0].startswith("Tensor"):
        extras = ["out: Any = ..."] + (
            ["requires_grad: _bool = ...", "**kwargs: Any"] if factory else []
        )
        parts += ([] if starred or any(p.startswith("*") for p in parts) else ["*"]) + extras
    return f"({', '.join(parts)}) -> {result_type(row)}"


def result_type(row: dict[str, Any]) -> str:
    if has_named_results(row):
        return f"return_types.{return_name(row)}"
    returns = [RETURNS[kind] for kind, _ in row["returns"]]
    return returns[0] if len(returns) == 1 else f"tuple[{', '.join(returns)}]"


def has_named_results(row: dict[str, Any]) -> bool:
    return len(row["returns"]) > 1 and row["returns"][0][1] != ""


def return_name(row: dict[str, Any]) -> str:
    return f"linalg_{row['name']}" if row["home"] == "linalg" else row["name"]


def definitions(rows: list[dict[str, Any]], suffix: str, method: bool) -> list[str]:
    indent = "    " if method else ""
    lines = []
    for text in dict.fromkeys(signature(row, bool(suffix), method) for row in rows):
        if len(rows) > 1:
            lines.append(f"{indent}@overload")
        lines.append(f"{indent}def {rows[0]['name']}{suffix}{text}: ...")
    if len(lines) == 2:  # overloads that read the same are one
        lines = lines[1:]
    return lines


def by_name() -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in _C._op_table():
        groups.setdefault(row["name"], []).append(row)
    return groups


# Classes that stand beside the ops of a home, and their modules.
CLASSES_BESIDE = {
    "torch": {"OpOverload": "_op_overload", "OpOverloadPacket": "_op_overload"},
    "linalg": {"LinAlgError": "_errors"},
}


def return_types_stub() -> str:
    """The named tuples that ops and functions with several results return."""
    lines = [
        '"""Types of several results. Written by tools/make_stubs.py; do not edit."""\n',
        "from typing import NamedTuple\n",
        "from rushlight._tensor import Tensor\n",
    ]
    named = OF_FUNCTIONS | {
        return_name(row): {field: RETURNS[kind] for kind, field in row["returns"]}
        for row in _C._op_table()
        if has_named_results(row)
    }
    for name, results in sorted(named.items()):
        if name.startswith("_"):
            continue  # no op that users call
        lines.append(f"class {name}(NamedTuple):")
        lines += [f"    {field}: {kind}" for field, kind in results.items()]
    return "\n".join(lines) + "\n"


def later_names_stub() -> str:
    """What the root imports when it is first used, as if it was imported at once."""
    homes = {name: module for module, names in NAMES_IN.items() for name in names.split()}
    homes |= {name: "_foreach" for name in vars(_foreach) if name.startswith("_foreach_")}
    lines = [
        '"""Types of what comes later. Written by tools/make_stubs.py; do not edit."""\n',
        "from collections.abc import Mapping, Sequence\n",
        *(f"from rushlight import {name} as {name}" for name in SUBMODULES),
        *(f"from rushlight.{module} import {name} as {name}" for name, module in homes.items()),
        "\nSUBMODULES: Sequence[str]",
        "NAMES_IN: Mapping[str, str]\n",
        "def names() -> list[str]: ...\n",
        exported([*SUBMODULES, *homes]),
    ]
    return "\n".join(lines) + "\n"


def exported(names: Iterable[str]) -> str:
    """The __all__ of a stub, without which an import of * leaves out names that begin with _."""
    return "\n".join(["__all__ = [", *(f'    "{name}",' for name in sorted(names)), "]"])


def op_stub(home: str) -> str:
    """The functions of one home, as the module that takes them from the op table sees them."""
    lines = [
        HEAD.format(title=f"Types of the ops of {home}.")
        + "from rushlight import return_types\n"
        + "from rushlight._C import (\n    Generator,\n"
        "    device,\n    dtype,\n    memory_format,\n)\n"
        + "".join(
            f"from rushlight.{module} import {name}\n"
            for name, module in CLASSES_BESIDE.get(home, {}).items()
        )
        + "from rushlight._tensor import Tensor\n\n"
        + ALIASES
    ]
    names = []
    for name, rows in by_name().items():
        at_home = [row for row in rows if home in row["home"].split()]
        functions = [row for row in at_home if row["function"]]
        # Those of special are functions of the root only.
        in_place = [row for row in at_home if row["inplace"] and home != "special"]
        lines += definitions(functions, "", False) + definitions(in_place, "_", False)
        names += [name] * bool(functions) + [name + "_"] * bool(in_place)
    lines.append(exported([*names, *CLASSES_BESIDE.get(home, ())]))
    return "\n".join(lines) + "\n"


def native_stub() -> str:
    """The module _C: methods of tensors from the op table, the rest from the module itself."""
    lines = [
        HEAD.format(title="Types of the native core.")
        + "from rushlight import return_types\n"
        + "from rushlight._storage import UntypedStorage\n"
        + "from rushlight._tensor import Tensor\n\n"
        + ALIASES
    ]
    for name in CLASSES:
        base = {"Size": "(tuple[_int, ...])", "_TensorMeta": "(type)"}.get(name, "")
        lines.append(f"class {name}{base}:")
        if name in ("device", "Generator", "Size", "_CudaEvent", "_NcclCommunicator"):
            lines.append("    def __init__(self, *args: Any, **kwargs: Any) -> None: ...")
        body = class_members(getattr(_C, name))
        lines += body or ["    ..."]
    dtypes = sorted(n for n, v in vars(_C).items() if isinstance(v, _C.dtype))
    lines += [f"{name}: dtype" for name in dtypes]
    formats = sorted(n for n, v in vars(_C).items() if isinstance(v, _C.memory_format))
    lines += [f"{name}: memory_format" for name in formats]
    lines.append("default_generator: Generator")
    lines.append("class TensorBase:")
    lines += class_members(_C.TensorBase)
    lines.append("    def __buffer__(self, flags: _int, /) -> memoryview: ...")
    for name in _CONVERSIONS:
        lines.append(f"    def {name}(self, memory_format: Any = ...) -> Tensor: ...")
    for name, rows in by_name().items():
        if name in vars(_C.TensorBase):
            continue
        lines += definitions([r for r in rows if r["method"]], "", True)
        lines += definitions([r for r in rows if r["inplace"]], "_", True)
    for name, value in sorted(vars(_C).items()):
        if callable(value) and not inspect.isclass(value) and not name.startswith("__"):
            lines.append(f"def {name}(*args: Any, **kwargs: Any) -> Any: ...")
    return "\n".join(lines) + "\n"


OPERATORS = {
    "__getitem__",
    "__setitem__",
    "__len__",
    "__bool__",
    "__int__",
    "__float__",
    "__index__",
}
RESULTS = {
    "__len__": "_int",
    "__bool__": "_bool",
    "__int__": "_int",
    "__float__": "_float",
    "__index__": "_int",
    "__repr__": "str",
    "__str__": "str",
    "__hash__": "_int",
    "shape": "Size",
    "dtype": "_dtype",
    "device": "_device",
    "ndim": "_int",
    "grad": "Tensor | None",
    "data": "Tensor",
    "requires_grad": "_bool",
    "is_leaf": "_bool",
    "dim": "_int",
    "numel": "_int",
    "storage_offset": "_int",
    "data_ptr": "_int",
    "untyped_storage": "UntypedStorage",
    "detach": "Tensor",
    "requires_grad_": "Tensor",
    "is_contiguous": "_bool",
    "__getitem__": "Tensor",
    "type": "str",
}


def class_members(cls: type) -> list[str]:
    lines = []
    for name, value in sorted(vars(cls).items()):
        result = RESULTS.get(name, "Any")
        if inspect.isgetsetdescriptor(value):
            if not name.startswith("__"):
                lines.append(f"    {name}: {result}")
        elif cls is _C.Size and name in OPERATORS:
            continue  # those of tuple
        elif callable(value) or isinstance(value, staticmethod):
            if name in (
                "__hash__",
                "__repr__",
                "__str__",
                "__new__",
                "__doc__",
                "__getattribute__",
            ):
                continue
            if name.startswith("__") and name not in OPERATORS and not is_operator(name):
                continue
            static = isinstance(value, staticmethod)
            of_class = isinstance(value, ClassMethodDescriptorType)
            if static or of_class:
                lines.append("    @staticmethod" if static else "    @classmethod")
            returns = "Tensor" if is_operator(name) and cls is _C.TensorBase else result
            first = "" if static else "cls, " if of_class else "self, "
            lines.append(f"    def {name}({first}*args: Any, **kwargs: Any) -> {returns}: ...")
    return lines


def is_operator(name: str) -> bool:
    core = name.strip("_")
    arithmetic = {"add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"}
    bits = {"and", "or", "xor", "lshift", "rshift"}
    others = {"neg", "pos", "abs", "invert", "eq", "ne", "lt", "le", "gt", "ge"}
    known = arithmetic | bits | others
    return name.startswith("__") and (core in known or core[1:] in arithmetic | bits)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a stub is stale")
    check = parser.parse_args().check
    stubs = {
        "rushlight/_C.pyi": native_stub(),
        "rushlight/return_types.pyi": return_types_stub(),
        "rushlight/_ops.pyi": op_stub("torch"),
        "rushlight/_later_names.pyi": later_names_stub(),
        "rushlight/fft.pyi": op_stub("fft"),
        "rushlight/linalg.pyi": op_stub("linalg"),
        "rushlight/special.pyi": op_stub("special"),
        "rushlight/nn/_ops.pyi": op_stub("nn.functional"),
    }
    stale = [
        p for p, text in stubs.items() if not (ROOT / p).exists() or (ROOT / p).read_text() != text
    ]
    if check:
        for path in stale:
            print(f"{path} is stale. Run: make stubs")
        return bool(stale)
    for path in stale:
        (ROOT / path).write_text(stubs[path])
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
